//! After the calls of a reply: servers get what was changed, and what that broke is reported, once.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_contract::{BoxFuture, FollowCalls, Services};
use haft_journal::Journal;
use haft_lsp::{LspClient, types::Diagnostic};
use tokio::time::Instant;

use super::{
    problems::{Comparison, Difference, compare},
    server::ServerState,
    servers::{LanguageServers, text_of},
    setup::Reported,
};
use crate::{blocking::blocking, paths::shown, words::counted};

/// How long servers are waited for after edits, all together.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long after a change new problems are taken for its consequences.
const AFTERMATH: Duration = Duration::from_secs(60);
/// How many documents are open in a server.
const MOST_OPEN: usize = 50;
/// How many problems are told, and how many of a file that was not edited.
const MOST_TOLD: usize = 20;
const MOST_ELSEWHERE: usize = 5;
/// How many characters of each.
const MOST_CHARACTERS: usize = 300;

/// What is known of the files that the session has read or changed.
#[derive(Default)]
pub(crate) struct FollowState {
    documents: HashMap<PathBuf, Followed>,
    /// Roots of servers that had not come to rest when they were last looked at.
    unsettled: BTreeSet<(String, PathBuf)>,
    /// When a file last changed: what servers find long after that is not the edits'.
    changed_at: Option<Instant>,
}

struct Followed {
    stamp: FileStamp,
    text: Arc<str>,
    /// The text and the problems that later ones are compared with.
    base_text: Arc<str>,
    base: Option<Arc<[Diagnostic]>>,
    /// It was changed, and no one knows yet what came of it.
    changed: bool,
}

/// Tells whether a file is still the same.
type FileStamp = (u64, u64, u64, i64, i64);

/// What a file is now.
enum Looked {
    Same,
    Text(FileStamp, String),
    Gone,
}

impl FollowCalls for LanguageServers {
    fn after_calls<'a>(&'a self, services: &'a Services) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.report(services))
    }
}

impl LanguageServers {
    /// Gives servers what changed since the last time, and says what that broke.
    async fn report(&self, services: &Services) -> Option<String> {
        let reported = self.setup.reported();
        if self.setup.is_off() || !self.setup.trusted || reported == Reported::Nothing {
            return None;
        }
        let journal = services.get::<Journal>().ok()?;
        let mut state = self.follow.lock().await;
        // Where no server is installed, files are not even looked at.
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
            self.note_settled(&mut state);
        }
        let changed = state.refresh(paths).await;
        if !changed.is_empty() {
            state.changed_at = Some(Instant::now());
        }
        let clients = self.give(&mut state, &changed);
        self.wait(&mut state, &clients, &changed).await;
        let told = state.news(&clients, reported);
        told.text(&self.setup.workspace)
    }

    /// Takes what servers know of documents that did not change as what later problems are compared with.
    fn note_settled(&self, state: &mut FollowState) {
        for server in self.started() {
            let ServerState::Ready(client) = server.state() else {
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

    /// Opens documents and passes changes on to the servers that run; those that do not are started.
    fn give(&self, state: &mut FollowState, changed: &BTreeMap<PathBuf, u32>) -> Vec<ReadyServer> {
        let mut ready: Vec<ReadyServer> = Vec::new();
        for (path, followed) in &state.documents {
            let Ok(server) = self.server(path) else {
                continue;
            };
            let key = (server.entry.name.clone(), server.root.clone());
            let ServerState::Ready(client) = server.state() else {
                continue;
            };
            let Some(language) = server.entry.language(path) else {
                continue;
            };
            // A server that died meanwhile is started again, with its documents.
            let _ = client.set_text(path, language, &followed.text);
            let at = match ready.iter().position(|one| one.key == key) {
                Some(at) => at,
                None => {
                    ready.push(ReadyServer {
                        key,
                        client,
                        changed: Vec::new(),
                    });
                    ready.len() - 1
                }
            };
            if changed.contains_key(path) {
                ready[at].changed.push(path.clone());
            }
        }
        let all: Vec<(PathBuf, u32)> = changed
            .iter()
            .map(|(path, kind)| (path.clone(), *kind))
            .collect();
        for server in &ready {
            let _ = server.client.files_changed(&all);
            let open = server.client.documents();
            for (path, _) in open.iter().take(open.len().saturating_sub(MOST_OPEN)) {
                let _ = server.client.close(path);
                state.documents.remove(path);
            }
            for (path, kind) in &all {
                if *kind == DELETED {
                    let _ = server.client.close(path);
                }
            }
        }
        ready
    }

    /// Waits until servers have come to rest.
    async fn wait(
        &self,
        state: &mut FollowState,
        clients: &[ReadyServer],
        changed: &BTreeMap<PathBuf, u32>,
    ) {
        let until = Instant::now() + PATIENCE;
        for server in clients {
            let was_unsettled = state.unsettled.contains(&server.key);
            if changed.is_empty() && !was_unsettled {
                continue;
            }
            // What came late is looked at, not waited for.
            let until = if changed.is_empty() {
                Instant::now()
            } else {
                until
            };
            let waiting = state.documents.iter().filter(|(_, one)| one.changed);
            let waiting: Vec<PathBuf> = waiting.map(|(path, _)| path.clone()).collect();
            if server.client.settled(&waiting, until).await {
                state.unsettled.remove(&server.key);
            } else {
                state.unsettled.insert(server.key.clone());
            }
        }
    }
}

/// As the protocol counts; 1 is a new one.
const CHANGED: u32 = 2;
const DELETED: u32 = 3;

/// A server that can be asked.
struct ReadyServer {
    key: (String, PathBuf),
    client: LspClient,
    /// Those of its documents that changed just now.
    changed: Vec<PathBuf>,
}

impl FollowState {
    /// Looks at files, and takes note of those that changed: created, changed or deleted ones.
    async fn refresh(&mut self, paths: BTreeSet<PathBuf>) -> BTreeMap<PathBuf, u32> {
        let known: Vec<(PathBuf, Option<FileStamp>)> = paths
            .into_iter()
            .map(|path| {
                let stamp = self.documents.get(&path).map(|one| one.stamp);
                (path, stamp)
            })
            .collect();
        let looked = blocking(move || {
            let looked = known.into_iter().map(|(path, stamp)| {
                let found = look(&path, stamp);
                (path, found)
            });
            looked.collect::<Vec<_>>()
        });
        let mut changed = BTreeMap::new();
        for (path, found) in looked.await.unwrap_or_default() {
            match (found, self.documents.get_mut(&path)) {
                (Looked::Same, _) => {}
                (Looked::Gone, None) => {}
                (Looked::Gone, Some(_)) => {
                    self.documents.remove(&path);
                    changed.insert(path, DELETED);
                }
                (Looked::Text(stamp, text), Some(followed)) => {
                    followed.stamp = stamp;
                    if *followed.text == *text {
                        continue;
                    }
                    if !followed.changed {
                        followed.base_text = Arc::clone(&followed.text);
                    }
                    followed.text = text.into();
                    followed.changed = true;
                    changed.insert(path, CHANGED);
                }
                (Looked::Text(stamp, text), None) => {
                    let text: Arc<str> = text.into();
                    let followed = Followed {
                        stamp,
                        base_text: Arc::clone(&text),
                        text,
                        base: None,
                        changed: false,
                    };
                    self.documents.insert(path, followed);
                }
            }
        }
        changed
    }

    /// What is new in the documents of servers that came to rest.
    fn news(&mut self, clients: &[ReadyServer], reported: Reported) -> Told {
        let mut told = Told::default();
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
                let Difference { new, gone } = compare(
                    &Comparison {
                        old_text: &followed.base_text,
                        old: followed.base.as_deref(),
                        new_text: &followed.text,
                        new: &document.report.problems,
                    },
                    reported,
                );
                told.gone += gone;
                if !new.is_empty() {
                    let encoding = server.client.encoding();
                    let new = new.into_iter().map(|problem| {
                        let place = encoding.from_server(&followed.text, problem.range.start);
                        (place.line, place.character, problem)
                    });
                    told.servers.insert(server.key.0.clone());
                    told.files.push(ToldFile {
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
        told
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mtime = found.mtime().wrapping_mul(1_000_000_000) + found.mtime_nsec();
    let ctime = found.ctime().wrapping_mul(1_000_000_000) + found.ctime_nsec();
    Some((found.dev(), found.ino(), found.size(), mtime, ctime))
}

fn look(path: &Path, known: Option<FileStamp>) -> Looked {
    match stamp(path) {
        None => Looked::Gone,
        Some(now) if Some(now) == known => Looked::Same,
        Some(now) => match text_of(path) {
            Ok(Some(text)) => Looked::Text(now, text),
            Ok(None) | Err(_) => Looked::Gone,
        },
    }
}

/// What the model is told.
#[derive(Default)]
struct Told {
    servers: BTreeSet<String>,
    files: Vec<ToldFile>,
    gone: usize,
}

struct ToldFile {
    path: PathBuf,
    edited: bool,
    /// Line, character, problem.
    problems: Vec<(usize, usize, Diagnostic)>,
}

impl Told {
    fn text(mut self, cwd: &Path) -> Option<String> {
        if self.files.is_empty() && self.gone == 0 {
            return None;
        }
        self.files
            .sort_by(|a, b| (!a.edited, &a.path).cmp(&(!b.edited, &b.path)));
        let mut lines = Vec::new();
        let mut left_out = 0;
        for file in &self.files {
            let most = if file.edited {
                MOST_TOLD
            } else {
                MOST_ELSEWHERE
            };
            for (at, (line, character, problem)) in file.problems.iter().enumerate() {
                if at >= most || lines.len() >= MOST_TOLD {
                    left_out += 1;
                    continue;
                }
                let name = shown(&file.path, cwd);
                lines.push(format!(
                    "{name}:{line}:{character} {}",
                    super::render::problem(problem, MOST_CHARACTERS)
                ));
            }
        }
        let mut text = "The edits above are in place.".to_owned();
        if !lines.is_empty() {
            let names: Vec<String> = self.servers.into_iter().collect();
            text += &format!(
                " New problems reported by {}:\n{}",
                names.join(", "),
                lines.join("\n")
            );
        }
        if left_out > 0 {
            text += &format!("\n… and {left_out} more.");
        }
        if self.gone > 0 {
            let verb = if self.gone == 1 { "is" } else { "are" };
            let separator = if lines.is_empty() { ' ' } else { '\n' };
            let count = counted(self.gone as u64, "earlier problem");
            text += &format!("{separator}{count} {verb} gone.");
        }
        Some(text)
    }
}
