//! Subagents: agents that work for calls of another agent, each in a new conversation.
//!
//! A [`SubagentPool`] is shared by all subagents of a session; it is the service that the tools
//! use. A subagent is an [`Agent`](crate::Agent) with a part of its parent's engine. It has a
//! subset of the tools, the same rules, hooks, approver, undo log and usage ledger, its own ledger
//! of read files, and a permission mode that is at most as permissive. Its transcript is
//! `subagents/agent-ID.jsonl` in the session's folder, from which it can be resumed.
//!
//! - `subagent_pool`: the shared state and the known subagents; `spawner`: launches subagents for
//!   the calls of one agent
//! - `build`: creates a subagent; `tools`, `mode`: its tools and its permission mode
//! - `server_tools`: tools of MCP servers that an agent kind defines
//! - `handle`: the handle of a subagent; `task`: a running subagent, from its prompt to its report;
//!   `event_forwarder`: forwards its events
//! - `main_agent`: a main agent of a certain agent kind
//! - `transcript_record`: the metadata in a subagent's transcript

mod build;
mod event_forwarder;
mod handle;
mod main_agent;
mod mode;
mod server_tools;
mod spawner;
mod subagent_pool;
mod task;
mod tools;
mod transcript_record;

pub use event_forwarder::SubagentInfo;
pub use main_agent::{
    MainAgentChange, MainAgentModel, check_main_agent, launchable, set_main_agent,
};
pub(crate) use spawner::{ParentAgent, SubagentLauncher};
pub use subagent_pool::{
    AgentKindExtras, AgentServerTools, SubagentLimits, SubagentPool, SubagentPoolBuilder,
};
