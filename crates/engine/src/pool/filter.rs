//! Run-time filters: the tools that this session offers.

use std::sync::Arc;

use futures_util::future::join_all;
use haft_contract::{ToolRole, ToolSpec};

use super::{
    DeferralMode,
    registry::{ToolRegistry, own_names},
};
use crate::permissions::RuleSet;

/// The filters of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilters {
    /// `--tools`: limits only the built-in tools.
    pub tools: ToolSelection,
    /// Offers only the built-in tools whose profile is [basic](haft_contract::ToolProfile::basic).
    pub simple: bool,
    /// Tools that are banned, built-in or not.
    pub deny: Vec<String>,
    /// The condition under which tools are deferred.
    pub deferral: DeferralMode,
    /// The approximate token budget for the definitions sent with every request; tools beyond it
    /// are deferred. `None`: unlimited.
    pub budget: Option<usize>,
    /// Permission rules: a rule that denies a whole tool bans it.
    pub rules: Arc<RuleSet>,
}

/// A selection of built-in tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolSelection {
    /// Every built-in tool that is not optional.
    #[default]
    All,
    /// Like [`All`](Self::All), and these optional tools, which are only offered by name.
    AllAnd(Vec<String>),
    /// Only these, by name or alias.
    Only(Vec<String>),
}

impl ToolSelection {
    /// Parses the value of `--tools`: names separated by commas or spaces. `default` means all; an
    /// empty list means none.
    pub fn parse(list: &str) -> Self {
        let names = list.split([',', ' ']).map(str::trim);
        let (all, names): (Vec<_>, Vec<_>) = names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .partition(|name| name == "default");
        match (all.is_empty(), names.is_empty()) {
            (true, _) => Self::Only(names),
            (false, true) => Self::All,
            (false, false) => Self::AllAnd(names),
        }
    }

    /// Returns whether this tool is requested by name.
    pub(super) fn names(&self, spec: &ToolSpec) -> bool {
        match self {
            Self::All => false,
            Self::AllAnd(names) | Self::Only(names) => {
                names.iter().any(|name| answers_to(spec, name))
            }
        }
    }

    fn includes(&self, spec: &ToolSpec) -> bool {
        match self {
            Self::All | Self::AllAnd(_) => !spec.profile.optional || self.names(spec),
            Self::Only(_) => self.names(spec),
        }
    }
}

/// Applies the filters. Also returns the names that match no tool.
pub(super) async fn apply(
    registry: ToolRegistry,
    filters: &ToolFilters,
) -> (ToolRegistry, Vec<String>) {
    let asked = match &filters.tools {
        ToolSelection::All => &[][..],
        ToolSelection::AllAnd(names) | ToolSelection::Only(names) => names,
    };
    let everything = || registry.built_in.iter().chain(&registry.external);
    let unknown = asked
        .iter()
        .chain(&filters.deny)
        .filter(|name| !everything().any(|tool| answers_to(tool.spec(), name)))
        .cloned()
        .collect();

    // Ask all tools concurrently: some need to inspect the environment to answer.
    let enabled: Vec<bool> = join_all(everything().map(|tool| tool.is_enabled())).await;
    let mut enabled = enabled.into_iter();
    let mut keep = |spec: &ToolSpec, built_in: bool| {
        let selected =
            !built_in || (filters.tools.includes(spec) && (!filters.simple || spec.profile.basic));
        let is_off = filters.deferral == DeferralMode::Off;
        let idle = match spec.profile.role {
            Some(ToolRole::FindsTools) => is_off,
            Some(ToolRole::AwaitsTools) => !is_off,
            _ => false,
        };
        enabled.next().unwrap_or(false) && selected && !idle && !is_denied(spec, filters)
    };
    let ToolRegistry {
        mut built_in,
        mut external,
    } = registry;
    built_in.retain(|tool| keep(tool.spec(), true));
    external.retain(|tool| keep(tool.spec(), false));
    (ToolRegistry { built_in, external }, unknown)
}

/// Returns whether the tool is banned.
pub(super) fn is_denied(spec: &ToolSpec, filters: &ToolFilters) -> bool {
    filters.deny.iter().any(|name| answers_to(spec, name))
        || filters.rules.find_tool_ban(spec).is_some()
}

fn answers_to(spec: &ToolSpec, name: &str) -> bool {
    own_names(spec).any(|own| own == name)
}
