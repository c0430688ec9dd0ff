//! A cache for the results of read-only calls.
//!
//! It covers only tools that request it, only for the time that they set, and only until anything
//! changes: every call that is not read-only empties the cache, before and after it runs.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use haft_contract::{BoxFuture, CallContext, ToolOutput};
use tokio::time::Instant;

use super::{Layer, LayerChain, LayerResult, LayerSettings};
use crate::pipeline::AdmittedCall;

/// The maximum number of cached results.
const MAX_ENTRIES: usize = 256;

/// Caches results.
#[derive(Debug)]
pub struct CacheLayer {
    settings: Arc<LayerSettings>,
    entries: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    results: HashMap<CacheKey, (Instant, ToolOutput)>,
    /// The number of changes so far, so that a result from before a change is not stored after it.
    changes: u64,
}

/// The tool, the input and the working directory.
type CacheKey = (String, String, Arc<Path>);

impl CacheLayer {
    /// Creates a cache with these settings.
    pub fn new(settings: Arc<LayerSettings>) -> Self {
        Self {
            settings,
            entries: Mutex::default(),
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, CacheEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        let mut entries = self.entries();
        entries.changes += 1;
        entries.results.clear();
    }
}

impl Layer for CacheLayer {
    fn call<'a>(
        &'a self,
        call: &'a AdmittedCall,
        cx: &'a CallContext,
        next: LayerChain<'a>,
    ) -> BoxFuture<'a, LayerResult> {
        let call = call.call();
        if !call.effects_kind().is_read_only {
            return Box::pin(async move {
                self.clear();
                let result = next.run(cx).await;
                self.clear();
                result
            });
        }
        let Some(keep_for) = self.settings.tool(call.spec()).cache else {
            return next.run(cx);
        };
        let key = (
            call.name().to_owned(),
            call.input().to_string(),
            Arc::clone(&cx.cwd),
        );
        Box::pin(async move {
            let now = Instant::now();
            let changes = {
                let entries = self.entries();
                match entries.results.get(&key) {
                    Some((until, answer)) if now < *until => return Ok(answer.clone()),
                    _ => entries.changes,
                }
            };
            let output = next.run(cx).await?;
            let mut entries = self.entries();
            // Patches must be applied each time, so a result with patches is not cached.
            if entries.changes == changes && output.patches.is_empty() && !output.failed {
                if entries.results.len() >= MAX_ENTRIES {
                    entries.results.retain(|_, (until, _)| now < *until);
                }
                if entries.results.len() < MAX_ENTRIES {
                    entries
                        .results
                        .insert(key, (now + keep_for, output.clone()));
                }
            }
            Ok(output)
        })
    }
}
