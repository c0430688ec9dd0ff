//! `Grep`: searches lines, files or counts by regular expression.

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, PermissionSnapshot, Tool, ToolError,
    ToolOutput, ToolProfile,
};
use haft_search::{GrepMatches, GrepMode, GrepQuery, GrepReport, GrepRow, RowKind, split_globs};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TIMEOUT, ask, caveats, leave_out, profile, stop, timed_out};
use crate::{
    paths::{fill_path, path_constraint, shown},
    plural::counted,
};

/// The default number of returned rows.
const HEAD_LIMIT: u64 = 250;
/// The maximum length of a result that the model gets inline.
const RESULT_CAP: usize = 20_000;

/// Searches file contents for a regular expression, as ripgrep does.
///
/// - The pattern is a Rust regex: escape literal `(`, `{`, `.` and the like (`foo\(`); look-around
///   and backreferences do not exist. It is matched line by line unless `multiline` is set.
/// - Default is a list of files, the newest first; ask for `content` to see the lines
///   (`path:line:text`) or `count` for the number of matching lines of each file.
/// - Hidden files are searched. Files that .gitignore or another ignore file names, binary files and
///   the inside of `.git` are not; a file named as `path` is searched even if it is ignored.
/// - Returns 250 rows; the last line says how to get the next ones. Narrow a search with `path`,
///   `glob` or `type` rather than reading on and on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The regular expression.
    pattern: String,
    /// The file or directory to search; the working directory if left out.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Only files that match, such as `*.ts` or `src/**/*.{js,jsx}`; `!` in front excludes files.
    /// Several are separated by spaces or commas.
    #[serde(default)]
    glob: Option<String>,
    /// Only files of this type, such as `rust`, `py`, `js`.
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    /// The kind of result; `files_with_matches` if omitted.
    #[serde(default)]
    output_mode: OutputMode,
    /// Lines to show after each match; `content` only.
    #[serde(default, rename = "-A")]
    after: Option<u64>,
    /// Lines to show before each match; `content` only.
    #[serde(default, rename = "-B")]
    before: Option<u64>,
    /// Lines to show before and after each match, in place of `-A` and `-B`; `content` only.
    #[serde(default, rename = "-C")]
    around: Option<u64>,
    /// An alias of `-C`.
    #[serde(default)]
    context: Option<u64>,
    /// Show line numbers; `content` only.
    #[serde(default = "yes", rename = "-n")]
    line_numbers: bool,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Show only what matched, one match a row; `content` only.
    #[serde(default, rename = "-o")]
    only_matching: bool,
    /// The maximum number of rows (lines, files or counts); 0 for all.
    #[serde(default = "head_limit")]
    head_limit: u64,
    /// The number of rows to skip first.
    #[serde(default)]
    offset: u64,
    /// Let a match span lines, and `.` match line breaks.
    #[serde(default)]
    multiline: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    /// the matching lines, with context lines if asked for
    Content,
    /// the files with a match
    #[default]
    FilesWithMatches,
    /// how many lines match in each file, and the total
    Count,
}

fn yes() -> bool {
    true
}

fn head_limit() -> u64 {
    HEAD_LIMIT
}

impl OutputMode {
    fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::FilesWithMatches => "files_with_matches",
            Self::Count => "count",
        }
    }
}

impl Input {
    fn query(&self, cx: &CallContext) -> Result<GrepQuery, ToolError> {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let path = match &self.path {
            Some(path) => cx.cwd.join(path),
            None => cx.cwd.to_path_buf(),
        };
        let around = self.around.or(self.context);
        let mode = match self.output_mode {
            OutputMode::Content => GrepMode::Content {
                before: size(around.or(self.before).unwrap_or(0)),
                after: size(around.or(self.after).unwrap_or(0)),
                only_matching: self.only_matching,
            },
            OutputMode::FilesWithMatches => GrepMode::FilesWithMatches,
            OutputMode::Count => GrepMode::Count,
        };
        let judged = path_constraint(&path, cx)?;
        let PermissionSnapshot {
            hidden,
            key_stores: stores,
            ..
        } = &cx.permissions;
        Ok(GrepQuery {
            current_dir: cx.cwd.to_path_buf(),
            globs: self.glob.as_deref().map(split_globs).unwrap_or_default(),
            file_type: self.file_type.clone(),
            mode,
            case_insensitive: self.ignore_case,
            multiline: self.multiline,
            head_limit: (self.head_limit > 0).then(|| size(self.head_limit)),
            offset: size(self.offset),
            leave_out: leave_out(hidden, stores, &path, judged.as_deref()),
            authorized_path: judged,
            ..GrepQuery::new(&self.pattern, path)
        })
    }
}

pub(crate) struct Grep;

impl Tool for Grep {
    type Input = Input;
    const NAME: &'static str = "Grep";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            never_deferred: true,
            result_cap: Some(RESULT_CAP),
            output_schema: Some(output_schema()),
            ..profile("search file contents regex ripgrep rg")
        }
    }

    fn backfill(&self, input: &mut Value) {
        fill_path(input);
    }

    fn effects(&self, _: &Input) -> Effects {
        // Ignore files in any ancestor directory affect the result.
        Effects::READS
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let query = input.query(cx)?;
        ask(cx, move |engine| engine.check_grep(&query))
            .await?
            .map(|()| CheckOutcome::Pass)
            .map_err(ToolError::Refused)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let query = input.query(cx)?;
        let stop = stop(cx, TIMEOUT);
        let report = ask(cx, move |engine| engine.grep(&query, &stop))
            .await?
            .map_err(ToolError::Failed)?;
        let timed_out = timed_out(report.completion)?;
        let rows = rows(&report.found, input.line_numbers, &cx.cwd);
        let mut structured = structured(input, &report, &rows);
        if timed_out {
            structured["timedOut"] = json!(true);
        }
        let mut lines = page(rows, input, &report);
        lines.extend(caveats(&report.skipped, &cx.cwd, timed_out, TIMEOUT));
        Ok(ToolOutput::text(lines.join("\n")).with_structured(structured))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let mut subject = input.pattern.clone();
        // Writing to a string cannot fail.
        if let Some(path) = &input.path {
            let _ = write!(subject, " in {}", path.display());
        }
        for filter in [&input.glob, &input.file_type].into_iter().flatten() {
            let _ = write!(subject, ", {filter}");
        }
        Some(Card::new(Self::NAME, subject))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let structured = output.structured.as_ref()?;
        let (key, noun) = match input.output_mode {
            OutputMode::Content => ("numLines", "line"),
            OutputMode::FilesWithMatches | OutputMode::Count => ("numFiles", "file"),
        };
        let summary = counted(structured[key].as_u64()?, noun);
        let text = output.content.first()?.as_text()?.to_owned();
        let card = self.render_use(input)?.with_summary(summary);
        Some(card.with(CardSection::Text(text)))
    }
}

/// Returns one string for each row of the result.
fn rows(found: &GrepMatches, line_numbers: bool, cwd: &Path) -> Vec<String> {
    match found {
        GrepMatches::Rows(rows) => rows
            .iter()
            .map(|row| content_row(row, line_numbers, cwd))
            .collect(),
        GrepMatches::Files(files) => files.iter().map(|path| shown(path, cwd)).collect(),
        GrepMatches::Counts(counts) => counts
            .iter()
            .map(|count| format!("{}:{}", shown(&count.path, cwd), count.count))
            .collect(),
    }
}

fn content_row(row: &GrepRow, line_numbers: bool, cwd: &Path) -> String {
    let separator = match row.kind {
        RowKind::Match => ':',
        RowKind::Context => '-',
        RowKind::Break => return "--".to_owned(),
        RowKind::Notice => return format!("{}: {}", shown(&row.path, cwd), row.text),
    };
    let mut text = format!("{}{separator}", shown(&row.path, cwd));
    if let Some(line) = row.line.filter(|_| line_numbers) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{line}{separator}");
    }
    text.push_str(&row.text);
    if let Some(length) = row.full_length {
        let _ = write!(text, " [cut: {length} characters in all]");
    }
    text
}

/// Returns the rows with the lines around them: totals and how to continue.
fn page(rows: Vec<String>, input: &Input, report: &GrepReport) -> Vec<String> {
    let mode = input.output_mode;
    if rows.is_empty() && report.tally.rows > 0 {
        return vec![
            "No entries at this offset".to_owned(),
            format!("({} in all)", counted(report.tally.rows as u64, "row")),
        ];
    }
    if rows.is_empty() {
        let nothing = match mode {
            OutputMode::Content | OutputMode::Count => "No matches found",
            OutputMode::FilesWithMatches => "No files found",
        };
        return vec![nothing.to_owned()];
    }
    let (first, last) = (report.offset + 1, report.offset + rows.len());
    let mut lines = rows;
    if mode == OutputMode::FilesWithMatches {
        let found = counted(report.tally.files as u64, "file");
        lines.insert(0, format!("Found {found}"));
    }
    if mode == OutputMode::Count {
        let noun = if input.multiline {
            "match"
        } else {
            "matching line"
        };
        let total = counted(report.tally.matches.unwrap_or_default(), noun);
        let files = counted(report.tally.files as u64, "file");
        lines.push(format!("Total: {total} in {files}"));
    }
    if report.more {
        lines.push(format!(
            "(rows {first}-{last} shown; continue with offset={last})"
        ));
    }
    lines
}

/// Returns the schema of the structured output.
fn output_schema() -> Value {
    let number = || json!({"type": "integer"});
    json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
            "numFiles": number(),
            "filenames": {"type": "array", "items": {"type": "string"}},
            "content": {"type": "string", "description": "Rows, as the text has them"},
            "numLines": number(),
            "numMatches": number(),
            "totalFiles": number(),
            "totalLines": number(),
            "appliedLimit": number(),
            "appliedOffset": number(),
            "timedOut": {"type": "boolean"},
        },
        "required": ["mode", "numFiles", "filenames"],
    })
}

fn structured(input: &Input, report: &GrepReport, rows: &[String]) -> Value {
    let paths: Vec<&Path> = match &report.found {
        GrepMatches::Rows(rows) => {
            // Sorted by path already; a file may have many rows.
            let paths: BTreeSet<&Path> = rows.iter().map(|row| &*row.path).collect();
            paths.into_iter().collect()
        }
        GrepMatches::Files(files) => files.iter().map(PathBuf::as_path).collect(),
        GrepMatches::Counts(counts) => counts.iter().map(|count| count.path.as_path()).collect(),
    };
    let mut value = json!({
        "mode": input.output_mode.name(),
        "numFiles": paths.len(),
        "filenames": paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
    });
    if input.output_mode != OutputMode::FilesWithMatches {
        value["content"] = json!(rows.join("\n"));
    }
    if input.output_mode == OutputMode::Content {
        value["numLines"] = json!(rows.len());
    }
    // If the search stopped at a limit, its counts are incomplete and not reported.
    if let Some(totals) = report.totals() {
        if let Some(matches) = totals.matches {
            value["numMatches"] = json!(matches);
        }
        value["totalFiles"] = json!(totals.files);
        if input.output_mode == OutputMode::Content {
            value["totalLines"] = json!(totals.rows);
        }
    }
    if let (Some(limit), true) = (report.head_limit, report.more) {
        value["appliedLimit"] = json!(limit);
    }
    if report.offset > 0 {
        value["appliedOffset"] = json!(report.offset);
    }
    value
}
