//! Code that a line runs without a command: texts that bash evaluates, and variables that choose
//! programs. This code cannot be read from the line, so rules that block a line must know about it.

use crate::{
    arg::Arg,
    commands::variables::chooses_programs,
    effect::{CommandFinding, Effect},
};

/// Tracks whether the line contains a text with a command in it, and a construct that evaluates
/// texts.
#[derive(Debug, Default)]
pub(super) struct EvaluationTracker {
    /// A quoted text contains a substitution, as in `x='a[$(cmd)]'`.
    text: bool,
    /// Bash evaluates a subscript or the text of a variable.
    evaluates: bool,
}

impl EvaluationTracker {
    pub(super) fn record_text(&mut self, text: &str) {
        self.text |= text.contains("$(") || text.contains('`');
    }

    pub(super) fn record_evaluation(&mut self) {
        self.evaluates = true;
    }

    /// Returns whether bash evaluates a text of the line, which may set variables.
    pub(super) fn evaluates(&self) -> bool {
        self.evaluates
    }

    /// Records builtins that evaluate the subscripts of their arguments.
    pub(super) fn record_command(&mut self, argv: &[Arg]) {
        const EVALUATING: &[&str] = &[
            "[",
            "declare",
            "export",
            "getopts",
            "let",
            "local",
            "mapfile",
            "printf",
            "read",
            "readarray",
            "readonly",
            "test",
            "typeset",
            "unset",
            "wait",
        ];
        let called = argv.first().and_then(Arg::text).unwrap_or_default();
        self.evaluates |= EVALUATING.contains(&called)
            && argv[1..]
                .iter()
                .any(|arg| arg.text().is_none_or(|text| text.contains('[')));
    }

    /// Returns the finding for a command that may run although the line does not contain it, if
    /// any.
    pub(super) fn problem(&self) -> Option<CommandFinding> {
        let why = "a text that contains a command may be evaluated";
        (self.text && self.evaluates)
            .then(|| CommandFinding::unknown(why).with(Effect::Opaque(why.into())))
    }
}

/// Adds [`Effect::Opaque`] if the line sets a variable that chooses a program.
pub(super) fn add_chosen_programs(finding: &mut CommandFinding) {
    let opaque = |effect: &Effect| matches!(effect, Effect::Opaque(_));
    if finding.effects.iter().any(opaque) {
        return;
    }
    let chosen = finding.effects.iter().find_map(|effect| match effect {
        Effect::Env(name) if chooses_programs(name) => Some(name.clone()),
        _ => None,
    });
    if let Some(name) = chosen {
        let why = format!("{name} chooses a program that runs");
        finding.effects.push(Effect::Opaque(why.into()));
    }
}
