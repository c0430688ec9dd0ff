//! `WaitForMcpServers`: waits for servers that are being connected.

use std::sync::Arc;

use haft_contract::{
    AgentAccess, CallContext, Card, Effects, PendingServers, ServiceNeed, Tool, ToolAccess,
    ToolError, ToolOutput, ToolProfile, ToolRole,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Waits for MCP servers that are still being connected. Their tools can be called then.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The servers to wait for; all if omitted.
    servers: Option<Vec<String>>,
}

pub(crate) struct WaitForMcpServers;

impl Tool for WaitForMcpServers {
    type Input = Input;
    const NAME: &'static str = "WaitForMcpServers";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "session".into(),
            access: ToolAccess::Reads,
            agents: AgentAccess::Main,
            needs: const { &[ServiceNeed::service::<Arc<dyn PendingServers>>()] },
            role: Some(ToolRole::AwaitsTools),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::NONE
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let servers = cx.services.get::<Arc<dyn PendingServers>>()?;
        let before = servers.pending();
        let wanted = input.servers.clone().unwrap_or_default();
        // This takes at most as long as the connection timeout of servers (MCP_TIMEOUT).
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            () = servers.wait_until_connected(wanted.clone()) => {}
        }
        let still = servers.pending();
        let waited = before.into_iter().filter(|name| !still.contains(name));
        let waited: Vec<String> = waited
            .filter(|name| wanted.is_empty() || wanted.contains(name))
            .collect();
        let text = match waited.as_slice() {
            [] => "No server is being connected.".to_owned(),
            names => format!("No longer being connected: {}.", names.join(", ")),
        };
        Ok(ToolOutput::text(text).with_structured(json!({"settled": waited, "pending": still})))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let servers = input.servers.as_deref().unwrap_or_default().join(", ");
        Some(Card::new("Wait for MCP servers", servers))
    }
}
