//! Timeouts of calls: a call that runs too long is asked to stop, and abandoned if it does not.

use std::sync::Arc;

use haft_contract::{BoxFuture, CallContext, ToolError};
use tokio::time;

use super::{Layer, LayerResult, LayerSettings, Next};
use crate::pipeline::{Admitted, execute};

/// Ends calls that exceed their timeout.
#[derive(Debug)]
pub struct Timeout {
    settings: Arc<LayerSettings>,
}

impl Timeout {
    /// Creates a timeout layer with these settings.
    pub fn new(settings: Arc<LayerSettings>) -> Self {
        Self { settings }
    }
}

impl Layer for Timeout {
    fn call<'a>(
        &'a self,
        call: &'a Admitted,
        cx: &'a CallContext,
        next: Next<'a>,
    ) -> BoxFuture<'a, LayerResult> {
        let Some(limit) = self.settings.tool(call.call().spec()).timeout else {
            return next.run(cx);
        };
        Box::pin(async move {
            let mut running = next.run(cx);
            match time::timeout(limit, &mut running).await {
                Ok(result) => result,
                Err(_) if call.call().kind().may_be_dropped => Err(ToolError::TimedOut(limit)),
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
