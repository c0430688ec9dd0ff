//! Permissions of a session that end after a time or with the result of a prompt.
//!
//! A grant is a set of allow rules that the user agreed to. Grants are in memory only: no file or
//! transcript contains them, so they never survive a resume. All agents of a session share them.
//! The decision itself does not depend on the time: before each decision, the rules of the grants
//! in force are added to the session's rules.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_contract::{ContextPatch, GrantEnd, RuleList};

use crate::{
    SessionContext,
    permissions::{CallFacts, Policy, rules::split_rule, suggest},
};

/// The maximum number of grants in force, and of ended ones that a later question may mention.
const MAX_GRANTS: usize = 200;

/// The maximum number of rules that a question names.
const MAX_NAMED_RULES: usize = 3;

/// Returns the current time.
pub type GrantClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The grants of a session.
pub struct TimedGrants {
    clock: GrantClock,
    state: Mutex<GrantState>,
}

#[derive(Default)]
struct GrantState {
    in_force: Vec<TimedGrant>,
    /// Ended grants that no question has mentioned yet, the oldest first.
    ended: Vec<TimedGrant>,
}

#[derive(Debug, Clone)]
struct TimedGrant {
    rules: Vec<String>,
    end: GrantEnd,
    begin: SystemTime,
    /// The time at which the grant ends; `None` for a task.
    deadline: Option<SystemTime>,
}

/// A rule of a grant in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedRule {
    /// The rule.
    pub rule: String,
    /// The time left. `None`: until the result of the current prompt.
    pub left: Option<Duration>,
}

impl Default for TimedGrants {
    fn default() -> Self {
        Self::new(Arc::new(SystemTime::now))
    }
}

impl fmt::Debug for TimedGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedGrants").finish_non_exhaustive()
    }
}

impl TimedGrant {
    /// Returns whether the grant is in force. A clock that was set back before its begin ends it.
    fn is_in_force(&self, now: SystemTime) -> bool {
        self.deadline
            .is_none_or(|deadline| self.begin <= now && now < deadline)
    }

    /// Returns the sentence that the grant has ended.
    fn ended_text(&self) -> String {
        let mut names: Vec<String> = self.rules.iter().map(|rule| rule_name(rule)).collect();
        if names.len() > MAX_NAMED_RULES {
            let more = names.len() - MAX_NAMED_RULES;
            names.truncate(MAX_NAMED_RULES);
            names.push(format!("{more} more"));
        }
        let names = names.join(", ");
        match self.end.adjective() {
            Some(duration) => format!("the {duration} permission for {names} has ended"),
            None => format!("the permission for {names} has ended with its task"),
        }
    }
}

/// Returns the command of a rule like `Bash(cargo test *)`, otherwise the whole rule.
fn rule_name(rule: &str) -> String {
    match split_rule(rule) {
        Ok(("Bash", Some(command))) => format!("`{command}`"),
        _ => format!("`{rule}`"),
    }
}

impl TimedGrants {
    /// Creates an empty set that uses this clock.
    pub fn new(clock: GrantClock) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// Adds a grant. One whose end cannot be computed is left out.
    pub(crate) fn add(&self, rules: &[String], end: GrantEnd) {
        let begin = (self.clock)();
        let deadline = match end {
            GrantEnd::Task => None,
            GrantEnd::Seconds(seconds) => match begin.checked_add(Duration::from_secs(seconds)) {
                Some(deadline) => Some(deadline),
                None => return,
            },
        };
        let mut state = self.state();
        let is_other = |one: &TimedGrant| one.rules != rules;
        state.ended.retain(is_other);
        if rules.is_empty() || state.in_force.len() >= MAX_GRANTS {
            return;
        }
        state.in_force.push(TimedGrant {
            rules: rules.to_vec(),
            end,
            begin,
            deadline,
        });
    }

    /// Ends the grants for the current task.
    pub fn end_task(&self) {
        self.state().end(|grant| grant.end == GrantEnd::Task);
    }

    /// Ends all grants with this rule at the user's request. Returns whether there were any. No
    /// question mentions them.
    pub fn revoke(&self, rule: &str) -> bool {
        let mut state = self.state();
        let before = state.in_force.len();
        let has_rule = |grant: &TimedGrant| grant.rules.iter().any(|one| one == rule);
        state.in_force.retain(|grant| !has_rule(grant));
        before != state.in_force.len()
    }

    /// Returns the rules of the grants in force.
    pub fn list(&self) -> Vec<GrantedRule> {
        let now = (self.clock)();
        let state = self.current(now);
        let rules = state.in_force.iter().flat_map(|grant| {
            let left = grant.deadline;
            let left = left.map(|end| end.duration_since(now).unwrap_or_default());
            let rules = grant.rules.iter();
            rules.map(move |rule| GrantedRule {
                rule: rule.clone(),
                left,
            })
        });
        rules.collect()
    }

    /// Returns the context with the rules of the grants in force.
    pub(crate) fn add_to<'a>(&self, context: &'a SessionContext) -> Cow<'a, SessionContext> {
        let state = self.current((self.clock)());
        if state.in_force.is_empty() {
            return Cow::Borrowed(context);
        }
        let mut extended = context.clone();
        for rule in state.in_force.iter().flat_map(|grant| &grant.rules) {
            extended.apply(&ContextPatch::AddRule {
                list: RuleList::Allow,
                rule: rule.clone(),
            });
        }
        Cow::Owned(extended)
    }

    /// Returns a sentence for each ended grant that would have allowed this call, only once.
    pub(crate) fn take_ended(
        &self,
        policy: &Policy,
        facts: &CallFacts,
        context: &SessionContext,
    ) -> Vec<String> {
        let ended = self.current((self.clock)()).ended.clone();
        let bases = context.bases();
        let covers = |rules: &[String]| suggest::would_allow_call(policy, facts, &bases, rules);
        let mut covering: Vec<&TimedGrant> =
            ended.iter().filter(|grant| covers(&grant.rules)).collect();
        if covering.is_empty() {
            let all: Vec<String> = ended.iter().flat_map(|one| one.rules.clone()).collect();
            if covers(&all) {
                covering = ended.iter().collect();
            }
        }
        let is_covering = |one: &TimedGrant| covering.iter().any(|grant| grant.rules == one.rules);
        self.state().ended.retain(|one| !is_covering(one));
        covering.into_iter().map(TimedGrant::ended_text).collect()
    }

    /// Returns the grants after those that have ended by now were moved to the ended ones.
    fn current(&self, now: SystemTime) -> MutexGuard<'_, GrantState> {
        let mut state = self.state();
        state.end(|grant| !grant.is_in_force(now));
        state
    }

    fn state(&self) -> MutexGuard<'_, GrantState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GrantState {
    fn end(&mut self, is_over: impl Fn(&TimedGrant) -> bool) {
        let (over, in_force) = std::mem::take(&mut self.in_force)
            .into_iter()
            .partition(is_over);
        self.in_force = in_force;
        self.ended.extend::<Vec<TimedGrant>>(over);
        let excess = self.ended.len().saturating_sub(MAX_GRANTS);
        self.ended.drain(..excess);
    }
}
