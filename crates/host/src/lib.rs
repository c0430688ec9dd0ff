//! Sessions of the agent without a front end.
//!
//! A front end converts its own input (a command line, messages of an editor, an embedder's calls)
//! into a [`SessionConfig`] and calls of a [`SessionInput`]. It converts the [`SessionEvent`]s of
//! the session into its own output. Everything in between is in this crate: settings, the choice of
//! a model, extensions (skills, commands, agents, memory files), MCP servers, subagents, slash
//! commands, turns and background tasks.
//!
//! # Layout
//! - [`config`], [`session_parts`], `environment`: the inputs of a session
//! - [`session`]: its lifecycle, step by step; `setup`: the steps from the first message to an
//!   agent; `assemble`: the tools
//! - `input`, `queue`, `stop_signal`: the input side; [`event`], [`questions`]: the output side
//! - `turn_loop`: the loop over turns; `slash`: slash commands; `commands`: the built-in ones;
//!   `shell_line`: command lines that the user types; `schedules`: prompts that are submitted
//!   later, by the `clock`; `structured_output`: answers that must match a schema; `background`:
//!   background tasks; `progress`: progress of calls
//! - `data`: queries about a session: changes, conversations, tasks, costs, rules, trust, keys
//! - `notifications`: notifications by the model for the user
//! - `resolved_settings`: the settings in force; `model`, `model_names`, `stream_pace`: the model;
//!   `conversation`: the earlier conversation
//! - `extensions`: skills, commands, agents, memory files and styles; `plugins`: the other parts of
//!   plugins; `subagents`: the agent kinds; `main_agent`: the kind of the main agent;
//!   `hook_model`: models that hooks ask; `mcp`: the MCP servers and their requests
//! - `session_access`, `live_changes`: queries and changes of a running session
//! - `haft`, `builder`, [`messages`]: a session of tools only, for callers with their own loop
//! - `tool_server`, `elicitation`: sessions of tools for MCP clients, and questions to the users of
//!   these clients; `client_roots`, `served_prompts`: the directories of an MCP client, and the
//!   prompts that its users can call
//! - [`export`]: export of a session as an HTML page or Markdown
//! - `explain`: explains the permission decision on a call without running it
//! - `telemetry`: OpenTelemetry export (feature `otel`)
//! - `session_folder`: the folders where a session stores its state; [`utc_time`]: human-readable
//!   times
//!
//! **Invariants.** All events of a session have one order. Nothing here writes to a terminal,
//! changes the environment or directory of the process, or handles signals. Sessions in one process
//! share only what they are explicitly given.

#![warn(missing_docs)]

mod assemble;
mod auth_hooks;
pub mod auto_mode;
mod background;
#[cfg(feature = "browser")]
mod browser;
mod budget;
mod builder;
mod client_roots;
mod clock;
mod commands;
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
mod haft;
mod hook_model;
mod input;
mod key_helper;
#[cfg(feature = "code")]
mod language_servers;
mod live_changes;
mod main_agent;
mod mcp;
mod mentions;
pub mod messages;
mod model;
mod model_catalog;
mod model_list;
mod model_names;
mod notifications;
mod plugins;
mod progress;
mod prompt_settings;
pub mod questions;
mod queue;
mod resolved_settings;
mod retention;
mod rule_report;
mod rule_trial;
mod scheduled_prompt;
#[cfg(feature = "schedule")]
mod schedules;
#[cfg(not(feature = "schedule"))]
#[path = "schedules_off.rs"]
mod schedules;
mod served_prompts;
pub mod session;
mod session_access;
mod session_folder;
pub mod session_parts;
mod setup;
mod shell_line;
mod skill_effects;
mod slash;
mod stop_signal;
mod stream_pace;
mod structured_output;
mod subagents;
#[cfg_attr(not(feature = "otel"), path = "telemetry/disabled.rs")]
mod telemetry;
mod tool_server;
mod tool_telemetry;
mod turn_loop;
#[cfg(feature = "shell")]
mod undo_settings;
pub mod utc_time;
#[cfg(feature = "web")]
mod web;

pub use assemble::{open_agent_tools, open_tools};
#[cfg(feature = "browser")]
pub use browser::browser_program;
pub use builder::{BuildError, HaftBuilder};
pub use clock::{MachineClock, ManualClock, SessionClock};
pub use commands::{CommandInfo, CommandOutcome, CommandSource, DirectoryFacts};
pub use config::{
    ConversationChoice, EarlierConversation, ModelChoice, ModelProvider, PromptTexts,
    SessionConfig, SetupHooks, ThinkingChoice,
};
pub use conversation::{all_conversations, conversations};
pub use data::{
    ChangedFile, CostLine, CostReport, ExchangePart, FileChangeKind, KeyPlace, KeyReport,
    MemoryPlace, MemoryScope, PromptExchange, RecentExchanges, RewindKind, RewindPoint, RuleInfo,
    RunningTask, SessionEntry, TodoBoard, TodoEntry, TodoStatus, TrustItem, TrustReport, UndoEntry,
    UndoReport, UndoWhich, accept_trust, exchanges, key_report, outside_imports, remove_key,
    session_entries, store_key, trust_changes, trust_report,
};
pub use environment::Environment;
pub use error::{OpenError, error_chain};
pub use event::{
    EventSink, SessionActivity, SessionEvent, SessionEvents, SessionFacts, TurnResult,
};
pub use explain::{
    CallExplainer, CallQuestion, ExplainedCall, ExplainedConfinement, explain_call, offer_title,
};
pub use export::{ExistingFile, ExportError, ExportFormat};
pub use extensions::{CommandDetails, ExtensionDetails, ExtensionNames, PluginDetails};
pub use haft::Haft;
pub use haft_agent as agent;
pub use haft_mcp::server as mcp_server;
pub use haft_models as models;
#[cfg(feature = "fs")]
pub use haft_tools::{image_content, image_pixels};
pub use session_access::{ContextUsage, RewoundFiles};
pub use session_folder::{memory_folder, project_folder, session_folder};

/// Returns an error, because only the file tools decode images.
#[cfg(not(feature = "fs"))]
pub fn image_content(_: &[u8]) -> Result<haft_contract::Content, String> {
    Err("this build has no file tools and cannot read images".to_owned())
}

/// Returns `None`, because only the file tools decode images.
#[cfg(not(feature = "fs"))]
pub fn image_pixels(
    _: &haft_contract::Content,
    _: (u32, u32),
) -> Option<haft_contract::output::ImagePixels> {
    None
}

pub use auth_hooks::notify_login;
pub use haft_mcp::client::{
    ElicitationAnswer, ElicitationKind, ServerChanges, ServerDetails, ServerElicitation,
    ServerLink, ServerList, ServerScope, SkippedServer, text_of as text_of_answer,
};
pub use input::SessionInput;
#[cfg(feature = "code")]
pub use language_servers::{FoundLanguageServers, found_language_servers};
pub use live_changes::{FileContents, ReloadedExtensions};
pub use mcp::{
    ElicitationHost, add_server, approve_server, check_servers, forget_approvals, login_server,
    logout_server, named_servers, remove_server,
};
pub use messages::{MessageError, ProviderMessage};
pub use model_list::{AvailableModels, available_models, save_model};
pub use model_names::ModelOption;
pub use questions::{AnswerOption, FormQuestion, QuestionHandler, UserQuestions};
pub use queue::{PromptDelivery, QueuedKind, QueuedMessage, StartOptions};
pub use resolved_settings::{ResolvedSettings, settings_warnings};
pub use rule_report::{RuleReport, audit_rules_of};
pub use rule_trial::{PastCall, RuleTrial, TRIAL_AGE, TrialLimits, try_rules};
pub use scheduled_prompt::ScheduledPrompt;
pub use session::{AgentSession, SessionEnd};
pub use session_parts::SessionParts;
pub use stop_signal::StopKind;
pub use stream_pace::StreamPace;
pub use subagents::AgentDetails;
pub use tool_server::ToolServer;
pub use tool_telemetry::ToolTelemetry;
