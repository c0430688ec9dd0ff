//! Calls beside the model's own.

use std::sync::{Arc, Mutex};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, CancellationToken,
    ContextPatch, NestedResult, PermissionMode, RuleList, Tool, ToolError, ToolOutput,
};
use haft_engine::permissions::Scope;
use serde_json::json;

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
    let aside = rig.scheduler.aside();
    let cancel = CancellationToken::new();
    let call = || tool_use("Peek", json!({"path": "b.txt"}));
    assert!(!aside.run(call(), &[], &cancel).await.unwrap().is_error);
    let boom = tool_use("Boom", json!({"place": "call"}));
    assert!(aside.run(boom, &[], &cancel).await.unwrap().is_error);
    drop(rig);
    let over = aside.run(call(), &[], &cancel).await.unwrap();
    assert_eq!(over.text, "the session is over");
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
    assert!(!Scope::Turn.is_users());
}
