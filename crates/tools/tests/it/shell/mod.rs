//! Commands, run for real.
//!
//! - `calls`: vectors 18 to 25 of tools.md §27, and what else a call promises
//! - `output`: what becomes of output of any kind and size
//! - `background`: tasks
//! - `monitor`: lines that are read as they come
//! - `repl`: interpreters that keep their state
//! - `confined`: what the sandbox keeps a command from, and what can be undone

mod background;
mod calls;
mod confined;
mod limits;
mod monitor;
mod output;
mod repl;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_contract::{
    CallContext, Confinement, Content, ContextPatch, DynTool, ProgressUpdates, Services,
    TaskStatus, ToolError, ToolOutput,
};
use haft_tools::{ShellProgram, ShellService, TaskInfo};
use serde_json::{Value, json};

use crate::session::{Session, tool};

/// A session with commands, whose directory they may change.
pub(crate) struct Terminal {
    pub(crate) session: Session,
    cwd: Mutex<PathBuf>,
    env: BTreeMap<String, String>,
    pub(crate) confinement: Confinement,
}

/// How a call ended, as the model reads it.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) failed: bool,
    pub(crate) structured: Value,
    pub(crate) content: Vec<Content>,
}

impl Heard {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(!self.failed, "{}", self.text);
        self.text
    }

    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert!(self.failed, "{}", self.text);
        self.text
    }

    #[track_caller]
    pub(crate) fn task(&self) -> String {
        let id = self.structured["backgroundTaskId"].as_str();
        id.unwrap_or_else(|| panic!("a task: {self:?}")).to_owned()
    }
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self::with_env([])
    }

    pub(crate) fn with_env<'a>(env: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut session = Session::new([("file.txt", "one\ntwo\n"), ("sub/a.txt", "a\n")]);
        let program = ShellProgram::new(env!("CARGO_BIN_EXE_haft-tools-child").into());
        let services = Services::none().with(Arc::new(program));
        session.services =
            haft_tools::with_services(services, session.folder.root(), session.project.root());
        Self {
            cwd: Mutex::new(session.project.root().to_path_buf()),
            session,
            confinement: Confinement::none(),
            env: env
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.session.project.root()
    }

    pub(crate) fn shell(&self) -> Arc<ShellService> {
        self.session.services.get().unwrap()
    }

    pub(crate) fn context(&self) -> (CallContext, ProgressUpdates) {
        let (mut cx, updates) = CallContext::for_test(self.root());
        cx.services = self.session.services.clone();
        cx.cwd = Arc::from(self.cwd.lock().unwrap().as_path());
        cx.permissions.confinement = Confinement {
            env: Arc::new(self.env.clone()),
            ..self.confinement.clone()
        };
        (cx, updates)
    }

    pub(crate) async fn output(
        &self,
        tool: Arc<dyn DynTool>,
        mut input: Value,
        cx: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        tool.backfill(&mut input);
        let bound = tool.bind(input).expect("a good input");
        bound.check(cx).await?;
        let output = bound.call(cx).await?;
        for patch in &output.patches {
            assert!(bound.effects().patches, "an unannounced patch");
            if let ContextPatch::SetCwd { path } = patch {
                self.cwd.lock().unwrap().clone_from(path);
            }
        }
        Ok(output)
    }

    pub(crate) async fn call_in(&self, name: &str, input: Value, cx: &CallContext) -> Heard {
        match self.output(tool(name), input, cx).await {
            Ok(output) => heard(output),
            Err(error) => Heard {
                text: error.to_string(),
                failed: true,
                structured: Value::Null,
                content: Vec::new(),
            },
        }
    }

    pub(crate) async fn call(&self, name: &str, input: Value) -> Heard {
        self.call_in(name, input, &self.context().0).await
    }

    pub(crate) async fn bash(&self, command: &str) -> Heard {
        self.call("Bash", json!({ "command": command })).await
    }

    /// Waits until a task is over.
    pub(crate) async fn over(&self, id: &str) -> TaskInfo {
        for _ in 0..600 {
            let tasks = self.shell().tasks().list();
            let task = tasks.into_iter().find(|task| task.id == id).unwrap();
            if task.status != TaskStatus::Running {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{id} does not end");
    }

    /// The text with what differs from run to run made the same.
    pub(crate) fn masked(&self, text: &str) -> String {
        let text = text.replace(self.session.folder.root().to_str().unwrap(), "[session]");
        self.session.masked(&text)
    }
}

fn heard(output: ToolOutput) -> Heard {
    let texts: Vec<&str> = output.content.iter().filter_map(Content::as_text).collect();
    Heard {
        text: texts.join("\n"),
        failed: output.failed,
        structured: output.structured.unwrap_or_default(),
        content: output.content,
    }
}
