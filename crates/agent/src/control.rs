//! What can be done to an agent while it runs.

use std::{
    collections::VecDeque,
    mem,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{CancellationToken, PendingInput, PermissionMode, RuleList};
use haft_models::{Thinking, Usage};
use uuid::Uuid;

use crate::{Prompt, subagents::MainAgentChange};

/// A handle on a running agent. Cheap to clone; every clone means the same agent.
#[derive(Debug, Clone, Default)]
pub struct Control {
    state: Arc<Mutex<ControlState>>,
}

#[derive(Debug, Default)]
struct ControlState {
    /// Of the run that is under way.
    run: Option<CancellationToken>,
    /// One is about to begin.
    is_expected: bool,
    /// The next one is interrupted as it begins.
    is_unwanted: bool,
    said: VecDeque<Prompt>,
    /// Calls that only wait end when something is said.
    attention: Option<Arc<PendingInput>>,
    changes: Changes,
}

/// What is to be different from the next request on.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) model: Option<String>,
    /// How many tokens the model can read.
    pub(crate) window: Option<u64>,
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) thinking: Option<Thinking>,
    /// `Some(None)`: as the provider does by itself.
    pub(crate) effort: Option<Option<String>>,
    /// Rules that join those of the session.
    pub(crate) rules: Vec<(RuleList, String)>,
    /// Further working directories.
    pub(crate) directories: Vec<PathBuf>,
    /// Who the main agent is.
    pub(crate) main_agent: Option<MainAgentChange>,
    /// What others have spent for this agent.
    pub(crate) spent: Vec<(String, Usage)>,
}

impl Control {
    /// Interrupts the run that is under way, or about to begin: what the model has said so far stands,
    /// running calls are asked to stop, and every call is answered. Says whether one was under way.
    pub fn interrupt(&self) -> bool {
        let mut state = self.state();
        match &state.run {
            Some(run) => run.cancel(),
            None => state.is_unwanted |= state.is_expected,
        }
        state.run.is_some()
    }

    /// A run is about to begin: who interrupts from now on means that one.
    pub fn expect_run(&self) {
        self.state().is_expected = true;
    }

    /// What was to begin is over, whether or not it was a run.
    pub fn expect_none(&self) {
        let mut state = self.state();
        (state.is_expected, state.is_unwanted) = (false, false);
    }

    /// Interrupts the run that begins next, before anyone is asked.
    pub fn interrupt_next(&self) {
        self.state().is_unwanted = true;
    }

    /// Says something to the model between two rounds of the run that is under way; without one, with
    /// the next.
    pub fn steer(&self, prompt: impl Into<Prompt>) {
        let mut state = self.state();
        state.said.push_back(prompt.into());
        state.call_for_attention();
    }

    /// What was said and not delivered yet, in its order.
    pub fn said(&self) -> Vec<Prompt> {
        self.state().said.iter().cloned().collect()
    }

    /// Withdraws the message of this id, if it was not delivered yet.
    pub fn take_back(&self, uuid: Uuid) -> Option<Prompt> {
        let mut state = self.state();
        let at = state.said.iter().position(|one| one.uuid == Some(uuid))?;
        let prompt = state.said.remove(at);
        state.call_for_attention();
        prompt
    }

    /// Who is notified that something was said.
    pub(crate) fn gets(&self, attention: Arc<PendingInput>) {
        let mut state = self.state();
        state.attention = Some(attention);
        state.call_for_attention();
    }

    /// From the next request on, another model is asked.
    pub fn set_model(&self, model: impl Into<String>) {
        self.state().changes.model = Some(model.into());
    }

    /// From the next request on, the model is known to read this many tokens.
    pub fn set_window(&self, window: u64) {
        self.state().changes.window = Some(window);
    }

    /// From the next request on, the main agent is of another kind.
    pub fn set_main_agent(&self, change: MainAgentChange) {
        self.state().changes.main_agent = Some(change);
    }

    /// From the next request on, this permission mode.
    pub fn set_permission_mode(&self, mode: PermissionMode) {
        self.state().changes.mode = Some(mode);
    }

    /// From the next request on, the model thinks like this.
    pub fn set_thinking(&self, thinking: Thinking) {
        self.state().changes.thinking = Some(thinking);
    }

    /// From the next request on, the model puts this much work in; `None`: as much as it does by itself.
    pub fn set_effort(&self, effort: Option<String>) {
        self.state().changes.effort = Some(effort);
    }

    /// From the next request on, this rule counts too.
    pub fn add_rule(&self, list: RuleList, rule: impl Into<String>) {
        self.state().changes.rules.push((list, rule.into()));
    }

    /// From the next request on, calls may read and edit this directory too; an absolute path.
    pub fn add_directory(&self, directory: impl Into<PathBuf>) {
        self.state().changes.directories.push(directory.into());
    }

    /// Something was asked of a model for this agent, beside its own requests: it counts as its own.
    pub fn spend(&self, model: impl Into<String>, usage: Usage) {
        self.state().changes.spent.push((model.into(), usage));
    }

    /// The mode that was asked for and is not taken over yet.
    pub fn asked_mode(&self) -> Option<PermissionMode> {
        self.state().changes.mode
    }

    /// The model that was asked for and is not taken over yet.
    pub fn asked_model(&self) -> Option<String> {
        self.state().changes.model.clone()
    }

    /// A run begins. It ends when the guard is dropped, also with the future that holds it.
    pub(crate) fn begin(&self) -> Running {
        let cancel = CancellationToken::new();
        let mut state = self.state();
        state.run = Some(cancel.clone());
        state.is_expected = false;
        if mem::take(&mut state.is_unwanted) {
            cancel.cancel();
        }
        drop(state);
        Running {
            cancel,
            control: self.clone(),
        }
    }

    pub(crate) fn take_changes(&self) -> Changes {
        mem::take(&mut self.state().changes)
    }

    /// Withdraws what was said and not delivered yet.
    pub fn take_said(&self) -> Vec<Prompt> {
        let mut state = self.state();
        let said = state.said.drain(..).collect();
        state.call_for_attention();
        said
    }

    pub(crate) fn has_said(&self) -> bool {
        !self.state().said.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlState {
    fn call_for_attention(&self) {
        if let Some(attention) = &self.attention {
            attention.set(!self.said.is_empty());
        }
    }
}

/// A run that is under way.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) cancel: CancellationToken,
    control: Control,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.state().run = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_reaches_the_run_that_is_about_to_begin_and_no_later_one() {
        let control = Control::default();
        control.interrupt();
        assert!(!control.begin().cancel.is_cancelled(), "nothing went on");
        control.expect_run();
        control.interrupt();
        let run = control.begin();
        assert!(run.cancel.is_cancelled());
        drop(run);
        assert!(!control.begin().cancel.is_cancelled());
        // What was to begin was no run.
        control.expect_run();
        control.interrupt();
        control.expect_none();
        assert!(!control.begin().cancel.is_cancelled());
    }
}
