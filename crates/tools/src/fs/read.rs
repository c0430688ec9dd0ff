//! `Read`: the lines of a text file, numbered.
//!
//! What was shown counts as seen: it is what lets Edit and Write go on.

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use haft_contract::{
    Access, CallContext, Card, Check, Effects, Profile, Tool, ToolError, ToolOutput, view::plain,
};
use haft_journal::{BreakStyle, Encoding, Journal, JournalError, Page, PageRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{explain, is_missing, missing, profile};
use crate::{blocking::blocking, paths::shown, words::counted};

/// Files up to this size are read where the call runs: handing them to another thread costs 20 µs,
/// which is more than reading 1 KiB (16 µs) and a third of reading this much (70 µs).
const READ_DIRECTLY: u64 = 16 << 10;

/// Lifts the token budget of one call.
const BUDGET_VARIABLE: &str = "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS";
/// What `allow_large` multiplies the limits by.
const LARGE: u64 = 4;

/// Reads a text file and returns its lines, each as its number, a tab and the text.
///
/// - Read a file before you change it: Edit and Write refuse files that were not read.
/// - Without `offset` and `limit` it starts at line 1 and returns up to 2000 lines or about 25000
///   tokens. If that is not all, the last line says `PARTIAL view` and the `offset` to go on with.
/// - Lines over 2000 characters are cut; `char_offset` reads on inside such a line.
/// - Line numbers and the notes in square brackets at the end are not part of the file.
/// - Only text. For a directory use LS; to find text in many files use Grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file to read; best as an absolute path.
    file_path: PathBuf,
    /// The first line to return, counted from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// How many lines to return.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Skip this many characters of the first line; only for reading on in a line that was cut.
    #[serde(default)]
    char_offset: Option<u64>,
    /// Return up to four times as much at once. Only when you really need a long text whole.
    #[serde(default)]
    allow_large: bool,
}

pub(crate) struct Read;

impl Tool for Read {
    type Input = Input;
    const NAME: &'static str = "Read";

    fn profile(&self) -> Profile {
        Profile {
            result_cap: None,
            ..profile(
                Access::Reads,
                &["file_path"],
                "open view show cat file contents lines",
            )
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        if input.file_path.exists() {
            Effects::reading([input.file_path.clone()])
        } else {
            // The error names files that were perhaps meant, so it depends on more than the path.
            Effects::READS
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<Check, ToolError> {
        let path = cx.cwd.join(&input.file_path);
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                let error = JournalError::IsDirectory { path };
                Err(ToolError::Refused(explain(error, &cx.cwd)))
            }
            Ok(_) => Ok(Check::Pass),
            Err(error) if is_missing(&error) => {
                let cwd = cx.cwd.clone();
                let text = blocking(move || missing(&path, &cwd)).await?;
                Err(ToolError::Refused(text))
            }
            // Links in a circle, a directory that may not be entered: the read itself says it best.
            Err(_) => Ok(Check::Pass),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let journal = cx.services.get::<Journal>()?;
        let path = cx.cwd.join(&input.file_path);
        let request = request(input, env::var(BUDGET_VARIABLE).ok().as_deref());
        // Size 0 may also be a file of /proc, whose reading may take its time.
        let small = fs::metadata(&path)
            .is_ok_and(|found| found.is_file() && (1..=READ_DIRECTLY).contains(&found.len()));
        let cwd = cx.cwd.clone();
        let read = {
            let (path, request) = (path.clone(), request.clone());
            move || {
                journal
                    .read(&path, &request)
                    .map_err(|error| ToolError::Failed(explain(error, &cwd)))
            }
        };
        let page = if small { read() } else { blocking(read).await? }?;
        let text = if page.empty {
            let name = shown(&path, &cx.cwd);
            format!("<system-reminder>{name} exists, but it is empty.</system-reminder>")
        } else {
            text(&page, &request)
        };
        Ok(ToolOutput::text(text).with_structured(structured(&page, &path)))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let mut subject = input.file_path.display().to_string();
        if let Some(offset) = input.offset {
            let _ = write!(subject, " from line {offset}");
        }
        if let Some(limit) = input.limit {
            let _ = write!(subject, ", {}", counted(limit, "line"));
        }
        Some(Card::new(Self::NAME, subject))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let file = &output.structured.as_ref()?["file"];
        let (shown, total) = (file["numLines"].as_u64()?, file["totalLines"].as_u64());
        let summary = match total {
            Some(total) if total > shown => format!("{shown} of {}", counted(total, "line")),
            _ => counted(shown, "line"),
        };
        let card = self.render_use(input)?.with_summary(summary);
        Some(plain::result(card, output))
    }
}

fn request(input: &Input, budget: Option<&str>) -> PageRequest {
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

fn text(page: &Page, request: &PageRequest) -> String {
    let mut text = String::new();
    for line in &page.lines {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:>6}\t{}", line.number, line.text);
        if let Some(length) = line.cut {
            let from = if line.number == page.first {
                request.char_offset
            } else {
                0
            };
            let next = from + line.text.chars().count() as u64;
            let _ = write!(
                text,
                " [cut: the line has {length} characters; read on with offset {}, char_offset {next}]",
                line.number
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

/// Which lines these are, unless they are the whole file.
fn position(page: &Page, request: &PageRequest) -> Option<String> {
    let all_lines = page.first <= 1 && page.next_offset.is_none();
    if all_lines && !page.truncated_by_size && request.char_offset == 0 {
        return None;
    }
    let mut note = String::new();
    if page.sight.partial {
        note.push_str("PARTIAL view: ");
    }
    let _ = match page.first == page.last {
        true => write!(note, "line {}", page.first),
        false => write!(note, "lines {}–{}", page.first, page.last),
    };
    if let Some(total) = page.total_lines {
        let _ = write!(note, " of {total}");
    }
    if request.char_offset > 0 {
        let first = if page.first == page.last {
            ""
        } else {
            ", the first"
        };
        let _ = write!(note, "{first} from character {}", request.char_offset + 1);
    }
    if page.truncated_by_tokens {
        let _ = write!(note, ", as many as fit into {} tokens", request.max_tokens);
    }
    match page.next_offset {
        Some(next) => {
            let _ = write!(note, "; continue with offset {next}");
        }
        None if page.truncated_by_size => {
            note.push_str("; the rest of this special file is not read")
        }
        None => note.push_str("; the end of the file"),
    }
    Some(note)
}

/// What a reader would not expect of a text file.
fn peculiarities(page: &Page) -> Option<String> {
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
    if facts.final_newline == Some(false) && shows_the_end && !page.truncated_by_size {
        notes.push("no line break at the end of the file".to_owned());
    }
    let indents = |start: &str| page.lines.iter().any(|line| line.text.starts_with(start));
    if indents("\t") && indents("  ") {
        notes.push("some lines are indented with tabs, some with spaces".to_owned());
    }
    (!notes.is_empty()).then(|| format!("note: {}", notes.join("; ")))
}

fn structured(page: &Page, path: &Path) -> Value {
    let lines: Vec<&str> = page.lines.iter().map(|line| line.text.as_str()).collect();
    let mut file = json!({
        "filePath": path.to_string_lossy(),
        "content": lines.join("\n"),
        "numLines": lines.len(),
        "startLine": page.first.max(1),
        "totalLines": page.total_lines,
    });
    if page.truncated_by_tokens {
        file["truncatedByTokenCap"] = json!(true);
    }
    json!({"type": "text", "file": file})
}

#[cfg(test)]
mod tests {
    use super::*;

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
                allow_large,
            };
            let request = request(&input, variable);
            assert_eq!((request.max_tokens, request.max_lines), (tokens, lines));
        }
    }
}
