//! Reading command lines: what would this do?
//!
//! A line is parsed as bash parses it ([`ast`]), and every command in it is looked at: what it
//! reads, writes, contacts and starts, and whether all of that is known to be harmless. Pure: no
//! file, no process, no clock. What cannot be read with certainty is unknown, never harmless.
//!
//! # Layout
//! - [`ast`]: a command line as bash reads it; [`syntax`] parses it
//! - [`arg`]: a word as a program would get it
//! - `builtins`: the words that bash itself gives a meaning
//! - [`git_config`]: whether a git repository starts programs by its configuration
//! - `invisible`: characters that make a line look like another one
//! - [`commands`]: what is known of each command, as tables; [`effect`] is what they say
//! - `walk`: every command of a line, one after the other; [`analysis`] is what comes of it
//! - `secret_names`: names of variables that look like secrets
//! - [`AnalyzedLine`]: a line with what came of it, to be handed on

#![warn(missing_docs)]

pub mod analysis;
mod analyzed_line;
pub mod arg;
mod arithmetic;
pub mod ast;
mod builtins;
pub mod commands;
mod decode;
pub mod effect;
pub mod git_config;
mod invisible;
#[doc(hidden)]
pub mod read_counter;
mod secret_names;
pub mod syntax;
mod walk;

pub use analysis::{Analysis, LineLocation, LinePart, SetVariable};
pub use analyzed_line::AnalyzedLine;
pub use arg::{Arg, ArgValue};
pub use ast::Span;
pub use builtins::{is_builtin, is_reserved};
pub use effect::{
    CommandFinding, Effect, EffectVerdict, OwnService, RuleCoverage, StartedProgram, WriteKind,
};
pub use secret_names::is_secret_name;
pub use walk::{MAX_LINE, analyze, is_safe_variable, is_stream, keeps_nothing};
