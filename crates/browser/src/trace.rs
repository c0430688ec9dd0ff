//! Measures how a page loads, with the page's own clock.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    cdp_pipe::IgnoredResult,
    error::Result,
    tab::{NavigationResult, Tab},
};

/// The measurements of a page load, in milliseconds since the navigation started.
#[derive(Debug, Clone, PartialEq)]
pub struct PageTrace {
    /// The result of the navigation.
    pub arrival: NavigationResult,
    /// Time to first byte.
    pub ttfb: Option<f64>,
    /// First contentful paint.
    pub fcp: Option<f64>,
    /// Largest contentful paint, and the ref of its element.
    pub lcp: Option<(f64, Option<u32>)>,
    /// Cumulative layout shift.
    pub cls: f64,
    /// The number of tasks over 50 ms, and their total time.
    pub long_tasks: (u64, f64),
    /// The number of requests and bytes.
    pub requests: (usize, u64),
    /// The size of the JavaScript heap in bytes.
    pub heap: u64,
    /// The number of DOM nodes.
    pub nodes: u64,
}

const MEASURE: &str = "() => new Promise(done => {
    const found = {cls: 0, tasks: 0, taskTime: 0};
    const observe = (type, each) => {
        try { new PerformanceObserver(list => list.getEntries().forEach(each)).observe({type, buffered: true}); } catch {}
    };
    observe('largest-contentful-paint', e => { found.lcp = e.startTime; window.__lcp = e.element; });
    observe('layout-shift', e => { if (!e.hadRecentInput) found.cls += e.value; });
    observe('longtask', e => { found.tasks += 1; found.taskTime += e.duration; });
    const [load] = performance.getEntriesByType('navigation');
    found.ttfb = load && load.responseStart;
    const fcp = performance.getEntriesByName('first-contentful-paint')[0];
    found.fcp = fcp && fcp.startTime;
    setTimeout(() => done(found), 200);
})";

impl Tab {
    /// Reloads the page and measures it.
    ///
    /// # Errors
    /// As for [`Tab::reload`].
    pub async fn trace(&self, limit: Duration) -> Result<PageTrace> {
        let arrival = self.reload(limit).await?;
        let main = self.with(|tab| tab.main.clone())?;
        let found = self
            .in_frame(&main, MEASURE, Duration::from_secs(10))
            .await?;
        let lcp = match found["lcp"].as_f64() {
            Some(at) => Some((at, self.lcp_ref(&main).await?)),
            None => None,
        };
        self.call::<IgnoredResult>("Performance.enable", json!({}))
            .await?;
        let metrics: Value = self.call("Performance.getMetrics", json!({})).await?;
        self.call::<IgnoredResult>("Performance.disable", json!({}))
            .await?;
        let metric = |name: &str| {
            let all = metrics["metrics"].as_array();
            let found = all.and_then(|all| all.iter().find(|metric| metric["name"] == name));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count"
            )]
            let count = found
                .and_then(|metric| metric["value"].as_f64())
                .unwrap_or(0.0) as u64;
            count
        };
        Ok(PageTrace {
            arrival,
            ttfb: found["ttfb"].as_f64(),
            fcp: found["fcp"].as_f64(),
            lcp,
            cls: found["cls"].as_f64().unwrap_or(0.0),
            long_tasks: (
                found["tasks"].as_u64().unwrap_or(0),
                found["taskTime"].as_f64().unwrap_or(0.0),
            ),
            requests: self.with(|tab| tab.requests.total_bytes())?,
            heap: metric("JSHeapUsedSize"),
            nodes: metric("Nodes"),
        })
    }

    async fn lcp_ref(&self, main: &str) -> Result<Option<u32>> {
        let world = self.world(main).await?;
        let params =
            json!({"functionDeclaration": "() => window.__lcp", "executionContextId": world});
        let found: Value = self.call("Runtime.callFunctionOn", params).await?;
        let Some(object) = found["result"]["objectId"].as_str() else {
            return Ok(None);
        };
        let node: Value = self
            .call("DOM.describeNode", json!({"objectId": object}))
            .await?;
        let backend = node["node"]["backendNodeId"].as_i64();
        Ok(backend.and_then(|backend| self.assign_ref(main, backend)))
    }
}
