//! The effects of an embedded program: a sed script or an awk program.
//!
//! The parser of each language records every act beyond printing its input, and the point where it
//! gave up. This module turns the acts into a finding, in the same way for all languages.

use std::borrow::Cow;

use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{
        CommandFinding, Effect, FileRead, FileWrite, RuleCoverage, StartedProgram, WriteKind,
    },
};

/// An act of a program beyond printing. `None` means that the target is only known at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptAct {
    /// Reads a file.
    Read(Option<String>),
    /// Writes a file.
    Write(Option<String>),
    /// Passes a line to the shell.
    Run(Option<String>),
    /// Contacts a host.
    Contact(Option<String>),
}

/// A parsed program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptProgram {
    /// The program's acts, as far as it could be parsed.
    pub(super) acts: Vec<ScriptAct>,
    /// The reason why the program could not be parsed to its end, phrased to follow "because".
    pub(super) doubt: Option<Cow<'static, str>>,
}

impl ScriptProgram {
    /// Merges the finding of the options (if they are not read-only) with the effects of the
    /// program.
    pub(super) fn judge(self, options: Option<CommandFinding>, span: Span) -> CommandFinding {
        let runs = self.acts.iter().any(|act| matches!(act, ScriptAct::Run(_)));
        let own = if runs {
            Some(CommandFinding::unknown("its program starts commands").with_span(span))
        } else if self
            .acts
            .iter()
            .any(|act| matches!(act, ScriptAct::Write(_)))
        {
            Some(CommandFinding::mutating("its program writes files").with_span(span))
        } else if self
            .acts
            .iter()
            .any(|act| matches!(act, ScriptAct::Contact(_)))
        {
            Some(CommandFinding::unknown("it contacts a host").with_span(span))
        } else if self.acts.contains(&ScriptAct::Read(None)) {
            Some(CommandFinding::unknown("its program chooses the files it reads").with_span(span))
        } else {
            self.doubt
                .clone()
                .map(|doubt| CommandFinding::unknown(doubt).with_span(span))
        };
        // The unparsed rest of a program may write or start something as well.
        let exact = runs || self.doubt.is_some() || options.as_ref().is_some_and(is_exact);
        let mut finding = match (options, own) {
            (Some(options), Some(own)) if own.verdict > options.verdict => own,
            (Some(finding), _) | (None, Some(finding)) => finding,
            (None, None) => CommandFinding::read_only("it only reads"),
        };
        if exact {
            finding = finding.requiring_exact_rule();
        }
        for act in self.acts {
            match act {
                ScriptAct::Read(path) => finding.effects.push(Effect::Read(FileRead {
                    path: file(path, span),
                    content: true,
                    is_recursive: false,
                })),
                ScriptAct::Write(path) => finding.effects.push(Effect::Write(FileWrite {
                    path: file(path, span),
                    kind: WriteKind::OptionWrite,
                })),
                ScriptAct::Run(Some(line)) => {
                    finding
                        .starts
                        .push(StartedProgram::Script(Arg::literal(line, span)));
                }
                ScriptAct::Contact(host) => finding.effects.push(Effect::Net(host)),
                ScriptAct::Run(None) => finding.effects.push(Effect::Opaque(Cow::Borrowed(
                    "its program computes the commands that it starts",
                ))),
            }
        }
        finding
    }
}

fn is_exact(finding: &CommandFinding) -> bool {
    finding.coverage == RuleCoverage::Exact
}

fn file(path: Option<String>, span: Span) -> Arg {
    match path {
        Some(path) => Arg::literal(path, span),
        None => Arg {
            span,
            value: ArgValue::Unknown {
                prefix: String::new(),
                one: true,
            },
        },
    }
}
