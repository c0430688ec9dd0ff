//! Programs whose leading arguments select what they do: `docker container ls`.

use super::{
    options,
    spec::{CommandEffect, CommandSpec, OptionStyle},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, EffectVerdict},
};

/// A program with verbs.
pub(super) struct VerbProgram {
    /// The options before the verb. The table's `names` field is ignored.
    pub(super) before: CommandSpec,
    /// Verbs with a table. A verb of two arguments is written `container/ls`.
    pub(super) verbs: &'static [CommandSpec],
    /// Verbs that are unsafe regardless of their options: the verbs, whether they certainly make a
    /// change, and the reason.
    pub(super) others: &'static [UnsafeVerbs],
    /// The reason for an unknown verb.
    pub(super) unknown: &'static str,
}

/// Verbs that are unsafe regardless of their options.
pub(super) struct UnsafeVerbs {
    verbs: &'static str,
    verdict: EffectVerdict,
    why: &'static str,
    contacts: bool,
    /// The number of further arguments that belong to the verb.
    more: usize,
}

/// Describes verbs that make a change.
pub(super) const fn change(verbs: &'static str, why: &'static str) -> UnsafeVerbs {
    UnsafeVerbs {
        verbs,
        verdict: EffectVerdict::Mutating,
        why,
        contacts: false,
        more: 0,
    }
}

/// Describes verbs whose effect is unpredictable.
pub(super) const fn unsure(verbs: &'static str, why: &'static str) -> UnsafeVerbs {
    UnsafeVerbs {
        verdict: EffectVerdict::Unknown,
        ..change(verbs, why)
    }
}

impl UnsafeVerbs {
    /// Adds a contacted host that the line does not name.
    pub(super) const fn contacting(self) -> Self {
        Self {
            contacts: true,
            ..self
        }
    }

    /// Requires one more argument, which selects the operation.
    pub(super) const fn groups(self) -> Self {
        Self { more: 1, ..self }
    }

    fn finding(&self) -> CommandFinding {
        let finding = match self.verdict {
            EffectVerdict::Mutating => CommandFinding::mutating(self.why),
            _ => CommandFinding::unknown(self.why),
        };
        if self.contacts {
            finding.with(Effect::Net(None))
        } else {
            finding
        }
    }
}

/// Describes a verb that only reads.
pub(super) const fn verb(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::prints(names, options)
        .style(OptionStyle::Whole)
        .strict()
}

/// Evaluates the arguments by their verb.
pub(super) fn judge(program: &'static VerbProgram, argv: &[Arg]) -> CommandFinding {
    let before = options::parse(&program.before, argv);
    let at = argv.len() - before.operands.len();
    let words = &argv[at..];
    let finding = match words.first() {
        None => match program.before.does {
            // Without a verb, most programs print their usage.
            CommandEffect::Unsure(why) if before.options.is_empty() => CommandFinding::unknown(why),
            _ => CommandFinding::read_only("it only prints"),
        },
        Some(_) => by_verb(program, words),
    };
    let finding = match before.verdict() {
        Some(refused) => CommandFinding {
            verdict: finding.verdict.max(refused.verdict),
            effects: finding.effects,
            starts: finding.starts,
            ..refused
        },
        None => finding,
    };
    before.add_hidden_programs(finding)
}

fn by_verb(program: &'static VerbProgram, words: &[Arg]) -> CommandFinding {
    let named = words
        .iter()
        .map_while(|arg| arg.text().filter(|text| !text.starts_with('-')));
    let named: Vec<&str> = named.take(3).collect();
    for count in (1..=named.len()).rev() {
        let name = named[..count].join("/");
        let words = &words[count - 1..];
        if let Some(spec) = program.verbs.iter().find(|spec| spec.is_called(&name)) {
            return options::evaluate(spec, words);
        }
        let mut others = program.others.iter();
        let other = others.find(|other| other.verbs.split(' ').any(|verb| verb == name));
        if let Some(other) = other {
            let asks = matches!(words, [.., last] if last.is("--help"))
                && (words.len() == 2 || words.len() == 2 + other.more);
            return if asks {
                CommandFinding::read_only("it only prints how it is used")
            } else {
                other.finding()
            };
        }
    }
    CommandFinding::unknown(program.unknown).with_span(words[0].span)
}

#[cfg(test)]
impl VerbProgram {
    pub(super) fn assert_well_formed(&self) {
        super::testing::assert_well_formed(self.verbs);
        super::testing::assert_well_formed(&[self.before]);
    }
}
