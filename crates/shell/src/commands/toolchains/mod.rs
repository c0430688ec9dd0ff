//! Compilers, interpreters, build tools and package managers.
//!
//! Their versions, their help and local inventories are safe. Every command that builds, tests,
//! lints, formats or runs does what the workspace says, even in a dry run. Launchers let the
//! workspace choose the program before they do anything. Therefore no command of a launcher is
//! safe, not even printing a version.

pub(super) mod go;
pub(super) mod javascript;
pub(super) mod python;
pub(super) mod ruby;
pub(super) mod rust;
pub(super) mod system;
pub(super) mod version_only;
