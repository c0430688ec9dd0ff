//! The third step: runs the call inside its layers, until it finishes or is interrupted.

use std::{mem, sync::Arc, time::Duration};

use haft_contract::{CallContext, ToolError, ToolOutput};
use serde_json::Value;
use tokio::time::timeout;

use super::{AdmittedCall, PreparedCall};
use crate::{
    layers::{LayerChain, LayerStack},
    schema::SchemaValidator,
};

/// The time that a call that changes things, or must not be repeated, has to stop after an
/// interrupt. Read-only calls are dropped immediately.
pub(crate) const WIND_DOWN: Duration = Duration::from_secs(5);

/// A call that ran.
#[derive(Debug)]
pub struct ExecutedCall {
    pub(super) call: PreparedCall,
    pub(super) result: Result<ToolOutput, ToolError>,
}

/// Runs an admitted call. A call that finished keeps its real result, even if the interrupt arrived
/// while it was finishing.
pub(crate) async fn execute(
    mut admitted: AdmittedCall,
    mut cx: CallContext,
    layers: &LayerStack,
) -> ExecutedCall {
    // Passes the grants to the tool, so that it can respect them.
    let terms = admitted.grants();
    cx.permissions.granted = Arc::clone(&terms.outside_paths);
    cx.permissions.authorized = terms.authorized.clone();
    cx.permissions.confinement = mem::take(&mut terms.confinement);
    // A separate token: a layer that ends the call must not look like an interrupt by the user.
    let own = cx.cancel.child_token();
    let interrupt = mem::replace(&mut cx.cancel, own);
    let cx = &cx;
    let around = layers.layers_for(admitted.call().spec());
    let result = {
        let mut running = LayerChain::new(&admitted, &around).run(cx);
        tokio::select! {
            biased;
            result = &mut running => result,
            () = interrupt.cancelled() => {
                if admitted.call().effects_kind().may_be_dropped {
                    Err(ToolError::Cancelled)
                } else {
                    timeout(WIND_DOWN, running).await.unwrap_or_else(|_| Err(outcome_unknown()))
                }
            }
        }
    };
    let call = admitted.into_call();
    if cfg!(debug_assertions) {
        check_output_schema(&call, &result);
    }
    ExecutedCall { call, result }
}

/// Asserts that the structured output of a tool matches its declared schema. All tests of tools run
/// through here.
fn check_output_schema(call: &PreparedCall, result: &Result<ToolOutput, ToolError>) {
    let (Some(schema), Ok(output)) = (&call.spec().profile.output_schema, result) else {
        return;
    };
    if output.failed {
        return;
    }
    let name = call.name();
    let validator = SchemaValidator::new(schema).expect("a tool's own schema is one");
    let structured = output.structured.as_ref().unwrap_or(&Value::Null);
    let problems = validator.problems(structured);
    assert!(problems.is_empty(), "{name}: {problems:?} in {structured}");
}

/// Returns the error for a call that changes things and did not stop when it was interrupted.
pub(crate) fn outcome_unknown() -> ToolError {
    ToolError::Failed(format!(
        "interrupted, and it did not stop within {} s: how far it got is not known. Look at what it \
         would have changed before you call it again.",
        WIND_DOWN.as_secs()
    ))
}
