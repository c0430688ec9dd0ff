//! Variables of the environment whose values a line uses and that look like secrets.

use std::collections::BTreeSet;

use super::{LineWalkState, ShellText, Walker};
use crate::{
    arg::Arg,
    ast::Span,
    commands::variables::is_name,
    effect::{CommandFinding, EffectVerdict},
    secret_names::is_secret_name,
};

/// Commands that set the variables in their operands.
const SETTING: &[&str] = &[
    "declare",
    "export",
    "getopts",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "typeset",
];

/// Commands that print the variables in their operands with `-p`.
const PRINTING: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// Programs whose scripts can read the environment.
const READING: &[&str] = &["awk", "gawk", "mawk", "nawk", "jq", "gojq", "jaq", "yq"];

/// The variables that a line sets, and the secret ones that it uses.
#[derive(Debug, Default)]
pub(super) struct LineVariables {
    assigned: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

impl LineVariables {
    /// Records that the line sets a variable. Later expansions use that value.
    pub(super) fn assign(&mut self, name: &str) {
        self.assigned.insert(name.to_owned());
    }

    /// Returns the secret variables that the line uses.
    pub(super) fn into_secrets(self) -> Vec<String> {
        self.secrets.into_iter().collect()
    }

    fn is_secret(&self, name: &str) -> bool {
        is_secret_name(name) && !self.assigned.contains(name)
    }

    /// Records the variables that the arguments of a command name.
    pub(super) fn record_command(&mut self, argv: &[Arg], finding: &mut CommandFinding) {
        let Some((name, words)) = argv.split_first() else {
            return;
        };
        let name = name.text().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let texts = || words.iter().filter_map(Arg::text);
        let prints = texts().any(|word| word.starts_with('-') && word.contains('p'));
        let mut used = BTreeSet::new();
        if name == "printenv" || PRINTING.contains(&name) && prints {
            used.extend(texts().filter(|word| self.is_secret(word)));
        }
        if READING.contains(&name)
            && texts().any(|word| word.contains("ENV") || word.contains("env"))
        {
            let identifiers = texts().flat_map(|word| word.split(|letter| !is_part(letter)));
            let constant = |word: &&str| word.chars().all(|letter| !letter.is_lowercase());
            used.extend(
                identifiers
                    .filter(constant)
                    .filter(|word| self.is_secret(word)),
            );
        }
        if let Some(first) = used.first() {
            if finding.verdict < EffectVerdict::Unknown {
                finding.verdict = EffectVerdict::Unknown;
                finding.reason = reason(first).into();
            }
            self.secrets.extend(used.into_iter().map(str::to_owned));
        } else if SETTING.contains(&name) {
            let names = texts().map(|word| word.split(['=', '+', '[']).next().unwrap_or_default());
            self.assigned
                .extend(names.filter(|word| is_name(word)).map(str::to_owned));
        }
    }
}

fn is_part(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric()
}

fn reason(name: &str) -> String {
    format!("it uses {name}, which looks like a secret")
}

impl Walker<'_> {
    /// Records that an expansion uses a variable.
    pub(super) fn use_variable(
        &mut self,
        name: &str,
        span: Span,
        shell: &ShellText<'_>,
        state: &LineWalkState,
    ) {
        if !self.variables.is_secret(name) || !self.variables.secrets.insert(name.to_owned()) {
            return;
        }
        let finding = CommandFinding::unknown(reason(name)).with_span(span);
        self.record_finding(span, finding, shell, state);
    }
}
