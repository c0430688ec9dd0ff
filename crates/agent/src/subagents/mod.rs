//! Subagents: models that work for the calls of another, each in a fresh conversation.
//!
//! A [`SubagentPool`] is all that the subagents of one session share; it is the service that the tools ask. A
//! subagent is an [`Agent`](crate::Agent) like any other, over a part of its launcher's engine: some of the
//! same tools, the same rules, hooks, gate, undo journal and purse, a ledger of files of its own, and a
//! permission mode that may only be stricter. Its transcript is `subagents/agent-ID.jsonl` in the session's
//! folder, from which it can be taken up again.
//!
//! - `subagent_pool`: what they share, and who they are; `spawner`: launching them, at one depth
//! - `child`: making one; `tools`, `mode`: what it may do
//! - `own_tools`: tools of servers that a kind names
//! - `task`: one at work, from its first words to its report; `event_forwarder`: what is reported of it
//! - `main_agent`: a session that is of a kind itself
//! - `record`: what its transcript says of it

mod child;
mod event_forwarder;
mod handle;
mod main_agent;
mod mode;
mod own_tools;
mod record;
mod spawner;
mod subagent_pool;
mod task;
mod tools;

pub use event_forwarder::Tag;
pub use main_agent::{
    MainAgentChange, MainAgentModel, check_main_agent, launchable, set_main_agent,
};
pub(crate) use spawner::{Host, Spawner};
pub use subagent_pool::{Own, OwnTools, SubagentLimits, SubagentPool, SubagentPoolBuilder};
