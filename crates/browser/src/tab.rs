//! A tab: its commands and navigation.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    cdp_pipe::{IgnoredResult, within},
    chromium::{ANSWERS, ChromiumShared},
    error::{ChromiumError, Result, unusable},
    logs::{ConsoleLevel, ConsoleLine, NetworkEntry},
    refs::RefEntry,
    settle::{LOADS, SettleBaseline},
    state::{PageDialog, TabState},
};

/// A handle on a tab.
#[derive(Clone)]
pub struct Tab {
    pub(crate) shared: Arc<ChromiumShared>,
    pub(crate) number: u32,
    pub(crate) session: String,
}

/// The result of a navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NavigationResult {
    /// The address.
    pub url: String,
    /// The page's title.
    pub title: String,
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// True if the page is still loading.
    pub busy: bool,
}

/// An element to act on.
#[derive(Debug, Clone)]
pub(crate) struct PageElement {
    pub(crate) number: u32,
    pub(crate) entry: RefEntry,
    /// The id of the element's object in the isolated world.
    pub(crate) object: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EvaluationResponse {
    result: Value,
    exception_details: Option<Value>,
}

impl Tab {
    /// Returns the number of the tab.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the address of the page.
    #[must_use]
    pub fn url(&self) -> String {
        self.with(|tab| tab.url()).unwrap_or_default()
    }

    /// Returns the title of the page.
    #[must_use]
    pub fn title(&self) -> String {
        self.with(|tab| tab.title.clone()).unwrap_or_default()
    }

    /// Returns the open dialog, if any.
    #[must_use]
    pub fn dialog(&self) -> Option<PageDialog> {
        self.with(|tab| tab.dialog.clone()).ok().flatten()
    }

    /// Returns the console lines since the last navigation that are at least as severe as `worst`,
    /// and the number of lines that were dropped.
    #[must_use]
    pub fn console(&self, worst: ConsoleLevel) -> (Vec<ConsoleLine>, u64) {
        self.with(|tab| (tab.console.lines(worst), tab.console.dropped))
            .unwrap_or_default()
    }

    /// Returns the requests of the page, and the number of requests that were dropped.
    #[must_use]
    pub fn network(&self) -> (Vec<NetworkEntry>, u64) {
        self.with(|tab| (tab.requests.list(), tab.requests.dropped))
            .unwrap_or_default()
    }

    /// Returns the body of a response, if it is text.
    ///
    /// # Errors
    /// The browser no longer stores the body.
    pub async fn body(&self, entry: &NetworkEntry) -> Result<Option<String>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NetworkResponseBody {
            body: String,
            base64_encoded: bool,
        }
        let body: NetworkResponseBody = self
            .call(
                "Network.getResponseBody",
                json!({"requestId": entry.request}),
            )
            .await?;
        Ok((!body.base64_encoded).then_some(body.body))
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut TabState) -> T) -> Result<T> {
        let mut state = self.shared.state();
        let tab = state
            .tabs
            .get_mut(&self.number)
            .filter(|tab| tab.session == self.session);
        tab.map(look).ok_or(ChromiumError::TabClosed(self.number))
    }

    /// Sends a command to the page. It fails early if the page cannot answer because a dialog is
    /// open or the page crashed.
    pub(crate) async fn call<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T> {
        self.call_within(ANSWERS, method, params).await
    }

    pub(crate) async fn call_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
        method: &str,
        params: Value,
    ) -> Result<T> {
        tokio::select! {
            biased;
            cannot = self.wait_until_unresponsive() => Err(cannot),
            answer = within(limit, method, self.shared.wire.call(Some(&self.session), method, params)) => answer,
        }
    }

    /// Waits until the page cannot answer, and returns the reason.
    async fn wait_until_unresponsive(&self) -> ChromiumError {
        let far = Instant::now() + Duration::from_secs(3600);
        let found = self
            .shared
            .wait_until(far, |state| match state.tabs.get(&self.number) {
                None => Some(ChromiumError::TabClosed(self.number)),
                Some(tab) if tab.crashed => Some(ChromiumError::Crashed),
                Some(tab) => tab.dialog.as_ref().map(|dialog| ChromiumError::DialogOpen {
                    kind: dialog.kind.clone(),
                    message: dialog.message.clone(),
                }),
            });
        match found.await {
            Ok(Some(cannot)) => cannot,
            Ok(None) | Err(_) => ChromiumError::Ended,
        }
    }

    pub(crate) async fn bring_to_front(&self) -> Result<()> {
        self.call::<IgnoredResult>("Page.bringToFront", json!({}))
            .await
            .map(drop)
    }

    /// Answers the open dialog.
    ///
    /// # Errors
    /// No dialog is open.
    pub async fn answer_dialog(&self, accept: bool, text: Option<&str>) -> Result<()> {
        if self.dialog().is_none() {
            return Err(unusable("No dialog is open."));
        }
        let mut params = json!({"accept": accept});
        if let Some(text) = text {
            params["promptText"] = json!(text);
        }
        let before = self.settle_baseline()?;
        let call = self.shared.wire.call::<IgnoredResult>(
            Some(&self.session),
            "Page.handleJavaScriptDialog",
            params,
        );
        within(ANSWERS, "the dialog", call).await?;
        let closed = self
            .shared
            .wait_until(Instant::now() + Duration::from_secs(2), |state| {
                let open = state
                    .tabs
                    .get(&self.number)
                    .is_some_and(|tab| tab.dialog.is_some());
                (!open).then_some(())
            });
        closed.await?;
        self.wait_until_settled(before).await.map(drop)
    }

    /// Navigates to `url` and waits until the page is quiet.
    ///
    /// # Errors
    /// The navigation was refused, failed, or took longer than `limit`.
    pub async fn navigate(&self, url: &str, limit: Duration) -> Result<NavigationResult> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NavigateResponse {
            error_text: Option<String>,
            #[serde(default)]
            is_download: bool,
        }
        let before = self.settle_baseline()?;
        self.with(|tab| tab.crashed = false)?;
        let call = self.shared.wire.call::<NavigateResponse>(
            Some(&self.session),
            "Page.navigate",
            json!({"url": url}),
        );
        let navigated = self.with_pausable_timeout(limit, url, call).await;
        let refused = self.with(|tab| tab.refusals.pop())?;
        if let Some(why) = refused {
            return Err(ChromiumError::Refused(why));
        }
        if let Err(ChromiumError::Timeout { .. }) = &navigated {
            self.stop_navigation().await;
        }
        let navigated = navigated?;
        if navigated.is_download {
            return Err(unusable(format!("{url} is a download, not a page.")));
        }
        if let Some(error) = navigated.error_text {
            return Err(ChromiumError::Unreachable {
                error,
                url: url.to_owned(),
            });
        }
        self.wait_for_navigation(before, limit).await
    }

    /// Moves back (-1) or forward (1) in the history of the tab.
    ///
    /// # Errors
    /// The entry does not exist, or as for [`Tab::navigate`].
    pub async fn go_history(&self, by: i64, limit: Duration) -> Result<NavigationResult> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NavigationHistory {
            current_index: i64,
            entries: Vec<NavigationEntry>,
        }
        #[derive(Deserialize)]
        struct NavigationEntry {
            id: i64,
        }
        let history: NavigationHistory = self.call("Page.getNavigationHistory", json!({})).await?;
        let wanted = usize::try_from(history.current_index + by).ok();
        let entry = wanted
            .and_then(|at| history.entries.get(at))
            .ok_or_else(|| {
                unusable(if by < 0 {
                    "There is no page before this one."
                } else {
                    "There is no page after this one."
                })
            })?;
        let before = self.settle_baseline()?;
        self.call::<IgnoredResult>("Page.navigateToHistoryEntry", json!({"entryId": entry.id}))
            .await?;
        self.wait_for_navigation(before, limit).await
    }

    /// Reloads the page.
    ///
    /// # Errors
    /// As for [`Tab::navigate`].
    pub async fn reload(&self, limit: Duration) -> Result<NavigationResult> {
        let before = self.settle_baseline()?;
        self.with(|tab| tab.crashed = false)?;
        self.call::<IgnoredResult>("Page.reload", json!({})).await?;
        self.wait_for_navigation(before, limit).await
    }

    /// Awaits a command with a time limit that does not run while a request waits for a verdict.
    pub(crate) async fn with_pausable_timeout<T>(
        &self,
        limit: Duration,
        what: &str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::pin!(call);
        let mut left = limit;
        loop {
            let step = Duration::from_millis(500).min(left);
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                cannot = self.wait_until_unresponsive() => return Err(cannot),
                () = tokio::time::sleep(step) => {}
            }
            if self.with(|tab| tab.pending_verdicts)? == 0 {
                left = left.saturating_sub(step);
            }
            if left.is_zero() {
                return Err(ChromiumError::Timeout {
                    what: what.to_owned(),
                    after: limit,
                });
            }
        }
    }

    /// Stops a navigation that timed out. A script of the previous page that may block it is
    /// terminated, so that the next attempt succeeds.
    async fn stop_navigation(&self) {
        self.stop_script().await;
        let stop = self.call_within::<IgnoredResult>(
            Duration::from_secs(3),
            "Page.stopLoading",
            json!({}),
        );
        drop(stop.await);
    }

    async fn wait_for_navigation(
        &self,
        before: SettleBaseline,
        limit: Duration,
    ) -> Result<NavigationResult> {
        let committed = self.with_pausable_timeout(limit, "the navigation", async {
            let far = Instant::now() + Duration::from_secs(3600);
            let arrived = self.shared.wait_until(far, |state| {
                let tab = state.tabs.get(&self.number)?;
                (tab.committed > before.committed || !tab.refusals.is_empty()).then_some(())
            });
            arrived.await.map(drop)
        });
        let committed = committed.await;
        if let Err(ChromiumError::Timeout { .. }) = &committed {
            self.stop_navigation().await;
        }
        committed?;
        if let Some(why) = self.with(|tab| tab.refusals.pop())? {
            return Err(ChromiumError::Refused(why));
        }
        let busy = !self.wait_until_loaded(LOADS.min(limit)).await?;
        // The title otherwise arrives with a separate event that may come later.
        let info: Result<Value> = self
            .call_within(Duration::from_secs(2), "Target.getTargetInfo", json!({}))
            .await;
        if let Ok(info) = info {
            let title = info["targetInfo"]["title"].as_str().unwrap_or_default();
            self.with(|tab| tab.title = crate::text::one_line(title, 200))?;
        }
        self.with(|tab| NavigationResult {
            url: tab.url(),
            title: tab.title.clone(),
            status: tab.status,
            busy,
        })
    }

    /// Returns the execution context of the isolated world in a frame.
    pub(crate) async fn world(&self, frame: &str) -> Result<i64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct IsolatedWorld {
            execution_context_id: i64,
        }
        let (known, loader) = self.with(|tab| {
            let frame = tab.frames.get(frame);
            (
                frame.and_then(|frame| frame.world),
                frame.map(|frame| frame.loader.clone()),
            )
        })?;
        if let Some(world) = known {
            return Ok(world);
        }
        let params = json!({"frameId": frame, "worldName": "haft"});
        let world: IsolatedWorld = self.call("Page.createIsolatedWorld", params).await?;
        self.with(|tab| {
            if let Some(frame) = tab.frames.get_mut(frame)
                && Some(&frame.loader) == loader.as_ref()
            {
                frame.world = Some(world.execution_context_id);
            }
        })?;
        Ok(world.execution_context_id)
    }

    /// Calls one of the crate's functions in the isolated world of a frame.
    pub(crate) async fn in_frame(
        &self,
        frame: &str,
        function: &str,
        limit: Duration,
    ) -> Result<Value> {
        let world = self.world(frame).await?;
        let params = json!({
            "functionDeclaration": function, "executionContextId": world,
            "awaitPromise": true, "returnByValue": true,
        });
        value_of(
            self.call_within(limit, "Runtime.callFunctionOn", params)
                .await?,
        )
    }

    /// Calls one of the crate's functions on an element.
    pub(crate) async fn call_on_element(
        &self,
        element: &PageElement,
        function: &str,
        arguments: Value,
    ) -> Result<Value> {
        let params = json!({
            "functionDeclaration": function, "objectId": element.object, "arguments": arguments,
            "awaitPromise": true, "returnByValue": true, "userGesture": true,
        });
        value_of(self.call("Runtime.callFunctionOn", params).await?)
    }

    /// Returns the element of a ref, if it still exists.
    pub(crate) async fn element(&self, number: u32) -> Result<PageElement> {
        let (entry, was_given) = {
            let state = self.shared.state();
            (
                state.refs.get(number).cloned(),
                state.refs.was_assigned(number),
            )
        };
        let gone = |why: &str| ChromiumError::Gone {
            number,
            why: why.to_owned(),
        };
        let Some(entry) = entry else {
            return Err(if was_given {
                gone("its page no longer exists")
            } else {
                unusable(format!(
                    "e{number} is not a ref of a snapshot. Take a snapshot."
                ))
            });
        };
        if entry.tab != self.number {
            return Err(unusable(format!(
                "e{number} belongs to tab {}; select it with the action tabs.",
                entry.tab
            )));
        }
        let (loader, url) = self.with(|tab| {
            let frame = tab.frames.get(&entry.frame);
            (frame.map(|frame| frame.loader.clone()), tab.url())
        })?;
        if loader.as_ref() != Some(&entry.loader) {
            let why = if url == entry.url {
                format!("the page at {url} was loaded again")
            } else {
                format!("the page navigated from {} to {url}", entry.url)
            };
            return Err(gone(&why));
        }
        let object = self.object(entry.node, &entry.frame).await;
        let object = match object {
            Ok(object) => object,
            Err(ChromiumError::Protocol { .. }) => {
                return Err(gone("its element was removed from the page"));
            }
            Err(other) => return Err(other),
        };
        let element = PageElement {
            number,
            entry,
            object,
        };
        let connected = self
            .call_on_element(
                &element,
                "function() { return this.isConnected }",
                json!([]),
            )
            .await;
        match connected {
            Ok(Value::Bool(true)) => Ok(element),
            Ok(_) | Err(ChromiumError::Protocol { .. }) => {
                Err(gone("its element was removed from the page"))
            }
            Err(other) => Err(other),
        }
    }

    /// Resolves a node in the isolated world of its frame.
    pub(crate) async fn object(&self, node: i64, frame: &str) -> Result<String> {
        let world = self.world(frame).await?;
        let params = json!({"backendNodeId": node, "executionContextId": world});
        let found: Value = self.call("DOM.resolveNode", params).await?;
        let object = found["object"]["objectId"].as_str();
        object
            .map(str::to_owned)
            .ok_or_else(|| ChromiumError::Protocol {
                method: "DOM.resolveNode".to_owned(),
                message: "no object".to_owned(),
            })
    }
}

fn value_of(evaluated: Value) -> Result<Value> {
    let evaluated: EvaluationResponse =
        serde_json::from_value(evaluated).map_err(|error| ChromiumError::Protocol {
            method: "Runtime.callFunctionOn".to_owned(),
            message: error.to_string(),
        })?;
    match evaluated.exception_details {
        Some(details) => Err(ChromiumError::Protocol {
            method: "Runtime.callFunctionOn".to_owned(),
            message: crate::logs::exception_text(&details),
        }),
        None => Ok(evaluated
            .result
            .get("value")
            .cloned()
            .unwrap_or(Value::Null)),
    }
}
