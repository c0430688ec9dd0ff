//! Lines that look harmless or go around a deny rule, given to the binary in a project that has the
//! programs they would start. No one is asked, so that what is not plainly allowed does not run.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    binary::run,
    users::{self, Home, User},
};

/// What a program of the project says when it runs.
const RAN: &str = "a program ran";

/// A project with a program in it, and programs outside of it that `PATH` leads to.
fn project(user: User) -> Home {
    let home = Home::new(user);
    for (name, text) in [
        ("work/a.txt", "alpha\n"),
        ("work/f.txt", "new\n"),
        ("work/.env", "new\n"),
    ] {
        home.write(name, text);
    }
    home.folder("bin");
    for name in ["work/x", "bin/f", "bin/g", "bin/curl"] {
        let mark = home.path("home/ran").display().to_string();
        home.write(
            name,
            &format!("#!/bin/sh\necho {RAN}\necho >> {mark} 2>/dev/null\n"),
        );
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    home
}

/// The answers of `haft exec` to these lines.
fn answers(home: &Home, flags: &[&str], lines: &[&str]) -> Vec<Value> {
    let bash = |line: &&str| json!({"name": "Bash", "input": {"command": line}}).to_string();
    let stdin: Vec<String> = lines.iter().map(bash).collect();
    let mut haft = home.haft();
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    haft.env("PATH", path).env("IS_SANDBOX", "1");
    haft.args(flags).arg("exec");
    let ran = run(&mut haft, (stdin.join("\n") + "\n").as_bytes());
    let parsed = ran.stdout.lines().map(serde_json::from_str);
    let parsed: Vec<Value> = parsed.map(Result::unwrap).collect();
    assert_eq!(parsed.len(), lines.len(), "{}", ran.stderr);
    parsed
}

/// None of the lines is run.
fn refused(home: &Home, flags: &[&str], lines: &[&str]) {
    for (line, answer) in lines.iter().zip(answers(home, flags, lines)) {
        let content = answer["content"].as_str().unwrap();
        let held = answer["is_error"] == true && content.starts_with("Permission to use Bash");
        assert!(held, "{line}: {answer}");
    }
}

#[test]
fn a_function_in_the_line_hides_no_program() {
    let lines = [
        "(./x(){ ls; }); ./x",
        "f(){ ls; }; env f",
        "f(){ ls; }; command f",
        "f(){ ls; }; exec f",
        "f(){ ls; }; timeout 5 f",
        "f(){ ls; }; ls | xargs f",
        "if false; then g(){ ls; }; fi; g",
        "false && g(){ ls; }; g",
        "(g(){ ls; }); g",
        "g(){ ls; } | cat; g",
        "f(){ ls; }; unset f; f",
    ];
    for user in users::all() {
        let home = project(user);
        refused(&home, &[], &lines);
        // With a rule each of them does start it: otherwise nothing would have been attempted.
        for (line, answer) in lines
            .iter()
            .zip(answers(&home, &["--allowedTools", "Bash"], &lines))
        {
            let content = answer["content"].as_str().unwrap();
            assert!(content.contains(RAN), "{user:?}: {line}: {answer}");
        }
    }
}

#[test]
fn what_writes_or_runs_by_a_way_around_is_not_harmless() {
    for user in users::all() {
        let home = project(user);
        home.shell(
            "git init -q . && mkdir -p lib/inner && cd lib/inner && git init -q . && \
             echo '* filter=f' > .gitattributes && echo x > in && git add -A && \
             git -c user.name=a -c user.email=a@b commit -qm x && git config filter.f.clean ./x && \
             cd ../.. && git -c advice.addEmbeddedRepo=false add lib/inner 2>/dev/null",
        );
        home.write(
            "work/rust-toolchain.toml",
            "[toolchain]\npath = \"./tools\"\n",
        );
        refused(
            &home,
            &[],
            &[
                "echo x < a.txt > /dev/stdin",
                "echo x 3< a.txt > /dev/fd/3",
                "echo x 3< a.txt > /proc/self/fd/3",
                "exec 3< a.txt; echo x > /dev/fd/3",
                "patch --dry-run -o out a.txt f.txt",
                "LC_ALL=ja_JP.SJIS ls",
                "cargo tree",
                "cargo metadata --no-deps",
                "git status",
                "cat < /proc/$PPID/environ",
                "cat < /proc/*/environ",
            ],
        );
        // A name that leads into the workspace is a program of the workspace.
        let inside = format!("PATH={}:$PATH ls", home.path("work").display());
        refused(&home, &[], &[&inside]);
        assert_eq!(
            fs::read_to_string(home.path("work/a.txt")).unwrap(),
            "alpha\n"
        );
    }
}

/// Everything is allowed but for this: because nothing asks, and because undo can restore it.
fn denying(home: &Home, rule: &str) -> [Vec<String>; 2] {
    let trusted = run(home.haft().args(["permissions", "trust", "--yes"]), b"");
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    let settings = json!({"permissions": {"deny": [rule]}}).to_string();
    let bypass = ["--dangerously-skip-permissions", "--settings", &settings];
    let auto = ["--permission-mode", "auto", "--settings", &settings];
    [
        bypass.map(str::to_owned).to_vec(),
        auto.map(str::to_owned).to_vec(),
    ]
}

#[test]
fn a_denied_command_is_not_started_by_another_name() {
    let lines = [
        "/lib64/ld-linux-x86-64.so.2 $(command -v curl)",
        "env -S 'curl x'",
        "setarch -R curl x",
        "hash -p \"$(command -v curl)\" ls; ls",
        "shopt -s expand_aliases\nalias y=curl\ny",
        "mapfile -C 'curl' -c 1 y < a.txt",
        "git -c alias.y='!curl x' y",
        "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=curl a.txt",
        "find . -name a.txt -exec curl {} +",
        "trap 'curl x' EXIT",
        "f=curl; $f x",
    ];
    for user in users::all() {
        let home = project(user);
        for flags in denying(&home, "Bash(curl *)") {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            for (line, answer) in lines.iter().zip(answers(&home, &flags, &lines)) {
                assert_eq!(answer["is_error"], true, "{user:?}: {line}: {answer}");
            }
        }
        assert!(!home.path("home/ran").exists(), "{user:?}");
        // Without the rule it is started.
        answers(&home, &["--dangerously-skip-permissions"], &[lines[1]]);
        assert!(home.path("home/ran").exists(), "{user:?}");
    }
}

#[test]
fn a_denied_file_is_not_written_with_the_rest_of_its_directory() {
    let lines = [
        "cp .env secrets/",
        "cp .env secrets",
        "cp -t secrets .env",
        "cp .e* secrets",
        "cp -r other/. secrets",
        "mv .env secrets/",
        "mv -f other/.env secrets",
        "install .env secrets",
        "ln -f .env secrets/",
        "ln -sf ../.env secrets/",
        "ln -s secrets s && cp .env s/",
        "tar xf a.tar -C secrets",
        "tar xf whole.tar",
        "cd secrets && tar xf ../a.tar",
        "rm -f secrets/.e*",
        "git checkout other",
        "git checkout other -- .",
        "git checkout other -- secrets",
        "git restore -s other .",
        "git restore -s other secrets",
        "git reset -q --hard other",
        "git stash",
        "git apply x.diff",
        "patch -p1 -i x.diff",
        "git merge -q other",
    ];
    for user in users::all() {
        let home = project(user);
        home.shell(
            "mkdir secrets other && cp .env other && echo first > secrets/.env && git init -q . && \
             git add -A && git -c user.name=a -c user.email=a@b commit -qm first && \
             git checkout -q -b other && echo new > secrets/.env && \
             git -c user.name=a -c user.email=a@b commit -qam second && git diff HEAD~1 > x.diff && \
             tar cf whole.tar secrets && tar cf a.tar -C secrets .env && git checkout -q - && \
             echo kept > secrets/.env",
        );
        let kept = || fs::read_to_string(home.path("work/secrets/.env")).unwrap_or_default();
        assert_eq!(kept(), "kept\n", "{user:?}");
        for rule in ["Edit(./secrets/.env)", "Edit(secrets/**)"] {
            let [bypass, auto] = denying(&home, rule);
            let flags: Vec<&str> = bypass.iter().map(String::as_str).collect();
            for (line, answer) in lines.iter().zip(answers(&home, &flags, &lines)) {
                assert_eq!(answer["is_error"], true, "{user:?}: {line}: {answer}");
            }
            assert_eq!(kept(), "kept\n", "{user:?}: {rule}");
            // In `auto` some of them run, and the sandbox keeps the file.
            let flags: Vec<&str> = auto.iter().map(String::as_str).collect();
            for line in lines {
                answers(&home, &flags, &[line]);
                assert_eq!(kept(), "kept\n", "{user:?}: {rule}: {line}");
            }
        }
        // Where the name that results is certain and another one, it is written.
        let [flags, _] = denying(&home, "Edit(./secrets/.env)");
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let plain = ["cp f.txt secrets/", "mv a.txt secrets", "mkdir secrets/d"];
        for (line, answer) in plain.iter().zip(answers(&home, &flags, &plain)) {
            assert_eq!(answer["is_error"], false, "{user:?}: {line}: {answer}");
        }
        assert!(home.path("work/secrets/a.txt").exists(), "{user:?}");
        // And without the rule each way there is one.
        answers(
            &home,
            &["--dangerously-skip-permissions"],
            &["tar xf a.tar -C secrets"],
        );
        assert_eq!(kept(), "new\n", "{user:?}");
    }
}

#[test]
fn no_rule_is_proposed_for_what_shows_other_processes() {
    let home = project(User::Same);
    for input in [
        &["Read", "file_path=/proc/1/environ"][..],
        &["Bash", "command=cat /proc/1/environ"],
        &["Bash", "command=rm x"],
    ] {
        let ran = run(home.haft().arg("call").args(input), b"");
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("was not granted"), "{said}");
        assert!(!said.contains("proc/1/environ)"), "{said}");
        assert!(!said.contains("Bash(rm *)"), "{said}");
    }
}
