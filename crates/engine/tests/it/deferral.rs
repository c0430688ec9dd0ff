//! Which tools are sent by name only, and in which order they are sent once they are activated.

use std::sync::Arc;

use haft_contract::{ContextPatch, DynTool, ToolOrigin, ToolProfile, ToolRole};
use haft_engine::{
    Engine, Scheduler, SessionContext, ToolFilters, ToolFormat, ToolRegistry,
    pool::{DeferralMode, ToolSelection, definitions::estimated_tokens},
};
use haft_testkit::{TempProject, toy_tools::ProfileOnlyTool};
use serde_json::Value;

fn tool(name: &str, change: impl Fn(&mut ToolProfile)) -> Arc<dyn DynTool> {
    let mut profile = ToolProfile::default();
    change(&mut profile);
    ProfileOnlyTool::with(name, profile)
}

fn finder() -> Arc<dyn DynTool> {
    tool("Finder", |profile| {
        profile.role = Some(ToolRole::FindsTools)
    })
}

fn of_server(name: &str, deferred: bool) -> Arc<dyn DynTool> {
    tool(name, |profile| {
        profile.deferred = deferred;
        profile.origin = ToolOrigin::Server("git".into());
    })
}

fn built_in() -> Vec<Arc<dyn DynTool>> {
    vec![
        tool("Basic", |profile| profile.basic = true),
        tool("Rare", |profile| profile.deferred = true),
        tool("Some", |_| {}),
        tool("Somewhat_longer_than_the_others", |_| {}),
        tool("Always", |profile| profile.never_deferred = true),
    ]
}

async fn session(
    filters: ToolFilters,
    built_in: Vec<Arc<dyn DynTool>>,
    external: Vec<Arc<dyn DynTool>>,
) -> (TempProject, Scheduler) {
    let project = TempProject::new([]);
    let mut registry = ToolRegistry::new();
    for tool in built_in {
        registry.add_erased(tool).unwrap();
    }
    for tool in external {
        registry.add_external(tool).unwrap();
    }
    let builder = Engine::builder(registry, project.path("session")).filters(filters);
    let (engine, _) = builder.build().await;
    let context = SessionContext::new(project.root());
    (project, engine.scheduler(context))
}

fn names(scheduler: &Scheduler) -> String {
    let offer = scheduler.offer();
    let names: Vec<&str> = offer.iter().map(|tool| &*tool.spec().name).collect();
    names.join(" ")
}

fn sent(scheduler: &Scheduler) -> String {
    let definitions = scheduler.offer().definitions(ToolFormat::Anthropic);
    let texts: Vec<String> = definitions.iter().map(Value::to_string).collect();
    texts.join(",")
}

fn activate(scheduler: &mut Scheduler, names: &[&str]) {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    scheduler.apply(&ContextPatch::ActivateTools { names });
}

fn with_finder() -> Vec<Arc<dyn DynTool>> {
    let mut tools = built_in();
    tools.push(finder());
    tools
}

#[tokio::test]
async fn what_is_deferred() {
    let one = estimated_tokens(tool("Some", |_| {}).spec());
    let servers = || {
        vec![
            of_server("mcp__git__a", true),
            of_server("mcp__git__b", false),
        ]
    };
    let with = |deferral, budget| ToolFilters {
        deferral,
        budget,
        ..ToolFilters::default()
    };
    let rest = "Some Somewhat_longer_than_the_others";
    let cases = [
        (
            "those that say so, of servers too",
            with(DeferralMode::On, None),
            format!("Always Basic Finder {rest} mcp__git__b"),
        ),
        (
            "none, and nothing that would find them",
            with(DeferralMode::Off, Some(1)),
            format!("Always Basic Rare {rest} mcp__git__a mcp__git__b"),
        ),
        (
            "none yet: they cost too little",
            with(DeferralMode::At(10 * one), None),
            format!("Always Basic Rare {rest} mcp__git__a mcp__git__b"),
        ),
        (
            "those that say so: they cost enough",
            with(DeferralMode::At(one), None),
            format!("Always Basic Finder {rest} mcp__git__b"),
        ),
        (
            "beyond the budget the largest first",
            with(DeferralMode::On, Some(6 * one)),
            "Always Basic Finder Some mcp__git__b".to_owned(),
        ),
        (
            "never those that no one can do without",
            with(DeferralMode::On, Some(1)),
            "Always Basic Finder mcp__git__b".to_owned(),
        ),
        (
            "nor those that were asked for",
            ToolFilters {
                tools: ToolSelection::parse("default,Rare,Some"),
                budget: Some(1),
                ..ToolFilters::default()
            },
            "Always Basic Finder Rare Some mcp__git__b".to_owned(),
        ),
    ];
    for (what, filters, expected) in cases {
        let (_project, scheduler) = session(filters, with_finder(), servers()).await;
        assert_eq!(names(&scheduler), expected, "{what}");
    }
    // Without a tool that finds them, those of servers are sent; ours can be activated by an embedder.
    let filters = with(DeferralMode::On, Some(1));
    let (_project, scheduler) = session(filters, built_in(), servers()).await;
    assert_eq!(
        names(&scheduler),
        format!("Always Basic {rest} mcp__git__a mcp__git__b")
    );
}

#[tokio::test]
async fn what_was_sent_is_not_deferred_later() {
    let filters = ToolFilters {
        deferral: DeferralMode::At(1),
        budget: Some(1),
        ..ToolFilters::default()
    };
    let plain = vec![finder(), tool("Basic", |profile| profile.basic = true)];
    let (_project, scheduler) = session(filters, plain, Vec::new()).await;
    assert_eq!(names(&scheduler), "Basic", "there is nothing to find");
    let before = sent(&scheduler);
    let engine = Arc::clone(scheduler.engine());
    engine
        .replace_server_tools(
            "git",
            vec![
                of_server("mcp__git__a", true),
                of_server("mcp__git__b", false),
            ],
        )
        .await;
    let after = sent(&scheduler);
    assert!(after.starts_with(&before), "{after}");
    assert_eq!(names(&scheduler), "Basic Finder mcp__git__b");
    // The server's list is another, and says nothing of deferral any more: what was sent stays.
    engine
        .replace_server_tools("git", vec![of_server("mcp__git__b", true)])
        .await;
    assert_eq!(sent(&scheduler), after);
}

#[tokio::test]
async fn a_session_that_goes_on_sends_the_same_bytes() {
    let servers = || {
        vec![
            of_server("mcp__git__a", true),
            of_server("mcp__git__z", true),
        ]
    };
    let (_project, mut scheduler) = session(ToolFilters::default(), with_finder(), servers()).await;
    let mut before = sent(&scheduler);
    for name in ["mcp__git__z", "Rare", "mcp__git__a"] {
        activate(&mut scheduler, &[name]);
        let after = sent(&scheduler);
        assert!(
            after.starts_with(&before) && after.len() > before.len(),
            "{name}"
        );
        before = after;
    }
    let order = names(&scheduler);
    assert!(order.ends_with("mcp__git__z Rare mcp__git__a"), "{order}");
    // Another process: what was sent is activated in its order before anything is sent.
    let (_project, mut resumed) = session(ToolFilters::default(), with_finder(), servers()).await;
    let order: Vec<&str> = order.split(' ').collect();
    activate(&mut resumed, &order);
    assert_eq!(sent(&resumed), before);
    // A server that is not there any more leaves a gap, and nothing else moves.
    let (_project, mut alone) = session(ToolFilters::default(), with_finder(), Vec::new()).await;
    activate(&mut alone, &order);
    assert!(names(&alone).ends_with("Somewhat_longer_than_the_others Rare"));
}
