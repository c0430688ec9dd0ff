//! Reading command lines: what would this do?
//!
//! A line is parsed as bash parses it ([`ast`]), and every command in it is looked at: what it
//! reads, writes, contacts and starts, and whether all of that is known to be harmless. Pure: no
//! file, no process, no clock. What cannot be read with certainty is unknown, never harmless.
//!
//! # Layout
//! - [`ast`]: a command line as bash reads it; `syntax` parses it
//! - [`arg`]: a word as a program would get it
//! - [`commands`]: what is known of each command, as tables; [`effect`] is what they say

#![warn(missing_docs)]

pub mod arg;
pub mod ast;
pub mod commands;
pub mod effect;
