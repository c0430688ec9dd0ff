//! Reading command lines: what would this do?
//!
//! A line is parsed as bash parses it ([`ast`]), and every command in it is looked at: what it
//! reads, writes, contacts and starts, and whether all of that is known to be harmless. Pure: no
//! file, no process, no clock. What cannot be read with certainty is unknown, never harmless.
//!
//! # Layout
//! - [`ast`]: a command line as bash reads it
//! - [`syntax`]: reads it

#![warn(missing_docs)]

pub mod ast;
pub mod syntax;
