//! Compilers, interpreters, build tools and package managers.
//!
//! Their versions, their help and local inventories are harmless. Everything that builds, tests, lints,
//! formats or runs does what the workspace says, also in a dry run. Launchers let the workspace choose
//! the program before they do anything, so that nothing of theirs is harmless, not even a version.

pub(super) mod go;
pub(super) mod javascript;
pub(super) mod prints;
pub(super) mod python;
pub(super) mod ruby;
pub(super) mod rust;
pub(super) mod system;
