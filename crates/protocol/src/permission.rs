//! The client's answers to permission requests.

use std::borrow::Cow;

use haft_contract::{RuleOffer, rule_offer::OfferKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{RawOrParsed, lenient};

/// The answer to `can_use_tool`, from the client or from a permission prompt tool that replaces it.
/// Any behavior other than `allow` denies the call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionReply {
    /// `allow` or `deny`.
    #[serde(deserialize_with = "lenient::or_default")]
    pub behavior: Option<String>,
    /// For a denial: the reason, for the model.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub message: Option<String>,
    /// For a denial: whether the turn ends.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub interrupt: bool,
    /// For an approval: arguments that replace the model's.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub updated_input: Option<Map<String, Value>>,
    /// For an approval: updates of permissions.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub updated_permissions: Vec<RawOrParsed<PermissionUpdate<'static>>>,
}

impl From<Value> for PermissionReply {
    /// Reads the answer. A value that is not an object is a denial.
    fn from(reply: Value) -> Self {
        lenient::read_object(reply).unwrap_or_default()
    }
}

/// A change of permissions. Invalid fields are treated as absent and invalid entries of lists are
/// ignored; the rest of the update applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate<'a> {
    /// Adds rules.
    AddRules(RuleUpdate<'a>),
    /// Replaces all rules with this behavior.
    ReplaceRules(RuleUpdate<'a>),
    /// Removes rules.
    RemoveRules(RuleUpdate<'a>),
    /// Changes the permission mode.
    SetMode {
        /// The new mode.
        #[serde(default)]
        mode: Value,
        /// The place where the mode is saved.
        #[serde(default, deserialize_with = "lenient::or_default")]
        destination: Option<UpdateDestination>,
    },
    /// Adds working directories.
    AddDirectories(DirectoryUpdate),
    /// Removes working directories.
    RemoveDirectories(DirectoryUpdate),
}

/// Rules with one behavior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleUpdate<'a> {
    /// The rules.
    #[serde(default, deserialize_with = "lenient::entries")]
    pub rules: Vec<PermissionRule<'a>>,
    /// The behavior of the rules.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub behavior: Option<PermissionBehavior>,
    /// The place where the rules are saved.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub destination: Option<UpdateDestination>,
    /// The end of allow rules for the session: `"task"`, or `{"seconds": 1800}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Value>,
}

/// Working directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryUpdate {
    /// The directories.
    #[serde(default, deserialize_with = "lenient::entries")]
    pub directories: Vec<String>,
    /// The place where the directories are saved.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub destination: Option<UpdateDestination>,
}

impl<'a> PermissionUpdate<'a> {
    /// Returns an update for each choice of rules. It adds them to the local project settings. A choice
    /// other than allow rules is also offered for the session.
    pub fn offered(offers: &'a [RuleOffer]) -> Vec<Self> {
        let update = |offer: &'a RuleOffer, destination| {
            let rules = offer.rules.iter();
            Self::AddRules(RuleUpdate {
                rules: rules.map(|rule| PermissionRule::read(rule)).collect(),
                behavior: Some(PermissionBehavior::Allow),
                destination: Some(destination),
                until: None,
            })
        };
        let updates = offers.iter().flat_map(|offer| {
            let for_session = (offer.kind() != OfferKind::AllowRules)
                .then(|| update(offer, UpdateDestination::Session));
            let saved = update(offer, UpdateDestination::LocalSettings);
            for_session.into_iter().chain([saved])
        });
        updates.collect()
    }

    /// Returns the place where the update is saved.
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

/// A rule, split into two parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The text in parentheses after the name.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub rule_content: Option<Cow<'a, str>>,
}

impl<'a> PermissionRule<'a> {
    /// Parses `TOOL` or `TOOL(CONTENT)`.
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

/// The behavior of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionBehavior {
    /// Calls run without asking.
    Allow,
    /// Calls run only after approval.
    Ask,
    /// Calls are denied.
    Deny,
}

/// The place where an update of permissions is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UpdateDestination {
    /// The user's settings.
    UserSettings,
    /// The project's shared settings.
    ProjectSettings,
    /// The project's local settings on this machine.
    LocalSettings,
    /// The session: not saved.
    Session,
    /// Not saved: the update acts like a command-line argument.
    CliArg,
}

/// The input of a permission prompt tool. Such a tool is asked instead of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptToolInput<'a> {
    /// The name of the tool to approve.
    pub tool_name: Cow<'a, str>,
    /// Its arguments.
    pub input: Cow<'a, Value>,
    /// The id of the call.
    pub tool_use_id: Cow<'a, str>,
}
