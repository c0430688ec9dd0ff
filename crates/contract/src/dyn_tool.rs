//! The object-safe counterparts of [`Tool`](crate::Tool): what a pool stores and what the pipeline
//! runs.
//!
//! Tools from elsewhere (an MCP server, a plugin) implement these traits directly. There is no
//! second registry.

use std::{any::Any, fmt, path::Path, pin::Pin, sync::Arc};

use serde_json::Value;

use crate::{
    CallContext, Card, CheckOutcome, Content, Effects, Services, ToolError, ToolOutput,
    ToolPermission, ToolProfile, card::plain,
};

/// A boxed future, for object-safe traits.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool's definition.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// The name by which the model calls it.
    pub name: String,
    /// The description that the model reads.
    pub description: String,
    /// The JSON schema of its input, of type `object`.
    pub input_schema: Value,
    /// Its static properties.
    pub profile: ToolProfile,
}

impl ToolSpec {
    /// Returns the name shown to users.
    pub fn title(&self) -> &str {
        self.profile.title.as_deref().unwrap_or(&self.name)
    }
}

/// A tool whose input type is erased. The methods are those of [`Tool`](crate::Tool) that need no
/// parsed input; see there for who calls them and when.
pub trait DynTool: Send + Sync {
    /// Returns its definition, which does not change while it is in a pool.
    fn spec(&self) -> &ToolSpec;

    /// Returns the tool adapted to this session; `None` if it needs no change.
    fn for_session(&self, services: &Services) -> Option<Arc<dyn DynTool>> {
        let _ = services;
        None
    }

    /// Returns whether the tool can be used in the current environment.
    fn is_enabled(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }

    /// Fills in values that the model left implicit.
    fn backfill(&self, input: &mut Value) {
        let _ = input;
    }

    /// Combines the tool with one input. Called by `prepare` once the input matches the schema. An
    /// error is reported as one more problem with the input.
    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError>;
}

impl fmt::Debug for dyn DynTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynTool").field(&self.spec().name).finish()
    }
}

/// A tool with one valid input. The methods are those of [`Tool`](crate::Tool) that need the input;
/// see there for who calls them and when.
pub trait BoundCall: Send + Sync {
    /// Returns the definition of the tool.
    fn spec(&self) -> &ToolSpec;

    /// Returns the valid, completed input, as shown to hooks, rules and users.
    fn input(&self) -> &Value;

    /// Returns the effects of this call, limited by the access of the tool.
    fn effects(&self) -> Effects;

    /// Sets the location where the call would run.
    fn set_location(&mut self, cwd: &Path, home: Option<&Path>) {
        let _ = (cwd, home);
    }

    /// Returns the input as the tool has parsed it.
    fn parsed_input(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Fills in values that only the session knows.
    fn complete_input<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Option<Value>> {
        let _ = cx;
        Box::pin(async { None })
    }

    /// Checks whether the call can succeed.
    fn check<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<CheckOutcome, ToolError>> {
        let _ = cx;
        Box::pin(async { Ok(CheckOutcome::Pass) })
    }

    /// Returns a preview of the changes, for the user to decide.
    fn preview<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Option<Card>> {
        let _ = cx;
        Box::pin(async { None })
    }

    /// Returns the tool's opinion on permission.
    fn permission(&self, cx: &CallContext) -> ToolPermission {
        let _ = cx;
        ToolPermission::ByEffects
    }

    /// Returns the text that could be dangerous, such as a command line.
    fn classifier_input(&self) -> Option<String> {
        None
    }

    /// Runs the call.
    fn call<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Converts the output into the content that the model reads.
    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        output.content.clone()
    }

    /// Returns the card of the call.
    fn render_use(&self) -> Card {
        plain::call(self.spec(), self.input())
    }

    /// Returns the card of the result.
    fn render_result(&self, output: &ToolOutput) -> Card {
        plain::result(self.render_use(), output)
    }

    /// Returns the card of a failure.
    fn render_error(&self, error: &ToolError) -> Card {
        plain::error(self.render_use(), error)
    }

    /// Returns the card of a call that was denied.
    fn render_rejected(&self, reason: &str) -> Card {
        plain::rejected(self.render_use(), reason)
    }
}

impl fmt::Debug for dyn BoundCall + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundCall")
            .field("name", &self.spec().name)
            .field("input", self.input())
            .finish()
    }
}
