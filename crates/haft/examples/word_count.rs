//! Your own tool: defined, registered, called and displayed. `cargo run --example word_count`

use std::{error::Error, fs, path::PathBuf};

use haft::{
    CallContext, Card, Effects, Haft, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use serde_json::json;

/// Counts the words of a file. The model reads this comment.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the working directory.
    path: PathBuf,
}

struct WordCount;

impl Tool for WordCount {
    type Input = Input;
    const NAME: &'static str = "WordCount";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            access: ToolAccess::Reads, // read-only: never asks, runs concurrently with other readers
            paths: &["path"],          // made absolute, restricted to the working directories
            ..ToolProfile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        Effects::reading([input.path.clone()])
    }

    async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let path = input.path.clone();
        let text = fs::read_to_string(&path).map_err(|source| ToolError::Read { path, source })?;
        let words = text.split_whitespace().count();
        Ok(ToolOutput::text(format!("{words} words")))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new("Word count", input.path.display().to_string()))
    }
}

pub(crate) async fn run(dir: &str) -> Result<String, Box<dyn Error>> {
    let mut haft = Haft::builder(dir).tool(WordCount).build().await?;
    let finished = haft.call("WordCount", json!({"path": "Cargo.toml"})).await;
    Ok(finished.card.to_string())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", run(env!("CARGO_MANIFEST_DIR")).await?);
    Ok(())
}
