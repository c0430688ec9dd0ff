//! Converts the events of a session to updates for an editor. No other module does this.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use haft_agent::{
    AgentEvent, CompactionTrigger, InjectionSource, NoticeLevel, ReplyBlock, SubagentInfo,
};
use haft_contract::{Content, ProgressUpdate};
use haft_engine::CallResult;
use haft_host::{EventSink, SessionEvent, TodoBoard};
use haft_models::{Block, BlockStart, ModelEvent, Usage};
use serde_json::{Value, json};

use crate::{
    calls, plan,
    sessions::{EditorSession, ModeReport},
};

/// The number of characters at the end of a running command's output that are shown.
const SHOWN_OUTPUT: usize = 4000;
/// The minimum interval between updates of the output.
const PACE: Duration = Duration::from_millis(250);

/// Forwards the events of a session to an editor.
pub(crate) struct UpdateForwarder {
    session: Weak<EditorSession>,
    state: Mutex<UpdateState>,
}

#[derive(Default)]
struct UpdateState {
    /// The number of the current reply, from 1.
    reply: u64,
    /// Calls without a result, by the provider's id.
    calls: HashMap<String, ShownCall>,
    /// The number of occurrences of each call id.
    seen: HashMap<String, u32>,
    board: TodoBoard,
    /// The number of compactions so far.
    compactions: u32,
    has_reported_trust: bool,
}

/// A displayed call without a result.
struct ShownCall {
    id: String,
    /// The end of its output.
    output: String,
    shown: Option<Instant>,
    /// Whether the call was reported as running.
    runs: bool,
    /// Whether the user is being asked about the call.
    is_asked: bool,
    /// Whether the output is displayed as a terminal.
    has_terminal: bool,
}

impl ShownCall {
    /// Returns an update for a call that will not get a result.
    fn failed(self, why: &str) -> Value {
        let mut update = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": self.id,
            "status": "failed",
            "content": [calls::text_content(why)],
        });
        if self.has_terminal {
            update["_meta"] = json!({"terminal_exit": {
                "terminal_id": self.id, "exit_code": null, "signal": null,
            }});
        }
        update
    }
}

impl UpdateForwarder {
    pub(crate) fn new(session: Weak<EditorSession>) -> Self {
        Self {
            session,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, UpdateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the editor's id of a call, given the provider's id.
    pub(crate) fn shown_id(&self, id: &str) -> String {
        let state = self.state();
        state
            .calls
            .get(id)
            .map_or_else(|| id.to_owned(), |call| call.id.clone())
    }

    /// Sets whether the user is being asked about a call. While this is set, `mark_running` does
    /// not report the call as running.
    pub(crate) fn set_asked(&self, id: &str, is_asked: bool) {
        if let Some(call) = self.state().calls.get_mut(id) {
            call.is_asked = is_asked;
        }
    }

    /// Reports a call as running.
    pub(crate) fn mark_running(&self, session: &EditorSession, id: &str) {
        if let Some(update) = self.state().mark_running(id) {
            session.update(update);
        }
    }
}

impl EventSink for UpdateForwarder {
    fn on_event(&self, event: &SessionEvent) {
        let Some(session) = self.session.upgrade() else {
            return;
        };
        match event {
            SessionEvent::Agent(event) => {
                let mut state = self.state();
                state.agent(&session, event);
                let ends_call = matches!(event, AgentEvent::CallFinished { .. });
                drop(state);
                if ends_call {
                    session.report_mode(ModeReport::IfChanged);
                }
            }
            SessionEvent::Warning(text) => session.notice(NoticeLevel::Warning, text),
            SessionEvent::Notice { level, text } => session.notice(*level, text),
            SessionEvent::Notification { text, .. } => session.notice(NoticeLevel::Info, text),
            SessionEvent::RulesKept {
                file,
                problem: Some(problem),
            } => session.notice(
                NoticeLevel::Warning,
                &format!(
                    "{}: the rule could not be written ({problem})",
                    file.display()
                ),
            ),
            SessionEvent::Ready(facts) => {
                let untrusted = facts.untrusted.as_deref();
                if let Some(left_out) = untrusted
                    && !std::mem::replace(&mut self.state().has_reported_trust, true)
                {
                    session.notice(NoticeLevel::Warning, left_out);
                }
                if let Some(warning) = &facts.sandbox_warning {
                    session.notice(NoticeLevel::Warning, warning);
                }
                session.is_ready(facts.window);
            }
            SessionEvent::Delivered(message) => session.delivered(message.uuid),
            SessionEvent::CommandAnswered { answer, .. } => {
                let (Ok(text) | Err(text)) = answer;
                let mut state = self.state();
                state.reply += 1;
                let id = format!("command-{}", state.reply);
                drop(state);
                session.update(chunk("agent_message_chunk", text, &id));
            }
            SessionEvent::Scheduled { prompt, uuid } => {
                let id = uuid.to_string();
                session.update(chunk("user_message_chunk", &prompt.text(), &id));
            }
            SessionEvent::Result(result) => {
                let open = std::mem::take(&mut self.state().calls);
                for call in open.into_values() {
                    session.update(call.failed("interrupted"));
                }
                session.answered(result);
            }
            SessionEvent::Servers(_)
            | SessionEvent::Reset(_)
            | SessionEvent::Activity(_)
            | SessionEvent::Task(_)
            | SessionEvent::Hook(_)
            | SessionEvent::TranscriptLine { .. }
            | SessionEvent::Question { .. }
            | SessionEvent::QuestionOver { .. }
            | SessionEvent::Rewound { .. }
            | SessionEvent::Continues
            | SessionEvent::Ended => {}
            _ => {}
        }
    }
}

impl UpdateState {
    fn agent(&mut self, session: &EditorSession, event: &AgentEvent) {
        match event {
            AgentEvent::Model(event) => self.model(session, event),
            AgentEvent::BlockCompleted(block) => self.on_block(session, block),
            AgentEvent::CallBound {
                tool_use_id,
                tool_name,
                card,
                ..
            } => {
                if let Some(call) = self.calls.get(tool_use_id) {
                    session.update(json!({
                        "sessionUpdate": "tool_call_update",
                        "toolCallId": call.id,
                        "title": calls::title(tool_name, card),
                    }));
                }
            }
            AgentEvent::CallStarted { tool_use_id }
            | AgentEvent::CallRunning { tool_use_id, .. } => {
                if let Some(update) = self.mark_running(tool_use_id) {
                    session.update(update);
                }
            }
            AgentEvent::Progress {
                tool_use_id,
                update,
                ..
            } => self.progress(session, tool_use_id, update),
            AgentEvent::CallFinished { finished, .. } => {
                let structured = finished.structured.as_ref();
                if structured.is_some_and(|structured| self.board.update_from_result(structured)) {
                    session.update(plan::update(&self.board));
                }
                if let Some(call) = self.calls.remove(&finished.id) {
                    let mut update = calls::answered(&call.id, finished, &session.cwd);
                    if call.has_terminal {
                        update["_meta"] = json!({"terminal_exit": {
                            "terminal_id": call.id, "exit_code": exit_code(finished), "signal": null,
                        }});
                    }
                    session.update(update);
                }
            }
            AgentEvent::MessageInjected {
                content,
                by: InjectionSource::Steering,
                uuid,
            } => {
                for text in content.iter().filter_map(Content::as_text) {
                    let id = uuid.to_string();
                    session.update(chunk("user_message_chunk", text, &id));
                }
            }
            AgentEvent::Compacting { trigger } => {
                self.compactions += 1;
                self.compaction(session, *trigger, "in_progress");
            }
            AgentEvent::Compacted { trigger, .. } => {
                self.compaction(session, *trigger, "completed");
            }
            AgentEvent::Subagent { agent, event } => self.subagent(session, agent, event),
            AgentEvent::Notice { level, text } => session.notice(*level, text),
            _ => {}
        }
    }

    fn model(&mut self, session: &EditorSession, event: &ModelEvent) {
        match event {
            ModelEvent::Start { .. } => self.reply += 1,
            ModelEvent::Text { text, .. } => {
                let id = format!("reply-{}", self.reply);
                session.update(chunk("agent_message_chunk", text, &id));
            }
            ModelEvent::Thinking { text, .. } => {
                let id = format!("thought-{}", self.reply);
                session.update(chunk("agent_thought_chunk", text, &id));
            }
            ModelEvent::BlockStart {
                block: BlockStart::ToolUse { id, name, .. },
                ..
            } => self.on_call_started(session, id, name, None),
            ModelEvent::Discard => {
                self.reply += 1;
                for call in std::mem::take(&mut self.calls).into_values() {
                    session.update(call.failed("asked again"));
                }
            }
            _ => {}
        }
    }

    fn on_block(&mut self, session: &EditorSession, said: &ReplyBlock) {
        if let Block::ToolUse {
            id, name, input, ..
        } = &said.block
        {
            // A provider that does not stream blocks reports the call here for the first time.
            if !self.calls.contains_key(id) {
                self.on_call_started(session, id, name, None);
            }
            if let Some(call) = self.calls.get(id) {
                session.update(json!({
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": call.id,
                    "rawInput": input,
                    "locations": calls::locations(input, &session.cwd),
                }));
            }
        }
        session.spent(tokens(&said.usage));
    }

    /// Displays a call as soon as its tool is known.
    fn on_call_started(
        &mut self,
        session: &EditorSession,
        id: &str,
        name: &str,
        agent: Option<&SubagentInfo>,
    ) {
        if plan::is_of_plan(name) {
            return;
        }
        let times = self.seen.entry(id.to_owned()).or_default();
        *times += 1;
        let shown = match *times {
            1 => id.to_owned(),
            times => format!("{id}#{times}"),
        };
        let title = match agent {
            None => name.to_owned(),
            Some(agent) => format!("{} › {name}", agent.kind),
        };
        let mut call = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": shown,
            "title": title,
            "kind": calls::kind(name),
            "status": "pending",
        });
        if let Some(agent) = agent {
            call["_meta"] = json!({"haft": {"parentToolCallId": &*agent.tool_use_id}});
        }
        let has_terminal = session.capabilities.terminal_output && name == "Bash";
        if has_terminal {
            call["content"] = json!([{"type": "terminal", "terminalId": shown}]);
            call["_meta"]["terminal_info"] = json!({"terminal_id": shown, "cwd": session.cwd});
        }
        session.update(call);
        let open = ShownCall {
            id: shown,
            output: String::new(),
            shown: None,
            runs: false,
            is_asked: false,
            has_terminal,
        };
        self.calls.insert(id.to_owned(), open);
    }

    /// Returns an update that reports a call as running. Each call is reported only once.
    fn mark_running(&mut self, id: &str) -> Option<Value> {
        let call = self.calls.get_mut(id)?;
        if call.is_asked || std::mem::replace(&mut call.runs, true) {
            return None;
        }
        Some(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": call.id,
            "status": "in_progress",
        }))
    }

    fn progress(&mut self, session: &EditorSession, id: &str, update: &ProgressUpdate) {
        if let Some(update) = self.mark_running(id) {
            session.update(update);
        }
        let ProgressUpdate::Text { text } = update else {
            return;
        };
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        if call.has_terminal {
            // Terminals require a carriage return at the end of a line.
            let data = text.replace('\n', "\r\n");
            session.update(json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": call.id,
                "_meta": {"terminal_output": {"terminal_id": call.id, "data": data}},
            }));
            return;
        }
        call.output.push_str(text);
        let letters = call.output.char_indices().rev();
        let first = letters.map(|(at, _)| at).nth(SHOWN_OUTPUT - 1);
        call.output.drain(..first.unwrap_or(0));
        let now = Instant::now();
        if call.shown.is_some_and(|shown| now - shown < PACE) {
            return;
        }
        call.shown = Some(now);
        session.update(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": call.id,
            "content": [calls::text_content(&call.output)],
        }));
    }

    fn compaction(&self, session: &EditorSession, trigger: CompactionTrigger, status: &str) {
        if session.capabilities.compaction {
            session.update(json!({
                "sessionUpdate": "compaction_update",
                "compactionId": format!("{}-{}", trigger.name(), self.compactions),
                "status": status,
            }));
        }
    }

    /// Displays the calls of a subagent, but not its text.
    fn subagent(&mut self, session: &EditorSession, agent: &Arc<SubagentInfo>, event: &AgentEvent) {
        match event {
            AgentEvent::BlockCompleted(said) => {
                if let Block::ToolUse {
                    id, name, input, ..
                } = &said.block
                {
                    self.on_call_started(session, id, name, Some(agent));
                    if let Some(call) = self.calls.get(id) {
                        session.update(json!({
                            "sessionUpdate": "tool_call_update",
                            "toolCallId": call.id,
                            "rawInput": input,
                            "locations": calls::locations(input, &session.cwd),
                        }));
                    }
                }
            }
            AgentEvent::CallBound {
                tool_use_id,
                tool_name,
                card,
                ..
            } => {
                if let Some(call) = self.calls.get(tool_use_id) {
                    let title = calls::title(tool_name, card);
                    session.update(json!({
                        "sessionUpdate": "tool_call_update",
                        "toolCallId": call.id,
                        "title": format!("{} › {title}", agent.kind),
                    }));
                }
            }
            AgentEvent::CallStarted { tool_use_id } => {
                if let Some(update) = self.mark_running(tool_use_id) {
                    session.update(update);
                }
            }
            AgentEvent::CallFinished { finished, .. } => {
                if let Some(call) = self.calls.remove(&finished.id) {
                    let mut update = calls::answered(&call.id, finished, &session.cwd);
                    let title = calls::title(&finished.name, &finished.card);
                    update["title"] = json!(format!("{} › {title}", agent.kind));
                    session.update(update);
                }
            }
            _ => {}
        }
    }
}

/// Returns an update with a piece of text.
pub(crate) fn chunk(kind: &str, text: &str, message: &str) -> Value {
    json!({
        "sessionUpdate": kind,
        "content": {"type": "text", "text": text},
        "messageId": message,
    })
}

/// Returns the exit code of a command, or `None` if its result contains none.
fn exit_code(finished: &CallResult) -> Option<i32> {
    if !finished.is_error {
        return Some(0);
    }
    let mut texts = finished.content.iter().filter_map(Content::as_text);
    let first = texts.next()?.lines().next()?;
    first.strip_prefix("Exit code ")?.trim().parse().ok()
}

/// Returns the tokens of the context window that a request used.
fn tokens(usage: &Usage) -> u64 {
    usage.input + usage.cache_read + usage.cache_write + usage.output
}
