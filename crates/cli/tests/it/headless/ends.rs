use std::fs;

use serde_json::json;
use tempfile::tempdir;

use super::{answer, call, kinds, lines, scripted, text};
use crate::binary::haft;

#[test]
fn after_the_last_round_no_request_is_made() {
    let dir = tempdir().unwrap();
    let turns = json!([[call("LS", json!({"path": "."}))]]);
    let flags = [
        "-p",
        "go",
        "--max-turns",
        "1",
        "--output-format",
        "stream-json",
    ];
    let ran = answer(scripted(dir.path(), &turns).args(flags));
    let messages = lines(&ran);
    assert_eq!(
        kinds(&messages),
        ["system/init", "assistant", "user", "result/error_max_turns"]
    );
    let result = &messages[3];
    assert_eq!(ran.code, 1);
    assert_eq!(result["is_error"], true);
    assert_eq!(result["num_turns"], 2);
    assert_eq!(result["stop_reason"], "tool_use");
    assert_eq!(result["errors"][0], "Reached maximum number of turns (1)");
}

#[test]
fn a_call_that_needs_a_person_is_refused_and_counted() {
    let dir = tempdir().unwrap();
    let turns = json!([
        [call(
            "Write",
            json!({"file_path": dir.path().join("x"), "content": "x"})
        )],
        [text("I may not.")],
    ]);
    for (more, code) in [(None, 0), (Some("--fail-on-deny"), 2)] {
        let flags = ["-p", "go", "--output-format", "stream-json"];
        let ran = answer(scripted(dir.path(), &turns).args(flags).args(more));
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let messages = lines(&ran);
        let expected = [
            "system/init",
            "assistant",
            "system/permission_denied",
            "user",
            "assistant",
            "result/success",
        ];
        assert_eq!(kinds(&messages), expected);
        assert_eq!(messages[3]["message"]["content"][0]["is_error"], true);
        let denials = messages[5]["permission_denials"].as_array().unwrap();
        assert_eq!(denials.len(), 1);
        assert_eq!(denials[0]["tool_name"], "Write");
        assert!(!dir.path().join("x").exists());
    }
}

#[test]
fn a_model_that_cannot_answer_is_told_of() {
    let dir = tempdir().unwrap();
    let turns = json!([{"error": {"kind": "auth", "message": "bad key", "status": 401}}]);
    let flags = ["-p", "hi", "--output-format", "stream-json"];
    let ran = answer(scripted(dir.path(), &turns).args(flags));
    let messages = lines(&ran);
    assert_eq!(
        kinds(&messages),
        ["system/init", "assistant", "result/success"]
    );
    assert_eq!(messages[1]["error"], "authentication_failed");
    assert_eq!(messages[2]["is_error"], true);
    assert_eq!(messages[2]["api_error_status"], 401);
    assert_eq!(ran.code, 1);
    let ran = answer(scripted(dir.path(), &turns).args(["-p", "hi"]));
    assert!(ran.stdout.starts_with("API Error: "), "{}", ran.stdout);
    assert_eq!(ran.code, 1);
}

#[test]
fn what_makes_no_sense_ends_with_1_before_anything_runs() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("never said")]]);
    let cases: [&[&str]; 8] = [
        &["-p", "hi", "--no-such-flag"],
        &["-p"],
        &["-p", "hi", "--session-id", "nonsense"],
        &[
            "-p",
            "hi",
            "--resume",
            "00000000-0000-4000-8000-000000000000",
        ],
        &["-p", "hi", "--resume-session-at", "x"],
        &["-p", "hi", "--input-format", "stream-json"],
        &["-p", "hi", "--permission-prompt-tool", "mcp__a__b"],
        &["-p", "hi", "--system-prompt-file", "missing"],
    ];
    let mut told = Vec::new();
    for case in cases {
        let ran = answer(scripted(dir.path(), &turns).args(case));
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{case:?}");
        let why = ran.stderr.lines().next().unwrap_or_default();
        told.push(format!("{}\n  {why}", case.join(" ")));
    }
    // Without a model to ask, and a word that is nearly a command.
    for case in [&["-p", "hi"][..], &["tolos"]] {
        let ran = answer(haft(dir.path()).args(case));
        assert_eq!(ran.code, 1, "{case:?}");
        told.push(format!("{}\n  {}", case.join(" "), ran.stderr.trim_end()));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_program_that_reads_json_hears_why_nothing_ran() {
    let dir = tempdir().unwrap();
    let flags = [
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--session-id",
        "x",
    ];
    let ran = answer(scripted(dir.path(), &json!([])).args(flags));
    let messages = lines(&ran);
    assert_eq!(ran.code, 1);
    assert_eq!(kinds(&messages), ["result/error_during_execution"]);
    assert_eq!(messages[0]["errors"][0], "--session-id x: expected a UUID");
}

#[test]
fn another_model_takes_over() {
    let dir = tempdir().unwrap();
    let turns = json!([
        {"error": {"kind": "not_found", "message": "no such model"}},
        [text("I am the other.")],
    ]);
    let flags = ["-p", "hi", "--output-format", "stream-json", "--model", "a"];
    let ran = answer(
        scripted(dir.path(), &turns)
            .args(flags)
            .args(["--fallback-model", "b"]),
    );
    let messages = lines(&ran);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let used: Vec<_> = messages.last().unwrap()["modelUsage"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(used, ["b"]);
}

#[test]
fn the_budget_ends_it() {
    let dir = tempdir().unwrap();
    let turns = json!([[call("LS", json!({"path": "."}))]]);
    let prices = json!({"scripted": {
        "input": 1e6, "output": 0.0, "cache_read": 0.0, "cache_write": 0.0, "cache_write_1h": 0.0,
    }});
    let flags = [
        "-p",
        "go",
        "--output-format",
        "json",
        "--max-budget-usd",
        "5",
        "--prices",
    ];
    let ran = answer(
        scripted(dir.path(), &turns)
            .args(flags)
            .arg(prices.to_string()),
    );
    let result = &lines(&ran)[0];
    assert_eq!(ran.code, 1);
    assert_eq!(result["subtype"], "error_max_budget_usd", "{result}");
    assert_eq!(result["total_cost_usd"], 10.0);
}

#[test]
fn prices_of_the_user_count_and_those_of_a_project_do_not() {
    let dir = tempdir().unwrap();
    let home = dir.path();
    let cwd = home.join("project");
    fs::create_dir_all(cwd.join(".claude")).unwrap();
    fs::create_dir_all(home.join(".claude")).unwrap();
    let prices = |input: f64| {
        let price = json!({
            "input": input, "output": 0.0, "cache_read": 0.0, "cache_write": 0.0,
            "cache_write_1h": 0.0,
        });
        json!({"modelPrices": {"scripted": price}}).to_string()
    };
    fs::write(cwd.join(".claude/settings.json"), prices(0.0)).unwrap();
    let turns = json!([[call("LS", json!({"path": "."}))], [text("never")]]);
    let flags = [
        "-p",
        "go",
        "--output-format",
        "json",
        "--max-budget-usd",
        "5",
    ];
    let run = || answer(scripted(&cwd, &turns).env("HOME", home).args(flags));
    let unknown = run();
    assert_eq!(unknown.code, 0, "{}", unknown.stderr);
    assert_eq!(lines(&unknown)[0]["total_cost_usd"], 0.0);
    assert!(
        unknown.stderr.contains("modelPrices in the settings"),
        "{}",
        unknown.stderr
    );
    fs::write(home.join(".claude/settings.json"), prices(1e6)).unwrap();
    let result = &lines(&run())[0];
    assert_eq!(result["subtype"], "error_max_budget_usd", "{result}");
    assert_eq!(result["total_cost_usd"], 10.0);
}
