//! Toy tools: small and steered by their input.
//!
//! `pauses` is the number of times that a call yields. Random values create random interleavings
//! without a clock.

use std::{fs, path::PathBuf, sync::Arc};

use haft_contract::{
    BoundCall, BoxFuture, CallContext, CheckOutcome, ContextPatch, DynTool, Effects, RuleMatch,
    Tool, ToolAccess, ToolError, ToolOrigin, ToolOutput, ToolPermission, ToolProfile, ToolSpec,
    erase,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Returns all toys as [`DynTool`]s.
pub fn all() -> Vec<Arc<dyn DynTool>> {
    vec![
        erase(Append),
        erase(Peek),
        erase(Move),
        erase(Boom),
        erase(Hang),
        erase(Sly),
        erase(Echo),
    ]
}

async fn pause(times: u8) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

fn failed(error: std::io::Error) -> ToolError {
    ToolError::Failed(error.to_string())
}

/// Returns the profile of a toy with one path parameter.
fn on_a_path(access: ToolAccess) -> ToolProfile {
    ToolProfile {
        access,
        paths: &["path"],
        ..ToolProfile::default()
    }
}

/// Adds a line to a file and returns its previous size in bytes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendInput {
    /// The file.
    pub path: PathBuf,
    /// The line.
    pub line: String,
    /// The number of times to yield between reading and writing.
    #[serde(default)]
    pub pauses: u8,
}

/// Reads, waits, writes. If two calls on one file run concurrently, a line is lost.
pub struct Append;

impl Tool for Append {
    type Input = AppendInput;
    const NAME: &'static str = "Append";

    fn profile(&self) -> ToolProfile {
        on_a_path(ToolAccess::Paths)
    }

    fn effects(&self, input: &AppendInput) -> Effects {
        Effects::writing([input.path.clone()])
    }

    async fn call(&self, input: &AppendInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let before = fs::read_to_string(&input.path).unwrap_or_default();
        pause(input.pauses).await;
        fs::write(&input.path, format!("{before}{}\n", input.line)).map_err(failed)?;
        Ok(ToolOutput::text(format!("was {} bytes", before.len())))
    }
}

/// Shows a file or lists a folder.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeekInput {
    /// The file or folder.
    pub path: PathBuf,
    /// The number of times to yield first.
    #[serde(default)]
    pub pauses: u8,
}

/// A read-only tool.
pub struct Peek;

impl Tool for Peek {
    type Input = PeekInput;
    const NAME: &'static str = "Peek";

    fn profile(&self) -> ToolProfile {
        on_a_path(ToolAccess::Reads)
    }

    fn effects(&self, input: &PeekInput) -> Effects {
        Effects::reading([input.path.clone()])
    }

    async fn call(&self, input: &PeekInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        pause(input.pauses).await;
        if input.path.is_dir() {
            let entries = fs::read_dir(&input.path).map_err(failed)?;
            let mut names: Vec<String> = entries
                .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                .collect();
            names.sort();
            return Ok(ToolOutput::text(names.join(" ")));
        }
        Ok(ToolOutput::text(
            fs::read_to_string(&input.path).map_err(failed)?,
        ))
    }
}

/// Makes a folder the current directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveInput {
    /// The folder; created if missing.
    pub path: PathBuf,
    /// The number of times to yield first.
    #[serde(default)]
    pub pauses: u8,
}

/// An exclusive tool that patches the context.
pub struct Move;

impl Tool for Move {
    type Input = MoveInput;
    const NAME: &'static str = "Move";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            aliases: vec!["Chdir".into()],
            ..on_a_path(ToolAccess::Anything)
        }
    }

    async fn call(&self, input: &MoveInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        pause(input.pauses).await;
        fs::create_dir_all(&input.path).map_err(failed)?;
        let patch = ContextPatch::SetCwd {
            path: input.path.clone(),
        };
        Ok(ToolOutput::text("moved").with_patch(patch))
    }
}

/// Panics.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoomInput {
    /// The method that panics: `call`, `check` or `effects`.
    pub place: String,
}

/// A tool that panics.
pub struct Boom;

impl Tool for Boom {
    type Input = BoomInput;
    const NAME: &'static str = "Boom";

    fn permission(&self, _: &BoomInput, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    fn effects(&self, input: &BoomInput) -> Effects {
        assert!(input.place != "effects", "boom in effects");
        Effects::NONE
    }

    async fn check(&self, input: &BoomInput, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        assert!(input.place != "check", "boom in check");
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &BoomInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        assert!(input.place != "call", "boom in call");
        Ok(ToolOutput::default())
    }
}

/// Never ends by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HangInput {
    /// Stops when asked to, or not even then.
    pub polite: bool,
    /// Only reads, or may do anything.
    #[serde(default)]
    pub reads: bool,
}

/// A tool that waits until it is interrupted.
pub struct Hang;

impl Tool for Hang {
    type Input = HangInput;
    const NAME: &'static str = "Hang";

    fn effects(&self, input: &HangInput) -> Effects {
        if input.reads {
            Effects::READS
        } else {
            Effects::EXCLUSIVE
        }
    }

    async fn call(&self, input: &HangInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if input.polite {
            cx.cancel.cancelled().await;
            return Err(ToolError::Cancelled);
        }
        std::future::pending().await
    }
}

/// Claims to touch nothing, and patches the context.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlyInput {}

/// A tool that does not declare its patch.
pub struct Sly;

impl Tool for Sly {
    type Input = SlyInput;
    const NAME: &'static str = "Sly";

    fn effects(&self, _: &SlyInput) -> Effects {
        Effects::NONE
    }

    async fn call(&self, _: &SlyInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let patch = ContextPatch::SetCwd { path: "/".into() };
        Ok(ToolOutput::text("nothing to see").with_patch(patch))
    }
}

/// Returns a text a number of times.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoInput {
    /// The text.
    pub text: String,
    /// The number of repetitions.
    #[serde(default = "default_times")]
    pub times: u32,
    /// If set, ask the user first, for this reason.
    pub ask: Option<String>,
    /// Text to append.
    #[serde(default)]
    pub words: Vec<String>,
}

fn default_times() -> u32 {
    1
}

/// A tool without effects.
pub struct Echo;

impl Tool for Echo {
    type Input = EchoInput;
    const NAME: &'static str = "Echo";

    fn effects(&self, _: &EchoInput) -> Effects {
        Effects::NONE
    }

    async fn check(&self, input: &EchoInput, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        Ok(input
            .ask
            .clone()
            .map_or(CheckOutcome::Pass, CheckOutcome::Ask))
    }

    async fn call(&self, input: &EchoInput, _: &CallContext) -> Result<ToolOutput, ToolError> {
        let text = input.text.repeat(input.times as usize) + &input.words.join("");
        Ok(ToolOutput::text(text))
    }
}

/// A tool with only a name and a profile, for tests of permissions. It accepts any input and does
/// nothing.
pub struct ProfileOnlyTool {
    spec: ToolSpec,
}

impl ProfileOnlyTool {
    /// Creates a tool whose rules match in this way.
    pub fn tool(name: &str, rules: RuleMatch) -> Arc<dyn DynTool> {
        Self::with(
            name,
            ToolProfile {
                rules,
                ..ToolProfile::default()
            },
        )
    }

    /// Creates a tool of an MCP server.
    pub fn for_server(server: &str, name: &str) -> Arc<dyn DynTool> {
        Self::with(
            &format!("mcp__{server}__{name}"),
            ToolProfile {
                origin: ToolOrigin::Server(server.to_owned().into()),
                ..ToolProfile::default()
            },
        )
    }

    /// Creates a tool with this profile.
    pub fn with(name: &str, profile: ToolProfile) -> Arc<dyn DynTool> {
        Arc::new(Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: format!("A toy called {name}."),
                input_schema: json!({"type": "object", "additionalProperties": true}),
                profile,
            },
        })
    }
}

impl DynTool for ProfileOnlyTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Ok(Box::new(ProfiledCall { tool: self, input }))
    }
}

struct ProfiledCall {
    tool: Arc<ProfileOnlyTool>,
    input: Value,
}

impl BoundCall for ProfiledCall {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        match self.tool.spec.profile.access {
            ToolAccess::Reads => Effects::READS,
            ToolAccess::Paths | ToolAccess::Anything => Effects::EXCLUSIVE,
        }
    }

    fn call<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(format!("{} ran", self.tool.spec.name))) })
    }
}
