//! What is known of the browser: its tabs, their frames, dialogs, loads. Events change it in the order in
//! which they come, before the answer to a later command is seen.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Instant,
};

use crate::{
    logs::{Console, Requests},
    refs::Refs,
    snapshot::Seen,
};

/// Happenings that were not yet reported; a page that floods loses the oldest.
const MOST_NOTES: usize = 40;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) tabs: BTreeMap<u32, TabState>,
    pub(crate) sessions: HashMap<String, u32>,
    pub(crate) last_tab: u32,
    pub(crate) selected: u32,
    pub(crate) refs: Refs,
    pub(crate) downloads: Vec<Download>,
    notes: VecDeque<String>,
    dropped_notes: usize,
}

/// A question of a page that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    /// What it says.
    pub message: String,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) parent: Option<String>,
    pub(crate) url: String,
    pub(crate) loader: String,
    /// A world of our own in this document, where the page has changed nothing.
    pub(crate) world: Option<i64>,
}

pub(crate) struct TabState {
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) main: String,
    pub(crate) frames: HashMap<String, Frame>,
    pub(crate) title: String,
    pub(crate) dialog: Option<PageDialog>,
    /// Counts dialogs, so that one is not dismissed in the place of another.
    pub(crate) dialogs: u64,
    pub(crate) crashed: bool,
    crashes: CrashReports,
    pub(crate) ready: bool,
    pub(crate) console: Console,
    pub(crate) requests: Requests,
    /// Documents that the main frame began to load, and that it shows.
    pub(crate) begun: u64,
    pub(crate) committed: u64,
    /// Those that turned out to be files, and are downloaded instead.
    pub(crate) downloads: u64,
    pub(crate) dom_ready: bool,
    pub(crate) last_request: Instant,
    /// Requests that wait for a verdict.
    pub(crate) judging: u32,
    pub(crate) refusals: Vec<String>,
    pub(crate) status: Option<u16>,
    pub(crate) document_request: Option<String>,
    pub(crate) seen: Option<Seen>,
    pub(crate) drag: Option<serde_json::Value>,
    pub(crate) emulated: Option<crate::emulate::Emulation>,
    pub(crate) alerts: u32,
    /// Whose it is, by the number of that one's first tab; those of others are not selected by themselves.
    pub(crate) owner: Option<u32>,
    pub(crate) opened_by: Option<String>,
}

/// A crash is reported twice, by the page and by the browser, and the second report may come when the
/// next navigation has begun: it must not end that one.
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

    /// Another page is shown: both reports of an earlier crash have come.
    pub(crate) fn forget_crashes(&mut self) {
        self.crashed = false;
        self.crashes = CrashReports::default();
    }

    pub(crate) fn new(target: String, session: String) -> Self {
        Self {
            // The main frame of a page has the name of its target.
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
            console: Console::default(),
            requests: Requests::default(),
            begun: 0,
            committed: 0,
            downloads: 0,
            dom_ready: true,
            last_request: Instant::now(),
            judging: 0,
            refusals: Vec::new(),
            status: None,
            document_request: None,
            seen: None,
            drag: None,
            emulated: None,
            alerts: 0,
            owner: None,
            opened_by: None,
        }
    }

    /// Whose the page is: where it shows an address of its own, that one's, else the one's that opened it.
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

impl State {
    /// Selects the first tab that is no one else's.
    pub(crate) fn select_first(&mut self) {
        let mut tabs = self.tabs.iter();
        let first = tabs
            .find(|(_, tab)| tab.owner.is_none())
            .map(|(number, _)| *number);
        self.selected = first.unwrap_or(0);
    }

    pub(crate) fn note(&mut self, words: String) {
        if self.notes.back() == Some(&words) {
            return;
        }
        if self.notes.len() == MOST_NOTES {
            self.notes.pop_front();
            self.dropped_notes += 1;
        }
        self.notes.push_back(words);
    }

    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        let mut notes: Vec<String> = self.notes.drain(..).collect();
        let dropped = std::mem::take(&mut self.dropped_notes);
        if dropped > 0 {
            notes.insert(0, format!("({dropped} earlier happenings left out)"));
        }
        notes
    }
}

/// A file that a page sent to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Its name in the folder for downloads, which says nothing.
    pub guid: String,
    /// The name that the page wants.
    pub name: String,
    /// Where it comes from.
    pub url: String,
    /// What has come of it.
    pub bytes: u64,
    /// How it stands.
    pub state: DownloadState,
}

/// How a download stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadState {
    /// It goes on.
    Running,
    /// The file is whole.
    Complete,
    /// It was broken off, by its server or for its size.
    Canceled,
}
