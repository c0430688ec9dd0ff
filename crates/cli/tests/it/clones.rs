//! Control files that arrive by git: in a directory that the command creates they are created, and do
//! nothing until the user trusts the directory.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    binary::run,
    users::{self, Home, User},
};

/// A repository with control files, and a program that leaves a trace.
struct Ground {
    home: Home,
}

impl Ground {
    fn new(user: User) -> Self {
        let home = Home::new(user);
        home.write("mark", "#!/bin/sh\necho ran >> \"$HOME/ran\"\n");
        fs::set_permissions(home.path("mark"), fs::Permissions::from_mode(0o755)).unwrap();
        home.write(
            "home/.gitconfig",
            "[user]\n\tname = a\n\temail = a@b\n[init]\n\tdefaultBranch = main\n",
        );
        let mark = home.path("mark").display().to_string();
        let hooks =
            json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": mark}]}]}});
        home.write("settings", &hooks.to_string());
        home.write("bare-settings", &format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = {mark}\n"
        ));
        home.shell(
            "mkdir src && cd src && git init -q . && mkdir -p .cargo .vscode .claude/skills/s .husky docs b/objects b/refs && \
             touch .cargo/config.toml .vscode/tasks.json .husky/pre-commit b/objects/x b/refs/x && \
             cp ../../settings .claude/settings.json && echo from-the-clone > CLAUDE.md && \
             echo from-the-clone > docs/CLAUDE.md && printf -- '---\\nname: s\\ndescription: from-the-clone\\n---\\n' > .claude/skills/s/SKILL.md && \
             git add -Af . && git commit -qm plain && \
             echo 'ref: refs/heads/x' > b/HEAD && cp ../../bare-settings b/config && echo z > zz && git add -Af . && git commit -qm planted",
        );
        Self { home }
    }

    /// The results of these scripts, each run by one call.
    fn exec(&self, scripts: &[&str]) -> Vec<Value> {
        let scripts = scripts.iter().enumerate();
        let calls: String = scripts
            .map(|(number, script)| {
                let name = format!("step{number}.sh");
                self.home
                    .write(&format!("work/{name}"), &format!("{script}\n"));
                let call = json!({"name": "Bash", "input": {"command": format!("bash {name}")}});
                format!("{call}\n")
            })
            .collect();
        let mut haft = self.home.haft();
        haft.args(["--allowedTools", "Bash", "exec"]);
        let ran = run(&mut haft, calls.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let results = ran.stdout.lines();
        results
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn exists(&self, name: &str) -> bool {
        self.home
            .path(&format!("work/{name}"))
            .symlink_metadata()
            .is_ok()
    }

    fn has_run(&self) -> bool {
        self.home.path("home/ran").exists()
    }
}

fn text(result: &Value) -> &str {
    result["content"].as_str().unwrap()
}

#[test]
fn g1_a_clone_with_control_files_is_complete_and_its_files_are_named() {
    for user in users::all() {
        let ground = Ground::new(user);
        let results = ground.exec(&[
            "git -C src checkout -q main~1 && git clone -q src ui",
            "git -C ui status --porcelain",
        ]);
        assert_ne!(results[0]["is_error"], true, "{}", results[0]);
        for name in [
            ".cargo/config.toml",
            ".vscode/tasks.json",
            ".claude/settings.json",
            ".husky/pre-commit",
        ] {
            assert!(ground.exists(&format!("ui/{name}")), "{name}");
            assert!(
                text(&results[0]).contains(&format!("ui/{name}")),
                "{}",
                results[0]
            );
        }
        assert_eq!(text(&results[1]), "(no output from Bash)");
        // The record is haft's own: it survives the session, and a move by the user.
        let record =
            fs::read_to_string(ground.home.path("home/.claude/haft/untrusted.json")).unwrap();
        assert!(record.contains("work/ui\""), "{record}");
        ground.home.shell("mv ui moved");
        for folder in ["moved", "moved/docs"] {
            let mut haft = ground.home.haft();
            haft.current_dir(ground.home.path(&format!("work/{folder}")));
            haft.args(["permissions", "list", "--json"]);
            let listed = run(&mut haft, b"");
            assert!(
                !listed.stdout.contains("from-the-clone"),
                "{}",
                listed.stdout
            );
        }
        assert!(!ground.has_run());
    }
}

#[test]
fn g2_what_git_would_run_is_left_out_of_a_clone_and_the_rest_is_created() {
    for user in users::all() {
        let ground = Ground::new(user);
        ground.home.folder("work/template");
        ground.home.folder("work/template/hooks");
        ground
            .home
            .shell("cp ../mark template/hooks/post-checkout; cp ../bare-settings template/");
        let results = ground.exec(&[
            "GIT_TEMPLATE_DIR=$PWD/template git clone -q src ui",
            "git init -q p; mkdir -p p/.git/modules/s; cp template/bare-settings p/.git/modules/s/config; git -C p config core.fsmonitor ./x",
        ]);
        assert_ne!(results[0]["is_error"], true, "{}", results[0]);
        for left_out in ["ui/.git/hooks/post-checkout", "ui/b/config"] {
            assert!(!ground.exists(left_out), "{left_out}");
            assert!(text(&results[0]).contains(left_out), "{}", results[0]);
        }
        for created in [
            "ui/zz",
            "ui/b/HEAD",
            "ui/b/objects/x",
            "ui/b/refs/x",
            "ui/.vscode/tasks.json",
        ] {
            assert!(ground.exists(created), "{created}");
        }
        assert!(!ground.exists("p/.git/modules/s/config"));
        assert!(
            text(&results[1]).contains("p/.git/modules/s/config"),
            "{}",
            results[1]
        );
        ground.home.shell("cd ui/b && git status; cd .. && git status; git checkout -q -b other; cd ../p && git status");
        assert!(!ground.has_run());
        // The same without haft runs the program, otherwise nothing was attempted.
        ground
            .home
            .shell("GIT_TEMPLATE_DIR=$PWD/template git clone -q src free; cd free/b && git status");
        assert!(ground.has_run());
    }
}

/// Ways to get a control file of a new directory to a place that existed before.
const ATTEMPTS: &[&str] = &[
    // G4
    "mkdir d; mkdir d/.vscode; touch d/.vscode/t; mv d/.vscode .",
    "mkdir d; mkdir d/.vscode; touch d/.vscode/t; mv -T d/.vscode pkg/.vscode",
    "mkdir d; touch d/.envrc; ln d/.envrc old/.envrc",
    "mkdir d; touch d/.envrc; ln d/.envrc d/x; mv d/x old/.envrc",
    "mkdir d; touch d/.envrc; mv old older; mv d old",
    "mkdir d; touch d/.envrc; rm -rf old; mv d old",
    "mkdir -p t/old d; touch t/old/x; mkdir d/old; touch d/old/.envrc; rm -rf old; mv d/old .",
    "rm -rf old; mkdir old; touch old/.envrc",
    "mv old older; mkdir old; touch old/.envrc",
    "mv old older; ln -s d old; mkdir d; touch d/.envrc; rm old; mv d old",
    "mv old d; mkdir old; mv old x; mv d old; mv old y; mv x old; touch old/.envrc",
    "mkdir d; touch d/.envrc; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"d\", -100, b\"old\", 2)'",
    "mkdir d; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"d\", -100, b\"old\", 2)'; touch old/.envrc",
    "mkdir e; mv old e/; mkdir old; mv e/old older; touch old/.envrc",
    "mkdir d; mkdir d/in; touch d/in/.envrc; mv d/in e; rm -rf old; mv e old",
    "mkdir d; mkdir d/in; touch d/in/.envrc; rm -rf old; mkdir old; mv d/in/.envrc old/",
    "mkdir d; rm -rf pkg; mkdir d/pkg; mkdir d/pkg/.vscode; mv d/pkg pkg",
    "mkdir d; (while :; do mv -T old d2 2>/dev/null; mv -T d old 2>/dev/null; mv -T d2 d 2>/dev/null; mv -T old d2; mv -T d old; mv -T d2 d; done) & for i in $(seq 300); do touch d/.envrc 2>/dev/null; done; kill $!; wait",
    "mkdir d; for i in $(seq 100); do (mkdir d/x$i; touch d/x$i/.envrc) & (mv -T d/x$i old/x 2>/dev/null; rm -rf old; mv -T d/x$i old 2>/dev/null) & done; wait",
    "mkdir old/.config; touch old/.config/.envrc old/.config/lefthook.yml; mkdir old/.github; mkdir old/.github/hooks; mkdir c; touch c/lefthook.yml; mv c/lefthook.yml old/.config/; mv -T c old/.config",
    "ln -s ../old l; mkdir d; ln -s ../old d/l; touch d/l/.envrc; touch l/.envrc",
    "mkdir d; mv old d/old; touch d/old/.envrc; mv d/old old",
    "git init -q d; git -c core.worktree=../../old -C d checkout -q HEAD; touch d/.envrc; GIT_DIR=$PWD/d/.git GIT_WORK_TREE=$PWD/old git checkout-index -a",
];

#[test]
fn g4_no_control_file_gets_from_a_new_directory_to_an_older_place() {
    for user in users::all() {
        for attempt in ATTEMPTS {
            let ground = Ground::new(user);
            ground.home.shell("mkdir old pkg; touch old/x pkg/x");
            let results = ground.exec(&[attempt]);
            for name in [
                "old/.envrc",
                ".vscode",
                "pkg/.vscode",
                "old/.config/lefthook.yml",
                "old/.github/hooks",
            ] {
                assert!(!ground.exists(name), "{attempt}: {name}: {results:?}");
            }
        }
    }
}

#[test]
fn an_earlier_commands_directory_is_an_older_place() {
    let ground = Ground::new(User::Same);
    let results = ground.exec(&[
        "mkdir d && touch d/x",
        "touch d/.envrc",
        "mkdir -p n/k && touch n/k/.envrc && mv n m",
        "rm -rf build && mkdir build.new && touch build.new/config build.new/CLAUDE.md && mkdir build",
        "rmdir build && mv build.new build && git init -q tmp && mv build old-build && mv tmp build",
    ]);
    assert!(!ground.exists("d/.envrc"), "{}", results[1]);
    assert!(text(&results[1]).contains("d/.envrc"), "{}", results[1]);
    // The note has the path after the move.
    assert!(text(&results[2]).contains("m/k/.envrc"), "{}", results[2]);
    // Directories without control files replace others.
    for result in &results[3..] {
        assert_ne!(result["is_error"], true, "{result}");
    }
    assert!(ground.exists("build/.git"));
}

#[test]
fn g1_undo_removes_a_clone_with_its_control_files() {
    let ground = Ground::new(User::Same);
    ground.exec(&["git clone -q src ui"]);
    assert!(ground.exists("ui/.vscode/tasks.json"));
    let mut haft = ground.home.haft();
    let undone = run(haft.arg("undo"), b"");
    assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
    assert!(!ground.exists("ui"), "{}{}", undone.stdout, undone.stderr);
}

#[test]
fn g4_exact_rules_of_the_user_permit_a_checkout_that_changes_control_files() {
    for user in users::all() {
        let ground = Ground::new(user);
        ground.home.shell(
            "git init -q r && cd r && mkdir .vscode && echo 1 > .vscode/settings.json && git add -Af . && git commit -qm one && \
             git checkout -qb x && echo 2 > .vscode/settings.json && mkdir .cargo && echo 2 > .cargo/config.toml && \
             git add -Af . && git commit -qm two && git checkout -q main",
        );
        let state = || {
            ground
                .home
                .shell("cd r && git status --porcelain --branch && cat .vscode/settings.json")
        };
        let before = state();
        let repository = ground.home.path("work/r").display().to_string();
        let denied = ground.exec(&["git -C r checkout -q x"]);
        assert_eq!(denied[0]["is_error"], true, "{}", denied[0]);
        assert_eq!(state(), before, "{}", denied[0]);
        let rule = format!("Edit(/{repository}/.cargo)");
        assert!(text(&denied[0]).contains(&rule), "{}", denied[0]);
        let rules = json!({"permissions": {"allow": [
            format!("Edit(/{repository}/.vscode/settings.json)"),
            format!("Edit(/{repository}/.cargo/config.toml)"),
        ]}});
        ground
            .home
            .write("home/.claude/settings.json", &rules.to_string());
        let allowed = ground.exec(&[
            "git -C r checkout -q x",
            "touch r/.envrc; touch r/.vscode/other.json; mkdir e; touch e/t; mv -T r/.cargo gone; mv e r/.cargo; mv -T e r/.idea",
        ]);
        assert_ne!(allowed[0]["is_error"], true, "{}", allowed[0]);
        assert_eq!(
            ground
                .home
                .shell("cat r/.vscode/settings.json r/.cargo/config.toml"),
            "2\n2\n"
        );
        for name in [
            "r/.envrc",
            "r/.vscode/other.json",
            "r/.cargo/t",
            "r/.cargo/e/t",
            "r/.idea",
        ] {
            assert!(!ground.exists(name), "{name}: {}", allowed[1]);
        }
        let undone = run(ground.home.haft().args(["undo", "2"]), b"");
        assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
        assert_eq!(ground.home.shell("cat r/.vscode/settings.json"), "1\n");
        assert!(!ground.exists("r/.cargo/config.toml"));
    }
}
