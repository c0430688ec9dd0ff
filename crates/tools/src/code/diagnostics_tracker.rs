//! The report after the calls of a reply: language servers receive the changes, and new problems
//! are reported once.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use haft_contract::{BoxFuture, CallFollowUp, Services};
use haft_journal::{HistoryMark, Journal};
use haft_lsp::{LspClient, types::Diagnostic};
use tokio::time::Instant;

use super::{
    diagnostics_diff::{DiagnosticsDiff, DiagnosticsPair, compare},
    diagnostics_report::{ProblemReport, ReportedFile},
    file_scan::{FileScan, FileStamp, ObservedFile, scan_files},
    server::{LanguageServer, LanguageServerState, OpenDocuments, ServerKey},
    servers::LanguageServers,
    setup::DiagnosticsFilter,
};
use crate::blocking::blocking;

/// The maximum time that all servers together are waited for after edits.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The wait for a server that was still busy at the last check, if nothing has changed since.
const LATE: Duration = Duration::from_millis(300);
/// The time after a change during which new problems are attributed to it.
const AFTERMATH: Duration = Duration::from_secs(60);
/// The time that servers need to notice new and removed files, which they detect themselves.
const NEW_FILES: Duration = Duration::from_millis(500);
/// The maximum number of open documents in a server.
const MAX_OPEN: usize = 50;
/// The maximum number of changed files in one notification to a server.
const MAX_WATCHED: usize = 1000;

/// The state of the files that the session has read or changed.
#[derive(Default)]
pub(crate) struct DiagnosticsState {
    documents: HashMap<PathBuf, TrackedDocument>,
    /// Stamps of files whose documents were closed.
    closed: HashMap<PathBuf, FileStamp>,
    /// The end of the processed part of the record of changes.
    mark: Option<HistoryMark>,
    /// Counts reads and changes of files.
    clock: u64,
    /// Servers that were still busy at the last check.
    unsettled: BTreeSet<ServerKey>,
    /// The time of the last file change. Problems that servers find long afterwards are not
    /// attributed to edits.
    changed_at: Option<Instant>,
}

struct TrackedDocument {
    server: ServerKey,
    /// The value of the clock when it was last read or changed.
    used: u64,
    stamp: FileStamp,
    text: Arc<str>,
    /// The baseline for later comparisons: the text and its problems.
    base_text: Arc<str>,
    base: Option<Arc<[Diagnostic]>>,
    /// It was changed, and the resulting problems are not known yet.
    changed: bool,
    /// No server has been started for it yet.
    is_new: bool,
}

impl CallFollowUp for LanguageServers {
    fn report_after_calls<'a>(&'a self, services: &'a Services) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.report(services))
    }
}

impl LanguageServers {
    /// Sends changes since the last call to servers, and reports new problems.
    async fn report(&self, services: &Services) -> Option<String> {
        let reported = self.setup.reported();
        if self.setup.is_off() || !self.setup.trusted || reported == DiagnosticsFilter::Nothing {
            return None;
        }
        let journal = services.get::<Journal>().ok()?;
        let mut state = self.follow.lock().await;
        // If no server is installed for a file, it is not checked.
        let mut installed: BTreeMap<&str, bool> = BTreeMap::new();
        let mut paths: BTreeSet<PathBuf> = journal.ledger().paths().into_iter().collect();
        paths.retain(|path| {
            let entry = self.entry_of(path);
            let entry = entry.filter(|_| path.starts_with(&self.setup.workspace));
            entry.is_some_and(|entry| {
                let known = installed.entry(&entry.name);
                *known.or_insert_with(|| self.program(entry).is_some())
            })
        });
        paths.extend(state.documents.keys().cloned());
        if paths.is_empty() {
            return None;
        }
        if state.changed_at.is_none_or(|at| at.elapsed() > AFTERMATH) {
            self.store_baselines(&mut state);
        }
        let changed = self.refresh(&mut state, journal, paths).await;
        if !changed.is_empty() {
            state.changed_at = Some(Instant::now());
        }
        let until = Instant::now() + TIMEOUT;
        if !changed.is_empty() {
            self.learn_baselines(&mut state, until).await;
        }
        let clients = self.send_changes(&mut state, &changed);
        self.wait(&mut state, &clients, &changed, until).await;
        let report = state.new_diagnostics(&clients, reported);
        report.text(&self.setup.workspace)
    }

    /// Stores the present problems of unchanged documents as the baseline for later comparisons.
    fn store_baselines(&self, state: &mut DiagnosticsState) {
        for server in self.started() {
            let LanguageServerState::Ready(client) = server.state() else {
                continue;
            };
            let key = (server.entry.name.clone(), server.root.clone());
            if state.unsettled.contains(&key) {
                continue;
            }
            for (path, document) in client.documents() {
                if let Some(followed) = state.documents.get_mut(&path)
                    && !followed.changed
                    && document.report.version.is_some()
                    && document.text == followed.text
                {
                    followed.base = Some(document.report.problems);
                }
            }
        }
    }

    /// Requests the problems of documents without a baseline, before servers receive the changes:
    /// otherwise the effect of the changes on other documents would be unknown.
    async fn learn_baselines(&self, state: &mut DiagnosticsState, until: Instant) {
        for server in self.started() {
            let LanguageServerState::Ready(client) = server.state() else {
                continue;
            };
            let key = (server.entry.name.clone(), server.root.clone());
            let documents = &mut state.documents;
            let is_unknown = |path: &PathBuf, text: &Arc<str>| {
                let one = documents.get(path).filter(|one| one.server == key);
                one.is_some_and(|one| one.base.is_none() && one.base_text == *text)
            };
            let open = client.documents();
            let unknown = open
                .iter()
                .filter(|(path, one)| is_unknown(path, &one.text));
            if !client.uses_pull() || unknown.count() == 0 {
                continue;
            }
            if !client.wait_for_diagnostics(&[], until).await {
                continue;
            }
            for (path, document) in client.documents() {
                if let Some(followed) = documents.get_mut(&path)
                    && followed.base.is_none()
                    && document.report.version.is_some()
                    && document.text == followed.base_text
                {
                    followed.base = Some(document.report.problems);
                }
            }
        }
    }

    /// Checks files and recorded changes; returns the changes by path, with the change kind of the
    /// protocol.
    async fn refresh(
        &self,
        state: &mut DiagnosticsState,
        journal: Arc<Journal>,
        paths: BTreeSet<PathBuf>,
    ) -> BTreeMap<PathBuf, u32> {
        let stamp_of = |path: &PathBuf| {
            let open = state.documents.get(path).map(|one| one.stamp);
            open.or_else(|| state.closed.get(path).copied())
        };
        let known = paths.into_iter().map(|path| {
            let stamp = stamp_of(&path);
            (path, stamp)
        });
        let known: Vec<_> = known.collect();
        let mark = state.mark.take();
        let mark = mark.unwrap_or_else(|| HistoryMark::from_time(self.began));
        let looks = blocking(move || scan_files(known, &journal, mark)).await;
        let Ok(FileScan {
            mark,
            mut changed,
            scanned: looked,
        }) = looks
        else {
            return BTreeMap::new();
        };
        state.mark = Some(mark);
        for (path, found) in looked {
            match found {
                ObservedFile::Same => {}
                ObservedFile::Gone => {
                    state.closed.remove(&path);
                    if state.documents.remove(&path).is_some() {
                        changed.insert(path, DELETED);
                    }
                }
                ObservedFile::Text { stamp, text, base } => {
                    if let Some(kind) = self.record_text(state, &path, (stamp, text), base) {
                        changed.entry(path).or_insert(kind);
                    }
                }
            }
        }
        changed
    }

    /// Records a text that is new or different; `base` is the text before the change, if known.
    /// Returns the kind of change, if any.
    fn record_text(
        &self,
        state: &mut DiagnosticsState,
        path: &std::path::Path,
        (stamp, text): (FileStamp, String),
        base: Option<String>,
    ) -> Option<u32> {
        state.clock += 1;
        let used = state.clock;
        let text: Arc<str> = text.into();
        let Some(followed) = state.documents.get_mut(path) else {
            let was_closed = state.closed.remove(path).is_some();
            let changed = base.is_some() || was_closed;
            let followed = TrackedDocument {
                server: self.key_of(path)?,
                used,
                stamp,
                base_text: base.map_or_else(|| Arc::clone(&text), Into::into),
                text,
                base: None,
                changed,
                is_new: true,
            };
            state.documents.insert(path.to_path_buf(), followed);
            return changed.then_some(CHANGED);
        };
        followed.stamp = stamp;
        if followed.text == text {
            return None;
        }
        if !followed.changed {
            followed.base_text = Arc::clone(&followed.text);
        }
        (followed.text, followed.used, followed.changed) = (text, used, true);
        Some(CHANGED)
    }

    /// Opens documents and sends changes to the running servers. A document that was just read or
    /// changed starts its server, or keeps it running.
    fn send_changes(
        &self,
        state: &mut DiagnosticsState,
        changed: &BTreeMap<PathBuf, u32>,
    ) -> Vec<ReadyServer> {
        let mut ready: Vec<ReadyServer> = Vec::new();
        let mut by_server: BTreeMap<ServerKey, Vec<(u64, PathBuf)>> = BTreeMap::new();
        for (path, followed) in &mut state.documents {
            let is_needed = std::mem::take(&mut followed.is_new) || changed.contains_key(path);
            if is_needed && self.server(path).is_err() {
                continue;
            }
            let of_server = by_server.entry(followed.server.clone()).or_default();
            of_server.push((followed.used, path.clone()));
        }
        let watched: Vec<(PathBuf, u32)> = changed
            .iter()
            .take(MAX_WATCHED)
            .map(|(path, kind)| (path.clone(), *kind))
            .collect();
        for (key, mut paths) in by_server {
            let Some(server) = self.known(&key) else {
                continue;
            };
            let LanguageServerState::Ready(client) = server.state() else {
                server.open_once_ready(state.before_changes(&server, &paths));
                continue;
            };
            paths.sort_unstable();
            let surplus = paths.len().saturating_sub(MAX_OPEN);
            for (_, path) in paths.drain(..surplus) {
                let _ = client.close(&path);
                if let Some(followed) = state.documents.remove(&path) {
                    state.closed.insert(path, followed.stamp);
                }
            }
            for (_, path) in &paths {
                let Some(followed) = state.documents.get(path) else {
                    continue;
                };
                let language = server.entry.language(path).unwrap_or_default();
                // If the server died in the meantime, it is restarted with its documents.
                let _ = client.set_text(path, language, &followed.text);
            }
            for (path, kind) in &watched {
                if *kind == DELETED {
                    let _ = client.close(path);
                }
            }
            let _ = client.files_changed(&watched);
            ready.push(ReadyServer { key, client });
        }
        ready
    }

    /// Waits until servers have finished their analysis.
    async fn wait(
        &self,
        state: &mut DiagnosticsState,
        clients: &[ReadyServer],
        changed: &BTreeMap<PathBuf, u32>,
        until: Instant,
    ) {
        let is_files = changed.values().any(|kind| *kind != CHANGED);
        let files_until = Instant::now() + NEW_FILES;
        for server in clients {
            let was_unsettled =
                state.unsettled.contains(&server.key) || server.client.has_newer_diagnostics();
            if changed.is_empty() && !was_unsettled {
                // These results are the baseline for later problems; no call waits for them.
                if let Some(known) = self.known(&server.key) {
                    known.request_missing_diagnostics(&server.client);
                }
                continue;
            }
            // Late results are collected, with only a short wait.
            let until = if changed.is_empty() {
                Instant::now() + LATE
            } else {
                until
            };
            let waiting = state.documents.iter();
            let waiting = waiting.filter(|(_, one)| one.changed && one.server == server.key);
            let waiting: Vec<PathBuf> = waiting.map(|(path, _)| path.clone()).collect();
            let mut is_settled = server.client.wait_for_diagnostics(&waiting, until).await;
            if is_settled && is_files && server.client.uses_pull() {
                // Servers notice new and removed files a little later.
                tokio::time::sleep_until(files_until.min(until)).await;
                is_settled = server.client.wait_for_diagnostics(&waiting, until).await;
            }
            if is_settled {
                state.unsettled.remove(&server.key);
            } else {
                state.unsettled.insert(server.key.clone());
            }
        }
    }
}

/// The kinds of file changes in the protocol.
pub(super) const CREATED: u32 = 1;
pub(super) const CHANGED: u32 = 2;
pub(super) const DELETED: u32 = 3;

/// A server that is ready for requests.
struct ReadyServer {
    key: ServerKey,
    client: LspClient,
}

impl DiagnosticsState {
    /// Returns the documents of a server with their texts before the changes. The server opens
    /// these texts first.
    fn before_changes(&self, server: &LanguageServer, paths: &[(u64, PathBuf)]) -> OpenDocuments {
        let known = paths.iter().rev().take(MAX_OPEN);
        known
            .filter_map(|(_, path)| {
                let language = server.entry.language(path)?.to_owned();
                let text = Arc::clone(&self.documents.get(path)?.base_text);
                Some((path.clone(), language, text))
            })
            .collect()
    }

    /// Returns the new problems in the documents of servers that have finished.
    fn new_diagnostics(
        &mut self,
        clients: &[ReadyServer],
        reported: DiagnosticsFilter,
    ) -> ProblemReport {
        let mut report = ProblemReport::default();
        for server in clients {
            if self.unsettled.contains(&server.key) {
                continue;
            }
            for (path, document) in server.client.documents() {
                let Some(followed) = self.documents.get_mut(&path) else {
                    continue;
                };
                if document.report.version.is_none() || document.text != followed.text {
                    continue;
                }
                let DiagnosticsDiff {
                    new,
                    resolved: gone,
                } = compare(
                    &DiagnosticsPair {
                        old_text: &followed.base_text,
                        old: followed.base.as_deref(),
                        new_text: &followed.text,
                        new: &document.report.problems,
                    },
                    reported,
                );
                report.resolved += gone;
                if !new.is_empty() {
                    let encoding = server.client.encoding();
                    let new = new.into_iter().map(|problem| {
                        let place = encoding.from_server(&followed.text, problem.range.start);
                        (place.line, place.character, problem)
                    });
                    report.servers.insert(server.key.0.clone());
                    report.files.push(ReportedFile {
                        path: path.clone(),
                        edited: followed.changed,
                        problems: new.collect(),
                    });
                }
                followed.base_text = Arc::clone(&followed.text);
                followed.base = Some(document.report.problems);
                followed.changed = false;
            }
        }
        report
    }
}
