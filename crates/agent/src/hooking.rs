//! Where hooks have a say in the loop. Those about calls are the engine's.

use std::time::Duration;

use haft_contract::CancellationToken;
use haft_engine::hooks::Event;
use haft_models::ModelError;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::{Agent, AgentEvent, Level, Sink, round::Answer};

/// No hook holds the end of a session up for longer.
const LONGEST_END: Duration = Duration::from_secs(60);

/// What the hooks of one event said, taken together.
#[derive(Debug, Default)]
pub(crate) struct Word {
    /// They hold it up: why.
    pub(crate) block: Option<String>,
    /// What the model should know.
    pub(crate) context: Vec<String>,
    /// Everything should stop: why.
    pub(crate) stop: Option<String>,
}

impl Agent {
    /// A session begins.
    pub(crate) async fn hook_start(&self, source: &str, to: Told<'_>) -> Word {
        if let Some(kind) = self.subagent() {
            return match source {
                "compact" => Word::default(),
                _ => self.fire(Event::SUBAGENT_START, kind, json!({}), to).await,
            };
        }
        let fields = json!({"source": source, "model": self.settings.name});
        self.fire(Event::SESSION_START, source, fields, to).await
    }

    /// The kind of the subagent that this is, if it is one.
    fn subagent(&self) -> Option<&str> {
        let agent = self.scheduler.engine().agent();
        agent.id.as_ref()?;
        agent.kind.as_deref()
    }

    /// Somebody says something.
    pub(crate) async fn hook_prompt(&self, prompt: &str, to: Told<'_>) -> Word {
        if self.subagent().is_some() {
            return Word::default();
        }
        let fields = json!({"prompt": prompt});
        self.fire(Event::USER_PROMPT_SUBMIT, "", fields, to).await
    }

    /// All calls of a reply are answered.
    pub(crate) async fn hook_batch(&self, answers: &[Answer], to: Told<'_>) -> Word {
        let calls: Vec<Value> = answers
            .iter()
            .map(|Answer { input, finished }| {
                json!({
                    "tool_name": finished.name,
                    "tool_input": input,
                    "tool_use_id": finished.id,
                    "tool_response": finished.content,
                })
            })
            .collect();
        let fields = json!({"tool_calls": calls});
        self.fire(Event::POST_TOOL_BATCH, "", fields, to).await
    }

    /// The model has said everything.
    pub(crate) async fn hook_stop(&self, text: &str, again: bool, to: Told<'_>) -> Word {
        let mut fields = json!({
            "stop_hook_active": again,
            "last_assistant_message": text,
            "background_tasks": self.background_tasks(),
            "session_crons": [],
        });
        if let Some(kind) = self.subagent() {
            let path = self.transcript.path().map(std::path::Path::to_string_lossy);
            fields["agent_transcript_path"] = json!(path.unwrap_or_default());
            return self.fire(Event::SUBAGENT_STOP, kind, fields, to).await;
        }
        self.fire(Event::STOP, "", fields, to).await
    }

    /// The conversation is about to be summed up.
    pub(crate) async fn hook_compact(
        &self,
        trigger: &str,
        instructions: &str,
        to: Told<'_>,
    ) -> Word {
        let fields = json!({"trigger": trigger, "custom_instructions": instructions});
        self.fire(Event::PRE_COMPACT, trigger, fields, to).await
    }

    /// The conversation was summed up.
    pub(crate) async fn hook_compacted(&self, trigger: &str, summary: &str, to: Told<'_>) {
        let fields = json!({"trigger": trigger, "compact_summary": summary});
        self.fire(Event::POST_COMPACT, trigger, fields, to).await;
    }

    /// The model could not answer.
    pub(crate) async fn hook_failure(&self, error: &ModelError, to: Told<'_>) {
        let fields = json!({
            "error": error.code(),
            "error_details": error.message,
            "last_assistant_message": format!("API Error: {error}"),
        });
        self.fire(Event::STOP_FAILURE, error.code(), fields, to)
            .await;
    }

    /// Tells the hooks that the session ends, and why: `clear`, `logout`, `prompt_input_exit`, `other`.
    pub async fn end(&mut self, reason: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = Told {
            sink,
            cancel: &never,
        };
        let fields = json!({"reason": reason});
        let fired = self.fire(Event::SESSION_END, reason, fields, to);
        // What they say about it changes nothing any more.
        let _ = timeout(LONGEST_END, fired).await;
    }

    async fn fire(&self, event: Event, matched: &str, fields: Value, to: Told<'_>) -> Word {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let context = self.scheduler.context();
        let fired = self
            .scheduler
            .engine()
            .fire(event, matched, fields, &context);
        let heard = tokio::select! {
            heard = fired => heard,
            () = to.cancel.cancelled() => Vec::new(),
        };
        let mut word = Word::default();
        for one in heard {
            let said = one.said;
            if let Some(message) = said.message {
                to.notice(Level::Info, message);
            }
            if let Some(failure) = said.failure {
                to.notice(
                    Level::Warning,
                    format!("{} hook error: {failure}", one.label),
                );
            }
            word.context.extend(said.context);
            if let Some(block) = said.block {
                word.block.get_or_insert(block);
            }
            if let Some(stop) = said.stop {
                word.stop.get_or_insert(stop);
            }
        }
        word
    }
}

/// Who is told, and until when hooks are waited for.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) sink: &'a dyn Sink,
    pub(crate) cancel: &'a CancellationToken,
}

impl Told<'_> {
    pub(crate) fn notice(&self, level: Level, text: impl Into<String>) {
        let text = text.into();
        self.sink.hear(&AgentEvent::Notice { level, text });
    }
}
