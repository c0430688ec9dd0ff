//! The parser for a command's arguments, driven by the command's table.

use std::borrow::Cow;

use super::spec::{CommandEffect, CommandSpec, OperandKind, OptionStyle, UnsafeOption};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict, FileRead, FileWrite, WriteKind},
};

/// The parsed arguments of a command.
#[derive(Debug)]
pub struct ParsedArguments<'a> {
    /// The table that describes the command.
    pub spec: &'static CommandSpec,
    /// All arguments, the name first.
    pub argv: &'a [Arg],
    /// The options, in the order of the line.
    pub options: Vec<GivenOption>,
    /// The arguments that are not options.
    pub operands: Vec<&'a Arg>,
    /// The number of operands before `--`, or `None` without `--`.
    pub before_dashes: Option<usize>,
    /// The first option that is not known to be safe: the reason and its place.
    pub problem: Option<(Cow<'static, str>, Span)>,
}

/// An option in the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption {
    /// The option's name as the table lists it, with its dashes, even if the line abbreviates it.
    pub name: &'static str,
    /// Its value, if it takes one.
    pub value: Option<Arg>,
    /// The option's place in the line.
    pub span: Span,
    role: OptionValueRole,
    refused: Option<&'static UnsafeOption>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionArity {
    Flag,
    Required,
    /// Only in the same argument.
    Attached,
}

/// The role of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionValueRole {
    Text,
    Read,
    Written,
}

/// An option as the table lists it.
#[derive(Debug, Clone, Copy)]
struct OptionEntry {
    name: &'static str,
    arity: OptionArity,
    role: OptionValueRole,
    refused: Option<&'static UnsafeOption>,
}

impl GivenOption {
    /// Returns whether the value is an output file such as `/dev/null`, which stores nothing.
    fn is_discarded(&self) -> bool {
        self.role == OptionValueRole::Written && self.value.as_ref().is_some_and(is_no_file)
    }
}

impl ParsedArguments<'_> {
    /// Returns whether the option is present. `name` is its name in the table.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|given| given.name == name)
    }

    /// Returns the last value of the option.
    pub fn value(&self, name: &str) -> Option<&Arg> {
        let given = self.options.iter().rev().find(|given| given.name == name);
        given.and_then(|given| given.value.as_ref())
    }

    /// Evaluates the arguments with the table, with `operands` as the kind of the operands.
    pub fn finding(&self, operands: OperandKind) -> CommandFinding {
        let finding = match self.spec.does {
            // A refused option gives a more precise reason than the command's own reason.
            CommandEffect::Unsure(why) => self
                .refusal()
                .unwrap_or_else(|| CommandFinding::unknown(why)),
            CommandEffect::Read | CommandEffect::Computed(_) => {
                let harmless = || CommandFinding::read_only("it only reads");
                self.verdict().unwrap_or_else(harmless)
            }
            CommandEffect::Change(what) => self
                .verdict()
                .unwrap_or_else(|| CommandFinding::mutating(what)),
        };
        self.with_effects(finding, operands)
    }

    /// Returns the finding of a refused or unknown option, if any.
    pub fn verdict(&self) -> Option<CommandFinding> {
        self.refusal().or_else(|| {
            let (why, span) = self.problem.as_ref()?;
            Some(CommandFinding::unknown(why.clone()).with_span(*span))
        })
    }

    /// Returns the finding of a refused option, if any.
    fn refusal(&self) -> Option<CommandFinding> {
        let mut written = self.options.iter().filter(|given| !given.is_discarded());
        let (given, refused) = written.find_map(|given| Some((given, given.refused?)))?;
        let reason = format!("{} {}", given.name, refused.why);
        let finding = match refused.verdict {
            EffectVerdict::Mutating => CommandFinding::mutating(reason),
            _ => CommandFinding::unknown(reason),
        };
        let finding = finding.with_span(given.span);
        Some(if refused.exact {
            finding.requiring_exact_rule()
        } else {
            finding
        })
    }

    /// If an option starts a program that the finding does not show, adds [`Effect::Opaque`].
    pub(super) fn add_hidden_programs(&self, finding: CommandFinding) -> CommandFinding {
        let starts = |given: &&GivenOption| given.refused.is_some_and(|refused| refused.exact);
        let shown = !finding.starts.is_empty()
            || finding
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::Opaque(_)));
        match self.options.iter().find(starts) {
            Some(given) if !shown => {
                let why = "starts or chooses a program that cannot be read from the line";
                finding.with(Effect::Opaque(format!("{} {why}", given.name).into()))
            }
            _ => finding,
        }
    }

    /// Adds the effects of the option values and the operands to a finding.
    pub fn with_effects(
        &self,
        mut finding: CommandFinding,
        operands: OperandKind,
    ) -> CommandFinding {
        let work = matches!(
            self.spec.does,
            CommandEffect::Change(_) | CommandEffect::Unsure(_)
        );
        for given in self.options.iter().filter(|given| !given.is_discarded()) {
            let Some(value) = &given.value else { continue };
            match given.role {
                OptionValueRole::Text => {}
                OptionValueRole::Read => finding.effects.extend(file(value)),
                OptionValueRole::Written => finding.effects.push(Effect::Write(FileWrite {
                    path: value.clone(),
                    kind: if work {
                        WriteKind::OperandWrite
                    } else {
                        WriteKind::OptionWrite
                    },
                })),
            }
        }
        finding
            .effects
            .extend(operand_effects(&self.operands, operands, self.argv));
        finding
    }
}

/// Returns the effects of operands of this kind.
fn operand_effects(operands: &[&Arg], kind: OperandKind, argv: &[Arg]) -> Vec<Effect> {
    let write = |arg: &&Arg, how| written(arg, how);
    match kind {
        OperandKind::None | OperandKind::Text => Vec::new(),
        OperandKind::Files => operands.iter().filter_map(|arg| file(arg)).collect(),
        OperandKind::Names if operands.is_empty() => {
            let span = argv
                .first()
                .map_or(Span { start: 0, end: 0 }, |arg| arg.span);
            vec![names(&Arg::literal(".", span))]
        }
        OperandKind::Names => operands.iter().map(|arg| names(arg)).collect(),
        OperandKind::TextThenFiles => operands
            .iter()
            .skip(1)
            .filter_map(|arg| file(arg))
            .collect(),
        OperandKind::Written => operands
            .iter()
            .map(|arg| write(arg, WriteKind::OperandWrite))
            .collect(),
        OperandKind::Removed => operands
            .iter()
            .map(|arg| write(arg, WriteKind::Removal))
            .collect(),
        OperandKind::ReadThenWritten => match operands.split_last() {
            Some((last, others)) => others
                .iter()
                .map(|arg| content(arg))
                .chain([write(last, WriteKind::OperandWrite)])
                .collect(),
            None => Vec::new(),
        },
    }
}

/// Returns a read of a file's content, or `None` for standard input.
fn file(arg: &Arg) -> Option<Effect> {
    (!arg.is("-")).then(|| content(arg))
}

/// Returns a read of a file's content.
pub fn content(arg: &Arg) -> Effect {
    Effect::Read(FileRead {
        path: arg.clone(),
        content: true,
        is_recursive: false,
    })
}

/// Returns a read of a file's names and dates.
pub fn names(arg: &Arg) -> Effect {
    Effect::Read(FileRead {
        path: arg.clone(),
        content: false,
        is_recursive: false,
    })
}

/// Returns a read of the content of everything below a path.
pub fn tree(arg: &Arg) -> Effect {
    Effect::Read(FileRead {
        path: arg.clone(),
        content: true,
        is_recursive: true,
    })
}

/// Returns a read of the names of everything below a path.
pub fn names_below(arg: &Arg) -> Effect {
    Effect::Read(FileRead {
        path: arg.clone(),
        content: false,
        is_recursive: true,
    })
}

/// Returns a write of a file.
pub fn written(arg: &Arg, how: WriteKind) -> Effect {
    Effect::Write(FileWrite {
        path: arg.clone(),
        kind: how,
    })
}

/// Returns whether writing to this path changes no file.
pub fn is_no_file(arg: &Arg) -> bool {
    matches!(
        arg.text(),
        Some("/dev/null" | "/dev/stdout" | "/dev/stderr")
    )
}

/// Evaluates the arguments with a table.
pub fn evaluate(spec: &'static CommandSpec, argv: &[Arg]) -> CommandFinding {
    let parsed = parse(spec, argv);
    let finding = match spec.does {
        CommandEffect::Computed(own) => own(&parsed),
        CommandEffect::Read | CommandEffect::Change(_) | CommandEffect::Unsure(_) => {
            parsed.finding(spec.operands)
        }
    };
    parsed.add_hidden_programs(finding)
}

/// Parses the arguments. Never fails: an argument that is not in the table is recorded as a
/// problem, and parsing continues, so that no path after it is missed.
pub fn parse<'a>(spec: &'static CommandSpec, argv: &'a [Arg]) -> ParsedArguments<'a> {
    let mut parsed = ParsedArguments {
        spec,
        argv,
        options: Vec::new(),
        operands: Vec::new(),
        before_dashes: None,
        problem: None,
    };
    let mut rest = argv.get(1..).unwrap_or_default().iter();
    while let Some(arg) = rest.next() {
        if parsed.holds_value(arg) {
            continue;
        }
        // In practice, a pattern that begins with a dash matches no file and is passed on as an
        // option.
        let dashed = match &arg.value {
            ArgValue::Glob(text) if !spec.strict && text.starts_with('-') => Some(text.as_str()),
            _ => None,
        };
        let Some(text) = arg.text().or(dashed) else {
            if spec.strict {
                parsed.record_problem(
                    "the result of an expansion may be an unsafe option",
                    arg.span,
                );
            } else if let ArgValue::Unknown { prefix, .. } = &arg.value
                && prefix.starts_with('-')
            {
                parsed.record_problem("an option holds an expansion", arg.span);
            }
            parsed.operands.push(arg);
            if spec.style == OptionStyle::Posix {
                parsed.operands.extend(rest);
                break;
            }
            continue;
        };
        if text == "--" {
            parsed.before_dashes = Some(parsed.operands.len());
            parsed.rest_are_operands(rest.as_slice());
            break;
        }
        let is_option = text.len() > 1 && text.starts_with('-');
        if !is_option {
            parsed.operands.push(arg);
            if spec.style == OptionStyle::Posix {
                parsed.rest_are_operands(rest.as_slice());
                break;
            }
        } else if text.starts_with("--") || spec.style == OptionStyle::Words {
            parsed.long(text, arg, &mut rest);
        } else {
            parsed.bundle(text, arg, &mut rest);
        }
    }
    parsed
}

impl<'a> ParsedArguments<'a> {
    fn record_problem(&mut self, why: impl Into<Cow<'static, str>>, span: Span) {
        self.problem.get_or_insert_with(|| (why.into(), span));
    }

    fn rest_are_operands(&mut self, rest: &'a [Arg]) {
        for arg in rest {
            if self.spec.strict && self.spec.style != OptionStyle::Posix && arg.text().is_none() {
                self.record_problem("an operand is not certain", arg.span);
            }
            self.operands.push(arg);
        }
    }

    fn give(&mut self, listed: OptionEntry, value: Option<Arg>, span: Span) {
        self.options.push(GivenOption {
            name: listed.name,
            value,
            span,
            role: listed.role,
            refused: listed.refused,
        });
    }

    /// Parses an argument such as `-n$count` or `--lines=$count`, where only the option's value is
    /// an expansion. Returns `false` for any other argument.
    fn holds_value(&mut self, arg: &Arg) -> bool {
        let ArgValue::Unknown { prefix, one } = &arg.value else {
            return false;
        };
        if !prefix.starts_with('-') || (self.spec.strict && !one) {
            return false;
        }
        // `head -$count`: every option of the command is safe, and this one is a number.
        if !self.spec.strict && prefix == "-" && listed(self.spec).any(|listed| listed.name == "-#")
        {
            return true;
        }
        let (mut flags, mut found) = (Vec::new(), None);
        if prefix.starts_with("--") || self.spec.style == OptionStyle::Words {
            found = prefix
                .split_once('=')
                .and_then(|(name, value)| Some((find_long(self.spec, name)?, value)));
        } else {
            for (at, letter) in prefix.char_indices().skip(1) {
                match find_short(self.spec, letter) {
                    None => return false,
                    Some(listed) if listed.arity == OptionArity::Flag => flags.push(listed),
                    Some(listed) => {
                        found = Some((listed, &prefix[at + letter.len_utf8()..]));
                        break;
                    }
                }
            }
        }
        let Some((listed, value)) = found.filter(|(listed, _)| listed.arity != OptionArity::Flag)
        else {
            return false;
        };
        // If the expansion is empty, the next argument becomes the value.
        let may_take_next =
            !prefix.starts_with("--") && listed.arity == OptionArity::Required && value.is_empty();
        if self.spec.strict && may_take_next {
            return false;
        }
        for flag in flags {
            self.give(flag, None, arg.span);
        }
        let value = ArgValue::Unknown {
            prefix: value.to_owned(),
            one: *one,
        };
        let value = Arg {
            span: arg.span,
            value,
        };
        self.give(listed, Some(value), arg.span);
        true
    }

    /// Reads the value of an option that takes the next argument.
    fn next_value(&mut self, listed: OptionEntry, arg: &Arg, rest: &mut std::slice::Iter<'a, Arg>) {
        let value = rest.next();
        match value {
            None => self.record_problem(format!("{} lacks its value", listed.name), arg.span),
            // If an expansion becomes several arguments, the extra ones change the meaning of the
            // line.
            Some(value)
                if value.text().is_none()
                    && self.spec.strict
                    && !matches!(value.value, ArgValue::Unknown { one: true, .. }) =>
            {
                self.record_problem(
                    format!("the value of {} is not certain", listed.name),
                    value.span,
                );
            }
            Some(_) => {}
        }
        self.give(listed, value.cloned(), arg.span);
    }

    fn long(&mut self, text: &str, arg: &'a Arg, rest: &mut std::slice::Iter<'a, Arg>) {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let Some(listed) = find_long(self.spec, name) else {
            let number = listed(self.spec).any(|listed| listed.name == "-#")
                && name.len() > 1
                && name[1..].bytes().all(|byte| byte.is_ascii_digit());
            if !number {
                self.record_problem(
                    format!("its option {name} is not known to be safe"),
                    arg.span,
                );
            }
            return;
        };
        match (listed.arity, attached) {
            (OptionArity::Required, None) => self.next_value(listed, arg, rest),
            (OptionArity::Required | OptionArity::Attached, Some(value)) => {
                self.give(listed, Some(Arg::literal(value, arg.span)), arg.span);
            }
            (OptionArity::Flag | OptionArity::Attached, None) => self.give(listed, None, arg.span),
            (OptionArity::Flag, Some(_)) => {
                self.record_problem(format!("its option {name} takes no value"), arg.span);
            }
        }
    }

    /// Parses `-abc`, `-n5` and `-n 5`.
    fn bundle(&mut self, text: &str, arg: &'a Arg, rest: &mut std::slice::Iter<'a, Arg>) {
        let number = text[1..].bytes().all(|byte| byte.is_ascii_digit());
        if number && listed(self.spec).any(|listed| listed.name == "-#") {
            return;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let Some(listed) = find_short(self.spec, letter) else {
                self.record_problem(
                    format!("its option -{letter} is not known to be safe"),
                    arg.span,
                );
                return;
            };
            let attached = &text[at + letter.len_utf8()..];
            match listed.arity {
                OptionArity::Flag => self.give(listed, None, arg.span),
                OptionArity::Required if attached.is_empty() => {
                    self.next_value(listed, arg, rest);
                    return;
                }
                OptionArity::Attached if attached.is_empty() => {
                    self.give(listed, None, arg.span);
                    return;
                }
                OptionArity::Required | OptionArity::Attached => {
                    self.give(listed, Some(Arg::literal(attached, arg.span)), arg.span);
                    return;
                }
            }
        }
    }
}

/// Finds a long option by its full name or by a unique abbreviation. An abbreviation that also fits
/// an option missing from the table is ambiguous for the program too, which then does nothing.
fn find_long(spec: &'static CommandSpec, name: &str) -> Option<OptionEntry> {
    if let Some(exact) = listed(spec).find(|listed| listed.name == name) {
        return Some(exact);
    }
    if matches!(spec.style, OptionStyle::Words | OptionStyle::Whole) || name.len() < 3 {
        return None;
    }
    let mut fitting = listed(spec).filter(|listed| listed.name.starts_with(name));
    let first = fitting.next()?;
    match fitting.next() {
        None => Some(first),
        Some(_) => None,
    }
}

fn find_short(spec: &'static CommandSpec, letter: char) -> Option<OptionEntry> {
    let mut buffer = [0; 4];
    let letter: &str = letter.encode_utf8(&mut buffer);
    listed(spec).find(|listed| listed.name.strip_prefix('-') == Some(letter))
}

/// Returns every option of a table. Bundled short flags are returned one by one.
fn listed(spec: &'static CommandSpec) -> impl Iterator<Item = OptionEntry> {
    let refused = spec
        .refused
        .iter()
        .flat_map(|refused| option_entries(refused.options, Some(refused), spec.style));
    option_entries(spec.options, None, spec.style).chain(refused)
}

fn option_entries(
    options: &'static str,
    refused: Option<&'static UnsafeOption>,
    style: OptionStyle,
) -> impl Iterator<Item = OptionEntry> {
    options.split_ascii_whitespace().flat_map(move |word| {
        let (name, arity, role) = if let Some(name) = word.strip_suffix("=?") {
            (name, OptionArity::Attached, OptionValueRole::Text)
        } else if let Some(name) = word.strip_suffix('?') {
            (name, OptionArity::Attached, OptionValueRole::Text)
        } else if let Some(name) = word.strip_suffix([':', '=']) {
            (name, OptionArity::Required, OptionValueRole::Text)
        } else if let Some(name) = word.strip_suffix('<') {
            (name, OptionArity::Required, OptionValueRole::Read)
        } else if let Some(name) = word.strip_suffix('>') {
            (name, OptionArity::Required, OptionValueRole::Written)
        } else {
            (word, OptionArity::Flag, OptionValueRole::Text)
        };
        let bundle = arity == OptionArity::Flag
            && style != OptionStyle::Words
            && !name.starts_with("--")
            && name.len() > 2
            && name != "-#";
        debug_assert!(
            arity == OptionArity::Flag
                || style == OptionStyle::Words
                || name.starts_with("--")
                || name.len() == 2,
            "{word}: only one letter takes a value"
        );
        let letters: &'static str = if bundle { &name[1..] } else { "" };
        let one = (!bundle).then_some(OptionEntry {
            name,
            arity,
            role,
            refused,
        });
        let several = letters.char_indices().map(move |(at, letter)| OptionEntry {
            name: short(&letters[at..at + letter.len_utf8()]),
            arity,
            role,
            refused,
        });
        one.into_iter().chain(several)
    })
}

/// Returns `-x` for a letter of a bundle. The table holds the letters without dashes, but names
/// need one.
fn short(letter: &'static str) -> &'static str {
    const NAMES: &str = "-0-1-2-3-4-5-6-7-8-9-A-B-C-D-E-F-G-H-I-J-K-L-M-N-O-P-Q-R-S-T-U-V-W-X-Y-Z\
                         -a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t-u-v-w-x-y-z-@-?-+-%-.-,-_-/-=-:";
    let bytes = NAMES.as_bytes();
    let at = (0..bytes.len() / 2).find(|at| bytes[at * 2 + 1] == letter.as_bytes()[0]);
    debug_assert!(at.is_some(), "{letter} is not an option letter");
    at.map_or("", |at| &NAMES[at * 2..at * 2 + 2])
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
