//! Real Chromium on pages of this machine.
//!
//! - `vectors`: what the page of the specification promises
//! - `acting`: fields, keys, drags, files, downloads
//! - `looking`: pictures, console, network, measurements
//! - `hostile`: pages that flood, loop, crash and lie

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod acting;
mod hostile;
mod looking;
mod vectors;

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use haft_browser::{
    AllowAllRequests, Chromium, ChromiumError, ChromiumOptions, PageAction, RequestInterceptor,
    SnapshotPart, Tab,
};
use haft_testkit::PageServer;
use tempfile::TempDir;
use tokio::process::{Child, Command};

const PROGRAMS: [&str; 4] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome-stable",
    "/usr/bin/google-chrome",
];
const LIMIT: Duration = Duration::from_secs(60);

/// A browser of a test's own, with pages.
struct Opened {
    browser: Chromium,
    server: PageServer,
    /// Killed when dropped.
    process: Child,
    folder: TempDir,
}

impl Opened {
    async fn with(pages: &[(&str, &str)]) -> Option<Self> {
        Self::judged(pages, Arc::new(AllowAllRequests)).await
    }

    /// One page, opened.
    async fn page(html: &str) -> Option<(Self, Tab)> {
        let opened = Self::with(&[("/", html)]).await?;
        let tab = opened.go("/").await;
        Some((opened, tab))
    }

    async fn judged(pages: &[(&str, &str)], judge: Arc<dyn RequestInterceptor>) -> Option<Self> {
        haft_testkit::bound_this_process();
        let Some(program) = PROGRAMS.into_iter().find(|path| Path::new(path).exists()) else {
            haft_testkit::skip("pages in a browser: there is no Chromium");
            return None;
        };
        let server = PageServer::start(pages.iter().copied());
        let folder = TempDir::new().unwrap();
        let mut process = Command::new("/bin/sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null",
                "sh",
                program,
            ])
            .args([
                "--remote-debugging-pipe=cbor",
                "--headless",
                "--no-sandbox",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-site-isolation-trials",
                "--disable-gpu",
            ])
            .arg("--disable-features=IsolateOrigins,site-per-process")
            .arg(format!("--user-data-dir={}", folder.path().display()))
            // It leaves its socket there when it is killed.
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let options = ChromiumOptions {
            interceptor: judge,
            downloads: Some(folder.path().display().to_string()),
        };
        let (reader, writer) = (
            process.stdout.take().unwrap(),
            process.stdin.take().unwrap(),
        );
        let browser = Chromium::connect(reader, writer, options).await.unwrap();
        Some(Self {
            browser,
            server,
            process,
            folder,
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url)
    }

    /// Goes there in the selected tab.
    async fn go(&self, path: &str) -> Tab {
        let tab = self.browser.selected().await.unwrap();
        tab.navigate(&self.url(path), LIMIT).await.unwrap();
        tab
    }
}

async fn snapshot(tab: &Tab) -> String {
    let part = SnapshotPart {
        max_chars: 20_000,
        ..SnapshotPart::default()
    };
    tab.snapshot(&part).await.unwrap()
}

/// What a script of the page's own world says.
async fn value(tab: &Tab, script: &str) -> serde_json::Value {
    tab.evaluate(script, None, LIMIT).await.unwrap()
}

/// The ref in the first line that has `words`.
fn ref_of(snapshot: &str, words: &str) -> u32 {
    let line = snapshot
        .lines()
        .find(|line| line.contains(words) && line.contains("[ref=e"));
    let line = line.unwrap_or_else(|| panic!("no ref of {words} in\n{snapshot}"));
    let text = line.split("[ref=e").nth(1).unwrap();
    text.split(']').next().unwrap().parse().unwrap()
}

async fn click(tab: &Tab, words: &str) -> Result<haft_browser::ActionOutcome, ChromiumError> {
    let on = ref_of(&snapshot(tab).await, words);
    tab.act(&PageAction::Click { on, double: false }).await
}
