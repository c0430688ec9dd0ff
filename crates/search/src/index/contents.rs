//! The cached knowledge about a file's content: its place in the index, and its text if there is
//! room.
//!
//! Texts are owned copies, never memory maps: if a mapped file shrinks, the process is killed. The
//! copies are charged to a budget that all trees share.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use rustix::fs::fstat;

use super::file_fingerprint::FileFingerprint;
use super::tree::ContentKnowledge;

/// The maximum size in bytes of a file whose text is cached. Larger files are read at each search.
pub(crate) const MAX_CACHED_LENGTH: u64 = 4 << 20;
/// The maximum size in bytes of an indexed file. Larger files are always searched.
pub(crate) const MAX_INDEXED: u64 = 16 << 20;
/// The maximum number of different trigrams of an indexed file. A file with more would match nearly
/// every query.
pub(crate) const MAX_TRIGRAMS: usize = 60_000;
/// The length in bytes of the beginning of a file that is checked for a NUL byte first. The search of
/// a walked file ends at a NUL byte there, so nothing after it is cached.
const FIRST_PIECE: usize = 60_000;

/// Everything that is cached for a file.
#[derive(Debug, Default)]
pub(crate) struct FileData {
    pub(crate) coverage: Coverage,
    pub(crate) held: Option<CachedContent>,
    /// True if the file had not changed just before it was read, so that any later change shows in
    /// its timestamps.
    pub(crate) is_settled: bool,
}

/// The cost of a `stat` of a file and of reading a file, each expressed as bytes of text that could
/// be searched in the same time.
const STAT_COST: u64 = 2 << 10;
const A_READ: u64 = 32 << 10;

impl FileData {
    /// Returns the cost of searching the file in addition to its text, as bytes of text in memory.
    pub(crate) fn work(&self) -> u64 {
        match self.held {
            Some(_) => STAT_COST,
            None => A_READ,
        }
    }
}

impl ContentKnowledge for FileData {
    fn is_settled(&self) -> bool {
        self.is_settled
    }
}

/// The state of a file in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// The file was not read since it changed, so it is searched.
    #[default]
    Unread,
    /// The file is always searched: it is binary, in another encoding, very large, or unreadable.
    Always,
    /// The file is text number `text` of segment `segment`.
    Indexed { segment: u32, text: u32 },
}

/// The cached text of a file, or as much of it as a search can see.
#[derive(Clone, Debug)]
pub(crate) struct CachedContent {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) kind: CachedTextKind,
    pub(crate) is_ascii: bool,
    _share: Arc<BudgetShare>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachedTextKind {
    /// No NUL byte and no byte order mark: searched unchanged.
    Plain,
    /// The whole file, but it has NUL bytes or a byte order mark.
    Unusual,
    /// The beginning of the file up to and including the first NUL byte.
    Beginning,
}

/// The memory that cached texts use, and its limit.
#[derive(Debug)]
pub(crate) struct TextBudget {
    used: AtomicUsize,
    pub(crate) most: usize,
}

/// A part of the budget, returned when dropped.
#[derive(Debug)]
struct BudgetShare {
    budget: Arc<TextBudget>,
    bytes: usize,
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory in bytes that a text uses besides its content.
const OVERHEAD: usize = 64;

impl TextBudget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { used, most })
    }

    /// Creates a budget of one eighth of the machine's memory, at most 256 MB.
    pub(crate) fn by_default() -> Arc<Self> {
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes: Option<usize> =
            total.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        let eighth = kilobytes.map_or(64 << 20, |kilobytes| kilobytes * 1024 / 8);
        Self::new(eighth.min(256 << 20))
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Caches a text, if there is room.
    fn hold(self: &Arc<Self>, text: &ReadText) -> Option<CachedContent> {
        let bytes = text.bytes.len() + OVERHEAD;
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        let share = BudgetShare {
            budget: Arc::clone(self),
            bytes,
        };
        (used + bytes <= self.most).then(|| CachedContent {
            bytes: Arc::clone(&text.bytes),
            kind: text.kind,
            is_ascii: text.is_ascii,
            _share: Arc::new(share),
        })
    }
}

/// A text that was just read.
pub(crate) struct ReadText {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) kind: CachedTextKind,
    pub(crate) is_ascii: bool,
    pub(crate) mark: FileFingerprint,
    pub(crate) is_settled: bool,
}

impl ReadText {
    /// Reads an open file. Returns `None` if the file is longer than `longest` or changes while it
    /// is read. Then the file is rewound.
    pub(crate) fn read(file: &mut File, longest: u64) -> io::Result<Option<Self>> {
        use std::io::Seek;
        let begun = SystemTime::now();
        let mark = FileFingerprint::from_stat(&fstat(&*file)?);
        if mark.size > longest {
            return Ok(None);
        }
        let size = mark.size as usize;
        let mut bytes = Vec::with_capacity(size + 1);
        let mut first = file.take(FIRST_PIECE as u64);
        first.read_to_end(&mut bytes)?;
        let is_marked = has_mark(&bytes);
        let nul = memchr::memchr(0, &bytes);
        let kind = match nul {
            Some(at) if !is_marked => {
                bytes.truncate(at + 1);
                CachedTextKind::Beginning
            }
            _ => {
                file.take(longest + 1).read_to_end(&mut bytes)?;
                let is_plain = !is_marked && memchr::memchr(0, &bytes).is_none();
                match is_plain {
                    true => CachedTextKind::Plain,
                    false => CachedTextKind::Unusual,
                }
            }
        };
        let is_whole = kind == CachedTextKind::Beginning || bytes.len() == size;
        if !is_whole || FileFingerprint::from_stat(&fstat(&*file)?) != mark {
            file.rewind()?;
            return Ok(None);
        }
        Ok(Some(Self {
            is_ascii: bytes.is_ascii(),
            bytes: bytes.into(),
            kind,
            mark,
            is_settled: mark.is_settled(begun),
        }))
    }

    /// Creates a text from content that the caller already has. Returns `None` unless the text is
    /// searched unchanged.
    pub(crate) fn plain(bytes: &[u8], mark: FileFingerprint) -> Option<Self> {
        let is_plain = !has_mark(bytes) && memchr::memchr(0, bytes).is_none();
        is_plain.then(|| Self {
            bytes: bytes.into(),
            kind: CachedTextKind::Plain,
            is_ascii: bytes.is_ascii(),
            mark,
            is_settled: false,
        })
    }

    pub(crate) fn hold(&self, budget: &Arc<TextBudget>) -> Option<CachedContent> {
        match self.bytes.len() as u64 <= MAX_CACHED_LENGTH {
            true => budget.hold(self),
            false => None,
        }
    }
}

/// Returns whether the text starts with a byte order mark of UTF-8 or UTF-16.
fn has_mark(bytes: &[u8]) -> bool {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    marks.iter().any(|mark| bytes.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> ReadText {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let mut file = File::open(path).unwrap();
        ReadText::read(&mut file, MAX_CACHED_LENGTH)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn texts_are_held_as_far_as_a_search_looks() {
        let late = [vec![b'x'; 70_000], vec![0, b'y']].concat();
        let cases: [(&[u8], CachedTextKind, usize); 7] = [
            (b"", CachedTextKind::Plain, 0),
            (b"abc\n", CachedTextKind::Plain, 4),
            (b"abc\n\0def", CachedTextKind::Beginning, 5),
            (b"\xef\xbb\xbfabc", CachedTextKind::Unusual, 6),
            (b"\xff\xfea\0b\0", CachedTextKind::Unusual, 6),
            (b"\xef\xbb", CachedTextKind::Plain, 2),
            (&late, CachedTextKind::Unusual, 70_002),
        ];
        for (bytes, kind, length) in cases {
            let text = read(bytes);
            assert_eq!((text.kind, text.bytes.len()), (kind, length));
            assert_eq!(text.mark.size, bytes.len() as u64);
            assert!(!text.is_settled, "it was written just now");
        }
    }

    #[test]
    fn the_budget_is_kept_and_given_back() {
        let budget = TextBudget::new(1000);
        let text = read(&[b'a'; 400]);
        let (one, two) = (text.hold(&budget), text.hold(&budget));
        assert!(one.is_some() && two.is_some());
        assert!(text.hold(&budget).is_none());
        assert_eq!(budget.used(), (400 + OVERHEAD) * 2);
        drop((one, two));
        assert_eq!(budget.used(), 0);
        assert!(TextBudget::by_default().most <= 256 << 20);
    }
}
