//! Grep: which lines, files or counts match a regular expression.
//!
//! - `query`: what is asked; `report`: what is answered.
//! - `matcher` and `filter`: the regex, the globs and the file type, built as ripgrep builds them.
//! - `scan`: one file, start to end; `rows`: what of a match is shown; `text`: the matches in a text.
//! - `harvest`: what is kept of all files, and where the search may end early.

mod filter;
mod harvest;
mod matcher;
mod query;
mod report;
mod rows;
mod scan;
mod text;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use grep_regex::RegexMatcher;
use ignore::overrides::Override;
use ignore::types::Types;

pub use query::{GrepMode, GrepQuery, split_globs};
pub use report::{FileCount, Found, GrepReport, MAX_COLUMNS, Row, RowKind, Tally};
pub use text::{MatchGroups, TemplatePart, TextMatcher};

use crate::handle::EntryKind;
use crate::root::{Opened, Root};
use crate::skip::SkipLog;
use crate::stop::{Stop, Watch};
use crate::walk::{Entry, Tree};
use crate::{SearchError, root};
use harvest::Harvest;
use scan::{Naming, Scanner};

/// What a query asks for, built: nothing is wrong with it.
struct GrepPlan {
    matcher: RegexMatcher,
    overrides: Override,
    types: Types,
    root: Root,
}

impl GrepPlan {
    fn of(query: &GrepQuery) -> Result<Self, SearchError> {
        let matcher = matcher::build(query)?;
        let overrides = filter::overrides(query)?;
        let types = filter::types(query)?;
        let root = root::open(&query.path, query.judged.as_deref())?;
        Ok(Self {
            matcher,
            overrides,
            types,
            root,
        })
    }
}

pub(crate) fn check(query: &GrepQuery) -> Result<(), SearchError> {
    GrepPlan::of(query).map(drop)
}

pub(crate) fn run(
    query: &GrepQuery,
    stop: &Stop,
    threads: usize,
) -> Result<GrepReport, SearchError> {
    let GrepPlan {
        matcher,
        overrides,
        types,
        root,
    } = GrepPlan::of(query)?;

    let watch = Watch::new(stop);
    let skips = SkipLog::default();
    let harvest = Arc::new(Harvest::new(query));
    let scanner = Scanner::new(matcher, query, harvest.rows_needed(), &watch);

    let file = match root.opened {
        Opened::File(file) => Some(file),
        Opened::Directory(directory) => {
            let tree = Tree {
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
            let keep = move |entry: &Entry| !pruning.is_beyond(entry.path());
            tree.walk(&watch, &skips, keep, || {
                let (mut scanner, harvest, skips) = (scanner.clone(), &harvest, &skips);
                Box::new(move |entry| {
                    // Links, sockets and devices are not searched unless named.
                    if entry.kind() == EntryKind::File {
                        let open = || entry.open();
                        let path = entry.path();
                        search_file(harvest, skips, &mut scanner, path, open, Naming::Walked);
                    }
                })
            });
            None
        }
    };
    if let Some(file) = file {
        let open = || Ok(Some(file));
        let (path, mut scanner) = (&query.path, scanner.clone());
        search_file(&harvest, &skips, &mut scanner, path, open, Naming::Named);
    }
    Ok(harvest.report(query, skips, watch.completion()))
}

fn search_file(
    harvest: &Harvest,
    skips: &SkipLog,
    scanner: &mut Scanner,
    path: &Path,
    open: impl FnOnce() -> io::Result<Option<File>>,
    naming: Naming,
) {
    // Asked again, because the rows found since the walk listed this file may have moved the end
    // before it.
    if harvest.is_beyond(path) {
        return;
    }
    let mut finding = scanner.search(path, open, naming);
    if let Some(reason) = finding.skipped.take() {
        skips.add(Some(path), reason);
    }
    harvest.add(path, finding);
}
