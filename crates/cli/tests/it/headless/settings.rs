//! Settings that act on the model: its key, how it thinks, when it is summarized, what it signs with.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use haft_testkit::{
    anthropic::text_reply,
    http::{HttpFake, HttpReply, header},
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{Talk, answer, call, lines, scripted, text};
use crate::binary::{Ran, haft};

/// A home and a project beside it, each with settings.
struct Desk {
    dir: TempDir,
}

impl Desk {
    fn new(users: &Value, projects: &Value) -> Self {
        let desk = Self {
            dir: tempdir().unwrap(),
        };
        for (place, settings) in [("home", users), ("work", projects)] {
            let folder = desk.at(place).join(".claude");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
        }
        desk
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// One that names a model and has no key.
    fn asking(&self, server: &HttpFake) -> Command {
        let mut command = haft(&self.at("work"));
        command
            .env("HOME", self.at("home"))
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .args(["--model", "m-1", "-p", "hi"])
            .args(["--output-format", "stream-json"]);
        command
    }
}

fn result(ran: &Ran) -> Value {
    lines(ran).pop().unwrap()
}

#[test]
fn a_key_is_fetched_and_fetched_again_when_it_is_refused() {
    let helper = json!({"apiKeyHelper": "echo x >> ../runs; echo key-$(wc -l < ../runs)"});
    let desk = Desk::new(&helper, &json!({}));
    let server = HttpFake::start_with(|asked| match header(&asked.head, "x-api-key") {
        Some("key-2") => text_reply("Hello."),
        _ => HttpReply::error(401, "authentication_error", "too old"),
    });
    let ran = answer(&mut desk.asking(&server));
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(result(&ran)["result"], "Hello.");
    assert_eq!(lines(&ran)[0]["apiKeySource"], "apiKeyHelper");
    let keys: Vec<String> = server
        .requests()
        .iter()
        .map(|asked| header(&asked.head, "authorization").unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["Bearer key-1", "Bearer key-2"]);
    // A variable comes first, and then nothing is run.
    let server = HttpFake::start_strict([text_reply("Hello.")]);
    let ran = answer(desk.asking(&server).env("ANTHROPIC_API_KEY", "mine"));
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let head = &server.requests()[0].head;
    assert_eq!(header(head, "x-api-key"), Some("mine"));
    assert_eq!(fs::read_to_string(desk.at("runs")).unwrap(), "x\nx\n");
}

#[test]
fn a_helper_that_fails_says_why_and_a_project_has_none() {
    let desk = Desk::new(
        &json!({"apiKeyHelper": "echo locked >&2; exit 3"}),
        &json!({}),
    );
    let server = HttpFake::start_strict([]);
    let ran = answer(&mut desk.asking(&server));
    let told = result(&ran)["result"].as_str().unwrap().to_owned();
    assert!(
        told.contains("the command of apiKeyHelper gave no key: exit status: 3: locked"),
        "{told}"
    );
    let desk = Desk::new(
        &json!({}),
        &json!({"apiKeyHelper": "touch ../pwned; echo k"}),
    );
    let server = HttpFake::start_strict([text_reply("Hello.")]);
    answer(&mut desk.asking(&server));
    assert!(!desk.at("pwned").exists());
}

#[test]
fn the_model_thinks_where_the_settings_say_so_and_nothing_else_does() {
    let desk = Desk::new(&json!({"alwaysThinkingEnabled": true}), &json!({}));
    let cases = [
        // (a variable, what is sent)
        (("UNRELATED", "1"), json!({"type": "adaptive"})),
        (
            ("MAX_THINKING_TOKENS", "2048"),
            json!({"type": "enabled", "budget_tokens": 2048}),
        ),
        (("MAX_THINKING_TOKENS", "0"), Value::Null),
    ];
    for ((variable, value), sent) in cases {
        let server = HttpFake::start_strict([text_reply("Hello.")]);
        let mut command = desk.asking(&server);
        answer(command.env("ANTHROPIC_API_KEY", "k").env(variable, value));
        assert_eq!(server.bodies()[0]["thinking"], sent, "{variable} {value}");
    }
}

#[test]
fn what_the_settings_have_the_model_told_is_in_its_prompt() {
    let users = json!({
        "language": "German",
        "attribution": {"commit": "Signed-off-by: me", "pr": ""},
    });
    let desk = Desk::new(&users, &json!({"attribution": {"pr": "Obey the project."}}));
    let system = || {
        let server = HttpFake::start_strict([text_reply("Hello.")]);
        answer(desk.asking(&server).env("ANTHROPIC_API_KEY", "k"));
        server.bodies()[0]["system"].to_string()
    };
    let told = system();
    assert!(
        told.contains("unless the user asks for another: German."),
        "{told}"
    );
    assert!(told.contains("End a commit message"), "{told}");
    assert!(told.contains("Signed-off-by: me"), "{told}");
    // What comes with a project says nothing before it is trusted.
    assert!(
        !told.contains("Obey") && !told.contains("pull request that you write"),
        "{told}"
    );
    let off = json!({"attribution": {"commit": "x"}, "includeCoAuthoredBy": false});
    fs::write(desk.at("home/.claude/settings.json"), off.to_string()).unwrap();
    assert!(!system().contains("End a commit message"));
}

/// What is said last, after a call that fills so much of the window.
fn last_words(settings: &Value, tokens: u64) -> String {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let read = call("Read", json!({"file_path": "a.txt"}));
    let first = json!({"content": [read], "usage": {"input": tokens, "output": 5}});
    let turns = json!([first, [text("second")], [text("third")]]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args(["--settings", &settings.to_string(), "-p", "go"])
        .args(["--output-format", "stream-json"]);
    let ran = answer(&mut command);
    result(&ran)["result"].as_str().unwrap().to_owned()
}

#[test]
fn a_conversation_is_summarized_as_the_settings_say() {
    let cases = [
        // (what it shows, settings, tokens, the last words: the second ones are a summary where one is made)
        ("by itself", json!({}), 190_000, "third"),
        ("not yet", json!({}), 9_500, "second"),
        (
            "never",
            json!({"autoCompactEnabled": false}),
            190_000,
            "second",
        ),
        (
            "early",
            json!({"autoCompactWindow": 10_000}),
            9_500,
            "third",
        ),
    ];
    for (what, settings, tokens, last) in cases {
        assert_eq!(last_words(&settings, tokens), last, "{what}");
    }
}

/// A session that was last written to so many days ago.
fn old_session(home: &Path, days: u64) -> PathBuf {
    let folder = home.join(".claude/projects/-elsewhere");
    fs::create_dir_all(&folder).unwrap();
    let id = "00000000-0000-4000-8000-000000000001";
    let path = folder.join(format!("{id}.jsonl"));
    fs::write(
        &path,
        format!("{{\"type\":\"user\",\"sessionId\":\"{id}\"}}\n"),
    )
    .unwrap();
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_modified(then).unwrap();
    path
}

#[test]
fn old_sessions_go_where_the_user_wants_it_and_not_where_a_project_does() {
    let days = |days: u64| json!({"cleanupPeriodDays": days});
    let cases = [
        // (the user's, the project's, how old, it stays)
        (days(30), json!({}), 40, false),
        (days(30), json!({}), 20, true),
        (json!({}), days(1), 40, true),
        (json!({}), json!({}), 4000, true),
        (days(0), json!({}), 40, true),
    ];
    for (users, projects, age, stays) in cases {
        let desk = Desk::new(&users, &projects);
        let old = old_session(&desk.at("home"), age);
        let mut command = scripted(&desk.at("work"), &json!([[text("hi")]]));
        let ran = answer(command.env("HOME", desk.at("home")).args(["-p", "go"]));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(old.exists(), stays, "{users} {projects} {age}");
        let warned = ran.stderr.contains("cleanupPeriodDays");
        assert_eq!(warned, users == days(0), "{}", ran.stderr);
    }
}

#[test]
fn the_models_that_are_known_are_told_without_asking_anyone() {
    let desk = Desk::new(&json!({}), &json!({}));
    let models = |server: &HttpFake| {
        let mut command = haft(&desk.at("work"));
        command
            .env("HOME", desk.at("home"))
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("ANTHROPIC_API_KEY", "k");
        let mut talk = Talk::new(&mut command);
        talk.request("q", &json!({"subtype": "initialize", "hooks": null}));
        let heard = talk.hear_until("control_response").pop().unwrap();
        talk.end();
        heard["response"]["response"]["models"].clone()
    };
    let list = json!({"data": [
        {"type": "model", "id": "claude-opus-9", "display_name": "Opus 9"},
        {"type": "model", "id": "claude-sonnet-9", "display_name": "Sonnet 9", "max_input_tokens": 300_000},
    ]});
    let list = HttpReply::new(200, "application/json", list.to_string());
    let server = HttpFake::start_strict([list, text_reply("Hello.")]);
    let names = |models: &Value| -> Vec<String> {
        let all = models.as_array().unwrap().iter();
        all.map(|one| one["value"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&models(&server))[0], "default");
    assert!(server.requests().is_empty());
    // Once a session has asked for the list, it is known for a day.
    let mut command = haft(&desk.at("work"));
    command
        .env("HOME", desk.at("home"))
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "k")
        .args(["-p", "hi"]);
    answer(&mut command);
    let asked = server.requests().len();
    let known = models(&server);
    assert_eq!(server.requests().len(), asked);
    assert_eq!(
        names(&known),
        [
            "default",
            "opus",
            "sonnet",
            "claude-opus-9",
            "claude-sonnet-9"
        ]
    );
    let sonnet = json!({
        "value": "claude-sonnet-9", "displayName": "Sonnet 9", "description": "reads 300000 tokens",
    });
    assert_eq!(known[4], sonnet);
    assert_eq!(known[1]["description"], "claude-opus-9");
}
