//! The parts of a command line that the mode `acceptEdits` covers.

use std::collections::BTreeSet;

use haft_shell::{Arg, Effect, EffectVerdict, LinePart, RuleCoverage, WriteKind, is_safe_variable};

use super::{
    CallFacts, Policy,
    decide::is_critical,
    protected_files::folded,
    rule_matching,
    rules::{List, RuleClass},
    sandbox,
    shell_facts::{PathLocation, PathUse, ShellFacts},
};

/// The conditions under which the mode covers a command.
#[derive(Debug, Clone, Copy)]
enum EditCondition {
    /// It writes only below the working directories.
    Inside,
    /// It writes only paths that the line names.
    Named,
    /// `chmod`: also, it sets no set-user-ID and no set-group-ID bit.
    Mode,
    /// A formatter that reads no configuration of the workspace.
    Formatter {
        /// The option that makes it write.
        option: &'static str,
        /// The end of the names of its files. Any other path may be a directory, whose files it
        /// formats.
        ending: &'static str,
    },
}

/// The commands that the mode covers. A formatter that reads configuration of the workspace is not
/// here: the configuration may name plugins, which run with the network of the line.
const COMMANDS: [(&str, EditCondition); 10] = [
    ("mkdir", EditCondition::Inside),
    ("touch", EditCondition::Inside),
    ("rm", EditCondition::Inside),
    ("rmdir", EditCondition::Inside),
    ("mv", EditCondition::Inside),
    ("cp", EditCondition::Inside),
    ("sed", EditCondition::Inside),
    ("tee", EditCondition::Named),
    ("chmod", EditCondition::Mode),
    (
        "gofmt",
        EditCondition::Formatter {
            option: "-w",
            ending: ".go",
        },
    ),
];

/// Returns whether the mode may cover a command of this name.
pub(super) fn is_editing_command(name: &str) -> bool {
    condition(name).is_some()
}

fn condition(name: &str) -> Option<EditCondition> {
    let mut commands = COMMANDS.iter();
    commands
        .find(|(command, _)| *command == name)
        .map(|(_, condition)| *condition)
}

/// Returns whether all variables before the command leave its behavior unchanged.
pub(super) fn has_safe_assignments(part: &LinePart) -> bool {
    let harmless = |one: &haft_shell::SetVariable| one.plain && is_safe_variable(&one.name);
    part.assignments.iter().all(harmless)
}

/// Returns whether the part is a redirection, or a usual call of an editing command, that changes
/// only files inside the working directories.
pub(super) fn is_accepted(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
    at: usize,
    part: &LinePart,
    paths: &[PathUse],
) -> bool {
    let is_usual = part.finding.verdict == EffectVerdict::Mutating
        && part.finding.coverage == RuleCoverage::Prefix
        && rule_matching::written(paths).next().is_some()
        && rule_matching::written(paths).all(|(path, _)| is_inside(policy, path));
    if !is_usual {
        return false;
    }
    if part.argv.is_empty() {
        return part.assignments.is_empty()
            && !are_edits_restricted(policy)
            && part.finding.effects.iter().all(is_redirected_write)
            && writes_named_files(policy, shell, paths);
    }
    if !has_safe_assignments(part) || is_program_of_workspace(policy, shell, at) {
        return false;
    }
    match part.base_name().and_then(condition) {
        Some(EditCondition::Inside) => true,
        Some(_) if are_edits_restricted(policy) => false,
        Some(EditCondition::Named) => {
            only_touches_files(part) && writes_named_files(policy, shell, paths)
        }
        Some(EditCondition::Mode) => {
            only_touches_files(part)
                && sets_harmless_mode(&part.argv)
                && writes_named_files(policy, shell, paths)
        }
        Some(EditCondition::Formatter { option, ending }) => {
            let files = || {
                rule_matching::written(paths)
                    .all(|(path, _)| path.text.trim_matches(['"', '\'']).ends_with(ending))
            };
            only_touches_files(part)
                && part.argv.iter().any(|arg| arg.is(option))
                && rule_matching::written(paths).all(|(path, _)| is_literal(path))
                && (files() || may_change_any_file(policy, facts))
        }
        None => false,
    }
}

/// Returns whether the part changes only files of the session's own `/tmp`, by a redirection or with
/// a usual call of an editing command.
pub(super) fn writes_private_files(
    policy: &Policy,
    facts: &CallFacts,
    shell: &ShellFacts,
    at: usize,
    part: &LinePart,
    paths: &[PathUse],
) -> bool {
    let is_private = |path: &PathUse| {
        let places = path.places();
        !places.is_empty()
            && places
                .iter()
                .all(|touched| policy.is_private(&touched.real))
    };
    let makes_temporary = || {
        part.base_name() == Some("mktemp")
            && part.finding.verdict == EffectVerdict::Mutating
            && only_touches_files(part)
            && has_safe_assignments(part)
            && !are_edits_restricted(policy)
            && !is_program_of_workspace(policy, shell, at)
    };
    // Also to the value of a variable that the line sets: `T=$(mktemp); sort a > "$T"`.
    let only_redirects = || {
        part.argv.is_empty()
            && part.assignments.is_empty()
            && part.finding.effects.iter().all(is_redirected_write)
            && !are_edits_restricted(policy)
    };
    policy.may_write_private()
        && rule_matching::written(paths).next().is_some()
        && rule_matching::written(paths).all(|(path, _)| is_private(path))
        && (makes_temporary()
            || only_redirects()
            || is_accepted(policy, facts, shell, at, part, paths))
}

/// Returns whether a rule denies or asks about all edits. Such a rule names only tools, but commands
/// are not a way around it.
pub(super) fn are_edits_restricted(policy: &Policy) -> bool {
    let rules = [List::Deny, List::Ask].into_iter();
    let mut rules = rules.flat_map(|list| policy.rules.in_list(list));
    rules.any(|rule| {
        let names = ["Edit", "Write"];
        rule.is_bare() && names.iter().any(|name| rule.tool.matches_name(name))
    })
}

/// Returns whether a command may change files inside that its line does not name: no rule asks about
/// files, and the sandbox refuses those outside and those that a rule denies.
fn may_change_any_file(policy: &Policy, facts: &CallFacts) -> bool {
    let mut asking = policy.rules.in_list(List::Ask);
    !sandbox::is_open(policy, facts)
        && !asking.any(|rule| matches!(rule.class, RuleClass::Edits | RuleClass::Reads))
}

/// Returns whether `PATH` leads to a program of the working directory, or its files pin one.
pub(super) fn is_program_of_workspace(policy: &Policy, shell: &ShellFacts, at: usize) -> bool {
    let trusted = policy.sandbox.trusted;
    let problem = shell
        .programs
        .problem(at, trusted, |file| policy.is_inside(file));
    problem.is_some()
}

fn is_redirected_write(effect: &Effect) -> bool {
    matches!(effect, Effect::Write(write) if write.kind == WriteKind::Redirect)
}

/// Returns whether the command has no other effects than reads and writes of files.
fn only_touches_files(part: &LinePart) -> bool {
    let mut effects = part.finding.effects.iter();
    part.finding.starts.is_empty()
        && effects.all(|effect| matches!(effect, Effect::Read(_) | Effect::Write(_)))
}

fn is_inside(policy: &Policy, path: &PathUse) -> bool {
    match &path.place {
        PathLocation::Known(places) | PathLocation::Below(Some(places)) => {
            places.iter().all(|touched| policy.is_inside(&touched.real))
        }
        PathLocation::Below(None) => false,
    }
}

fn writes_named_files(policy: &Policy, shell: &ShellFacts, paths: &[PathUse]) -> bool {
    !completes_repository(shell)
        && rule_matching::written(paths)
            .all(|(path, _)| is_literal(path) && !is_critical(policy, path))
}

/// Returns whether the line creates parts of a git repository, and also a file there that git obeys.
/// The disk before the line shows only repositories that other calls began.
fn completes_repository(shell: &ShellFacts) -> bool {
    let (mut begun, mut controlled) = (BTreeSet::new(), BTreeSet::new());
    for (path, _) in shell
        .parts()
        .flat_map(|(_, _, paths)| rule_matching::written(paths))
    {
        let PathLocation::Known(places) = &path.place else {
            continue;
        };
        for path in places.iter().flat_map(|touched| touched.real.ancestors()) {
            let name = path.file_name().map(|name| name.to_string_lossy());
            match name.as_deref().map(folded).as_deref() {
                Some("head" | "objects" | "refs") => begun.insert(path.parent()),
                Some("config" | "config.worktree" | "commondir" | "gitdir" | "hooks") => {
                    controlled.insert(path.parent())
                }
                _ => false,
            };
        }
    }
    !begun.is_disjoint(&controlled)
}

/// Returns whether the line names the path without patterns and expansions.
fn is_literal(path: &PathUse) -> bool {
    matches!(path.place, PathLocation::Known(_)) && !path.text.contains(['$', '`'])
}

/// Returns whether the arguments of `chmod` set neither the set-user-ID nor the set-group-ID bit.
/// `-R` also changes files that the line does not name, and `--reference` sets unknown bits.
fn sets_harmless_mode(argv: &[Arg]) -> bool {
    const OPTIONS: [&str; 7] = [
        "-c",
        "-f",
        "-v",
        "--changes",
        "--quiet",
        "--silent",
        "--verbose",
    ];
    let mut modes = Vec::new();
    let mut first_operand = None;
    for arg in argv.iter().skip(1) {
        let Some(text) = arg.text() else {
            return false;
        };
        if OPTIONS.contains(&text) {
            continue;
        }
        match text.strip_prefix('-') {
            // `chmod -x f` removes a permission.
            Some(rest) if rest.starts_with(|first| "rwxXtugoa,+=".contains(first)) => {
                modes.push(text);
            }
            Some(_) => return false,
            None => first_operand = first_operand.or(Some(text)),
        }
    }
    if modes.is_empty() {
        modes.extend(first_operand);
    }
    !modes.is_empty() && modes.into_iter().all(is_harmless_mode)
}

fn is_harmless_mode(mode: &str) -> bool {
    if mode.bytes().all(|byte| byte.is_ascii_digit()) {
        return u32::from_str_radix(mode, 8).is_ok_and(|bits| bits <= 0o7777 && bits & 0o6000 == 0);
    }
    // Neither `s` nor digits after an operator.
    mode.contains(['+', '-', '='])
        && mode
            .chars()
            .all(|character| "ugoarwxXt+-=,".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_without_special_bits() {
        for mode in [
            "755", "0644", "1777", "+x", "-w", "u+x,go-w", "a=rX", "g=u", "+t", "0",
        ] {
            assert!(is_harmless_mode(mode), "{mode}");
        }
        for mode in [
            "4755",
            "2755",
            "6755",
            "04755",
            "u+s",
            "g+s",
            "+s",
            "u=rws",
            "+4755",
            "=6000",
            "a",
            "",
            "x",
            "888",
            "77777",
            "--reference=f",
            "-R",
        ] {
            assert!(!is_harmless_mode(mode), "{mode}");
        }
    }
}
