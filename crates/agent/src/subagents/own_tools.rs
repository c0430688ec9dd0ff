//! Tools of servers that a kind of subagent names: there when it begins to work, gone when it is done.

use std::sync::Arc;

use haft_contract::{BoxFuture, Content};
use haft_engine::Engine;

use super::{handle::Member, subagent_pool::OwnTools, tools};
use crate::Prompt;

/// What a subagent waits for before it begins.
pub(super) struct AwaitedTools {
    pub(super) engine: Arc<Engine>,
    pub(super) tools: BoxFuture<'static, OwnTools>,
}

/// Ends the servers of a subagent.
pub(super) type ServersEnd = BoxFuture<'static, ()>;

impl AwaitedTools {
    /// Gives the subagent its tools; what is missing is said with its first words. Given up when it is stopped.
    pub(super) async fn give(self, member: &Member, prompt: &mut Prompt) -> Option<ServersEnd> {
        let found = tokio::select! {
            biased;
            () = member.cancel.cancelled() => return None,
            found = self.tools => found,
        };
        let mut missing = found.missing;
        for (server, tools) in found.servers {
            let tools = tools::of_own_server(&member.kind, tools);
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
