//! Messages that wait for their turn.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use haft_agent::{Control, Prompt};
use haft_contract::{CancellationToken, Content};
use haft_engine::hooks::Handler;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{ScheduledPrompt, structured_output::Shape};

/// Messages that wait for their turn.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<WaitingMessage>,
    /// Ids of messages that are followed, in the order in which they came; some may be delivered already.
    given: Vec<Uuid>,
    /// Said, but not to be answered by itself: goes with the next.
    beside: Vec<Content>,
    /// Nothing more comes.
    closed: bool,
    /// Something came that cannot be read.
    broken: Option<String>,
    /// What the session is to be set up with.
    initial: Initial,
    /// The session is set up.
    begun: bool,
    /// The session is being set up for its first message; an interrupt ends that.
    setting_up: Option<CancellationToken>,
    /// A run is under way.
    running: bool,
}

/// When a message is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Between two rounds of the run that is under way; without one, next.
    Steer,
    /// After the run, when all that waits before it is answered.
    AfterRun,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuedKind {
    /// Something said to the model, or a command that begins with a slash.
    Said,
    /// A command line for the shell that a person typed.
    Shell,
}

/// A message that was given and not delivered yet.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// Its id.
    pub uuid: Uuid,
    /// What it says.
    pub prompt: Prompt,
    /// When it is to be delivered.
    pub delivery: Delivery,
    /// What it is.
    pub kind: QueuedKind,
}

/// A message in the queue.
struct WaitingMessage {
    prompt: Prompt,
    delivery: Delivery,
    kind: QueuedKind,
    /// Its delivery is reported.
    is_followed: bool,
    /// It is said because its time has come.
    scheduled: Option<Box<ScheduledPrompt>>,
}

impl WaitingMessage {
    fn described(&self) -> Option<QueuedMessage> {
        Some(QueuedMessage {
            uuid: self.prompt.uuid?,
            prompt: self.prompt.clone(),
            delivery: self.delivery,
            kind: self.kind,
        })
    }

    /// It may be delivered together with the one before it: both came too late for a run.
    fn joins(&self) -> bool {
        self.delivery == Delivery::Steer && self.kind == QueuedKind::Said
    }
}

impl From<Prompt> for WaitingMessage {
    fn from(prompt: Prompt) -> Self {
        Self {
            prompt,
            delivery: Delivery::AfterRun,
            kind: QueuedKind::Said,
            is_followed: false,
            scheduled: None,
        }
    }
}

/// A message whose turn it is.
pub(crate) struct NextMessage {
    pub(crate) prompt: Prompt,
    pub(crate) kind: QueuedKind,
    /// Those of which this is to be reported.
    pub(crate) delivered: Vec<QueuedMessage>,
    /// It is said because its time has come.
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
            kind: QueuedKind::Said,
            delivered: Vec::new(),
            scheduled: None,
        }
    }
}

/// What can still be said of a session before its first message.
#[derive(Default)]
pub struct StartOptions {
    /// Hooks that the other side runs.
    pub hooks: Vec<Handler>,
    /// In place of our own system prompt, where the configuration has none.
    pub system_prompt: Option<String>,
    /// Behind the system prompt, where the configuration has nothing.
    pub append_system_prompt: Option<String>,
    /// A title, where the configuration has none.
    pub title: Option<String>,
    /// The description of the environment goes into the first message, not into the system prompt.
    pub environment_in_message: bool,
    /// The answer must be JSON of this schema, where the configuration has none.
    pub output_schema: Option<Value>,
    /// Further kinds of subagents, by name.
    pub agents: Map<String, Value>,
    /// MCP servers that the other side runs, by name.
    pub servers: Vec<String>,
}

/// The same, checked.
#[derive(Default)]
pub(crate) struct Initial {
    pub(crate) options: StartOptions,
    pub(crate) shape: Option<Shape>,
}

impl Queue {
    pub(crate) fn push(&self, prompt: Prompt) {
        self.state().messages.push_back(prompt.into());
        self.changed.notify_one();
    }

    /// The same, for one who follows what becomes of it: it has an id.
    pub(crate) fn push_followed(
        &self,
        prompt: Prompt,
        delivery: Delivery,
        kind: QueuedKind,
        control: &Control,
    ) {
        let mut state = self.state();
        state.remember(prompt.uuid, control);
        if delivery == Delivery::Steer && state.running {
            control.steer(prompt);
        } else {
            let message = WaitingMessage {
                prompt,
                delivery,
                kind,
                is_followed: true,
                scheduled: None,
            };
            state.messages.push_back(message);
        }
        self.changed.notify_one();
    }

    /// What was given and not delivered yet, in the order in which it will be.
    pub(crate) fn queued(&self, control: &Control) -> Vec<QueuedMessage> {
        let state = self.state();
        let steered = control.said().into_iter().filter_map(steered);
        let waiting = state.messages.iter().filter_map(WaitingMessage::described);
        steered.chain(waiting).collect()
    }

    /// Withdraws a message that was not delivered yet.
    pub(crate) fn take_back(&self, uuid: Uuid, control: &Control) -> Option<QueuedMessage> {
        let mut state = self.state();
        if let Some(prompt) = control.take_back(uuid) {
            return steered(prompt);
        }
        let mut messages = state.messages.iter();
        let at = messages.position(|one| one.prompt.uuid == Some(uuid))?;
        state.messages.remove(at)?.described()
    }

    /// Withdraws everything that was not delivered yet, the oldest first.
    pub(crate) fn take_back_all(&self, control: &Control) -> Vec<QueuedMessage> {
        let mut state = self.state();
        let mut taken: Vec<QueuedMessage> = control
            .take_said()
            .into_iter()
            .filter_map(steered)
            .collect();
        let messages = mem::take(&mut state.messages);
        taken.extend(messages.iter().filter_map(WaitingMessage::described));
        let given = mem::take(&mut state.given);
        taken.sort_by_key(|one| given.iter().position(|uuid| *uuid == one.uuid));
        taken
    }

    /// Withdraws the message that came last, of those that were not delivered yet.
    pub(crate) fn take_back_newest(&self, control: &Control) -> Option<QueuedMessage> {
        loop {
            let newest = self.state().given.pop()?;
            if let Some(taken) = self.take_back(newest, control) {
                return Some(taken);
            }
        }
    }

    /// Puts a message back whose turn it was already, before all others.
    pub(crate) fn push_back_in_front(&self, next: NextMessage) {
        let message = WaitingMessage {
            kind: next.kind,
            is_followed: !next.delivered.is_empty(),
            scheduled: next.scheduled,
            ..next.prompt.into()
        };
        self.state().messages.push_front(message);
        self.changed.notify_one();
    }

    /// Says it to the run that is under way; without one it comes next.
    pub(crate) fn push_now(&self, prompt: Prompt, control: &Control) {
        let mut state = self.state();
        if state.running {
            control.steer(prompt.content);
        } else {
            state.messages.push_front(prompt.into());
        }
        self.changed.notify_one();
    }

    /// Said, but not to be answered by itself: goes with the next message.
    pub(crate) fn push_beside(&self, content: Vec<Content>) {
        self.state().beside.extend(content);
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Something came that cannot be read.
    pub(crate) fn broken(&self, problem: String) {
        self.state().broken = Some(problem);
        self.changed.notify_one();
    }

    /// The next message; `None` when nothing more comes. From then on an interrupt is one of the run that it
    /// begins.
    pub(crate) async fn next(&self, control: &Control) -> anyhow::Result<Option<NextMessage>> {
        loop {
            {
                let mut state = self.state();
                if let Some(what) = state.broken.take() {
                    anyhow::bail!("{what}");
                }
                if let Some(next) = state.pop() {
                    // While no one can take it back.
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

    /// A run begins: what must be said now is said to it.
    pub(crate) fn run_begins(&self) {
        let mut state = self.state();
        state.running = true;
        state.setting_up = None;
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().running
    }

    /// The session is set up from now on; the token fires when someone interrupts that.
    pub(crate) fn set_up_begins(&self) -> CancellationToken {
        let token = CancellationToken::new();
        self.state().setting_up = Some(token.clone());
        token
    }

    /// Interrupts the setting up of the session, if that is under way.
    pub(crate) fn interrupt(&self) {
        if let Some(setting_up) = &self.state().setting_up {
            setting_up.cancel();
        }
    }

    /// Withdraws a message that waits. Says whether there was one.
    pub(crate) fn forget(&self, uuid: &str) -> bool {
        let mut state = self.state();
        let before = state.messages.len();
        let meant = |one: &Prompt| one.uuid.is_some_and(|id| id.to_string() == uuid);
        state.messages.retain(|one| !meant(&one.prompt));
        state.messages.len() < before
    }

    /// The messages that wait, by their ids.
    pub(crate) fn waiting(&self) -> Vec<Option<Uuid>> {
        let state = self.state();
        state.messages.iter().map(|one| one.prompt.uuid).collect()
    }

    /// Withdraws all messages that wait, and names them.
    pub(crate) fn forget_all(&self) -> Vec<Option<Uuid>> {
        let messages = mem::take(&mut self.state().messages);
        messages.iter().map(|one| one.prompt.uuid).collect()
    }

    /// A run has ended: what was said to it too late comes next.
    pub(crate) fn run_ended(&self, control: &Control) {
        let mut state = self.state();
        state.running = false;
        control.expect_none();
        let (followed, others): (Vec<Prompt>, Vec<Prompt>) = control
            .take_said()
            .into_iter()
            .partition(|one| one.uuid.is_some());
        for prompt in followed.into_iter().rev() {
            state.messages.push_front(WaitingMessage {
                scheduled: None,
                prompt,
                delivery: Delivery::Steer,
                kind: QueuedKind::Said,
                is_followed: true,
            });
        }
        let late = others.into_iter().flat_map(|one| one.content);
        let late: Vec<Content> = late.collect();
        if !late.is_empty() {
            state.messages.push_front(Prompt::from(late).into());
        }
    }

    /// Nothing more comes than what is here.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// Takes over what is still to be said of the session. `more` is done with it, and may refuse.
    pub(crate) fn configure(
        &self,
        initial: Initial,
        more: impl FnOnce(&StartOptions) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut state = self.state();
        if state.begun && !initial.options.hooks.is_empty() {
            return Err("hooks can be given before the first message only".to_owned());
        }
        more(&initial.options)?;
        state.initial = initial;
        Ok(())
    }

    /// What was said of the session so far; from now on it is too late to say more.
    pub(crate) fn begin(&self) -> Initial {
        let mut state = self.state();
        state.begun = true;
        mem::take(&mut state.initial)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message that steers, as it is listed.
fn steered(prompt: Prompt) -> Option<QueuedMessage> {
    Some(QueuedMessage {
        uuid: prompt.uuid?,
        prompt,
        delivery: Delivery::Steer,
        kind: QueuedKind::Said,
    })
}

impl QueueState {
    /// A message came; those that were delivered are forgotten.
    fn remember(&mut self, uuid: Option<Uuid>, control: &Control) {
        let steering = control.said();
        let messages = &self.messages;
        self.given.retain(|one| {
            let is = |prompt: &Prompt| prompt.uuid == Some(*one);
            steering.iter().any(is) || messages.iter().any(|message| is(&message.prompt))
        });
        self.given.extend(uuid);
    }

    /// The next message, with what goes with it.
    fn pop(&mut self) -> Option<NextMessage> {
        let first = self.messages.pop_front()?;
        let mut parts = vec![first];
        // What came too late for a run is one message.
        while parts[0].joins()
            && let Some(next) = self.messages.pop_front_if(|next| next.joins())
        {
            parts.push(next);
        }
        let delivered = parts.iter().filter(|one| one.is_followed);
        let delivered = delivered.filter_map(WaitingMessage::described).collect();
        let kind = parts[0].kind;
        let scheduled = parts[0].scheduled.take();
        let mut prompts = parts.into_iter().map(|one| one.prompt);
        let mut prompt = prompts.next()?;
        for more in prompts {
            prompt.content.extend(more.content);
            prompt.mentions.extend(more.mentions);
        }
        let mut content = mem::take(&mut self.beside);
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
