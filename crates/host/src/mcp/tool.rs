//! A tool of a server, in our pool.

use std::{path::PathBuf, sync::Arc};

use haft_agent::NoticeLevel;
use haft_contract::{
    BoundCall, BoxFuture, CallContext, Content, DynTool, Effects, Permission, ToolError,
    ToolOutput, ToolSpec,
};
use serde_json::Value;

use super::{client::Client, definition::Definition, result};

/// A result of so many characters is worth a warning: about 10,000 tokens.
const LONG: usize = 40_000;

pub(super) struct ServerTool {
    pub(super) definition: Definition,
    pub(super) client: Arc<Client>,
    /// Where what is neither text nor a picture is kept.
    pub(super) folder: PathBuf,
}

impl DynTool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Ok(Box::new(ServerCall { tool: self, input }))
    }
}

struct ServerCall {
    tool: Arc<ServerTool>,
    input: Value,
}

impl BoundCall for ServerCall {
    fn spec(&self) -> &ToolSpec {
        &self.tool.definition.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        self.tool.definition.effects()
    }

    fn permission(&self, _: &CallContext) -> Permission {
        if self.tool.definition.interactive {
            Permission::Ask("its server wants a person to agree each time".to_owned())
        } else {
            Permission::ByEffects
        }
    }

    fn call<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let ServerTool {
            definition,
            client,
            folder,
        } = &*self.tool;
        Box::pin(async move {
            let answer = tokio::select! {
                biased;
                answer = client.call(&definition.called, &self.input) => answer,
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let answer = answer.map_err(|why| {
                ToolError::Failed(format!("the server {}: {why}", client.server()))
            })?;
            let output = result::output(&answer, folder);
            let texts = output.content.iter().filter_map(Content::as_text);
            let length: usize = texts.map(|text| text.chars().count()).sum();
            if length > LONG {
                client.events().notice(
                    NoticeLevel::Warning,
                    format!(
                        "the result of {} is long: {length} characters",
                        definition.spec.name
                    ),
                );
            }
            Ok(output)
        })
    }
}
