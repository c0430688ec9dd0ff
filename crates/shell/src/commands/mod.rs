//! What is known of commands, as data: one file a family.
//!
//! A table lists the options that keep a command harmless, each with its arity. What is not listed
//! makes the command unknown: a new option of a new version must never be taken for a harmless one.

mod editors;
mod git;
mod hosts;
mod network;
pub mod options;
mod services;
pub mod spec;
#[cfg(test)]
mod testing;
mod toolchains;
mod verbs;

use std::{collections::HashMap, sync::LazyLock};

use crate::{arg::Arg, effect::Finding};
use spec::Entry;

/// Every family.
const FAMILIES: &[&[Entry]] = &[
    editors::ENTRIES,
    git::ENTRIES,
    network::curl::ENTRIES,
    network::openssl::ENTRIES,
    network::probes::ENTRIES,
    network::remote_shell::ENTRIES,
    network::rsync::ENTRIES,
    network::wget::ENTRIES,
    services::cluster::ENTRIES,
    services::code_host::ENTRIES,
    services::containers::ENTRIES,
    services::init::ENTRIES,
    services::interfaces::ENTRIES,
    toolchains::javascript::ENTRIES,
    toolchains::prints::ENTRIES,
    toolchains::python::ENTRIES,
    toolchains::rust::ENTRIES,
    toolchains::system::ENTRIES,
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
