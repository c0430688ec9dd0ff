//! `haft exec`: calls on stdin, answers on stdout, one line each, in order.

pub(crate) mod answer;
mod request;
pub(crate) mod stdin;

use haft::{CancellationToken, Haft};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use self::{
    request::Request,
    stdin::{InputLine, Lines},
};
use crate::{args::SessionArgs, exit::Exit, session, show};

pub(crate) async fn run(args: SessionArgs) -> anyhow::Result<Exit> {
    let mut haft = session::tools(&args).await?;
    let cancel = haft.cancel_token();
    let mut ended_by = signals(cancel.clone())?;
    let mut lines = Lines::of_stdin();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = cancel.cancelled() => break,
        };
        let answer = match line {
            None => return Ok(Exit::Success),
            Some(InputLine::Text(text)) if text.trim_ascii().is_empty() => continue,
            Some(InputLine::Text(text)) => serve(&mut haft, &text).await,
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
async fn serve(haft: &mut Haft, line: &[u8]) -> Value {
    match request::read(line) {
        Ok(Request::Call { id, call }) => {
            let results = haft.run([call]).await;
            answer::native(&id, &results[0])
        }
        Ok(Request::Message(messages)) => {
            let results = haft.run(messages.calls().iter().cloned()).await;
            messages.answer(&results)
        }
        Err(problem) => answer::refusal(&problem.id, &problem.name, &problem.text),
    }
}

/// SIGINT and SIGTERM cancel what runs; which one came first decides how we end.
fn signals(cancel: CancellationToken) -> anyhow::Result<tokio::sync::mpsc::Receiver<Exit>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
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
