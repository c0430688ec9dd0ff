//! What comes in with `--input-format stream-json`.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft::{CancellationToken, Content, PermissionMode, engine::hooks::Handler};
use haft_agent::{Control, Prompt};
use haft_models::{Prices, Thinking};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::{
    callbacks, channel::Channel, extensions::Described, mcp::Servers, names::Names, permission,
    session::SessionAccess, structured_output::Shape, subagents::Kinds,
};
use crate::modes::exec::stdin::{InputLine, Lines};

/// Messages that wait for their turn.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Prompt>,
    /// Said, but not to be answered by itself: goes with the next.
    beside: Vec<Content>,
    /// Nothing more comes.
    closed: bool,
    /// Something came that cannot be read.
    broken: Option<String>,
    /// What the session is to be set up with.
    initial: Initial,
    /// The session is set up.
    begun: bool,
    /// The session is being set up for its first message; an interrupt ends that.
    setting_up: Option<CancellationToken>,
    /// A run is under way.
    running: bool,
}

/// What `initialize` says of a session that is not set up yet.
#[derive(Default)]
pub(super) struct Initial {
    pub(super) handlers: Vec<Handler>,
    pub(super) system_prompt: Option<String>,
    pub(super) append_system_prompt: Option<String>,
    pub(super) title: Option<String>,
    pub(super) exclude_dynamic_sections: bool,
    pub(super) shape: Option<Shape>,
    /// Kinds of subagents, by name.
    pub(super) agents: Map<String, Value>,
}

impl Queue {
    pub(super) fn push(&self, prompt: Prompt) {
        self.state().messages.push_back(prompt);
        self.changed.notify_one();
    }

    /// Puts a message before all others.
    pub(super) fn push_front(&self, prompt: Prompt) {
        self.state().messages.push_front(prompt);
        self.changed.notify_one();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// The next message; `None` when nothing more comes.
    pub(super) async fn next(&self) -> anyhow::Result<Option<Prompt>> {
        loop {
            {
                let mut state = self.state();
                if let Some(what) = state.broken.take() {
                    anyhow::bail!("{what}");
                }
                if let Some(mut prompt) = state.messages.pop_front() {
                    let mut content = std::mem::take(&mut state.beside);
                    content.append(&mut prompt.content);
                    prompt.content = content;
                    return Ok(Some(prompt));
                }
                if state.closed {
                    return Ok(None);
                }
            }
            self.changed.notified().await;
        }
    }

    /// A run begins: what must be said now is said to it.
    pub(super) fn run_begins(&self) {
        let mut state = self.state();
        state.running = true;
        state.setting_up = None;
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().running
    }

    /// The session is set up from now on; the token fires when somebody interrupts that.
    pub(super) fn set_up_begins(&self) -> CancellationToken {
        let token = CancellationToken::new();
        self.state().setting_up = Some(token.clone());
        token
    }

    /// Takes back a message that waits. Says whether there was one.
    pub(super) fn forget(&self, uuid: &str) -> bool {
        let mut state = self.state();
        let before = state.messages.len();
        let meant = |one: &Prompt| one.uuid.is_some_and(|id| id.to_string() == uuid);
        state.messages.retain(|one| !meant(one));
        state.messages.len() < before
    }

    /// A run has ended: what was said to it too late comes next.
    pub(super) fn run_ended(&self, control: &Control) {
        let mut state = self.state();
        state.running = false;
        let late: Vec<Content> = control.take_said().into_iter().flatten().collect();
        if !late.is_empty() {
            state.messages.push_front(late.into());
        }
    }

    /// Nothing more comes than what is here.
    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// What `initialize` has said so far; from now on it is too late to say more.
    pub(super) fn begin(&self) -> Initial {
        let mut state = self.state();
        state.begun = true;
        std::mem::take(&mut state.initial)
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads lines, and does what they ask at once, whatever else goes on.
pub(super) struct Reader {
    pub(super) queue: Arc<Queue>,
    pub(super) channel: Arc<Channel>,
    pub(super) control: Control,
    /// May the mode become bypassPermissions? The error says why not.
    pub(super) bypass: Result<(), String>,
    pub(super) replay: bool,
    pub(super) servers: Arc<Servers>,
    pub(super) session: Arc<SessionAccess>,
    /// What kinds of subagents there are.
    pub(super) kinds: Arc<Kinds>,
    /// The model that was chosen at the start, and how much it can read.
    pub(super) model: String,
    pub(super) window: u64,
    pub(super) names: Names,
    /// Where there is a budget: a model whose price is not known would have none.
    pub(super) prices: Option<Prices>,
    /// What people laid in folders.
    pub(super) described: Described,
}

impl Reader {
    /// Until the end of the input.
    pub(super) async fn run(self) {
        let mut lines = Lines::of_stdin();
        while let Some(line) = lines.next().await {
            let problem = match line {
                InputLine::Text(text) if text.trim_ascii().is_empty() => continue,
                InputLine::Text(text) => match serde_json::from_slice::<Value>(&text) {
                    Ok(message) => self.take(&message).err(),
                    Err(error) => Some(format!("a line of the input is not JSON: {error}")),
                },
                InputLine::TooLong { bytes } => {
                    Some(format!("a line of the input is too long: {bytes} bytes"))
                }
                InputLine::Failed(error) => Some(format!("the input cannot be read: {error}")),
            };
            if let Some(problem) = problem {
                self.queue.state().broken = Some(problem);
                break;
            }
        }
        self.channel.close();
        self.queue.close();
    }

    fn take(&self, message: &Value) -> Result<(), String> {
        match message["type"].as_str() {
            Some("user") => self.user(message)?,
            Some("control_request") => self.serve(message),
            Some("control_response") => self.channel.answered(&message["response"]),
            Some("control_cancel_request" | "keep_alive") => {}
            other => tracing::debug!(?other, "a message of a type that is not known"),
        }
        Ok(())
    }

    fn user(&self, message: &Value) -> Result<(), String> {
        let content = content(&message["message"]["content"])?;
        let uuid = message["uuid"].as_str().and_then(|id| id.parse().ok());
        // One that is repeated must be known by the same id later on.
        let uuid = uuid.or_else(|| self.replay.then(haft_agent::random_id));
        if self.replay {
            let mut replayed = json!({
                "type": "user",
                "message": message["message"],
                "parent_tool_use_id": null,
                "isReplay": true,
            });
            if let Some(uuid) = uuid {
                replayed["uuid"] = json!(uuid);
            }
            self.channel.output.put(replayed);
        }
        if message["shouldQuery"] == false {
            self.queue.state().beside.extend(content);
            return Ok(());
        }
        let prompt = Prompt { content, uuid };
        let mut state = self.queue.state();
        if message["priority"] != "now" {
            state.messages.push_back(prompt);
        } else if state.running {
            self.control.steer(prompt.content);
        } else {
            state.messages.push_front(prompt);
        }
        self.queue.changed.notify_one();
        Ok(())
    }

    fn serve(&self, message: &Value) {
        let request = &message["request"];
        let subtype = request["subtype"].as_str().unwrap_or_default();
        let served = match subtype {
            "initialize" => self.initialize(request),
            "interrupt" => Ok(self.interrupt(request)),
            "set_permission_mode" => self.set_mode(&request["mode"]),
            "set_model" => self.set_model(&request["model"]),
            "set_max_thinking_tokens" => {
                self.control
                    .set_thinking(match request["max_thinking_tokens"].as_u64() {
                        None | Some(0) => Thinking::Off,
                        Some(most) => Thinking::Budget(u32::try_from(most).unwrap_or(u32::MAX)),
                    });
                Ok(json!({}))
            }
            "get_binary_version" => Ok(json!({"version": crate::VERSION})),
            "rewind_files" => return self.rewind(&message["request_id"], request),
            other => self
                .serve_more(other, request)
                .unwrap_or_else(|| Err(format!("no control request is called {other:?} here"))),
        };
        self.channel.respond(&message["request_id"], served);
        // Its answer stands before the result that it brings about.
        if subtype == "interrupt" {
            if let Some(setting_up) = &self.queue.state().setting_up {
                setting_up.cancel();
            }
            self.control.interrupt();
        }
    }

    fn initialize(&self, request: &Value) -> Result<Value, String> {
        let handlers = callbacks::read(&request["hooks"], &self.channel)?;
        let texts = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(parts) => {
                let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
                Some(parts.join("\n\n"))
            }
            _ => None,
        };
        let shape = match &request["jsonSchema"] {
            Value::Null => None,
            schema => Some(Shape::read(&schema.to_string()).map_err(|error| error.to_string())?),
        };
        let agents = request["agents"].as_object().cloned().unwrap_or_default();
        let told = self.kinds.with(&agents).told();
        if request["forwardSubagentText"] == true {
            self.channel.output.forward_subagent_text();
        }
        let mut state = self.queue.state();
        if state.begun && !handlers.is_empty() {
            return Err("hooks can be given before the first message only".to_owned());
        }
        self.servers.add_sdk(&request["sdkMcpServers"])?;
        state.initial = Initial {
            handlers,
            system_prompt: texts(&request["systemPrompt"]),
            append_system_prompt: texts(&request["appendSystemPrompt"]),
            title: request["title"].as_str().map(str::to_owned),
            exclude_dynamic_sections: request["excludeDynamicSections"] == true,
            shape,
            agents,
        };
        Ok(json!({
            "commands": self.described.commands,
            "agents": told,
            "output_style": self.described.output_style,
            "available_output_styles": self.described.styles,
            "models": [],
            "account": {},
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        }))
    }

    fn interrupt(&self, request: &Value) -> Value {
        let mut state = self.queue.state();
        let ids = |messages: &VecDeque<Prompt>| -> Vec<Value> {
            messages.iter().map(|one| json!(one.uuid)).collect()
        };
        if request["cancel_queued"] == true {
            let cancelled = ids(&state.messages);
            state.messages.clear();
            return json!({"still_queued": [], "cancelled": cancelled});
        }
        json!({"still_queued": ids(&state.messages)})
    }

    fn set_model(&self, value: &Value) -> Result<Value, String> {
        let asked = value.as_str().filter(|name| *name != "default");
        let name = match asked {
            Some(asked) => self.names.choose(asked)?,
            None => self.model.clone(),
        };
        if self
            .prices
            .as_ref()
            .is_some_and(|prices| prices.of(&name).is_none())
        {
            return Err(format!(
                "there is a budget, and the price of {name} is not known; give it with --prices, or with \
                 modelPrices in the settings"
            ));
        }
        self.control.set_model(name);
        Ok(json!({}))
    }

    fn set_mode(&self, value: &Value) -> Result<Value, String> {
        let mode = permission::mode(value)
            .ok_or_else(|| format!("no permission mode is called {value}"))?;
        if mode == PermissionMode::BypassPermissions {
            self.bypass.clone()?;
        }
        self.control.set_permission_mode(mode);
        Ok(json!({"mode": mode.name()}))
    }
}

/// What a message says: a text, or blocks.
fn content(value: &Value) -> Result<Vec<Content>, String> {
    match value {
        Value::String(text) => Ok(vec![Content::text(text)]),
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| {
                serde_json::from_value(block.clone())
                    .map_err(|error| format!("a message has a block that cannot be taken: {error}"))
            })
            .collect(),
        _ => Err("a message has no content: a text or a list of blocks".to_owned()),
    }
}
