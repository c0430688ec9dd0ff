//! Grep: finds lines, files or counts that match a regular expression.
//!
//! - `query`: the request; `report`: the result.
//! - `matcher` and `filter`: the regex, the globs and the file type, built as ripgrep builds them.
//! - `prefilter` and `relaxed`: prefilters that rule out lines faster than the pattern itself.
//! - `scan`: searches one file; `rows`: the rows shown for a match; `text`: the matches in a text.
//! - `collector`: collects the results of all files, and decides where the search may end early.

mod collector;
mod filter;
#[cfg(target_os = "linux")]
mod indexed;
mod matcher;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only cached texts are prefiltered")
)]
mod prefilter;
mod query;
#[cfg(target_os = "linux")]
mod relaxed;
mod report;
mod rows;
mod scan;
mod text;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

#[cfg(any(test, feature = "fuzzing"))]
use grep_regex::RegexMatcher;
use ignore::overrides::Override;
use ignore::types::Types;

pub(crate) use matcher::MatcherCache;
pub use query::{GrepMode, GrepQuery, split_globs};
pub use report::{FileCount, GrepCounts, GrepMatches, GrepReport, GrepRow, MAX_COLUMNS, RowKind};
pub use text::{MatchGroups, TemplatePart, TextMatcher};

use crate::handle::EntryKind;
#[cfg(target_os = "linux")]
use crate::index::IndexNeed;
use crate::index::TreeStore;
use crate::root::{OpenedRoot, SearchRoot};
use crate::skip::SkipLog;
#[cfg(target_os = "linux")]
use crate::stop::{SearchCompletion, SearchStop};
use crate::stop::{StopCondition, StopFlag};
use crate::walk::{WalkEntry, WalkTree};
use crate::{SearchError, root};
use collector::ResultCollector;
use matcher::BuiltPattern;
use scan::{FileOrigin, FileScanner};

/// A valid query: its patterns are compiled and its root is open.
struct GrepPlan {
    matcher: Arc<BuiltPattern>,
    overrides: Arc<Override>,
    types: Arc<Types>,
    root: SearchRoot,
}

impl GrepPlan {
    fn for_query(query: &GrepQuery, matchers: &MatcherCache) -> Result<Self, SearchError> {
        let matcher = matchers.build(query)?;
        let overrides = matchers.overrides(query)?;
        let types = matchers.types(query)?;
        let root = root::open(&query.path, query.authorized_path.as_deref())?;
        Ok(Self {
            matcher,
            overrides,
            types,
            root,
        })
    }
}

pub(crate) fn check(query: &GrepQuery, matchers: &MatcherCache) -> Result<(), SearchError> {
    GrepPlan::for_query(query, matchers).map(drop)
}

/// Builds the regex of a query, for tests of what is derived from it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn matcher_of(query: &GrepQuery) -> Result<RegexMatcher, SearchError> {
    matcher::build(query)
}

pub(crate) fn run(
    query: &GrepQuery,
    stop: &StopCondition,
    threads: usize,
    matchers: &MatcherCache,
    trees: Option<&TreeStore>,
) -> Result<GrepReport, SearchError> {
    let built = GrepPlan::for_query(query, matchers)?;
    #[cfg(target_os = "linux")]
    if let Some(trees) = trees
        // If the path contains a link, other ignore rules apply to the tree.
        && built.root.real == query.path
        && matches!(built.root.opened, OpenedRoot::Directory(_))
        && let Some(asked) = trees.holder(&query.path, &query.current_dir)
    {
        if let Ok((report, unread)) = indexed::run(query, &built, stop, threads, &asked) {
            trees.start_background_work(&asked.holder, IndexNeed::Index(Some(unread)));
            if trees.verifies() {
                verify(query, &report, threads)?;
            }
            return Ok(report);
        }
        let report = walk(query, built, stop, threads);
        trees.start_background_work(&asked.holder, IndexNeed::Index(None));
        return Ok(report);
    }
    let _ = trees;
    Ok(walk(query, built, stop, threads))
}

/// Compares a report with that of a plain walk and panics if they differ. If two plain walks differ
/// as well, another process changed the tree, and the difference is ignored.
#[cfg(target_os = "linux")]
fn verify(query: &GrepQuery, report: &GrepReport, threads: usize) -> Result<(), SearchError> {
    if let SearchCompletion::Stopped(SearchStop::Timeout | SearchStop::Cancelled) =
        report.completion
    {
        return Ok(());
    }
    let again = || {
        let built = GrepPlan::for_query(query, &MatcherCache::default())?;
        Ok(format!(
            "{:?}",
            walk(query, built, &StopCondition::never(), threads)
        ))
    };
    let (ours, plain): (String, String) = (format!("{report:?}"), again()?);
    assert!(
        ours == plain || again()? != plain,
        "the index gives another answer than a plain search to {query:?}:\n{ours}\nplain:\n{plain}"
    );
    Ok(())
}

fn walk(query: &GrepQuery, built: GrepPlan, stop: &StopCondition, threads: usize) -> GrepReport {
    let GrepPlan {
        matcher,
        overrides,
        types,
        root,
    } = built;

    let watch = StopFlag::new(stop);
    let skips = SkipLog::default();
    let harvest = Arc::new(ResultCollector::<Arc<Path>>::new(query));
    let scanner = FileScanner::new(matcher.exact(), query, harvest.rows_needed(), &watch);

    let file = match root.opened {
        OpenedRoot::File(file) => Some(file),
        OpenedRoot::Directory(directory) => {
            let tree = WalkTree {
                root: &query.path,
                real: &root.real,
                directory,
                current_dir: &query.current_dir,
                respect_ignore: true,
                hidden: true,
                overrides,
                types,
                threads,
                leave_out: query.leave_out.clone(),
            };
            let pruning = Arc::clone(&harvest);
            let keep = move |entry: &WalkEntry| !pruning.is_beyond(entry.path());
            tree.walk(&watch, &skips, keep, || {
                let (mut scanner, harvest, skips) = (scanner.clone(), &harvest, &skips);
                Box::new(move |entry| {
                    // Links, sockets and devices are not searched unless named.
                    if entry.kind() == EntryKind::File {
                        let open = || entry.open();
                        let path = entry.path();
                        search_file(harvest, skips, &mut scanner, path, open, FileOrigin::Walked);
                    }
                })
            });
            None
        }
    };
    if let Some(file) = file {
        let open = || Ok(Some(file));
        let (path, mut scanner) = (&query.path, scanner.clone());
        search_file(
            &harvest,
            &skips,
            &mut scanner,
            path,
            open,
            FileOrigin::Named,
        );
    }
    harvest.report(query, skips, watch.completion(), |path| path.to_path_buf())
}

fn search_file(
    harvest: &ResultCollector<Arc<Path>>,
    skips: &SkipLog,
    scanner: &mut FileScanner,
    path: &Path,
    open: impl FnOnce() -> io::Result<Option<File>>,
    naming: FileOrigin,
) {
    // Checked again, because rows found since the walk listed this file may have moved the end
    // before it.
    if harvest.is_beyond(path) {
        return;
    }
    let mut finding = scanner.search(path, open, naming);
    if let Some(reason) = finding.skipped.take() {
        skips.add(Some(path), reason);
    }
    let first = finding.rows.first().map(|row| Arc::clone(&row.path));
    harvest.add(|| first.unwrap_or_else(|| Arc::from(path)), finding);
}
