//! The tools of sessions for MCP clients: each client has a session of its own, with its own directory, ledger
//! and undo journal, set up like any other.

use std::sync::Arc;

use haft_contract::{BoxFuture, CallId};
use haft_mcp::server::{
    LogLevel, McpService, OpenCalls, OpenSession, PoolService, ServerDescription, SessionNotifier,
};
use serde_json::json;

use crate::{
    EventSink, SessionConfig, SessionEvent, SessionParts, elicitation::ElicitedQuestions,
    open_tools,
};

/// What clients are told of how to use it.
const INSTRUCTIONS: &str = "Tools that work on the files and with the commands of one project. Paths may be \
    relative to its directory. Read a file before you edit it. What is not permitted is refused with the rule \
    that would allow it; changes can be undone with Undo.";

/// Opens a session of tools for each client.
pub struct ToolServer {
    config: SessionConfig,
    events: Arc<dyn EventSink>,
}

impl ToolServer {
    /// Sessions of this configuration; `events` learns what a person must know of them.
    pub fn new(mut config: SessionConfig, events: impl EventSink + 'static) -> Self {
        // A client has its own ways to find tools, and one connection for all its conversations.
        config.for_programs = true;
        Self {
            config,
            events: Arc::new(events),
        }
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
            let person = Arc::clone(&self.events);
            let parts = SessionParts::new(move |event: &SessionEvent| {
                if let SessionEvent::Warning(text) = event {
                    notifier.log(LogLevel::Warning, "haft", json!(text));
                }
                person.on_event(event);
            });
            let parts = parts
                .questions(ElicitedQuestions::new(calls.clone()))
                .progress(progress);
            let haft = open_tools(&self.config, parts).await;
            let haft = haft.map_err(|error| error.to_string())?;
            let description = ServerDescription {
                name: "haft".to_owned(),
                title: "haft".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                instructions: Some(INSTRUCTIONS.to_owned()),
                capabilities: json!({"tools": {}, "resources": {}, "logging": {}}),
            };
            let scheduler = haft.into_scheduler();
            let service = PoolService::new(scheduler, updates, calls, description);
            Ok(Arc::new(service) as Arc<dyn McpService>)
        })
    }
}
