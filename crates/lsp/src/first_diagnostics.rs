//! Waits until a server has analysed a document that is new to it.

use std::{path::Path, sync::atomic::Ordering, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{LspClient, TextPosition, uri};

/// The time after which a silent server has no diagnostics to report, if it has answered a request
/// about the document and is not busy. On a loaded machine, a server with diagnostics may need
/// almost as long for its first message.
const QUIET: Duration = Duration::from_secs(5);

impl LspClient {
    /// Waits until the server has analysed a document that was just opened, at most until the
    /// deadline: it has pushed diagnostics, or it has answered a request about the document and is
    /// then silent. If an earlier document showed that the server pushes no diagnostics, the answer
    /// alone suffices.
    pub async fn wait_for_first_diagnostics(&self, path: &Path, until: Instant) {
        let changed = [path.to_path_buf()];
        tokio::select! {
            _ = self.wait_for_diagnostics(&changed, until) => {}
            () = self.wait_until_quiet(path, until) => {}
        }
    }

    /// Waits until the server has answered and is silent.
    async fn wait_until_quiet(&self, path: &Path, until: Instant) {
        if self.uses_pull() {
            // `wait_for_diagnostics` waits for pulled diagnostics.
            return std::future::pending().await;
        }
        // The request may fail or time out; that is sufficient as well.
        let _ = timeout_at(until, self.ask_about(path)).await;
        let mut since = Instant::now();
        loop {
            let news = self.state.news_arrived.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let (said, has_told) = self.state.last_message();
            since = said.map_or(since, |said| said.max(since));
            let is_known = self.state.pushes_nothing.load(Ordering::Relaxed) && !has_told;
            let rest = if is_known { since } else { since + QUIET };
            if self.current_work().is_some() || self.uses_pull() {
                // Checked again after the next message: the work may have ended by then. If pull
                // diagnostics are used, `wait_for_diagnostics` ends the wait.
                news.await;
                since = Instant::now();
                continue;
            }
            if rest <= Instant::now() {
                self.state
                    .pushes_nothing
                    .store(!has_told, Ordering::Relaxed);
                return;
            }
            sleep_until(rest).await;
        }
    }

    /// Sends a cheap request about a document and waits for the answer, whose content is ignored.
    async fn ask_about(&self, path: &Path) {
        const WITHIN: Duration = Duration::from_secs(60);
        let (method, params) = if self.supports("documentSymbolProvider") {
            let document = json!({"textDocument": {"uri": uri::from_path(path)}});
            ("textDocument/documentSymbol", document)
        } else if self.supports("hoverProvider") {
            let start = TextPosition {
                line: 1,
                character: 1,
            };
            ("textDocument/hover", self.position_params(path, start))
        } else {
            return;
        };
        // After any answer, the server has read everything that was sent before.
        let _ = self.request(method, params, WITHIN).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, duplex};

    use super::*;
    use crate::{LspOptions, wire};

    /// What a server does after it was given a document.
    #[derive(Clone, Copy)]
    enum Habit {
        /// It answers questions after this long, and never says what is wrong with a document.
        Silent { answers_after: Duration },
        /// The same, but after this long it is busy for as long again.
        Busy(Duration),
        /// It answers at once, and says what is wrong this long after.
        Tells(Duration),
        /// It answers nothing about documents.
        Deaf,
    }

    async fn serve(stream: tokio::io::DuplexStream, habit: Habit) {
        let (input, mut output) = tokio::io::split(stream);
        let mut input = BufReader::new(input);
        while let Ok(Some(message)) = wire::read(&mut input).await {
            let method = message["method"].as_str().unwrap_or_default();
            let mut said = Vec::new();
            let answer =
                |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let tell = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
            match (method, habit) {
                ("initialize", _) => {
                    said.push(answer(
                        json!({"capabilities": {"documentSymbolProvider": true}}),
                    ));
                }
                ("textDocument/documentSymbol", Habit::Silent { answers_after }) => {
                    tokio::time::sleep(answers_after).await;
                    said.push(answer(json!([])));
                }
                ("textDocument/documentSymbol", Habit::Tells(_) | Habit::Busy(_)) => {
                    said.push(answer(json!([])));
                }
                ("textDocument/didOpen", Habit::Tells(after)) => {
                    tokio::time::sleep(after).await;
                    let uri = &message["params"]["textDocument"]["uri"];
                    let report = json!({"uri": uri, "diagnostics": []});
                    said.push(tell("textDocument/publishDiagnostics", report));
                }
                ("textDocument/didOpen", Habit::Busy(after)) => {
                    tokio::time::sleep(after).await;
                    let begin =
                        json!({"token": 1, "value": {"kind": "begin", "title": "Indexing"}});
                    let begin = wire::frame(&tell("$/progress", begin));
                    output.write_all(&begin).await.unwrap();
                    tokio::time::sleep(after).await;
                    let end = json!({"token": 1, "value": {"kind": "end"}});
                    said.push(tell("$/progress", end));
                }
                _ => {}
            }
            for message in said {
                output.write_all(&wire::frame(&message)).await.unwrap();
            }
        }
        // Nothing more is sent.
        let _ = input.read_u8().await;
    }

    /// How long it is waited, at most 25 s, for the first look at each of two documents.
    async fn looks(habit: Habit) -> [Duration; 2] {
        let (ours, theirs) = duplex(1 << 16);
        let serving = tokio::spawn(serve(theirs, habit));
        let (input, output) = tokio::io::split(ours);
        let options = LspOptions {
            root: "/".into(),
            initialization: Value::Null,
            settings: Value::Null,
            startup: Duration::from_secs(10),
        };
        let client = LspClient::start(input, output, options).await.unwrap();
        let mut took = [Duration::ZERO; 2];
        for (name, took) in ["/a", "/b"].into_iter().zip(&mut took) {
            client.set_text(Path::new(name), "x", "text").unwrap();
            let began = Instant::now();
            client
                .wait_for_first_diagnostics(Path::new(name), began + Duration::from_secs(25))
                .await;
            *took = began.elapsed();
        }
        serving.abort();
        took
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_says_what_is_wrong_is_not_waited_for() {
        let second = Duration::from_secs(1);
        let [first, next] = looks(Habit::Silent {
            answers_after: 2 * second,
        })
        .await;
        assert!(first >= 7 * second && first < 8 * second, "{first:?}");
        assert!(next >= 2 * second && next < 3 * second, "{next:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_it_late_is_waited_for() {
        let second = Duration::from_secs(1);
        for late in [second, 4 * second] {
            for took in looks(Habit::Tells(late)).await {
                assert!(took >= late && took < late + second, "{late:?}: {took:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_busy_is_waited_for() {
        let second = Duration::from_secs(1);
        let [first, _] = looks(Habit::Busy(7 * second / 2)).await;
        assert!(first >= 12 * second && first < 13 * second, "{first:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_nothing_is_given_all_the_time() {
        let whole = Duration::from_secs(25);
        for took in looks(Habit::Deaf).await {
            assert!(
                took >= whole && took < whole + Duration::from_secs(1),
                "{took:?}"
            );
        }
    }
}
