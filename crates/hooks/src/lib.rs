//! Hooks: commands of the user that run on events of a session and may decide about calls.
//!
//! All matching handlers of an event run concurrently; a handler that two files define identically
//! runs once. Their outputs are merged; the strictest decision wins: deny, defer, ask, allow.
//! The output of a handler that fails is ignored, unless it is configured to fail closed: then its
//! failure blocks the event. If a hook rewrites the input of a call, the input is checked and
//! evaluated again, but the scheduler does not claim its paths again: if hooks redirect two calls
//! to one file, the journal's locks keep them apart. Servers and models are reached through the
//! contract's `HttpClient` and [`HookModelProvider`]: this crate contains no client.
//!
//! # Layout
//! - `event_kind`, `matcher`, `condition`: when a handler runs; `config`: its configuration
//! - `job`: one run of a handler; `process_hook`: commands; `http_hook`: HTTP requests; `model_hook`:
//!   questions to models; `server_tool`: tools of MCP servers
//! - `reaper`: kills handlers if our process dies
//! - `file_watch`: files that hooks watch
//! - `output`: the output of a handler; `async_hooks`: output that is delivered later;
//!   `hook_events`: events for front ends

#![warn(missing_docs)]

mod async_hooks;
mod condition;
mod config;
mod elicitation_answer;
mod event_kind;
mod file_watch;
mod hook_events;
mod http_hook;
mod job;
mod matcher;
mod model_hook;
pub mod output;
#[cfg(test)]
mod page_tests;
mod process_hook;
mod reaper;
pub mod reference;
mod server_tool;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use haft_contract::{BoxFuture, HookVerdict, HostResolver, HttpClient, SessionId};
pub use haft_settings::HttpHookLimits;
use serde_json::{Map, Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

pub use async_hooks::AsyncHookOutput;
use async_hooks::AsyncHooks;
pub use condition::{CheckCondition, ConditionEvaluator, HookCondition};
pub use config::{
    Callback, HookAction, HookHandler, HookOrigin, HookPlugin, HttpHandlerConfig,
    ModelHandlerConfig, read,
};
pub use elicitation_answer::{HookFormAction, HookFormAnswer};
pub use event_kind::{BlockBehavior, HookEventKind};
use file_watch::FileWatch;
pub use file_watch::WatchedChange;
pub use hook_events::{HookEventSink, HookOutcome, HookRunEvent, HookStage};
pub use job::LongTextStore;
use job::{HookJob, HookResources};
pub use matcher::HookMatcher;
pub use model_hook::{HookModelProvider, ModelQuestion};
pub use output::{HookDecision, HookOutput};
pub use server_tool::McpToolCaller;

/// The default time limit for all SessionEnd handlers together; a handler's own timeout can raise
/// it.
const END: Duration = Duration::from_millis(1500);
/// The maximum of that limit.
const MAX_END_TIMEOUT: Duration = Duration::from_secs(60);

/// The minimum time between two scans of watched files.
const BETWEEN_CHANGES: Duration = Duration::from_millis(400);

/// The handlers of a session. Cheap to clone; clones share the state that changes during the
/// session.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    handlers: Vec<Arc<HookHandler>>,
    resources: HookResources,
    live: Arc<LiveHooks>,
}

/// The state that changes during a session.
#[derive(Debug, Default)]
struct LiveHooks {
    state: Mutex<HookState>,
    async_hooks: AsyncHooks,
    /// Signals that the set of watched paths may have changed.
    watch_changed: Notify,
    /// Whether skills are to be reloaded.
    reload: AtomicBool,
}

#[derive(Debug, Default)]
struct HookState {
    /// Handlers that were added during the session.
    added: Vec<Arc<HookHandler>>,
    /// The handlers of plugins, if they were replaced since the start.
    plugin_handlers: Option<Vec<Arc<HookHandler>>>,
    /// Keys of `once` handlers that have run.
    finished_once: HashSet<String>,
    prompt_context: PromptContext,
    /// Paths that handlers asked to watch, in addition to those in matchers.
    watched: Vec<PathBuf>,
}

/// Facts about the session that handlers receive with each event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptContext {
    /// The id of the prompt that is being answered.
    pub prompt_id: Option<String>,
    /// The effort level of the model.
    pub effort: Option<String>,
}

/// An occurrence of an event.
pub struct HookInvocation<'a> {
    /// The kind of event.
    pub event: HookEventKind,
    /// The values that matchers are compared with: the tool's name and its aliases, or another
    /// value.
    pub names: &'a [&'a str],
    /// The event's own fields, in addition to the common ones.
    pub fields: Map<String, Value>,
    /// Evaluates the `if` of handlers for the call of the event; `None` if the event is not about a
    /// call.
    pub call: Option<&'a ConditionEvaluator<'a>>,
    /// The working directory of the session.
    pub cwd: &'a Path,
}

/// The fields that all events have.
#[derive(Debug, Clone)]
pub struct HookCommonFields {
    /// The session id.
    pub session_id: String,
    /// The path of its transcript.
    pub transcript_path: PathBuf,
    /// The permission mode, if the event includes it.
    pub permission_mode: Option<&'static str>,
    /// The agent that acts.
    pub agent: AgentIdentity,
}

/// The agent that acts in a session: the main agent (with or without an agent kind), or a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    /// The id of a subagent.
    pub id: Option<String>,
    /// The agent kind.
    pub kind: Option<String>,
}

/// The output of one handler, with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerOutput {
    /// The short description of the handler for users.
    pub label: String,
    /// The name of the handler's source.
    pub owner: &'static str,
    /// The output.
    pub output: HookOutput,
}

impl Hooks {
    /// Creates the handlers of a session in this project.
    pub fn new(handlers: Vec<HookHandler>, project: &Path) -> Self {
        Self {
            handlers: handlers.into_iter().map(Arc::new).collect(),
            resources: HookResources {
                project: project.to_path_buf(),
                ..HookResources::default()
            },
            live: Arc::default(),
        }
    }

    /// Sets environment variables for handlers; an empty value removes an inherited variable.
    #[must_use]
    pub fn with_env(mut self, env: BTreeMap<String, String>) -> Self {
        self.resources.env = Arc::new(env);
        self
    }

    /// Adds handlers.
    #[must_use]
    pub fn with_handlers(mut self, handlers: Vec<HookHandler>) -> Self {
        self.handlers.extend(handlers.into_iter().map(Arc::new));
        self
    }

    /// Sets the HTTP client and the limits from the settings.
    #[must_use]
    pub fn with_http(mut self, client: Arc<dyn HttpClient>, limits: HttpHookLimits) -> Self {
        self.resources.http = Some(client);
        self.resources.limits = Arc::new(limits);
        self
    }

    /// Sets a resolver for hosts; requests go only to the addresses that it returns.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Arc<dyn HostResolver>) -> Self {
        self.resources.hosts = Some(hosts);
        self
    }

    /// Sets the provider for model handlers.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn HookModelProvider>) -> Self {
        self.resources.model = Some(model);
        self
    }

    /// Sets the caller for tools of MCP servers.
    #[must_use]
    pub fn with_servers(mut self, servers: Arc<dyn McpToolCaller>) -> Self {
        self.resources.servers = Some(servers);
        self
    }

    /// Sets the observer of running handlers.
    #[must_use]
    pub fn with_event_sink(mut self, sink: Arc<dyn HookEventSink>) -> Self {
        self.resources.event_sink = Some(sink);
        self
    }

    /// Sets the store for long texts, and the file for environment variables of later commands.
    #[must_use]
    pub fn with_text_store(mut self, results: Arc<dyn LongTextStore>, env_file: PathBuf) -> Self {
        self.resources.results = Some(results);
        self.resources.env_file = Some(env_file);
        self
    }

    /// Adds handlers to a running session, for example those of a skill.
    pub fn add(&self, handlers: Vec<HookHandler>) {
        let handlers = handlers.into_iter().map(Arc::new);
        self.state().added.extend(handlers);
        self.live.watch_changed.notify_one();
    }

    /// Replaces the handlers of plugins.
    pub fn set_plugin_handlers(&self, handlers: Vec<HookHandler>) {
        let handlers = handlers.into_iter().map(Arc::new).collect();
        self.state().plugin_handlers = Some(handlers);
    }

    /// Returns all handlers in effect, in the order of their configuration.
    fn current(&self) -> Vec<Arc<HookHandler>> {
        let state = self.state();
        let is_past = |handler: &&Arc<HookHandler>| {
            state.plugin_handlers.is_some() && matches!(handler.origin, HookOrigin::Plugin(_))
        };
        let first = self.handlers.iter().filter(|handler| !is_past(handler));
        let of_plugins = state.plugin_handlers.iter().flatten();
        first
            .chain(of_plugins)
            .chain(&state.added)
            .cloned()
            .collect()
    }

    /// Changes the facts about the session that handlers receive.
    pub fn set_prompt_context(&self, change: impl FnOnce(&mut PromptContext)) {
        change(&mut self.state().prompt_context);
    }

    /// Returns the facts about the session that handlers receive.
    pub fn prompt_context(&self) -> PromptContext {
        self.state().prompt_context.clone()
    }

    /// Returns the file with variables for later commands, if any handler may have written to it.
    pub fn env_file(&self) -> Option<&Path> {
        let sets = |handler: &Arc<HookHandler>| handler.event.sets_variables();
        let any = self.handlers.iter().any(sets) || self.current().iter().any(sets);
        self.resources.env_file.as_deref().filter(|_| any)
    }

    /// Returns whether no handler exists for this event, so that its fields need not be gathered.
    pub fn has_no_handlers(&self, event: HookEventKind) -> bool {
        !self.current().iter().any(|handler| handler.event == event)
    }

    /// Takes the outputs of background handlers since the last call.
    pub fn take_async_outputs(&self) -> Vec<AsyncHookOutput> {
        self.live.async_hooks.take_outputs()
    }

    /// Returns whether an output is waiting that the model should get now.
    pub fn has_waker(&self) -> bool {
        self.live.async_hooks.has_waker()
    }

    /// Waits for an output of a background handler that the model should get now.
    pub async fn wait_for_wake(&self) {
        self.live.async_hooks.wait_for_wake().await;
    }

    /// Kills all background handlers and waits until they have exited.
    pub async fn shutdown(&self) {
        self.live.async_hooks.shutdown().await;
    }

    /// Runs all matching handlers concurrently and returns their outputs in the order of their
    /// configuration.
    ///
    /// Boxed, so that its code is generated only once, here, and not in every crate that awaits it.
    pub fn fire<'a>(
        &'a self,
        invocation: &'a HookInvocation<'a>,
        common: &'a HookCommonFields,
    ) -> BoxFuture<'a, Vec<HandlerOutput>> {
        Box::pin(self.run_matching(invocation, common))
    }

    async fn run_matching(
        &self,
        invocation: &HookInvocation<'_>,
        common: &HookCommonFields,
    ) -> Vec<HandlerOutput> {
        let jobs = self.jobs(invocation, common);
        let (background, awaited): (Vec<HookJob>, Vec<HookJob>) =
            jobs.into_iter().partition(|job| job.handler.in_background);
        for job in background {
            self.live.async_hooks.start(job).await;
        }
        let runs = awaited.into_iter().map(|job| async move {
            let (label, owner) = (job.handler.label(), job.handler.owner());
            let output = job.run().await.output;
            HandlerOutput {
                label,
                owner,
                output,
            }
        });
        let outputs = join_all(runs).await;
        for handler in &outputs {
            self.apply_requests(&handler.output);
        }
        outputs
    }

    /// Applies the parts of an output that change the session's hooks.
    fn apply_requests(&self, output: &HookOutput) {
        if let Some(paths) = &output.watch_paths {
            self.state().watched.clone_from(paths);
            self.live.watch_changed.notify_one();
        }
        if output.reload_skills {
            self.live.reload.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a handler requested to reload skills, and clears that request.
    pub fn take_reload(&self) -> bool {
        self.live.reload.swap(false, Ordering::Relaxed)
    }

    /// Updates the watched paths after a change of the working directory.
    pub fn on_cwd_changed(&self) {
        self.live.watch_changed.notify_one();
    }

    /// Watches the files of FileChanged handlers and the paths that handlers requested, until the
    /// future is dropped. `cwd` returns the working directory. `on_change` is called for one change
    /// after the other.
    pub async fn watch_files(
        &self,
        cwd: impl Fn() -> PathBuf,
        on_change: impl Fn(WatchedChange) -> BoxFuture<'static, ()>,
    ) {
        let mut watch = FileWatch::new();
        let mut pause_ends = Instant::now();
        // Changes of the watch list take effect immediately, even while a handler runs.
        loop {
            watch.set(self.watch_list(&cwd()));
            let changes = tokio::select! {
                changes = async {
                    sleep_until(pause_ends).await;
                    watch.changes().await
                } => changes,
                () = self.live.watch_changed.notified() => continue,
            };
            for change in changes {
                let mut handling = on_change(change);
                loop {
                    tokio::select! {
                        () = &mut handling => break,
                        () = self.live.watch_changed.notified() => {
                            watch.set(self.watch_list(&cwd()));
                        }
                    }
                }
            }
            // The pause prevents a busy loop if a handler changes the files that it watches.
            pause_ends = Instant::now() + BETWEEN_CHANGES;
        }
    }

    fn watch_list(&self, cwd: &Path) -> Vec<PathBuf> {
        if self.has_no_handlers(HookEventKind::FILE_CHANGED) {
            return Vec::new();
        }
        let current = self.current();
        let of_event = current
            .iter()
            .filter(|handler| handler.event == HookEventKind::FILE_CHANGED);
        let names = of_event.flat_map(|handler| handler.matcher.written_names());
        let plain = |name: &String| !name.is_empty() && !name.contains('/') && !name.contains("..");
        let mut paths: Vec<PathBuf> = names.filter(plain).map(|name| cwd.join(name)).collect();
        paths.extend(self.state().watched.iter().cloned());
        paths
    }

    /// Starts all matching handlers without waiting for them; their outputs are ignored.
    pub async fn fire_and_forget(
        &self,
        invocation: &HookInvocation<'_>,
        common: &HookCommonFields,
    ) {
        for job in self.jobs(invocation, common) {
            self.live.async_hooks.start(job).await;
        }
    }

    fn jobs(&self, invocation: &HookInvocation<'_>, common: &HookCommonFields) -> Vec<HookJob> {
        let matching = self.matching_handlers(invocation);
        if matching.is_empty() {
            return Vec::new();
        }
        let context = self.state().prompt_context.clone();
        let input: Arc<str> = message(invocation, common, &context).into();
        let event = invocation.event.name();
        let name = match invocation.names.first() {
            Some(matched) if !matched.is_empty() => format!("{event}:{matched}"),
            _ => event.to_owned(),
        };
        let jobs = matching.into_iter().map(|handler| HookJob {
            input: Arc::clone(&input),
            name: name.clone(),
            cwd: invocation.cwd.to_path_buf(),
            timeout: self.limit(&handler),
            effort: context.effort.clone(),
            resources: self.resources.clone(),
            handler,
        });
        jobs.collect()
    }

    fn matching_handlers(&self, invocation: &HookInvocation<'_>) -> Vec<Arc<HookHandler>> {
        // The state is not locked during the evaluation of conditions, which may take long.
        let current = self.current();
        let mut seen = HashSet::new();
        let matching = current
            .iter()
            .filter(|handler| handler.event == invocation.event)
            .filter(|handler| handler.matcher.matches(invocation.names))
            .filter(|handler| match (&handler.condition, invocation.call) {
                (None, _) => true,
                (Some(condition), Some(holds)) => holds(condition),
                (Some(_), None) => false,
            })
            .filter(|handler| seen.insert(handler.key()));
        let mut matching: Vec<Arc<HookHandler>> = matching.cloned().collect();
        let mut state = self.state();
        matching.retain(|handler| !handler.once || state.finished_once.insert(handler.key()));
        matching
    }

    /// Returns the timeout of a handler. SessionEnd handlers are also limited by a common timeout.
    fn limit(&self, handler: &HookHandler) -> Duration {
        if handler.event != HookEventKind::SESSION_END {
            return handler.timeout;
        }
        let by_variable = self
            .resources
            .variable("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS")
            .and_then(|value| value.trim().parse().ok());
        let all = by_variable.map_or_else(|| self.session_end_timeout(), Duration::from_millis);
        handler.timeout.min(all)
    }

    fn session_end_timeout(&self) -> Duration {
        let raises = |handler: &&Arc<HookHandler>| {
            handler.event == HookEventKind::SESSION_END
                && handler.has_own_timeout
                && matches!(handler.origin, HookOrigin::Settings)
        };
        let raising = self.handlers.iter().filter(raises);
        let longest = raising.map(|handler| handler.timeout).max();
        longest.map_or(END, |timeout| timeout.clamp(END, MAX_END_TIMEOUT))
    }

    fn state(&self) -> MutexGuard<'_, HookState> {
        self.live
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl HookCommonFields {
    /// Creates the common fields of a session whose state is in this folder.
    pub fn for_session(session: SessionId, folder: &Path) -> Self {
        Self {
            session_id: session.to_string(),
            transcript_path: folder.with_extension("jsonl"),
            permission_mode: None,
            agent: AgentIdentity::default(),
        }
    }
}

/// Merges the outputs of several handlers.
pub fn merge_outputs(outputs: Vec<HandlerOutput>) -> HookVerdict {
    let mut verdict = HookVerdict::default();
    for HandlerOutput { label, output, .. } in outputs {
        verdict.context.extend(output.context);
        verdict.messages.extend(output.message);
        let failure = output.failure;
        let failure = failure.map(|failure| format!("{label} hook error: {failure}"));
        verdict.messages.extend(failure);
        verdict.block = verdict.block.or(output.block);
        verdict.stop = verdict.stop.or(output.stop);
        verdict.worktree = verdict.worktree.or(output.worktree);
    }
    verdict
}

/// Builds the JSON that handlers read on stdin.
fn message(
    invocation: &HookInvocation<'_>,
    common: &HookCommonFields,
    context: &PromptContext,
) -> String {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("session_id", common.session_id.clone().into());
    put(
        "transcript_path",
        common.transcript_path.to_string_lossy().into(),
    );
    put("cwd", invocation.cwd.to_string_lossy().into());
    if let Some(id) = &context.prompt_id {
        put("prompt_id", id.clone().into());
    }
    if let Some(mode) = common.permission_mode {
        put("permission_mode", mode.into());
    }
    if let Some(level) = context
        .effort
        .as_ref()
        .filter(|_| invocation.call.is_some())
    {
        put("effort", json!({ "level": level }));
    }
    put("hook_event_name", invocation.event.name().into());
    let AgentIdentity { id, kind } = &common.agent;
    for (name, value) in [("agent_id", id), ("agent_type", kind)] {
        if let Some(value) = value {
            put(name, value.as_str().into());
        }
    }
    for (name, value) in &invocation.fields {
        put(name, value.clone());
    }
    Value::Object(object).to_string()
}
