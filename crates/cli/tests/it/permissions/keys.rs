//! Keys and the rest of a home stay unread by lines that seem harmless: every way to get at them that
//! we know of, for real, as root and as an ordinary user, in `readonly` and in `workspace`.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, lchown, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{haft, run};

/// What no answer may hold.
const KEY: &str = "PRIVATE-KEY";
/// What is in the home, and is no key.
const NOTE: &str = "PRIVATE-NOTE";

/// A user without rights.
const ORDINARY: u32 = 65_534;

/// A home with keys, notes and tools, and a project in it with links to them.
pub(super) struct Home {
    pub(super) dir: TempDir,
    user: Option<u32>,
}

const STORES: &[&str] = &[
    ".ssh/id_rsa",
    ".aws/credentials",
    ".netrc",
    ".npmrc",
    ".git-credentials",
    ".claude/.credentials.json",
    ".config/gh/hosts.yml",
    ".config/gcloud/credentials.db",
    ".docker/config.json",
    ".cargo/credentials.toml",
    ".gnupg/private-keys-v1.d/x.key",
    ".kube/config",
    ".mozilla/firefox/p/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".codex/auth.json",
    ".bash_history",
    ".pgpass",
];

impl Home {
    pub(super) fn new(user: Option<u32>, settings: &str) -> Self {
        let home = Self {
            dir: tempfile::tempdir().unwrap(),
            user,
        };
        for store in STORES {
            home.write(store, &format!("{KEY} {store}\n"));
        }
        home.write("notes.txt", &format!("{NOTE}\n"));
        home.write("papers/plan.txt", &format!("{NOTE}\n"));
        home.write(".claude/settings.json", settings);
        home.write(
            ".gitconfig",
            "[user]\n\tname = Ada\n\temail = ada@example.org\n",
        );
        home.write(
            ".cargo/bin/cargo",
            "#!/bin/sh\ncat \"$HOME/.rustup/version\"\n",
        );
        home.write(".rustup/version", "cargo 9.9.9 (of the home)\n");
        let tool = home.path(".cargo/bin/cargo");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
        home.write("ws/a.md", "first\n");
        home.write("ws/b.md", "second\n");
        home.write("ws/src/main.rs", "fn foo() {}\n");
        home.write("ws/d2/x/id_rsa", "other\n");
        let key = home.path(".ssh/id_rsa").display().to_string();
        home.write("ws/list", &format!("{key}\n"));
        home.write("ws/list0", &format!("{key}\0"));
        home.write(
            "ws/notes.list",
            &format!("{}\n", home.path("notes.txt").display()),
        );
        for (to, link) in [
            (".ssh", "ws/l"),
            (".aws", "ws/m"),
            (".ssh/id_rsa", "ws/k.txt"),
            ("notes.txt", "ws/n.txt"),
            (".ssh", "ws/d1/x"),
            ("", "ws/deep/home"),
        ] {
            let link = home.path(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(home.path(to), link).unwrap();
        }
        if let Some(user) = user {
            own(home.dir.path(), user);
        }
        home
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        let base = fs::canonicalize(self.dir.path()).unwrap().join("home");
        if name.is_empty() {
            base
        } else {
            base.join(name)
        }
    }

    fn write(&self, name: &str, text: &str) {
        let base = self.dir.path().join("home");
        let path = base.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn haft(&self) -> Command {
        let mut command = haft(&self.path("ws"));
        let path = format!("{}:/usr/bin:/bin", self.path(".cargo/bin").display());
        command.env("HOME", self.path("")).env("PATH", path);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// What is answered to each line, in one session.
    pub(super) fn answers(&self, lines: &[String]) -> Vec<String> {
        let calls = lines.iter().map(|line| {
            let input = json!({ "command": line, "timeout": 20_000 });
            format!("{}\n", json!({ "name": "Bash", "input": input }))
        });
        let calls: String = calls.collect();
        let ran = run(self.haft().arg("exec"), calls.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let answers: Vec<String> = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|answer| super::content(&answer).to_owned())
            .collect();
        assert_eq!(answers.len(), lines.len());
        answers
    }
}

/// Gives a user everything below a directory.
pub(super) fn own(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path(), user);
        }
    }
}

/// The one who runs the tests, and an ordinary user where those are run by root.
pub(super) fn users() -> Vec<Option<u32>> {
    let mut users = vec![None];
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let mut version = haft_testkit::command(env!("CARGO_BIN_EXE_haft"));
    version.arg("--version").uid(ORDINARY).gid(ORDINARY);
    if !is_root {
        return users;
    }
    if version.output().is_ok_and(|ran| ran.status.success()) {
        users.push(Some(ORDINARY));
    } else {
        haft_testkit::skip(
            "keys, as an ordinary user: that user cannot reach the programs built here",
        );
    }
    users
}

/// Lines that get at a key, each in its own way. `@` is the home, written out.
const KEYS: &[&str] = &[
    "cat ${HOME%x}/.ssh/id_rsa",
    "cat ${HOME#x}/.ssh/id_rsa",
    "cat ${HOME/x/x}/.ssh/id_rsa",
    "cat \"${HOME:0}\"/.ssh/id_rsa",
    "cat ${HOME:-x}/.ssh/id_rsa",
    "cat ~/.ss?/id_rsa",
    "cat ~/.s*/id_*",
    "cat ~/.[s]sh/id_rsa",
    "cat ~/.{ssh,aws}/*",
    "cat ~/{.ssh/id_rsa,.netrc}",
    "cat $(echo ~/.ssh/id_rsa)",
    "cat `echo ~/.ssh/id_rsa`",
    "cat \"$(printf '%s/.ssh/id_rsa' ~)\"",
    "cat $(<list)",
    "cat $(cat list)",
    "cat \"$(head -1 list)\"",
    "echo ~/.ssh/id_rsa | xargs cat",
    "cat list | xargs cat",
    "xargs cat < list",
    "xargs -a list cat",
    "xargs -I{} cat {} < list",
    "xargs -0 cat < list0",
    "xargs head -n 3 < list",
    "read p < list; cat \"$p\"",
    "read -r p < list && cat $p",
    "while read p; do cat \"$p\"; done < list",
    "cat list | while read -r p; do head \"$p\"; done",
    "for p in $(cat list); do cat \"$p\"; done",
    "for p in ~/.ssh/*; do cat \"$p\"; done",
    "for d in l m; do cat $d/*; done",
    "mapfile -t a < list; cat \"${a[@]}\"",
    "mapfile -t a < list; cat \"${a[0]}\"",
    "p=$(cat list); cat \"$p\"",
    "p=~/.ssh/id_rsa; cat $p",
    "cat < $(cat list)",
    "p=$(cat list); cat < \"$p\"",
    "p=$(cat list); cat <<< \"$(cat \"$p\")\"",
    "cat <<< \"$(<~/.ssh/id_rsa)\"",
    "echo \"$(<@/.ssh/id_rsa)\"",
    "cat <(cat $(cat list))",
    "cd ~; cat .ssh/id_rsa",
    "cd ~/.ssh && cat id_rsa",
    "cd ${HOME%x}/.ssh && cat id_rsa",
    "cd l && cat id_rsa",
    "cd deep/home/.ssh; cat *",
    "pushd ~/.ssh; cat id_rsa",
    "cat @/.ssh/id_rsa",
    "cat ../.ssh/id_rsa",
    "cat ../.ss*/id_rsa",
    "cat src/../../.ssh/id_rsa",
    "cat /proc/self/root@/.ssh/id_rsa",
    "cat /proc/self/cwd/../.ssh/id_rsa",
    "cat /proc/$$/root@/.ssh/id_rsa",
    "cat /proc/self/cwd/l/id_rsa",
    "cat /dev/fd/../cwd/../.ssh/id_rsa",
    "cat l/id_rsa",
    "cat l/*",
    "cat l/id*",
    "cat l*/id_rsa",
    "cat */id_rsa",
    "cat {l,m}/id_rsa",
    "cat {l,m}/*",
    "cat ?/id_rsa",
    "cat [l]/id_rsa",
    "cat k.txt",
    "cat *.txt",
    "cat k.*",
    "head -c 100 k*",
    "tail -n 5 *.txt",
    "tail -f $(cat list)",
    "wc *.txt; cat deep/*/.ssh/id_rsa",
    "cat deep/home/.ssh/*",
    "cat deep/*/.n*",
    "grep -R . .",
    "grep -Rh . l",
    "grep -rh . l/",
    "grep -rh . */",
    "grep --dereference-recursive -h . .",
    "grep '' *.txt",
    "grep -h . $(cat list)",
    "grep -f /dev/null -v -R .",
    "find -L . -name id_rsa -exec cat {} +",
    "find -L . -name id_rsa -exec cat {} \\;",
    "find . -name '*.txt' -exec cat {} +",
    "find . -type l -exec head {} \\;",
    "find -L . -name id_rsa | xargs cat",
    "find -L . -name id_rsa -print0 | xargs -0 cat",
    "find l/ -type f -exec cat {} +",
    "find ~/.ssh -type f -exec cat {} +",
    "find $(dirname $(cat list)) -type f -exec cat {} +",
    "tar cf - -h l d1",
    "tar chf - d1 | cat",
    "tar -c --dereference -f - l",
    "tar cf - -h l | tar xOf -",
    "tar cf - -T list | tar xOf -",
    "tar cf - $(cat list) | tar xOf -",
    "diff -r d1 d2",
    "diff -r l d2/x",
    "diff $(cat list) a.md",
    "diff a.md k.txt",
    "cmp -l a.md $(cat list)",
    "comm a.md k.txt",
    "paste a.md *.txt",
    "git diff --no-index d1 d2",
    "git diff --no-index a.md $(cat list)",
    "git diff --no-index /dev/null k.txt",
    "git grep --no-index . -- l",
    "git grep --no-index -h . l/id_rsa",
    "git hash-object $(cat list)",
    "git config -f $(cat list) -l",
    "git config --file k.txt -l",
    "awk 1 $(cat list)",
    "awk '{print}' *.txt",
    "awk 'BEGIN { f = ENVIRON[\"HOME\"] \"/.ssh/id_rsa\"; while ((getline l < f) > 0) print l }'",
    "awk 'BEGIN { while ((getline l < \"@/.ssh/id_rsa\") > 0) print l }'",
    "awk '{ while ((getline l < $0) > 0) print l }' list",
    "awk 'BEGIN { ARGV[1] = ENVIRON[\"HOME\"] \"/.ssh/id_rsa\"; ARGC = 2 } { print }'",
    "sed -n 'r @/.ssh/id_rsa' a.md",
    "sed 'r k.txt' a.md",
    "sed p $(cat list)",
    "sort --files0-from=list0",
    "sort $(cat list)",
    "wc -c --files0-from=list0; sort -m --files0-from list0",
    "du --files0-from=list0; cat $(tr '\\0' ' ' < list0)",
    "od -c $(cat list)",
    "xxd $(cat list)",
    "base64 $(cat list)",
    "base64 k.txt",
    "strings $(cat list)",
    "nl *.txt",
    "tac l/*",
    "rev $(cat list)",
    "cut -c1-80 $(cat list)",
    "jq -R . $(cat list)",
    "jq -nR --rawfile k k.txt '$k'",
    "source $(cat list)",
    ". ~/.ssh/id_rsa",
    "eval cat ~/.ssh/id_rsa",
    "eval \"cat $(cat list)\"",
    "bash -c 'cat ~/.ssh/id_rsa'",
    "sh -c 'cat $0' $(cat list)",
    "env HOME=@ sh -c 'cat ~/.ssh/id_rsa'",
    "x=.ssh; cat ~/$x/id_rsa",
    "cat ~/.ssh/$(ls ~/.ssh)",
    "ls l | while read f; do cat l/$f; done",
    "cat \"$OLDPWD\"/.ssh/id_rsa ~+/../.ssh/id_rsa",
    "cat ~+/l/id_rsa",
    "exec 3< $(cat list); cat <&3",
    "exec 3< l/id_rsa; cat /dev/fd/3",
    "cat 0< k.txt",
    "coproc cat $(cat list); cat <&${COPROC[0]}",
    "cp -L k.txt copy; cat copy",
    "cp -rL l copies; cat copies/*",
    "cp $(cat list) copy2; cat copy2",
    "cp *.txt d2/; cat d2/k.txt",
    "rsync -rL l/ copies2/; cat copies2/*",
    "ln -s ~/.ssh fresh; cat fresh/id_rsa",
    "ln $(cat list) hard; cat hard",
    "install -m 644 $(cat list) copy3; cat copy3",
    "dd if=$(cat list) status=none",
    "mv $(cat list) moved; cat moved",
    "cat ~/.[a-z]*",
    "cat ~/.netrc ~/.npmrc",
    "cat $(echo ~)/.git-credentials",
    "cat $(echo ~)/.claude/.credentials.json",
    "cat $(echo ~)/.config/gh/hosts.yml $(echo ~)/.config/gcloud/*",
    "cat $(echo ~)/.docker/config.json",
    "cat $(echo ~)/.cargo/credentials.toml",
    "cat $(echo ~/.cargo)/*",
    "grep -rh . $(echo ~/.cargo)",
    "grep -rh . $(echo ~)",
    "cat $(echo ~)/.gnupg/*/* $(echo ~)/.kube/config",
    "grep -rh . $(echo ~/.mozilla) $(echo ~/.config)",
    "cat $(echo ~)/.codex/auth.json $(echo ~)/.pgpass $(echo ~)/.bash_history",
];

/// Lines that get at something else in the home without naming it.
const NOTES: &[&str] = &[
    "cat ${HOME%x}/notes.txt",
    "cat $(cat notes.list)",
    "xargs cat < notes.list",
    "while read p; do cat $p; done < notes.list",
    "cat n.txt",
    "cat n*",
    "cat *.txt",
    "cat deep/*/notes.txt",
    "grep -Rh NOTE .",
    "grep -rh NOTE ${HOME%x}",
    "find -L . -name '*.txt' -exec cat {} +",
    "find -L . -name plan.txt -exec cat {} +",
    "tar cf - -h n.txt d1 | tar xOf -",
    "diff -r deep ${HOME%x}/papers",
    "cat deep/home/papers/*",
    "cat ../notes.txt",
    "cat ../*.txt",
    "cat $(echo ../notes.txt)",
    "p=notes.txt; cat ../$p",
    "awk 1 $(cat notes.list)",
    "sort --files0-from=<(tr '\\n' '\\0' < notes.list)",
    "cat ~root/../..$(cat notes.list)",
];

fn lines(of: &[&str], home: &Home, more: &str) -> Vec<String> {
    let written = home.path("").display().to_string();
    let lines = of.iter().map(|line| line.replace('@', &written));
    lines.map(|line| format!("{line}{more}")).collect()
}

fn hold(settings: &str, more: &str) {
    for user in users() {
        for (attempts, secrets) in [(KEYS, &[KEY][..]), (NOTES, &[KEY, NOTE][..])] {
            let home = Home::new(user, settings);
            let lines = lines(attempts, &home, more);
            let answers = home.answers(&lines);
            let leaked: Vec<_> = lines
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| secrets.iter().any(|secret| answer.contains(secret)))
                .collect();
            assert!(leaked.is_empty(), "as {user:?}: {leaked:#?}");
            // It would be easy to hold if nothing ran.
            let ran = answers
                .iter()
                .filter(|answer| !answer.starts_with("Permission to use"));
            assert!(ran.count() > lines.len() / 4, "as {user:?}: {answers:#?}");
        }
    }
}

#[test]
fn no_line_that_only_reads_gets_at_a_key_or_a_note_unasked() {
    hold("{}", "");
}

#[test]
fn no_command_that_is_allowed_by_its_name_gets_at_a_key_or_a_note_unasked() {
    let settings = r#"{"permissions": {"allow": ["Bash"]}}"#;
    hold(settings, "; touch made");
}

#[test]
fn a_program_that_is_allowed_finds_no_key_whatever_it_does() {
    if !Path::new("/usr/bin/python3").exists() {
        haft_testkit::skip("keys and a program that is allowed: no /usr/bin/python3");
        return;
    }
    let settings = r#"{"permissions": {"allow": ["Bash"]}}"#;
    for user in users() {
        let home = Home::new(user, settings);
        let program = "import os\nfor base, _, names in os.walk(os.environ['HOME'], followlinks=False):\n    \
                       for name in names:\n        try: print(open(os.path.join(base, name)).read())\n        \
                       except OSError: pass\n";
        home.write("ws/walk.py", program);
        let answers = home.answers(&["python3 walk.py".to_owned()]);
        // What an allowed program does with the rest is not ours to say.
        assert!(answers[0].contains(NOTE), "as {user:?}: {answers:?}");
        assert!(!answers[0].contains(KEY), "as {user:?}: {answers:?}");
    }
}

/// Everyday lines and what their answer holds.
const EVERYDAY: &[(&str, &str)] = &[
    ("cat *.md", "first\nsecond"),
    ("cat {a,b}.md", "first\nsecond"),
    ("grep -rn foo src", "src/main.rs:1:fn foo() {}"),
    ("grep -Rn foo src", "src/main.rs:1:fn foo() {}"),
    ("wc -l src/*.rs", "1 src/main.rs"),
    ("for f in *.md; do wc -l \"$f\"; done", "1 a.md\n1 b.md"),
    ("find . -name '*.rs' -exec cat {} +", "fn foo() {}"),
    ("find . -name '*.rs' | xargs wc -l", "1 ./src/main.rs"),
    ("cat $(ls *.md)", "first\nsecond"),
    ("ls $(git ls-files)", "a.md"),
    ("head -1 \"$PWD/a.md\"", "first"),
    ("ls ${PWD%x}", "a.md"),
    (
        "while read -r line; do echo \"> $line\"; done < a.md",
        "> first",
    ),
    ("git log --oneline", "the start"),
    ("git log -1 --format=%an", "Ada"),
    ("git status --short", ""),
    ("git config user.name", "Ada"),
    ("cargo --version", "cargo 9.9.9 (of the home)"),
    ("which cargo", ".cargo/bin/cargo"),
    ("ls $(echo /usr/bin/env)", "/usr/bin/env"),
    (
        "cat $(echo /etc/hostname /etc/passwd | cut -d' ' -f2) | head -1",
        "root",
    ),
    ("echo $HOME", "home"),
];

#[test]
fn everyday_lines_run_unasked() {
    for user in users() {
        let home = Home::new(user, "{}");
        for git in [
            &["init", "-q"][..],
            &["add", "a.md", "src"],
            &["commit", "-q", "-m", "the start"],
        ] {
            let mut command = haft_testkit::command("git");
            command.args(git).current_dir(home.path("ws"));
            command
                .env_clear()
                .env("HOME", home.path(""))
                .env("PATH", "/usr/bin:/bin");
            if let Some(user) = user {
                command.uid(user).gid(user);
            }
            assert!(command.status().unwrap().success());
        }
        let lines: Vec<String> = EVERYDAY
            .iter()
            .map(|(line, _)| (*line).to_owned())
            .collect();
        for ((line, expected), answer) in EVERYDAY.iter().zip(home.answers(&lines)) {
            let said = answer.contains("Permission to use")
                || answer.contains("The sandbox refused: ")
                || answer.contains("The sandbox refused changes");
            assert!(
                !said && answer.contains(expected),
                "as {user:?}: {line}: {answer}"
            );
        }
    }
}

#[test]
fn the_keys_of_the_machine_are_hidden_even_from_root() {
    let home = Home::new(None, r#"{"permissions": {"allow": ["Bash"]}}"#);
    let lines = [
        "cat $(echo /etc/shadow)",
        "cat $(echo /etc/shadow); touch made",
        "echo /etc/gshadow | xargs cat",
        "cat /et?/shadow",
    ];
    for answer in home.answers(&lines.map(str::to_owned)) {
        assert!(!answer.contains("root:"), "{answer}");
    }
}

#[test]
fn what_was_kept_from_a_line_is_named_with_what_would_allow_it() {
    let home = Home::new(None, "{}");
    let asked = ["cat $(cat notes.list)", "cat $(cat list)", "cat l/*"].map(str::to_owned);
    let answers = home.answers(&asked);
    let plain = |text: &str| text.replace(&home.path("").display().to_string(), "~");
    assert_eq!(
        plain(&answers[0]),
        "Exit code 1\ncat: ~/notes.txt: No such file or directory\nThe sandbox refused: reading \
         ~/notes.txt. No user can be asked. What would allow it: the rule `Read(/~/notes.txt)` in \
         `permissions.allow` of the user's own settings, or a user who can be asked. Directories \
         outside the working directories are closed to this line, because `$(cat notes.list)` does not show \
         which files it reads. Name each file without expansions and without links: haft can then \
         check its path."
    );
    assert!(
        plain(&answers[1]).contains("reading ~/.ssh/id_rsa"),
        "{}",
        answers[1]
    );
    assert!(
        plain(&answers[2]).contains("~/.ssh stores keys"),
        "{}",
        answers[2]
    );
}

#[test]
fn a_rule_of_the_users_own_that_names_a_file_opens_it_and_nothing_beside_it() {
    let settings = r#"{"permissions": {"allow": ["Read(~/.ssh/id_rsa)", "Read(~/papers/**)"]}}"#;
    for user in users() {
        let home = Home::new(user, settings);
        home.write(".ssh/other", &format!("{KEY} other\n"));
        if let Some(user) = user {
            own(home.dir.path(), user);
        }
        let lines = [
            "cat ~/.ssh/id_rsa",
            "cat $(cat list)",
            "cat ~/papers/plan.txt",
            "cat $(echo ~/papers)/plan.txt",
            "cat $(echo ~/.ssh)/*",
            "cat $(echo ~/notes.txt)",
            "cat $(echo ~/.aws/credentials)",
        ];
        let answers = home.answers(&lines.map(str::to_owned));
        let at = |index: usize| answers[index].as_str();
        assert!(at(0).contains("PRIVATE-KEY .ssh/id_rsa"), "{answers:#?}");
        assert!(at(1).contains("PRIVATE-KEY .ssh/id_rsa"), "{answers:#?}");
        assert!(at(2).contains(NOTE) && at(3).contains(NOTE), "{answers:#?}");
        assert!(!at(4).contains("other"), "{answers:#?}");
        assert!(
            !at(5).contains(NOTE) && !at(6).contains(KEY),
            "{answers:#?}"
        );
    }
}

#[test]
fn without_a_rule_of_the_users_own_the_project_opens_nothing() {
    let home = Home::new(None, "{}");
    let rules = r#"{"permissions": {"allow": ["Read(~/.ssh/id_rsa)", "Read(~/**)"]},
                    "sandbox": {"filesystem": {"allowRead": ["~/.ssh"]}}}"#;
    home.write("ws/.claude/settings.json", rules);
    home.write("ws/.claude/settings.local.json", rules);
    let lines = ["cat ~/.ssh/id_rsa", "cat $(cat list)", "cat l/*"].map(str::to_owned);
    for answer in home.answers(&lines) {
        assert!(!answer.contains(KEY), "{answer}");
    }
}
