//! Where hooks have a say in the loop. Those about calls are the engine's.

use std::path::PathBuf;

use haft_contract::{CancellationToken, ContextPatch};
use haft_engine::hooks::HookMoment;
use haft_models::ModelError;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{Agent, AgentEvent, NoticeLevel, Sink, model_turn::Answer};

/// What the hooks of one event said, taken together.
#[derive(Debug, Default)]
pub(crate) struct Word {
    /// They hold it up: why.
    pub(crate) block: Option<String>,
    /// What the model should know.
    pub(crate) context: Vec<String>,
    /// Everything should stop: why.
    pub(crate) stop: Option<String>,
    /// What is said first, as if a person had said it.
    pub(crate) first_words: Option<String>,
}

/// A file that tells the model what to do, and that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The file.
    pub path: PathBuf,
    /// Whose it is: `User`, `Project`, `Local`, `Managed`.
    pub kind: &'static str,
    /// Why: `session_start`, `nested_traversal`, `path_glob_match`, `include`, `compact`.
    pub reason: &'static str,
    /// The patterns it is for, if it is for some files only.
    pub globs: Vec<String>,
    /// The file that was worked on, if that is why.
    pub trigger: Option<PathBuf>,
    /// The file that names it, if one does.
    pub parent: Option<PathBuf>,
}

impl Agent {
    /// Begins the session, where that is to be done before the first run. Gives what hooks want said
    /// first, as if a person had said it.
    pub async fn begin(&mut self, sink: &dyn Sink) -> Option<String> {
        let never = CancellationToken::new();
        let to = RunContext {
            sink,
            cancel: &never,
        };
        self.start(to).await
    }

    /// Begins the session, once.
    pub(crate) async fn start(&mut self, to: RunContext<'_>) -> Option<String> {
        if std::mem::replace(&mut self.has_begun, true) {
            return None;
        }
        let word = self.hook_start(self.origin.name(), to).await;
        self.opening.extend(word.context);
        self.held_up = self.held_up.take().or(word.stop);
        word.first_words
    }

    /// Lets hooks make the project ready (`init`) or put it in order (`maintenance`).
    pub async fn setup(&mut self, trigger: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext {
            sink,
            cancel: &never,
        };
        let fields = json!({"trigger": trigger});
        let word = self.fire(HookMoment::SETUP, trigger, fields, to).await;
        self.opening.extend(word.context);
        self.held_up = self.held_up.take().or(word.stop);
    }

    /// Adds a working directory, and tells hooks whose wish it was: `slash_command` or
    /// `register_repo_root`.
    pub async fn add_directory(&mut self, path: PathBuf, source: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext {
            sink,
            cancel: &never,
        };
        let fields = json!({"directory": path.to_string_lossy(), "source": source});
        self.scheduler.apply(&ContextPatch::AddDirectory { path });
        self.fire(HookMoment::DIRECTORY_ADDED, source, fields, to)
            .await;
    }

    /// Tells hooks of a file that was read for the model to follow.
    pub async fn instructions_loaded(&self, loaded: &Instructions, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext {
            sink,
            cancel: &never,
        };
        self.hook_instructions(loaded, to).await;
    }

    /// The same, as long as nobody interrupts.
    pub(crate) async fn hook_instructions(&self, loaded: &Instructions, to: RunContext<'_>) {
        let mut fields = json!({
            "file_path": loaded.path.to_string_lossy(),
            "memory_type": loaded.kind,
            "load_reason": loaded.reason,
        });
        if !loaded.globs.is_empty() {
            fields["globs"] = json!(loaded.globs);
        }
        if let Some(trigger) = &loaded.trigger {
            fields["trigger_file_path"] = trigger.to_string_lossy().into();
        }
        if let Some(parent) = &loaded.parent {
            fields["parent_file_path"] = parent.to_string_lossy().into();
        }
        let event = HookMoment::INSTRUCTIONS_LOADED;
        self.fire(event, loaded.reason, fields, to).await;
    }

    /// Hooks are told which message is being answered. A subagent's is none of the person's.
    pub(crate) fn tell_situation(&self, prompt: Uuid) {
        if self.subagent().is_none() {
            self.scheduler.engine().hooks().set_situation(|situation| {
                situation.prompt_id = Some(prompt.to_string());
                situation.effort.clone_from(&self.settings.effort);
            });
        }
    }

    /// Does a hook that runs beside the session want the model to hear something? A subagent hears
    /// nothing of that.
    pub(crate) fn is_woken(&self) -> bool {
        self.subagent().is_none() && self.scheduler.engine().hooks().has_waker()
    }

    /// What hooks that run beside the session have said since the last time.
    pub(crate) fn hear_late(&mut self, to: RunContext<'_>) {
        if self.subagent().is_some() {
            return;
        }
        for late in self.scheduler.engine().hooks().take_late() {
            if let Some(message) = late.message {
                to.notice(NoticeLevel::Info, message);
            }
            self.add_context(late.context.into_iter().collect(), to);
        }
    }

    /// Returns when a hook that runs beside the session wants the model to hear something: it is told
    /// with the next run, or by [`run_notices`](Self::run_notices).
    pub async fn woken(&self) {
        self.scheduler.engine().hooks().woken().await;
    }

    /// A session begins.
    pub(crate) async fn hook_start(&self, source: &str, to: RunContext<'_>) -> Word {
        if let Some(kind) = self.subagent() {
            return match source {
                "compact" => Word::default(),
                _ => {
                    self.fire(HookMoment::SUBAGENT_START, kind, json!({}), to)
                        .await
                }
            };
        }
        let fields = json!({"source": source, "model": self.settings.name});
        self.fire(HookMoment::SESSION_START, source, fields, to)
            .await
    }

    /// The kind of the subagent that this is, if it is one.
    fn subagent(&self) -> Option<&str> {
        let agent = self.scheduler.engine().agent();
        agent.id.as_ref()?;
        agent.kind.as_deref()
    }

    /// Somebody says something.
    pub(crate) async fn hook_prompt(&self, prompt: &str, to: RunContext<'_>) -> Word {
        if self.subagent().is_some() {
            return Word::default();
        }
        let fields = json!({"prompt": prompt});
        self.fire(HookMoment::USER_PROMPT_SUBMIT, "", fields, to)
            .await
    }

    /// All calls of a reply are answered.
    pub(crate) async fn hook_batch(&self, answers: &[Answer], to: RunContext<'_>) -> Word {
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
        self.fire(HookMoment::POST_TOOL_BATCH, "", fields, to).await
    }

    /// The model has said everything.
    pub(crate) async fn hook_stop(&self, text: &str, again: bool, to: RunContext<'_>) -> Word {
        let mut fields = json!({
            "stop_hook_active": again,
            "last_assistant_message": text,
            "background_tasks": self.background_tasks(),
            "session_crons": [],
        });
        if let Some(kind) = self.subagent() {
            let path = self.transcript.path().map(std::path::Path::to_string_lossy);
            fields["agent_transcript_path"] = json!(path.unwrap_or_default());
            return self.fire(HookMoment::SUBAGENT_STOP, kind, fields, to).await;
        }
        self.fire(HookMoment::STOP, "", fields, to).await
    }

    /// The conversation is about to be summed up.
    pub(crate) async fn hook_compact(
        &self,
        trigger: &str,
        instructions: &str,
        to: RunContext<'_>,
    ) -> Word {
        let fields = json!({"trigger": trigger, "custom_instructions": instructions});
        self.fire(HookMoment::PRE_COMPACT, trigger, fields, to)
            .await
    }

    /// The conversation was summed up.
    pub(crate) async fn hook_compacted(&self, trigger: &str, summary: &str, to: RunContext<'_>) {
        let fields = json!({"trigger": trigger, "compact_summary": summary});
        self.fire(HookMoment::POST_COMPACT, trigger, fields, to)
            .await;
    }

    /// The model could not answer.
    pub(crate) async fn hook_failure(&self, error: &ModelError, to: RunContext<'_>) {
        let fields = json!({
            "error": error.code(),
            "error_details": error.message,
            "last_assistant_message": format!("API Error: {error}"),
        });
        self.fire(HookMoment::STOP_FAILURE, error.code(), fields, to)
            .await;
    }

    /// Tells the hooks that the session ends, and why: `clear`, `logout`, `prompt_input_exit`, `other`.
    pub async fn end(&mut self, reason: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext {
            sink,
            cancel: &never,
        };
        let fields = json!({"reason": reason});
        // They have little time, and what they say about it changes nothing any more.
        self.fire(HookMoment::SESSION_END, reason, fields, to).await;
        if self.subagent().is_none() {
            self.scheduler.engine().hooks().end().await;
        }
    }

    async fn fire(
        &self,
        event: HookMoment,
        matched: &str,
        fields: Value,
        to: RunContext<'_>,
    ) -> Word {
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
                to.notice(NoticeLevel::Info, message);
            }
            if let Some(failure) = said.failure {
                to.notice(
                    NoticeLevel::Warning,
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
            if let Some(title) = said.title {
                self.transcript.set_title(&title);
            }
            word.first_words = word.first_words.or(said.first_words);
        }
        word
    }
}

/// Who is told, and until when hooks are waited for.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) sink: &'a dyn Sink,
    pub(crate) cancel: &'a CancellationToken,
}

impl RunContext<'_> {
    pub(crate) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        let text = text.into();
        self.sink.on_event(&AgentEvent::Notice { level, text });
    }
}
