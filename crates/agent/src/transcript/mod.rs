//! The transcript of a session on disk: one JSON object per line, append-only.
//!
//! A line is written before its content can have an effect. The block with a call is written before
//! the call is pushed, a `haft-started` line before its tool runs, and the result as soon as the
//! tool is done, in any order of the calls. So whenever the process dies, the transcript shows for
//! each call whether it was not started, was started, or is done. [`load`] builds a conversation
//! from the lines and reports its repairs.

mod files;
pub mod history;
mod line_format;
pub mod load;
pub mod past_questions;
mod session_grants;
mod sessions;
pub mod stats;
pub mod store;
mod tee_store;
mod truncation_check;
mod writer;

pub use files::TouchedFiles;
pub use line_format::HookRun;
pub(crate) use line_format::UserLineKind;
pub use load::LoadedTranscript;
pub use session_grants::SessionGrants;
pub use sessions::{OpenTranscript, ProjectSessions, SessionError, SessionListing, SessionOrigin};
pub(crate) use store::read_shared;
pub use store::{FileStore, MemoryStore, TranscriptStore, TranscriptStoreError};
pub use writer::Transcript;
pub(crate) use writer::TranscriptPosition;
pub(crate) use writer::result_of;
