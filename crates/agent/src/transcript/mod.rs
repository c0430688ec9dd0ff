//! A session on disk: one JSON object a line, only ever appended to.
//!
//! A line is written before what it records can matter: the block with a call before the call is pushed,
//! a `haft-started` line before its tool runs, the result as soon as the tool is done, in whatever order
//! the calls of a reply end. So whenever the process dies, the lines say of each call whether it was
//! never begun, was begun, or is over; [`load`] makes a conversation of that and says what it repaired.

mod dropped_turn;
mod files;
pub mod history;
mod line;
pub mod load;
mod session_grants;
mod sessions;
pub mod stats;
pub mod store;
mod tee_store;
mod writer;

pub use files::Files;
pub use line::HookRun;
pub(crate) use line::Kind;
pub use load::Loaded;
pub use session_grants::Terms;
pub use sessions::{Listed, Session, SessionError, SessionOrigin, Sessions};
pub(crate) use store::look;
pub use store::{FileStore, MemoryStore, Store, StoreError};
pub(crate) use writer::SoFar;
pub use writer::Transcript;
pub(crate) use writer::result_of;
