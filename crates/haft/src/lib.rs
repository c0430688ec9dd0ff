//! A coding agent as a library: tools, permissions, a sandbox and whole sessions.
//!
//! A model requests a tool call, such as Edit with certain arguments. [`Haft`] checks the call,
//! asks for permission, runs it, and returns the result for the model:
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
//! [`Haft`] is a session of tools; your program has its own agent loop. An [`AgentSession`] is a
//! complete agent with a model, settings, subagents, slash commands and background tasks. It takes
//! plain data ([`SessionConfig`]), has one input ([`SessionInput`]), and emits one ordered stream
//! of events ([`SessionEvent`]).
//!
//! # Features
//!
//! | Feature | Default | Tools |
//! |---|---|---|
//! | `fs` | yes | `Read`, `Write`, `Edit`, `NotebookEdit`, `LS`, `Undo`; with `search` also `ReplaceInFiles` |
//! | `search` | yes | `Grep`, `Glob` |
//! | `memory` | yes | `MemoryRead`, `MemoryWrite`: notes that persist between sessions |
//! | `plan` | yes | the task list and plan mode |
//! | `session` | yes | `AskUserQuestion`, `Config`, `Sleep`, `Think`, `ToolSearch` |
//! | `shell` | no | `Bash` and its companions: your program runs the sandbox, see [below](#commands) |
//! | `pdf` | no | `Read` reads PDFs, in a child process of your program |
//! | `skill` | no | `Skill` |
//! | `schedule` | no | `CronCreate`, `CronDelete`, `CronList`, `ScheduleWakeup`: prompts that are sent later |
//! | `web` | no | `WebFetch`, `WebSearch` |
//! | `browser` | no | `Browser`: the installed Chromium, in the sandbox; enables `shell` and `web` |
//! | `code` | no | `LSP` and new diagnostics after edits, from installed language servers in the sandbox; enables `fs`, `search` and `shell` |
//! | `otel` | no | none: sessions send OpenTelemetry data if the environment variables enable it |
//!
//! # Approval
//!
//! If neither a rule nor the permission mode decides about a call, an [`Approver`] is asked.
//! Without an approver the call is denied, and its result explains what would allow it.
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
//!     fn is_available(&self) -> bool {
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
//! let denied = haft.call("Write", json!({"file_path": "other.txt", "content": "no"})).await;
//! assert!(denied.text().contains("only notes.txt"));
//! # Ok(())
//! # }
//! ```
//!
//! # Progress and cancellation
//!
//! Calls report their progress on a channel ([`contract::progress::channel`], passed to
//! [`HaftBuilder::progress`]). [`Haft::cancel_token`] cancels only the next turn. Each call of a
//! turn has its own token, which [`CallBatch::push`](engine::CallBatch::push) returns. A cancelled
//! call still gets a result.
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
//! `examples/agent.rs` is a complete program.
//!
//! # Commands
//!
//! `Bash` (feature `shell`) runs commands in a sandbox. Its keeper is a child process: your
//! program, started again. So your `main` must begin with [`serve_child`], and the session must
//! know the path of your program: set `SessionConfig::program`, or, if you use only the tools, add
//! a [`ShellProgram`](tools::ShellProgram) to the services.
//!
//! ```ignore
//! fn main() {
//!     haft::serve_child(); // first thing: in the child it does not return
//!     // …
//! }
//! ```
//!
//! # Your own tools
//!
//! A tool implements [`Tool`] and is added with [`HaftBuilder::tool`]; see
//! `examples/word_count.rs`. [`Haft::answer`] runs all calls of an assistant message; see
//! `examples/embed.rs`. If calls must start while the model is still streaming, use [`Haft::turn`].

#![warn(missing_docs)]

pub use haft_contract::{self as contract, *};
pub use haft_engine::{
    self as engine, ArgumentRepair, CallResult, DefinitionError, DenialSource, Engine, Metadata,
    Pool, Scheduler, SessionContext, ToolFilters, ToolFormat, pool::ToolSelection,
};
pub use haft_host::{
    self as host, AgentSession, BuildError, Environment, EventSink, Haft, HaftBuilder,
    MessageError, OpenError, ProviderMessage, QuestionHandler, SessionConfig, SessionEnd,
    SessionEvent, SessionEvents, SessionInput, SessionParts, StopKind, UserQuestions, agent,
    memory_folder, messages, models, project_folder, session_folder,
};
pub use haft_tools::{self as tools, serve_child};
