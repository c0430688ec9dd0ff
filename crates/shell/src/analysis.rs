//! The result of an analysis, command by command.

use std::path::PathBuf;

use crate::{
    arg::Arg,
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict},
};

/// The place where a line would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineLocation {
    /// The directory in which the line starts; absolute.
    pub cwd: PathBuf,
    /// The value of `~` and `$HOME`.
    pub home: Option<PathBuf>,
}

/// The analysis of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The verdict on the whole line: the worst verdict of its parts.
    pub verdict: EffectVerdict,
    /// The reason for the verdict, as text for the user.
    pub reason: String,
    /// The place in the line that determines the verdict.
    pub span: Span,
    /// The commands, in the order of the line. The programs that a command starts follow it.
    /// Redirections of compound commands, assignments and conditions are parts, too.
    pub parts: Vec<LinePart>,
    /// Variables that look like secrets and whose values the line uses, unless it sets them.
    pub secrets: Vec<String>,
    /// The reason why the line could not be parsed, if so. It then has no parts.
    pub unreadable: Option<String>,
}

/// One command in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePart {
    /// The command's place in the line. A command inside a quoted text has the place of that text.
    pub span: Span,
    /// The command as written, with its quotes, without redirections and comments, and with single
    /// spaces between its arguments.
    pub text: String,
    /// Like [`LinePart::text`], but without the assignments before the command.
    pub words: String,
    /// The arguments as the program receives them. Empty for an assignment or a redirection alone.
    pub argv: Vec<Arg>,
    /// The assignments before the command, or without a command.
    pub assignments: Vec<SetVariable>,
    /// The directories in which the command may run. After `cd a; …` these are both directories,
    /// because `cd` may fail. `None` means unknown.
    pub cwd: Option<Vec<PathBuf>>,
    /// A `cd` to another directory precedes the command.
    pub after_cd: bool,
    /// The index of the part that starts the command, such as its wrapper.
    pub outer: Option<usize>,
    /// The command's effects and its verdict.
    pub finding: CommandFinding,
}

/// An assignment of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    /// The variable's name.
    pub name: String,
    /// The value is plain: not an array, not an array element, and not a locale with another
    /// character set than the one that the parser assumes.
    pub plain: bool,
}

impl LinePart {
    /// Returns the command name as written, if it is certain.
    pub fn command_name(&self) -> Option<&str> {
        self.argv.first().and_then(Arg::text)
    }

    /// Returns the command name without its directory.
    pub fn base_name(&self) -> Option<&str> {
        self.command_name()
            .map(|name| name.rsplit('/').next().unwrap_or(name))
    }

    /// Returns why nothing on this machine can undo the command, if so.
    pub fn irreversible_reason(&self) -> Option<&'static str> {
        self.finding.effects.iter().find_map(|effect| match effect {
            Effect::Irreversible(reason) => Some(*reason),
            _ => None,
        })
    }

    /// Returns the reason why the command runs code that is not visible in the line, if it does.
    pub fn opaque_reason(&self) -> Option<&str> {
        self.finding.effects.iter().find_map(|effect| match effect {
            Effect::Opaque(why) => Some(&**why),
            _ => None,
        })
    }
}
