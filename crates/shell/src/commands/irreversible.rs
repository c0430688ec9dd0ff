//! Commands whose effect cannot be undone on this machine: they change a remote repository, publish,
//! change infrastructure, reach another machine or leave the sandbox.
//!
//! The permission mode `auto` asks about them. The table lists programs by name; their arguments
//! decide. Wrappers need no row, because the commands that they start are separate parts. If the line
//! hides the arguments that would decide, the command is treated as irreversible.

mod table;
#[cfg(test)]
mod tests;
mod transfers;

use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, EffectVerdict},
};

/// The reasons, phrased to follow "because".
const CHANGES_REMOTE: &str = "it changes a remote repository";
const PUBLISHES: &str = "it publishes";
const CHANGES_SERVICES: &str = "it changes infrastructure or services";
const REACHES_MACHINE: &str = "it reaches another machine";
const SENDS: &str = "it sends data to a host";
const CHANGES_RIGHTS: &str = "it runs with other rights";
const CHANGES_PACKAGES: &str = "it changes the packages of the system";

/// A program some of whose calls are irreversible.
struct IrreversibleProgram {
    /// The program's names, separated by spaces.
    names: &'static str,
    reason: &'static str,
    /// The calls that are irreversible.
    calls: IrreversibleCalls,
    /// The options before the verb that take the next argument as their value.
    valued: &'static str,
    /// The options before the verb that take no value.
    flags: &'static str,
}

/// The irreversible calls of a program. In the lists, `pr/merge` is a verb of two arguments, and
/// `list-*` is any argument that begins with `list-`.
enum IrreversibleCalls {
    /// Every call that is not read-only.
    All,
    /// The calls with one of these verbs.
    Verbs(&'static str),
    /// The calls with one of these arguments, at any place.
    Words(&'static str),
    /// Every call except those with a verb that only reads: in this list, or by this function.
    Unless(&'static str, fn(&str) -> bool),
    /// Every call, unless its first listed argument is in the first list. The second list contains
    /// verbs that make a change.
    UnlessFirst(&'static str, &'static str),
    /// Computed from the arguments.
    Computed(fn(&[Arg]) -> bool),
}

/// Adds [`Effect::Irreversible`] to the finding of a command in the table. The first argument is
/// the plain name.
pub(super) fn with_reason(name: &str, argv: &[Arg], finding: CommandFinding) -> CommandFinding {
    if finding.verdict <= EffectVerdict::ReadsNetwork {
        return finding;
    }
    match reason(name, argv) {
        Some(reason) => finding.with(Effect::Irreversible(reason)),
        None => finding,
    }
}

fn reason(name: &str, argv: &[Arg]) -> Option<&'static str> {
    if name.starts_with("python") {
        return module_reason(argv);
    }
    let program = table::PROGRAMS.iter();
    let mut program = program.filter(|program| listed(program.names, name));
    program
        .find(|program| program.includes(argv))
        .map(|program| program.reason)
}

/// Returns the reason for `python -m twine upload` and similar calls.
fn module_reason(argv: &[Arg]) -> Option<&'static str> {
    let mut words = argv.iter().enumerate().skip(1);
    let (at, _) = words.find(|(_, word)| word.is("-m") || word.is("setup.py"))?;
    if argv.get(at).is_some_and(|word| word.is("setup.py")) {
        let uploads = |word: &Arg| word.is("upload") || word.is("register");
        return argv.iter().skip(at).any(uploads).then_some(PUBLISHES);
    }
    let module = argv.get(at + 1)?;
    let name = module.text()?;
    (!name.starts_with("python"))
        .then(|| reason(name, argv.get(at + 1..)?))
        .flatten()
}

impl IrreversibleProgram {
    const fn new(names: &'static str, reason: &'static str, calls: IrreversibleCalls) -> Self {
        Self {
            names,
            reason,
            calls,
            valued: "",
            flags: "",
        }
    }

    const fn options(self, valued: &'static str, flags: &'static str) -> Self {
        Self {
            valued,
            flags,
            ..self
        }
    }

    fn includes(&self, argv: &[Arg]) -> bool {
        match self.calls {
            IrreversibleCalls::All => true,
            IrreversibleCalls::Computed(includes) => includes(argv),
            IrreversibleCalls::Words(list) => {
                let mut words = argv.iter().skip(1);
                words.any(|word| word.text().is_none_or(|word| listed(list, word)))
            }
            IrreversibleCalls::Verbs(list) => {
                let words = VerbWords::new(argv, self);
                list.split_ascii_whitespace().any(|verb| words.may_be(verb))
            }
            IrreversibleCalls::Unless(list, reads) => {
                let words = VerbWords::new(argv, self);
                !words.is_certainly(|verb| listed(list, verb) || reads(verb))
            }
            IrreversibleCalls::UnlessFirst(reading, changing) => {
                let words = VerbWords::new(argv, self);
                !words.reads_first(reading, changing)
            }
        }
    }
}

/// The arguments of a command that are not options, from the left.
struct VerbWords<'a> {
    /// The arguments. `None` is text that the line does not show, and nothing follows it.
    words: Vec<Option<&'a str>>,
    /// The number of arguments before the first option that the table does not list. That option may
    /// take the next argument as its value.
    certain: usize,
    /// The number of unlisted options before the first argument.
    unlisted: usize,
}

impl<'a> VerbWords<'a> {
    fn new(argv: &'a [Arg], program: &IrreversibleProgram) -> Self {
        let mut found = Self {
            words: Vec::new(),
            certain: usize::MAX,
            unlisted: 0,
        };
        let mut rest = argv.iter().skip(1);
        while let Some(arg) = rest.next() {
            let Some(text) = arg.text() else {
                found.words.push(None);
                break;
            };
            match text {
                _ if listed(program.valued, text) => {
                    rest.next();
                }
                _ if listed(program.flags, text) => {}
                // `cargo +nightly publish`
                text if text.starts_with('+') && found.words.is_empty() => {}
                text if text.starts_with('-') && text.len() > 1 => {
                    // `--option=value` contains its value.
                    if !text.contains('=') {
                        found.certain = found.certain.min(found.words.len());
                        found.unlisted += usize::from(found.words.is_empty());
                    }
                }
                text => found.words.push(Some(text)),
            }
        }
        found
    }

    /// Returns whether the arguments may select this verb.
    fn may_be(&self, verb: &str) -> bool {
        (0..=self.unlisted).any(|skipped| {
            let mut words = self.words.iter().skip(skipped);
            verb.split('/').enumerate().all(|(at, part)| {
                let is_part = |word: &&Option<&str>| word.is_none_or(|word| fits(part, word));
                match at {
                    0 => words.next().as_ref().is_some_and(is_part),
                    // Values of options may be between the parts of a verb.
                    _ => words.any(|word| is_part(&word)),
                }
            })
        }) || self.words.first() == Some(&None)
    }

    /// Returns whether the arguments certainly select a verb with this property.
    fn is_certainly(&self, has_property: impl Fn(&str) -> bool) -> bool {
        let certain = self.words.iter().take(self.certain);
        let certain = certain.map_while(|word| *word).take(MAX_VERB);
        let certain: Vec<&str> = certain.collect();
        (1..=certain.len()).any(|count| has_property(&certain[..count].join("/")))
    }

    /// Returns whether the first argument in either list is certainly in `reading`.
    fn reads_first(&self, reading: &str, changing: &str) -> bool {
        let words = self.words.iter().take(self.certain).map_while(|word| *word);
        let mut verbs = words.filter(|word| listed(reading, word) || listed(changing, word));
        verbs.next().is_some_and(|verb| listed(reading, verb))
    }
}

/// The maximum number of arguments in a verb.
const MAX_VERB: usize = 3;

/// Returns whether a list separated by spaces contains this argument, or this verb of several
/// arguments.
fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|entry| {
        entry == word || {
            let mut parts = entry.split('/').zip(word.split('/'));
            entry.contains('*')
                && entry.matches('/').count() == word.matches('/').count()
                && parts.all(|(entry, word)| fits(entry, word))
        }
    })
}

/// Returns whether a part of a verb in the table, `list` or `list-*`, fits an argument.
fn fits(entry: &str, word: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => entry == word,
    }
}
