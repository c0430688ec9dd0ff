//! Calls of server tools by hooks.

use std::sync::Arc;

use haft_contract::BoxFuture;
use haft_engine::hooks::McpToolCaller;
use haft_mcp::{
    client::{Servers, text_of},
    peer::{PeerError, RequestTimeout},
};
use serde_json::Value;

/// The servers of a session, for its hooks.
pub(crate) struct HookServers(pub(crate) Arc<Servers>);

impl McpToolCaller for HookServers {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let connection = self.0.server(server)?.connected().await;
            let connection = connection.map_err(|why| format!("the MCP server {server}: {why}"))?;
            let called = connection
                .call_tool(tool, &input, RequestTimeout::default(), |_| {})
                .await;
            let answer = called.map_err(|error| match error {
                PeerError::Answered(error) => error.message,
                error => error.to_string(),
            })?;
            match answer["isError"] == true {
                true => Err(format!("{tool} of {server}: {}", text_of(&answer))),
                false => Ok(text_of(&answer)),
            }
        })
    }
}
