//! The third verb: run it, inside its layers, until it is done or someone interrupts.

use std::{sync::Arc, time::Duration};

use haft_contract::{CallContext, ToolError, ToolOutput};
use tokio::time::timeout;

use super::{Admitted, Prepared};
use crate::layers::{Layer, Next};

/// How long a call that changes things, or that must not be made twice, may take to wind down after an
/// interrupt. What only reads is dropped at once.
pub(crate) const WIND_DOWN: Duration = Duration::from_secs(5);

/// A call that ran.
#[derive(Debug)]
pub struct ExecutedCall {
    pub(super) call: Prepared,
    pub(super) result: Result<ToolOutput, ToolError>,
}

/// Runs an admitted call. A call that finished keeps its real result, also when the interrupt came
/// while it was finishing.
pub(crate) async fn execute(
    admitted: Admitted,
    cx: &CallContext,
    layers: &[Arc<dyn Layer>],
) -> ExecutedCall {
    // The tool learns what it was permitted, so that it can hold itself to it.
    let mut told = cx.clone();
    let terms = admitted.terms();
    told.permissions.granted = Arc::clone(&terms.granted);
    told.permissions.judged = terms.judged.clone();
    told.permissions.confinement = terms.confinement.clone();
    let cx = &told;
    let result = {
        let mut running = Next::new(&admitted, layers).run(cx);
        tokio::select! {
            biased;
            result = &mut running => result,
            () = cx.cancel.cancelled() => {
                if admitted.call().effects().may_be_dropped() {
                    Err(ToolError::Cancelled)
                } else {
                    timeout(WIND_DOWN, running).await.unwrap_or_else(|_| Err(lost()))
                }
            }
        }
    };
    ExecutedCall {
        call: admitted.into_call(),
        result,
    }
}

/// What is said of a call that changes things and did not stop when asked to.
pub(crate) fn lost() -> ToolError {
    ToolError::Failed(format!(
        "interrupted, and it did not stop within {} s: how far it got is not known. Look at what it \
         would have changed before you call it again.",
        WIND_DOWN.as_secs()
    ))
}
