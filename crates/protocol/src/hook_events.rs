//! What happens to hooks: `hook_started`, `hook_progress`, `hook_response`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::WireId;

/// A hook starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStartedMessage<'a> {
    /// This run of it.
    pub hook_id: Cow<'a, str>,
    /// The event and what was matched, such as `PreToolUse:Bash`.
    pub hook_name: Cow<'a, str>,
    /// The event.
    pub hook_event: Cow<'a, str>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A hook has printed something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookPrintedMessage<'a> {
    /// This run of it.
    pub hook_id: Cow<'a, str>,
    /// The event and what was matched.
    pub hook_name: Cow<'a, str>,
    /// The event.
    pub hook_event: Cow<'a, str>,
    /// Everything so far.
    pub output: Cow<'a, str>,
    /// On stdout.
    pub stdout: Cow<'a, str>,
    /// On stderr.
    pub stderr: Cow<'a, str>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A hook has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEndMessage<'a> {
    /// This run of it.
    pub hook_id: Cow<'a, str>,
    /// The event and what was matched.
    pub hook_name: Cow<'a, str>,
    /// The event.
    pub hook_event: Cow<'a, str>,
    /// The exit code of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// `success`, `error`, `cancelled`.
    pub outcome: Cow<'a, str>,
    /// Everything that it printed.
    pub output: Cow<'a, str>,
    /// On stdout.
    pub stdout: Cow<'a, str>,
    /// On stderr.
    pub stderr: Cow<'a, str>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}
