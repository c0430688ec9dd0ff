//! The output before the first message: settings that need trust, a missing API key, and the end of
//! a resumed conversation.

use haft_host::{
    EarlierConversation, ExchangePart, SessionConfig, TrustReport, exchanges, key_report,
    session_entries,
};

use crate::show;

/// The maximum number of exchanges shown of a resumed conversation.
const MAX_EXCHANGES: usize = 3;

/// The maximum number of lines shown per exchange.
const MAX_LINES: usize = 60;

/// Returns the trust question, or `None` if nothing needs trust.
pub(super) fn trust_lines(report: &TrustReport) -> Option<Vec<String>> {
    if report.is_trusted || report.things.is_empty() {
        return None;
    }
    let mut lines = vec![format!(
        "do you trust {}? This would take effect:",
        report.directory.display()
    )];
    for thing in &report.things {
        let count = thing.contents.lines().count();
        let ending = if count == 1 { "" } else { "s" };
        lines.push(format!("  {}, {count} line{ending}", thing.name));
    }
    let changed = report.changed.iter().flat_map(|change| change.lines());
    lines.extend(changed.map(|line| format!("  {line}")));
    lines.push("1 yes, trust it".to_owned());
    lines.push("2 no, continue without it".to_owned());
    lines.push("3 show it first".to_owned());
    Some(lines)
}

/// Returns the contents of the settings that need trust.
pub(super) fn trust_contents(report: &TrustReport) -> Vec<String> {
    let things = report.things.iter().flat_map(|thing| {
        let contents = thing.contents.lines().map(|line| format!("  {line}"));
        [format!("{}:", thing.name)].into_iter().chain(contents)
    });
    things.collect()
}

/// Returns the sentences of the settings that haft cannot enforce, a line each.
pub(super) fn sentence_lines(sentences: &[String]) -> Vec<String> {
    let lines = sentences.iter();
    lines
        .map(|sentence| format!("  {}", show::distinct_line(sentence)))
        .collect()
}

/// Returns the places that were checked for an API key, if no key was found.
pub(super) fn key_lines(config: &SessionConfig) -> Vec<String> {
    if config.model.script.is_some() || config.model.replay.is_some() {
        return Vec::new();
    }
    let Ok(report) = key_report(config) else {
        return Vec::new();
    };
    if report.source.is_some() {
        return Vec::new();
    }
    let places: Vec<&str> = report
        .looked_at
        .iter()
        .map(|place| place.name.as_str())
        .collect();
    vec![
        format!("haft: no key was found; checked: {}", places.join(", ")),
        "haft: `haft login` stores one; --base-url selects your own server; `haft demo` needs no key".to_owned(),
    ]
}

/// Returns the end of the resumed conversation.
pub(super) fn earlier_lines(config: &SessionConfig) -> Vec<String> {
    let Some(from) = &config.conversation.from else {
        return Vec::new();
    };
    let sessions = session_entries(&config.environment, &config.cwd, false).unwrap_or_default();
    let session = match from {
        EarlierConversation::Newest => sessions.first(),
        EarlierConversation::Named(name) => sessions.iter().find(|session| {
            session.title.as_ref() == Some(name)
                || session.id.to_string().starts_with(name.as_str())
        }),
    };
    let Some(earlier) = session.and_then(|session| exchanges(&session.path, MAX_EXCHANGES).ok())
    else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if earlier.earlier > 0 {
        lines.push(format!("haft: {} earlier messages", earlier.earlier));
    }
    for exchange in &earlier.shown {
        let mut own: Vec<String> = exchange
            .prompt
            .lines()
            .map(|line| format!("you: {line}"))
            .collect();
        for part in &exchange.parts {
            match part {
                ExchangePart::Text(text) => {
                    let said = text.lines().filter(|line| !line.trim().is_empty());
                    own.extend(said.map(|line| format!("agent: {line}")));
                }
                ExchangePart::Call { name, is_error, .. } => own.push(match is_error {
                    Some(true) => format!("tool error: {name}"),
                    _ => format!("tool: {name}"),
                }),
                ExchangePart::Image(_) => {}
            }
        }
        let more = own.len().saturating_sub(MAX_LINES);
        own.truncate(MAX_LINES);
        lines.extend(own);
        if more > 0 {
            lines.push(format!("haft: {more} more lines"));
        }
    }
    lines
}
