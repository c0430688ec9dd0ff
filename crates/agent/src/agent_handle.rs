//! The handle that controls a running agent.

use std::{
    collections::VecDeque,
    mem,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{CancellationToken, PendingInput, PermissionMode, RuleList};
use haft_models::{ThinkingMode, Usage};
use uuid::Uuid;

use crate::{Prompt, subagents::MainAgentChange};

/// A handle on a running agent. Cheap to clone; all clones control the same agent.
#[derive(Debug, Clone, Default)]
pub struct AgentHandle {
    state: Arc<Mutex<AgentHandleState>>,
}

#[derive(Debug, Default)]
struct AgentHandleState {
    /// The token of the current run.
    run: Option<CancellationToken>,
    /// Whether a run is about to begin.
    is_expected: bool,
    /// Whether the next run is interrupted as soon as it begins.
    interrupts_next: bool,
    queued: VecDeque<Prompt>,
    /// The service that is set while prompts are queued, so that calls that only wait can end.
    pending_input: Option<Arc<PendingInput>>,
    changes: PendingChanges,
}

/// The changes that apply from the next request on.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    pub(crate) model: Option<String>,
    /// The context window of the model in tokens.
    pub(crate) window: Option<u64>,
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) thinking: Option<ThinkingMode>,
    /// The effort level; `Some(None)` is the provider's default.
    pub(crate) effort: Option<Option<String>>,
    /// Rules to add to those of the session.
    pub(crate) rules: Vec<(RuleList, String)>,
    /// Additional working directories.
    pub(crate) directories: Vec<PathBuf>,
    /// The new agent kind of the main agent.
    pub(crate) main_agent: Option<MainAgentChange>,
    /// Usage of requests that were made for this agent outside its loop.
    pub(crate) spent: Vec<(String, Usage)>,
}

impl AgentHandle {
    /// Interrupts the current run, or the one that is about to begin. The reply so far is
    /// preserved, running calls are cancelled, and every call gets a result. Returns whether a run
    /// was in progress.
    pub fn interrupt(&self) -> bool {
        let mut state = self.state();
        match &state.run {
            Some(run) => run.cancel(),
            None => state.interrupts_next |= state.is_expected,
        }
        state.run.is_some()
    }

    /// Declares that a run is about to begin: an interrupt from now on applies to it.
    pub fn expect_run(&self) {
        self.state().is_expected = true;
    }

    /// Withdraws [`expect_run`](Self::expect_run), whether or not a run has begun.
    pub fn cancel_expected_run(&self) {
        let mut state = self.state();
        (state.is_expected, state.interrupts_next) = (false, false);
    }

    /// Interrupts the next run before it sends a request.
    pub fn interrupt_next(&self) {
        self.state().interrupts_next = true;
    }

    /// Queues a prompt that is delivered between two turns of the current run, or with the next
    /// run.
    pub fn steer(&self, prompt: impl Into<Prompt>) {
        let mut state = self.state();
        state.queued.push_back(prompt.into());
        state.update_pending_input();
    }

    /// Returns the queued prompts in order.
    pub fn queued_prompts(&self) -> Vec<Prompt> {
        self.state().queued.iter().cloned().collect()
    }

    /// Withdraws the queued prompt with this id, if it was not delivered yet.
    pub fn withdraw(&self, uuid: Uuid) -> Option<Prompt> {
        let mut state = self.state();
        let index = state.queued.iter().position(|one| one.uuid == Some(uuid))?;
        let prompt = state.queued.remove(index);
        state.update_pending_input();
        prompt
    }

    /// Sets the service that is notified of queued prompts.
    pub(crate) fn set_pending_input(&self, pending_input: Arc<PendingInput>) {
        let mut state = self.state();
        state.pending_input = Some(pending_input);
        state.update_pending_input();
    }

    /// Changes the model from the next request on.
    pub fn set_model(&self, model: impl Into<String>) {
        self.state().changes.model = Some(model.into());
    }

    /// Changes the known context window from the next request on.
    pub fn set_window(&self, window: u64) {
        self.state().changes.window = Some(window);
    }

    /// Changes the agent kind of the main agent from the next request on.
    pub fn set_main_agent(&self, change: MainAgentChange) {
        self.state().changes.main_agent = Some(change);
    }

    /// Changes the permission mode from the next request on.
    pub fn set_permission_mode(&self, mode: PermissionMode) {
        self.state().changes.mode = Some(mode);
    }

    /// Changes the thinking mode from the next request on.
    pub fn set_thinking(&self, thinking: ThinkingMode) {
        self.state().changes.thinking = Some(thinking);
    }

    /// Changes the effort level from the next request on; `None` is the provider's default.
    pub fn set_effort(&self, effort: Option<String>) {
        self.state().changes.effort = Some(effort);
    }

    /// Adds a rule from the next request on.
    pub fn add_rule(&self, list: RuleList, rule: impl Into<String>) {
        self.state().changes.rules.push((list, rule.into()));
    }

    /// Adds a working directory (an absolute path) from the next request on.
    pub fn add_directory(&self, directory: impl Into<PathBuf>) {
        self.state().changes.directories.push(directory.into());
    }

    /// Adds usage of a request that was made for this agent, but not by it.
    pub fn spend(&self, model: impl Into<String>, usage: Usage) {
        self.state().changes.spent.push((model.into(), usage));
    }

    /// Returns the requested mode that was not applied yet.
    pub fn requested_mode(&self) -> Option<PermissionMode> {
        self.state().changes.mode
    }

    /// Returns the requested model that was not applied yet.
    pub fn requested_model(&self) -> Option<String> {
        self.state().changes.model.clone()
    }

    /// Starts a run, which ends when the guard is dropped (also if the run's future is dropped).
    pub(crate) fn start_run(&self) -> RunGuard {
        let cancel = CancellationToken::new();
        let mut state = self.state();
        state.run = Some(cancel.clone());
        state.is_expected = false;
        if mem::take(&mut state.interrupts_next) {
            cancel.cancel();
        }
        drop(state);
        RunGuard {
            cancel,
            control: self.clone(),
        }
    }

    pub(crate) fn take_changes(&self) -> PendingChanges {
        mem::take(&mut self.state().changes)
    }

    /// Withdraws all queued prompts.
    pub fn take_queued(&self) -> Vec<Prompt> {
        let mut state = self.state();
        let prompts = state.queued.drain(..).collect();
        state.update_pending_input();
        prompts
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.state().queued.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, AgentHandleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentHandleState {
    fn update_pending_input(&self) {
        if let Some(pending_input) = &self.pending_input {
            pending_input.set(!self.queued.is_empty());
        }
    }
}

/// The guard of the current run.
#[derive(Debug)]
pub(crate) struct RunGuard {
    pub(crate) cancel: CancellationToken,
    control: AgentHandle,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.control.state().run = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_reaches_the_run_that_is_about_to_begin_and_no_later_one() {
        let control = AgentHandle::default();
        control.interrupt();
        assert!(
            !control.start_run().cancel.is_cancelled(),
            "nothing went on"
        );
        control.expect_run();
        control.interrupt();
        let run = control.start_run();
        assert!(run.cancel.is_cancelled());
        drop(run);
        assert!(!control.start_run().cancel.is_cancelled());
        // What was to begin was no run.
        control.expect_run();
        control.interrupt();
        control.cancel_expected_run();
        assert!(!control.start_run().cancel.is_cancelled());
    }
}
