//! Plan mode: read-only by the engine, whatever a model tries.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use haft::{
    ApprovalAnswer, ApprovalRequest, Approver, BoundCall, BoxFuture, CallContext, Content, DynTool,
    Effects, Haft, PermissionMode, RuleMatch, ToolError, ToolOutput, ToolPermission, ToolProfile,
    ToolSpec, ToolUse, tools::MemoryFolder,
};
use haft_testkit::TempProject;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A tool as a server of someone else's brings it: it writes, and says that it needs no permission.
struct Foreign(ToolSpec, PathBuf);

impl Foreign {
    fn tool(file: PathBuf) -> Arc<dyn DynTool> {
        let spec = ToolSpec {
            name: "mcp__toy__write".to_owned(),
            description: "Writes.".to_owned(),
            input_schema: json!({"type": "object", "additionalProperties": true}),
            profile: ToolProfile::default(),
        };
        Arc::new(Self(spec, file))
    }
}

impl DynTool for Foreign {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn bind(self: Arc<Self>, input: Value) -> Result<Box<dyn BoundCall>, ToolError> {
        Ok(Box::new(Bound(self, input)))
    }
}

struct Bound(Arc<Foreign>, Value);

impl BoundCall for Bound {
    fn spec(&self) -> &ToolSpec {
        &self.0.0
    }

    fn input(&self) -> &Value {
        &self.1
    }

    fn effects(&self) -> Effects {
        Effects::EXCLUSIVE
    }

    fn permission(&self, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    fn call<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            fs::write(&self.0.1, "foreign").unwrap();
            Ok(ToolOutput::text("done"))
        })
    }
}

/// Runs command lines, unconfined: what the engine lets through really happens.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[schemars(description = "Runs a line.")]
#[serde(deny_unknown_fields)]
struct Line {
    command: String,
}

struct Bash;

impl haft::Tool for Bash {
    type Input = Line;
    const NAME: &'static str = "Bash";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: RuleMatch::Command("command"),
            ..ToolProfile::default()
        }
    }

    async fn call(&self, input: &Line, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let output = std::process::Command::new("bash")
            .args(["-c", &input.command])
            .current_dir(&cx.cwd)
            .output()
            .map_err(|error| ToolError::Failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(ToolOutput::text(text))
    }
}

/// Says what it is told to say, in turn; then there is no one.
#[derive(Default)]
struct Person(Mutex<Vec<ApprovalAnswer>>, Mutex<Vec<String>>);

impl Approver for Person {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.1.lock().unwrap().push(question.shown().to_string());
        let answer = self
            .0
            .lock()
            .unwrap()
            .pop()
            .unwrap_or(ApprovalAnswer::Unavailable);
        Box::pin(async { answer })
    }
}

struct Rig {
    project: TempProject,
    haft: Haft,
    person: Arc<Person>,
}

async fn rig(mode: PermissionMode, answers: impl Into<Vec<ApprovalAnswer>>) -> Rig {
    let project = TempProject::new([
        ("work/a.txt", "alpha\n"),
        (
            "work/n.ipynb",
            r#"{"cells": [], "nbformat": 4, "nbformat_minor": 5}"#,
        ),
        ("memory/note.md", "kept\n"),
    ]);
    let mut answers = answers.into();
    answers.reverse();
    let person = Arc::new(Person(Mutex::new(answers), Mutex::default()));
    let haft = Haft::builder(project.path("work"))
        .permission_mode(mode)
        .approver(Arc::clone(&person) as Arc<dyn Approver>)
        .plans(project.path("plans"))
        .session_folder(project.path("session"))
        .service(Arc::new(MemoryFolder::new(project.path("memory"))))
        .tool(Bash)
        .dyn_tool(Foreign::tool(project.path("work/foreign")))
        .build()
        .await
        .unwrap();
    Rig {
        project,
        haft,
        person,
    }
}

fn call(name: &str, input: Value) -> ToolUse {
    ToolUse {
        id: String::new(),
        name: name.to_owned(),
        input,
    }
}

/// Everything that would change something, one way or another.
fn mutating() -> Vec<ToolUse> {
    vec![
        call(
            "Edit",
            json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "x"}),
        ),
        call(
            "Edit",
            json!({"file_path": "new.txt", "old_string": "", "new_string": "x"}),
        ),
        call("Write", json!({"file_path": "b.txt", "content": "x"})),
        call(
            "Write",
            json!({"file_path": "../plans/other.md", "content": "x"}),
        ),
        call(
            "NotebookEdit",
            json!({"notebook_path": "n.ipynb", "new_source": "x", "cell_type": "code", "edit_mode": "insert"}),
        ),
        call(
            "ReplaceInFiles",
            json!({"pattern": "alpha", "replacement": "x", "preview": false}),
        ),
        call("Bash", json!({"command": "touch made"})),
        call("Bash", json!({"command": "cat a.txt > copy"})),
        call("Bash", json!({"command": "sed -i s/alpha/x/ a.txt"})),
        call("Bash", json!({"command": "echo $(rm a.txt)"})),
        call("MemoryWrite", json!({"path": "note.md", "content": ""})),
        call("mcp__toy__write", json!({})),
    ]
}

fn harmless() -> Vec<ToolUse> {
    vec![
        call("Read", json!({"file_path": "a.txt"})),
        call("Bash", json!({"command": "cat a.txt"})),
        call("LS", json!({})),
        call("TaskCreate", json!({"subject": "x", "description": ""})),
        call("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        call("Think", json!({"thought": "hm"})),
        call("EnterPlanMode", json!({})),
        call("ExitPlanMode", json!({"plan": "x"})),
        call("AskUserQuestion", json!({"questions": []})),
    ]
}

#[tokio::test]
async fn in_plan_mode_nothing_is_changed_with_nobody_to_ask() {
    let mut rig = rig(PermissionMode::Plan, []).await;
    rig.haft.call("Read", json!({"file_path": "a.txt"})).await;
    rig.haft.call("Read", json!({"file_path": "n.ipynb"})).await;
    let before = rig.project.snapshot();
    for finished in rig.haft.run(mutating()).await {
        let text = finished.text();
        assert!(finished.is_error, "{}: {text}", finished.name);
        assert!(
            finished.metadata.denied.is_some(),
            "{}: {text}",
            finished.name
        );
    }
    assert_eq!(before, rig.project.snapshot());
    let read = rig.haft.call("Bash", json!({"command": "cat a.txt"})).await;
    assert_eq!(read.text(), "alpha\n");
}

#[tokio::test]
async fn a_call_behind_the_one_that_begins_plan_mode_is_held_to_it() {
    // Someone is there, and says nothing.
    let mut rig = rig(PermissionMode::BypassPermissions, []).await;
    let before = rig.project.snapshot();
    let calls = [
        call("EnterPlanMode", json!({})),
        call("Write", json!({"file_path": "b.txt", "content": "x"})),
        call("mcp__toy__write", json!({})),
    ];
    let results = rig.haft.run(calls).await;
    let failed: Vec<bool> = results.iter().map(|one| one.is_error).collect();
    assert_eq!(failed, [false, true, true]);
    assert_eq!(rig.haft.context().mode, PermissionMode::Plan);
    assert_eq!(before, rig.project.snapshot());
}

#[tokio::test]
async fn from_a_question_to_an_approved_plan() {
    let no = ApprovalAnswer::Deny {
        reason: Some("fewer steps".to_owned()),
    };
    let mut rig = rig(PermissionMode::AcceptEdits, [no, ApprovalAnswer::Allow]).await;
    let entered = rig.haft.call("EnterPlanMode", json!({})).await;
    assert!(!entered.is_error, "{}", entered.text());
    let plan = rig.haft.context().plan_file.unwrap();
    assert!(entered.text().contains(&*plan.to_string_lossy()));
    let empty = rig.haft.call("ExitPlanMode", json!({})).await;
    assert!(
        empty.text().contains("The plan is missing"),
        "{}",
        empty.text()
    );
    let write = json!({"file_path": plan.to_string_lossy(), "content": "1. Look\n2. Leap\n"});
    let written = rig.haft.call("Write", write).await;
    assert!(!written.is_error, "{}", written.text());
    let edit =
        json!({"file_path": plan.to_string_lossy(), "old_string": "Leap", "new_string": "Step"});
    let edited = rig.haft.call("Edit", edit).await;
    assert!(!edited.is_error, "{}", edited.text());

    let rejected = rig.haft.call("ExitPlanMode", json!({})).await;
    assert!(rejected.is_error);
    assert_eq!(
        rejected.text(),
        "The user did not permit this call to ExitPlanMode. They said: fewer steps\nPlan mode stays on."
    );
    assert_eq!(rig.haft.context().mode, PermissionMode::Plan);
    let shown = rig.person.1.lock().unwrap()[0].clone();
    assert!(shown.contains("1. Look\n2. Step"), "{shown}");

    let approved = rig.haft.call("ExitPlanMode", json!({})).await;
    assert!(!approved.is_error, "{}", approved.text());
    assert_eq!(rig.haft.context().mode, PermissionMode::AcceptEdits);
    let told = approved.structured.unwrap();
    assert_eq!(told["plan"], "1. Look\n2. Step\n");
    assert_eq!(told["filePath"], json!(plan.to_string_lossy()));
    let outside = rig.haft.call("ExitPlanMode", json!({"plan": "x"})).await;
    assert!(
        outside
            .text()
            .starts_with("<tool_use_error>Plan mode is off")
    );
    let work = json!({"file_path": "b.txt", "content": "x"});
    assert!(!rig.haft.call("Write", work).await.is_error);
}

#[tokio::test]
async fn a_plan_is_approved_in_every_mode_by_somebody_or_not_at_all() {
    // Rules and modes stand in for no one here.
    let mut rig = rig(PermissionMode::BypassPermissions, []).await;
    rig.haft.call("EnterPlanMode", json!({})).await;
    let denied = rig.haft.call("ExitPlanMode", json!({"plan": "x"})).await;
    assert!(denied.metadata.denied.is_some(), "{}", denied.text());
    assert_eq!(rig.haft.context().mode, PermissionMode::Plan);
}

#[tokio::test]
async fn an_edited_plan_goes_back_to_the_model() {
    let changed = ApprovalAnswer::InputEdited {
        input: json!({"plan": "1. Only look"}),
    };
    let mut rig = rig(PermissionMode::Plan, [changed]).await;
    let plan = rig.haft.context().plan_file.unwrap();
    fs::create_dir_all(plan.parent().unwrap()).unwrap();
    fs::write(&plan, "1. Look\n").unwrap();
    let approved = rig.haft.call("ExitPlanMode", json!({})).await;
    let [Content::Text { text }] = approved.content.as_slice() else {
        panic!("{approved:?}");
    };
    assert!(text.ends_with("1. Only look"), "{text}");
    assert_eq!(approved.structured.unwrap()["planWasEdited"], true);
    assert_eq!(rig.haft.context().mode, PermissionMode::Default);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any calls, in any order, at once or one after the other: files stay as they are.
    #[test]
    fn whatever_is_tried_in_plan_mode_changes_nothing(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..12),
        at_once in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut rig = rig(PermissionMode::Plan, []).await;
            let calls: Vec<ToolUse> = picks
                .iter()
                .map(|(index, mutates)| match mutates {
                    true => index.get(&mutating()).clone(),
                    false => index.get(&harmless()).clone(),
                })
                .collect();
            let before = rig.project.snapshot();
            if at_once {
                rig.haft.run(calls).await;
            } else {
                for one in calls {
                    rig.haft.run([one]).await;
                }
            }
            assert_eq!(before, rig.project.snapshot());
            assert_eq!(rig.haft.context().mode, PermissionMode::Plan);
        });
    }
}
