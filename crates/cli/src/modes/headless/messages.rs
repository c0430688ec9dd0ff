//! What is told, as messages.

use haft::{
    CallResult,
    engine::hooks::{HookNews, HookStage},
};
use haft_agent::{Began, ReplyBlock, RunResult, Subtype};
use haft_host::{ExtensionNames, ServerList, SessionFacts};
use haft_models::{Block, ModelError, Usage};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::status;

/// The level of the conventions that our messages keep to.
const LEVEL: &str = "2.1.240";

/// What the session cannot know by itself.
#[derive(Clone, Default)]
pub(super) struct Facts {
    pub(super) key_source: &'static str,
    pub(super) window: u64,
    pub(super) max_tokens: u32,
    /// What was left out because nobody trusts the directory.
    pub(super) left_out: Option<String>,
    /// Commands are less confined than they should be: in what.
    pub(super) sandbox_warning: Option<String>,
    /// What people laid in folders.
    pub(super) told: ExtensionNames,
    pub(super) servers: ServerList,
}

impl Facts {
    pub(super) fn of(session: &SessionFacts) -> Self {
        Self {
            key_source: session.key_source,
            window: session.window,
            max_tokens: session.max_tokens,
            left_out: session.untrusted.clone(),
            sandbox_warning: session.sandbox_warning.clone(),
            told: session.names.clone(),
            servers: ServerList::default(),
        }
    }
}

pub(super) fn init(began: &Began, facts: &Facts) -> Value {
    let tools: Vec<&str> = began
        .tools
        .iter()
        // Old readers know it by this name.
        .map(|name| if name == "Agent" { "Task" } else { name })
        .collect();
    let mut message = json!({
        "type": "system",
        "subtype": "init",
        "cwd": began.cwd.to_string_lossy(),
        "tools": tools,
        "mcp_servers": status::servers_in_short(&facts.servers),
        "model": began.model,
        "permissionMode": began.mode.name(),
        "slash_commands": facts.told.commands,
        "apiKeySource": facts.key_source,
        "claude_code_version": LEVEL,
        "output_style": facts.told.output_style,
        "agents": facts.told.agents,
        "skills": facts.told.skills,
        "plugins": [],
    });
    if let Some(left_out) = &facts.left_out {
        message["untrusted"] = json!(left_out);
    }
    if let Some(warning) = &facts.sandbox_warning {
        message["sandbox_warning"] = json!(warning);
    }
    if let Some(left_out) = status::servers_left_out(&facts.servers) {
        message["mcp_server_errors"] = left_out;
    }
    message
}

pub(super) fn assistant(said: &ReplyBlock) -> Value {
    let mut block = json!(said.block);
    if matches!(said.block, Block::Thinking { .. }) && block.get("signature").is_none() {
        block["signature"] = json!("");
    }
    json!({
        "type": "assistant",
        "message": {
            "id": said.message_id,
            "type": "message",
            "role": "assistant",
            "model": said.model,
            "content": [block],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage(&said.usage),
        },
        "parent_tool_use_id": null,
        "uuid": said.uuid,
    })
}

/// What a reader sees in place of the reply that never came.
pub(super) fn failure(error: &ModelError) -> Value {
    let id = format!("msg_{}", haft_agent::random_id().simple());
    let mut message = json!({
        "type": "assistant",
        "message": {
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": format!("API Error: {error}")}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": usage(&Usage::default()),
        },
        "parent_tool_use_id": null,
        "error": error.code(),
    });
    if let Some(id) = &error.request_id {
        message["request_id"] = json!(id);
    }
    message
}

pub(super) fn answer(uuid: Uuid, finished: &CallResult) -> Value {
    let content = match finished.content.as_slice() {
        [haft::Content::Text { text }] => json!(text),
        blocks => json!(blocks),
    };
    let structured = match &finished.structured {
        Some(structured) => structured.clone(),
        None if finished.is_error => json!(format!("Error: {}", finished.text())),
        None => json!(finished.text()),
    };
    json!({
        "type": "user",
        "message": {
            "role": "user",
            "content": [{
                "type": "tool_result",
                "tool_use_id": finished.id,
                "content": content,
                "is_error": finished.is_error,
            }],
        },
        "parent_tool_use_id": null,
        "tool_use_result": structured,
        "uuid": uuid,
    })
}

pub(super) fn result(ended: &RunResult, facts: &Facts) -> Value {
    let mut message = Map::new();
    let mut put = |name: &str, value: Value| message.insert(name.to_owned(), value);
    put("type", json!("result"));
    put("subtype", json!(ended.subtype.name()));
    put("is_error", json!(ended.is_error()));
    put("duration_ms", json!(millis(ended.duration)));
    put("duration_api_ms", json!(millis(ended.duration_api)));
    put("num_turns", json!(ended.num_turns));
    if ended.subtype == Subtype::Success {
        put("result", json!(ended.text));
    } else {
        put("errors", json!(ended.errors));
    }
    if let Some(error) = &ended.api_error {
        put("api_error_status", json!(error.status));
    }
    match &ended.deferred {
        None => put("stop_reason", json!(ended.stop_reason)),
        Some(call) => {
            put("stop_reason", json!("tool_deferred"));
            let call = json!({
                "id": call.tool_use_id,
                "name": call.tool_name,
                "input": call.tool_input,
            });
            put("deferred_tool_use", call)
        }
    };
    put("total_cost_usd", json!(ended.ledger.total_cost() + 0.0));
    put("usage", full_usage(&ended.usage));
    let models = ended.ledger.models().map(|(name, spent)| {
        let used = json!({
            "inputTokens": spent.usage.input,
            "outputTokens": spent.usage.output,
            "cacheReadInputTokens": spent.usage.cache_read,
            "cacheCreationInputTokens": spent.usage.cache_write,
            "webSearchRequests": 0,
            "costUSD": spent.cost,
            "contextWindow": facts.window,
            "maxOutputTokens": facts.max_tokens,
        });
        (name.to_owned(), used)
    });
    put("modelUsage", Value::Object(models.collect()));
    let denials: Vec<Value> = ended
        .permission_denials
        .iter()
        .map(|denial| {
            json!({
                "tool_name": denial.tool_name,
                "tool_use_id": denial.tool_use_id,
                "tool_input": denial.tool_input,
            })
        })
        .collect();
    put("permission_denials", json!(denials));
    put("terminal_reason", json!(ended.reason.name()));
    if let Some(first) = ended.first_token {
        put("ttft_ms", json!(millis(first)));
    }
    Value::Object(message)
}

/// What happened to a hook.
pub(super) fn hook(news: &HookNews) -> Value {
    let mut message = json!({
        "type": "system",
        "subtype": "hook_started",
        "hook_id": news.id,
        "hook_name": news.name,
        "hook_event": news.event.name(),
    });
    let (stdout, stderr) = match &news.stage {
        HookStage::Started => return message,
        HookStage::Printed { stdout, stderr } => {
            message["subtype"] = json!("hook_progress");
            (stdout, stderr)
        }
        HookStage::Ended {
            stdout,
            stderr,
            code,
            outcome,
        } => {
            message["subtype"] = json!("hook_response");
            if let Some(code) = code {
                message["exit_code"] = json!(code);
            }
            message["outcome"] = json!(outcome.name());
            (stdout, stderr)
        }
    };
    message["output"] = json!(format!("{stdout}{stderr}"));
    message["stdout"] = json!(stdout);
    message["stderr"] = json!(stderr);
    message
}

/// The result of a run that never began.
pub(super) fn stillborn(problem: &str) -> Value {
    json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "errors": [problem],
        "stop_reason": null,
        "total_cost_usd": 0.0,
        "usage": full_usage(&Usage::default()),
        "modelUsage": {},
        "permission_denials": [],
    })
}

pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    })
}

fn full_usage(used: &Usage) -> Value {
    let mut full = usage(used);
    full["server_tool_use"] = json!({"web_search_requests": 0, "web_fetch_requests": 0});
    full["service_tier"] = json!("standard");
    full["cache_creation"] = json!({
        "ephemeral_1h_input_tokens": used.cache_write_1h,
        "ephemeral_5m_input_tokens": used.cache_write.saturating_sub(used.cache_write_1h),
    });
    full
}

pub(super) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
