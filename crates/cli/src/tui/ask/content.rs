//! What a question is about, as rows: every word as it is, and none that could be taken for another.

use std::path::Path;

use haft::{ApprovalKind, ApprovalRequest, Card, CardPiece};
use haft_terminal::{TextLine, TextStyle, wrap::wrap};

use super::super::{cards, look::Look};
use crate::show::{distinct, distinct_line};

/// The words of the heading: the tool, and what it is about where that is not a row of its own.
pub(super) fn heading(request: &ApprovalRequest) -> String {
    let card = &request.card;
    let mut text = distinct_line(&card.title);
    if has_own_row(request) {
        return text;
    }
    for part in [&card.subject, &card.summary] {
        if !part.is_empty() {
            text += if part == &card.summary { "  " } else { " " };
            text += &distinct_line(part);
        }
    }
    text
}

/// A command line has a row of its own, and so has everything that needs several.
fn has_own_row(request: &ApprovalRequest) -> bool {
    let card = &request.card;
    let has_text = card
        .body
        .iter()
        .any(|piece| matches!(piece, CardPiece::Text(_)));
    request.kind == ApprovalKind::Plan || (has_text && !cards::has_diff(card))
}

/// What must be seen whole.
pub(super) fn rows(request: &ApprovalRequest, look: &Look) -> Vec<TextLine> {
    let card = &request.card;
    let width = look.size.row_width();
    let mut rows = Vec::new();
    for piece in &card.body {
        match piece {
            // A plan is prose, with the dashes and quotes of prose.
            CardPiece::Text(text) if request.kind == ApprovalKind::Plan => {
                put(&mut rows, text, TextStyle::new(), width);
            }
            CardPiece::Text(text) => put(&mut rows, &distinct(text), TextStyle::new(), width),
            CardPiece::Muted(text) => put(&mut rows, &distinct(text), look.theme.faint, width),
            CardPiece::Alarm(text) => put(&mut rows, &distinct(text), look.theme.failure, width),
            CardPiece::Diff(_) => {
                let diff = Card {
                    subject: card.subject.clone(),
                    body: vec![piece.clone()],
                    ..Card::default()
                };
                for row in cards::body(&diff, Path::new("/"), look) {
                    rows.extend(wrap(&row, width));
                }
            }
        }
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

/// Why a person is asked.
pub(super) fn reasons(request: &ApprovalRequest, look: &Look) -> Vec<TextLine> {
    let mut rows = Vec::new();
    let width = look.size.row_width();
    let reason = distinct_line(&request.reason);
    if !reason.is_empty() {
        put(
            &mut rows,
            &format!("why: {reason}"),
            look.theme.faint,
            width,
        );
    }
    rows
}
