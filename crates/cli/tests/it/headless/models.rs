//! Which model is asked, what it is called on the wire, and what it costs.

use std::{fs, path::Path, process::Command};

use haft_testkit::{
    anthropic::{text_reply, tool_reply},
    http::{HttpFake, HttpReply, header},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, lines};
use crate::binary::{haft, run};

fn list(ids: &[&str]) -> HttpReply {
    let model = |id: &&str| json!({"type": "model", "id": id, "max_input_tokens": 300_000});
    let data: Vec<Value> = ids.iter().map(model).collect();
    HttpReply::new(200, "application/json", json!({"data": data}).to_string())
}

const CLAUDE: [&str; 4] = [
    "claude-opus-9-20280101",
    "claude-sonnet-8-20270101",
    "claude-sonnet-8-5-20270601",
    "claude-haiku-8-5-20270701",
];

/// One that has a key and an address, and names no model.
fn asking(server: &HttpFake, cwd: &Path) -> Command {
    let mut command = haft(cwd);
    command
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .args(["--output-format", "stream-json", "-p", "hi"]);
    command
}

/// The first lines of what was asked, and the models.
fn requests(server: &HttpFake) -> Vec<String> {
    let asked = server.requests();
    let line = |asked: &haft_testkit::http::RecordedHttpRequest| {
        let first = asked.head.lines().next().unwrap();
        let path = first.split(' ').nth(1).unwrap();
        let path = path.split('?').next().unwrap();
        match asked.body["model"].as_str() {
            Some(model) => format!("{path} {model}"),
            None => path.to_owned(),
        }
    };
    asked.iter().map(line).collect()
}

#[test]
fn without_a_name_the_newest_of_the_family_is_asked_and_the_list_is_kept_for_a_day() {
    let dir = tempdir().unwrap();
    let server = HttpFake::start_strict([list(&CLAUDE), text_reply("One."), text_reply("Two.")]);
    let ran = answer(&mut asking(&server, dir.path()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    assert_eq!(messages[0]["model"], "claude-sonnet-8-5-20270601");
    let usage = &messages.last().unwrap()["modelUsage"]["claude-sonnet-8-5-20270601"];
    assert_eq!(usage["contextWindow"], 300_000, "{messages:?}");
    let ran = answer(&mut asking(&server, dir.path()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        requests(&server),
        [
            "/v1/models",
            "/v1/messages claude-sonnet-8-5-20270601",
            "/v1/messages claude-sonnet-8-5-20270601",
        ]
    );
    // Neither the key nor anything it could be guessed from is kept.
    let cache = dir.path().join(".cache/haft");
    let kept = fs::read_dir(&cache).unwrap().next().unwrap().unwrap();
    let text = fs::read_to_string(kept.path()).unwrap();
    assert!(
        !text.contains("key") && text.contains("claude-opus-9"),
        "{text}"
    );
    // Another day.
    let old = text.replace("\"asked\":", "\"asked\":1,\"then\":");
    fs::write(kept.path(), old).unwrap();
    let server = HttpFake::start_strict([list(&CLAUDE[..1]), text_reply("Three.")]);
    let mut command = asking(&server, dir.path());
    answer(command.env("XDG_CACHE_HOME", dir.path().join("elsewhere")));
    assert_eq!(requests(&server)[1], "/v1/messages claude-opus-9-20280101");
}

#[test]
fn whoever_names_a_model_pays_for_no_other_request() {
    let dir = tempdir().unwrap();
    let sonnet = ("ANTHROPIC_DEFAULT_SONNET_MODEL", "glm-9");
    let cases = [
        // (chosen, a variable, sent)
        ("m-1", ("UNRELATED", "x"), "m-1"),
        ("sonnet", sonnet, "glm-9"),
        ("default", sonnet, "glm-9"),
        ("opus[1m]", ("ANTHROPIC_DEFAULT_OPUS_MODEL", "big"), "big"),
        ("", ("ANTHROPIC_MODEL", "m-2"), "m-2"),
    ];
    for (name, (variable, value), sent) in cases {
        let server = HttpFake::start_strict([text_reply("Hello.")]);
        let mut command = asking(&server, dir.path());
        command.args(["--model", name]).env(variable, value);
        let ran = answer(&mut command);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        assert_eq!(
            requests(&server),
            [format!("/v1/messages {sent}")],
            "{name}"
        );
        let betas = server.requests()[0].head.clone();
        let betas = header(&betas, "anthropic-beta").map(str::to_owned);
        let long = name.contains("[1m]").then_some("context-1m-2025-08-07");
        assert_eq!(betas.as_deref(), long, "{name}");
    }
}

#[test]
fn the_settings_come_before_the_variable_and_the_flag_before_both() {
    let dir = tempdir().unwrap();
    fs::create_dir_all(dir.path().join(".claude")).unwrap();
    fs::write(
        dir.path().join(".claude/settings.json"),
        r#"{"model": "of-settings"}"#,
    )
    .unwrap();
    for (flags, sent) in [
        (&[][..], "of-settings"),
        (&["--model", "of-flag"], "of-flag"),
    ] {
        let server = HttpFake::start_strict([text_reply("Hello.")]);
        let mut command = asking(&server, dir.path());
        answer(command.args(flags).env("ANTHROPIC_MODEL", "of-variable"));
        assert_eq!(requests(&server), [format!("/v1/messages {sent}")]);
    }
}

#[test]
fn short_names_are_found_in_the_list_and_never_sent() {
    let cases: [(&[&str], &str); 5] = [
        (&["--model", "opus"], "claude-opus-9-20280101"),
        (&["--model", "Haiku"], "claude-haiku-8-5-20270701"),
        (&["--model", "sonnet[1m]"], "claude-sonnet-8-5-20270601"),
        (&["--model", "opusplan"], "claude-sonnet-8-5-20270601"),
        (
            &["--model", "opusplan", "--permission-mode", "plan"],
            "claude-opus-9-20280101",
        ),
    ];
    for (flags, sent) in cases {
        let dir = tempdir().unwrap();
        let server = HttpFake::start_strict([list(&CLAUDE), text_reply("Hello.")]);
        let ran = answer(asking(&server, dir.path()).args(flags));
        assert_eq!(ran.code, 0, "{flags:?}: {}", ran.stderr);
        let expected = ["/v1/models".to_owned(), format!("/v1/messages {sent}")];
        assert_eq!(requests(&server), expected, "{flags:?}");
    }
}

#[test]
fn a_switch_and_a_subagent_find_their_short_names_too() {
    let dir = tempdir().unwrap();
    let agent = json!({"prompt": "go", "description": "d", "subagent_type": "general-purpose", "model": "haiku"});
    let server = HttpFake::start_strict([
        text_reply("One."),
        list(&CLAUDE),
        tool_reply("Agent", agent),
        text_reply("Done."),
        text_reply("Two."),
    ]);
    let mut command = haft(dir.path());
    command
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .args(["--model", "m-1"]);
    let mut talk = Talk::new(&mut command);
    talk.user("hi");
    talk.hear_until("result");
    talk.request("a", &json!({"subtype": "set_model", "model": "opus"}));
    talk.user("more");
    talk.hear_until("result");
    assert_eq!(talk.end().1, 0);
    assert_eq!(
        requests(&server),
        [
            "/v1/messages m-1",
            "/v1/models",
            "/v1/messages claude-opus-9-20280101",
            "/v1/messages claude-haiku-8-5-20270701",
            "/v1/messages claude-opus-9-20280101",
        ]
    );
}

#[test]
fn where_nothing_can_be_chosen_it_says_what_there_is() {
    let dir = tempdir().unwrap();
    let said_of = |reply: HttpReply, flags: &[&str]| {
        let dir = tempdir().unwrap();
        let server = HttpFake::start_strict([reply]);
        let mut command = haft(dir.path());
        command.args(["-p", "hi", "--base-url", &format!("{}/v1", server.url)]);
        let ran = answer(command.args(flags));
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
        ran.stderr
            .replace(server.url.trim_start_matches("http://"), "SERVER")
    };
    let mut told = String::new();
    told += &said_of(list(&["qwen3-coder", "llama-4"]), &[]);
    told += &said_of(list(&["qwen3-coder", "llama-4"]), &["--model", "opus"]);
    told += &said_of(list(&[]), &[]);
    told += &said_of(HttpReply::new(404, "text/plain", "no such page"), &[]);
    told += &answer(haft(dir.path()).args(["-p", "hi"])).stderr;
    insta::assert_snapshot!(told);
}

/// A reply of an OpenAI-compatible server that says it has read so much.
fn chat(text: &str, read: u64) -> HttpReply {
    let choices = json!([{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]);
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices,
        "usage": {"prompt_tokens": read, "completion_tokens": 4, "total_tokens": read + 4}});
    HttpReply::events(format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

fn json_reply(value: &Value) -> HttpReply {
    HttpReply::new(200, "application/json", value.to_string())
}

#[test]
fn a_server_with_one_model_is_asked_what_it_can_read() {
    let dir = tempdir().unwrap();
    let props = json!({"default_generation_settings": {"n_ctx": 16_384}, "total_slots": 1});
    let server = HttpFake::start_strict([
        json_reply(
            &json!({"data": [{"id": "local.gguf", "object": "model", "meta": {"n_ctx_train": 131_072}}]}),
        ),
        json_reply(&props),
        chat("Hello.", 9),
    ]);
    let mut command = haft(dir.path());
    command.args(["-p", "hi", "--output-format", "stream-json", "--base-url"]);
    let ran = answer(command.arg(format!("{}/v1", server.url)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        requests(&server),
        ["/v1/models", "/props", "/v1/chat/completions local.gguf"]
    );
    let result = lines(&ran).pop().unwrap();
    let usage = &result["modelUsage"]["local.gguf"];
    assert_eq!(usage["contextWindow"], 16_384, "{result}");
    // A reply may not fill all of it.
    assert_eq!(server.bodies()[2]["max_tokens"], 4_096);
}

#[tokio::test]
async fn a_named_model_of_a_server_is_measured_once_that_matters() {
    let dir = tempdir().unwrap();
    let listed = json!({"data": [{"id": "m", "max_model_len": 20_000}, {"id": "n"}]});
    let server = HttpFake::start([
        chat("One.", 9),
        chat("Two.", 5_000),
        json_reply(&listed),
        chat("Three.", 5_000),
    ]);
    let mut command = haft(dir.path());
    command.args(["--model", "m", "--base-url"]);
    let mut talk = Talk::new(command.arg(format!("{}/v1", server.url)));
    for text in ["one", "two"] {
        talk.user(text);
        talk.hear_until("result");
    }
    haft_testkit::until("the list is asked for", || server.requests().len() == 3).await;
    haft_testkit::until("what it can read is known", || {
        talk.user("more");
        talk.hear_until("result");
        talk.request("u", &json!({"subtype": "get_context_usage"}));
        let usage = talk.hear_until("control_response").pop().unwrap();
        usage["response"]["response"]["maxTokens"] == 20_000
    })
    .await;
    assert_eq!(talk.end().1, 0);
    assert_eq!(requests(&server)[2], "/v1/models");
}

#[test]
fn the_settings_of_the_user_say_where_to_ask_and_those_of_a_project_do_not() {
    let dir = tempdir().unwrap();
    let home = dir.path();
    let cwd = home.join("project");
    for folder in [home.join(".claude"), cwd.join(".claude")] {
        fs::create_dir_all(folder).unwrap();
    }
    let server = HttpFake::start_strict([text_reply("Hello."), text_reply("Again.")]);
    let elsewhere = HttpFake::start_strict([text_reply("Got you.")]);
    let env = |url: &str| json!({"env": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "of-settings", "ANTHROPIC_MODEL": "m-1"}});
    fs::write(
        cwd.join(".claude/settings.json"),
        env(&elsewhere.url).to_string(),
    )
    .unwrap();
    fs::write(
        home.join(".claude/settings.json"),
        env(&server.url).to_string(),
    )
    .unwrap();
    let mut command = haft(&cwd);
    command
        .env("HOME", home)
        // What the settings say comes first.
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .args(["-p", "hi", "--setting-sources", "user,project"]);
    let ran = answer(&mut command);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Hello.\n"),
        "{}",
        ran.stderr
    );
    let asked = &server.requests()[0];
    assert_eq!(
        header(&asked.head, "authorization"),
        Some("Bearer of-settings")
    );
    // The flag comes before the files.
    fs::remove_file(home.join(".claude/settings.json")).unwrap();
    let mut command = haft(&cwd);
    command.env("HOME", home).args(["-p", "hi", "--settings"]);
    let ran = answer(command.arg(env(&server.url).to_string()));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Again.\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn the_settings_of_the_user_name_a_proxy() {
    let dir = tempdir().unwrap();
    let proxy = HttpFake::start_strict([text_reply("Hello.")]);
    let env =
        json!({"env": {"HTTP_PROXY": proxy.url, "ANTHROPIC_BASE_URL": "http://models.example"}});
    let mut command = haft(dir.path());
    command.env("ANTHROPIC_API_KEY", "key").args([
        "-p",
        "hi",
        "--model",
        "m-1",
        "--settings",
        &env.to_string(),
    ]);
    let ran = answer(&mut command);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Hello.\n"),
        "{}",
        ran.stderr
    );
    let head = proxy.requests()[0].head.clone();
    assert!(
        head.starts_with("POST http://models.example/v1/messages "),
        "{head}"
    );
}

#[test]
fn a_budget_works_by_the_list_and_a_model_without_a_price_goes_on() {
    let dir = tempdir().unwrap();
    let budget = ["--max-budget-usd", "0.0001"];
    let server = HttpFake::start_strict([text_reply("Hello.")]);
    let mut command = asking(&server, dir.path());
    let ran = answer(
        command
            .args(budget)
            .args(["--model", "claude-sonnet-4-5-20250929"]),
    );
    let result = lines(&ran).pop().unwrap();
    assert_eq!(ran.stderr, "");
    let cost = result["total_cost_usd"].as_f64().unwrap();
    // 12 tokens at 3 USD, 40 at 15 USD, for a million.
    assert!((cost - 0.000_636).abs() < 1e-9, "{cost}");
    let server = HttpFake::start_strict([text_reply("Hello.")]);
    let mut command = asking(&server, dir.path());
    let ran = answer(command.args(budget).args(["--model", "m-1"]));
    let result = lines(&ran).pop().unwrap();
    assert_eq!((ran.code, &result["result"]), (0, &json!("Hello.")));
    assert_eq!(result["usage"]["output_tokens"], 40);
    insta::assert_snapshot!(ran.stderr, @"haft: the budget in USD does not cover m-1: its price is not known. Its tokens are counted. Add its price to modelPrices in the settings");
}

#[test]
fn models_are_listed_and_a_choice_is_saved() {
    let dir = tempdir().unwrap();
    fs::create_dir_all(dir.path().join(".claude")).unwrap();
    let settings = dir.path().join(".claude/settings.json");
    fs::write(&settings, "{\n  // mine\n  \"theme\": \"dark\"\n}\n").unwrap();
    let ids = ["claude-opus-4-5", "claude-sonnet-4-5", "claude-odd-1"];
    let server = HttpFake::start([list(&ids)]);
    let models = |args: &[&str]| {
        let mut command = haft(dir.path());
        command
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("ANTHROPIC_API_KEY", "key")
            .arg("models");
        let ran = run(command.args(args), b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        let place = server.url.trim_start_matches("http://");
        let said = ran.stdout.replace(place, "SERVER");
        said.replace(&dir.path().display().to_string(), "HOME")
    };
    let before = models(&[]);
    let saved = models(&["use", "opus"]);
    let text = fs::read_to_string(&settings).unwrap();
    let after = models(&[]);
    insta::assert_snapshot!(format!("{before}\n$ use opus\n{saved}\n{text}\n{after}"));
    let listed: Value = serde_json::from_str(&models(&["--json"])).unwrap();
    assert_eq!(listed["default"], "claude-opus-4-5");
    assert_eq!(listed["models"][1]["window"], 300_000);
}
