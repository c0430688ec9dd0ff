//! What a subagent costs: `cargo bench -p haft-agent`.
//!
//! Starting one: from the launch to the moment its first request is made. Keeping some: how much more
//! memory ten take that wait for their models in the background than one does.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should say so and stop"
)]

use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use haft_agent::{Agent, ModelSettings, SubagentLimits, SubagentPool};
use haft_contract::{
    BackgroundTasks, CallContext, CancellationToken, LaunchOutcome, LaunchRequest, PermissionMode,
    Services,
};
use haft_engine::{Engine, SessionContext, ToolRegistry};
use haft_extensions::{Agents, EnabledSources, ExtensionPlaces, agents::AgentOptions};
use haft_models::{EventStream, Model, ModelRequest};
use haft_testkit::TempProject;
use tokio::sync::Notify;

/// The most that starting one may cost.
const START: Duration = Duration::from_millis(2);
/// The most that ten may take of what one takes, in percent.
const MEMORY: u64 = 200;
const ROUNDS: usize = 200;

/// Notes when it is asked, and never answers.
#[derive(Debug, Default)]
struct Silent {
    asked: Mutex<Option<Instant>>,
    heard: Notify,
}

impl Model for Silent {
    fn stream(&self, _: ModelRequest, cancel: CancellationToken) -> EventStream {
        *self.asked.lock().unwrap() = Some(Instant::now());
        self.heard.notify_one();
        stream::once(async move {
            cancel.cancelled().await;
            Err(haft_models::ModelError::cancelled())
        })
        .boxed()
    }
}

/// A session with all built-in tools, ready to launch.
struct Session {
    crew: SubagentPool,
    model: Arc<Silent>,
    cx: CallContext,
    _agent: Agent,
}

impl Session {
    async fn new(project: &TempProject) -> Self {
        let nowhere = project.path("nowhere");
        let work = project.path("work");
        let places = ExtensionPlaces {
            cwd: work.clone(),
            home: nowhere.clone(),
            user: nowhere.clone(),
            managed: nowhere,
            directories: Vec::new(),
            plugins: Vec::new(),
            sources: EnabledSources::default(),
        };
        let (kinds, _) = Agents::load(&places, &AgentOptions::default());
        let crew = SubagentPool::builder(kinds.list().iter().cloned())
            .limits(SubagentLimits {
                at_once: 1_000,
                ..SubagentLimits::default()
            })
            .services(haft_tools::for_subagent)
            .build();
        let services = Services::none()
            .with(crew.service())
            .with(Arc::new(BackgroundTasks::default()));
        let services = haft_tools::with_services(services, &project.path("session"), &work);
        let mut registry = ToolRegistry::new();
        for tool in haft_tools::all() {
            registry.add_erased(tool).unwrap();
        }
        let builder = Engine::builder(registry, project.path("session")).services(services);
        let (engine, _) = builder.build().await;
        let services = engine.services().clone();
        let context = SessionContext::new(&work).with_mode(PermissionMode::BypassPermissions);
        let model = Arc::new(Silent::default());
        let agent = Agent::builder(
            engine.scheduler(context),
            Arc::clone(&model) as _,
            ModelSettings::new("m"),
        )
        .subagents(crew.clone())
        .build();
        let (mut cx, _) = CallContext::for_test(&work);
        cx.services = services;
        Self {
            crew,
            model,
            cx,
            _agent: agent,
        }
    }

    /// From the launch to the first request.
    async fn launch(&self) -> Duration {
        let launch = LaunchRequest {
            prompt: "Look around.".to_owned(),
            description: "Looks around".to_owned(),
            background: Some(true),
            ..LaunchRequest::default()
        };
        let started = Instant::now();
        let launched = self.crew.service().0.launch(launch, &self.cx).await;
        assert!(matches!(launched.unwrap(), LaunchOutcome::InBackground(_)));
        self.model.heard.notified().await;
        let asked = self.model.asked.lock().unwrap().take();
        asked.unwrap().duration_since(started)
    }
}

/// Memory of this process that is its own, in KB.
fn memory() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let of = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    of("Private_Dirty:") + of("Private_Clean:")
}

fn main() {
    // `cargo test` builds benches too and passes this; there is nothing to test here.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let project = TempProject::new([("work/CLAUDE.md", "Use tabs.\n")]);
        let session = Session::new(&project).await;
        session.launch().await;
        let one = memory();
        for _ in 0..9 {
            session.launch().await;
        }
        let ten = memory();
        session.crew.close().await;
        let percent = ten * 100 / one;
        println!("ten idle subagents: {ten} KB, one: {one} KB: {percent} % (at most {MEMORY} %)");

        let project = TempProject::new([("work/CLAUDE.md", "Use tabs.\n")]);
        let session = Session::new(&project).await;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(session.launch().await);
        }
        session.crew.close().await;
        times.sort_unstable();
        let (median, p95) = (times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
        println!("starting a subagent: median {median:?}, 95 % within {p95:?} (at most {START:?})");
        assert!(percent <= MEMORY && median <= START, "a promise is broken");
    });
}
