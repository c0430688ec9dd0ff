//! `haft permissions list`: the rules in force.

use haft_host::ResolvedSettings;
use serde_json::json;

use crate::{args::SessionArgs, exit::Exit, session, show};

pub(super) fn run(args: &SessionArgs, json: bool) -> anyhow::Result<Exit> {
    let permitted = ResolvedSettings::load(&session::config(args)?)?;
    session::report(permitted.warnings());
    if json {
        let rules: Vec<_> = permitted
            .rules
            .iter()
            .map(|rule| {
                json!({
                    "list": rule.list.name(),
                    "rule": rule.text,
                    "scope": rule.source.scope.name(),
                    "file": rule.source.file.as_deref(),
                    "line": rule.source.line,
                })
            })
            .collect();
        let waiting = permitted.settings.waiting_rules.iter();
        let waiting: Vec<_> = waiting
            .map(|(rule, source)| {
                json!({
                    "rule": rule,
                    "scope": source.scope.name(),
                    "file": source.file.as_deref(),
                    "line": source.line,
                })
            })
            .collect();
        let all = json!({
            "mode": permitted.mode.name(),
            "directories": permitted.directories,
            "rules": rules,
            "left_out": permitted.settings.left_out,
            "waiting_rules": waiting,
        });
        show::json(&serde_json::to_string_pretty(&all)?)?;
        return Ok(Exit::Success);
    }
    show::line(&format!("mode {}", permitted.mode.name()))?;
    for directory in &permitted.directories {
        let directory = show::clean(&directory.display().to_string());
        show::line(&format!("also works in {directory}"))?;
    }
    let waiting = &permitted.settings.waiting_rules;
    if permitted.rules.is_empty() && waiting.is_empty() {
        show::line(
            "no rules: reads inside the working directories and read-only commands run; everything else asks",
        )?;
        return Ok(Exit::Success);
    }
    let mut rows = vec![["LIST", "RULE", "FROM"].map(str::to_owned)];
    let mut rules: Vec<_> = permitted.rules.iter().collect();
    rules.sort_by_key(|rule| rule.list);
    for rule in rules {
        rows.push([
            rule.list.name().to_owned(),
            show::clean(&rule.text),
            show::clean(&rule.source.to_string()),
        ]);
    }
    for (rule, source) in waiting {
        rows.push([
            "waits".to_owned(),
            show::clean(rule),
            format!("{}, not trusted", show::clean(&source.to_string())),
        ]);
    }
    show::line(show::table(&rows).trim_end())?;
    Ok(Exit::Success)
}
