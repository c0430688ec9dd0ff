//! Redirections, and paths that are not ordinary files.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use super::{LineWalkState, ShellText, Walker};
use crate::{
    arg::{Arg, ArgValue},
    ast::{CommandNode, PartKind, Redirect, RedirectOperator, Span, WordPart},
    commands::variables::is_own,
    decode::{self, lexical},
    effect::{CommandFinding, Effect, EffectVerdict, FileRead, FileWrite, WriteKind},
};

impl Walker<'_> {
    /// Analyzes the redirections of any command.
    pub(super) fn redirects(
        &mut self,
        command: &CommandNode,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        for redirect in &command.redirects {
            self.word(&redirect.target, shell, state);
            if let Some(body) = &redirect.body {
                self.word(body, shell, state);
            }
            let finding = self.redirect(redirect, shell, state);
            self.streams.record_redirect(redirect, shell);
            self.record_finding(redirect.span, finding, shell, state);
        }
    }

    fn redirect(
        &self,
        redirect: &Redirect,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) -> CommandFinding {
        use RedirectOperator as Operator;
        let args = decode::args(&redirect.target, self.known(shell, state));
        let [target] = args.as_slice() else {
            return CommandFinding::unknown("a redirection has more than one target")
                .with_span(redirect.span);
        };
        let target = Arg {
            span: shell.span(redirect.span),
            ..target.clone()
        };
        let named = redirect
            .descriptor
            .as_deref()
            .filter(|text| text.starts_with('{'));
        if let Some(name) = named.map(|text| text.trim_matches(['{', '}']))
            && !is_own(name)
        {
            return CommandFinding::unknown(format!("setting {name} may change what runs"))
                .with_span(redirect.span)
                .with(Effect::Env(name.to_owned()));
        }
        match (redirect.operator, target.text()) {
            (Operator::HereDocument | Operator::HereString, _) => {
                CommandFinding::read_only("the text is in the line")
            }
            (Operator::DuplicateIn | Operator::DuplicateOut, Some(text))
                if text
                    .trim_end_matches('-')
                    .bytes()
                    .all(|byte| byte.is_ascii_digit()) =>
            {
                if is_output(redirect) && number(text) == Some(0) {
                    return CommandFinding::unknown(OUTPUT_IS_A_FILE).with_span(redirect.span);
                }
                CommandFinding::read_only("it only joins descriptors")
            }
            (Operator::Read, _) if is_output(redirect) => {
                CommandFinding::unknown(OUTPUT_IS_A_FILE).with_span(redirect.span)
            }
            (_, Some(text)) if network(text).is_some() => {
                CommandFinding::unknown(format!("{text} contacts a host"))
                    .with_span(redirect.span)
                    .with(Effect::Net(network(text).flatten()))
            }
            (Operator::Read, Some(text)) if is_stream(text) => {
                CommandFinding::read_only("it only reads")
            }
            (Operator::Read, None) if may_be_network(&target) => {
                CommandFinding::unknown("the redirection may contact a host")
                    .with_span(redirect.span)
                    .with(Effect::Net(None))
            }
            (Operator::Read, _) => {
                let read = FileRead {
                    path: target.clone(),
                    content: true,
                    is_recursive: false,
                };
                CommandFinding::read_only("it only reads").with(Effect::Read(read))
            }
            (_, Some(text)) if stores_nothing(text) => {
                CommandFinding::read_only("it stores nothing")
            }
            (_, text) => {
                let reason = match text {
                    Some(text) => format!("the redirection writes to {text}"),
                    None => "the redirection writes to a file that is not written in the line"
                        .to_owned(),
                };
                CommandFinding::mutating(reason)
                    .with_span(redirect.span)
                    .with(Effect::Write(FileWrite {
                        path: target,
                        kind: WriteKind::Redirect,
                    }))
            }
        }
    }
}

/// The path that a program receives for a process substitution. No file has this name, and writing
/// to it opens no file.
pub(crate) const PIPE: &str = "/dev/fd/pipe";

const OUTPUT_IS_A_FILE: &str = "its output may then be opened as the file that is read";

/// Returns whether the path is a stream that a command already has open, so that reading it opens
/// no file.
pub fn is_stream(path: &str) -> bool {
    [
        "/dev/null",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
        PIPE,
    ]
    .contains(&path)
        || path.strip_prefix("/dev/fd/").is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Returns whether a target stores nothing.
///
/// Opening the name of a descriptor reopens its file, also for writing. Therefore only the
/// descriptors of the outputs are included.
pub fn stores_nothing(path: &str) -> bool {
    [
        "/dev/null",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
        "/dev/fd/1",
        "/dev/fd/2",
        PIPE,
    ]
    .contains(&path)
}

/// Tracks descriptors that a line opens from files and copies to its outputs. Together, they can
/// make `/dev/stdout` name a file.
#[derive(Debug, Default)]
pub(super) struct OpenedDescriptors {
    /// A descriptor above 2 reads a file or a copy of standard input.
    opened: bool,
    /// An output became a copy of a descriptor above 2.
    copied: Option<Span>,
}

impl OpenedDescriptors {
    fn record_redirect(&mut self, redirect: &Redirect, shell: &ShellText<'_>) {
        use RedirectOperator as Operator;
        let copies = matches!(
            redirect.operator,
            Operator::DuplicateIn | Operator::DuplicateOut
        );
        let source = match redirect.target.parts.as_slice() {
            [
                WordPart {
                    kind: PartKind::Text(text),
                    ..
                },
            ] if copies => number(text),
            _ => None,
        };
        if is_output(redirect) {
            if source.is_some_and(|source| source > 2) {
                self.copied = Some(shell.span(redirect.span));
            }
        } else if descriptor(redirect) != Some(0) {
            self.opened |= redirect.operator == Operator::Read || (copies && source == Some(0));
        }
    }

    /// Returns the place where an output of the line becomes a file that the line may read, if any.
    pub(super) fn problem(&self) -> Option<(Span, CommandFinding)> {
        let span = self.copied.filter(|_| self.opened)?;
        Some((
            span,
            CommandFinding::unknown(OUTPUT_IS_A_FILE).with_span(span),
        ))
    }
}

/// Parses the target `3` or `3-`.
fn number(text: &str) -> Option<u32> {
    text.trim_end_matches('-').parse().ok()
}

/// Returns the descriptor that a redirection sets, if it is a number or omitted.
fn descriptor(redirect: &Redirect) -> Option<u32> {
    use RedirectOperator as Operator;
    match &redirect.descriptor {
        Some(text) => text.parse().ok(),
        None => Some(match redirect.operator {
            Operator::Read
            | Operator::ReadWrite
            | Operator::DuplicateIn
            | Operator::HereDocument
            | Operator::HereString => 0,
            _ => 1,
        }),
    }
}

/// Returns whether the redirection sets standard output or standard error.
fn is_output(redirect: &Redirect) -> bool {
    matches!(descriptor(redirect), Some(1 | 2))
}

/// Returns the host of `/dev/tcp/HOST/PORT`, to which bash itself connects.
fn network(path: &str) -> Option<Option<String>> {
    let rest = path
        .strip_prefix("/dev/tcp/")
        .or_else(|| path.strip_prefix("/dev/udp/"))?;
    Some(
        rest.split('/')
            .next()
            .filter(|host| !host.is_empty())
            .map(str::to_owned),
    )
}

/// Returns whether the target may be a network address, such as `/dev/$x` or `/dev/tcp/$host/80`.
fn may_be_network(target: &Arg) -> bool {
    match &target.value {
        ArgValue::Unknown { prefix, .. } | ArgValue::Glob(prefix) => prefix.starts_with("/dev/"),
        ArgValue::Literal(_) | ArgValue::Braced(_) => false,
    }
}

/// Makes a finding unknown if it reads data of another process.
pub(super) fn refuse_foreign_reads(finding: &mut CommandFinding, places: Option<&[PathBuf]>) {
    let spying = finding.effects.iter().any(|effect| match effect {
        Effect::Read(read) => spies(read, places),
        _ => false,
    });
    if spying && finding.verdict < EffectVerdict::Unknown {
        finding.verdict = EffectVerdict::Unknown;
        finding.reason = "it reads data of another process".into();
    }
}

/// Returns whether this reads data of another process: `/proc/PID/…`, even if the id is an
/// expansion.
fn spies(read: &FileRead, places: Option<&[PathBuf]>) -> bool {
    let text = match &read.path.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => text,
        ArgValue::Unknown { prefix, .. } => prefix,
    };
    // A command that reads only names passes them on. It is accepted only if the line names all of
    // them.
    if !read.content && !read.is_recursive && read.path.text().is_some() {
        return false;
    }
    let shows = PathTail {
        cut: matches!(read.path.value, ArgValue::Unknown { .. }),
        open: text.is_empty() || text.ends_with('/'),
        walks: read.is_recursive,
    };
    if Path::new(text).is_absolute() {
        return shows.another(Path::new(text));
    }
    places.is_some_and(|places| places.iter().any(|place| shows.another(&place.join(text))))
}

/// The continuation of a path after its known text.
struct PathTail {
    /// An expansion follows.
    cut: bool,
    /// The continuation is a separate name.
    open: bool,
    /// Everything below is read.
    walks: bool,
}

impl PathTail {
    /// Returns whether the path may lead into another process's directory in `/proc`.
    fn another(&self, path: &Path) -> bool {
        let pattern = |name: &str| name.contains(['*', '?', '[', '(']);
        let own = |name: &str| ["self", "thread-self"].contains(&name);
        let link =
            |name: &str| ["cwd", "map_files", "root", "task"].contains(&name) || pattern(name);
        // The links in the process's own directory lead anywhere, also back to other processes:
        // `..` after a link is relative to the link's target.
        let written = names(path);
        let follows = |names: &[Cow<'_, str>]| match names {
            [top, process, name, _] => top == "proc" && own(process) && link(name),
            _ => false,
        };
        if written.windows(4).any(follows) {
            return true;
        }
        let path = lexical(path);
        let names = names(&path);
        let Some((top, below)) = names.split_first() else {
            // `/$x` may be any path, just as `$x` may.
            return false;
        };
        if pattern(top) {
            return !below.is_empty() && "proc".starts_with(before_pattern(top));
        }
        let whole = !self.cut || self.open || !below.is_empty();
        if top != "proc" {
            return !whole && "proc".starts_with(top.as_ref());
        }
        let Some((process, inside)) = below.split_first() else {
            return self.walks || self.cut;
        };
        if process.bytes().all(|byte| byte.is_ascii_digit()) || pattern(process) {
            return true;
        }
        if self.cut && inside.is_empty() && !self.open {
            return true;
        }
        match inside {
            [] => own(process) && (self.cut || self.walks),
            [name, ..] => own(process) && link(name) && (self.cut || self.walks),
        }
    }
}

/// Returns the components of an absolute path.
fn names(path: &Path) -> Vec<Cow<'_, str>> {
    let names = path.components().skip(1);
    names
        .map(|name| name.as_os_str().to_string_lossy())
        .collect()
}

fn before_pattern(name: &str) -> &str {
    name.find(['*', '?', '[', '('])
        .map_or(name, |at| &name[..at])
}
