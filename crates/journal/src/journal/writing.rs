//! Write: the whole content of a file, new or replaced.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal, LOAD_LIMIT};
use crate::commit;
use crate::encoding::{self, View};
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lines::{BreakCounts, BreakStyle, split_lines};
use crate::lock::FileLock;
use crate::magic;
use crate::open::Snapshot;
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::target::FileTarget;
use crate::text::{self, Encoding};
use crate::undo::look;
use crate::write_grant::WriteGrant;

/// Whether the file was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It was not.
    Created,
    /// It was.
    Overwritten,
}

/// What a write did.
#[derive(Debug)]
pub struct WriteReport {
    /// The file that was written, after all links.
    pub real: PathBuf,
    /// Created or overwritten.
    pub outcome: WriteOutcome,
    /// Bytes written.
    pub bytes: u64,
    /// Lines written.
    pub lines: u64,
    /// The content before; `None` for a created file.
    pub old: Option<Vec<u8>>,
    /// From the old to the new content; empty for a created file.
    pub patch: Patch,
    /// What an editor changed on top when it wrote the file.
    pub formatted: Option<Patch>,
    /// The file is CRLF throughout, so the given LF were written as CRLF.
    pub crlf_kept: bool,
    /// The file has a byte order mark and keeps it.
    pub bom_kept: bool,
    /// The file is not UTF-8 and keeps its encoding.
    pub encoding_kept: Option<Encoding>,
    /// A line such as `// ... rest unchanged`, if most of the file is gone: a warning.
    pub elision: Option<String>,
    /// Of the new content.
    pub hash: ContentHash,
    /// The unit it is undone by; `None` if nothing was changed or the session keeps no undo journal.
    pub unit: Option<String>,
}

impl Journal {
    /// Would a write be refused for the state of the file? Changes nothing.
    pub fn check_write(&self, target: impl Into<FileTarget>) -> Result<(), JournalError> {
        let target = target.into();
        let resolved = target.resolve()?;
        match target.snapshot(&resolved.real, LOAD_LIMIT)? {
            Some(before) => self.judge_write(target.path(), &resolved.real, &before),
            None => Ok(()),
        }
    }

    /// What a write would change in a file that is there; `None`: it would create one. Changes nothing.
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
        let kept = keep_form(target.path(), &before.bytes, content)?;
        Ok(Some(Patch::between(&before.bytes, &kept.content)))
    }

    /// Creates a file with these bytes. `false`: there is one already, and it stays as it is.
    pub fn create(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        content: Vec<u8>,
    ) -> Result<bool, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        if look(&real, LOAD_LIMIT)?.is_some() {
            return Ok(false);
        }
        let put = self.put(ticket, path, &real, None, content, &Patch::default())?;
        self.record_write(&real, put.stamp, put.after, false);
        Ok(true)
    }

    /// Creates the file, or replaces all of it if it is what this session last saw.
    pub fn write(
        &self,
        ticket: &WriteGrant,
        target: impl Into<FileTarget>,
        content: &str,
    ) -> Result<WriteReport, JournalError> {
        let target = target.into();
        let (path, real) = (target.path(), ticket.resolve(&target)?);
        let _lock = FileLock::hold(&real)?;
        let Some(before) = look(&real, LOAD_LIMIT)? else {
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
        let KeptPreimage {
            content: new,
            crlf,
            bom,
            encoding,
        } = keep_form(path, &before.bytes, content)?;
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

    fn judge_write(&self, path: &Path, real: &Path, before: &Snapshot) -> Result<(), JournalError> {
        commit::check_writable(real, &before.stamp)?;
        let given = || path.to_path_buf();
        match freshness::judge(self.ledger.seen(real), before) {
            Freshness::Unseen if before.bytes.is_empty() => {}
            // It cannot be shown as text, so "read it first" would lead nowhere.
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

pub(crate) struct KeptPreimage {
    pub(crate) content: Vec<u8>,
    crlf: bool,
    bom: bool,
    encoding: Encoding,
}

/// The new content in the form of the old: its encoding, its byte order mark, its CRLF.
pub(crate) fn keep_form(
    path: &Path,
    before: &[u8],
    content: &str,
) -> Result<KeptPreimage, JournalError> {
    let (encoding, mark_length) = match text::detect(before) {
        text::ContentKind::Text {
            encoding,
            mark_length,
        } => (encoding, mark_length),
        text::ContentKind::Binary => (Encoding::Utf8, 0), // our own earlier write
    };
    let view = View::with(before, encoding, mark_length);
    let body = &view.text[view.mark_length..];
    let bom = mark_length > 0;
    let text = if bom {
        content.strip_prefix('\u{feff}').unwrap_or(content)
    } else {
        content
    };
    let crlf = BreakCounts::of(body).style() == BreakStyle::CrLf
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
    Ok(KeptPreimage {
        content: [&before[..mark_length], &encoded].concat(),
        crlf,
        bom,
        encoding,
    })
}

/// Not UTF-8, and known: what is written as ASCII into an unknown page needs no remark.
fn is_foreign(encoding: Encoding) -> bool {
    !matches!(
        encoding,
        Encoding::Utf8 | Encoding::BrokenUtf8 | Encoding::Legacy { .. }
    )
}

fn count_lines(content: &[u8]) -> u64 {
    split_lines(content, BreakCounts::of(content).style()).count() as u64
}

/// A line that stands for text left out, if more than 70 % of the file is gone.
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
