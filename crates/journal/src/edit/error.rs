//! Errors of edits.

use super::{MatchTier, places};
use crate::text::Encoding;

/// The reason why an edit was not made. The texts are for the model; the caller adds the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
#[non_exhaustive]
pub enum EditError {
    /// Old and new text are the same.
    #[error("old_string and new_string are identical: there is nothing to change.")]
    Identical,
    /// No old text, and the file is not empty.
    #[error(
        "old_string is empty but the file is not. Use Write to replace the whole file, or put the text to be replaced into old_string."
    )]
    OldEmpty,
    /// The old text is not in the file; `help` describes similar text, if any.
    #[error("String to replace not found.{}", help_below(.help))]
    NotFound { help: String },
    /// The old text occurs several times, but only one occurrence was to be replaced.
    #[error("Found {count} matches of the string to replace{}, at {}. Add surrounding lines to old_string so that it names one place, or set replace_all to change all of them.", tolerance(*.tier), places::list(.lines, *.count))]
    Ambiguous {
        count: usize,
        lines: Vec<u64>,
        tier: MatchTier,
    },
    /// The only match may cut a character of a double-byte code page in half.
    #[error(
        "String to replace not found as whole characters: its only match, on line {line}, may begin or end inside a double-byte character (the file is not UTF-8). Include the text around it in old_string."
    )]
    InsideCharacter { line: u64 },
    /// The file would not change.
    #[error(
        "the edit would not change the file: the new text equals the old one (line breaks and the byte order mark follow the file)."
    )]
    NoEffect,
    /// The file is not text.
    #[error("it is a binary file; text cannot be replaced in it.")]
    Binary,
    /// File and old text differ in the whitespace at the end of a line that the change touches.
    #[error(
        "line {line} of the file ends in {}, old_string and new_string in {}: it is unclear whether the file's trailing whitespace should stay. Copy the end of the line exactly into old_string, and end the line in new_string as it should be.", named_blanks(.file), named_blanks(.old)
    )]
    BlanksInDoubt {
        line: u64,
        file: String,
        old: String,
    },
    /// File and old text have different quotes, dashes or spaces in the changed part.
    #[error(
        "line {line} of the file has {}, old_string has {} there, and new_string has it too in the part that changes: it is unclear which one you mean. Copy the line exactly into old_string, and give new_string the characters it should have.", named(*.file), named(*.old)
    )]
    SignInDoubt { line: u64, file: char, old: char },
    /// A line that differs from the old text is moved or copied.
    #[error(
        "line {line} of the file is not exactly as in old_string (quotes, dashes or whitespace differ), and it is moved, copied, or one of several like it: it is unclear which characters it should have. Copy the lines exactly into old_string and new_string."
    )]
    LineInDoubt { line: u64 },
    /// Characters outside ASCII, in a file whose code page is not certain.
    #[error(
        "the file is not UTF-8 (likely {likely}, but that is not certain), so the bytes of characters outside ASCII are not known. Use only ASCII in old_string and new_string, or convert the file to UTF-8 with a shell command first."
    )]
    LegacyEncoding { likely: &'static str },
    /// The new text has a character that the file's encoding lacks.
    #[error(
        "the file is {encoding}, which has no {}. Use only characters of {encoding} in new_string, or convert the file to UTF-8 with a shell command first.", named(*.character)
    )]
    NotInCodePage { character: char, encoding: Encoding },
}

fn help_below(help: &str) -> String {
    if help.is_empty() {
        " Read the file again and copy the text exactly, without line numbers.".to_owned()
    } else {
        format!("\n{help}")
    }
}

fn tolerance(tier: MatchTier) -> &'static str {
    match tier {
        MatchTier::Typography => " (none exact; ignoring the kind of quotes, dashes and spaces)",
        MatchTier::TrailingBlanks => " (none exact; ignoring whitespace at line ends)",
        _ => "",
    }
}

fn named(character: char) -> String {
    match character {
        ' ' => "a space".to_owned(),
        '\t' => "a tab".to_owned(),
        _ if character.is_whitespace() => format!("U+{:04X}", u32::from(character)),
        _ => format!("{character} (U+{:04X})", u32::from(character)),
    }
}

/// Formats trailing whitespace for a message, for example `2 whitespace characters (··)`.
fn named_blanks(blanks: &str) -> String {
    let signs: String = blanks
        .chars()
        .map(|blank| match blank {
            ' ' => '·',
            '\t' => '→',
            _ => '⍽',
        })
        .collect();
    match blanks.chars().count() {
        0 => "no whitespace".to_owned(),
        1 => format!("1 whitespace character ({signs})"),
        count => format!("{count} whitespace characters ({signs})"),
    }
}
