//! The moments at which hooks run.

/// A moment at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(&'static str);

/// Every event a file may name, with what its handlers are matched by and whether a handler can
/// hold it up.
const EVENTS: [(&str, bool); 33] = [
    ("ConfigChange", true),
    ("CwdChanged", false),
    ("DirectoryAdded", false),
    ("Elicitation", true),
    ("ElicitationResult", true),
    ("FileChanged", false),
    ("InstructionsLoaded", false),
    ("MessageDisplay", false),
    ("Notification", false),
    ("PermissionDenied", false),
    ("PermissionRequest", false),
    ("PostCompact", false),
    ("PostModelSwitch", false),
    ("PostToolBatch", true),
    ("PostToolUse", false),
    ("PostToolUseFailure", false),
    ("PreCompact", true),
    ("PreModelSwitch", false),
    ("PreToolUse", true),
    ("SessionEnd", false),
    ("SessionStart", false),
    ("Setup", false),
    ("Stop", true),
    ("StopFailure", false),
    ("SubagentStart", false),
    ("SubagentStop", true),
    ("TaskCompleted", true),
    ("TaskCreated", true),
    ("TeammateIdle", true),
    ("UserPromptExpansion", true),
    ("UserPromptSubmit", true),
    ("WorktreeCreate", true),
    ("WorktreeRemove", false),
];

impl Event {
    /// A call is about to be judged.
    pub const PRE_TOOL_USE: Self = Self("PreToolUse");
    /// A person would be asked.
    pub const PERMISSION_REQUEST: Self = Self("PermissionRequest");
    /// A call has ended well.
    pub const POST_TOOL_USE: Self = Self("PostToolUse");
    /// A call ran and failed.
    pub const POST_TOOL_USE_FAILURE: Self = Self("PostToolUseFailure");
    /// The person should know of something.
    pub const NOTIFICATION: Self = Self("Notification");
    /// Relative paths start elsewhere from now on.
    pub const CWD_CHANGED: Self = Self("CwdChanged");
    /// One more working directory.
    pub const DIRECTORY_ADDED: Self = Self("DirectoryAdded");
    /// A settings file has changed.
    pub const CONFIG_CHANGE: Self = Self("ConfigChange");

    /// A session begins, or is taken up again.
    pub const SESSION_START: Self = Self("SessionStart");
    /// A session ends.
    pub const SESSION_END: Self = Self("SessionEnd");
    /// The person says something.
    pub const USER_PROMPT_SUBMIT: Self = Self("UserPromptSubmit");
    /// All calls of one reply are answered.
    pub const POST_TOOL_BATCH: Self = Self("PostToolBatch");
    /// The model has said everything.
    pub const STOP: Self = Self("Stop");
    /// A subagent begins.
    pub const SUBAGENT_START: Self = Self("SubagentStart");
    /// A subagent has said everything.
    pub const SUBAGENT_STOP: Self = Self("SubagentStop");
    /// The conversation is about to be summed up.
    pub const PRE_COMPACT: Self = Self("PreCompact");
    /// The conversation was summed up.
    pub const POST_COMPACT: Self = Self("PostCompact");
    /// The model could not answer.
    pub const STOP_FAILURE: Self = Self("StopFailure");

    /// The event of this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = EVENTS.iter().find(|(known, _)| *known == name);
        found.map(|(known, _)| Self(known))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Can a handler hold it up?
    pub fn can_block(self) -> bool {
        EVENTS
            .iter()
            .any(|(name, blocks)| *name == self.0 && *blocks)
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

    /// Is its handler told the permission mode, where no call is concerned?
    pub fn tells_mode(self) -> bool {
        ["UserPromptSubmit", "PostToolBatch", "Stop"].contains(&self.0)
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

    /// Its matchers know only names set off by `|`.
    pub fn has_plain_matcher(self) -> bool {
        ["FileChanged", "StopFailure"].contains(&self.0)
    }
}
