use proptest::prelude::*;

use super::*;

fn look() -> MarkdownLook {
    MarkdownLook {
        columns: 60,
        ..MarkdownLook::default()
    }
}

fn text(item: &HistoryItem) -> String {
    match item {
        HistoryItem::Verbatim(line) | HistoryItem::Prose { line, .. } => line.text().to_owned(),
        other => format!("{other:?}"),
    }
}

fn texts(items: &[HistoryItem]) -> Vec<String> {
    items.iter().map(text).collect()
}

/// A reply at once.
fn whole(reply: &str) -> Vec<HistoryItem> {
    let mut committer = MarkdownCommitter::new(look());
    let mut done = committer.push(reply);
    done.extend(committer.finish());
    done
}

fn open(committer: &MarkdownCommitter) -> Vec<String> {
    committer
        .open_rows(60, 99)
        .iter()
        .map(|row| row.text().to_owned())
        .collect()
}

#[test]
fn blocks_as_lines() {
    let reply = "# Title\nA paragraph\nof two lines.\n\n- one\n- two **bold**\n  goes on\n  - nested\n\n1. first\n2. second\n\n> quoted\n> text\n\n```rust\nfn main() {}\n```\nafter\n\n---\nend";
    let expected = [
        "Title",
        "",
        "A paragraph of two lines.",
        "",
        "- one",
        "- two bold goes on",
        "  - nested",
        "",
        "1. first",
        "2. second",
        "",
        "| quoted text",
        "",
        "fn main() {}",
        "after",
        "",
        "---",
        "end",
    ];
    assert_eq!(texts(&whole(reply)), expected);
}

#[test]
fn bold_is_bold_at_once_and_no_mark_is_ever_shown() {
    // Vector 6.
    let mut committer = MarkdownCommitter::new(look());
    for letter in "**bold** x and `code` too".chars() {
        committer.push(&letter.to_string());
        let rows = open(&committer).concat();
        assert!(!rows.contains(['*', '`']), "{rows:?}");
    }
    let mut committer = MarkdownCommitter::new(look());
    committer.push("**bo");
    let expected = TextLine::styled("bo", TextStyle::new().bold());
    assert_eq!(committer.open_rows(60, 9), [expected]);
}

#[test]
fn each_line_of_code_is_committed_as_it_ends() {
    // Vector 7.
    let mut committer = MarkdownCommitter::new(look());
    assert_eq!(texts(&committer.push("```rust\n")), [""; 0]);
    for number in 0..400 {
        assert_eq!(committer.push(&format!("let x{number} = \"one")), []);
        assert_eq!(open(&committer), [format!("let x{number} = \"one")]);
        assert_eq!(
            texts(&committer.push("\n")),
            [format!("let x{number} = \"one")]
        );
        let done = committer.push("two\";\n");
        let theme = Theme::default();
        let HistoryItem::Verbatim(line) = &done[0] else {
            panic!("{done:?}")
        };
        // The text goes on from the line before.
        assert_eq!(line.slice(0..4), TextLine::styled("two\"", theme.string));
    }
    assert_eq!(committer.push("```\n"), []);
    assert!(committer.is_empty());
}

#[test]
fn a_paragraph_is_committed_when_it_ends_and_not_before() {
    let mut committer = MarkdownCommitter::new(look());
    assert_eq!(committer.push("one two\nthree"), []);
    assert_eq!(open(&committer), ["one two three"]);
    assert_eq!(texts(&committer.push("\n\nnext")), ["one two three"]);
    assert_eq!(open(&committer), ["", "next"]);
    assert_eq!(texts(&committer.finish()), ["", "next"]);
    assert!(committer.is_empty());
}

#[test]
fn list_entries_are_committed_one_by_one_and_hang() {
    let mut committer = MarkdownCommitter::new(look());
    committer.push("- one\n");
    let done = committer.push("- two\n");
    assert_eq!(
        done,
        [HistoryItem::Prose {
            line: TextLine::plain("- one"),
            indent: 2
        }]
    );
    committer.push("10. ten\n");
    let done = committer.finish();
    assert_eq!(
        done,
        [HistoryItem::Prose {
            line: TextLine::plain("10. ten"),
            indent: 4
        }]
    );
}

#[test]
fn code_and_paragraphs_inside_of_entries_are_indented() {
    let reply = "1. do this\n   ```sh\n   ls -l\n     x\n   ```\n\n   and then\n2. that\n";
    assert_eq!(
        texts(&whole(reply)),
        [
            "1. do this",
            "   ls -l",
            "     x",
            "",
            "   and then",
            "2. that"
        ]
    );
}

#[test]
fn tables_are_columns_or_entries() {
    let table = "| a | bb |\n|---|--:|\n| one | 1 |\n| a longer cell | 22 |\n\nafter";
    let expected = [
        "a              bb",
        "-------------  --",
        "one             1",
        "a longer cell  22",
        "",
        "after",
    ];
    assert_eq!(texts(&whole(table)), expected);
    // Vector 8.
    let names: Vec<String> = (1..=9).map(|n| format!("column{n}")).collect();
    let values: Vec<String> = (1..=9).map(|n| format!("value number {n}")).collect();
    let wide = format!(
        "|{}|\n|{}\n|{}|\n",
        names.join("|"),
        "---|".repeat(9),
        values.join("|")
    );
    let narrow = MarkdownLook {
        columns: 40,
        ..look()
    };
    let mut committer = MarkdownCommitter::new(narrow);
    committer.push(&wide);
    let rows = texts(&committer.finish());
    assert_eq!(rows.len(), 9);
    assert_eq!(rows[0], "column1: value number 1");
}

#[test]
fn cells_wrap_before_a_table_is_taken_apart() {
    let table = "| name | what it is |\n|--|--|\n| x | one two three four five six seven eight nine ten eleven twelve |\n";
    let rows = texts(&whole(table));
    assert_eq!(
        rows[2],
        "x     one two three four five six seven eight nine ten"
    );
    assert_eq!(rows[3], "      eleven twelve");
    assert!(rows.iter().all(|row| crate::width::text_width(row) < 60));
}

#[test]
fn an_open_table_changes_only_at_a_whole_row() {
    let mut committer = MarkdownCommitter::new(look());
    committer.push("| a | b |\n|---|---|\n| 1 | 2 |\n");
    let before = open(&committer);
    assert_eq!(before.len(), 3);
    assert_eq!(committer.push("| 3 |"), []);
    assert_eq!(open(&committer), before);
    committer.push(" 4 |\n");
    assert_eq!(open(&committer).len(), 4);
    assert_eq!(committer.push("\n").len(), 4);
}

#[test]
fn links_are_links_or_stand_behind_their_text() {
    assert_eq!(
        texts(&whole("see [the docs](https://e.x/a) now")),
        ["see the docs (https://e.x/a) now"]
    );
    assert_eq!(texts(&whole("<https://e.x/a>")), ["https://e.x/a"]);
    let mut known = look();
    known.hyperlinks = true;
    let mut committer = MarkdownCommitter::new(known);
    committer.push("[the docs](https://e.x/a)");
    let done = committer.finish();
    let mut out = Vec::new();
    let HistoryItem::Prose { line, .. } = &done[0] else {
        panic!()
    };
    crate::paint::paint_line(line, crate::style::ColorLevel::None, &mut out);
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains("\x1b]8;;https://e.x/a\x1b\\")
    );
    let mut committer = MarkdownCommitter::new(look());
    committer.push("see [the docs](https://e.");
    assert_eq!(open(&committer), ["see the docs"]);
}

#[test]
fn what_is_asked_again_drops_the_open_block() {
    let mut committer = MarkdownCommitter::new(look());
    committer.push("half a para");
    assert!(!committer.discard() && committer.is_empty());
    committer.push("one\n\nhalf");
    assert!(committer.discard());
    assert_eq!(texts(&whole("x")), ["x"]);
}

#[test]
fn a_block_taller_than_its_room_shows_its_last_rows() {
    let mut committer = MarkdownCommitter::new(look());
    committer.push(&"word ".repeat(100));
    let rows = committer.open_rows(20, 3);
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.width() <= 20));
    committer.push(&"x".repeat(200_000));
    assert_eq!(committer.open_rows(20, 3).len(), 3);
}

#[test]
fn text_that_would_act_is_shown() {
    // Vector 36.
    let shown = texts(&whole(
        "a \x1b[2J b\x1b]52;c;eA==\x07\n\n```\n\x1b[2J\n```\n",
    ));
    assert_eq!(shown, ["a ␛[2J b␛]52;c;eA==␇", "", "␛[2J"]);
}

#[test]
fn the_last_words_of_a_thought_are_one_row() {
    let row = thinking_row("first line\nthe last of some words", 10, &Theme::default());
    assert_eq!(
        row,
        TextLine::styled("some words", TextStyle::new().faint())
    );
    assert!(thinking_row("", 10, &Theme::default()).is_empty());
}

fn replies() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "word ",
        "**",
        "*",
        "_",
        "`",
        "```",
        "```rust\n",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "> ",
        "# ",
        "| a | b |\n",
        "|--|--|\n",
        "[",
        "](",
        ")",
        "漢字 ",
        "\x1b[2J",
        "    ",
        "  ",
        "---\n",
        "~~",
        "\\",
        "<b>",
        "===\n",
        "![",
        "\t",
        "&amp;",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn however_a_reply_is_split_the_same_is_committed(
        reply in replies(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(reply.len() + 1)).collect();
        cuts.retain(|cut| reply.is_char_boundary(*cut));
        cuts.extend([0, reply.len()]);
        cuts.sort_unstable();
        let mut committer = MarkdownCommitter::new(look());
        let mut done = Vec::new();
        for cut in cuts.windows(2) {
            done.extend(committer.push(&reply[cut[0]..cut[1]]));
            let rows = committer.open_rows(30, 5);
            prop_assert!(rows.len() <= 5 && rows.iter().all(|row| row.width() <= 30));
        }
        done.extend(committer.finish());
        prop_assert_eq!(&done, &whole(&reply));
        for item in done {
            let text = text(&item);
            prop_assert!(!text.contains(|c: char| c.is_control()), "{:?}", text);
        }
    }

    #[test]
    fn no_letter_of_plain_words_is_lost(words in prop::collection::vec("[a-z]{1,8}", 1..30)) {
        let reply = words.join(" ");
        let joined = texts(&whole(&reply)).join(" ");
        prop_assert_eq!(joined, reply);
    }
}
