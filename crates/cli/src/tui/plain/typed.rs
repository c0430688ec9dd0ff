//! What is typed, line by line, and the question that comes before a session.

use std::{
    io::{self, BufRead, IsTerminal},
    thread,
    time::Instant,
};

use haft_host::{SessionConfig, accept_trust, trust_report};
use tokio::sync::mpsc;

use super::{READING, first_words};
use crate::show;

/// A line, and when it was read.
pub(super) struct TypedLine {
    pub(super) text: String,
    pub(super) at: Instant,
    /// It is as long as a terminal passes on at most: its end may be missing.
    pub(super) is_cut: bool,
}

/// A terminal that edits lines itself passes on no more bytes of one, its end included.
const LONGEST_LINE: usize = 4096;

/// What is typed, line by line, until the input ends.
pub(super) fn typed_lines() -> mpsc::UnboundedReceiver<TypedLine> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock();
        let is_terminal = io::stdin().is_terminal();
        while matches!(input.read_until(b'\n', &mut bytes), Ok(read) if read > 0) {
            let text = String::from_utf8_lossy(&bytes);
            let line = TypedLine {
                text: text.trim_end_matches(['\n', '\r']).to_owned(),
                at: Instant::now(),
                is_cut: is_terminal && bytes.len() >= LONGEST_LINE,
            };
            bytes.clear();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Asks whether what comes with the folder counts. Without an answer it does not.
pub(super) async fn ask_trust(
    config: &SessionConfig,
    typed: &mut mpsc::UnboundedReceiver<TypedLine>,
) -> anyhow::Result<()> {
    let report = trust_report(config)?;
    let Some(mut lines) = first_words::trust_lines(&report) else {
        return Ok(());
    };
    loop {
        for line in &lines {
            show::line(&format!("question: {line}"))?;
        }
        show::part("question: number and Enter: ")?;
        let shown_at = Instant::now();
        let Some(line) = typed.recv().await else {
            show::line("")?;
            return Ok(());
        };
        match line.text.trim() {
            _ if line.at < shown_at + READING => {
                lines = vec!["that came before you can have read it".to_owned()];
            }
            "1" => {
                accept_trust(config)?;
                return Ok(());
            }
            "2" => return Ok(()),
            "3" => lines = first_words::trust_contents(&report),
            _ => lines = vec!["type a number from 1 to 3".to_owned()],
        }
    }
}
