//! What a line runs without a command of its own: texts that bash evaluates, and variables that choose
//! programs. None of it can be read from the line, so rules that hold a line up must know.

use crate::{
    arg::Arg,
    commands::variables::chooses_programs,
    effect::{CommandFinding, Effect},
};

/// Whether the line holds a text with a command in it, and something that evaluates texts.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// A quoted text holds a substitution, as in `x='a[$(cmd)]'`.
    text: bool,
    /// The text of a variable, or a subscript, is evaluated.
    evaluates: bool,
}

impl Evaluation {
    pub(super) fn note_text(&mut self, text: &str) {
        self.text |= text.contains("$(") || text.contains('`');
    }

    pub(super) fn note_evaluation(&mut self) {
        self.evaluates = true;
    }

    /// Some commands of bash evaluate the subscripts of the names they are given.
    pub(super) fn note_command(&mut self, argv: &[Arg]) {
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

    /// Why a command may run that is none of the line's own, if so.
    pub(super) fn problem(&self) -> Option<CommandFinding> {
        let why = "a text that holds a command may be evaluated";
        (self.text && self.evaluates)
            .then(|| CommandFinding::unknown(why).with(Effect::Opaque(why.into())))
    }
}

/// Says so where a variable that is set chooses what runs.
pub(super) fn admit_chosen(finding: &mut CommandFinding) {
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
