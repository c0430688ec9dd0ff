//! Text that an editor holds for a file and has not saved.
//!
//! An editor's text differs from the disk for one of two reasons: the user typed and did not save,
//! or the editor has not yet reloaded a change on disk. The second case is recognized by the text:
//! the file had that text before. Unsaved text is read and checked instead of the content on disk.
//! The journal never writes it: before a change the editor saves it, so that undo restores what the
//! user typed.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use crate::error::JournalError;
use crate::journal::{Journal, preserve_form};
use crate::ledger::ReadSource;
use crate::open::FileSnapshot;
use crate::stamp::{ContentHash, Stamp};
use crate::target::FileTarget;
use crate::text::{self, UTF8_BOM, readable_text};
use crate::write_grant::WriteGrant;

/// The maximum size of editor texts, in bytes; longer ones are neither requested nor compared.
pub const BUFFER_LIMIT: u64 = 1 << 20;

/// The unsaved text that an editor holds for a file.
#[derive(Debug)]
pub struct UnsavedText {
    /// The file, with all links resolved.
    pub real: PathBuf,
    /// The text as the editor sent it.
    pub text: String,
    /// The text in the form of the file on disk: its encoding, byte order mark and line breaks.
    content: Vec<u8>,
    /// The content on disk is not the content that the session last saw there.
    pub(crate) has_drifted: bool,
    stamp: Stamp,
    disk: ContentHash,
}

impl UnsavedText {
    /// Returns the text as a snapshot, as if it were on disk.
    pub(crate) fn snapshot(&self) -> FileSnapshot {
        FileSnapshot {
            stamp: Stamp {
                size: self.content.len() as u64,
                // A time that no file has, so that this stamp never equals one from the disk.
                mtime_ns: i128::MIN,
                ..self.stamp.clone()
            },
            bytes: self.content.clone(),
        }
    }
}

/// Lets an editor write files, for users who review changes there.
pub trait WriteThrough: fmt::Debug + Send + Sync {
    /// Returns whether the editor writes this file.
    fn covers(&self, real: &Path) -> bool;

    /// Writes the whole text and returns when that is done. The error is the editor's message.
    fn write(&self, real: &Path, text: &str) -> Result<(), String>;
}

impl Journal {
    /// Compares `text`, which an editor holds for the file, with the disk. Returns it if the user
    /// has not saved it. `None` means: it equals the content on disk or an earlier content of the
    /// file, or editors do not show this file as text.
    pub fn unsaved(
        &self,
        target: &FileTarget,
        text: &str,
    ) -> Result<Option<UnsavedText>, JournalError> {
        let resolved = target.resolve()?;
        let real = resolved.real;
        let disk = match FileSnapshot::take(&real, BUFFER_LIMIT) {
            Ok(Some(disk)) => disk,
            Ok(None) | Err(_) => return Ok(None),
        };
        let is_text = matches!(text::detect(&disk.bytes), text::ContentKind::Text { .. });
        if !is_text || text.len() as u64 > BUFFER_LIMIT || text.contains('\0') {
            return Ok(None);
        }
        let hash = ContentHash::compute(&disk.bytes);
        let seen = self.ledger().seen(&real);
        let by_editor = seen
            .as_ref()
            .is_some_and(|seen| seen.read_record.source == ReadSource::Editor);
        if is_same(&disk.bytes, text.as_bytes()) {
            // The text that was shown is saved now, so the ledger records it as content on disk.
            if by_editor {
                self.record_saved_text(&real, disk);
            }
            return Ok(None);
        }
        let was_on_disk = seen
            .as_ref()
            .filter(|_| !by_editor)
            .and_then(|seen| seen.content.as_ref());
        let is_stale = was_on_disk.is_some_and(|earlier| is_same(earlier, text.as_bytes()));
        if is_stale || self.had_text(&real, text) {
            return Ok(None);
        }
        let known = match by_editor {
            true => self.bases().get(&real).copied(),
            false => seen.and_then(|seen| seen.read_record.hash),
        };
        let content = preserve_form(target.path(), &disk.bytes, text);
        Ok(Some(UnsavedText {
            content: content.map_or_else(|_| text.as_bytes().to_vec(), |kept| kept.content),
            has_drifted: known.is_some_and(|known| known != hash),
            text: text.to_owned(),
            stamp: disk.stamp,
            disk: hash,
            real,
        }))
    }

    /// Checks that this call may have the editor save the text of `target`. Changes nothing.
    pub fn check_save(&self, ticket: &WriteGrant, target: &FileTarget) -> Result<(), JournalError> {
        ticket.resolve(target).map(|_| ())
    }

    /// Checks that the disk changed after the editor reported that it saved the text. What the
    /// session saw of the text is then recorded as seen on disk.
    pub fn saved(&self, unsaved: &UnsavedText) -> Result<(), JournalError> {
        let path = || unsaved.real.clone();
        let Some(disk) = FileSnapshot::take(&unsaved.real, u64::MAX)? else {
            return Err(JournalError::NotSaved { path: path() });
        };
        if ContentHash::compute(&disk.bytes) == unsaved.disk {
            return Err(JournalError::NotSaved { path: path() });
        }
        let seen = self.ledger().seen(&unsaved.real);
        let is_seen = seen.is_some_and(|seen| {
            seen.read_record.source == ReadSource::Editor
                && seen.read_record.hash == Some(ContentHash::compute(&unsaved.content))
        });
        if is_seen && is_same(&disk.bytes, unsaved.text.as_bytes()) {
            self.record_saved_text(&unsaved.real, disk);
        }
        Ok(())
    }

    /// Records that an editor's text was shown. A later check detects whether the content on disk has
    /// changed since.
    pub(crate) fn record_base(&self, unsaved: &UnsavedText) {
        self.bases().insert(unsaved.real.clone(), unsaved.disk);
    }

    fn bases(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<PathBuf, ContentHash>> {
        self.bases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records text that was seen in an editor as seen on disk.
    fn record_saved_text(&self, real: &Path, disk: FileSnapshot) {
        let Some(seen) = self.ledger().seen(real) else {
            return;
        };
        let mut sight = seen.read_record;
        sight.source = ReadSource::Read;
        sight.hash = Some(ContentHash::compute(&disk.bytes));
        sight.settled = disk.stamp.is_settled();
        sight.stamp = disk.stamp;
        self.bases().remove(real);
        self.ledger().remove(real);
        self.ledger().record(real, sight, Some(disk.bytes));
    }

    /// Returns whether the file had this text before a change of this session.
    fn had_text(&self, real: &Path, text: &str) -> bool {
        let same = |earlier: &[u8]| is_same(earlier, text.as_bytes());
        self.history()
            .is_some_and(|history| history.had(real, same))
    }
}

/// Returns whether two texts are equal apart from a byte order mark, the kind of line breaks, and
/// one line break at the end.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one == other || plain(one) == plain(other)
}

fn plain(content: &[u8]) -> Cow<'_, str> {
    let body = content.strip_prefix(UTF8_BOM).unwrap_or(content);
    let text = match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(readable_text(content)),
    };
    let text = match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => text,
    };
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_suffix('\n').unwrap_or(text)),
        Cow::Owned(mut text) => {
            if text.ends_with('\n') {
                text.pop();
            }
            Cow::Owned(text)
        }
    }
}

impl FileTarget {
    /// Returns this target with the unsaved text of its editor.
    #[must_use]
    pub fn unsaved(mut self, unsaved: Arc<UnsavedText>) -> Self {
        self.unsaved = Some(unsaved);
        self
    }

    /// Returns the editor's unsaved text of this file, if any.
    pub fn unsaved_text(&self) -> Option<&Arc<UnsavedText>> {
        self.unsaved.as_ref()
    }

    /// Returns the content that a change would start from: the editor's unsaved text or the content
    /// on disk.
    pub(crate) fn snapshot(
        &self,
        real: &Path,
        limit: u64,
    ) -> Result<Option<FileSnapshot>, JournalError> {
        match &self.unsaved {
            Some(unsaved) if unsaved.real == real && unsaved.has_drifted => {
                Err(JournalError::ModifiedSince {
                    path: self.path().to_path_buf(),
                    diff: None,
                })
            }
            Some(unsaved) if unsaved.real == real => Ok(Some(unsaved.snapshot())),
            _ => FileSnapshot::take(real, limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_line_ends_and_one_last_line_end_make_no_difference() {
        let cases: [(&[u8], &[u8], bool); 9] = [
            (b"a\nb\n", b"a\nb\n", true),
            (b"a\r\nb\r\n", b"a\nb", true),
            (b"\xef\xbb\xbfa\n", b"a\n", true),
            (b"\xff\xfea\0\n\0", b"a", true),
            (b"a\n\n", b"a\n", false),
            (b"a\n\n", b"a", false),
            (b"", b"\n", true),
            (b"a\rb", b"a\nb", false),
            (b"caf\xe9\n", b"cafe\n", false),
        ];
        for (one, other, same) in cases {
            assert_eq!(is_same(one, other), same, "{}", one.escape_ascii());
        }
    }
}
