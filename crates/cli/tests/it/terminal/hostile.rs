//! Texts that would act on a terminal, or deceive the person in front of it.

use std::sync::OnceLock;

use unicode_general_category::{GeneralCategory, get_general_category};

/// Sequences of every sort: colours, the cursor, the title, the clipboard, links, questions to the
/// terminal that it answers as if typed; in both spellings, ended and not.
const SEQUENCES: [&str; 22] = [
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}[1A\u{1b}[2K",
    "\u{1b}[8mhidden\u{1b}[28m",
    "\u{1b}[?1049h",
    "\u{1b}[6n",
    "\u{1b}[c",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]52;c;Y3VybCB4fHNo\u{7}",
    "\u{1b}]8;;http://example.com\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}P$q\"p\u{1b}\\",
    "\u{1b}_Gf=24;AAAA\u{1b}\\",
    "\u{1b}^private\u{1b}\\",
    "\u{1b}X string\u{1b}\\",
    "\u{1b}c",
    "\u{1b}(0lqk",
    "\u{9b}31m\u{9b}2J",
    "\u{9d}0;title\u{9c}",
    "\u{90}$q\u{9c}\u{9f}a\u{9c}\u{9e}b\u{9c}\u{98}c\u{9c}",
    "over\rwritten\u{8}\u{8}\u{7f}",
    "\u{e}\u{f}\u{5}",
    "\u{1b}[",
];

/// Must it never arrive at a terminal?
pub(super) fn is_forbidden(character: char) -> bool {
    if matches!(character, '\n' | '\t') {
        return false;
    }
    let by_category = matches!(
        get_general_category(character),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    );
    // What Unicode calls default ignorable, as its tables list it.
    let is_ignorable = matches!(
        u32::from(character),
        0xad | 0x34f
            | 0x61c
            | 0x115f..=0x1160
            | 0x17b4..=0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x202a..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff0..=0xfff8
            | 0x1bca0..=0x1bca3
            | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff
    );
    character.is_control() || by_category || is_ignorable
}

/// All of it.
pub(super) fn everything() -> String {
    static ALL: OnceLock<String> = OnceLock::new();
    let make = || {
        let characters = (0..=0x10_ffff).filter_map(char::from_u32);
        let mut text = String::from("begin ");
        for character in characters.filter(|next| is_forbidden(*next)) {
            text.push('a');
            text.push(character);
        }
        text + " " + &SEQUENCES.join(" ") + " end"
    };
    ALL.get_or_init(make).clone()
}

/// Some of each sort, short enough for the name of a file, and fit for one.
pub(super) fn name() -> String {
    "x\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\u{e0041}\u{2028}\u{ad}\u{fe0f}\r\u{7f}y"
        .to_owned()
}

/// Fails if anything but text, and what our own drawing emits, has arrived; and if nothing was shown.
pub(super) fn assert_clean(what: &str, shown: &[u8], with_colours: bool) {
    let shown = str::from_utf8(shown).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut rest = shown.to_owned();
    if with_colours {
        for ours in ["0", "1", "2", "4", "31", "32", "33"] {
            rest = rest.replace(&format!("\u{1b}[{ours}m"), "");
        }
    }
    let leaked: Vec<String> = rest
        .chars()
        .filter(|next| is_forbidden(*next))
        .map(|next| format!("U+{:04X}", u32::from(next)))
        .collect();
    assert!(leaked.is_empty(), "{what}: {leaked:?} in {shown:?}");
}
