//! A tool of a server in the tool pool.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{
    BoundCall, BoxFuture, CallContext, Content, DynTool, Effects, ProgressUpdate, ToolError,
    ToolOutput, ToolPermission, ToolSpec,
};
use serde_json::Value;

use super::{definition::ServerToolDefinition, result, server::ServerHandle};
use crate::peer::{PeerError, RequestTimeout};

/// The length in characters above which a result is worth a warning: about 10,000 tokens.
const LONG: usize = 40_000;

pub(super) struct ServerTool {
    pub(super) definition: ServerToolDefinition,
    pub(super) server: Arc<ServerHandle>,
    /// The folder for results that are neither text nor an image.
    pub(super) folder: PathBuf,
    pub(super) timeout: RequestTimeout,
}

impl DynTool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        self.definition.check(&input)?;
        Ok(Box::new(ServerCall { tool: self, input }))
    }
}

struct ServerCall {
    tool: Arc<ServerTool>,
    input: Value,
}

impl BoundCall for ServerCall {
    fn spec(&self) -> &ToolSpec {
        &self.tool.definition.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        self.tool.definition.effects()
    }

    fn permission(&self, _: &CallContext) -> ToolPermission {
        if self.tool.definition.interactive {
            ToolPermission::Ask("its server requires your consent for each call".to_owned())
        } else {
            ToolPermission::ByEffects
        }
    }

    fn call<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                output = self.tool.run(&self.input, cx) => output,
                () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
            }
        })
    }
}

impl ServerTool {
    async fn run(&self, input: &Value, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let (server, definition) = (&self.server, &self.definition);
        let name = server.name();
        let connection = server.connected().await;
        let connection =
            connection.map_err(|why| ToolError::Failed(format!("the server {name}: {why}")))?;
        let report = |params: Value| {
            for update in updates(&params) {
                cx.progress.report(update);
            }
        };
        let called = connection
            .call_tool(&definition.called, input, self.timeout, report)
            .await;
        let answer = called.map_err(|error| ToolError::Failed(describe_error(name, &error)))?;
        let output = result::output(&answer, &self.folder);
        if let (false, Some(schema), Some(structured)) = (
            output.failed,
            &definition.output,
            answer.get("structuredContent"),
        ) && let Some(problem) = schema.problems(structured).first()
        {
            server.notice(&format!(
                "the structured result of {} does not match its schema: {problem}",
                definition.spec.name
            ));
        }
        let texts = output.content.iter().filter_map(Content::as_text);
        let length: usize = texts.map(|text| text.chars().count()).sum();
        if length > LONG {
            server.notice(&format!(
                "the result of {} is long: {length} characters",
                definition.spec.name
            ));
        }
        Ok(output)
    }
}

/// Describes for the model why a call failed and what to do.
fn describe_error(server: &str, error: &PeerError) -> String {
    match error {
        PeerError::Answered(error) => format!("the server {server}: {}", error.message),
        PeerError::Closed(why) => format!(
            "the server {server} disconnected during the call: {why}. It is not known whether the call \
             took effect; check before you call it again"
        ),
        PeerError::TimedOut(why) => format!(
            "the server {server}: {why}, and the call was cancelled. Request less per call, or raise the limit \
             (`timeout` of the server, MCP_TOOL_TIMEOUT)"
        ),
        PeerError::Transport(why) => format!("the server {server}: {why}"),
        error @ PeerError::Unauthorized { .. } => {
            format!(
                "the server {server}: {error}; the user can log in with `haft mcp login {server}`"
            )
        }
    }
}

/// Converts a progress report.
fn updates(params: &Value) -> Vec<ProgressUpdate> {
    let whole = |value: &Value| {
        let number = value
            .as_f64()
            .filter(|number| number.is_finite() && *number >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at least 0, and the cast saturates at u64::MAX"
        )]
        Some(number as u64)
    };
    let step = whole(&params["progress"]).map(|done| ProgressUpdate::Step {
        done,
        total: whole(&params["total"]),
    });
    let note = params["message"].as_str().filter(|text| !text.is_empty());
    let note = note.map(|text| ProgressUpdate::Note {
        text: text.chars().take(500).collect(),
    });
    step.into_iter().chain(note).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_of_progress_are_steps_and_notes() {
        let step = |done, total| ProgressUpdate::Step { done, total };
        let note = ProgressUpdate::Note {
            text: "half".to_owned(),
        };
        let reported = updates(&json!({"progress": 1.5, "total": 3, "message": "half"}));
        assert_eq!(reported, [step(1, Some(3)), note]);
        assert_eq!(updates(&json!({"progress": 7})), [step(7, None)]);
        assert!(updates(&json!({"progress": -1})).is_empty());
        assert!(updates(&json!({"progress": "x"})).is_empty());
    }
}
