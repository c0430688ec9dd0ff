//! Placeholders for tools of the common convention that this build does not have. They are only
//! used to explain permissions, because settings and rules are shared with programs that have these
//! tools. They cannot be called.

use std::sync::Arc;

use haft_contract::{
    BoundCall, BoxFuture, CallContext, DynTool, Effects, RuleMatch, ToolAccess, ToolError,
    ToolOrigin, ToolOutput, ToolProfile, ToolSpec,
};
use serde_json::{Value, json};

/// The rule matching of tools that edit.
const EDITS: RuleMatch = RuleMatch::Edits {
    held_by_reads: true,
};

/// Returns a placeholder for each name that no tool uses as its name or alias.
pub(super) fn missing(tools: &[Arc<dyn DynTool>]) -> Vec<Arc<dyn DynTool>> {
    let edits = |paths| ToolProfile {
        rules: EDITS,
        access: ToolAccess::Paths,
        paths,
        ..ToolProfile::default()
    };
    let with = |rules| ToolProfile {
        rules,
        ..ToolProfile::default()
    };
    let reads = ToolProfile {
        rules: RuleMatch::Reads,
        access: ToolAccess::Reads,
        paths: &["file_path"],
        ..ToolProfile::default()
    };
    let all = [
        ("LSP", reads),
        ("MultiEdit", edits(&["file_path"])),
        ("Monitor", with(RuleMatch::Command("command"))),
        ("WebFetch", with(RuleMatch::Address("url"))),
        ("WebSearch", with(RuleMatch::NameOnly)),
    ];
    let is_taken = |name: &str| {
        let mut specs = tools.iter().map(|tool| tool.spec());
        specs.any(|spec| spec.profile.is_called(&spec.name, name))
    };
    all.into_iter()
        .filter(|(name, _)| !is_taken(name))
        .map(|(name, profile)| Arc::new(PlaceholderTool::new(name, profile)) as Arc<dyn DynTool>)
        .collect()
}

/// Returns a placeholder for a server's tool, by its name: `mcp__SERVER__TOOL`.
pub(super) fn for_server_tool(name: &str) -> Option<Arc<dyn DynTool>> {
    let (server, _) = name.strip_prefix("mcp__")?.split_once("__")?;
    let profile = ToolProfile {
        origin: ToolOrigin::Server(server.to_owned().into()),
        ..ToolProfile::default()
    };
    Some(Arc::new(PlaceholderTool::new(name, profile)))
}

/// Returns a placeholder for a tool if only its name is known.
pub(super) fn unknown(name: &str) -> Arc<dyn DynTool> {
    Arc::new(PlaceholderTool::new(name, ToolProfile::default()))
}

/// A tool that has only a name and a profile.
struct PlaceholderTool {
    spec: ToolSpec,
}

impl PlaceholderTool {
    fn new(name: &str, profile: ToolProfile) -> Self {
        Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: "Not of this build.".to_owned(),
                input_schema: json!({"type": "object", "additionalProperties": true}),
                profile,
            },
        }
    }
}

impl DynTool for PlaceholderTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Ok(Box::new(PlaceholderCall { tool: self, input }))
    }
}

struct PlaceholderCall {
    tool: Arc<PlaceholderTool>,
    input: Value,
}

impl BoundCall for PlaceholderCall {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn input(&self) -> &Value {
        &self.input
    }

    fn effects(&self) -> Effects {
        let profile = &self.tool.spec.profile;
        let paths = profile
            .paths
            .iter()
            .filter_map(|name| self.input.get(*name));
        let paths = paths.filter_map(Value::as_str).map(Into::into);
        let effects = match profile.access {
            ToolAccess::Reads => Effects::reading(paths),
            ToolAccess::Paths => Effects::writing(paths),
            ToolAccess::Anything => Effects::EXCLUSIVE,
        };
        profile.access.clamp(effects)
    }

    fn call<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let name = &self.tool.spec.name;
        Box::pin(async move { Err(ToolError::Failed(format!("{name} is not of this build"))) })
    }
}
