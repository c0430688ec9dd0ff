//! Decides whether the arguments are a command or a prompt.

use std::ffi::OsString;

use clap::CommandFactory;

use super::{Cli, foreign_commands};

/// Returns whether the arguments are a prompt and not a command. If the first argument is a command, they are not.
/// Otherwise they are a prompt if they contain `-p` or a format flag, or if no argument is a command and not all of
/// them ask for help or the version.
pub(super) fn is_headless(args: &[OsString]) -> bool {
    let words: Vec<&str> = args
        .iter()
        .map(|arg| arg.to_str().unwrap_or_default())
        .collect();
    let end = words.iter().position(|word| *word == "--");
    let flags = &words[..end.unwrap_or(words.len())];
    let commands = commands();
    let is_command = |word: &&str| commands.iter().any(|name| name == word);
    if flags.first().is_some_and(is_command) {
        return false;
    }
    let says_so = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        let short = word.len() > 1 && word.starts_with('-') && !word.starts_with("--");
        matches!(name, "--print" | "--output-format" | "--input-format")
            || (short && word.contains('p'))
    };
    if flags.iter().any(says_so) {
        return true;
    }
    let about_us = |word: &&str| matches!(*word, "-h" | "--help" | "-v" | "-V" | "--version");
    let is_about_us = end.is_none() && flags.iter().all(about_us);
    !is_about_us && !flags.iter().any(is_command)
}

/// Returns the names of our commands.
pub(super) fn commands() -> Vec<String> {
    let cli = Cli::command();
    let names = cli.get_subcommands().map(|one| one.get_name().to_owned());
    names.collect()
}

/// Returns the name of our command or of a foreign command that a mistyped word is close to.
pub(super) fn mistyped(word: &str) -> Option<String> {
    let distance = |name: &str| strsim::damerau_levenshtein(word, name);
    let near = commands().into_iter().filter(|name| distance(name) <= 2);
    let instead = foreign_commands::names().filter(|name| distance(name) <= 1);
    near.chain(instead.map(str::to_owned))
        .min_by_key(|name| distance(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::HeadlessCli;

    fn args(line: &str) -> Vec<OsString> {
        line.split(' ')
            .filter(|word| !word.is_empty())
            .map(OsString::from)
            .collect()
    }

    #[test]
    fn a_subcommand_is_one_wherever_flags_stand_and_the_rest_is_a_prompt() {
        for line in [
            "",
            "exec",
            "--cwd x exec",
            "call X -p",
            "-h",
            "--version",
            "help",
        ] {
            assert!(!is_headless(&args(line)), "{line}");
        }
        for line in [
            "-p hi",
            "-p tools",
            "hello",
            "-- exec",
            "--model m hi",
            "-cp",
            "--resume=x",
        ] {
            assert!(is_headless(&args(line)), "{line}");
        }
        let sdk = "--output-format stream-json --verbose --input-format stream-json";
        assert!(is_headless(&args(sdk)));
    }

    #[test]
    fn a_word_that_is_nearly_a_subcommand_is_taken_for_one() {
        assert_eq!(mistyped("tolos").as_deref(), Some("tools"));
        assert_eq!(mistyped("execc").as_deref(), Some("exec"));
        assert_eq!(mistyped("explain"), None);
        // Nor is one that is nearly a word of other programs sent to a model.
        assert_eq!(mistyped("updates").as_deref(), Some("update"));
        assert_eq!(mistyped("confg").as_deref(), Some("config"));
        assert_eq!(mistyped("date"), None);
    }

    #[test]
    fn the_flags_make_sense_together() {
        Cli::command().debug_assert();
        HeadlessCli::command().debug_assert();
    }
}
