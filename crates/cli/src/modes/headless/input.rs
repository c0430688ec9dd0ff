//! Reads the input of `--input-format stream-json`.

use std::{borrow::Cow, sync::Arc};

use haft::{Content, PermissionMode};
use haft_agent::{Prompt, mentioned};
use haft_host::{SessionInput, StartOptions};
use haft_models::ThinkingMode;
use haft_protocol::{
    BinaryVersion, ClientMessage, ClientRequest, ControlRequest, InitializeAnswer,
    InitializeRequest, InterruptAnswer, InterruptRequest, ModeAnswer, PromptParagraphs,
    RawOrParsed, SessionAnswer, UserBody, UserInput, UserMessage, WireId,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{callbacks, channel::ControlChannel, status};
use crate::modes::exec::stdin::{InputLine, StdinLines};

/// Reads lines and handles each immediately, also while a run is in progress.
pub(super) struct ControlReader {
    pub(super) session: SessionInput,
    pub(super) channel: Arc<ControlChannel>,
    /// Whether user messages are repeated on stdout.
    pub(super) replay: bool,
}

impl ControlReader {
    /// Reads until the end of the input.
    pub(super) async fn run(self) {
        let mut lines = StdinLines::from_stdin();
        while let Some(line) = lines.next().await {
            let problem = match line {
                InputLine::Text(text) if text.trim_ascii().is_empty() => continue,
                InputLine::Text(text) => match ClientMessage::read(&text) {
                    Ok(message) => self.take(message).await.err(),
                    Err(error) => Some(format!("a line of the input is not JSON: {error}")),
                },
                InputLine::TooLong { bytes } => {
                    Some(format!("a line of the input is too long: {bytes} bytes"))
                }
                InputLine::Failed(error) => Some(format!("the input cannot be read: {error}")),
            };
            if let Some(problem) = problem {
                self.session.fail(problem);
                break;
            }
        }
        self.channel.close();
        self.session.close();
    }

    async fn take(&self, message: ClientMessage) -> Result<(), String> {
        match message {
            ClientMessage::User(message) => self.user(&message)?,
            ClientMessage::ControlRequest(request) => self.serve(request).await,
            ClientMessage::ControlResponse(answer) => self.channel.answered(answer.response),
            ClientMessage::ControlCancelRequest(_) | ClientMessage::KeepAlive => {}
            ClientMessage::Other(message) => {
                let other = message.get("type").and_then(Value::as_str);
                tracing::debug!(?other, "a message of an unknown type");
            }
        }
        Ok(())
    }

    fn user(&self, message: &UserInput) -> Result<(), String> {
        let content = message.content().map_err(|error| error.to_string())?;
        let uuid = message.uuid.as_ref().and_then(WireId::uuid);
        // A repeated message needs an id, so that later messages can refer to it.
        let uuid = uuid.or_else(|| self.replay.then(haft_agent::random_id));
        let origin = Some(&message.origin)
            .filter(|origin| origin.is_object())
            .cloned();
        if self.replay {
            let body = UserBody::Given(Cow::Borrowed(&message.message));
            self.channel.output.put(UserMessage {
                is_replay: true,
                uuid: uuid.map(Into::into),
                origin: origin.as_ref().map(Cow::Borrowed),
                ..UserMessage::new(body)
            });
        }
        if message.should_query == Some(false) {
            self.session.push_context(content);
            return Ok(());
        }
        let texts = content.iter().filter_map(Content::as_text);
        let mentions = match message.client_composed {
            true => Vec::new(),
            false => texts.flat_map(mentioned).collect(),
        };
        let prompt = Prompt {
            content,
            uuid,
            origin,
            mentions,
        };
        match message.is_urgent() {
            true => self.session.steer(prompt),
            false => self.session.prompt(prompt),
        }
        Ok(())
    }

    async fn serve(&self, message: ControlRequest<ClientRequest>) {
        let (id, request) = (message.request_id, message.request);
        let is_interrupt = matches!(request, ClientRequest::Interrupt(_));
        let served = match request {
            ClientRequest::Initialize(request) => self.initialize(*request),
            ClientRequest::Interrupt(request) => Ok(self.interrupt(&request)),
            ClientRequest::SetPermissionMode(request) => self.set_mode(&request.mode),
            ClientRequest::SetModel(request) => self.set_model(request.model.as_deref()).await,
            ClientRequest::SetMaxThinkingTokens(request) => {
                self.session
                    .set_thinking(match request.max_thinking_tokens {
                        None | Some(0) => ThinkingMode::Off,
                        Some(most) => ThinkingMode::Budget(u32::try_from(most).unwrap_or(u32::MAX)),
                    });
                Ok(SessionAnswer::DONE)
            }
            ClientRequest::GetBinaryVersion(_) => Ok(SessionAnswer::Version(BinaryVersion {
                version: crate::VERSION.to_owned(),
            })),
            ClientRequest::RewindFiles(request) => return self.rewind(id, request),
            ClientRequest::ReadFile(request) => return self.read_file(id, request),
            ClientRequest::McpReconnect(request) => return self.reconnect(id, request),
            other => self.serve_more(&other).await,
        };
        self.channel.respond(id, served);
        // The answer to the request must precede the result that the interrupt causes.
        if is_interrupt {
            self.session.interrupt();
        }
    }

    fn initialize(&self, request: InitializeRequest) -> Result<SessionAnswer, String> {
        let hooks = request.hooks.unwrap_or_default();
        let hooks = callbacks::read(&hooks, &self.channel)?;
        let joined = |text: &Option<PromptParagraphs>| text.as_ref().map(PromptParagraphs::joined);
        let schema = request.json_schema;
        let agents = self.session.agents(&request.agents);
        if request.forward_subagent_text {
            self.channel.output.forward_subagent_text();
        }
        self.session.configure(StartOptions {
            hooks,
            system_prompt: joined(&request.system_prompt),
            append_system_prompt: joined(&request.append_system_prompt),
            title: request.title,
            environment_in_message: request.exclude_dynamic_sections,
            output_schema: (!schema.is_null()).then_some(schema),
            agents: request.agents,
            servers: request.sdk_mcp_servers,
        })?;
        self.channel.initialized();
        let extensions = self.session.extensions();
        Ok(SessionAnswer::Initialize(Box::new(InitializeAnswer {
            commands: extensions.commands.iter().map(status::command).collect(),
            agents: agents.into_iter().map(status::agent).collect(),
            output_style: extensions.output_style.clone(),
            available_output_styles: extensions.styles.clone(),
            models: self.session.models().iter().map(status::model).collect(),
            account: Map::new(),
            hook_on_failure_supported: true,
            pid: Some(std::process::id()),
        })))
    }

    fn interrupt(&self, request: &InterruptRequest) -> SessionAnswer {
        let ids = |messages: Vec<Option<Uuid>>| -> Vec<Option<WireId>> {
            let messages = messages.into_iter();
            messages.map(|uuid| uuid.map(Into::into)).collect()
        };
        SessionAnswer::Interrupt(match request.cancel_queued {
            true => InterruptAnswer {
                still_queued: Vec::new(),
                cancelled: Some(ids(self.session.withdraw_all())),
            },
            false => InterruptAnswer {
                still_queued: ids(self.session.waiting()),
                cancelled: None,
            },
        })
    }

    async fn set_model(&self, asked: Option<&str>) -> Result<SessionAnswer, String> {
        let name = asked.filter(|name| *name != "default");
        self.session.set_model(name).await?;
        Ok(SessionAnswer::DONE)
    }

    fn set_mode(&self, asked: &RawOrParsed<PermissionMode>) -> Result<SessionAnswer, String> {
        let mode = *asked
            .parsed()
            .ok_or_else(|| format!("no permission mode is called {}", asked.value()))?;
        self.session.set_permission_mode(mode)?;
        let mode = mode.name().to_owned();
        Ok(SessionAnswer::Mode(ModeAnswer { mode }))
    }
}
