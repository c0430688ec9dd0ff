//! What a program in a language of its own does: a sed script, an awk program.
//!
//! Its parser notes every act beyond printing what was read, and where it gave up. Judging is the
//! same for all of them and lives here.

use std::borrow::Cow;

use crate::{
    arg::{Arg, Value},
    ast::Span,
    effect::{CommandFinding, Cover, Effect, Read, Start, Write, WriteKind},
};

/// Something a program does beyond printing. `None`: what it is shows only when the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Reads a file.
    Read(Option<String>),
    /// Writes a file.
    Write(Option<String>),
    /// Hands a line to the shell.
    Run(Option<String>),
    /// Contacts a host.
    Contact(Option<String>),
}

/// A program, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptProgram {
    /// What it does, as far as it could be read.
    pub(super) acts: Vec<Act>,
    /// Why it could not be read to its end, in words that fit behind "because".
    pub(super) doubt: Option<Cow<'static, str>>,
}

impl ScriptProgram {
    /// Joins what the options say (a finding, if they are not harmless) with what the program does.
    pub(super) fn judge(self, options: Option<CommandFinding>, span: Span) -> CommandFinding {
        let runs = self.acts.iter().any(|act| matches!(act, Act::Run(_)));
        let own = if runs {
            Some(CommandFinding::unknown("its program starts commands").at(span))
        } else if self.acts.iter().any(|act| matches!(act, Act::Write(_))) {
            Some(CommandFinding::mutating("its program writes files").at(span))
        } else if self.acts.iter().any(|act| matches!(act, Act::Contact(_))) {
            Some(CommandFinding::unknown("it contacts a host").at(span))
        } else if self.acts.contains(&Act::Read(None)) {
            Some(CommandFinding::unknown("its program chooses the files it reads").at(span))
        } else {
            self.doubt
                .clone()
                .map(|doubt| CommandFinding::unknown(doubt).at(span))
        };
        // What cannot be read may write or start something as well.
        let exact = runs || self.doubt.is_some() || options.as_ref().is_some_and(is_exact);
        let mut finding = match (options, own) {
            (Some(options), Some(own)) if own.verdict > options.verdict => own,
            (Some(finding), _) | (None, Some(finding)) => finding,
            (None, None) => CommandFinding::read_only("it only reads"),
        };
        if exact {
            finding = finding.exact();
        }
        for act in self.acts {
            match act {
                Act::Read(path) => finding.effects.push(Effect::Read(Read {
                    path: file(path, span),
                    content: true,
                    walks: false,
                })),
                Act::Write(path) => finding.effects.push(Effect::Write(Write {
                    path: file(path, span),
                    how: WriteKind::Twist,
                })),
                Act::Run(Some(line)) => {
                    finding.starts.push(Start::Script(Arg::literal(line, span)));
                }
                Act::Contact(host) => finding.effects.push(Effect::Net(host)),
                Act::Run(None) => finding.effects.push(Effect::Opaque(Cow::Borrowed(
                    "its program makes the commands that it starts",
                ))),
            }
        }
        finding
    }
}

fn is_exact(finding: &CommandFinding) -> bool {
    finding.cover == Cover::Exact
}

fn file(path: Option<String>, span: Span) -> Arg {
    match path {
        Some(path) => Arg::literal(path, span),
        None => Arg {
            span,
            value: Value::Unknown {
                prefix: String::new(),
                one: true,
            },
        },
    }
}
