use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, lines, scripted, text};
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

/// What the first message of a run says, and its result.
fn begun(ran: &crate::binary::Ran) -> (Value, Value) {
    let mut told = lines(ran);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    (told.remove(0), told.pop().unwrap())
}

const STREAM: [&str; 4] = ["-p", "go", "--output-format", "stream-json"];

#[test]
fn the_mode_is_kept_but_never_what_loosens_without_a_word_and_never_elsewhere() {
    let dir = tempdir().unwrap();
    let home = dir.path();
    let (here, there) = (home.join("here"), home.join("there"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&there).unwrap();
    let turns = json!([[text("ok")]]);
    let run = |cwd: &std::path::Path, flags: &[&str]| {
        let mut command = scripted(cwd, &turns);
        command.env("HOME", home).env("IS_SANDBOX", "1");
        let (init, result) = begun(&answer(command.args(STREAM).args(flags)));
        let id = result["session_id"].as_str().unwrap().to_owned();
        (id, init["permissionMode"].as_str().unwrap().to_owned())
    };
    for (first, kept) in [
        ("acceptEdits", "acceptEdits"),
        ("dontAsk", "dontAsk"),
        ("plan", "default"),
        ("bypassPermissions", "default"),
    ] {
        let (id, mode) = run(&here, &["--permission-mode", first]);
        assert_eq!(mode, first);
        let resume = format!("--resume={id}");
        let fork = [resume.as_str(), "--fork-session"];
        let said = [
            resume.as_str(),
            "--permission-mode",
            "default",
            "--fork-session",
        ];
        assert_eq!(run(&here, &said).1, "default", "{first}");
        assert_eq!(run(&there, &fork).1, "default", "{first}");
        assert_eq!(
            run(&here, &[&resume]),
            (id.clone(), kept.to_owned()),
            "{first}"
        );
    }
}

#[test]
fn it_goes_on_in_the_directory_it_was_left_in_unless_that_is_gone() {
    let dir = tempdir().unwrap();
    let cwd = dir.path();
    fs::create_dir(cwd.join("sub")).unwrap();
    let turns = json!([[call("Bash", json!({"command": "cd sub"}))], [text("ok")]]);
    let (_, result) = begun(&answer(scripted(cwd, &turns).args(STREAM)));
    let resume = format!("--resume={}", result["session_id"].as_str().unwrap());
    let again = || {
        let flags = [resume.as_str(), "--fork-session"];
        let turns = json!([[text("ok")]]);
        begun(&answer(scripted(cwd, &turns).args(STREAM).args(flags))).0
    };
    assert_eq!(again()["cwd"], cwd.join("sub").to_str().unwrap());
    fs::remove_dir(cwd.join("sub")).unwrap();
    assert_eq!(again()["cwd"], cwd.to_str().unwrap());
}

#[test]
fn a_copy_of_another_projects_session_belongs_to_this_project() {
    let dir = tempdir().unwrap();
    let home = dir.path();
    let (here, there) = (home.join("here"), home.join("there"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&there).unwrap();
    let turns = json!([[text("ok")]]);
    let (_, result) = begun(&answer(
        scripted(&there, &turns).env("HOME", home).args(STREAM),
    ));
    let resume = format!("--resume={}", result["session_id"].as_str().unwrap());
    let mut command = scripted(&here, &turns);
    let flags = [resume.as_str(), "--fork-session"];
    let (_, copy) = begun(&answer(command.env("HOME", home).args(STREAM).args(flags)));
    let list = |cwd: &std::path::Path| {
        let ran = answer(
            haft(cwd)
                .env("HOME", home)
                .args(["sessions", "list", "--json"]),
        );
        ran.stdout
    };
    let id = copy["session_id"].as_str().unwrap();
    assert!(list(&here).contains(id));
    assert!(!list(&there).contains(id));
}

#[test]
fn a_session_is_renamed_exported_and_deleted_by_the_beginning_of_its_id() {
    let dir = tempdir().unwrap();
    let cwd = dir.path();
    let first = answer(
        scripted(
            cwd,
            &json!([
                [call("LS", json!({"path": "."}))],
                [text("Some ``` words.")]
            ]),
        )
        .args(["-p", "first", "--output-format", "json"]),
    );
    let id = result(&first)["session_id"].as_str().unwrap().to_owned();
    let turns = json!([[text("Other.")]]);
    let other = answer(scripted(cwd, &turns).args([
        "-p",
        "other",
        "--output-format",
        "json",
        "--session-id",
        "ffffffff-0000-4000-8000-000000000000",
    ]));
    result(&other);
    let sessions = |args: &[&str]| answer(haft(cwd).arg("sessions").args(args));
    let begin = &id[..8];
    let renamed = sessions(&["rename", begin, "my work"]);
    assert_eq!(
        (renamed.code, renamed.stdout),
        (0, format!("{id} is called my work\n"))
    );
    let listed = sessions(&["list"]).stdout;
    assert!(listed.contains("my work"), "{listed}");
    let file = cwd.join("said.md");
    let exported = sessions(&["export", "my work", file.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# my work\n\n") && text.contains("> Some ``` words."),
        "{text}"
    );
    // What is there is not written over, unless that is said.
    let refused = sessions(&["export", begin, file.to_str().unwrap()]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    let page = cwd.join("said.html");
    let both = sessions(&[
        "export",
        begin,
        "--html",
        page.to_str().unwrap(),
        "--md",
        file.to_str().unwrap(),
        "--force",
    ]);
    assert_eq!(both.code, 0, "{}", both.stderr);
    assert!(
        both.stdout.ends_with("said.md is written\n"),
        "{}",
        both.stdout
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<title>my work</title>"));
    // From within, the same.
    let typed = "/export within.html";
    let within = answer(scripted(cwd, &json!([])).args(["-p", typed, "--resume", &id]));
    assert_eq!(within.code, 0, "{}", within.stderr);
    let within = fs::read_to_string(cwd.join("within.html")).unwrap();
    assert!(within.starts_with("<!doctype html>") && within.contains("Some ``` words."));
    let shown = sessions(&["export", begin, "--md"]);
    assert_eq!(shown.stdout.trim_end(), text.trim_end());
    let unasked = sessions(&["delete", begin]);
    assert_eq!(unasked.code, 1);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    let deleted = sessions(&["delete", begin, "--yes"]);
    assert_eq!(
        (deleted.code, deleted.stdout),
        (0, format!("{id} is deleted\n"))
    );
    let listed = sessions(&["list"]).stdout;
    assert!(
        !listed.contains(&id) && listed.contains("ffffffff"),
        "{listed}"
    );
    let project = fs::read_dir(cwd.join(".claude/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let left = fs::read_dir(project.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    for name in left {
        assert!(!name.to_string_lossy().starts_with(&id), "{name:?}");
    }
    // Too short to name one.
    assert_eq!(sessions(&["show", "fff"]).code, 1);
    assert_eq!(sessions(&["show", "ffff"]).code, 0);
}

#[test]
fn a_transcript_says_how_long_a_person_was_waited_for_and_what_a_reply_came_to() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [call("Bash", json!({"command": "touch one"}))],
        [text("Done.")]
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    talk.user("go");
    let heard = talk.hear_until("control_request");
    let question = heard.last().unwrap().clone();
    assert_eq!(question["request"]["subtype"], "can_use_tool");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let input = json!({"command": "touch one"});
    talk.respond(
        &question,
        &json!({"behavior": "allow", "updatedInput": input}),
    );
    talk.hear_until("result");
    assert_eq!(talk.end().1, 0);
    let project = fs::read_dir(dir.path().join(".claude/projects")).unwrap();
    let project = project.last().unwrap().unwrap().path();
    let mut files = fs::read_dir(project)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let transcript = files.find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let lines = fs::read_to_string(transcript.unwrap()).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let waited = lines.iter().find_map(|line| line["haftWaitedMs"].as_u64());
    assert!(waited >= Some(50), "{waited:?}");
    let replies: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "haft-reply")
        .collect();
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0]["usage"]["output_tokens"], 5);
    assert!(
        lines
            .iter()
            .any(|line| line["requestId"] == replies[0]["requestId"])
    );
}
