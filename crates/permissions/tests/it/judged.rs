//! The facts of a call as the pipeline finds them: bound by the real tools, and by toys for those of others.

use std::sync::{Arc, OnceLock};

use haft_contract::{RuleMatch, ToolSpec, ToolUse};
use haft_engine::{
    Engine, SessionContext, ToolRegistry,
    permissions::{CallFacts, PathContext, RuleSet},
};
use haft_testkit::toy_tools::ProfileOnlyTool;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// The facts of a call that a model makes in a session that starts here. Parameters that must be given and decide
/// nothing may be left out.
pub(crate) fn facts(tool: &str, input: &Value, place: &PathContext) -> CallFacts {
    try_facts(tool, input, place).unwrap_or_else(|problem| panic!("{tool} {input}: {problem}"))
}

/// The same where the call may make no sense.
pub(crate) fn try_facts(
    tool: &str,
    input: &Value,
    place: &PathContext,
) -> Result<CallFacts, String> {
    let mut rules = RuleSet::default();
    for name in &place.wrappers {
        rules.add_wrapper(name).unwrap();
    }
    let context = SessionContext::new(&place.cwd)
        .with_home(place.home.clone())
        .with_rules(rules);
    let input = match engine().pool().find(tool) {
        Some(found) => filled(found.spec(), input.clone()),
        None => input.clone(),
    };
    let tool_use = ToolUse {
        id: String::new(),
        name: tool.to_owned(),
        input,
    };
    let facts = engine().facts(tool_use, &context);
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(facts)
}

/// The definitions of the tools.
pub(crate) fn specs() -> Vec<ToolSpec> {
    let pool = engine().pool();
    pool.iter().map(|tool| tool.spec().clone()).collect()
}

fn engine() -> &'static Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut registry = ToolRegistry::new();
        for tool in haft_tools::all() {
            registry.add_erased(tool).unwrap();
        }
        let unknown = ProfileOnlyTool::tool("Unknown", RuleMatch::Parameters);
        registry.add_erased(unknown).unwrap();
        for name in ["get_x", "set_x", "status"] {
            registry
                .add_external(ProfileOnlyTool::for_server("git", name))
                .unwrap();
        }
        let runtime = Builder::new_current_thread().build().unwrap();
        let built = Engine::builder(registry, "/nowhere").build();
        runtime.block_on(built).0
    })
}

fn filled(spec: &ToolSpec, mut input: Value) -> Value {
    let required = spec.input_schema["required"].as_array();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let schema = &spec.input_schema["properties"][name];
        if input.is_object() && input.get(name).is_none() && schema["type"] == "string" {
            input[name] = json!("x");
        }
    }
    // A question that is asked of no one.
    if input["questions"] == json!([]) {
        let options = json!([{"label": "a", "description": ""}, {"label": "b", "description": ""}]);
        input["questions"] = json!([{"question": "Which?", "header": "h", "options": options}]);
    }
    input
}
