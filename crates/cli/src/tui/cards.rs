//! Draws cards as rows. The pieces of a card determine its appearance, never the name of its tool.

use std::path::Path;

use haft::{Card, CardSection, DiffHunk};
use haft_terminal::{
    HistoryItem, TextLine, TextStyle, code::CodeLexer, diff::changed_words, width::text_width,
};

use super::ui_style::UiStyle;
use crate::show::from_here;

/// The maximum number of rows of a body.
const BODY_ROWS: usize = 10;
/// The maximum number of rows of a body with a diff.
const DIFF_ROWS: usize = 20;
/// The maximum number of rows of any body in verbose mode.
const VERBOSE_ROWS: usize = 200;
/// The maximum number of lines of a diff whose changed words are marked.
const MAX_DIFF: usize = 2000;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CardMark {
    Worked,
    Failed,
}

/// Returns the history items of a finished call.
pub(crate) fn history(card: &Card, mark: CardMark, cwd: &Path, look: &UiStyle) -> Vec<HistoryItem> {
    let most = match (look.verbose, has_diff(card)) {
        (true, _) => VERBOSE_ROWS,
        (false, true) => DIFF_ROWS,
        (false, false) => BODY_ROWS,
    };
    let mut items = vec![HistoryItem::Verbatim(heading(card, mark, cwd, look))];
    items.extend(shortened(body_items(card, cwd, look), most, look));
    items
}

/// Returns whether the card contains a diff.
pub(crate) fn has_diff(card: &Card) -> bool {
    let is_diff = |piece: &CardSection| matches!(piece, CardSection::Diff(_));
    card.body.iter().any(is_diff)
}

/// Returns the first rows and the number of the omitted ones. A single omitted row is shown instead
/// of counted.
fn shortened(mut items: Vec<HistoryItem>, most: usize, look: &UiStyle) -> Vec<HistoryItem> {
    if items.len() > most + 1 {
        let more = items.len() - most;
        items.truncate(most);
        let text = format!("  {} {more} more (Ctrl-O)", look.ellipsis());
        let line = TextLine::styled(&text, look.theme.faint);
        items.push(HistoryItem::Verbatim(line));
    }
    items
}

fn heading(card: &Card, mark: CardMark, cwd: &Path, look: &UiStyle) -> TextLine {
    let mut line = match mark {
        CardMark::Worked => TextLine::styled(look.bullet(), look.theme.success),
        CardMark::Failed => TextLine::styled(look.cross(), look.theme.failure),
    };
    let width = look.size.row_width();
    let words_of = |card: &Card| card_text(card, cwd, look);
    let mut said = words_of(card);
    if look.is_narrow() && said.width() + 1 > width {
        // Shows the beginning of the subject, and the summary if it is short. Ctrl-O shows the
        // rest.
        let first = Card::new(card.title.as_str(), card.subject.as_str());
        let summary = TextLine::styled(&format!("  {}", one_line(&card.summary)), look.theme.faint);
        let is_short = !card.summary.is_empty() && summary.width() <= width / 2;
        let room = width.saturating_sub(1 + if is_short { summary.width() } else { 0 });
        said = cut(&words_of(&first), room, look);
        if is_short {
            said.append(&summary);
        }
    }
    line.append(&said);
    line
}

/// Truncates a line to the available width. The ellipsis shows that text is missing: a truncated
/// command has a different meaning.
pub(crate) fn cut(words: &TextLine, room: usize, look: &UiStyle) -> TextLine {
    if words.width() <= room {
        return words.clone();
    }
    let mark = look.ellipsis();
    let line = words.truncated(room.saturating_sub(text_width(mark)));
    let kept = line.text().trim_end().len();
    let mut line = line.slice(0..kept);
    line.push(mark, look.theme.faint);
    line
}

/// Returns the text after the mark: title, subject, summary.
pub(crate) fn card_text(card: &Card, cwd: &Path, look: &UiStyle) -> TextLine {
    let mut line = TextLine::plain(" ");
    line.push(&card.title, TextStyle::new().bold());
    let subject = from_here(&card.subject, cwd);
    if !subject.is_empty() {
        line.push(" ", TextStyle::new());
        line.push(&one_line(&subject), TextStyle::new());
    }
    if !card.summary.is_empty() {
        line.push("  ", TextStyle::new());
        line.push(&one_line(&card.summary), look.theme.faint);
    }
    line
}

/// Returns the indented rows below the heading. Our own text wraps at words; lines of files and
/// results are not changed.
fn body_items(card: &Card, cwd: &Path, look: &UiStyle) -> Vec<HistoryItem> {
    let mut items = Vec::new();
    for piece in &card.body {
        let mut rows = Vec::new();
        match piece {
            CardSection::Text(text) => indented(&mut rows, text, TextStyle::new()),
            CardSection::Muted(text) => {
                indented(&mut rows, &from_here(text, cwd), look.theme.faint);
            }
            CardSection::Alarm(text) => {
                indented(&mut rows, &from_here(text, cwd), look.theme.failure);
            }
            CardSection::Diff(hunks) => diff(&mut rows, hunks, &card.subject, look),
        }
        let is_ours = matches!(piece, CardSection::Muted(_) | CardSection::Alarm(_));
        items.extend(rows.into_iter().map(|line| match is_ours {
            true => HistoryItem::Prose { line, indent: 2 },
            false => HistoryItem::Verbatim(line),
        }));
    }
    items
}

/// Returns the rows of a diff.
pub(crate) fn diff_rows(hunks: &[DiffHunk], path: &str, look: &UiStyle) -> Vec<TextLine> {
    let mut rows = Vec::new();
    diff(&mut rows, hunks, path, look);
    rows
}

fn indented(rows: &mut Vec<TextLine>, text: &str, style: TextStyle) {
    for line in text.lines() {
        let mut row = TextLine::plain("  ");
        row.push(line, style);
        rows.push(row);
    }
}

/// Returns the text on a single row, with spaces instead of line ends.
pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join(" ")
}

/// Draws changed lines with their line numbers: in the old file for removed lines, in the new one
/// for all others.
fn diff(rows: &mut Vec<TextLine>, hunks: &[DiffHunk], path: &str, look: &UiStyle) {
    let last = hunks
        .iter()
        .map(|hunk| (hunk.old_start + hunk.old_lines).max(hunk.new_start + hunk.new_lines))
        .max()
        .unwrap_or_default();
    let width = last.to_string().len();
    let lines: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let is_plain = lines > MAX_DIFF;
    for (index, hunk) in hunks.iter().enumerate() {
        if index > 0 {
            let text = format!("  {:>width$}", look.ellipsis());
            rows.push(TextLine::styled(&text, look.theme.faint));
        }
        let marked = if is_plain {
            vec![Vec::new(); hunk.lines.len()]
        } else {
            marked_words(&hunk.lines)
        };
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        // Each side has its own lexer: a string that is opened on one side is not open on the
        // other.
        let mut lexers = [CodeLexer::for_path(path), CodeLexer::for_path(path)];
        for (line, marked) in hunk.lines.iter().zip(&marked) {
            let (sign, code) = match line.chars().next() {
                Some(sign) => line.split_at(sign.len_utf8()),
                None => ("", ""),
            };
            let (number, style, lexer) = match sign {
                "-" => (Some(old), look.theme.removed, 0),
                "+" => (Some(new), look.theme.added, 1),
                // A remark such as "No newline at end of file", not a line of either file.
                "\\" => (None, look.theme.faint, 1),
                _ => (Some(new), TextStyle::new(), 1),
            };
            let mut row = TextLine::plain("  ");
            let shown = number.map(|number| number.to_string()).unwrap_or_default();
            row.push(&format!("{shown:>width$} "), look.theme.faint);
            row.push(if sign.is_empty() { " " } else { sign }, style);
            let painted = match is_plain || number.is_none() {
                true => TextLine::styled(code, style),
                false => lexers[lexer].styled(code, &look.theme),
            };
            if sign == " " {
                let _ = lexers[0].line(code);
            }
            row.append(&with_words(&painted, code, marked, style));
            rows.push(row);
            match sign {
                "-" => old += 1,
                "+" => new += 1,
                "\\" => {}
                _ => (old, new) = (old + 1, new + 1),
            }
        }
    }
}

/// Returns the line in the style of its side, with changed words in reverse video.
fn with_words(
    painted: &TextLine,
    code: &str,
    words: &[std::ops::Range<usize>],
    side: TextStyle,
) -> TextLine {
    let painted = painted.restyled(|style| match side.background {
        Some(background) => style.bg(background),
        None => style,
    });
    // Cleaning or tab expansion changed the text, so the ranges do not match it.
    if words.is_empty() || painted.text() != code {
        return painted;
    }
    let mut line = TextLine::new();
    let mut from = 0;
    for word in words {
        line.append(&painted.slice(from..word.start));
        let part = painted.slice(word.clone());
        line.append(&part.restyled(TextStyle::reverse));
        from = word.end;
    }
    line.append(&painted.slice(from..code.len()));
    line
}

/// Returns the changed words of each line. Only runs of removed lines that are followed by equally
/// many added lines are compared.
fn marked_words(lines: &[String]) -> Vec<Vec<std::ops::Range<usize>>> {
    let mut marked = vec![Vec::new(); lines.len()];
    let sign = |at: usize| lines.get(at).and_then(|line| line.bytes().next());
    let run = |from: usize, wanted: u8| {
        (from..lines.len())
            .take_while(|at| sign(*at) == Some(wanted))
            .count()
    };
    let mut at = 0;
    while at < lines.len() {
        let removed = run(at, b'-');
        if removed == 0 {
            at += 1;
            continue;
        }
        let added = run(at + removed, b'+');
        if removed == added {
            for place in at..at + removed {
                let (old, new) = (&lines[place][1..], &lines[place + removed][1..]);
                let (gone, came) = changed_words(old, new);
                marked[place] = gone;
                marked[place + removed] = came;
            }
        }
        at += removed + added;
    }
    marked
}
