//! The tools of sessions for MCP clients: each client has a session of its own, with its own directory, ledger
//! and undo journal, set up like any other.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{BoxFuture, CallId};
use haft_mcp::server::{
    LogLevel, McpService, OpenCalls, OpenSession, PoolService, ServerDescription, SessionNotifier,
};
use serde_json::json;

use crate::{
    EventSink, SessionConfig, SessionEvent, SessionParts, ToolTelemetry, client_roots::narrowed,
    compose::open_served_tools, elicitation::ElicitedQuestions, served_prompts::ServedPrompts,
};

/// What clients read about how to use it.
const INSTRUCTIONS: &str = "Tools that work on the files and with the commands of one project. Paths may be \
    relative to its directory. Read a file before you edit it. What is not permitted is refused with the rule \
    that would allow it; changes can be undone with Undo.";

/// Opens a session of tools for each client.
pub struct ToolServer {
    config: SessionConfig,
    events: Arc<dyn EventSink>,
    telemetry: ToolTelemetry,
}

impl ToolServer {
    /// Sessions of this configuration; `events` learns what a person must know of them.
    pub fn new(mut config: SessionConfig, events: impl EventSink + 'static) -> Self {
        // A client has its own ways to find tools, and one connection for all its conversations.
        config.for_programs = true;
        Self {
            config,
            events: Arc::new(events),
            telemetry: ToolTelemetry::default(),
        }
    }

    /// What its sessions send; to be closed when they are over.
    pub fn telemetry(&self) -> ToolTelemetry {
        self.telemetry.clone()
    }
}

impl OpenSession for ToolServer {
    fn open(
        &self,
        notifier: SessionNotifier,
    ) -> BoxFuture<'_, Result<Arc<dyn McpService>, String>> {
        Box::pin(async move {
            let calls = OpenCalls::default();
            let (progress, updates) = haft_contract::progress::channel(CallId::new());
            let (person, tells) = (Arc::clone(&self.events), notifier.clone());
            let parts = SessionParts::new(move |event: &SessionEvent| {
                if let SessionEvent::Warning(text) = event {
                    tells.log(LogLevel::Warning, "haft", json!(text));
                }
                person.on_event(event);
            });
            let parts = parts
                .questions(ElicitedQuestions::new(calls.clone()))
                .progress(progress)
                .telemetry(self.telemetry.clone());
            let opened = open_served_tools(&self.config, parts).await;
            let (haft, book) = opened.map_err(|error| error.to_string())?;
            let description = ServerDescription {
                name: "haft".to_owned(),
                title: "haft".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                instructions: Some(INSTRUCTIONS.to_owned()),
                capabilities: json!({"tools": {}, "resources": {}, "logging": {}}),
            };
            let scheduler = haft.into_scheduler();
            let permitted = scheduler.context().directories;
            let nested = scheduler.aside();
            let mut service = PoolService::new(scheduler, updates, calls, description).with_roots(
                Box::new(move |roots| work_in(&permitted, &roots, &notifier)),
            );
            if let Some(book) = book {
                let prompts = ServedPrompts {
                    book,
                    calls: nested,
                };
                service = service.with_prompts(Box::new(prompts));
            }
            Ok(Arc::new(service) as Arc<dyn McpService>)
        })
    }
}

/// The directories to work in when a client works in these. The client is told what does not count.
fn work_in(permitted: &[PathBuf], roots: &[PathBuf], notifier: &SessionNotifier) -> Vec<PathBuf> {
    let found = narrowed(permitted, roots);
    let shown = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| path.display().to_string());
        paths.collect::<Vec<_>>().join(", ")
    };
    if !found.refused.is_empty() {
        let text = format!(
            "not worked in, because it is outside of the directories that haft was started with: {}",
            shown(&found.refused)
        );
        notifier.log(LogLevel::Warning, "haft", json!(text));
    }
    match found.directories.is_empty() {
        // A client whose roots are all elsewhere, or that has none any more, has what is permitted.
        true => permitted.to_vec(),
        false => found.directories,
    }
}
