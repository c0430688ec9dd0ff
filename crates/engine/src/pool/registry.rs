//! The registry of tools, which rejects invalid definitions.

use std::sync::Arc;

use haft_contract::{DynTool, Tool, ToolSpec, erase};
use serde_json::Value;

use super::{BannedTool, Pool, ToolFilters, filter, merge};
use crate::schema::SchemaValidator;

/// The registered tools, before filters.
#[derive(Debug, Default)]
pub struct ToolRegistry {
    pub(super) built_in: Vec<Arc<dyn DynTool>>,
    pub(super) external: Vec<Arc<dyn DynTool>>,
}

/// The reason why a tool was not registered, as text for its author.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The tool has no name.
    #[error("a tool without a name (its description begins {description:?})")]
    NoName {
        /// The beginning of its description, to identify it.
        description: String,
    },
    /// The name is not one that providers accept.
    #[error(
        "tool {name:?}: a name has 1 to 64 characters, each a letter, a digit, `_` or `-`, since \
         providers refuse others"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// The tool has no description.
    #[error("tool {name}: no description; write a doc comment on its input type")]
    NoDescription {
        /// The tool.
        name: String,
    },
    /// The input schema does not describe an object.
    #[error("tool {name}: the input schema must have `\"type\": \"object\"`, not {found}")]
    NotAnObject {
        /// The tool.
        name: String,
        /// The type that the schema has instead.
        found: String,
    },
    /// The input schema is invalid or contains references.
    #[error("tool {name}: the input schema cannot be used: {problem}")]
    BadSchema {
        /// The tool.
        name: String,
        /// The problem.
        problem: String,
    },
    /// Another tool has the same name.
    #[error("tool {name}: the name {taken:?} is already taken by the tool {by}")]
    NameTaken {
        /// The tool.
        name: String,
        /// The name or alias that clashes.
        taken: String,
        /// The tool that has it.
        by: String,
    },
}

impl ToolRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a built-in tool.
    pub fn add(&mut self, tool: impl Tool) -> Result<&mut Self, DefinitionError> {
        self.add_erased(erase(tool))
    }

    /// Adds a built-in tool that is already erased.
    pub fn add_erased(&mut self, tool: Arc<dyn DynTool>) -> Result<&mut Self, DefinitionError> {
        check(tool.spec(), &self.built_in)?;
        self.built_in.push(tool);
        Ok(self)
    }

    /// Adds a tool from elsewhere, such as an MCP server. It comes after the built-in tools, and is
    /// left out if its name clashes with a built-in one.
    pub fn add_external(&mut self, tool: Arc<dyn DynTool>) -> Result<&mut Self, DefinitionError> {
        check(tool.spec(), &self.external)?;
        self.external.push(tool);
        Ok(self)
    }

    /// Creates the pool of a session: the tools that pass the filters, in their final order. Also
    /// returns the names in the filters that match no tool.
    pub async fn pool(self, filters: &ToolFilters) -> (Pool, Vec<String>) {
        let tools = self.built_in.iter().chain(&self.external);
        let forbidden = tools.filter_map(|tool| {
            let spec = tool.spec();
            let rule = filters.rules.find_tool_ban(spec)?;
            Some(BannedTool {
                name: spec.name.clone(),
                aliases: spec.profile.aliases.clone(),
                rule: rule.text.clone(),
                source: rule.source.to_string(),
            })
        });
        let forbidden = forbidden.collect();
        let (kept, unknown) = filter::apply(self, filters).await;
        let named = kept.built_in.iter().map(|tool| tool.spec());
        let named = named.filter(|spec| filters.tools.names(spec));
        let named = named.map(|spec| spec.name.clone()).collect();
        let tools = merge::merge(kept.built_in, kept.external);
        let mut pool = Pool::new(tools, filters, named);
        pool.forbidden = forbidden;
        (pool, unknown)
    }
}

pub(super) fn check<'a>(
    spec: &ToolSpec,
    others: impl IntoIterator<Item = &'a Arc<dyn DynTool>>,
) -> Result<(), DefinitionError> {
    let name = spec.name.clone();
    if name.is_empty() {
        let description = spec.description.chars().take(40).collect();
        return Err(DefinitionError::NoName { description });
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() > 64 || !name.chars().all(fits) {
        return Err(DefinitionError::BadName { name });
    }
    if spec.description.trim().is_empty() {
        return Err(DefinitionError::NoDescription { name });
    }
    match spec.input_schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        found => {
            let found = found.map_or_else(|| "no type at all".to_owned(), Value::to_string);
            return Err(DefinitionError::NotAnObject { name, found });
        }
    }
    if has_reference(&spec.input_schema) {
        let problem = "it holds a `$ref` (a recursive type?), which providers refuse".to_owned();
        return Err(DefinitionError::BadSchema { name, problem });
    }
    if let Err(error) = SchemaValidator::new(&spec.input_schema) {
        return Err(DefinitionError::BadSchema {
            name,
            problem: error.to_string(),
        });
    }
    for other in others {
        let other = other.spec();
        if let Some(taken) = own_names(spec).find(|name| own_names(other).any(|o| o == *name)) {
            let (taken, by) = (taken.to_owned(), other.name.clone());
            return Err(DefinitionError::NameTaken { name, taken, by });
        }
    }
    Ok(())
}

/// Returns the name and the aliases of a tool.
pub(super) fn own_names(spec: &ToolSpec) -> impl Iterator<Item = &str> {
    std::iter::once(spec.name.as_str()).chain(spec.profile.aliases.iter().map(AsRef::as_ref))
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            object.get("$ref").is_some_and(Value::is_string) || object.values().any(has_reference)
        }
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}
