//! Glob: lists the files whose path matches a pattern.
//!
//! - `pattern`: the meaning of a pattern, and the directory its search starts in.
//! - `indexed`: answers from a tree that is indexed between calls.
//! - this module: the walk, and the report made from it.

#[cfg(target_os = "linux")]
mod indexed;
mod pattern;

use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ignore::overrides::Override;
use ignore::types::Types;

pub use pattern::split_pattern;

use crate::exclusions::Exclusions;
use crate::handle::Directory;
#[cfg(target_os = "linux")]
use crate::index::IndexNeed;
use crate::index::TreeStore;
use crate::root::OpenedRoot;
use crate::skip::{SkipLog, SkipSummary};
use crate::stop::{SearchCompletion, StopCondition, StopFlag};
use crate::walk::{EntryVisitor, WalkTree};
use crate::{SearchError, root};
use pattern::GlobPattern;

/// One listing. [`GlobQuery::new`] requests every visible file; set the fields for anything else.
#[derive(Clone, Debug)]
pub struct GlobQuery {
    /// The pattern, with `**`, `*`, `?`, `[..]` and `{a,b}`. A pattern without a `/` matches a file
    /// name at any depth. A pattern with a `/` is a path from `base`, so `./*.rs` matches only at
    /// the top. An absolute pattern, or one that starts with `../`, moves the base.
    pub pattern: String,
    /// The absolute path of the directory to search.
    pub base: PathBuf,
    /// The real path that the permission check resolved `base` to, if it did. The search fails if
    /// `base` now resolves to another path.
    pub authorized_path: Option<PathBuf>,
    /// The directory that the user's global excludes are relative to (the session's directory).
    pub current_dir: PathBuf,
    /// Leave out files that ignore files exclude, even if the pattern names them.
    pub respect_ignore: bool,
    /// Include names that start with a dot.
    pub hidden: bool,
    /// The maximum number of paths to return; `None` for all.
    pub limit: Option<usize>,
    /// Files and directories that the search must not read.
    pub leave_out: Exclusions,
}

impl GlobQuery {
    /// Requests the files below `base` whose paths match the pattern.
    pub fn new(pattern: impl Into<String>, base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        let (pattern, current_dir) = (pattern.into(), base.clone());
        Self {
            pattern,
            base,
            authorized_path: None,
            current_dir,
            respect_ignore: true,
            hidden: true,
            limit: None,
            leave_out: Exclusions::default(),
        }
    }
}

/// The regular files that match, and links to regular files, newest first; files with the same time
/// are in path order.
#[derive(Clone, Debug)]
pub struct GlobReport {
    /// Absolute paths (below the base as passed in), at most `limit`.
    pub paths: Vec<PathBuf>,
    /// The number of matching files; if the walk was stopped, of those seen until then.
    pub total: usize,
    /// True if there are more matching files than `paths` contains.
    pub truncated: bool,
    /// Files and directories that could not be searched.
    pub skipped: SkipSummary,
    /// Reports whether the whole tree was searched.
    pub completion: SearchCompletion,
}

/// A valid query: its pattern is parsed and its base directory open.
struct GlobPlan {
    base: PathBuf,
    real: PathBuf,
    directory: Directory,
    pattern: GlobPattern,
}

fn plan_query(query: &GlobQuery) -> Result<GlobPlan, SearchError> {
    if query.pattern.contains('\0') {
        return Err(SearchError::NulByte { field: "pattern" });
    }
    let (base, rest) = split_pattern(&query.pattern, &query.base);
    let pattern = GlobPattern::new(&rest)?;
    // The permission check covered only the query's base, so the pattern must not move it.
    let authorized = query.authorized_path.as_deref();
    if authorized.is_some() && base != query.base {
        return Err(SearchError::LeadsElsewhere { path: base });
    }
    let root = root::open(&base, authorized)?;
    let OpenedRoot::Directory(directory) = root.opened else {
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
    plan_query(query).map(drop)
}

pub(crate) fn run(
    query: &GlobQuery,
    stop: &StopCondition,
    threads: usize,
    trees: Option<&TreeStore>,
) -> Result<GlobReport, SearchError> {
    let plan = plan_query(query)?;
    #[cfg(target_os = "linux")]
    if let Some(trees) = trees
        && query.respect_ignore
        // If the path contains a link, other ignore rules apply to the tree.
        && plan.real == plan.base
        && let Some(asked) = trees.holder(&plan.real, &query.current_dir)
    {
        if let Ok(report) = indexed::run(query, &plan, stop, &asked) {
            trees.start_background_work(&asked.holder, IndexNeed::Tree);
            if trees.verifies() {
                verify(query, &report, threads)?;
            }
            return Ok(report);
        }
        let report = walk(query, plan, stop, threads);
        trees.start_background_work(&asked.holder, IndexNeed::Tree);
        return Ok(report);
    }
    let _ = trees;
    Ok(walk(query, plan, stop, threads))
}

/// Compares a report with that of a plain walk and panics if they differ, as grep does.
#[cfg(target_os = "linux")]
fn verify(query: &GlobQuery, report: &GlobReport, threads: usize) -> Result<(), SearchError> {
    if report.completion != SearchCompletion::Complete {
        return Ok(());
    }
    let again = || {
        Ok(format!(
            "{:?}",
            walk(query, plan_query(query)?, &StopCondition::never(), threads)
        ))
    };
    let (ours, plain): (String, String) = (format!("{report:?}"), again()?);
    assert!(
        ours == plain || again()? != plain,
        "the cached tree gives another answer than a walk to {query:?}:\n{ours}\nplain:\n{plain}"
    );
    Ok(())
}

fn walk(query: &GlobQuery, plan: GlobPlan, stop: &StopCondition, threads: usize) -> GlobReport {
    let GlobPlan {
        base,
        real,
        directory,
        pattern,
    } = plan;
    let watch = StopFlag::new(stop);
    let skips = SkipLog::default();
    let found = Mutex::new(Vec::new());
    let tree = WalkTree {
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
        || -> EntryVisitor<'_> {
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
    completion: SearchCompletion,
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
