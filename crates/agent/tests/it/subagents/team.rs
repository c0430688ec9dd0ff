//! A session with subagents, and what it is made of.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use haft_agent::{
    Agent, AgentEvent, AgentEventSink, ModelSettings, OpenTranscript, ProjectSessions,
    SubagentLimits, SubagentPool,
};
use haft_contract::{BackgroundTasks, PermissionMode, Services, SessionId};
use haft_engine::{
    SessionContext,
    hooks::{Callback, HookAction, HookEventKind, HookHandler, HookMatcher, Hooks},
    permissions::{List, RuleSet, RuleSource, SettingsScope},
};
use haft_extensions::{AgentDefinition, ExtensionOrigin};
use haft_models::{Price, Prices, ScriptedModel};
use serde_json::{Value, json};

use crate::rig::Rig;

/// A kind of subagent, as JSON says beside what every kind has.
pub(super) fn kind(name: &str, change: impl FnOnce(&mut AgentDefinition)) -> AgentDefinition {
    let (work, prompt) = (format!("{name} work"), format!("You are {name}."));
    let mut kind = AgentDefinition::new(name, work, prompt, ExtensionOrigin::Given);
    change(&mut kind);
    kind
}

pub(super) fn general() -> Vec<AgentDefinition> {
    vec![kind("general-purpose", |_| {})]
}

pub(super) fn say(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": 1_000, "output": 100}})
}

pub(super) fn call(name: &str, input: Value) -> Value {
    json!({
        "content": [{"type": "tool_use", "name": name, "input": input}],
        "usage": {"input": 1_000, "output": 100},
    })
}

pub(super) fn errand(prompt: &str) -> Value {
    json!({"description": format!("Does {prompt}"), "prompt": prompt})
}

pub(super) fn aside(when: &str, turns: &[Value]) -> Value {
    json!({"when": when, "turns": turns})
}

/// What a session with subagents is made of.
pub(super) struct Setup {
    pub(super) kinds: Vec<AgentDefinition>,
    pub(super) mode: PermissionMode,
    pub(super) rules: RuleSet,
    pub(super) limits: SubagentLimits,
    pub(super) hooks: Vec<HookHandler>,
    pub(super) session: Option<OpenTranscript>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            kinds: general(),
            mode: PermissionMode::BypassPermissions,
            rules: RuleSet::default(),
            limits: SubagentLimits::default(),
            hooks: Vec::new(),
            session: None,
        }
    }
}

/// A session with subagents.
pub(super) struct Team {
    pub(super) agent: Agent,
    pub(super) crew: SubagentPool,
    pub(super) notices: Arc<BackgroundTasks>,
    pub(super) heard: Arc<Heard>,
}

/// Keeps what is heard of subagents.
#[derive(Default)]
pub(super) struct Heard(pub(super) Mutex<Vec<AgentEvent>>);

impl AgentEventSink for Heard {
    fn on_event(&self, event: &AgentEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Setup {
    pub(super) async fn team(self, rig: &Rig, model: &ScriptedModel) -> Team {
        let heard = Arc::new(Heard::default());
        let notices = Arc::new(BackgroundTasks::default());
        let crew = SubagentPool::builder(self.kinds)
            .limits(self.limits)
            .sink(Arc::clone(&heard) as _)
            .services(haft_tools::for_subagent)
            .build();
        let services = Services::none()
            .with(crew.service())
            .with(Arc::clone(&notices));
        let work = rig.project.path("work");
        let services = haft_tools::with_services(services, &rig.project.path("session"), &work);
        let tools = haft_tools::usable(&services);
        let hooks = Hooks::new(self.hooks, &work);
        let scheduler = rig
            .scheduler_with(tools, self.mode, |builder| {
                builder.services(services).hooks(hooks)
            })
            .await;
        let context = SessionContext::new(&work)
            .with_mode(self.mode)
            .with_rules(self.rules);
        let scheduler = Arc::clone(scheduler.engine()).scheduler(context);
        let price = Price {
            input: 1.0,
            output: 10.0,
            cache_read: 0.0,
            cache_write: 0.0,
            cache_write_1h: 0.0,
        };
        let session = self.session.unwrap_or_else(|| {
            let sessions = ProjectSessions::new(rig.project.path("sessions"));
            sessions.create(SessionId::new()).unwrap()
        });
        let agent = Agent::builder(scheduler, Arc::new(model.clone()), ModelSettings::new("m"))
            .prices(Prices::default().with("m", price))
            .session(session)
            .subagents(crew.clone())
            .build();
        Team {
            agent,
            crew,
            notices,
            heard,
        }
    }
}

impl Team {
    /// The results of the calls so far, by the call's id.
    pub(super) fn results(&self) -> BTreeMap<String, (bool, String)> {
        let messages = self.agent.conversation().messages();
        let blocks = messages.flat_map(|message| &message.content);
        blocks
            .filter_map(|block| match block {
                haft_models::Block::ToolResult(result) => Some((
                    result.tool_use_id.clone(),
                    (result.is_error, crate::rig::text(&result.content)),
                )),
                _ => None,
            })
            .collect()
    }

    pub(super) fn result(&self, id: &str) -> String {
        self.results()[id].1.clone()
    }
}

/// The id in an answer of the Agent tool.
pub(super) fn id_in(text: &str) -> String {
    let (_, rest) = text.split_once("[agent id: ").unwrap();
    rest.split(']').next().unwrap().to_owned()
}

pub(super) fn deny(rule: &str) -> RuleSet {
    let context = SessionContext::new("/");
    let mut rules = RuleSet::default();
    let source = RuleSource::from_scope(SettingsScope::Session);
    rules
        .add(List::Deny, rule, source, &context.bases())
        .unwrap();
    rules
}

/// A hook that keeps what it is told.
pub(super) fn listener(event: &str, told: &Arc<Mutex<Vec<Value>>>) -> HookHandler {
    let event = HookEventKind::from_name(event).unwrap();
    let told = Arc::clone(told);
    let action = HookAction::Callback(Callback(Arc::new(move |input| {
        told.lock().unwrap().push(input);
        Box::pin(async { Ok(json!({})) })
    })));
    HookHandler {
        written: json!({"event": event.name()}),
        ..HookHandler::new(event, HookMatcher::new(event, "").0, action)
    }
}
