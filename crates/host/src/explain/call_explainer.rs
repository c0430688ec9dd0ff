//! Explains calls that are not run. They are bound by the real tools and evaluated by the same
//! functions as real calls.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use haft_contract::{Services, ToolSpec, ToolUse};
use haft_engine::{
    Engine, SessionContext, ToolRegistry,
    permissions::{CallFacts, rules::is_known},
};
use serde_json::{Map, Value, json};

use super::placeholder_tools;

/// A pool of all tools that a question may be about, including those that the session bans or
/// cannot offer.
pub struct CallExplainer {
    engine: Arc<Engine>,
    /// The program that confines commands, to probe the sandbox of this machine.
    program: Option<PathBuf>,
    /// Whether undo would not cover commands on this machine.
    unwitnessed: OnceLock<bool>,
}

impl CallExplainer {
    /// Creates a pool with the services of a session.
    pub(crate) async fn new(services: Services, folder: PathBuf) -> anyhow::Result<Self> {
        let mut all = haft_tools::usable(&services);
        let names: Vec<String> = all.iter().map(|tool| tool.spec().name.clone()).collect();
        let others = haft_tools::all().into_iter();
        all.extend(others.filter(|tool| !names.contains(&tool.spec().name)));
        all.extend(placeholder_tools::missing(&all));
        let mut registry = ToolRegistry::new();
        for tool in all {
            registry.add_erased(tool)?;
        }
        let builder = Engine::builder(registry, folder).services(services);
        let (engine, _) = builder.build().await;
        Ok(Self {
            engine,
            program: None,
            unwitnessed: OnceLock::new(),
        })
    }

    /// Sets the program that confines commands. Without one, the mode `auto` asks about commands.
    #[must_use]
    pub fn with_program(mut self, program: Option<PathBuf>) -> Self {
        self.program = program;
        self
    }

    /// Returns whether undo would not cover commands on this machine. Probes the sandbox once.
    pub(super) fn is_unwitnessed(&self) -> bool {
        *self.unwitnessed.get_or_init(|| {
            super::MachineSandbox::probe(self.program.as_deref(), &std::env::temp_dir()).unwitnessed
        })
    }

    /// Returns the definitions of the tools.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let pool = self.engine.pool();
        pool.iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Returns the facts of a call. Required parameters that do not affect the decision may be
    /// missing.
    pub(crate) async fn facts(
        &self,
        tool: &str,
        input: Value,
        context: &SessionContext,
    ) -> Result<CallFacts, String> {
        if self.engine.pool().find(tool).is_none()
            && let Some(other) = placeholder_tools::for_server_tool(tool)
                .or_else(|| is_known(tool).then(|| placeholder_tools::unknown(tool)))
        {
            let problems = self.engine.add_tools(vec![other]).await;
            if let Some(problem) = problems.first() {
                return Err(problem.to_string());
            }
        }
        let pool = self.engine.pool();
        let input = match (pool.find(tool), input) {
            (Some(found), Value::Object(input)) => filled(found.spec(), input),
            (Some(found), Value::Null) => filled(found.spec(), Map::new()),
            (_, input) => input,
        };
        let tool_use = ToolUse {
            id: String::new(),
            name: tool.to_owned(),
            input,
        };
        self.engine.facts(tool_use, context).await.map_err(plain)
    }
}

/// Returns a problem without the markup for models.
fn plain(problem: String) -> String {
    let inner = problem.strip_prefix("<tool_use_error>");
    let inner = inner.and_then(|text| text.strip_suffix("</tool_use_error>"));
    inner.map_or(problem.clone(), str::to_owned)
}

/// Fills in values for missing required parameters, except paths: the decision does not depend on
/// them.
fn filled(spec: &ToolSpec, mut input: Map<String, Value>) -> Value {
    let required = spec.input_schema["required"].as_array();
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    for name in names.filter(|name| !spec.profile.paths.contains(name)) {
        let schema = &spec.input_schema["properties"][name];
        let least = schema["minItems"].as_u64().unwrap_or_default();
        let given = input.get(name);
        let is_given = given.is_some_and(|given| least == 0 || *given != json!([]));
        if !is_given && let Some(value) = anything(schema) {
            input.insert(name.to_owned(), value);
        }
    }
    Value::Object(input)
}

/// Returns a value that matches a schema, if the schema is simple.
fn anything(schema: &Value) -> Option<Value> {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return Some(first.clone());
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first()?.as_str()?,
        kind => kind.as_str()?,
    };
    Some(match kind {
        "string" => {
            let least = schema["minLength"].as_u64().unwrap_or_default();
            json!("x".repeat(usize::try_from(least).unwrap_or_default().min(100)))
        }
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(0)),
        "boolean" => json!(false),
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or_default();
            let items: Option<Vec<Value>> =
                (0..least).map(|_| anything(&schema["items"])).collect();
            json!(items?)
        }
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let fields = names.map(|name| {
                let value = anything(&schema["properties"][name])?;
                Some((name.to_owned(), value))
            });
            Value::Object(fields.collect::<Option<Map<String, Value>>>()?)
        }
        _ => return None,
    })
}
