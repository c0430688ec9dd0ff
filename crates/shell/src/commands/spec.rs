//! The table format that describes a command.

use super::options::ParsedArguments;
use crate::{arg::Arg, effect::CommandFinding, effect::EffectVerdict};

/// The description of a command (or of one of its subcommands).
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    /// The command's names, separated by spaces.
    pub names: &'static str,
    /// The options that keep the command safe, each with its arity. Any other option makes it
    /// unknown.
    ///
    /// Separated by spaces: `-abc` are three flags, `-n:` takes a value, `-w?` takes one only in
    /// the same argument, `--long` is a flag, `--long=` takes a value, `--long=?` only after `=`;
    /// `-#` is any number. A value that is a path ends in `<` (read) or `>` (written) instead of
    /// `:` or `=`: `-f<`, `--file<`, `-o>`, `--output>`.
    pub options: &'static str,
    /// Options that are known and not safe.
    pub refused: &'static [UnsafeOption],
    /// The kind of the operands.
    pub operands: OperandKind,
    /// The command's effect if every option is safe.
    pub does: CommandEffect,
    /// The way the command parses its arguments.
    pub style: OptionStyle,
    /// The command has unsafe options (or operands), so every argument must be certain.
    pub strict: bool,
}

/// Options that are known and not safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsafeOption {
    /// The options, written as in [`CommandSpec::options`].
    pub options: &'static str,
    /// The verdict for a command with one of these options.
    pub verdict: EffectVerdict,
    /// The reason, phrased to follow "because".
    pub why: &'static str,
    /// Only an exact rule may allow it: it starts a program, deletes, or injects configuration.
    pub exact: bool,
}

/// The way a command parses its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionStyle {
    /// Options anywhere, short ones bundled, long ones abbreviated.
    Gnu,
    /// Like [`OptionStyle::Gnu`], but the first operand ends the options.
    Posix,
    /// Options anywhere, short ones bundled, long ones never abbreviated (programs in Go, and many
    /// others). An option that is missing from the table must not be mistaken for the abbreviation
    /// of a longer one.
    Whole,
    /// Each argument after one dash is one option: `-name`, `-version`.
    Words,
}

/// The effect of a command, without the programs it starts.
#[derive(Debug, Clone, Copy)]
pub enum CommandEffect {
    /// Only reads and prints.
    Read,
    /// Makes a change. The text names the change, phrased to follow "because".
    Change(&'static str),
    /// Has an unpredictable effect, for this reason.
    Unsure(&'static str),
    /// Has an effect that this function computes.
    Computed(fn(&ParsedArguments<'_>) -> CommandFinding),
}

/// The kind of a command's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandKind {
    /// Operands that the table does not describe: the evaluator adds their effects, if any.
    None,
    /// Any text.
    Text,
    /// Files whose content is read. No operand, or `-`, means standard input.
    Files,
    /// Files or directories whose names or dates are read. No operand means the current directory.
    Names,
    /// The first operand is a text (a pattern, a program), the others are files that are read.
    TextThenFiles,
    /// Every operand is written (created, changed).
    Written,
    /// Every operand is removed.
    Removed,
    /// The last operand is written, the others are read.
    ReadThenWritten,
}

impl CommandSpec {
    /// Describes a command that reads its operands as files and has only safe options.
    pub const fn reads(names: &'static str, options: &'static str) -> Self {
        Self {
            names,
            options,
            refused: &[],
            operands: OperandKind::Files,
            does: CommandEffect::Read,
            style: OptionStyle::Gnu,
            strict: false,
        }
    }

    /// Describes a command that only prints what its arguments say.
    pub const fn prints(names: &'static str, options: &'static str) -> Self {
        Self::reads(names, options).operands(OperandKind::Text)
    }

    /// Describes a command that makes a change.
    pub const fn changes(names: &'static str, options: &'static str, what: &'static str) -> Self {
        Self {
            does: CommandEffect::Change(what),
            ..Self::reads(names, options)
        }
    }

    /// Describes a command whose effect is unpredictable.
    pub const fn unsure(names: &'static str, why: &'static str) -> Self {
        Self {
            does: CommandEffect::Unsure(why),
            ..Self::reads(names, "")
        }
    }

    /// Sets the kind of the operands.
    pub const fn operands(self, operands: OperandKind) -> Self {
        Self { operands, ..self }
    }

    /// Sets the options that are known and not safe.
    pub const fn refusing(self, refused: &'static [UnsafeOption]) -> Self {
        Self { refused, ..self }
    }

    /// Sets the way the command parses its arguments.
    pub const fn style(self, style: OptionStyle) -> Self {
        Self { style, ..self }
    }

    /// Requires every argument to be certain.
    pub const fn strict(self) -> Self {
        Self {
            strict: true,
            ..self
        }
    }

    /// Sets a function that computes the finding once the options are parsed.
    pub const fn with_evaluator(self, own: fn(&ParsedArguments<'_>) -> CommandFinding) -> Self {
        Self {
            does: CommandEffect::Computed(own),
            ..self
        }
    }

    /// Returns whether the command has this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.names.split(' ').any(|own| own == name)
    }
}

/// Describes an option that makes a reading command write.
pub const fn writes(options: &'static str, why: &'static str) -> UnsafeOption {
    UnsafeOption {
        options,
        verdict: EffectVerdict::Mutating,
        why,
        exact: false,
    }
}

/// Describes an option that starts a program, deletes, or injects configuration.
pub const fn runs(options: &'static str, why: &'static str) -> UnsafeOption {
    UnsafeOption {
        options,
        verdict: EffectVerdict::Unknown,
        why,
        exact: true,
    }
}

/// Describes an option that makes the command's effect unpredictable.
pub const fn doubts(options: &'static str, why: &'static str) -> UnsafeOption {
    UnsafeOption {
        options,
        verdict: EffectVerdict::Unknown,
        why,
        exact: false,
    }
}

/// The way to evaluate a command.
#[derive(Debug, Clone, Copy)]
pub enum KnownCommand {
    /// With a table.
    Spec(&'static CommandSpec),
    /// With a function. The first argument is the name.
    Own(&'static str, fn(&[Arg]) -> CommandFinding),
}
