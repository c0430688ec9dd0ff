//! Events that are about no call, and what is reported of hooks while they run.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, ContextPatch, Effects,
    HookEvent, HookService, Services, Tool, ToolError, ToolOutput,
};
use haft_engine::{
    Engine, EngineBuilder, SessionContext, ToolRegistry,
    hook_conditions::read,
    hooks::{AgentIdentity, HookEventKind, HookOutcome, HookStage, Hooks},
    permissions::{List, PatternBases, SettingsScope},
    settings::{SettingsFlags, SettingsPlaces, SettingsWatch},
};
use haft_testkit::{TempProject, until};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::{Rig, beside::Ear, one};
use crate::rig::tool_use;

fn heard(ear: &Ear) -> Vec<String> {
    let heard = ear.0.lock().unwrap();
    heard
        .iter()
        .map(|news| match &news.stage {
            HookStage::Started => format!("{} started", news.name),
            HookStage::Printed { stdout, stderr } => {
                format!("{} printed {stdout:?} {stderr:?}", news.name)
            }
            HookStage::Ended {
                stdout,
                stderr,
                code,
                outcome,
            } => format!(
                "{} {} {code:?} {stdout:?} {stderr:?}",
                news.name,
                outcome.name()
            ),
        })
        .collect()
}

#[tokio::test]
async fn hooks_are_told_of_as_they_start_print_and_end() {
    let cases = [
        (
            "echo out; echo err >&2",
            r#"success Some(0) "out\n" "err\n""#,
        ),
        ("echo no >&2; exit 2", r#"error Some(2) "" "no\n""#),
        ("exit 1", r#"error Some(1) "" """#),
        (
            "sleep 600",
            r#"cancelled None "" "it took longer than 200ms""#,
        ),
    ];
    for (command, expected) in cases {
        let ear = Arc::new(Ear::default());
        let heard_by = Arc::clone(&ear);
        let hook = json!({
            "type": "command", "command": command, "timeout": if command.starts_with("sleep") { 0.2 } else { 60.0 },
            "statusMessage": "Thinking it over",
        });
        let hooks = json!({"PreToolUse": [{"hooks": [hook]}]});
        let with = |hooks: Hooks| hooks.with_event_sink(heard_by);
        let mut rig = Rig::with(&[(SettingsScope::User, hooks)], &[], with, |builder| {
            builder
        })
        .await;
        rig.bash("echo 1").await;
        let lines = heard(&ear);
        let expected = [
            "PreToolUse:Bash started".to_owned(),
            format!("PreToolUse:Bash {expected}"),
        ];
        let printed = |line: &&String| !line.contains(" printed ");
        assert!(lines.iter().filter(printed).eq(&expected), "{lines:?}");
        let news = ear.0.lock().unwrap();
        let ids: BTreeSet<&str> = news.iter().map(|news| news.id.as_str()).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(news[0].status.as_deref(), Some("Thinking it over"));
    }
}

#[tokio::test]
async fn what_a_hook_prints_is_told_while_it_runs() {
    let ear = Arc::new(Ear::default());
    let heard_by = Arc::clone(&ear);
    let command = "echo half; until [ -e seen ]; do sleep 0.01; done; echo whole";
    let with = |hooks: Hooks| hooks.with_event_sink(heard_by);
    let files = [(SettingsScope::User, one("PreToolUse", command))];
    let mut rig = Rig::with(&files, &[], with, |builder| builder).await;
    let seen = rig.project.path("work/seen");
    let watch = {
        let ear = Arc::clone(&ear);
        async move {
            let is_heard = || {
                let heard = heard(&ear);
                let mut lines = heard.iter();
                lines.any(|line| line.contains(r#"printed "half\n" """#))
            };
            until("the first line is heard", is_heard).await;
            std::fs::write(seen, "").unwrap();
        }
    };
    tokio::join!(rig.bash("echo 1"), watch);
    let lines = heard(&ear);
    let last = lines.last().unwrap();
    assert!(
        last.contains(r#"success Some(0) "half\nwhole\n""#),
        "{last}"
    );
}

#[tokio::test]
async fn a_hook_that_nobody_waits_for_any_more_was_cancelled() {
    let ear = Arc::new(Ear::default());
    let heard_by = Arc::clone(&ear);
    let with = |hooks: Hooks| hooks.with_event_sink(heard_by);
    let files = [(
        SettingsScope::User,
        one("PreToolUse", "touch begun; sleep 600"),
    )];
    let mut rig = Rig::with(&files, &[], with, |builder| builder).await;
    let begun = rig.project.path("work/begun");
    let context = rig.scheduler.context();
    let engine = Arc::clone(rig.scheduler.engine());
    let fired = engine.fire(HookEventKind::PRE_TOOL_USE, "Bash", Map::new(), &context);
    let begins = async {
        until("it has begun", || begun.exists()).await;
    };
    tokio::select! {
        _ = fired => panic!("it ended"),
        () = begins => {}
    }
    let news = ear.0.lock().unwrap().last().unwrap().clone();
    let HookStage::Ended { outcome, .. } = news.stage else {
        panic!("{news:?}");
    };
    assert_eq!(outcome, HookOutcome::Cancelled);
    drop(rig.scheduler.start_batch().await);
}

/// Goes elsewhere.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GoInput {
    /// Where to.
    path: PathBuf,
}

struct Go;

impl Tool for Go {
    type Input = GoInput;
    const NAME: &'static str = "Go";

    fn effects(&self, _: &GoInput) -> Effects {
        Effects {
            patches: true,
            ..Effects::NONE
        }
    }

    async fn call(&self, input: &GoInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let sourced = cx.permissions.confinement.sourced.clone();
        let mut output = ToolOutput::text(format!("{sourced:?}"));
        output.patches.push(ContextPatch::SetCwd {
            path: cx.cwd.join(&input.path),
        });
        Ok(output)
    }
}

#[tokio::test]
async fn hooks_hear_of_another_directory_and_may_set_variables_for_it() {
    let command = "cat > moved.json; echo 'export A=1' >> \"$CLAUDE_ENV_FILE\"; echo m >&2; exit 2";
    let files = [(SettingsScope::User, one("CwdChanged", command))];
    let with_go = |builder: EngineBuilder| builder.tool(Go).unwrap();
    let users = |hooks: Hooks| {
        let env = ("CLAUDE_ENV_FILE".to_owned(), "/no/such'file".to_owned());
        hooks.with_env([env].into())
    };
    let mut rig = Rig::with(&files, &[], users, with_go).await;
    std::fs::create_dir(rig.project.path("work/sub")).unwrap();
    for (to, fires) in [("sub", true), (".", false)] {
        let mut turn = rig.scheduler.start_batch().await;
        turn.push(tool_use("Go", json!({"path": to})));
        let finished = turn.next().await.unwrap();
        drop(turn);
        assert_eq!(*rig.scheduler.context().cwd, *rig.project.path("work/sub"));
        let notices = &finished.metadata.notices;
        assert_eq!(notices.as_slice(), if fires { &["m"][..] } else { &[] });
    }
    let told: Value = serde_json::from_str(&rig.project.read("work/sub/moved.json")).unwrap();
    assert_eq!(told["old_cwd"], json!(rig.project.path("work")));
    assert_eq!(told["new_cwd"], json!(rig.project.path("work/sub")));
    assert_eq!(told["cwd"], told["new_cwd"]);
    assert_eq!(told.get("permission_mode"), None);
    let env = rig.project.read("session/hook-env.sh");
    assert_eq!(
        env,
        "[ -f '/no/such'\\''file' ] && . '/no/such'\\''file'\nexport A=1\n"
    );
}

#[tokio::test]
async fn a_command_is_told_of_the_file_of_variables_only_where_hooks_may_write_to_it() {
    for (event, expected) in [("SessionStart", true), ("PreToolUse", false)] {
        let files = [(SettingsScope::User, one(event, "true"))];
        let with_go = |builder: EngineBuilder| builder.tool(Go).unwrap();
        let mut rig = Rig::with(&files, &[], |hooks| hooks, with_go).await;
        let mut turn = rig.scheduler.start_batch().await;
        turn.push(tool_use("Go", json!({"path": "."})));
        let text = turn.next().await.unwrap().text();
        assert_eq!(text.contains("hook-env.sh"), expected, "{event}: {text}");
    }
}

/// Creates a task, if no one objects.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskInput {
    /// What is to be done.
    subject: String,
}

struct Task;

impl Tool for Task {
    type Input = TaskInput;
    const NAME: &'static str = "Task";

    async fn call(&self, input: &TaskInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let fields = json!({"task_id": "1", "task_subject": input.subject});
        let verdict = HookService::fire(cx, HookEvent::new("TaskCreated", "", fields)).await;
        if let Some(why) = verdict.block {
            return Err(ToolError::Failed(why));
        }
        Ok(ToolOutput::text(format!("{:?}", verdict.messages)))
    }
}

#[tokio::test]
async fn v27_a_tool_fires_events_of_its_own_and_hears_objections() {
    let with_task = |builder: EngineBuilder| builder.tool(Task).unwrap();
    for (command, text) in [
        ("cat > task.json; echo no tasks >&2; exit 2", "no tasks"),
        (
            r#"echo '{"continue": false, "systemMessage": "m"}'"#,
            r#"["m"]"#,
        ),
        ("exit 1", r#"["TaskCreated:User hook error: exit code 1"]"#),
        ("true", "[]"),
    ] {
        let files = [(SettingsScope::User, one("TaskCreated", command))];
        let mut rig = Rig::with(&files, &[], |hooks| hooks, with_task).await;
        let mut turn = rig.scheduler.start_batch().await;
        turn.push(tool_use("Task", json!({"subject": "s"})));
        let finished = turn.next().await.unwrap();
        drop(turn);
        assert_eq!(finished.text(), text, "{command}");
        assert_eq!(finished.is_error, command.contains("exit 2"), "{command}");
        if command.contains("task.json") {
            let told: Value = serde_json::from_str(&rig.project.read("work/task.json")).unwrap();
            assert_eq!(told["task_subject"], "s");
            assert_eq!(told["permission_mode"], "default");
        }
    }
}

/// Says yes once it is told to.
struct Slow(Arc<Notify>);

impl Approver for Slow {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async {
            self.0.notified().await;
            ApprovalAnswer::Allow
        })
    }
}

#[tokio::test]
async fn hooks_hear_that_a_person_is_asked_and_the_answer_need_not_wait_for_them() {
    let command = "cat > asked.tmp; mv asked.tmp asked.json; until [ -e ran ]; do sleep 0.01; done; touch after";
    let hooks = json!({"Notification": [
        {"matcher": "permission_prompt", "hooks": [{"type": "command", "command": command}]},
        {"matcher": "idle_prompt", "hooks": [{"type": "command", "command": "touch idle"}]},
    ]});
    let answer = Arc::new(Notify::new());
    let approver: Arc<dyn Approver> = Arc::new(Slow(Arc::clone(&answer)));
    let asks = |builder: EngineBuilder| builder.services(Services::none().with_approver(approver));
    let files = [(SettingsScope::User, hooks)];
    let mut rig = Rig::with(&files, &[], |hooks| hooks, asks).await;
    let work = rig.project.path("work");
    let until = |name: &'static str| {
        let path = work.join(name);
        async move {
            until("the hook ran", || path.exists()).await;
        }
    };
    let told = until("asked.json");
    let answers = async {
        told.await;
        answer.notify_one();
    };
    let (finished, ()) = tokio::join!(rig.bash("touch ran"), answers);
    assert!(!finished.is_error);
    until("after").await;
    let told: Value = serde_json::from_str(&rig.project.read("work/asked.json")).unwrap();
    assert_eq!(told["notification_type"], "permission_prompt");
    assert!(told["message"].as_str().unwrap().contains("Bash"), "{told}");
    assert!(!rig.ran("idle"));

    // No one was asked where no one can be.
    let files = [(
        SettingsScope::User,
        json!({"Notification": [{"hooks": [
            {"type": "command", "command": "touch asked"},
        ]}]}),
    )];
    let nobody = |builder: EngineBuilder| builder.services(Services::none());
    let mut rig = Rig::with(&files, &[], |hooks| hooks, nobody).await;
    assert!(rig.bash("touch ran").await.metadata.denied.is_some());
    rig.scheduler.engine().hooks().shutdown().await;
    assert!(!rig.ran("asked"));
}

/// Asks a person while it runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InquireInput {}

struct Inquire;

impl Tool for Inquire {
    type Input = InquireInput;
    const NAME: &'static str = "Inquire";

    async fn call(&self, _: &InquireInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let question = ApprovalRequest {
            tool: "Inquire".to_owned(),
            reason: "it wants more".to_owned(),
            ..ApprovalRequest::default()
        };
        let answer = cx.services.approver().ask(question).await;
        Ok(ToolOutput::text(format!("{answer:?}")))
    }
}

#[tokio::test]
async fn hooks_hear_of_a_question_that_a_tool_puts_itself() {
    let command = "cat > asked.tmp; mv asked.tmp asked.json";
    let hooks = json!({"Notification": [{"hooks": [{"type": "command", "command": command}]}]});
    let files = [(SettingsScope::User, hooks)];
    let answer = Arc::new(Notify::new());
    let approver: Arc<dyn Approver> = Arc::new(Slow(Arc::clone(&answer)));
    let asks = |builder: EngineBuilder| {
        let services = Services::none().with_approver(approver);
        builder.tool(Inquire).unwrap().services(services)
    };
    let rules = [(List::Allow, "Inquire")];
    let mut rig = Rig::with(&files, &rules, |hooks| hooks, asks).await;
    let asked = rig.project.path("work/asked.json");
    let answers = async {
        until("the hook ran", || asked.exists()).await;
        answer.notify_one();
    };
    let mut turn = rig.scheduler.start_batch().await;
    turn.push(tool_use("Inquire", json!({})));
    let (finished, ()) = tokio::join!(turn.next(), answers);
    assert_eq!(finished.unwrap().text(), "Allow");
    let told: Value = serde_json::from_str(&rig.project.read("work/asked.json")).unwrap();
    assert_eq!(told["notification_type"], "permission_prompt");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("Inquire: it wants more"), "{told}");
}

fn places(project: &TempProject) -> SettingsPlaces {
    SettingsPlaces {
        managed: project.path("managed"),
        user: project.path("home/.claude"),
        home: project.path("home"),
        cwd: project.path("work"),
    }
}

async fn watched(project: &TempProject, hooks: &Value) -> haft_engine::Scheduler {
    let work = project.path("work");
    let bases = PatternBases {
        cwd: work.clone(),
        home: work.clone(),
        slash: work.clone(),
    };
    let (handlers, problems) = read(SettingsScope::User, None, hooks, &bases);
    assert_eq!(problems, []);
    let mut registry = ToolRegistry::new();
    registry.add(super::Bash).unwrap();
    let (engine, _) = Engine::builder(registry, project.path("session"))
        .hooks(Hooks::new(handlers, &work))
        .settings_watch(SettingsWatch::new(
            places(project),
            SettingsFlags::default(),
        ))
        .build()
        .await;
    engine.scheduler(SessionContext::new(&work))
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn hooks_hear_of_changed_settings_and_may_object() {
    let deny = r#"{"permissions": {"deny": ["Bash(echo *)"]}}"#;
    for (file, source, objects, denied) in [
        (
            "work/.claude/settings.json",
            "project_settings",
            false,
            true,
        ),
        (
            "work/.claude/settings.json",
            "project_settings",
            true,
            false,
        ),
        ("home/.claude/settings.json", "user_settings", true, false),
        (
            "managed/managed-settings.json",
            "policy_settings",
            true,
            true,
        ),
    ] {
        let project = TempProject::new([("work/a.txt", ""), ("home/a.txt", "")]);
        let command = match objects {
            true => "cat > change.json; exit 2",
            false => "cat > change.json",
        };
        let mut scheduler = watched(&project, &one_of("ConfigChange", source, command)).await;
        write(&project.path(file), deny);
        let mut turn = scheduler.start_batch().await;
        turn.push(tool_use("Bash", json!({"command": "echo 1"})));
        let text = turn.next().await.unwrap().text();
        drop(turn);
        assert_eq!(
            text.contains("denied by rule"),
            denied,
            "{file} {objects}: {text}"
        );
        let told: Value = serde_json::from_str(&project.read("work/change.json")).unwrap();
        assert_eq!(told["source"], source);
        assert_eq!(told["file_path"], json!(project.path(file)));
    }
}

fn one_of(event: &str, matcher: &str, command: &str) -> Value {
    json!({event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]})
}

#[tokio::test]
async fn handlers_are_told_where_in_the_session_they_are() {
    let hooks = json!({
        "PreToolUse": [{"hooks": [{"type": "command", "command": "cat > call.json; echo $CLAUDE_EFFORT > effort"}]}],
        "SubagentStop": [{"matcher": "reviewer", "hooks": [{"type": "command", "command": "cat > stop.json; echo on >&2; exit 2"}]}],
        "SubagentStart": [{"hooks": [{"type": "command", "command": "cat > start.json; echo m >&2; exit 2"}]}],
    });
    let reviewer = |builder: EngineBuilder| {
        builder.agent(AgentIdentity {
            id: Some("a1".to_owned()),
            kind: Some("reviewer".to_owned()),
        })
    };
    let files = [(SettingsScope::User, hooks)];
    let mut rig = Rig::with(&files, &[], |hooks| hooks, reviewer).await;
    let engine = Arc::clone(rig.scheduler.engine());
    engine.hooks().set_prompt_context(|situation| {
        situation.prompt_id = Some("p".to_owned());
        situation.effort = Some("high".to_owned());
    });
    rig.bash("echo 1").await;
    let told = |name: &str| -> Value {
        serde_json::from_str(&rig.project.read(&format!("work/{name}.json"))).unwrap()
    };
    let call = told("call");
    assert_eq!(call["prompt_id"], "p");
    assert_eq!(call["effort"], json!({"level": "high"}));
    assert_eq!(
        (&call["agent_id"], &call["agent_type"]),
        (&json!("a1"), &json!("reviewer"))
    );
    assert_eq!(rig.project.read("work/effort"), "high\n");

    let context = rig.scheduler.context();
    let fire = |event: HookEventKind| {
        let fields = json!({"stop_hook_active": false});
        let Value::Object(fields) = fields else {
            unreachable!()
        };
        engine.fire(event, "reviewer", fields, &context)
    };
    let stopped = fire(HookEventKind::SUBAGENT_STOP).await;
    assert_eq!(stopped[0].output.block.as_deref(), Some("on"));
    assert_eq!(told("stop")["permission_mode"], "default");
    assert_eq!(told("stop").get("effort"), None);
    let started = fire(HookEventKind::SUBAGENT_START).await;
    assert_eq!(started[0].output.block, None);
    assert_eq!(started[0].output.message.as_deref(), Some("m"));
    assert_eq!(told("start").get("permission_mode"), None);
}

#[tokio::test]
async fn the_end_of_a_session_waits_for_its_hooks_only_so_long() {
    let hooks = json!({"SessionEnd": [{"hooks": [
        {"type": "command", "command": "touch quick"},
        {"type": "command", "command": "sleep 600"},
    ]}]});
    let env = "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS";
    let with = |hooks: Hooks| hooks.with_env([(env.to_owned(), "300".to_owned())].into());
    let rig = Rig::with(&[(SettingsScope::User, hooks)], &[], with, |builder| {
        builder
    })
    .await;
    let context = rig.scheduler.context();
    let event = HookEventKind::SESSION_END;
    let heard = rig
        .scheduler
        .engine()
        .fire(event, "other", Map::new(), &context);
    let heard = heard.await;
    assert!(rig.ran("quick"));
    assert_eq!(
        heard[1].output.failure.as_deref(),
        Some("it took longer than 300ms")
    );
}
