//! Records the model traffic of a session and replays it without a network.
//!
//! A recording is a file of JSON lines. A request is a list of parts (settings, system prompt,
//! tools, each message). A part is written only once, when it first occurs. So a recording grows
//! linearly with the session, not quadratically. Each event names its request, because requests of
//! subagents overlap.
//!
//! A [`Recorder`] must be the outermost wrapper, around retries too. Then a replay reports the
//! waits without waiting.

mod recorder;
mod replay;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use recorder::Recorder;
pub use replay::{Replay, ReplayDivergence};

use crate::{ModelError, ModelEvent, ModelRequest};

/// The version of the format. A recording begins with it.
const VERSION: u32 = 1;

/// A line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordingLine {
    Version(u32),
    /// The next part. Parts are numbered from 0 in the order of the file.
    Part(Value),
    Request {
        request: usize,
        parts: Vec<usize>,
    },
    Event {
        request: usize,
        #[serde(flatten)]
        event: ModelEvent,
    },
    Error {
        request: usize,
        error: ModelError,
    },
    /// The reply was read to its end.
    End {
        request: usize,
    },
}

/// Splits a request into parts with names, which can be compared one by one.
fn parts(request: &ModelRequest) -> Vec<(String, Value)> {
    let settings = json!({
        "model": request.model,
        "max_tokens": request.max_tokens,
        "thinking": request.thinking,
        "effort": request.effort,
        "tool_choice": request.tool_choice,
        "parallel_calls": request.parallel_calls,
        "temperature": request.temperature,
        "stop_sequences": request.stop_sequences,
        "output_schema": request.output_schema,
    });
    let mut parts = vec![
        ("the settings".to_owned(), settings),
        (
            "the system prompt".to_owned(),
            json!(request.prefix.system()),
        ),
        (
            "the list of tools".to_owned(),
            json!(request.prefix.tools()),
        ),
    ];
    for (index, message) in request.history.messages().enumerate() {
        let role = json!(message.role);
        let name = format!(
            "message {} ({})",
            index + 1,
            role.as_str().unwrap_or_default()
        );
        parts.push((name, json!(message)));
    }
    parts
}
