//! The witness log: which files a command changed, and where their old state is stored.
//!
//! The guard of a sandboxed command writes the log. Before it carries out the first change of a name
//! or of a file, it stores the old state and appends a line. When the command has ended, the undo
//! journal reads the log and compares it with the disk. If our process was killed, the next one does
//! that.
//!
//! Each command has a folder, [`UnitFolder`], with the log and with the stored files.

#![warn(missing_docs)]

mod entry;
mod folder;
mod log;
mod os_bytes;

pub use entry::{FileId, WitnessedEntry, WitnessedKind, WitnessedXattr};
pub use folder::{OpenUnit, UnitFolder};
pub use log::{KeptFile, KeptWay, LogLine, UnitHeader, WitnessLog, WitnessedChange, encode};
pub use os_bytes::OsBytes;
