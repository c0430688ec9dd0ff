//! Sessions of tools for MCP clients. Each client has its own session, with its own directory,
//! ledger and undo journal.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{BoxFuture, CallId};
use haft_mcp::server::{
    ActiveCalls, LogLevel, McpService, OpenSession, PoolService, ServerDescription, SessionNotifier,
};
use serde_json::json;

use crate::{
    EventSink, SessionConfig, SessionEvent, SessionParts, ToolTelemetry,
    assemble::open_served_tools, client_roots::narrow_roots, elicitation::ElicitedQuestions,
    served_prompts::ServedPrompts,
};

/// The instructions for clients.
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
    /// Creates a server of sessions with this configuration; `events` receives messages for the
    /// user.
    pub fn new(mut config: SessionConfig, events: impl EventSink + 'static) -> Self {
        // A client has its own tool search, and one connection for all its conversations.
        config.for_programs = true;
        Self {
            config,
            events: Arc::new(events),
            telemetry: ToolTelemetry::default(),
        }
    }

    /// Returns the telemetry of the sessions; close it when they have ended.
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
            let calls = ActiveCalls::default();
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
            let nested = scheduler.nested_calls();
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

/// Returns the working directories for a client with these roots. The client is notified of roots
/// that are ignored.
fn work_in(permitted: &[PathBuf], roots: &[PathBuf], notifier: &SessionNotifier) -> Vec<PathBuf> {
    let found = narrow_roots(permitted, roots);
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
        // If all roots of the client are refused, or it has no roots, all permitted directories are
        // used.
        true => permitted.to_vec(),
        false => found.directories,
    }
}
