//! The kinds of hook events.

/// A kind of hook event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HookEventKind(&'static str);

/// The effect of a handler that objects with exit code 2 or `decision: "block"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockBehavior {
    /// The objection blocks the event.
    Blocks,
    /// Blocking is no longer possible: the model gets the reason.
    ForModel,
    /// Blocking is no longer possible: the user gets the reason.
    ForUser,
    /// The objection is ignored.
    Ignored,
}

/// The handler types that an event supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandlerKinds {
    All,
    /// All types except those that ask a model.
    NoModel,
    /// Only commands and MCP tools: models and HTTP are not available yet.
    AtStart,
}

use BlockBehavior::{Blocks, ForModel, ForUser, Ignored};
use HandlerKinds::{All, AtStart, NoModel};

/// All events that a settings file may name.
const EVENTS: [(&str, BlockBehavior, HandlerKinds); 33] = [
    ("ConfigChange", Blocks, NoModel),
    ("CwdChanged", ForUser, NoModel),
    ("DirectoryAdded", Ignored, NoModel),
    ("Elicitation", Blocks, NoModel),
    ("ElicitationResult", Blocks, NoModel),
    ("FileChanged", ForUser, NoModel),
    ("InstructionsLoaded", Ignored, NoModel),
    ("MessageDisplay", Ignored, NoModel),
    ("Notification", Ignored, NoModel),
    ("PermissionDenied", Ignored, All),
    ("PermissionRequest", Ignored, All),
    ("PostCompact", ForUser, NoModel),
    ("PostModelSwitch", Ignored, NoModel),
    ("PostToolBatch", Blocks, All),
    ("PostToolUse", ForModel, All),
    ("PostToolUseFailure", ForModel, All),
    ("PreCompact", Blocks, NoModel),
    ("PreModelSwitch", Ignored, NoModel),
    ("PreToolUse", Blocks, All),
    ("SessionEnd", ForUser, NoModel),
    ("SessionStart", ForUser, AtStart),
    ("Setup", ForUser, AtStart),
    ("Stop", Blocks, All),
    ("StopFailure", Ignored, NoModel),
    ("SubagentStart", ForUser, NoModel),
    ("SubagentStop", Blocks, All),
    ("TaskCompleted", Blocks, All),
    ("TaskCreated", Blocks, All),
    ("TeammateIdle", Blocks, All),
    ("UserPromptExpansion", Blocks, All),
    ("UserPromptSubmit", Blocks, All),
    ("WorktreeCreate", Blocks, NoModel),
    ("WorktreeRemove", Ignored, NoModel),
];

impl HookEventKind {
    /// A settings file has changed.
    pub const CONFIG_CHANGE: Self = Self("ConfigChange");
    /// The working directory has changed.
    pub const CWD_CHANGED: Self = Self("CwdChanged");
    /// A working directory was added.
    pub const DIRECTORY_ADDED: Self = Self("DirectoryAdded");
    /// An MCP server requests input from the user.
    pub const ELICITATION: Self = Self("Elicitation");
    /// The user has answered that request, and the answer is about to be sent to the server.
    pub const ELICITATION_RESULT: Self = Self("ElicitationResult");
    /// A watched file has changed.
    pub const FILE_CHANGED: Self = Self("FileChanged");
    /// An instruction file was loaded.
    pub const INSTRUCTIONS_LOADED: Self = Self("InstructionsLoaded");
    /// A message of the model is displayed.
    pub const MESSAGE_DISPLAY: Self = Self("MessageDisplay");
    /// The user gets a notification.
    pub const NOTIFICATION: Self = Self("Notification");
    /// A call was denied without asking the user.
    pub const PERMISSION_DENIED: Self = Self("PermissionDenied");
    /// The user is about to be asked for permission.
    pub const PERMISSION_REQUEST: Self = Self("PermissionRequest");
    /// The conversation was compacted.
    pub const POST_COMPACT: Self = Self("PostCompact");
    /// All calls of one reply have results.
    pub const POST_TOOL_BATCH: Self = Self("PostToolBatch");
    /// A call has succeeded.
    pub const POST_TOOL_USE: Self = Self("PostToolUse");
    /// A call ran and failed.
    pub const POST_TOOL_USE_FAILURE: Self = Self("PostToolUseFailure");
    /// The conversation is about to be compacted.
    pub const PRE_COMPACT: Self = Self("PreCompact");
    /// The permission of a call is about to be evaluated.
    pub const PRE_TOOL_USE: Self = Self("PreToolUse");
    /// A session ends.
    pub const SESSION_END: Self = Self("SessionEnd");
    /// A session starts or is resumed.
    pub const SESSION_START: Self = Self("SessionStart");
    /// The project is to be initialized or maintained.
    pub const SETUP: Self = Self("Setup");
    /// The model has finished its turn.
    pub const STOP: Self = Self("Stop");
    /// The model request failed.
    pub const STOP_FAILURE: Self = Self("StopFailure");
    /// A subagent starts.
    pub const SUBAGENT_START: Self = Self("SubagentStart");
    /// A subagent has finished.
    pub const SUBAGENT_STOP: Self = Self("SubagentStop");
    /// A task is about to be marked as completed.
    pub const TASK_COMPLETED: Self = Self("TaskCompleted");
    /// A task is about to be created.
    pub const TASK_CREATED: Self = Self("TaskCreated");
    /// A slash command of the user is about to be expanded to a prompt.
    pub const USER_PROMPT_EXPANSION: Self = Self("UserPromptExpansion");
    /// The user has submitted a prompt.
    pub const USER_PROMPT_SUBMIT: Self = Self("UserPromptSubmit");
    /// A worktree is to be created.
    pub const WORKTREE_CREATE: Self = Self("WorktreeCreate");
    /// A worktree is removed.
    pub const WORKTREE_REMOVE: Self = Self("WorktreeRemove");

    /// Returns the event with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = EVENTS.iter().find(|(known, ..)| *known == name);
        found.map(|(known, ..)| Self(known))
    }

    /// Returns all events.
    pub fn all() -> impl Iterator<Item = Self> {
        EVENTS.iter().map(|(name, ..)| Self(name))
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Returns the effect of an objection.
    pub fn block_behavior(self) -> BlockBehavior {
        let row = EVENTS.iter().find(|(name, ..)| *name == self.0);
        row.map_or(Ignored, |(_, objection, _)| *objection)
    }

    /// Returns whether the event supports this handler type (`command`, `http`, `mcp_tool`,
    /// `prompt`, `agent`).
    pub fn accepts_handler(self, kind: &str) -> bool {
        let row = EVENTS.iter().find(|(name, ..)| *name == self.0);
        match row {
            Some((.., All)) => true,
            Some((.., NoModel)) => !["prompt", "agent"].contains(&kind),
            Some((.., AtStart)) => ["command", "mcp_tool"].contains(&kind),
            None => false,
        }
    }

    /// Returns whether the event is about a call, so that handlers may have an `if`.
    pub fn is_about_a_call(self) -> bool {
        [
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "PermissionDenied",
        ]
        .contains(&self.0)
    }

    /// Returns whether handlers receive the permission mode.
    pub fn includes_mode(self) -> bool {
        self.is_about_a_call()
            || [
                "Elicitation",
                "ElicitationResult",
                "PostToolBatch",
                "Stop",
                "SubagentStop",
                "TaskCompleted",
                "TaskCreated",
                "TeammateIdle",
                "UserPromptExpansion",
                "UserPromptSubmit",
            ]
            .contains(&self.0)
    }

    /// Returns whether plain text on stdout is added to the model's context.
    pub fn takes_plain_text(self) -> bool {
        ["SessionStart", "UserPromptExpansion", "UserPromptSubmit"].contains(&self.0)
    }

    /// Returns whether handlers get a file for environment variables of later commands.
    pub fn sets_variables(self) -> bool {
        ["CwdChanged", "FileChanged", "SessionStart", "Setup"].contains(&self.0)
    }

    /// Returns whether handlers can set the paths to watch.
    pub fn can_watch_paths(self) -> bool {
        ["CwdChanged", "FileChanged", "SessionStart"].contains(&self.0)
    }

    /// Returns whether handlers can end the run with `continue: false`.
    pub fn can_stop(self) -> bool {
        self.can_message()
            && !["CwdChanged", "DirectoryAdded", "FileChanged", "TaskCreated"].contains(&self.0)
    }

    /// Returns whether handlers can show a message to the user with `systemMessage`.
    pub fn can_message(self) -> bool {
        ![
            "ConfigChange",
            "Elicitation",
            "ElicitationResult",
            "InstructionsLoaded",
            "MessageDisplay",
            "Notification",
            "PostCompact",
            "PreCompact",
            "SessionEnd",
            "WorktreeCreate",
            "WorktreeRemove",
        ]
        .contains(&self.0)
    }

    /// Returns whether its handlers are always reported in the message stream.
    pub fn is_always_shown(self) -> bool {
        ["SessionStart", "Setup"].contains(&self.0)
    }

    /// Returns whether matchers have an effect.
    pub fn has_matcher(self) -> bool {
        ![
            "UserPromptSubmit",
            "PostToolBatch",
            "Stop",
            "TeammateIdle",
            "TaskCreated",
            "TaskCompleted",
            "CwdChanged",
            "WorktreeCreate",
            "WorktreeRemove",
            "MessageDisplay",
        ]
        .contains(&self.0)
    }

    /// Returns whether its matchers can only be names separated by `|`.
    pub fn has_plain_matcher(self) -> bool {
        ["FileChanged", "StopFailure"].contains(&self.0)
    }
}

/// Returns the names of all events.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_a_list_is_an_event() {
        assert!(EVENTS.is_sorted_by_key(|(name, ..)| *name));
        for event in [
            HookEventKind::CONFIG_CHANGE,
            HookEventKind::CWD_CHANGED,
            HookEventKind::DIRECTORY_ADDED,
            HookEventKind::ELICITATION,
            HookEventKind::ELICITATION_RESULT,
            HookEventKind::FILE_CHANGED,
            HookEventKind::INSTRUCTIONS_LOADED,
            HookEventKind::MESSAGE_DISPLAY,
            HookEventKind::NOTIFICATION,
            HookEventKind::PERMISSION_DENIED,
            HookEventKind::PERMISSION_REQUEST,
            HookEventKind::POST_COMPACT,
            HookEventKind::POST_TOOL_BATCH,
            HookEventKind::POST_TOOL_USE,
            HookEventKind::POST_TOOL_USE_FAILURE,
            HookEventKind::PRE_COMPACT,
            HookEventKind::PRE_TOOL_USE,
            HookEventKind::SESSION_END,
            HookEventKind::SESSION_START,
            HookEventKind::SETUP,
            HookEventKind::STOP,
            HookEventKind::STOP_FAILURE,
            HookEventKind::SUBAGENT_START,
            HookEventKind::SUBAGENT_STOP,
            HookEventKind::TASK_COMPLETED,
            HookEventKind::TASK_CREATED,
            HookEventKind::USER_PROMPT_EXPANSION,
            HookEventKind::USER_PROMPT_SUBMIT,
            HookEventKind::WORKTREE_CREATE,
            HookEventKind::WORKTREE_REMOVE,
        ] {
            assert_eq!(HookEventKind::from_name(event.name()), Some(event));
        }
    }

    #[test]
    fn a_model_is_asked_only_where_it_can_have_a_say() {
        let cases = [
            ("PreToolUse", "prompt", true),
            ("Stop", "agent", true),
            ("SessionStart", "command", true),
            ("SessionStart", "http", false),
            ("SessionEnd", "http", true),
            ("SessionEnd", "prompt", false),
            ("SubagentStart", "prompt", false),
        ];
        for (event, kind, expected) in cases {
            let event = HookEventKind::from_name(event).unwrap();
            assert_eq!(
                event.accepts_handler(kind),
                expected,
                "{} {kind}",
                event.name()
            );
        }
    }
}
