use proptest::prelude::*;

use crate::editor::{
    EditOutcome, Editor, ViMode,
    tests::{marked, with},
};
use crate::input::{Key, KeyCode};

/// Types keys one by one, each in its own time.
fn types(editor: &mut Editor, keys: &str) -> EditOutcome {
    let mut outcome = EditOutcome::Done;
    for letter in keys.chars() {
        outcome = editor.key(match letter {
            '\x1b' => Key::ESCAPE,
            '\r' => Key::RETURN,
            '\n' => Key::LINE_FEED,
            '\x12' => Key::control('r'),
            letter => Key::char(letter),
        });
    }
    outcome
}

/// In normal mode, with the caret at `|`.
fn normal(text: &str) -> Editor {
    let mut editor = with(text);
    editor.set_vi(true, &[]);
    let caret = editor.caret();
    types(&mut editor, "\x1b");
    editor.buffer.set_caret(caret);
    editor
}

fn check(cases: &[(&str, &str, &str)]) {
    for (before, keys, after) in cases {
        let mut editor = normal(before);
        types(&mut editor, keys);
        assert_eq!(marked(&editor), *after, "{before:?} {keys:?}");
    }
}

#[test]
fn motions() {
    check(&[
        ("a|bc", "h", "|abc"),
        ("|abc", "5l", "ab|c"),
        ("|one two.three", "w", "one |two.three"),
        ("|one two.three", "2w", "one two|.three"),
        ("|one two.three four", "2W", "one two.three |four"),
        ("one two|", "b", "one |two"),
        ("a b.c |d", "B", "a |b.c d"),
        ("|one two", "e", "on|e two"),
        ("|one two", "2e", "one tw|o"),
        ("|a.b c", "E", "a.|b c"),
        ("  on|e", "0", "|  one"),
        ("  on|e", "^", "  |one"),
        ("|one", "$", "on|e"),
        ("a\nb\n|c", "gg", "|a\nb\nc"),
        ("|a\nb\nc", "G", "a\nb\n|c"),
        ("|a\nb\nc", "2G", "a\n|b\nc"),
        ("|one two", "fo", "one tw|o"),
        ("|one two", "ft", "one |two"),
        ("|one two", "tt", "one| two"),
        ("one tw|o", "Fo", "|one two"),
        ("one tw|o", "Tn", "on|e two"),
        ("|a,b,c,d", "f,;;", "a,b,c|,d"),
        ("|a,b,c,d", "f,;,", "a|,b,c,d"),
        ("|a,b,c,d", "t,;", "a,|b,c,d"),
        ("|a\n\nb\n\nc", "}", "a\n|\nb\n\nc"),
        ("a\n\nb\n\n|c", "{", "a\n\nb\n|\nc"),
        ("a|b\ncd", "j", "ab\nc|d"),
    ]);
}

#[test]
fn operators_with_motions_and_objects() {
    check(&[
        ("|one two three", "dw", "|two three"),
        ("|one two three", "2dw", "|three"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "cwx\x1b", "|x two three"),
        ("one |two", "d$", "one| "),
        ("one |two", "d0", "|two"),
        ("one tw|o", "db", "one |o"),
        ("|one two", "de", "| two"),
        ("|a(b)c", "dt)", "|)c"),
        ("|a(b)c", "df)", "|c"),
        ("one\nt|wo\nthree", "dd", "one\n|three"),
        ("one\nt|wo", "dd", "|one"),
        ("|one\ntwo\nthree", "2dd", "|three"),
        ("|one\ntwo\nthree", "dj", "|three"),
        ("one\ntwo|\nthree", "dk", "|three"),
        ("one\ntw|o", "dgg", "|"),
        ("a t|wo b", "diw", "a | b"),
        ("a t|wo b", "daw", "a |b"),
        ("x \"on|e two\" y", "di\"", "x \"|\" y"),
        ("x \"on|e two\" y", "da\"", "x | y"),
        ("x 'a|b' y", "ci'z\x1b", "x '|z' y"),
        ("f(a, (b|), c)", "di(", "f(a, (|), c)"),
        ("f(a|, (b), c)", "di(", "f(|)"),
        ("[a|b]", "da[", "|"),
        ("x { |a }", "ci{b\x1b", "x {|b}"),
        ("one\nt|wo\nx", "ccnew\x1b", "one\nne|w\nx"),
        ("on|e", "yyp", "one\n|one"),
        ("|one two", "yiwP", "on|eone two"),
        ("|one two", "ywwP", "one one| two"),
        ("|a\nb", ">>", "    |a\nb"),
        ("|a\nb\nc", "2>>", "    |a\n    b\nc"),
        ("    |a", "<<", "|a"),
    ]);
}

#[test]
fn single_letters() {
    check(&[
        ("a|bc", "x", "a|c"),
        ("|abcd", "3x", "|d"),
        ("ab|c", "X", "a|c"),
        ("a|bc", "D", "|a"),
        ("a|bc", "Cx\x1b", "a|x"),
        ("a|bc", "Sx\x1b", "|x"),
        ("a|bc", "sx\x1b", "a|xc"),
        ("a|bc", "rx", "a|xc"),
        ("|abc", "2rx", "x|xc"),
        ("|abc", "9rx", "|abc"),
        ("|abc", "~~", "AB|c"),
        ("|one\n  two", "J", "one| two"),
        ("|ab", "xp", "b|a"),
        ("|ab", "x3p", "baa|a"),
        ("a|b", "ix\x1b", "a|xb"),
        ("a|b", "ax\x1b", "ab|x"),
        ("  a|b", "Ix\x1b", "  |xab"),
        ("|ab", "Ax\x1b", "ab|x"),
        ("|ab", "ox\x1b", "ab\n|x"),
        ("|ab", "Ox\x1b", "|x\nab"),
        ("|abc", "xxu", "|bc"),
        ("|abc", "xxuu", "|abc"),
        ("|abc", "xxuu\x12", "|bc"),
        ("|a b", "ihello there\x1bu", "|a b"),
    ]);
}

#[test]
fn a_change_is_repeated_by_the_dot() {
    check(&[
        ("|abcdef", "x..", "|def"),
        ("|one two three", "dw.", "|three"),
        ("|one two three", "cwx\x1bw.", "x |x three"),
        ("|a\nb", "A;\x1bj.", "a;\nb|;"),
        ("|a", "ix\x1b..", "|xxxa"),
    ]);
}

#[test]
fn selections() {
    check(&[
        ("|abcd", "vld", "|cd"),
        ("a|bcd", "vhd", "|cd"),
        ("|a\nb\nc", "Vjd", "|c"),
        ("a |bb c", "viwcx\x1b", "a |x c"),
        ("|abc", "vl~", "|ABc"),
        ("|abc", "vly$p", "abca|b"),
        ("|abcd", "vlohx", "|cd"),
        ("|ab", "v\x1bx", "|b"),
        ("|a\nb\nc", "VjJ", "a| b\nc"),
    ]);
    let mut editor = normal("a|bc");
    types(&mut editor, "v");
    assert_eq!(editor.vi_mode(), Some(ViMode::Visual));
    types(&mut editor, "\x1b");
    assert_eq!(editor.vi_mode(), Some(ViMode::Normal));
}

#[test]
fn what_is_pasted_under_a_selection_takes_its_place() {
    for (before, keys, after) in [
        ("a|bcd", "vl", "aXY|d"),
        ("|漢字x", "vl", "XY|x"),
        ("one\nt|wo\nthree", "V", "one\nXY|\nthree"),
        ("|one\ntwo", "Vj", "XY|"),
    ] {
        let mut editor = normal(before);
        types(&mut editor, keys);
        editor.insert("XY");
        assert_eq!(marked(&editor), after, "{before:?} {keys:?}");
        assert_eq!(editor.vi_mode(), Some(ViMode::Normal));
        types(&mut editor, "u");
        assert_eq!(
            editor.text(),
            before.replace('|', ""),
            "it is one step of undo"
        );
    }
}

#[test]
fn a_draft_that_becomes_another_ends_a_selection() {
    let mut editor = normal("aaaa|a");
    types(&mut editor, "v");
    editor.set_text("漢字");
    assert_eq!(editor.vi_mode(), Some(ViMode::Normal));
    // By a command of the program's own, what was selected may begin inside of a letter: it is shown all the same.
    let mut editor = normal("漢字漢字|x");
    types(&mut editor, "0ix\x1b$v0");
    editor.perform(crate::editor::EditCommand::Undo);
    editor.view(4, crate::style::TextStyle::new());
    types(&mut editor, "od");
}

#[test]
fn keys_that_reach_beyond_the_draft() {
    let mut editor = normal("|one");
    assert_eq!(types(&mut editor, "k"), EditOutcome::Above);
    assert_eq!(types(&mut editor, "j"), EditOutcome::Below);
    assert_eq!(types(&mut editor, "/"), EditOutcome::Search);
    assert_eq!(types(&mut editor, "\r"), EditOutcome::Submit);
    assert_eq!(
        types(&mut editor, "\x1b"),
        EditOutcome::Unused,
        "it stops a run"
    );
    assert_eq!(types(&mut editor, "2\x1b"), EditOutcome::Done);
}

#[test]
fn an_escape_and_a_letter_that_arrive_together_are_both_keys() {
    // Over a network what was typed quickly comes as Alt and the letter.
    let mut editor = normal("|ab");
    types(&mut editor, "Ax");
    editor.key(Key::char('0').with_alt());
    assert_eq!(marked(&editor), "|abx");
    types(&mut editor, "i");
    editor.key(Key::plain(KeyCode::Enter).with_alt());
    assert_eq!(marked(&editor), "\n|abx", "but this is a new line");
}

#[test]
fn letters_typed_one_after_the_other_may_mean_escape() {
    let mut editor = with("|");
    editor.set_vi(true, &["jj"]);
    types(&mut editor, "abjj");
    assert_eq!(
        (marked(&editor).as_str(), editor.vi_mode()),
        ("a|b", Some(ViMode::Normal))
    );
    types(&mut editor, "Axjj.");
    assert_eq!(marked(&editor), "abx|x");
}

/// What a key stands for below: text that comes from elsewhere, and what a program does by itself.
fn happens(editor: &mut Editor, key: char) {
    match key {
        '\u{1}' => editor.insert("x漢e\u{301}\ny"),
        '\u{2}' => editor.set_text("ä漢"),
        '\u{3}' => drop(editor.perform(crate::editor::EditCommand::Undo)),
        '\u{4}' => editor.replace_before_caret(2, "字z"),
        '\u{5}' => {
            let parts = editor.take();
            editor.insert("é");
            editor.restore_parts(&parts);
        }
        key => drop(types(editor, &key.to_string())),
    }
}

proptest! {
    #[test]
    fn no_keys_break_the_draft(keys in "[a-zA-Z0-9{}()\\[\\]\"'<>;,.$^~/ \u{1b}\n漢vVod\u{1}\u{2}\u{3}\u{4}\u{5}]{0,40}") {
        let mut editor = normal("|one (two) \"three\"\n\n  four 漢字 {five}\nsix");
        for key in keys.chars() {
            happens(&mut editor, key);
            let text = editor.buffer.text();
            prop_assert!(text.is_char_boundary(editor.caret()));
            editor.view(4, crate::style::TextStyle::new());
        }
    }
}
