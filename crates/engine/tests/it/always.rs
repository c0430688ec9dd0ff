//! "Always": a person lets a call through, and calls like it from now on.

use std::sync::{Arc, Mutex};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, PermissionMode, RuleScope,
    Services, Tool, ToolError, ToolOrigin, ToolOutput, ToolProfile,
};
use haft_engine::{
    Engine, Scheduler, SessionContext, ToolRegistry,
    hook_conditions::read,
    hooks::Hooks,
    permissions::{List, RuleSet, RuleSource, RuleStore, SettingsScope},
    settings::{LocalRules, SettingsPlaces},
};
use haft_testkit::{TempProject, toy_tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rig::tool_use;

/// Does something elsewhere.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// As a server would offer it.
pub(crate) struct Remote;

impl Tool for Remote {
    type Input = Nothing;
    const NAME: &'static str = "mcp__toy__x";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            origin: ToolOrigin::Server("toy".into()),
            ..ToolProfile::default()
        }
    }

    async fn call(&self, _: &Nothing, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

/// Says always, and remembers what it was offered.
#[derive(Default)]
struct Always(Mutex<Vec<Vec<String>>>);

impl Approver for Always {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.0.lock().unwrap().push(question.first_rules().to_vec());
        Box::pin(async { ApprovalAnswer::AllowAlways })
    }
}

/// Keeps rules in a file, and counts.
struct Keeper {
    local: LocalRules,
    kept: Mutex<Vec<Vec<String>>>,
}

impl RuleStore for Keeper {
    fn save(&self, rules: &[String], _: RuleScope) {
        self.local.add(rules).unwrap();
        self.kept.lock().unwrap().push(rules.to_vec());
    }
}

struct Rig {
    project: TempProject,
    scheduler: Scheduler,
    asked: Arc<Always>,
    keeper: Arc<Keeper>,
}

const LOCAL: &str = "work/.claude/settings.local.json";

impl Rig {
    async fn new(rules: impl FnOnce(&SessionContext) -> RuleSet, hooks: Option<Value>) -> Self {
        let project = TempProject::new([("work/a.txt", "alpha\n")]);
        let work = project.path("work");
        let mut registry = ToolRegistry::new();
        registry.add(Remote).unwrap();
        for toy in toy_tools::all() {
            registry.add_erased(toy).unwrap();
        }
        let asked = Arc::new(Always::default());
        let keeper = Arc::new(Keeper {
            local: LocalRules {
                places: SettingsPlaces {
                    cwd: work.clone(),
                    home: project.path("home"),
                    user: project.path("home/.claude"),
                    managed: project.path("etc"),
                },
            },
            kept: Mutex::default(),
        });
        let context = SessionContext::new(&work);
        let rules = rules(&context);
        let (handlers, problems) = match hooks {
            Some(hooks) => read(SettingsScope::User, None, &hooks, &context.bases()),
            None => (Vec::new(), Vec::new()),
        };
        assert_eq!(problems, []);
        let (engine, _) = Engine::builder(registry, project.path("session"))
            .services(Services::none().with_approver(Arc::clone(&asked) as Arc<dyn Approver>))
            .rule_store(Arc::clone(&keeper) as Arc<dyn RuleStore>)
            .hooks(Hooks::new(handlers, &work))
            .build()
            .await;
        Self {
            scheduler: engine.scheduler(context.with_rules(rules)),
            project,
            asked,
            keeper,
        }
    }

    async fn call(&mut self, name: &str, input: Value) -> String {
        let mut turn = self.scheduler.start_batch().await;
        turn.push(tool_use(name, input));
        turn.next().await.unwrap().text()
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.asked.0.lock().unwrap().clone()
    }

    fn kept(&self) -> usize {
        self.keeper.kept.lock().unwrap().len()
    }
}

fn nothing(_: &SessionContext) -> RuleSet {
    RuleSet::default()
}

#[tokio::test]
async fn a_rule_is_kept_once_and_the_next_call_is_not_asked_about() {
    let mut rig = Rig::new(nothing, None).await;
    for _ in 0..3 {
        assert_eq!(rig.call("mcp__toy__x", json!({})).await, "done");
    }
    assert_eq!(rig.asked(), [["mcp__toy__x"]]);
    assert_eq!(rig.kept(), 1);
    let written: Value = serde_json::from_str(&rig.project.read(LOCAL)).unwrap();
    assert_eq!(written, json!({"permissions": {"allow": ["mcp__toy__x"]}}));
}

#[tokio::test]
async fn several_calls_of_one_turn_are_each_asked_about_and_the_rule_is_written_once() {
    let mut rig = Rig::new(nothing, None).await;
    let mut turn = rig.scheduler.start_batch().await;
    for _ in 0..2 {
        turn.push(tool_use("mcp__toy__x", json!({})));
    }
    while let Some(finished) = turn.next().await {
        assert_eq!(finished.text(), "done");
    }
    drop(turn);
    // A tool that may do anything runs alone, so the second one sees the rule of the first.
    assert_eq!(rig.asked().len(), 1);
    let written: Value = serde_json::from_str(&rig.project.read(LOCAL)).unwrap();
    assert_eq!(written["permissions"]["allow"], json!(["mcp__toy__x"]));
}

#[tokio::test]
async fn an_edit_offers_no_rule_and_always_means_this_once() {
    let mut rig = Rig::new(nothing, None).await;
    for _ in 0..2 {
        rig.call("Append", json!({"path": "a.txt", "line": "x"}))
            .await;
    }
    assert_eq!(rig.asked(), [[""; 0]; 2]);
    assert_eq!(rig.kept(), 0);
    assert!(!rig.project.path(LOCAL).exists());
}

#[tokio::test]
async fn what_an_ask_rule_holds_up_is_offered_no_rule() {
    let ask = |context: &SessionContext| {
        let mut rules = RuleSet::default();
        let source = RuleSource::from_scope(SettingsScope::Project);
        rules
            .add(List::Ask, "mcp__toy", source, &context.bases())
            .unwrap();
        rules
    };
    let mut rig = Rig::new(ask, None).await;
    for _ in 0..2 {
        rig.call("mcp__toy__x", json!({})).await;
    }
    assert_eq!(rig.asked(), [[""; 0]; 2]);
    assert_eq!(rig.kept(), 0);
}

#[tokio::test]
async fn where_only_the_administrators_rules_count_none_is_offered() {
    let closed = |_: &SessionContext| {
        let mut rules = RuleSet::default();
        rules.restrict_to_managed();
        rules
    };
    let mut rig = Rig::new(closed, None).await;
    for _ in 0..2 {
        rig.call("mcp__toy__x", json!({})).await;
    }
    assert_eq!(rig.asked(), [[""; 0]; 2]);
    assert_eq!(rig.kept(), 0);
}

#[tokio::test]
async fn a_kept_rule_does_not_change_the_mode() {
    let mut rig = Rig::new(nothing, None).await;
    rig.call("mcp__toy__x", json!({})).await;
    let context = rig.scheduler.context();
    assert_eq!(context.mode, PermissionMode::Default);
    assert_eq!(crate::machine::texts(&context.rules), ["allow mcp__toy__x"]);
}

#[tokio::test]
async fn a_hook_that_agrees_with_another_input_is_heard_once() {
    // It moves every change into a control file; each such change asks, no matter who allows it.
    let moves = json!({"hookSpecificOutput": {
        "hookEventName": "PermissionRequest",
        "decision": {"behavior": "allow", "updatedInput": {"path": ".git/config", "line": "x"}},
    }});
    let hooks = json!({"PermissionRequest": [{"hooks": [{
        "type": "command", "command": format!("echo heard >> heard; echo '{moves}'"),
    }]}]});
    let mut rig = Rig::new(nothing, Some(hooks)).await;
    std::fs::create_dir(rig.project.path("work/.git")).unwrap();
    rig.call("Append", json!({"path": "a.txt", "line": "x"}))
        .await;
    assert_eq!(rig.project.read("work/heard"), "heard\n");
    assert_eq!(
        rig.asked().len(),
        1,
        "the person decides on the control file"
    );
    assert_eq!(rig.project.read("work/a.txt"), "alpha\n");
    assert_eq!(rig.project.read("work/.git/config"), "x\n");
}
