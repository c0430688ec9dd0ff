//! Which tools there are, and which of them the model sees.
//!
//! Three layers. What is compiled in is decided by the cargo features of the tool families, in the
//! crate that lists them; [`filter`] decides at run time; [`merge`] puts what is left into one order
//! that the session keeps, because the model's provider caches by prefix. What comes later goes behind it:
//! `live` exchanges the pool as a whole between turns, [`offer`] is what the model has been sent so far.

pub mod definitions;
pub mod filter;
pub(crate) mod live;
pub mod merge;
pub mod offer;
pub mod registry;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use haft_contract::{DynTool, ToolRole, ToolSpec};

pub use definitions::Format;
pub use filter::{Filters, Selection};
pub use offer::ToolOffer;
pub use registry::{DefinitionError, Registry};

use crate::{schema::SchemaValidator, settings::nearby};

/// The tools of a session, in their final order.
#[derive(Debug)]
pub struct Pool {
    tools: Vec<Arc<PoolTool>>,
    /// Names and aliases; a name wins over an alias.
    by_name: HashMap<String, usize>,
    /// Deferred tools are sent in full all the same.
    undefer: bool,
    /// So are these, since someone asked for them by name.
    named: BTreeSet<String>,
    forbidden: Vec<Forbidden>,
    /// Tools that were there, each with the server that had it.
    withdrawn: BTreeMap<String, String>,
}

/// A tool that a rule keeps out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidden {
    /// The tool.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<Cow<'static, str>>,
    /// The rule.
    pub rule: String,
    /// Where the rule stands.
    pub source: String,
}

/// A tool in a pool.
#[derive(Debug)]
pub struct PoolTool {
    tool: Arc<dyn DynTool>,
    /// Compiled when first needed: most sessions use few of their tools.
    validator: OnceLock<SchemaValidator>,
}

impl PoolTool {
    fn new(tool: Arc<dyn DynTool>) -> Self {
        Self {
            tool,
            validator: OnceLock::new(),
        }
    }

    /// The tool itself.
    pub fn tool(&self) -> &Arc<dyn DynTool> {
        &self.tool
    }

    /// Its definition.
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
    pub(crate) fn new(tools: Vec<Arc<dyn DynTool>>, undefer: bool) -> Self {
        let tools = tools
            .into_iter()
            .map(|tool| Arc::new(PoolTool::new(tool)))
            .collect();
        Self::of(tools, undefer, Vec::new())
    }

    fn of(tools: Vec<Arc<PoolTool>>, undefer: bool, forbidden: Vec<Forbidden>) -> Self {
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
            undefer,
            named: BTreeSet::new(),
            forbidden,
            withdrawn: BTreeMap::new(),
        }
    }

    /// Only those of the tools that this keeps, in the same order. They are the same tools: nothing is
    /// compiled again.
    #[must_use]
    pub fn narrowed(&self, keep: impl Fn(&ToolSpec) -> bool) -> Self {
        let kept = self.tools.iter().filter(|tool| keep(tool.spec()));
        let kept = kept.cloned().collect();
        Self {
            named: self.named.clone(),
            ..Self::of(kept, self.undefer, self.forbidden.clone())
        }
    }

    /// The same, with nothing deferred: for the one who has named each of them.
    #[must_use]
    pub fn in_full(self) -> Self {
        Self {
            undefer: true,
            ..self
        }
    }

    /// Tools that a rule keeps out.
    pub fn all_forbidden(&self) -> &[Forbidden] {
        &self.forbidden
    }

    /// The tool of this name or alias, if a rule keeps it out.
    pub fn forbidden(&self, name: &str) -> Option<&Forbidden> {
        self.forbidden
            .iter()
            .find(|tool| tool.name == name || tool.aliases.iter().any(|alias| alias == name))
    }

    /// The server that had a tool of this name, if the tool is gone.
    pub fn withdrawn(&self, name: &str) -> Option<&str> {
        self.withdrawn.get(name).map(String::as_str)
    }

    /// The tool that has this role.
    pub fn with_role(&self, role: ToolRole) -> Option<&Arc<PoolTool>> {
        self.tools
            .iter()
            .find(|tool| tool.spec().profile.role == Some(role))
    }

    /// The tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<PoolTool>> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }

    /// Up to three names much like one that is not there.
    pub fn near(&self, name: &str) -> Vec<&str> {
        nearby::names(
            name,
            self.tools.iter().map(|tool| tool.spec().name.as_str()),
            3,
        )
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<PoolTool>> {
        self.tools.iter()
    }

    /// The tools that something must activate first.
    pub fn deferred(&self) -> Vec<Arc<dyn DynTool>> {
        let deferred = self.iter().filter(|tool| tool.spec().profile.deferred);
        deferred.map(|tool| Arc::clone(tool.tool())).collect()
    }

    /// The tools whose definitions the model is sent: all but the deferred ones no one activated.
    pub fn offered<'a>(
        &'a self,
        activated: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = &'a Arc<PoolTool>> {
        self.tools.iter().filter(|tool| {
            let spec = tool.spec();
            let is_waiting = spec.profile.deferred && !self.undefer;
            !is_waiting || activated.contains(&spec.name) || self.named.contains(&spec.name)
        })
    }
}
