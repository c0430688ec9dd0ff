use std::sync::Arc;

use haft_contract::{
    BoundCall, BoxFuture, CallContext, DynTool, Tool, ToolError, ToolOutput, ToolProfile, ToolSpec,
    erase,
};
use haft_engine::{
    Pool, ToolFilters, ToolFormat, ToolRegistry,
    pool::{DeferralMode, ToolSelection, definitions::estimated_tokens},
};
use haft_testkit::toy_tools;
use serde_json::{Value, json};
use tokio::sync::Barrier;

/// A tool made of its definition.
struct Defined(ToolSpec);

impl DynTool for Defined {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn bind(self: Arc<Self>, _: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Err(ToolError::Unavailable("this tool"))
    }
}

fn defined(
    name: &str,
    description: &str,
    schema: Value,
    aliases: &[&'static str],
) -> Arc<dyn DynTool> {
    let profile = ToolProfile {
        aliases: aliases.iter().map(|alias| (*alias).into()).collect(),
        deferred: name.starts_with("Deferred"),
        basic: ["Read", "Write"].contains(&name),
        ..ToolProfile::default()
    };
    Arc::new(Defined(ToolSpec {
        name: name.into(),
        description: description.into(),
        input_schema: schema,
        profile,
    }))
}

fn simple(name: &str) -> Arc<dyn DynTool> {
    defined(name, "Does it.", json!({"type": "object"}), &[])
}

fn names(pool: &Pool) -> Vec<&str> {
    pool.iter().map(|tool| tool.spec().name.as_str()).collect()
}

#[test]
fn a_bad_definition_is_refused_by_name() {
    let object = || json!({"type": "object"});
    let cases = [
        defined("", "Has no name.", object(), &[]),
        defined("has blanks", "x", object(), &[]),
        defined("Silent", " ", object(), &[]),
        defined("Listing", "x", json!({"type": "array"}), &[]),
        defined("Shapeless", "x", json!({}), &[]),
        defined(
            "Recursive",
            "x",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
            &[],
        ),
        defined("Broken", "x", json!({"type": "object", "required": 7}), &[]),
        defined("Peek", "x", object(), &[]),
        defined("Chdir", "x", object(), &[]),
        defined("Other", "x", object(), &["Echo"]),
    ];
    let mut registry = ToolRegistry::new();
    for toy in toy_tools::all() {
        registry.add_erased(toy).unwrap();
    }
    let errors: Vec<String> = cases
        .into_iter()
        .map(|tool| {
            registry
                .add_erased(tool)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        })
        .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn built_ins_come_first_sorted_and_win_a_clash() {
    let mut registry = ToolRegistry::new();
    for name in ["Zebra", "Ant"] {
        registry.add_erased(simple(name)).unwrap();
    }
    registry
        .add_erased(defined("Bee", "x", json!({"type": "object"}), &["Wasp"]))
        .unwrap();
    for name in ["mcp__z", "Ant", "mcp__a", "Wasp"] {
        registry.add_external(simple(name)).unwrap();
    }
    let (pool, unknown) = registry.pool(&ToolFilters::default()).await;
    assert_eq!(names(&pool), ["Ant", "Bee", "Zebra", "mcp__a", "mcp__z"]);
    assert_eq!(pool.find("Wasp").unwrap().spec().name, "Bee");
    assert_eq!(unknown, Vec::<String>::new());
}

#[tokio::test]
async fn filters_choose_what_is_offered() {
    let build = async |filters: ToolFilters| {
        let mut registry = ToolRegistry::new();
        for name in ["Read", "Write", "Glob", "DeferredThing"] {
            registry.add_erased(simple(name)).unwrap();
        }
        registry
            .add_erased(defined("Agent", "x", json!({"type": "object"}), &["Task"]))
            .unwrap();
        registry.add_external(simple("mcp__x")).unwrap();
        let (pool, unknown) = registry.pool(&filters).await;
        let offered: Vec<String> = pool
            .offered(&[])
            .map(|tool| tool.spec().name.clone())
            .collect();
        (offered.join(" "), unknown.join(" "))
    };
    let only = |list: &str| ToolFilters {
        tools: ToolSelection::parse(list),
        ..ToolFilters::default()
    };
    let cases = [
        (
            "everything but the deferred",
            ToolFilters::default(),
            "Agent Glob Read Write mcp__x",
            "",
        ),
        (
            "the word for all",
            only("default"),
            "Agent Glob Read Write mcp__x",
            "",
        ),
        (
            "a list limits built-ins only",
            only("Read, Glob"),
            "Glob Read mcp__x",
            "",
        ),
        ("an alias", only("Task"), "Agent mcp__x", ""),
        (
            "what is asked for by name is not deferred",
            only("Read,DeferredThing"),
            "DeferredThing Read mcp__x",
            "",
        ),
        (
            "all, and what is asked for by name",
            only("default DeferredThing"),
            "Agent DeferredThing Glob Read Write mcp__x",
            "",
        ),
        ("none", only(""), "mcp__x", ""),
        (
            "unknown names are told",
            only("Read,Teleport"),
            "Read mcp__x",
            "Teleport",
        ),
        (
            "simple",
            ToolFilters {
                simple: true,
                ..ToolFilters::default()
            },
            "Read Write mcp__x",
            "",
        ),
        (
            "denied, by alias too",
            ToolFilters {
                deny: vec!["Task".into(), "mcp__x".into()],
                ..ToolFilters::default()
            },
            "Glob Read Write",
            "",
        ),
        (
            "nothing deferred",
            ToolFilters {
                deferral: DeferralMode::Off,
                ..ToolFilters::default()
            },
            "Agent DeferredThing Glob Read Write mcp__x",
            "",
        ),
    ];
    for (what, filters, offered, unknown) in cases {
        assert_eq!(
            build(filters).await,
            (offered.to_owned(), unknown.to_owned()),
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_deferred_tool_is_offered_once_activated() {
    let mut registry = ToolRegistry::new();
    registry.add_erased(simple("DeferredThing")).unwrap();
    let (pool, _) = registry.pool(&ToolFilters::default()).await;
    assert_eq!(
        pool.definitions(ToolFormat::Anthropic, &[]),
        Vec::<Value>::new()
    );
    let activated = ["DeferredThing".to_owned()];
    assert_eq!(pool.definitions(ToolFormat::Anthropic, &activated).len(), 1);
}

/// Says whether it is enabled only once every other tool of the barrier was asked too.
struct Meets(Arc<Barrier>, bool, ToolSpec);

impl DynTool for Meets {
    fn spec(&self) -> &ToolSpec {
        &self.2
    }
    fn is_enabled(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            self.0.wait().await;
            self.1
        })
    }
    fn bind(self: Arc<Self>, _: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Err(ToolError::Unavailable("this tool"))
    }
}

#[tokio::test]
async fn tools_are_asked_at_once_whether_they_are_enabled() {
    let barrier = Arc::new(Barrier::new(3));
    let mut registry = ToolRegistry::new();
    for (name, enabled) in [("A", true), ("B", false), ("C", true)] {
        let spec = simple(name).spec().clone();
        registry
            .add_erased(Arc::new(Meets(Arc::clone(&barrier), enabled, spec)))
            .unwrap();
    }
    // One after the other they would wait for each other for ever.
    let (pool, _) = registry.pool(&ToolFilters::default()).await;
    assert_eq!(names(&pool), ["A", "C"]);
}

#[tokio::test]
async fn the_serialized_definitions_are_pinned() {
    let build = async || {
        let mut registry = ToolRegistry::new();
        for toy in toy_tools::all() {
            registry.add_erased(toy).unwrap();
        }
        registry.pool(&ToolFilters::default()).await.0
    };
    let (pool, again) = (build().await, build().await);
    for format in [ToolFormat::Anthropic, ToolFormat::OpenAi, ToolFormat::Mcp] {
        let bytes = |pool: &Pool| serde_json::to_string(&pool.definitions(format, &[])).unwrap();
        assert_eq!(bytes(&pool), bytes(&again));
    }
    let shown: Vec<Value> = [ToolFormat::Anthropic, ToolFormat::OpenAi, ToolFormat::Mcp]
        .map(|format| pool.definitions(format, &[])[0].clone())
        .into();
    insta::assert_json_snapshot!(shown);
    assert!(estimated_tokens(pool.find("Append").unwrap().spec()) > 50);
}

/// Reads its own description from where it stands.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

struct Prompting;

impl Tool for Prompting {
    type Input = Nothing;
    const NAME: &'static str = "Prompting";
    fn prompt(&self) -> Option<String> {
        Some("Written at run time.".into())
    }
    async fn call(&self, _: &Nothing, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

#[test]
fn a_prompt_of_its_own_takes_the_place_of_the_doc_comment() {
    assert_eq!(erase(Prompting).spec().description, "Written at run time.");
}
