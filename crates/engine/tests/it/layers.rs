use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use haft_contract::{
    CallContext, CallRate, Effects, PermissionMode, Tool, ToolError, ToolOutput, ToolProfile,
};
use haft_engine::{
    Engine, Scheduler, SessionContext,
    layers::{LayerSettings, ToolSettings},
};
use serde_json::json;
use tokio::time::{Instant, advance};

use crate::rig::{Rig, only, tool_use};

/// Counts how often it ran.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Changes something, so that the cache must forget.
    #[serde(default)]
    change: bool,
}

struct Counter {
    ran: Arc<AtomicU32>,
    profile: ToolProfile,
}

impl Tool for Counter {
    type Input = Input;
    const NAME: &'static str = "Counter";
    fn profile(&self) -> ToolProfile {
        self.profile.clone()
    }
    fn effects(&self, input: &Input) -> Effects {
        if input.change {
            Effects::EXCLUSIVE
        } else {
            Effects::NONE
        }
    }
    async fn call(&self, _: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!(
            "run {}",
            self.ran.fetch_add(1, Ordering::Relaxed) + 1
        )))
    }
}

async fn counter(profile: ToolProfile, settings: LayerSettings) -> Scheduler {
    let registry = only(Counter {
        ran: Arc::default(),
        profile,
    });
    let (engine, _) = Engine::builder(registry, "/nonexistent/session")
        .layer_settings(settings)
        .build()
        .await;
    let context = SessionContext::new("/").with_mode(PermissionMode::BypassPermissions);
    engine.scheduler(context)
}

async fn ask(scheduler: &mut Scheduler, change: bool) -> String {
    let mut turn = scheduler.start_batch().await;
    turn.push(tool_use("Counter", json!({"change": change})));
    turn.next().await.unwrap().text()
}

#[tokio::test(start_paused = true)]
async fn the_cache_answers_until_its_time_is_up_or_anything_changes() {
    let profile = ToolProfile {
        cache: Some(Duration::from_secs(60)),
        ..ToolProfile::default()
    };
    let mut scheduler = counter(profile, LayerSettings::default()).await;
    assert_eq!(ask(&mut scheduler, false).await, "run 1");
    assert_eq!(ask(&mut scheduler, false).await, "run 1");
    advance(Duration::from_secs(61)).await;
    assert_eq!(ask(&mut scheduler, false).await, "run 2");
    assert_eq!(ask(&mut scheduler, true).await, "run 3");
    assert_eq!(ask(&mut scheduler, false).await, "run 4");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_cached_that_did_not_ask_for_it() {
    let mut scheduler = counter(ToolProfile::default(), LayerSettings::default()).await;
    assert_eq!(ask(&mut scheduler, false).await, "run 1");
    assert_eq!(ask(&mut scheduler, false).await, "run 2");
}

#[tokio::test(start_paused = true)]
async fn settings_of_a_tool_win_over_its_profile() {
    let cache = Some(Duration::from_secs(60));
    let tools = [(
        "Counter".to_owned(),
        ToolSettings {
            cache,
            ..ToolSettings::default()
        },
    )]
    .into();
    let settings = LayerSettings {
        tools,
        ..LayerSettings::default()
    };
    let mut scheduler = counter(ToolProfile::default(), settings).await;
    assert_eq!(ask(&mut scheduler, false).await, "run 1");
    assert_eq!(ask(&mut scheduler, false).await, "run 1");
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_rate_wait_and_those_within_do_not() {
    let rate = Some(CallRate {
        calls: 2,
        per: Duration::from_secs(10),
    });
    let profile = ToolProfile {
        rate,
        ..ToolProfile::default()
    };
    let mut scheduler = counter(profile, LayerSettings::default()).await;
    let start = Instant::now();
    let mut waited = Vec::new();
    for _ in 0..4 {
        ask(&mut scheduler, false).await;
        waited.push(start.elapsed().as_secs());
    }
    assert_eq!(waited, [0, 0, 5, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_too_long_is_ended_whether_it_listens_or_not() {
    let limit = Duration::from_secs(3);
    for (polite, reads, expected) in [
        (true, false, "timed out after 3 s"),
        (false, true, "timed out after 3 s"),
        (false, false, "how far it got is not known"),
    ] {
        let settings = LayerSettings {
            timeout: Some(limit),
            ..LayerSettings::default()
        };
        let mut rig = Rig::with(PermissionMode::BypassPermissions, |builder| {
            builder.layer_settings(settings)
        })
        .await;
        let answer = rig
            .answer("Hang", json!({"polite": polite, "reads": reads}))
            .await;
        assert!(answer.contains(expected), "{answer}");
    }
}
