//! An inline terminal toolkit. Finished output is printed once and then belongs to the terminal.
//! Below this output a small live region is redrawn. The toolkit does not depend on its
//! application.
//!
//! # Guarantees
//! - Only [`TextLine`]s are painted, and no text in them can control a terminal: control characters
//!   and characters that hide or reorder are made visible when the line is built ([`clean`]).
//! - The main screen is drawn by relative movement only. It never sees a cursor query, a scroll
//!   region, mouse tracking or an erase of the display.
//! - A frame is one write. Without changes, no bytes are written.
//! - The same bytes give the same events, however they are split ([`InputParser`]). The caller owns
//!   the clock.
//! - This crate reads no environment variable, installs no handler and opens no terminal: the
//!   caller passes them in ([`RestoreState`] defines what a panic hook, a signal handler and a
//!   guard process must do).
//!
//! # Layout
//! - [`names`]: the text of questions, with confusable names marked
//! - [`clean`], [`width`], [`style`], [`wrap`]: safe text, its width, its style and its wrapping;
//!   [`TextLine`] holds it
//! - [`input`]: bytes to events, raw mode, the thread that reads
//! - [`editor`]: a multi-line editor with chips, Emacs and vi keys, undo, history
//! - [`paint`]: lines to bytes; [`screen`]: history, live region, views, the thread that writes
//! - [`capabilities`]: the features of the terminal, from the environment and its replies
//! - [`markdown`]: a streamed reply, committed block by block; [`code`]: syntax highlighting;
//!   [`diff`]: changed words
//! - [`image`]: images with the protocols of Kitty and iTerm2, Sixel or half blocks
//! - [`restore_guard`]: restores the terminal in every case
//!
//! # How it fits together
//! ```
//! use haft_terminal::{ColorLevel, LiveRegion, MarkdownCommitter, MarkdownLook, Screen, ScreenSize, TextLine};
//!
//! let size = ScreenSize::new(80, 24);
//! let mut screen = Screen::new(size, ColorLevel::Ansi16);
//! let mut reply = MarkdownCommitter::new(MarkdownLook { columns: 80, ..MarkdownLook::default() });
//!
//! // Finished blocks go into the history, the open block into the live region, all in one frame.
//! let finished = reply.push("A paragraph.\n\nAnd **half of");
//! let mut rows = reply.open_rows(size.row_width(), 5);
//! rows.push(TextLine::plain("> "));
//! let region = LiveRegion { rows, ..LiveRegion::default() };
//! let frames = screen.frames(&finished, &region);
//! assert_eq!(frames.len(), 1);
//! // Showing the same region again writes nothing.
//! assert!(screen.frames(&[], &region).is_empty());
//! ```
//!
//! `examples/echo.rs` is a small front end that uses all of this: threads, signals, a question, a
//! view, the guard.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod capabilities;
pub mod clean;
pub mod code;
pub mod diff;
pub mod editor;
pub mod image;
pub mod input;
pub mod markdown;
pub mod names;
pub mod paint;
pub mod restore_guard;
pub mod screen;
pub mod style;
mod text;
pub mod width;
pub mod wrap;

pub use capabilities::{Capabilities, TerminalEnvironment};
pub use editor::{ChipId, DraftChip, DraftPart, EditCommand, EditOutcome, Editor, EditorView};
pub use input::{InputEvent, InputParser, Key, KeyCode, KeyModifiers, TerminalReply};
pub use markdown::{MarkdownCommitter, MarkdownLook};
pub use restore_guard::{GuardMessage, RestoreState};
pub use screen::{Caret, FrameWriter, HistoryItem, LiveRegion, Screen, ScreenSize, Scroller};
pub use style::{ColorLevel, Rgb, TextColor, TextStyle, Theme};
pub use text::TextLine;
