//! `ToolSearch`: tools that are there and not loaded yet.

use std::sync::Arc;

use haft_contract::{
    Access, CallContext, Card, ContextPatch, DeferredTools, DynTool, Effects, Profile, Services,
    Tool, ToolError, ToolOutput, ToolRole, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::words::counted;

/// So many are loaded unless more are asked for.
const USUAL: u64 = 5;

/// Finds and loads tools that are not loaded yet.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Words to look for; `+word` must be in the name; `select:A,B` takes these.
    #[schemars(length(min = 1))]
    query: String,
    #[schemars(range(min = 1))]
    max_results: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct ToolSearch {
    /// Built-in tools that are not loaded, for the model to know.
    names: Vec<String>,
    /// There are none.
    is_idle: bool,
}

impl Tool for ToolSearch {
    type Input = Input;
    const NAME: &'static str = "ToolSearch";

    fn profile(&self) -> Profile {
        Profile {
            family: "session".into(),
            access: Access::Reads,
            role: Some(ToolRole::FindsTools),
            // There is nothing to find yet; it may come.
            deferred: self.is_idle,
            ..Profile::default()
        }
    }

    fn for_session(&self, services: &Services) -> Option<Self> {
        let deferred = services.get::<DeferredTools>().ok()?.tools();
        let names: Vec<String> = deferred
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect();
        Some(Self {
            is_idle: names.is_empty(),
            names,
        })
    }

    fn prompt(&self) -> Option<String> {
        let names = self.names.join(", ");
        (!names.is_empty())
            .then(|| format!("Finds and loads tools that are not loaded yet, such as {names}."))
    }

    async fn is_enabled(&self) -> bool {
        // Without it everything is loaded from the start.
        std::env::var("ENABLE_TOOL_SEARCH").as_deref() != Ok("false")
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            patches: true,
            ..Effects::NONE
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let catalogue = cx.services.get::<DeferredTools>()?;
        let tools = catalogue.tools();
        let specs: Vec<&ToolSpec> = tools.iter().map(Arc::as_ref).map(DynTool::spec).collect();
        let most = usize::try_from(input.max_results.unwrap_or(USUAL)).unwrap_or(usize::MAX);
        let found = search(&specs, &input.query, most);
        let names: Vec<String> = found.iter().map(|spec| spec.name.clone()).collect();
        let told = json!({
            "matches": names,
            "query": input.query,
            "total_deferred_tools": specs.len(),
        });
        if found.is_empty() {
            let text = format!(
                "Nothing matches {:?} among {} that can be loaded.",
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
        let text = format!("Can be called from now on:\n{}", lines.join("\n"));
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

/// The best first; among equals by name.
fn search<'a>(specs: &[&'a ToolSpec], query: &str, most: usize) -> Vec<&'a ToolSpec> {
    if let Some(list) = query.trim().strip_prefix("select:") {
        let asked: Vec<&str> = list.split(',').map(str::trim).collect();
        let answers = |spec: &ToolSpec| {
            let aliases = spec.profile.aliases.iter().map(AsRef::as_ref);
            aliases
                .chain([spec.name.as_str()])
                .any(|name| asked.contains(&name))
        };
        return specs.iter().copied().filter(|spec| answers(spec)).collect();
    }
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<(usize, &ToolSpec)> = specs
        .iter()
        .filter_map(|spec| Some((points(spec, &words)?, *spec)))
        .filter(|(points, _)| *points > 0)
        .collect();
    found.sort_by(|(a, left), (b, right)| b.cmp(a).then_with(|| left.name.cmp(&right.name)));
    found.into_iter().map(|(_, spec)| spec).take(most).collect()
}

/// How well a tool fits. `None`: a word that must be in its name is not.
fn points(spec: &ToolSpec, words: &[String]) -> Option<usize> {
    let name = spec.name.to_lowercase();
    let hint = spec.profile.search_hint.to_lowercase();
    let description = spec.description.to_lowercase();
    let mut points = 0;
    for word in words {
        let (word, required) = match word.strip_prefix('+') {
            Some(word) => (word, true),
            None => (word.as_str(), false),
        };
        if required && !name.contains(word) {
            return None;
        }
        points += if name == word {
            20
        } else if name.contains(word) {
            10
        } else if hint.split_whitespace().any(|hint| hint == word) {
            4
        } else {
            usize::from(description.contains(word))
        };
    }
    Some(points)
}
