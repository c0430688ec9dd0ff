//! Reads typed lines, and asks about trust before the session starts.

use std::{
    io::{self, BufRead, IsTerminal},
    thread,
    time::Instant,
};

use haft_host::{SessionConfig, accept_trust, trust_report};
use tokio::sync::mpsc;

use super::{READING, start_messages};
use crate::show;

/// A line and the time at which it was read.
pub(super) struct TypedLine {
    pub(super) text: String,
    pub(super) read_at: Instant,
    /// Whether the line reached the terminal's length limit, so that its end may be missing.
    pub(super) is_cut: bool,
}

/// The maximum line length in bytes, including the line end, that a terminal in line mode delivers.
const MAX_LINE: usize = 4096;

/// Returns a channel that receives the typed lines until the input ends.
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
                read_at: Instant::now(),
                is_cut: is_terminal && bytes.len() >= MAX_LINE,
            };
            bytes.clear();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Asks whether to trust the directory's settings. Without an answer they are ignored.
pub(super) async fn ask_trust(
    config: &SessionConfig,
    typed: &mut mpsc::UnboundedReceiver<TypedLine>,
) -> anyhow::Result<()> {
    let report = trust_report(config)?;
    let Some(mut lines) = start_messages::trust_lines(&report) else {
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
            _ if line.read_at < shown_at + READING => {
                lines = vec!["that was typed before you could read the question".to_owned()];
            }
            "1" => {
                accept_trust(config)?;
                return Ok(());
            }
            "2" => return Ok(()),
            "3" => lines = start_messages::trust_contents(&report),
            _ => lines = vec!["type a number from 1 to 3".to_owned()],
        }
    }
}
