//! The agent loop between a model and its tools, and the transcripts of its sessions.
//!
//! An [`Agent`] has a model and a scheduler; it does not know any tool by name. [`Agent::run`]
//! takes a prompt, sends a request to the model, and pushes each tool call to the scheduler as soon
//! as its block is complete. It answers the calls in their order and sends the next request, until
//! a reply contains no call. Events are reported to an [`AgentEventSink`]. The outcome is a [`RunResult`],
//! which has everything that a result message needs.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use haft_agent::{Agent, AgentEvent, ModelSettings, ProjectSessions};
//! # async fn example(
//! #     engine: Arc<haft_engine::Engine>,
//! #     context: haft_engine::SessionContext,
//! #     model: Arc<dyn haft_models::Model>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let session = ProjectSessions::new("/path/of/the/project's/sessions").create(engine.session())?;
//! let mut agent = Agent::builder(engine.scheduler(context), model, ModelSettings::new("some-model"))
//!     .session(session)
//!     .build();
//! let ended = agent.run("What does this project do?", &|event: &AgentEvent| {
//!     if let AgentEvent::BlockCompleted(reply) = event {
//!         println!("{:?}", reply.block);
//!     }
//! });
//! println!("{}", ended.await.text);
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - [`agent`]: building an agent; `run`: the loop; `model_turn`: one reply and its calls;
//!   `session_lifecycle`: the lifecycle of a session between runs
//! - the parts of an agent: `client`: requests to the model; `recorded_conversation`: the conversation
//!   with its transcript; `instructions`: memory files and skills; `hooks`: the hook events; `compaction`:
//!   frees space in the context window; `plan_mode`: reminders about plan mode
//! - `running_calls`: the calls in progress; `user_message`: prompts; `background_notices`: notices of
//!   background tasks
//! - `user_call`: tool calls that the user makes
//! - `one_shot`: one request outside any conversation
//! - [`agent_handle`]: interrupts, steers and changes a running agent
//! - [`event`], [`run_result`]: the events and the result of a run
//! - `repeat_detector`: detects a model that repeats the same calls
//! - [`subagents`]: the agents that tool calls of this agent launch
//! - [`cost`]: usage and cost
//! - [`prompt`]: the system prompt
//! - [`transcript`]: sessions on disk; a transcript is repaired when it is loaded
//!
//! **Invariants.** Whenever a run is interrupted, the conversation can still be sent, and no call
//! runs twice. A call is in the transcript before its tool runs, and its result is added as soon as
//! the call ends.

#![warn(missing_docs)]

pub mod agent;
pub mod agent_handle;
mod background_notices;
mod client;
mod clock;
mod compaction;
pub mod cost;
mod deferred_call;
mod deferred_listing;
pub mod event;
mod final_answer;
mod hooks;
mod instructions;
mod model_turn;
mod one_shot;
mod plan_mode;
pub mod prompt;
mod recorded_conversation;
mod repeat_detector;
mod run;
mod run_end;
pub mod run_result;
mod running_calls;
mod session_lifecycle;
pub mod subagents;
pub mod transcript;
mod user_call;
mod user_message;

pub use agent::{Agent, AgentBuilder, AutoCompact, MentionExpander, ModelSettings, RunLimits};
pub use agent_handle::AgentHandle;
pub use clock::random_id;
pub use cost::{SharedUsage, UsageCost, UsageLedger};
pub use event::{
    AgentEvent, AgentEventSink, CompactionTrigger, InjectionSource, NoticeLevel, ReplyBlock,
    RunStart,
};
pub use final_answer::FinalAnswer;
pub use hooks::{LoadedInstructions, PromptExpansion};
pub use one_shot::ask;
pub use run_result::{BlockedCall, EndReason, ResultSubtype, RunResult};
pub use subagents::{SubagentInfo, SubagentLimits, SubagentPool, SubagentPoolBuilder};
pub use transcript::{OpenTranscript, ProjectSessions, SessionError};
pub use user_message::{Prompt, mentioned};
