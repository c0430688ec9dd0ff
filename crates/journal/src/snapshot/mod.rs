//! What a command changes: everything is looked at before and after, and compared.
//!
//! Before, the contents of files that it could change are kept, as far as a budget goes; after, what
//! became different is one unit of the undo journal, like a change that a file tool made. What could
//! not be kept is named with the reason. The cost is bounded: in entries, in bytes and in time.
//!
//! - `walk`, `rank`: the look, and what matters most in it
//! - `kept_look`, `watch`: the last look, and what happened since
//! - `listings`, `shared_map`: states that share what is the same in them
//! - `preimages`: the contents, kept for the session; `backlog`: those that came too late
//! - `compare`: what is different
//!
//! Hard links: names of one file inside the working directories are names of one file again after an
//! undo; a name outside keeps what the command wrote. Extended attributes of files are restored,
//! those of directories are not. Pipes, sockets and devices that a command removes are named only.

mod backlog;
mod compare;
mod kept_look;
mod listings;
pub(crate) mod preimages;
mod rank;
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
pub(crate) use walk::{Area, EntryKind, Tree, TreeEntry};

use crate::error::JournalError;
use crate::journal::Journal;
use crate::open::resolve;
use crate::stamp::now_ns;
use crate::undo::{Left, LogMark, RecordState, Swept, Undone};
use crate::write_grant::WriteGrant;
use compare::{KnownObjects, TreeComparison};
pub(crate) use kept_look::KeptLook;
use preimages::{Budget, Filled, Shelf, ShelvedFile};
use walk::{TooMuch, grouped};
use watch::WatchLimits;

/// Where a command may change files.
#[derive(Debug, Clone, Default)]
pub struct Sweep {
    /// The directories in which it may write, each with everything below it.
    pub roots: Vec<PathBuf>,
    /// What its command line names as written or removed. Kept first, and also outside the roots.
    pub hints: Vec<PathBuf>,
    /// Never looked at. The undo journal's own folder is left out in any case.
    pub leave_out: Vec<PathBuf>,
}

/// How much a sweep may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepLimits {
    /// Files and directories that are looked at.
    pub entries: usize,
    /// For each of the two looks.
    pub look: Duration,
    /// For keeping contents before a command; the rest is kept while no one waits for it.
    pub keep: Duration,
    /// Contents kept, per session.
    pub bytes: u64,
    /// A larger file is not kept.
    pub file: u64,
    /// Larger files that a command made are known by their times, not by their contents.
    pub read: u64,
    /// Paths that one record names.
    pub changed: usize,
}

impl Default for SweepLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            look: Duration::from_secs(3),
            keep: Duration::from_secs(2),
            bytes: 256 << 20,
            file: 16 << 20,
            read: 64 << 20,
            changed: 50_000,
        }
    }
}

/// Directories that were too much are looked at again after this.
const TRIED_AGAIN: Duration = Duration::from_secs(300);
/// A look that no one waits for takes no longer.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

impl SweepLimits {
    fn why(&self, reason: TooMuch) -> String {
        match reason {
            TooMuch::Entries => {
                let most = grouped(self.entries);
                format!("there are over {most} files and directories")
            }
            TooMuch::Time => format!("looking at them took over {} s", self.look.as_secs_f32()),
        }
    }
}

/// What was there before a command. To be given to [`Journal::after_command`].
#[derive(Debug)]
pub struct Before {
    area: Area,
    /// `Err`: why nothing is known.
    seen: Result<TreeState, String>,
    /// Only what the command line names is looked at, because there is too much besides.
    narrowed: Option<String>,
    _runs: RunningCommand,
}

/// Counts a command until it has ended.
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
    tree: Tree,
    filled: Filled,
    /// What is recorded behind it was not done by the command.
    recorded: LogMark,
    /// When the command may begin, in nanoseconds after the epoch.
    begun: i128,
}

/// What a command changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandChanges {
    /// What it is undone by; `None` if nothing was changed, or nothing can be undone.
    pub unit: Option<String>,
    /// Files and directories that are new.
    pub created: Vec<PathBuf>,
    /// Files whose content, mode or target is another.
    pub modified: Vec<PathBuf>,
    /// Files and directories that are gone.
    pub removed: Vec<PathBuf>,
    /// Those of the created and modified ones for which the caller's question said yes.
    pub control: Vec<PathBuf>,
    /// What cannot be restored, and why.
    pub not_restorable: Vec<(PathBuf, String)>,
    /// Why undo does not cover the command at all, or only what its command line names.
    pub uncovered: Option<String>,
}

impl Before {
    /// Why undo will not cover the command, or only what its command line names.
    pub fn uncovered(&self) -> Option<&str> {
        match &self.seen {
            Err(why) => Some(why),
            Ok(_) => self.narrowed.as_deref(),
        }
    }

    /// How many files and directories were looked at, and how many contents were read for it.
    pub fn cost(&self) -> (usize, usize) {
        match &self.seen {
            Ok(seen) => (seen.tree.entries, seen.filled.copied),
            Err(_) => (0, 0),
        }
    }
}

impl Journal {
    /// Looks at everything a command may change, and keeps what it could destroy. A command may run
    /// whatever comes of it: what undo will not cover is said.
    pub fn before_command(&self, sweep: &Sweep) -> Before {
        let limits = self.sweep_limits;
        let runs = RunningCommand::begin(&self.commands);
        let Some(history) = self.history() else {
            return Before {
                area: Area::default(),
                seen: Err("this session keeps no undo journal".to_owned()),
                narrowed: None,
                _runs: runs,
            };
        };
        let recorded = history.mark();
        let mut area = area_of(sweep, history.folder());
        area.entries = limits.entries;
        area.deadline = Instant::now().checked_add(limits.look);
        let mut narrowed = None;
        let given_up = self.given_up(&area.roots);
        let mut looked = match given_up.filter(|_| !self.has_looked(&area)) {
            Some(why) => Err(why),
            None => self.look(&area).map_err(|reason| {
                let why = limits.why(reason);
                let mut shelf = self.shelf();
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
            area.deadline = Instant::now().checked_add(limits.look);
            looked = area.look(None).map_err(|reason| limits.why(reason));
        }
        let seen = looked.and_then(|tree| {
            let budget = Budget {
                bytes: limits.bytes,
                file: limits.file,
                deadline: Instant::now().checked_add(limits.keep),
            };
            let filled = self.shelf().fill(&tree, budget, &|| history.nameless());
            let filled = filled.map_err(|error| format!("contents cannot be kept: {error}"))?;
            let unhurried = Budget {
                deadline: None,
                ..budget
            };
            backlog::work_on(&self.shelf, unhurried);
            std::thread::sleep(compare::until_certain(&tree, &filled.new));
            Ok(TreeState {
                tree,
                filled,
                recorded,
                begun: now_ns(),
            })
        });
        Before {
            area,
            seen,
            narrowed,
            _runs: runs,
        }
    }

    /// Does a command of this session run now?
    pub fn runs_commands(&self) -> bool {
        self.commands.load(Ordering::SeqCst) > 0
    }

    /// Looks at everything, or at what has changed since the last look.
    fn look(&self, area: &Area) -> Result<Tree, TooMuch> {
        if area.roots.is_empty() {
            return area.look(None);
        }
        let (inside, outside) = area.split();
        let mut tree = {
            // Others wait: what this one finds out, they need not.
            let mut look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
            match look.take().filter(|kept| kept.fits(&inside)) {
                Some(mut kept) => {
                    let tree = kept.again(&inside)?;
                    *look = Some(kept);
                    tree
                }
                None => {
                    let found = KeptLook::of(&inside, WatchLimits::of_system());
                    if found.as_ref().is_err_and(|reason| *reason == TooMuch::Time) {
                        self.look_beside(inside.clone());
                    }
                    let (kept, tree) = found?;
                    *look = Some(kept);
                    tree
                }
            }
        };
        if let Some(outside) = outside {
            tree.add(outside.look(None)?);
        }
        Ok(tree)
    }

    /// Is there a look at this that need only be brought up to date?
    fn has_looked(&self, area: &Area) -> bool {
        let look = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        look.as_ref().is_some_and(|kept| kept.fits(area))
    }

    /// Looks at everything while no one waits for it: later commands find it done.
    fn look_beside(&self, mut area: Area) {
        if std::mem::replace(&mut self.shelf().is_looking, true) {
            return;
        }
        area.deadline = Instant::now().checked_add(LONGEST_LOOK);
        let (look, shelf) = (Arc::downgrade(&self.look), Arc::downgrade(&self.shelf));
        let work = move || {
            let found = KeptLook::of(&area, WatchLimits::of_system());
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
        self.shelf().is_looking &= begun.is_ok();
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why these directories were too much a moment ago.
    fn given_up(&self, roots: &[PathBuf]) -> Option<String> {
        let shelf = self.shelf();
        let (tried, why, when) = shelf.gave_up.as_ref()?;
        (tried == roots && when.elapsed() < TRIED_AGAIN).then(|| why.clone())
    }

    /// Finds what the command changed, and records it as one unit of the undo journal, by the
    /// ticket's call. `about` is the command, for people; `is_control` is asked for each file that is
    /// new or changed.
    pub fn after_command(
        &self,
        before: Before,
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
            let left = roots.into_iter().map(|path| Left {
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
        // That something was done in a directory is nothing to be undone by itself.
        if left.is_empty() && swept.iter().all(is_only_time) {
            return changed;
        }
        let kept_content = |hash: &str| match contents.get(hash) {
            Some(kept) => kept.content(),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match history.observe(ticket, about, swept, left, &kept_content) {
            Ok(unit) => changed.unit = Some(unit),
            Err(error) => changed.uncovered = Some(error.to_string()),
        }
        changed
    }

    fn compare(
        &self,
        before: Before,
        is_control: &dyn Fn(&Path) -> bool,
        changed: &mut CommandChanges,
    ) -> Result<Compared, String> {
        let limits = self.sweep_limits;
        let seen = before.seen?;
        let mut area = before.area;
        // It may have made as much again.
        area.entries = area.entries.saturating_mul(2);
        area.deadline = Instant::now().checked_add(limits.look.saturating_mul(2));
        let tree = self
            .look(&area)
            .map_err(|_| "after the command there was too much to be looked at".to_owned())?;
        let history = self.history().ok_or("this session keeps no undo journal")?;
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
            later: self.shelf().contents(),
            known: KnownObjects::default(),
            needed: RefCell::default(),
        };
        let (swept, left) = comparison.make(changed)?;
        Ok((swept, left, comparison.needed.into_inner()))
    }

    /// Takes back single paths of what a command changed: a new file goes, a changed one becomes what
    /// it was. What they were is kept, and can be had again by undoing this.
    pub fn take_back(
        &self,
        ticket: &WriteGrant,
        unit: &str,
        paths: &[PathBuf],
    ) -> Result<Undone, JournalError> {
        self.required_history()?.take_back(ticket, unit, paths)
    }
}

/// What is recorded, what cannot be, and the contents that the record needs, by hash.
type Compared = (Vec<Swept>, Vec<Left>, HashMap<String, Arc<ShelvedFile>>);

fn area_of(sweep: &Sweep, own: &Path) -> Area {
    let real = |path: &PathBuf| resolve(path).ok().map(|found| found.real);
    // A link that the command line names is itself what is changed.
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
    Area {
        roots,
        named: named.into_iter().collect(),
        leave_out,
        ..Area::default()
    }
}

fn is_directory_both(one: &Swept) -> bool {
    matches!(
        (&one.before, &one.after),
        (RecordState::Directory { .. }, RecordState::Directory { .. })
    )
}

/// Is it a directory with another time?
fn is_only_time(one: &Swept) -> bool {
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
