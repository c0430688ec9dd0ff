//! The lines of the log.

use std::io;

use serde::{Deserialize, Serialize};

use crate::{FileId, OsBytes, WitnessedEntry};

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitHeader {
    /// The call that runs the command.
    pub call: String,
    /// The tool of the call.
    pub tool: String,
    /// The command in readable form.
    pub about: String,
    /// The start time in milliseconds since the epoch.
    pub time: u64,
    /// The directories whose changes are witnessed.
    pub roots: Vec<OsBytes>,
}

/// A line after the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The number of the line, counted from 1.
    pub number: u64,
    /// The time in nanoseconds since the epoch.
    #[serde(default)]
    pub time: u64,
    /// The change.
    #[serde(flatten)]
    pub change: WitnessedChange,
}

/// A change that the guard is about to carry out. Each path is the path at that time: a directory
/// above it may have been moved before, and may be moved later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum WitnessedChange {
    /// The first change of this name. Names in directories that the command created have no line.
    Name {
        /// The path.
        path: OsBytes,
        /// The entry of that name; `None` if the name was free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<WitnessedEntry>,
    },
    /// A file or directory that the command did not create is about to change, or to lose a name.
    /// The first line for a file has its old metadata. Its old content is in the first copy, or,
    /// without a copy, in each link.
    Object {
        /// One path of it. A file with several hard links has a line for each path that is used.
        path: OsBytes,
        /// The file did not have this path before the command: the command created the directory, or
        /// removed the name.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        other_path: bool,
        /// The state. Extended attributes are included in the first line for each file, except for a
        /// link.
        entry: WitnessedEntry,
        /// The stored content; `None` if only metadata changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<KeptFile>,
        /// The reason why the content could not be stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
    },
    /// A directory is about to be moved, together with everything below it.
    Moved {
        /// The path until now.
        from: OsBytes,
        /// The new path.
        to: OsBytes,
        /// The identity of the entry at `from`. Of exchanged entries, only one may be a directory.
        id: FileId,
        /// Both paths exist, and exchange their entries.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exchange: bool,
    },
    /// The change in the line of this number was not carried out.
    Failed {
        /// The number of that line.
        line: u64,
    },
    /// All processes of the command have exited.
    End,
}

/// A stored file: `objects/NAME` in the folder of the unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its name.
    pub name: String,
    /// The way in which it was stored.
    pub way: KeptWay,
}

/// The way in which an old content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptWay {
    /// A hard link to the file itself, made when the file lost a name. Each lost name has its own
    /// link.
    Link,
    /// A copy, made before the file was opened for writing.
    Copy,
}

/// A log that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessLog {
    /// The first line.
    pub header: UnitHeader,
    /// The changes in order, without those that failed.
    pub changes: Vec<WitnessedChange>,
    /// The time of each change in nanoseconds since the epoch.
    pub times: Vec<u64>,
    /// Whether the guard saw the end of all processes.
    pub is_complete: bool,
}

impl WitnessLog {
    /// Parses a log. A last line that a crash cut off is left out: its change was not carried out.
    /// Fails if another line is not valid.
    pub fn parse(text: &[u8]) -> io::Result<Self> {
        let invalid = |number: usize, error: serde_json::Error| {
            let text = format!("line {} of the witness log: {error}", number + 1);
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let whole = text.iter().rposition(|&byte| byte == b'\n');
        let whole = &text[..whole.map_or(0, |end| end + 1)];
        let mut lines = whole.split(|&byte| byte == b'\n').enumerate();
        let (_, first) = lines.next().unwrap_or_default();
        let header = serde_json::from_slice(first).map_err(|error| invalid(0, error))?;
        let mut all: Vec<LogLine> = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            all.push(serde_json::from_slice(line).map_err(|error| invalid(number, error))?);
        }
        let failed: std::collections::HashSet<u64> = all
            .iter()
            .filter_map(|line| match line.change {
                WitnessedChange::Failed { line } => Some(line),
                _ => None,
            })
            .collect();
        let is_complete = all.iter().any(|line| line.change == WitnessedChange::End);
        let is_change = |line: &LogLine| {
            let is_note = matches!(
                line.change,
                WitnessedChange::Failed { .. } | WitnessedChange::End
            );
            !is_note && !failed.contains(&line.number)
        };
        let changes = all.into_iter().filter(is_change);
        let (changes, times) = changes.map(|line| (line.change, line.time)).unzip();
        Ok(Self {
            header,
            changes,
            times,
            is_complete,
        })
    }
}

/// Returns a value as one line of a log.
pub fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
