//! The trait a tool author implements.

use std::{any::Any, path::Path, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    CallContext, Card, Check, Content, Effects, Permission, Profile, Services, ToolError,
    ToolOutput, schema,
};

/// What a tool takes: any type that serde can read and schemars can describe.
///
/// Its doc comment is the description the model reads; the docs of its fields describe the
/// parameters. It is implemented for every fitting type, never by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's input",
    label = "not a tool input",
    note = "derive what the engine needs: `#[derive(serde::Deserialize, schemars::JsonSchema)]`",
    note = "and add `#[serde(deny_unknown_fields)]`, so that a misspelt parameter is an error"
)]
pub trait ToolInput: Sized + Send + Sync + 'static {
    /// Its schema as providers want it, and its doc comment. Called once, by
    /// [`erase`](fn@crate::erase).
    fn describe() -> (Value, String);

    /// Reads it from what the model sent. Called by [`DynTool::bind`](crate::DynTool::bind).
    fn parse(input: &Value) -> Result<Self, ToolError>;
}

// Without this the compiler names `JsonSchema` and not what to derive.
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> ToolInput for T {
    fn describe() -> (Value, String) {
        schema::of::<T>()
    }

    fn parse(input: &Value) -> Result<Self, ToolError> {
        // The engine has held it against the schema, and said where it is wrong.
        T::deserialize(input).map_err(|error| ToolError::Input(error.to_string()))
    }
}

/// One thing a model can do.
///
/// Only [`NAME`](Tool::NAME), [`Input`](Tool::Input) and [`call`](Tool::call) must be given. Every
/// other method has a default that is safe for a tool no one knows anything about: it runs alone,
/// may destroy, and a person is asked first.
///
/// ```
/// use haft_contract::{CallContext, Effects, Tool, ToolError, ToolOutput};
///
/// /// Says hello.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Input {
///     /// Whom to greet.
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
    /// What the model sends. Parsed once, by [`DynTool::bind`](crate::DynTool::bind).
    type Input: ToolInput;

    /// The name the model calls, unique in a pool; case matters.
    const NAME: &'static str;

    /// What the tool says of itself. Called once, by [`erase`](fn@crate::erase).
    fn profile(&self) -> Profile {
        Profile::default()
    }

    /// The tool as this session has it, where what it says of itself depends on the session's services, such
    /// as the kinds of subagents there are. Called once, before it is registered. `None`: as it is.
    fn for_session(&self, services: &Services) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = services;
        None
    }

    /// Can it be used here and now? Called by the pool when it is built, for all tools at once; a
    /// tool that answers `false` is not offered to the model.
    fn is_enabled(&self) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// The description the model reads, where it must depend on the surroundings. Called by the
    /// pool when definitions are made. `None`: the doc comment of the input type.
    fn prompt(&self) -> Option<String> {
        None
    }

    /// Fills in what the model left implied, before the input is parsed. Called by `prepare`, after
    /// coercion and before validation; paths named in [`Profile::paths`] are made absolute later.
    fn backfill(&self, input: &mut Value) {
        let _ = input;
    }

    /// What this call touches. Called by the scheduler (what may run beside it) and by `admit` (what
    /// must be permitted), more than once; it must be quick and answer the same while the files stay
    /// the same. Default: everything, alone, destructively.
    fn effects(&self, input: &Self::Input) -> Effects {
        let _ = input;
        Effects::EXCLUSIVE
    }

    /// Learns where the call would run: relative paths start at `cwd`. Called by `prepare`, once, right
    /// after the input was parsed, for tools that read more out of it.
    fn locate(&self, input: &mut Self::Input, cwd: &Path, home: Option<&Path>) {
        let _ = (input, cwd, home);
    }

    /// What the tool has read out of the input, for an engine that knows the type: a command line is
    /// read once, and not by everyone anew.
    fn reading(&self, input: &Self::Input) -> Option<Arc<dyn Any + Send + Sync>> {
        let _ = input;
        None
    }

    /// Fills in what only the session knows, once, before hooks, rules and people see the call: the
    /// whole input anew. Called by `admit`. `None`: there is nothing to fill in.
    fn complete(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Option<Value>> + Send {
        let _ = (input, cx);
        async { None }
    }

    /// Does the call make sense (does the file exist, was it read before)? Called by `admit`, before
    /// a person is asked. An error goes to the model; [`Check::Ask`] asks the person in any mode.
    fn check(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Result<Check, ToolError>> + Send {
        let _ = (input, cx);
        async { Ok(Check::Pass) }
    }

    /// What the call would do, as a person should see it before they decide: with what is really there, such
    /// as the lines that would change. Called only where a person is asked. Default: as
    /// [`render_use`](Self::render_use) shows it.
    fn preview(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Option<Card>> + Send {
        let _ = (input, cx);
        async { None }
    }

    /// The tool's own word on permission, weighed by `admit` with the rules and the mode. Default:
    /// ask, unless the effects are read-only.
    fn permission(&self, input: &Self::Input, cx: &CallContext) -> Permission {
        let _ = (input, cx);
        Permission::ByEffects
    }

    /// The text in which danger would hide, such as the command line a tool would run. Called by
    /// `admit`, for the command classifier and for the question put to a person.
    fn classifier_input(&self, input: &Self::Input) -> Option<String> {
        let _ = input;
        None
    }

    /// Does it. Called by `execute`, only ever for an admitted call. Long work must watch
    /// [`CallContext::cancel`] and return [`ToolError::Cancelled`].
    fn call(
        &self,
        input: &Self::Input,
        cx: &CallContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;

    /// What the model reads of the output. Called by `finish`. Default: its content as it is.
    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        output.content.clone()
    }

    /// The call as a person sees it, before it ran. Called by the one who shows or asks. `None`: a plain
    /// card made from the name and the input.
    fn render_use(&self, input: &Self::Input) -> Option<Card> {
        let _ = input;
        None
    }

    /// The result as a person sees it. Called by the one who shows it. `None`: the text the model got.
    fn render_result(&self, input: &Self::Input, output: &ToolOutput) -> Option<Card> {
        let _ = (input, output);
        None
    }

    /// A failure as a person sees it. Called by the one who shows it. `None`: the error text.
    fn render_error(&self, input: &Self::Input, error: &ToolError) -> Option<Card> {
        let _ = (input, error);
        None
    }

    /// A call that was not permitted, as a person sees it. Called by the one who shows it. `None`: the
    /// call's card with the reason.
    fn render_rejected(&self, input: &Self::Input, reason: &str) -> Option<Card> {
        let _ = (input, reason);
        None
    }
}
