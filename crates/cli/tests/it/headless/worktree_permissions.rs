//! Which worktrees a person is asked about.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use super::{
    answer, call,
    worktrees::{Scene, done, enter, exit, results_of, said, script},
};
use crate::binary::haft;

/// In the working directories no one is asked; a worktree elsewhere, or one of a repository around them, needs a rule.
#[test]
fn only_a_worktree_outside_is_asked_about() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "-b", "other", "../beside"]);
    scene.git(&["worktree", "add", "-q", "-b", "inner", "inner"]);
    symlink(scene.path("beside"), scene.path("p/link")).unwrap();
    let unruled = |cwd: &str, input: Value, flags: &[&str]| {
        let turns = [
            json!([call("EnterWorktree", input)]),
            exit("keep", false),
            done(),
        ];
        let file = scene.path("script.json");
        fs::write(&file, json!({"turns": script(&turns)}).to_string()).unwrap();
        let mut command = haft(&scene.path(cwd));
        command.env("HOME", scene.path("home"));
        command.arg("--script").arg(file).args(flags);
        let ran = answer(command.args(["-p", "go", "--output-format", "stream-json"]));
        let result = results_of(&ran).remove(0);
        (result["is_error"] == true, said(&result))
    };
    for (name, input) in [
        ("a name", json!({"name": "x"})),
        ("no name", json!({})),
        ("one in the project", json!({"path": scene.path("p/inner")})),
        ("one in the project, from here", json!({"path": "inner"})),
    ] {
        let (is_error, text) = unruled("p", input, &[]);
        assert!(!is_error, "{name}: {text}");
        assert!(text.contains("is now in the worktree"), "{name}: {text}");
    }
    let asked = "was not granted";
    let outside = [
        ("p", json!({"path": scene.path("beside")})),
        ("p", json!({"path": "../beside"})),
        ("p", json!({"path": "link"})),
        // The copy would be of the whole repository, of which the session has a part.
        ("p/sub", json!({"name": "y"})),
        ("p/sub", json!({"path": scene.path("p/inner")})),
    ];
    for (cwd, input) in &outside {
        let (is_error, text) = unruled(cwd, input.clone(), &[]);
        assert!(is_error && text.contains(asked), "{cwd} {input}: {text}");
    }
    // A rule, or another working directory, says that it is meant.
    let (is_error, text) = unruled(
        "p/sub",
        json!({"name": "y"}),
        &["--allowedTools=EnterWorktree"],
    );
    assert!(!is_error, "{text}");
    let whole = scene.path("p");
    let (is_error, text) = unruled(
        "p/sub",
        json!({"name": "z"}),
        &["--add-dir", whole.to_str().unwrap()],
    );
    assert!(!is_error, "{text}");
    // Deny and ask rules, plan mode and a session that never asks are as before.
    let name = json!({"name": "w"});
    for flags in [
        &["--disallowedTools=EnterWorktree"][..],
        &["--permission-mode", "plan"],
        &[
            "--settings",
            "{\"permissions\": {\"ask\": [\"EnterWorktree\"]}}",
        ],
    ] {
        let (is_error, text) = unruled("p", name.clone(), flags);
        assert!(is_error, "{flags:?}: {text}");
    }
    assert!(!scene.path("p/.claude/worktrees/w").exists());
}

/// What a repository says of itself does not widen what a session may touch.
#[test]
fn a_repository_that_names_another_checkout_has_none() {
    let scene = Scene::new();
    scene.git_in("p/sub", &["init", "-q", "-b", "main"]);
    let above = scene.path("p");
    scene.git_in(
        "p/sub",
        &["config", "core.worktree", above.to_str().unwrap()],
    );
    let turns = [enter("x"), done()];
    let (results, _) = scene.run_in("p/sub", &turns, &[]);
    assert_eq!(results[0]["is_error"], true, "{}", results[0]);
    let text = said(&results[0]);
    assert!(
        text.contains("which is not where this session works"),
        "{text}"
    );
    assert!(!scene.path("p/.claude").exists());
}
