//! Static analysis of shell command lines.
//!
//! The crate parses a line as bash does ([`ast`]) and analyzes every command in it: the files it
//! reads and writes, the hosts it contacts, the programs it starts, and whether all of that is
//! known to be read-only. The analysis is pure: it accesses no file, process or clock. Anything that
//! it cannot determine with certainty is unknown, never read-only.
//!
//! # Layout
//! - [`ast`]: the syntax tree of a line; [`syntax`] parses it
//! - [`arg`]: an argument as a program receives it
//! - `builtins`: bash's builtins and reserved words
//! - [`git_config`]: the settings of a git repository that start programs
//! - `invisible`: characters that make a line look like another one
//! - [`commands`]: tables that describe the known commands; [`effect`] holds their results
//! - `walk`: visits every command of a line; [`analysis`] holds the result
//! - `secret_names`: names of variables that look like secrets
//! - [`AnalyzedLine`]: a line together with its analysis

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
pub use walk::{MAX_LINE, analyze, analyze_wrapped, is_safe_variable, is_stream, stores_nothing};
