use std::sync::Mutex;

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, Content, PermissionMode,
};
use haft_engine::{
    Engine, SessionContext,
    permissions::{List, RuleSet, RuleSource, SettingsScope},
    pipeline::INTERRUPTED,
};
use haft_testkit::{TempProject, TestingPermission};
use serde_json::json;

use crate::rig::{Rig, only, services, tool_use};

#[tokio::test]
async fn errors_as_the_model_reads_them() {
    let mut rig = Rig::new().await;
    let cases = [
        ("Peak", json!({})),
        ("Teleport", json!({})),
        ("Append", json!({})),
        ("Append", json!({"path": 3, "lin": "x", "pauses": 999})),
        ("Append", json!("not an object")),
        ("Append", json!({"path": "a\u{0}b", "line": "x"})),
        ("Append", json!({"path": "", "line": "x"})),
        ("Peek", json!({"path": "missing.txt"})),
        ("Boom", json!({"place": "call"})),
        ("Boom", json!({"place": "check"})),
        ("Boom", json!({"place": "effects"})),
        ("Boom", json!({"place": "nowhere"})),
    ];
    let mut told = String::new();
    for (name, input) in cases {
        let answer = rig.answer(name, input.clone()).await;
        told += &format!("{name} {input}\n{answer}\n\n");
    }
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn repairs_are_made_and_noted() {
    let mut rig = Rig::new().await;
    let input = json!({"text": "ab", "times": "2", "ask": null, "words": "[\"c\", \"d\"]"});
    let finished = rig.call("Echo", input).await;
    assert_eq!(finished.text(), "ababcd");
    insta::assert_json_snapshot!(finished.metadata);
}

#[tokio::test]
async fn an_alias_runs_the_tool_and_the_result_has_its_own_name() {
    let mut rig = Rig::new().await;
    let finished = rig.call("Chdir", json!({"path": "sub"})).await;
    assert_eq!((finished.name.as_str(), finished.is_error), ("Move", false));
    assert_eq!(finished.id, "use-Chdir");
}

#[tokio::test]
async fn a_relative_path_starts_at_the_current_directory() {
    let mut rig = Rig::new().await;
    assert_eq!(
        rig.answer("Peek", json!({"path": "a.txt"})).await,
        "alpha\n"
    );
    rig.call("Move", json!({"path": "sub"})).await;
    rig.call("Append", json!({"path": "c.txt", "line": "here"}))
        .await;
    assert_eq!(rig.project.read("work/sub/c.txt"), "here\n");
}

#[tokio::test]
async fn a_long_result_goes_to_disk_and_an_empty_one_says_so() {
    let mut rig = Rig::new().await;
    let finished = rig
        .call("Echo", json!({"text": "0123456789\n", "times": 6000}))
        .await;
    let stored = finished.metadata.stored.clone().unwrap();
    assert!(stored.starts_with(rig.project.path("session/tool-results")));
    assert_eq!(std::fs::read_to_string(&stored).unwrap().len(), 66_000);
    assert!(finished.text().len() < 2_500, "{}", finished.text());
    assert!(finished.text().contains(&stored.display().to_string()));
    // Reading it back needs no permission beyond that of any read.
    let empty = rig.call("Echo", json!({"text": ""})).await;
    assert_eq!(empty.content, [Content::text("(no output from Echo)")]);
}

/// Answers as told and remembers what was asked.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<ApprovalAnswer>>,
    asked: std::sync::Arc<Mutex<Vec<String>>>,
}

impl Approver for Scripted {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        let line = format!(
            "{} {}: {}",
            question.tool, question.card.subject, question.reason
        );
        self.asked.lock().unwrap().push(line);
        let answer = self
            .answers
            .lock()
            .unwrap()
            .pop()
            .unwrap_or(ApprovalAnswer::Allow);
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn with_nobody_to_ask_a_change_is_refused_and_told_what_would_allow_it() {
    let mut rig = Rig::with(PermissionMode::Default, |builder| builder).await;
    let cases = [
        ("Append", json!({"path": "a.txt", "line": "x"})),
        ("Append", json!({"path": ".git/config", "line": "x"})),
        ("Append", json!({"path": "../outside.txt", "line": "x"})),
        ("Peek", json!({"path": "../../../../../../../etc/hostname"})),
        ("Move", json!({"path": "sub"})),
        ("Echo", json!({"text": "x", "ask": "it might be rude"})),
        ("Peek", json!({"path": "a.txt"})),
    ];
    let mut told = String::new();
    for (name, input) in cases {
        let answer = rig.answer(name, input.clone()).await;
        told += &format!("{name} {input}\n{answer}\n\n");
    }
    insta::assert_snapshot!(told);
    assert_eq!(rig.project.read("work/a.txt"), "alpha\n");
    assert!(!rig.project.path("outside.txt").exists());
}

#[tokio::test]
async fn accept_edits_lets_edits_inside_through_and_nothing_else() {
    let mut rig = Rig::with(PermissionMode::AcceptEdits, |builder| builder).await;
    assert!(
        !rig.call("Append", json!({"path": "a.txt", "line": "x"}))
            .await
            .is_error
    );
    for path in ["../outside.txt", ".git/hooks/pre-commit"] {
        assert!(
            rig.call("Append", json!({"path": path, "line": "x"}))
                .await
                .is_error,
            "{path}"
        );
    }
    // A link inside that leads outside is outside.
    std::os::unix::fs::symlink(rig.project.root(), rig.project.path("work/link")).unwrap();
    let answer = rig
        .call("Append", json!({"path": "link/outside.txt", "line": "x"}))
        .await;
    assert!(answer.is_error);
    assert!(rig.call("Move", json!({"path": "sub"})).await.is_error);
    assert!(!rig.project.path("outside.txt").exists());
}

#[tokio::test]
async fn dont_ask_refuses_what_would_ask() {
    let mut rig = Rig::with(PermissionMode::DontAsk, |builder| builder).await;
    let answer = rig
        .answer("Append", json!({"path": "a.txt", "line": "x"}))
        .await;
    assert!(answer.contains("never asks"), "{answer}");
}

#[tokio::test]
async fn a_tool_that_asks_does_so_in_every_mode_whatever_is_allowed() {
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};
    for mode in [Default, AcceptEdits, Plan, BypassPermissions, DontAsk] {
        let asked = std::sync::Arc::new(Mutex::new(Vec::new()));
        let approver = Scripted {
            answers: Mutex::default(),
            asked: asked.clone(),
        };
        let project = TempProject::new([("work/a", "")]);
        let (engine, _) = Engine::builder(only(TestingPermission), project.path("session"))
            .services(services(approver))
            .build()
            .await;
        let context = SessionContext::new(project.path("work")).with_mode(mode);
        let mut rules = RuleSet::default();
        let source = RuleSource::from_scope(SettingsScope::User);
        let added = rules.add(List::Allow, "TestingPermission", source, &context.bases());
        added.unwrap();
        let mut scheduler = engine.scheduler(context.with_rules(rules));
        let mut turn = scheduler.start_batch().await;
        turn.push(tool_use("TestingPermission", json!({"reason": "why not"})));
        let finished = turn.next().await.unwrap();
        let asked = asked.lock().unwrap().clone();
        if mode == DontAsk {
            assert!(
                finished.text().contains("never asks"),
                "{}",
                finished.text()
            );
            assert_eq!(asked, Vec::<String>::new());
            continue;
        }
        assert_eq!(asked.len(), 1, "{mode:?}: {asked:?}");
        assert!(asked[0].contains("why not"), "{asked:?}");
        assert_eq!(finished.text(), "permitted", "{mode:?}");
    }
}

#[tokio::test]
async fn a_person_is_asked_once_and_their_word_counts() {
    let asked = std::sync::Arc::new(Mutex::new(Vec::new()));
    let answers = vec![
        ApprovalAnswer::Deny {
            reason: Some("use b.txt".into()),
        },
        ApprovalAnswer::Deny { reason: None },
        ApprovalAnswer::Allow,
    ];
    let approver = Scripted {
        answers: Mutex::new(answers),
        asked: asked.clone(),
    };
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        builder.services(services(approver))
    })
    .await;
    let input = json!({"path": "a.txt", "line": "x"});
    assert!(!rig.call("Append", input.clone()).await.is_error);
    let refused = rig.answer("Append", input.clone()).await;
    assert!(refused.contains("did not permit"), "{refused}");
    let refused = rig.answer("Append", input).await;
    assert!(refused.contains("They said: use b.txt"), "{refused}");
    assert_eq!(rig.project.read("work/a.txt"), "alpha\nx\n");
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_call_that_makes_no_sense_bothers_nobody() {
    let asked = std::sync::Arc::new(Mutex::new(Vec::new()));
    let approver = Scripted {
        answers: Mutex::default(),
        asked: asked.clone(),
    };
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        builder.services(services(approver))
    })
    .await;
    assert!(rig.call("Append", json!({"path": "a.txt"})).await.is_error);
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_unannounced_patch_is_dropped_and_noted() {
    let mut rig = Rig::new().await;
    let before = rig.scheduler.context();
    let finished = rig.call("Sly", json!({})).await;
    assert_eq!(finished.metadata.dropped_patches.len(), 1);
    assert_eq!(rig.scheduler.context(), before);
}

#[tokio::test]
async fn an_interrupted_call_carries_the_marker() {
    let mut rig = Rig::new().await;
    let mut turn = rig.scheduler.start_batch().await;
    turn.push(tool_use("Hang", json!({"polite": true})));
    turn.cancel_token().cancel();
    let finished = turn.next().await.unwrap();
    assert!(finished.is_error);
    assert_eq!(finished.text(), INTERRUPTED);
}

/// Tells what it was granted.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {
    /// Where.
    path: std::path::PathBuf,
}

struct Granted;

impl haft_contract::Tool for Granted {
    type Input = Look;
    const NAME: &'static str = "Granted";
    fn profile(&self) -> haft_contract::ToolProfile {
        haft_contract::ToolProfile {
            paths: &["path"],
            ..haft_contract::ToolProfile::default()
        }
    }
    fn effects(&self, input: &Look) -> haft_contract::Effects {
        haft_contract::Effects::writing([input.path.clone()])
    }
    async fn call(
        &self,
        _: &Look,
        cx: &haft_contract::CallContext,
    ) -> Result<haft_contract::ToolOutput, haft_contract::ToolError> {
        let granted = format!("{:?}", cx.permissions.granted);
        Ok(haft_contract::ToolOutput::text(granted))
    }
}

#[tokio::test]
async fn a_call_knows_what_it_was_granted_outside() {
    let mut rig = Rig::with(PermissionMode::BypassPermissions, |builder| {
        builder.tool(Granted).unwrap()
    })
    .await;
    let inside = rig.answer("Granted", json!({"path": "a.txt"})).await;
    assert_eq!(inside, "[]");
    let outside = rig.answer("Granted", json!({"path": "../x.txt"})).await;
    assert_eq!(outside, "[\"PROJECT/x.txt\"]");
}
