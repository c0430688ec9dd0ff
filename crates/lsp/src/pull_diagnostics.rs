//! Pulls diagnostics from servers that support it. This is faster than waiting for pushed
//! diagnostics: most servers wait 200 to 300 ms after a change before they analyse it, in case the
//! user continues typing.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{
    LspClient, LspDocument,
    client::{DocumentTable, SILENCE},
    report::DocumentReport,
    types::{Diagnostic, diagnostics},
    uri,
};

/// The maximum number of repeated pulls for a server that reports new diagnostics each time.
const MAX_REFRESHES: usize = 5;
/// The time limit for all answers of one round.
const ROUND: Duration = Duration::from_secs(60);
/// The command with which typescript-language-server forwards a request to tsserver.
pub(crate) const TSSERVER: &str = "typescript.tsserverRequest";

/// A method to pull diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullMethod {
    /// The request `textDocument/diagnostic`.
    Protocol,
    /// Requests to tsserver through typescript-language-server, which supports no other way.
    TsServer,
}

/// The requested and the finished rounds; a round pulls the diagnostics of all documents.
#[derive(Debug, Default)]
pub(crate) struct PullRounds {
    /// The number of requests for a round.
    wanted: u64,
    /// The last of these requests that was fulfilled.
    done: u64,
    /// True if the last round got all answers, for the current texts.
    was_complete: bool,
    is_running: bool,
    /// The files that were changed before the next round.
    changed: BTreeSet<PathBuf>,
}

impl PullMethod {
    /// Returns the method that a server with these capabilities offers.
    pub(crate) fn detect(capabilities: &Value) -> Option<Self> {
        if !matches!(
            capabilities["diagnosticProvider"],
            Value::Null | Value::Bool(false)
        ) {
            return Some(Self::Protocol);
        }
        let commands = capabilities["executeCommandProvider"]["commands"].as_array();
        let mut commands = commands.into_iter().flatten();
        commands
            .any(|command| command == TSSERVER)
            .then_some(Self::TsServer)
    }
}

impl LspClient {
    /// Pulls until the diagnostics are those of the current texts and the server has finished.
    pub(crate) async fn wait_for_pulled_diagnostics(
        &self,
        method: PullMethod,
        changed: &[PathBuf],
        until: Instant,
    ) -> bool {
        let began = Instant::now();
        let mut refreshes_left = MAX_REFRESHES;
        loop {
            let news = self.state.news_arrived.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let refreshes = self.state.refreshes.load(Ordering::Relaxed);
            // Recorded before, because some servers report progress for the request itself.
            let was_busy = self.current_work().is_some();
            if !self.pull_until(method, changed, until).await {
                return false;
            }
            if refreshes != self.state.refreshes.load(Ordering::Relaxed) && refreshes_left > 0 {
                refreshes_left -= 1;
                continue;
            }
            let mut wait_until = until;
            // An answer that was given while the server works may not be final.
            if !was_busy {
                // For example, a compiler that runs after a save starts only a little later.
                let Some(rest) = self.state.quiet_time(began + SILENCE) else {
                    return true;
                };
                if self.current_work().is_none() {
                    if rest <= Instant::now() {
                        return true;
                    }
                    wait_until = rest.min(until);
                }
            }
            tokio::select! {
                waited = timeout_at(wait_until, news) => if waited.is_err() && wait_until >= until {
                    return false;
                },
                () = self.closed() => return false,
            }
        }
    }

    /// Waits for a round that starts from now on. The round continues if the caller stops waiting,
    /// because some servers cannot cope with requests that are cancelled and repeated many times.
    async fn pull_until(&self, method: PullMethod, changed: &[PathBuf], until: Instant) -> bool {
        let round = {
            let mut rounds = self.state.pull_rounds();
            rounds.wanted += 1;
            rounds.changed.extend(changed.iter().cloned());
            if !std::mem::replace(&mut rounds.is_running, true) {
                let client = self.clone();
                tokio::spawn(async move { client.pull_rounds(method).await });
            }
            rounds.wanted
        };
        loop {
            let news = self.state.news_arrived.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let rounds = self.state.pull_rounds();
                if rounds.done >= round {
                    return rounds.was_complete;
                }
            }
            tokio::select! {
                waited = timeout_at(until, news) => if waited.is_err() {
                    return false;
                },
                () = self.closed() => return false,
            }
        }
    }

    /// Runs rounds as long as newer diagnostics are requested than the last round returned.
    async fn pull_rounds(&self, method: PullMethod) {
        loop {
            let (round, changed) = {
                let mut rounds = self.state.pull_rounds();
                (rounds.wanted, std::mem::take(&mut rounds.changed))
            };
            let was_whole = self.pull(method, &changed, Instant::now() + ROUND).await;
            let is_last = {
                let mut rounds = self.state.pull_rounds();
                (rounds.done, rounds.was_complete) = (round, was_whole);
                rounds.is_running = rounds.wanted > round;
                !rounds.is_running
            };
            self.state.news_arrived.notify_waiters();
            if is_last {
                return;
            }
        }
    }

    /// Pulls the diagnostics of every open document. Returns whether all answers arrived and are
    /// for the current texts.
    async fn pull(&self, method: PullMethod, changed: &BTreeSet<PathBuf>, until: Instant) -> bool {
        let mut open: Vec<(PathBuf, LspDocument)> = self.documents();
        // Changed documents first, because there may not be enough time for all.
        open.sort_by_key(|(path, _)| !changed.contains(path));
        let mut is_whole = true;
        let began = Instant::now();
        for (path, asked) in open {
            let found = match method {
                PullMethod::Protocol => self.pull_document(&path, until).await,
                PullMethod::TsServer => {
                    let with_hints = changed.contains(&path);
                    self.pull_document_from_tsserver(&path, with_hints, until)
                        .await
                }
            };
            let Some(found) = found else {
                return false;
            };
            let mut documents = self.state.documents();
            let DocumentTable {
                open,
                pulled_sources,
                ..
            } = &mut *documents;
            match open.get_mut(&path) {
                Some(document) if document.version == asked.version => {
                    pulled_sources.extend(found.iter().map(|one| one.source.clone()));
                    document.sources.pull(found);
                    document.report = DocumentReport {
                        problems: document.sources.all(pulled_sources),
                        version: Some(document.version),
                    };
                }
                Some(_) => is_whole = false,
                None => {}
            }
        }
        if is_whole {
            self.state.documents().pulled_at = Some(began);
        }
        is_whole
    }

    async fn pull_document(&self, path: &Path, until: Instant) -> Option<Vec<Diagnostic>> {
        let params = json!({"textDocument": {"uri": uri::from_path(path)}});
        let answer = self.request_until("textDocument/diagnostic", params, until);
        Some(diagnostics(answer.await?.get("items")))
    }

    /// Sends the three requests that make up tsserver's own check of a file. Hints cost as much as
    /// the other two together.
    async fn pull_document_from_tsserver(
        &self,
        path: &Path,
        with_hints: bool,
        until: Instant,
    ) -> Option<Vec<Diagnostic>> {
        let questions = [
            "syntacticDiagnosticsSync",
            "semanticDiagnosticsSync",
            "suggestionDiagnosticsSync",
        ];
        let mut found = Vec::new();
        for question in &questions[..if with_hints { 3 } else { 2 }] {
            let params = json!({
                "command": TSSERVER,
                "arguments": [question, {"file": uri::from_path(path)}],
            });
            let answer = self.request_until("workspace/executeCommand", params, until);
            let answer = answer.await?;
            // Without a body, tsserver could not check the file.
            let body = answer.get("body")?.as_array()?;
            let ignored = &self.state.settings["diagnostics"]["ignoredCodes"];
            let ignored = ignored.as_array().map(Vec::as_slice).unwrap_or_default();
            let counts = |one: &&Value| !ignored.contains(&one["code"]);
            let body = body.iter().filter(counts).map(from_tsserver).collect();
            found.extend(diagnostics(Some(&Value::Array(body))));
        }
        Some(found)
    }

    async fn request_until(&self, method: &str, params: Value, until: Instant) -> Option<Value> {
        let left = until.saturating_duration_since(Instant::now());
        self.request(method, params, left).await.ok()
    }
}

/// Converts a diagnostic of tsserver to the format of the protocol.
fn from_tsserver(problem: &Value) -> Value {
    // tsserver numbers lines and columns from 1, in UTF-16 units.
    let place = |end: &str| {
        let from_zero = |field: &str| {
            let number = problem[end][field].as_u64();
            number.unwrap_or(1).saturating_sub(1)
        };
        json!({"line": from_zero("line"), "character": from_zero("offset")})
    };
    let tags = [("reportsUnnecessary", 1), ("reportsDeprecated", 2)];
    let tags = tags
        .into_iter()
        .filter(|(field, _)| problem[*field] == true);
    json!({
        "range": {"start": place("start"), "end": place("end")},
        "severity": match problem["category"].as_str() {
            Some("warning") => 2,
            Some("suggestion") => 4,
            Some("message") => 3,
            _ => 1,
        },
        "code": problem["code"],
        "source": problem["source"].as_str().unwrap_or("typescript"),
        "message": problem["text"],
        "tags": tags.map(|(_, tag)| tag).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_offers_says_how_it_is_asked() {
        let tsserver = json!({"executeCommandProvider": {"commands": ["a", TSSERVER]}});
        let cases = [
            ("nothing", json!({}), None),
            ("switched off", json!({"diagnosticProvider": false}), None),
            (
                "the protocol's way",
                json!({"diagnosticProvider": {"interFileDependencies": true}}),
                Some(PullMethod::Protocol),
            ),
            ("tsserver", tsserver, Some(PullMethod::TsServer)),
            (
                "other commands",
                json!({"executeCommandProvider": {"commands": ["a"]}}),
                None,
            ),
        ];
        for (what, capabilities, expected) in cases {
            assert_eq!(PullMethod::detect(&capabilities), expected, "{what}");
        }
    }

    #[test]
    fn a_problem_of_tsserver_is_one_of_the_protocol() {
        let said = json!({
            "start": {"line": 2, "offset": 7}, "end": {"line": 2, "offset": 9},
            "text": "Unused", "code": 6133, "category": "suggestion", "reportsUnnecessary": true,
        });
        let found = diagnostics(Some(&json!([from_tsserver(&said)]))).remove(0);
        assert_eq!(found.range.start.line, 1);
        assert_eq!(found.range.start.character, 6);
        assert_eq!((found.severity, found.tags), (Some(4), vec![1]));
        assert_eq!(found.source.as_deref(), Some("typescript"));
    }
}
