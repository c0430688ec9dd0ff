//! What a line does, command by command.

use std::path::PathBuf;

use crate::{
    arg::Arg,
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict},
};

/// Where a line would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineLocation {
    /// The directory it starts in; absolute.
    pub cwd: PathBuf,
    /// What `~` and `$HOME` are.
    pub home: Option<PathBuf>,
}

/// A line, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Is it harmless as a whole? It is, if every part is.
    pub verdict: EffectVerdict,
    /// Why, in plain words.
    pub reason: String,
    /// What in the line says so.
    pub span: Span,
    /// Every command in it, in the order they are written, what a command starts behind it. Also the
    /// rest: redirections of compound commands, assignments, conditions.
    pub parts: Vec<LinePart>,
    /// Variables that look like secrets and whose values the line uses, unless it sets them.
    pub secrets: Vec<String>,
    /// Why it could not be read, if so; then there are no parts.
    pub unreadable: Option<String>,
}

/// One command in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePart {
    /// Where it is written. What a quoted text starts is where that text is.
    pub span: Span,
    /// As written: blanks between words made one, redirections and comments left out, quotes kept.
    pub text: String,
    /// The same without the assignments in front.
    pub words: String,
    /// The words as the program gets them. None for an assignment or a redirection alone.
    pub argv: Vec<Arg>,
    /// Variables set in front of it, or by it alone.
    pub assignments: Vec<SetVariable>,
    /// The directories it may run in: after `cd a; …` both, since `cd` may fail. `None`: not known.
    pub cwd: Option<Vec<PathBuf>>,
    /// A `cd` to another directory came before it.
    pub moved: bool,
    /// Which part starts it: the index of its wrapper.
    pub outer: Option<usize>,
    /// What it does.
    pub finding: CommandFinding,
}

/// A variable, set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    /// Its name.
    pub name: String,
    /// It is a plain value, not an array or one element, and not a locale whose character set is
    /// another than the one lines are read in here.
    pub plain: bool,
}

impl LinePart {
    /// The name it is called by, if that is certain.
    pub fn called(&self) -> Option<&str> {
        self.argv.first().and_then(Arg::text)
    }

    /// Its name without the directory.
    pub fn base_name(&self) -> Option<&str> {
        self.called()
            .map(|name| name.rsplit('/').next().unwrap_or(name))
    }

    /// Why it runs something that cannot be read from the line, if it does.
    pub fn opaque(&self) -> Option<&str> {
        self.finding.effects.iter().find_map(|effect| match effect {
            Effect::Opaque(why) => Some(&**why),
            _ => None,
        })
    }
}
