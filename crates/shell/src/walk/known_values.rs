//! The variables of a line whose values are certain where they are used.
//!
//! A value is recorded only if the line contains the name once outside expansions, in an assignment
//! of a literal text that has certainly run before, in the same shell. A line with a command that
//! may set variables whose names the line does not spell out has no known values.

use std::collections::BTreeMap;

use crate::{
    arg::{Arg, ArgValue},
    commands,
};

/// The maximum number of tracked variables, so that a line with thousands of them stays cheap to
/// analyze.
const MAX_COUNT: usize = 32;

/// The maximum length of a tracked value in bytes.
const MAX_LENGTH: usize = 256;

/// Certain values by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KnownValues(BTreeMap<String, String>);

impl KnownValues {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Records a value, if the name occurs only once in the source.
    pub(super) fn record(&mut self, name: &str, value: &str, source: &str) {
        // An empty value expands to no argument at all, unless it is quoted.
        let fits = !value.is_empty() && value.len() <= MAX_LENGTH && self.0.len() < MAX_COUNT;
        if fits && is_set_once(source, name) {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Keeps only the values that are known on both control-flow paths.
    pub(super) fn and(&mut self, other: &Self) {
        self.0.retain(|name, _| other.0.contains_key(name));
    }
}

/// Returns whether the values of a text can be tracked at all: without another field separator, and
/// without a line continuation, which may be inside a name.
pub(super) fn is_trackable(source: &str) -> bool {
    !source.contains("IFS") && !source.contains("\\\n")
}

/// Returns whether the name occurs exactly once outside expansions.
fn is_set_once(source: &str, name: &str) -> bool {
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let mut outside = source.match_indices(name).filter(|(start, _)| {
        let (before, rest) = source.split_at(*start);
        let after = &rest[name.len()..];
        let whole = !before.bytes().next_back().is_some_and(is_part)
            && !after.bytes().next().is_some_and(is_part);
        whole && !before.ends_with('$') && !before.ends_with("${")
    });
    outside.next().is_some() && outside.next().is_none()
}

/// Builtins that set variables, or run a text in this shell that may set them.
const SETTING: &[&str] = &[
    ".",
    "alias",
    "bind",
    "complete",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "history",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "wait",
];

/// Returns whether this command may set variables of this shell, at any place of the line.
pub(super) fn may_set_variables(argv: &[Arg]) -> bool {
    let Some((first, words)) = argv.split_first() else {
        return false;
    };
    let ArgValue::Literal(called) = &first.value else {
        return true;
    };
    match called.as_str() {
        "printf" => words
            .first()
            .is_some_and(|first| first.text().is_none_or(|text| text.starts_with("-v"))),
        "builtin" | "command" => words.iter().any(|word| word.text().is_none()),
        // It may be a function of the user's shell or of this line.
        called if !called.contains('/') && !commands::is_known(called) => true,
        called => SETTING.contains(&called),
    }
}
