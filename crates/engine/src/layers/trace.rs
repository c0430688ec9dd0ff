//! One line a call in the log, for the one who listens to `tracing`.

use std::time::Instant;

use haft_contract::{BoxFuture, CallContext, Content};

use super::{Layer, LayerResult, Next};
use crate::pipeline::Admitted;

/// What listeners know these lines by.
pub(super) const TARGET: &str = module_path!();

/// Writes down what ran, how long it took and how it ended. Never what it was about: inputs and
/// results may hold secrets.
#[derive(Debug)]
pub struct Trace;

impl Layer for Trace {
    fn call<'a>(
        &'a self,
        call: &'a Admitted,
        cx: &'a CallContext,
        next: Next<'a>,
    ) -> BoxFuture<'a, LayerResult> {
        Box::pin(async move {
            let started = Instant::now();
            let result = next.run(cx).await;
            let took = started.elapsed();
            let tool = call.call().name();
            match &result {
                Ok(output) => {
                    let bytes: usize = output
                        .content
                        .iter()
                        .filter_map(Content::as_text)
                        .map(str::len)
                        .sum();
                    tracing::debug!(call = %cx.call, tool, ?took, bytes, "done");
                }
                Err(error) => {
                    let kind = format!("{error:?}");
                    let kind = kind.split(['(', ' ', '{']).next().unwrap_or_default();
                    tracing::debug!(call = %cx.call, tool, ?took, kind, "failed");
                }
            }
            result
        })
    }
}
