//! Handlers that are no programs of settings files: servers, models, plugins, skills.

use std::sync::{Arc, Mutex};

use haft_contract::{BoxFuture, HttpClient, HttpPost, HttpTextResponse};
use haft_engine::{
    EngineBuilder,
    hook_conditions::read,
    hooks::{HookModelProvider, HookPlugin, Hooks, HttpHookLimits, ModelQuestion},
    permissions::{PatternBases, SettingsScope},
};
use serde_json::{Value, json};

use super::{Rig, decides};

/// A server that answers so, or never, and remembers what it was sent.
struct Server {
    answer: Option<Result<HttpTextResponse, String>>,
    sent: Mutex<Vec<HttpPost>>,
}

impl Server {
    fn new(status: u16, body: impl Into<String>) -> Arc<Self> {
        Self::with(Some(Ok(HttpTextResponse {
            status,
            location: None,
            body: body.into(),
        })))
    }

    fn with(answer: Option<Result<HttpTextResponse, String>>) -> Arc<Self> {
        Arc::new(Self {
            answer,
            sent: Mutex::default(),
        })
    }
}

impl HttpClient for Server {
    fn post(&self, request: HttpPost) -> BoxFuture<'_, Result<HttpTextResponse, String>> {
        self.sent.lock().unwrap().push(request);
        Box::pin(async {
            match &self.answer {
                Some(answer) => answer.clone(),
                None => std::future::pending().await,
            }
        })
    }
}

async fn told(server: &Arc<Server>, limits: HttpHookLimits, hook: Value) -> Rig {
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]});
    let client: Arc<dyn HttpClient> = Arc::<Server>::clone(server);
    let with = |hooks: Hooks| {
        let env = [("TOKEN", "t"), ("OTHER", "o"), ("HIDDEN", "h")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        hooks.with_env(env.into()).with_http(client, limits)
    };
    Rig::with(&[(SettingsScope::User, hooks)], &[], with, |builder| {
        builder
    })
    .await
}

fn http() -> Value {
    json!({"type": "http", "url": "http://127.0.0.1:8080/hook", "timeout": 0.2})
}

#[tokio::test]
async fn v28_v29_a_server_decides_by_what_it_says_and_only_by_that() {
    let deny = decides("deny", "r").to_string();
    // (status, body, runs, notices)
    let cases = [
        (500, deny.as_str(), true, 1),
        (404, "", true, 1),
        (302, "", true, 1),
        (200, "", true, 0),
        (204, " \n", true, 0),
        (200, "plain words", true, 1),
        (200, "[1]", true, 1),
        (200, r#"{"decision": 7}"#, true, 1),
        (200, deny.as_str(), false, 0),
        (201, deny.as_str(), false, 0),
    ];
    for (status, body, runs, notices) in cases {
        let server = Server::new(status, body);
        let mut rig = told(&server, HttpHookLimits::default(), http()).await;
        let finished = rig.bash("touch ran").await;
        assert_eq!(rig.ran("ran"), runs, "{status} {body}");
        assert_eq!(finished.metadata.notices.len(), notices, "{status} {body}");
        if !runs {
            assert_eq!(finished.text(), "PreToolUse:User hook: r");
        }
        let sent = server.sent.lock().unwrap();
        assert_eq!(sent.len(), 1);
        let event: Value = serde_json::from_str(&sent[0].body).unwrap();
        assert_eq!(event["tool_input"]["command"], "touch ran");
        assert_eq!(event["hook_event_name"], "PreToolUse");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_heard_holds_up_only_where_it_guards() {
    for answer in [None, Some(Err("nobody listens there".to_owned()))] {
        let mut rig = told(
            &Server::with(answer.clone()),
            HttpHookLimits::default(),
            http(),
        )
        .await;
        let finished = rig.bash("touch ran").await;
        assert!(rig.ran("ran"));
        assert_eq!(finished.metadata.notices.len(), 1);
        let mut guard = http();
        guard["onFailure"] = "block".into();
        let mut rig = told(&Server::with(answer), HttpHookLimits::default(), guard).await;
        assert!(rig.bash("touch ran").await.is_error && !rig.ran("ran"));
    }
}

#[tokio::test]
async fn only_listed_variables_stand_in_headers_and_only_listed_servers_are_told() {
    let mut hook = http();
    hook["headers"] = json!({"Authorization": "Bearer $TOKEN", "X-All": "${OTHER}|$HIDDEN|$UNSET"});
    hook["allowedEnvVars"] = json!(["TOKEN", "OTHER"]);
    let server = Server::new(200, "");
    let mut rig = told(&server, HttpHookLimits::default(), hook.clone()).await;
    rig.bash("echo 1").await;
    let limits = HttpHookLimits {
        urls: Some(vec!["http://127.0.0.1:*/*".to_owned()]),
        env: Some(vec!["TOKEN".to_owned(), "HIDDEN".to_owned()]),
    };
    let mut rig = told(&server, limits, hook.clone()).await;
    rig.bash("echo 1").await;
    let sent = server.sent.lock().unwrap().clone();
    let value = |at: usize, name: &str| {
        let headers = &sent[at].headers;
        let found = headers.iter().find(|(known, _)| known == name);
        found.unwrap().1.clone()
    };
    assert_eq!(value(0, "Authorization"), "Bearer t");
    assert_eq!(value(0, "X-All"), "o||");
    assert_eq!(value(1, "Authorization"), "Bearer t");
    assert_eq!(value(1, "X-All"), "||");

    let limits = HttpHookLimits {
        urls: Some(vec!["https://hooks.example.org/*".to_owned()]),
        env: None,
    };
    let server = Server::new(200, decides("deny", "r").to_string());
    let mut rig = told(&server, limits, hook).await;
    let finished = rig.bash("echo on").await;
    assert_eq!(finished.text(), "on");
    assert!(server.sent.lock().unwrap().is_empty());
    let notice = &finished.metadata.notices[0];
    assert!(notice.contains("allowedHttpHookUrls"), "{notice}");
}

/// A model that answers so, and remembers what it was asked.
struct Oracle {
    answer: Result<String, String>,
    asked: Mutex<Vec<ModelQuestion>>,
}

impl HookModelProvider for Oracle {
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, String>> {
        self.asked.lock().unwrap().push(question);
        Box::pin(async { self.answer.clone() })
    }
}

async fn asking(event: &str, hook: Value, answer: Result<&str, &str>) -> (Rig, Arc<Oracle>) {
    let hooks = json!({event: [{"matcher": "Bash", "hooks": [hook]}]});
    let oracle = Arc::new(Oracle {
        answer: answer.map(str::to_owned).map_err(str::to_owned),
        asked: Mutex::default(),
    });
    let model: Arc<dyn HookModelProvider> = Arc::<Oracle>::clone(&oracle);
    let with = |hooks: Hooks| hooks.with_model(model);
    let rig = Rig::with(&[(SettingsScope::User, hooks)], &[], with, |builder| {
        builder
    })
    .await;
    (rig, oracle)
}

fn prompt() -> Value {
    json!({"type": "prompt", "prompt": "Is $ARGUMENTS harmless?"})
}

#[tokio::test]
async fn a_model_is_asked_and_its_no_ends_the_run_unless_it_is_to_go_on() {
    let no = r#"{"ok": false, "reason": "it deletes"}"#;
    let (mut rig, oracle) = asking("PreToolUse", prompt(), Ok(no)).await;
    let finished = rig.bash("touch ran").await;
    assert!(!rig.ran("ran"));
    assert_eq!(finished.text(), "PreToolUse:User hook: it deletes");
    assert_eq!(finished.metadata.stop.as_deref(), Some("it deletes"));
    let asked = oracle.asked.lock().unwrap().clone();
    let expected = r#"Is {"session_id":""#;
    assert!(asked[0].prompt.starts_with(expected), "{}", asked[0].prompt);
    assert!(asked[0].prompt.ends_with(r#"} harmless?"#));
    assert!(!asked[0].with_tools && asked[0].model.is_none());

    let mut hook = prompt();
    hook["continueOnBlock"] = true.into();
    hook["model"] = "small".into();
    let (mut rig, oracle) = asking("PreToolUse", hook, Ok(no)).await;
    let finished = rig.bash("touch ran").await;
    assert!(finished.is_error && finished.metadata.stop.is_none() && !rig.ran("ran"));
    let asked = oracle.asked.lock().unwrap().clone();
    assert_eq!(asked[0].model.as_deref(), Some("small"));

    let agent = json!({"type": "agent", "prompt": "Are the tests green?"});
    let (mut rig, oracle) = asking("PreToolUse", agent, Ok(no)).await;
    assert!(rig.bash("touch ran").await.metadata.stop.is_none() && !rig.ran("ran"));
    assert!(oracle.asked.lock().unwrap()[0].with_tools);

    let (mut rig, _) = asking("PostToolUse", prompt(), Ok(no)).await;
    let finished = rig.bash("echo done").await;
    assert_eq!(finished.text(), "done");
    assert_eq!(finished.metadata.stop.as_deref(), Some("it deletes"));

    let (mut rig, _) = asking("PreToolUse", prompt(), Ok(r#"{"ok": true}"#)).await;
    rig.bash("touch ran").await;
    assert!(rig.ran("ran"));
    // Its yes is no permission.
    assert_eq!(rig.asked(), 1);
}

#[tokio::test]
async fn a_model_that_does_not_answer_holds_up_only_where_it_guards() {
    for answer in [Err("overloaded"), Ok("I would say yes"), Ok("{}")] {
        let (mut rig, _) = asking("PreToolUse", prompt(), answer).await;
        assert_eq!(rig.bash("echo on").await.metadata.notices.len(), 1);
        let mut guard = prompt();
        guard["onFailure"] = "block".into();
        let (mut rig, _) = asking("PreToolUse", guard, answer).await;
        assert!(rig.bash("touch ran").await.is_error && !rig.ran("ran"));
    }
}

#[tokio::test]
async fn where_there_is_no_model_and_no_way_to_servers_that_is_said() {
    for hook in [
        prompt(),
        http(),
        json!({"type": "mcp_tool", "server": "s", "tool": "t"}),
    ] {
        let hooks = json!({"PreToolUse": [{"hooks": [hook]}]});
        let mut rig = Rig::new(&[(SettingsScope::User, hooks)], &[]).await;
        let finished = rig.bash("echo on").await;
        assert_eq!(finished.text(), "on");
        assert_eq!(finished.metadata.notices.len(), 1);
    }
}

#[tokio::test]
async fn handlers_of_plugins_and_skills_know_where_they_are_from() {
    let work: std::path::PathBuf = "/".into();
    let bases = PatternBases {
        cwd: work.clone(),
        home: work.clone(),
        slash: work,
    };
    let value = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "echo \"$CLAUDE_PLUGIN_ROOT|$CLAUDE_PLUGIN_DATA|$CLAUDE_PLUGIN_OPTION_API_URL\" >> told"},
        {"type": "command", "command": "sh", "args": ["-c", "echo ${CLAUDE_PLUGIN_ROOT} ${user_config.api-url} >> filled"]},
        {"type": "command", "command": "echo ${user_config.api-url} > never", "onFailure": "block"},
    ]}]});
    let (handlers, _) = read(SettingsScope::User, None, &value, &bases);
    let plugin = Arc::new(HookPlugin {
        name: "p".to_owned(),
        root: "/root".into(),
        data: "/data".into(),
        options: [("api-url".to_owned(), "u".to_owned())].into(),
    });
    let handlers = handlers.into_iter().map(|one| one.with_plugin(&plugin));
    let (first, last): (Vec<_>, Vec<_>) = handlers.partition(|one| !one.fails_closed);
    let mut rig = Rig::with(&[], &[], |hooks| hooks, |builder: EngineBuilder| builder).await;
    rig.scheduler.engine().hooks().add(first);
    rig.bash("echo 1").await;
    assert_eq!(rig.project.read("work/told"), "/root|/data|u\n");
    assert_eq!(rig.project.read("work/filled"), "/root u\n");
    rig.scheduler.engine().hooks().add(last);
    let text = rig.bash("echo 1").await.text();
    assert!(text.contains("user_config") && !rig.ran("never"), "{text}");

    // Only a skill's handler may run once; its copy in another skill is another handler.
    let count = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "echo x >> count", "once": true},
    ]}]});
    let mut rig = Rig::new(&[(SettingsScope::User, count.clone())], &[]).await;
    rig.bash("echo 1").await;
    rig.bash("echo 1").await;
    assert_eq!(rig.project.read("work/count"), "x\nx\n");
    let mut rig = Rig::new(&[], &[]).await;
    for skill in ["a", "b"] {
        let (handlers, _) = read(SettingsScope::User, None, &count, &bases);
        let handlers = handlers.into_iter().map(|one| one.with_skill(skill));
        rig.scheduler.engine().hooks().add(handlers.collect());
    }
    rig.bash("echo 1").await;
    rig.bash("echo 1").await;
    assert_eq!(rig.project.read("work/count"), "x\nx\n");
}

#[test]
fn a_kind_that_an_event_does_not_take_is_left_out() {
    let bases = PatternBases {
        cwd: "/".into(),
        home: "/".into(),
        slash: "/".into(),
    };
    let value = json!({
        "SessionStart": [{"hooks": [http(), {"type": "command", "command": "true"}]}],
        "SessionEnd": [{"hooks": [prompt(), http()]}],
        "Stop": [{"hooks": [{"type": "http"}, {"type": "prompt"}, {"type": "http", "url": "u", "headers": []}]}],
    });
    let (handlers, problems) = read(SettingsScope::User, None, &value, &bases);
    assert_eq!(handlers.len(), 2);
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"));
}
