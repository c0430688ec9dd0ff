//! The queue of messages to a session.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use haft_agent::{AgentHandle, Prompt};
use haft_contract::{CancellationToken, Content};
use haft_engine::hooks::HookHandler;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{ScheduledPrompt, structured_output::OutputSchema};

/// The queue of messages.
#[derive(Default)]
pub(crate) struct PromptQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<QueueEntry>,
    /// The ids of tracked messages, in the order of their arrival; some may already be delivered.
    tracked: Vec<Uuid>,
    /// Content that gets no answer itself and is sent with the next message.
    pending_context: Vec<Content>,
    /// Whether the input is closed.
    closed: bool,
    /// The error if the input cannot be read.
    read_error: Option<String>,
    /// The start options.
    start_options: CheckedStartOptions,
    /// Whether the session is set up.
    is_set_up: bool,
    /// The token that interrupts the setup of the session for its first message.
    setting_up: Option<CancellationToken>,
    /// Whether a run is in progress.
    running: bool,
}

/// The time of a message's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptDelivery {
    /// Between two turns of the current run; without a run, next.
    Steer,
    /// After the run, when all earlier messages are answered.
    AfterRun,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuedKind {
    /// A prompt for the model, or a slash command.
    Prompt,
    /// A shell command line that the user typed.
    Shell,
}

/// A message that is not delivered yet.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// Its id.
    pub uuid: Uuid,
    /// Its content.
    pub prompt: Prompt,
    /// The time of its delivery.
    pub delivery: PromptDelivery,
    /// Its kind.
    pub kind: QueuedKind,
}

/// An entry of the queue.
struct QueueEntry {
    prompt: Prompt,
    delivery: PromptDelivery,
    kind: QueuedKind,
    /// Whether its delivery is reported.
    is_tracked: bool,
    /// The schedule that submitted it, if any.
    scheduled: Option<Box<ScheduledPrompt>>,
}

impl QueueEntry {
    fn to_queued_message(&self) -> Option<QueuedMessage> {
        Some(QueuedMessage {
            uuid: self.prompt.uuid?,
            prompt: self.prompt.clone(),
            delivery: self.delivery,
            kind: self.kind,
        })
    }

    /// Returns whether it can be merged with the message before it: both were sent to a run but
    /// came too late.
    fn can_merge(&self) -> bool {
        self.delivery == PromptDelivery::Steer && self.kind == QueuedKind::Prompt
    }
}

impl From<Prompt> for QueueEntry {
    fn from(prompt: Prompt) -> Self {
        Self {
            prompt,
            delivery: PromptDelivery::AfterRun,
            kind: QueuedKind::Prompt,
            is_tracked: false,
            scheduled: None,
        }
    }
}

/// The next message to answer.
pub(crate) struct NextMessage {
    pub(crate) prompt: Prompt,
    pub(crate) kind: QueuedKind,
    /// The messages whose delivery must be reported.
    pub(crate) delivered: Vec<QueuedMessage>,
    /// The schedule that submitted it, if any.
    pub(crate) scheduled: Option<Box<ScheduledPrompt>>,
}

impl From<ScheduledPrompt> for NextMessage {
    fn from(due: ScheduledPrompt) -> Self {
        let prompt = due.to_prompt();
        Self {
            scheduled: Some(Box::new(due)),
            ..prompt.into()
        }
    }
}

impl From<Prompt> for NextMessage {
    fn from(prompt: Prompt) -> Self {
        Self {
            prompt,
            kind: QueuedKind::Prompt,
            delivered: Vec::new(),
            scheduled: None,
        }
    }
}

/// Options of a session that can be set before its first message.
#[derive(Default)]
pub struct StartOptions {
    /// Hooks that the client runs.
    pub hooks: Vec<HookHandler>,
    /// Replaces our own system prompt, unless the configuration has one.
    pub system_prompt: Option<String>,
    /// A text appended to the system prompt, unless the configuration has one.
    pub append_system_prompt: Option<String>,
    /// A title, unless the configuration has one.
    pub title: Option<String>,
    /// Puts the description of the environment into the first message instead of the system prompt.
    pub environment_in_message: bool,
    /// The JSON schema that the answer must match, unless the configuration has one.
    pub output_schema: Option<Value>,
    /// Additional agent kinds, by name.
    pub agents: Map<String, Value>,
    /// MCP servers that the client runs, by name.
    pub servers: Vec<String>,
}

/// The start options, checked.
#[derive(Default)]
pub(crate) struct CheckedStartOptions {
    pub(crate) options: StartOptions,
    pub(crate) output_schema: Option<OutputSchema>,
}

impl PromptQueue {
    pub(crate) fn push(&self, prompt: Prompt) {
        self.state().messages.push_back(prompt.into());
        self.changed.notify_one();
    }

    /// Adds a message that is tracked by its id until it is delivered.
    pub(crate) fn push_tracked(
        &self,
        prompt: Prompt,
        delivery: PromptDelivery,
        kind: QueuedKind,
        control: &AgentHandle,
    ) {
        let mut state = self.state();
        state.remember(prompt.uuid, control);
        if delivery == PromptDelivery::Steer && state.running {
            control.steer(prompt);
        } else {
            let message = QueueEntry {
                prompt,
                delivery,
                kind,
                is_tracked: true,
                scheduled: None,
            };
            state.messages.push_back(message);
        }
        self.changed.notify_one();
    }

    /// Returns the undelivered messages, in the order of their delivery.
    pub(crate) fn queued(&self, control: &AgentHandle) -> Vec<QueuedMessage> {
        let state = self.state();
        let steered = control.queued_prompts().into_iter().filter_map(steered);
        let waiting = state
            .messages
            .iter()
            .filter_map(QueueEntry::to_queued_message);
        steered.chain(waiting).collect()
    }

    /// Withdraws an undelivered message.
    pub(crate) fn withdraw(&self, uuid: Uuid, control: &AgentHandle) -> Option<QueuedMessage> {
        let mut state = self.state();
        if let Some(prompt) = control.withdraw(uuid) {
            return steered(prompt);
        }
        let mut messages = state.messages.iter();
        let at = messages.position(|one| one.prompt.uuid == Some(uuid))?;
        state.messages.remove(at)?.to_queued_message()
    }

    /// Withdraws all undelivered messages, the oldest first.
    pub(crate) fn withdraw_all(&self, control: &AgentHandle) -> Vec<QueuedMessage> {
        let mut state = self.state();
        let mut taken: Vec<QueuedMessage> = control
            .take_queued()
            .into_iter()
            .filter_map(steered)
            .collect();
        let messages = mem::take(&mut state.messages);
        taken.extend(messages.iter().filter_map(QueueEntry::to_queued_message));
        let given = mem::take(&mut state.tracked);
        taken.sort_by_key(|one| given.iter().position(|uuid| *uuid == one.uuid));
        taken
    }

    /// Withdraws the newest undelivered message.
    pub(crate) fn withdraw_newest(&self, control: &AgentHandle) -> Option<QueuedMessage> {
        loop {
            let newest = self.state().tracked.pop()?;
            if let Some(taken) = self.withdraw(newest, control) {
                return Some(taken);
            }
        }
    }

    /// Puts a message at the front of the queue again, after it was taken from the queue.
    pub(crate) fn push_front(&self, next: NextMessage) {
        let message = QueueEntry {
            kind: next.kind,
            is_tracked: !next.delivered.is_empty(),
            scheduled: next.scheduled,
            ..next.prompt.into()
        };
        self.state().messages.push_front(message);
        self.changed.notify_one();
    }

    /// Sends a prompt to the current run; without one, it comes next.
    pub(crate) fn push_now(&self, prompt: Prompt, control: &AgentHandle) {
        let mut state = self.state();
        if state.running {
            control.steer(prompt.content);
        } else {
            state.messages.push_front(prompt.into());
        }
        self.changed.notify_one();
    }

    /// Adds content that gets no answer itself and is sent with the next message.
    pub(crate) fn push_context(&self, content: Vec<Content>) {
        self.state().pending_context.extend(content);
    }

    /// Closes the input.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Records that the input cannot be read.
    pub(crate) fn fail(&self, problem: String) {
        self.state().read_error = Some(problem);
        self.changed.notify_one();
    }

    /// Waits for the next message; `None` when the input is closed and the queue is empty. From
    /// then on, an interrupt applies to the run that the message starts.
    pub(crate) async fn next(&self, control: &AgentHandle) -> anyhow::Result<Option<NextMessage>> {
        loop {
            {
                let mut state = self.state();
                if let Some(what) = state.read_error.take() {
                    anyhow::bail!("{what}");
                }
                if let Some(next) = state.pop() {
                    // Done under the lock, so that the message cannot be withdrawn in between.
                    control.expect_run();
                    return Ok(Some(next));
                }
                if state.closed {
                    return Ok(None);
                }
            }
            self.changed.notified().await;
        }
    }

    /// Marks the start of a run: steering messages go to it.
    pub(crate) fn on_run_started(&self) {
        let mut state = self.state();
        state.running = true;
        state.setting_up = None;
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().running
    }

    /// Marks the start of the session's setup. Returns the token that interrupts it.
    pub(crate) fn start_setup(&self) -> CancellationToken {
        let token = CancellationToken::new();
        self.state().setting_up = Some(token.clone());
        token
    }

    /// Interrupts the setup of the session, if it is in progress.
    pub(crate) fn interrupt(&self) {
        if let Some(setting_up) = &self.state().setting_up {
            setting_up.cancel();
        }
    }

    /// Withdraws a queued message. Returns whether there was one.
    pub(crate) fn withdraw_by_id(&self, uuid: &str) -> bool {
        let mut state = self.state();
        let before = state.messages.len();
        let meant = |one: &Prompt| one.uuid.is_some_and(|id| id.to_string() == uuid);
        state.messages.retain(|one| !meant(&one.prompt));
        state.messages.len() < before
    }

    /// Returns the ids of the queued messages.
    pub(crate) fn waiting(&self) -> Vec<Option<Uuid>> {
        let state = self.state();
        state.messages.iter().map(|one| one.prompt.uuid).collect()
    }

    /// Withdraws all queued messages and returns their ids.
    pub(crate) fn clear(&self) -> Vec<Option<Uuid>> {
        let messages = mem::take(&mut self.state().messages);
        messages.iter().map(|one| one.prompt.uuid).collect()
    }

    /// Marks the end of a run: messages that reached it too late come next.
    pub(crate) fn on_run_ended(&self, control: &AgentHandle) {
        let mut state = self.state();
        state.running = false;
        control.cancel_expected_run();
        let (followed, others): (Vec<Prompt>, Vec<Prompt>) = control
            .take_queued()
            .into_iter()
            .partition(|one| one.uuid.is_some());
        for prompt in followed.into_iter().rev() {
            state.messages.push_front(QueueEntry {
                scheduled: None,
                prompt,
                delivery: PromptDelivery::Steer,
                kind: QueuedKind::Prompt,
                is_tracked: true,
            });
        }
        let late = others.into_iter().flat_map(|one| one.content);
        let late: Vec<Content> = late.collect();
        if !late.is_empty() {
            state.messages.push_front(Prompt::from(late).into());
        }
    }

    /// Returns whether the input is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// Stores the start options. `more` processes them further, and may refuse them.
    pub(crate) fn configure(
        &self,
        initial: CheckedStartOptions,
        more: impl FnOnce(&StartOptions) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut state = self.state();
        if state.is_set_up && !initial.options.hooks.is_empty() {
            return Err("hooks can be given before the first message only".to_owned());
        }
        more(&initial.options)?;
        state.start_options = initial;
        Ok(())
    }

    /// Takes the start options when the session starts; they cannot be changed after that.
    pub(crate) fn take_start_options(&self) -> CheckedStartOptions {
        let mut state = self.state();
        state.is_set_up = true;
        mem::take(&mut state.start_options)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes a steering message.
fn steered(prompt: Prompt) -> Option<QueuedMessage> {
    Some(QueuedMessage {
        uuid: prompt.uuid?,
        prompt,
        delivery: PromptDelivery::Steer,
        kind: QueuedKind::Prompt,
    })
}

impl QueueState {
    /// Adds the id of a new message, and removes the ids of delivered ones.
    fn remember(&mut self, uuid: Option<Uuid>, control: &AgentHandle) {
        let steering = control.queued_prompts();
        let messages = &self.messages;
        self.tracked.retain(|one| {
            let is = |prompt: &Prompt| prompt.uuid == Some(*one);
            steering.iter().any(is) || messages.iter().any(|message| is(&message.prompt))
        });
        self.tracked.extend(uuid);
    }

    /// Takes the next message, merged with those that belong to it.
    fn pop(&mut self) -> Option<NextMessage> {
        let first = self.messages.pop_front()?;
        let mut parts = vec![first];
        // Messages that came too late for a run are merged into one.
        while parts[0].can_merge()
            && let Some(next) = self.messages.pop_front_if(|next| next.can_merge())
        {
            parts.push(next);
        }
        let delivered = parts.iter().filter(|one| one.is_tracked);
        let delivered = delivered
            .filter_map(QueueEntry::to_queued_message)
            .collect();
        let kind = parts[0].kind;
        let scheduled = parts[0].scheduled.take();
        let mut prompts = parts.into_iter().map(|one| one.prompt);
        let mut prompt = prompts.next()?;
        for more in prompts {
            prompt.content.extend(more.content);
            prompt.mentions.extend(more.mentions);
        }
        let mut content = mem::take(&mut self.pending_context);
        content.append(&mut prompt.content);
        prompt.content = content;
        Some(NextMessage {
            prompt,
            kind,
            delivered,
            scheduled,
        })
    }
}
