//! What a client answers when it is asked for permission.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AsWritten, lenient};

/// The answer to `can_use_tool`, and of a tool that is asked in the client's place. Whatever is not an
/// `allow` is a refusal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionReply {
    /// `allow` or `deny`.
    #[serde(deserialize_with = "lenient::or_default")]
    pub behavior: Option<String>,
    /// Of a refusal: why, for the model.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub message: Option<String>,
    /// Of a refusal: the turn ends.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub interrupt: bool,
    /// Of a yes: the arguments in place of the model's.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub updated_input: Option<Map<String, Value>>,
    /// Of a yes: what is permitted differently from now on.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub updated_permissions: Vec<AsWritten<PermissionUpdate<'static>>>,
}

impl From<Value> for PermissionReply {
    /// What is no object is no yes.
    fn from(reply: Value) -> Self {
        lenient::read_object(reply).unwrap_or_default()
    }
}

/// Something is permitted differently from now on. Fields that make no sense count as absent, entries of
/// lists that make none are passed over: what is left still holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate<'a> {
    /// More rules.
    AddRules(RuleUpdate<'a>),
    /// These rules in place of all of their kind.
    ReplaceRules(RuleUpdate<'a>),
    /// Fewer rules.
    RemoveRules(RuleUpdate<'a>),
    /// Another permission mode.
    SetMode {
        /// Which.
        #[serde(default)]
        mode: Value,
        /// Where it is kept.
        #[serde(default, deserialize_with = "lenient::or_default")]
        destination: Option<UpdateDestination>,
    },
    /// More working directories.
    AddDirectories(DirectoryUpdate),
    /// Fewer working directories.
    RemoveDirectories(DirectoryUpdate),
}

/// Rules of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleUpdate<'a> {
    /// The rules.
    #[serde(default, deserialize_with = "lenient::entries")]
    pub rules: Vec<PermissionRule<'a>>,
    /// What they do.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub behavior: Option<PermissionBehavior>,
    /// Where they are kept.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub destination: Option<UpdateDestination>,
}

/// Working directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryUpdate {
    /// Which.
    #[serde(default, deserialize_with = "lenient::entries")]
    pub directories: Vec<String>,
    /// Where they are kept.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub destination: Option<UpdateDestination>,
}

impl<'a> PermissionUpdate<'a> {
    /// Rules that allow, offered to be kept in the project's own settings; nothing where there are none.
    pub fn offered(rules: &'a [String]) -> Vec<Self> {
        if rules.is_empty() {
            return Vec::new();
        }
        vec![Self::AddRules(RuleUpdate {
            rules: rules
                .iter()
                .map(|rule| PermissionRule::read(rule))
                .collect(),
            behavior: Some(PermissionBehavior::Allow),
            destination: Some(UpdateDestination::LocalSettings),
        })]
    }

    /// Where it is kept.
    pub fn destination(&self) -> Option<UpdateDestination> {
        match self {
            Self::AddRules(update) | Self::ReplaceRules(update) | Self::RemoveRules(update) => {
                update.destination
            }
            Self::AddDirectories(update) | Self::RemoveDirectories(update) => update.destination,
            Self::SetMode { destination, .. } => *destination,
        }
    }
}

/// A rule in two parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// What stands in parentheses after it.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub rule_content: Option<Cow<'a, str>>,
}

impl<'a> PermissionRule<'a> {
    /// `TOOL` or `TOOL(CONTENT)`.
    pub fn read(rule: &'a str) -> Self {
        let (tool, content) = match rule.split_once('(') {
            Some((tool, content)) => (tool, Some(content.strip_suffix(')').unwrap_or(content))),
            None => (rule, None),
        };
        Self {
            tool_name: tool.into(),
            rule_content: content.map(Cow::Borrowed),
        }
    }
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionBehavior {
    /// Without asking.
    Allow,
    /// Only after asking.
    Ask,
    /// Not at all.
    Deny,
}

/// Where an update of permissions is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateDestination {
    /// With the user's settings.
    UserSettings,
    /// With the project's, which others share.
    ProjectSettings,
    /// With the project's own settings on this machine.
    LocalSettings,
    /// Nowhere: until the session ends.
    Session,
    /// Nowhere: as if it stood on the command line.
    CliArg,
}

/// What a tool that is asked in the client's place is called with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptToolInput<'a> {
    /// The tool that wants to run.
    pub tool_name: Cow<'a, str>,
    /// Its arguments.
    pub input: Cow<'a, Value>,
    /// The call.
    pub tool_use_id: Cow<'a, str>,
}
