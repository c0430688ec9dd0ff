//! Converts session state to the answers of control requests.

use haft_host::{
    AgentDetails, CommandDetails, ContextUsage, FileContents, ModelOption, PluginDetails,
    RewoundFiles, ServerChanges, ServerDetails, ServerList,
};
use haft_protocol::{
    ContextCategory, ContextMcpTool, ContextUsageAnswer, DescribedAgent, DescribedCommand,
    DescribedTool, FileAnswer, ListedServer, ListedServerTool, LoadedPlugin, McpStatusAnswer,
    RewindAnswer, ServerProblem, ServerState, ServersAnswer, ToolHints,
};
use serde_json::{Value, json};

/// Returns the usage of the model's context window.
pub(super) fn usage(used: &ContextUsage) -> ContextUsageAnswer {
    let from_servers: u64 = used.servers.iter().map(|(_, tokens)| tokens).sum();
    let before = used.system + used.tools + from_servers;
    // The provider's count includes everything; our own estimate covers the messages only.
    let total = used.total.max(before);
    let messages = total - before;
    let free = used.window.saturating_sub(total);
    let categories = [
        ("System prompt", used.system, "promptBorder"),
        ("System tools", used.tools, "inactive"),
        ("MCP tools", from_servers, "cyan"),
        ("Messages", messages, "purple"),
        ("Free space", free, "promptBorder"),
    ]
    .into_iter()
    .filter(|(_, tokens, _)| *tokens > 0)
    .map(|(name, tokens, color)| ContextCategory {
        name: name.to_owned(),
        tokens,
        color: color.to_owned(),
    });
    let mcp_tools = used.servers.iter().map(|(name, tokens)| ContextMcpTool {
        name: name.clone(),
        server_name: name.split("__").nth(1).unwrap_or_default().to_owned(),
        tokens: *tokens,
        is_loaded: true,
    });
    let percentage = match used.window {
        0 => 0,
        window => total * 100 / window,
    };
    ContextUsageAnswer {
        categories: categories.collect(),
        total_tokens: total,
        max_tokens: used.window,
        raw_max_tokens: used.window,
        percentage,
        model: used.model.clone(),
        is_auto_compact_enabled: !used.keeps_everything,
        mcp_tools: mcp_tools.collect(),
        ..ContextUsageAnswer::default()
    }
}

/// Describes a slash command.
pub(super) fn command(command: &CommandDetails) -> DescribedCommand {
    DescribedCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        argument_hint: command.argument_hint.clone(),
    }
}

/// Describes an available model.
pub(super) fn model(model: &ModelOption) -> Value {
    json!({
        "value": model.value,
        "displayName": model.display_name,
        "description": model.description,
    })
}

/// Describes an agent kind.
pub(super) fn agent(kind: AgentDetails) -> DescribedAgent {
    DescribedAgent {
        name: kind.name,
        description: kind.description,
        model: kind.model,
    }
}

/// Describes a plugin.
pub(super) fn plugin(plugin: &PluginDetails) -> LoadedPlugin {
    LoadedPlugin {
        name: plugin.name.clone(),
        path: plugin.path.to_string_lossy().into_owned(),
        version: plugin.version.clone(),
    }
}

/// Returns the contents of a file as text or base64.
pub(super) fn file(read: FileContents, in_base64: bool) -> FileAnswer {
    let answer = FileAnswer {
        abs_path: read.path.to_string_lossy().into_owned(),
        truncated: read.is_truncated,
        ..FileAnswer::default()
    };
    if in_base64 {
        return FileAnswer {
            contents: data_encoding::BASE64.encode(&read.bytes),
            encoding: Some("base64".to_owned()),
            ..answer
        };
    }
    let text = String::from_utf8_lossy(&read.bytes);
    FileAnswer {
        lossy: Some(std::str::from_utf8(&read.bytes).is_err()),
        contents: text.into_owned(),
        ..answer
    }
}

/// Describes the effect of a rewind, done or previewed.
pub(super) fn rewound(rewound: &RewoundFiles) -> RewindAnswer {
    let files = rewound.files.iter();
    let paths = files.map(|file| file.to_string_lossy().into_owned());
    let told = RewindAnswer {
        can_rewind: true,
        files_changed: Some(paths.collect()),
        ..RewindAnswer::default()
    };
    if *rewound == RewoundFiles::default() {
        return told;
    }
    let left = rewound.left.iter();
    let left: Vec<String> = left
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    RewindAnswer {
        insertions: Some(rewound.insertions),
        deletions: Some(rewound.deletions),
        error: (!left.is_empty()).then(|| format!("not restored: {}", left.join("; "))),
        ..told
    }
}

/// Lists the servers in the short form of the `init` message.
pub(super) fn servers_in_short(list: &ServerList) -> Vec<ServerState<'_>> {
    let told = list.servers.iter().map(|server| ServerState {
        name: (&server.name).into(),
        status: server.status.into(),
        error: server.error.as_deref().map(Into::into),
    });
    told.collect()
}

/// Lists the skipped server entries that are errors.
pub(super) fn servers_left_out(list: &ServerList) -> Vec<ServerProblem<'_>> {
    let problems = list.skipped.iter().filter(|one| one.is_problem());
    let told = problems.map(|one| ServerProblem {
        name: (&one.name).into(),
        category: one.category.into(),
        message: (&one.message).into(),
    });
    told.collect()
}

/// Returns the full state of all servers.
pub(super) fn servers(list: ServerList) -> McpStatusAnswer {
    McpStatusAnswer {
        mcp_servers: list.servers.into_iter().map(server).collect(),
    }
}

/// Describes the result of replacing the client's servers.
pub(super) fn server_changes(changes: ServerChanges) -> ServersAnswer {
    let errors = changes.errors.into_iter();
    ServersAnswer {
        added: changes.added,
        removed: changes.removed,
        errors: errors.map(|(name, why)| (name, why.into())).collect(),
    }
}

fn server(server: ServerDetails) -> ListedServer {
    ListedServer {
        name: server.name,
        status: server.status.to_owned(),
        config: server.config,
        scope: server.scope.to_owned(),
        error: server.error,
        server_info: server.info,
        tools: server
            .tools
            .map(|tools| tools.into_iter().map(shown).collect()),
    }
}

/// Describes a tool as part of its server's state.
fn shown(listed: Value) -> ListedServerTool {
    let listed = DescribedTool::from(listed);
    let said = listed.annotations.unwrap_or_default();
    ListedServerTool {
        name: listed.name,
        description: listed.description,
        annotations: ToolHints {
            read_only: said.read_only_hint,
            destructive: said.destructive_hint,
            open_world: said.open_world_hint,
        },
    }
}
