use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{answer, lines, scripted, text};
use crate::binary::haft;

fn result(ran: &crate::binary::Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    lines(ran).pop().unwrap()
}

#[test]
fn a_conversation_goes_on_by_id_by_title_and_as_the_newest() {
    let dir = tempdir().unwrap();
    let cwd = dir.path();
    let json_out = ["--output-format", "json"];
    let turns = json!([[text("First answer.")]]);
    let first = answer(
        scripted(cwd, &turns)
            .args(["-p", "first", "--name", "work"])
            .args(json_out),
    );
    let id = result(&first)["session_id"].as_str().unwrap().to_owned();

    let record = cwd.join("tape");
    let mut tapes = Vec::new();
    let resume = format!("--resume={id}");
    for flags in [
        &[resume.as_str()][..],
        &["--resume", "work"],
        &["--continue"],
        &["-c"],
    ] {
        let turns = json!([[text("More.")]]);
        let mut command = scripted(cwd, &turns);
        let ran = answer(
            command
                .args(["-p", "go on"])
                .args(json_out)
                .args(flags)
                .arg("--record")
                .arg(&record),
        );
        assert_eq!(result(&ran)["session_id"], id.as_str(), "{flags:?}");
        tapes.push(fs::read_to_string(&record).unwrap());
    }
    assert!(tapes.iter().all(|tape| tape.contains("First answer.")));

    let turns = json!([[text("Forked.")]]);
    let mut command = scripted(cwd, &turns);
    let ran = answer(
        command
            .args(["-p", "x", &resume, "--fork-session"])
            .args(json_out),
    );
    assert_ne!(result(&ran)["session_id"], id.as_str());

    let listed = answer(haft(cwd).args(["sessions", "list", "--json"]));
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    let shown = answer(haft(cwd).args(["sessions", "show", &id]));
    assert!(
        shown
            .stdout
            .starts_with("user:\n  first\nassistant:\n  First answer.\n"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains("Forked."));
}

#[test]
fn an_id_can_be_chosen_once() {
    let dir = tempdir().unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    let turns = json!([[text("ok")]]);
    let mut flags = vec!["-p", "hi", "--output-format", "json", "--session-id", id];
    let ran = answer(scripted(dir.path(), &turns).args(&flags));
    assert_eq!(result(&ran)["session_id"], id);
    flags.truncate(2);
    flags.extend(["--session-id", id]);
    let ran = answer(scripted(dir.path(), &turns).args(&flags));
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("exists already"), "{}", ran.stderr);
}

#[test]
fn nothing_is_kept_where_nothing_is_to_be_kept() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("ok")]]);
    let ran = answer(scripted(dir.path(), &turns).args(["-p", "hi", "--no-session-persistence"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let projects = dir.path().join(".claude/projects");
    let kept: Vec<_> = fs::read_dir(projects)
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|project| fs::read_dir(project.path()).unwrap().flatten())
        .map(|entry| entry.path())
        .collect();
    assert!(kept.is_empty(), "{kept:?}");
}
