//! A server that does what it is told, and a session around it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_contract::{
    BoxFuture, CallContext, CancellationToken, DynTool, ProgressUpdates, ToolError, ToolOutput,
};
use haft_mcp::client::{
    ClientHost, ClientOptions, ElicitationAnswer, ServerElicitation, ServerLaunch, ServerScope,
    Servers, entries,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What was said to people, and what they answer.
#[derive(Default)]
pub(crate) struct Person {
    pub(crate) warnings: Mutex<Vec<String>>,
    pub(crate) notices: Mutex<Vec<String>>,
}

impl ClientHost for Person {
    fn warn(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }

    fn notice(&self, text: &str) {
        self.notices.lock().unwrap().push(text.to_owned());
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![PathBuf::from("/work space")]
    }

    fn can_elicit(&self) -> bool {
        true
    }

    fn elicit(&self, asked: ServerElicitation) -> BoxFuture<'_, ElicitationAnswer> {
        assert_eq!(asked.message, "Who?");
        Box::pin(async { ElicitationAnswer::Accept(json!({"name": "Ada"})) })
    }
}

pub(crate) struct Setting {
    pub(crate) dir: TempDir,
    pub(crate) person: Arc<Person>,
    pub(crate) servers: Arc<Servers>,
}

/// Can servers of ours run, which are in Python?
pub(crate) fn has_python() -> bool {
    let found = haft_testkit::command("python3").arg("--version").output();
    let has = found.is_ok_and(|ran| ran.status.success());
    if !has {
        haft_testkit::skip("python3 is not installed");
    }
    has
}

/// The entry of a server that runs in these modes.
pub(crate) fn entry(modes: &[&str]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let mut args = vec![script];
    args.extend(modes);
    json!({"command": "python3", "args": args, "env": {"OWN": "${OWN:-mine}"}})
}

impl Setting {
    /// Servers by name, all begun.
    pub(crate) fn new(named: &Value) -> Self {
        Self::with(named, |_| {})
    }

    pub(crate) fn with(named: &Value, change: impl FnOnce(&mut ClientOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut options = ClientOptions {
            connect: Duration::from_secs(60),
            folder: dir.path().join("kept"),
            cache: Some(dir.path().join("cache")),
            launch: ServerLaunch {
                cwd: dir.path().to_path_buf(),
                ..ServerLaunch::default()
            },
            ..ClientOptions::default()
        };
        change(&mut options);
        let servers = Arc::new(Servers::default());
        servers.add(entries(named.as_object().unwrap(), ServerScope::Given));
        let person = Arc::new(Person::default());
        servers.start(options, Arc::clone(&person) as _, None);
        Self {
            dir,
            person,
            servers,
        }
    }

    /// Waits until every server is connected or has failed.
    pub(crate) async fn settled(self) -> Self {
        self.servers
            .wait(
                |_| true,
                Duration::from_secs(120),
                &CancellationToken::new(),
            )
            .await;
        self
    }

    pub(crate) fn status(&self, name: &str) -> (String, Option<String>) {
        let list = self.servers.list();
        let server = list
            .servers
            .iter()
            .find(|server| server.name == name)
            .unwrap();
        (server.status.to_owned(), server.error.clone())
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn DynTool> {
        let (tools, _) = self.servers.tools();
        let names: Vec<String> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let found = tools.into_iter().find(|tool| tool.spec().name == name);
        found.unwrap_or_else(|| panic!("{name} is not among {names:?}"))
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        self.call_in(tool, input).await.0
    }

    pub(crate) async fn call_in(
        &self,
        tool: &str,
        input: Value,
    ) -> (Result<ToolOutput, ToolError>, ProgressUpdates) {
        let (cx, updates) = CallContext::for_test(self.dir.path());
        let call = self.tool(tool).bind(input).unwrap();
        let output = tokio::time::timeout(Duration::from_secs(120), call.call(&cx)).await;
        (output.expect("a call takes no two minutes"), updates)
    }

    /// What `act` of the server `s` says.
    pub(crate) async fn act(&self, what: &str) -> String {
        match self.call("mcp__s__act", json!({"what": what})).await {
            Ok(output) => text(&output),
            Err(error) => format!("error: {error}"),
        }
    }
}

pub(crate) fn text(output: &ToolOutput) -> String {
    let texts = output
        .content
        .iter()
        .filter_map(|content| content.as_text());
    texts.collect::<Vec<_>>().join("\n")
}
