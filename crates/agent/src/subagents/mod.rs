//! Subagents: models that work for the calls of another, each in a fresh conversation.
//!
//! A [`Crew`] is all that the subagents of one session share; it is the service that the tools ask. A
//! subagent is an [`Agent`](crate::Agent) like any other, over a part of its launcher's engine: some of the
//! same tools, the same rules, hooks, gate, undo journal and purse, a ledger of files of its own, and a
//! permission mode that may only be stricter. Its transcript is `subagents/agent-ID.jsonl` in the session's
//! folder, from which it can be taken up again.
//!
//! - `crew`: what they share, and who they are; `level`: launching them, at one depth
//! - `child`: making one; `tools`, `mode`: what it may do
//! - `work`: one at work, from its first words to its report; `relay`: what is heard of it
//! - `main_agent`: a session that is of a kind itself
//! - `record`: what its transcript tells of it

mod child;
mod crew;
mod level;
mod main_agent;
mod member;
mod mode;
mod record;
mod relay;
mod tools;
mod work;

pub use crew::{Crew, CrewBuilder, CrewLimits, Own};
pub(crate) use level::{Host, Level};
pub use main_agent::{as_main_agent, launchable};
pub use relay::Tag;
