//! The content of a question as rows: complete, and with confusable characters marked.

use std::path::{Component, Path};

use haft::{ApprovalKind, ApprovalPart, ApprovalRequest, CardSection};
use haft_terminal::{
    TextLine, TextStyle,
    wrap::{wrap, wrap_hanging},
};
use serde_json::Value;

use super::super::{cards, ui_style::UiStyle};
use crate::show::{distinct, distinct_line, from_here};

/// The maximum width of a command line's part that determines the column of the meanings.
const MAX_PART_WIDTH: usize = 40;

/// The indent of continuation rows of a diff line, so that they are not mistaken for other lines.
const BEHIND_NUMBER: usize = 4;

/// Returns the heading: the tool, and its subject unless that has a separate row.
pub(super) fn heading(request: &ApprovalRequest, cwd: &Path) -> String {
    let card = request.shown();
    let mut text = distinct_line(&card.title);
    if has_own_row(request) {
        return text;
    }
    if !card.subject.is_empty() {
        text += &format!(" {}", distinct_line(&subject(request, cwd)));
    }
    if !card.summary.is_empty() {
        text += &format!("  {}", cards::one_line(&card.summary));
    }
    text
}

/// Returns the subject: a path below the working directory is shown relative to it. Command lines
/// and texts that merely contain a path are not changed.
pub(super) fn subject(request: &ApprovalRequest, cwd: &Path) -> String {
    let subject = &request.shown().subject;
    match request.parts.is_empty() {
        true => path_from_here(Path::new(subject), cwd),
        false => subject.clone(),
    }
}

fn path_from_here(path: &Path, cwd: &Path) -> String {
    let is_plain = |path: &Path| {
        let mut components = path.components();
        !path.as_os_str().is_empty() && components.all(|part| matches!(part, Component::Normal(_)))
    };
    let inside = path.strip_prefix(cwd).ok();
    let shown = inside.filter(|inside| is_plain(inside)).unwrap_or(path);
    shown.display().to_string()
}

/// Returns a row for each path that resolves to another one, with both.
fn elsewhere_rows(request: &ApprovalRequest, cwd: &Path, look: &UiStyle) -> Vec<TextLine> {
    let mut rows = Vec::new();
    for (given, real) in &request.resolved_elsewhere {
        let [given, real] = [given, real].map(|path| distinct_line(&path_from_here(path, cwd)));
        let text = format!("{given} really is {real}");
        put(&mut rows, &text, look.theme.warning, look.size.row_width());
    }
    for text in &request.look_alikes {
        let text = distinct_line(text);
        put(&mut rows, &text, look.theme.warning, look.size.row_width());
    }
    rows
}

/// Returns whether the subject has its own rows: a plan and a command line do, and so does a subject
/// that is only the beginning of a text.
fn has_own_row(request: &ApprovalRequest) -> bool {
    let card = request.shown();
    let subject = card.subject.trim_end_matches('…');
    let goes_on = |piece: &CardSection| match piece {
        CardSection::Text(text) => text.starts_with(subject),
        _ => false,
    };
    request.kind == ApprovalKind::Plan || !request.parts.is_empty() || card.body.iter().any(goes_on)
}

/// Returns the rows that must be seen completely.
pub(super) fn rows(request: &ApprovalRequest, cwd: &Path, look: &UiStyle) -> Vec<TextLine> {
    let card = request.shown();
    let width = look.size.row_width();
    let mut rows = elsewhere_rows(request, cwd, look);
    let has_text = card
        .body
        .iter()
        .any(|piece| matches!(piece, CardSection::Text(_)));
    if has_own_row(request) && !has_text && !card.subject.is_empty() {
        put(&mut rows, &distinct(&card.subject), TextStyle::new(), width);
    }
    for piece in &card.body {
        match piece {
            // A plan is prose and may contain typographic dashes and quotes.
            CardSection::Text(text) if request.kind == ApprovalKind::Plan => {
                put(&mut rows, text, TextStyle::new(), width);
            }
            CardSection::Text(text) => put(&mut rows, &distinct(text), TextStyle::new(), width),
            // Tools write `…` for omitted content; it cannot be confused with a letter.
            CardSection::Muted(text) => {
                let text = distinct(&text.replace('…', "..."));
                put(&mut rows, &text, look.theme.faint, width);
            }
            CardSection::Alarm(text) => put(&mut rows, &distinct(text), look.theme.failure, width),
            CardSection::Diff(hunks) => {
                for row in cards::diff_rows(hunks, &card.subject, look) {
                    rows.extend(wrap_hanging(&row, width, BEHIND_NUMBER));
                }
            }
        }
    }
    rows.extend(part_rows(&request.parts, look));
    if request.preview.is_none() && request.kind == ApprovalKind::Permission {
        rows.extend(argument_rows(request, look));
    }
    rows
}

/// Returns the arguments that the card does not show, because everything relevant must be visible.
fn argument_rows(request: &ApprovalRequest, look: &UiStyle) -> Vec<TextLine> {
    let input = request.asked.as_ref().map(|asked| &asked.input);
    let arguments = input.and_then(Value::as_object);
    let card = request.shown();
    let mut shown = format!("{}\n{}\n", card.subject, card.summary);
    for piece in &card.body {
        match piece {
            CardSection::Text(text) | CardSection::Muted(text) | CardSection::Alarm(text) => {
                shown += text;
                shown.push('\n');
            }
            CardSection::Diff(hunks) => {
                for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
                    shown += line.get(1..).unwrap_or_default();
                    shown.push('\n');
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (name, value) in arguments.into_iter().flatten() {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_shown = text
            .trim()
            .lines()
            .all(|line| shown.contains(line.trim_end()));
        if is_shown {
            continue;
        }
        let text = format!("{name}: {text}");
        put(
            &mut rows,
            &distinct(&text),
            look.theme.faint,
            look.size.row_width(),
        );
    }
    rows
}

/// Returns the parts of a command line and their meanings.
fn part_rows(parts: &[ApprovalPart], look: &UiStyle) -> Vec<TextLine> {
    let shown: Vec<(String, &ApprovalPart)> = parts
        .iter()
        .map(|part| {
            let text = distinct_line(&part.text);
            (format!("{}{text}", "  ".repeat(part.depth)), part)
        })
        .collect();
    let width = |text: &str| TextLine::plain(text).width();
    let widths = shown.iter().map(|(text, _)| width(text));
    // A longer part does not move the column of the others.
    let widest = widths.filter(|width| *width <= MAX_PART_WIDTH).max();
    let widest = widest.unwrap_or(MAX_PART_WIDTH / 2);
    let row_width = look.size.row_width();
    let mut rows = Vec::new();
    for (text, part) in shown {
        let style = match part.asks {
            true => look.theme.warning,
            false => look.theme.faint,
        };
        if look.is_narrow() {
            let text = TextLine::plain(&format!("  {text}"));
            let meaning = TextLine::styled(&format!("   {}", part.meaning), style);
            rows.extend(wrap_hanging(&text, row_width, 2));
            rows.extend(wrap_hanging(&meaning, row_width, 3));
            continue;
        }
        let mut line = TextLine::plain(&format!("    {text}"));
        if width(&text) > widest {
            let room = row_width.saturating_sub(4).max(1);
            for piece in wrap(&TextLine::plain(&text), room) {
                let mut row = TextLine::plain("    ");
                row.append(&piece);
                rows.push(row);
            }
            line = TextLine::plain("    ");
        }
        let behind = widest + 7;
        let blanks = " ".repeat(behind.saturating_sub(line.width()));
        line.push(&blanks, TextStyle::new());
        line.push(&part.meaning, style);
        rows.extend(wrap_hanging(&line, row_width, behind));
    }
    rows
}

fn put(rows: &mut Vec<TextLine>, text: &str, style: TextStyle, width: usize) {
    for line in text.lines() {
        let line = TextLine::styled(line, style);
        for part in wrap(&line, width.saturating_sub(2).max(1)) {
            let mut row = TextLine::plain("  ");
            row.append(&part);
            rows.push(row);
        }
    }
}

/// Returns the reasons for the question and the confinement of the command.
pub(super) fn reasons(request: &ApprovalRequest, cwd: &Path, look: &UiStyle) -> Vec<TextLine> {
    let mut rows = Vec::new();
    let width = look.size.row_width();
    let reasons = match request.reasons.is_empty() {
        true => std::slice::from_ref(&request.reason),
        false => request.reasons.as_slice(),
    };
    let shown = |reason: &String| match request.parts.is_empty() {
        true => distinct_line(&from_here(reason, cwd)),
        false => distinct_line(reason),
    };
    let mut said: Vec<String> = Vec::new();
    for reason in reasons.iter().map(shown) {
        // Several parts of a command line may have the same reason.
        if !said.contains(&reason) {
            said.push(reason);
        }
    }
    let reasons = said.join("; ");
    if !reasons.is_empty() {
        put(
            &mut rows,
            &format!("why: {reasons}"),
            look.theme.faint,
            width,
        );
    }
    let first = request.offers.first();
    if let Some(offer) = first.filter(|offer| !offer.asks_again.is_empty()) {
        let parts = distinct_line(&offer.asks_again.join(", "));
        let text = format!("\"always\" asks again for {parts}");
        put(&mut rows, &text, look.theme.faint, width);
    }
    if let Some(confinement) = &request.confinement {
        put(
            &mut rows,
            &distinct_line(confinement),
            look.theme.faint,
            width,
        );
    }
    rows
}
