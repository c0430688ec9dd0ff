//! `haft permissions try`: tries a rule on past questions.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use haft_host::{PastCall, RuleTrial, SessionParts, TrialLimits, try_rules, utc_time};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{args::SessionArgs, exit::Exit, session, show};

/// The maximum time of a trial that the user waits for.
const MAX_TIME: Duration = Duration::from_secs(60);

pub(super) fn run(
    args: &SessionArgs,
    rules: &[String],
    since: Option<&str>,
    as_json: bool,
) -> anyhow::Result<Exit> {
    let config = session::config(args)?;
    let now = SystemTime::now();
    let mut limits = TrialLimits::within(now, MAX_TIME);
    if let Some(since) = since {
        limits.since = utc_time::parse(since, now).with_context(|| {
            format!("--since {since}: expected a span such as 12h or 30d, or a time such as 2026-01-31T12:00 (UTC)")
        })?;
    }
    let parts = SessionParts::new(session::warn);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let trial = runtime.block_on(try_rules(&config, parts, rules, &limits))?;
    if as_json {
        show::json(&serde_json::to_string_pretty(&to_json(rules, &trial))?)?;
        return Ok(Exit::Success);
    }
    show::line(&show::clean(&trial.sentence()))?;
    for call in &trial.denied {
        show::line(&format!(
            "  denied {}: {}",
            time(call),
            show::clean(&call.subject)
        ))?;
    }
    if trial.is_truncated {
        show::line("A limit was reached: older questions were not used.")?;
    }
    Ok(Exit::Success)
}

fn time(call: &PastCall) -> String {
    let seconds = u64::try_from(call.time).unwrap_or_default();
    utc_time::show(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn to_json(rules: &[String], trial: &RuleTrial) -> Value {
    let denied = trial.denied.iter();
    let denied: Vec<Value> = denied
        .map(|call| json!({"tool": call.tool, "subject": call.subject, "time": time(call)}))
        .collect();
    json!({
        "rules": rules,
        "questions": trial.questions,
        "answered": trial.answered,
        "answered_already": trial.answered_already,
        "denied": denied,
        "truncated": trial.is_truncated,
        "text": trial.sentence(),
    })
}
