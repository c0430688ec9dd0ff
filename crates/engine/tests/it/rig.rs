//! An engine over toy tools in a temporary project.

use std::sync::Arc;

use haft_contract::{PermissionMode, Services, Tool, ToolUse};
use haft_engine::{CallResult, Engine, EngineBuilder, Scheduler, SessionContext, ToolRegistry};
use haft_testkit::{TempProject, toy_tools};
use serde_json::Value;

pub(crate) struct Rig {
    pub(crate) project: TempProject,
    pub(crate) scheduler: Scheduler,
}

impl Rig {
    /// Everything is permitted.
    pub(crate) async fn new() -> Self {
        Self::with(PermissionMode::BypassPermissions, |builder| builder).await
    }

    pub(crate) async fn with(
        mode: PermissionMode,
        setup: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Self {
        let project = TempProject::new([("work/a.txt", "alpha\n"), ("work/b.txt", "beta\n")]);
        let mut registry = ToolRegistry::new();
        for toy in toy_tools::all() {
            registry.add_erased(toy).unwrap();
        }
        let builder = Engine::builder(registry, project.path("session"));
        let (engine, unknown) = setup(builder).build().await;
        assert_eq!(unknown, Vec::<String>::new());
        let context = SessionContext::new(project.path("work")).with_mode(mode);
        Self {
            project,
            scheduler: engine.scheduler(context),
        }
    }

    pub(crate) async fn call(&mut self, name: &str, input: Value) -> CallResult {
        let mut turn = self.scheduler.start_batch().await;
        turn.push(tool_use(name, input));
        turn.next().await.unwrap()
    }

    /// What the model reads of one call, with the project's folder taken out.
    pub(crate) async fn answer(&mut self, name: &str, input: Value) -> String {
        let finished = self.call(name, input).await;
        self.plain(&finished)
    }

    pub(crate) fn plain(&self, finished: &CallResult) -> String {
        let text = finished
            .text()
            .replace(&self.project.root().display().to_string(), "PROJECT");
        format!("{}{text}", if finished.is_error { "ERROR " } else { "" })
    }
}

pub(crate) fn tool_use(name: &str, input: Value) -> ToolUse {
    ToolUse {
        id: format!("use-{name}"),
        name: name.to_owned(),
        input,
    }
}

pub(crate) fn services(approver: impl haft_contract::Approver + 'static) -> Services {
    Services::none().with_approver(Arc::new(approver))
}

/// A registry of one tool.
pub(crate) fn only(tool: impl Tool) -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    registry.add(tool).unwrap();
    registry
}
