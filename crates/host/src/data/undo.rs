//! The changes of calls, and undoing them.

use std::{collections::BTreeSet, path::PathBuf, time::SystemTime};

use haft_agent::Prompt;
use haft_contract::{Card, Services};
use uuid::Uuid;

use super::prompts;
use crate::{PromptDelivery, SessionInput, session_access::NOT_BEGUN};

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: PathBuf,
    /// The kind of change.
    pub change: FileChangeKind,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
}

/// The kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It was created.
    Created,
    /// Its contents were changed.
    Changed,
    /// It was removed.
    Removed,
}

/// A change by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoEntry {
    /// The id to undo it by.
    pub id: String,
    /// The time of the change.
    pub time: SystemTime,
    /// The tool that made it.
    pub tool: String,
    /// The command line, if it was a command.
    pub about: String,
    /// The files.
    pub files: Vec<ChangedFile>,
    /// The id and text of the user's message that was being answered.
    pub message: Option<(Uuid, String)>,
    /// Whether it is an undo itself.
    pub is_undo: bool,
    /// Whether it can be undone now. The error is the reason if not.
    pub undoable: Result<(), String>,
}

/// The changes to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoWhich {
    /// The newest changes, up to this number.
    Newest(usize),
    /// One change, by its id.
    Entry(String),
    /// All changes since a message.
    Since(Uuid),
}

/// The result of an undo, or of its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// The files, each with the changes that restore it.
    pub cards: Vec<Card>,
    /// The files that were left unchanged, with the reasons.
    pub left: Vec<(PathBuf, String)>,
    /// The conflict, if any. In that case no file was changed.
    pub conflict: Option<String>,
    /// The id to undo the undo by.
    pub redo: Option<String>,
}

/// A message that can be rewound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// Its id.
    pub uuid: Uuid,
    /// The time at which it was sent.
    pub time: Option<SystemTime>,
    /// Its text.
    pub text: String,
    /// The files that were changed since.
    pub files: Vec<ChangedFile>,
}

/// The parts that are rewound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindKind {
    /// The conversation and the files.
    Both,
    /// The conversation.
    Conversation,
    /// The files.
    Files,
    /// The conversation since then is replaced with a summary.
    Summary,
}

impl RewindKind {
    /// Returns its name, as used by commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Conversation => "talk",
            Self::Files => "files",
            Self::Summary => "summary",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Both, Self::Conversation, Self::Files, Self::Summary];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

impl SessionInput {
    /// Returns the changes by calls of this session, the newest first. Blocks on disk I/O: do not
    /// call it on an async task that others wait for.
    pub fn undo_list(&self) -> Result<Vec<UndoEntry>, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let mut entries = list(services)?;
        let said = self.user_prompts();
        for entry in &mut entries {
            let before = said.iter().rev();
            let mut before = before.filter(|one| one.time.is_some_and(|time| time <= entry.time));
            entry.message = before.next().map(|one| (one.uuid, one.text.clone()));
        }
        Ok(entries)
    }

    /// Returns the files changed by calls of this session, without duplicates. Reads files.
    pub fn changed_files(&self) -> Result<Vec<PathBuf>, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let files = list(services)?.into_iter().flat_map(|entry| entry.files);
        let paths: BTreeSet<PathBuf> = files.map(|file| file.path).collect();
        Ok(paths.into_iter().collect())
    }

    /// Undoes changes, or with `preview` reports what would be undone. Blocks on disk I/O: do not
    /// call it on an async task that others wait for.
    pub fn undo(&self, which: &UndoWhich, preview: bool) -> Result<UndoReport, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let cwd = &self.0.config.cwd;
        match which {
            UndoWhich::Entry(id) => run_undo(services, &UndoTarget::Unit(id.clone()), preview, cwd),
            UndoWhich::Since(message) => {
                let since = self.time_of(*message)?;
                run_undo(services, &UndoTarget::Since(since), preview, cwd)
            }
            UndoWhich::Newest(count) => {
                let standing = list(services)?.into_iter();
                let mut standing =
                    standing.filter(|entry| !entry.is_undo && entry.undoable.is_ok());
                let mut all = UndoReport::default();
                for _ in 0..(*count).max(1) {
                    let Some(entry) = standing.next() else { break };
                    let one = run_undo(services, &UndoTarget::Unit(entry.id), preview, cwd)?;
                    all.cards.extend(one.cards);
                    all.left.extend(one.left);
                    all.redo = one.redo.or(all.redo);
                    all.conflict = one.conflict;
                    if all.conflict.is_some() {
                        break;
                    }
                }
                match all.cards.is_empty() && all.left.is_empty() && all.conflict.is_none() {
                    true => {
                        Err("nothing that was changed in this session can be undone".to_owned())
                    }
                    false => Ok(all),
                }
            }
        }
    }

    /// Returns the messages that can be rewound to, the oldest first, with the files that were
    /// changed since each.
    pub fn rewind_points(&self) -> Result<Vec<RewindPoint>, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let changes = list(services).unwrap_or_default();
        let points = self.user_prompts().into_iter().map(|one| {
            let since = changes.iter().rev();
            let since = since.filter(|entry| {
                let stands = !entry.is_undo && entry.undoable.is_ok();
                stands && one.time.is_some_and(|time| entry.time >= time)
            });
            let mut files: Vec<ChangedFile> = Vec::new();
            for file in since.flat_map(|entry| &entry.files) {
                match files.iter_mut().find(|known| known.path == file.path) {
                    Some(known) => {
                        known.added += file.added;
                        known.removed += file.removed;
                        known.change = file.change;
                    }
                    None => files.push(file.clone()),
                }
            }
            RewindPoint {
                uuid: one.uuid,
                time: one.time,
                text: one.text,
                files,
            }
        });
        Ok(points.collect())
    }

    /// Queues a rewind to the state before a message, like the command `/rewind`. It happens after
    /// the current run. Returns the id of the queued command.
    pub fn rewind_to(&self, point: Uuid, kind: RewindKind) -> Uuid {
        let line = format!("/rewind {point} {}", kind.name());
        self.submit(Prompt::from(line), PromptDelivery::AfterRun)
    }

    /// Returns the user's prompts in the current conversation.
    pub(crate) fn user_prompts(&self) -> Vec<super::TranscriptPrompt> {
        let leaf = self.0.access.last_message();
        let path = self.transcript_path();
        path.map(|path| prompts(&path, leaf)).unwrap_or_default()
    }

    /// Returns the time at which a message was sent.
    pub(crate) fn time_of(&self, message: Uuid) -> Result<SystemTime, String> {
        let said = self.user_prompts();
        let found = said.iter().find(|one| one.uuid == message);
        let found = found.ok_or_else(|| format!("the session has no message {message}"))?;
        found
            .time
            .ok_or_else(|| format!("the message {message} has no time"))
    }
}

/// The changes to undo, resolved.
#[cfg_attr(
    not(feature = "fs"),
    expect(dead_code, reason = "without file tools no files are changed")
)]
pub(crate) enum UndoTarget {
    Unit(String),
    Since(SystemTime),
}

/// The maximum number of changes that are read.
#[cfg(feature = "fs")]
const MAX_COUNT: usize = 1_000;

#[cfg(feature = "fs")]
fn list(services: &Services) -> Result<Vec<UndoEntry>, String> {
    use haft_tools::journal::UnitState;
    let units = haft_tools::changes(services, MAX_COUNT)?;
    let entries = units.into_iter().map(|unit| UndoEntry {
        files: unit
            .files
            .iter()
            .map(|file| ChangedFile {
                path: file.given.clone(),
                change: change_of(file.change),
                added: file.added,
                removed: file.removed,
            })
            .collect(),
        is_undo: !unit.undoes.is_empty(),
        undoable: match (&unit.state, unit.undoable) {
            (UnitState::Undone { .. }, _) => Err("undone already".to_owned()),
            (UnitState::Made, undoable) => undoable,
            (_, Err(why)) => Err(why),
            (_, Ok(())) => Err("it was not made".to_owned()),
        },
        id: unit.id,
        time: unit.time,
        tool: unit.tool,
        about: unit.about,
        message: None,
    });
    Ok(entries.collect())
}

#[cfg(feature = "fs")]
fn change_of(change: haft_tools::journal::ChangeKind) -> FileChangeKind {
    use haft_tools::journal::ChangeKind;
    match change {
        ChangeKind::Created => FileChangeKind::Created,
        ChangeKind::Changed => FileChangeKind::Changed,
        ChangeKind::Removed => FileChangeKind::Removed,
    }
}

#[cfg(feature = "fs")]
pub(crate) fn run_undo(
    services: &Services,
    which: &UndoTarget,
    preview: bool,
    cwd: &std::path::Path,
) -> Result<UndoReport, String> {
    use haft_contract::{CardSection, DiffHunk};
    use haft_tools::journal::UndoSelection;
    let which = match which {
        UndoTarget::Unit(id) => UndoSelection::Unit(id.clone()),
        UndoTarget::Since(since) => UndoSelection::Since(*since),
    };
    let undone = haft_tools::undo_changes(services, &which, preview, "undo")?;
    let cards = undone.files.iter().map(|file| {
        let did = match (change_of(file.change), undone.unit.is_some()) {
            (FileChangeKind::Created, true) => "made again",
            (FileChangeKind::Changed, true) => "restored",
            (FileChangeKind::Removed, true) => "removed",
            (FileChangeKind::Created, false) => "would be made again",
            (FileChangeKind::Changed, false) => "would be restored",
            (FileChangeKind::Removed, false) => "would be removed",
        };
        let hunks = file.patch.hunks.iter().map(|hunk| DiffHunk {
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
            lines: hunk.lines.clone(),
        });
        let name = file.given.strip_prefix(cwd).unwrap_or(&file.given);
        let (added, removed) = (file.patch.added, file.patch.removed);
        Card::new("Undo", name.display().to_string())
            .with_summary(format!("{did} (+{added} -{removed})"))
            .with(CardSection::Diff(hunks.collect()))
    });
    Ok(UndoReport {
        cards: cards.collect(),
        left: undone.left,
        conflict: undone.conflict,
        redo: undone.unit,
    })
}

#[cfg(not(feature = "fs"))]
fn list(_: &Services) -> Result<Vec<UndoEntry>, String> {
    Ok(Vec::new())
}

#[cfg(not(feature = "fs"))]
pub(crate) fn run_undo(
    _: &Services,
    _: &UndoTarget,
    _: bool,
    _: &std::path::Path,
) -> Result<UndoReport, String> {
    Err("this build changes no files".to_owned())
}
