//! Waits until the effects of an action or a navigation have finished.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    error::{ChromiumError, Result},
    state::{DownloadState, PageDownload},
    tab::Tab,
};

/// The time limit for a loading page to become quiet.
pub(crate) const LOADS: Duration = Duration::from_secs(10);
/// The time without requests after which a loaded page is quiet.
const NO_REQUESTS: Duration = Duration::from_millis(500);
/// The time limit for a page to stop changing after an action.
const CHANGES: Duration = Duration::from_secs(2);
/// The time without changes of elements after which a page has stopped changing, in milliseconds.
const NO_CHANGES_MS: u64 = 200;

/// The counters of a tab before an action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettleBaseline {
    pub(crate) begun: u64,
    pub(crate) committed: u64,
    downloads: u64,
}

/// The effect of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettleOutcome {
    /// The tab shows the same page, perhaps changed.
    Nothing,
    /// The tab shows another page.
    Page,
    /// The action started a navigation that turned into a download.
    File,
}

impl Tab {
    /// Waits until the document is loaded and then for half a second without requests. Returns
    /// false at the time limit.
    pub(crate) async fn wait_until_loaded(&self, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            let quiet = self.with(|tab| {
                if tab.crashed {
                    return Err(ChromiumError::Crashed);
                }
                if let Some(dialog) = &tab.dialog {
                    return Err(ChromiumError::DialogOpen {
                        kind: dialog.kind.clone(),
                        message: dialog.message.clone(),
                    });
                }
                let calm =
                    tab.dom_ready && tab.pending_verdicts == 0 && tab.requests.open.is_empty();
                Ok(calm.then(|| tab.last_request.elapsed()))
            })??;
            let step = match quiet {
                Some(quiet) if quiet >= NO_REQUESTS => return Ok(true),
                Some(quiet) => NO_REQUESTS - quiet,
                None => NO_REQUESTS,
            };
            if Instant::now() >= deadline {
                return Ok(false);
            }
            let next = deadline.min(Instant::now() + step);
            // Wakes at the first relevant change, or when it is time to check again.
            let was_calm = quiet.is_some();
            self.shared
                .wait_until(next, |state| {
                    let tab = state.tabs.get(&self.number);
                    let Some(tab) = tab else { return Some(()) };
                    let calm =
                        tab.dom_ready && tab.pending_verdicts == 0 && tab.requests.open.is_empty();
                    (tab.crashed || tab.dialog.is_some() || calm != was_calm).then_some(())
                })
                .await?;
        }
    }

    pub(crate) fn settle_baseline(&self) -> Result<SettleBaseline> {
        self.with(|tab| {
            tab.refusals.clear();
            tab.alerts = 0;
            SettleBaseline {
                begun: tab.begun,
                committed: tab.committed,
                downloads: tab.downloads,
            }
        })
    }

    /// Waits until the effects of an action have finished. Returns true if the tab shows another
    /// page.
    pub(crate) async fn wait_until_settled(&self, before: SettleBaseline) -> Result<bool> {
        let mut came = self.outcome_since(before).await?;
        if came == SettleOutcome::File {
            self.wait_for_downloads().await?;
            // Besides the download, the page may react like after any action. This is checked only
            // once, because a page may start downloads indefinitely.
            let since = self.with(|tab| SettleBaseline {
                begun: tab.begun,
                downloads: tab.downloads,
                ..before
            })?;
            came = self.outcome_since(since).await?;
        }
        Ok(came == SettleOutcome::Page)
    }

    async fn outcome_since(&self, before: SettleBaseline) -> Result<SettleOutcome> {
        let deadline = Instant::now() + CHANGES;
        let quiet = self.wait_until_unchanged();
        let begun = self.shared.wait_until(deadline, |state| {
            let tab = state.tabs.get(&self.number)?;
            (tab.begun > before.begun || tab.committed > before.committed || tab.crashed)
                .then_some(())
        });
        let navigates = tokio::select! {
            biased;
            begun = begun => begun?.is_some(),
            quiet = quiet => match quiet {
                Err(ChromiumError::Protocol { .. } | ChromiumError::Timeout { .. }) | Ok(()) => {
                    self.with(|tab| tab.begun > before.begun || tab.committed > before.committed)?
                }
                Err(other) => return Err(other),
            },
        };
        if !navigates {
            return Ok(SettleOutcome::Nothing);
        }
        let arrived = self.with_pausable_timeout(LOADS, "the navigation", async {
            let far = Instant::now() + LOADS;
            let arrived = self.shared.wait_until(far, |state| {
                let Some(tab) = state.tabs.get(&self.number) else {
                    return Some(());
                };
                let is_over = tab.committed > before.committed || tab.downloads > before.downloads;
                (is_over || !tab.refusals.is_empty() || tab.crashed).then_some(())
            });
            arrived.await.map(drop)
        });
        arrived.await?;
        let (refused, committed) =
            self.with(|tab| (tab.refusals.pop(), tab.committed > before.committed))?;
        if let Some(why) = refused {
            return Err(ChromiumError::Refused(why));
        }
        if !committed && self.with(|tab| tab.downloads > before.downloads)? {
            return Ok(SettleOutcome::File);
        }
        self.wait_until_loaded(LOADS).await?;
        Ok(if committed {
            SettleOutcome::Page
        } else {
            SettleOutcome::Nothing
        })
    }

    /// Waits up to two seconds for running downloads, so that small ones finish.
    async fn wait_for_downloads(&self) -> Result<()> {
        let deadline = Instant::now() + CHANGES;
        let ended = self.shared.wait_until(deadline, |state| {
            let runs = |download: &PageDownload| download.state == DownloadState::Running;
            (!state.downloads.iter().any(runs)).then_some(())
        });
        ended.await.map(drop)
    }

    /// Waits until no element has changed for 200 ms, at most two seconds. It also waits for
    /// requests that started in that time.
    async fn wait_until_unchanged(&self) -> Result<()> {
        let script = format!(
            "() => new Promise(done => {{
                let timer = 0;
                const end = () => {{ observer.disconnect(); done(); }};
                const again = () => {{ clearTimeout(timer); timer = setTimeout(end, {NO_CHANGES_MS}); }};
                const observer = new MutationObserver(again);
                observer.observe(document, {{subtree: true, childList: true, attributes: true, characterData: true}});
                again();
                setTimeout(end, {});
            }})",
            CHANGES.as_millis()
        );
        let deadline = Instant::now() + CHANGES;
        loop {
            let main = self.with(|tab| tab.main.clone())?;
            self.in_frame(&main, &script, CHANGES + Duration::from_secs(3))
                .await?;
            let open = self.with(|tab| !tab.requests.open.is_empty())?;
            if !open || Instant::now() >= deadline {
                return Ok(());
            }
            self.shared
                .wait_until(deadline, |state| {
                    let tab = state.tabs.get(&self.number);
                    tab.is_none_or(|tab| tab.requests.open.is_empty())
                        .then_some(())
                })
                .await?;
        }
    }
}
