//! Glob: which files have a name that fits a pattern.
//!
//! - `pattern`: what a pattern means, and where its search begins.
//! - here: the walk, and the list it gives.

mod pattern;

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ignore::DirEntry;
use ignore::overrides::Override;
use ignore::types::Types;

pub use pattern::split_pattern;

use crate::leave_out::LeaveOut;
use crate::skip::{SkipLog, SkipReason, Skipped};
use crate::stop::{Completion, Stop, Watch};
use crate::walk::{Tree, Visitor};
use crate::{SearchError, root};
use pattern::Pattern;

/// One listing. [`GlobQuery::new`] asks for every visible file; set the fields for anything else.
#[derive(Clone, Debug)]
pub struct GlobQuery {
    /// `**`, `*`, `?`, `[..]`, `{a,b}`. Without a `/` it fits a file name at any depth, with one it
    /// is a path from `base`, so `./*.rs` stays at the top. An absolute pattern, or one that starts
    /// with `../`, moves the base.
    pub pattern: String,
    /// Absolute path of the directory to look in.
    pub base: PathBuf,
    /// What the user's global excludes are relative to (the session's directory).
    pub current_dir: PathBuf,
    /// Leave out what ignore files name. The pattern never brings such a file back.
    pub respect_ignore: bool,
    /// Include names that start with a dot.
    pub hidden: bool,
    /// How many paths to give; `None` is all.
    pub limit: Option<usize>,
    /// What must not be looked at.
    pub leave_out: LeaveOut,
}

impl GlobQuery {
    pub fn new(pattern: impl Into<String>, base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        let (pattern, current_dir) = (pattern.into(), base.clone());
        Self {
            pattern,
            base,
            current_dir,
            respect_ignore: true,
            hidden: true,
            limit: None,
            leave_out: LeaveOut::default(),
        }
    }
}

/// Regular files, and links to such, newest first; those of the same time in path order.
#[derive(Clone, Debug)]
pub struct GlobReport {
    /// Absolute paths (below the base as it was given), at most `limit` of them.
    pub paths: Vec<PathBuf>,
    /// How many files fit in all; of those seen, if the walk was stopped.
    pub total: usize,
    /// There are more than `paths` holds.
    pub truncated: bool,
    pub skipped: Skipped,
    pub completion: Completion,
}

/// Where to look and what for: nothing is wrong with the query.
fn sound(query: &GlobQuery) -> Result<(PathBuf, Pattern), SearchError> {
    if query.pattern.contains('\0') {
        return Err(SearchError::NulByte { field: "pattern" });
    }
    let (base, rest) = split_pattern(&query.pattern, &query.base);
    let pattern = Pattern::new(&rest)?;
    if !root::inspect(&base)?.is_dir() {
        return Err(SearchError::NotADirectory { path: base });
    }
    Ok((base, pattern))
}

pub(crate) fn check(query: &GlobQuery) -> Result<(), SearchError> {
    sound(query).map(drop)
}

pub(crate) fn run(
    query: &GlobQuery,
    stop: &Stop,
    threads: usize,
) -> Result<GlobReport, SearchError> {
    let (base, pattern) = sound(query)?;
    let watch = Watch::new(stop);
    let skips = SkipLog::default();
    let found = Mutex::new(Vec::new());
    let tree = Tree {
        root: &base,
        current_dir: &query.current_dir,
        respect_ignore: query.respect_ignore,
        hidden: query.hidden,
        overrides: Override::empty(),
        types: Types::empty(),
        threads,
        leave_out: query.leave_out.clone(),
    };
    let pruning = pattern.clone();
    tree.walk(
        &watch,
        &skips,
        move |entry| pruning.may_lead_to(entry),
        || -> Visitor<'_> {
            let (base, pattern, found, skips) = (&base, &pattern, &found, &skips);
            Box::new(move |entry| {
                if pattern.fits(entry.path().strip_prefix(base).unwrap_or(entry.path())) {
                    match modified(&entry) {
                        Ok(Some(modified)) => {
                            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                            found.push((Reverse(modified), entry.into_path()));
                        }
                        Ok(None) => {}
                        Err(error) => {
                            let message = error.to_string();
                            skips.add(Some(entry.path()), SkipReason::Unreadable { message });
                        }
                    }
                }
            })
        },
    );
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable();
    let total = found.len();
    found.truncate(query.limit.unwrap_or(usize::MAX));
    Ok(GlobReport {
        truncated: found.len() < total,
        paths: found.into_iter().map(|(_, path)| path).collect(),
        total,
        skipped: skips.into_skipped(None),
        completion: watch.completion(),
    })
}

/// The time a file last changed; `None` for what is no file. A link counts as what it leads to.
fn modified(entry: &DirEntry) -> io::Result<Option<SystemTime>> {
    let is_link = entry.path_is_symlink();
    if !is_link && !entry.file_type().is_some_and(|kind| kind.is_file()) {
        return Ok(None);
    }
    let metadata = match fs::metadata(entry.path()) {
        // A link that leads nowhere, or a file gone since it was listed: not there, so not listed.
        Err(error) if is_link || error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    // A file system without times still lists its files, as the oldest.
    Ok(metadata
        .is_file()
        .then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
}
