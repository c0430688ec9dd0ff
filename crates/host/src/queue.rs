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

use crate::structured_output::Shape;

/// Messages that wait for their turn.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Prompt>,
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
    /// Where the session runs stands in the first message and not in the system prompt.
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
        self.state().messages.push_back(prompt);
        self.changed.notify_one();
    }

    /// Puts a message before all others.
    pub(crate) fn push_front(&self, prompt: Prompt) {
        self.state().messages.push_front(prompt);
        self.changed.notify_one();
    }

    /// Says it to the run that is under way; without one it comes next.
    pub(crate) fn push_now(&self, prompt: Prompt, control: &Control) {
        let mut state = self.state();
        if state.running {
            control.steer(prompt.content);
        } else {
            state.messages.push_front(prompt);
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

    /// The next message; `None` when nothing more comes.
    pub(crate) async fn next(&self) -> anyhow::Result<Option<Prompt>> {
        loop {
            {
                let mut state = self.state();
                if let Some(what) = state.broken.take() {
                    anyhow::bail!("{what}");
                }
                if let Some(mut prompt) = state.messages.pop_front() {
                    let mut content = mem::take(&mut state.beside);
                    content.append(&mut prompt.content);
                    prompt.content = content;
                    return Ok(Some(prompt));
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

    /// Takes back a message that waits. Says whether there was one.
    pub(crate) fn forget(&self, uuid: &str) -> bool {
        let mut state = self.state();
        let before = state.messages.len();
        let meant = |one: &Prompt| one.uuid.is_some_and(|id| id.to_string() == uuid);
        state.messages.retain(|one| !meant(one));
        state.messages.len() < before
    }

    /// The messages that wait, by their ids.
    pub(crate) fn waiting(&self) -> Vec<Option<Uuid>> {
        self.state().messages.iter().map(|one| one.uuid).collect()
    }

    /// Takes back all messages that wait, and names them.
    pub(crate) fn forget_all(&self) -> Vec<Option<Uuid>> {
        let messages = mem::take(&mut self.state().messages);
        messages.iter().map(|one| one.uuid).collect()
    }

    /// A run has ended: what was said to it too late comes next.
    pub(crate) fn run_ended(&self, control: &Control) {
        let mut state = self.state();
        state.running = false;
        let late: Vec<Content> = control.take_said().into_iter().flatten().collect();
        if !late.is_empty() {
            state.messages.push_front(late.into());
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
