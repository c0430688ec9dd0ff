//! Tools that come and go while a session runs.

use std::sync::Arc;

use haft_contract::{
    CallContext, DeferredTools, DynTool, RuleList, RuleMatch, ToolOrigin, ToolProfile, ToolRole,
    ToolUse,
};
use haft_engine::{
    Engine, Pool, Scheduler, SessionContext, ToolFilters, ToolFormat, ToolRegistry,
    permissions::{RuleSet, RuleSource, SettingsScope},
};
use haft_testkit::{TempProject, toy_tools, toy_tools::ProfileOnlyTool};
use serde_json::{Value, json};

async fn session(filters: ToolFilters) -> (TempProject, Scheduler) {
    let project = TempProject::new([]);
    let mut registry = ToolRegistry::new();
    for tool in toy_tools::all() {
        registry.add_erased(tool).unwrap();
    }
    let deferred = ToolProfile {
        deferred: true,
        ..ToolProfile::default()
    };
    registry
        .add_erased(ProfileOnlyTool::with("Aaa", deferred))
        .unwrap();
    let builder = Engine::builder(registry, project.path("session")).filters(filters);
    let (engine, _) = builder.build().await;
    let context = SessionContext::new(project.root());
    (project, engine.scheduler(context))
}

/// As a provider is sent them: one text.
fn sent(scheduler: &Scheduler) -> String {
    let definitions = scheduler.offer().definitions(ToolFormat::Anthropic);
    let texts: Vec<String> = definitions.iter().map(Value::to_string).collect();
    texts.join(",")
}

fn of_git(names: &[&str]) -> Vec<Arc<dyn DynTool>> {
    let tools = names
        .iter()
        .map(|name| ProfileOnlyTool::for_server("git", name));
    tools.collect()
}

async fn call(scheduler: &mut Scheduler, name: &str) -> String {
    let mut turn = scheduler.start_batch().await;
    turn.push(ToolUse {
        id: String::new(),
        name: name.to_owned(),
        input: json!({}),
    });
    turn.next().await.unwrap().text()
}

#[tokio::test]
async fn what_was_sent_stays_a_prefix_whatever_comes() {
    let (_project, mut scheduler) = session(ToolFilters::default()).await;
    let mut before = sent(&scheduler);
    assert!(!before.contains("Aaa"));

    // A server that is late; of two tools the names decide, and none goes in front of what was sent.
    let engine = Arc::clone(scheduler.engine());
    let problems = engine
        .replace_server_tools("git", of_git(&["b", "a"]))
        .await;
    assert_eq!(problems, []);
    let after = sent(&scheduler);
    assert!(after.starts_with(&before) && after.len() > before.len());
    assert!(after.find("mcp__git__a").unwrap() < after.find("mcp__git__b").unwrap());
    before = after;

    // One that sorts first, activated later.
    scheduler.apply(&haft_contract::ContextPatch::ActivateTools {
        names: vec!["Aaa".to_owned()],
    });
    let after = sent(&scheduler);
    assert!(after.starts_with(&before) && after[before.len()..].contains("Aaa"));
    before = after;

    // Another list: what is new goes behind, what is gone stays as it was sent.
    engine
        .replace_server_tools("git", of_git(&["0", "b"]))
        .await;
    let after = sent(&scheduler);
    assert!(after.starts_with(&before) && after[before.len()..].contains("mcp__git__0"));
    before = after;

    // It goes, and is there again, as it was.
    engine.replace_server_tools("git", Vec::new()).await;
    assert_eq!(sent(&scheduler), before);
    assert!(engine.pool().find("mcp__git__b").is_none());
    engine
        .replace_server_tools("git", of_git(&["0", "b"]))
        .await;
    assert_eq!(sent(&scheduler), before);

    // Tools of our own come late too.
    let problems = engine
        .add_tools(vec![ProfileOnlyTool::tool("Abb", RuleMatch::default())])
        .await;
    assert_eq!(problems, []);
    let after = sent(&scheduler);
    assert!(
        after.starts_with(&before) && after.ends_with("}"),
        "{after}"
    );
    assert!(after[before.len()..].contains("Abb"));
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_gone_is_told_so() {
    let (_project, mut scheduler) = session(ToolFilters::default()).await;
    let engine = Arc::clone(scheduler.engine());
    engine.replace_server_tools("git", of_git(&["a"])).await;
    let said = call(&mut scheduler, "mcp__git__a").await;
    assert!(said.contains("Permission"), "{said}");
    engine.replace_server_tools("git", Vec::new()).await;
    let said = call(&mut scheduler, "mcp__git__a").await;
    assert!(
        said.contains("mcp__git__a is not available: the server git"),
        "{said}"
    );
}

#[tokio::test]
async fn a_turn_ends_with_the_tools_it_began_with() {
    let (_project, mut scheduler) = session(ToolFilters::default()).await;
    let engine = Arc::clone(scheduler.engine());
    let mut turn = scheduler.start_batch().await;
    engine.replace_server_tools("git", of_git(&["a"])).await;
    turn.push(ToolUse {
        id: String::new(),
        name: "mcp__git__a".to_owned(),
        input: json!({}),
    });
    let said = turn.next().await.unwrap().text();
    assert!(said.contains("Unknown tool"), "{said}");
    drop(turn);
    let said = call(&mut scheduler, "mcp__git__a").await;
    assert!(!said.contains("Unknown tool"), "{said}");
}

#[tokio::test]
async fn deferred_tools_that_come_late_are_found() {
    let (project, mut scheduler) = session(ToolFilters::default()).await;
    let engine = Arc::clone(scheduler.engine());
    let late = |name: &str| {
        let profile = ToolProfile {
            deferred: true,
            origin: ToolOrigin::Server("git".into()),
            ..ToolProfile::default()
        };
        ProfileOnlyTool::with(name, profile)
    };
    let deferred = || -> Vec<String> {
        let (mut cx, _updates) = CallContext::for_test(project.root());
        cx.services = engine.services().clone();
        let tools = cx.services.get::<DeferredTools>().unwrap().tools();
        tools.iter().map(|tool| tool.spec().name.clone()).collect()
    };
    assert_eq!(deferred(), ["Aaa"]);
    // No tool finds them here, so that this one is offered in full.
    engine
        .replace_server_tools("git", vec![late("mcp__git__a")])
        .await;
    assert_eq!(deferred(), ["Aaa"]);
    assert!(sent(&scheduler).contains("mcp__git__a"));
    engine.replace_server_tools("git", Vec::new()).await;
    assert_eq!(deferred(), ["Aaa"]);

    // One that finds them, and had nothing to find so far.
    let finder = ToolProfile {
        deferred: true,
        role: Some(ToolRole::FindsTools),
        ..ToolProfile::default()
    };
    engine
        .add_tools(vec![ProfileOnlyTool::with("Finder", finder)])
        .await;
    engine
        .replace_server_tools("web", vec![late("mcp__web__a")])
        .await;
    assert!(sent(&scheduler).contains("\"Finder\""));
    assert!(!sent(&scheduler).contains("mcp__web__a"));
    scheduler.apply(&haft_contract::ContextPatch::ActivateTools {
        names: vec!["mcp__web__a".to_owned()],
    });
    assert!(sent(&scheduler).contains("mcp__web__a"));
}

#[tokio::test]
async fn what_keeps_tools_out_keeps_out_those_that_come_late() {
    let mut rules = RuleSet::default();
    let context = SessionContext::new("/");
    let source = RuleSource::from_scope(SettingsScope::User);
    rules
        .add(RuleList::Deny, "mcp__git", source, &context.bases())
        .unwrap();
    let filters = ToolFilters {
        rules: Arc::new(rules),
        deny: vec!["Abb".to_owned()],
        ..ToolFilters::default()
    };
    let (_project, scheduler) = session(filters).await;
    let engine = Arc::clone(scheduler.engine());
    let before = sent(&scheduler);
    engine.replace_server_tools("git", of_git(&["a"])).await;
    engine
        .add_tools(vec![ProfileOnlyTool::tool("Abb", RuleMatch::default())])
        .await;
    assert_eq!(sent(&scheduler), before);
    // Nothing that comes late takes the place of a tool that is there.
    let taken = engine
        .add_tools(vec![ProfileOnlyTool::tool("Peek", RuleMatch::default())])
        .await;
    assert_eq!(taken.len(), 1);
    assert_eq!(sent(&scheduler), before);
}

#[tokio::test]
async fn an_agent_of_a_kind_has_a_part_of_the_tools_late_ones_too() {
    let (_project, mut scheduler) = session(ToolFilters::default()).await;
    let whole = sent(&scheduler);
    let keep = |pool: &Pool| {
        pool.filtered(|spec| spec.name.ends_with('b'))
            .without_deferral()
    };
    scheduler.set_kind(Some("narrow".to_owned()), Some(Arc::new(keep)));
    let engine = Arc::clone(scheduler.engine());
    assert_eq!(engine.agent().kind.as_deref(), Some("narrow"));
    // What it no longer has is not sent again.
    assert!(!sent(&scheduler).contains("Aaa"));
    engine
        .replace_server_tools("git", of_git(&["a", "b"]))
        .await;
    let names = |pool: &Pool| {
        let names = pool.iter().map(|tool| tool.spec().name.clone());
        names
            .filter(|name| name.starts_with("mcp__"))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&engine.pool()), ["mcp__git__b"]);
    assert_eq!(names(&engine.every_tool()), ["mcp__git__a", "mcp__git__b"]);
    let refused = call(&mut scheduler, "mcp__git__a").await;
    assert!(refused.contains("mcp__git__a"), "{refused}");
    // Of no kind again: everything is back, in the order of the start.
    scheduler.set_kind(None, None);
    assert!(sent(&scheduler).starts_with(&whole));
    assert_eq!(engine.pool().iter().len(), engine.every_tool().iter().len());
}
