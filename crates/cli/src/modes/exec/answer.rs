//! What a line is answered by.

use haft::{CallResult, Content};
use serde_json::{Value, json};

/// The answer to a call.
pub(crate) fn native(id: &Value, finished: &CallResult) -> Value {
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

/// The answer to a line that cannot be served.
pub(super) fn refusal(id: &Value, name: &Value, problem: &str) -> Value {
    json!({
        "id": id,
        "name": name,
        "is_error": true,
        "content": problem,
        "structured": null,
        "duration_ms": 0.0,
    })
}
