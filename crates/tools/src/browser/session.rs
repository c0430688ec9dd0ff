//! The one browser of a session and its subagents.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use haft_browser::{Chromium, ChromiumOptions, Download, DownloadState};
use haft_contract::{CallContext, ToolError};
use haft_sandbox::ConfinedProcess;

use super::{hosts::PageHosts, program};
use crate::{BrowserProgram, blocking::blocking, shell::Shell};

/// A browser that is not used this long is closed.
const IDLE: Duration = Duration::from_secs(600);
/// How often its age and memory are looked at.
const LOOKED_AT: Duration = Duration::from_secs(15);

/// What a session keeps of its browser. A service. Everything of the browser ends with it.
pub struct BrowserSession {
    /// Pictures and downloads go here.
    folder: PathBuf,
    pub(super) hosts: Arc<PageHosts>,
    running: tokio::sync::Mutex<Option<Running>>,
    /// What the next answer says of a browser that is gone.
    parting: Mutex<Option<String>>,
}

struct Running {
    browser: Chromium,
    process: ConfinedProcess,
    used: Instant,
}

impl BrowserSession {
    /// Files go to this folder, at the first one.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            hosts: Arc::default(),
            running: tokio::sync::Mutex::default(),
            parting: Mutex::default(),
        }
    }

    /// The browser, started if there is none.
    pub(super) async fn browser(self: &Arc<Self>, cx: &CallContext) -> Result<Chromium, ToolError> {
        let mut running = self.running.lock().await;
        if let Some(one) = running.as_mut() {
            if !one.browser.ended() {
                one.used = Instant::now();
                return Ok(one.browser.clone());
            }
            *running = None;
            self.say("The browser had ended; this is a new one with an empty profile.");
        }
        let program = cx.services.get::<BrowserProgram>()?;
        let shell = cx.services.get::<Shell>()?;
        self.hosts.begin();
        let gate = Arc::clone(&self.hosts);
        let (process, reader, writer) = program::start(&program, &shell, gate, cx).await?;
        let downloads = process.scratch().join("downloads");
        let options = ChromiumOptions {
            judge: Arc::clone(&self.hosts) as _,
            downloads: Some(downloads.display().to_string()),
        };
        let browser = Chromium::connect(reader, writer, options)
            .await
            .map_err(|error| {
                ToolError::Failed(format!(
                    "{} was started and does not work: {error}.",
                    program.path.display()
                ))
            })?;
        *running = Some(Running {
            browser: browser.clone(),
            process,
            used: Instant::now(),
        });
        haft_contract::spawn_boxed(attend(Arc::downgrade(self), program.memory_mb));
        Ok(browser)
    }

    /// The address of the page that actions go to, if a browser runs.
    pub(super) async fn page(&self) -> Option<String> {
        let running = self.running.lock().await;
        let tabs = running.as_ref()?.browser.tabs();
        tabs.into_iter().find(|tab| tab.selected).map(|tab| tab.url)
    }

    /// Ends it. False if there was none.
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

    /// Where the program sees its own files.
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

    fn say(&self, words: &str) {
        *self.parting.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.to_owned());
    }

    /// Keeps bytes as a file of the session.
    pub(super) async fn keep(&self, name: String, bytes: Vec<u8>) -> Result<PathBuf, ToolError> {
        let folder = self.folder.clone();
        blocking(move || keep(&folder, &name, &bytes))
            .await?
            .map_err(|error| ToolError::Failed(format!("it could not be kept: {error}")))
    }

    /// Moves downloads that have ended to the session's folder; a sentence for each.
    pub(super) async fn keep_downloads(&self, browser: &Chromium) -> Vec<String> {
        let mut told = Vec::new();
        for download in browser.take_downloads() {
            told.push(self.keep_download(download).await);
        }
        told
    }

    async fn keep_download(&self, download: Download) -> String {
        let name = clean_name(&download.name);
        if download.state != DownloadState::Complete {
            return format!("the download of \"{name}\" was broken off");
        }
        let Some(scratch) = self.scratch().await else {
            return format!("the download of \"{name}\" is lost");
        };
        // The program names it, so nothing of a page is in this path; it may be a link all the same.
        let from = scratch.join("downloads").join(&download.guid);
        let (folder, kept_as) = (
            self.folder.clone(),
            format!("download-{}-{name}", short(&download.guid)),
        );
        let moved = blocking(move || {
            let found = fs::symlink_metadata(&from)?;
            if !found.is_file() {
                return Err(std::io::Error::other("it is no file"));
            }
            let bytes = fs::read(&from)?;
            fs::remove_file(&from)?;
            keep(&folder, &kept_as, &bytes)
        });
        match moved.await {
            Ok(Ok(path)) => format!(
                "\"{name}\" was downloaded ({} bytes) to {}",
                download.bytes,
                path.display()
            ),
            Ok(Err(error)) => format!("the download of \"{name}\" was not kept: {error}"),
            Err(error) => format!("the download of \"{name}\" was not kept: {error}"),
        }
    }
}

fn short(guid: &str) -> String {
    guid.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(8)
        .collect()
}

fn keep(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
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
    file.write_all(bytes)?;
    Ok(path)
}

/// A name for a file: one part, nothing hidden, nothing that a shell or a terminal would take amiss.
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

/// Closes a browser that is idle or takes too much.
async fn attend(session: Weak<BrowserSession>, memory_mb: u64) {
    loop {
        tokio::time::sleep(LOOKED_AT).await;
        let Some(session) = session.upgrade() else {
            return;
        };
        // A call that starts one holds it for seconds only.
        let mut running = session.running.lock().await;
        let Some(one) = running.as_ref() else {
            return;
        };
        if one.browser.ended() {
            return;
        }
        let pids: Vec<u32> = one
            .process
            .processes()
            .iter()
            .map(|process| process.pid)
            .collect();
        let used = blocking(move || pids.into_iter().map(resident_mb).sum::<u64>())
            .await
            .unwrap_or(0);
        let why = if one.used.elapsed() > IDLE {
            format!("it was idle for {} minutes", IDLE.as_secs() / 60)
        } else if used > memory_mb {
            format!("it used {used} MB (browser.memoryMb is {memory_mb})")
        } else {
            continue;
        };
        session.say(&format!(
            "The browser was closed: {why}. This is a new one with an empty profile."
        ));
        if let Some(one) = running.take() {
            one.process.kill(Duration::from_millis(500));
        }
        return;
    }
}

/// What only this process has in memory.
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
