//! Files that undo cannot store, in the mode `auto` and in others (W3, W13).

use std::fs;

use serde_json::{Value, json};

use super::{
    Place, USER,
    auto::{bash, headless, results, trusted},
};
use crate::headless::{Talk, call, lines, scripted, text};

/// Settings with small limits.
fn small() -> String {
    json!({"undo": {"fileBytes": 4096, "copyBytes": 16384}}).to_string()
}

fn project() -> Option<Place> {
    let big = "x".repeat(20_000);
    let files = [
        (USER, small()),
        ("work/data.db", big.clone()),
        ("work/notes", "old\n".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    trusted(&files)
}

fn overwrite() -> Value {
    bash("echo new > notes; echo new > data.db; echo end")
}

#[test]
fn w13_without_a_user_the_change_is_refused_and_named() {
    let Some(place) = project() else {
        return;
    };
    let turns = json!([[overwrite()], [text("done")]]);
    let ran = headless(&place, "auto", &turns);
    let (said, result) = results(&lines(&ran)).swap_remove(0);
    assert_eq!(place.read("work/data.db").len(), 20_000);
    assert_eq!(place.read("work/notes"), "new\n");
    for part in [
        "Read-only file system",
        "end",
        "data.db: it has 19.5 KiB",
        "at most 4 KiB of a file (setting `undo.fileBytes`)",
        "no user can be asked",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(result["undo"], "exact", "{result}");
}

#[test]
fn w13_a_permitted_command_continues_and_the_file_is_named() {
    let Some(place) = project() else {
        return;
    };
    let turns = json!([[overwrite()], [text("done")]]);
    let mut command = scripted(&place.path("work"), &turns);
    command
        .env("HOME", place.path("home"))
        .env("CLAUDE_CONFIG_DIR", place.path("config"))
        .args(["-p", "go", "--output-format", "stream-json", "--verbose"])
        .args(["--allowed-tools", "Bash"]);
    let ran = crate::binary::run(&mut command, b"");
    let (said, result) = results(&lines(&ran)).swap_remove(0);
    assert_eq!(place.read("work/data.db"), "new\n");
    let undo = result["undo"].as_str().unwrap_or_default();
    assert!(
        undo.starts_with("partial") && undo.contains("undo.fileBytes"),
        "{result}"
    );
    assert!(said.contains("data.db"), "{said}");
}

/// Runs a command in the mode `auto` with a user who answers each question. Returns the questions
/// with the labels of their answers, and the result.
fn asked(place: &Place, command: &Value, answers: &[&str]) -> (Vec<(String, Vec<String>)>, Value) {
    let turns = json!([[command], [text("done")]]);
    let mut command = scripted(&place.path("work"), &turns);
    command
        .env("HOME", place.path("home"))
        .env("CLAUDE_CONFIG_DIR", place.path("config"))
        .args(["--permission-prompt-tool", "stdio"])
        .args(["--permission-mode", "auto"]);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    let mut answers = answers.iter();
    let (mut asked, mut heard) = (Vec::new(), Vec::new());
    while let Some(message) = talk.hear() {
        let kind = message["type"].clone();
        if kind == "control_request" {
            // Nothing has changed before the answer.
            assert_eq!(place.read("work/data.db").len(), 20_000);
            let mut input = message["request"]["input"].clone();
            let question = input["questions"][0].clone();
            let labels = question["options"].as_array().unwrap().iter();
            let labels = labels.map(|option| option["label"].as_str().unwrap().to_owned());
            let text = question["question"].as_str().unwrap().to_owned();
            let answer = answers.next().expect("another question");
            input["answers"] = json!({ &text: answer });
            asked.push((text, labels.collect()));
            talk.respond(
                &message,
                &json!({"behavior": "allow", "updatedInput": input}),
            );
        }
        heard.push(message);
        if kind == "result" {
            break;
        }
    }
    talk.end();
    let (said, result) = results(&heard).swap_remove(0);
    (asked, json!({"text": said, "result": result}))
}

#[test]
fn w13_in_auto_the_user_is_asked_before_the_first_byte() {
    let store = "Store a copy first";
    let cases = [
        (store, "new\n", "exact"),
        ("Continue without undo for it", "new\n", "partial"),
        ("Refuse", "x", "exact"),
    ];
    for (answer, begins, undo) in cases {
        let Some(place) = project() else {
            return;
        };
        let (questions, done) = asked(&place, &overwrite(), &[answer]);
        assert_eq!(questions.len(), 1, "{questions:?}");
        let (question, labels) = &questions[0];
        assert!(
            question.contains("data.db") && question.contains("undo.fileBytes"),
            "{question}"
        );
        assert_eq!(
            labels,
            &[store, "Continue without undo for it", "Refuse"].map(str::to_owned)
        );
        assert!(place.read("work/data.db").starts_with(begins));
        assert_eq!(place.read("work/notes"), "new\n");
        let found = done["result"]["undo"].as_str().unwrap_or_default();
        assert!(found.starts_with(undo), "{answer}: {done}");
        if answer == "Refuse" {
            let text = done["text"].as_str().unwrap();
            assert!(text.contains("the user refused"), "{text}");
        }
        let mut undo = place.haft();
        undo.arg("undo");
        let ran = crate::binary::run(&mut undo, b"");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(place.read("work/notes"), "old\n");
        if answer == store {
            assert_eq!(place.read("work/data.db"), "x".repeat(20_000));
        }
    }
}

/// W3: over the limit of a session, *refuse* applies to the rest, and undo restores what was removed.
#[test]
fn w3_a_removal_stops_at_the_limit_of_the_session() {
    let Some(place) = project() else {
        return;
    };
    place.write(
        USER,
        &json!({"undo": {"pinBytes": 30_000, "copyBytes": 0}}).to_string(),
    );
    fs::create_dir(place.path("work/lib")).unwrap();
    for number in 0..10 {
        place.write(&format!("work/lib/f{number}"), &"m".repeat(10_000));
    }
    let (questions, _) = asked(&place, &bash("rm -rf lib"), &["Refuse"]);
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert!(questions[0].0.contains("undo.pinBytes"), "{questions:?}");
    let left = || fs::read_dir(place.path("work/lib")).unwrap().count();
    assert_eq!(left(), 7);
    let mut undo = place.haft();
    undo.arg("undo");
    assert_eq!(crate::binary::run(&mut undo, b"").code, 0);
    assert_eq!(left(), 10);
}

/// A file tool asks before it changes a file that undo does not store.
#[test]
fn an_edit_of_a_file_over_the_limit_asks_in_auto() {
    let Some(place) = project() else {
        return;
    };
    let write = |name: &str| {
        let input = json!({"file_path": place.path(name), "content": "new\n"});
        [
            call("Read", json!({"file_path": place.path(name)})),
            call("Write", input),
        ]
    };
    place.write("work/lines", &"nineteen characters\n".repeat(1_000));
    let turns = json!([write("work/lines"), write("work/notes"), [text("done")]]);
    let ran = headless(&place, "auto", &turns);
    assert_eq!(place.read("work/lines").len(), 20_000);
    assert_eq!(place.read("work/notes"), "new\n");
    assert!(ran.stdout.contains("undo.fileBytes"), "{}", ran.stdout);
}
