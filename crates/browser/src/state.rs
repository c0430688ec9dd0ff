//! The state of the browser: its tabs, their frames, dialogs and loads. Events are applied in
//! order, and before the answer to any later command is processed.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Instant,
};

use crate::{
    logs::{ConsoleLog, RequestLog},
    refs::RefTable,
    snapshot::LastSnapshot,
};

/// The maximum number of notes that were not reported yet; the oldest are dropped.
const MAX_NOTES: usize = 40;

#[derive(Default)]
pub(crate) struct BrowserState {
    pub(crate) tabs: BTreeMap<u32, TabState>,
    pub(crate) sessions: HashMap<String, u32>,
    pub(crate) last_tab: u32,
    pub(crate) selected: u32,
    pub(crate) refs: RefTable,
    pub(crate) downloads: Vec<PageDownload>,
    notes: VecDeque<String>,
    dropped_notes: usize,
}

/// A dialog of a page that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    /// The message of the dialog.
    pub message: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PageFrame {
    pub(crate) parent: Option<String>,
    pub(crate) url: String,
    pub(crate) loader: String,
    /// The crate's isolated world in this document, which the page cannot modify.
    pub(crate) world: Option<i64>,
}

pub(crate) struct TabState {
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) main: String,
    pub(crate) frames: HashMap<String, PageFrame>,
    pub(crate) title: String,
    pub(crate) dialog: Option<PageDialog>,
    /// Counts dialogs, so that the timeout of one dialog does not dismiss another.
    pub(crate) dialogs: u64,
    pub(crate) crashed: bool,
    crashes: CrashReports,
    pub(crate) ready: bool,
    pub(crate) console: ConsoleLog,
    pub(crate) requests: RequestLog,
    /// The number of documents that the main frame started to load, and of those it has shown.
    pub(crate) begun: u64,
    pub(crate) committed: u64,
    /// The number of navigations that turned into downloads.
    pub(crate) downloads: u64,
    pub(crate) dom_ready: bool,
    pub(crate) last_request: Instant,
    /// The number of paused requests that wait for a verdict.
    pub(crate) pending_verdicts: u32,
    pub(crate) refusals: Vec<String>,
    pub(crate) status: Option<u16>,
    pub(crate) document_request: Option<String>,
    pub(crate) last_snapshot: Option<LastSnapshot>,
    pub(crate) drag: Option<serde_json::Value>,
    pub(crate) emulated: Option<crate::emulate::Emulation>,
    pub(crate) alerts: u32,
    /// The owner, as the number of its first tab. Tabs with an owner are not selected
    /// automatically.
    pub(crate) owner: Option<u32>,
    pub(crate) opened_by: Option<String>,
}

/// Counts crash reports. A crash is reported twice, by the page and by the browser. The second
/// report may come after the next navigation has started, and must not end that one.
#[derive(Debug, Default)]
struct CrashReports {
    by_page: u32,
    by_browser: u32,
    known: u32,
}

impl TabState {
    pub(crate) fn crash_by_page(&mut self) {
        self.crashes.by_page += 1;
        self.crash(self.crashes.by_page);
    }

    pub(crate) fn crash_by_browser(&mut self) {
        self.crashes.by_browser += 1;
        self.crash(self.crashes.by_browser);
    }

    fn crash(&mut self, reported: u32) {
        if reported > self.crashes.known {
            self.crashes.known = reported;
            self.crashed = true;
        }
    }

    /// Resets the crash state when another page is shown: both reports of an earlier crash have
    /// arrived by then.
    pub(crate) fn clear_crashes(&mut self) {
        self.crashed = false;
        self.crashes = CrashReports::default();
    }

    pub(crate) fn new(target: String, session: String) -> Self {
        Self {
            // The main frame of a page has the same id as its target.
            main: target.clone(),
            target,
            session,
            frames: HashMap::new(),
            title: String::new(),
            dialog: None,
            dialogs: 0,
            crashed: false,
            crashes: CrashReports::default(),
            ready: false,
            console: ConsoleLog::default(),
            requests: RequestLog::default(),
            begun: 0,
            committed: 0,
            downloads: 0,
            dom_ready: true,
            last_request: Instant::now(),
            pending_verdicts: 0,
            refusals: Vec::new(),
            status: None,
            document_request: None,
            last_snapshot: None,
            drag: None,
            emulated: None,
            alerts: 0,
            owner: None,
            opened_by: None,
        }
    }

    /// Returns the address responsible for the page: its own address if it is an HTTP address,
    /// otherwise that of the page that opened the tab.
    pub(crate) fn opened_by_or_url(&self) -> String {
        let url = self.url();
        match &self.opened_by {
            Some(opener) if !url.starts_with("http") => opener.clone(),
            _ => url,
        }
    }

    pub(crate) fn url(&self) -> String {
        let main = self.frames.get(&self.main);
        main.map_or_else(|| "about:blank".to_owned(), |frame| frame.url.clone())
    }
}

impl BrowserState {
    /// Selects the first tab without an owner.
    pub(crate) fn select_first(&mut self) {
        let mut tabs = self.tabs.iter();
        let first = tabs
            .find(|(_, tab)| tab.owner.is_none())
            .map(|(number, _)| *number);
        self.selected = first.unwrap_or(0);
    }

    pub(crate) fn add_notice(&mut self, text: String) {
        if self.notes.back() == Some(&text) {
            return;
        }
        if self.notes.len() == MAX_NOTES {
            self.notes.pop_front();
            self.dropped_notes += 1;
        }
        self.notes.push_back(text);
    }

    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        let mut notes: Vec<String> = self.notes.drain(..).collect();
        let dropped = std::mem::take(&mut self.dropped_notes);
        if dropped > 0 {
            notes.insert(0, format!("({dropped} earlier events omitted)"));
        }
        notes
    }
}

/// A file that a page downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDownload {
    /// The name of the file in the download folder, a meaningless id.
    pub guid: String,
    /// The file name suggested by the page.
    pub name: String,
    /// The address.
    pub url: String,
    /// The number of bytes received.
    pub bytes: u64,
    /// The state of the download.
    pub state: DownloadState,
}

/// The state of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadState {
    /// In progress.
    Running,
    /// Complete.
    Complete,
    /// Canceled by the server, or because the file is too large.
    Canceled,
}
