//! Reads typed lines, and asks about trust before the session starts.

use std::{
    io::{self, BufRead, IsTerminal},
    thread,
    time::Instant,
};

use haft_host::{ResolvedSettings, SessionConfig, accept_trust, auto_mode, trust_report};
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
    let Some(lines) = start_messages::trust_lines(&report) else {
        return Ok(());
    };
    if ask(lines, || start_messages::trust_contents(&report), typed).await? {
        accept_trust(config)?;
    }
    Ok(())
}

/// If the settings contain sentences that haft cannot enforce in the mode `auto`, asks whether to use
/// the mode nevertheless. Without an answer, it is not used.
pub(super) async fn ask_about_sentences(
    config: &SessionConfig,
    typed: &mut mpsc::UnboundedReceiver<TypedLine>,
) -> anyhow::Result<()> {
    let resolved = ResolvedSettings::load(config)?;
    let sentences = auto_mode::sentences_to_accept(config, &resolved);
    if sentences.is_empty() {
        return Ok(());
    }
    let shown = || start_messages::sentence_lines(&sentences);
    let mut lines = vec!["use the mode auto? haft cannot enforce autoMode.hard_deny:".to_owned()];
    lines.extend(shown());
    lines.push("1 yes, use auto without these sentences".to_owned());
    lines.push("2 no, use default".to_owned());
    lines.push("3 show them again".to_owned());
    if ask(lines, shown, typed).await? {
        auto_mode::accept_sentences(&resolved, &sentences)?;
    }
    Ok(())
}

/// Asks a question with three choices before the session starts: yes, no, and show the contents.
/// Returns whether the answer is yes. The end of the input is no.
async fn ask(
    mut lines: Vec<String>,
    contents: impl Fn() -> Vec<String>,
    typed: &mut mpsc::UnboundedReceiver<TypedLine>,
) -> anyhow::Result<bool> {
    loop {
        for line in &lines {
            show::line(&format!("question: {line}"))?;
        }
        show::part("question: number and Enter: ")?;
        let shown_at = Instant::now();
        let Some(line) = typed.recv().await else {
            show::line("")?;
            return Ok(false);
        };
        match line.text.trim() {
            _ if line.read_at < shown_at + READING => {
                lines = vec!["that was typed before you could read the question".to_owned()];
            }
            "1" => return Ok(true),
            "2" => return Ok(false),
            "3" => lines = contents(),
            _ => lines = vec!["type a number from 1 to 3".to_owned()],
        }
    }
}
