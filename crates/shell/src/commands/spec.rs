//! How a table describes a command.

use super::options::ParsedArguments;
use crate::{arg::Arg, effect::CommandFinding, effect::EffectVerdict};

/// What is known of a command (or of one of its subcommands).
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Its names, separated by blanks.
    pub names: &'static str,
    /// The options that keep it harmless, each with its arity; everything else makes it unknown.
    ///
    /// Separated by blanks: `-abc` are three flags, `-n:` takes a value, `-w?` takes one only in the
    /// same word, `--long` is a flag, `--long=` takes a value, `--long=?` only behind `=`; `-#` is any
    /// number. A value that is a path ends in `<` (read) or `>` (written) in place of `:` or `=`:
    /// `-f<`, `--file<`, `-o>`, `--output>`.
    pub options: &'static str,
    /// Options that are known and not harmless.
    pub refused: &'static [Refused],
    /// What its operands are.
    pub operands: Operands,
    /// What it does when every option is a harmless one.
    pub does: Does,
    /// How its arguments are read.
    pub style: OptionStyle,
    /// It has options (or operands) that do harm, so that every word must be certain.
    pub strict: bool,
}

/// Options that are known and not harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Which, written as in [`Spec::options`].
    pub options: &'static str,
    /// What they make of the command.
    pub verdict: EffectVerdict,
    /// Why, in words that fit behind "because".
    pub why: &'static str,
    /// Only an exact rule lets it through: it starts a program, deletes, or injects configuration.
    pub exact: bool,
}

/// How arguments are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionStyle {
    /// Options anywhere, short ones bundled, long ones abbreviated.
    Gnu,
    /// The same, but the first operand ends them.
    Posix,
    /// Options anywhere, short ones bundled, long ones never abbreviated: an option that the table
    /// lacks must not be taken for a longer one that it has (programs in Go, and many others).
    Whole,
    /// Each word behind one dash is an option of its own: `-name`, `-version`.
    Words,
}

/// What a command does by itself.
#[derive(Debug, Clone, Copy)]
pub enum Does {
    /// Only reads and prints.
    Read,
    /// Changes something: what, in words that fit behind "because".
    Change(&'static str),
    /// Something we cannot vouch for: why.
    Unsure(&'static str),
    /// More than a table can say.
    Own(fn(&ParsedArguments<'_>) -> CommandFinding),
}

/// What operands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// There may be none.
    None,
    /// Any text.
    Text,
    /// Files whose content is read; none, or `-`: standard input.
    Files,
    /// Files or directories whose names or dates are looked at; none: the current directory.
    Names,
    /// The first is a text (a pattern, a program), the rest are files that are read.
    TextThenFiles,
    /// Everything is written (created, changed).
    Written,
    /// Everything is removed.
    Removed,
    /// The last is written, the others are read.
    ReadThenWritten,
}

impl Spec {
    /// A command that reads its operands as files and has no option that does harm.
    pub const fn reads(names: &'static str, options: &'static str) -> Self {
        Self {
            names,
            options,
            refused: &[],
            operands: Operands::Files,
            does: Does::Read,
            style: OptionStyle::Gnu,
            strict: false,
        }
    }

    /// A command that only prints what its arguments say.
    pub const fn prints(names: &'static str, options: &'static str) -> Self {
        Self::reads(names, options).operands(Operands::Text)
    }

    /// A command that changes something.
    pub const fn changes(names: &'static str, options: &'static str, what: &'static str) -> Self {
        Self {
            does: Does::Change(what),
            ..Self::reads(names, options)
        }
    }

    /// A command no one can vouch for.
    pub const fn unsure(names: &'static str, why: &'static str) -> Self {
        Self {
            does: Does::Unsure(why),
            ..Self::reads(names, "")
        }
    }

    /// The same with other operands.
    pub const fn operands(self, operands: Operands) -> Self {
        Self { operands, ..self }
    }

    /// The same with options that are known and not harmless.
    pub const fn refusing(self, refused: &'static [Refused]) -> Self {
        Self { refused, ..self }
    }

    /// The same, reading its arguments in another way.
    pub const fn style(self, style: OptionStyle) -> Self {
        Self { style, ..self }
    }

    /// The same, where every word must be certain.
    pub const fn strict(self) -> Self {
        Self {
            strict: true,
            ..self
        }
    }

    /// The same, judged by a function of its own once its options are read.
    pub const fn judged(self, own: fn(&ParsedArguments<'_>) -> CommandFinding) -> Self {
        Self {
            does: Does::Own(own),
            ..self
        }
    }

    /// Has it this name?
    pub fn is_called(&self, name: &str) -> bool {
        self.names.split(' ').any(|own| own == name)
    }
}

/// An option that makes a reading command write.
pub const fn writes(options: &'static str, why: &'static str) -> Refused {
    Refused {
        options,
        verdict: EffectVerdict::Mutating,
        why,
        exact: false,
    }
}

/// An option that starts a program, deletes, or injects configuration.
pub const fn runs(options: &'static str, why: &'static str) -> Refused {
    Refused {
        options,
        verdict: EffectVerdict::Unknown,
        why,
        exact: true,
    }
}

/// An option that makes a command no one can vouch for.
pub const fn doubts(options: &'static str, why: &'static str) -> Refused {
    Refused {
        options,
        verdict: EffectVerdict::Unknown,
        why,
        exact: false,
    }
}

/// How a command is judged.
#[derive(Debug, Clone, Copy)]
pub enum CommandEntry {
    /// By a table.
    Spec(&'static Spec),
    /// By a function; the first word is the name.
    Own(&'static str, fn(&[Arg]) -> CommandFinding),
}
