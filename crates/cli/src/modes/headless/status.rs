//! What the program at the other end may ask of a session, as messages.

use haft_host::{ContextUsage, RewoundFiles, ServerChanges, ServerDetails, ServerList};
use serde_json::{Map, Value, json};

/// How full the model's window is.
pub(super) fn usage(used: &ContextUsage) -> Value {
    let from_servers: u64 = used.servers.iter().map(|(_, tokens)| tokens).sum();
    let before = used.system + used.tools + from_servers;
    // What the provider counted has everything in it; what we counted has the messages only.
    let total = used.total.max(before);
    let messages = total - before;
    let free = used.window.saturating_sub(total);
    let categories: Vec<Value> = [
        ("System prompt", used.system, "promptBorder"),
        ("System tools", used.tools, "inactive"),
        ("MCP tools", from_servers, "cyan"),
        ("Messages", messages, "purple"),
        ("Free space", free, "promptBorder"),
    ]
    .into_iter()
    .filter(|(_, tokens, _)| *tokens > 0)
    .map(|(name, tokens, color)| json!({"name": name, "tokens": tokens, "color": color}))
    .collect();
    let servers: Vec<Value> = used
        .servers
        .iter()
        .map(|(name, tokens)| {
            let server = name.split("__").nth(1).unwrap_or_default();
            json!({"name": name, "serverName": server, "tokens": tokens, "isLoaded": true})
        })
        .collect();
    let percentage = match used.window {
        0 => 0,
        window => total * 100 / window,
    };
    json!({
        "categories": categories,
        "totalTokens": total,
        "maxTokens": used.window,
        "rawMaxTokens": used.window,
        "percentage": percentage,
        "model": used.model,
        "isAutoCompactEnabled": true,
        "memoryFiles": [],
        "mcpTools": servers,
        "agents": [],
        "gridRows": [],
    })
}

/// What going back to a message did, or would do.
pub(super) fn rewound(rewound: &RewoundFiles) -> Value {
    if *rewound == RewoundFiles::default() {
        return json!({"canRewind": true, "filesChanged": []});
    }
    let files = rewound.files.iter();
    let paths: Vec<_> = files.map(|file| file.to_string_lossy()).collect();
    let mut told = json!({
        "canRewind": true,
        "filesChanged": paths,
        "insertions": rewound.insertions,
        "deletions": rewound.deletions,
    });
    if !rewound.left.is_empty() {
        let left = rewound.left.iter();
        let left: Vec<String> = left
            .map(|(path, why)| format!("{}: {why}", path.display()))
            .collect();
        told["error"] = json!(format!("not restored: {}", left.join("; ")));
    }
    told
}

/// The servers as the message at the beginning of a run names them.
pub(super) fn servers_in_short(list: &ServerList) -> Value {
    let told = list.servers.iter().map(|server| {
        let mut one = json!({"name": server.name, "status": server.status});
        if let Some(why) = &server.error {
            one["error"] = json!(why);
        }
        one
    });
    told.collect()
}

/// Entries that were left out; `None` if there are none.
pub(super) fn servers_left_out(list: &ServerList) -> Option<Value> {
    let told = list
        .skipped
        .iter()
        .map(|one| json!({"name": one.name, "category": one.category, "message": one.message}));
    let told: Vec<Value> = told.collect();
    (!told.is_empty()).then_some(Value::Array(told))
}

/// Everything that is known of the servers.
pub(super) fn servers(list: &ServerList) -> Value {
    let told: Vec<Value> = list.servers.iter().map(server).collect();
    json!({"mcpServers": told})
}

/// What came of setting servers.
pub(super) fn server_changes(changes: ServerChanges) -> Value {
    let errors = changes.errors.into_iter();
    let errors: Map<String, Value> = errors.map(|(name, why)| (name, json!(why))).collect();
    json!({"added": changes.added, "removed": changes.removed, "errors": errors})
}

fn server(server: &ServerDetails) -> Value {
    let mut one = json!({
        "name": server.name,
        "status": server.status,
        "config": server.config,
        "scope": "dynamic",
    });
    if let Some(why) = &server.error {
        one["error"] = json!(why);
    }
    if let Some(info) = &server.info {
        one["serverInfo"] = info.clone();
    }
    if let Some(tools) = &server.tools {
        one["tools"] = tools.iter().map(shown).collect();
    }
    one
}

/// A tool as the state of its server names it.
fn shown(listed: &Value) -> Value {
    let mut one = json!({"name": listed["name"]});
    if let Some(description) = listed["description"].as_str() {
        one["description"] = json!(description);
    }
    let mut hints = Map::new();
    for (hint, name) in [
        ("readOnlyHint", "readOnly"),
        ("destructiveHint", "destructive"),
        ("openWorldHint", "openWorld"),
    ] {
        if let Some(value) = listed["annotations"][hint].as_bool() {
            hints.insert(name.to_owned(), json!(value));
        }
    }
    if !hints.is_empty() {
        one["annotations"] = Value::Object(hints);
    }
    one
}
