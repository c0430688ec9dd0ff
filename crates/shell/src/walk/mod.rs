//! Walks a parsed line and analyzes every command in it, in the order in which bash reaches it.

mod bare_assignments;
mod functions;
mod implicit_execution;
mod known_values;
mod redirects;
mod simple;
mod variables;
mod words;

pub(crate) use known_values::KnownValues;
pub(crate) use redirects::PIPE;
pub use redirects::{is_stream, stores_nothing};
pub(crate) use simple::TRUSTED;
pub use simple::is_safe_variable;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    analysis::{Analysis, LineLocation, LinePart},
    arithmetic,
    ast::{CommandKind, CommandNode, ListSeparator, Pipeline, ScriptItem, ShellScript, Span},
    commands,
    decode::KnownVariables,
    effect::{CommandFinding, Effect, EffectVerdict},
    invisible, read_counter, syntax,
};
use functions::DefinedFunctions;

/// The maximum nesting of texts inside texts (`sh -c "sh -c …"`) that are analyzed.
const MAX_DEPTH: usize = 16;

/// The maximum number of possible directories. Above it, the directory is unknown.
const MAX_PLACES: usize = 4;

/// The maximum length of a line in bytes. Linux passes no longer argument to a program, and the
/// analysis takes several hundred times the memory of the line.
pub const MAX_LINE: usize = 131_072;

/// Analyzes a line. The function is pure and takes linear time in the length of the line.
pub fn analyze(line: &str, place: &LineLocation) -> Analysis {
    analyze_wrapped(line, place, &[])
}

/// Like [`analyze`], but treats further programs as wrappers: the actual command starts after the
/// name.
pub fn analyze_wrapped(line: &str, place: &LineLocation, wrappers: &[String]) -> Analysis {
    read_counter::record_read(line);
    let whole = Span {
        start: 0,
        end: line.len(),
    };
    let unreadable = |problem: String, span: Span| Analysis {
        verdict: EffectVerdict::Unknown,
        reason: format!("it cannot be read: {problem}"),
        span,
        parts: Vec::new(),
        secrets: Vec::new(),
        unreadable: Some(problem),
    };
    if line.len() > MAX_LINE {
        return unreadable(format!("it is longer than {MAX_LINE} bytes"), whole);
    }
    let script = match syntax::parse(line) {
        Ok(script) => script,
        Err(error) => return unreadable(error.to_string(), error.span),
    };
    let trackable = known_values::is_trackable(line);
    let mut walker = Walker::new(place, wrappers, true, trackable);
    walker.line(line, &script);
    let values_may_change = walker.variables_may_change || walker.evaluation.evaluates();
    let values = trackable && !values_may_change;
    if walker.functions_may_change || walker.has_values && !values {
        // A function may be removed before it is called, even in a body that was analyzed before.
        // The same applies to the value of a variable.
        walker = Walker::new(place, wrappers, !walker.functions_may_change, values);
        walker.line(line, &script);
    }
    let worst = walker.parts.iter().enumerate().rev();
    let worst = worst.max_by_key(|(_, part)| part.finding.verdict);
    let (verdict, reason, span) = match worst {
        None => (EffectVerdict::ReadOnly, "it does nothing".to_owned(), whole),
        Some((_, part)) if part.finding.verdict == EffectVerdict::ReadOnly => {
            (EffectVerdict::ReadOnly, "it only reads".to_owned(), whole)
        }
        Some((_, part)) => {
            let reason = match part.base_name() {
                Some(name) => format!("{name}: {}", part.finding.reason),
                None => part.finding.reason.to_string(),
            };
            (
                part.finding.verdict,
                reason,
                part.finding.span.unwrap_or(part.span),
            )
        }
    };
    Analysis {
        verdict,
        reason,
        span,
        parts: walker.parts,
        secrets: walker.variables.into_secrets(),
        unreadable: None,
    }
}

struct Walker<'a> {
    place: &'a LineLocation,
    /// Programs after whose name the actual command starts.
    wrappers: &'a [String],
    parts: Vec<LinePart>,
    depth: usize,
    /// A call of a function that the line defines is trusted to run that function.
    functions: bool,
    /// A command in the line may change the set of functions.
    functions_may_change: bool,
    /// The values of variables that the line sets are trusted.
    values: bool,
    /// The line sets a variable whose value is trusted.
    has_values: bool,
    /// The arguments that contain the value of a variable that the line sets.
    value_spans: BTreeSet<Span>,
    /// The line may set variables whose names it does not spell out.
    variables_may_change: bool,
    /// Descriptors that the line opens and copies.
    streams: redirects::OpenedDescriptors,
    /// Texts that bash evaluates.
    evaluation: implicit_execution::EvaluationTracker,
    variables: variables::LineVariables,
}

impl<'a> Walker<'a> {
    fn new(place: &'a LineLocation, wrappers: &'a [String], functions: bool, values: bool) -> Self {
        Self {
            place,
            wrappers,
            parts: Vec::new(),
            depth: 0,
            functions,
            functions_may_change: false,
            values,
            has_values: false,
            value_spans: BTreeSet::new(),
            variables_may_change: false,
            streams: redirects::OpenedDescriptors::default(),
            evaluation: implicit_execution::EvaluationTracker::default(),
            variables: variables::LineVariables::default(),
        }
    }

    fn line(&mut self, line: &str, script: &ShellScript) {
        let mut state = LineWalkState {
            places: Some(vec![self.place.cwd.clone()]),
            moved: false,
            functions: DefinedFunctions::default(),
            values: KnownValues::default(),
        };
        let shell = ShellText::new(line, None);
        self.script(script, &shell, &mut state);
        if let Some((span, finding)) = self.streams.problem() {
            self.record_finding(span, finding, &shell, &state);
        }
        if let Some((start, letter)) = invisible::first_invisible(line) {
            let span = Span {
                start,
                end: start + letter.len_utf8(),
            };
            let code = u32::from(letter);
            let why =
                format!("the invisible character U+{code:04X} makes it look like another line");
            let finding = CommandFinding::unknown(why)
                .with_span(span)
                .requiring_exact_rule();
            self.record_finding(span, finding, &shell, &state);
        }
        if let Some(finding) = self.evaluation.problem() {
            let whole = Span {
                start: 0,
                end: line.len(),
            };
            self.record_finding(whole, finding, &shell, &state);
        }
    }
}

/// A text that a shell runs: the line itself, or the argument of `sh -c`.
struct ShellText<'a> {
    source: &'a str,
    /// The text's place in the line, if it is not the line itself.
    within: Option<Span>,
    /// The index of the part that runs the text.
    outer: Option<usize>,
    /// The text never sets `HOME`; the next field says the same of `PWD`.
    home_is_home: bool,
    pwd_is_pwd: bool,
}

impl<'a> ShellText<'a> {
    fn new(source: &'a str, within: Option<(Span, usize)>) -> Self {
        Self {
            source,
            within: within.map(|(span, _)| span),
            outer: within.map(|(_, outer)| outer),
            home_is_home: is_only_used(source, "HOME"),
            pwd_is_pwd: is_only_used(source, "PWD"),
        }
    }

    fn span(&self, span: Span) -> Span {
        self.within.unwrap_or(span)
    }
}

/// Returns whether the text never sets this variable: the name occurs only in expansions, or not at
/// all. Setting a variable requires its name without a dollar sign.
fn is_only_used(source: &str, name: &str) -> bool {
    source.match_indices(name).all(|(at, _)| {
        let before = &source[..at];
        before.ends_with('$') || before.ends_with("${")
    })
}

/// The state of a shell that changes from command to command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineWalkState {
    /// The possible current directories.
    places: Option<Vec<PathBuf>>,
    moved: bool,
    /// The functions that certainly exist.
    functions: DefinedFunctions,
    /// The variables whose values are certain.
    values: KnownValues,
}

impl LineWalkState {
    fn or(&mut self, other: &Self) {
        self.functions.and(&other.functions);
        self.values.and(&other.values);
        self.or_places(other);
    }

    fn or_places(&mut self, other: &Self) {
        self.moved |= other.moved;
        match (&mut self.places, &other.places) {
            (Some(mine), Some(theirs)) => {
                for path in theirs {
                    if !mine.contains(path) {
                        mine.push(path.clone());
                    }
                }
                if mine.len() > MAX_PLACES {
                    self.places = None;
                }
            }
            _ => self.places = None,
        }
    }

    fn forget_directory(&mut self) {
        self.places = None;
        self.moved = true;
    }
}

impl Walker<'_> {
    fn script(&mut self, script: &ShellScript, shell: &ShellText<'_>, state: &mut LineWalkState) {
        let mut rest = script.items.as_slice();
        while !rest.is_empty() {
            let ends = |item: &ScriptItem| {
                matches!(
                    item.then,
                    ListSeparator::Sequence | ListSeparator::Background
                )
            };
            let length = rest.iter().position(ends).map_or(rest.len(), |at| at + 1);
            let (chain, behind) = rest.split_at(length);
            let background = chain
                .last()
                .is_some_and(|item| item.then == ListSeparator::Background);
            if background {
                // The whole chain runs in a separate shell.
                self.chain(chain, shell, &mut state.clone());
            } else {
                self.chain(chain, shell, state);
            }
            rest = behind;
        }
    }

    /// Analyzes pipelines joined by `&&` and `||`.
    fn chain(&mut self, chain: &[ScriptItem], shell: &ShellText<'_>, state: &mut LineWalkState) {
        let mut before = state.clone();
        // Only the first pipeline certainly runs.
        let mut certain: Option<(DefinedFunctions, KnownValues)> = None;
        let mut joined_by = ListSeparator::Sequence;
        for item in chain {
            self.pipeline(&item.pipeline, shell, state);
            let (functions, values) =
                certain.get_or_insert_with(|| (state.functions.clone(), state.values.clone()));
            // In `a || f() { …; } && f`, the last pipeline may run without the definition. In
            // `a && f() { …; } && f`, it runs only after the definition.
            if joined_by == ListSeparator::Or || item.then != ListSeparator::And {
                state.functions.clone_from(functions);
                state.values.clone_from(values);
            }
            // Only after `&&` has the pipeline before it certainly succeeded.
            if item.then != ListSeparator::And {
                state.or_places(&before);
                before = state.clone();
            }
            joined_by = item.then;
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, shell: &ShellText<'_>, state: &mut LineWalkState) {
        match pipeline.commands.as_slice() {
            [only] => self.command(only, shell, state),
            // Each command runs in a separate shell.
            several => {
                for command in several {
                    self.command(command, shell, &mut state.clone());
                }
            }
        }
    }

    fn command(&mut self, command: &CommandNode, shell: &ShellText<'_>, state: &mut LineWalkState) {
        if let CommandKind::Simple { assignments, words } = &command.kind {
            self.simple(command, assignments, words, shell, state);
            return;
        }
        self.redirects(command, shell, state);
        match &command.kind {
            CommandKind::Simple { .. } => {}
            CommandKind::Group(script) => self.script(script, shell, state),
            CommandKind::Subshell(script) => self.script(script, shell, &mut state.clone()),
            CommandKind::If {
                branches,
                otherwise,
            } => {
                let mut after = state.clone();
                for (test, body) in branches {
                    self.script(test, shell, state);
                    let mut inside = state.clone();
                    self.script(body, shell, &mut inside);
                    after.or(&inside);
                }
                if let Some(body) = otherwise {
                    self.script(body, shell, state);
                }
                state.or(&after);
            }
            CommandKind::While { test, body } => self.repeated(&[test, body], shell, state),
            CommandKind::For {
                name,
                words,
                body,
                select,
            } => {
                let mut finding = CommandFinding::read_only("it only repeats");
                for word in words.iter().flatten() {
                    self.word(word, shell, state);
                    for arg in crate::decode::args(word, self.known(shell, state)) {
                        // The body may read the files that the loop names.
                        finding.effects.push(commands::options::content(&arg));
                    }
                }
                if !commands::variables::is_own(name) {
                    finding.verdict = EffectVerdict::Unknown;
                    finding.reason = format!("setting {name} may change what runs").into();
                    finding.effects.push(Effect::Env(name.clone()));
                }
                if *select {
                    finding = CommandFinding::unknown("select waits for input");
                }
                self.record_finding(command.span, finding, shell, state);
                self.variables.assign(name);
                self.repeated(&[body], shell, state);
            }
            CommandKind::ArithmeticFor { parts, body } => {
                for part in parts {
                    self.arithmetic(part, shell, state);
                }
                self.repeated(&[body], shell, state);
            }
            CommandKind::Case { word, arms } => {
                self.word(word, shell, state);
                let before = state.clone();
                for arm in arms {
                    for pattern in &arm.patterns {
                        self.word(pattern, shell, &before);
                    }
                    // After `;&`, the next arm runs as well.
                    let mut inside = before.clone();
                    inside.or(state);
                    self.script(&arm.body, shell, &mut inside);
                    state.or(&inside);
                }
            }
            CommandKind::Function { name, body } => {
                if commands::is_known(name) {
                    let why = format!("it redefines {name}");
                    let finding =
                        CommandFinding::unknown(why.clone()).with(Effect::Opaque(why.into()));
                    self.record_finding(command.span, finding, shell, state);
                }
                let mut inside = state.clone();
                inside.forget_directory();
                // The body runs only when the function is called, so the function exists in it.
                inside.functions.define(name);
                self.command(body, shell, &mut inside);
                state.functions.define(name);
            }
            CommandKind::Test(items) => self.test(items, command.span, shell, state),
            CommandKind::Arithmetic(expression) => self.arithmetic(expression, shell, state),
            CommandKind::Coprocess { body } => {
                self.variables_may_change = true;
                let finding =
                    CommandFinding::unknown("a coprocess keeps running in the background");
                self.record_finding(command.span, finding, shell, state);
                self.command(body, shell, &mut state.clone());
            }
        }
    }

    /// Analyzes bodies that may run any number of times: a `cd` in a body may precede any command
    /// in it.
    fn repeated(
        &mut self,
        bodies: &[&ShellScript],
        shell: &ShellText<'_>,
        state: &mut LineWalkState,
    ) {
        let before = state.clone();
        let from = self.parts.len();
        for body in bodies {
            self.script(body, shell, state);
        }
        // The bodies may not run at all.
        state.functions.clone_from(&before.functions);
        state.values.clone_from(&before.values);
        if *state != before {
            state.forget_directory();
            for part in &mut self.parts[from..] {
                part.cwd = None;
                part.after_cd = true;
            }
        }
    }

    fn arithmetic(
        &mut self,
        expression: &crate::ast::ArithmeticExpression,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        for part in &expression.parts {
            self.part(part, shell, state);
        }
        if !arithmetic::is_plain(expression) {
            self.evaluation.record_evaluation();
            self.evaluation.record_text(&expression.text);
            let finding = CommandFinding::unknown(
                "bash evaluates the text of the variables in an arithmetic expression",
            );
            self.record_finding(expression.span, finding, shell, state);
        }
    }

    /// Records a part of the line that is not a command itself.
    fn record_finding(
        &mut self,
        span: Span,
        mut finding: CommandFinding,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        redirects::refuse_foreign_reads(&mut finding, state.places.as_deref());
        implicit_execution::add_chosen_programs(&mut finding);
        if finding.verdict == EffectVerdict::ReadOnly && finding.effects.is_empty() {
            return;
        }
        let span = shell.span(span);
        self.parts.push(LinePart {
            span,
            text: String::new(),
            words: String::new(),
            argv: Vec::new(),
            assignments: Vec::new(),
            cwd: state.places.clone(),
            after_cd: state.moved,
            outer: shell.outer,
            finding: CommandFinding {
                span: finding.span.map(|inner| shell.span(inner)),
                ..finding
            },
        });
    }

    fn known<'s>(&'s self, shell: &ShellText<'_>, state: &'s LineWalkState) -> KnownVariables<'s> {
        let home = self.place.home.as_deref().and_then(Path::to_str);
        let pwd = match state.places.as_deref() {
            Some([one]) => one.to_str(),
            _ => None,
        };
        KnownVariables {
            home: home.filter(|_| shell.home_is_home),
            pwd: pwd.filter(|_| shell.pwd_is_pwd),
            line: Some(&state.values),
        }
    }
}
