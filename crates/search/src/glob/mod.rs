//! Glob: which files have a name that fits a pattern.
//!
//! - `pattern`: what a pattern means, and where its search begins.
//! - `kept`: the list of a tree that is kept between calls.
//! - here: the walk, and the list it gives.

#[cfg(target_os = "linux")]
mod kept;
mod pattern;

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ignore::overrides::Override;
use ignore::types::Types;

pub use pattern::split_pattern;

use crate::handle::Directory;
#[cfg(target_os = "linux")]
use crate::index::Need;
use crate::index::TreeStore;
use crate::leave_out::LeaveOut;
use crate::root::Opened;
use crate::skip::{SkipLog, Skipped};
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
    /// Where the base led when the search was permitted, if that was judged: it must lead there.
    pub judged: Option<PathBuf>,
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
    /// Files below `base` whose paths fit the pattern.
    pub fn new(pattern: impl Into<String>, base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        let (pattern, current_dir) = (pattern.into(), base.clone());
        Self {
            pattern,
            base,
            judged: None,
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
    /// What was not looked at.
    pub skipped: Skipped,
    /// Whether everything was.
    pub completion: Completion,
}

/// What a query asks for: nothing is wrong with it.
struct GlobPlan {
    base: PathBuf,
    real: PathBuf,
    directory: Directory,
    pattern: Pattern,
}

fn sound(query: &GlobQuery) -> Result<GlobPlan, SearchError> {
    if query.pattern.contains('\0') {
        return Err(SearchError::NulByte { field: "pattern" });
    }
    let (base, rest) = split_pattern(&query.pattern, &query.base);
    let pattern = Pattern::new(&rest)?;
    // What the pattern moved was not judged.
    let judged = query.judged.as_deref();
    if judged.is_some() && base != query.base {
        return Err(SearchError::LeadsElsewhere { path: base });
    }
    let root = root::open(&base, judged)?;
    let Opened::Directory(directory) = root.opened else {
        return Err(SearchError::NotADirectory { path: base });
    };
    Ok(GlobPlan {
        real: root.real,
        base,
        directory,
        pattern,
    })
}

pub(crate) fn check(query: &GlobQuery) -> Result<(), SearchError> {
    sound(query).map(drop)
}

pub(crate) fn run(
    query: &GlobQuery,
    stop: &Stop,
    threads: usize,
    trees: Option<&TreeStore>,
) -> Result<GlobReport, SearchError> {
    let plan = sound(query)?;
    #[cfg(target_os = "linux")]
    if let Some(trees) = trees
        && query.respect_ignore
        // Under another name the tree has other rules.
        && plan.real == plan.base
        && let Some(asked) = trees.holder(&plan.real, &query.current_dir)
    {
        if let Ok(report) = kept::run(query, &plan, stop, &asked) {
            trees.after(&asked.holder, Need::Tree);
            if trees.verifies() {
                verify(query, &report, threads)?;
            }
            return Ok(report);
        }
        let report = walk(query, plan, stop, threads);
        trees.after(&asked.holder, Need::Tree);
        return Ok(report);
    }
    let _ = trees;
    Ok(walk(query, plan, stop, threads))
}

/// Compares an answer with that of a plain walk, as for a grep.
#[cfg(target_os = "linux")]
fn verify(query: &GlobQuery, report: &GlobReport, threads: usize) -> Result<(), SearchError> {
    if report.completion != Completion::Complete {
        return Ok(());
    }
    let again = || {
        Ok(format!(
            "{:?}",
            walk(query, sound(query)?, &Stop::never(), threads)
        ))
    };
    let (ours, plain): (String, String) = (format!("{report:?}"), again()?);
    assert!(
        ours == plain || again()? != plain,
        "the kept tree gives another answer than a walk to {query:?}:\n{ours}\nplain:\n{plain}"
    );
    Ok(())
}

fn walk(query: &GlobQuery, plan: GlobPlan, stop: &Stop, threads: usize) -> GlobReport {
    let GlobPlan {
        base,
        real,
        directory,
        pattern,
    } = plan;
    let watch = Watch::new(stop);
    let skips = SkipLog::default();
    let found = Mutex::new(Vec::new());
    let tree = Tree {
        root: &base,
        real: &real,
        directory,
        current_dir: &query.current_dir,
        respect_ignore: query.respect_ignore,
        hidden: query.hidden,
        overrides: Arc::new(Override::empty()),
        types: Arc::new(Types::empty()),
        threads,
        leave_out: query.leave_out.clone(),
    };
    let pruning = pattern.clone();
    tree.walk(
        &watch,
        &skips,
        move |entry| pruning.may_lead_to(entry.depth(), entry.name()),
        || -> Visitor<'_> {
            let (base, pattern, found) = (&base, &pattern, &found);
            Box::new(move |entry| {
                if pattern.fits(entry.path().strip_prefix(base).unwrap_or(entry.path()))
                    && let Some(modified) = entry.modified()
                {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push((Reverse(modified), entry.path().to_path_buf()));
                }
            })
        },
    );
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(query, found, skips, watch.completion())
}

fn report(
    query: &GlobQuery,
    mut found: Vec<(Reverse<SystemTime>, PathBuf)>,
    skips: SkipLog,
    completion: Completion,
) -> GlobReport {
    found.sort_unstable();
    let total = found.len();
    found.truncate(query.limit.unwrap_or(usize::MAX));
    GlobReport {
        truncated: found.len() < total,
        paths: found.into_iter().map(|(_, path)| path).collect(),
        total,
        skipped: skips.into_skipped(None),
        completion,
    }
}
