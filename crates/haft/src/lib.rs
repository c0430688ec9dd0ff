//! The hands and eyes of an AI agent.
//!
//! A model says "call Edit with these arguments". [`Haft`] is everything between that sentence and a
//! safe, exact effect on the world, and back to the model:
//!
//! ```no_run
//! use haft::{Haft, PermissionMode};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut haft = Haft::builder(".")
//!     .permission_mode(PermissionMode::AcceptEdits)
//!     .build()
//!     .await?;
//! let finished = haft.call("Read", json!({"file_path": "Cargo.toml", "limit": 3})).await;
//! println!("{}", finished.text());
//! # Ok(())
//! # }
//! ```
//!
//! That is a session of tools, for those who bring their own loop. A whole agent, with a model, settings,
//! subagents, slash commands and what goes on in the background, is an [`AgentSession`]: plain data in
//! ([`SessionConfig`]), one input ([`SessionInput`]), one ordered stream of events out ([`SessionEvent`]); see
//! `examples/agent.rs`.
//!
//! Tools of your own implement [`Tool`] and go in by [`HaftBuilder::tool`]; see
//! `examples/word_count.rs`. A whole assistant message is answered by [`Haft::answer`]; see
//! `examples/embed.rs`. For streams, where calls start while the model still talks, use
//! [`Haft::turn`].

pub use haft_contract::{self as contract, *};
pub use haft_engine::{
    self as engine, ArgumentRepair, CallResult, DefinitionError, Denied, Engine, Filters, Format,
    Metadata, Pool, Scheduler, SessionContext, pool::Selection,
};
pub use haft_host::{
    self as host, AgentSession, BuildError, Environment, EventSink, Haft, HaftBuilder,
    MessageError, Messages, OpenError, Questions, SessionConfig, SessionEnd, SessionEvent,
    SessionEvents, SessionInput, SessionParts, StopKind, UserQuestions, agent, memory_folder,
    messages, models, project_folder, session_folder,
};
pub use haft_tools::{self as tools, serve_child};
