//! The task list, plan mode, questions, notes and settings: what the model reads, what a person sees,
//! what programs read. Each snapshot shows one call after the other.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use haft_contract::{
    Approver, ContextPatch, DeferredTools, HookService, HookVerdict, PermissionMode, SessionState,
    SettingChange, SettingRisk, SettingsAccess, ToolError, ToolPermission,
};
use haft_tools::MemoryFolder;
use serde_json::{Value, json};

use crate::session::{Session, tool};

/// Settings of two keys.
#[derive(Default)]
struct Two(Mutex<Value>);

impl SettingsAccess for Two {
    fn risk(&self, setting: &str) -> SettingRisk {
        match setting {
            "model" => SettingRisk::Light,
            "env" => SettingRisk::Heavy("it may hold secrets".to_owned()),
            other => SettingRisk::Unknown(format!("There is no setting {other}.")),
        }
    }

    fn read(&self, setting: &str) -> Result<Value, String> {
        Ok(self.0.lock().unwrap()[setting].clone())
    }

    fn write(&self, setting: &str, value: &Value) -> Result<SettingChange, String> {
        if !value.is_string() {
            return Err("a text is expected".to_owned());
        }
        let before = self.read(setting)?;
        *self.0.lock().unwrap() = json!({setting: value});
        Ok(SettingChange {
            before,
            after: value.clone(),
            file: "settings.local.json".to_owned(),
        })
    }
}

fn session() -> Session {
    let mut session = Session::new([]);
    let memory = MemoryFolder::new(session.folder.path("memory"));
    let settings: Arc<dyn SettingsAccess> = Arc::new(Two::default());
    let deferred = DeferredTools::new(["Config", "NotebookEdit", "Undo"].map(tool).into());
    session.services = session
        .services
        .with(Arc::new(memory))
        .with(Arc::new(settings))
        .with(Arc::new(deferred));
    session
}

/// Makes the calls, and writes down everything anyone is told.
async fn told(session: &Session, mode: PermissionMode, calls: &[(&str, Value)]) -> String {
    let mut text = String::new();
    for (name, input) in calls {
        let bound = session.bind(name, input.clone());
        let mut cx = session.context();
        cx.permissions.mode = mode;
        cx.permissions.plan_file = Some(session.project.path("plan.md").into());
        writeln!(text, "> {name} {input}").unwrap();
        let bound = match bound.complete_input(&cx).await {
            Some(input) => session.bind(name, input),
            None => bound,
        };
        write!(text, "{}", bound.render_use()).unwrap();
        let called = match bound.check(&cx).await {
            Err(error) => Err(error),
            Ok(_) => bound.call(&cx).await,
        };
        match called {
            Err(ToolError::Refused(why)) => writeln!(text, "REFUSED {why}").unwrap(),
            Err(error) => writeln!(text, "FAILED {error}").unwrap(),
            Ok(output) => {
                let failed = if output.failed { "FAILED " } else { "" };
                let model = bound.to_model(&output);
                let model = model[0].as_text().unwrap();
                writeln!(text, "{failed}{model}").unwrap();
                writeln!(text, "{}", output.structured.clone().unwrap()).unwrap();
                if !output.patches.is_empty() {
                    writeln!(text, "{:?}", output.patches).unwrap();
                }
                write!(text, "{}", bound.render_result(&output)).unwrap();
            }
        }
        text.push('\n');
    }
    session.masked(&text)
}

const DEFAULT: PermissionMode = PermissionMode::Default;

#[tokio::test]
async fn the_task_list() {
    let session = session();
    let calls = [
        ("TaskList", json!({})),
        (
            "TaskCreate",
            json!({"subject": "Build it", "description": "With cargo", "activeForm": "Building"}),
        ),
        (
            "TaskCreate",
            json!({"subject": "Test it", "description": "", "metadata": {"n": 1}}),
        ),
        (
            "TaskCreate",
            json!({"subject": "Ship it", "description": ""}),
        ),
        ("TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"]})),
        ("TaskUpdate", json!({"taskId": "2", "addBlocks": ["3"]})),
        ("TaskUpdate", json!({"taskId": "3", "addBlocks": ["1"]})),
        ("TaskUpdate", json!({"taskId": "1", "addBlocks": ["1"]})),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "in_progress", "owner": "me"}),
        ),
        ("TaskList", json!({})),
        ("TaskGet", json!({"taskId": "2"})),
        ("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        ("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        (
            "TaskUpdate",
            json!({"taskId": "2", "subject": "Test all", "metadata": {"n": null, "m": 2}}),
        ),
        ("TaskUpdate", json!({"taskId": "2", "status": "deleted"})),
        ("TaskGet", json!({"taskId": "2"})),
        ("TaskUpdate", json!({"taskId": "7", "status": "pending"})),
        ("TaskList", json!({})),
    ];
    insta::assert_snapshot!(told(&session, DEFAULT, &calls).await);
    let remembered = session.services.get::<SessionState>().unwrap();
    insta::assert_snapshot!(
        "the_task_list_after_a_summary",
        remembered.reminders().join("\n")
    );
}

/// hooks.md, vector 27, and the same for a task that is done.
#[tokio::test]
async fn hooks_keep_a_task_from_being_created_or_completed() {
    let mut session = session();
    let objects = HookService::from_fn(|event, _| {
        let subject = event.fields["task_subject"].as_str().unwrap().to_owned();
        Box::pin(async move {
            HookVerdict {
                block: subject
                    .contains(&event.name)
                    .then(|| "not today".to_owned()),
                context: vec![format!("{} {}", event.name, event.fields["task_id"])],
                ..HookVerdict::default()
            }
        })
    });
    session.services = session.services.with(Arc::new(objects));
    let create = |subject: &str| json!({"subject": subject, "description": ""});
    let failed = session.say("TaskCreate", create("no TaskCreated")).await;
    assert_eq!(failed.failed(), "The task was not created: not today");
    let output = session
        .output("TaskCreate", create("no TaskCompleted"))
        .await;
    let content = output.unwrap().content;
    assert_eq!(
        content[1].as_text(),
        Some("<system-reminder>\nTaskCreated \"1\"\n</system-reminder>")
    );
    let complete = json!({"taskId": "1", "status": "completed"});
    let output = session.output("TaskUpdate", complete).await.unwrap();
    assert!(output.failed);
    let told = output.structured.unwrap();
    assert_eq!(told["error"], "The task was not completed: not today");
    let listed = session.say("TaskList", json!({})).await.ok();
    assert_eq!(listed, "1. [pending] no TaskCompleted");
}

#[tokio::test]
async fn the_older_list() {
    let session = session();
    let todo = |content: &str, status: &str| json!({"content": content, "status": status, "activeForm": format!("{content}ing")});
    let calls = [
        (
            "TodoWrite",
            json!({"todos": [todo("Build", "in_progress"), todo("Test", "pending")]}),
        ),
        (
            "TodoWrite",
            json!({"todos": [
                todo("Build", "completed"), todo("Test", "in_progress"), todo("Ship", "in_progress"),
            ]}),
        ),
        (
            "TodoWrite",
            json!({"todos": [todo("Build", "completed"), todo("Test", "completed")]}),
        ),
        ("TodoWrite", json!({"todos": []})),
    ];
    insta::assert_snapshot!(told(&session, DEFAULT, &calls).await);
}

#[tokio::test]
async fn plan_mode() {
    let session = session();
    let mut text = told(
        &session,
        DEFAULT,
        &[
            ("EnterPlanMode", json!({})),
            ("ExitPlanMode", json!({"plan": "x"})),
        ],
    )
    .await;
    let plan = PermissionMode::Plan;
    let empty = [
        ("EnterPlanMode", json!({})),
        ("ExitPlanMode", json!({})),
        ("ExitPlanMode", json!({"plan": " ", "allowedPrompts": []})),
        (
            "ExitPlanMode",
            json!({"plan": "1. Look", "planFilePath": "/x"}),
        ),
    ];
    text += &told(&session, plan, &empty).await;
    session.project.write("plan.md", "1. Look\n2. Leap\n");
    let written = [
        ("ExitPlanMode", json!({})),
        ("ExitPlanMode", json!({"plan": "1. Leap"})),
    ];
    text += &told(&session, plan, &written).await;
    insta::assert_snapshot!(text);
}

#[test]
fn whoever_cannot_be_asked_begins_no_plan() {
    let session = session();
    let bound = session.bind("EnterPlanMode", json!({}));
    let mut cx = session.context();
    let denied = |permission| matches!(permission, ToolPermission::Deny(_));
    assert!(denied(bound.permission(&cx)));
    struct Yes;
    impl Approver for Yes {
        fn ask(
            &self,
            _: haft_contract::ApprovalRequest,
        ) -> haft_contract::BoxFuture<'_, haft_contract::ApprovalAnswer> {
            Box::pin(async { haft_contract::ApprovalAnswer::Allow })
        }
    }
    cx.services = cx.services.with_approver(Arc::new(Yes));
    assert!(!denied(bound.permission(&cx)));
    cx.permissions.mode = PermissionMode::DontAsk;
    assert!(denied(bound.permission(&cx)));
}

#[tokio::test]
async fn questions() {
    let session = session();
    let question = |text: &str, labels: [&str; 2]| {
        let options = labels.map(|label| json!({"label": label, "description": "so"}));
        json!({"question": text, "header": "Way", "options": options, "multiSelect": true})
    };
    let (one, two) = (
        question("Left?", ["a", "b"]),
        question("Right?", ["c", "d"]),
    );
    let calls = [
        (
            "AskUserQuestion",
            json!({"questions": [one, two], "answers": {"Left?": "a, b"},
                "annotations": {"Left?": {"notes": "both"}}, "response": "hurry"}),
        ),
        (
            "AskUserQuestion",
            json!({"questions": [one], "answers": {"Left?": ["a", "b"]}, "metadata": {"source": "x"}}),
        ),
        (
            "AskUserQuestion",
            json!({"questions": [one], "answers": {}, "afkTimeoutMs": 60000}),
        ),
        ("AskUserQuestion", json!({"questions": [one, one]})),
        (
            "AskUserQuestion",
            json!({"questions": [question("Same?", ["a", "a"])]}),
        ),
    ];
    insta::assert_snapshot!(told(&session, DEFAULT, &calls).await);
}

#[tokio::test]
async fn notes() {
    let session = session();
    let calls = [
        ("MemoryRead", json!({})),
        (
            "MemoryWrite",
            json!({"path": "MEMORY.md", "content": "Use make.\n"}),
        ),
        (
            "MemoryWrite",
            json!({"path": "api/errors.md", "content": "Codes: 1\n"}),
        ),
        ("MemoryRead", json!({})),
        ("MemoryRead", json!({"path": "MEMORY.md"})),
        (
            "MemoryWrite",
            json!({"path": "api/errors.md", "content": ""}),
        ),
        (
            "MemoryWrite",
            json!({"path": "api/errors.md", "content": ""}),
        ),
        ("MemoryRead", json!({"path": "api/errors.md"})),
        ("MemoryWrite", json!({"path": "../x", "content": "x"})),
        ("MemoryWrite", json!({"path": "/x", "content": "x"})),
        ("MemoryWrite", json!({"path": ".hidden", "content": "x"})),
        ("MemoryRead", json!({"path": "a/../../x"})),
    ];
    insta::assert_snapshot!(told(&session, DEFAULT, &calls).await);
}

#[tokio::test]
async fn notes_stay_small() {
    let session = session();
    let note = |path: &str, bytes: usize| json!({"path": path, "content": "x".repeat(bytes)});
    let long = session.say("MemoryWrite", note("a.md", 65 * 1024)).await;
    assert!(long.refused().contains("the limit is 65536"));
    for number in 0..16 {
        let path = format!("{number}.md");
        session
            .say("MemoryWrite", note(&path, 64 * 1024))
            .await
            .ok();
    }
    let full = session.say("MemoryWrite", note("one-more.md", 1)).await;
    assert!(full.refused().contains("Delete outdated notes"));
    // In place of itself a note may stay as long as it was.
    session
        .say("MemoryWrite", note("0.md", 64 * 1024))
        .await
        .ok();
}

#[tokio::test]
async fn settings() {
    let session = session();
    let calls = [
        ("Config", json!({"setting": "model"})),
        ("Config", json!({"setting": "model", "value": "m"})),
        ("Config", json!({"setting": "model", "value": 1})),
        ("Config", json!({"setting": "model"})),
        ("Config", json!({"setting": "modle"})),
    ];
    insta::assert_snapshot!(told(&session, DEFAULT, &calls).await);
    let permission = |input: Value| {
        let bound = session.bind("Config", input);
        bound.permission(&session.context())
    };
    assert_eq!(
        permission(json!({"setting": "model", "value": "m"})),
        ToolPermission::ByEffects
    );
    let heavy = permission(json!({"setting": "env", "value": {}}));
    assert!(matches!(heavy, ToolPermission::Ask(_)));
}

#[tokio::test]
async fn thinking_and_finding_tools() {
    let session = session();
    let calls = [
        ("Think", json!({"thought": "What if it is the cache?"})),
        ("ToolSearch", json!({"query": "notebook cells"})),
        ("ToolSearch", json!({"query": "select:Undo, Config"})),
        ("ToolSearch", json!({"query": "+config settings"})),
        ("ToolSearch", json!({"query": "+und settings"})),
        ("ToolSearch", json!({"query": "weather"})),
    ];
    let text = told(&session, DEFAULT, &calls).await;
    // The definitions themselves are in a snapshot of their own.
    let text: Vec<&str> = text
        .lines()
        .map(|line| line.split(",\"description\"").next().unwrap())
        .collect();
    insta::assert_snapshot!(text.join("\n"));
    let one = session.bind("ToolSearch", json!({"query": "tool", "max_results": 1}));
    let output = one.call(&session.context()).await.unwrap();
    let [ContextPatch::ActivateTools { names }] = output.patches.as_slice() else {
        panic!("{output:?}");
    };
    assert_eq!(names.len(), 1);
}
