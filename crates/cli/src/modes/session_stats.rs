//! `haft sessions stats`: usage, cost and calls of sessions.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::Context;
use haft_agent::transcript::{
    ProjectSessions,
    stats::{ModelStats, SessionStats, StatsReader, ToolStats},
};
use haft_host::{Environment, all_conversations, export, utc_time};
use haft_models::{Prices, Usage};
use serde_json::{Value, json};

use crate::{args::SessionArgs, session, show};

pub(crate) fn run(
    args: &SessionArgs,
    here: &ProjectSessions,
    named: Option<&str>,
    all: bool,
    as_json: bool,
) -> anyhow::Result<()> {
    let mut reader = StatsReader::new();
    if let Some(name) = named {
        let transcript = here.path(here.find(name)?);
        reader
            .read(&transcript)
            .with_context(|| transcript.display().to_string())?;
    } else {
        let places = match all {
            true => all_conversations(&Environment::from_process(), &session::cwd(args)?)?,
            false => vec![here.clone()],
        };
        let mut transcripts: Vec<PathBuf> = Vec::new();
        for place in places {
            // An unreadable folder is reported and skipped.
            match place.transcripts() {
                Ok(found) => transcripts.extend(found),
                Err(problem) => show::warn(&format!("haft: left out: {problem}")),
            }
        }
        // Messages that a fork copied are counted once, for the first transcript that contains
        // them. Because of the sorting, this does not depend on the directory order.
        transcripts.sort_unstable();
        for transcript in transcripts {
            if let Err(problem) = reader.read(&transcript) {
                let path = show::clean(&transcript.display().to_string());
                show::warn(&format!("haft: left out: {path}: {problem}"));
            }
        }
    }
    let (stats, prices) = (reader.finish(), export::prices(&session::config(args)?));
    let text = match as_json {
        true => return Ok(show::json(&to_json(&stats, &prices).to_string())?),
        false => to_text(&stats, &prices),
    };
    show::line(text.trim_end())?;
    Ok(())
}

/// The usage of one model and its cost in USD, if its price is known.
struct ModelSpend<'a> {
    model: &'a str,
    stats: ModelStats,
    cost: Option<f64>,
}

/// Returns the models by name, and the total. The total cost covers only models with a known price.
fn spent<'a>(stats: &'a SessionStats, prices: &Prices) -> (Vec<ModelSpend<'a>>, ModelSpend<'a>) {
    let mut total = ModelStats::default();
    let mut cost = 0.0;
    let rows = stats.models.iter().map(|(model, one)| {
        let own = prices.cost(model, &one.usage);
        cost += own.unwrap_or_default();
        total.replies += one.replies;
        total.usage.add(&one.usage);
        ModelSpend {
            model,
            stats: one.clone(),
            cost: own,
        }
    });
    let rows: Vec<ModelSpend<'_>> = rows.collect();
    let total = ModelSpend {
        model: "total",
        stats: total,
        cost: Some(cost),
    };
    (rows, total)
}

/// Returns the models that were used but have no known price.
fn unpriced<'a>(models: &[ModelSpend<'a>]) -> Vec<&'a str> {
    let took = |one: &&ModelSpend<'_>| one.cost.is_none() && one.stats.usage != Usage::default();
    models.iter().filter(took).map(|one| one.model).collect()
}

/// Returns the tools, the longest total time first, and their total.
fn tools(stats: &SessionStats) -> (Vec<(&str, &ToolStats)>, ToolStats) {
    let mut rows: Vec<(&str, &ToolStats)> = by_name(&stats.tools);
    rows.sort_unstable_by(|(a, one), (b, other)| {
        let more = (other.time, other.calls).cmp(&(one.time, one.calls));
        more.then_with(|| a.cmp(b))
    });
    let mut total = ToolStats::default();
    for (_, one) in &rows {
        total.calls += one.calls;
        total.errors += one.errors;
        total.refusals += one.refusals;
        total.time = total.time.saturating_add(one.time);
        total.waited = total.waited.saturating_add(one.waited);
    }
    (rows, total)
}

fn by_name<T>(map: &BTreeMap<String, T>) -> Vec<(&str, &T)> {
    map.iter().map(|(name, one)| (name.as_str(), one)).collect()
}

fn to_text(stats: &SessionStats, prices: &Prices) -> String {
    let moment = |time: Option<u64>| {
        let time = time.map(|time| std::time::UNIX_EPOCH + Duration::from_millis(time));
        time.map_or_else(|| "-".to_owned(), utc_time::show)
    };
    let mut text = format!(
        "sessions {}, subagents {}, prompts {}, failed requests {}\n",
        stats.sessions, stats.subagents, stats.prompts, stats.failures
    );
    if stats.first.is_some() {
        let (first, last) = (moment(stats.first), moment(stats.last));
        text += &format!("from {first} to {last} (UTC)\n");
    }
    if stats.unreadable > 0 {
        text += &format!("unreadable lines, skipped: {}\n", stats.unreadable);
    }
    let (models, total) = spent(stats, prices);
    if !models.is_empty() {
        let head = [
            "MODEL",
            "REPLIES",
            "INPUT",
            "OUTPUT",
            "CACHE READ",
            "CACHE WRITE",
            "USD",
        ];
        let row = |one: &ModelSpend<'_>| {
            let usage = &one.stats.usage;
            [
                name(one.model),
                one.stats.replies.to_string(),
                usage.input.to_string(),
                usage.output.to_string(),
                usage.cache_read.to_string(),
                usage.cache_write.to_string(),
                one.cost.map_or("-".to_owned(), |cost| format!("{cost:.4}")),
            ]
        };
        let rows = models.iter().chain([&total]).map(row);
        text += "\n";
        text += &show::table(
            &[head.map(str::to_owned)]
                .into_iter()
                .chain(rows)
                .collect::<Vec<_>>(),
        );
    }
    let unpriced = unpriced(&models);
    if !unpriced.is_empty() {
        let names: Vec<String> = unpriced.into_iter().map(name).collect();
        text += &format!(
            "No known price for {}: its tokens are not counted in USD. Set a price with `modelPrices` in your settings.\n",
            names.join(", ")
        );
    }
    let (tools, total) = tools(stats);
    if !tools.is_empty() {
        let head = ["TOOL", "CALLS", "ERRORS", "REFUSALS", "SECONDS", "WAITED"];
        let row = |(tool, one): (&str, &ToolStats)| {
            [
                name(tool),
                one.calls.to_string(),
                one.errors.to_string(),
                one.refusals.to_string(),
                format!("{:.1}", one.time.as_secs_f64()),
                format!("{:.1}", one.waited.as_secs_f64()),
            ]
        };
        let rows = tools.into_iter().chain([("total", &total)]).map(row);
        text += "\n";
        text += &show::table(
            &[head.map(str::to_owned)]
                .into_iter()
                .chain(rows)
                .collect::<Vec<_>>(),
        );
    }
    text
}

/// Returns a name that is safe to display; transcripts may contain any text.
fn name(name: &str) -> String {
    let words: Vec<String> = show::clean(name)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    match words.is_empty() {
        true => "(none)".to_owned(),
        false => words.join(" "),
    }
}

fn to_json(stats: &SessionStats, prices: &Prices) -> Value {
    let moment = |time: Option<u64>| {
        let time = time.map(|time| std::time::UNIX_EPOCH + Duration::from_millis(time));
        time.map(|time| haft::CalendarTime::from_system_time(time).to_millisecond())
    };
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let tokens = |usage: &Usage| {
        json!({
            "input": usage.input,
            "output": usage.output,
            "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write,
        })
    };
    let model = |one: &ModelSpend<'_>| {
        json!({
            "model": one.model,
            "replies": one.stats.replies,
            "tokens": tokens(&one.stats.usage),
            "costUsd": one.cost,
        })
    };
    let tool = |(tool, one): (&str, &ToolStats)| {
        json!({
            "tool": tool,
            "calls": one.calls,
            "errors": one.errors,
            "refusals": one.refusals,
            "durationMs": milliseconds(one.time),
            "waitedMs": milliseconds(one.waited),
        })
    };
    let (models, all_models) = spent(stats, prices);
    let (by_tool, all_tools) = tools(stats);
    json!({
        "sessions": stats.sessions,
        "subagents": stats.subagents,
        "prompts": stats.prompts,
        "failedRequests": stats.failures,
        "unreadableLines": stats.unreadable,
        "first": moment(stats.first),
        "last": moment(stats.last),
        "replies": all_models.stats.replies,
        "tokens": tokens(&all_models.stats.usage),
        "costUsd": all_models.cost,
        "modelsWithoutPrice": unpriced(&models),
        "calls": all_tools.calls,
        "errors": all_tools.errors,
        "refusals": all_tools.refusals,
        "durationMs": milliseconds(all_tools.time),
        "waitedMs": milliseconds(all_tools.waited),
        "models": models.iter().map(model).collect::<Vec<_>>(),
        "tools": by_tool.into_iter().map(tool).collect::<Vec<_>>(),
    })
}
