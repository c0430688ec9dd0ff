//! The front end of `haft -p`: turns session events into output messages.

use std::sync::Arc;

use haft::{BoxFuture, engine::hooks::HookEventSink};
use haft_agent::AgentEventSink;
use haft_host::{EventSink, ServerLink, SessionActivity, SessionEvent};
use haft_protocol::{
    McpMessageReply, McpMessageRequest, SessionMessage, SessionRequest, TranscriptMirror,
};
use serde_json::Value;

use super::{channel::ControlChannel, messages::InitFacts, output::HeadlessOutput, tasks};
use crate::session;

impl EventSink for HeadlessOutput {
    fn on_event(&self, event: &SessionEvent) {
        match event {
            SessionEvent::Warning(_) | SessionEvent::RulesKept { .. } => session::warn(event),
            SessionEvent::Notice { level, text } => self.put_notice(level.name(), text),
            SessionEvent::Notification { text, .. } => self.put_notification(text),
            SessionEvent::Ready(facts) => {
                self.set_session_facts(facts.id, InitFacts::from_session(facts))
            }
            SessionEvent::Reset(next) => self.reset_conversation(*next),
            SessionEvent::Servers(servers) => self.has_servers(servers.clone()),
            SessionEvent::Activity(SessionActivity::Running) => self.put_state("running"),
            SessionEvent::Activity(SessionActivity::Idle) => self.put_state("idle"),
            SessionEvent::Agent(event) => {
                if let Some(person) = self.reporter() {
                    person.on_event(event);
                }
                AgentEventSink::on_event(self, event);
            }
            SessionEvent::Task(event) => {
                for message in tasks::messages(event) {
                    self.put(message);
                }
            }
            SessionEvent::Hook(news) => HookEventSink::on_event(self, news),
            SessionEvent::TranscriptLine { path, line } => {
                let entry: Value = serde_json::from_str(line).unwrap_or_default();
                self.put_control(&SessionMessage::TranscriptMirror(TranscriptMirror {
                    file_path: path.to_string_lossy(),
                    entries: vec![entry],
                }));
            }
            SessionEvent::Scheduled { prompt, uuid } => self.put_scheduled(prompt, *uuid),
            SessionEvent::Continues => self.mark_continued(),
            SessionEvent::Result(result) => {
                self.put_result(result);
            }
            _ => {}
        }
    }
}

/// The MCP servers that run in the SDK client. Each message is sent in a control request.
pub(super) struct ProgramServers(pub(super) Arc<ControlChannel>);

impl ServerLink for ProgramServers {
    fn send<'a>(&'a self, server: &'a str, message: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let reply = self.0.ask(envelope(server, message)).await?;
            let answer = McpMessageReply::from(reply).mcp_response;
            let answer = answer.ok_or("the answer has no `mcp_response`")?;
            Ok(Value::Object(answer))
        })
    }

    fn notify(&self, server: &str, message: Value) {
        self.0.notify(envelope(server, message));
    }
}

fn envelope(server: &str, message: Value) -> SessionRequest<'_> {
    SessionRequest::McpMessage(McpMessageRequest {
        server_name: server.into(),
        message,
    })
}
