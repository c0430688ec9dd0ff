//! What comes in with `--input-format stream-json`.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft::{CancellationToken, Content, PermissionMode, engine::hooks::Handler};
use haft_agent::{Control, Prompt};
use haft_models::{Prices, Thinking};
use haft_protocol::{
    AsWritten, BinaryVersion, ClientMessage, ClientRequest, ControlRequest, InitializeAnswer,
    InitializeRequest, InterruptAnswer, InterruptRequest, ModeAnswer, PromptParagraphs,
    SessionAnswer, UserBody, UserInput, UserMessage, WireId,
};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::{
    callbacks, channel::Channel, extensions::Described, mcp::Servers, names::Names,
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
                InputLine::Text(text) => match ClientMessage::read(&text) {
                    Ok(message) => self.take(message).err(),
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

    fn take(&self, message: ClientMessage) -> Result<(), String> {
        match message {
            ClientMessage::User(message) => self.user(&message)?,
            ClientMessage::ControlRequest(request) => self.serve(request),
            ClientMessage::ControlResponse(answer) => self.channel.answered(answer.response),
            ClientMessage::ControlCancelRequest(_) | ClientMessage::KeepAlive => {}
            ClientMessage::Other(message) => {
                let other = message.get("type").and_then(Value::as_str);
                tracing::debug!(?other, "a message of a type that is not known");
            }
        }
        Ok(())
    }

    fn user(&self, message: &UserInput) -> Result<(), String> {
        let content = message.content().map_err(|error| error.to_string())?;
        let uuid = message.uuid.as_ref().and_then(WireId::uuid);
        // One that is repeated must be known by the same id later on.
        let uuid = uuid.or_else(|| self.replay.then(haft_agent::random_id));
        if self.replay {
            let body = UserBody::Given(Cow::Borrowed(&message.message));
            self.channel.output.put(UserMessage {
                is_replay: true,
                uuid: uuid.map(Into::into),
                ..UserMessage::new(body)
            });
        }
        if message.should_query == Some(false) {
            self.queue.state().beside.extend(content);
            return Ok(());
        }
        let prompt = Prompt { content, uuid };
        let mut state = self.queue.state();
        if !message.is_urgent() {
            state.messages.push_back(prompt);
        } else if state.running {
            self.control.steer(prompt.content);
        } else {
            state.messages.push_front(prompt);
        }
        self.queue.changed.notify_one();
        Ok(())
    }

    fn serve(&self, message: ControlRequest<ClientRequest>) {
        let (id, request) = (message.request_id, message.request);
        let is_interrupt = matches!(request, ClientRequest::Interrupt(_));
        let served = match request {
            ClientRequest::Initialize(request) => self.initialize(*request),
            ClientRequest::Interrupt(request) => Ok(self.interrupt(&request)),
            ClientRequest::SetPermissionMode(request) => self.set_mode(&request.mode),
            ClientRequest::SetModel(request) => self.set_model(request.model.as_deref()),
            ClientRequest::SetMaxThinkingTokens(request) => {
                self.control
                    .set_thinking(match request.max_thinking_tokens {
                        None | Some(0) => Thinking::Off,
                        Some(most) => Thinking::Budget(u32::try_from(most).unwrap_or(u32::MAX)),
                    });
                Ok(SessionAnswer::DONE)
            }
            ClientRequest::GetBinaryVersion(_) => Ok(SessionAnswer::Version(BinaryVersion {
                version: crate::VERSION.to_owned(),
            })),
            ClientRequest::RewindFiles(request) => return self.rewind(id, request),
            other => self.serve_more(&other),
        };
        self.channel.respond(id, served);
        // Its answer stands before the result that it brings about.
        if is_interrupt {
            if let Some(setting_up) = &self.queue.state().setting_up {
                setting_up.cancel();
            }
            self.control.interrupt();
        }
    }

    fn initialize(&self, request: InitializeRequest) -> Result<SessionAnswer, String> {
        let hooks = request.hooks.unwrap_or_default();
        let handlers = callbacks::read(&hooks, &self.channel)?;
        let shape = match &request.json_schema {
            Value::Null => None,
            schema => Some(Shape::read(&schema.to_string()).map_err(|error| error.to_string())?),
        };
        let agents = request.agents;
        let told = self.kinds.with(&agents).told();
        if request.forward_subagent_text {
            self.channel.output.forward_subagent_text();
        }
        let mut state = self.queue.state();
        if state.begun && !handlers.is_empty() {
            return Err("hooks can be given before the first message only".to_owned());
        }
        self.servers.add_sdk(&request.sdk_mcp_servers)?;
        state.initial = Initial {
            handlers,
            system_prompt: request.system_prompt.as_ref().map(PromptParagraphs::joined),
            append_system_prompt: request
                .append_system_prompt
                .as_ref()
                .map(PromptParagraphs::joined),
            title: request.title,
            exclude_dynamic_sections: request.exclude_dynamic_sections,
            shape,
            agents,
        };
        Ok(SessionAnswer::Initialize(Box::new(InitializeAnswer {
            commands: self.described.commands.clone(),
            agents: told,
            output_style: self.described.output_style.clone(),
            available_output_styles: self.described.styles.clone(),
            models: Vec::new(),
            account: Map::new(),
            hook_on_failure_supported: true,
            pid: Some(std::process::id()),
        })))
    }

    fn interrupt(&self, request: &InterruptRequest) -> SessionAnswer {
        let mut state = self.queue.state();
        let queued = state.messages.iter();
        let queued = queued.map(|one| one.uuid.map(Into::into)).collect();
        SessionAnswer::Interrupt(if request.cancel_queued {
            state.messages.clear();
            InterruptAnswer {
                still_queued: Vec::new(),
                cancelled: Some(queued),
            }
        } else {
            InterruptAnswer {
                still_queued: queued,
                cancelled: None,
            }
        })
    }

    fn set_model(&self, asked: Option<&str>) -> Result<SessionAnswer, String> {
        let asked = asked.filter(|name| *name != "default");
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
        Ok(SessionAnswer::DONE)
    }

    fn set_mode(&self, asked: &AsWritten<PermissionMode>) -> Result<SessionAnswer, String> {
        let mode = *asked
            .meaning()
            .ok_or_else(|| format!("no permission mode is called {}", asked.value()))?;
        if mode == PermissionMode::BypassPermissions {
            self.bypass.clone()?;
        }
        self.control.set_permission_mode(mode);
        let mode = mode.name().to_owned();
        Ok(SessionAnswer::Mode(ModeAnswer { mode }))
    }
}
