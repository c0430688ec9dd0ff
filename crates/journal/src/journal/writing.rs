//! Write: replaces or creates a whole file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal, LOAD_LIMIT};
use crate::commit;
use crate::encoding::{self, DecodedView};
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lines::{BreakCounts, BreakStyle, split_lines};
use crate::lock::FileLock;
use crate::magic;
use crate::open::FileSnapshot;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::text::{self, Encoding};
use crate::undo::read_snapshot;
use crate::write_grant::WriteGrant;

/// Whether the file existed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It did not exist.
    Created,
    /// It existed.
    Overwritten,
}

/// The result of a write.
#[derive(Debug)]
pub struct WriteReport {
    /// The file that was written, with all links resolved.
    pub real: PathBuf,
    /// Created or overwritten.
    pub outcome: WriteOutcome,
    /// Bytes written.
    pub bytes: u64,
    /// Lines written.
    pub lines: u64,
    /// The content before; `None` for a created file.
    pub old: Option<Vec<u8>>,
    /// The diff from the old to the new content; empty for a created file.
    pub patch: Patch,
    /// Changes that an editor added when it wrote the file.
    pub formatted: Option<Patch>,
    /// The file uses CRLF throughout, so the given LF were written as CRLF.
    pub crlf_kept: bool,
    /// The file has a byte order mark, which was preserved.
    pub bom_kept: bool,
    /// The encoding of the file that was preserved, if it is not UTF-8.
    pub encoding_kept: Option<Encoding>,
    /// A warning: the content has a line such as `// ... rest unchanged`, and most of the file was
    /// removed.
    pub elision: Option<String>,
    /// The hash of the new content.
    pub hash: ContentHash,
    /// The id of its undo unit; `None` if nothing was changed or the session has no undo journal.
    pub unit: Option<String>,
}

impl Journal {
    /// Checks whether a write would fail for the current state of the file. Changes nothing.
    pub fn check_write(&self, target: impl Into<FileTarget>) -> Result<(), JournalError> {
        let target = target.into();
        let resolved = target.resolve()?;
        match target.snapshot(&resolved.real, LOAD_LIMIT)? {
            Some(before) => self.judge_write(target.path(), &resolved.real, &before),
            None => Ok(()),
        }
    }

    /// Computes the change that a write would make to an existing file; `None` if it would create
    /// one. Changes nothing.
    pub fn preview_write(
        &self,
        target: impl Into<FileTarget>,
        content: &str,
    ) -> Result<Option<Patch>, JournalError> {
        let target = target.into();
        let resolved = target.resolve()?;
        let Some(before) = target.snapshot(&resolved.real, LOAD_LIMIT)? else {
            return Ok(None);
        };
        let kept = preserve_form(target.path(), &before.bytes, content)?;
        Ok(Some(Patch::between(&before.bytes, &kept.content)))
    }

    /// Creates a file with these bytes. Returns `false`, and changes nothing, if the file exists.
    pub fn create(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        content: Vec<u8>,
    ) -> Result<bool, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        if read_snapshot(&real, LOAD_LIMIT)?.is_some() {
            return Ok(false);
        }
        let put = self.put(ticket, path, &real, None, content, &Patch::default())?;
        self.record_write(&real, put.stamp, put.after, false);
        Ok(true)
    }

    /// Creates the file, or replaces its content if it is unchanged since this session last saw it.
    pub fn write(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        content: &str,
    ) -> Result<WriteReport, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        let Some(before) = read_snapshot(&real, LOAD_LIMIT)? else {
            let content = content.as_bytes().to_vec();
            let patch = Patch {
                added: count_lines(&content),
                ..Patch::default()
            };
            let mut put = self.put(ticket, path, &real, None, content, &patch)?;
            let (_, formatted) = put.changes(Patch::default());
            return Ok(WriteReport {
                outcome: WriteOutcome::Created,
                bytes: put.after.len() as u64,
                lines: patch.added,
                old: None,
                patch: Patch::default(),
                formatted,
                crlf_kept: false,
                bom_kept: false,
                encoding_kept: None,
                elision: None,
                hash: self.record_write(&real, put.stamp, put.after, false),
                unit: put.unit,
                real,
            });
        };
        self.judge_write(path, &real, &before)?;
        let PreservedForm {
            content: new,
            crlf,
            bom,
            encoding,
        } = preserve_form(path, &before.bytes, content)?;
        let bytes = new.len() as u64;
        let elision = elision(&before.bytes, content);
        let patch = Patch::between(&before.bytes, &new);
        let mut formatted = None;
        let mut patch = patch;
        let (old, new, stamp, unit) = if new == before.bytes {
            (before.bytes, new, before.stamp, None)
        } else {
            let mut put = self.put(ticket, path, &real, Some(before), new, &patch)?;
            (patch, formatted) = put.changes(patch);
            let old = put.before.map(|before| before.bytes).unwrap_or_default();
            (old, put.after, put.stamp, put.unit)
        };
        Ok(WriteReport {
            outcome: WriteOutcome::Overwritten,
            bytes,
            lines: count_lines(content.as_bytes()),
            patch,
            formatted,
            crlf_kept: crlf,
            bom_kept: bom,
            encoding_kept: is_foreign(encoding).then_some(encoding),
            elision,
            old: Some(old),
            hash: self.record_write(&real, stamp, new, false),
            unit,
            real,
        })
    }

    fn judge_write(
        &self,
        path: &Path,
        real: &Path,
        before: &FileSnapshot,
    ) -> Result<(), JournalError> {
        commit::check_writable(real, &before.stamp)?;
        let given = || path.to_path_buf();
        match freshness::evaluate(self.ledger.seen(real), before) {
            Freshness::Unseen if before.bytes.is_empty() => {}
            // The content cannot be shown as text, so "read it first" would not help.
            Freshness::Unseen if text::is_binary(&before.bytes) => {
                let kind = magic::guess_type(&before.bytes);
                return Err(JournalError::Binary {
                    path: given(),
                    kind,
                    size: before.stamp.size,
                });
            }
            Freshness::Unseen => return Err(JournalError::NotRead { path: given() }),
            Freshness::Fresh { partial: true } => {
                return Err(JournalError::PartlyRead { path: given() });
            }
            Freshness::Fresh { partial: false } => {}
            Freshness::Changed { seen } => {
                let diff = seen.map(|seen| Patch::between(&seen, &before.bytes).render(DIFF_CHARS));
                return Err(JournalError::ModifiedSince {
                    path: given(),
                    diff,
                });
            }
        }
        Ok(())
    }
}

pub(crate) struct PreservedForm {
    pub(crate) content: Vec<u8>,
    crlf: bool,
    bom: bool,
    encoding: Encoding,
}

/// Converts the new content to the form of the old one: encoding, byte order mark, CRLF.
pub(crate) fn preserve_form(
    path: &Path,
    before: &[u8],
    content: &str,
) -> Result<PreservedForm, JournalError> {
    let (encoding, mark_length) = match text::detect(before) {
        text::ContentKind::Text {
            encoding,
            mark_length,
        } => (encoding, mark_length),
        text::ContentKind::Binary => (Encoding::Utf8, 0), // no encoding to preserve
    };
    let view = DecodedView::with(before, encoding, mark_length);
    let body = &view.text[view.mark_length..];
    let bom = mark_length > 0;
    let text = if bom {
        content.strip_prefix('\u{feff}').unwrap_or(content)
    } else {
        content
    };
    let crlf = BreakCounts::from_bytes(body).style() == BreakStyle::CrLf
        && !text.contains('\r')
        && text.contains('\n');
    let text = if crlf {
        Cow::Owned(text.replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    };
    let encoded = encoding::encode(&text, encoding).map_err(|character| {
        let path = path.to_path_buf();
        match encoding {
            Encoding::Legacy { .. } => JournalError::EncodingWouldChange { path, encoding },
            _ => JournalError::NotInCodePage {
                path,
                encoding,
                character,
            },
        }
    })?;
    Ok(PreservedForm {
        content: [&before[..mark_length], &encoded].concat(),
        crlf,
        bom,
        encoding,
    })
}

/// Returns whether the encoding is known and not UTF-8. ASCII written into an unknown code page
/// needs no remark.
fn is_foreign(encoding: Encoding) -> bool {
    !matches!(
        encoding,
        Encoding::Utf8 | Encoding::BrokenUtf8 | Encoding::Legacy { .. }
    )
}

fn count_lines(content: &[u8]) -> u64 {
    split_lines(content, BreakCounts::from_bytes(content).style()).count() as u64
}

/// Finds a line that indicates omitted text (such as `... rest unchanged`), if the new content is
/// below 30 % of the old size.
fn elision(before: &[u8], content: &str) -> Option<String> {
    if content.len() * 10 >= before.len() * 3 {
        return None;
    }
    const SIGNS: [&str; 6] = [
        "rest",
        "existing",
        "unchanged",
        "remaining",
        "same as before",
        "previous",
    ];
    let stands_for_more = |line: &&str| {
        let line = line.to_lowercase();
        (line.contains("...") || line.contains('…')) && SIGNS.iter().any(|sign| line.contains(sign))
    };
    content
        .lines()
        .find(stands_for_more)
        .map(|line| line.trim().to_owned())
}
