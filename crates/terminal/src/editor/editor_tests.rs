use proptest::prelude::*;

use super::*;
use crate::{input::InputEvent, input::InputParser};

/// An editor with this draft; `|` is the caret.
pub(super) fn with(marked: &str) -> Editor {
    let mut editor = Editor::new();
    let caret = marked.find('|').unwrap();
    editor.set_text(&marked.replacen('|', "", 1));
    editor.buffer.set_caret(caret);
    editor.on_caret_moved();
    editor
}

pub(super) fn marked(editor: &Editor) -> String {
    let mut text = editor.buffer.text().to_owned();
    text.insert(editor.caret(), '|');
    text
}

/// Types what a terminal would send.
pub(super) fn types(editor: &mut Editor, bytes: &str) -> EditOutcome {
    let mut parser = InputParser::new();
    let mut events = parser.feed(bytes.as_bytes());
    events.extend(parser.expire());
    let mut outcome = EditOutcome::Done;
    for event in events {
        if let InputEvent::Key(key) = event {
            outcome = editor.key(key);
        }
    }
    outcome
}

#[test]
fn emacs_keys() {
    let cases = [
        // (before, keys, after)
        ("|", "hello", "hello|"),
        ("one| two", "\x01", "|one two"),
        ("|one two", "\x05", "one two|"),
        ("ab|c", "\x02", "a|bc"),
        ("ab|c", "\x06", "abc|"),
        ("one two|", "\x1bb", "one |two"),
        ("|one two", "\x1bf\x1bf", "one two|"),
        ("one two|", "\x1b[1;5D", "one |two"),
        ("one|", "\x08", "on|"),
        ("one|", "\x7f\x7f", "o|"),
        ("o|ne", "\x04", "o|e"),
        ("o|ne", "\x1b[3~", "o|e"),
        ("one two-three|", "\x17", "one |"),
        ("one two-three|", "\x1b\x7f", "one two-|"),
        ("|one two", "\x1bd", "| two"),
        ("one| two\nthree", "\x0b", "one|\nthree"),
        ("one|\nthree", "\x0b", "one|three"),
        ("a\none |two", "\x15", "a\n|two"),
        ("|one two", "\x1bd\x1bd\x19", "one two|"),
        ("one two|", "\x17\x17\x19", "one two|"),
        ("|ab", "\x0b\x19\x19", "abab|"),
        ("one |two", "\x1bu", "one TWO|"),
        ("|ONE two", "\x1bl", "one| two"),
        ("|oNE two", "\x1bc", "One| two"),
        ("|one", "x\x1f", "|one"),
        ("a|", "\x1b[H", "|a"),
        ("a\n|b", "\x1b[F", "a\nb|"),
        ("a|", "\nb", "a\nb|"),
        ("a|", "\x1b\rb", "a\nb|"),
        ("a|", "\x1b[13;2ub", "a\nb|"),
        ("a|", "\x1b[27;2;13~b", "a\nb|"),
        ("a\\|", "\rb", "a\nb|"),
        ("👩\u{200d}👧|", "\x7f", "|"),
        ("e\u{301}|x", "\x02", "|e\u{301}x"),
    ];
    for (before, keys, after) in cases {
        let mut editor = with(before);
        types(&mut editor, keys);
        assert_eq!(marked(&editor), after, "{before:?} {keys:?}");
    }
}

#[test]
fn yank_pop_goes_through_earlier_kills() {
    let mut editor = with("|one two");
    types(&mut editor, "\x1bd\x06\x1bd\x01\x19");
    assert_eq!(marked(&editor), "two| ");
    types(&mut editor, "\x1by");
    assert_eq!(marked(&editor), "one| ");
    types(&mut editor, "\x1by");
    assert_eq!(marked(&editor), "two| ");
    types(&mut editor, "x\x1by");
    assert_eq!(marked(&editor), "twox| ", "only behind a yank");
}

#[test]
fn undo_goes_by_words_and_redo_brings_back() {
    let mut editor = Editor::new();
    types(&mut editor, "one two");
    types(&mut editor, "\x1f");
    assert_eq!(marked(&editor), "one |");
    types(&mut editor, "\x1f");
    assert_eq!(marked(&editor), "|");
    types(&mut editor, "\x1b_\x1b_");
    assert_eq!(marked(&editor), "one two|");
    types(&mut editor, "\x17\x15");
    assert_eq!(marked(&editor), "|");
    types(&mut editor, "\x1f\x1f");
    assert_eq!(marked(&editor), "one two|");
    editor.take();
    assert!(editor.is_empty());
    types(&mut editor, "\x1f");
    assert_eq!(editor.text(), "one two", "what was taken comes back");
}

#[test]
fn up_and_down_go_by_rows_and_report_the_ends() {
    let mut editor = with("first line\nx\nthird |line");
    assert_eq!(types(&mut editor, "\x1b[A"), EditOutcome::Done);
    assert_eq!(marked(&editor), "first line\nx|\nthird line");
    types(&mut editor, "\x1b[A");
    assert_eq!(
        marked(&editor),
        "first |line\nx\nthird line",
        "the column is remembered"
    );
    assert_eq!(types(&mut editor, "\x1b[A"), EditOutcome::Above);
    types(&mut editor, "\x0e\x0e");
    assert_eq!(types(&mut editor, "\x0e"), EditOutcome::Below);
    // One long line is several rows.
    let mut editor = with("aaaa bbbb cccc| dddd");
    editor.set_width(10);
    types(&mut editor, "\x1b[A");
    assert_eq!(marked(&editor), "aaaa| bbbb cccc dddd");
}

#[test]
fn enter_submits_and_other_keys_are_the_programs() {
    let mut editor = with("x|");
    assert_eq!(types(&mut editor, "\r"), EditOutcome::Submit);
    for keys in ["\x0f", "\x14", "\t", "\x1b", "\x1b[5~", "\x1bp", "\x18"] {
        assert_eq!(types(&mut editor, keys), EditOutcome::Unused, "{keys:?}");
    }
    assert_eq!(marked(&editor), "x|");
}

fn chip(label: &str, text: &str) -> DraftChip {
    DraftChip {
        label: label.into(),
        text: text.into(),
        unfolds: true,
    }
}

#[test]
fn a_chip_is_one_unit_and_is_sent_whole() {
    let mut editor = Editor::new();
    types(&mut editor, "see ");
    let id = editor.insert_chip(chip("[Pasted 1: 3 lines]", "a\nb\nc"));
    types(&mut editor, " please");
    assert_eq!(editor.text(), "see a\nb\nc please");
    let expected = [
        DraftPart::Text("see ".into()),
        DraftPart::Chip(id),
        DraftPart::Text(" please".into()),
    ];
    assert_eq!(editor.parts(), expected);
    assert_eq!(
        editor.view(5, TextStyle::new()).rows[0].text(),
        "see [Pasted 1: 3 lines] please"
    );
    // Over it in one step, and killed and yanked with the rest.
    types(&mut editor, "\x1bb\x02\x02\x04");
    assert_eq!(editor.text(), "see  please");
    types(&mut editor, "\x1f");
    assert_eq!(editor.text(), "see a\nb\nc please");
    types(&mut editor, "\x01\x0b\x19\x19");
    assert_eq!(editor.text(), "see a\nb\nc pleasesee a\nb\nc please");
    // Unfolded beside the caret.
    let mut editor = Editor::new();
    editor.insert_chip(chip("[x]", "text"));
    assert!(editor.unfold() && !editor.unfold());
    assert_eq!(marked(&editor), "text|");
}

#[test]
fn no_text_can_forge_a_chip() {
    let mut editor = Editor::new();
    editor.insert_chip(chip("[x]", "secret"));
    editor.insert("\u{100000}");
    types(&mut editor, "\u{100000}");
    assert_eq!(editor.text(), "secret\u{fffd}\u{fffd}");
}

#[test]
fn what_was_taken_can_be_put_back_before_the_draft() {
    let mut editor = Editor::new();
    types(&mut editor, "one ");
    editor.insert_chip(chip("[x]", "text"));
    let parts = editor.take();
    types(&mut editor, "two");
    editor.restore_parts(&parts);
    assert_eq!(editor.text(), "one text\ntwo");
    assert!(marked(&editor).ends_with("two|"));
}

#[test]
fn pastes_that_are_long_want_a_chip() {
    assert!(!DraftChip::is_needed_for("ten\nlines"));
    assert!(DraftChip::is_needed_for(&"x\n".repeat(11)));
    assert!(
        DraftChip::is_needed_for(&"x".repeat(1001)) && !DraftChip::is_needed_for(&"x".repeat(1000))
    );
    assert_eq!(
        DraftChip::pasted(1, "x\n".repeat(214)).label,
        "[Pasted 1: 214 lines]"
    );
}

#[test]
fn the_view_follows_the_caret() {
    let lines: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
    let mut editor = Editor::new();
    editor.set_text(&lines.join("\n"));
    let view = editor.view(4, TextStyle::new());
    let rows: Vec<&str> = view.rows.iter().map(TextLine::text).collect();
    assert_eq!(rows, ["line 16", "line 17", "line 18", "line 19"]);
    assert_eq!((view.caret.row, view.caret.offset), (3, 7));
    assert!(view.more_above && !view.more_below);
    editor.perform(EditCommand::TextStart);
    let view = editor.view(4, TextStyle::new());
    assert_eq!(view.rows[0].text(), "line 0");
    assert_eq!(
        (view.caret.row, view.caret.offset, view.more_above),
        (0, 0, false)
    );
}

use crate::text::TextLine;

#[test]
fn rows_break_behind_blanks_and_a_long_word_anywhere() {
    let rows = |text: &str, width| -> Vec<String> {
        let mut editor = Editor::new();
        editor.set_width(width);
        editor.set_text(text);
        editor
            .view(99, TextStyle::new())
            .rows
            .iter()
            .map(|row| row.text().to_owned())
            .collect()
    };
    assert_eq!(rows("one two three", 8), ["one two ", "three"]);
    assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(rows("漢字漢", 4), ["漢字", "漢"]);
    assert_eq!(rows("a\tb\n\x01", 8), ["a   b", "␁"]);
}

#[test]
fn a_completion_replaces_what_is_before_the_caret() {
    let mut editor = with("see @pri|");
    assert_eq!(editor.line_before_caret(), "see @pri");
    editor.replace_before_caret("@pri".len(), "@src/price.rs ");
    assert_eq!(marked(&editor), "see @src/price.rs |");
}

fn keys() -> impl Strategy<Value = Vec<String>> {
    let key = prop_oneof![
        "[a-c ._()\"漢é]",
        prop::sample::select(vec![
            "\u{301}", "\u{200d}", "👩", "\n", "\x01", "\x02", "\x04", "\x05", "\x06", "\x0b",
            "\x15", "\x17", "\x19", "\x1bb", "\x1bf", "\x1bd", "\x1by", "\x1bu", "\x1bc", "\x1f",
            "\x1b_", "\x7f", "\x1b[A", "\x1b[B",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(key, 0..60)
}

proptest! {
    #[test]
    fn no_keys_break_the_draft_and_undo_ends_at_the_beginning(keys in keys(), width in 2usize..20) {
        let mut editor = Editor::new();
        editor.set_width(width);
        editor.insert_chip(chip("[a chip]", "text"));
        for key in keys {
            types(&mut editor, &key);
            let caret = editor.caret();
            prop_assert_eq!(motion::cluster_start(editor.buffer.text(), caret), caret);
            let view = editor.view(4, TextStyle::new());
            prop_assert!(view.rows.len() <= 4 && view.caret.row < view.rows.len());
            prop_assert!(view.rows[view.caret.row].text().is_char_boundary(view.caret.offset));
            prop_assert!(view.rows.iter().all(|row| row.width() <= width));
        }
        let after = editor.text();
        let mut steps = 0;
        while editor.buffer.undo() {
            steps += 1;
        }
        prop_assert!(editor.is_empty());
        for _ in 0..steps {
            editor.buffer.redo();
        }
        prop_assert_eq!(editor.text(), after);
    }
}
