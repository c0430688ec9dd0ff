//! A decision as a tree: the parts of the call, what they do, what decided, and how a command would
//! be confined.

use std::sync::Arc;

use haft::{
    SessionContext,
    engine::permissions::{
        Bases, Behavior, Covered, Decision, Facts, Policy, Touched, decide, suggest, uncovered,
    },
};
use haft_host::{Permitted, SessionConfig, SessionParts, open_tools};
use haft_sandbox::Mechanism;
use haft_shell::{Arg, Effect, LinePart, Value as ArgValue, WriteKind};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::{confined::Confined, judge::Judge};
use crate::{
    approver::Terminal,
    args::SessionArgs,
    exit::Exit,
    modes::call,
    session,
    show::{self, Style},
};

pub(super) fn run(
    args: &SessionArgs,
    bash: Option<String>,
    words: &[String],
    as_json: bool,
) -> anyhow::Result<Exit> {
    let mut config = session::config(args)?;
    // A directory that is not there makes no session, and no difference here.
    config.directories.retain(|directory| directory.is_dir());
    let left_out = Permitted::load(&config)?.settings.left_out;
    let (tool, input) = match (bash, words) {
        (Some(command), _) => ("Bash".to_owned(), json!({ "command": command })),
        (None, [tool, input @ ..]) => (tool.clone(), call::input(input)?),
        (None, []) => anyhow::bail!("say which call, or --bash 'COMMAND'"),
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (mut policy, context, facts) = runtime.block_on(judged(&config, &tool, input))?;
    let bases = context.bases();
    // As it would be decided: a command that counts on being confined is asked about where it is not.
    let mechanism = facts.shell.is_some().then(session::strongest);
    Arc::make_mut(&mut policy.sandbox).unconfined = mechanism == Some(Mechanism::None);
    let explained = Explained {
        decision: decide(&policy, &facts),
        rules: suggestions(&policy, &facts, &bases),
        parts: uncovered(&policy, &facts),
        confined: Confined::of(&policy, &facts),
        left_out,
        weak: mechanism.and_then(Mechanism::warning),
        facts: &facts,
    };
    if as_json {
        show::json(&serde_json::to_string_pretty(&explained.json())?)?;
    } else {
        show::drawn(&explained.tree(Style::of_stdout()))?;
    }
    Ok(Exit::Success)
}

/// The call as a session here would find it.
async fn judged(
    config: &SessionConfig,
    tool: &str,
    input: Value,
) -> anyhow::Result<(Policy, SessionContext, Facts)> {
    let mut parts = SessionParts::new(session::warn);
    if let Some(terminal) = Terminal::of_this_process() {
        parts = parts.questions(terminal);
    }
    let haft = open_tools(config, parts).await?;
    let context = haft.context();
    let policy = haft.engine().policy(&context);
    let folder = haft.engine().folder().to_path_buf();
    let judge = Judge::new(haft.services().clone(), folder).await?;
    let facts = judge.facts(tool, input, &context).await;
    Ok((policy, context, facts.map_err(anyhow::Error::msg)?))
}

fn suggestions(policy: &Policy, facts: &Facts, bases: &Bases) -> Vec<String> {
    match decide(policy, facts).behavior {
        Behavior::Ask => suggest(policy, facts, bases),
        Behavior::Allow | Behavior::Deny => Vec::new(),
    }
}

struct Explained<'a> {
    decision: Decision,
    rules: Vec<String>,
    parts: Vec<(usize, Covered)>,
    confined: Option<Confined>,
    /// What of the settings waits for trust.
    left_out: Vec<String>,
    /// What does not hold of the confinement.
    weak: Option<String>,
    facts: &'a Facts,
}

impl Explained<'_> {
    /// What is read and not written: that a write needs to read is no news.
    fn only_read(&self) -> Vec<&Touched> {
        let Facts { reads, writes, .. } = self.facts;
        reads.iter().filter(|read| !writes.contains(read)).collect()
    }

    fn tree(&self, style: Style) -> String {
        let Decision { behavior, because } = &self.decision;
        let because = show::clean(&because.to_string());
        let mut text = format!("{}: {because}\n", style.bold(behavior.name()));
        if let Some(shell) = &self.facts.shell {
            for (at, covered) in &self.parts {
                let part = &shell.analysis.parts[*at];
                let depth = depth(&shell.analysis.parts, part);
                let indent = "  ".repeat(depth + 1);
                let name = if part.text.is_empty() {
                    let line = shell.line.get(part.span.start..part.span.end);
                    line.unwrap_or_default()
                } else {
                    &part.text
                };
                let said = match words(covered) {
                    (word, None) => word.to_owned(),
                    (word, Some(why)) => format!("{word}: {}", show::clean(&why)),
                };
                text += &format!(
                    "{indent}{}  {}\n",
                    style.bold(&show::clean(name).replace('\n', " ")),
                    style.dim(&said)
                );
                for effect in &part.finding.effects {
                    text += &format!("{indent}    {}\n", show::clean(&effect_text(effect)));
                }
            }
        } else {
            for touched in self.only_read() {
                text += &format!("  reads {}\n", path_text(touched));
            }
            for touched in &self.facts.writes {
                text += &format!("  writes {}\n", path_text(touched));
            }
            for target in &self.facts.fetches {
                text += &format!("  contacts {}\n", show::clean(&target.host));
            }
        }
        if let Some(confined) = &self.confined {
            for line in confined.text().lines() {
                text += &format!("{}\n", show::clean(line));
            }
        }
        if !self.rules.is_empty() {
            let rules = show::clean(&self.rules.join(", "));
            text += &format!("would be allowed by: {rules}\n");
        }
        if let Some(weak) = &self.weak {
            text += &format!("{weak}\n");
        }
        if !self.left_out.is_empty() {
            let left_out = show::clean(&self.left_out.join(", "));
            text += &format!("left out until this directory is trusted: {left_out}\n");
        }
        text.trim_end().to_owned()
    }

    fn json(&self) -> Value {
        let parts: Vec<Value> = match &self.facts.shell {
            None => Vec::new(),
            Some(shell) => self
                .parts
                .iter()
                .map(|(at, covered)| {
                    let part = &shell.analysis.parts[*at];
                    let (word, why) = words(covered);
                    json!({
                        "text": part.text,
                        "span": [part.span.start, part.span.end],
                        "argv": part.argv.iter().map(arg_text).collect::<Vec<_>>(),
                        "verdict": part.finding.verdict.name(),
                        "reason": part.finding.reason,
                        "effects": part.finding.effects.iter().map(effect_text).collect::<Vec<_>>(),
                        "covered": word,
                        "because": why,
                        "started_by": part.outer,
                    })
                })
                .collect(),
        };
        let paths = |touched: &[&Touched]| -> Vec<String> {
            let real = touched.iter().map(|path| path.real.display().to_string());
            real.collect()
        };
        let writes: Vec<&Touched> = self.facts.writes.iter().collect();
        json!({
            "decision": self.decision.behavior.name(),
            "because": self.decision.because.to_string(),
            "tool": self.facts.tool,
            "verdict": self.facts.shell.as_ref().map(|shell| shell.analysis.verdict.name()),
            "reason": self.facts.shell.as_ref().map(|shell| shell.analysis.reason.clone()),
            "reads": paths(&self.only_read()),
            "writes": paths(&writes),
            "parts": parts,
            "rules_that_would_allow": self.rules,
            "confinement": self.confined.as_ref().map(Confined::json),
            "left_out": self.left_out,
            "sandbox_warning": self.weak,
        })
    }
}

fn path_text(touched: &Touched) -> String {
    let [given, real] = touched
        .both()
        .map(|path| show::clean(&path.display().to_string()));
    if given == real {
        given
    } else {
        format!("{given}, which is {real}")
    }
}

/// What is to be said of a part by itself; a rule that denies is about the whole call.
fn words(covered: &Covered) -> (&'static str, Option<String>) {
    match covered {
        Covered::Harmless => ("harmless", None),
        Covered::By(because) => ("allowed", Some(because.to_string())),
        Covered::Nothing(why) => ("asks", Some(why.clone())),
    }
}

fn depth(parts: &[LinePart], part: &LinePart) -> usize {
    let mut depth = 0;
    let mut outer = part.outer;
    while let Some(at) = outer {
        depth += 1;
        outer = parts[at].outer;
    }
    depth
}

fn effect_text(effect: &Effect) -> String {
    match effect {
        Effect::Read(read) if read.walks => {
            format!("reads everything below {}", arg_text(&read.path))
        }
        Effect::Read(read) if read.content => format!("reads {}", arg_text(&read.path)),
        Effect::Read(read) => format!("looks at {}", arg_text(&read.path)),
        Effect::Write(write) => match write.how {
            WriteKind::Removal => format!("removes {}", arg_text(&write.path)),
            WriteKind::Tree => format!("writes what is below {}", arg_text(&write.path)),
            WriteKind::Work | WriteKind::Twist | WriteKind::Redirect => {
                format!("writes {}", arg_text(&write.path))
            }
        },
        Effect::Net(Some(host)) => format!("contacts {host}"),
        Effect::Net(None) => "contacts a host".to_owned(),
        Effect::Service(service) => service.reason().trim_start_matches("it ").to_owned(),
        Effect::Env(name) => format!("sets {name}"),
        Effect::Opaque(why) => format!("runs something unseen: {why}"),
    }
}

fn arg_text(arg: &Arg) -> String {
    match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => text.clone(),
        ArgValue::Unknown { prefix, .. } => format!("{prefix}…"),
    }
}
