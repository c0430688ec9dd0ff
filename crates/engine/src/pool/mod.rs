//! The pool: the available tools, and which of them the model sees.
//!
//! The pool is determined in three layers. The cargo features of the tool families decide what is
//! compiled in, in the crate that lists them. [`filter`] decides at run time. [`merge`] puts the
//! remaining tools into one order, which does not change during the session because providers cache
//! by prefix. Tools that are added later come after them: `live` exchanges the whole pool between
//! turns, and [`offered_tools`] records what the model has received so far.

pub mod deferral;
pub mod definitions;
pub mod filter;
pub(crate) mod live;
pub mod merge;
pub mod offered_tools;
pub mod registry;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use haft_contract::{DeferredTools, DynTool, Services, ToolRole, ToolSpec};

pub use deferral::DeferralMode;
pub use definitions::ToolFormat;
pub use filter::{ToolFilters, ToolSelection};
pub use live::PoolView;
pub use offered_tools::ToolOffer;
pub use registry::{DefinitionError, ToolRegistry};

use self::deferral::{DeferralInput, is_finder};
use crate::{schema::SchemaValidator, settings::suggestions};

/// The tools of a session, in their final order.
#[derive(Debug, Clone)]
pub struct Pool {
    tools: Vec<Arc<PoolTool>>,
    /// Tools by name and alias; a name overrides an alias.
    by_name: HashMap<String, usize>,
    /// The deferred tools.
    deferred: BTreeSet<String>,
    /// Tools that were requested by name.
    named: BTreeSet<String>,
    forbidden: Vec<BannedTool>,
    /// Removed tools, each with the server that had it.
    withdrawn: BTreeMap<String, String>,
}

/// A tool that a rule bans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BannedTool {
    /// The name of the tool.
    pub name: String,
    /// Its aliases.
    pub aliases: Vec<Cow<'static, str>>,
    /// The rule.
    pub rule: String,
    /// The source of the rule.
    pub source: String,
}

/// A tool in a pool.
#[derive(Debug)]
pub struct PoolTool {
    tool: Arc<dyn DynTool>,
    /// Compiled when first needed, because most sessions use few of their tools.
    validator: OnceLock<SchemaValidator>,
}

impl PoolTool {
    fn new(tool: Arc<dyn DynTool>) -> Self {
        Self {
            tool,
            validator: OnceLock::new(),
        }
    }

    /// Returns the tool itself.
    pub fn tool(&self) -> &Arc<dyn DynTool> {
        &self.tool
    }

    /// Returns its definition.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    pub(crate) fn validator(&self) -> &SchemaValidator {
        self.validator.get_or_init(|| {
            SchemaValidator::new(&self.spec().input_schema)
                .expect("the registry refuses a schema that does not compile")
        })
    }
}

impl Pool {
    pub(crate) fn new(
        tools: Vec<Arc<dyn DynTool>>,
        filters: &ToolFilters,
        named: BTreeSet<String>,
    ) -> Self {
        let tools = tools
            .into_iter()
            .map(|tool| Arc::new(PoolTool::new(tool)))
            .collect();
        let mut pool = Self::from_tools(tools, Vec::new());
        pool.named = named;
        pool.decide_deferral(filters, &BTreeMap::new());
        pool
    }

    fn decide_deferral(&mut self, filters: &ToolFilters, before: &BTreeMap<String, bool>) {
        let input = DeferralInput {
            tools: &self.tools,
            filters,
            named: &self.named,
            before,
        };
        self.deferred = input.decide();
    }

    fn from_tools(tools: Vec<Arc<PoolTool>>, forbidden: Vec<BannedTool>) -> Self {
        let mut by_name = HashMap::new();
        for (index, tool) in tools.iter().enumerate() {
            by_name.insert(tool.spec().name.clone(), index);
        }
        for (index, tool) in tools.iter().enumerate() {
            for alias in &tool.spec().profile.aliases {
                by_name.entry(alias.clone().into_owned()).or_insert(index);
            }
        }
        Self {
            tools,
            by_name,
            deferred: BTreeSet::new(),
            named: BTreeSet::new(),
            forbidden,
            withdrawn: BTreeMap::new(),
        }
    }

    /// Returns a pool with the tools for which `keep` returns `true`, in the same order. The tools
    /// are shared, so no schema is compiled again.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&ToolSpec) -> bool) -> Self {
        let kept = self.tools.iter().filter(|tool| keep(tool.spec()));
        let kept: Vec<_> = kept.cloned().collect();
        let mut deferred = self.deferred.clone();
        if !kept.iter().any(|tool| is_finder(tool.spec())) {
            // Without the tool that finds them, deferred tools of servers could not be used.
            let of_servers = kept.iter().map(|tool| tool.spec());
            let of_servers = of_servers.filter(|spec| spec.profile.origin.server().is_some());
            of_servers.for_each(|spec| {
                deferred.remove(&spec.name);
            });
        }
        Self {
            named: self.named.clone(),
            deferred,
            withdrawn: self.withdrawn.clone(),
            ..Self::from_tools(kept, self.forbidden.clone())
        }
    }

    /// Returns the pool without deferral, for callers that have named each tool.
    #[must_use]
    pub fn without_deferral(self) -> Self {
        Self {
            deferred: BTreeSet::new(),
            ..self
        }
    }

    /// Returns the tools that a rule bans.
    pub fn all_forbidden(&self) -> &[BannedTool] {
        &self.forbidden
    }

    /// Returns the tool with this name or alias, if a rule bans it.
    pub fn forbidden(&self, name: &str) -> Option<&BannedTool> {
        self.forbidden
            .iter()
            .find(|tool| tool.name == name || tool.aliases.iter().any(|alias| alias == name))
    }

    /// Returns the server of the removed tool with this name, if any.
    pub fn withdrawn(&self, name: &str) -> Option<&str> {
        self.withdrawn.get(name).map(String::as_str)
    }

    /// Returns the tool with this role.
    pub fn with_role(&self, role: ToolRole) -> Option<&Arc<PoolTool>> {
        self.tools
            .iter()
            .find(|tool| tool.spec().profile.role == Some(role))
    }

    /// Returns the tool with this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<PoolTool>> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }

    /// Returns up to three names that are similar to an unknown one.
    pub fn similar_names(&self, name: &str) -> Vec<&str> {
        suggestions::similar_names(
            name,
            self.tools.iter().map(|tool| tool.spec().name.as_str()),
            3,
        )
    }

    /// Returns all tools, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<PoolTool>> {
        self.tools.iter()
    }

    /// Returns whether the tool with this name is deferred.
    pub fn is_deferred(&self, name: &str) -> bool {
        self.deferred.contains(name)
    }

    /// Returns the tools that must be activated before use.
    pub fn deferred(&self) -> Vec<Arc<dyn DynTool>> {
        let waiting = |spec: &ToolSpec| self.is_deferred(&spec.name) && !is_finder(spec);
        let deferred = self.iter().filter(|tool| waiting(tool.spec()));
        deferred.map(|tool| Arc::clone(tool.tool())).collect()
    }

    /// Returns the tools whose definitions the model receives: the activated ones in the order of
    /// their activation, then all that are not deferred.
    pub fn offered<'a>(
        &'a self,
        activated: &'a [String],
    ) -> impl Iterator<Item = &'a Arc<PoolTool>> {
        let first = activated.iter().filter_map(|name| self.find(name));
        let rest = self.tools.iter().filter(|tool| {
            let name = &tool.spec().name;
            !self.is_deferred(name) && !activated.contains(name)
        });
        first.chain(rest)
    }

    /// Adapts the tool that finds others to these services: its definition names the tools it can
    /// find.
    pub(crate) fn with_fitted_finder(mut self, services: &Services) -> Self {
        let findable = self.deferred();
        self.set_finder_targets(findable, services);
        self
    }

    /// Adapts the tool that finds others to a list of tools.
    fn set_finder_targets(&mut self, findable: Vec<Arc<dyn DynTool>>, services: &Services) {
        let findable = Arc::new(DeferredTools::new(findable));
        let services = services.clone().with(findable);
        for tool in &mut self.tools {
            if is_finder(tool.spec())
                && let Some(fitted) = tool.tool.for_session(&services)
            {
                *tool = Arc::new(PoolTool::new(fitted));
            }
        }
    }
}
