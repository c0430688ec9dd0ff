//! Simple commands, what they start, and redirections.

use std::path::{Path, PathBuf};

use super::{DEEPEST, Shell, State, Walker};
use crate::{
    analysis::{Assigned, Part},
    arg::{Arg, Value},
    ast::{AssignedValue, Assignment, Command, Redirect, RedirectOperator, Span, Word},
    commands::{
        self,
        variables::{is_harmless, is_own},
    },
    decode::{self, lexical},
    effect::{Cover, Effect, Finding, How, Read, Start, Verdict, Write},
    syntax,
};

/// Where programs live that the workspace cannot replace.
const TRUSTED: [&str; 6] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
];

/// Variables that allow rules ignore in front of a command, and that may be set alone.
pub fn is_safe_variable(name: &str) -> bool {
    is_harmless(name)
        || [
            "LANGUAGE",
            "FORCE_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "COLUMNS",
            "LINES",
            "NODE_ENV",
            "RUST_BACKTRACE",
            "RUST_LOG",
            "GOOS",
            "GOARCH",
            "CGO_ENABLED",
            "PYTHONUNBUFFERED",
            "PYTHONDONTWRITEBYTECODE",
            "DEBUG",
        ]
        .contains(&name)
}

impl Walker<'_> {
    pub(super) fn simple(
        &mut self,
        command: &Command,
        assignments: &[Assignment],
        words: &[Word],
        shell: &Shell<'_>,
        state: &mut State,
    ) {
        // The command first, what its words start behind it: parts read like the line.
        let argv: Vec<Arg> = {
            let known = self.known(shell, state);
            let args = words.iter().flat_map(|word| decode::args(word, known));
            args.map(|arg| Arg {
                span: shell.span(arg.span),
                ..arg
            })
            .collect()
        };
        let texts: Vec<_> = words
            .iter()
            .map(|word| decode::source(shell.source, word.span))
            .collect();
        let words_text = texts.join(" ");
        let mut text: Vec<_> = assignments
            .iter()
            .map(|assignment| decode::source(shell.source, assignment.span))
            .collect();
        text.extend(texts);
        let text = text.join(" ");
        let assigned = assignments.iter().map(|assignment| Assigned {
            name: assignment.name.clone(),
            plain: assignment.subscript.is_none()
                && matches!(assignment.value, AssignedValue::Word(_)),
        });
        let assigned: Vec<Assigned> = assigned.collect();

        if !words.is_empty() || !assignments.is_empty() {
            let mut finding = match argv.as_slice() {
                [] if words.is_empty() => Finding::read_only("it only sets variables"),
                [] => Finding::unknown("the command is empty"),
                argv => self.look(argv, shell),
            };
            judge_assignments(
                &mut finding,
                &assigned,
                words.is_empty(),
                shell,
                assignments,
            );
            self.push(
                Part {
                    span: shell.span(command.span),
                    text,
                    words: words_text,
                    argv: argv.clone(),
                    assignments: assigned,
                    cwd: state.places.clone(),
                    moved: state.moved,
                    outer: shell.outer,
                    finding,
                },
                shell,
                state,
            );
        }
        for assignment in assignments {
            self.assignment(assignment, shell, state);
        }
        for word in words {
            self.word(word, shell, state);
        }
        self.redirects(command, shell, state);
        self.follow(&argv, shell, state);
    }

    fn assignment(&mut self, assignment: &Assignment, shell: &Shell<'_>, state: &State) {
        if let Some(subscript) = &assignment.subscript {
            self.word(subscript, shell, state);
        }
        match &assignment.value {
            AssignedValue::Word(word) => self.word(word, shell, state),
            AssignedValue::Array(words) => {
                for word in words {
                    self.word(word, shell, state);
                }
            }
        }
    }

    /// What a command does by its words.
    fn look(&self, argv: &[Arg], shell: &Shell<'_>) -> Finding {
        let Some(first) = argv.first() else {
            return Finding::unknown("there is no command");
        };
        let Value::Literal(called) = &first.value else {
            let why = "which program runs is not written in the line";
            return Finding::unknown(why)
                .at(first.span)
                .with(Effect::Opaque(why.into()));
        };
        if shell.functions.contains(called.as_str()) {
            let mut finding = Finding::read_only("it is a function of this line");
            finding.cover = Cover::Transparent;
            return finding;
        }
        let name = match called.rsplit_once('/') {
            None => called.as_str(),
            Some((_, name))
                if TRUSTED
                    .iter()
                    .any(|dir| called.strip_prefix(dir) == Some(name)) =>
            {
                name
            }
            Some(_) => {
                return Finding::unknown(format!("{called} is a program of its own making"))
                    .at(first.span);
            }
        };
        commands::look(name, argv)
    }

    /// Writes a part down, and behind it what it starts.
    fn push(&mut self, mut part: Part, shell: &Shell<'_>, state: &State) {
        let starts = part.finding.starts.clone();
        let (cwd, moved, span) = (part.cwd.clone(), part.moved, part.span);
        let reads = part.finding.effects.iter();
        let spies = reads
            .filter_map(|effect| match effect {
                Effect::Read(read) if read.content => Some(read),
                _ => None,
            })
            .any(|read| spies(read, cwd.as_deref()));
        if spies && part.finding.verdict == Verdict::ReadOnly {
            part.finding.verdict = Verdict::Unknown;
            part.finding.reason = "it reads what belongs to another process".into();
        }
        self.parts.push(part);
        let outer = self.parts.len() - 1;
        if self.depth >= DEEPEST {
            if !starts.is_empty() {
                self.too_deep(outer);
            }
            return;
        }
        self.depth += 1;
        for start in starts {
            match start {
                Start::Command { argv, .. } if argv.is_empty() => {}
                Start::Command { argv, .. } => {
                    let text = self.source_of(&argv, shell);
                    let finding = self.look(&argv, shell);
                    self.push(
                        Part {
                            span,
                            words: text.clone(),
                            text,
                            argv,
                            assignments: Vec::new(),
                            cwd: cwd.clone(),
                            moved,
                            outer: Some(outer),
                            finding,
                        },
                        shell,
                        state,
                    );
                }
                Start::Script(arg) => self.text(&arg, outer, state),
            }
        }
        self.depth -= 1;
    }

    fn too_deep(&mut self, at: usize) {
        let why = "it is nested too deep to be read";
        let finding = &mut self.parts[at].finding;
        finding.verdict = finding.verdict.max(Verdict::Unknown);
        finding.reason = why.into();
        finding.effects.push(Effect::Opaque(why.into()));
    }

    /// The words of a started command as they stand in the line.
    fn source_of(&self, argv: &[Arg], shell: &Shell<'_>) -> String {
        let mut texts: Vec<std::borrow::Cow<'_, str>> = Vec::new();
        let mut last: Option<Span> = None;
        for arg in argv {
            // One word may be several arguments, and what is appended stands nowhere.
            if last == Some(arg.span) {
                continue;
            }
            last = Some(arg.span);
            match (shell.within, arg.text()) {
                (None, _) => texts.push(decode::source(shell.source, arg.span)),
                (Some(_), Some(text)) => texts.push(text.to_owned().into()),
                (Some(_), None) => {}
            }
        }
        texts.join(" ")
    }

    /// A text that a shell is given to run.
    fn text(&mut self, arg: &Arg, outer: usize, state: &State) {
        let opaque = |why: String, parts: &mut Vec<Part>| {
            let finding = &mut parts[outer].finding;
            finding.verdict = finding.verdict.max(Verdict::Unknown);
            finding.effects.push(Effect::Opaque(why.clone().into()));
            finding.reason = why.into();
            finding.span = Some(arg.span);
        };
        let Some(source) = arg.text() else {
            let why = "the text that it runs is not written in the line";
            opaque(why.to_owned(), &mut self.parts);
            return;
        };
        match syntax::parse(source) {
            Ok(script) => {
                let inner = Shell::new(source, Some((arg.span, outer)), &script);
                self.script(&script, &inner, &mut state.clone());
            }
            Err(error) => opaque(
                format!("the text that it runs cannot be read: {error}"),
                &mut self.parts,
            ),
        }
    }

    /// What the command changes for the rest of the line: the directory.
    fn follow(&mut self, argv: &[Arg], shell: &Shell<'_>, state: &mut State) {
        let Some(called) = argv.first().map(Arg::text) else {
            return;
        };
        let Some(called) = called else {
            state.lost();
            return;
        };
        if shell.functions.contains(called) {
            state.lost();
            return;
        }
        let called = match called {
            // What they run is this very shell.
            "command" | "builtin" => match argv.get(1).map(Arg::text) {
                Some(Some(inner)) if ["cd", "pushd", "popd"].contains(&inner) => {
                    return self.follow(&argv[1..], shell, state);
                }
                Some(Some(_)) | None => return,
                Some(None) => return state.lost(),
            },
            called => called,
        };
        match called {
            "cd" | "pushd" => {
                let operands: Vec<&Arg> = argv[1..]
                    .iter()
                    .filter(|arg| !matches!(arg.text(), Some("-L" | "-P" | "-e" | "--")))
                    .collect();
                let target = match (operands.as_slice(), &self.place.home) {
                    ([], Some(home)) if called == "cd" => Some(home.clone()),
                    ([only], _) => only
                        .text()
                        .filter(|text| !text.starts_with(['-', '+']))
                        .map(PathBuf::from),
                    _ => None,
                };
                self.go(target.as_deref(), state);
            }
            "popd" | "eval" | "source" | "." => state.lost(),
            _ => {}
        }
    }

    fn go(&self, target: Option<&Path>, state: &mut State) {
        let Some(target) = target else {
            return state.lost();
        };
        let Some(places) = &state.places else {
            if target.is_absolute() {
                state.places = Some(vec![lexical(target)]);
            }
            return;
        };
        let next: Vec<PathBuf> = places
            .iter()
            .map(|place| lexical(&place.join(target)))
            .collect();
        if next != *places {
            state.moved = true;
        }
        state.places = Some(next);
    }

    /// Redirections, of whatever command.
    pub(super) fn redirects(&mut self, command: &Command, shell: &Shell<'_>, state: &State) {
        for redirect in &command.redirects {
            self.word(&redirect.target, shell, state);
            if let Some(body) = &redirect.body {
                self.word(body, shell, state);
            }
            let finding = self.redirect(redirect, shell, state);
            self.note(redirect.span, finding, shell, state);
        }
    }

    fn redirect(&self, redirect: &Redirect, shell: &Shell<'_>, state: &State) -> Finding {
        use RedirectOperator as Operator;
        let args = decode::args(&redirect.target, self.known(shell, state));
        let [target] = args.as_slice() else {
            return Finding::unknown("a redirection has more than one target").at(redirect.span);
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
            return Finding::unknown(format!("setting {name} may change what runs"))
                .at(redirect.span)
                .with(Effect::Env(name.to_owned()));
        }
        match (redirect.operator, target.text()) {
            (Operator::HereDocument | Operator::HereString, _) => {
                Finding::read_only("the text is in the line")
            }
            (Operator::DuplicateIn | Operator::DuplicateOut, Some(text))
                if text
                    .trim_end_matches('-')
                    .bytes()
                    .all(|byte| byte.is_ascii_digit()) =>
            {
                Finding::read_only("it only joins descriptors")
            }
            (_, Some(text)) if network(text).is_some() => {
                Finding::unknown(format!("{text} contacts a host"))
                    .at(redirect.span)
                    .with(Effect::Net(network(text).flatten()))
            }
            (_, Some(text)) if is_free(text) => Finding::read_only("nothing is kept"),
            (Operator::Read, Some(_)) => {
                let read = Read {
                    path: target.clone(),
                    content: true,
                    walks: false,
                };
                let finding = if spies(&read, state.places.as_deref()) {
                    Finding::unknown("it reads what belongs to another process").at(redirect.span)
                } else {
                    Finding::read_only("it only reads")
                };
                finding.with(Effect::Read(read))
            }
            (Operator::Read, None) if may_be_network(&target) => {
                Finding::unknown("the redirection may contact a host")
                    .at(redirect.span)
                    .with(Effect::Net(None))
            }
            (Operator::Read, None) => {
                Finding::read_only("it only reads").with(commands::options::content(&target))
            }
            (_, text) => {
                let reason = match text {
                    Some(text) => format!("the redirection writes to {text}"),
                    None => "the redirection writes to a file that is not written in the line"
                        .to_owned(),
                };
                Finding::mutating(reason)
                    .at(redirect.span)
                    .with(Effect::Write(Write {
                        path: target,
                        how: How::Redirect,
                    }))
            }
        }
    }
}

/// Targets that keep nothing.
pub fn is_free(path: &str) -> bool {
    [
        "/dev/null",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
    ]
    .contains(&path)
        || path.strip_prefix("/dev/fd/").is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// The host of `/dev/tcp/HOST/PORT`, which bash itself connects to.
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

/// `/dev/$x`, `/dev/tcp/$host/80`.
fn may_be_network(target: &Arg) -> bool {
    match &target.value {
        Value::Unknown { prefix, .. } | Value::Glob(prefix) => prefix.starts_with("/dev/"),
        Value::Literal(_) | Value::Braced(_) => false,
    }
}

/// Does it read what belongs to another process: `/proc/PID/…`, also where the id is an expansion?
fn spies(read: &Read, places: Option<&[PathBuf]>) -> bool {
    let text = match &read.path.value {
        Value::Literal(text) | Value::Braced(text) | Value::Glob(text) => text,
        Value::Unknown { prefix, .. } => prefix,
    };
    let certain = read.path.text().is_some();
    let here = |path: &Path| {
        let path = lexical(path);
        let Ok(below) = path.strip_prefix("/proc") else {
            return false;
        };
        match below.components().next() {
            None => !certain || read.walks,
            Some(first) => {
                let first = first.as_os_str().to_string_lossy();
                first.bytes().all(|byte| byte.is_ascii_digit())
                    || first.contains(['*', '?', '['])
                    || (!certain && below.components().count() == 1 && !text.ends_with('/'))
            }
        }
    };
    if Path::new(text).is_absolute() {
        return here(Path::new(text));
    }
    places.is_some_and(|places| places.iter().any(|place| here(&place.join(text))))
}

/// Variables that are set make a command unknown unless they are harmless ones.
fn judge_assignments(
    finding: &mut Finding,
    assigned: &[Assigned],
    alone: bool,
    shell: &Shell<'_>,
    assignments: &[Assignment],
) {
    for (one, written) in assigned.iter().zip(assignments) {
        let fine = if alone {
            is_safe_variable(&one.name)
        } else {
            is_harmless(&one.name)
        };
        if !fine || alone {
            finding.effects.push(Effect::Env(one.name.clone()));
        }
        if fine && one.plain {
            continue;
        }
        if finding.verdict == Verdict::ReadOnly {
            finding.verdict = Verdict::Unknown;
            finding.reason = format!("setting {} may change what runs", one.name).into();
            finding.span = Some(shell.span(written.span));
        }
    }
}
