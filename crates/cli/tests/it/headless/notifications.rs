//! What the model wants people to see: notifications, findings, and the architect's designs.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    answer, call, kinds, lines, scripted, steady,
    subagents::{aside, result_of, scripted as scripted_team, streamed, transcripts, turn},
    text,
};
use crate::binary::haft;

fn notifying(message: &str) -> Value {
    json!([
        [call(
            "PushNotification",
            json!({"message": message, "status": "done"})
        )],
        [text("over")],
    ])
}

#[test]
fn a_notification_is_a_message_for_programs_and_a_line_for_people() {
    let dir = tempdir().unwrap();
    let script = notifying("The tests\npass \u{1b}[31m again");
    let told = streamed(&mut scripted(dir.path(), &script));
    let kinds = kinds(&told);
    let at = kinds
        .iter()
        .position(|kind| *kind == "system/notification")
        .unwrap_or_else(|| panic!("{kinds:?}"));
    assert_eq!(
        steady(told[at].clone(), dir.path()),
        json!({"type": "system", "subtype": "notification", "key": "push-notification",
               "text": "The tests pass \u{1b}[31m again", "priority": "high",
               "session_id": "[session_id]", "uuid": "[uuid]"})
    );
    let result = told.iter().find(|one| one["type"] == "user").unwrap();
    let structured = &result["tool_use_result"];
    assert!(structured["sentAt"].is_string());
    assert_eq!(
        structured,
        &json!({"message": "The tests pass \u{1b}[31m again", "pushSent": false, "localSent": true,
                "sentAt": structured["sentAt"]})
    );

    let ran = answer(scripted(dir.path(), &script).args(["-p", "go"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "over\n"));
    assert!(
        ran.stderr.starts_with("haft: The tests pass "),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}

#[test]
fn one_who_wants_no_notifications_gets_none_and_the_model_learns_it() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    let settings = json!({"preferredNotifChannel": "notifications_disabled"});
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    let told = streamed(&mut scripted(dir.path(), &notifying("Done")));
    assert!(!kinds(&told).contains(&"system/notification".to_owned()));
    let result = told.iter().find(|one| one["type"] == "user").unwrap();
    let structured = &result["tool_use_result"];
    assert!(structured["disabledReason"].is_string(), "{structured}");
    assert_eq!(
        structured,
        &json!({"message": "Done", "pushSent": false, "localSent": false,
                "disabledReason": structured["disabledReason"]})
    );
    let read = result["message"]["content"][0]["content"].to_string();
    assert!(read.contains("Write it in your reply"), "{read}");
}

#[test]
fn a_notification_has_fewer_than_200_characters() {
    let dir = tempdir().unwrap();
    let push = |length: usize| call("PushNotification", json!({"message": "ä".repeat(length)}));
    let script = json!([[push(199), push(200), push(0)], [text("over")]]);
    let told = streamed(&mut scripted(dir.path(), &script));
    let results = told.iter().filter(|one| one["type"] == "user");
    let refused: Vec<bool> = results
        .map(|one| one["message"]["content"][0]["is_error"] == true)
        .collect();
    assert_eq!(refused, [false, true, true]);
    let shown = kinds(&told);
    let shown = shown.iter().filter(|kind| *kind == "system/notification");
    assert_eq!(shown.count(), 1);
}

#[test]
fn findings_come_back_as_they_were_reported() {
    let dir = tempdir().unwrap();
    let finding = json!({"file": "src/a.rs", "line": 7, "summary": "The lock is held across an await",
                         "failure_scenario": "Two calls at once hang", "category": "correctness"});
    let reported = json!({"level": "high", "findings": [finding]});
    let many = |count: usize| vec![finding.clone(); count];
    let full = json!({"file": "b.rs", "summary": "s", "short_summary": "x", "failure_scenario": "f",
                      "category": "c", "verdict": "v", "outcome": "o"});
    let script = json!([
        [call("ReportFindings", json!({"findings": many(33)}))],
        [call("ReportFindings", reported.clone())],
        [call("ReportFindings", json!({"findings": many(32)}))],
        [call("ReportFindings", json!({"findings": [full]}))],
        [call(
            "ReportFindings",
            json!({"findings": [{"file": "a", "summary": "s"}]})
        )],
        [text("reviewed")],
    ]);
    let told = streamed(&mut scripted(dir.path(), &script));
    let results: Vec<&Value> = told.iter().filter(|one| one["type"] == "user").collect();
    let refused = results[0]["message"]["content"][0]["content"].to_string();
    assert!(refused.contains("findings"), "{refused}");
    assert_eq!(
        results[1]["tool_use_result"]["findings"],
        reported["findings"]
    );
    assert_eq!(results[1]["tool_use_result"]["level"], "high");
    let found = &results[2]["tool_use_result"]["findings"];
    assert_eq!(found.as_array().unwrap().len(), 32);
    assert_eq!(results[3]["tool_use_result"], json!({"findings": [full]}));
    let refused = results[4]["message"]["content"][0]["content"].to_string();
    assert!(refused.contains("failure_scenario"), "{refused}");
}

#[test]
fn an_architect_designs_from_what_it_is_given_and_can_change_nothing() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "alpha\n").unwrap();
    let launch =
        json!({"description": "Designs", "prompt": "the facts", "subagent_type": "architect"});
    let mut launch = call("Agent", launch);
    launch["id"] = json!("launch");
    // It obeys a prompt that wants more of it than it may.
    let tries = turn(json!([
        call("Read", json!({"file_path": "a.txt"})),
        call("Write", json!({"file_path": "a.txt", "content": "changed"})),
        call(
            "Edit",
            json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "beta"})
        ),
        call("Bash", json!({"command": "echo changed > a.txt"})),
        call("MemoryWrite", json!({"path": "a.md", "content": "x"})),
        call("Config", json!({"setting": "model", "value": "x"})),
        call("Agent", json!({"description": "x", "prompt": "x"})),
    ]));
    let design = turn(json!([text("Split it in two.")]));
    let mut command = scripted_team(
        dir.path(),
        &[turn(json!([launch])), turn(json!([text("planned")]))],
        &[aside("the facts", &[tries, design])],
    );
    // Even where everything is permitted.
    let told = streamed(
        command
            .arg("--dangerously-skip-permissions")
            .env("IS_SANDBOX", "1"),
    );
    let handed = result_of(&told, "launch")["message"]["content"][0]["content"].to_string();
    assert!(handed.contains("Split it in two."), "{handed}");
    assert_eq!(
        fs::read_to_string(dir.path().join("a.txt")).unwrap(),
        "alpha\n"
    );
    let own = fs::read_to_string(&transcripts(dir.path())[0]).unwrap();
    let own: Vec<Value> = own
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let results: Vec<&Value> = own
        .iter()
        .filter(|line| line["message"]["content"][0]["type"] == "tool_result")
        .collect();
    assert_eq!(results.len(), 7);
    for (number, result) in results.iter().enumerate() {
        let is_error = result["message"]["content"][0]["is_error"] == true;
        assert_eq!(is_error, number > 0, "{result}");
    }
    let ran = answer(haft(dir.path()).args(["sessions", "stats", "--json"]));
    assert_eq!(lines(&ran)[0]["subagents"], 1);
}
