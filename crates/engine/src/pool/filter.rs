//! The run-time layer: which of the tools that exist this session offers.

use std::sync::Arc;

use futures_util::future::join_all;
use haft_contract::{ToolRole, ToolSpec};

use super::{
    Deferral,
    registry::{Registry, own_names},
};
use crate::permissions::Rules;

/// What a session asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// `--tools`: limits the built-ins only.
    pub tools: Selection,
    /// Only the few built-ins whose profile says that they are [basic](haft_contract::Profile::basic).
    pub simple: bool,
    /// Tools banned as a whole, built-in or not.
    pub deny: Vec<String>,
    /// Whether tools are sent by name only.
    pub deferral: Deferral,
    /// About this many tokens may go to the definitions that are sent with every request: beyond it tools are
    /// deferred. None: as many as there are.
    pub budget: Option<usize>,
    /// Permission rules: those that deny a tool as a whole keep it out.
    pub rules: Arc<Rules>,
}

/// Which built-ins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Selection {
    /// Every one.
    #[default]
    All,
    /// Every one, and these that are only offered by name.
    AllAnd(Vec<String>),
    /// These; names or aliases.
    Only(Vec<String>),
}

impl Selection {
    /// Reads the value of `--tools`: names separated by commas or blanks, of which `default` means all;
    /// nothing for none.
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

    /// Is this one asked for by its name?
    pub(super) fn names(&self, spec: &ToolSpec) -> bool {
        match self {
            Self::All => false,
            Self::AllAnd(names) | Self::Only(names) => {
                names.iter().any(|name| answers_to(spec, name))
            }
        }
    }

    fn takes(&self, spec: &ToolSpec) -> bool {
        match self {
            Self::All | Self::AllAnd(_) => !spec.profile.optional || self.names(spec),
            Self::Only(_) => self.names(spec),
        }
    }
}

/// Keeps what passes. The second part names what was asked for and no one has.
pub(super) async fn apply(registry: Registry, filters: &Filters) -> (Registry, Vec<String>) {
    let asked = match &filters.tools {
        Selection::All => &[][..],
        Selection::AllAnd(names) | Selection::Only(names) => names,
    };
    let everything = || registry.built_in.iter().chain(&registry.external);
    let unknown = asked
        .iter()
        .chain(&filters.deny)
        .filter(|name| !everything().any(|tool| answers_to(tool.spec(), name)))
        .cloned()
        .collect();

    // One question to all at once: a tool may have to look at the world to answer.
    let enabled: Vec<bool> = join_all(everything().map(|tool| tool.is_enabled())).await;
    let mut enabled = enabled.into_iter();
    let mut keep = |spec: &ToolSpec, built_in: bool| {
        let selected =
            !built_in || (filters.tools.takes(spec) && (!filters.simple || spec.profile.basic));
        let is_off = filters.deferral == Deferral::Off;
        let idle = match spec.profile.role {
            Some(ToolRole::FindsTools) => is_off,
            Some(ToolRole::AwaitsTools) => !is_off,
            _ => false,
        };
        enabled.next().unwrap_or(false) && selected && !idle && !is_denied(spec, filters)
    };
    let Registry {
        mut built_in,
        mut external,
    } = registry;
    built_in.retain(|tool| keep(tool.spec(), true));
    external.retain(|tool| keep(tool.spec(), false));
    (Registry { built_in, external }, unknown)
}

/// Is it banned as a whole?
pub(super) fn is_denied(spec: &ToolSpec, filters: &Filters) -> bool {
    filters.deny.iter().any(|name| answers_to(spec, name)) || filters.rules.bans(spec).is_some()
}

fn answers_to(spec: &ToolSpec, name: &str) -> bool {
    own_names(spec).any(|own| own == name)
}
