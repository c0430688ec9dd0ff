//! Simple commands, what they start, and redirections.

use std::path::{Path, PathBuf};

use super::{
    LineWalkState, MAX_DEPTH, ShellText, Walker,
    bare_assignments::doubt_assignment,
    functions::{self, DefinedFunctions},
    implicit_execution,
    known_values::{KnownValues, may_set_variables},
    redirects::refuse_foreign_reads,
};
use crate::{
    analysis::{LinePart, SetVariable},
    arg::{Arg, ArgValue},
    ast::{AssignedValue, Assignment, CommandNode, ShellWord, Span},
    commands::{
        self,
        variables::{has_known_charset, is_harmless, is_locale},
    },
    decode::{self, KnownVariables, lexical},
    effect::{CommandFinding, Effect, EffectVerdict, RuleCoverage, StartedProgram},
    syntax,
};

/// The directories with programs that the workspace cannot replace.
pub(crate) const TRUSTED: [&str; 6] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
];

/// Returns whether allow rules ignore an assignment of this variable before a command. Such a
/// variable may also be set without a command.
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
        command: &CommandNode,
        assignments: &[Assignment],
        words: &[ShellWord],
        shell: &ShellText<'_>,
        state: &mut LineWalkState,
    ) {
        // The command precedes its substitutions, as in the line.
        let argv: Vec<Arg> = {
            let known = self.known(shell, state);
            let args = words.iter().flat_map(|word| decode::args(word, known));
            args.map(|arg| Arg {
                span: shell.span(arg.span),
                ..arg
            })
            .collect()
        };
        self.record_value_spans(words, shell, state);
        let argv = self.without_computed_name(argv);
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
        let assigned: Vec<SetVariable> = {
            let known = self.known(shell, state);
            let assigned = assignments.iter().map(|assignment| SetVariable {
                name: assignment.name.clone(),
                plain: is_plain(assignment, known),
            });
            assigned.collect()
        };

        if !words.is_empty() || !assignments.is_empty() {
            let mut finding = match argv.as_slice() {
                [] if words.is_empty() => CommandFinding::read_only("it only sets variables"),
                [] => CommandFinding::unknown("the command is empty"),
                argv if self.calls_function(argv, state) => function_call_finding(argv),
                argv => self.command_finding(argv),
            };
            self.functions_may_change |= functions::may_change_functions(&argv);
            self.variables_may_change |= may_set_variables(&argv);
            if words.is_empty() {
                self.judge_bare_assignments(&mut finding, &assigned, assignments, shell, state);
            } else {
                judge_assignments(&mut finding, &assigned, shell, assignments);
            }
            self.push(
                LinePart {
                    span: shell.span(command.span),
                    text,
                    words: words_text,
                    argv: argv.clone(),
                    assignments: assigned,
                    cwd: state.places.clone(),
                    after_cd: state.moved,
                    outer: shell.outer,
                    finding,
                },
                shell,
                state,
            );
        }
        for assignment in assignments {
            self.assignment(assignment, shell, state);
            if words.is_empty() {
                self.variables.assign(&assignment.name);
            }
        }
        for word in words {
            self.word(word, shell, state);
        }
        self.redirects(command, shell, state);
        self.update_directory(&argv, state);
        if words.is_empty() {
            self.record_values(assignments, shell, state);
        }
    }

    fn assignment(
        &mut self,
        assignment: &Assignment,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
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

    /// Returns whether the command calls a function of the line that certainly exists. This applies
    /// only to commands of the line itself: another command can start only programs.
    fn calls_function(&self, argv: &[Arg], state: &LineWalkState) -> bool {
        let name = argv.first().map(|first| &first.value);
        self.functions
            && matches!(name, Some(ArgValue::Literal(name)) if state.functions.covers(name))
    }

    /// Returns the finding for a command, which a declared wrapper may start.
    fn command_finding(&self, argv: &[Arg]) -> CommandFinding {
        let name = argv.first().and_then(Arg::text).unwrap_or_default();
        let plain = TRUSTED.iter().find_map(|dir| name.strip_prefix(dir));
        let is_wrapper = self.wrappers.iter().any(|one| one == plain.unwrap_or(name));
        // The place of the command after options of the wrapper is not known.
        let starts_with_command = argv
            .get(1)
            .is_some_and(|second| second.text().is_some_and(|text| !text.starts_with('-')));
        if !is_wrapper || !starts_with_command {
            return analyze_command(argv);
        }
        let finding = CommandFinding::read_only("it only starts the command after its name");
        CommandFinding {
            coverage: RuleCoverage::Transparent,
            ..finding.starting(StartedProgram::Command {
                argv: argv[1..].to_vec(),
                more: false,
            })
        }
    }

    /// Records a part, followed by the programs it starts.
    fn push(&mut self, mut part: LinePart, shell: &ShellText<'_>, state: &LineWalkState) {
        let starts = part.finding.starts.clone();
        let (cwd, moved, span) = (part.cwd.clone(), part.after_cd, part.span);
        refuse_foreign_reads(&mut part.finding, cwd.as_deref());
        implicit_execution::add_chosen_programs(&mut part.finding);
        self.evaluation.record_command(&part.argv);
        self.variables.record_command(&part.argv, &mut part.finding);
        self.parts.push(part);
        let outer = self.parts.len() - 1;
        if self.depth >= MAX_DEPTH {
            if !starts.is_empty() {
                self.too_deep(outer);
            }
            return;
        }
        self.depth += 1;
        for start in starts {
            match start {
                StartedProgram::Command { argv, .. } if argv.is_empty() => {}
                StartedProgram::Command { argv, .. } => {
                    let argv = self.without_computed_name(argv);
                    let text = self.source_of(&argv, shell);
                    let finding = self.command_finding(&argv);
                    self.functions_may_change |= functions::may_change_functions(&argv);
                    self.variables_may_change |= may_set_variables(&argv);
                    self.push(
                        LinePart {
                            span,
                            words: text.clone(),
                            text,
                            argv,
                            assignments: Vec::new(),
                            cwd: cwd.clone(),
                            after_cd: moved,
                            outer: Some(outer),
                            finding,
                        },
                        shell,
                        state,
                    );
                }
                StartedProgram::Script(arg) => self.text(&arg, outer, state),
            }
        }
        self.depth -= 1;
    }

    fn too_deep(&mut self, at: usize) {
        let why = "it is nested too deep to be read";
        let finding = &mut self.parts[at].finding;
        finding.verdict = finding.verdict.max(EffectVerdict::Unknown);
        finding.reason = why.into();
        finding.effects.push(Effect::Opaque(why.into()));
    }

    /// Returns the source text of a started command.
    fn source_of(&self, argv: &[Arg], shell: &ShellText<'_>) -> String {
        let mut texts: Vec<std::borrow::Cow<'_, str>> = Vec::new();
        let mut last: Option<Span> = None;
        for arg in argv {
            // One word may become several arguments. Appended arguments have no text in the line.
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

    /// Analyzes a text that a shell runs.
    fn text(&mut self, arg: &Arg, outer: usize, state: &LineWalkState) {
        let opaque = |why: String, parts: &mut Vec<LinePart>| {
            let finding = &mut parts[outer].finding;
            finding.verdict = finding.verdict.max(EffectVerdict::Unknown);
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
                let inner = ShellText::new(source, Some((arg.span, outer)));
                // Functions do not exist in another process. A text that runs in this shell may run
                // at another time.
                let mut inside = LineWalkState {
                    functions: DefinedFunctions::default(),
                    values: KnownValues::default(),
                    ..state.clone()
                };
                self.script(&script, &inner, &mut inside);
            }
            Err(error) => opaque(
                format!("the text that it runs cannot be read: {error}"),
                &mut self.parts,
            ),
        }
    }

    /// Updates the current directory for the rest of the line.
    fn update_directory(&mut self, argv: &[Arg], state: &mut LineWalkState) {
        let Some(called) = argv.first().map(Arg::text) else {
            return;
        };
        let Some(called) = called else {
            state.forget_directory();
            return;
        };
        if self.calls_function(argv, state) {
            state.forget_directory();
            return;
        }
        let called = match called {
            // These builtins run another builtin in this shell.
            "command" | "builtin" => {
                let is_option = |arg: &&Arg| arg.text().is_some_and(|text| text.starts_with('-'));
                let options = argv[1..].iter().take_while(is_option).count();
                let (options, inner) = argv[1..].split_at(options);
                let is_query = |arg: &Arg| arg.text().is_some_and(|text| text.contains(['v', 'V']));
                if options.iter().any(is_query) {
                    return; // `command -v cd` prints what `cd` is
                }
                match inner.first().map(Arg::text) {
                    Some(Some("cd" | "pushd" | "popd" | "command" | "builtin")) => {
                        return self.update_directory(inner, state);
                    }
                    Some(Some(_)) | None => return,
                    Some(None) => return state.forget_directory(),
                }
            }
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
                self.enter_directory(target.as_deref(), state);
            }
            "popd" | "eval" | "source" | "." => state.forget_directory(),
            _ => {}
        }
    }

    fn enter_directory(&self, target: Option<&Path>, state: &mut LineWalkState) {
        let Some(target) = target else {
            return state.forget_directory();
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
}

/// Returns whether the assignment sets one plain value. A locale must have a known character set,
/// because it determines how bash reads the line.
fn is_plain(assignment: &Assignment, known: KnownVariables<'_>) -> bool {
    let AssignedValue::Word(word) = &assignment.value else {
        return false;
    };
    let value = decode::text(word, known).filter(|_| !assignment.append);
    assignment.subscript.is_none()
        && (!is_locale(&assignment.name) || value.is_some_and(|value| has_known_charset(&value)))
}

/// Returns the finding for a call of a function of this line. The function's body is analyzed where
/// it is defined.
fn function_call_finding(argv: &[Arg]) -> CommandFinding {
    let mut finding = CommandFinding::read_only("it is a function of this line");
    finding.coverage = RuleCoverage::Transparent;
    // The body may read its arguments as files.
    finding.effects = argv[1..].iter().map(commands::options::content).collect();
    finding
}

/// Returns the finding for a command with these arguments.
fn analyze_command(argv: &[Arg]) -> CommandFinding {
    let Some(first) = argv.first() else {
        return CommandFinding::unknown("there is no command");
    };
    let ArgValue::Literal(called) = &first.value else {
        let why = "which program runs is not written in the line";
        return CommandFinding::unknown(why)
            .with_span(first.span)
            .with(Effect::Opaque(why.into()));
    };
    let Some((_, name)) = called.rsplit_once('/') else {
        return commands::evaluate_command(called, argv);
    };
    if TRUSTED
        .iter()
        .any(|dir| called.strip_prefix(dir) == Some(name))
    {
        return commands::evaluate_command(name, argv);
    }
    // The program's effect is unknown. The programs that a command of that name would start are
    // kept, because rules that deny a line apply to them.
    let known = commands::evaluate_command(name, argv);
    let why = format!("{called} is outside the system directories");
    let finding = CommandFinding {
        verdict: EffectVerdict::Unknown,
        reason: why.into(),
        span: Some(first.span),
        coverage: RuleCoverage::Prefix,
        ..known
    };
    commands::rule_families::with_uncovered_words(argv, finding)
}

/// Makes a finding unknown if the command receives a variable that is not known to be safe.
fn judge_assignments(
    finding: &mut CommandFinding,
    assigned: &[SetVariable],
    shell: &ShellText<'_>,
    assignments: &[Assignment],
) {
    for (one, written) in assigned.iter().zip(assignments) {
        let fine = is_harmless(&one.name);
        if !fine {
            finding.effects.push(Effect::Env(one.name.clone()));
        }
        if !fine || !one.plain {
            doubt_assignment(finding, written, shell);
        }
    }
}
