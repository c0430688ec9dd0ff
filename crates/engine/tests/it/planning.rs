//! Plan mode, and calls that need an answer.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, sync::Arc};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, ContextPatch, Effects,
    PermissionMode, SettingRisk, SettingsAccess, Tool, ToolError, ToolOutput, ToolProfile,
};
use haft_engine::{
    CallResult, Engine, SessionContext,
    hook_conditions::read,
    hooks::Hooks,
    permissions::{
        DecisionBehavior, List, PathContext, PatternBases, PermissionSettings, Policy, RuleSet,
        RuleSource, SettingsScope, decide,
    },
    settings::{SettingsFiles, SettingsFlags},
};
use haft_testkit::TempProject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    judged,
    machine::{LOCAL, Machine, PROJECT, USER},
    rig::{only, services, tool_use},
};

fn verdict(policy: &Policy, cwd: &TempProject, tool: &str, input: &Value) -> DecisionBehavior {
    let setting = PathContext {
        cwd: cwd.path("p"),
        home: Some(cwd.path("h")),
        wrappers: Vec::new(),
    };
    decide(policy, &judged::facts(tool, input, &setting)).behavior
}

#[test]
fn the_plan_is_the_one_file_that_may_be_written_in_plan_mode() {
    let project = TempProject::new([("p/a", ""), ("h/.claude/plans/other.md", "")]);
    let plan = project.path("h/.claude/plans/s.md");
    let context = SessionContext::new(project.path("p"))
        .with_home(Some(project.path("h")))
        .with_plan_file(Some(plan.clone()));
    let policy = |mode| {
        context
            .clone()
            .with_mode(mode)
            .policy(&project.path("kept"))
    };
    let (planning, default) = (
        policy(PermissionMode::Plan),
        policy(PermissionMode::Default),
    );
    let (ask, allow) = (DecisionBehavior::Ask, DecisionBehavior::Allow);
    let write = |path: &str| json!({"file_path": path, "content": ""});
    let plan_text = plan.display().to_string();
    for (tool, input, in_plan, in_default) in [
        ("Write", write(&plan_text), allow, ask),
        (
            "Edit",
            json!({"file_path": "../h/.claude/plans/s.md"}),
            allow,
            ask,
        ),
        ("Read", json!({"file_path": plan_text}), allow, allow),
        ("Write", write(&format!("{plan_text}x")), ask, ask),
        ("Write", write("../h/.claude/plans/other.md"), ask, ask),
        ("Write", write("../h/.claude/settings.json"), ask, ask),
        ("Write", write("a"), ask, ask),
        (
            "Bash",
            json!({"command": format!("echo x > {plan_text}")}),
            ask,
            ask,
        ),
        (
            "Bash",
            json!({"command": format!("rm {plan_text}")}),
            ask,
            ask,
        ),
    ] {
        let found = verdict(&planning, &project, tool, &input);
        assert_eq!(found, in_plan, "plan: {tool} {input}");
        let found = verdict(&default, &project, tool, &input);
        assert_eq!(found, in_default, "default: {tool} {input}");
    }
    // A rule still forbids it.
    let mut rules = RuleSet::default();
    let denied = rules.add(
        List::Deny,
        "Edit(**/*.md)",
        RuleSource::from_scope(SettingsScope::User),
        &context.bases(),
    );
    assert!(denied.is_ok());
    let strict = Policy {
        rules: Arc::new(rules),
        ..planning.clone()
    };
    let inside = json!({"file_path": project.path("p/x.md"), "content": ""});
    assert_eq!(
        verdict(&strict, &project, "Write", &inside),
        DecisionBehavior::Deny
    );
    // A link in its place leads elsewhere.
    symlink(project.path("p/a"), &plan).unwrap();
    let linked = policy(PermissionMode::Plan);
    assert_eq!(verdict(&linked, &project, "Write", &write(&plan_text)), ask);
}

#[tokio::test]
async fn plan_mode_ends_in_the_mode_before_it() {
    use PermissionMode as Mode;
    let set = |mode| ContextPatch::SetMode { mode };
    let plan = set(Mode::Plan);
    let leave = ContextPatch::LeavePlan;
    for (patches, mode) in [
        (vec![plan.clone(), leave.clone()], Mode::AcceptEdits),
        (
            vec![plan.clone(), plan.clone(), leave.clone()],
            Mode::AcceptEdits,
        ),
        (vec![leave.clone()], Mode::AcceptEdits),
        (
            vec![plan.clone(), set(Mode::Default), leave.clone()],
            Mode::Default,
        ),
        (vec![plan.clone()], Mode::Plan),
    ] {
        let context = SessionContext::new("/").with_mode(Mode::AcceptEdits);
        let (engine, _) = Engine::builder(only(haft_testkit::toy_tools::Echo), "/none")
            .build()
            .await;
        let mut scheduler = engine.scheduler(context);
        patches.iter().for_each(|patch| scheduler.apply(patch));
        assert_eq!(scheduler.context().mode, mode, "{patches:?}");
    }
    // A session that began with it has none before it.
    let (engine, _) = Engine::builder(only(haft_testkit::toy_tools::Echo), "/none")
        .build()
        .await;
    let mut scheduler = engine.scheduler(SessionContext::new("/").with_mode(Mode::Plan));
    scheduler.apply(&leave);
    assert_eq!(scheduler.context().mode, Mode::Default);
}

/// Asks something.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// What.
    question: String,
    #[schemars(skip)]
    #[serde(default)]
    answers: Value,
}

/// In the place of the real one.
struct Ask;

impl Tool for Ask {
    type Input = Asked;
    const NAME: &'static str = "AskUserQuestion";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            reserved: &["answers"],
            interactive: true,
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Asked) -> Effects {
        Effects::NONE
    }

    async fn complete_input(&self, input: &Asked, _: &CallContext) -> Option<Value> {
        let whole = json!({"question": format!("{}?", input.question)});
        (!input.question.ends_with('?')).then_some(whole)
    }

    async fn call(&self, input: &Asked, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!(
            "{} {}",
            input.question, input.answers
        )))
    }
}

/// Answers what it is told to.
struct Says(ApprovalAnswer);

impl Approver for Says {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        // Anyone who is asked sees the call completed.
        assert_eq!(question.asked.unwrap().input["question"], "why?");
        Box::pin(async { self.0.clone() })
    }
}

async fn ask(
    mode: PermissionMode,
    answer: ApprovalAnswer,
    hook: Option<(&str, Value)>,
) -> CallResult {
    let project = TempProject::new([("work/a", "")]);
    let work = project.path("work");
    let bases = PatternBases {
        cwd: work.clone(),
        home: work.clone(),
        slash: work.clone(),
    };
    let mut handlers = Vec::new();
    if let Some((event, said)) = hook {
        let said = json!({"hookSpecificOutput": said});
        let command = format!("echo '{said}'");
        let hooks = json!({event: [{"hooks": [{"type": "command", "command": command}]}]});
        let (read, problems) = read(SettingsScope::User, None, &hooks, &bases);
        assert_eq!(problems, []);
        handlers = read;
    }
    let (engine, _) = Engine::builder(only(Ask), project.path("session"))
        .services(services(Says(answer)))
        .hooks(Hooks::new(handlers, &work))
        .build()
        .await;
    let mut scheduler = engine.scheduler(SessionContext::new(&work).with_mode(mode));
    let mut turn = scheduler.start_batch().await;
    let input = json!({"question": "why", "answers": "the model's own"});
    turn.push(tool_use("AskUserQuestion", input));
    turn.next().await.unwrap()
}

#[tokio::test]
async fn only_an_answer_sets_what_is_reserved_for_it() {
    use PermissionMode::{BypassPermissions, Default, DontAsk};
    let answered = || ApprovalAnswer::InputEdited {
        input: json!({"question": "why?", "answers": "because"}),
    };
    for mode in [Default, BypassPermissions] {
        let finished = ask(mode, answered(), None).await;
        assert_eq!(finished.text(), "why? \"because\"", "{mode:?}");
        // Someone who only lets it pass has answered nothing.
        let finished = ask(mode, ApprovalAnswer::Allow, None).await;
        assert_eq!(finished.text(), "why? null", "{mode:?}");
        let finished = ask(mode, ApprovalAnswer::Unavailable, None).await;
        assert!(
            finished.is_error && finished.metadata.denied.is_some(),
            "{mode:?}"
        );
    }
    // tools.md, vector 30.
    let finished = ask(DontAsk, answered(), None).await;
    assert!(finished.is_error && finished.metadata.denied.is_some());
}

#[tokio::test]
async fn a_hook_answers_only_with_an_answer() {
    let input = json!({"question": "why?", "answers": "so"});
    let pre = |with: bool| {
        let mut said = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"});
        if with {
            said["updatedInput"] = input.clone();
        }
        Some(("PreToolUse", said))
    };
    let request = |with: bool| {
        let mut decision = json!({"behavior": "allow"});
        if with {
            decision["updatedInput"] = input.clone();
        }
        let said = json!({"hookEventName": "PermissionRequest", "decision": decision});
        Some(("PermissionRequest", said))
    };
    for hook in [pre(true), request(true)] {
        let finished = ask(PermissionMode::Default, ApprovalAnswer::Unavailable, hook).await;
        assert_eq!(finished.text(), "why? \"so\"");
    }
    for hook in [pre(false), request(false)] {
        let finished = ask(PermissionMode::Default, ApprovalAnswer::Unavailable, hook).await;
        assert!(finished.metadata.denied.is_some(), "{}", finished.text());
    }
}

#[tokio::test]
async fn what_is_said_against_a_plan_reaches_the_model() {
    let no = ApprovalAnswer::Deny {
        reason: Some("use fewer steps".to_owned()),
    };
    let finished = ask(PermissionMode::Plan, no, None).await;
    insta::assert_snapshot!(finished.text());
}

#[test]
fn settings_of_the_session_itself() {
    let machine = Machine::new([
        (
            USER,
            r#"{"plansDirectory": "~/my-plans", "askUserQuestionTimeout": "5m", "autoMemoryDirectory": "~/notes"}"#,
        ),
        (
            PROJECT,
            r#"{"askUserQuestionTimeout": "60s", "autoMemoryDirectory": "/x", "autoMemoryEnabled": false}"#,
        ),
    ]);
    let mut settings = machine.load();
    assert_eq!(
        settings.plans_directory(),
        machine.files.path("home/my-plans")
    );
    assert_eq!(settings.question_timeout().unwrap().as_secs(), 300);
    let memory = settings.auto_memory();
    assert_eq!(memory.directory, Some(machine.files.path("home/notes")));
    assert!(memory.off);
    assert_eq!(machine.problems(&settings).len(), 2);
    let usual = Machine::new([]);
    let mut settings = usual.load();
    assert_eq!(
        settings.plans_directory(),
        usual.files.path("home/.claude/plans")
    );
    assert_eq!(settings.question_timeout(), None);
}

#[test]
fn a_workspace_names_no_place_for_plans_outside_of_it() {
    for (given, taken) in [
        ("docs/plans", true),
        ("../elsewhere", false),
        ("/etc", false),
        (".git/hooks", false),
        (".claude/rules", false),
        ("link", false),
    ] {
        let text = json!({"plansDirectory": given}).to_string();
        let machine = Machine::new([(PROJECT, text.as_str())]);
        symlink(machine.files.path("home"), machine.files.path("p/link")).unwrap();
        let mut settings = machine.load();
        let expected = match taken {
            true => machine.files.path("p").join(given),
            false => machine.files.path("home/.claude/plans"),
        };
        assert_eq!(settings.plans_directory(), expected, "{given}");
        assert_eq!(settings.problems.is_empty(), taken, "{given}");
    }
}

fn files(machine: &Machine) -> SettingsFiles {
    SettingsFiles {
        places: machine.places.clone(),
        flags: SettingsFlags::default(),
        tools: judged::specs(),
        check: haft_engine::check_settings,
    }
}

#[test]
fn a_setting_is_written_like_a_person_would_and_checked_like_theirs() {
    let machine = Machine::new([
        (LOCAL, "{\n  // mine\n  \"model\": \"a\",\n}\n"),
        (USER, r#"{"model": "b", "env": {"A": "1"}}"#),
    ]);
    let files = files(&machine);
    let changed = files.write("model", &json!("c")).unwrap();
    assert_eq!((changed.before, changed.after), (json!("a"), json!("c")));
    let text = fs::read_to_string(machine.files.path(LOCAL)).unwrap();
    assert!(text.contains("// mine") && text.contains("\"c\""), "{text}");
    assert_eq!(files.read("env.A"), Ok(json!("1")));
    assert_eq!(files.read("theme"), Ok(Value::Null));
    files
        .write("permissions.deny", &json!(["Bash(rm *)"]))
        .unwrap();
    assert_eq!(machine.rules(), ["deny Bash(rm *)"]);
    files
        .write("askUserQuestionTimeout", &json!("60s"))
        .unwrap();
    let users = fs::read_to_string(machine.files.path(USER)).unwrap();
    assert!(users.contains("\"60s\""), "{users}");
    let before = fs::read_to_string(machine.files.path(LOCAL)).unwrap();
    let mut told = String::new();
    for (setting, value) in [
        ("model", json!(1)),
        ("permissions.defaultMode", json!("bypassPermissions")),
        ("permissions.allow", json!("Bash")),
        ("permissions.deny", json!(["Bash(unclosed"])),
        ("env.LD_PRELOAD", json!("x.so")),
        ("hooks", json!({"NoSuchEvent": []})),
        ("sandbox.enabled", json!("yes")),
        ("plansDirectory", json!("/etc")),
        ("model.x", json!("y")),
    ] {
        let problem = files.write(setting, &value).unwrap_err();
        told += &format!("{setting} = {value}: {problem}\n");
    }
    insta::assert_snapshot!(machine.plain(&told));
    let after = fs::read_to_string(machine.files.path(LOCAL)).unwrap();
    assert_eq!(before, after);
}

#[test]
fn what_is_no_matter_of_taste_is_heavy() {
    let machine = Machine::new([]);
    let files = files(&machine);
    for name in ["model", "theme", "attribution.commit"] {
        assert_eq!(files.risk(name), SettingRisk::Light, "{name}");
    }
    for name in [
        "permissions",
        "permissions.allow",
        "hooks",
        "env.PATH",
        "apiKeyHelper",
        "sandbox.network.allowedDomains",
        "statusLine",
        "enabledPlugins",
    ] {
        assert!(matches!(files.risk(name), SettingRisk::Heavy(_)), "{name}");
    }
    let unknown: BTreeSet<String> = [
        "modle",
        "",
        "permissions.",
        "allowManagedHooksOnly",
        "model.x",
    ]
    .map(|name| match files.risk(name) {
        SettingRisk::Unknown(why) => why,
        other => panic!("{name}: {other:?}"),
    })
    .into();
    assert_eq!(unknown.len(), 5);
}

#[test]
fn no_setting_is_written_through_a_link() {
    let machine = Machine::new([("outside/settings.local.json", "{}")]);
    symlink(
        machine.files.path("outside"),
        machine.files.path("p/.claude"),
    )
    .unwrap();
    let problem = files(&machine).write("model", &json!("m")).unwrap_err();
    assert!(problem.contains("link"), "{problem}");
    let text = fs::read_to_string(machine.files.path("outside/settings.local.json")).unwrap();
    assert_eq!(text, "{}");
}
