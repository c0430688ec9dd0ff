//! Shows a permission decision as a tree: the parts of the call, their effects, the reasons, and
//! the confinement of the command.

use haft::{
    RuleOffer,
    contract::rule_offer::OfferKind,
    engine::permissions::{
        CallFacts, Decision, TouchedPath,
        approval_parts::{
            arg_text, effect_text, part_decision, part_depth, part_text, touched_text,
        },
        suggest,
    },
};
use haft_host::{ExplainedCall, SessionParts, explain_call, offer_title};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::confinement_text::ConfinementText;
use crate::{
    args::SessionArgs,
    exit::Exit,
    modes::call,
    session,
    show::{self, ConsoleStyle},
    terminal_approver::TerminalApprover,
};

pub(super) fn run(
    args: &SessionArgs,
    bash: Option<String>,
    words: &[String],
    as_json: bool,
) -> anyhow::Result<Exit> {
    let config = session::config(args)?;
    let (tool, input) = match (bash, words) {
        (Some(command), _) => ("Bash".to_owned(), json!({ "command": command })),
        (None, [tool, input @ ..]) => (tool.clone(), call::input(input)?),
        (None, []) => anyhow::bail!("name a call, or use --bash 'COMMAND'"),
    };
    let mut parts = SessionParts::new(session::warn);
    if let Some(terminal) = TerminalApprover::from_stdio() {
        parts = parts.questions(terminal);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let explained = runtime.block_on(explain_call(&config, parts, &tool, input))?;
    let explained = ExplainedTree(&explained);
    if as_json {
        show::json(&serde_json::to_string_pretty(&explained.json())?)?;
    } else {
        show::drawn(&explained.tree(ConsoleStyle::of_stdout()))?;
    }
    Ok(Exit::Success)
}

struct ExplainedTree<'a>(&'a ExplainedCall);

impl ExplainedTree<'_> {
    /// Returns the paths that are only read. A path that is also written is shown only as written.
    fn only_read(&self) -> Vec<&TouchedPath> {
        let CallFacts { reads, writes, .. } = &self.0.facts;
        reads.iter().filter(|read| !writes.contains(read)).collect()
    }

    fn tree(&self, style: ConsoleStyle) -> String {
        let Decision {
            behavior,
            reason: because,
        } = &self.0.decision;
        let because = show::clean(&because.headline());
        let mut text = format!("{}: {because}\n", style.bold(behavior.name()));
        if let Some(shell) = &self.0.facts.shell {
            for (at, covered) in &self.0.parts {
                let part = &shell.analysis.parts[*at];
                let depth = part_depth(&shell.analysis.parts, part);
                let indent = "  ".repeat(depth + 1);
                let name = part_text(part, &shell.line);
                let said = match part_decision(covered) {
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
                text += &format!("  reads {}\n", show::clean(&touched_text(touched)));
            }
            for touched in &self.0.facts.writes {
                text += &format!("  writes {}\n", show::clean(&touched_text(touched)));
            }
            for target in &self.0.facts.fetches {
                text += &format!("  contacts {}\n", show::clean(&target.host));
            }
        }
        if let Some(confined) = self.0.confinement.as_ref().map(ConfinementText) {
            for line in confined.text().lines() {
                text += &format!("{}\n", show::clean(line));
            }
        }
        for offer in &self.0.offers {
            let rules = show::clean(&offer.to_text());
            text += &format!("{}: {rules}\n", offer_title(offer));
        }
        if let Some(weak) = &self.0.sandbox_warning {
            text += &format!("{weak}\n");
        }
        if !self.0.left_out.is_empty() {
            let left_out = show::clean(&self.0.left_out.join(", "));
            text += &format!("ignored until this directory is trusted: {left_out}\n");
        }
        text.trim_end().to_owned()
    }

    /// Returns the rules of the first choice that is about the command itself.
    fn first_rules(&self) -> &[String] {
        let mut offers = self.0.offers.iter();
        let first =
            offers.find(|offer| matches!(offer.kind(), OfferKind::AllowRules | OfferKind::Offline));
        first.map_or(&[], |offer| &offer.rules)
    }

    fn json(&self) -> Value {
        let parts: Vec<Value> = match &self.0.facts.shell {
            None => Vec::new(),
            Some(shell) => self
                .0
                .parts
                .iter()
                .map(|(at, covered)| {
                    let part = &shell.analysis.parts[*at];
                    let (word, why) = part_decision(covered);
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
        let paths = |touched: &[&TouchedPath]| -> Vec<String> {
            let real = touched.iter().map(|path| path.real.display().to_string());
            real.collect()
        };
        let writes: Vec<&TouchedPath> = self.0.facts.writes.iter().collect();
        json!({
            "decision": self.0.decision.behavior.name(),
            "because": self.0.decision.reason.headline(),
            "tool": self.0.facts.tool,
            "verdict": self.0.facts.shell.as_ref().map(|shell| shell.analysis.verdict.name()),
            "reason": self.0.facts.shell.as_ref().map(|shell| shell.analysis.reason.clone()),
            "reads": paths(&self.only_read()),
            "writes": paths(&writes),
            "parts": parts,
            "rules_that_would_allow": suggest::command_rules(self.first_rules()),
            "offers": self.0.offers.iter().map(offer_json).collect::<Vec<_>>(),
            "confinement": self.0.confinement.as_ref().map(|it| ConfinementText(it).json()),
            "left_out": self.0.left_out,
            "sandbox_warning": self.0.sandbox_warning,
        })
    }
}

fn offer_json(offer: &RuleOffer) -> Value {
    let kind = match offer.kind() {
        OfferKind::AllowRules => "allow",
        OfferKind::Offline => "offline",
        OfferKind::ReadDomains => "readDomains",
        OfferKind::Wrapper => "wrapper",
    };
    json!({"kind": kind, "rules": offer.rules, "asks_again": offer.asks_again})
}
