//! Detection of the changes of a shell command: a scan before, a scan after, and a comparison.
//!
//! Before the command, the contents of files that it could change are stored, within a budget.
//! After it, everything that changed becomes one unit of the undo journal, like a change by a file
//! tool. Paths that could not be stored are reported with the reason. The cost is limited in
//! entries, bytes and time.
//!
//! - `walk`, `keep_priority`: the scan, and the priority of its files
//! - `cached_tree`, `watch`: the cached scan, and the events since then
//! - `listings`, `shared_map`: data structures whose versions share common parts
//! - `preimages`: the stored contents of the session; `preimage_backlog`: contents that are
//!   stored later
//! - `compare`: the comparison
//!
//! Hard links: several names of one file inside the working directories share one file again after
//! undo; a name outside keeps what the command wrote. Extended attributes of files are restored,
//! those of directories are not. Pipes, sockets and devices that a command removes are only
//! reported.

mod cached_tree;
mod compare;
mod keep_priority;
mod listings;
mod preimage_backlog;
pub(crate) mod preimages;
mod shared_map;
mod walk;
mod watch;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use preimages::clone;
pub(crate) use walk::{NAMED_PIPE, ScanArea, ScannedKind, ScannedTree, TreeEntry, grouped};

use crate::error::JournalError;
use crate::journal::Journal;
use crate::open::resolve;
use crate::stamp::now_ns;
use crate::undo::{LogMark, PathChangeRecord, RecordState, UndoOutcome, UnrestorablePath};
use crate::write_grant::WriteGrant;
pub(crate) use cached_tree::CachedTree;
use compare::{KnownObjects, TreeComparison};
pub(crate) use compare::{is_claimed, named_left};
use preimages::{PreimageBudget, PreimageFile, PreimageFill, PreimageStore};
use walk::ScanLimit;
use watch::WatchLimits;

/// The paths that a command may change.
#[derive(Debug, Clone, Default)]
pub struct SnapshotScope {
    /// The directories in which the command may write, including everything below them.
    pub roots: Vec<PathBuf>,
    /// Paths that the command line writes or removes. They are stored first, even if they are
    /// outside the roots.
    pub hints: Vec<PathBuf>,
    /// Directories that are not scanned. The folder of the undo journal is never scanned.
    pub leave_out: Vec<PathBuf>,
}

/// The limits on the cost of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// The number of files and directories to scan.
    pub entries: usize,
    /// The time for each of the two scans.
    pub scan_time: Duration,
    /// The time for storing contents before a command; the rest is stored in the background.
    pub store_time: Duration,
    /// The total size of stored contents per session, in bytes.
    pub bytes: u64,
    /// The size limit of a stored file, in bytes.
    pub file: u64,
    /// Larger files that a command created are identified by their stamps instead of their
    /// contents.
    pub read: u64,
    /// The number of paths in one record.
    pub changed: usize,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            scan_time: Duration::from_secs(3),
            store_time: Duration::from_secs(2),
            bytes: 256 << 20,
            file: 16 << 20,
            read: 64 << 20,
            changed: 50_000,
        }
    }
}

/// The time after which directories that exceeded a limit are scanned again.
const TRIED_AGAIN: Duration = Duration::from_secs(300);
/// The maximum time of a background scan.
const MAX_SCAN_TIME: Duration = Duration::from_secs(60);

impl SnapshotLimits {
    fn why(&self, reason: ScanLimit) -> String {
        match reason {
            ScanLimit::Entries => {
                let most = grouped(self.entries);
                format!("there are more than {most} files and directories")
            }
            ScanLimit::Time => {
                format!(
                    "scanning them took more than {} s",
                    self.scan_time.as_secs_f32()
                )
            }
        }
    }
}

/// The state before a command, for [`Journal::after_command`].
#[derive(Debug)]
pub struct CommandBaseline {
    area: ScanArea,
    /// `Err`: the reason why the state is unknown.
    seen: Result<TreeState, String>,
    /// If set, only the paths of the command line were scanned; the reason why not everything was.
    narrowed: Option<String>,
    _runs: RunningCommand,
}

/// Counts a running command; dropped when it has ended.
#[derive(Debug)]
struct RunningCommand(Arc<AtomicUsize>);

impl RunningCommand {
    fn begin(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(all))
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct TreeState {
    tree: ScannedTree,
    filled: PreimageFill,
    /// Changes recorded after this mark were not made by the command.
    recorded: LogMark,
    /// The earliest time at which the command may start, in nanoseconds since the epoch.
    begun: i128,
}

/// The changes of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandChanges {
    /// The id of the undo unit; `None` if nothing changed or nothing can be undone.
    pub unit: Option<String>,
    /// New files and directories.
    pub created: Vec<PathBuf>,
    /// Files whose content, mode or link target changed.
    pub modified: Vec<PathBuf>,
    /// Removed files and directories.
    pub removed: Vec<PathBuf>,
    /// The created and modified files that `is_control` selected.
    pub control: Vec<PathBuf>,
    /// Paths that cannot be restored, with the reason.
    pub not_restorable: Vec<(PathBuf, String)>,
    /// The reason why undo does not cover the command, or only the paths of its command line.
    pub uncovered: Option<String>,
}

impl CommandChanges {
    fn count(
        &mut self,
        path: &Path,
        is_new: bool,
        is_gone: bool,
        is_control: &dyn Fn(&Path) -> bool,
    ) {
        if is_gone {
            self.removed.push(path.to_path_buf());
            return;
        }
        if is_control(path) {
            self.control.push(path.to_path_buf());
        }
        match is_new {
            true => self.created.push(path.to_path_buf()),
            false => self.modified.push(path.to_path_buf()),
        }
    }

    /// Adds a recorded change.
    pub(crate) fn count_record(
        &mut self,
        one: &PathChangeRecord,
        is_control: &dyn Fn(&Path) -> bool,
    ) {
        if !is_directory_both(one) && !one.is_unchanged() {
            let (before, after) = (one.before.is_present(), one.after.is_present());
            self.count(&one.path, !before, !after, is_control);
        }
    }
}

impl CommandBaseline {
    /// Returns the reason why undo will not cover the command, or only the paths of its command
    /// line.
    pub fn uncovered(&self) -> Option<&str> {
        match &self.seen {
            Err(why) => Some(why),
            Ok(_) => self.narrowed.as_deref(),
        }
    }

    /// Returns the number of files and directories that were scanned, and of contents that were
    /// copied.
    pub fn cost(&self) -> (usize, usize) {
        match &self.seen {
            Ok(seen) => (seen.tree.entries, seen.filled.copied),
            Err(_) => (0, 0),
        }
    }
}

impl Journal {
    /// Scans everything that a command may change, and stores contents that it could destroy. The
    /// command may run in any case: [`CommandBaseline::uncovered`] reports what undo will not cover.
    pub fn before_command(&self, sweep: &SnapshotScope) -> CommandBaseline {
        let limits = self.sweep_limits;
        let runs = RunningCommand::begin(&self.commands);
        let Some(history) = self.history() else {
            return CommandBaseline {
                area: ScanArea::default(),
                seen: Err("this session has no undo journal".to_owned()),
                narrowed: None,
                _runs: runs,
            };
        };
        let recorded = history.mark();
        let mut area = area_of(sweep, history.folder());
        area.entries = limits.entries;
        area.deadline = Instant::now().checked_add(limits.scan_time);
        let mut narrowed = None;
        let given_up = self.given_up(&area.roots);
        let mut looked = match given_up.filter(|_| !self.has_looked(&area)) {
            Some(why) => Err(why),
            None => self.scan_tree(&area).map_err(|reason| {
                let why = limits.why(reason);
                let mut shelf = self.lock_preimages();
                shelf.gave_up = Some((area.roots.clone(), why.clone(), Instant::now()));
                why
            }),
        };
        if let Err(why) = &looked
            && !area.named.is_empty()
        {
            narrowed = Some(format!(
                "{why}: undo covers only what the command line names"
            ));
            area.roots.clear();
            area.deadline = Instant::now().checked_add(limits.scan_time);
            looked = area.scan(None).map_err(|reason| limits.why(reason));
        }
        let seen = looked.and_then(|tree| {
            let budget = PreimageBudget {
                bytes: limits.bytes,
                file: limits.file,
                deadline: Instant::now().checked_add(limits.store_time),
            };
            let filled = self
                .lock_preimages()
                .store_preimages(&tree, budget, &|| history.nameless());
            let filled = filled.map_err(|error| format!("contents cannot be stored: {error}"))?;
            let unhurried = PreimageBudget {
                deadline: None,
                ..budget
            };
            preimage_backlog::work_on(&self.preimages, unhurried);
            std::thread::sleep(compare::until_certain(&tree, &filled.new));
            Ok(TreeState {
                tree,
                filled,
                recorded,
                begun: now_ns(),
            })
        });
        CommandBaseline {
            area,
            seen,
            narrowed,
            _runs: runs,
        }
    }

    /// Returns whether a command of this session is running.
    pub fn runs_commands(&self) -> bool {
        self.commands.load(Ordering::SeqCst) > 0
    }

    /// Scans everything, or only what has changed since the last scan.
    fn scan_tree(&self, area: &ScanArea) -> Result<ScannedTree, ScanLimit> {
        if area.roots.is_empty() {
            return area.scan(None);
        }
        let (inside, outside) = area.split();
        let mut tree = {
            // Other callers wait, so that they can use the result of this scan.
            let mut look = self
                .cached_tree
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            match look.take().filter(|kept| kept.fits(&inside)) {
                Some(mut kept) => {
                    let tree = kept.rescan(&inside)?;
                    *look = Some(kept);
                    tree
                }
                None => {
                    let found = CachedTree::scan(&inside, WatchLimits::from_system());
                    if found
                        .as_ref()
                        .is_err_and(|reason| *reason == ScanLimit::Time)
                    {
                        self.scan_in_background(inside.clone());
                    }
                    let (kept, tree) = found?;
                    *look = Some(kept);
                    tree
                }
            }
        };
        if let Some(outside) = outside {
            tree.add(outside.scan(None)?);
        }
        Ok(tree)
    }

    /// Returns whether there is a cached scan of this area that only needs an update.
    fn has_looked(&self, area: &ScanArea) -> bool {
        let look = self
            .cached_tree
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        look.as_ref().is_some_and(|kept| kept.fits(area))
    }

    /// Scans everything in the background, so that later commands can use the result.
    fn scan_in_background(&self, mut area: ScanArea) {
        if std::mem::replace(&mut self.lock_preimages().is_looking, true) {
            return;
        }
        area.deadline = Instant::now().checked_add(MAX_SCAN_TIME);
        let (look, shelf) = (
            Arc::downgrade(&self.cached_tree),
            Arc::downgrade(&self.preimages),
        );
        let work = move || {
            let found = CachedTree::scan(&area, WatchLimits::from_system());
            if let (Some(look), Ok((kept, _))) = (look.upgrade(), found) {
                *look.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
            }
            if let Some(shelf) = shelf.upgrade() {
                let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
                shelf.is_looking = false;
            }
        };
        let begun = std::thread::Builder::new()
            .name("haft-look".to_owned())
            .spawn(work);
        self.lock_preimages().is_looking &= begun.is_ok();
    }

    fn lock_preimages(&self) -> MutexGuard<'_, PreimageStore> {
        self.preimages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason why these directories recently exceeded a limit.
    fn given_up(&self, roots: &[PathBuf]) -> Option<String> {
        let shelf = self.lock_preimages();
        let (tried, why, when) = shelf.gave_up.as_ref()?;
        (tried == roots && when.elapsed() < TRIED_AGAIN).then(|| why.clone())
    }

    /// Finds what the command changed and records it as one unit of the undo journal, under the
    /// call of the grant. `about` is the command in readable form; `is_control` is called for each
    /// new or changed file.
    pub fn after_command(
        &self,
        before: CommandBaseline,
        ticket: &WriteGrant,
        about: &str,
        is_control: &dyn Fn(&Path) -> bool,
    ) -> CommandChanges {
        let mut changed = CommandChanges {
            uncovered: before.uncovered().map(str::to_owned),
            ..CommandChanges::default()
        };
        let Some(history) = self.history() else {
            return changed;
        };
        let roots = before.area.roots.clone();
        let compared = self.compare(before, is_control, &mut changed);
        let (swept, left, contents) = compared.unwrap_or_else(|why| {
            let left = roots.into_iter().map(|path| UnrestorablePath {
                path,
                why: why.clone(),
            });
            changed.uncovered = Some(why.clone());
            (Vec::new(), left.collect(), HashMap::new())
        });
        changed.not_restorable = left
            .iter()
            .map(|left| (left.path.clone(), left.why.clone()))
            .collect();
        // A changed time of a directory alone is not worth an undo unit.
        if left.is_empty() && swept.iter().all(is_only_time) {
            return changed;
        }
        let kept_content = |hash: &str| match contents.get(hash) {
            Some(kept) => kept.content(),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match history.record_command(ticket, about, swept, left, &kept_content) {
            Ok(unit) => changed.unit = Some(unit),
            Err(error) => changed.uncovered = Some(error.to_string()),
        }
        changed
    }

    fn compare(
        &self,
        before: CommandBaseline,
        is_control: &dyn Fn(&Path) -> bool,
        changed: &mut CommandChanges,
    ) -> Result<ComparisonResult, String> {
        let limits = self.sweep_limits;
        let seen = before.seen?;
        let mut area = before.area;
        // The command may have created as many entries again.
        area.entries = area.entries.saturating_mul(2);
        area.deadline = Instant::now().checked_add(limits.scan_time.saturating_mul(2));
        let tree = self
            .scan_tree(&area)
            .map_err(|_| "the scan after the command exceeded its limits".to_owned())?;
        let history = self.history().ok_or("this session has no undo journal")?;
        let claimed = history
            .changed_since(&seen.recorded)
            .map_err(|error| error.to_string())?;
        let comparison = TreeComparison {
            before: &seen.tree,
            after: &tree,
            filled: &seen.filled,
            begun: seen.begun,
            claimed: &claimed,
            limits,
            is_control,
            later: self.lock_preimages().contents(),
            known: KnownObjects::default(),
            needed: RefCell::default(),
        };
        let (swept, left) = comparison.make(changed)?;
        Ok((swept, left, comparison.needed.into_inner()))
    }

    /// Reverts single paths of what a command changed: removes new files and restores changed ones.
    /// Their present contents are stored, so that undoing this unit restores them.
    pub fn revert_paths(
        &self,
        ticket: &WriteGrant,
        unit: &str,
        paths: &[PathBuf],
    ) -> Result<UndoOutcome, JournalError> {
        self.required_history()?.revert_paths(ticket, unit, paths)
    }
}

/// The records, the paths that cannot be restored, and the contents that the records need, by hash.
type ComparisonResult = (
    Vec<PathChangeRecord>,
    Vec<UnrestorablePath>,
    HashMap<String, Arc<PreimageFile>>,
);

fn area_of(sweep: &SnapshotScope, own: &Path) -> ScanArea {
    let real = |path: &PathBuf| resolve(path).ok().map(|found| found.real);
    // If the command line names a link, the link itself is changed.
    let itself = |path: &PathBuf| {
        let name = path.file_name()?;
        let above = path
            .parent()
            .filter(|above| !above.as_os_str().is_empty())?;
        Some(real(&above.to_path_buf())?.join(name))
    };
    let mut roots: Vec<PathBuf> = sweep.roots.iter().filter_map(real).collect();
    roots.sort_unstable();
    roots.dedup();
    let all = roots.clone();
    roots.retain(|root| {
        let mut others = all.iter().filter(|other| *other != root);
        !others.any(|other| root.starts_with(other))
    });
    let named = sweep.hints.iter();
    let named: HashSet<PathBuf> = named
        .flat_map(|path| [real(path), itself(path)])
        .flatten()
        .filter(|path| !roots.contains(path))
        .collect();
    let mut leave_out: HashSet<PathBuf> = sweep.leave_out.iter().filter_map(real).collect();
    leave_out.extend(real(&own.to_path_buf()));
    ScanArea {
        roots,
        named: named.into_iter().collect(),
        leave_out,
        ..ScanArea::default()
    }
}

fn is_directory_both(one: &PathChangeRecord) -> bool {
    matches!(
        (&one.before, &one.after),
        (RecordState::Directory { .. }, RecordState::Directory { .. })
    )
}

/// Returns whether this is a directory with only its time changed.
fn is_only_time(one: &PathChangeRecord) -> bool {
    match (&one.before, &one.after) {
        (
            RecordState::Directory { mode, uid, gid, .. },
            RecordState::Directory {
                mode: mode_now,
                uid: uid_now,
                gid: gid_now,
                ..
            },
        ) => (mode, uid, gid) == (mode_now, uid_now, gid_now),
        _ => false,
    }
}
