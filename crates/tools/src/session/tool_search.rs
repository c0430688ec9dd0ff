//! `ToolSearch`: finds and loads deferred tools.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use haft_contract::{
    CallContext, Card, ContextPatch, DeferredTools, DynTool, Effects, PendingServers, Services,
    Tool, ToolAccess, ToolError, ToolOrigin, ToolOutput, ToolProfile, ToolRole, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool_ranking::search;
use crate::plural::counted;

/// The default number of tools to load.
const USUAL: u64 = 5;
/// The time to wait for MCP servers that may have the requested tools; `MOMENT` is the wait for
/// their tools to be listed.
const TIMEOUT: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(200);

/// Finds and loads tools that are not loaded yet.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Query words; `+word` must be in the name; `select:A,B` loads these tools.
    #[schemars(length(min = 1))]
    query: String,
    #[schemars(range(min = 1))]
    max_results: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct ToolSearch {
    /// The names of deferred tools of this program, for the tool's description. Tools of servers
    /// are not included, because they come and go, and a description must not change; the model is
    /// notified of them separately.
    names: Vec<String>,
}

impl Tool for ToolSearch {
    type Input = Input;
    const NAME: &'static str = "ToolSearch";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "session".into(),
            access: ToolAccess::Reads,
            role: Some(ToolRole::FindsTools),
            ..ToolProfile::default()
        }
    }

    fn for_session(&self, services: &Services) -> Option<Self> {
        let deferred = services.get::<DeferredTools>().ok()?.tools();
        let specs = deferred.iter().map(|tool| tool.spec());
        let ours = specs.filter(|spec| spec.profile.origin == ToolOrigin::Program);
        // Tools with a role are not named: `Skill` is deferred only while the session has no skill.
        let ours = ours.filter(|spec| spec.profile.role.is_none());
        Some(Self {
            names: ours.map(|spec| spec.name.clone()).collect(),
        })
    }

    fn prompt(&self) -> Option<String> {
        let names = self.names.join(", ");
        (!names.is_empty())
            .then(|| format!("Finds and loads tools that are not loaded yet, such as {names}."))
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            patches: true,
            ..Effects::NONE
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let catalogue = cx.services.get::<DeferredTools>()?;
        let most = usize::try_from(input.max_results.unwrap_or(USUAL)).unwrap_or(usize::MAX);
        let mut tools = catalogue.tools();
        let is_missing = |tools: &[_]| is_missing_something(tools, &input.query, most);
        if is_missing(&tools) && wait_for_servers(cx).await? {
            // Tools of new servers appear in the catalogue a little later.
            let until = Instant::now() + MOMENT;
            tools = catalogue.tools();
            while is_missing(&tools) && Instant::now() < until {
                tokio::time::sleep(Duration::from_millis(10)).await;
                tools = catalogue.tools();
            }
        }
        let specs = specs(&tools);
        let found = search(&specs, &input.query, most);
        let names: Vec<String> = found.tools.iter().map(|spec| spec.name.clone()).collect();
        let told = json!({
            "matches": names,
            "query": input.query,
            "total_deferred_tools": specs.len(),
        });
        let unknown = match found.unknown.as_slice() {
            [] => String::new(),
            names => format!(
                "\nNo tool that can be loaded is called {}.",
                names.join(", ")
            ),
        };
        let found = found.tools;
        if found.is_empty() {
            let text = format!(
                "Nothing matches {:?} among {} that can be loaded.{unknown}",
                input.query,
                counted(specs.len() as u64, "tool")
            );
            return Ok(ToolOutput::text(text).with_structured(told));
        }
        let lines: Vec<String> = found
            .iter()
            .map(|spec| {
                json!({
                    "name": spec.name,
                    "description": spec.description,
                    "input_schema": spec.input_schema,
                })
                .to_string()
            })
            .collect();
        let text = format!("Can be called from now on:\n{}{unknown}", lines.join("\n"));
        Ok(ToolOutput::text(text)
            .with_structured(told)
            .with_patch(ContextPatch::ActivateTools { names }))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new("Tools", &*input.query))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let names = output.structured.as_ref()?["matches"].as_array()?;
        let names: Vec<&str> = names.iter().filter_map(|name| name.as_str()).collect();
        let summary = match names.is_empty() {
            true => "nothing found".to_owned(),
            false => names.join(", "),
        };
        Some(self.render_use(input)?.with_summary(summary))
    }
}

fn specs(tools: &[Arc<dyn DynTool>]) -> Vec<&ToolSpec> {
    tools.iter().map(|tool| tool.spec()).collect()
}

/// Returns whether the query requests a tool that does not exist.
fn is_missing_something(tools: &[Arc<dyn DynTool>], query: &str, most: usize) -> bool {
    let specs = specs(tools);
    let found = search(&specs, query, most);
    found.tools.is_empty() || !found.unknown.is_empty()
}

/// Waits a short time for servers that are being connected, because they may have the requested
/// tools. Returns whether there were any.
async fn wait_for_servers(cx: &CallContext) -> Result<bool, ToolError> {
    let Ok(servers) = cx.services.get::<Arc<dyn PendingServers>>() else {
        return Ok(false);
    };
    if servers.pending().is_empty() {
        return Ok(false);
    }
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
        _ = tokio::time::timeout(TIMEOUT, servers.wait_until_connected(Vec::new())) => Ok(true),
    }
}
