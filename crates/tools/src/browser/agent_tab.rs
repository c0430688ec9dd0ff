//! The tab of a subagent: all agents of a session share one browser, but each has its own page.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use haft_browser::{Chromium, ChromiumError, Tab};
use haft_contract::CallContext;

use super::BrowserSession;

/// The tabs of a subagent. This is a separate service; an agent without it uses the selected tab.
/// The tabs are closed when it is dropped.
pub(crate) struct AgentTab {
    session: Weak<BrowserSession>,
    held: Mutex<Option<AgentTabState>>,
}

#[derive(Clone, Copy)]
struct AgentTabState {
    /// The number of the browser in the session: tab numbers restart with each browser.
    browser: u64,
    /// The number of its first tab, which identifies all of its tabs.
    owner: u32,
    current: u32,
}

impl AgentTab {
    pub(crate) fn new(session: &Arc<BrowserSession>) -> Self {
        Self {
            session: Arc::downgrade(session),
            held: Mutex::default(),
        }
    }

    fn held(&self, browser: u64) -> Option<AgentTabState> {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.filter(|held| held.browser == browser)
    }

    fn hold(&self, browser: u64, owner: u32, current: u32) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(AgentTabState {
            browser,
            owner,
            current,
        });
    }
}

impl Drop for AgentTab {
    fn drop(&mut self) {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(session), Some(held)) = (self.session.upgrade(), held) {
            session.close_tabs_of(held.browser, held.owner);
        }
    }
}

/// The tabs of the agent that makes a call.
pub(super) struct AgentTabs<'a> {
    pub(super) browser: &'a Chromium,
    /// The number of the browser in the session.
    pub(super) count: u64,
    agent: Option<Arc<AgentTab>>,
}

impl<'a> AgentTabs<'a> {
    pub(super) fn for_call(cx: &CallContext, browser: &'a Chromium, count: u64) -> Self {
        Self {
            browser,
            count,
            agent: cx.services.get::<AgentTab>().ok(),
        }
    }

    fn owner(&self) -> Option<u32> {
        self.agent.as_ref()?.held(self.count).map(|held| held.owner)
    }

    /// Returns whether a tab with this owner belongs to this agent.
    pub(super) fn has(&self, owner: Option<u32>) -> bool {
        match &self.agent {
            None => owner.is_none(),
            Some(_) => owner.is_some() && owner == self.owner(),
        }
    }

    /// Returns the number of the agent's current tab, if any.
    pub(super) fn current(&self) -> Option<u32> {
        let tabs = self.browser.tabs();
        match &self.agent {
            None => tabs.iter().find(|tab| tab.selected).map(|tab| tab.number),
            Some(agent) => {
                let held = agent.held(self.count)?;
                let own = |wanted: Option<u32>| {
                    let mut all = tabs.iter().filter(|tab| tab.owner == Some(held.owner));
                    all.find(|tab| wanted.is_none_or(|wanted| wanted == tab.number))
                        .map(|tab| tab.number)
                };
                own(Some(held.current)).or_else(|| own(None))
            }
        }
    }

    /// Returns the agent's current tab; opens one if it has none.
    pub(super) async fn tab(&self) -> Result<Tab, ChromiumError> {
        match (self.current(), &self.agent) {
            (Some(number), _) => self.browser.tab(number).await,
            (None, None) => self.browser.selected().await,
            (None, Some(_)) => self.open().await,
        }
    }

    /// Opens a tab and makes it the current one.
    pub(super) async fn open(&self) -> Result<Tab, ChromiumError> {
        let Some(agent) = &self.agent else {
            return self.browser.open().await;
        };
        let owner = self.owner();
        let tab = self.browser.open_apart(owner).await?;
        agent.hold(self.count, owner.unwrap_or(tab.number()), tab.number());
        Ok(tab)
    }

    /// Makes a tab the current one.
    pub(super) async fn select(&self, number: u32) -> Result<Tab, ChromiumError> {
        self.check(number)?;
        match (&self.agent, self.owner()) {
            (Some(agent), Some(owner)) => {
                let tab = self.browser.tab(number).await?;
                agent.hold(self.count, owner, number);
                Ok(tab)
            }
            _ => self.browser.select(number).await,
        }
    }

    pub(super) async fn close(&self, number: u32) -> Result<(), ChromiumError> {
        self.check(number)?;
        self.browser.close_tab(number).await
    }

    /// Fails if a tab belongs to another agent. A missing tab is reported by the browser.
    fn check(&self, number: u32) -> Result<(), ChromiumError> {
        let tabs = self.browser.tabs();
        let found = tabs.iter().find(|tab| tab.number == number);
        match found.is_none_or(|tab| self.has(tab.owner)) {
            true => Ok(()),
            false => Err(ChromiumError::Unusable(format!(
                "Tab {number} is another agent's."
            ))),
        }
    }
}
