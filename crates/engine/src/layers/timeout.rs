//! Timeouts of calls: a call that runs too long is asked to stop, and abandoned if it does not.

use std::sync::Arc;

use haft_contract::{BoxFuture, CallContext, ToolError};
use tokio::time;

use super::{Layer, LayerChain, LayerResult, LayerSettings};
use crate::pipeline::{AdmittedCall, execute};

/// Ends calls that exceed their timeout.
#[derive(Debug)]
pub struct TimeoutLayer {
    settings: Arc<LayerSettings>,
}

impl TimeoutLayer {
    /// Creates a timeout layer with these settings.
    pub fn new(settings: Arc<LayerSettings>) -> Self {
        Self { settings }
    }
}

impl Layer for TimeoutLayer {
    fn call<'a>(
        &'a self,
        call: &'a AdmittedCall,
        cx: &'a CallContext,
        next: LayerChain<'a>,
    ) -> BoxFuture<'a, LayerResult> {
        let Some(limit) = self.settings.tool(call.call().spec()).timeout else {
            return next.run(cx);
        };
        Box::pin(async move {
            let mut running = next.run(cx);
            match time::timeout(limit, &mut running).await {
                Ok(result) => result,
                Err(_) if call.call().effects_kind().may_be_dropped => {
                    Err(ToolError::TimedOut(limit))
                }
                Err(_) => {
                    // This token belongs to this run only: a timeout is not an interrupt by the
                    // user.
                    cx.cancel.cancel();
                    match time::timeout(execute::WIND_DOWN, running).await {
                        Ok(Err(ToolError::Cancelled)) => Err(ToolError::TimedOut(limit)),
                        Ok(finished) => finished,
                        Err(_) => Err(execute::outcome_unknown()),
                    }
                }
            }
        })
    }
}
