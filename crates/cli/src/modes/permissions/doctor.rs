//! `haft permissions doctor`: finds rules that have no effect, are risky or can be merged.

use std::io::{self, IsTerminal};

use haft::engine::permissions::rule_audit::{RuleFinding, mask_keys};
use haft_host::{RuleReport, audit_rules_of};
use serde_json::{Value, json};

use crate::{
    args::SessionArgs,
    exit::Exit,
    line_input::{AnswerSource, LineInput, read_answer},
    session,
    show::{self, ConsoleStyle},
};

pub(super) fn run(args: &SessionArgs, as_json: bool, fix: bool) -> anyhow::Result<Exit> {
    let config = session::config(args)?;
    let report = audit_rules_of(&config)?;
    if as_json {
        show::json(&serde_json::to_string_pretty(&to_json(&report))?)?;
        return Ok(exit(report.findings.len()));
    }
    print_findings(&report)?;
    if !fix {
        return Ok(exit(report.findings.len()));
    }
    let fixable: Vec<&RuleFinding> = report
        .findings
        .iter()
        .filter(|finding| report.fixable_scope(finding).is_some())
        .collect();
    if fixable.is_empty() {
        show::line("Nothing can be fixed automatically.")?;
        return Ok(exit(report.findings.len()));
    }
    for finding in &fixable {
        print_change(finding)?;
    }
    anyhow::ensure!(
        io::stdin().is_terminal(),
        "no terminal to ask for confirmation: nothing was changed"
    );
    let agreed = match read_answer(
        &AnswerSource::Stdin,
        "Make these changes? [y]es, [n]o: ",
        None,
    ) {
        LineInput::Line(said) => ["y", "yes"].contains(&said.trim().to_lowercase().as_str()),
        LineInput::Ended | LineInput::TooLate => false,
    };
    if !agreed {
        show::line("Nothing was changed.")?;
        return Ok(exit(report.findings.len()));
    }
    for finding in &fixable {
        report
            .apply_fix(finding)
            .map_err(|problem| anyhow::anyhow!("{}: {problem}", finding.source))?;
    }
    show::line(&format!(
        "{} of {} findings are fixed.",
        fixable.len(),
        report.findings.len()
    ))?;
    Ok(exit(report.findings.len() - fixable.len()))
}

fn exit(remaining: usize) -> Exit {
    match remaining {
        0 => Exit::Success,
        _ => Exit::Usage,
    }
}

fn print_findings(report: &RuleReport) -> anyhow::Result<()> {
    let style = ConsoleStyle::of_stdout();
    for finding in &report.findings {
        let source = show::clean(&finding.source.to_string());
        let (list, rule) = (finding.list.name(), show::clean(&finding.rule));
        let kind = style.bold(finding.kind.name());
        show::drawn(&format!(
            "{kind}: {list} {rule}  {}\n  {}\n  {}",
            style.dim(&source),
            show::clean(&finding.reason),
            show::clean(&finding.advice)
        ))?;
    }
    for sentence in &report.auto_sentences {
        let sentence = show::clean(sentence);
        show::line(&format!(
            "autoMode.hard_deny: {sentence}\n  a sentence cannot be enforced\n  write a permission rule instead"
        ))?;
    }
    if !report.auto_keys.is_empty() {
        let keys = show::clean(&report.auto_keys.join(", "));
        show::line(&format!(
            "{keys}: without effect, because no model decides on calls here"
        ))?;
    }
    if report.findings.is_empty() && report.auto_sentences.is_empty() {
        show::line("No findings.")?;
    }
    Ok(())
}

/// Prints the lines that a fix removes from and adds to a file.
fn print_change(finding: &RuleFinding) -> anyhow::Result<()> {
    let Some(fix) = &finding.fix else {
        return Ok(());
    };
    let masked = |rule: &String| show::clean(&mask_keys(rule).unwrap_or_else(|| rule.clone()));
    if let Some(file) = &finding.source.file {
        show::line(&show::clean(&file.display().to_string()))?;
    }
    for rule in &fix.removed {
        show::line(&format!("- {}: {}", finding.list.name(), masked(rule)))?;
    }
    if let Some(rule) = &fix.added {
        show::line(&format!("+ {}: {}", finding.list.name(), masked(rule)))?;
    }
    Ok(())
}

fn to_json(report: &RuleReport) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "kind": finding.kind.name(),
            "list": finding.list.name(),
            "rule": finding.rule,
            "scope": finding.source.scope.name(),
            "file": finding.source.file.as_deref(),
            "line": finding.source.line,
            "reason": finding.reason,
            "advice": finding.advice,
            "fixable": report.fixable_scope(finding).is_some(),
        })
    });
    json!({
        "findings": findings.collect::<Vec<_>>(),
        "auto_sentences": report.auto_sentences,
        "auto_keys_without_effect": report.auto_keys,
    })
}
