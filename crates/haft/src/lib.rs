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
//! ```toml
//! [dependencies]
//! haft = { version = "0.1", features = ["shell"] }
//! tokio = { version = "1", features = ["macros", "rt"] }
//! serde_json = "1"
//! ```
//!
//! That is a session of tools, for those who bring their own loop. A whole agent, with a model, settings,
//! subagents, slash commands and what goes on in the background, is an [`AgentSession`]: plain data in
//! ([`SessionConfig`]), one input ([`SessionInput`]), one ordered stream of events out ([`SessionEvent`]).
//!
//! # Features
//!
//! | Feature | Default | Tools |
//! |---|---|---|
//! | `fs` | yes | `Read`, `Write`, `Edit`, `NotebookEdit`, `LS`, `Undo`; with `search` also `ReplaceInFiles` |
//! | `search` | yes | `Grep`, `Glob` |
//! | `memory` | yes | `MemoryRead`, `MemoryWrite`: notes that outlive a session |
//! | `plan` | yes | the task list and plan mode |
//! | `session` | yes | `AskUserQuestion`, `Config`, `Sleep`, `Think`, `ToolSearch` |
//! | `shell` | no | `Bash` and what goes with it: your program keeps the sandbox, see [below](#commands) |
//! | `pdf` | no | `Read` reads PDFs, in a child process of your program |
//! | `skill` | no | `Skill` |
//! | `schedule` | no | `CronCreate`, `CronDelete`, `CronList`, `ScheduleWakeup`: what is said later |
//! | `web` | no | `WebFetch`, `WebSearch` |
//! | `browser` | no | `Browser`: a Chromium of the machine, in the sandbox; brings `shell` and `web` |
//! | `code` | no | `LSP` and new problems after edits, by language servers of the machine, in the sandbox; brings `fs`, `search` and `shell` |
//! | `otel` | no | none: what sessions do is sent as OpenTelemetry where the variables ask for it |
//!
//! # Who is asked
//!
//! What a rule or the mode does not decide is put to an [`Approver`]; without one it is refused, and the
//! result says what would allow it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use haft::{ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, Haft};
//! use serde_json::json;
//!
//! struct OnlyNotes;
//!
//! impl Approver for OnlyNotes {
//!     fn is_there(&self) -> bool {
//!         true
//!     }
//!
//!     fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
//!         let path = request.asked.map(|call| call.input["file_path"].to_string());
//!         let is_notes = path.is_some_and(|path| path.contains("notes.txt"));
//!         Box::pin(async move {
//!             match is_notes {
//!                 true => ApprovalAnswer::Allow,
//!                 false => ApprovalAnswer::Deny { reason: Some("only notes.txt".into()) },
//!             }
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = haft_testkit::TempProject::new([("a.txt", "one")]);
//! # let directory = project.root();
//! let builder = Haft::builder(directory).approver(Arc::new(OnlyNotes));
//! # let builder = builder.session_folder(project.path("kept"));
//! let mut haft = builder.build().await?;
//! let written = haft.call("Write", json!({"file_path": "notes.txt", "content": "yes"})).await;
//! assert!(!written.is_error, "{}", written.text());
//! let refused = haft.call("Write", json!({"file_path": "other.txt", "content": "no"})).await;
//! assert!(refused.text().contains("only notes.txt"));
//! # Ok(())
//! # }
//! ```
//!
//! # Progress and cancellation
//!
//! Calls report on a channel ([`contract::progress::channel`], given to [`HaftBuilder::progress`]).
//! [`Haft::cancel_token`] interrupts the turn that begins next, and only that; each call of a turn has a
//! token of its own ([`CallBatch::push`](engine::CallBatch::push) returns it). Whatever is cancelled still
//! gets its result.
//!
//! ```
//! # use haft::{Haft, PermissionMode};
//! # use serde_json::json;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = haft_testkit::TempProject::new([("a.txt", "one")]);
//! # let directory = project.root();
//! let mut haft = Haft::builder(directory).build().await?;
//! haft.cancel_token().cancel();
//! assert!(haft.call("LS", json!({})).await.is_error, "it was cancelled before it began");
//! assert!(!haft.call("LS", json!({})).await.is_error, "the next turn is another");
//! # Ok(())
//! # }
//! ```
//!
//! # An agent
//!
//! ```no_run
//! use haft::{AgentSession, ApprovalAnswer, SessionConfig, SessionEvent, SessionParts};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = SessionConfig::new(std::env::current_dir()?);
//! config.model.name = Some("MODEL".into());
//! let show = |event: &SessionEvent| print!("{}", event.reply_text().unwrap_or_default());
//! let parts = SessionParts::new(show).questions(|_: &haft::ApprovalRequest| ApprovalAnswer::Allow);
//! let session = AgentSession::open(config, parts)?;
//! session.answer("What is in this directory?").await?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/agent.rs` is a whole one.
//!
//! # Commands
//!
//! `Bash` (feature `shell`) runs commands in a sandbox that your program keeps, started again for it. So
//! its `main` begins with [`serve_child`], and the session learns which program it is: by
//! `SessionConfig::program`, or for tools alone by a [`ShellProgram`](tools::ShellProgram) among the
//! services.
//!
//! ```ignore
//! fn main() {
//!     haft::serve_child(); // first thing: in the child it does not return
//!     // …
//! }
//! ```
//!
//! # Tools of your own
//!
//! They implement [`Tool`] and go in by [`HaftBuilder::tool`]; see `examples/word_count.rs`. A whole
//! assistant message is answered by [`Haft::answer`]; see `examples/embed.rs`. For streams, where calls
//! start while the model still talks, use [`Haft::turn`].

#![warn(missing_docs)]

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
