//! A tool of your own: defined, registered, called, shown.
//!
//! `cargo run --example word_count`

use haft::{Access, CallContext, Card, Effects, Haft, Profile, Tool, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Counts the words of a file. This comment is what the model reads.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the working directory.
    path: std::path::PathBuf,
}

struct WordCount;

impl Tool for WordCount {
    type Input = Input;
    const NAME: &'static str = "WordCount";

    fn profile(&self) -> Profile {
        // `paths` makes the engine expand `~` and keep the path inside the working directories.
        Profile {
            access: Access::Reads,
            paths: &["path"],
            ..Profile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        Effects::reading([input.path.clone()])
    }

    async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let text = std::fs::read_to_string(&input.path).map_err(|source| ToolError::Read {
            path: input.path.clone(),
            source,
        })?;
        Ok(ToolOutput::text(format!(
            "{} words",
            text.split_whitespace().count()
        )))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new("Word count", input.path.display().to_string()))
    }
}

pub(crate) async fn run(dir: &std::path::Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut haft = Haft::builder(dir)
        .without_built_ins()
        .tool(WordCount)
        .build()
        .await?;
    let finished = haft.call("WordCount", json!({"path": "Cargo.toml"})).await;
    Ok(finished.card.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{}",
        run(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).await?
    );
    Ok(())
}
