//! Text files as numbered lines.

use std::{env, fmt::Write, path::Path};

use haft_journal::{BreakStyle, Encoding, PageLine, PageRequest, TextPage};
use serde_json::{Map, Value};

use super::Input;

/// Sets the token limit of one call.
const BUDGET_VARIABLE: &str = "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS";
/// The factor by which `allow_large` multiplies the limits.
const LARGE: u64 = 4;

/// Returns the request of a call, within the limits of the environment.
pub(super) fn request(input: &Input) -> PageRequest {
    within(input, env::var(BUDGET_VARIABLE).ok().as_deref())
}

fn within(input: &Input, budget: Option<&str>) -> PageRequest {
    let standard = PageRequest::default();
    let tokens = budget
        .and_then(|value| value.trim().parse().ok())
        .filter(|tokens| *tokens > 0)
        .unwrap_or(standard.max_tokens);
    let factor = if input.allow_large { LARGE } else { 1 };
    PageRequest {
        offset: input.offset,
        limit: input.limit,
        char_offset: input.char_offset.unwrap_or(0),
        max_lines: standard.max_lines * factor,
        max_tokens: tokens.saturating_mul(factor),
        ..standard
    }
}

/// Returns the text for the model.
pub(super) fn answer(page: &TextPage, request: &PageRequest, name: &str) -> String {
    if page.empty {
        return format!("<system-reminder>{name} exists, but it is empty.</system-reminder>");
    }
    let lengths = page.lines.iter().map(|line| line.text.len() + NUMBERED);
    let mut text = String::with_capacity(lengths.sum());
    for line in &page.lines {
        push_number(&mut text, line.number);
        text.push_str(&line.text);
        // Writing to a string cannot fail.
        if let Some(length) = line.cut {
            let _ = write!(
                text,
                " [cut: the line has {length} characters; read on with {}]",
                going_on(page, line, request)
            );
        }
        text.push('\n');
    }
    text.pop();
    for note in [position(page, request), peculiarities(page)]
        .into_iter()
        .flatten()
    {
        let _ = write!(text, "\n[{note}]");
    }
    text
}

/// The length of what is written for each line in addition to its text.
const NUMBERED: usize = "123456\t\n".len();

/// Writes a line number as `{:>6}` and a tab; optimized, because it runs for every line.
fn push_number(text: &mut String, number: u64) {
    let mut digits = [b' '; 20]; // as many as the longest number has
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    let shown = &digits[at.min(digits.len() - 6)..];
    text.push_str(std::str::from_utf8(shown).unwrap_or_default()); // digits and spaces
    text.push('\t');
}

/// Returns the parameters for reading on inside a line that was cut.
fn going_on(page: &TextPage, line: &PageLine, request: &PageRequest) -> String {
    let from = if line.number == page.first {
        request.char_offset
    } else {
        0
    };
    let next = from + line.text.chars().count() as u64;
    format!("offset {}, char_offset {next}", line.number)
}

/// Formats the range of shown lines, with the total number of lines if `of` is set.
pub(super) fn range(page: &TextPage, request: &PageRequest, of: Option<u64>) -> String {
    let mut range = match page.first == page.last {
        true => format!("line {}", page.first),
        false => format!("lines {}–{}", page.first, page.last),
    };
    // Writing to a string cannot fail.
    if let Some(total) = of {
        let _ = write!(range, " of {total}");
    }
    if request.char_offset > 0 {
        let first = match page.first == page.last {
            true => "",
            false => ", the first",
        };
        let _ = write!(range, "{first} from character {}", request.char_offset + 1);
    }
    range
}

/// Formats the shown lines and how to continue, unless they are the whole file.
fn position(page: &TextPage, request: &PageRequest) -> Option<String> {
    let all_lines = page.first <= 1 && page.next_offset.is_none();
    let cut = page.lines.iter().find(|line| line.cut.is_some());
    if all_lines && !page.unended && request.char_offset == 0 && cut.is_none() {
        return None;
    }
    let mut note = String::new();
    if page.read_record.partial {
        note.push_str("PARTIAL view: ");
    }
    note.push_str(&range(page, request, page.total_lines));
    if page.truncated_by_tokens {
        let _ = write!(note, ", as many as fit into {} tokens", request.max_tokens);
    }
    match page.next_offset {
        Some(next) => {
            let _ = write!(note, "; continue with offset {next}");
        }
        None if page.unended => note.push_str("; the rest of this special file is not read"),
        None => note.push_str("; the end of the file"),
    }
    if let Some(line) = cut {
        let going_on = going_on(page, line, request);
        let _ = write!(
            note,
            "; line {} is cut, the rest of it: {going_on}",
            line.number
        );
    }
    Some(note)
}

/// Returns a note about unusual properties of the text.
fn peculiarities(page: &TextPage) -> Option<String> {
    let facts = &page.facts;
    let mut notes = Vec::new();
    if facts.encoding != Encoding::Utf8 {
        notes.push(format!("the file is {}", facts.encoding));
    } else if facts.bom {
        notes.push("the file begins with a byte order mark".to_owned());
    }
    if facts.lossy {
        notes.push("bytes that could not be decoded are shown as \u{fffd}".to_owned());
    }
    match facts.breaks {
        BreakStyle::CrLf => notes.push("line breaks are CRLF".to_owned()),
        BreakStyle::Mixed => notes.push("line breaks are mixed, LF and CRLF".to_owned()),
        BreakStyle::Cr => notes.push("line breaks are CR".to_owned()),
        BreakStyle::None | BreakStyle::Lf => {}
    }
    let shows_the_end = page.next_offset.is_none();
    if facts.final_newline == Some(false) && shows_the_end {
        notes.push("no line break at the end of the file".to_owned());
    }
    let indents = |start: &str| page.lines.iter().any(|line| line.text.starts_with(start));
    if indents("\t") && indents("  ") {
        notes.push("some lines are indented with tabs, some with spaces".to_owned());
    }
    (!notes.is_empty()).then(|| format!("note: {}", notes.join("; ")))
}

/// Returns the structured output.
pub(super) fn structured(page: &TextPage, path: &Path) -> Value {
    let lines: Vec<&str> = page.lines.iter().map(|line| line.text.as_str()).collect();
    // Allocated with its final size, because every Read creates one.
    let mut file = Map::with_capacity(6);
    let mut put = |name: &str, value: Value| file.insert(name.to_owned(), value);
    put("filePath", path.to_string_lossy().into());
    put("content", lines.join("\n").into());
    put("numLines", lines.len().into());
    put("startLine", page.first.max(1).into());
    put("totalLines", page.total_lines.into());
    if page.truncated_by_tokens {
        put("truncatedByTokenCap", true.into());
    }
    let mut structured = Map::with_capacity(2);
    structured.insert("type".to_owned(), "text".into());
    structured.insert("file".to_owned(), file.into());
    structured.into()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn numbers_of_lines_are_as_wide_as_six_digits() {
        for number in [0, 1, 9, 10, 99_999, 100_000, 999_999, 1_000_000, u64::MAX] {
            let mut text = "x".to_owned();
            push_number(&mut text, number);
            assert_eq!(text, format!("x{number:>6}\t"));
        }
    }

    #[test]
    fn the_budget_follows_the_surroundings_and_the_call() {
        let cases = [
            // (variable, allow_large, tokens, lines)
            (None, false, 25_000, 2_000),
            (None, true, 100_000, 8_000),
            (Some("1000"), false, 1_000, 2_000),
            (Some("1000"), true, 4_000, 8_000),
            (Some("0"), false, 25_000, 2_000),
            (Some("many"), false, 25_000, 2_000),
        ];
        for (variable, allow_large, tokens, lines) in cases {
            let input = Input {
                file_path: PathBuf::new(),
                offset: None,
                limit: None,
                char_offset: None,
                pages: None,
                allow_large,
                was_file: false.into(),
            };
            let request = within(&input, variable);
            assert_eq!((request.max_tokens, request.max_lines), (tokens, lines));
        }
    }
}
