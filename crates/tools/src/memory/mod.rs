//! Notes that outlive a session: `MemoryRead`, `MemoryWrite`.
//!
//! Both work in one folder and nowhere else: `folder` opens it part by part and follows no link.

mod folder;
mod memory_read;
mod memory_write;

pub use folder::MemoryFolder;
pub(crate) use memory_read::MemoryRead;
pub(crate) use memory_write::MemoryWrite;
