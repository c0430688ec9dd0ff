//! One `tracing` line per call.

use std::time::Instant;

use haft_contract::{BoxFuture, CallContext, Content};

use super::{Layer, LayerChain, LayerResult};
use crate::pipeline::AdmittedCall;

/// The tracing target of these lines.
pub(super) const TARGET: &str = module_path!();

/// Logs the tool, the duration and the outcome of each call. It never logs inputs or results, which
/// may contain secrets.
#[derive(Debug)]
pub struct TraceLayer;

impl Layer for TraceLayer {
    fn call<'a>(
        &'a self,
        call: &'a AdmittedCall,
        cx: &'a CallContext,
        next: LayerChain<'a>,
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
