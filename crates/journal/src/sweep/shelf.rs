//! Contents as they are before a command, kept as long as the session lives.
//!
//! Each is in a file named by its hash, in a folder beside those that records name; a command that
//! changes something moves what it needs over there. What has been kept once is known by its stamp,
//! so that the second command only looks. A lock on the folder says that the session lives; without
//! one, whoever tidies up removes it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::{FlockOperation, OFlags, flock};

use super::rank::Rank;
use super::walk::{Kind, Tree};
use crate::commit::Attributes;
use crate::open::open_real;
use crate::stamp::{ContentHash, Stamp, now_ns};

const LOCK: &str = "lock";
/// Smaller files are copied as fast as cloned.
const WORTH_CLONING: u64 = 64 << 10;
const PIECE: usize = 256 << 10;

/// A file whose content is on the shelf.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// When it was read.
    pub(crate) stamp: Stamp,
    pub(crate) hash: String,
    pub(crate) extended: Vec<(Vec<u8>, Vec<u8>)>,
    /// Any later change must show in the stamp.
    certain: bool,
}

pub(crate) type Object = (u64, u64);

/// All that is kept, by object.
pub(crate) type Contents = HashMap<Object, Arc<Kept>>;

/// What a session may keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) bytes: u64,
    pub(crate) file: u64,
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    contents: Arc<Contents>,
    lock: Option<(PathBuf, File)>,
}

/// What [`Shelf::fill`] has kept, and why not the rest.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub(crate) contents: Arc<Contents>,
    pub(crate) unkept: HashMap<Object, String>,
    /// How many were read now.
    pub(crate) copied: usize,
}

struct Wanted {
    rank: Rank,
    path: PathBuf,
    stamp: Stamp,
}

impl Shelf {
    /// Keeps the contents of all files in the tree, as far as the budget goes.
    pub(crate) fn fill(
        &mut self,
        folder: &Path,
        tree: &Tree,
        budget: Budget,
    ) -> io::Result<Filled> {
        self.open(folder)?;
        let mut contents = Contents::new();
        let mut wanted = Vec::new();
        let mut bytes = 0;
        for (path, stamp, rank) in files(tree) {
            let object = (stamp.device, stamp.inode);
            let known = self.contents.get(&object);
            match known.filter(|kept| kept.certain && kept.stamp.is_same(stamp)) {
                // Hard links are counted once.
                Some(kept) => {
                    if contents.insert(object, kept.clone()).is_none() {
                        bytes += stamp.size;
                    }
                }
                None => wanted.push(Wanted {
                    rank: rank(&path),
                    path,
                    stamp: stamp.clone(),
                }),
            }
        }
        // Small ones first: more files for the same room.
        wanted.sort_unstable_by(|a, b| {
            (a.rank, a.stamp.size, &a.path).cmp(&(b.rank, b.stamp.size, &b.path))
        });
        let copier = Copier {
            folder,
            budget,
            next: AtomicUsize::new(0),
            bytes: AtomicU64::new(bytes),
            number: AtomicU64::new(0),
            cannot_clone: AtomicBool::new(false),
            done: Mutex::default(),
        };
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
        std::thread::scope(|scope| {
            for _ in 1..threads.min(wanted.len() / 64 + 1) {
                scope.spawn(|| copier.work(&wanted));
            }
            copier.work(&wanted);
        });
        let done = copier
            .done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let (mut unkept, mut copied) = (HashMap::new(), 0);
        for (object, result) in done {
            match result {
                Ok(kept) => {
                    copied += 1;
                    contents.insert(object, Arc::new(kept));
                }
                Err(why) => {
                    unkept.insert(object, why);
                }
            }
        }
        self.replace(folder, contents);
        Ok(Filled {
            contents: self.contents.clone(),
            unkept,
            copied,
        })
    }

    fn open(&mut self, folder: &Path) -> io::Result<()> {
        if self
            .lock
            .as_ref()
            .is_some_and(|(path, _)| path == folder && path.exists())
        {
            return Ok(());
        }
        self.contents = Arc::default();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(LOCK))?;
        // Where someone works in the folder above: searches do not look in here.
        fs::write(folder.join(".ignore"), "*\n")?;
        // Some network file systems have no locks.
        let _ = flock(&file, FlockOperation::NonBlockingLockShared);
        self.lock = Some((folder.to_path_buf(), file));
        Ok(())
    }

    /// Contents that neither the next command nor a running one needs are removed.
    fn replace(&mut self, folder: &Path, contents: Contents) {
        let old = std::mem::replace(&mut self.contents, Arc::new(contents));
        if Arc::strong_count(&old) > 1 {
            return;
        }
        let needed: HashSet<&str> = self.contents.values().map(|kept| &*kept.hash).collect();
        for kept in old.values().filter(|kept| !needed.contains(&*kept.hash)) {
            let _ = fs::remove_file(folder.join(&kept.hash));
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        if let Some((folder, file)) = self.lock.take() {
            drop(file);
            clear(&folder);
        }
    }
}

/// Removes the shelf of a session that is no more. While it lives, nothing happens.
pub(crate) fn clear(folder: &Path) {
    let Ok(file) = File::open(folder.join(LOCK)) else {
        return;
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        let _ = fs::remove_dir_all(folder);
    }
}

/// All files, with how to find their rank.
fn files(tree: &Tree) -> impl Iterator<Item = (PathBuf, &Stamp, impl Fn(&Path) -> Rank)> {
    let listed = tree.listings.iter().flat_map(|(directory, listing)| {
        let files = listing.entries.iter();
        let files = files.filter(|entry| entry.kind() == Kind::File);
        files.map(move |entry| (directory.join(&entry.name), &entry.stamp, Some(listing)))
    });
    let points = tree.points.iter().filter_map(|(path, entry)| {
        let entry = entry.as_ref().filter(|entry| entry.kind() == Kind::File)?;
        Some((path.clone(), &entry.stamp, None))
    });
    // Points first: they are what the command line names.
    points.chain(listed).map(|(path, stamp, listing)| {
        let rank = move |path: &Path| match listing {
            Some(listing) => listing.rank.of_file(path, listing.ignores.as_deref()),
            None => Rank::Named,
        };
        (path, stamp, rank)
    })
}

struct Copier<'a> {
    folder: &'a Path,
    budget: Budget,
    next: AtomicUsize,
    bytes: AtomicU64,
    number: AtomicU64,
    cannot_clone: AtomicBool,
    done: Mutex<Vec<(Object, Result<Kept, String>)>>,
}

impl Copier<'_> {
    fn work(&self, wanted: &[Wanted]) {
        let mut own = Vec::new();
        let mut buffer = vec![0; PIECE];
        while let Some(one) = wanted.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let object = (one.stamp.device, one.stamp.inode);
            own.push((object, self.keep(one, &mut buffer)));
        }
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.append(&mut own);
    }

    fn keep(&self, one: &Wanted, buffer: &mut [u8]) -> Result<Kept, String> {
        let size = one.stamp.size;
        if size > self.budget.file {
            return Err(format!("it is larger than {} MB", self.budget.file >> 20));
        }
        if self
            .budget
            .deadline
            .is_some_and(|deadline| Instant::now() > deadline)
        {
            return Err("keeping its content would have taken too long".to_owned());
        }
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > self.budget.bytes {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(format!(
                "more than {} MB of contents are not kept",
                self.budget.bytes >> 20
            ));
        }
        self.copy(one, buffer).map_err(|error| {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            format!("its content could not be kept: {error}")
        })
    }

    fn copy(&self, one: &Wanted, buffer: &mut [u8]) -> io::Result<Kept> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(open_real(&one.path, flags)?);
        let stamp = Stamp::of(&file.metadata()?);
        if Kind::of(&stamp) != Kind::File || stamp.size > self.budget.file {
            return Err(io::Error::other("it was changed meanwhile"));
        }
        let certain = stamp.until_certain(now_ns()).is_zero();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let unfinished = self
            .folder
            .join(format!("unfinished-{}-{number}", std::process::id()));
        let hash = self.copy_to(&file, &stamp, &unfinished, buffer);
        let hash = hash.inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })?;
        if !stamp.is_same(&Stamp::of(&file.metadata()?)) {
            let _ = fs::remove_file(&unfinished);
            return Err(io::Error::other("it was changed meanwhile"));
        }
        let extended = Attributes::of(&file, &stamp)?.extended;
        fs::rename(&unfinished, self.folder.join(&hash))?;
        Ok(Kept {
            stamp,
            hash,
            extended,
            certain,
        })
    }

    fn copy_to(
        &self,
        mut file: &File,
        stamp: &Stamp,
        to: &Path,
        buffer: &mut [u8],
    ) -> io::Result<String> {
        let mut copy = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(to)?;
        let worth = stamp.size >= WORTH_CLONING && !self.cannot_clone.load(Ordering::Relaxed);
        let cloned = worth && clone(&copy, file);
        if worth && !cloned {
            self.cannot_clone.store(true, Ordering::Relaxed);
        }
        let mut hasher = blake3::Hasher::new();
        loop {
            let read = if cloned {
                copy.read(buffer)
            } else {
                file.read(buffer)
            };
            let count = match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count?,
            };
            if count == 0 {
                return Ok(ContentHash::finish(&hasher).to_string());
            }
            hasher.update(&buffer[..count]);
            if !cloned {
                copy.write_all(&buffer[..count])?;
            }
        }
    }
}

/// Shares the content instead of copying it, where the file system can.
pub(crate) fn clone(to: &File, from: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_ficlone(to, from).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (to, from);
        false
    }
}
