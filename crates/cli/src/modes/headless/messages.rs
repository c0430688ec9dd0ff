//! Builds the output messages.

use std::borrow::Cow;

use haft::{
    CallResult,
    engine::hooks::{HookRunEvent, HookStage},
};
use haft_agent::{EndReason, ReplyBlock, ResultSubtype, RunResult, RunStart};
use haft_host::{ExtensionNames, ServerList, SessionFacts};
use haft_models::{Block, ModelError, StopReason, Usage};
use haft_protocol::{
    ApiMessage, AssistantBlock, AssistantMessage, CacheWrites, DeferredToolUse,
    HookProgressMessage, HookResponseMessage, HookStartedMessage, InitMessage, MessageKind,
    MessageRole, ModelUsageReport, PermissionDenial, ResultMessage, ServerToolUse, SystemMessage,
    ToolResultBlock, ToolResultContent, UsageReport, UserBlock, UserBody, UserContent, UserMessage,
};
use serde_json::Value;
use uuid::Uuid;

use super::status;

/// The compatibility level of our messages.
const LEVEL: &str = "2.1.240";

/// Facts for the `init` message that the agent loop does not know.
#[derive(Clone, Default)]
pub(super) struct InitFacts {
    pub(super) key_source: &'static str,
    pub(super) window: u64,
    pub(super) max_tokens: u32,
    /// The workspace settings that were ignored because the directory is not trusted.
    pub(super) left_out: Option<String>,
    /// The warning that the sandbox confines commands less than the settings require.
    pub(super) sandbox_warning: Option<String>,
    /// The reason why the permission mode is not `auto`, although it was requested.
    pub(super) permission_mode_warning: Option<String>,
    /// The names of the installed extensions (commands, agents, skills and so on).
    pub(super) extensions: ExtensionNames,
    pub(super) servers: ServerList,
}

impl InitFacts {
    pub(super) fn from_session(session: &SessionFacts) -> Self {
        Self {
            key_source: session.key_source,
            window: session.window,
            max_tokens: session.max_tokens,
            left_out: session.untrusted.clone(),
            sandbox_warning: session.sandbox_warning.clone(),
            permission_mode_warning: session.permission_mode_warning.clone(),
            extensions: session.names.clone(),
            servers: ServerList::default(),
        }
    }
}

pub(super) fn init<'a>(began: &'a RunStart, facts: &'a InitFacts) -> SystemMessage<'a> {
    let tools = began
        .tools
        .iter()
        // Older readers know the tool by its former name.
        .map(|name| if name == "Agent" { "Task" } else { name }.into())
        .collect();
    SystemMessage::Init(Box::new(InitMessage {
        cwd: began.cwd.to_string_lossy(),
        tools,
        mcp_servers: status::servers_in_short(&facts.servers),
        model: (&began.model).into(),
        permission_mode: began.mode.name().into(),
        slash_commands: commands(facts),
        api_key_source: facts.key_source.into(),
        claude_code_version: LEVEL.into(),
        output_style: (&facts.extensions.output_style).into(),
        agents: Cow::Borrowed(&facts.extensions.agents),
        skills: Cow::Borrowed(&facts.extensions.skills),
        plugins: facts
            .extensions
            .plugins
            .iter()
            .map(status::plugin)
            .collect(),
        untrusted: facts.left_out.as_deref().map(Cow::Borrowed),
        sandbox_warning: facts.sandbox_warning.as_deref().map(Cow::Borrowed),
        permission_mode_warning: facts.permission_mode_warning.as_deref().map(Cow::Borrowed),
        mcp_server_errors: status::servers_left_out(&facts.servers),
        session_id: None,
        uuid: None,
    }))
}

/// Returns the slash commands, including prompts of MCP servers.
fn commands(facts: &InitFacts) -> Cow<'_, [String]> {
    let servers = &facts.servers.servers;
    let prompts = servers.iter().flat_map(|server| &server.commands);
    let mut prompts = prompts.peekable();
    match prompts.peek() {
        None => Cow::Borrowed(&facts.extensions.commands),
        Some(_) => facts
            .extensions
            .commands
            .iter()
            .chain(prompts)
            .cloned()
            .collect(),
    }
}

pub(super) fn assistant(said: &ReplyBlock) -> AssistantMessage<'_> {
    AssistantMessage {
        uuid: Some(said.uuid.into()),
        ..AssistantMessage::new(ApiMessage {
            id: Some((&said.message_id).into()),
            kind: MessageKind::Message,
            role: MessageRole::Assistant,
            model: (&said.model).into(),
            content: vec![block(&said.block)],
            stop_reason: None,
            stop_sequence: None,
            usage: usage(&said.usage),
        })
    }
}

fn block(block: &Block) -> AssistantBlock<'_> {
    match block {
        Block::Text { text } => AssistantBlock::Text { text: text.into() },
        Block::Thinking {
            thinking,
            signature,
            details,
        } => AssistantBlock::Thinking {
            thinking: thinking.into(),
            signature: signature.into(),
            details: Cow::Borrowed(details),
        },
        Block::RedactedThinking { data } => AssistantBlock::RedactedThinking { data: data.into() },
        Block::ToolUse {
            id,
            name,
            input,
            extra,
        } => AssistantBlock::ToolUse {
            id: id.into(),
            name: name.into(),
            input: Cow::Borrowed(input),
            extra: Cow::Borrowed(extra),
        },
        Block::Other(block) => AssistantBlock::Other(Cow::Borrowed(block)),
        // No known model reply contains other blocks.
        other => {
            let other = serde_json::to_value(other).unwrap_or_default();
            AssistantBlock::Other(Cow::Owned(other))
        }
    }
}

/// Returns the synthetic reply that reports a failed model request.
pub(super) fn failure(error: &ModelError) -> AssistantMessage<'_> {
    let id = format!("msg_{}", haft_agent::random_id().simple());
    let text = format!("API Error: {error}").into();
    AssistantMessage {
        error: Some(error.code().into()),
        request_id: error.request_id.as_deref().map(Cow::Borrowed),
        ..AssistantMessage::new(ApiMessage {
            id: Some(id.into()),
            kind: MessageKind::Message,
            role: MessageRole::Assistant,
            model: "<synthetic>".into(),
            content: vec![AssistantBlock::Text { text }],
            stop_reason: Some("stop_sequence".into()),
            stop_sequence: Some("".into()),
            usage: usage(&Usage::default()),
        })
    }
}

pub(super) fn answer(uuid: Uuid, finished: &CallResult) -> UserMessage<'_> {
    let content = match finished.content.as_slice() {
        [haft::Content::Text { text }] => ToolResultContent::Text(text.into()),
        blocks => ToolResultContent::Blocks(Cow::Borrowed(blocks)),
    };
    let structured = match &finished.structured {
        Some(structured) => Cow::Borrowed(structured),
        None if finished.is_error => {
            Cow::Owned(Value::String(format!("Error: {}", finished.text())))
        }
        None => Cow::Owned(Value::String(finished.text())),
    };
    let result = UserBlock::ToolResult(ToolResultBlock {
        tool_use_id: (&finished.id).into(),
        content,
        is_error: Some(finished.is_error),
    });
    UserMessage {
        tool_use_result: Some(structured),
        uuid: Some(uuid.into()),
        ..UserMessage::new(UserBody::new(UserContent::Blocks(vec![result])))
    }
}

pub(super) fn result<'a>(ended: &'a RunResult, facts: &InitFacts) -> ResultMessage<'a> {
    let is_success = ended.subtype == ResultSubtype::Success;
    let errors = || ended.errors.iter().map(Cow::from).collect();
    let stop_reason = match &ended.deferred {
        None if ended.reason == EndReason::ToolDeferredUnavailable => {
            Some(ended.reason.name().into())
        }
        None => ended.stop_reason.as_ref().and_then(stop_name),
        Some(_) => Some("tool_deferred".into()),
    };
    let models = ended.ledger.models().map(|(name, spent)| {
        let used = ModelUsageReport {
            input_tokens: spent.usage.input,
            output_tokens: spent.usage.output,
            cache_read_input_tokens: spent.usage.cache_read,
            cache_creation_input_tokens: spent.usage.cache_write,
            web_search_requests: 0,
            cost_usd: spent.cost,
            context_window: facts.window,
            max_output_tokens: facts.max_tokens,
        };
        (name.into(), used)
    });
    let denials = ended
        .permission_denials
        .iter()
        .map(|denial| PermissionDenial {
            tool_name: (&denial.tool_name).into(),
            tool_use_id: (&denial.tool_use_id).into(),
            tool_input: Cow::Borrowed(&denial.tool_input),
        });
    ResultMessage {
        subtype: ended.subtype.name().into(),
        is_error: ended.is_error(),
        duration_ms: millis(ended.duration),
        duration_api_ms: millis(ended.duration_api),
        num_turns: ended.num_turns,
        result: is_success.then(|| (&ended.text).into()),
        errors: (!is_success).then(errors),
        api_error_status: ended.api_error.as_ref().map(|error| error.status),
        stop_reason,
        deferred_tool_use: ended.deferred.as_ref().map(|call| DeferredToolUse {
            id: (&call.tool_use_id).into(),
            name: (&call.tool_name).into(),
            input: Cow::Borrowed(&call.tool_input),
        }),
        // Adding 0.0 turns the negative zero of an empty sum into zero.
        total_cost_usd: ended.ledger.total_cost() + 0.0,
        usage: full_usage(&ended.usage),
        model_usage: models.collect(),
        permission_denials: denials.collect(),
        terminal_reason: Some(ended.reason.name().into()),
        ttft_ms: ended.first_token.map(millis),
        structured_output: None,
        origin: None,
        session_id: None,
        uuid: None,
    }
}

/// Returns the message about a hook's progress.
pub(super) fn hook(news: &HookRunEvent) -> SystemMessage<'_> {
    let (hook_id, hook_name) = ((&news.id).into(), (&news.name).into());
    let hook_event = news.event.name().into();
    match &news.stage {
        HookStage::Started => SystemMessage::HookStarted(HookStartedMessage {
            hook_id,
            hook_name,
            hook_event,
            ..HookStartedMessage::default()
        }),
        HookStage::Printed { stdout, stderr } => SystemMessage::HookProgress(HookProgressMessage {
            hook_id,
            hook_name,
            hook_event,
            output: format!("{stdout}{stderr}").into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            ..HookProgressMessage::default()
        }),
        HookStage::Ended {
            stdout,
            stderr,
            code,
            outcome,
        } => SystemMessage::HookResponse(HookResponseMessage {
            hook_id,
            hook_name,
            hook_event,
            exit_code: *code,
            outcome: outcome.name().into(),
            output: format!("{stdout}{stderr}").into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            ..HookResponseMessage::default()
        }),
    }
}

/// Returns the result message for a session that failed before its first run.
pub(super) fn failed_start_result(problem: &str) -> ResultMessage<'_> {
    ResultMessage {
        subtype: ResultMessage::DURING_EXECUTION.into(),
        is_error: true,
        errors: Some(vec![problem.into()]),
        usage: full_usage(&Usage::default()),
        ..ResultMessage::default()
    }
}

pub(super) fn usage(usage: &Usage) -> UsageReport<'static> {
    UsageReport {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cache_creation_input_tokens: Some(usage.cache_write),
        cache_read_input_tokens: Some(usage.cache_read),
        ..UsageReport::default()
    }
}

fn full_usage(used: &Usage) -> UsageReport<'static> {
    UsageReport {
        server_tool_use: Some(ServerToolUse::default()),
        service_tier: Some("standard".into()),
        cache_creation: Some(CacheWrites {
            ephemeral_1h_input_tokens: used.cache_write_1h,
            ephemeral_5m_input_tokens: used.cache_write.saturating_sub(used.cache_write_1h),
        }),
        ..usage(used)
    }
}

/// Returns the wire name of a stop reason.
pub(super) fn stop_name(reason: &StopReason) -> Option<Cow<'static, str>> {
    match serde_json::to_value(reason) {
        Ok(Value::String(name)) => Some(name.into()),
        _ => None,
    }
}

pub(super) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
