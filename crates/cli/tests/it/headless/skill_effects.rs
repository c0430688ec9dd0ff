//! What skills bring beside their text, and what memory files import.

use std::fs;

use haft_testkit::{
    anthropic::{text_reply, tool_reply},
    http::HttpFake,
};
use serde_json::{Value, json};

use super::{
    Talk, answer, call,
    hook_events::{Scene, script, well},
    text,
};
use crate::binary::haft;

#[test]
fn a_skill_brings_a_model_an_effort_and_hooks() {
    let scene = Scene::new();
    let log = scene.log();
    let skill = format!(
        "---\nmodel: other-model\neffort: high\nhooks:\n  PostToolUse:\n    - matcher: Read\n      hooks:\n        - \
         type: command\n          command: \"(cat; echo) >> {}\"\n---\nDo it.\n",
        log.display()
    );
    scene.write("home/.claude/skills/do/SKILL.md", &skill);
    let read = || tool_reply("Read", json!({"file_path": scene.path("p/a.txt")}));
    let server =
        HttpFake::start_strict([read(), text_reply("Done."), read(), text_reply("Again.")]);
    let mut command = haft(&scene.path("p"));
    command
        .env("HOME", scene.path("home"))
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .args(["--model", "m-1", "-p"]);
    let mut talk = Talk::new(&mut command);
    talk.user("/do");
    talk.hear_until("result");
    talk.user("and now");
    talk.hear_until("result");
    talk.end();
    let asked: Vec<(Value, Value)> = server
        .bodies()
        .iter()
        .map(|body| {
            (
                body["model"].clone(),
                body["output_config"]["effort"].clone(),
            )
        })
        .collect();
    let (other, own) = (
        (json!("other-model"), json!("high")),
        (json!("m-1"), json!(null)),
    );
    assert_eq!(asked, [other.clone(), other, own.clone(), own]);
    // The hook lives until the session ends.
    assert_eq!(scene.told().len(), 2);

    // One of a project that no one trusts brings no hooks.
    fs::remove_file(&log).unwrap();
    fs::remove_dir_all(scene.path("home/.claude/skills")).unwrap();
    scene.write("p/.claude/skills/do/SKILL.md", &skill);
    let turns = [json!([text("Done.")])];
    let mut command = scene.streamed(&json!({"turns": script(&turns)}), &json!({}));
    let ran = answer(command.args(["--", "/do"]));
    well(&ran);
    assert!(
        ran.stderr.contains("hooks of the skill do do not run"),
        "{}",
        ran.stderr
    );
    assert!(!log.exists());
}

#[test]
fn skills_are_looked_for_again_and_a_change_can_be_objected_to() {
    let scene = Scene::new();
    let make = format!(
        "mkdir -p {0}/.claude/skills/made && echo 'Made by a hook.' > {0}/.claude/skills/made/SKILL.md && echo \
         '{{\"hookSpecificOutput\":{{\"hookEventName\":\"SessionStart\",\"reloadSkills\":true}}}}'",
        scene.path("home").display()
    );
    let settings =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": make}]}]}});
    let record = scene.path("home/record.jsonl");
    let mut command = scene.streamed(
        &json!({"turns": script(&[json!([text("Hi.")])])}),
        &settings,
    );
    well(&answer(command.arg("--record").arg(&record).arg("hi")));
    assert!(
        fs::read_to_string(&record)
            .unwrap()
            .contains("made: Made by a hook.")
    );

    let no = "grep -q '\"source\":\"skills\"' && { echo not this >&2; exit 2; }; exit 0";
    let settings = json!({"hooks": {"ConfigChange": [{"matcher": "skills", "hooks": [{"type": "command", "command": no}]}]}});
    let turns = [
        json!([text("One.")]),
        json!([call("Skill", json!({"skill": "made"}))]),
        json!([text("Two.")]),
    ];
    let mut talk = Talk::new(&mut scene.haft(&json!({"turns": script(&turns)}), &settings));
    talk.user("hi");
    talk.hear_until("result");
    scene.write(
        "home/.claude/skills/made/SKILL.md",
        "Something else entirely.",
    );
    talk.user("use it");
    let heard = talk.hear_until("result");
    talk.end();
    let result = heard
        .iter()
        .find(|one| one["type"] == "user")
        .unwrap()
        .to_string();
    assert!(result.contains("objects to the change"), "{result}");
}

#[test]
fn imports_from_outside_can_be_agreed_to() {
    let scene = Scene::new();
    scene.write("p/CLAUDE.md", "See @../other/rules.md and @~/notes.md.\n");
    scene.write("other/rules.md", "Rules of the house.\n");
    scene.write("home/notes.md", "My notes.\n");
    let record = scene.path("home/record.jsonl");
    let asked = || {
        let mut command = scene.streamed(
            &json!({"turns": script(&[json!([text("Hi.")])])}),
            &json!({}),
        );
        let ran = answer(command.arg("--record").arg(&record).arg("hi"));
        well(&ran);
        let asked = fs::read_to_string(&record).unwrap();
        fs::remove_file(&record).unwrap();
        (
            asked.contains("Rules of the house.") && asked.contains("My notes."),
            ran,
        )
    };
    let (has, _) = asked();
    assert!(!has);
    let mut trust = haft(&scene.path("p"));
    let ran = answer(
        trust
            .env("HOME", scene.path("home"))
            .args(["permissions", "trust", "--yes"]),
    );
    well(&ran);
    for path in ["other/rules.md", "home/notes.md"] {
        let path = scene.path(path);
        assert!(
            ran.stdout
                .contains(&format!("memory files import {}", path.display())),
            "{}",
            ran.stdout
        );
    }
    assert!(asked().0);
    // Another file is asked about again.
    scene.write("other/more.md", "More.\n");
    scene.write(
        "p/CLAUDE.md",
        "See @../other/rules.md, @~/notes.md and @../other/more.md.\n",
    );
    let mut command = scene.streamed(
        &json!({"turns": script(&[json!([text("Hi.")])])}),
        &json!({}),
    );
    well(&answer(command.arg("--record").arg(&record).arg("hi")));
    let said = fs::read_to_string(&record).unwrap();
    assert!(
        said.contains("My notes.") && !said.contains("More.\\n"),
        "{said}"
    );
}
