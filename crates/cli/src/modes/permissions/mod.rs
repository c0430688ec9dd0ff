//! `haft permissions`: shows, tests and edits permission rules.

mod confinement_text;
mod doctor;
mod explain;
mod jsonl;
mod list;
mod try_rule;

use std::io::{self, IsTerminal};

use haft::engine::settings::{
    Settings, SettingsFlags, SettingsPlaces, TrustFile, TrustState, trust::directory,
};
use haft_host::{SessionConfig, outside_imports, settings_warnings, trust_changes};

use crate::{
    args::{PermissionsCommand, SessionArgs},
    exit::Exit,
    line_input::{AnswerSource, LineInput, read_answer},
    session, show,
};

pub(crate) fn run(args: &SessionArgs, asked: PermissionsCommand) -> anyhow::Result<Exit> {
    match asked {
        PermissionsCommand::Explain { bash, call, json } => explain::run(args, bash, &call, json),
        PermissionsCommand::Classify { .. } => jsonl::run(jsonl::classify, "unknown"),
        PermissionsCommand::Check { .. } => jsonl::check_all(),
        PermissionsCommand::Try { rules, since, json } => {
            try_rule::run(args, &rules, since.as_deref(), json)
        }
        PermissionsCommand::Doctor { json, fix } => doctor::run(args, json, fix),
        PermissionsCommand::List { json } => list::run(args, json),
        PermissionsCommand::Trust { yes } => trust(args, yes),
    }
}

fn trust(args: &SessionArgs, yes: bool) -> anyhow::Result<Exit> {
    // Ignores the flags of this command: later sessions may not have them.
    let places = SettingsPlaces::detect(&session::cwd(args)?);
    let settings = Settings::load(places, &SettingsFlags::default(), TrustState::default());
    session::report(settings_warnings(&settings));
    let places = &settings.places;
    let things = settings.executable_items();
    let shown = show::distinct_line(&directory(places).display().to_string());
    let loosens = settings.loosening_items();
    let config = SessionConfig::new(session::cwd(args)?);
    let imports = outside_imports(&config)?;
    let is_created = places.untrusted().include(&places.cwd);
    if loosens.is_empty() && things.is_empty() && imports.is_empty() && !is_created {
        show::line(&format!("{shown} has no settings that wait for trust."))?;
    } else {
        show::line(&format!("If you trust {shown}, these take effect:"))?;
    }
    if is_created {
        show::line("  memory files and extensions: a command created this directory")?;
    }
    for thing in loosens {
        show::line(&format!("  {}", show::distinct(&thing)))?;
    }
    for path in &imports {
        let path = show::distinct_line(&path.display().to_string());
        show::line(&format!("  memory files import {path}, which is outside"))?;
    }
    for (name, value) in &things {
        show::line(&format!("  {}:", show::distinct(name)))?;
        for line in serde_json::to_string_pretty(value)?.lines() {
            show::line(&format!("    {}", show::distinct(line)))?;
        }
    }
    for change in trust_changes(&config, places, &things).unwrap_or_default() {
        let mut lines = change.lines();
        let change = show::distinct(lines.next().unwrap_or_default());
        show::line(&format!("  since you trusted it last, {change}"))?;
        for line in lines {
            show::line(&format!("    {}", show::distinct(line)))?;
        }
    }
    if !yes {
        anyhow::ensure!(
            io::stdin().is_terminal(),
            "no terminal to ask for confirmation; use --yes if you have reviewed the list"
        );
        let agreed = match read_answer(&AnswerSource::Stdin, "Trust it? [y]es, [n]o: ", None) {
            LineInput::Line(said) => ["y", "yes"].contains(&said.trim().to_lowercase().as_str()),
            LineInput::Ended | LineInput::TooLate => false,
        };
        if !agreed {
            show::line("Not trusted.")?;
            return Ok(Exit::Success);
        }
    }
    TrustFile::add_imports(places, &imports)?;
    TrustFile::add(places, &things)?;
    show::line(&format!("{shown} is trusted."))?;
    Ok(Exit::Success)
}
