//! Calls beside the model's own.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, CancellationToken,
    ContextPatch, Effects, NestedResult, PermissionMode, RuleList, Tool, ToolError, ToolOutput,
};
use haft_engine::{
    hook_conditions::read,
    hooks::Hooks,
    permissions::{PatternBases, SettingsScope},
};
use serde_json::{Map, Value, json};

use crate::rig::{Rig, services, tool_use};

/// Appends a line by a call of its own.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThroughInput {
    /// Rules for that call.
    allowed: Vec<String>,
}

struct Through(Arc<Mutex<Option<NestedResult>>>);

impl Tool for Through {
    type Input = ThroughInput;
    const NAME: &'static str = "Through";

    async fn call(&self, input: &ThroughInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let call = tool_use("Append", json!({"path": "a.txt", "line": "more"}));
        let ran = cx.nested.run(call, &input.allowed, &cx.cancel).await?;
        *self.0.lock().unwrap() = Some(ran);
        Ok(ToolOutput::text("done"))
    }
}

/// Agrees to `Through`, and would to everything else; says what it was asked.
struct Agrees(Arc<Mutex<Vec<String>>>);

impl Approver for Agrees {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.0.lock().unwrap().push(question.tool);
        Box::pin(async { ApprovalAnswer::Allow })
    }
}

#[tokio::test]
async fn nobody_is_asked_and_rules_of_the_call_count_for_it_alone() {
    let ran = Arc::new(Mutex::new(None));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        let approver = Agrees(Arc::clone(&asked));
        // One slot: a call inside a call must not wait for itself.
        builder
            .tool(Through(Arc::clone(&ran)))
            .unwrap()
            .services(services(approver))
            .concurrency(1)
    })
    .await;
    assert_eq!(rig.answer("Through", json!({"allowed": []})).await, "done");
    let refused = ran.lock().unwrap().take().unwrap();
    assert!(refused.is_error && refused.denied, "{refused:?}");
    assert!(refused.text.contains("cannot prompt"), "{}", refused.text);

    let input = json!({"allowed": ["Append"]});
    assert_eq!(rig.answer("Through", input).await, "done");
    let permitted = ran.lock().unwrap().take().unwrap();
    assert!(!permitted.is_error, "{permitted:?}");
    assert_eq!(rig.project.read("work/a.txt"), "alpha\nmore\n");
    assert_eq!(*asked.lock().unwrap(), ["Through", "Through"]);
    assert!(rig.scheduler.context().rules.is_empty());

    // From outside a call as well.
    let aside = rig.scheduler.nested_calls();
    let cancel = CancellationToken::new();
    let call = || tool_use("Peek", json!({"path": "b.txt"}));
    assert!(!aside.run(call(), &[], &cancel).await.unwrap().is_error);
    let boom = tool_use("Boom", json!({"place": "call"}));
    assert!(aside.run(boom, &[], &cancel).await.unwrap().is_error);
    drop(rig);
    let over = aside.run(call(), &[], &cancel).await.unwrap();
    assert_eq!(over.text, "the session has ended");
}

/// Handlers that answer every event with these words.
fn hooks(root: &Path, said: &[(&str, Value)]) -> Hooks {
    let mut events = Map::new();
    for (event, output) in said {
        let output = json!({"hookSpecificOutput": output, "systemMessage": format!("by {event}")});
        let command = format!("cat > /dev/null; echo '{output}'");
        let group =
            json!([{"matcher": "Append", "hooks": [{"type": "command", "command": command}]}]);
        events.insert((*event).to_owned(), group);
    }
    let bases = PatternBases {
        cwd: root.into(),
        home: root.into(),
        slash: root.into(),
    };
    let (handlers, problems) = read(SettingsScope::User, None, &Value::Object(events), &bases);
    assert_eq!(problems, []);
    Hooks::new(handlers, root)
}

#[tokio::test]
async fn what_hooks_say_of_a_call_inside_a_call_is_told_with_its_result() {
    let said = [
        (
            "PreToolUse",
            json!({"hookEventName": "PreToolUse", "additionalContext": "before it"}),
        ),
        (
            "PostToolUse",
            json!({"hookEventName": "PostToolUse", "additionalContext": "after it"}),
        ),
    ];
    let ran = Arc::new(Mutex::new(None));
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        builder
            .tool(Through(Arc::clone(&ran)))
            .unwrap()
            .hooks(hooks("/".as_ref(), &said))
            .services(services(Agrees(Arc::default())))
    })
    .await;
    let finished = rig.call("Through", json!({"allowed": ["Append"]})).await;
    let told = finished.text();
    assert_eq!(told.matches("before it").count(), 1, "{told}");
    assert_eq!(told.matches("after it").count(), 1, "{told}");
    assert_eq!(
        finished.metadata.notices,
        ["by PreToolUse", "by PostToolUse"]
    );
    let ran = ran.lock().unwrap().take().unwrap();
    assert!(!ran.is_error, "{ran:?}");
    assert!(!ran.text.contains("it\n</system-reminder>"), "{}", ran.text);

    // Outside of any call they come with what ran.
    let aside = rig.scheduler.nested_calls();
    let call = tool_use("Append", json!({"path": "a.txt", "line": "more"}));
    let allowed = ["Append".to_owned()];
    let ran = aside.run(call, &allowed, &CancellationToken::new()).await;
    let hooks = ran.unwrap().hooks;
    assert_eq!(hooks.context, ["before it", "after it"]);
    assert_eq!(hooks.messages, ["by PreToolUse", "by PostToolUse"]);
}

#[tokio::test]
async fn what_a_hook_permits_of_a_call_inside_a_call_is_kept() {
    let allow = json!({"hookEventName": "PermissionRequest", "decision": {
        "behavior": "allow",
        "updatedPermissions": [{
            "type": "addRules",
            "rules": [{"toolName": "Append"}],
            "behavior": "allow",
            "destination": "session",
        }],
    }});
    let ran = Arc::new(Mutex::new(None));
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        builder
            .tool(Through(Arc::clone(&ran)))
            .unwrap()
            .hooks(hooks("/".as_ref(), &[("PermissionRequest", allow)]))
            .services(services(Agrees(Arc::default())))
    })
    .await;
    let finished = rig.call("Through", json!({"allowed": []})).await;
    assert!(!finished.is_error, "{}", finished.text());
    let ran = ran.lock().unwrap().take().unwrap();
    assert!(!ran.is_error, "{}", ran.text);
    let rules = rig.scheduler.context().rules;
    let kept: Vec<_> = rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(kept, ["Append"]);
    assert_eq!(finished.metadata.notices, ["by PermissionRequest"]);
}

/// Says whose call it is.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhoseInput {}

struct Whose;

impl Tool for Whose {
    type Input = WhoseInput;
    const NAME: &'static str = "Whose";

    fn effects(&self, _: &WhoseInput) -> Effects {
        Effects::NONE
    }

    async fn call(&self, _: &WhoseInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(cx.model.as_deref().unwrap_or("nobody's")))
    }
}

#[tokio::test]
async fn a_call_beside_the_model_s_own_is_of_the_model_at_work() {
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        builder.tool(Whose).unwrap()
    })
    .await;
    rig.scheduler.set_model("other");
    let aside = rig.scheduler.nested_calls();
    let cancel = CancellationToken::new();
    let ran = aside.run(tool_use("Whose", json!({})), &[], &cancel).await;
    assert_eq!(ran.unwrap().text, "other");
}

/// Vector 8 of the extensions: in that turn it is allowed, in the next it asks.
#[tokio::test]
async fn rules_of_a_turn_end_with_it_and_reach_no_further_than_a_projects() {
    let mut rig = Rig::with(PermissionMode::Default, |builder| builder).await;
    let input = json!({"path": "a.txt", "line": "more"});
    let allow = |rule: &str| ContextPatch::AddRuleForTurn {
        list: RuleList::Allow,
        rule: rule.to_owned(),
    };
    assert!(
        rig.call("Append", input.clone())
            .await
            .metadata
            .denied
            .is_some()
    );
    rig.scheduler.apply(&allow("Append"));
    rig.scheduler.apply(&ContextPatch::AddRule {
        list: RuleList::Ask,
        rule: "Move".to_owned(),
    });
    assert!(!rig.call("Append", input.clone()).await.is_error);
    rig.scheduler.apply(&ContextPatch::EndRulesOfTurn);
    assert!(rig.call("Append", input).await.metadata.denied.is_some());
    assert_eq!(rig.scheduler.context().rules.iter().count(), 1);
    assert!(!SettingsScope::Turn.is_users());
}
