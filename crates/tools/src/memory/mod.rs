//! Notes that outlive a session: `MemoryRead`, `MemoryWrite`.
//!
//! Both access only one folder: `folder` opens paths component by component and follows no link.

mod folder;
mod memory_read;
mod memory_write;

pub use folder::MemoryFolder;
pub(crate) use memory_read::MemoryRead;
pub(crate) use memory_write::MemoryWrite;
