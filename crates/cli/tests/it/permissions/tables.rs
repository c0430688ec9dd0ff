//! Every entry of the tables of secret stores and control files, attempted for real: by a program of the workspace in
//! the sandbox and by file tools; as root and as an ordinary user; in a project and in the home itself.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use haft::engine::permissions::tables::{
    self, TablePath, control_directories, control_endings, control_files, credential_paths,
};
use serde_json::{Value, json};

use crate::{
    binary::run,
    users::{self, Home, User},
};

/// What no answer may contain.
const KEY: &str = "SECRET-OF";
/// What is in the home and is no secret.
const NOTE: &str = "PLAIN-NOTE";

/// Allows every command, so that the sandbox alone decides.
const BASH: &[&str] = &["--allowedTools", "Bash"];
const EDITS: &[&str] = &["--permission-mode", "acceptEdits"];

fn home(user: User) -> Home {
    let home = Home::new(user);
    put(&home, "home/notes.txt", NOTE);
    home
}

/// Writes a file and makes its directories.
fn put(home: &Home, name: &str, text: &str) {
    let mut above: Vec<&Path> = Path::new(name).ancestors().skip(1).collect();
    above.reverse();
    for directory in above.iter().filter(|path| !path.as_os_str().is_empty()) {
        home.folder(directory.to_str().unwrap());
    }
    home.write(name, text);
}

/// A program in the workspace. Its reads and writes are not in the line that starts it.
fn program(home: &Home, name: &str, text: &str) {
    put(home, name, &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The answers of `haft exec` in a directory.
fn answers(home: &Home, directory: &str, flags: &[&str], calls: &[Value]) -> Vec<Value> {
    answers_with(home, directory, flags, calls, &[])
}

fn answers_with(
    home: &Home,
    directory: &str,
    flags: &[&str],
    calls: &[Value],
    variables: &[(&str, String)],
) -> Vec<Value> {
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let mut haft = home.haft();
    haft.current_dir(home.path(directory))
        .args(flags)
        .arg("exec");
    for (name, value) in variables {
        haft.env(name, value);
    }
    let ran = run(&mut haft, lines.as_bytes());
    let parsed = ran.stdout.lines().map(serde_json::from_str);
    let parsed: Vec<Value> = parsed.map(Result::unwrap).collect();
    assert_eq!(parsed.len(), calls.len(), "{}", ran.stderr);
    parsed
}

fn bash(line: &str) -> Value {
    json!({"name": "Bash", "input": {"command": line, "timeout": 120_000}})
}

fn read(path: &Path) -> Value {
    json!({"name": "Read", "input": {"file_path": path}})
}

fn write(path: &Path) -> Value {
    json!({"name": "Write", "input": {"file_path": path, "content": "new\n"}})
}

fn is_denied(answer: &Value) -> bool {
    let content = answer["content"].as_str().unwrap_or_default();
    answer["is_error"] == true && content.starts_with("Permission to use")
}

/// The program that prints every path in a list, and the note.
const READER: &str = "while read -r path; do cat \"$HOME/$path\" 2>/dev/null; done < list\n\
                      cat \"$HOME/notes.txt\"";

#[test]
fn no_store_in_the_table_is_read_by_a_program() {
    for user in users::all() {
        let home = home(user);
        let stores: Vec<TablePath> = credential_paths().collect();
        for store in &stores {
            let name = format!("home/{}", store.path);
            put(&home, &name, &format!("{KEY} {}\n", store.source));
        }
        let list: String = stores
            .iter()
            .map(|store| format!("{}\n", store.path))
            .collect();
        for directory in ["work", "home"] {
            put(&home, &format!("{directory}/list"), &list);
            program(&home, &format!("{directory}/reader"), READER);
            let answer = answers(&home, directory, BASH, &[bash("./reader")]).remove(0);
            let content = super::content(&answer);
            // The rest of the home is seen: otherwise nothing would have been attempted.
            assert!(content.contains(NOTE), "{user:?} {directory}: {content}");
            assert!(!content.contains(KEY), "{user:?} {directory}: {content}");
        }
    }
}

#[test]
fn file_tools_ask_for_every_store_in_the_table_also_in_the_home_itself() {
    for user in users::all() {
        let home = home(user);
        let stores: Vec<TablePath> = credential_paths().collect();
        for store in &stores {
            put(
                &home,
                &format!("home/{}", store.path),
                &format!("{KEY} {}\n", store.source),
            );
        }
        let at = |store: &TablePath| home.path(&format!("home/{}", store.path));
        let mut calls: Vec<Value> = stores.iter().map(|store| read(&at(store))).collect();
        calls.push(read(&home.path("home/notes.txt")));
        for (pattern, mode) in [
            (KEY, "content"),
            (".", "content"),
            (KEY, "files_with_matches"),
        ] {
            let input = json!({"pattern": pattern, "path": home.path("home"), "output_mode": mode});
            calls.push(json!({"name": "Grep", "input": input}));
        }
        let mut answers = answers(&home, "home", &[], &calls);
        for answer in answers.split_off(stores.len() + 1) {
            assert!(!super::content(&answer).contains(KEY), "{user:?}: {answer}");
            assert!(
                !super::content(&answer).contains(".ssh"),
                "{user:?}: {answer}"
            );
        }
        let note = answers.pop().unwrap();
        assert!(super::content(&note).contains(NOTE), "{user:?}: {note}");
        for (store, answer) in stores.iter().zip(&answers) {
            assert!(is_denied(answer), "{user:?}: {store:?}: {answer}");
        }
    }
}

/// The paths of the tables below a directory, each with a file in it.
fn control_paths() -> Vec<String> {
    // git's own directory changes with every commit: only some files in it decide what runs.
    let inside = |path: &str| if path == ".git" { "hooks/evil" } else { "evil" };
    let below = control_directories().map(|one| format!("{}/{}", one.path, inside(one.path)));
    let files = control_files().map(|one| one.path.to_owned());
    let ends = control_endings().map(|one| format!("evil{}", one.path));
    below.chain(files).chain(ends).collect()
}

/// The program that makes every path in a list, in several ways, and a file that it may make.
const WRITER: &str = r#"while read -r path; do
    mkdir -p "$(dirname "$path")" 2>/dev/null
    echo new > "$path"
    echo new > plain; mv plain "$path"
    ln -s notes.txt "$path"
    cp notes.txt "$path"
done < list 2>/dev/null
while read -r path; do
    rm -rf tree; mkdir -p "tree/$(dirname "$path")"; echo new > "tree/$path"
    top="${path%%/*}"; [ "$top" = "$path" ] || mv -T "tree/$top" "$top"
    mkdir -p aside/"$(dirname "${path#*/}")"; echo new > aside/"${path#*/}"
    [ "$top" = "$path" ] || { mv -T aside "$top"; ln -s aside "$top"; }
done < list 2>/dev/null
echo new > plain; echo done"#;

#[test]
fn no_control_file_in_the_tables_is_made_by_a_program() {
    for user in users::all() {
        let home = home(user);
        let paths = control_paths();
        put(&home, "work/list", &(paths.join("\n") + "\n"));
        put(&home, "work/notes.txt", NOTE);
        program(&home, "work/writer", WRITER);
        let answer = answers(&home, "work", BASH, &[bash("./writer")]).remove(0);
        assert!(
            super::content(&answer).contains("done"),
            "{user:?}: {answer}"
        );
        assert!(home.path("work/plain").exists(), "{user:?}: {answer}");
        for path in &paths {
            let made = home.path(&format!("work/{path}"));
            assert!(
                made.symlink_metadata().is_err(),
                "{user:?}: {path} was made"
            );
        }
    }
}

#[test]
fn a_control_file_that_is_there_is_not_changed_by_a_program() {
    for user in users::all() {
        let home = home(user);
        let paths = control_paths();
        for path in &paths {
            put(&home, &format!("work/{path}"), "old\n");
        }
        put(&home, "work/list", &(paths.join("\n") + "\n"));
        put(&home, "work/notes.txt", NOTE);
        let text = r#"while read -r path; do
    echo new >> "$path"; rm -rf "$path"; mv "$path" aside; mv "${path%/*}" aside-2
done < list 2>/dev/null
echo done"#;
        program(&home, "work/writer", text);
        let answer = answers(&home, "work", BASH, &[bash("./writer")]).remove(0);
        assert!(
            super::content(&answer).contains("done"),
            "{user:?}: {answer}"
        );
        for path in &paths {
            let now = fs::read_to_string(home.path(&format!("work/{path}")));
            assert_eq!(now.ok().as_deref(), Some("old\n"), "{user:?}: {path}");
        }
    }
}

#[test]
fn file_tools_ask_before_they_make_a_control_file_and_not_to_read_one() {
    for user in users::all() {
        let home = home(user);
        let paths = control_paths();
        let at = |path: &String| home.path(&format!("work/{path}"));
        let mut calls: Vec<Value> = paths.iter().map(|path| write(&at(path))).collect();
        let plain = [
            "Makefile",
            "justfile",
            "package.json",
            ".github/workflows/ci.yml",
            ".env",
        ];
        calls.extend(plain.map(|name| write(&home.path(&format!("work/{name}")))));
        let answers_to_writes = answers(&home, "work", EDITS, &calls);
        for (path, answer) in paths.iter().zip(&answers_to_writes) {
            assert!(is_denied(answer), "{user:?}: {path}: {answer}");
            assert!(!at(path).exists(), "{user:?}: {path}");
        }
        for (name, answer) in plain.iter().zip(&answers_to_writes[paths.len()..]) {
            assert_ne!(answer["is_error"], true, "{user:?}: {name}: {answer}");
        }
        put(&home, "work/.cursor/rules/style.mdc", NOTE);
        let rules = home.path("work/.cursor/rules/style.mdc");
        let answer = answers(&home, "work", &[], &[read(&rules)]).remove(0);
        assert!(super::content(&answer).contains(NOTE), "{user:?}: {answer}");
    }
}

/// What a session in the home may not make: stores that are missing, and names that decide what runs.
const HOME_REFUSED: &[&str] = &[
    ".ssh/authorized_keys",
    ".aws/credentials",
    ".gnupg/gpg.conf",
    ".netrc",
    "_netrc",
    "snap/firefox/x",
    ".config/fish/config.fish",
    ".config/environment.d/x.conf",
    ".config/autostart/x.desktop",
    ".config/systemd/user/x.service",
    ".config/any-program/x",
    ".cshrc",
    ".kshrc",
    ".xprofile",
    ".pam_environment",
    ".no-list-names-it",
    ".no-list/names-it",
    ".local/bin/ls",
    ".local/share/applications/x.desktop",
    ".local/share/systemd/user/x.service",
    ".cache/pre-commit/x",
    "bin/ls",
];

/// What it may make.
const HOME_ALLOWED: &[&str] = &[
    ".cache/any-tool/x",
    ".local/state/any-tool/x",
    ".npm/_cacache/x",
    ".gradle/caches/x",
    ".nuget/packages/x",
    "project/.env",
    "project/.cache/x",
    "project/src/main.rs",
    "notes-2.txt",
];

#[test]
fn a_session_in_the_home_makes_no_start_file_and_no_missing_store() {
    for user in users::all() {
        let home = home(user);
        let list = |name: &str, paths: &[&str]| {
            put(&home, &format!("home/{name}"), &(paths.join("\n") + "\n"));
        };
        list("list", HOME_REFUSED);
        list("list-2", HOME_ALLOWED);
        let text = r#"while read -r path; do
    mkdir -p "$(dirname "$path")"; echo new > "$path"
    echo new > plain; mv plain "$path"; ln plain "$path"; ln -s notes.txt "$path"
    rm -rf tree; mkdir -p "tree/$(dirname "$path")"; echo new > "tree/$path"
    top="${path%%/*}"; mv -T "tree/$top" "$top"; cp -r "tree/$top" .; ln -s "tree/$top" "$top"
    rm -rf tree
done < list 2>/dev/null
while read -r path; do mkdir -p "$(dirname "$path")"; echo new > "$path"; done < list-2
mkdir -p .git/objects; echo new > .git/objects/ab; mkdir -p .git/hooks; echo new > .git/hooks/pre-commit
echo done"#;
        // What leads to data, without any yet.
        home.folder("home/.npm");
        home.folder("home/.gradle");
        program(&home, "home/writer", text);
        let answer = answers(&home, "home", BASH, &[bash("./writer")]).remove(0);
        assert!(
            super::content(&answer).contains("done"),
            "{user:?}: {answer}"
        );
        for path in HOME_REFUSED {
            let made = home.path(&format!("home/{path}"));
            assert!(
                made.symlink_metadata().is_err(),
                "{user:?}: {path} was made"
            );
        }
        for path in HOME_ALLOWED {
            let made = home.path(&format!("home/{path}"));
            assert!(made.exists(), "{user:?}: {path} was not made: {answer}");
        }
        // A home can be a repository.
        assert!(home.path("home/.git/objects/ab").exists(), "{user:?}");
        assert!(
            !home.path("home/.git/hooks/pre-commit").exists(),
            "{user:?}"
        );
        // The start files that are there stay as they are.
        put(&home, "home/.any-shell-rc", "old\n");
        put(&home, "home/.any-directory/x", "old\n");
        put(&home, "home/.local/share/any/x", "old\n");
        let text = "echo new >> .any-shell-rc; rm -f .any-shell-rc; mv .any-shell-rc x; \
                    echo new > .any-directory/x; mv .any-directory y; \
                    echo new > .local/share/any/x; mv .local z; mv .local/share/any z; echo done";
        program(&home, "home/writer", text);
        answers(&home, "home", BASH, &[bash("./writer")]);
        for path in [".any-shell-rc", ".any-directory/x", ".local/share/any/x"] {
            let now = fs::read_to_string(home.path(&format!("home/{path}")));
            assert_eq!(now.ok().as_deref(), Some("old\n"), "{user:?}: {path}");
        }
    }
}

#[test]
fn file_tools_in_the_home_ask_for_start_files_and_stores_only() {
    for user in users::all() {
        let home = home(user);
        let calls = |paths: &[&str]| -> Vec<Value> {
            let at = |path: &&str| write(&home.path(&format!("home/{path}")));
            paths.iter().map(at).collect()
        };
        for (path, answer) in
            HOME_REFUSED
                .iter()
                .zip(answers(&home, "home", EDITS, &calls(HOME_REFUSED)))
        {
            assert!(is_denied(&answer), "{user:?}: {path}: {answer}");
        }
        for (path, answer) in
            HOME_ALLOWED
                .iter()
                .zip(answers(&home, "home", EDITS, &calls(HOME_ALLOWED)))
        {
            assert_ne!(answer["is_error"], true, "{user:?}: {path}: {answer}");
        }
    }
}

#[test]
fn what_a_session_in_the_home_may_write_has_a_reason() {
    for data in tables::home_data() {
        assert!(data.source.len() > 10, "{data:?}");
        assert!(data.path.starts_with('.'), "{data:?}");
    }
}
