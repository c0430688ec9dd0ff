//! Tables that describe the known commands, one module per family.
//!
//! A table lists the options with which a command is safe, each with its arity. Any other option
//! makes the command unknown: an option of a newer version must never be mistaken for a safe one.

mod administration;
mod archives;
mod assignments;
mod awk;
mod builtins;
mod compression;
mod conditions;
mod editors;
mod fd;
mod files;
mod find;
mod git;
mod hosts;
mod irreversible;
mod jq;
mod launchers;
mod listing;
mod network;
mod objects;
mod operand_paths;
pub mod options;
mod package_launchers;
mod printing;
mod privileges;
mod processes;
mod program;
mod reading;
pub mod rule_families;
#[cfg(test)]
mod script_tests;
mod searching;
mod sed;
mod services;
mod shells;
pub mod spec;
pub mod special_variables;
mod system;
mod tar;
#[cfg(test)]
mod testing;
mod toolchains;
mod transfers;
pub mod variables;
mod verbs;
mod wrappers;
mod writing;
mod xml;

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, EffectVerdict},
};
use spec::KnownCommand;

/// All families of commands.
const FAMILIES: &[&[KnownCommand]] = &[
    administration::ENTRIES,
    archives::ENTRIES,
    assignments::ENTRIES,
    awk::ENTRIES,
    builtins::ENTRIES,
    compression::ENTRIES,
    conditions::ENTRIES,
    editors::ENTRIES,
    fd::ENTRIES,
    files::ENTRIES,
    find::ENTRIES,
    git::ENTRIES,
    jq::ENTRIES,
    launchers::ENTRIES,
    listing::ENTRIES,
    network::curl::ENTRIES,
    network::openssl::ENTRIES,
    network::probes::ENTRIES,
    network::remote_shell::ENTRIES,
    network::wget::ENTRIES,
    objects::ENTRIES,
    printing::ENTRIES,
    privileges::ENTRIES,
    processes::ENTRIES,
    reading::ENTRIES,
    searching::ENTRIES,
    sed::ENTRIES,
    services::cluster::ENTRIES,
    services::code_host::ENTRIES,
    services::containers::ENTRIES,
    services::init::ENTRIES,
    shells::ENTRIES,
    system::ENTRIES,
    tar::ENTRIES,
    toolchains::go::ENTRIES,
    toolchains::javascript::ENTRIES,
    toolchains::version_only::ENTRIES,
    toolchains::python::ENTRIES,
    toolchains::ruby::ENTRIES,
    toolchains::rust::ENTRIES,
    toolchains::system::ENTRIES,
    transfers::ENTRIES,
    wrappers::ENTRIES,
    writing::ENTRIES,
    xml::ENTRIES,
];

static BY_NAME: LazyLock<HashMap<&'static str, KnownCommand>> = LazyLock::new(|| {
    let mut by_name = HashMap::new();
    for entry in FAMILIES.iter().copied().flatten() {
        let names = match entry {
            KnownCommand::Spec(spec) => spec.names,
            KnownCommand::Own(names, _) => names,
        };
        for name in names.split(' ') {
            by_name.insert(name, *entry);
        }
    }
    by_name
});

/// Returns whether a table describes the command.
pub fn is_known(name: &str) -> bool {
    BY_NAME.contains_key(name)
}

/// Programs that can pass a line to a shell because of a key, a line of their input, or a file.
const HANDS_ON: &[&str] = &[
    "bzmore", "crontab", "dc", "ed", "emacs", "ex", "ftp", "gvim", "less", "lftp", "more", "most",
    "nvim", "pg", "red", "sftp", "socat", "telnet", "vi", "view", "vim", "vimdiff", "xzless",
    "xzmore", "zless", "zmore",
];

/// Returns the finding for a command. The first argument is the plain name.
pub fn evaluate_command(name: &str, argv: &[Arg]) -> CommandFinding {
    let finding = match BY_NAME.get(name) {
        Some(KnownCommand::Spec(spec)) => options::evaluate(spec, argv),
        Some(KnownCommand::Own(_, own)) => own(argv),
        None if shells::is_loader(name) => shells::loader(argv),
        None => CommandFinding::unknown(format!("what {name} does is not known")),
    };
    let finding = package_launchers::with_command(name, argv, finding);
    let finding = services::required_service::with_service(name, argv, finding);
    let finding = rule_families::with_uncovered_words(argv, finding);
    let finding = irreversible::with_reason(name, argv, finding);
    let opaque = |effect: &Effect| matches!(effect, Effect::Opaque(_));
    if finding.verdict == EffectVerdict::ReadOnly
        || !HANDS_ON.contains(&name)
        || finding.effects.iter().any(opaque)
    {
        return finding;
    }
    finding.with(Effect::Opaque("it can hand a line to a shell".into()))
}

#[cfg(test)]
mod tests {
    use super::{spec::CommandSpec, *};

    #[test]
    fn every_name_is_listed_once() {
        let mut seen = HashMap::new();
        for (family, entries) in FAMILIES.iter().enumerate() {
            for entry in *entries {
                let (KnownCommand::Spec(CommandSpec { names, .. }) | KnownCommand::Own(names, _)) =
                    entry;
                for name in names.split(' ') {
                    assert!(!name.is_empty(), "a space too many in {names:?}");
                    let first = seen.insert(name, family);
                    assert_eq!(first, None, "{name} is in family {family} too");
                }
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]

        #[test]
        fn no_words_make_a_table_panic(
            words in proptest::collection::vec("(--?)?[a-zA-Z@:/.=*%$ -]{0,8}", 0..6),
        ) {
            for name in BY_NAME.keys() {
                let literal = |(at, text): (usize, &String)| {
                    let span = crate::ast::Span { start: at, end: at + 1 };
                    Arg::literal(text.clone(), span)
                };
                let all = [(*name).to_owned()];
                let argv: Vec<Arg> = all.iter().chain(&words).enumerate().map(literal).collect();
                evaluate_command(name, &argv);
            }
        }
    }
}
