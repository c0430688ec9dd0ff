//! Subagents in worktrees of their own, and worktrees that are not what they were.

use std::fs;

use serde_json::{Value, json};

use super::{
    Talk, answer, call, lines, text,
    worktrees::{Scene, bash, done, enter, exit, results, results_of, script},
};

/// A script with one subagent.
fn with_subagent(agent: &[Value]) -> Value {
    let launch = call(
        "Agent",
        json!({"description": "Does it", "prompt": "DO IT", "isolation": "worktree"}),
    );
    json!({
        "turns": script(&[json!([launch]), done()]),
        "conversations": [{"when": "DO IT", "turns": script(agent)}],
    })
}

#[test]
fn what_a_subagent_changes_comes_back_as_a_branch() {
    let scene = Scene::new();
    let agent = [
        bash("pwd; echo more >> a.txt; echo n > new"),
        json!([call(
            "Write",
            json!({"file_path": scene.path("p/outside.txt"), "content": "x"})
        )]),
        json!([text("Changed.")]),
    ];
    let mut command = scene.haft("p", &with_subagent(&agent));
    let ran = answer(command.args(["-p", "go", "--output-format", "stream-json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    let all = results(&messages);
    let told = all.last().unwrap().to_string();
    assert!(
        told.contains("Its changes are on the branch worktree-agent-a"),
        "{told}"
    );
    let branches = scene.git(&[
        "branch",
        "--list",
        "worktree-*",
        "--format=%(refname:short)",
    ]);
    let branch = branches.trim();
    assert!(told.contains(branch));
    let changed = scene.git(&["diff", "--name-status", &format!("main...{branch}")]);
    assert_eq!(changed, "M\ta.txt\nA\tnew\n");
    assert_eq!(fs::read_to_string(scene.path("p/a.txt")).unwrap(), "one\n");
    // Nothing but the branch.
    assert!(!scene.path("p/.claude").exists());
    assert!(!scene.path("p/.git/worktrees").exists());
    let structured = messages
        .iter()
        .find_map(|one| one["tool_use_result"].get("worktreeBranch"));
    assert_eq!(structured, Some(&json!(branch)));
    scene.git(&["branch", "-qD", branch]);

    let mut command = scene.haft(
        "p",
        &with_subagent(&[bash("cat a.txt"), json!([text("Looked.")])]),
    );
    let ran = answer(command.args(["-p", "go", "--output-format", "stream-json"]));
    assert!(
        !results_of(&ran)
            .last()
            .unwrap()
            .to_string()
            .contains("branch"),
        "{}",
        ran.stdout
    );
    scene.assert_clean();
}

#[test]
fn a_subagent_that_is_cut_off_leaves_its_work_on_its_branch() {
    let scene = Scene::new();
    let agent = [
        bash("echo half > half; echo begun"),
        bash("sleep 600"),
        json!([text("Never.")]),
    ];
    let mut command = scene.haft("p", &with_subagent(&agent));
    let mut talk = Talk::new(command.arg("-p"));
    talk.user("go");
    let place = scene.path("p/.claude/worktrees");
    haft_testkit::until_blocking("the subagent has begun", || {
        let copies = fs::read_dir(&place).into_iter().flatten().flatten();
        copies
            .into_iter()
            .any(|copy| fs::read(copy.path().join("half")).is_ok_and(|bytes| bytes == b"half\n"))
    });
    talk.signal("TERM");
    let _ = talk.child.wait();
    let branches = scene.git(&[
        "branch",
        "--list",
        "worktree-*",
        "--format=%(refname:short)",
    ]);
    let shown = scene.git(&["show", &format!("{}:half", branches.trim())]);
    assert_eq!(shown, "half\n");
    assert!(!place.exists());
}

#[test]
fn a_worktree_that_was_swapped_for_a_link_is_left_alone() {
    let scene = Scene::new();
    scene.write("victim/precious", "x");
    let place = scene.path("p/.claude/worktrees");
    let swap = format!(
        "mv {0}/x {0}/y && ln -s {1} {0}/x && echo swapped",
        place.display(),
        scene.path("victim").display()
    );
    let swaps = json!([call(
        "Bash",
        json!({"command": swap, "dangerouslyDisableSandbox": true})
    )]);
    let turns = [
        enter("x"),
        bash("echo 1 > new"),
        swaps,
        exit("remove", true),
        done(),
    ];
    let (results, _) = scene.run(&turns, &["--dangerously-skip-permissions"]);
    assert_eq!(results[3]["is_error"], true, "{results:?}");
    assert!(scene.path("victim/precious").exists());
    assert!(place.join("y/new").exists());
}
