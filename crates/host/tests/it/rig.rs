//! A session with a scripted model, in a project and a home of its own.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use haft_contract::CancellationToken;
use haft_host::{
    Environment, SessionConfig, SessionEvent, SessionParts,
    models::{EventStream, Model, ModelRequest, ScriptedModel, scripted::ModelScript},
};
use haft_testkit::TempProject;
use serde_json::{Value, json};
use tokio::time::timeout;

/// No test waits longer than this for anything.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What came out, in its order.
#[derive(Clone, Default)]
pub(crate) struct Recorded(Arc<Mutex<Vec<SessionEvent>>>);

impl Recorded {
    pub(crate) fn parts(&self) -> SessionParts {
        let to = self.clone();
        SessionParts::new(move |event: &SessionEvent| to.push(event))
    }

    pub(crate) fn push(&self, event: &SessionEvent) {
        self.0.lock().unwrap().push(event.clone());
    }

    pub(crate) fn all(&self) -> Vec<SessionEvent> {
        self.0.lock().unwrap().clone()
    }

    /// What the main agent's calls came to.
    pub(crate) fn results(&self) -> Vec<String> {
        let all = self.all();
        let results = all.iter().filter_map(SessionEvent::call_result);
        results.map(|result| result.text()).collect()
    }

    /// The answers to messages.
    pub(crate) fn answers(&self) -> Vec<String> {
        let all = self.all();
        let answers = all.iter().filter_map(|event| match event {
            SessionEvent::Result(result) => Some(result.run.text.clone()),
            _ => None,
        });
        answers.collect()
    }
}

/// A session in this project, whose home is `home` in it, and which knows no variable of the process.
pub(crate) fn config(project: &TempProject) -> SessionConfig {
    let mut config = SessionConfig::new(project.path("work"));
    std::fs::create_dir_all(&config.cwd).unwrap();
    let home = project.path("home");
    std::fs::create_dir_all(&home).unwrap();
    config.environment = Environment::from_variables([("HOME", home.to_str().unwrap())]);
    config.program = Some(Path::new(env!("CARGO_BIN_EXE_haft-host-child")).into());
    config
}

pub(crate) fn scripted(turns: Value) -> ScriptedModel {
    let script: ModelScript = serde_json::from_value(json!({"turns": turns})).unwrap();
    ScriptedModel::new(script)
}

pub(crate) fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": name, "input": input})
}

pub(crate) fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, work).await.expect("it takes too long")
}

/// A model whose every reply waits until the others of the same barrier are asked too.
#[derive(Debug)]
pub(crate) struct Together {
    pub(crate) model: ScriptedModel,
    pub(crate) barrier: Arc<tokio::sync::Barrier>,
}

impl Model for Together {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let barrier = Arc::clone(&self.barrier);
        let replies = self.model.stream(request, cancel);
        Box::pin(
            stream::once(async move {
                barrier.wait().await;
                replies
            })
            .flatten(),
        )
    }
}
