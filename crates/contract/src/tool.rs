//! The trait that a tool author implements.

use std::{any::Any, path::Path, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    CallContext, Card, CheckOutcome, Content, Effects, Services, ToolError, ToolOutput,
    ToolPermission, ToolProfile, schema,
};

/// The input of a tool: any type that serde can deserialize and schemars can describe.
///
/// Its doc comment is the description that the model reads; the doc comments of its fields describe
/// the parameters. The trait is implemented automatically for every suitable type, never by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's input",
    label = "not a tool input",
    note = "derive what the engine needs: `#[derive(serde::Deserialize, schemars::JsonSchema)]`",
    note = "and add `#[serde(deny_unknown_fields)]`, so that a misspelt parameter is an error"
)]
pub trait ToolInput: Sized + Send + Sync + 'static {
    /// Returns its schema in the form providers accept, and its doc comment. Called once, by
    /// [`erase`](fn@crate::erase).
    fn describe() -> (Value, String);

    /// Parses the input that the model sent. Called by [`DynTool::bind`](crate::DynTool::bind).
    fn parse(input: &Value) -> Result<Self, ToolError>;
}

// Without this the compiler names `JsonSchema` instead of what to derive.
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> ToolInput for T {
    fn describe() -> (Value, String) {
        schema::input_schema::<T>()
    }

    fn parse(input: &Value) -> Result<Self, ToolError> {
        // The engine has already checked the input against the schema and reported its problems.
        T::deserialize(input).map_err(|error| ToolError::Input(error.to_string()))
    }
}

/// A tool: an action that a model can call.
///
/// Only [`NAME`](Tool::NAME), [`Input`](Tool::Input) and [`call`](Tool::call) must be given. Every
/// other method has a default that is safe for an unknown tool: its calls run alone, are treated as
/// destructive, and the user is asked first.
///
/// ```
/// use haft_contract::{CallContext, Effects, Tool, ToolError, ToolOutput};
///
/// /// Says hello.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Input {
///     /// The name to greet.
///     name: String,
/// }
///
/// struct Greet;
///
/// impl Tool for Greet {
///     type Input = Input;
///     const NAME: &'static str = "Greet";
///
///     fn effects(&self, _: &Input) -> Effects {
///         Effects::NONE
///     }
///
///     async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::text(format!("Hello, {}!", input.name)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "does not implement `Tool`",
    note = "a tool is a type with `impl Tool for {Self}`: an `Input` type, a `NAME` and `async fn call`",
    note = "a tool that is already erased is an `Arc<dyn DynTool>`: register that directly"
)]
pub trait Tool: Send + Sync + 'static {
    /// The input that the model sends. Parsed once, by [`DynTool::bind`](crate::DynTool::bind).
    type Input: ToolInput;

    /// The name the model calls, unique in a pool; case matters.
    const NAME: &'static str;

    /// Returns the tool's static properties. Called once, by [`erase`](fn@crate::erase).
    fn profile(&self) -> ToolProfile {
        ToolProfile::default()
    }

    /// Returns the tool adapted to a session, if its definition depends on the session's services,
    /// such as the available agent kinds. Called once, before the tool is registered. `None`: it
    /// needs no change.
    fn for_session(&self, services: &Services) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = services;
        None
    }

    /// Returns whether the tool can be used in the current environment. The pool calls it for all
    /// tools concurrently when it is built. If it returns `false`, the tool is not offered to the
    /// model.
    fn is_enabled(&self) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// Returns the description that the model reads, if it depends on the environment. Called once,
    /// by [`erase`](fn@crate::erase). `None`: the doc comment of the input type.
    fn prompt(&self) -> Option<String> {
        None
    }

    /// Fills in values that the model left implicit, before the input is parsed. Called by
    /// `prepare`, after coercion and before validation; paths named in [`ToolProfile::paths`] are made
    /// absolute later.
    fn backfill(&self, input: &mut Value) {
        let _ = input;
    }

    /// Returns the effects of this call. Called more than once, by the scheduler (which calls may
    /// run concurrently) and by `admit` (what needs permission). It must be quick, and return the
    /// same while the files stay the same. Default: [`Effects::EXCLUSIVE`].
    fn effects(&self, input: &Self::Input) -> Effects {
        let _ = input;
        Effects::EXCLUSIVE
    }

    /// Sets the location where the call would run: relative paths start at `cwd`. Called once by
    /// `prepare`, right after the input was parsed, for tools that derive more data from it.
    fn set_location(&self, input: &mut Self::Input, cwd: &Path, home: Option<&Path>) {
        let _ = (input, cwd, home);
    }

    /// Returns the input as the tool has parsed it, such as a command line, for an engine that
    /// knows the type. Thus it is parsed only once.
    fn parsed_input(&self, input: &Self::Input) -> Option<Arc<dyn Any + Send + Sync>> {
        let _ = input;
        None
    }

    /// Fills in values that only the session knows, and returns the whole new input. Called once by
    /// `admit`, before hooks, rules and users see the call. `None` if no value is missing.
    fn complete_input(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Option<Value>> + Send {
        let _ = (input, cx);
        async { None }
    }

    /// Checks whether the call can succeed: for example, whether the file exists and was read
    /// before. Called by `admit`, before the user is asked. An error goes to the model;
    /// [`CheckOutcome::Ask`] asks the user in any mode.
    fn check(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Result<CheckOutcome, ToolError>> + Send {
        let _ = (input, cx);
        async { Ok(CheckOutcome::Pass) }
    }

    /// Returns a preview of the changes based on the current files, such as the lines that would
    /// change. Called only if the user is asked. Default: the card of
    /// [`render_use`](Self::render_use).
    fn preview(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Option<Card>> + Send {
        let _ = (input, cx);
        async { None }
    }

    /// Returns the tool's opinion on permission. `admit` combines it with the rules and the mode.
    /// Default: ask, unless the effects are read-only.
    fn permission(&self, input: &Self::Input, cx: &CallContext) -> ToolPermission {
        let _ = (input, cx);
        ToolPermission::ByEffects
    }

    /// Returns the text that could be dangerous, such as a command line. Called by `admit`, for the
    /// command classifier and for the approval request.
    fn classifier_input(&self, input: &Self::Input) -> Option<String> {
        let _ = input;
        None
    }

    /// Runs the call. Called by `execute`, only for an admitted call. Long work must watch
    /// [`CallContext::cancel`] and return [`ToolError::Cancelled`].
    fn call(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// Converts the output into the content that the model reads. Called by `finish`. Default: the
    /// content of the output, unchanged.
    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        output.content.clone()
    }

    /// Returns the card of the call, as shown before it runs. Called by front ends and approval
    /// requests. `None`: a plain card made from the name and the input.
    fn render_use(&self, input: &Self::Input) -> Option<Card> {
        let _ = input;
        None
    }

    /// Returns the card of the result. Called by front ends. `None`: the text that the model reads.
    fn render_result(&self, input: &Self::Input, output: &ToolOutput) -> Option<Card> {
        let _ = (input, output);
        None
    }

    /// Returns the card of a failure. Called by front ends. `None`: the error text.
    fn render_error(&self, input: &Self::Input, error: &ToolError) -> Option<Card> {
        let _ = (input, error);
        None
    }

    /// Returns the card of a call that was denied. Called by front ends. `None`: the call's card
    /// with the reason.
    fn render_rejected(&self, input: &Self::Input, reason: &str) -> Option<Card> {
        let _ = (input, reason);
        None
    }
}
