//! What outlives a summary and a resume, and plan mode as the model reads it.

use std::sync::Arc;

use haft_agent::{Agent, ModelSettings, OpenTranscript, transcript::TranscriptStore};
use haft_contract::{
    CallContext, ContextPatch, Effects, PendingInput, PermissionMode, Services, SessionId,
    SessionState, StateSlot, Tool, ToolError, ToolOutput,
};
use haft_engine::{Engine, SessionContext, ToolRegistry};
use haft_models::ScriptedModel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rig::{Rig, scripted, shown};

/// What was counted.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Count(u32);

impl StateSlot for Count {
    const KEY: &'static str = "count";

    fn reminder(&self) -> Option<String> {
        Some(format!("The count is {}.", self.0))
    }
}

/// Counts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Counter;

impl Tool for Counter {
    type Input = Nothing;
    const NAME: &'static str = "Counter";

    fn effects(&self, _: &Nothing) -> Effects {
        Effects::queueing("count")
    }

    async fn call(&self, _: &Nothing, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let count = cx
            .services
            .get::<SessionState>()?
            .change(|count: &mut Count| {
                count.0 += 1;
                Ok::<_, ToolError>(count.0)
            })?;
        Ok(ToolOutput::text(count.to_string()))
    }
}

/// Turns plan mode on and off.
struct Planner;

impl Tool for Planner {
    type Input = Nothing;
    const NAME: &'static str = "Planner";

    fn effects(&self, _: &Nothing) -> Effects {
        Effects {
            patches: true,
            ..Effects::NONE
        }
    }

    async fn call(&self, _: &Nothing, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(match cx.permissions.mode {
            PermissionMode::Plan => ToolOutput::text("off").with_patch(ContextPatch::LeavePlan),
            _ => ToolOutput::text("on").with_patch(ContextPatch::SetMode {
                mode: PermissionMode::Plan,
            }),
        })
    }
}

async fn agent(
    rig: &Rig,
    session: OpenTranscript,
    model: &ScriptedModel,
    services: Services,
) -> Agent {
    let mut registry = ToolRegistry::new();
    registry.add(Counter).unwrap();
    registry.add(Planner).unwrap();
    let (engine, _) = Engine::builder(registry, rig.project.path("session"))
        .services(services)
        .build()
        .await;
    let context =
        SessionContext::new(rig.project.path("work")).with_plan_file(Some("/plans/this.md".into()));
    let mut settings = ModelSettings::new("m");
    settings.window = 1000;
    Agent::builder(engine.scheduler(context), Arc::new(model.clone()), settings)
        .session(session)
        .build()
}

fn remembering() -> Services {
    Services::none().with(Arc::new(SessionState::default()))
}

fn turn(name: &str, tokens: u64) -> Value {
    json!({"content": [{"type": "tool_use", "name": name, "input": {}}],
           "usage": {"input": tokens, "output": 0}})
}

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "usage": {"input": 10, "output": 0}})
}

fn store(rig: &Rig) -> Arc<dyn TranscriptStore> {
    Arc::clone(&rig.store) as Arc<dyn TranscriptStore>
}

#[tokio::test]
async fn what_a_session_keeps_outlives_a_summary_and_a_resume() {
    let rig = Rig::new();
    let id = SessionId::new();
    let model = scripted(&json!({"turns": [
        turn("Counter", 10), turn("Counter", 950), says("We have counted."), says("done"),
    ]}));
    let session = OpenTranscript::new(id, store(&rig));
    let mut first = agent(&rig, session, &model, remembering()).await;
    let ended = first.run("count", &rig.ear).await;
    assert_eq!(ended.text, "done");
    let history = shown(first.conversation().messages()).join("\n");
    assert!(history.contains("The count is 2."), "{history}");
    drop(first);
    let kept = rig
        .lines()
        .iter()
        .filter(|line| line.contains("haft-kept"))
        .count();
    assert_eq!(kept, 2, "one line a change");

    let session = OpenTranscript::resume(id, store(&rig), None).unwrap();
    assert_eq!(session.repairs(), Vec::<String>::new());
    let services = remembering();
    let remembered = services.get::<SessionState>().unwrap();
    let model = scripted(&json!({"turns": [turn("Counter", 10), says("three")]}));
    let mut second = agent(&rig, session, &model, services).await;
    assert_eq!(remembered.read::<Count>(), Count(2));
    second.run("go on", &rig.ear).await;
    assert_eq!(remembered.read::<Count>(), Count(3));
}

#[tokio::test]
async fn a_session_that_goes_back_keeps_what_it_kept_then() {
    let rig = Rig::new();
    let id = SessionId::new();
    let model = scripted(&json!({"turns": [
        turn("Counter", 10), says("one"), turn("Counter", 10), says("two"),
    ]}));
    let session = OpenTranscript::new(id, store(&rig));
    let mut first = agent(&rig, session, &model, remembering()).await;
    first.run("count", &rig.ear).await;
    first.run("again", &rig.ear).await;
    drop(first);
    let lines = rig.lines();
    let one = lines.iter().find(|line| line.contains("\"one\"")).unwrap();
    let uuid = serde_json::from_str::<Value>(one).unwrap()["uuid"].clone();
    let session = OpenTranscript::resume(id, store(&rig), uuid.as_str()).unwrap();
    assert_eq!(session.loaded().state_entries["count"].value, json!(1));
}

#[tokio::test]
async fn the_model_is_told_of_plan_mode_unless_it_did_it_itself() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [
        turn("Planner", 10), says("planned"), says("over"), says("planning"),
    ]}));
    let session = OpenTranscript::new(SessionId::new(), store(&rig));
    let mut agent = agent(&rig, session, &model, remembering()).await;
    let control = agent.control();
    agent.run("plan", &rig.ear).await;
    let added = || {
        let lines = rig.ear.lines();
        lines
            .iter()
            .filter(|line| line.starts_with("added Mode"))
            .count()
    };
    assert_eq!(added(), 0, "{:?}", rig.ear.lines());
    control.set_permission_mode(PermissionMode::Default);
    agent.run("stop planning", &rig.ear).await;
    assert_eq!(added(), 1);
    control.set_permission_mode(PermissionMode::Plan);
    agent.run("plan again", &rig.ear).await;
    let lines = rig.ear.lines();
    let told: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("added Mode"))
        .collect();
    insta::assert_snapshot!(
        told.iter()
            .map(|line| line.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[tokio::test]
async fn what_is_said_while_tools_run_calls_for_attention() {
    let rig = Rig::new();
    let model = scripted(&json!({"turns": [says("hello")]}));
    let session = OpenTranscript::new(SessionId::new(), store(&rig));
    let attention = Arc::new(PendingInput::default());
    let services = remembering().with(Arc::clone(&attention));
    let mut agent = agent(&rig, session, &model, services).await;
    let wanted = async |attention: &PendingInput| {
        tokio::select! {
            biased;
            () = attention.wait_for_input() => true,
            () = async {} => false,
        }
    };
    assert!(!wanted(&attention).await);
    agent
        .control()
        .steer(vec![haft_contract::Content::text("wait")]);
    assert!(wanted(&attention).await);
    agent.run("hi", &rig.ear).await;
    assert!(!wanted(&attention).await);
}
