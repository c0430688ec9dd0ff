//! `haft exec`: calls on stdin, answers on stdout, one line each, in order.
//!
//! - `documents`, `stdin`: what comes in; `request`: what it asks for; `answer`: what goes out
//! - `interactive`: what else may go in and out, where the other end asked for it

pub(crate) mod answer;
mod documents;
mod interactive;
mod request;
pub(crate) mod stdin;

use std::sync::Arc;

use haft::{CallResult, CancellationToken, Haft, ToolUse};
use serde_json::Value;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use self::{
    documents::Documents,
    interactive::Dialog,
    request::Request,
    stdin::{InputLine, Lines},
};
use crate::{
    args::{ExecFlags, SessionArgs},
    exit::Exit,
    session, show,
};

pub(crate) async fn run(args: SessionArgs, flags: ExecFlags) -> anyhow::Result<Exit> {
    let documents = Documents::new(Lines::of_stdin());
    if !flags.interactive_json {
        let haft = session::tools(&args).await?;
        return serve_all(haft, Input::OnDemand(documents), None).await;
    }
    let dialog = Arc::new(Dialog::default());
    let (progress, updates) = interactive::progress();
    let haft = session::asking(&args, interactive::ByLines(Arc::clone(&dialog)), progress).await?;
    tokio::spawn(interactive::report(updates, Arc::clone(&dialog)));
    let input = Input::Beside(read_beside(documents, Arc::clone(&dialog)));
    serve_all(haft, input, Some(&dialog)).await
}

/// Where requests come from.
enum Input {
    /// Read when the one before is answered, so that a person can be asked on the same terminal.
    OnDemand(Documents),
    /// Read at any time.
    Beside(mpsc::UnboundedReceiver<InputLine>),
}

impl Input {
    async fn next(&mut self) -> Option<InputLine> {
        match self {
            Self::OnDemand(documents) => documents.next().await,
            Self::Beside(lines) => lines.recv().await,
        }
    }
}

/// Reads at any time: what is no request is heard at once.
fn read_beside(
    mut documents: Documents,
    dialog: Arc<Dialog>,
) -> mpsc::UnboundedReceiver<InputLine> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(line) = documents.next().await {
            if let InputLine::Text(text) = &line
                && let Some(word) = request::word(text)
            {
                if let Err(problem) = dialog.hear(&word) {
                    show::warn(&format!("haft: {}", show::clean(&problem)));
                }
                continue;
            }
            if sender.send(line).is_err() {
                return;
            }
        }
        dialog.close();
    });
    receiver
}

async fn serve_all(
    mut haft: Haft,
    mut input: Input,
    dialog: Option<&Arc<Dialog>>,
) -> anyhow::Result<Exit> {
    let cancel = haft.session_token();
    let mut ended_by = signals(cancel.clone())?;
    loop {
        let line = tokio::select! {
            line = input.next() => line,
            () = cancel.cancelled() => break,
        };
        let answer = match line {
            None => return Ok(Exit::Success),
            Some(InputLine::Text(text)) if text.trim_ascii().is_empty() => continue,
            Some(InputLine::Text(text)) => serve(&mut haft, &text, dialog).await,
            Some(InputLine::TooLong { bytes }) => answer::refusal(
                &Value::Null,
                &Value::Null,
                &format!(
                    "the line is {bytes} bytes long; at most {} are taken. Send less in one call.",
                    stdin::LONGEST
                ),
            ),
            Some(InputLine::Failed(error)) => return Err(error.into()),
        };
        show::json(&answer.to_string())?;
        if cancel.is_cancelled() {
            break;
        }
    }
    Ok(ended_by.try_recv().unwrap_or(Exit::Interrupted))
}

/// Answers one line, whatever it says.
async fn serve(haft: &mut Haft, line: &[u8], dialog: Option<&Arc<Dialog>>) -> Value {
    match request::read(line) {
        Ok(Request::Call { id, call }) => {
            let results = carry_out(haft, &[call], Some(&id), dialog).await;
            answer::native(&id, &results[0])
        }
        Ok(Request::Message(messages)) => {
            let results = carry_out(haft, messages.calls(), None, dialog).await;
            messages.answer(&results)
        }
        Err(problem) => answer::refusal(&problem.id, &problem.name, &problem.text),
    }
}

/// Runs calls; with a dialog they can be cancelled, and what they report has their ids.
async fn carry_out(
    haft: &mut Haft,
    calls: &[ToolUse],
    id: Option<&Value>,
    dialog: Option<&Arc<Dialog>>,
) -> Vec<CallResult> {
    let mut turn = haft.turn().await;
    if let Some(dialog) = dialog {
        turn.witnessed_by(dialog.observer());
    }
    for call in calls {
        let (text, cancel) = (call.id.clone(), turn.push(call.clone()));
        if let Some(dialog) = dialog {
            let shown = id.cloned().unwrap_or_else(|| Value::String(text.clone()));
            dialog.begins(text, shown, cancel);
        }
    }
    let mut results = Vec::new();
    while let Some(finished) = turn.next().await {
        if let Some(dialog) = dialog {
            dialog.is_over(&finished.id);
        }
        results.push(finished);
    }
    results
}

/// SIGINT and SIGTERM cancel what runs; which one came first decides how we end.
fn signals(cancel: CancellationToken) -> anyhow::Result<mpsc::Receiver<Exit>> {
    let (sender, receiver) = mpsc::channel(1);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        };
        let _ = sender.try_send(exit);
        cancel.cancel();
    });
    Ok(receiver)
}
