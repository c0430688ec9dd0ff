//! What is known of commands, as data: one file a family.
//!
//! A table lists the options that keep a command harmless, each with its arity. What is not listed
//! makes the command unknown: a new option of a new version must never be taken for a harmless one.

mod awk;
mod fd;
mod find;
mod jq;
pub mod options;
mod program;
mod searching;
#[cfg(test)]
mod second_languages;
mod sed;
pub mod spec;
#[cfg(test)]
mod testing;
mod xml;

use std::{collections::HashMap, sync::LazyLock};

use crate::{arg::Arg, effect::Finding};
use spec::Entry;

/// Every family.
const FAMILIES: &[&[Entry]] = &[
    awk::ENTRIES,
    fd::ENTRIES,
    find::ENTRIES,
    jq::ENTRIES,
    searching::ENTRIES,
    sed::ENTRIES,
    xml::ENTRIES,
];

static BY_NAME: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| {
    let mut by_name = HashMap::new();
    for entry in FAMILIES.iter().copied().flatten() {
        let names = match entry {
            Entry::Spec(spec) => spec.names,
            Entry::Own(names, _) => names,
        };
        for name in names.split(' ') {
            by_name.insert(name, *entry);
        }
    }
    by_name
});

/// Is this a command we know?
pub fn is_known(name: &str) -> bool {
    BY_NAME.contains_key(name)
}

/// What a command does, by its words; the first is its plain name.
pub fn look(name: &str, argv: &[Arg]) -> Finding {
    match BY_NAME.get(name) {
        Some(Entry::Spec(spec)) => options::judge(spec, argv),
        Some(Entry::Own(_, own)) => own(argv),
        None => Finding::unknown(format!("what {name} does is not known")),
    }
}
