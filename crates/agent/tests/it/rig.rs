//! An agent over steered tools and models in a temporary project.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::OpenOptions,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{StreamExt, stream};
use haft_agent::{
    Agent, AgentBuilder, AgentEvent, AgentEventSink, AgentHandle, ModelSettings, OpenTranscript,
    transcript::{MemoryStore, TranscriptStore},
};
use haft_contract::{
    CallContext, CancellationToken, Content, DynTool, Effects, PermissionMode, Role, SessionId,
    Tool, ToolError, ToolOutput,
};
use haft_engine::{Engine, EngineBuilder, Scheduler, SessionContext, ToolRegistry};
use haft_models::{
    Block, BlockStart, Conversation, EventStream, Model, ModelError, ModelEvent, ModelRequest,
    ScriptedModel, StopReason,
};
use haft_testkit::{TempProject, toy_tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;

/// What happens, shared by tools, models and tests.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    flags: watch::Sender<BTreeSet<String>>,
    /// How often each key of [`Work`] ran.
    runs: Mutex<BTreeMap<String, u32>>,
    /// Steps of tools, streams and the sink so far.
    steps: AtomicUsize,
    /// At which step something is to happen.
    due: Mutex<Option<(usize, Due)>>,
}

/// What is to happen at a step.
#[derive(Debug)]
pub(crate) enum Due {
    Interrupt(AgentHandle),
    Flag(&'static str),
}

impl Stage {
    pub(crate) fn flag(&self, name: &str) {
        self.flags.send_modify(|flags| {
            flags.insert(name.to_owned());
        });
    }

    pub(crate) async fn until(&self, name: &str) {
        let mut flags = self.flags.subscribe();
        let is_there = |flags: &BTreeSet<String>| flags.contains(name);
        flags.wait_for(is_there).await.unwrap();
    }

    pub(crate) fn runs(&self) -> BTreeMap<String, u32> {
        self.runs.lock().unwrap().clone()
    }

    pub(crate) fn at(&self, step: usize, due: Due) {
        *self.due.lock().unwrap() = Some((step, due));
    }

    pub(crate) fn step(&self) {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        let due = self.due.lock().unwrap().take_if(|(at, _)| *at == step);
        match due {
            Some((_, Due::Interrupt(control))) => drop(control.interrupt()),
            Some((_, Due::Flag(name))) => self.flag(name),
            None => {}
        }
    }
}

/// Works for a while, once for each key.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkInput {
    /// What is counted.
    key: String,
    /// How often control is given away.
    #[serde(default)]
    pauses: u8,
    /// It fails in the end.
    #[serde(default)]
    fails: bool,
    /// It runs alone.
    #[serde(default)]
    alone: bool,
    /// It waits for this flag.
    until: Option<String>,
    /// It raises this flag in the end.
    raises: Option<String>,
    /// It writes its key into this file first, and never ends.
    hangs_after: Option<String>,
}

pub(crate) struct Work(pub(crate) Arc<Stage>);

impl Tool for Work {
    type Input = WorkInput;
    const NAME: &'static str = "Work";

    fn effects(&self, input: &WorkInput) -> Effects {
        if input.alone {
            Effects::EXCLUSIVE
        } else {
            Effects::NONE
        }
    }

    async fn call(&self, input: &WorkInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        *self
            .0
            .runs
            .lock()
            .unwrap()
            .entry(input.key.clone())
            .or_default() += 1;
        if let Some(file) = &input.hangs_after {
            let path = cx.cwd.join(file);
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            writeln!(file, "{}", input.key).unwrap();
            std::future::pending::<()>().await;
        }
        for _ in 0..input.pauses {
            self.0.step();
            tokio::task::yield_now().await;
        }
        if let Some(flag) = &input.until {
            self.0.until(flag).await;
        }
        if let Some(flag) = &input.raises {
            self.0.flag(flag);
        }
        match input.fails {
            true => Err(ToolError::Failed(format!("{} failed", input.key))),
            false => Ok(ToolOutput::text(format!("{} done", input.key))),
        }
    }
}

/// One step of a [`Steered`] model.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Say(ModelEvent),
    Pause,
    Until(&'static str),
    Fail(ModelError),
}

/// A model that waits and fails when told to. Each request takes the next reply.
#[derive(Debug, Clone)]
pub(crate) struct Steered {
    stage: Arc<Stage>,
    replies: Arc<Mutex<VecDeque<Vec<Step>>>>,
}

impl Steered {
    pub(crate) fn new(stage: &Arc<Stage>, replies: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self {
            stage: Arc::clone(stage),
            replies: Arc::new(Mutex::new(replies.into_iter().collect())),
        }
    }
}

impl Model for Steered {
    fn stream(&self, _: ModelRequest, _: CancellationToken) -> EventStream {
        let reply = self.replies.lock().unwrap().pop_front();
        let mut steps = VecDeque::from(reply.unwrap_or_else(|| text_reply(0, "over")));
        let stage = Arc::clone(&self.stage);
        stream::poll_fn(move |_| std::task::Poll::Ready(steps.pop_front()))
            .filter_map(move |step| {
                let stage = Arc::clone(&stage);
                async move {
                    stage.step();
                    match step {
                        Step::Say(event) => Some(Ok(event)),
                        Step::Pause => {
                            tokio::task::yield_now().await;
                            None
                        }
                        Step::Until(flag) => {
                            stage.until(flag).await;
                            None
                        }
                        Step::Fail(error) => Some(Err(error)),
                    }
                }
            })
            .boxed()
    }
}

/// A reply of one text.
pub(crate) fn text_reply(index: usize, text: &str) -> Vec<Step> {
    let text = text.to_owned();
    [
        ModelEvent::BlockStart {
            index,
            block: BlockStart::Text,
        },
        ModelEvent::Text { index, text },
        ModelEvent::BlockStop { index },
        ModelEvent::Stop {
            reason: StopReason::EndTurn,
        },
    ]
    .map(Step::Say)
    .into()
}

/// The events of one call.
pub(crate) fn call(index: usize, id: &str, input: &Value) -> Vec<Step> {
    [
        ModelEvent::BlockStart {
            index,
            block: BlockStart::ToolUse {
                id: id.to_owned(),
                name: "Work".to_owned(),
                extra: Map::new(),
            },
        },
        ModelEvent::Input {
            index,
            json: input.to_string(),
        },
        ModelEvent::BlockStop { index },
    ]
    .map(Step::Say)
    .into()
}

pub(crate) fn stop(reason: StopReason) -> Step {
    Step::Say(ModelEvent::Stop { reason })
}

/// Keeps what it hears.
#[derive(Debug, Default)]
pub(crate) struct Ear {
    pub(crate) heard: Mutex<Vec<AgentEvent>>,
    stage: Arc<Stage>,
}

impl AgentEventSink for Ear {
    fn on_event(&self, event: &AgentEvent) {
        self.stage.step();
        self.heard.lock().unwrap().push(event.clone());
    }
}

impl Ear {
    /// What was heard, a line each; pieces of replies are left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter_map(line).collect()
    }
}

fn line(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::RunStarted(began) => format!("began {} {}", began.model, began.mode.name()),
        AgentEvent::Model(ModelEvent::Discard) => "discard".to_owned(),
        AgentEvent::Model(ModelEvent::Retry { attempt, .. }) => format!("retry {attempt}"),
        AgentEvent::Model(_)
        | AgentEvent::CallBound { .. }
        | AgentEvent::CallStarted { .. }
        | AgentEvent::Progress { .. } => return None,
        AgentEvent::BlockCompleted(said) => match &said.block {
            Block::Text { text } => format!("said {text}"),
            Block::ToolUse { id, .. } => format!("called {id}"),
            other => format!("said {other:?}"),
        },
        AgentEvent::CallFinished { finished, .. } => format!(
            "answered {}{}{}: {}",
            finished.id,
            if finished.is_error { " error" } else { "" },
            if finished.metadata.denied.is_some() {
                " denied"
            } else {
                ""
            },
            text(&finished.content)
        ),
        AgentEvent::MessageInjected { content, by, .. } => {
            format!("added {by:?}: {}", text(content))
        }
        AgentEvent::ModelFailed(error) => format!("failed: {error}"),
        AgentEvent::Compacting { trigger } => format!("compacting {}", trigger.name()),
        AgentEvent::Compacted { trigger, .. } => format!("compacted {}", trigger.name()),
        AgentEvent::Notice { level, text } => format!("{}: {text}", level.name()),
        other => format!("{other:?}"),
    })
}

pub(crate) fn text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

pub(crate) struct Rig {
    pub(crate) project: TempProject,
    pub(crate) stage: Arc<Stage>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) ear: Ear,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let stage = Arc::new(Stage::default());
        Self {
            project: TempProject::new([("work/a.txt", "alpha\n"), ("work/b.txt", "beta\n")]),
            store: Arc::default(),
            ear: Ear {
                heard: Mutex::default(),
                stage: Arc::clone(&stage),
            },
            stage,
        }
    }

    pub(crate) async fn scheduler(
        &self,
        mode: PermissionMode,
        setup: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Scheduler {
        self.scheduler_with(Vec::new(), mode, setup).await
    }

    /// The same with more tools.
    pub(crate) async fn scheduler_with(
        &self,
        more: Vec<Arc<dyn DynTool>>,
        mode: PermissionMode,
        setup: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Scheduler {
        let mut registry = ToolRegistry::new();
        for tool in toy_tools::all().into_iter().chain(more) {
            registry.add_erased(tool).unwrap();
        }
        registry.add(Work(Arc::clone(&self.stage))).unwrap();
        let builder = Engine::builder(registry, self.project.path("session"));
        let (engine, _) = setup(builder).build().await;
        engine.scheduler(SessionContext::new(self.project.path("work")).with_mode(mode))
    }

    /// Everything is permitted, and nothing is kept.
    pub(crate) async fn builder(&self, model: impl Model + 'static) -> AgentBuilder {
        let scheduler = self.scheduler(PermissionMode::BypassPermissions, |builder| builder);
        let store = Arc::clone(&self.store) as Arc<dyn TranscriptStore>;
        let session = OpenTranscript::new(SessionId::new(), store);
        Agent::builder(scheduler.await, Arc::new(model), ModelSettings::new("m")).session(session)
    }

    pub(crate) async fn agent(&self, model: impl Model + 'static) -> Agent {
        self.builder(model).await.build()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.store.read(0).unwrap()
    }
}

pub(crate) fn scripted(script: &Value) -> ScriptedModel {
    ScriptedModel::parse(&script.to_string()).unwrap()
}

/// A conversation as a person reads it, a line a block.
pub(crate) fn shown<'a>(
    messages: impl IntoIterator<Item = &'a haft_models::Message>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for message in messages {
        let who = match message.role {
            Role::User => "user",
            Role::Assistant => "model",
        };
        for block in &message.content {
            lines.push(match block {
                Block::Text { text } => format!("{who}: {text}"),
                Block::ToolUse { id, name, .. } => format!("{who}: {name} {id}"),
                Block::ToolResult(result) => {
                    let error = if result.is_error { " error" } else { "" };
                    let (id, text) = (&result.tool_use_id, text(&result.content));
                    format!("{who}: result {id}{error}: {text}")
                }
                other => format!("{who}: {other:?}"),
            });
        }
    }
    lines
}

/// What every provider asks of a conversation.
pub(crate) fn assert_valid(conversation: &Conversation) {
    let messages: Vec<_> = conversation.messages().collect();
    let mut open: Vec<&str> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let expected = if number % 2 == 0 {
            Role::User
        } else {
            Role::Assistant
        };
        assert_eq!(
            message.role,
            expected,
            "message {number}: {:#?}",
            shown(messages.clone())
        );
        let results: Vec<&str> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult(result) => Some(result.tool_use_id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(
            results,
            open,
            "message {number}: {:#?}",
            shown(messages.clone())
        );
        open = message.calls().map(|(id, _)| id).collect();
    }
    assert!(open.is_empty(), "{:#?}", shown(messages.clone()));
}
