//! `haft permissions try` and `haft permissions doctor`.

use std::fs;

use serde_json::{Value, json};

use super::{PROJECT, Place, USER};

const SESSION: &str = "01a1e348-0000-4000-8000-000000000001";

/// Writes the transcripts of calls that the user was asked about: the command, whether it was denied.
/// The last call is of a subagent.
fn with_questions(place: &Place, calls: &[(String, bool)]) {
    let work = place.path("work");
    let slug: String = work
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = place.path("config").join("projects").join(slug);
    let subagents = folder.join(SESSION).join("subagents");
    fs::create_dir_all(&subagents).unwrap();
    let lines = |calls: &[(String, bool)], from: usize| {
        let mut text = String::new();
        for (at, (command, is_denied)) in (from..).zip(calls) {
            let id = format!("toolu_{at}");
            // A time in the far future is within any age.
            let time = format!("2096-01-31T12:{:02}:00.000Z", at % 60);
            text += &json!({"type": "assistant", "uuid": format!("a{at}"), "timestamp": time,
                "cwd": work, "message": {"content": [{"type": "tool_use", "id": id, "name": "Bash",
                "input": {"command": command}}]}})
            .to_string();
            text += "\n";
            let mut answer = json!({"type": "user", "uuid": format!("u{at}"), "timestamp": time,
                "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]}});
            match is_denied {
                true => answer["haftRefused"] = json!(true),
                false => answer["haftWaitedMs"] = json!(900),
            }
            text += &format!("{answer}\n");
        }
        text
    };
    let (last, main) = calls.split_last().unwrap();
    fs::write(folder.join(format!("{SESSION}.jsonl")), lines(main, 0)).unwrap();
    let agent = lines(std::slice::from_ref(last), main.len());
    fs::write(subagents.join("agent-1.jsonl"), agent).unwrap();
}

fn fifty_two() -> Vec<(String, bool)> {
    let mut calls: Vec<(String, bool)> = (0..41)
        .map(|at| (format!("bd-of-no-one test case_{at}"), at < 2))
        .collect();
    calls.extend((41..52).map(|at| (format!("bd-of-no-one publish {at}"), false)));
    // The last one, of the subagent, matches too.
    calls.swap(40, 51);
    calls
}

/// Vector R4.
#[test]
fn a_rule_is_tried_on_past_questions_and_denied_calls_are_named() {
    let place = Place::new(&[]);
    with_questions(&place, &fifty_two());
    let said = place.says(&["permissions", "try", "Bash(bd-of-no-one test *)"]);
    assert!(
        said.starts_with(
            "would have answered 41 of 52 questions; 2 of these you denied: \
             `bd-of-no-one test case_1`, `bd-of-no-one test case_0`\n"
        ),
        "{said}"
    );
    let all = place.says(&["permissions", "try", "--json", "Bash(bd-of-no-one *)"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    let counts = ["questions", "answered", "answered_already"].map(|name| all[name].as_u64());
    assert_eq!(counts, [Some(52), Some(52), Some(0)]);
    assert_eq!(all["denied"].as_array().unwrap().len(), 2);
    assert_eq!(all["truncated"], false);
    place.write(
        USER,
        r#"{"permissions": {"allow": ["Bash(bd-of-no-one publish *)"]}}"#,
    );
    let said = place.says(&["permissions", "try", "Bash(bd-of-no-one test *)"]);
    assert!(
        said.contains("41 of 52 questions (11 are answered by other rules)"),
        "{said}"
    );
    let none = place.says(&["permissions", "try", "--since", "2097-01-01", "Bash(x *)"]);
    assert_eq!(none, "no past question of this project to try it on\n");
    for wrong in ["Bash(x", "Bassh(x)"] {
        let ran = place.run(&["permissions", "try", wrong]);
        assert_eq!(ran.code, 1, "{wrong}: {}", ran.stdout);
    }
}

#[test]
fn without_transcripts_there_is_no_question_to_try_a_rule_on() {
    let place = Place::new(&[]);
    let said = place.says(&["permissions", "try", "Bash(make *)"]);
    assert_eq!(said, "no past question of this project to try it on\n");
}

const SETTINGS: &str = r#"{
  // rules of mine
  "permissions": {
    "allow": [
      "Bash(cd x && make)",
      "Bash(python3 *)",
      "Bash(curl -H 'Authorization: Bearer aaaabbbbcccc' https://x.org)",
      "Bash(bd-of-no-one a)"
    ]
  },
  "autoMode": {"hard_deny": ["never touch production"]}
}"#;

/// Vector R6.
#[test]
fn the_doctor_reports_each_kind_with_file_and_line_and_prints_no_key() {
    let place = Place::new(&[(USER, SETTINGS)]);
    let ran = place.run(&["permissions", "doctor", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{}", ran.stdout);
    assert!(!ran.stdout.contains("aaaabbbbcccc"), "{}", ran.stdout);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings: Vec<(&str, &str, u64)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap();
            assert!(!text("reason").is_empty() && !text("advice").is_empty());
            (text("kind"), text("rule"), one["line"].as_u64().unwrap())
        })
        .collect();
    for expected in [
        ("dead", "Bash(cd x && make)", 5),
        ("risky", "Bash(python3 *)", 6),
        (
            "risky",
            "Bash(curl -H 'Authorization: Bearer [masked]' https://x.org)",
            7,
        ),
        ("dead", "Bash(bd-of-no-one a)", 8),
    ] {
        assert!(findings.contains(&expected), "{expected:?} in {findings:?}");
    }
    assert_eq!(report["auto_sentences"], json!(["never touch production"]));
    let ran = place.run(&["permissions", "doctor"]);
    assert!(!ran.stdout.contains("aaaabbbbcccc"), "{}", ran.stdout);
    assert!(ran.stdout.contains("never touch production"));
}

#[test]
fn the_doctor_changes_nothing_without_an_answer() {
    let rules = r#"{"permissions": {"allow": ["mcp__a", "mcp__a__b"]}}"#;
    let place = Place::new(&[(USER, rules)]);
    let ran = place.run(&["permissions", "doctor", "--fix"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("- allow: mcp__a__b"), "{}", ran.stdout);
    assert!(ran.stderr.contains("nothing was changed"), "{}", ran.stderr);
    assert_eq!(place.read(USER), rules);
}

#[test]
fn a_project_s_rules_are_reported_but_never_fixed() {
    let rules = r#"{"permissions": {"deny": ["mcp__a", "mcp__a__b"]}}"#;
    let place = Place::new(&[(PROJECT, rules)]);
    let ran = place.run(&["permissions", "doctor", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["findings"][0]["kind"], "shadowed", "{report}");
    assert_eq!(report["findings"][0]["fixable"], false);
    let clean = Place::new(&[]);
    assert_eq!(clean.says(&["permissions", "doctor"]), "No findings.\n");
}
