//! A tree that is kept between calls, with what the index and the memory hold of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bits::Bits;
use super::contents::{Budget, Coverage, FileData, Held, ReadText, TextKind};
use super::file_watches::FileWatches;
use super::handed_over::HandedOver;
use super::load::Refused;
use super::plan::TrigramQuery;
use super::segment::{Damaged, Segment};
use super::tree::{DirectoryNumber, EntryNumber, LiveTree, Refreshed, TreeEntry, Watching};
use crate::FileIdentity;
use crate::handle::EntryKind;
use crate::skip::Skip;
use crate::walk::{NameRules, Verdict};

/// So many choices of files are kept.
const MOST_VIEWS: usize = 12;

const NO_FILE: EntryNumber = EntryNumber::MAX;

/// A tree with its index.
pub(crate) struct KeptTree {
    pub(crate) tree: LiveTree<FileData>,
    pub(crate) segments: Vec<Slot>,
    views: Vec<View>,
    pub(crate) budget: Arc<Budget>,
    /// Goes up when entries get other numbers.
    pub(crate) epoch: u64,
    /// What the index knows is on the disk.
    pub(crate) is_saved: bool,
    handed_over: HandedOver,
}

/// A segment, and which file each of its texts is now.
pub(crate) struct Slot {
    pub(crate) segment: Arc<Segment>,
    pub(crate) files: Vec<EntryNumber>,
}

/// Which files a query is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewKey {
    pub(crate) directory: DirectoryNumber,
    pub(crate) globs: Vec<String>,
    pub(crate) file_type: Option<String>,
    pub(crate) current_dir: PathBuf,
}

struct View {
    key: ViewKey,
    structure: u64,
    /// What was decided of an entry: nothing yet, hidden, visible.
    decided: Vec<u8>,
    seen: Seen,
}

/// What a walk with a query's rules would meet.
#[derive(Clone)]
pub(crate) struct Seen {
    /// In path order.
    pub(crate) files: Arc<[EntryNumber]>,
    pub(crate) skips: Arc<[Skip]>,
}

/// The files to search, by number.
pub(crate) struct Candidates {
    pub(crate) files: Vec<EntryNumber>,
    pub(crate) skips: Arc<[Skip]>,
    pub(crate) epoch: u64,
    /// How many of all files the index does not know.
    pub(crate) unread: Unread,
    /// How much work it is to search them, as bytes of text in memory.
    pub(crate) work: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// How many files had to be looked at because they are not watched, though they may be.
    pub(crate) unwatched: usize,
}

/// A file to search that must be read.
pub(crate) struct Candidate {
    pub(crate) entry: EntryNumber,
    pub(crate) version: u32,
    /// Absolute.
    pub(crate) path: PathBuf,
    /// Where in it the path below the root begins.
    below: usize,
}

impl Candidate {
    /// The path below the root of the tree.
    pub(crate) fn below(&self) -> &Path {
        let bytes = self.path.as_os_str().as_bytes();
        Path::new(OsStr::from_bytes(&bytes[self.below..]))
    }
}

/// The tree does not know what is asked: search without it.
#[derive(Debug)]
pub(crate) struct NotKnown;

impl KeptTree {
    pub(crate) fn read(
        root: &Path,
        current_dir: &Path,
        threads: usize,
        budget: &Arc<Budget>,
        file_watches: FileWatches,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, Refused> {
        let watching = Watching::Wanted;
        Ok(Self {
            tree: LiveTree::read(root, current_dir, threads, watching, file_watches, stop)?,
            segments: Vec::new(),
            views: Vec::new(),
            budget: Arc::clone(budget),
            epoch: 0,
            is_saved: false,
            handed_over: HandedOver::default(),
        })
    }

    /// A content that was put in place just now; see `handed_over`.
    pub(crate) fn hand_over(&mut self, below: &Path, content: &[u8], identity: &FileIdentity) {
        self.handed_over.add(below, content, identity);
    }

    /// Brings the tree up to date; see [`LiveTree::refresh`].
    pub(crate) fn refresh(&mut self) -> Result<Refreshed, Refused> {
        let refreshed = self.tree.refresh()?;
        self.handed_over.take_in(&mut self.tree, &self.budget);
        if refreshed == Refreshed::ReadAgain {
            self.epoch += 1;
            self.views.clear();
            self.number_texts();
        }
        Ok(refreshed)
    }

    /// Adds segments to a tree that has none; entries know already what they are in them.
    pub(crate) fn add_segments(&mut self, segments: Vec<Segment>) {
        self.segments = segments
            .into_iter()
            .map(|segment| Slot {
                segment: Arc::new(segment),
                files: Vec::new(),
            })
            .collect();
        self.number_texts();
    }

    /// Finds out which file each text of the index is.
    pub(crate) fn number_texts(&mut self) {
        for slot in &mut self.segments {
            slot.files = vec![NO_FILE; slot.segment.texts()];
        }
        for (number, entry) in self.tree.entries.iter_mut().enumerate() {
            if let Coverage::Indexed { segment, text } = entry.data.coverage {
                let slot = self.segments.get_mut(segment as usize);
                match slot.and_then(|slot| slot.files.get_mut(text as usize)) {
                    Some(file) => *file = number as EntryNumber,
                    None => entry.data.coverage = Coverage::Unread,
                }
            }
        }
    }

    /// What a walk from this directory by these rules would meet.
    pub(crate) fn see(&mut self, key: &ViewKey, rules: &NameRules) -> Result<Seen, NotKnown> {
        let known = self.views.iter().position(|view| view.key == *key);
        let mut view = match known {
            Some(at) => self.views.remove(at),
            None => View {
                key: key.clone(),
                structure: u64::MAX,
                decided: Vec::new(),
                seen: Seen {
                    files: Arc::new([]),
                    skips: Arc::new([]),
                },
            },
        };
        if view.structure != self.tree.structure {
            view.decided.resize(self.tree.entries.len(), 0);
            view.seen = self.walk(key.directory, rules, &mut view.decided)?;
            view.structure = self.tree.structure;
        }
        let seen = view.seen.clone();
        self.views.truncate(MOST_VIEWS - 1);
        self.views.insert(0, view);
        Ok(seen)
    }

    fn walk(
        &self,
        start: DirectoryNumber,
        rules: &NameRules,
        decided: &mut [u8],
    ) -> Result<Seen, NotKnown> {
        let mut files = Vec::new();
        let mut skips = self.skips_above(start);
        let by_name = !rules.overrides.is_empty() || !rules.types.is_empty() || !rules.hidden;
        // Entries still to visit, the next one last.
        let mut waiting: Vec<EntryNumber> = Vec::new();
        let enter =
            |number: DirectoryNumber, waiting: &mut Vec<EntryNumber>, skips: &mut Vec<Skip>| {
                let directory = &self.tree.directories[number as usize];
                skips.extend(directory.skips.iter().cloned());
                waiting.extend(directory.entries.iter().rev());
            };
        enter(start, &mut waiting, &mut skips);
        while let Some(number) = waiting.pop() {
            let entry = &self.tree.entries[number as usize];
            let is_dir = entry.kind == EntryKind::Directory;
            let is_hidden = match by_name {
                false => rules.respect_ignore && entry.verdict == Verdict::Ignored,
                true => {
                    let known = &mut decided[number as usize];
                    if *known == 0 {
                        let path = self.tree.root.join(self.tree.path_of(number));
                        *known = 1 + u8::from(!rules.hide(&path, is_dir, || entry.verdict));
                    }
                    *known == 1
                }
            };
            match entry.kind {
                _ if is_hidden => {}
                EntryKind::Directory => match entry.directory {
                    Some(inside) => enter(inside, &mut waiting, &mut skips),
                    None => return Err(NotKnown),
                },
                EntryKind::File => files.push(number),
                _ => {}
            }
        }
        Ok(Seen {
            files: files.into(),
            skips: skips.into(),
        })
    }

    /// What is wrong with the ignore files of directories above.
    pub(crate) fn skips_above(&self, start: DirectoryNumber) -> Vec<Skip> {
        let start = &self.tree.directories[start as usize].path;
        let above = start
            .ancestors()
            .skip(1)
            .filter_map(|path| self.tree.find(path));
        let mut skips = self.tree.skips.clone();
        skips.extend(above.flat_map(|number| {
            let directory = &self.tree.directories[number as usize];
            directory.skips.iter().cloned()
        }));
        skips
    }

    /// Which of these files a pattern may match in. `has_looked`: every file was looked at since the
    /// question was asked.
    pub(crate) fn candidates(
        &mut self,
        seen: &Seen,
        query: &TrigramQuery,
        has_looked: bool,
    ) -> Result<Candidates, Damaged> {
        let found = self.indexed_candidates(query)?;
        let mut unread = Unread::default();
        if !has_looked {
            let is_unwatched = |number: &EntryNumber| {
                let entry = &self.tree.entries[*number as usize];
                let is_indexed = matches!(entry.data.coverage, Coverage::Indexed { .. });
                entry.watch.is_none() && is_indexed && !found.holds(*number as usize)
            };
            let unwatched: Vec<_> = seen.files.iter().copied().filter(is_unwatched).collect();
            self.tree.look_at(&unwatched);
            unread.unwatched = unwatched.len().min(self.tree.file_watches.room());
        }
        let mut work = 0;
        let is_candidate = |number: &EntryNumber| {
            let entry = &self.tree.entries[*number as usize];
            let is_candidate = match entry.data.coverage {
                Coverage::Indexed { .. } => found.holds(*number as usize),
                Coverage::Always => true,
                Coverage::Unread => {
                    unread.files += 1;
                    unread.bytes += entry.mark.size;
                    true
                }
            };
            if is_candidate {
                work += entry.mark.size + entry.data.work();
            }
            is_candidate
        };
        let files = seen.files.iter().copied().filter(is_candidate).collect();
        Ok(Candidates {
            files,
            skips: Arc::clone(&seen.skips),
            epoch: self.epoch,
            unread,
            work,
        })
    }

    /// The files that the index cannot rule out.
    fn indexed_candidates(&self, query: &TrigramQuery) -> Result<Bits, Damaged> {
        let mut found = Bits::none(self.tree.entries.len());
        for (number, slot) in self.segments.iter().enumerate() {
            for text in slot.segment.candidates(query)?.iter() {
                let file = slot.files.get(text).copied().unwrap_or(NO_FILE);
                let Some(entry) = self.tree.entries.get(file as usize) else {
                    continue;
                };
                let here = Coverage::Indexed {
                    segment: number as u32,
                    text: text as u32,
                };
                if entry.data.coverage == here {
                    found.insert(file as usize);
                }
            }
        }
        Ok(found)
    }

    /// A file to search; `None` if it is gone.
    pub(crate) fn file(&self, number: EntryNumber) -> Option<&TreeEntry<FileData>> {
        let entry = self.tree.entries.get(number as usize);
        entry.filter(|entry| entry.is_there)
    }

    /// The text of a file, if it is known. `spares_look`: one that is watched itself need not be
    /// looked at (see `tree`, of stores through a mapping). `path`: see [`LiveTree::look_at_entry`].
    pub(crate) fn text_of<'a>(
        &self,
        entry: &'a TreeEntry<FileData>,
        spares_look: bool,
        path: &mut PathBuf,
    ) -> Option<&'a Held> {
        // A change in the same instant as the last one is not seen by a look alone.
        let is_watched = entry.watch.is_some();
        let held = entry.data.held.as_ref();
        let held = held.filter(|_| is_watched || entry.data.is_settled)?;
        if spares_look && is_watched && held.kind == TextKind::Plain {
            return Some(held);
        }
        (self.tree.look_at_entry(entry, path) == Some(entry.mark)).then_some(held)
    }

    /// Where a file is, and where in that the path below the root begins.
    pub(crate) fn path_of(&self, number: EntryNumber) -> (PathBuf, usize) {
        let entry = &self.tree.entries[number as usize];
        let directory = &self.tree.directories[entry.parent as usize].path;
        let length = self.tree.root.as_os_str().len() + directory.as_os_str().len();
        let mut path = PathBuf::with_capacity(length + entry.name.len() + 2);
        path.push(&self.tree.root);
        path.push("");
        let below = path.as_os_str().len();
        path.push(directory);
        path.push(&*entry.name);
        (path, below)
    }

    /// What is needed to read a file.
    pub(crate) fn candidate(&self, number: EntryNumber) -> Candidate {
        let (path, below) = self.path_of(number);
        Candidate {
            entry: number,
            version: self.tree.entries[number as usize].version,
            path,
            below,
        }
    }

    /// Keeps what was read of a file, unless the file changed since or is held already.
    pub(crate) fn keep_text(&mut self, entry: EntryNumber, version: u32, text: &ReadText) {
        let Some(entry) = self.tree.entries.get_mut(entry as usize) else {
            return;
        };
        if entry.version != version || !entry.is_there || entry.mark != text.mark {
            return;
        }
        if entry.data.held.is_none() || !entry.data.is_settled {
            entry.data.held = text.hold(&self.budget);
        }
        if entry.data.coverage == Coverage::Unread {
            entry.data.is_settled = text.is_settled;
        } else {
            entry.data.is_settled &= text.is_settled;
        }
    }

    /// Gives the index up; it is built anew.
    pub(crate) fn forget_index(&mut self) {
        self.segments.clear();
        for entry in &mut self.tree.entries {
            entry.data.coverage = Coverage::Unread;
        }
    }

    /// Lets all texts go.
    pub(crate) fn let_go(&mut self) {
        for entry in &mut self.tree.entries {
            entry.data.held = None;
        }
    }
}
