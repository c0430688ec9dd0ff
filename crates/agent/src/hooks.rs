//! The hook events of the agent loop. The engine fires the events about tool calls.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::CancellationToken;
use haft_engine::{ContextView, Engine, Scheduler, hooks::HookEventKind};
use haft_models::ModelError;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    AgentEvent, AgentEventSink, NoticeLevel,
    background_notices::{running_tasks, schedules},
    model_turn::CompletedCall,
    transcript::Transcript,
};

/// The merged output of the hooks of one event.
#[derive(Debug, Default)]
pub(crate) struct AgentHookVerdict {
    /// The reason why a hook blocks the action.
    pub(crate) block: Option<String>,
    /// Context for the model.
    pub(crate) context: Vec<String>,
    /// The reason why a hook stops the run.
    pub(crate) stop: Option<String>,
    /// The initial prompt of the session.
    pub(crate) initial_prompt: Option<String>,
    /// The text that is shown instead of the model's text.
    pub(crate) display: Option<String>,
}

/// An instruction file that was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadedInstructions {
    /// The path.
    pub path: PathBuf,
    /// The owner: `User`, `Project`, `Local`, `Managed`.
    pub kind: &'static str,
    /// The reason: `session_start`, `nested_traversal`, `path_glob_match`, `include`, `compact`.
    pub reason: &'static str,
    /// The patterns of the files to which the instructions apply; empty for all files.
    pub globs: Vec<String>,
    /// The file whose use caused the load, if any.
    pub trigger: Option<PathBuf>,
    /// The file that imports this one, if any.
    pub parent: Option<PathBuf>,
}

/// A text of the model that is about to be shown.
pub(crate) struct DisplayedText<'a> {
    /// The id of its message.
    pub(crate) message: &'a str,
    /// The index among the texts of that message.
    pub(crate) index: usize,
    pub(crate) text: &'a str,
}

/// A slash command of the user that expands to a prompt.
#[derive(Debug, Clone, Copy)]
pub struct PromptExpansion<'a> {
    /// `slash_command` or `mcp_prompt`.
    pub kind: &'a str,
    /// The name of the command.
    pub name: &'a str,
    /// The arguments.
    pub arguments: &'a str,
    /// The source of the command.
    pub source: &'a str,
    /// The whole input of the user.
    pub typed: &'a str,
}

/// Fires the hook events of one agent.
pub(crate) struct HookRunner {
    engine: Arc<Engine>,
    context: ContextView,
    transcript: Arc<Transcript>,
}

impl HookRunner {
    /// Creates a runner for the agent whose calls this scheduler runs.
    pub(crate) fn new(scheduler: &Scheduler, transcript: &Arc<Transcript>) -> Self {
        Self {
            engine: Arc::clone(scheduler.engine()),
            context: scheduler.view(),
            transcript: Arc::clone(transcript),
        }
    }

    /// Changes the transcript.
    pub(crate) fn set_transcript(&mut self, transcript: &Arc<Transcript>) {
        self.transcript = Arc::clone(transcript);
    }

    /// Fires Setup, whose hooks prepare (`init`) or maintain (`maintenance`) the project.
    pub(crate) async fn setup(&self, trigger: &str, cx: RunContext<'_>) -> AgentHookVerdict {
        let fields = json!({"trigger": trigger});
        self.fire(HookEventKind::SETUP, trigger, fields, cx).await
    }

    /// Fires the event for an added working directory.
    pub(crate) async fn directory_added(&self, path: &Path, source: &str, cx: RunContext<'_>) {
        let fields = json!({"directory": path.to_string_lossy(), "source": source});
        self.fire(HookEventKind::DIRECTORY_ADDED, source, fields, cx)
            .await;
    }

    /// Fires SessionEnd when a conversation ends and another may begin.
    pub(crate) async fn conversation_end(&self, reason: &str, cx: RunContext<'_>) {
        let fields = json!({"reason": reason});
        // The output of these hooks has no effect.
        self.fire(HookEventKind::SESSION_END, reason, fields, cx)
            .await;
    }

    /// Fires SessionEnd and ends all hooks.
    pub(crate) async fn session_end(&self, reason: &str, cx: RunContext<'_>) {
        self.conversation_end(reason, cx).await;
        if self.subagent().is_none() {
            self.engine.hooks().shutdown().await;
        }
    }

    /// Waits until an asynchronous hook wakes the model.
    pub(crate) async fn wait_for_wake(&self) {
        self.engine.hooks().wait_for_wake().await;
    }

    /// Fires InstructionsLoaded.
    pub(crate) async fn instructions(&self, loaded: &LoadedInstructions, cx: RunContext<'_>) {
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
        let event = HookEventKind::INSTRUCTIONS_LOADED;
        self.fire(event, loaded.reason, fields, cx).await;
    }

    /// Sets the prompt and the effort that hooks receive. Prompts of subagents are not from the
    /// user, so they are ignored.
    pub(crate) fn set_prompt_context(&self, prompt: Uuid, effort: Option<&String>) {
        if self.subagent().is_none() {
            self.engine.hooks().set_prompt_context(|situation| {
                situation.prompt_id = Some(prompt.to_string());
                situation.effort = effort.cloned();
            });
        }
    }

    /// Returns whether an asynchronous hook has woken the model. Always false for subagents.
    pub(crate) fn has_wake_request(&self) -> bool {
        self.subagent().is_none() && self.engine.hooks().has_waker()
    }

    /// Returns the context from asynchronous hooks since the last call.
    pub(crate) fn take_async_context(&self, cx: RunContext<'_>) -> Vec<Vec<String>> {
        if self.subagent().is_some() {
            return Vec::new();
        }
        let outputs = self
            .engine
            .hooks()
            .take_async_outputs()
            .into_iter()
            .map(|output| {
                if let Some(message) = output.message {
                    cx.notice(NoticeLevel::Info, message);
                }
                output.context.into_iter().collect()
            });
        outputs.collect()
    }

    /// Fires SessionStart, or SubagentStart in a subagent.
    pub(crate) async fn session_start(
        &self,
        source: &str,
        model: &str,
        cx: RunContext<'_>,
    ) -> AgentHookVerdict {
        if let Some(kind) = self.subagent() {
            return match source {
                "compact" => AgentHookVerdict::default(),
                _ => {
                    self.fire(HookEventKind::SUBAGENT_START, &kind, json!({}), cx)
                        .await
                }
            };
        }
        let fields = json!({"source": source, "model": model});
        self.fire(HookEventKind::SESSION_START, source, fields, cx)
            .await
    }

    /// Returns the agent kind if this is a subagent.
    fn subagent(&self) -> Option<String> {
        let agent = self.engine.agent();
        agent.id?;
        agent.kind
    }

    /// Fires UserPromptSubmit.
    pub(crate) async fn prompt(&self, prompt: &str, cx: RunContext<'_>) -> AgentHookVerdict {
        if self.subagent().is_some() {
            return AgentHookVerdict::default();
        }
        let fields = json!({"prompt": prompt});
        self.fire(HookEventKind::USER_PROMPT_SUBMIT, "", fields, cx)
            .await
    }

    /// Fires ConfigChange after a file changed. Returns whether hooks block the change.
    pub(crate) async fn config_changed(
        &self,
        source: &str,
        file: &Path,
        cx: RunContext<'_>,
    ) -> bool {
        let fields = json!({"source": source, "file_path": file.to_string_lossy()});
        let event = HookEventKind::CONFIG_CHANGE;
        self.fire(event, source, fields, cx).await.block.is_some()
    }

    /// Returns whether there are hooks that filter the displayed text.
    pub(crate) fn has_display_hooks(&self) -> bool {
        let is_silent = self
            .engine
            .hooks()
            .has_no_handlers(HookEventKind::MESSAGE_DISPLAY);
        !is_silent && self.subagent().is_none()
    }

    /// Fires MessageDisplay. Returns the text to show instead, if a hook replaces it.
    pub(crate) async fn filter_display(
        &self,
        shown: &DisplayedText<'_>,
        cx: RunContext<'_>,
    ) -> Option<String> {
        if shown.text.trim().is_empty() {
            return None;
        }
        let turn = self.engine.hooks().prompt_context().prompt_id;
        let fields = json!({
            "turn_id": turn.unwrap_or_default(),
            "message_id": shown.message,
            "index": shown.index,
            "final": true,
            "delta": shown.text,
        });
        let event = HookEventKind::MESSAGE_DISPLAY;
        self.fire(event, "", fields, cx).await.display
    }

    /// Returns whether a hook asked to reload the skills. Only the main agent reloads them.
    pub(crate) fn take_skill_reload(&self) -> bool {
        self.subagent().is_none() && self.engine.hooks().take_reload()
    }

    /// Fires UserPromptExpansion.
    pub(crate) async fn expansion(
        &self,
        expansion: &PromptExpansion<'_>,
        cx: RunContext<'_>,
    ) -> AgentHookVerdict {
        let fields = json!({
            "expansion_type": expansion.kind,
            "command_name": expansion.name,
            "command_args": expansion.arguments,
            "command_source": expansion.source,
            "prompt": expansion.typed,
        });
        let event = HookEventKind::USER_PROMPT_EXPANSION;
        self.fire(event, expansion.name, fields, cx).await
    }

    /// Fires PostToolBatch after all calls of a reply have results.
    pub(crate) async fn tool_batch(
        &self,
        answers: &[CompletedCall],
        cx: RunContext<'_>,
    ) -> AgentHookVerdict {
        let calls: Vec<Value> = answers
            .iter()
            .map(
                |CompletedCall {
                     input,
                     result: finished,
                 }| {
                    json!({
                        "tool_name": finished.name,
                        "tool_input": input,
                        "tool_use_id": finished.id,
                        "tool_response": finished.content,
                    })
                },
            )
            .collect();
        let fields = json!({"tool_calls": calls});
        self.fire(HookEventKind::POST_TOOL_BATCH, "", fields, cx)
            .await
    }

    /// Fires Stop, or SubagentStop in a subagent, after a reply without calls.
    pub(crate) async fn stop(
        &self,
        text: &str,
        again: bool,
        cx: RunContext<'_>,
    ) -> AgentHookVerdict {
        let mut fields = json!({
            "stop_hook_active": again,
            "last_assistant_message": text,
            "background_tasks": running_tasks(&self.engine),
            "session_crons": schedules(&self.engine),
        });
        if let Some(kind) = self.subagent() {
            let path = self.transcript.path().map(Path::to_string_lossy);
            fields["agent_transcript_path"] = json!(path.unwrap_or_default());
            return self
                .fire(HookEventKind::SUBAGENT_STOP, &kind, fields, cx)
                .await;
        }
        self.fire(HookEventKind::STOP, "", fields, cx).await
    }

    /// Fires PreCompact.
    pub(crate) async fn before_compaction(
        &self,
        trigger: &str,
        instructions: &str,
        cx: RunContext<'_>,
    ) -> AgentHookVerdict {
        let fields = json!({"trigger": trigger, "custom_instructions": instructions});
        self.fire(HookEventKind::PRE_COMPACT, trigger, fields, cx)
            .await
    }

    /// Fires PostCompact.
    pub(crate) async fn compacted(&self, trigger: &str, summary: &str, cx: RunContext<'_>) {
        let fields = json!({"trigger": trigger, "compact_summary": summary});
        self.fire(HookEventKind::POST_COMPACT, trigger, fields, cx)
            .await;
    }

    /// Fires StopFailure after the model request failed.
    pub(crate) async fn failure(&self, error: &ModelError, cx: RunContext<'_>) {
        let fields = json!({
            "error": error.code(),
            "error_details": error.message,
            "last_assistant_message": format!("API Error: {error}"),
        });
        self.fire(HookEventKind::STOP_FAILURE, error.code(), fields, cx)
            .await;
    }

    async fn fire(
        &self,
        event: HookEventKind,
        matched: &str,
        fields: Value,
        cx: RunContext<'_>,
    ) -> AgentHookVerdict {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        // The context is dropped with the agent; then no event is fired.
        let Some(context) = self.context.get() else {
            return AgentHookVerdict::default();
        };
        let fired = self.engine.fire(event, matched, fields, &context);
        let outputs = tokio::select! {
            outputs = fired => outputs,
            () = cx.cancel.cancelled() => Vec::new(),
        };
        let mut verdict = AgentHookVerdict::default();
        for hook in outputs {
            let output = hook.output;
            if let Some(message) = output.message {
                cx.notice(NoticeLevel::Info, message);
            }
            if let Some(failure) = output.failure {
                cx.notice(
                    NoticeLevel::Warning,
                    format!("{} hook error: {failure}", hook.label),
                );
            }
            verdict.context.extend(output.context);
            if let Some(block) = output.block {
                verdict.block.get_or_insert(block);
            }
            if let Some(stop) = output.stop {
                verdict.stop.get_or_insert(stop);
            }
            if let Some(title) = output.title {
                self.transcript.set_title(&title);
            }
            verdict.initial_prompt = verdict.initial_prompt.or(output.first_words);
            verdict.display = output.display.or(verdict.display);
        }
        verdict
    }
}

/// The event sink and the cancellation token of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) sink: &'a dyn AgentEventSink,
    pub(crate) cancel: &'a CancellationToken,
}

impl<'a> RunContext<'a> {
    pub(crate) fn new(sink: &'a dyn AgentEventSink, cancel: &'a CancellationToken) -> Self {
        Self { sink, cancel }
    }

    pub(crate) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        let text = text.into();
        self.sink.on_event(&AgentEvent::Notice { level, text });
    }
}
