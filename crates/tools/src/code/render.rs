//! Formatting of server results.

use std::path::Path;

use haft_contract::CallContext;
use haft_lsp::{
    LspClient, PositionEncoding,
    position::lines,
    types::{Diagnostic, LspLocation, LspRange, LspSymbol, symbol_kind},
    uri,
};

use super::servers::text_of;
use crate::{paths::shown, plural::counted};

/// The maximum numbers of locations and of symbols.
const MAX_PLACES: usize = 200;
const MAX_SYMBOLS: usize = 300;
/// The maximum length of a line, in characters.
const MAX_LINE: usize = 300;

/// Formats a problem without its location, in one line.
pub(crate) fn problem(problem: &Diagnostic, max_chars: usize) -> String {
    let severity = match problem.severity.unwrap_or(1) {
        1 => "error",
        2 => "warning",
        3 => "information",
        _ => "hint",
    };
    let code = problem.code_text();
    let code = if code.is_empty() {
        code
    } else {
        format!(" {code}")
    };
    let message: Vec<&str> = problem.message.split_whitespace().collect();
    cut(
        &format!("{severity}{code}: {}", message.join(" ")),
        max_chars,
    )
}

pub(crate) fn cut(text: &str, max_chars: usize) -> String {
    let mut characters = text.chars();
    let head: String = characters.by_ref().take(max_chars).collect();
    match characters.next() {
        Some(_) => format!("{head}…"),
        None => head,
    }
}

/// Formats locations by file, each with its line. Files that may not be read are omitted; of those
/// outside the working directories only the name is shown.
pub(crate) fn places(
    mut found: Vec<LspLocation>,
    client: &LspClient,
    cx: &CallContext,
) -> Vec<String> {
    found.sort_by(|a, b| (&a.uri, a.range.start).cmp(&(&b.uri, b.range.start)));
    found.dedup();
    let mut shown_lines = Vec::new();
    let mut texts: Option<(String, Option<String>)> = None;
    let total = found.len();
    for location in found.into_iter().take(MAX_PLACES) {
        let Some(path) = uri::to_path(&location.uri) else {
            shown_lines.push(location.uri);
            continue;
        };
        if cx.permissions.hidden.hides(&path) {
            continue;
        }
        let inside = cx
            .permissions
            .directories
            .iter()
            .any(|open| path.starts_with(open));
        if texts
            .as_ref()
            .is_none_or(|(known, _)| *known != location.uri)
        {
            let open = client
                .document(&path)
                .map(|document| document.text.to_string());
            let text = match inside {
                true => open.or_else(|| text_of(&path).ok().flatten()),
                false => None,
            };
            texts = Some((location.uri.clone(), text));
        }
        let text = texts.as_ref().and_then(|(_, text)| text.as_deref());
        shown_lines.push(place(
            &path,
            location.range,
            text,
            client.encoding(),
            &cx.cwd,
        ));
    }
    if total > MAX_PLACES {
        shown_lines.push(format!("… and {} more.", total - MAX_PLACES));
    }
    shown_lines
}

fn place(
    path: &Path,
    range: LspRange,
    text: Option<&str>,
    encoding: PositionEncoding,
    cwd: &Path,
) -> String {
    let name = shown(path, cwd);
    let Some(text) = text else {
        return format!("{name}:{}", range.start.line + 1);
    };
    let at = encoding.from_server(text, range.start);
    let line = lines(text).nth(at.line - 1).unwrap_or_default();
    format!(
        "{name}:{}:{}: {}",
        at.line,
        at.character,
        cut(line.trim(), MAX_LINE)
    )
}

/// Formats the symbols of a file, indented by nesting.
pub(crate) fn symbols(found: &[LspSymbol]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut total = 0;
    add(found, 0, &mut lines, &mut total);
    if total > lines.len() {
        lines.push(format!("… and {} more.", total - lines.len()));
    }
    lines
}

fn add(found: &[LspSymbol], depth: usize, lines: &mut Vec<String>, total: &mut usize) {
    for symbol in found {
        *total += 1;
        let range = symbol.selection_range.or(symbol.range);
        let range = range.or(symbol.location.as_ref().map(|location| location.range));
        let line = range.map_or(0, |range| range.start.line + 1);
        if lines.len() < MAX_SYMBOLS {
            let name = cut(&symbol.name, MAX_LINE);
            lines.push(format!(
                "{}{} {name} {line}",
                "  ".repeat(depth.min(20)),
                symbol_kind(symbol.kind)
            ));
        }
        if depth < 50 {
            add(&symbol.children, depth + 1, lines, total);
        }
    }
}

/// Formats symbols of a workspace, each with its file.
pub(crate) fn workspace_symbols(found: &[LspSymbol], cx: &CallContext) -> Vec<String> {
    let mut lines = Vec::new();
    for symbol in found {
        let path = symbol
            .location
            .as_ref()
            .and_then(|place| uri::to_path(&place.uri));
        let Some(path) = path.filter(|path| !cx.permissions.hidden.hides(path)) else {
            continue;
        };
        let line = symbol
            .location
            .as_ref()
            .map_or(0, |place| place.range.start.line + 1);
        let name = cut(&symbol.name, MAX_LINE);
        let file = shown(&path, &cx.cwd);
        lines.push(format!("{} {name} {file}:{line}", symbol_kind(symbol.kind)));
    }
    let more = lines.len().saturating_sub(MAX_SYMBOLS);
    lines.truncate(MAX_SYMBOLS);
    if more > 0 {
        lines.push(format!("… and {} more.", counted(more as u64, "symbol")));
    }
    lines
}
