//! Tries a rule on past questions of the project, before it is saved.
//!
//! The facts of each past call are derived again from its input and directory, and decided by the
//! functions that decide real calls. No command runs. Work is limited by a number of calls and a
//! time; both limits are the caller's.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use haft_agent::transcript::past_questions::{PastQuestion, PastQuestions};
use haft_engine::{
    Engine, SessionContext,
    permissions::{
        DecisionBehavior, List, Policy, RuleSource, SettingsScope, decide, rules::RuleProblem,
    },
};

use crate::{
    CallExplainer, OpenError, ResolvedSettings, SessionConfig, SessionInput, SessionParts,
    conversations, open_tools, session_access::NOT_BEGUN,
};

/// The age of the oldest questions that are used by default.
pub const TRIAL_AGE: Duration = Duration::from_secs(90 * 86_400);

/// The maximum number of denied calls that are named in text.
const MAX_NAMED: usize = 3;

/// The maximum length of a named call in characters.
const MAX_NAME: usize = 80;

/// The limits of a trial.
#[derive(Debug, Clone, Copy)]
pub struct TrialLimits {
    /// The earliest time of a question.
    pub since: SystemTime,
    /// The maximum number of questions.
    pub max: usize,
    /// The time at which the trial ends with what it has. `None`: no limit.
    pub deadline: Option<Instant>,
}

impl TrialLimits {
    /// Returns the limits for a trial that takes at most this time.
    pub fn within(now: SystemTime, time: Duration) -> Self {
        Self {
            since: now.checked_sub(TRIAL_AGE).unwrap_or(UNIX_EPOCH),
            max: 5_000,
            deadline: Instant::now().checked_add(time),
        }
    }

    fn are_reached(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The outcome of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleTrial {
    /// The number of past questions.
    pub questions: usize,
    /// The number of questions that the rules would have answered.
    pub answered: usize,
    /// The number of questions that other rules answer by now.
    pub answered_already: usize,
    /// The calls among those answered that the user denied, newest first.
    pub denied: Vec<PastCall>,
    /// Whether a limit was reached, so that older questions were not used.
    pub is_truncated: bool,
}

/// A past call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// The tool.
    pub tool: String,
    /// The command, path or other main argument.
    pub subject: String,
    /// The time in seconds since 1970.
    pub time: i64,
}

impl RuleTrial {
    /// Returns the outcome as one sentence.
    pub fn sentence(&self) -> String {
        if self.questions == 0 {
            return "no past question of this project to try it on".to_owned();
        }
        let noun = if self.questions == 1 {
            "question"
        } else {
            "questions"
        };
        let mut text = format!(
            "would have answered {} of {} {noun}",
            self.answered, self.questions
        );
        if self.answered_already > 0 {
            text += &format!(" ({} are answered by other rules)", self.answered_already);
        }
        if !self.denied.is_empty() {
            let mut names: Vec<String> = self
                .denied
                .iter()
                .take(MAX_NAMED)
                .map(PastCall::name)
                .collect();
            if self.denied.len() > MAX_NAMED {
                names.push(format!("{} more", self.denied.len() - MAX_NAMED));
            }
            let denied = self.denied.len();
            text += &format!("; {denied} of these you denied: {}", names.join(", "));
        }
        text
    }
}

impl PastCall {
    fn new(question: &PastQuestion) -> Self {
        let input = &question.input;
        let named = ["command", "file_path", "path", "url"];
        let subject = named.iter().find_map(|name| input.get(name)?.as_str());
        Self {
            tool: question.tool.clone(),
            subject: subject.map_or_else(|| input.to_string(), str::to_owned),
            time: question.time,
        }
    }

    /// Returns the call on one line.
    fn name(&self) -> String {
        let subject = self
            .subject
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let short: String = subject.chars().take(MAX_NAME).collect();
        let rest = if short.len() < subject.len() {
            "…"
        } else {
            ""
        };
        match self.tool.as_str() {
            "Bash" => format!("`{short}{rest}`"),
            tool => format!("`{tool} {short}{rest}`"),
        }
    }
}

/// Tries allow rules as a session with this configuration would apply them.
pub async fn try_rules(
    config: &SessionConfig,
    parts: SessionParts,
    rules: &[String],
    limits: &TrialLimits,
) -> Result<RuleTrial, OpenError> {
    ResolvedSettings::load(config)?;
    let mut config = config.clone();
    config.directories.retain(|directory| directory.is_dir());
    let haft = open_tools(&config, parts).await?;
    let context = haft.context();
    let trial = try_in_session(&config, haft.engine(), &context, rules, limits).await;
    Ok(trial.map_err(anyhow::Error::msg)?)
}

impl SessionInput {
    /// Tries allow rules on past questions of this project. The error says what is wrong with them.
    pub async fn try_rules(
        &self,
        rules: &[String],
        limits: &TrialLimits,
    ) -> Result<RuleTrial, String> {
        let (engine, context) = self.0.access.engine().ok_or(NOT_BEGUN)?;
        try_in_session(&self.0.config, &engine, &context, rules, limits).await
    }
}

async fn try_in_session(
    config: &SessionConfig,
    engine: &Arc<Engine>,
    context: &SessionContext,
    rules: &[String],
    limits: &TrialLimits,
) -> Result<RuleTrial, String> {
    let folder = engine.folder().to_path_buf();
    let explainer = CallExplainer::new(engine.services().clone(), folder).await;
    let explainer = explainer.map_err(|error| error.to_string())?;
    let without = policy_without(&engine.policy(context), rules);
    let with = policy_with(&without, context, rules, &explainer)?;
    let sessions = conversations(&config.environment, &config.cwd);
    let since = limits.since.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let is_over = || limits.are_reached();
    let past = PastQuestions::read(&sessions, since, limits.max, &is_over);
    let mut trial = RuleTrial {
        is_truncated: past.is_truncated,
        ..RuleTrial::default()
    };
    for question in &past.questions {
        if is_over() {
            trial.is_truncated = true;
            break;
        }
        let mut context = context.clone();
        if let Some(cwd) = question.cwd.as_deref().filter(|cwd| cwd.is_absolute()) {
            context.cwd = Arc::from(cwd);
        }
        let input = question.input.clone();
        // Arguments that are invalid by now cannot be decided on.
        let Ok(facts) = explainer.facts(&question.tool, input, &context).await else {
            continue;
        };
        trial.questions += 1;
        let allows = |policy| decide(policy, &facts).behavior == DecisionBehavior::Allow;
        if allows(&without) {
            trial.answered_already += 1;
        } else if allows(&with) {
            trial.answered += 1;
            if question.is_denied {
                trial.denied.push(PastCall::new(question));
            }
        }
    }
    Ok(trial)
}

/// Returns the policy without allow rules of these texts.
fn policy_without(policy: &Policy, rules: &[String]) -> Policy {
    let mut without = policy.clone();
    let is_tried = |text: &str| rules.iter().any(|rule| rule.trim() == text);
    Arc::make_mut(&mut without.rules)
        .retain(|rule| rule.list != List::Allow || !is_tried(&rule.text));
    without
}

/// Returns the policy with these allow rules. The error says what is wrong with one.
fn policy_with(
    policy: &Policy,
    context: &SessionContext,
    rules: &[String],
    explainer: &CallExplainer,
) -> Result<Policy, String> {
    let problem = |problem: RuleProblem| format!("{}: {}", problem.rule, problem.problem);
    let mut with = policy.clone();
    let set = Arc::make_mut(&mut with.rules);
    for rule in rules {
        let source = RuleSource::from_scope(SettingsScope::Session);
        set.add(List::Allow, rule, source, &context.bases())
            .map_err(problem)?;
    }
    let problems = set.resolve_for_tools(&explainer.specs());
    let mut own = problems
        .into_iter()
        .filter(|one| rules.iter().any(|rule| rule.trim() == one.rule));
    own.next().map_or(Ok(with), |one| Err(problem(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_denied_calls() {
        let denied = |command: &str| PastCall {
            tool: "Bash".to_owned(),
            subject: command.to_owned(),
            time: 0,
        };
        let mut trial = RuleTrial {
            questions: 52,
            answered: 41,
            denied: vec![denied("cargo test\n  --release"), denied("cargo test x")],
            ..RuleTrial::default()
        };
        assert_eq!(
            trial.sentence(),
            "would have answered 41 of 52 questions; 2 of these you denied: \
             `cargo test --release`, `cargo test x`"
        );
        trial.denied.clear();
        trial.answered_already = 3;
        assert_eq!(
            trial.sentence(),
            "would have answered 41 of 52 questions (3 are answered by other rules)"
        );
        assert!(
            RuleTrial::default()
                .sentence()
                .starts_with("no past question")
        );
    }
}
