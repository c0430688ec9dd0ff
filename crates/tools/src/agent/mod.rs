//! Tools for delegating work to other models: `Agent` and `SendMessage`, built on
//! [`haft_contract::Subagents`].

#[expect(
    clippy::module_inception,
    reason = "a file for each tool, and this is the tool's name"
)]
mod agent;
mod send_message;

pub(crate) use agent::Agent;
pub(crate) use send_message::SendMessage;
