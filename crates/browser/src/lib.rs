//! Chromium over its debugging pipe.
//!
//! The program is started by others: this crate is given the two ends of the pipe (`--remote-debugging-pipe=cbor`), so
//! that it can be confined in any way. No port is opened.
//!
//! # Layout
//! - [`Chromium`]: a browser and its tabs; [`Tab`]: navigation; `settle`: waiting until a page is quiet
//! - `wire`: messages, bounded; `events`: what each of them changes in `state`
//! - `snapshot`: what a page shows, as lines with refs; what changed since; `refs`: refs that never lie
//! - `act`, `pointer`, `fields`, `keys`, `scripts`: real events of mouse and keyboard; `waiting`: for text;
//!   `evaluate`: scripts of the caller
//! - `picture`, `trace`, `emulate`, `logs`: pictures, measurements, other screens, console and network
//! - [`RequestJudge`]: decides where pages go, and serves files that no server has
//!
//! Scripts of ours run in a world of their own, in which the page has changed nothing. What pages say is
//! untrusted: every text is bounded, and what cannot be seen is written out (`text`).

#![warn(missing_docs)]

mod act;
mod cbor;
mod chromium;
mod emulate;
mod error;
mod evaluate;
mod events;
mod fields;
mod judge;
mod keys;
mod logs;
mod picture;
mod pointer;
mod refs;
mod scripts;
mod settle;
mod snapshot;
mod state;
mod tab;
mod text;
mod trace;
mod waiting;
mod wire;

pub use act::{Acted, PageAction};
pub use chromium::{Chromium, ChromiumOptions, TabInfo};
pub use emulate::Emulation;
pub use error::ChromiumError;
pub use events::is_loopback_url;
pub use judge::{BrowserRequest, Judging, PassAll, RequestJudge, SERVED_HOST, ServedFile, Verdict};
pub use logs::{ConsoleLevel, ConsoleLine, NetworkEntry};
pub use picture::{Picture, PictureOf};
pub use refs::ref_number;
pub use snapshot::SnapshotPart;
pub use state::{Download, DownloadState, PageDialog};
pub use tab::{Arrival, Tab};
pub use text::{one_line, visible};
pub use trace::PageTrace;
