//! What calls changed, and how it is taken back.

use std::{collections::BTreeSet, path::PathBuf, time::SystemTime};

use haft_agent::Prompt;
use haft_contract::{Card, Services};
use uuid::Uuid;

use super::prompts;
use crate::{Delivery, SessionInput, access::NOT_BEGUN};

/// A file that something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Which.
    pub path: PathBuf,
    /// What was done to it.
    pub change: FileChangeKind,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It was not there before.
    Created,
    /// It holds something else.
    Changed,
    /// It is gone.
    Removed,
}

/// One change that a call made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoEntry {
    /// By which it is undone.
    pub id: String,
    /// When it was made.
    pub time: SystemTime,
    /// The tool that made it.
    pub tool: String,
    /// The command line, where it was one.
    pub about: String,
    /// The files.
    pub files: Vec<ChangedFile>,
    /// The person's message that was being answered: its id and what it says.
    pub message: Option<(Uuid, String)>,
    /// It is an undo itself.
    pub is_undo: bool,
    /// Can it be undone now? The error says why not.
    pub undoable: Result<(), String>,
}

/// What is to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoWhich {
    /// The newest changes, this many.
    Newest(usize),
    /// One, by its id.
    Entry(String),
    /// Everything since a message.
    Since(Uuid),
}

/// What an undo did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// The files, each with how it becomes what it was.
    pub cards: Vec<Card>,
    /// What is not as it was afterwards, and why.
    pub left: Vec<(PathBuf, String)>,
    /// Why it is refused; nothing is changed then.
    pub conflict: Option<String>,
    /// By which the undo is undone.
    pub redo: Option<String>,
}

/// A message that can be gone back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// Its id.
    pub uuid: Uuid,
    /// When it was said.
    pub time: Option<SystemTime>,
    /// What it says.
    pub text: String,
    /// The files that were changed since.
    pub files: Vec<ChangedFile>,
}

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindKind {
    /// The conversation and the files.
    Both,
    /// The conversation.
    Talk,
    /// The files.
    Files,
    /// What was said since becomes a summary.
    Summary,
}

impl RewindKind {
    /// The word for it, as commands take it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Talk => "talk",
            Self::Files => "files",
            Self::Summary => "summary",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Both, Self::Talk, Self::Files, Self::Summary];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

impl SessionInput {
    /// What calls of this session changed, the newest first. Reads files: not for a task that others wait for.
    pub fn undo_list(&self) -> Result<Vec<UndoEntry>, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let mut entries = list(services)?;
        let said = self.said();
        for entry in &mut entries {
            let before = said.iter().rev();
            let mut before = before.filter(|one| one.time.is_some_and(|time| time <= entry.time));
            entry.message = before.next().map(|one| (one.uuid, one.text.clone()));
        }
        Ok(entries)
    }

    /// The files that calls of this session changed, each once, by their paths. Reads files.
    pub fn changed_files(&self) -> Result<Vec<PathBuf>, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let files = list(services)?.into_iter().flat_map(|entry| entry.files);
        let paths: BTreeSet<PathBuf> = files.map(|file| file.path).collect();
        Ok(paths.into_iter().collect())
    }

    /// Takes changes back, or with `preview` says what that would do. Reads and writes files: not for a task
    /// that others wait for.
    pub fn undo(&self, which: &UndoWhich, preview: bool) -> Result<UndoReport, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let cwd = &self.0.config.cwd;
        match which {
            UndoWhich::Entry(id) => take_back(services, &Taken::Unit(id.clone()), preview, cwd),
            UndoWhich::Since(message) => {
                let since = self.time_of(*message)?;
                take_back(services, &Taken::Since(since), preview, cwd)
            }
            UndoWhich::Newest(count) => {
                let standing = list(services)?.into_iter();
                let mut standing =
                    standing.filter(|entry| !entry.is_undo && entry.undoable.is_ok());
                let mut all = UndoReport::default();
                for _ in 0..(*count).max(1) {
                    let Some(entry) = standing.next() else { break };
                    let one = take_back(services, &Taken::Unit(entry.id), preview, cwd)?;
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

    /// The messages that can be gone back to, the oldest first, and which files changed since each.
    pub fn rewind_points(&self) -> Result<Vec<RewindPoint>, String> {
        let services = self.0.access.services().ok_or(NOT_BEGUN)?;
        let changes = list(services).unwrap_or_default();
        let points = self.said().into_iter().map(|one| {
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

    /// Goes back to before a message, after the run that is under way: as the command `/rewind` does. Its id.
    pub fn rewind_to(&self, point: Uuid, kind: RewindKind) -> Uuid {
        let line = format!("/rewind {point} {}", kind.name());
        self.say(Prompt::from(line), Delivery::AfterRun)
    }

    /// What the person has said in the conversation as it stands.
    pub(crate) fn said(&self) -> Vec<super::TranscriptPrompt> {
        let leaf = self.0.access.last_message();
        let path = self.transcript_path();
        path.map(|path| prompts(&path, leaf)).unwrap_or_default()
    }

    /// When a message came.
    pub(crate) fn time_of(&self, message: Uuid) -> Result<SystemTime, String> {
        let said = self.said();
        let found = said.iter().find(|one| one.uuid == message);
        let found = found.ok_or_else(|| format!("the session has no message {message}"))?;
        found
            .time
            .ok_or_else(|| format!("the message {message} has no time"))
    }
}

/// What is taken back, once it is looked up.
#[cfg_attr(
    not(feature = "fs"),
    expect(dead_code, reason = "without file tools nothing is changed")
)]
pub(crate) enum Taken {
    Unit(String),
    Since(SystemTime),
}

/// How many changes are looked at.
#[cfg(feature = "fs")]
const MOST: usize = 1_000;

#[cfg(feature = "fs")]
fn list(services: &Services) -> Result<Vec<UndoEntry>, String> {
    use haft_tools::journal::UnitState;
    let units = haft_tools::changes(services, MOST)?;
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
pub(crate) fn take_back(
    services: &Services,
    which: &Taken,
    preview: bool,
    cwd: &std::path::Path,
) -> Result<UndoReport, String> {
    use haft_contract::{CardPiece, DiffHunk};
    use haft_tools::journal::Which;
    let which = match which {
        Taken::Unit(id) => Which::Unit(id.clone()),
        Taken::Since(since) => Which::Since(*since),
    };
    let undone = haft_tools::take_back(services, &which, preview, "undo")?;
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
            .with(CardPiece::Diff(hunks.collect()))
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
pub(crate) fn take_back(
    _: &Services,
    _: &Taken,
    _: bool,
    _: &std::path::Path,
) -> Result<UndoReport, String> {
    Err("this build changes no files".to_owned())
}
