//! Write: the whole content of a file, new or replaced.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{DIFF_CHARS, Journal, LOAD_LIMIT};
use crate::commit;
use crate::error::JournalError;
use crate::freshness::{self, Freshness};
use crate::lines::{BreakCounts, BreakStyle, split_lines};
use crate::lock::FileLock;
use crate::magic;
use crate::open::{Snapshot, resolve};
use crate::patch::Patch;
use crate::stamp::ContentHash;
use crate::text::{self, Encoding, UTF8_BOM};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Overwritten,
}

/// What a write did.
#[derive(Debug)]
pub struct Written {
    /// The file that was written, after all links.
    pub real: PathBuf,
    pub outcome: Outcome,
    pub bytes: u64,
    pub lines: u64,
    /// The content before; `None` for a created file.
    pub old: Option<Vec<u8>>,
    /// From the old to the new content; empty for a created file.
    pub patch: Patch,
    /// The file is CRLF throughout, so the given LF were written as CRLF.
    pub crlf_kept: bool,
    /// The file has a UTF-8 byte order mark and keeps it.
    pub bom_kept: bool,
    /// A line such as `// ... rest unchanged`, if most of the file is gone: a warning.
    pub elision: Option<String>,
    pub hash: ContentHash,
}

impl Journal {
    /// Would a write be refused for the state of the file? Changes nothing.
    pub fn check_write(&self, path: &Path) -> Result<(), JournalError> {
        let resolved = resolve(path)?;
        match Snapshot::take(&resolved.real, LOAD_LIMIT)? {
            Some(before) => self.judge_write(path, &resolved.real, &before),
            None => Ok(()),
        }
    }

    /// Creates the file, or replaces all of it if it is what this session last saw.
    pub fn write(&self, path: &Path, content: &str) -> Result<Written, JournalError> {
        let real = resolve(path)?.real;
        let _lock = FileLock::hold(&real)?;
        let Some(before) = Snapshot::take(&real, LOAD_LIMIT)? else {
            let content = content.as_bytes().to_vec();
            let stamp = commit::create(&real, &content)?;
            return Ok(Written {
                outcome: Outcome::Created,
                bytes: content.len() as u64,
                lines: count_lines(&content),
                old: None,
                patch: Patch::default(),
                crlf_kept: false,
                bom_kept: false,
                elision: None,
                hash: self.record_write(&real, stamp, content, false),
                real,
            });
        };
        self.judge_write(path, &real, &before)?;
        let Kept {
            content: new,
            crlf,
            bom,
        } = keep_form(path, &before.bytes, content)?;
        let stamp = if new == before.bytes {
            before.stamp
        } else {
            commit::replace(&real, &before, &new)?
        };
        Ok(Written {
            outcome: Outcome::Overwritten,
            bytes: new.len() as u64,
            lines: count_lines(&new),
            patch: Patch::between(&before.bytes, &new),
            crlf_kept: crlf,
            bom_kept: bom,
            elision: elision(&before.bytes, content),
            old: Some(before.bytes),
            hash: self.record_write(&real, stamp, new, false),
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
        match text::byte_order_mark(&before.bytes) {
            Some((encoding, _)) if encoding != Encoding::Utf8 => {
                Err(JournalError::EncodingWouldChange {
                    path: given(),
                    encoding,
                })
            }
            _ => Ok(()),
        }
    }
}

struct Kept {
    content: Vec<u8>,
    crlf: bool,
    bom: bool,
}

/// The new content in the form of the old: its byte order mark, its CRLF.
fn keep_form(path: &Path, before: &[u8], content: &str) -> Result<Kept, JournalError> {
    let (encoding, mark_length) = match text::detect(before) {
        text::Kind::Text {
            encoding,
            mark_length,
        } => (encoding, mark_length),
        text::Kind::Binary => (Encoding::Utf8, 0), // our own earlier write
    };
    if encoding == Encoding::Legacy && mark_length == 0 && !content.is_ascii() {
        return Err(JournalError::EncodingWouldChange {
            path: path.to_path_buf(),
            encoding,
        });
    }
    let body = &before[mark_length..];
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
    let mark = if bom { UTF8_BOM } else { &[] };
    Ok(Kept {
        content: [mark, text.as_bytes()].concat(),
        crlf,
        bom,
    })
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
