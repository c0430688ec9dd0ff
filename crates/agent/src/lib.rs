//! The loop between a model and its tools, and the sessions it keeps.
//!
//! An [`Agent`] is given a model and a scheduler; it knows no tool by name. [`Agent::run`] takes what a
//! person says, asks the model, pushes each tool call to the scheduler the moment its block is complete,
//! answers the model in the order of the calls, and so on until a reply has no call in it. What happens
//! is reported to a [`Sink`]; how it ended is [`RunResult`], which has everything a result message needs.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use haft_agent::{Agent, AgentEvent, ModelSettings, Sessions};
//! # async fn example(
//! #     engine: Arc<haft_engine::Engine>,
//! #     context: haft_engine::SessionContext,
//! #     model: Arc<dyn haft_models::Model>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let session = Sessions::new("/path/of/the/project's/sessions").create(engine.session())?;
//! let mut agent = Agent::builder(engine.scheduler(context), model, ModelSettings::new("some-model"))
//!     .session(session)
//!     .build();
//! let ended = agent.run("What does this project do?", &|event: &AgentEvent| {
//!     if let AgentEvent::Said(said) = event {
//!         println!("{:?}", said.block);
//!     }
//! });
//! println!("{}", ended.await.text);
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - [`agent`]: setting one up; `run`: the loop; `model_turn`: one reply and the calls in it;
//!   `session_events`: what happens between runs
//! - the parts of an agent: `client`: the model, as it is asked; `dialogue`: what was said, with its
//!   transcript; `instructions`: what else it reads; `hooks`: the events it fires;
//!   `compaction`: making room in the model's window; `plan_mode`: plan mode, as the model reads it
//! - `running_calls`: which calls are at work; `user_message`: what a person says; `background`: what it
//!   reads of tasks in the background
//! - `person_call`: calls that a person makes themselves
//! - `ask`: one question to a model, beside any conversation
//! - [`control`]: interrupting, steering and changing it while it runs
//! - [`event`], [`run_result`]: what is reported
//! - `repeats`: noticing that it goes in circles
//! - [`subagents`]: models that work for the calls of this one
//! - [`cost`]: tokens and money
//! - [`prompt`]: the system prompt
//! - [`transcript`]: a session on disk: written ahead, repaired when read
//!
//! **Invariants.** Whatever is interrupted whenever, the conversation stays one that can be sent, and no
//! call runs twice. A call stands in the transcript before its tool runs, its result as soon as it ends.

#![warn(missing_docs)]

pub mod agent;
mod ask;
mod background;
mod client;
mod clock;
mod compaction;
pub mod control;
pub mod cost;
mod deferred_call;
mod deferred_listing;
mod dialogue;
pub mod event;
mod final_answer;
mod hooks;
mod instructions;
mod model_turn;
mod person_call;
mod plan_mode;
pub mod prompt;
mod repeats;
mod run;
mod run_end;
pub mod run_result;
mod running_calls;
mod session_events;
pub mod subagents;
pub mod transcript;
mod user_message;

pub use agent::{Agent, AgentBuilder, Attach, AutoCompact, ModelSettings, RunLimits};
pub use ask::ask;
pub use clock::random_id;
pub use control::Control;
pub use cost::{SharedUsage, Spent, UsageLedger};
pub use event::{Added, AgentEvent, Began, NoticeLevel, ReplyBlock, Sink, Trigger};
pub use final_answer::FinalAnswer;
pub use hooks::{LoadedInstructions, PromptExpansion};
pub use run_result::{Denial, EndReason, RunResult, Subtype};
pub use subagents::{SubagentLimits, SubagentPool, SubagentPoolBuilder, Tag};
pub use transcript::{Session, SessionError, Sessions};
pub use user_message::{Prompt, mentioned};
