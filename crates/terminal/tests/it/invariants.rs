//! What holds of any bytes. Property tests and fuzz targets check the same.

use haft_terminal::{
    HistoryItem, InputEvent, InputParser, KeyCode, MarkdownCommitter, MarkdownLook, TextLine,
    input::PasteResult,
    width::text_width,
    wrap::{wrap, wrap_ranges},
};
use unicode_segmentation::UnicodeSegmentation;

/// Where bytes are cut: by their first ones.
fn cuts(seed: &[u8], length: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = seed
        .iter()
        .map(|byte| usize::from(*byte) * length / 255)
        .collect();
    cuts.extend([0, length]);
    cuts.sort_unstable();
    cuts
}

/// However bytes are split, the events are the same; no key is a control character, no paste acts.
pub(crate) fn check_input(bytes: &[u8]) {
    let (seed, bytes) = bytes.split_at(bytes.len().min(4));
    let whole = InputParser::new().feed(bytes);
    let mut parser = InputParser::new();
    let mut split = Vec::new();
    for cut in cuts(seed, bytes.len()).windows(2) {
        split.extend(parser.feed(&bytes[cut[0]..cut[1]]));
    }
    assert_eq!(split, whole);
    for event in whole.iter().chain(&parser.expire()) {
        match event {
            InputEvent::Key(key) => {
                if let KeyCode::Char(letter) = key.code {
                    assert!(!letter.is_control(), "{key:?}");
                }
            }
            InputEvent::Paste(PasteResult::Text(text)) => assert_harmless(text),
            _ => {}
        }
    }
    assert_eq!(parser.wait(), None, "nothing is left");
}

/// No row is too wide, and only blanks are lost.
pub(crate) fn check_wrap(bytes: &[u8]) {
    let (seed, bytes) = bytes.split_at(bytes.len().min(2));
    let width = |at: usize| 1 + usize::from(seed.get(at).copied().unwrap_or(7)) % 40;
    let (first, rest) = (width(0), width(1));
    let line = TextLine::plain(&String::from_utf8_lossy(bytes));
    assert!(!line.text().contains(|c: char| c.is_control()), "{line:?}");
    let text = line.text();
    let mut last = 0;
    for (number, range) in wrap_ranges(text, first, rest).into_iter().enumerate() {
        let most = if number == 0 { first } else { rest };
        assert!(range.start >= last && text[last..range.start].chars().all(|c| c == ' '));
        let row = &text[range.clone()];
        assert!(
            text_width(row) <= most || row.graphemes(true).count() == 1,
            "{row:?} at {most}"
        );
        last = range.end;
    }
    assert!(text[last..].chars().all(|c| c == ' '));
    let rows = wrap(&line, first);
    assert!(!rows.is_empty());
}

/// However a reply is split, the same is committed; nothing in it acts; what is open fits.
pub(crate) fn check_markdown(bytes: &[u8]) {
    let (seed, bytes) = bytes.split_at(bytes.len().min(5));
    let reply = String::from_utf8_lossy(bytes);
    let columns = 2 + usize::from(seed.first().copied().unwrap_or(60)) % 80;
    let look = MarkdownLook {
        columns,
        hyperlinks: seed.len() % 2 == 0,
        ..MarkdownLook::default()
    };
    let mut committer = MarkdownCommitter::new(look.clone());
    let mut whole = committer.push(&reply);
    whole.extend(committer.finish());
    let mut committer = MarkdownCommitter::new(look);
    let mut split = Vec::new();
    let mut cuts = cuts(seed, reply.len());
    cuts.retain(|cut| reply.is_char_boundary(*cut));
    for cut in cuts.windows(2) {
        split.extend(committer.push(&reply[cut[0]..cut[1]]));
        let rows = committer.open_rows(columns, 6);
        assert!(rows.len() <= 6);
        for row in rows {
            assert!(
                row.width() <= columns || row.text().graphemes(true).count() == 1,
                "{row:?}"
            );
        }
    }
    split.extend(committer.finish());
    assert_eq!(split, whole);
    for item in whole {
        if let HistoryItem::Verbatim(line) | HistoryItem::Prose { line, .. } = item {
            assert!(!line.text().contains(|c: char| c.is_control()), "{line:?}");
        }
    }
}

fn assert_harmless(text: &str) {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!text.contains(acts), "{text:?}");
}
