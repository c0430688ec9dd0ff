//! The functions of a line that certainly exist where a name is called.
//!
//! A call of such a name starts no program. So a definition is recorded only if it has certainly
//! run before, in the same shell, and no command can have removed it since. The body of a function
//! is analyzed where it is defined, so it does not matter which of several definitions a call
//! reaches.

use std::collections::BTreeSet;

use crate::arg::{Arg, ArgValue};

/// The maximum number of functions that are tracked in one line, so that a line with thousands of
/// them stays cheap to analyze.
const MAX_COUNT: usize = 64;

/// The names that are certainly functions here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DefinedFunctions(BTreeSet<String>);

impl DefinedFunctions {
    pub(super) fn define(&mut self, name: &str) {
        // It depends on bash's version and mode whether a function may have a path as its name.
        if !name.contains('/') && self.0.len() < MAX_COUNT {
            self.0.insert(name.to_owned());
        }
    }

    pub(super) fn covers(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Keeps only the functions that exist on both control-flow paths.
    pub(super) fn and(&mut self, other: &Self) {
        self.0.retain(|name| other.0.contains(name));
    }
}

/// Builtins that may remove a function, define an alias with its name, or run a text in this shell
/// that does.
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

/// Returns whether this command may change the set of functions, at any place of the line.
pub(super) fn may_change_functions(argv: &[Arg]) -> bool {
    let Some(first) = argv.first() else {
        return false;
    };
    let ArgValue::Literal(called) = &first.value else {
        return true;
    };
    match called.as_str() {
        // `mapfile` runs a text only with an option; `set` and `shopt` only print without an
        // argument.
        "mapfile" | "readarray" => argv[1..]
            .iter()
            .any(|arg| arg.text().is_none_or(|text| text.starts_with("-C"))),
        "set" | "shopt" => argv[1..].iter().any(|arg| {
            arg.text()
                .is_none_or(|text| text.contains("posix") || text.contains("alias"))
        }),
        "trap" => argv.len() > 2,
        // `unset` removes a variable of that name first, and the function only if that
        // variable does not exist.
        "unset" => !argv.get(1).is_some_and(|arg| arg.is("-v")),
        called => DISTURBING.contains(&called),
    }
}
