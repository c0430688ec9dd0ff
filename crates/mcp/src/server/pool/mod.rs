//! A tool pool as an MCP service.
//!
//! Calls run through the scheduler of the session, like calls of a model: concurrently where that
//! is safe. Each call is answered as soon as it ends. The task in `calls` owns the scheduler.
//! `content` converts tool results; `stored_results` offers results that were too long to send;
//! `roots` tracks the client's directories; `prompts` are the prompts that users of the client can
//! call.

mod calls;
mod content;
mod prompts;
mod roots;
mod stored_results;

use std::{
    collections::HashMap,
    future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use haft_contract::{BoxFuture, CancellationToken, ToolUse};
use haft_engine::{Scheduler, ToolFormat, pool::definitions::definition};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub use prompts::{PromptDefinition, PromptSource};
pub use roots::NarrowRoots;
pub use stored_results::StoredResults;

use self::{
    calls::{CallCommand, CallRunner},
    roots::ClientRoots,
};
use super::service::{McpService, RequestContext, ServerDescription, ServiceAnswer};
use crate::{Revision, RpcError};

/// The maximum number of calls that wait to be started.
const WAITING: usize = 64;

/// A session of tools for one client.
pub struct PoolService {
    description: ServerDescription,
    tools: Vec<Value>,
    calls: mpsc::Sender<CallCommand>,
    open: ActiveCalls,
    next: AtomicU64,
    kept: StoredResults,
    session: CancellationToken,
    prompts: Option<Box<dyn PromptSource>>,
    roots: Option<ClientRoots>,
}

/// The running calls of a session by the engine's ids. Code that asks a question on behalf of a
/// call finds the call's client here. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ActiveCalls(Arc<Mutex<HashMap<String, RequestContext>>>);

impl ActiveCalls {
    /// Returns the context of the request that made a call.
    pub fn find(&self, id: &str) -> Option<RequestContext> {
        self.all().get(id).cloned()
    }

    /// Returns whether the client of a call requested progress.
    fn wants_progress(&self, id: &str) -> bool {
        self.all()
            .get(id)
            .is_some_and(RequestContext::wants_progress)
    }

    /// Returns whether any client of these calls can show a form to its user.
    pub fn has_forms(&self) -> bool {
        self.all().values().any(|cx| cx.client.has_forms())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, RequestContext>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolService {
    /// Serves the tools of this scheduler. `updates` receives the progress of its calls; `open` is
    /// shared with code that asks questions on behalf of calls. Needs a tokio runtime.
    pub fn new(
        scheduler: Scheduler,
        updates: haft_contract::progress::ProgressUpdates,
        open: ActiveCalls,
        description: ServerDescription,
    ) -> Self {
        let pool = scheduler.engine().pool();
        let mut tools: Vec<Value> = pool
            .iter()
            .map(|tool| definition(tool.spec(), ToolFormat::Mcp))
            .collect();
        // A declared output schema must hold for every result, but a hook may replace results.
        if scheduler.engine().may_change_results() {
            let tools = tools.iter_mut().filter_map(Value::as_object_mut);
            tools.for_each(|tool| drop(tool.remove("outputSchema")));
        }
        let kept = StoredResults::new(scheduler.engine().folder().join("tool-results"));
        let session = scheduler.cancel_token();
        let (calls, commands) = mpsc::channel(WAITING);
        let runner = CallRunner::new(scheduler, updates, open.clone());
        haft_contract::spawn_boxed(runner.run(commands));
        Self {
            description,
            tools,
            calls,
            open,
            next: AtomicU64::new(1),
            kept,
            session,
            prompts: None,
            roots: None,
        }
    }

    /// Adds prompts.
    #[must_use]
    pub fn with_prompts(mut self, prompts: Box<dyn PromptSource>) -> Self {
        if let Some(capabilities) = self.description.capabilities.as_object_mut() {
            capabilities.insert("prompts".to_owned(), json!({}));
        }
        self.prompts = Some(prompts);
        self
    }

    /// Restricts the session to the client's directories that `narrow` selects.
    #[must_use]
    pub fn with_roots(mut self, narrow: Box<NarrowRoots>) -> Self {
        self.roots = Some(ClientRoots::new(narrow));
        self
    }

    fn list_tools(&self, cx: &RequestContext) -> Value {
        let tools = self.tools.iter().map(|tool| {
            let mut tool = tool.clone();
            if cx.client.revision < Revision::V2025_06_18
                && let Some(tool) = tool.as_object_mut()
            {
                tool.remove("title");
                tool.remove("outputSchema");
            }
            tool
        });
        json!({"tools": tools.collect::<Vec<_>>()})
    }

    /// Parses the tool call of a request.
    fn read_call(&self, mut params: Value) -> Result<ToolUse, RpcError> {
        let Some(Value::String(name)) = params.get_mut("name").map(Value::take) else {
            return Err(RpcError::invalid_params("`name` is missing: name the tool"));
        };
        let input = match params.get_mut("arguments").map(Value::take) {
            None | Some(Value::Null) => json!({}),
            Some(input @ Value::Object(_)) => input,
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        };
        let id = format!("mcp_{}", self.next.fetch_add(1, Ordering::Relaxed));
        Ok(ToolUse { id, name, input })
    }

    /// Calls a tool. An unknown tool name is left to the engine, whose error helps a model: it
    /// knows aliases, similar names, and tools that rules exclude.
    async fn call_tool(&self, call: ToolUse, cx: &RequestContext) -> ServiceAnswer {
        // Boxed, like everything that few requests need. Otherwise every future would have the size
        // of the largest one.
        if let Some(roots) = self.roots.as_ref().filter(|roots| roots.has_to_ask(cx)) {
            Box::pin(roots.update_roots(cx, &self.calls)).await;
        }
        self.open.all().insert(call.id.clone(), cx.clone());
        let finished = calls::carry_out(&self.calls, call, &self.open).await?;
        Ok(content::result(finished, cx.client.revision, &self.kept))
    }
}

impl McpService for PoolService {
    fn description(&self) -> ServerDescription {
        self.description.clone()
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        cx: &'a RequestContext,
    ) -> BoxFuture<'a, ServiceAnswer> {
        // A separate, small future: most requests are calls, and the allocator is slow from about
        // one kilobyte on.
        if method == "tools/call" {
            return match self.read_call(params) {
                Ok(call) => Box::pin(self.call_tool(call, cx)),
                Err(error) => Box::pin(future::ready(Err(error))),
            };
        }
        Box::pin(async move {
            match (method, self.prompts.as_deref()) {
                ("tools/list", _) => Ok(self.list_tools(cx)),
                ("resources/list", _) => Ok(self.kept.list()),
                ("resources/templates/list", _) => Ok(json!({"resourceTemplates": []})),
                ("resources/read", _) => Box::pin(self.kept.read(&params["uri"])).await,
                ("prompts/list", Some(source)) => Ok(prompts::list(source, cx.client.revision)),
                ("prompts/get", Some(source)) => Box::pin(prompts::get(source, &params, cx)).await,
                (other, _) => Err(RpcError::no_method(other)),
            }
        })
    }

    fn notification(&self, method: &str) {
        if let ("notifications/roots/list_changed", Some(roots)) = (method, &self.roots) {
            roots.mark_changed();
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.session.cancel();
            self.calls.closed().await;
        })
    }
}
