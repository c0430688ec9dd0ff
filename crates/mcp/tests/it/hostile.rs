//! Servers that lie, and servers that die in the middle of each step.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setting::{Setting, entry, has_python, text};

fn hostile(mode: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hostile.py");
    json!({"command": "python3", "args": [script, mode]})
}

/// The hostile server beside an honest one, both settled.
async fn beside(mode: &str, connect: u64) -> Setting {
    let named = json!({"s": hostile(mode), "good": entry(&[])});
    let setting = Setting::with(&named, |options| {
        options.connect = Duration::from_secs(connect)
    });
    let setting = setting.settled().await;
    // On a busy machine its first start may take longer than that; then it is started again.
    let is_there = || setting.status("good").0 == "connected";
    haft_testkit::until("the good one is connected", is_there).await;
    setting
}

async fn good_still_answers(setting: &Setting) {
    let said = setting
        .call("mcp__good__echo", json!({"text": "on"}))
        .await
        .unwrap();
    assert_eq!(text(&said), "on");
}

#[tokio::test]
async fn answers_to_what_was_not_asked_change_nothing() {
    if !has_python() {
        return;
    }
    let setting = beside("ids", 60).await;
    assert_eq!(setting.status("s"), ("connected".to_owned(), None));
    for _ in 0..20 {
        let said = setting.call("mcp__s__t", json!({})).await.unwrap();
        assert_eq!(text(&said), "fine");
    }
    good_still_answers(&setting).await;
    setting.servers.close().await;
}

#[tokio::test]
async fn a_list_without_an_end_is_cut() {
    if !has_python() {
        return;
    }
    let setting = beside("endless", 60).await;
    let list = setting.servers.list();
    let tools = list
        .servers
        .iter()
        .find(|server| server.name == "s")
        .unwrap();
    assert_eq!(tools.tools.as_ref().map(Vec::len), Some(10_000));
    good_still_answers(&setting).await;
    setting.servers.close().await;
}

#[tokio::test]
async fn names_that_could_act_on_a_terminal_or_on_rules_are_made_plain() {
    if !has_python() {
        return;
    }
    let setting = beside("names", 60).await;
    assert_eq!(setting.status("s").0, "connected");
    let (tools, _) = setting.servers.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let own: Vec<&&str> = names
        .iter()
        .filter(|name| !name.starts_with("mcp__good__"))
        .collect();
    assert!(own.len() > 5, "{own:?}");
    for name in own {
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        assert!(
            plain && name.len() <= 64 && name.starts_with("mcp__s__"),
            "{name:?}"
        );
    }
    setting.servers.close().await;
}

#[tokio::test]
async fn schemas_that_lead_back_to_themselves_or_are_none_are_survived() {
    if !has_python() {
        return;
    }
    let setting = beside("schemas", 60).await;
    assert_eq!(setting.status("s").0, "connected");
    let (tools, _) = setting.servers.tools();
    let tools = tools
        .iter()
        .filter(|tool| tool.spec().name.starts_with("mcp__s__"));
    let mut count = 0;
    for tool in tools {
        count += 1;
        let schema = &tool.spec().input_schema;
        assert_eq!(schema["type"], "object", "{schema}");
        assert!(!schema.to_string().contains("$ref"), "{schema}");
        let began = Instant::now();
        let mut deep = json!({"child": {}});
        for _ in 0..100 {
            deep = json!({"child": deep, "s": "a".repeat(40) + "!"});
        }
        for input in [json!({}), deep] {
            let _ = std::sync::Arc::clone(tool).bind(input); // whatever it says of it
        }
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{}",
            tool.spec().name
        );
    }
    assert_eq!(count, 9);
    setting.servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_at_any_step_says_so_and_hurts_no_other() {
    if !has_python() {
        return;
    }
    for step in ["initialize", "tools-list", "prompts-list"] {
        for how in ["die", "half"] {
            let setting = beside(&format!("{how}-{step}"), 60).await;
            let (status, error) = setting.status("s");
            assert_eq!(status, "failed", "{how} {step}");
            let error = error.unwrap();
            assert!(error.contains("exit status: 9"), "{how} {step}: {error}");
            good_still_answers(&setting).await;
            setting.servers.close().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_ends_the_call() {
    if !has_python() {
        return;
    }
    for mode in ["die-tools-call", "half-tools-call"] {
        let setting = beside(mode, 60).await;
        let failed = setting.call("mcp__s__t", json!({})).await.unwrap_err();
        assert!(
            failed.to_string().contains("disconnected during the call"),
            "{mode}: {failed}"
        );
        good_still_answers(&setting).await;
        setting.servers.close().await;
    }
}

#[tokio::test]
async fn what_is_too_deep_to_be_read_ends_its_request_at_once() {
    if !has_python() {
        return;
    }
    let setting = beside("deep-tools-call", 60).await;
    let failed = setting.call("mcp__s__t", json!({})).await.unwrap_err();
    assert!(failed.to_string().contains("cannot be read"), "{failed}");
    setting.servers.close().await;
    let setting = beside("deep-tools-list", 60).await;
    assert_eq!(setting.status("s").0, "failed");
    setting.servers.close().await;
}

#[tokio::test]
async fn a_server_that_is_mute_about_prompts_keeps_its_tools() {
    if !has_python() {
        return;
    }
    let setting = beside("mute-prompts-list", 9).await;
    assert_eq!(setting.status("s"), ("connected".to_owned(), None));
    let said = setting.call("mcp__s__t", json!({})).await.unwrap();
    assert_eq!(text(&said), "fine");
    let setting = beside("mute-tools-list", 3).await;
    assert!(
        setting
            .status("s")
            .1
            .unwrap()
            .contains("did not answer within")
    );
}

/// Answers that no one reads must not pile up, nor news of lists.
#[tokio::test]
async fn a_flood_of_questions_and_news_is_thinned_out() {
    if !has_python() {
        return;
    }
    let setting = Setting::new(&json!({"s": entry(&[]), "good": entry(&[])}));
    let setting = setting.settled().await;
    assert_eq!(setting.act("pings").await, "asked");
    // Until it has read what waits, calls say that there is no room.
    let counted = async {
        loop {
            match setting.act("pongs").await {
                full if full.contains("does not read its input") => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                counted => break counted,
            }
        }
    };
    let counted = tokio::time::timeout(Duration::from_secs(60), counted).await;
    let counted: usize = counted.expect("it reads again").parse().unwrap();
    assert!((1..20_000).contains(&counted), "{counted}");
    assert_eq!(setting.act("news").await, "told");
    good_still_answers(&setting).await;
    assert_eq!(setting.status("s"), ("connected".to_owned(), None));
    setting.servers.close().await;
}
