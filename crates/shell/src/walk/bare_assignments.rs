//! Assignments without a command, whose variables end with the line.

use super::{LineWalkState, ShellText, Walker, is_safe_variable};
use crate::{
    analysis::SetVariable,
    arg::{Arg, ArgValue},
    ast::{AssignedValue, Assignment, CommandKind, PartKind, ShellWord},
    commands::special_variables::is_special_variable,
    decode,
    effect::{CommandFinding, Effect, EffectVerdict},
};

impl Walker<'_> {
    /// Makes a finding unknown if an assignment may change what the rest of the line does.
    pub(super) fn judge_bare_assignments(
        &self,
        finding: &mut CommandFinding,
        assigned: &[SetVariable],
        assignments: &[Assignment],
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        let only_users = !assigned.iter().any(|one| is_special_variable(&one.name));
        for (one, written) in assigned.iter().zip(assignments) {
            finding.effects.push(Effect::Env(one.name.clone()));
            let fine = if is_safe_variable(&one.name) {
                one.plain
            } else {
                only_users && self.has_plain_value(written, shell, state)
            };
            if !fine {
                doubt_assignment(finding, written, shell);
            }
        }
    }

    /// Returns whether the assignment sets the whole variable to a text that is known, or to the
    /// path of a new temporary file.
    fn has_plain_value(
        &self,
        assignment: &Assignment,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) -> bool {
        let AssignedValue::Word(word) = &assignment.value else {
            return false;
        };
        let known = || decode::text(word, self.known(shell, state)).is_some();
        assignment.subscript.is_none() && !assignment.append && (known() || is_temporary_path(word))
    }

    /// Records which arguments contain the value of a variable that the line sets.
    pub(super) fn record_value_spans(
        &mut self,
        words: &[ShellWord],
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        let known = self.known(shell, state);
        let computed = words.iter().filter(|word| decode::uses_value(word, known));
        let spans: Vec<_> = computed.map(|word| shell.span(word.span)).collect();
        self.value_spans.extend(spans);
    }

    /// Returns the arguments of a command. A name that a variable contains must not make the
    /// command known.
    pub(super) fn without_computed_name(&self, mut argv: Vec<Arg>) -> Vec<Arg> {
        if let Some(first) = argv.first_mut()
            && self.value_spans.contains(&first.span)
            && let ArgValue::Literal(text) = &mut first.value
        {
            first.value = ArgValue::Braced(std::mem::take(text));
        }
        argv
    }

    /// Records the values that later commands of the line expand.
    pub(super) fn record_values(
        &mut self,
        assignments: &[Assignment],
        shell: &ShellText<'_>,
        state: &mut LineWalkState,
    ) {
        for assignment in assignments {
            self.variables_may_change |= assignment.subscript.is_some();
            // A text inside the line may run in another shell, or at another time.
            if !self.values || shell.within.is_some() || is_special_variable(&assignment.name) {
                continue;
            }
            let AssignedValue::Word(word) = &assignment.value else {
                continue;
            };
            let value = decode::text(word, self.known(shell, state));
            let value = value.or_else(|| temporary_path(word));
            if let Some(value) = value.filter(|_| !assignment.append) {
                state.values.record(&assignment.name, &value, shell.source);
                self.has_values = true;
            }
        }
    }
}

/// The form of the paths that `mktemp` returns.
const TEMPORARY_PATH: &str = "/tmp/tmp.XXXXXXXXXX";

/// Returns whether a value is only the output of `mktemp`.
fn is_temporary_path(word: &ShellWord) -> bool {
    temporary_arguments(word).is_some()
}

/// Returns a path like that of a value which is only the output of `mktemp`, if no argument selects
/// another directory.
fn temporary_path(word: &ShellWord) -> Option<String> {
    let is_plain = |word: &ShellWord| match word.parts.as_slice() {
        [only] => matches!(&only.kind, PartKind::Text(text) if text == "-d" || text == "-q"),
        _ => false,
    };
    let arguments = temporary_arguments(word)?;
    arguments
        .iter()
        .all(is_plain)
        .then(|| TEMPORARY_PATH.to_owned())
}

/// Returns the arguments of `mktemp`, if a value is only its output.
fn temporary_arguments(word: &ShellWord) -> Option<&[ShellWord]> {
    // Also in double quotes, which change nothing here.
    let [part] = word.parts.as_slice() else {
        return None;
    };
    let PartKind::Command(script) = &part.kind else {
        return None;
    };
    let [item] = script.items.as_slice() else {
        return None;
    };
    let [command] = item.pipeline.commands.as_slice() else {
        return None;
    };
    match &command.kind {
        CommandKind::Simple { assignments, words } if assignments.is_empty() => {
            let (name, arguments) = words.split_first()?;
            let [only] = name.parts.as_slice() else {
                return None;
            };
            (only.kind == PartKind::Text("mktemp".to_owned())).then_some(arguments)
        }
        _ => None,
    }
}

/// Makes a finding unknown because of an assignment.
pub(super) fn doubt_assignment(
    finding: &mut CommandFinding,
    assignment: &Assignment,
    shell: &ShellText<'_>,
) {
    if finding.verdict < EffectVerdict::Unknown {
        finding.verdict = EffectVerdict::Unknown;
        finding.reason = format!("setting {} may change what runs", assignment.name).into();
        finding.span = Some(shell.span(assignment.span));
    }
}
