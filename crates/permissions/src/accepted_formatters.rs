//! Formatters that the mode `acceptEdits` runs in the sandbox without network.
//!
//! They change the files that the line names, and read configuration of the workspace, which may name
//! plugins. So they run only where the whole sandbox works, with a record for undo.

use haft_shell::{LinePart, RuleCoverage};

use super::{
    Policy,
    accepted_edits::{are_edits_restricted, has_safe_assignments, is_program_of_workspace},
    rules::{List, RuleClass},
    shell_facts::{ShellFacts, absolute},
};
use haft_settings::real_path;

/// A formatter.
struct SourceFormatter {
    /// The words that start its command, separated by spaces.
    words: &'static str,
    /// Options of which the line must have at least one, so that it writes; empty: it writes anyway.
    needs: &'static [&'static str],
    /// Whether it formats the whole project without an operand.
    whole_project: bool,
}

const fn writes(words: &'static str) -> SourceFormatter {
    SourceFormatter {
        words,
        needs: &[],
        whole_project: false,
    }
}

const FORMATTERS: [SourceFormatter; 12] = [
    SourceFormatter {
        needs: &["--write", "-w"],
        ..writes("prettier")
    },
    SourceFormatter {
        needs: &["--write", "-w"],
        ..writes("npx prettier")
    },
    SourceFormatter {
        needs: &["--write", "--fix"],
        ..writes("biome format")
    },
    writes("rustfmt"),
    SourceFormatter {
        whole_project: true,
        ..writes("cargo fmt")
    },
    writes("black"),
    writes("python -m black"),
    writes("python3 -m black"),
    writes("ruff format"),
    SourceFormatter {
        needs: &["-i"],
        ..writes("clang-format")
    },
    SourceFormatter {
        needs: &["-w", "--write"],
        ..writes("shfmt")
    },
    writes("dart format"),
];

/// Returns whether the command is a formatter that writes only files and directories inside the working
/// directories, which its line names.
pub(super) fn is_accepted_formatter(
    policy: &Policy,
    shell: &ShellFacts,
    at: usize,
    part: &LinePart,
) -> bool {
    let words: Option<Vec<&str>> = part.argv.iter().map(|arg| arg.text()).collect();
    let Some(words) = words else { return false };
    let found = FORMATTERS.iter().find_map(|formatter| {
        let fixed: Vec<&str> = formatter.words.split(' ').collect();
        Some((formatter, words.strip_prefix(fixed.as_slice())?))
    });
    let Some((formatter, rest)) = found else {
        return false;
    };
    // Options that load code or other configuration need an exact rule.
    let is_usual = part.finding.coverage == RuleCoverage::Prefix
        && part.outer.is_none()
        && has_safe_assignments(part)
        && !is_program_of_workspace(policy, shell, at)
        && !are_edits_restricted(policy)
        && !has_ask_rules_for_files(policy);
    let (options, operands): (Vec<&str>, Vec<&str>) =
        rest.iter().partition(|word| word.starts_with('-'));
    let writes = formatter.needs.is_empty()
        || options
            .iter()
            .any(|option| formatter.needs.contains(option));
    let names_files = match operands.is_empty() {
        true => {
            formatter.whole_project
                && part.cwd.as_ref().is_some_and(|cwd| {
                    cwd.iter()
                        .all(|directory| policy.is_inside(&real_path::resolve_links(directory)))
                })
        }
        false => operands
            .iter()
            .all(|operand| is_inside(policy, part, operand)),
    };
    // The value of an option could be a path elsewhere.
    let has_paths = options.iter().any(|option| option.contains('/'));
    is_usual && writes && names_files && !has_paths
}

fn is_inside(policy: &Policy, part: &LinePart, operand: &str) -> bool {
    let Some(places) = absolute(operand, part.cwd.as_deref()) else {
        return false;
    };
    places.iter().all(|place| {
        let given = real_path::normalize(place);
        let real = real_path::resolve_links(place);
        let is_control = policy.is_control(&given) || policy.is_control(&real);
        policy.is_inside(&real) && policy.is_inside(&given) && !is_control
    })
}

/// Returns whether a rule asks about some files: a formatter may change any below a directory.
fn has_ask_rules_for_files(policy: &Policy) -> bool {
    let mut asking = policy.rules.in_list(List::Ask);
    asking.any(|rule| matches!(rule.class, RuleClass::Edits | RuleClass::Reads))
}
