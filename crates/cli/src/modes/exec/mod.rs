//! `haft exec`: runs calls from stdin and answers on stdout, one line each, in order.
//!
//! - `stdin`: reads the input; `request`: parses it
//! - `interactive`: the additional lines in both directions, if the client asked for them

mod interactive;
mod request;
pub(crate) mod stdin;

use std::{io, sync::Arc};

use haft::{CallResult, CancellationToken, Content, Haft, ToolUse};
use haft_host::{StopKind, ToolTelemetry};
use serde_json::{Value, json};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use self::{
    interactive::ExecDialog,
    request::{BadRequest, ExecRequest},
    stdin::{InputLine, JsonDocuments, StdinLines},
};
use crate::{
    args::{ExecFlags, SessionArgs},
    exit::Exit,
    session, show,
};

pub(crate) async fn run(args: SessionArgs, flags: ExecFlags) -> anyhow::Result<Exit> {
    let telemetry = ToolTelemetry::default();
    let exit = serve_input(&args, &flags, &telemetry).await;
    let is_ended = matches!(exit, Ok(Exit::Terminated));
    telemetry
        .close(is_ended.then_some(StopKind::Terminate))
        .await;
    exit
}

async fn serve_input(
    args: &SessionArgs,
    flags: &ExecFlags,
    telemetry: &ToolTelemetry,
) -> anyhow::Result<Exit> {
    let documents = JsonDocuments::new(StdinLines::from_stdin());
    if !flags.interactive_json {
        let haft = session::tools(args, Some(telemetry)).await?;
        return serve_all(haft, ExecInputSource::OnDemand(documents), None).await;
    }
    let dialog = Arc::new(ExecDialog::default());
    let (progress, updates) = interactive::progress();
    let haft = session::asking(
        args,
        interactive::LineApprover(Arc::clone(&dialog)),
        progress,
        telemetry,
    )
    .await?;
    haft::spawn_boxed(interactive::report(updates, Arc::clone(&dialog)));
    let input = ExecInputSource::Channel(spawn_reader(documents, Arc::clone(&dialog)));
    serve_all(haft, input, Some(&dialog)).await
}

/// The source of requests.
enum ExecInputSource {
    /// Reads a line only after the previous one was answered, so that questions can use the same
    /// terminal.
    OnDemand(JsonDocuments),
    /// Reads lines at any time, also while calls run.
    Channel(mpsc::UnboundedReceiver<ExecInput>),
}

/// The next item of the input.
enum ExecInput {
    Request(Result<ExecRequest, Box<BadRequest>>),
    TooLong(u64),
    Failed(io::Error),
}

impl ExecInputSource {
    async fn next(&mut self) -> Option<ExecInput> {
        match self {
            Self::OnDemand(documents) => next_request(documents).await,
            Self::Channel(requests) => requests.recv().await,
        }
    }
}

/// Returns the next request, skipping blank lines.
async fn next_request(documents: &mut JsonDocuments) -> Option<ExecInput> {
    loop {
        return Some(match documents.next().await? {
            InputLine::Text(text) if text.trim_ascii().is_empty() => continue,
            InputLine::Text(text) => ExecInput::Request(request::read(&text)),
            InputLine::TooLong { bytes } => ExecInput::TooLong(bytes),
            InputLine::Failed(error) => ExecInput::Failed(error),
        });
    }
}

/// Reads lines in the background and handles those that are not requests immediately.
fn spawn_reader(
    mut documents: JsonDocuments,
    dialog: Arc<ExecDialog>,
) -> mpsc::UnboundedReceiver<ExecInput> {
    let (sender, receiver) = mpsc::unbounded_channel();
    haft::spawn_boxed(async move {
        while let Some(arrived) = next_request(&mut documents).await {
            match &arrived {
                ExecInput::Request(Ok(ExecRequest::DialogLine(word))) => {
                    if let Err(problem) = dialog.on_line(word)
                        && show::json(&interactive::problem(word, &problem).to_string()).is_err()
                    {
                        break;
                    }
                    continue;
                }
                ExecInput::Request(Ok(ExecRequest::Call { id, call })) => {
                    dialog.register_call(call.id.clone(), id.clone());
                }
                ExecInput::Request(Ok(ExecRequest::Message(messages))) => {
                    for call in messages.calls() {
                        dialog.register_call(call.id.clone(), Value::String(call.id.clone()));
                    }
                }
                _ => {}
            }
            if sender.send(arrived).is_err() {
                return;
            }
        }
        dialog.close();
    });
    receiver
}

async fn serve_all(
    mut haft: Haft,
    mut input: ExecInputSource,
    dialog: Option<&Arc<ExecDialog>>,
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
            Some(ExecInput::Request(request)) => serve(&mut haft, request, dialog).await,
            Some(ExecInput::TooLong(bytes)) => refusal(
                &Value::Null,
                &Value::Null,
                &format!(
                    "the line is {bytes} bytes long; the limit is {}. Send less in one call.",
                    stdin::MAX_LENGTH
                ),
            ),
            Some(ExecInput::Failed(error)) => return Err(error.into()),
        };
        show::json(&answer.to_string())?;
        if cancel.is_cancelled() {
            break;
        }
    }
    Ok(ended_by.try_recv().unwrap_or(Exit::Interrupted))
}

/// Answers one line, whether or not it is a valid request.
async fn serve(
    haft: &mut Haft,
    request: Result<ExecRequest, Box<BadRequest>>,
    dialog: Option<&Arc<ExecDialog>>,
) -> Value {
    match request {
        Ok(ExecRequest::Call { id, call }) => {
            let results = carry_out(haft, &[call], dialog).await;
            answer(&id, &results[0])
        }
        Ok(ExecRequest::Message(messages)) => {
            let results = carry_out(haft, messages.calls(), dialog).await;
            messages.answer(&results)
        }
        Ok(ExecRequest::DialogLine(word)) => {
            let problem = "a line like this is valid only with --interactive-json";
            refusal(&word["id"], &Value::Null, problem)
        }
        Err(problem) => refusal(&problem.id, &problem.name, &problem.text),
    }
}

/// Runs calls. With a dialog, they can be cancelled and their progress carries their ids.
async fn carry_out(
    haft: &mut Haft,
    calls: &[ToolUse],
    dialog: Option<&Arc<ExecDialog>>,
) -> Vec<CallResult> {
    let mut turn = haft.turn().await;
    if let Some(dialog) = dialog {
        turn.set_observer(dialog.observer());
    }
    for call in calls {
        let cancel = turn.push(call.clone());
        if let Some(dialog) = dialog {
            dialog.start_call(&call.id, cancel);
        }
    }
    let mut results = Vec::new();
    while let Some(finished) = turn.next().await {
        if let Some(dialog) = dialog {
            dialog.finish_call(&finished.id);
        }
        results.push(finished);
    }
    results
}

/// Makes SIGINT and SIGTERM cancel the running calls. The first signal determines the exit code.
fn signals(cancel: CancellationToken) -> anyhow::Result<mpsc::Receiver<Exit>> {
    let (sender, receiver) = mpsc::channel(1);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    haft::spawn_boxed(async move {
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
        };
        let _ = sender.try_send(exit);
        cancel.cancel();
    });
    Ok(receiver)
}

/// Returns the answer line for a finished call.
pub(crate) fn answer(id: &Value, finished: &CallResult) -> Value {
    let content = match finished.content.as_slice() {
        [Content::Text { text }] => json!(text),
        blocks => json!(blocks),
    };
    let micros = finished.metadata.duration.as_micros();
    #[expect(clippy::cast_precision_loss, reason = "exact for the first 285 years")]
    let duration_ms = micros as f64 / 1_000.0;
    let mut answer = json!({
        "id": id,
        "name": finished.name,
        "is_error": finished.is_error,
        "content": content,
        "structured": finished.structured,
        "duration_ms": duration_ms,
    });
    let metadata = json!(finished.metadata);
    if metadata
        .as_object()
        .is_some_and(|object| !object.is_empty())
    {
        answer["metadata"] = metadata;
    }
    answer
}

/// Returns the answer for a line that cannot be served.
fn refusal(id: &Value, name: &Value, problem: &str) -> Value {
    json!({
        "id": id,
        "name": name,
        "is_error": true,
        "content": problem,
        "structured": null,
        "duration_ms": 0.0,
    })
}
