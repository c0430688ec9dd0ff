//! The browser of a session, which its subagents share.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use haft_browser::{Chromium, ChromiumOptions, DownloadState, PageDownload, TabInfo};
use haft_contract::{CallContext, ToolError};

use super::{agent_tab::AgentTabs, hosts::PageHostPolicy, process::BrowserProcess, program};
use crate::{BrowserProgram, blocking::blocking, shell::ShellService};

/// The time without use after which the browser is closed.
const IDLE: Duration = Duration::from_secs(600);
/// The size limit of a download, in bytes. The browser aborts larger ones, possibly somewhat later.
const MAX_DOWNLOAD: u64 = 101 << 20;
/// The interval of checks for idle time and memory.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// The state of the browser in a session. A service. The browser ends when it is dropped.
pub struct BrowserSession {
    /// The folder for screenshots and downloads.
    folder: PathBuf,
    pub(super) hosts: Arc<PageHostPolicy>,
    /// Serializes the calls of all agents. The rules of the running call apply to everything that
    /// pages do during it.
    pub(super) turn: tokio::sync::Mutex<()>,
    running: tokio::sync::Mutex<Option<RunningBrowser>>,
    /// The number of browsers that were started so far.
    started: AtomicU64,
    /// A note for the next result about a browser that has ended.
    parting: Mutex<Option<String>>,
}

struct RunningBrowser {
    browser: Chromium,
    /// The number of this browser in the session, from 1.
    count: u64,
    process: BrowserProcess,
    used: Instant,
}

impl BrowserSession {
    /// Creates the state; `folder` is created with the first file.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            hosts: Arc::default(),
            turn: tokio::sync::Mutex::default(),
            running: tokio::sync::Mutex::default(),
            started: AtomicU64::new(0),
            parting: Mutex::default(),
        }
    }

    /// Returns the browser and its number in the session; starts one if none is running.
    pub(super) async fn browser(
        self: &Arc<Self>,
        cx: &CallContext,
    ) -> Result<(Chromium, u64), ToolError> {
        let mut running = self.running.lock().await;
        if let Some(one) = running.as_mut() {
            if !one.browser.has_exited() {
                one.used = Instant::now();
                return Ok((one.browser.clone(), one.count));
            }
            *running = None;
            self.add_notice("The browser has ended; this is a new one with an empty profile.");
        }
        let program = cx.services.get::<BrowserProgram>()?;
        let shell = cx.services.get::<ShellService>()?;
        self.hosts.begin();
        let gate = Arc::clone(&self.hosts);
        let (process, reader, writer) = program::start(&program, &shell, gate, cx).await?;
        let downloads = process.scratch().join("downloads");
        let options = ChromiumOptions {
            interceptor: Arc::clone(&self.hosts) as _,
            downloads: Some(downloads.display().to_string()),
        };
        let browser = Chromium::connect(reader, writer, options)
            .await
            .map_err(|error| {
                let hint = match process.is_confined() {
                    true => "",
                    false if program.headed => {
                        " It has a window (`browser.headed`): is there a display (DISPLAY or WAYLAND_DISPLAY)?"
                    }
                    false => " It runs without haft's sandbox here (`haft doctor`); its own may not be installed.",
                };
                ToolError::Failed(format!(
                    "{} was started and does not work: {error}.{hint}",
                    program.path.display()
                ))
            })?;
        let count = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        if !process.is_confined() && count == 1 {
            self.add_notice(match program.headed {
                true => {
                    "The browser has a window, so it runs in its own sandbox, not in haft's: it sees your files, \
                     though pages do not."
                }
                false => {
                    "The browser runs in its own sandbox, because haft's is not available here (`haft doctor`): it \
                     sees your files, though pages do not."
                }
            });
        }
        *running = Some(RunningBrowser {
            browser: browser.clone(),
            count,
            process,
            used: Instant::now(),
        });
        haft_contract::spawn_boxed(watch_browser(Arc::downgrade(self), program.memory_mb));
        Ok((browser, count))
    }

    /// Returns the address of the page on which this call acts, if a browser is running. An empty
    /// page has the address of the page that opened it.
    pub(super) async fn page(&self, cx: &CallContext) -> Option<String> {
        let running = self.running.lock().await;
        let one = running.as_ref()?;
        let current = AgentTabs::for_call(cx, &one.browser, one.count).current()?;
        let mut tabs = one.browser.tabs().into_iter();
        tabs.find(|tab| tab.number == current).map(page_address)
    }

    /// Closes the tabs of a subagent that has ended.
    pub(super) fn close_tabs_of(&self, count: u64, owner: u32) {
        // If the lock is held, another agent's call is running: the tabs then stay open until the
        // browser is closed.
        let Ok(running) = self.running.try_lock() else {
            return;
        };
        if let Some(one) = running.as_ref().filter(|one| one.count == count) {
            one.browser.close_apart(owner);
        }
    }

    /// Closes the browser; returns `false` if none was running.
    pub(super) async fn close(&self) -> bool {
        let running = self.running.lock().await.take();
        match running {
            Some(one) => {
                one.browser.close().await;
                one.process.kill(Duration::from_millis(500));
                true
            }
            None => false,
        }
    }

    /// Returns the folder of the browser's files.
    pub(super) async fn scratch(&self) -> Option<PathBuf> {
        let running = self.running.lock().await;
        running
            .as_ref()
            .map(|one| one.process.scratch().to_path_buf())
    }

    pub(super) fn take_parting(&self) -> Option<String> {
        self.parting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn add_notice(&self, words: &str) {
        let mut parting = self.parting.lock().unwrap_or_else(PoisonError::into_inner);
        *parting = Some(match parting.take() {
            Some(before) => format!("{before} {words}"),
            None => words.to_owned(),
        });
    }

    /// Stores bytes as a file of the session.
    pub(super) async fn store_file(
        &self,
        name: String,
        bytes: Vec<u8>,
    ) -> Result<PathBuf, ToolError> {
        let folder = self.folder.clone();
        blocking(move || write_file_in(&folder, &name, &mut bytes.as_slice()))
            .await?
            .map_err(|error| ToolError::Failed(format!("The file could not be saved: {error}")))
    }

    /// Moves finished downloads to the session's folder. Returns a note about each.
    pub(super) async fn keep_downloads(&self, browser: &Chromium) -> Vec<String> {
        let mut notes = Vec::new();
        for download in browser.take_downloads() {
            notes.push(self.keep_download(download).await);
        }
        notes
    }

    async fn keep_download(&self, download: PageDownload) -> String {
        let name = clean_name(&download.name);
        if download.state != DownloadState::Complete {
            return format!("the download of \"{name}\" was aborted");
        }
        let Some(scratch) = self.scratch().await else {
            return format!("the download of \"{name}\" is lost");
        };
        // The browser chooses the file name, so no text of a page is part of this path; but it may
        // be a link.
        let from = scratch.join("downloads").join(&download.guid);
        let (folder, file_name) = (
            self.folder.clone(),
            format!("download-{}-{name}", short(&download.guid)),
        );
        let moved = blocking(move || {
            let found = fs::symlink_metadata(&from)?;
            if !found.is_file() {
                return Err(io::Error::other("it is not a file"));
            }
            if found.len() > MAX_DOWNLOAD {
                fs::remove_file(&from)?;
                return Err(io::Error::other("it is too large"));
            }
            let saved = write_file_in(&folder, &file_name, &mut fs::File::open(&from)?);
            fs::remove_file(&from)?;
            saved
        });
        match moved.await {
            Ok(Ok(path)) => format!(
                "\"{name}\" was downloaded ({} bytes) to {}",
                download.bytes,
                path.display()
            ),
            Ok(Err(error)) => format!("the download of \"{name}\" was not saved: {error}"),
            Err(error) => format!("the download of \"{name}\" was not saved: {error}"),
        }
    }
}

/// Returns the address of a page, or that of the page that opened it if it has none.
pub(super) fn page_address(tab: TabInfo) -> String {
    match tab.opened_by {
        Some(opener) if !tab.url.starts_with("http") => opener,
        _ => tab.url,
    }
}

fn short(guid: &str) -> String {
    guid.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect()
}

fn write_file_in(folder: &Path, name: &str, from: &mut dyn io::Read) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let path = folder.join(name);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    io::copy(from, &mut file)?;
    Ok(path)
}

/// Returns a safe file name: a single component, not hidden, without special characters.
fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || ".-_".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(80)
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    match plain {
        "" => "file".to_owned(),
        plain => plain.to_owned(),
    }
}

/// Closes the browser when it is idle or uses too much memory.
async fn watch_browser(session: Weak<BrowserSession>, memory_mb: u64) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(session) = session.upgrade() else {
            return;
        };
        // A call that starts a browser holds the lock only for seconds.
        let mut running = session.running.lock().await;
        let Some(one) = running.as_ref() else {
            return;
        };
        if one.browser.has_exited() {
            return;
        }
        let pids = one.process.pids();
        let used = blocking(move || pids.into_iter().map(resident_mb).sum::<u64>())
            .await
            .unwrap_or(0);
        let Some(why) = why_close(one.used.elapsed(), used, memory_mb) else {
            continue;
        };
        session.add_notice(&format!(
            "The browser was closed because {why}. This is a new one with an empty profile."
        ));
        if let Some(one) = running.take() {
            one.process.kill(Duration::from_millis(500));
        }
        return;
    }
}

fn why_close(idle: Duration, used_mb: u64, memory_mb: u64) -> Option<String> {
    if idle > IDLE {
        return Some(format!("it was idle for {} minutes", IDLE.as_secs() / 60));
    }
    (used_mb > memory_mb).then(|| format!("it used {used_mb} MB (browser.memoryMb is {memory_mb})"))
}

/// Returns the memory that only this process uses, in MB.
fn resident_mb(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut fields = statm
        .split_whitespace()
        .filter_map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.nth(1).unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * 4 / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_is_idle_or_large_is_closed() {
        let minute = Duration::from_secs(60);
        assert_eq!(why_close(minute * 10, 2_048, 2_048), None);
        let idle = why_close(minute * 11, 0, 2_048).unwrap();
        assert_eq!(idle, "it was idle for 10 minutes");
        let large = why_close(minute, 2_049, 2_048).unwrap();
        assert_eq!(large, "it used 2049 MB (browser.memoryMb is 2048)");
        assert!(resident_mb(std::process::id()) > 0);
    }

    #[test]
    fn names_of_downloads_are_plain() {
        for (name, plain) in [
            ("../../etc/passwd", "passwd"),
            (".bashrc", "bashrc"),
            ("a b\u{202e}.pdf", "a_b_.pdf"),
            ("-rf", "rf"),
            ("", "file"),
            ("..", "file"),
        ] {
            assert_eq!(clean_name(name), plain, "{name}");
        }
    }
}
