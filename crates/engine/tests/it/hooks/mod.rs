//! Hooks, as real processes around real calls. The numbers are those of the vectors of hooks.md.
//!
//! - here: what programs say of calls
//! - `kinds`: servers, models, plugins, skills
//! - `moments`: events that are about no call, and what is reported of hooks while they run
//! - `beside`: hooks that no one waits for
//! - `which`: which hooks run, and when

mod beside;
mod kinds;
mod moments;
mod which;

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, PermissionMode, RuleMatch,
    Services, Tool, ToolError, ToolOutput, ToolProfile,
};
use haft_engine::{
    CallResult, Engine, EngineBuilder, Scheduler, SessionContext, ToolRegistry,
    hook_conditions::read,
    hooks::{HookCommonFields, HookEventKind, HookInvocation, Hooks},
    permissions::{List, PatternBases, RuleSet, RuleSource, SettingsScope},
};
use haft_testkit::TempProject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rig::tool_use;

/// Runs a command line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Line {
    /// What bash runs.
    command: String,
}

/// A shell without any of what a real one needs; enough to see what ran.
struct Bash;

impl Tool for Bash {
    type Input = Line;
    const NAME: &'static str = "Bash";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: RuleMatch::Command("command"),
            ..ToolProfile::default()
        }
    }

    async fn call(&self, input: &Line, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let output = Command::new("bash")
            .arg("-c")
            .arg(&input.command)
            .current_dir(&cx.cwd)
            .output()
            .map_err(|error| ToolError::Failed(error.to_string()))?;
        let stdout = String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned();
        let structured = json!({
            "stdout": stdout, "stderr": "", "interrupted": false, "isImage": false,
        });
        if !output.status.success() {
            let failure = ToolOutput::text(format!("Exit code 1\n{stdout}")).as_failure();
            return Ok(failure.with_structured(structured));
        }
        Ok(ToolOutput::text(stdout).with_structured(structured))
    }
}

/// Says yes, and remembers what it was asked.
#[derive(Default)]
struct Yes(Mutex<Vec<String>>);

impl Approver for Yes {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.0.lock().unwrap().push(question.reason);
        Box::pin(async { ApprovalAnswer::Allow })
    }
}

struct Rig {
    project: TempProject,
    scheduler: Scheduler,
    asked: Arc<Yes>,
}

impl Rig {
    /// A session with these hooks, each a `hooks` object of a settings file.
    async fn new(files: &[(SettingsScope, Value)], rules: &[(List, &str)]) -> Self {
        Self::with(files, rules, |hooks| hooks, |builder| builder).await
    }

    /// The same with more.
    async fn with(
        files: &[(SettingsScope, Value)],
        rules: &[(List, &str)],
        hooks: impl FnOnce(Hooks) -> Hooks,
        setup: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Self {
        let project = TempProject::new([("work/a.txt", "alpha\n")]);
        let work = project.path("work");
        let bases = PatternBases {
            cwd: work.clone(),
            home: work.clone(),
            slash: work.clone(),
        };
        let mut handlers = Vec::new();
        for (scope, value) in files {
            let (read, problems) = read(*scope, None, value, &bases);
            assert_eq!(problems, []);
            handlers.extend(read);
        }
        let mut allowed = RuleSet::default();
        for (list, text) in rules {
            allowed
                .add(
                    *list,
                    text,
                    RuleSource::from_scope(SettingsScope::User),
                    &bases,
                )
                .unwrap();
        }
        let mut registry = ToolRegistry::new();
        registry.add(Bash).unwrap();
        let asked = Arc::new(Yes::default());
        let approver: Arc<dyn Approver> = asked.clone();
        let builder = Engine::builder(registry, project.path("session"))
            .hooks(hooks(Hooks::new(handlers, &work)))
            .services(Services::none().with_approver(approver));
        let (engine, _) = setup(builder).build().await;
        let context = SessionContext::new(&work).with_rules(allowed);
        Self {
            project,
            scheduler: engine.scheduler(context),
            asked,
        }
    }

    async fn pre(hook: &str) -> Self {
        Self::new(&[(SettingsScope::User, one("PreToolUse", hook))], &[]).await
    }

    async fn bash(&mut self, command: &str) -> CallResult {
        let mut turn = self.scheduler.start_batch().await;
        turn.push(tool_use("Bash", json!({ "command": command })));
        turn.next().await.unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.0.lock().unwrap().len()
    }

    fn ran(&self, file: &str) -> bool {
        self.project.path("work").join(file).exists()
    }
}

fn one(event: &str, command: &str) -> Value {
    several(event, &[command])
}

fn several(event: &str, commands: &[&str]) -> Value {
    let hooks: Vec<Value> = commands
        .iter()
        .map(|command| json!({"type": "command", "command": command}))
        .collect();
    json!({ event: [{"matcher": "Bash", "hooks": hooks}] })
}

/// A command that says this.
fn says(value: &Value, code: i32) -> String {
    format!("cat <<'END'\n{value}\nEND\nexit {code}")
}

fn decides(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

#[tokio::test]
async fn v1_exit_code_2_denies_with_what_is_on_stderr() {
    let mut rig = Rig::pre("echo no >&2; exit 2").await;
    let finished = rig.bash("touch ran").await;
    assert!(finished.is_error && finished.text().contains("no"));
    assert!(!rig.ran("ran"));
}

#[tokio::test]
async fn v2_v3_a_decision_in_json_counts_whatever_the_exit_code() {
    for code in [0, 1] {
        let mut rig = Rig::pre(&says(&decides("deny", "r"), code)).await;
        let finished = rig.bash("touch ran").await;
        assert_eq!(finished.text(), "PreToolUse:User hook: r");
        assert!(finished.is_error && !rig.ran("ran"));
    }
}

#[tokio::test]
async fn v4_exit_code_2_beats_an_allow() {
    let allow = decides("allow", "");
    let mut rig = Rig::pre(&format!("echo x >&2; {}", says(&allow, 2))).await;
    let finished = rig.bash("touch ran").await;
    assert_eq!(finished.text(), "PreToolUse:User hook: x");
    assert!(!rig.ran("ran"));
}

#[tokio::test]
async fn v5_v10_v11_what_is_no_decision_leaves_the_call_alone() {
    let mismatch = json!({"hookSpecificOutput": {
        "hookEventName": "PostToolUse", "permissionDecision": "deny",
    }});
    for (hook, notices) in [
        ("exit 1".to_owned(), 1),
        ("echo '[1]'".to_owned(), 0),
        (says(&mismatch, 0), 1),
    ] {
        let mut rig = Rig::pre(&hook).await;
        let finished = rig.bash("echo done").await;
        assert_eq!(finished.text(), "done", "{hook}");
        assert_eq!(finished.metadata.notices.len(), notices, "{hook}");
    }
}

#[tokio::test]
async fn v6_the_old_form_of_a_denial_counts() {
    let mut rig = Rig::pre(&says(&json!({"decision": "block", "reason": "r"}), 0)).await;
    let finished = rig.bash("touch ran").await;
    assert!(finished.text().ends_with("hook: r") && !rig.ran("ran"));
}

#[tokio::test]
async fn v7_an_allowed_call_may_be_rewritten_and_nobody_is_asked() {
    let allow = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "touch second; echo 2"},
    }});
    let mut rig = Rig::pre(&says(&allow, 0)).await;
    let finished = rig.bash("touch first").await;
    assert_eq!(finished.text(), "2");
    assert!(rig.ran("second") && !rig.ran("first"));
    assert_eq!(rig.asked(), 0);
}

#[tokio::test]
async fn a_rewritten_call_is_judged_again() {
    let allow = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "rm a.txt"},
    }});
    let files = [(SettingsScope::User, one("PreToolUse", &says(&allow, 0)))];
    let mut rig = Rig::new(&files, &[(List::Deny, "Bash(rm *)")]).await;
    let finished = rig.bash("echo 1").await;
    let denied = "Permission to use Bash has been denied by rule Bash(rm *).";
    assert!(finished.text().starts_with(denied), "{}", finished.text());
    let bad = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "updatedInput": {"wrong": 1},
    }});
    let mut rig = Rig::pre(&says(&bad, 0)).await;
    assert!(
        rig.bash("echo 1")
            .await
            .text()
            .contains("InputValidationError")
    );
}

#[tokio::test]
async fn v8_of_several_the_strictest_counts() {
    let (allow, ask) = (decides("allow", ""), decides("ask", ""));
    let hooks = several("PreToolUse", &[&says(&allow, 0), &says(&ask, 0)]);
    let mut rig = Rig::new(&[(SettingsScope::User, hooks)], &[]).await;
    rig.bash("echo 1").await;
    assert_eq!(rig.asked(), 1);
}

#[tokio::test]
async fn v9_a_hook_never_beats_a_deny_rule_nor_an_ask_rule() {
    let allow = one("PreToolUse", &says(&decides("allow", ""), 0));
    let mut rig = Rig::new(
        &[(SettingsScope::User, allow.clone())],
        &[(List::Deny, "Bash(touch *)")],
    )
    .await;
    assert!(rig.bash("touch ran").await.is_error && !rig.ran("ran"));
    let mut rig = Rig::new(
        &[(SettingsScope::User, allow)],
        &[(List::Ask, "Bash(touch *)")],
    )
    .await;
    rig.bash("touch ran").await;
    assert_eq!(rig.asked(), 1);
}

#[tokio::test]
async fn v12_a_hook_that_takes_too_long_says_nothing_unless_it_guards() {
    let slow = |guard: bool| {
        let mut hook = json!({"type": "command", "command": "sleep 600", "timeout": 0.2});
        if guard {
            hook["onFailure"] = "block".into();
        }
        json!({"PreToolUse": [{"matcher": "", "hooks": [hook]}]})
    };
    let mut rig = Rig::new(&[(SettingsScope::User, slow(false))], &[]).await;
    assert_eq!(rig.bash("echo on").await.text(), "on");
    let mut rig = Rig::new(&[(SettingsScope::User, slow(true))], &[]).await;
    let finished = rig.bash("touch ran").await;
    assert!(finished.is_error && !rig.ran("ran"));
    assert!(
        finished.text().contains("did not answer"),
        "{}",
        finished.text()
    );
}

#[tokio::test]
async fn who_interrupts_does_not_wait_for_hooks() {
    // Before a call, in a person's place, and after it.
    for (event, has_run) in [
        ("PreToolUse", false),
        ("PermissionRequest", false),
        ("PostToolUse", true),
    ] {
        let hook = one(event, "touch begun; sleep 600");
        let mut rig = Rig::new(&[(SettingsScope::User, hook)], &[]).await;
        let begun = rig.project.path("work/begun");
        let mut turn = rig.scheduler.start_batch().await;
        let cancel = turn.cancel_token();
        turn.push(tool_use("Bash", json!({"command": "touch ran"})));
        let interrupts = async {
            haft_testkit::until("the hook runs", || begun.exists()).await;
            cancel.cancel();
        };
        let limit = Duration::from_secs(100);
        let both = async { tokio::join!(turn.next(), interrupts) };
        let (finished, ()) = tokio::time::timeout(limit, both).await.unwrap();
        assert_eq!(!finished.unwrap().is_error, has_run, "{event}");
        drop(turn);
        assert_eq!(rig.ran("ran"), has_run, "{event}");
    }
}

#[tokio::test]
async fn a_guard_that_cannot_run_denies() {
    for hook in [
        json!({"type": "command", "command": "/no/such/program", "args": [], "onFailure": "block"}),
        json!({"type": "command", "command": "exit 1", "onFailure": "block"}),
        json!({"type": "http", "url": "http://127.0.0.1:1/", "onFailure": "block"}),
    ] {
        let hooks = json!({"PreToolUse": [{"hooks": [hook]}]});
        let mut rig = Rig::new(&[(SettingsScope::User, hooks)], &[]).await;
        assert!(rig.bash("touch ran").await.is_error && !rig.ran("ran"));
    }
}

#[tokio::test]
async fn what_hooks_say_of_a_call_that_is_refused_is_not_lost() {
    let mut said = decides("deny", "r");
    said["continue"] = false.into();
    said["stopReason"] = "s".into();
    said["systemMessage"] = "m".into();
    said["hookSpecificOutput"]["additionalContext"] = "c".into();
    let mut rig = Rig::pre(&says(&said, 0)).await;
    let finished = rig.bash("touch ran").await;
    assert!(finished.is_error && finished.metadata.denied.is_some() && !rig.ran("ran"));
    assert_eq!(finished.metadata.stop.as_deref(), Some("s"));
    assert_eq!(finished.metadata.notices, ["m"]);
    assert!(
        finished
            .text()
            .ends_with("<system-reminder>\nc\n</system-reminder>")
    );
}

#[tokio::test]
async fn whoever_is_asked_is_told_which_hook_wants_it() {
    let ask = one("PreToolUse", &says(&decides("ask", "it costs money"), 0));
    let mut rig = Rig::new(&[(SettingsScope::Project, ask)], &[]).await;
    rig.bash("touch ran").await;
    let asked = rig.asked.0.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert!(
        asked[0].starts_with("[Project] it costs money"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_call_is_put_off_where_that_can_be_done() {
    let defer = one("PreToolUse", &says(&decides("defer", ""), 0));
    let files = [(SettingsScope::User, defer)];
    let mut rig = Rig::with(&files, &[], |hooks| hooks, EngineBuilder::allow_deferral).await;
    let finished = rig.bash("touch ran").await;
    assert!(finished.metadata.deferred && finished.metadata.denied.is_none() && !rig.ran("ran"));
    assert_eq!(rig.asked(), 0);
    // Elsewhere a person decides.
    let mut rig = Rig::new(&files, &[]).await;
    assert!(!rig.bash("touch ran").await.metadata.deferred && rig.ran("ran"));
    assert_eq!(rig.asked(), 1);
}

#[tokio::test]
async fn a_long_text_is_kept_in_a_file() {
    let command = "head -c 30000 /dev/zero | tr '\\0' x >&2; exit 2";
    let mut rig = Rig::pre(command).await;
    let text = rig.bash("touch ran").await.text();
    assert!(text.len() < 15_000, "{}", text.len());
    let path = text.split("The whole text is in ").nth(1).unwrap();
    let path = path.split(" (").next().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "x".repeat(30_000));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_hook_is_in_a_session_of_its_own() {
    let command = "read -r _ _ _ _ _ session _ < /proc/$$/stat; [ $session = $$ ] && touch alone";
    let mut rig = Rig::pre(command).await;
    rig.bash("echo 1").await;
    assert!(rig.ran("alone"));
}

#[tokio::test]
async fn v15_v16_v17_v18_after_a_call_hooks_may_add_replace_and_stop() {
    let mut rig = Rig::new(
        &[(
            SettingsScope::User,
            one("PostToolUse", "echo lint >&2; exit 2"),
        )],
        &[],
    )
    .await;
    let finished = rig.bash("echo real").await;
    assert!(!finished.is_error);
    assert!(finished.text().starts_with("real\n") && finished.text().contains("lint"));

    let output = |value: Value| {
        let said = json!({"hookSpecificOutput": {
            "hookEventName": "PostToolUse", "updatedToolOutput": value,
        }});
        one("PostToolUse", &says(&said, 0))
    };
    let shaped = json!({"stdout": "x", "stderr": "", "interrupted": false, "isImage": false});
    let mut rig = Rig::new(&[(SettingsScope::User, output(shaped))], &[]).await;
    assert_eq!(rig.bash("echo real").await.text(), "x");
    let mut rig = Rig::new(&[(SettingsScope::User, output(json!("x")))], &[]).await;
    assert_eq!(rig.bash("echo real").await.text(), "real");

    let stop = json!({"continue": false, "stopReason": "s"});
    let mut rig = Rig::new(
        &[(SettingsScope::User, one("PostToolUse", &says(&stop, 0)))],
        &[],
    )
    .await;
    let finished = rig.bash("echo real").await;
    assert_eq!(finished.metadata.stop.as_deref(), Some("s"));
}

#[tokio::test]
async fn a_failed_call_has_its_own_event() {
    let hooks = json!({
        "PostToolUse": [{"hooks": [{"type": "command", "command": "touch well"}]}],
        "PostToolUseFailure": [{"hooks": [{"type": "command", "command": "cat > failed.json"}]}],
    });
    let mut rig = Rig::new(
        &[(SettingsScope::User, hooks)],
        &[(List::Deny, "Bash(rm *)")],
    )
    .await;
    rig.bash("rm a.txt").await;
    assert!(!rig.ran("failed.json"), "a denial is no failure");
    let finished = rig.bash("echo out; exit 1").await;
    assert!(finished.is_error);
    assert_eq!(finished.structured.unwrap()["stdout"], "out");
    assert!(!rig.ran("well"));
    let told: Value = serde_json::from_str(&rig.project.read("work/failed.json")).unwrap();
    assert_eq!(told["hook_event_name"], "PostToolUseFailure");
    assert_eq!(told["error"], "Exit code 1\nout");
    assert_eq!(told["is_interrupt"], false);
    assert_eq!(told.get("tool_response"), None);
    assert_eq!(told["tool_input"]["command"], "echo out; exit 1");
    assert_eq!(told["permission_mode"], "default");
    assert_eq!(told["tool_use_id"], "use-Bash");
}

#[tokio::test]
async fn v24_v25_v26_permission_requests_are_answered_by_hooks() {
    let answer = |decision: Value| {
        let said = json!({"hookSpecificOutput": {
            "hookEventName": "PermissionRequest", "decision": decision,
        }});
        one("PermissionRequest", &says(&said, 0))
    };
    let deny = answer(json!({"behavior": "deny", "message": "m"}));
    let mut rig = Rig::new(&[(SettingsScope::User, deny)], &[]).await;
    assert_eq!(rig.bash("touch ran").await.text(), "m");
    assert!(!rig.ran("ran"));

    let deny = answer(json!({"behavior": "deny", "message": "m", "interrupt": true}));
    let mut rig = Rig::new(&[(SettingsScope::User, deny)], &[]).await;
    let finished = rig.bash("touch ran").await;
    assert_eq!(finished.text(), "m");
    assert_eq!(finished.metadata.stop.as_deref(), Some("m"));

    let mut rig = Rig::new(
        &[(SettingsScope::User, one("PermissionRequest", "exit 2"))],
        &[],
    )
    .await;
    rig.bash("touch ran").await;
    assert_eq!(rig.asked(), 1);

    let rules = json!([{
        "type": "addRules", "behavior": "allow", "destination": "session",
        "rules": [{"toolName": "Bash", "ruleContent": "touch *"}],
    }]);
    let allow = answer(json!({"behavior": "allow", "updatedPermissions": rules}));
    let once = json!({"PermissionRequest": [{"hooks": [{
        "type": "command",
        "command": format!("[ -e once ] && exit 0; touch once; {}", allow["PermissionRequest"][0]["hooks"][0]["command"].as_str().unwrap()),
    }]}]});
    let mut rig = Rig::new(&[(SettingsScope::User, once)], &[]).await;
    rig.bash("touch first").await;
    rig.bash("touch second").await;
    assert!(rig.ran("first") && rig.ran("second"));
    assert_eq!(rig.asked(), 0);
}

#[test]
fn what_is_wrong_with_hooks_is_said() {
    let value = json!({
        "NoSuchEvent": [],
        "Stop": {"hooks": []},
        "PreToolUse": [
            {"matcher": "[", "hooks": []},
            {"matcher": "Bash"},
            {"hooks": [{"type": "telepathy"}, {"type": "command"}, {"type": "command", "command": "x", "if": "Bash("}]},
        ],
    });
    let bases = PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    };
    let file = PathBuf::from("/p/.claude/settings.json");
    let (handlers, problems) = read(SettingsScope::Project, Some(&file), &value, &bases);
    assert_eq!(handlers.len(), 0);
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"));
}
