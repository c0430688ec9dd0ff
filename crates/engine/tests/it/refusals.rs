//! What a model reads of calls that may not run: why, and what to do about it.

use haft_contract::{
    CallContext, Effects, PermissionMode, RuleMatch, Tool, ToolError, ToolOutput, ToolPermission,
    ToolProfile,
};
use haft_engine::{
    Engine, SessionContext, ToolRegistry,
    permissions::{List, RuleSet, RuleSource, SettingsScope},
};
use haft_testkit::{TempProject, toy_tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rig::tool_use;

/// Runs a command line.
#[derive(Debug, Deserialize, JsonSchema)]
struct Line {
    /// Which.
    #[serde(rename = "command")]
    _command: String,
}

/// Runs nothing.
struct Bash;

impl Tool for Bash {
    type Input = Line;
    const NAME: &'static str = "Bash";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: RuleMatch::Command("command"),
            ..ToolProfile::default()
        }
    }

    async fn call(&self, _: &Line, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("ran"))
    }
}

/// Fetches a page.
#[derive(Debug, Deserialize, JsonSchema)]
struct Page {
    /// Which.
    #[serde(rename = "url")]
    _url: String,
}

/// Fetches nothing.
struct WebFetch;

impl Tool for WebFetch {
    type Input = Page;
    const NAME: &'static str = "WebFetch";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: RuleMatch::Address("url"),
            ..ToolProfile::default()
        }
    }

    async fn call(&self, _: &Page, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("fetched"))
    }
}

/// Does what may never be done.
#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

struct Never;

impl Tool for Never {
    type Input = Nothing;
    const NAME: &'static str = "Never";

    fn profile(&self) -> ToolProfile {
        ToolProfile::default()
    }

    fn effects(&self, _: &Nothing) -> Effects {
        Effects::NONE
    }

    fn permission(&self, _: &Nothing, _: &CallContext) -> ToolPermission {
        ToolPermission::Deny("it is out of order".to_owned())
    }

    async fn call(&self, _: &Nothing, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

/// Every call with what the model reads of it, where no one can be asked.
async fn told(mode: PermissionMode) -> String {
    let project = TempProject::new([("work/a.txt", "alpha\n"), ("work/.env", "A=1\n")]);
    let mut registry = ToolRegistry::new();
    registry.add(Bash).unwrap();
    registry.add(WebFetch).unwrap();
    registry.add(Never).unwrap();
    for toy in toy_tools::all() {
        registry.add_erased(toy).unwrap();
    }
    let (engine, _) = Engine::builder(registry, project.path("session"))
        .build()
        .await;
    let context = SessionContext::new(project.path("work"))
        .with_mode(mode)
        .with_home(Some(project.path("home")));
    let mut rules = RuleSet::default();
    for (list, text) in [
        (List::Deny, "Bash(rm *)"),
        (List::Deny, "Read(./.env)"),
        (List::Deny, "Boom"),
        (List::Ask, "Bash(git push *)"),
        (List::Ask, "Echo"),
    ] {
        let source = RuleSource::from_scope(SettingsScope::Project);
        rules.add(list, text, source, &context.bases()).unwrap();
    }
    let mut scheduler = engine.scheduler(context.with_rules(rules));
    let bash = |command: &str| ("Bash", json!({ "command": command }));
    let calls: Vec<(&str, Value)> = vec![
        bash("ls && sudo rm -rf x"),
        bash("cat .env"),
        bash("git push origin main"),
        bash("npm test && make"),
        bash("python3 x.py"),
        bash("echo x > ../y"),
        bash("echo x >> .git/config"),
        bash("cat ~/.ssh/id"),
        bash("rm -rf \"$DIR\"/*"),
        bash("rmdir /"),
        bash("cat \"$1\""),
        bash("echo 'unclosed"),
        bash("$TOOL --version"),
        ("Peek", json!({"path": ".env"})),
        ("Peek", json!({"path": "/etc/hostname"})),
        ("Peek", json!({"path": "/dev/mem"})),
        ("Append", json!({"path": "a.txt", "line": "x"})),
        ("Append", json!({"path": ".vscode/tasks.json", "line": "x"})),
        ("Boom", json!({"place": "nowhere"})),
        ("Echo", json!({"text": "x"})),
        ("Never", json!({})),
        ("WebFetch", json!({"url": "https://example.com/a"})),
        ("WebFetch", json!({"url": "https://me@example.com"})),
    ];
    let mut told = String::new();
    for (name, input) in calls {
        let mut turn = scheduler.start_batch().await;
        turn.push(tool_use(name, input.clone()));
        let finished = turn.next().await.unwrap();
        assert!(finished.is_error, "{name} {input}");
        let text = finished.text();
        let text = text.replace(&project.root().display().to_string(), "");
        told += &format!("{name} {input}\n{text}\n\n");
    }
    told
}

#[tokio::test]
async fn with_nobody_to_ask() {
    insta::assert_snapshot!(told(PermissionMode::Default).await);
}

#[tokio::test]
async fn in_a_mode_that_never_asks() {
    insta::assert_snapshot!(told(PermissionMode::DontAsk).await);
}
