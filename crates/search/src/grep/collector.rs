//! Collects the results of all files, in any order in which the threads search them.
//!
//! In content mode with a limit, the report has the first N rows in path order. As soon as N rows
//! are known from any files, nothing after the last of these files can be shown. The path of that
//! file is the *end*. The end only ever moves towards the start of the tree, and files after it are
//! neither walked nor searched nor stored. Every file before the final end is searched, so the
//! result does not depend on the threads.
//!
//! `K` identifies a file and sorts in path order. In a walk it is the path; over an indexed tree it
//! is the file's index in the candidate list, because comparing paths takes longer than searching a
//! short file.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use super::scan::FileMatches;
use super::{
    FileCount, GrepCounts, GrepMatches, GrepMode, GrepQuery, GrepReport, GrepRow, RowKind,
};
use crate::skip::SkipLog;
use crate::stop::{SearchCompletion, SearchStop};

pub(super) struct ResultCollector<K> {
    /// One row more than the last of the page, which shows whether there are more.
    rows_needed: usize,
    kept: Mutex<CollectedResults<K>>,
    has_end: AtomicBool,
    end: RwLock<Option<K>>,
}

enum CollectedResults<K> {
    Rows {
        files: BTreeMap<K, Vec<GrepRow>>,
        total: usize,
    },
    Files(Vec<(Reverse<SystemTime>, K)>),
    Counts(Vec<(K, u64)>),
}

impl<K: Ord + Clone> ResultCollector<K> {
    pub(super) fn new(query: &GrepQuery) -> Self {
        let kept = match query.mode {
            GrepMode::Content { .. } => CollectedResults::Rows {
                files: BTreeMap::new(),
                total: 0,
            },
            GrepMode::FilesWithMatches => CollectedResults::Files(Vec::new()),
            GrepMode::Count => CollectedResults::Counts(Vec::new()),
        };
        Self {
            rows_needed: page_end(query).saturating_add(1),
            kept: Mutex::new(kept),
            has_end: AtomicBool::new(false),
            end: RwLock::new(None),
        }
    }

    pub(super) fn rows_needed(&self) -> usize {
        self.rows_needed
    }

    /// Returns whether neither this file nor any after it can be shown any longer.
    pub(super) fn is_beyond<Q: Ord + ?Sized>(&self, file: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        // The flag avoids the lock as long as no end is set, which is the usual case.
        self.has_end.load(Ordering::Acquire)
            && self
                .end
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .as_ref()
                .is_some_and(|end| file > end.borrow())
    }

    pub(super) fn add(&self, file: impl FnOnce() -> K, finding: FileMatches) {
        if finding.rows.is_empty() && finding.matches == 0 {
            return;
        }
        let file = file();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *kept {
            CollectedResults::Files(files) => {
                let modified = finding.modified.unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((Reverse(modified), file));
            }
            CollectedResults::Counts(counts) => counts.push((file, finding.matches)),
            CollectedResults::Rows { files, total } => {
                if finding.rows.is_empty() {
                    return;
                }
                *total += finding.rows.len();
                files.insert(file, finding.rows);
                if *total >= self.rows_needed {
                    let end = drop_surplus(files, total, self.rows_needed);
                    *self.end.write().unwrap_or_else(PoisonError::into_inner) = end;
                    self.has_end.store(true, Ordering::Release);
                }
            }
        }
    }

    /// Builds the report. Called once, after all threads have finished. `path_of` returns the path
    /// of a file.
    pub(super) fn report(
        &self,
        query: &GrepQuery,
        skips: SkipLog,
        completion: SearchCompletion,
        path_of: impl Fn(&K) -> PathBuf,
    ) -> GrepReport {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, more, tally) = match &mut *kept {
            CollectedResults::Rows { files, .. } => page_of_rows(std::mem::take(files), query),
            CollectedResults::Files(files) => {
                let mut files = std::mem::take(files);
                let total = files.len();
                let page_end = page_end(query);
                if page_end < total {
                    // Only the page needs to be sorted.
                    files.select_nth_unstable(page_end);
                    files.truncate(page_end);
                }
                files.sort_unstable();
                let page: Vec<_> = page(files, query).map(|(_, file)| path_of(&file)).collect();
                let more = total > query.offset.saturating_add(page.len());
                (
                    GrepMatches::Files(page),
                    more,
                    GrepCounts {
                        files: total,
                        rows: total,
                        matches: None,
                    },
                )
            }
            CollectedResults::Counts(counts) => {
                let mut counts = std::mem::take(counts);
                counts.sort_unstable();
                let total = counts.len();
                let matches = Some(counts.iter().map(|(_, count)| count).sum());
                let page: Vec<_> = page(counts, query)
                    .map(|(file, count)| FileCount {
                        path: path_of(&file),
                        count,
                    })
                    .collect();
                let more = total > query.offset.saturating_add(page.len());
                (
                    GrepMatches::Counts(page),
                    more,
                    GrepCounts {
                        files: total,
                        rows: total,
                        matches,
                    },
                )
            }
        };
        let cut = more && matches!(found, GrepMatches::Rows(_));
        let end = self.end.read().unwrap_or_else(PoisonError::into_inner);
        let end = end.as_ref().filter(|_| cut).map(path_of);
        GrepReport {
            found,
            more,
            tally,
            skipped: skips.into_skipped(end.as_deref()),
            completion: match completion {
                SearchCompletion::Complete if cut => SearchCompletion::Stopped(SearchStop::Limit),
                other => other,
            },
            head_limit: query.head_limit,
            offset: query.offset,
        }
    }
}

/// Drops the last files as long as the files before them have enough rows. The breaks between files
/// are not counted, so it may keep a few rows too many, but never too few. Returns the new end.
fn drop_surplus<K: Ord + Clone>(
    files: &mut BTreeMap<K, Vec<GrepRow>>,
    total: &mut usize,
    needed: usize,
) -> Option<K> {
    while let Some(last) = files.last_entry() {
        let rest = *total - last.get().len();
        if rest < needed {
            return Some(last.key().clone());
        }
        *total = rest;
        last.remove();
    }
    None
}

fn page_end(query: &GrepQuery) -> usize {
    query
        .head_limit
        .map_or(usize::MAX, |limit| query.offset.saturating_add(limit))
}

fn page<T>(rows: Vec<T>, query: &GrepQuery) -> impl Iterator<Item = T> {
    rows.into_iter()
        .skip(query.offset)
        .take(query.head_limit.unwrap_or(usize::MAX))
}

fn page_of_rows<K>(
    files: BTreeMap<K, Vec<GrepRow>>,
    query: &GrepQuery,
) -> (GrepMatches, bool, GrepCounts) {
    let page_end = page_end(query);
    let all = files.values().map(Vec::len).sum::<usize>();
    let mut shown = Vec::with_capacity(all.min(query.head_limit.unwrap_or(usize::MAX)));
    let mut tally = GrepCounts {
        matches: Some(0),
        ..GrepCounts::default()
    };
    let mut more = false;
    for rows in files.into_values() {
        let first = rows.first().map(|row| Arc::clone(&row.path));
        let between = first.filter(|_| query.has_context() && tally.rows > 0);
        let between = between.map(|path| GrepRow {
            path,
            line: None,
            kind: RowKind::Break,
            text: String::new(),
            full_length: None,
        });
        let mut counted = false;
        for row in between.into_iter().chain(rows) {
            if tally.rows == page_end {
                more = true;
                break;
            }
            // A page that ends with the break before a file has shown nothing of that file.
            if row.kind != RowKind::Break && !counted {
                tally.files += 1;
                counted = true;
            }
            if row.kind == RowKind::Match {
                tally.matches = tally.matches.map(|matches| matches + 1);
            }
            if tally.rows >= query.offset {
                shown.push(row);
            }
            tally.rows += 1;
        }
    }
    (GrepMatches::Rows(shown), more, tally)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn add(harvest: &ResultCollector<Arc<Path>>, path: &str, number: u64) {
        harvest.add(|| Arc::from(Path::new(path)), rows(path, number));
    }

    fn report(harvest: &ResultCollector<Arc<Path>>) -> GrepReport {
        let path_of = |file: &Arc<Path>| file.to_path_buf();
        harvest.report(
            &content(3),
            SkipLog::default(),
            SearchCompletion::Complete,
            path_of,
        )
    }

    fn rows(path: &str, number: u64) -> FileMatches {
        let path: Arc<Path> = Arc::from(Path::new(path));
        let row = |line| GrepRow {
            path: Arc::clone(&path),
            line: Some(line),
            kind: RowKind::Match,
            text: String::new(),
            full_length: None,
        };
        FileMatches {
            rows: (1..=number).map(row).collect(),
            matches: number,
            ..FileMatches::default()
        }
    }

    fn content(head_limit: usize) -> GrepQuery {
        let mode = GrepMode::Content {
            before: 0,
            after: 0,
            only_matching: false,
        };
        GrepQuery {
            mode,
            head_limit: Some(head_limit),
            ..GrepQuery::new("x", "/")
        }
    }

    #[test]
    fn the_end_moves_forward_as_rows_come_in() {
        let harvest = ResultCollector::new(&content(3)); // needs a fourth row to know of more
        add(&harvest, "/m/1", 3);
        assert!(
            !harvest.is_beyond(Path::new("/z")),
            "three rows may be all there are"
        );
        add(&harvest, "/p", 5);
        assert!(harvest.is_beyond(Path::new("/q")) && !harvest.is_beyond(Path::new("/p")));
        add(&harvest, "/b", 1);
        assert!(harvest.is_beyond(Path::new("/p")) && !harvest.is_beyond(Path::new("/m")));
        let report = report(&harvest);
        let GrepMatches::Rows(shown) = &report.found else {
            panic!("rows asked for")
        };
        let paths: Vec<_> = shown.iter().map(|row| row.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/b", "/m/1", "/m/1"]);
        assert_eq!(
            report.completion,
            SearchCompletion::Stopped(SearchStop::Limit)
        );
        assert_eq!(
            report.tally,
            GrepCounts {
                files: 2,
                rows: 3,
                matches: Some(3)
            }
        );
    }

    #[test]
    fn a_page_that_takes_exactly_everything_is_complete() {
        let harvest = ResultCollector::new(&content(3));
        add(&harvest, "/m", 3);
        let report = report(&harvest);
        assert!(!report.more);
        assert_eq!(
            report.totals(),
            Some(GrepCounts {
                files: 1,
                rows: 3,
                matches: Some(3)
            })
        );
    }
}
