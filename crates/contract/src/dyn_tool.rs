//! The object-safe twins: what a pool holds, and what the pipeline runs.
//!
//! Tools that come from elsewhere (an MCP server, a plugin) implement these directly. There is no
//! second registry.

use std::{any::Any, fmt, path::Path, pin::Pin, sync::Arc};

use serde_json::Value;

use crate::{
    CallContext, Card, Check, Content, Effects, Permission, Profile, Services, ToolError,
    ToolOutput, view::plain,
};

/// A boxed future, for traits that must be objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool's definition.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// The name the model calls.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// What it takes: a JSON schema of type `object`.
    pub input_schema: Value,
    /// What it says of itself.
    pub profile: Profile,
}

impl ToolSpec {
    /// The name people see.
    pub fn title(&self) -> &str {
        self.profile.title.as_deref().unwrap_or(&self.name)
    }
}

/// A tool whose input type is no longer visible. The methods are those of [`Tool`](crate::Tool) that
/// need no parsed input; see there for who calls them and when.
pub trait DynTool: Send + Sync {
    /// Its definition; the same for as long as it is in a pool.
    fn spec(&self) -> &ToolSpec;

    /// The tool as this session has it, where that is another than as it is.
    fn for_session(&self, services: &Services) -> Option<Arc<dyn DynTool>> {
        let _ = services;
        None
    }

    /// Can it be used here and now?
    fn is_enabled(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }

    /// Fills in what the model left implied.
    fn backfill(&self, input: &mut Value) {
        let _ = input;
    }

    /// Joins the tool with one input. Called by `prepare` once the input fits the schema; an error
    /// is one more problem with the input.
    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError>;
}

impl fmt::Debug for dyn DynTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynTool").field(&self.spec().name).finish()
    }
}

/// One tool plus one valid input. The methods are those of [`Tool`](crate::Tool) that need the
/// input; see there for who calls them and when.
pub trait BoundCall: Send + Sync {
    /// The definition of its tool.
    fn spec(&self) -> &ToolSpec;

    /// The input, valid and with everything filled in: what hooks, rules and people are shown.
    fn input(&self) -> &Value;

    /// What this call touches, held to what the tool may do at most.
    fn effects(&self) -> Effects;

    /// Learns where it would run.
    fn locate(&mut self, cwd: &Path, home: Option<&Path>) {
        let _ = (cwd, home);
    }

    /// What the tool has read out of the input.
    fn reading(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Fills in what only the session knows.
    fn complete<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Option<Value>> {
        let _ = cx;
        Box::pin(async { None })
    }

    /// Does the call make sense?
    fn check<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<Check, ToolError>> {
        let _ = cx;
        Box::pin(async { Ok(Check::Pass) })
    }

    /// What the call would do, as a person should see it before they decide.
    fn preview<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Option<Card>> {
        let _ = cx;
        Box::pin(async { None })
    }

    /// The tool's own word on permission.
    fn permission(&self, cx: &CallContext) -> Permission {
        let _ = cx;
        Permission::ByEffects
    }

    /// The text in which danger would hide.
    fn classifier_input(&self) -> Option<String> {
        None
    }

    /// Does it.
    fn call<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// What the model reads of the output.
    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        output.content.clone()
    }

    /// The call as a person sees it.
    fn render_use(&self) -> Card {
        plain::call(self.spec(), self.input())
    }

    /// The result as a person sees it.
    fn render_result(&self, output: &ToolOutput) -> Card {
        plain::result(self.render_use(), output)
    }

    /// A failure as a person sees it.
    fn render_error(&self, error: &ToolError) -> Card {
        plain::error(self.render_use(), error)
    }

    /// A call that was not permitted, as a person sees it.
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
