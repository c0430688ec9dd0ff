//! The moments at which hooks run.

/// A moment at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HookMoment(&'static str);

/// What becomes of a handler's objection: exit code 2, or `decision: "block"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objection {
    /// It holds the event up.
    Blocks,
    /// It is too late to hold anything up: the model reads it.
    ForModel,
    /// It is too late to hold anything up: the person reads it.
    ForPerson,
    /// No one reads it.
    Ignored,
}

/// The kinds of handlers that an event takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinds {
    All,
    /// All but those that ask a model.
    NoModel,
    /// Programs and tools: nothing else is there yet.
    AtStart,
}

use Kinds::{All, AtStart, NoModel};
use Objection::{Blocks, ForModel, ForPerson, Ignored};

/// Every event a file may name.
const EVENTS: [(&str, Objection, Kinds); 33] = [
    ("ConfigChange", Blocks, NoModel),
    ("CwdChanged", ForPerson, NoModel),
    ("DirectoryAdded", Ignored, NoModel),
    ("Elicitation", Blocks, NoModel),
    ("ElicitationResult", Blocks, NoModel),
    ("FileChanged", ForPerson, NoModel),
    ("InstructionsLoaded", Ignored, NoModel),
    ("MessageDisplay", Ignored, NoModel),
    ("Notification", Ignored, NoModel),
    ("PermissionDenied", Ignored, All),
    ("PermissionRequest", Ignored, All),
    ("PostCompact", ForPerson, NoModel),
    ("PostModelSwitch", Ignored, NoModel),
    ("PostToolBatch", Blocks, All),
    ("PostToolUse", ForModel, All),
    ("PostToolUseFailure", ForModel, All),
    ("PreCompact", Blocks, NoModel),
    ("PreModelSwitch", Ignored, NoModel),
    ("PreToolUse", Blocks, All),
    ("SessionEnd", ForPerson, NoModel),
    ("SessionStart", ForPerson, AtStart),
    ("Setup", ForPerson, AtStart),
    ("Stop", Blocks, All),
    ("StopFailure", Ignored, NoModel),
    ("SubagentStart", ForPerson, NoModel),
    ("SubagentStop", Blocks, All),
    ("TaskCompleted", Blocks, All),
    ("TaskCreated", Blocks, All),
    ("TeammateIdle", Blocks, All),
    ("UserPromptExpansion", Blocks, All),
    ("UserPromptSubmit", Blocks, All),
    ("WorktreeCreate", Blocks, NoModel),
    ("WorktreeRemove", Ignored, NoModel),
];

impl HookMoment {
    /// A settings file has changed.
    pub const CONFIG_CHANGE: Self = Self("ConfigChange");
    /// Relative paths start elsewhere from now on.
    pub const CWD_CHANGED: Self = Self("CwdChanged");
    /// One more working directory.
    pub const DIRECTORY_ADDED: Self = Self("DirectoryAdded");
    /// An MCP server wants to know something of a person.
    pub const ELICITATION: Self = Self("Elicitation");
    /// A person has answered that, and the server is about to learn it.
    pub const ELICITATION_RESULT: Self = Self("ElicitationResult");
    /// A file that someone wanted watched has changed.
    pub const FILE_CHANGED: Self = Self("FileChanged");
    /// A file was read that tells the model what to do.
    pub const INSTRUCTIONS_LOADED: Self = Self("InstructionsLoaded");
    /// The model's words are shown.
    pub const MESSAGE_DISPLAY: Self = Self("MessageDisplay");
    /// The person should know of something.
    pub const NOTIFICATION: Self = Self("Notification");
    /// A call was refused because no one is asked.
    pub const PERMISSION_DENIED: Self = Self("PermissionDenied");
    /// A person would be asked.
    pub const PERMISSION_REQUEST: Self = Self("PermissionRequest");
    /// The conversation was summarized.
    pub const POST_COMPACT: Self = Self("PostCompact");
    /// All calls of one reply are answered.
    pub const POST_TOOL_BATCH: Self = Self("PostToolBatch");
    /// A call has ended well.
    pub const POST_TOOL_USE: Self = Self("PostToolUse");
    /// A call ran and failed.
    pub const POST_TOOL_USE_FAILURE: Self = Self("PostToolUseFailure");
    /// The conversation is about to be summarized.
    pub const PRE_COMPACT: Self = Self("PreCompact");
    /// A call is about to be judged.
    pub const PRE_TOOL_USE: Self = Self("PreToolUse");
    /// A session ends.
    pub const SESSION_END: Self = Self("SessionEnd");
    /// A session begins, or is taken up again.
    pub const SESSION_START: Self = Self("SessionStart");
    /// The project is to be made ready, or put in order.
    pub const SETUP: Self = Self("Setup");
    /// The model has said everything.
    pub const STOP: Self = Self("Stop");
    /// The model could not answer.
    pub const STOP_FAILURE: Self = Self("StopFailure");
    /// A subagent begins.
    pub const SUBAGENT_START: Self = Self("SubagentStart");
    /// A subagent has said everything.
    pub const SUBAGENT_STOP: Self = Self("SubagentStop");
    /// A task is to be marked as completed.
    pub const TASK_COMPLETED: Self = Self("TaskCompleted");
    /// A task is to be created.
    pub const TASK_CREATED: Self = Self("TaskCreated");
    /// A command of the person's becomes a prompt.
    pub const USER_PROMPT_EXPANSION: Self = Self("UserPromptExpansion");
    /// The person says something.
    pub const USER_PROMPT_SUBMIT: Self = Self("UserPromptSubmit");
    /// A copy of the project is to be made.
    pub const WORKTREE_CREATE: Self = Self("WorktreeCreate");
    /// A copy of the project goes.
    pub const WORKTREE_REMOVE: Self = Self("WorktreeRemove");

    /// The event of this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = EVENTS.iter().find(|(known, ..)| *known == name);
        found.map(|(known, ..)| Self(known))
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        EVENTS.iter().map(|(name, ..)| Self(name))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// What becomes of an objection to it.
    pub fn objection(self) -> Objection {
        let row = EVENTS.iter().find(|(name, ..)| *name == self.0);
        row.map_or(Ignored, |(_, objection, _)| *objection)
    }

    /// May a handler of this kind (`command`, `http`, `mcp_tool`, `prompt`, `agent`) be for it?
    pub fn takes(self, kind: &str) -> bool {
        let row = EVENTS.iter().find(|(name, ..)| *name == self.0);
        match row {
            Some((.., All)) => true,
            Some((.., NoModel)) => !["prompt", "agent"].contains(&kind),
            Some((.., AtStart)) => ["command", "mcp_tool"].contains(&kind),
            None => false,
        }
    }

    /// Is it about a call, so that handlers may say `if`?
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

    /// Does its handler receive the permission mode?
    pub fn tells_mode(self) -> bool {
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

    /// Does its handler's plain text become something that the model knows?
    pub fn takes_plain_text(self) -> bool {
        ["SessionStart", "UserPromptExpansion", "UserPromptSubmit"].contains(&self.0)
    }

    /// Does its handler get a file for variables of later commands?
    pub fn sets_variables(self) -> bool {
        ["CwdChanged", "FileChanged", "SessionStart", "Setup"].contains(&self.0)
    }

    /// Can its handler say which paths are to be watched?
    pub fn watches(self) -> bool {
        ["CwdChanged", "FileChanged", "SessionStart"].contains(&self.0)
    }

    /// Can its handler end everything, with `continue: false`?
    pub fn can_stop(self) -> bool {
        self.can_message()
            && !["CwdChanged", "DirectoryAdded", "FileChanged", "TaskCreated"].contains(&self.0)
    }

    /// Can its handler tell the person something, with `systemMessage`?
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

    /// Are its handlers always reported in the stream of messages?
    pub fn is_always_shown(self) -> bool {
        ["SessionStart", "Setup"].contains(&self.0)
    }

    /// Does its matcher tell anything apart?
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

    /// Its matchers know only names separated by `|`.
    pub fn has_plain_matcher(self) -> bool {
        ["FileChanged", "StopFailure"].contains(&self.0)
    }
}

/// The names of all events.
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
            HookMoment::CONFIG_CHANGE,
            HookMoment::CWD_CHANGED,
            HookMoment::DIRECTORY_ADDED,
            HookMoment::ELICITATION,
            HookMoment::ELICITATION_RESULT,
            HookMoment::FILE_CHANGED,
            HookMoment::INSTRUCTIONS_LOADED,
            HookMoment::MESSAGE_DISPLAY,
            HookMoment::NOTIFICATION,
            HookMoment::PERMISSION_DENIED,
            HookMoment::PERMISSION_REQUEST,
            HookMoment::POST_COMPACT,
            HookMoment::POST_TOOL_BATCH,
            HookMoment::POST_TOOL_USE,
            HookMoment::POST_TOOL_USE_FAILURE,
            HookMoment::PRE_COMPACT,
            HookMoment::PRE_TOOL_USE,
            HookMoment::SESSION_END,
            HookMoment::SESSION_START,
            HookMoment::SETUP,
            HookMoment::STOP,
            HookMoment::STOP_FAILURE,
            HookMoment::SUBAGENT_START,
            HookMoment::SUBAGENT_STOP,
            HookMoment::TASK_COMPLETED,
            HookMoment::TASK_CREATED,
            HookMoment::USER_PROMPT_EXPANSION,
            HookMoment::USER_PROMPT_SUBMIT,
            HookMoment::WORKTREE_CREATE,
            HookMoment::WORKTREE_REMOVE,
        ] {
            assert_eq!(HookMoment::named(event.name()), Some(event));
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
            let event = HookMoment::named(event).unwrap();
            assert_eq!(event.takes(kind), expected, "{} {kind}", event.name());
        }
    }
}
