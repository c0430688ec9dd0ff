//! Applies Chromium's events to the state.

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};

use crate::{
    cdp_pipe::{CdpEvent, IgnoredResult},
    chromium::{ANSWERS, ChromiumShared},
    request_interceptor::{BrowserRequest, RequestVerdict},
    state::{BrowserState, DownloadState, PageDialog, PageDownload, PageFrame, TabState},
    text::one_line,
};

/// The maximum number of tabs. Further tabs are closed as they open.
const MAX_TABS: usize = 8;
const MAX_DOWNLOAD: u64 = 100 << 20;
const MAX_DOWNLOADS: usize = 100;
const MAX_FRAMES: usize = 500;
/// The maximum number of alerts of one action that are reported individually.
const MAX_ALERTS: u32 = 50;

pub(crate) fn apply(shared: &Arc<ChromiumShared>, event: CdpEvent) {
    let params = &event.params;
    let mut state = shared.state();
    let tab = event
        .session
        .as_ref()
        .and_then(|session| state.sessions.get(session).copied());
    match (event.method.as_str(), tab) {
        ("Target.attachedToTarget", _) => attached(shared, &mut state, params),
        ("Target.detachedFromTarget", _) => {
            let session = params["sessionId"].as_str().unwrap_or_default();
            if let Some(tab) = state.sessions.remove(session) {
                state.tabs.remove(&tab);
                if state.selected == tab {
                    state.select_first();
                }
            }
        }
        ("Target.targetInfoChanged", _) => {
            let info = &params["targetInfo"];
            let tab = state
                .tabs
                .values_mut()
                .find(|tab| info["targetId"] == tab.target.as_str());
            if let Some(tab) = tab {
                tab.title = one_line(info["title"].as_str().unwrap_or_default(), 200);
            }
        }
        ("Target.targetCrashed", _) => {
            let tab = state
                .tabs
                .values_mut()
                .find(|tab| params["targetId"] == tab.target.as_str());
            if let Some(tab) = tab {
                tab.crash_by_browser();
            }
        }
        ("Browser.downloadWillBegin", _) => download_begins(&mut state, params),
        ("Browser.downloadProgress", _) => download_goes_on(shared, &mut state, params),
        (method, Some(number)) => apply_tab_event(shared, &mut state, number, method, params),
        _ => {}
    }
    drop(state);
    shared.changed();
}

fn attached(shared: &Arc<ChromiumShared>, state: &mut BrowserState, params: &Value) {
    let info = &params["targetInfo"];
    let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
    let target = info["targetId"].as_str().unwrap_or_default().to_owned();
    if info["type"] != "page" {
        // Workers and other targets run as they would without a debugger.
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let wire = &shared.wire;
            drop(
                wire.call::<IgnoredResult>(
                    Some(&session),
                    "Runtime.runIfWaitingForDebugger",
                    json!({}),
                )
                .await,
            );
            drop(
                wire.call::<IgnoredResult>(
                    None,
                    "Target.detachFromTarget",
                    json!({"sessionId": session}),
                )
                .await,
            );
        });
        return;
    }
    if state.tabs.len() >= MAX_TABS {
        state.add_notice(format!(
            "a page opened another tab, which was closed: {MAX_TABS} are open"
        ));
        shared.send(None, "Target.closeTarget", json!({"targetId": target}));
        return;
    }
    state.last_tab += 1;
    let number = state.last_tab;
    let mut tab = TabState::new(target, session.clone());
    if let Some(opener) = info["openerId"].as_str() {
        let mut tabs = state.tabs.iter();
        let opener = tabs.find(|(_, tab)| tab.target == opener);
        let by = opener.map_or_else(
            || "the page".to_owned(),
            |(number, _)| format!("tab {number}"),
        );
        tab.opened_by = opener.map(|(_, tab)| tab.opened_by_or_url());
        tab.owner = opener.and_then(|(_, tab)| tab.owner);
        state.add_notice(format!("{by} opened tab {number} (not selected)"));
    }
    let main = tab.main.clone();
    tab.frames.insert(
        main,
        PageFrame {
            url: info["url"].as_str().unwrap_or("about:blank").to_owned(),
            ..PageFrame::default()
        },
    );
    let apart = tab.owner.is_some();
    state.tabs.insert(number, tab);
    state.sessions.insert(session, number);
    if state.selected == 0 && !apart {
        state.selected = number;
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move { shared.prepare_tab(number).await });
}

fn download_begins(state: &mut BrowserState, params: &Value) {
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    let of = |tab: &&mut TabState| tab.main == text("frameId");
    if let Some(tab) = state.tabs.values_mut().find(of) {
        tab.downloads += 1;
    }
    if state.downloads.len() == MAX_DOWNLOADS {
        state.downloads.remove(0);
    }
    state.downloads.push(PageDownload {
        guid: text("guid").to_owned(),
        name: one_line(text("suggestedFilename"), 200),
        url: one_line(text("url"), 500),
        bytes: 0,
        state: DownloadState::Running,
    });
}

fn download_goes_on(shared: &Arc<ChromiumShared>, state: &mut BrowserState, params: &Value) {
    let guid = params["guid"].as_str().unwrap_or_default();
    let Some(download) = state
        .downloads
        .iter_mut()
        .find(|download| download.guid == guid)
    else {
        return;
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of bytes"
    )]
    let bytes = params["receivedBytes"].as_f64().unwrap_or(0.0).max(0.0) as u64;
    download.bytes = bytes;
    match params["state"].as_str() {
        Some("completed") => download.state = DownloadState::Complete,
        Some("canceled") => download.state = DownloadState::Canceled,
        _ if bytes > MAX_DOWNLOAD => {
            shared.send(None, "Browser.cancelDownload", json!({"guid": guid}));
            let notice = format!(
                "a download was cancelled: larger than {} MB",
                MAX_DOWNLOAD >> 20
            );
            state.add_notice(notice);
        }
        _ => {}
    }
}

fn apply_tab_event(
    shared: &Arc<ChromiumShared>,
    state: &mut BrowserState,
    number: u32,
    method: &str,
    params: &Value,
) {
    if method == "Page.javascriptDialogOpening" {
        return dialog(shared, state, number, params);
    }
    if method == "Page.fileChooserOpened" {
        return state.add_notice(
            "the page asks for a file: use the action upload with the ref of its field".to_owned(),
        );
    }
    if method == "Fetch.requestPaused" {
        return paused(shared, state, number, params);
    }
    let Some(tab) = state.tabs.get_mut(&number) else {
        return;
    };
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    match method {
        "Page.javascriptDialogClosed" => tab.dialog = None,
        "Page.frameAttached" if tab.frames.len() < MAX_FRAMES => {
            let frame = tab.frames.entry(text("frameId").to_owned()).or_default();
            frame.parent = params["parentFrameId"].as_str().map(str::to_owned);
        }
        "Page.frameDetached" if text("frameId") != tab.main => {
            tab.frames.remove(text("frameId"));
        }
        "Page.frameNavigated" => {
            frame_navigated(tab, &params["frame"]);
            if text("type") == "BackForwardCacheRestore" && params["frame"]["parentId"].is_null() {
                let (session, committed) = (tab.session.clone(), tab.committed);
                tokio::spawn(restore_cached_page(
                    Arc::clone(shared),
                    number,
                    session,
                    committed,
                ));
            }
        }
        "Page.navigatedWithinDocument" => {
            if let Some(frame) = tab.frames.get_mut(text("frameId")) {
                frame.url = text("url").to_owned();
            }
        }
        "Page.frameStartedNavigating" | "Page.frameRequestedNavigation" => {
            let within = matches!(
                text("navigationType"),
                "sameDocument" | "historySameDocument"
            );
            if text("frameId") == tab.main && !within {
                tab.begun += 1;
            }
        }
        "Page.domContentEventFired" => tab.dom_ready = true,
        "Inspector.targetCrashed" => tab.crash_by_page(),
        "Runtime.consoleAPICalled" => tab.console.called(params),
        "Runtime.exceptionThrown" => tab.console.thrown(params),
        "Log.entryAdded" => tab.console.logged(params),
        "Input.dragIntercepted" => tab.drag = Some(params["data"].clone()),
        "Network.requestWillBeSent" => {
            tab.last_request = Instant::now();
            let is_page = text("type") == "Document" && text("frameId") == tab.main;
            if is_page && params.get("redirectResponse").is_none() {
                tab.document_request = Some(text("requestId").to_owned());
            }
            tab.requests.sent(params);
        }
        "Network.responseReceived" => {
            tab.last_request = Instant::now();
            if tab.document_request.as_deref() == params["requestId"].as_str() {
                let status = &params["response"]["status"];
                tab.status = status
                    .as_u64()
                    .and_then(|status| u16::try_from(status).ok());
            }
            tab.requests.answered(params);
        }
        "Network.loadingFinished" => {
            tab.last_request = Instant::now();
            tab.requests.finished(params);
        }
        "Network.loadingFailed" => {
            tab.last_request = Instant::now();
            tab.requests.failed(params);
        }
        "Network.webSocketCreated" => tab.requests.websocket(params),
        "Network.webSocketFrameError" | "Network.webSocketClosed" => tab.requests.failed(params),
        _ => {}
    }
}

fn frame_navigated(tab: &mut TabState, frame: &Value) {
    let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
    let id = text("id");
    let parent = frame["parentId"].as_str().map(str::to_owned);
    if parent.is_none() {
        tab.main.clone_from(&id);
        tab.frames.retain(|name, _| *name == id);
        tab.committed += 1;
        tab.dom_ready = false;
        tab.clear_crashes();
        tab.console.clear();
        let document = tab.document_request.clone();
        tab.requests.clear(document.as_deref());
    } else if tab.frames.len() >= MAX_FRAMES && !tab.frames.contains_key(&id) {
        return;
    }
    let url = match frame["unreachableUrl"].as_str() {
        Some(url) if !url.is_empty() => url.to_owned(),
        _ => text("url") + frame["urlFragment"].as_str().unwrap_or_default(),
    };
    tab.frames.insert(
        id,
        PageFrame {
            parent,
            url,
            loader: text("loaderId"),
            world: None,
        },
    );
}

/// Queries the frames of a page that was restored from the back-forward cache, and marks the page as
/// ready. No event reports either.
async fn restore_cached_page(
    shared: Arc<ChromiumShared>,
    number: u32,
    session: String,
    committed: u64,
) {
    let call = shared
        .wire
        .call::<Value>(Some(&session), "Page.getFrameTree", json!({}));
    let answer = tokio::time::timeout(ANSWERS, call).await;
    if let Some(tab) = shared.state().tabs.get_mut(&number)
        && tab.committed == committed
    {
        if let Ok(Ok(answer)) = &answer {
            let mut trees = vec![&answer["frameTree"]];
            while let Some(tree) = trees.pop() {
                for child in tree["childFrames"].as_array().into_iter().flatten() {
                    frame_navigated(tab, &child["frame"]);
                    trees.push(child);
                }
            }
        }
        tab.dom_ready = true;
    }
    shared.changed();
}

/// Handles a dialog. Alerts and leave confirmations are accepted immediately; other kinds wait for
/// an answer.
fn dialog(shared: &Arc<ChromiumShared>, state: &mut BrowserState, number: u32, params: &Value) {
    let kind = params["type"].as_str().unwrap_or_default().to_owned();
    let message = one_line(params["message"].as_str().unwrap_or_default(), 500);
    let Some(tab) = state.tabs.get_mut(&number) else {
        return;
    };
    let session = tab.session.clone();
    if matches!(kind.as_str(), "alert" | "beforeunload") {
        tab.alerts += 1;
        if tab.alerts <= MAX_ALERTS {
            let notice = match kind.as_str() {
                "alert" => format!("an alert showed \"{message}\" (accepted)"),
                _ => "the page asked whether to leave it (left)".to_owned(),
            };
            state.add_notice(notice);
        } else if tab.alerts == MAX_ALERTS + 1 {
            state.add_notice("more alerts followed".to_owned());
        }
        shared.send(
            Some(session),
            "Page.handleJavaScriptDialog",
            json!({"accept": true}),
        );
        return;
    }
    tab.dialogs += 1;
    tab.dialog = Some(PageDialog { kind, message });
    let (shared, dialogs) = (Arc::clone(shared), tab.dialogs);
    tokio::spawn(async move { shared.dismiss_later(number, session, dialogs).await });
}

/// Handles a paused request: a new task waits for the verdict and applies it.
fn paused(shared: &Arc<ChromiumShared>, state: &mut BrowserState, number: u32, params: &Value) {
    let Some(tab) = state.tabs.get_mut(&number) else {
        return;
    };
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    let is_page = text("resourceType") == "Document" && text("frameId") == tab.main;
    tab.pending_verdicts += 1;
    if is_page {
        tab.begun += 1;
    }
    let fragment = params["request"]["urlFragment"]
        .as_str()
        .unwrap_or_default();
    let request = BrowserRequest {
        url: params["request"]["url"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
            + fragment,
        method: params["request"]["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        is_page,
        from: tab.url(),
    };
    let (id, session) = (text("requestId").to_owned(), tab.session.clone());
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let verdict = shared.interceptor.intercept(&request).await;
        let (method, answer) = match &verdict {
            RequestVerdict::Pass => {
                if is_page {
                    let ignore = json!({"ignore": is_loopback_url(&request.url)});
                    let call = shared.wire.call::<IgnoredResult>(
                        Some(&session),
                        "Security.setIgnoreCertificateErrors",
                        ignore,
                    );
                    drop(call.await);
                }
                ("Fetch.continueRequest", json!({"requestId": id}))
            }
            // `Aborted` keeps the current page in the tab.
            RequestVerdict::Refuse(_) => (
                "Fetch.failRequest",
                json!({"requestId": id, "errorReason": if is_page { "Aborted" } else { "BlockedByClient" }}),
            ),
            RequestVerdict::Serve(file) => (
                "Fetch.fulfillRequest",
                json!({
                    "requestId": id,
                    "responseCode": file.status,
                    "responseHeaders": [
                        {"name": "Content-Type", "value": file.content_type},
                        {"name": "Cache-Control", "value": "no-store"},
                        {"name": "X-Content-Type-Options", "value": "nosniff"},
                    ],
                    "body": data_encoding::BASE64.encode(&file.body),
                }),
            ),
        };
        if let Some(tab) = shared.state().tabs.get_mut(&number) {
            tab.pending_verdicts = tab.pending_verdicts.saturating_sub(1);
            tab.last_request = Instant::now();
            if let RequestVerdict::Refuse(why) = verdict
                && is_page
                && tab.refusals.len() < 10
            {
                tab.refusals.push(why);
            }
        }
        shared.changed();
        drop(
            shared
                .wire
                .call::<IgnoredResult>(Some(&session), method, answer)
                .await,
        );
    });
}

/// Returns whether an address refers to this machine.
#[must_use]
pub fn is_loopback_url(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.parse::<std::net::IpAddr>();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_by_its_host() {
        for yes in [
            "http://localhost:3000/x",
            "https://127.0.0.1/",
            "http://[::1]:80/",
            "http://haft.localhost/a",
            "http://LOCALHOST./",
            "http://user@127.0.0.1:1/",
        ] {
            assert!(is_loopback_url(yes), "{yes}");
        }
        for no in [
            "http://localhost.example.com/",
            "http://127.0.0.1@evil.example/",
            "about:blank",
            "http://evil.example/?http://localhost/",
            "http://evil.example\\@localhost/",
        ] {
            assert!(!is_loopback_url(no), "{no}");
        }
    }
}
