//! Grep: which lines, files or counts match a regular expression.
//!
//! - `query`: what is asked; `report`: what is answered.
//! - `matcher` and `filter`: the regex, the globs and the file type, built as ripgrep builds them.
//! - `scan`: one file, start to end; `rows`: what of a match is shown.
//! - `harvest`: what is kept of all files, and where the search may end early.

mod filter;
mod harvest;
mod matcher;
mod query;
mod report;
mod rows;
mod scan;

use std::path::Path;
use std::sync::Arc;

pub use query::{GrepMode, GrepQuery, split_globs};
pub use report::{FileCount, Found, GrepReport, MAX_COLUMNS, Row, RowKind, Tally};

use crate::skip::SkipLog;
use crate::stop::{Stop, Watch};
use crate::walk::Tree;
use crate::{SearchError, root};
use harvest::Harvest;
use scan::{Naming, Scanner};

pub(crate) fn run(
    query: &GrepQuery,
    stop: &Stop,
    threads: usize,
) -> Result<GrepReport, SearchError> {
    let matcher = matcher::build(query)?;
    let overrides = filter::overrides(query)?;
    let types = filter::types(query)?;
    let kind = root::inspect(&query.path)?;

    let watch = Watch::new(stop);
    let skips = SkipLog::default();
    let harvest = Arc::new(Harvest::new(query));
    let scanner = Scanner::new(matcher, query, harvest.rows_needed(), &watch);

    if kind.is_dir() {
        let tree = Tree {
            root: &query.path,
            current_dir: &query.current_dir,
            respect_ignore: true,
            hidden: true,
            overrides,
            types,
            threads,
        };
        let pruning = Arc::clone(&harvest);
        let keep = move |entry: &ignore::DirEntry| !pruning.is_beyond(entry.path());
        tree.walk(&watch, &skips, keep, || {
            let (mut scanner, harvest, skips) = (scanner.clone(), &harvest, &skips);
            Box::new(move |entry| {
                // Links, sockets and devices are not searched unless named.
                if entry.file_type().is_some_and(|kind| kind.is_file()) {
                    search_file(harvest, skips, &mut scanner, entry.path(), Naming::Walked);
                }
            })
        });
    } else if kind.is_file() {
        search_file(
            &harvest,
            &skips,
            &mut scanner.clone(),
            &query.path,
            Naming::Named,
        );
    } else {
        return Err(SearchError::NotSearchable {
            path: query.path.clone(),
        });
    }
    Ok(harvest.report(query, skips, watch.completion()))
}

fn search_file(
    harvest: &Harvest,
    skips: &SkipLog,
    scanner: &mut Scanner,
    path: &Path,
    naming: Naming,
) {
    // Asked again, because the rows found since the walk listed this file may have moved the end
    // before it.
    if harvest.is_beyond(path) {
        return;
    }
    let mut finding = scanner.search(path, naming);
    if let Some(reason) = finding.skipped.take() {
        skips.add(Some(path), reason);
    }
    harvest.add(path, finding);
}
