//! A running Chromium: its connection and its tabs.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{
    cdp_pipe::{CdpConnection, CdpMessageReader, IgnoredResult, within},
    error::{ChromiumError, Result, unusable},
    events,
    request_interceptor::RequestInterceptor,
    state::{BrowserState, PageDialog, PageDownload},
    tab::Tab,
};

/// The time limit of a command that involves no page.
pub(crate) const ANSWERS: Duration = Duration::from_secs(20);
/// The time after which an unanswered dialog is dismissed.
const DIALOG_WAITS: Duration = Duration::from_secs(60);
const VIEWPORT: (u32, u32) = (1280, 800);

/// The options of a browser besides its pipe.
pub struct ChromiumOptions {
    /// Decides about requests of pages.
    pub interceptor: Arc<dyn RequestInterceptor>,
    /// The folder for downloads, as a path that the browser process sees. Without it, downloads are
    /// refused.
    pub downloads: Option<String>,
}

/// A browser. When the last handle is dropped, its pipe closes and the process exits.
#[derive(Clone)]
pub struct Chromium {
    pub(crate) shared: Arc<ChromiumShared>,
}

pub(crate) struct ChromiumShared {
    pub(crate) wire: CdpConnection,
    state: Mutex<BrowserState>,
    changes: watch::Sender<u64>,
    pub(crate) interceptor: Arc<dyn RequestInterceptor>,
}

/// A tab, as shown in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabInfo {
    /// The number of the tab. It is never reused in this browser.
    pub number: u32,
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// True if actions go to this tab.
    pub selected: bool,
    /// The open dialog, if any.
    pub dialog: Option<PageDialog>,
    /// The address that the opening page had when it opened the tab. That page may also have
    /// written the contents of an empty tab.
    pub opened_by: Option<String>,
    /// The owner of the tab if it was opened with [`Chromium::open_apart`]; see there.
    pub owner: Option<u32>,
}

impl Chromium {
    /// Connects to a Chromium that was started with `--remote-debugging-pipe=cbor`. `reader` yields
    /// the messages from Chromium, and `writer` takes the messages to it.
    ///
    /// # Errors
    /// The process exits or does not answer.
    pub async fn connect(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: ChromiumOptions,
    ) -> Result<Self> {
        let shared = Arc::new(ChromiumShared {
            wire: CdpConnection::new(writer),
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            interceptor: options.interceptor,
        });
        tokio::spawn(read(CdpMessageReader::new(reader), Arc::downgrade(&shared)));
        let this = Self { shared };
        this.call("Browser.getVersion", json!({})).await?;
        // No permission is granted, so every permission request is denied.
        this.call("Browser.grantPermissions", json!({"permissions": []}))
            .await?;
        let downloads = match options.downloads {
            Some(folder) => {
                json!({"behavior": "allowAndName", "downloadPath": folder, "eventsEnabled": true})
            }
            None => json!({"behavior": "deny"}),
        };
        this.call("Browser.setDownloadBehavior", downloads).await?;
        this.call("Target.setDiscoverTargets", json!({"discover": true}))
            .await?;
        this.call(
            "Target.setAutoAttach",
            json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true}),
        )
        .await?;
        Ok(this)
    }

    async fn call(&self, method: &str, params: Value) -> Result<()> {
        let answer = self.shared.wire.call::<IgnoredResult>(None, method, params);
        within(ANSWERS, method, answer).await.map(drop)
    }

    /// Returns whether the process has exited.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.shared.wire.ended()
    }

    /// Asks the process to exit. Closing the pipe has the same effect.
    pub async fn close(&self) {
        let answer = self
            .shared
            .wire
            .call::<IgnoredResult>(None, "Browser.close", json!({}));
        drop(within(Duration::from_secs(2), "close", answer).await);
    }

    /// Returns all tabs.
    #[must_use]
    pub fn tabs(&self) -> Vec<TabInfo> {
        let state = self.shared.state();
        let info = |(number, tab): (&u32, &crate::state::TabState)| TabInfo {
            number: *number,
            url: tab.url(),
            title: tab.title.clone(),
            selected: *number == state.selected,
            dialog: tab.dialog.clone(),
            opened_by: tab.opened_by.clone(),
            owner: tab.owner,
        };
        state.tabs.iter().map(info).collect()
    }

    /// Returns the notices since the last call, for example about alerts, new tabs and cancelled
    /// downloads.
    #[must_use]
    pub fn take_notices(&self) -> Vec<String> {
        self.shared.state().take_notices()
    }

    /// Returns the downloads that have ended since the last call.
    #[must_use]
    pub fn take_downloads(&self) -> Vec<PageDownload> {
        let mut state = self.shared.state();
        let all = std::mem::take(&mut state.downloads);
        let (running, ended) = all
            .into_iter()
            .partition(|download| download.state == crate::state::DownloadState::Running);
        state.downloads = running;
        ended
    }

    /// Returns the tab that actions go to, and opens one if necessary.
    ///
    /// # Errors
    /// The process exited or does not answer.
    pub async fn selected(&self) -> Result<Tab> {
        let number = {
            let state = self.shared.state();
            Some(state.selected).filter(|number| state.tabs.contains_key(number))
        };
        match number {
            Some(number) => self.ready(number).await,
            None => self.open().await,
        }
    }

    /// Opens an empty tab and selects it.
    ///
    /// # Errors
    /// The process exited or does not answer.
    pub async fn open(&self) -> Result<Tab> {
        let tab = self.create(None).await?;
        self.select(tab.number).await
    }

    /// Opens an empty tab that is never selected automatically, because it has another owner than
    /// the selected tab. `owner` is the number of that owner's first tab, or
    /// `None` for a new owner. Tabs opened by the owner's pages belong to the owner too.
    ///
    /// # Errors
    /// The process exited or does not answer.
    pub async fn open_apart(&self, owner: Option<u32>) -> Result<Tab> {
        let tab = self.create(Some(owner)).await?;
        tab.bring_to_front().await?;
        Ok(tab)
    }

    /// Returns the tab with this number.
    ///
    /// # Errors
    /// The tab does not exist, or the process does not answer.
    pub async fn tab(&self, number: u32) -> Result<Tab> {
        self.ready(number).await
    }

    /// Asks Chromium to close all tabs of an owner, without waiting for that. Does nothing outside
    /// of a Tokio runtime.
    pub fn close_apart(&self, owner: u32) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let targets: Vec<String> = {
            let state = self.shared.state();
            let tabs = state.tabs.values().filter(|tab| tab.owner == Some(owner));
            tabs.map(|tab| tab.target.clone()).collect()
        };
        for target in targets {
            self.shared
                .send(None, "Target.closeTarget", json!({"targetId": target}));
        }
    }

    /// Creates a tab. `apart` is set for tabs with an owner; its inner value is the owner, or
    /// `None` to make the new tab the first of a new owner.
    async fn create(&self, apart: Option<Option<u32>>) -> Result<Tab> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CreatedTarget {
            target_id: String,
        }
        let created = self.shared.wire.call::<CreatedTarget>(
            None,
            "Target.createTarget",
            json!({"url": "about:blank"}),
        );
        let created = within(ANSWERS, "a new tab", created).await?;
        let found = self.shared.wait_until(Instant::now() + ANSWERS, |state| {
            let mut tabs = state.tabs.iter_mut();
            let (number, tab) = tabs.find(|(_, tab)| tab.target == created.target_id)?;
            let number = *number;
            tab.owner = apart.map(|owner| owner.unwrap_or(number));
            if apart.is_some() && state.selected == number {
                state.select_first();
            }
            Some(number)
        });
        let number = found.await?.ok_or_else(|| {
            unusable("The tab was not opened: too many tabs are open. Close one.")
        })?;
        self.ready(number).await
    }

    /// Makes actions go to this tab.
    ///
    /// # Errors
    /// The tab does not exist, or the process does not answer.
    pub async fn select(&self, number: u32) -> Result<Tab> {
        let tab = self.ready(number).await?;
        self.shared.state().selected = number;
        tab.bring_to_front().await?;
        Ok(tab)
    }

    /// Closes a tab.
    ///
    /// # Errors
    /// The tab does not exist, or the process does not answer.
    pub async fn close_tab(&self, number: u32) -> Result<()> {
        let target = {
            let state = self.shared.state();
            let tab = state.tabs.get(&number);
            tab.map(|tab| tab.target.clone())
                .ok_or_else(|| no_tab(number))?
        };
        self.call("Target.closeTarget", json!({"targetId": target}))
            .await?;
        let gone = self
            .shared
            .wait_until(Instant::now() + Duration::from_secs(5), |state| {
                (!state.tabs.contains_key(&number)).then_some(())
            });
        gone.await?
            .ok_or_else(|| unusable(format!("tab {number} does not close")))
    }

    async fn ready(&self, number: u32) -> Result<Tab> {
        let ready = self.shared.wait_until(Instant::now() + ANSWERS, |state| {
            match state.tabs.get(&number) {
                None => Some(Err(no_tab(number))),
                Some(tab) if tab.ready || tab.crashed => Some(Ok(tab.session.clone())),
                Some(_) => None,
            }
        });
        let session = ready.await?.ok_or_else(|| ChromiumError::Timeout {
            what: format!("tab {number}"),
            after: ANSWERS,
        })??;
        Ok(Tab {
            shared: Arc::clone(&self.shared),
            number,
            session,
        })
    }
}

fn no_tab(number: u32) -> ChromiumError {
    unusable(format!(
        "Tab {number} does not exist; the action tabs lists the open tabs."
    ))
}

async fn read(
    mut messages: CdpMessageReader<impl AsyncRead + Unpin>,
    shared: Weak<ChromiumShared>,
) {
    while let Some(message) = messages.next().await {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let Some(event) = shared.wire.take(message) {
            events::apply(&shared, event);
        }
    }
    if let Some(shared) = shared.upgrade() {
        shared.wire.end();
        shared.changed();
    }
}

impl ChromiumShared {
    pub(crate) fn state(&self) -> MutexGuard<'_, BrowserState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changed(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Waits until `find` returns a value. Returns `None` at the deadline.
    pub(crate) async fn wait_until<T>(
        &self,
        deadline: Instant,
        mut find: impl FnMut(&mut BrowserState) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(found) = find(&mut self.state()) {
                return Ok(Some(found));
            }
            if self.wire.ended() {
                return Err(ChromiumError::Ended);
            }
            match timeout_at(deadline, changes.changed()).await {
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Sends a command and ignores its answer.
    pub(crate) fn send(
        self: &Arc<Self>,
        session: Option<String>,
        method: &'static str,
        params: Value,
    ) {
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let answer = shared
                .wire
                .call::<IgnoredResult>(session.as_deref(), method, params);
            drop(within(ANSWERS, method, answer).await);
        });
    }

    /// Configures a new tab before anything in it runs.
    pub(crate) async fn prepare_tab(self: &Arc<Self>, number: u32) {
        let Some(session) = self
            .state()
            .tabs
            .get(&number)
            .map(|tab| tab.session.clone())
        else {
            return;
        };
        let commands = [
            ("Page.enable", json!({})),
            (
                "Page.setInterceptFileChooserDialog",
                json!({"enabled": true}),
            ),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            (
                "Network.enable",
                json!({"maxTotalBufferSize": 20 << 20, "maxResourceBufferSize": 5 << 20}),
            ),
            ("DOM.enable", json!({})),
            (
                "Fetch.enable",
                // Pause documents, and every request to this machine or to the host of served
                // files.
                json!({"patterns": [
                    {"resourceType": "Document"},
                    {"urlPattern": "*://localhost*"},
                    {"urlPattern": "*://*.localhost*"},
                    {"urlPattern": "*://127.*"},
                    {"urlPattern": "*://[::1]*"},
                ]}),
            ),
            (
                "Emulation.setFocusEmulationEnabled",
                json!({"enabled": true}),
            ),
            (
                "Emulation.setDeviceMetricsOverride",
                json!({"width": VIEWPORT.0, "height": VIEWPORT.1, "deviceScaleFactor": 1, "mobile": false}),
            ),
        ];
        // A page that waits for the debugger answers some of these only after it runs, so no answer
        // is awaited.
        for (method, params) in commands {
            self.wire.post(&session, method, params).await;
        }
        for (method, params) in [
            ("Runtime.runIfWaitingForDebugger", json!({})),
            ("Page.getFrameTree", json!({})),
        ] {
            let call = self.wire.call::<Value>(Some(&session), method, params);
            let Ok(Ok(answer)) = tokio::time::timeout(ANSWERS, call).await else {
                continue;
            };
            let frame = &answer["frameTree"]["frame"];
            let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
            if let Some(tab) = self.state().tabs.get_mut(&number)
                && frame.is_object()
            {
                tab.main = text("id");
                let known = tab.frames.entry(text("id")).or_default();
                if known.loader.is_empty() {
                    known.loader = text("loaderId");
                    known.url = text("url");
                }
            }
        }
        if let Some(tab) = self.state().tabs.get_mut(&number) {
            tab.ready = true;
        }
        self.changed();
    }

    pub(crate) async fn dismiss_later(self: Arc<Self>, number: u32, session: String, dialogs: u64) {
        let answered = self.wait_until(Instant::now() + DIALOG_WAITS, |state| {
            match state.tabs.get(&number) {
                Some(tab) if tab.dialog.is_some() && tab.dialogs == dialogs => None,
                _ => Some(()),
            }
        });
        if matches!(answered.await, Ok(None)) {
            let no = json!({"accept": false});
            self.state()
                .add_notice("a dialog that waited for 60 s was dismissed".to_owned());
            let answer =
                self.wire
                    .call::<IgnoredResult>(Some(&session), "Page.handleJavaScriptDialog", no);
            drop(within(ANSWERS, "the dialog", answer).await);
        }
    }
}
