//! Events of hooks: `hook_started`, `hook_progress`, `hook_response`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::WireId;

/// A hook has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStartedMessage<'a> {
    /// The id of this run of the hook.
    pub hook_id: Cow<'a, str>,
    /// The event and the matched value, such as `PreToolUse:Bash`.
    pub hook_name: Cow<'a, str>,
    /// The hook event.
    pub hook_event: Cow<'a, str>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A hook has printed output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookProgressMessage<'a> {
    /// The id of this run of the hook.
    pub hook_id: Cow<'a, str>,
    /// The event and the matched value.
    pub hook_name: Cow<'a, str>,
    /// The hook event.
    pub hook_event: Cow<'a, str>,
    /// The whole output so far.
    pub output: Cow<'a, str>,
    /// The part on stdout.
    pub stdout: Cow<'a, str>,
    /// The part on stderr.
    pub stderr: Cow<'a, str>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A hook has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookResponseMessage<'a> {
    /// The id of this run of the hook.
    pub hook_id: Cow<'a, str>,
    /// The event and the matched value.
    pub hook_name: Cow<'a, str>,
    /// The hook event.
    pub hook_event: Cow<'a, str>,
    /// The exit code of the hook's command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The outcome: `success`, `error`, `cancelled`.
    pub outcome: Cow<'a, str>,
    /// The whole output.
    pub output: Cow<'a, str>,
    /// The part on stdout.
    pub stdout: Cow<'a, str>,
    /// The part on stderr.
    pub stderr: Cow<'a, str>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}
