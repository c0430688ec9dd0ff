//! Which functions of a line are certainly in force where a name is called.
//!
//! A name that a function covers starts no program, so a definition counts only where it surely has
//! run before, in this very shell, and nothing may have taken it away since. Its body is judged where
//! it is defined, so it does not matter which of several definitions a call reaches.

use std::collections::BTreeSet;

use crate::arg::{Arg, Value};

/// More functions than this in one line are not kept track of, so that a line of thousands stays
/// cheap to read.
const MOST: usize = 64;

/// Names that certainly are functions here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InForce(BTreeSet<String>);

impl InForce {
    pub(super) fn define(&mut self, name: &str) {
        // Whether bash looks for a function of a name that is a path depends on its version and mode.
        if !name.contains('/') && self.0.len() < MOST {
            self.0.insert(name.to_owned());
        }
    }

    pub(super) fn covers(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Only what is in force on both ways.
    pub(super) fn and(&mut self, other: &Self) {
        self.0.retain(|name| other.0.contains(name));
    }
}

/// Commands of bash that may take a function away, put an alias before it, or run a text in this
/// shell that does.
const DISTURBING: &[&str] = &[
    ".",
    "alias",
    "bind",
    "complete",
    "enable",
    "eval",
    "fc",
    "hash",
    "history",
    "mapfile",
    "readarray",
    "set",
    "shopt",
    "source",
    "trap",
    "unalias",
    "unset",
];

/// May this command change which functions there are, wherever it stands in the line?
pub(super) fn disturbs(argv: &[Arg]) -> bool {
    let Some(first) = argv.first() else {
        return false;
    };
    let Value::Literal(called) = &first.value else {
        return true;
    };
    match called.as_str() {
        // `mapfile` runs a text only by an option, `set` and `shopt` only print without a word.
        "mapfile" | "readarray" => argv[1..]
            .iter()
            .any(|arg| arg.text().is_none_or(|text| text.starts_with("-C"))),
        "set" | "shopt" => argv[1..].iter().any(|arg| {
            arg.text()
                .is_none_or(|text| text.contains("posix") || text.contains("alias"))
        }),
        "trap" => argv.len() > 2,
        // A variable of that name goes first, and only without one the function.
        "unset" => !argv.get(1).is_some_and(|arg| arg.is("-v")),
        called => DISTURBING.contains(&called),
    }
}
