//! The tools in your own agent: send their definitions to a model, run the calls that it requests,
//! and return the results.
//!
//! `cargo run --example embed`

use haft::{Haft, ToolFormat};
use serde_json::{Value, json};

/// A model's reply, hard-coded here. A real agent sends `definitions` to the provider and gets the
/// reply from it.
fn reply_of_a_model(_definitions: &[Value]) -> Value {
    json!({
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me look at the manifest and find the sources."},
            {"type": "tool_use", "id": "toolu_1", "name": "Read",
             "input": {"file_path": "Cargo.toml", "limit": 3}},
            {"type": "tool_use", "id": "toolu_2", "name": "Glob", "input": {"pattern": "src/l*.rs"}},
        ],
    })
}

pub(crate) async fn run(dir: &std::path::Path) -> Result<Value, Box<dyn std::error::Error>> {
    let mut haft = Haft::builder(dir).build().await?;
    let reply = reply_of_a_model(&haft.definitions(ToolFormat::Anthropic));
    // Both calls are read-only, so they run concurrently; the results are in the order of the
    // calls.
    Ok(haft.answer(&reply).await?)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let answer = run(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).await?;
    println!("{}", serde_json::to_string_pretty(&answer)?);
    Ok(())
}
