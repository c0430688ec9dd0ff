//! The selection of a subagent's tools.

use std::sync::Arc;

use haft_contract::{AgentAccess, DynTool, ToolSpec};
use haft_engine::Pool;
use haft_extensions::AgentDefinition;

/// The conditions under which the tools are used.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubagentToolOptions {
    pub(super) in_background: bool,
    /// Whether the subagent may launch subagents.
    pub(super) may_delegate: bool,
}

/// Returns the tools of a subagent of this kind, a subset of its parent's. The error is for the
/// model.
pub(super) fn for_subagent(
    pool: &Pool,
    kind: &AgentDefinition,
    how: SubagentToolOptions,
) -> Result<Pool, String> {
    let plans = kind.permission_mode.as_deref() == Some("plan");
    let available = |spec: &ToolSpec| {
        let is_for_it = match spec.profile.agents {
            AgentAccess::Every => true,
            AgentAccess::Foreground => !how.in_background,
            AgentAccess::Planning => plans,
            AgentAccess::Launching => how.may_delegate && !how.in_background,
            AgentAccess::Main => false,
        };
        is_for_it
            && !kind
                .disallowed_tools
                .iter()
                .any(|entry| entry_matches(entry, spec))
    };
    let kept = select_tools(pool, kind, available);
    are_available(&kept, kind)?;
    Ok(kept)
}

/// Returns the tools of a main agent of this kind.
pub(super) fn for_main_agent(pool: &Pool, kind: &AgentDefinition) -> Pool {
    select_tools(pool, kind, |spec| {
        !kind
            .disallowed_tools
            .iter()
            .any(|entry| entry_matches(entry, spec))
    })
}

fn select_tools(
    pool: &Pool,
    kind: &AgentDefinition,
    available: impl Fn(&ToolSpec) -> bool,
) -> Pool {
    let Some(wanted) = &kind.tools else {
        return pool.filtered(available);
    };
    let kept = pool
        .filtered(|spec| available(spec) && wanted.iter().any(|entry| entry_matches(entry, spec)));
    kept.without_deferral()
}

/// Checks that at least one of the tools that a kind lists is available.
pub(super) fn are_available(kept: &Pool, kind: &AgentDefinition) -> Result<(), String> {
    let wanted = kind.tools.as_deref().unwrap_or_default();
    // The tools of its MCP servers are not known yet.
    if kept.iter().len() == 0 && !wanted.is_empty() && kind.mcp_servers.is_empty() {
        return Err(format!(
            "the agent {} may use only the tools {}, and no such tool is available to it here",
            kind.name,
            wanted.join(", ")
        ));
    }
    Ok(())
}

/// Returns the tools of an agent kind's own MCP server: all of them, unless its list of tools names
/// some of them.
pub(super) fn from_agent_server(
    kind: &AgentDefinition,
    tools: Vec<Arc<dyn DynTool>>,
) -> Vec<Arc<dyn DynTool>> {
    let listed = |tool: &Arc<dyn DynTool>| {
        let mut entries = kind.tools.iter().flatten();
        entries.any(|entry| entry_matches(entry, tool.spec()))
    };
    let is_chosen = tools.iter().any(listed);
    let banned = |tool: &Arc<dyn DynTool>| {
        let mut entries = kind.disallowed_tools.iter();
        entries.any(|entry| entry_matches(entry, tool.spec()))
    };
    let kept = tools.into_iter();
    kept.filter(|tool| !banned(tool) && (!is_chosen || listed(tool)))
        .collect()
}

/// Returns whether an entry of a tool list matches a tool. `mcp__server` and `mcp__server__*` match
/// all tools of a server.
fn entry_matches(entry: &str, spec: &ToolSpec) -> bool {
    let entry = entry.split('(').next().unwrap_or_default().trim();
    if entry == spec.name || spec.profile.aliases.iter().any(|alias| alias == entry) {
        return true;
    }
    if let Some(beginning) = entry.strip_suffix('*') {
        return beginning.starts_with("mcp__") && spec.name.starts_with(beginning);
    }
    let below = spec.name.strip_prefix(entry);
    entry.starts_with("mcp__") && below.is_some_and(|rest| rest.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use haft_contract::ToolProfile;
    use haft_engine::{ToolFilters, ToolRegistry};
    use haft_extensions::ExtensionOrigin;
    use haft_testkit::toy_tools::ProfileOnlyTool;
    use serde_json::json;

    use super::*;

    /// Tools of any name: who may have one, its profile says.
    #[tokio::test]
    async fn a_subagent_has_what_the_profiles_of_tools_allow_it() {
        let mut registry = ToolRegistry::new();
        for (name, agents) in [
            ("A", AgentAccess::Every),
            ("B", AgentAccess::Foreground),
            ("C", AgentAccess::Main),
            ("D", AgentAccess::Planning),
            ("E", AgentAccess::Launching),
        ] {
            let profile = ToolProfile {
                agents,
                ..ToolProfile::default()
            };
            registry
                .add_erased(ProfileOnlyTool::with(name, profile))
                .unwrap();
        }
        let (pool, _) = registry.pool(&ToolFilters::default()).await;
        let mut kind = AgentDefinition::new("k", "d", "p", ExtensionOrigin::BuiltIn);
        let names = |kind: &AgentDefinition, in_background, may_delegate| {
            let how = SubagentToolOptions {
                in_background,
                may_delegate,
            };
            let pool = for_subagent(&pool, kind, how).unwrap();
            let names = pool.iter().map(|tool| tool.spec().name.clone());
            names.collect::<String>()
        };
        assert_eq!(names(&kind, false, true), "ABE");
        assert_eq!(names(&kind, false, false), "AB");
        assert_eq!(names(&kind, true, true), "A");
        kind.permission_mode = Some("plan".to_owned());
        assert_eq!(names(&kind, false, false), "ABD");
        let main = for_main_agent(&pool, &kind);
        assert_eq!(main.iter().len(), 5);
    }

    #[test]
    fn of_an_own_server_all_are_had_but_those_that_are_not_listed_or_banned() {
        let tools = || -> Vec<Arc<dyn DynTool>> {
            ["mcp__s__a", "mcp__s__b", "mcp__s__c"]
                .map(|name| ProfileOnlyTool::with(name, ToolProfile::default()))
                .to_vec()
        };
        let mut kind = AgentDefinition::new("k", "d", "p", ExtensionOrigin::BuiltIn);
        let names = |kind: &AgentDefinition| {
            let kept = from_agent_server(kind, tools());
            let names = kept
                .iter()
                .filter_map(|tool| tool.spec().name.chars().last());
            names.collect::<String>()
        };
        assert_eq!(names(&kind), "abc");
        kind.disallowed_tools = vec!["mcp__s__b".to_owned()];
        assert_eq!(names(&kind), "ac");
        // A list that says nothing of the server takes nothing from it.
        kind.tools = Some(vec!["Read".to_owned()]);
        assert_eq!(names(&kind), "ac");
        kind.tools = Some(vec!["Read".to_owned(), "mcp__s__c".to_owned()]);
        assert_eq!(names(&kind), "c");
        kind.disallowed_tools = vec!["mcp__s".to_owned()];
        assert_eq!(names(&kind), "");
    }

    #[test]
    fn an_entry_means_a_tool_by_name_alias_or_server() {
        let spec = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: "d".to_owned(),
            input_schema: json!({}),
            profile: ToolProfile {
                aliases: vec!["Task".into()],
                ..ToolProfile::default()
            },
        };
        let cases = [
            ("Read", "Read", true),
            ("read", "Read", false),
            ("Task", "Agent", true),
            ("Agent(Explore, Plan)", "Agent", true),
            ("Bash(git *)", "Bash", true),
            ("mcp__a", "mcp__a__b", true),
            ("mcp__a", "mcp__ab__b", false),
            ("mcp__a__*", "mcp__a__b", true),
            ("mcp__*", "mcp__a__b", true),
            ("mcp__a__b", "mcp__a__b", true),
            ("*", "Read", false),
            ("Re", "Read", false),
        ];
        for (entry, name, expected) in cases {
            assert_eq!(
                entry_matches(entry, &spec(name)),
                expected,
                "{entry} and {name}"
            );
        }
    }
}
