//! Tools of MCP servers that an agent kind defines. They are connected when the subagent starts,
//! and disconnected when it is done.

use std::sync::Arc;

use haft_contract::{BoxFuture, Content};
use haft_engine::Engine;

use super::{handle::SubagentHandle, subagent_pool::AgentServerTools, tools};
use crate::Prompt;

/// The tools that are still connecting when a subagent is created.
pub(super) struct PendingServerTools {
    pub(super) engine: Arc<Engine>,
    pub(super) tools: BoxFuture<'static, AgentServerTools>,
}

/// Disconnects the servers of a subagent.
pub(super) type ServerShutdown = BoxFuture<'static, ()>;

impl PendingServerTools {
    /// Waits for the tools and adds them to the subagent. Errors are added to its prompt. Stops
    /// waiting if the subagent is stopped.
    pub(super) async fn attach_tools(
        self,
        member: &SubagentHandle,
        prompt: &mut Prompt,
    ) -> Option<ServerShutdown> {
        let found = tokio::select! {
            biased;
            () = member.cancel.cancelled() => return None,
            found = self.tools => found,
        };
        let mut missing = found.missing;
        for (server, tools) in found.servers {
            let tools = tools::from_agent_server(&member.kind, tools);
            let problems = self.engine.replace_server_tools(&server, tools).await;
            missing.extend(problems.iter().map(ToString::to_string));
        }
        if !missing.is_empty() {
            let text = format!(
                "<system-reminder>\nNot all tools that you are meant to have are there:\n{}\n</system-reminder>",
                missing.join("\n")
            );
            prompt.content.push(Content::text(text));
        }
        found.end
    }
}
