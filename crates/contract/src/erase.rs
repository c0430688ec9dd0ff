//! Conversion of a typed [`Tool`] into a [`DynTool`].

use std::{any::Any, path::Path, sync::Arc};

use serde_json::Value;

use crate::{
    BoundCall, BoxFuture, CallContext, Card, CheckOutcome, Content, DynTool, Effects, Services,
    Tool, ToolError, ToolInput, ToolOutput, ToolPermission, ToolSpec, card::plain,
};

/// Converts a tool into the form that a pool stores: derives its schema and erases its input type;
/// [`DynTool::bind`] restores it.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn DynTool> {
    let (input_schema, documented) = T::Input::describe();
    let spec = ToolSpec {
        name: T::NAME.to_owned(),
        description: tool.prompt().unwrap_or(documented),
        input_schema,
        profile: tool.profile(),
    };
    Arc::new(ErasedTool { tool, spec })
}

struct ErasedTool<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: Tool> DynTool for ErasedTool<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn for_session(&self, services: &Services) -> Option<Arc<dyn DynTool>> {
        self.tool.for_session(services).map(erase)
    }

    fn is_enabled(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.tool.is_enabled())
    }

    fn backfill(&self, input: &mut Value) {
        self.tool.backfill(input);
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        let typed = T::Input::parse(&input)?;
        Ok(Box::new(TypedCall {
            tool: self,
            typed,
            input,
        }))
    }
}

struct TypedCall<T: Tool> {
    tool: Arc<ErasedTool<T>>,
    typed: T::Input,
    input: Value,
}

impl<T: Tool> TypedCall<T> {
    fn tool(&self) -> &T {
        &self.tool.tool
    }
}

impl<T: Tool> BoundCall for TypedCall<T> {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        self.spec()
            .profile
            .access
            .clamp(self.tool().effects(&self.typed))
    }

    fn set_location(&mut self, cwd: &Path, home: Option<&Path>) {
        self.tool.tool.set_location(&mut self.typed, cwd, home);
    }

    fn parsed_input(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.tool().parsed_input(&self.typed)
    }

    fn complete_input<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Option<Value>> {
        Box::pin(self.tool().complete_input(&self.typed, cx))
    }

    fn check<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<CheckOutcome, ToolError>> {
        Box::pin(self.tool().check(&self.typed, cx))
    }

    fn preview<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Option<Card>> {
        Box::pin(self.tool().preview(&self.typed, cx))
    }

    fn permission(&self, cx: &CallContext) -> ToolPermission {
        self.tool().permission(&self.typed, cx)
    }

    fn classifier_input(&self) -> Option<String> {
        self.tool().classifier_input(&self.typed)
    }

    fn call<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.tool().call(&self.typed, cx))
    }

    fn to_model(&self, output: &ToolOutput) -> Vec<Content> {
        self.tool().to_model(output)
    }
    fn render_use(&self) -> Card {
        self.tool()
            .render_use(&self.typed)
            .unwrap_or_else(|| plain::call(self.spec(), self.input()))
    }

    fn render_result(&self, output: &ToolOutput) -> Card {
        self.tool()
            .render_result(&self.typed, output)
            .unwrap_or_else(|| plain::result(self.render_use(), output))
    }

    fn render_error(&self, error: &ToolError) -> Card {
        self.tool()
            .render_error(&self.typed, error)
            .unwrap_or_else(|| plain::error(self.render_use(), error))
    }

    fn render_rejected(&self, reason: &str) -> Card {
        self.tool()
            .render_rejected(&self.typed, reason)
            .unwrap_or_else(|| plain::rejected(self.render_use(), reason))
    }
}
