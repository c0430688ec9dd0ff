//! `LS`: lists a directory, one level.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use globset::{Glob, GlobSet, GlobSetBuilder};
use haft_contract::{
    CalendarTime, CallContext, Card, CardSection, CheckOutcome, Effects, RuleMatch, Tool,
    ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use haft_search::{DirectoryList, EntryKind, ListedEntry, SearchError, list_directory};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{missing, profile};
use crate::{
    blocking::blocking,
    paths::{escaped, fill_path, path_constraint, shown},
    plural::counted,
};

/// The maximum number of listed entries; more are only counted.
const MAX_ENTRIES: usize = 500;

/// Lists one directory: its directories first, then everything else, by name.
///
/// - One entry a line: `name/` is a directory, `name@ -> target` a link; then the size in bytes and
///   when it was last modified (UTC).
/// - Hidden entries are shown; those that .gitignore or another ignore file names are marked
///   `(ignored)`: Glob and Grep leave them out.
/// - Not recursive, and at most 500 entries. To find files by name in a whole tree use Glob.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The directory; the working directory if left out.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Omit entries whose name matches one of these globs, such as `*.log`.
    #[serde(default)]
    ignore: Vec<String>,
}

impl Input {
    fn directory(&self, cx: &CallContext) -> PathBuf {
        match &self.path {
            Some(path) => cx.cwd.join(path),
            None => cx.cwd.to_path_buf(),
        }
    }

    fn left_out(&self) -> Result<GlobSet, String> {
        let mut set = GlobSetBuilder::new();
        for glob in &self.ignore {
            let invalid = |error: globset::Error| {
                format!("`ignore`: invalid glob `{glob}`: {}", error.kind())
            };
            // `name/` means a directory; at one level the name is sufficient.
            set.add(Glob::new(glob.trim_end_matches('/')).map_err(invalid)?);
        }
        set.build().map_err(|error| format!("`ignore`: {error}"))
    }
}

pub(crate) struct Ls;

impl Tool for Ls {
    type Input = Input;
    const NAME: &'static str = "LS";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: RuleMatch::Reads,
            searches: true,
            output_schema: Some(output_schema()),
            ..profile(
                ToolAccess::Reads,
                &["path"],
                "list directory folder entries files",
            )
        }
    }

    fn backfill(&self, input: &mut Value) {
        fill_path(input);
    }

    fn effects(&self, _: &Input) -> Effects {
        // Ignore files in any ancestor directory affect the marks.
        Effects::READS
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        input.left_out().map_err(ToolError::Refused)?;
        let (path, cwd) = (input.directory(cx), cx.cwd.clone());
        let judged = path_constraint(&path, cx)?;
        let opened = blocking(move || {
            let listed = list_directory(&path, judged.as_deref(), &cwd);
            listed
                .map(drop)
                .map_err(|error| problem(&path, &cwd, error))
        });
        match opened.await? {
            Err(problem) => Err(ToolError::Refused(problem)),
            Ok(()) => Ok(CheckOutcome::Pass),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let left_out = input.left_out().map_err(ToolError::Failed)?;
        let (path, cwd) = (input.directory(cx), cx.cwd.clone());
        let listing = {
            let judged = path_constraint(&path, cx)?;
            let (path, cwd) = (path.clone(), cwd.clone());
            blocking(move || {
                let list = list_directory(&path, judged.as_deref(), &cwd);
                let list = list.map_err(|error| problem(&path, &cwd, error))?;
                Ok(ListedDirectory::new(list, &left_out))
            })
        }
        .await?
        .map_err(ToolError::Failed)?;
        let text = listing.text(&shown(&path, &cwd));
        Ok(ToolOutput::text(text).with_structured(json!({
            "path": path.to_string_lossy(),
            "entries": listing.entries.iter().map(value).collect::<Vec<_>>(),
            "truncated": listing.entries.len() < listing.total,
            "total": listing.total,
        })))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let path = input.path.as_deref().unwrap_or(Path::new("."));
        Some(Card::new(Self::NAME, path.display().to_string()))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let total = output.structured.as_ref()?["total"].as_u64()?;
        let card = self
            .render_use(input)?
            .with_summary(counted(total, "entry"));
        // The first line repeats the card's subject and summary.
        let text = output.content.first()?.as_text()?;
        Some(match text.split_once('\n') {
            Some((_, rows)) => card.with(CardSection::Text(rows.to_owned())),
            None => card,
        })
    }
}

/// Returns the error text for a directory that cannot be listed.
fn problem(path: &Path, cwd: &Path, error: SearchError) -> String {
    match error {
        SearchError::PathMissing { .. } => missing(path, cwd),
        SearchError::NotADirectory { .. } | SearchError::NotSearchable { .. } => format!(
            "{} is not a directory: use Read for a file, or name the directory it is in.",
            path.display()
        ),
        SearchError::PathUnreadable { source, .. } => {
            format!("cannot list {}: {source}", path.display())
        }
        error => error.to_string(),
    }
}

struct ListedDirectory {
    /// Directories first, then by name; at most [`MAX_ENTRIES`].
    entries: Vec<ListedEntry>,
    total: usize,
    left_out: usize,
}

impl ListedDirectory {
    fn new(mut list: DirectoryList, left_out: &GlobSet) -> Self {
        let all = std::mem::take(&mut list.names);
        let before = all.len();
        let mut found: Vec<(bool, String, OsString, EntryKind)> = all
            .into_iter()
            .filter(|(name, _)| !left_out.is_match(name))
            .map(|(name, kind)| (kind != EntryKind::Directory, folded(&name), name, kind))
            .collect();
        let total = found.len();
        found.sort_unstable_by(|a, b| (a.0, &a.1, &a.2).cmp(&(b.0, &b.1, &b.2)));
        found.truncate(MAX_ENTRIES);
        Self {
            entries: found
                .into_iter()
                .map(|(_, _, name, kind)| list.entry(&name, kind))
                .collect(),
            total,
            left_out: before - total,
        }
    }

    fn text(&self, name: &str) -> String {
        // Writing to a string cannot fail.
        let mut text = match self.total {
            0 => format!("{name}: no entries"),
            total => format!("{name}: {}", counted(total as u64, "entry")),
        };
        for entry in &self.entries {
            let _ = write!(text, "\n{}", row(entry));
        }
        if self.entries.len() < self.total {
            let _ = write!(
                text,
                "\n({} of {} entries shown; use `ignore` to leave some out, or Glob to find names)",
                self.entries.len(),
                self.total
            );
        }
        if self.left_out > 0 {
            let _ = write!(
                text,
                "\n({} left out by `ignore`)",
                counted(self.left_out as u64, "entry")
            );
        }
        text
    }
}

/// Returns the sort key of a name: byte order after case folding.
fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Directory => "directory",
        EntryKind::File => "file",
        EntryKind::Link => "symlink",
        EntryKind::Fifo => "fifo",
        EntryKind::Socket => "socket",
        EntryKind::Device => "device",
    }
}

fn row(entry: &ListedEntry) -> String {
    let mut row = escaped(&entry.name);
    match entry.kind {
        EntryKind::Directory => row.push('/'),
        EntryKind::Link => row.push('@'),
        EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
            let _ = write!(row, "  ({})", kind_name(entry.kind));
        }
        EntryKind::File => {}
    }
    if let Some(target) = &entry.target {
        let _ = write!(row, " -> {}", escaped(target.as_os_str()));
    }
    if let Some(size) = entry.size {
        let _ = write!(row, "  {size}");
    }
    if let Some(modified) = entry.modified {
        let _ = write!(row, "  {}", to_minute(modified));
    }
    if entry.ignored {
        row.push_str("  (ignored)");
    }
    row
}

/// Returns the schema of the structured output.
fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "entries": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "type": {"type": "string"},
                    "modified": {"type": ["string", "null"], "description": "UTC"},
                    "ignored": {"type": "boolean"},
                    "size": {"type": "integer", "description": "In bytes"},
                    "target": {"type": "string", "description": "Where a link leads"},
                },
                "required": ["name", "type", "modified", "ignored"],
            }},
            "truncated": {"type": "boolean"},
            "total": {"type": "integer"},
        },
        "required": ["path", "entries", "truncated", "total"],
    })
}

fn value(entry: &ListedEntry) -> Value {
    let modified = entry.modified;
    let mut value = json!({
        "name": escaped(&entry.name),
        "type": kind_name(entry.kind),
        "modified": modified.map(|modified| CalendarTime::from_system_time(modified).to_second()),
        "ignored": entry.ignored,
    });
    if let Some(size) = entry.size {
        value["size"] = json!(size);
    }
    if let Some(target) = &entry.target {
        value["target"] = json!(escaped(target.as_os_str()));
    }
    value
}

/// Formats a time as `2026-01-31 12:00`, UTC.
fn to_minute(time: SystemTime) -> String {
    let time = CalendarTime::from_system_time(time);
    format!("{} {}", time.to_date(), time.to_clock())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (951_868_800, "2000-03-01 00:00"),
            (4_107_542_399, "2100-02-28 23:59"),
            (4_107_542_400, "2100-03-01 00:00"),
            (1_788_269_071, "2026-09-01 13:24"),
        ];
        for (seconds, expected) in cases {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(to_minute(time), expected);
        }
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(
            CalendarTime::from_system_time(before).to_second(),
            "1969-12-31T23:59:59Z"
        );
    }
}
