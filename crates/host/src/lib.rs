//! A whole session without a face.
//!
//! A face turns its own input (a command line, messages of an editor, an embedder's calls) into a
//! [`SessionConfig`] and calls on a [`SessionInput`], and the [`SessionEvent`]s of the session into its own
//! output. Everything between them is here: settings, the choice of a model, what people put in folders, MCP
//! servers, subagents, slash commands, turns, and what goes on in the background.
//!
//! # Layout
//! - [`config`], [`parts`], `environment`: what a session is given
//! - [`session`]: its life, step by step; `setup`: from the first message to an agent; `compose`: the tools
//! - `input`, `queue`, `stop`: what goes in; [`event`], [`questions`]: what comes out
//! - `turns`: one message after the other; `slash`: those that are commands, `commands`: ours; `shell_line`:
//!   command lines that people type; `schedules`: prompts that are said later, by the `clock`; `structured_output`: answers that must fit a schema; `background`: what
//!   runs beside them; `progress`: news of calls
//! - `data`: what a session can be asked for: changes, conversations, tasks, costs, rules, trust, keys
//! - `notifications`: how the model calls a person
//! - `settings`: what counts; `model`, `names`, `pace`: who answers; `conversation`: what was said before
//! - `extensions`: what people put in folders; `plugins`: what else plugins bring; `subagents`: who tasks can be given to; `main_agent`: who the main agent is; `judge`: models that
//!   hooks ask; `mcp`: which MCP servers there are, and what they may ask
//! - `access`, `live_changes`: what may be asked of a session and changed in it while it runs
//! - `haft`, `builder`, [`messages`]: a session of tools alone, for those who bring their own loop
//! - `tool_server`, `elicitation`: sessions of tools for MCP clients, and what their people are asked; `client_roots`,
//!   `served_prompts`: the directories of such a client, and what people at it may call
//! - [`export`]: a session as a page or as Markdown
//! - `explain`: what would be decided about a call, for those who ask first
//! - `telemetry`: what a session does, as OpenTelemetry (feature `otel`)
//! - `folder`: where a session keeps its state; [`moment`]: moments as people write them
//!
//! **Invariants.** Events come in one order. Nothing here writes to a terminal, changes the process's
//! environment or directory, or handles a signal: sessions in one process share nothing but what they are given.

#![warn(missing_docs)]

mod access;
mod background;
#[cfg(feature = "browser")]
mod browser;
mod budget;
mod builder;
mod catalog;
mod client_roots;
mod clock;
mod commands;
mod compose;
pub mod config;
mod conversation;
mod data;
mod elicitation;
mod environment;
mod error;
pub mod event;
mod explain;
pub mod export;
mod extensions;
mod file_watch;
mod folder;
mod haft;
mod input;
mod judge;
mod key_helper;
#[cfg(feature = "code")]
mod language_servers;
mod live_changes;
mod main_agent;
mod mcp;
mod mentions;
pub mod messages;
mod model;
mod model_list;
pub mod moment;
mod names;
mod notifications;
mod pace;
pub mod parts;
mod plugins;
mod progress;
mod prompt_settings;
pub mod questions;
mod queue;
mod retention;
mod scheduled_prompt;
#[cfg(feature = "schedule")]
mod schedules;
#[cfg(not(feature = "schedule"))]
#[path = "schedules_off.rs"]
mod schedules;
mod served_prompts;
pub mod session;
mod settings;
mod setup;
mod shell_line;
mod signed_in;
mod skill_effects;
mod slash;
mod stop;
mod structured_output;
mod subagents;
#[cfg_attr(not(feature = "otel"), path = "telemetry/absent.rs")]
mod telemetry;
mod tool_server;
mod tool_telemetry;
mod turns;
#[cfg(feature = "web")]
mod web;

pub use access::{ContextUsage, RewoundFiles};
#[cfg(feature = "browser")]
pub use browser::browser_program;
pub use builder::{BuildError, HaftBuilder};
pub use clock::{MachineClock, ManualClock, SessionClock};
pub use commands::{CommandInfo, CommandOutcome, CommandSource, DirectoryFacts};
pub use compose::{open_agent_tools, open_tools};
pub use config::{
    ConversationChoice, EarlierConversation, ModelChoice, ModelProvider, PromptTexts,
    SessionConfig, SetupHooks, ThinkingChoice,
};
pub use conversation::{all_conversations, conversations};
pub use data::{
    ChangedFile, CostLine, CostReport, Exchange, ExchangePart, Exchanges, FileChangeKind, KeyPlace,
    KeyReport, MemoryPlace, MemoryScope, RewindKind, RewindPoint, RuleInfo, RunningTask,
    SessionEntry, TodoBoard, TodoEntry, TodoStatus, TrustReport, TrustedThing, UndoEntry,
    UndoReport, UndoWhich, accept_trust, exchanges, key_report, outside_imports, remove_key,
    session_entries, store_key, trust_changes, trust_report,
};
pub use environment::Environment;
pub use error::{OpenError, error_in_words};
pub use event::{
    EventSink, SessionActivity, SessionEvent, SessionEvents, SessionFacts, TurnResult,
};
pub use explain::{CallJudge, CallQuestion, ExplainedCall, ExplainedConfinement, explain_call};
pub use export::{ExistingFile, ExportError, ExportFormat};
pub use extensions::{CommandDetails, ExtensionDetails, ExtensionNames, PluginDetails};
pub use folder::{memory_folder, project_folder, session_folder};
pub use haft::Haft;
pub use haft_agent as agent;
pub use haft_mcp::server as mcp_server;
pub use haft_models as models;
#[cfg(feature = "fs")]
pub use haft_tools::{image_content, image_pixels};

/// Pictures are read by the file tools.
#[cfg(not(feature = "fs"))]
pub fn image_content(_: &[u8]) -> Result<haft_contract::Content, String> {
    Err("this build has no file tools, so that it cannot read pictures".to_owned())
}

/// Pictures are decoded by the file tools.
#[cfg(not(feature = "fs"))]
pub fn image_pixels(
    _: &haft_contract::Content,
    _: (u32, u32),
) -> Option<haft_contract::output::PicturePixels> {
    None
}

pub use haft_mcp::client::{
    Elicitation, ElicitationAnswer, ElicitationKind, ServerChanges, ServerDetails, ServerLink,
    ServerList, ServerScope, SkippedServer, text_of as text_of_answer,
};
pub use input::SessionInput;
#[cfg(feature = "code")]
pub use language_servers::{FoundLanguageServers, found_language_servers};
pub use live_changes::{FileContents, ReloadedExtensions};
pub use mcp::{
    ElicitationHost, add_server, approve_server, check_servers, forget_approvals, login_server,
    logout_server, named_servers, remove_server,
};
pub use messages::{MessageError, Messages};
pub use model_list::{AvailableModels, available_models, save_model};
pub use names::ModelOption;
pub use pace::SpeakingPace;
pub use parts::SessionParts;
pub use questions::{AnswerOption, Questions, UserQuestion, UserQuestions};
pub use queue::{Delivery, QueuedKind, QueuedMessage, StartOptions};
pub use scheduled_prompt::ScheduledPrompt;
pub use session::{AgentSession, SessionEnd};
pub use settings::{Permitted, settings_warnings};
pub use signed_in::notify_login;
pub use stop::StopKind;
pub use subagents::AgentDetails;
pub use tool_server::ToolServer;
pub use tool_telemetry::ToolTelemetry;
