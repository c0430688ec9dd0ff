//! The turn loop: answers the messages of a session one after the other, each with one result.

use std::{sync::atomic::Ordering, time::Duration};

use haft_agent::{Agent, EndReason, Prompt, RunResult, random_id};
use serde_json::{Value, json};

use crate::{
    QueuedKind, SessionActivity, SessionEnd, SessionEvent, StopKind, TurnResult,
    background::BackgroundWatcher,
    event::EventEmitter,
    input::SharedState,
    mentions,
    queue::NextMessage,
    shell_line,
    slash::{PromptOutcome, SlashCommands},
    structured_output::{self, OutputSchema},
};

/// The loop that answers the messages of a session.
pub(crate) struct TurnLoop<'a> {
    pub(crate) agent: &'a mut Agent,
    pub(crate) shared: &'a SharedState,
    pub(crate) background: BackgroundWatcher,
    pub(crate) events: &'a EventEmitter,
    pub(crate) output_schema: Option<&'a OutputSchema>,
    /// Whether the results of background subagents belong to the result of the message that launched
    /// them.
    pub(crate) one_result: bool,
    pub(crate) commands: SlashCommands,
    /// Whether hooks are notified when no message arrives for a minute.
    pub(crate) reports_idle: bool,
}

/// The idle time after which hooks are notified that the session waits for the user.
const IDLE: Duration = Duration::from_secs(60);

/// The input of a turn.
pub(crate) enum TurnInput {
    /// A message of the user, which may be a slash command.
    Message(Prompt),
    /// A command line that the user typed.
    Shell(Prompt),
    /// A scheduled prompt that is due.
    Scheduled(Prompt),
    /// No prompt, only notices about background tasks.
    BackgroundNotice,
}

impl TurnInput {
    /// Returns the origin of the input, for the result.
    fn origin(&self) -> Option<Value> {
        match self {
            Self::Message(prompt) | Self::Shell(prompt) | Self::Scheduled(prompt) => {
                prompt.origin.clone()
            }
            Self::BackgroundNotice => Some(json!({"kind": "task-notification"})),
        }
    }
}

impl TurnLoop<'_> {
    /// Answers `first` and then all other messages, until the input is closed or the session is
    /// stopped. If `first` is `None`, the session starts with notices or a deferred call.
    pub(crate) async fn run(&mut self, first: Option<NextMessage>) -> anyhow::Result<SessionEnd> {
        let (shared, events) = (self.shared, self.events);
        let mut next = Some(first.map_or(TurnInput::BackgroundNotice, |first| {
            self.to_turn_input(first)
        }));
        let mut end = SessionEnd::default();
        while let Some(turn) = next {
            events.emit(&SessionEvent::Activity(SessionActivity::Running));
            shared.access.refresh(self.agent);
            shared.queue.on_run_started();
            let origin = turn.origin();
            let (run, structured) = self.run_turn(turn).await;
            shared.access.end_task_grants();
            shared.queue.on_run_ended(&shared.control);
            shared.access.refresh(self.agent);
            shared.conversation_changed();
            end.stopped = shared.stop.requested();
            if end.stopped == Some(StopKind::Terminate) {
                return Ok(end);
            }
            let result = TurnResult {
                run,
                structured,
                origin,
            };
            end.has_failed = result.is_error();
            end.has_denials |= !result.run.permission_denials.is_empty();
            events.emit(&SessionEvent::Result(Box::new(result)));
            end.stopped = shared.stop.requested();
            if end.stopped.is_some() {
                return Ok(end);
            }
            if self.is_detached() {
                break;
            }
            next = self.wait_for_input().await?;
        }
        if !self.is_detached() {
            shared.stop.run_until_stopped(self.background.close()).await;
        }
        end.stopped = shared.stop.requested();
        Ok(end)
    }

    /// Converts a delivered message into the input of a turn, and reports its delivery.
    fn to_turn_input(&self, message: NextMessage) -> TurnInput {
        for one in message.delivered {
            self.events.emit(&SessionEvent::Delivered(Box::new(one)));
        }
        if let Some(prompt) = message.scheduled {
            let uuid = message.prompt.uuid.unwrap_or_else(random_id);
            self.events.emit(&SessionEvent::Scheduled { prompt, uuid });
            return TurnInput::Scheduled(message.prompt);
        }
        match message.kind {
            QueuedKind::Prompt => TurnInput::Message(message.prompt),
            QueuedKind::Shell => TurnInput::Shell(message.prompt),
        }
    }

    /// Returns whether the front end has detached from the session.
    fn is_detached(&self) -> bool {
        self.shared.is_detached.load(Ordering::Relaxed)
    }

    /// Waits for the input of the next turn. Returns `None` if the input is closed and no background
    /// task can provide any.
    async fn wait_for_input(&mut self) -> anyhow::Result<Option<TurnInput>> {
        let (queue, stop) = (&self.shared.queue, &self.shared.stop);
        let mut is_idle = false;
        let mut reports_idle = self.reports_idle && self.shared.has_idle_hooks();
        let waiting_since = self.shared.clock.now();
        loop {
            if !is_idle && queue.is_empty() && self.background.is_quiet() {
                is_idle = true;
                let event = SessionEvent::Activity(SessionActivity::Idle);
                self.events.emit(&event);
            }
            let message = tokio::select! {
                biased;
                message = queue.next(&self.shared.control) => message?,
                () = self.background.wait_for_notice(), if !queue.is_closed() => {
                    return Ok(Some(TurnInput::BackgroundNotice));
                }
                () = self.agent.wait_for_hook_wake(), if !queue.is_closed() => {
                    return Ok(Some(TurnInput::BackgroundNotice));
                }
                () = self.shared.wait_until_due(), if !queue.is_closed() => {
                    match self.shared.take_due() {
                        Some(due) => return Ok(Some(self.to_turn_input(due))),
                        None => continue,
                    }
                }
                () = self.shared.clock.sleep_until(waiting_since + IDLE), if is_idle && reports_idle && !queue.is_closed() => {
                    if self.shared.clock.now() >= waiting_since + IDLE {
                        reports_idle = false;
                        self.shared.report_idle().await;
                    }
                    continue;
                }
                () = self.background.wait_for_agents(), if !is_idle => continue,
                () = stop.wait() => return Ok(None),
            };
            if let Some(message) = message {
                return Ok(Some(self.to_turn_input(message)));
            }
            let has_notice = stop.run_until_stopped(self.background.wait_for_agent_notice());
            return Ok((has_notice.await == Some(true)).then_some(TurnInput::BackgroundNotice));
        }
    }

    /// Answers one message. If the session has an output schema, the model is asked again if its
    /// answer does not match, up to a limit. The second value is the parsed answer, or the reason why
    /// it does not match the schema.
    async fn run_turn(&mut self, turn: TurnInput) -> (RunResult, Option<Result<Value, String>>) {
        let turn = match turn {
            TurnInput::Message(prompt) => {
                let outcome =
                    self.commands
                        .read(prompt, self.agent, self.events, &self.shared.stop);
                match outcome.await {
                    PromptOutcome::Prompt(prompt) => {
                        let home = self.shared.environment.home();
                        let (nested, cwd) = (self.agent.nested_calls(), self.agent.context().cwd);
                        let prompt = mentions::attach(
                            prompt,
                            &nested,
                            &cwd,
                            home.as_deref(),
                            &self.shared.servers,
                            self.events,
                        );
                        TurnInput::Message(prompt.await)
                    }
                    PromptOutcome::Answered(result) => return (*result, None),
                }
            }
            TurnInput::Shell(prompt) => {
                let model_answers = self.shared.model_answers_shell;
                match shell_line::run(prompt, model_answers, self.agent, self.events).await {
                    PromptOutcome::Prompt(prompt) => TurnInput::Message(prompt),
                    PromptOutcome::Answered(result) => return (*result, None),
                }
            }
            // The user did not type this input, so it is not parsed for commands and mentions.
            input @ (TurnInput::Scheduled(_) | TurnInput::BackgroundNotice) => input,
        };
        if let Some(schema) = self.output_schema {
            schema.reset();
        }
        let mut result = self.run_with_background(turn).await;
        let Some(schema) = self.output_schema else {
            return (result, None);
        };
        let mut retries = 0;
        loop {
            if result.is_error() || result.reason != EndReason::Completed {
                return (result, None);
            }
            let mismatch = match schema.parse_answer(&result.text) {
                Ok(value) => return (result, Some(Ok(value))),
                Err(mismatch) => mismatch,
            };
            if !schema.may_retry(retries) {
                return (result, Some(Err(mismatch)));
            }
            retries += 1;
            self.events.emit(&SessionEvent::Continues);
            let again = self
                .run_with_background(TurnInput::Message(mismatch.into()))
                .await;
            result = structured_output::merge_results(result, again);
        }
    }

    /// Runs the agent on an input. If `one_result` is set, also runs it on the results of background
    /// subagents, and merges these runs into one result.
    async fn run_with_background(&mut self, turn: TurnInput) -> RunResult {
        let mut result = self.run_agent(turn).await;
        while self.one_result && !result.is_error() {
            let has_notice = self
                .shared
                .stop
                .run_until_stopped(self.background.wait_for_agent_notice());
            if has_notice.await != Some(true) {
                break;
            }
            self.events.emit(&SessionEvent::Continues);
            let again = self.run_agent(TurnInput::BackgroundNotice).await;
            result = structured_output::merge_results(result, again);
        }
        result
    }

    /// Runs the agent once on an input. If the session is stopped, interrupts the run.
    async fn run_agent(&mut self, turn: TurnInput) -> RunResult {
        let shared = self.shared;
        let (agent, events) = (&mut *self.agent, self.events);
        if let (TurnInput::Message(prompt), Some(telemetry)) = (&turn, events.telemetry()) {
            telemetry.on_prompt(&prompt.content);
        }
        let run = async move {
            match turn {
                TurnInput::Message(prompt)
                | TurnInput::Shell(prompt)
                | TurnInput::Scheduled(prompt) => agent.run(prompt, events).await,
                TurnInput::BackgroundNotice => agent.run_background_notices(events).await,
            }
        };
        tokio::pin!(run);
        tokio::select! {
            biased;
            result = &mut run => result,
            () = shared.stop.wait() => {
                shared.control.interrupt();
                run.await
            }
        }
    }
}
