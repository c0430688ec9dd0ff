//! Worktrees, with the whole binary and a real git around them.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{Talk, answer, call, lines, text};
use crate::binary::{Ran, haft};

/// A repository, and a home beside it.
pub(super) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let scene = Self::empty();
        scene.write("p/a.txt", "one\n");
        scene.write("p/.env", "KEY=secret\n");
        scene.write("p/sub/b.txt", "two\n");
        scene.git(&["init", "-q", "-b", "main"]);
        scene.git(&["add", "."]);
        scene.git(&["commit", "-qm", "first"]);
        scene
    }

    fn empty() -> Self {
        let folder = tempdir().unwrap();
        for name in ["p", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let scene = Self { folder };
        scene.write(
            "home/.gitconfig",
            "[user]\n\tname = Ann\n\temail = ann@example.org\n",
        );
        scene
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.git_in("p", arguments)
    }

    pub(super) fn git_in(&self, directory: &str, arguments: &[&str]) -> String {
        let output = haft_testkit::command("git")
            .args(arguments)
            .current_dir(self.path(directory))
            .env("HOME", self.path("home"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn haft(&self, cwd: &str, script: &Value) -> Command {
        let file = self.path("script.json");
        fs::write(&file, script.to_string()).unwrap();
        let mut command = haft(&self.path(cwd));
        command.env("HOME", self.path("home"));
        // For the one test that goes around the sandbox, where tests run as root.
        command.env("IS_SANDBOX", "1");
        command.arg("--script").arg(file);
        command.args(["--allowedTools", "EnterWorktree,ExitWorktree,Bash,Write"]);
        command
    }

    /// Runs these turns; the results of the calls in their order, and all of it.
    pub(super) fn run(&self, turns: &[Value], flags: &[&str]) -> (Vec<Value>, Ran) {
        self.run_in("p", turns, flags)
    }

    pub(super) fn run_in(&self, cwd: &str, turns: &[Value], flags: &[&str]) -> (Vec<Value>, Ran) {
        let mut command = self.haft(cwd, &json!({"turns": script(turns)}));
        let ran = answer(
            command
                .args(flags)
                .args(["-p", "go", "--output-format", "stream-json"]),
        );
        let results = results(&lines(&ran));
        (results, ran)
    }

    /// Nothing is left of any worktree.
    pub(super) fn assert_clean(&self) {
        let listed = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(listed.matches("worktree ").count(), 1, "{listed}");
        assert_eq!(self.git(&["branch", "--list", "worktree-*"]), "");
        assert!(!self.path("p/.claude").exists());
        assert!(!self.path("p/.git/worktrees").exists());
        assert_eq!(self.git(&["status", "--porcelain"]), "");
    }
}

pub(super) fn script(turns: &[Value]) -> Vec<Value> {
    let turn = |content: &Value| json!({"content": content, "usage": {"input": 10, "output": 5}});
    turns.iter().map(turn).collect()
}

pub(super) fn results(messages: &[Value]) -> Vec<Value> {
    let users = messages.iter().filter(|one| one["type"] == "user");
    let blocks = users.filter_map(|one| one["message"]["content"].as_array());
    let blocks = blocks
        .flatten()
        .filter(|block| block["type"] == "tool_result");
    blocks.cloned().collect()
}

pub(super) fn said(result: &Value) -> String {
    match &result["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn enter(name: &str) -> Value {
    json!([call("EnterWorktree", json!({"name": name}))])
}

pub(super) fn exit(action: &str, discard: bool) -> Value {
    let mut input = json!({"action": action});
    if discard {
        input["discard_changes"] = json!(true);
    }
    json!([call("ExitWorktree", input)])
}

pub(super) fn bash(command: &str) -> Value {
    json!([call("Bash", json!({"command": command}))])
}

pub(super) fn done() -> Value {
    json!([text("Done.")])
}

#[test]
fn a_session_goes_on_in_a_worktree_commits_there_and_comes_back() {
    let scene = Scene::new();
    let path = scene.path("p/.claude/worktrees/fix+a");
    let turns = [
        enter("fix/a"),
        bash("pwd && git branch --show-current"),
        bash("echo more >> a.txt && git commit -qam second && git log --oneline | wc -l"),
        exit("remove", false),
        exit("keep", false),
        bash("pwd && cat a.txt"),
        done(),
    ];
    let (results, ran) = scene.run(&turns, &[]);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    let texts: Vec<String> = results.iter().map(said).collect();
    let entered = format!(
        "The session is now in the worktree {}, on the branch worktree-fix+a. Work there; ExitWorktree ends it.",
        path.display()
    );
    assert_eq!(texts[0], entered);
    assert_eq!(texts[1], format!("{}\nworktree-fix+a", path.display()));
    assert_eq!(texts[2], "2", "{texts:?}");
    assert!(
        texts[3].contains("1 commit on no other branch would be lost"),
        "{}",
        texts[3]
    );
    assert!(
        texts[4].contains("is kept. The session is in"),
        "{}",
        texts[4]
    );
    assert_eq!(texts[5], format!("{}\none", scene.path("p").display()));
    // It is as a person would have it: known to git, unlocked, unmarked, and not in the way of the checkout.
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    assert_eq!(
        scene.git(&["log", "-1", "--format=%s %an", "worktree-fix+a"]),
        "second Ann\n"
    );
    assert!(!scene.path("p/.git/worktrees/fix+a/haft.json").exists());

    // It can be entered again, and is not removed then: it was there before.
    let again = json!([call("EnterWorktree", json!({"path": path}))]);
    let turns = [
        again,
        bash("git branch --show-current"),
        exit("remove", true),
        exit("keep", false),
        done(),
    ];
    let (results, _) = scene.run(&turns, &[]);
    let texts: Vec<String> = results.iter().map(said).collect();
    assert_eq!(texts[1], "worktree-fix+a");
    assert!(
        texts[2].contains("existed before this session and is not removed"),
        "{}",
        texts[2]
    );
    assert!(path.join("a.txt").exists());
}

#[test]
fn what_is_not_needed_is_removed_and_discarding_is_said() {
    let scene = Scene::new();
    let turns = [enter("x"), exit("remove", false), done()];
    let (results, ran) = scene.run(&turns, &[]);
    assert!(
        said(&results[1]).contains("is removed"),
        "{}",
        said(&results[1])
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    scene.assert_clean();

    let turns = [
        enter("x"),
        bash("echo 1 > new && echo 2 >> a.txt"),
        exit("remove", false),
        exit("remove", true),
        done(),
    ];
    let (results, _) = scene.run(&turns, &[]);
    assert!(
        said(&results[2]).contains("2 files not committed"),
        "{}",
        said(&results[2])
    );
    assert!(
        said(&results[3]).contains("is removed"),
        "{}",
        said(&results[3])
    );
    scene.assert_clean();

    // Where no rule allows it, discarding is asked about, and here no one can be asked.
    let mut command = scene.haft("p", &json!({"turns": script(&turns)}));
    let ran = answer(
        command
            .args(["--disallowedTools", "ExitWorktree(discard_changes:true)"])
            .args(["-p", "go", "--output-format", "stream-json"]),
    );
    let results = results_of(&ran);
    assert_eq!(results[3]["is_error"], true, "{results:?}");
    assert!(scene.path("p/.claude/worktrees/x/new").exists());
}

pub(super) fn results_of(ran: &Ran) -> Vec<Value> {
    results(&lines(ran))
}

#[test]
fn nothing_can_be_planted_from_inside() {
    let scene = Scene::new();
    let plant = |file: &str| {
        bash(&format!(
            "printf '#!/bin/sh\\ntouch /tmp/planted\\n' > \"$(git rev-parse --git-common-dir)/{file}\" && echo planted"
        ))
    };
    let turns = [
        enter("x"),
        plant("hooks/post-commit"),
        plant("config"),
        bash("mkdir -p .claude && echo '{\"hooks\":{}}' > .claude/settings.json && echo planted"),
        bash("git config core.fsmonitor /tmp/evil && echo planted"),
        done(),
    ];
    let before = fs::read_to_string(scene.path("p/.git/config")).unwrap();
    let (results, ran) = scene.run(&turns, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for result in &results[1..] {
        assert_eq!(result["is_error"], true, "{result}");
        assert_ne!(said(result), "planted");
    }
    assert!(!scene.path("p/.git/hooks/post-commit").exists());
    assert_eq!(
        fs::read_to_string(scene.path("p/.git/config")).unwrap(),
        before
    );
}

#[test]
fn rules_follow_into_the_worktree() {
    let scene = Scene::new();
    let settings = json!({"permissions": {"deny": ["Read(./.env)", "Edit(./sub/**)"]}}).to_string();
    let path = scene.path("p/.claude/worktrees/x");
    let turns = [
        enter("x"),
        json!([call("Read", json!({"file_path": path.join(".env")}))]),
        bash("cat .env"),
        json!([call(
            "Write",
            json!({"file_path": path.join("sub/new"), "content": "x"})
        )]),
        json!([call(
            "Write",
            json!({"file_path": path.join("new"), "content": "x"})
        )]),
        exit("remove", true),
        done(),
    ];
    let (results, ran) = scene.run(&turns, &["--settings", &settings]);
    for (at, is_error) in [(1, true), (2, true), (3, true), (4, false)] {
        let is = results[at]["is_error"] == true;
        assert_eq!(is, is_error, "{at}: {}", results[at]);
    }
    assert!(!ran.stdout.contains("secret"), "{}", ran.stdout);
    scene.assert_clean();
}

#[test]
fn a_session_in_a_part_of_the_repository_works_in_the_whole_copy() {
    let scene = Scene::new();
    let path = scene.path("p/.claude/worktrees/x");
    let write = call(
        "Write",
        json!({"file_path": path.join("new.txt"), "content": "x\n"}),
    );
    let turns = [
        enter("x"),
        json!([write]),
        bash("git add -A && git commit -qm n && git status --porcelain && echo clean"),
        exit("keep", false),
        json!([call(
            "Write",
            json!({"file_path": path.join("later.txt"), "content": "x\n"})
        )]),
        done(),
    ];
    let (results, ran) = scene.run_in("p/sub", &turns, &["--disallowedTools", "Glob"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_ne!(results[1]["is_error"], true, "{}", results[1]);
    assert_eq!(said(&results[2]), "clean");
    // What was left is no working directory any more: an allow rule for the tool still lets it through, but
    // the copy is outside.
    assert!(path.join("new.txt").exists());
}

#[test]
fn how_a_session_ends_decides_what_stays() {
    let scene = Scene::new();
    // The end of input, nothing done: nothing stays.
    let (_, ran) = scene.run(&[enter("x"), done()], &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    scene.assert_clean();
    // Work was done: it is kept, and said.
    let (_, ran) = scene.run(&[enter("x"), bash("echo 1 > new"), done()], &[]);
    let kept = format!(
        "the worktree {} was not removed, because it has work",
        scene.path("p/.claude/worktrees/x").display()
    );
    assert!(ran.stderr.contains(&kept), "{}", ran.stderr);
    assert!(scene.path("p/.claude/worktrees/x/new").exists());
    // It is no longer anyone's: the next start says nothing.
    let (_, ran) = scene.run(&[done()], &[]);
    assert!(!ran.stderr.contains("worktree"), "{}", ran.stderr);
    scene.git(&["worktree", "remove", "--force", ".claude/worktrees/x"]);
    scene.git(&["branch", "-qD", "worktree-x"]);
    fs::remove_dir_all(scene.path("p/.claude")).unwrap();

    for (signal, stays) in [("TERM", false), ("KILL", true)] {
        let turns = script(&[enter("x"), bash("echo begun; sleep 600"), done()]);
        let mut command = scene.haft("p", &json!({"turns": turns}));
        let mut talk = Talk::new(command.arg("-p"));
        talk.user("go");
        talk.hear_until("user");
        assert!(scene.path("p/.claude/worktrees/x/a.txt").exists());
        talk.signal(signal);
        let _ = talk.child.wait();
        match stays {
            false => scene.assert_clean(),
            true => {
                let (_, ran) = scene.run(&[done()], &[]);
                assert!(ran.stderr.contains("was left by session"), "{}", ran.stderr);
                // The message says how to get rid of it, and that works.
                let remove = ran.stderr.split("all its files: ").nth(1).unwrap();
                let remove = remove.lines().next().unwrap();
                let mut shell = haft_testkit::command("bash");
                let shell = shell.args(["-c", remove]).env("HOME", scene.path("home"));
                assert!(shell.status().unwrap().success(), "{remove}");
                let (_, ran) = scene.run(&[done()], &[]);
                assert!(!ran.stderr.contains("worktree"), "{}", ran.stderr);
                assert_eq!(scene.git(&["branch", "--list", "worktree-*"]), "");
            }
        }
    }
}

#[test]
fn what_cannot_be_made_is_an_error_that_says_why_and_leaves_nothing() {
    let scene = Scene::empty();
    let failed = |scene: &Scene, cwd: &str, input: Value| {
        let turns = [json!([call("EnterWorktree", input)]), done()];
        let (results, ran) = scene.run_in(cwd, &turns, &[]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(results[0]["is_error"], true, "{}", results[0]);
        said(&results[0])
    };
    let none = failed(&scene, "p", json!({"name": "x"}));
    assert!(none.contains("is in no git repository"), "{none}");
    scene.git(&["init", "-q", "-b", "main"]);
    let unborn = failed(&scene, "p", json!({"name": "x"}));
    assert!(unborn.contains("no commit yet"), "{unborn}");
    assert!(!scene.path("p/.claude").exists());
    scene.git_in("home", &["init", "-q", "--bare", "bare.git"]);
    let bare = failed(&scene, "home/bare.git", json!({"name": "x"}));
    assert!(bare.contains("bare repository"), "{bare}");

    let scene = Scene::new();
    for name in ["../x", ".git", "a b", "-x", "a/../b", "x.lock"] {
        let bad = failed(&scene, "p", json!({"name": name}));
        assert!(bad.contains("is not a valid name for a worktree"), "{bad}");
    }
    let both = failed(&scene, "p", json!({"name": "x", "path": scene.path("p")}));
    assert!(both.contains("not both"), "{both}");
    let other = failed(&scene, "p", json!({"path": scene.path("p/sub")}));
    assert!(
        other.contains("is not a worktree of the repository"),
        "{other}"
    );
    scene.git(&["branch", "worktree-x"]);
    let taken = failed(&scene, "p", json!({"name": "x"}));
    assert!(
        taken.contains("the branch worktree-x exists already"),
        "{taken}"
    );
    scene.git(&["branch", "-qD", "worktree-x"]);
    scene.assert_clean();
    scene.write("p/.claude/worktrees/x/file", "");
    let taken = failed(&scene, "p", json!({"name": "x"}));
    assert!(taken.contains("exists already"), "{taken}");
    fs::remove_dir_all(scene.path("p/.claude")).unwrap();
    // Someone else's folder behind a link.
    fs::create_dir(scene.path("elsewhere")).unwrap();
    symlink(scene.path("elsewhere"), scene.path("p/.claude")).unwrap();
    let link = failed(&scene, "p", json!({"name": "x"}));
    assert!(link.contains("is a link or a file"), "{link}");
    assert_eq!(fs::read_dir(scene.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_repository_runs_nothing_when_a_worktree_is_made_or_looked_at() {
    let scene = Scene::new();
    let evil = scene.path("home/evil.sh");
    let ran = scene.path("home/ran");
    fs::write(
        &evil,
        format!("#!/bin/sh\necho \"$0\" >> {}\ncat\n", ran.display()),
    )
    .unwrap();
    haft_testkit::command("chmod")
        .arg("+x")
        .arg(&evil)
        .status()
        .unwrap();
    let evil = evil.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", evil),
        ("filter.a=b.smudge", evil),
        ("filter.a=b.clean", evil),
        ("filter.p.process", evil),
        ("filter.p.required", "true"),
        ("core.sshCommand", evil),
        ("core.hooksPath", scene.path("home/hooks").to_str().unwrap()),
        ("submodule.recurse", "true"),
        ("commit.gpgSign", "true"),
        ("gpg.program", evil),
    ] {
        scene.git(&["config", key, value]);
    }
    scene.write(
        "p/.git/info/attributes",
        "*.txt filter=a=b\n*.env filter=p\n",
    );
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
    ] {
        fs::create_dir_all(scene.path("home/hooks")).unwrap();
        symlink(evil, scene.path("home/hooks").join(hook)).unwrap();
    }
    fs::remove_file(&ran).unwrap_or_default();
    let write = call(
        "Write",
        json!({"file_path": scene.path("p/.claude/worktrees/x/new.txt"), "content": "x\n"}),
    );
    let turns = [
        enter("x"),
        json!([write]),
        exit("remove", false),
        exit("remove", true),
        done(),
    ];
    let (results, all) = scene.run(&turns, &[]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(
        said(&results[2]).contains("would be lost"),
        "{}",
        said(&results[2])
    );
    assert!(
        said(&results[3]).contains("is removed"),
        "{}",
        said(&results[3])
    );
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}

#[test]
fn hooks_make_worktrees_their_way() {
    let scene = Scene::empty(); // no git at all
    fs::create_dir(scene.path("copy")).unwrap();
    let log = scene.path("home/log");
    let make = format!(
        "cat >> {}; echo making it; echo {}",
        log.display(),
        scene.path("copy").display()
    );
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {
        "WorktreeCreate": hook(&make),
        "WorktreeRemove": hook(&format!("cat >> {}; rmdir {}", log.display(), scene.path("copy").display())),
        "CwdChanged": hook(&format!("cat >> {}", log.display())),
    }});
    let turns = [
        enter("x"),
        bash("pwd"),
        exit("remove", false),
        bash("pwd"),
        done(),
    ];
    let (results, ran) = scene.run(&turns, &["--settings", &settings.to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(said(&results[1]), scene.path("copy").display().to_string());
    assert_eq!(said(&results[3]), scene.path("p").display().to_string());
    assert!(!scene.path("copy").exists());
    let told = fs::read_to_string(&log).unwrap();
    let told: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<&str> = told
        .iter()
        .map(|one| one["hook_event_name"].as_str().unwrap())
        .collect();
    assert_eq!(
        events,
        [
            "WorktreeCreate",
            "CwdChanged",
            "WorktreeRemove",
            "CwdChanged"
        ]
    );
    assert_eq!(told[0]["name"], "x");
    assert_eq!(told[2]["worktree_path"], json!(scene.path("copy")));

    for (command, why) in [
        ("echo no room >&2; exit 1", "no room"),
        ("true", "printed no path"),
        ("echo relative", "not an absolute path"),
        ("echo /nowhere/at/all", "not an existing directory"),
        ("echo /", "contains the project"),
        (
            &*format!("echo {}", scene.path("").display()),
            "contains the project",
        ),
    ] {
        let settings = json!({"hooks": {"WorktreeCreate": hook(command)}}).to_string();
        let (results, _) = scene.run(&[enter("x"), done()], &["--settings", &settings]);
        assert!(
            said(&results[0]).contains(why),
            "{command}: {}",
            said(&results[0])
        );
        assert_eq!(results[0]["is_error"], true);
    }
}
