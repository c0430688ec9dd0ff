//! A client for Chromium over its debugging pipe.
//!
//! The caller starts Chromium and passes this crate the two ends of the pipe
//! (`--remote-debugging-pipe=cbor`), so the process can be sandboxed in any way. No port is opened.
//!
//! # Layout
//! - [`Chromium`]: a browser and its tabs; [`Tab`]: navigation; `settle`: waiting until a page is
//!   quiet
//! - `cdp_pipe`: messages, with a size limit; `cbor`: their format; `events`: applies them to `state`
//! - `snapshot`: the page as lines of text with refs, and the changes since the last snapshot;
//!   `refs`: refs that are never reused
//! - `actions`, `pointer`, `fields`, `keys`, `scripts`: real mouse and keyboard events;
//!   `wait_for_text`: waits for text; `evaluate`: runs scripts of the caller
//! - `screenshot`, `trace`, `emulate`, `logs`: screenshots, performance measurements, emulated
//!   devices, console and network
//! - [`RequestInterceptor`]: decides where pages may go, and serves files without a server
//!
//! The crate's own scripts run in an isolated world, which the page cannot modify. Content of pages
//! is untrusted: every text has a maximum length, and invisible characters are written out
//! (`text`).

#![warn(missing_docs)]

mod actions;
mod cbor;
mod cdp_pipe;
mod chromium;
mod emulate;
mod error;
mod evaluate;
mod events;
mod fields;
mod keys;
mod logs;
mod pointer;
mod refs;
mod request_interceptor;
mod screenshot;
mod scripts;
mod settle;
mod snapshot;
mod state;
mod tab;
mod text;
mod trace;
mod wait_for_text;

pub use actions::{ActionOutcome, PageAction};
pub use chromium::{Chromium, ChromiumOptions, TabInfo};
pub use emulate::Emulation;
pub use error::ChromiumError;
pub use events::is_loopback_url;
pub use logs::{ConsoleLevel, ConsoleLine, NetworkEntry};
pub use refs::ref_number;
pub use request_interceptor::{
    AllowAllRequests, BrowserRequest, RequestInterceptor, RequestVerdict, SERVED_HOST, ServedFile,
    VerdictFuture,
};
pub use screenshot::{Screenshot, ScreenshotArea};
pub use snapshot::SnapshotPart;
pub use state::{DownloadState, PageDialog, PageDownload};
pub use tab::{NavigationResult, Tab};
pub use text::{one_line, visible};
pub use trace::PageTrace;
