//! What comes in with `--input-format stream-json`.

use std::sync::Arc;

use haft::Content;
use haft_agent::Prompt;
use haft_host::{AgentDetails, CommandDetails, SessionInput, StartOptions};
use haft_models::Thinking;
use serde_json::{Value, json};

use super::{callbacks, channel::Channel, permission};
use crate::modes::exec::stdin::{InputLine, Lines};

/// Reads lines, and does what they ask at once, whatever else goes on.
pub(super) struct Reader {
    pub(super) session: SessionInput,
    pub(super) channel: Arc<Channel>,
    /// Messages are repeated on stdout.
    pub(super) replay: bool,
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
                self.session.broken(problem);
                break;
            }
        }
        self.channel.close();
        self.session.close();
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
            self.session.aside(content);
            return Ok(());
        }
        let prompt = Prompt { content, uuid };
        match message["priority"] == "now" {
            true => self.session.steer(prompt),
            false => self.session.prompt(prompt),
        }
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
                self.session
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
            self.session.interrupt();
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
        let schema = &request["jsonSchema"];
        let agents = request["agents"].as_object().cloned().unwrap_or_default();
        let told = self.session.agents(&agents);
        let told: Vec<Value> = told.iter().map(agent).collect();
        let servers = request["sdkMcpServers"].as_array().into_iter().flatten();
        let servers = servers.filter_map(Value::as_str).map(str::to_owned);
        if request["forwardSubagentText"] == true {
            self.channel.output.forward_subagent_text();
        }
        self.session.configure(StartOptions {
            hooks: handlers,
            system_prompt: texts(&request["systemPrompt"]),
            append_system_prompt: texts(&request["appendSystemPrompt"]),
            title: request["title"].as_str().map(str::to_owned),
            environment_in_message: request["excludeDynamicSections"] == true,
            output_schema: (!schema.is_null()).then(|| schema.clone()),
            agents,
            servers: servers.collect(),
        })?;
        let extensions = self.session.extensions();
        let commands: Vec<Value> = extensions.commands.iter().map(command).collect();
        Ok(json!({
            "commands": commands,
            "agents": told,
            "output_style": extensions.output_style,
            "available_output_styles": extensions.styles,
            "models": [],
            "account": {},
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        }))
    }

    fn interrupt(&self, request: &Value) -> Value {
        if request["cancel_queued"] == true {
            let cancelled = self.session.take_back_all();
            return json!({"still_queued": [], "cancelled": cancelled});
        }
        json!({"still_queued": self.session.waiting()})
    }

    fn set_model(&self, value: &Value) -> Result<Value, String> {
        let name = value.as_str().filter(|name| *name != "default");
        self.session.set_model(name)?;
        Ok(json!({}))
    }

    fn set_mode(&self, value: &Value) -> Result<Value, String> {
        let mode = permission::mode(value)
            .ok_or_else(|| format!("no permission mode is called {value}"))?;
        self.session.set_permission_mode(mode)?;
        Ok(json!({"mode": mode.name()}))
    }
}

fn command(command: &CommandDetails) -> Value {
    json!({
        "name": command.name,
        "description": command.description,
        "argumentHint": command.argument_hint,
    })
}

fn agent(kind: &AgentDetails) -> Value {
    let mut told = json!({"name": kind.name, "description": kind.description});
    if let Some(model) = &kind.model {
        told["model"] = json!(model);
    }
    told
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
