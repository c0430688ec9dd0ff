//! The permission mode `auto`: what runs because undo can restore it, and what still asks.

use haft_contract::{HostVerdict, PermissionMode};
use haft_shell::{Effect, LinePart, commands::rule_families::starts_other_programs};

use super::{
    CallFacts, DecisionReason, PartCoverage, Policy, TouchedPath,
    rules::{Rule, RuleClass, RuleContent},
    sandbox::{self, SettingsHosts},
    shell_facts::{PathLocation, PathUse, ShellFacts},
};

/// The beginning of the reason why an irreversible part is not covered.
pub(super) const IRREVERSIBLE: &str = "irreversible: ";

/// The reason why the mode `auto` asks about a part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReversibleProblem {
    /// Nothing on this machine can undo it.
    Irreversible(String),
    /// It names a host that nothing allows.
    NewHost(String),
    /// It cannot work without one of the user's own services, and their credentials.
    NeedsService(String),
}

impl ReversibleProblem {
    pub(super) fn into_reason(self) -> String {
        match self {
            Self::Irreversible(why) => format!("{IRREVERSIBLE}{why}"),
            Self::NewHost(why) | Self::NeedsService(why) => why,
        }
    }
}

/// Returns whether the mode `auto` may allow the command of this call: confinement limits it, and
/// undo covers it.
pub(super) fn runs_reversibly(policy: &Policy, facts: &CallFacts) -> bool {
    policy.mode == PermissionMode::Auto
        && sandbox::is_enough(policy, facts)
        && !sandbox::uses_secret(policy, facts)
}

/// Returns whether git cleans up below the working directory, which it does not remove itself. Undo
/// restores the files.
pub(super) fn is_cleanup(
    policy: &Policy,
    shell: &ShellFacts,
    part: &LinePart,
    path: &PathUse,
) -> bool {
    let home = policy.home.as_deref();
    let is_start = |touched: &TouchedPath| {
        let mut paths = touched.given_and_real().into_iter();
        paths.all(|path| {
            policy.roots.first().is_some_and(|start| start == path)
                && Some(path) != home
                && path
                    .parent()
                    .is_some_and(|parent| parent.parent().is_some())
        })
    };
    policy.mode == PermissionMode::Auto
        && part.command_name() == Some("git")
        && shell.analysis.unreadable.is_none()
        && match &path.place {
            PathLocation::Known(places) => places.iter().all(is_start),
            PathLocation::Below(_) => false,
        }
}

/// Returns whether a call of a file tool only changes files whose old content undo stores. The paths
/// were checked before.
pub(super) fn is_reversible_edit(facts: &CallFacts) -> bool {
    !facts.writes.is_empty() && !facts.opaque && facts.fetches.is_empty()
}

/// Returns the reason why undo does not store the old content of a file that a call of a file tool
/// writes, if any.
pub(super) fn unstored_file(policy: &Policy, facts: &CallFacts) -> Option<String> {
    let max = policy.sandbox.max_undo_bytes?;
    let (path, size) = facts.largest_written.as_ref()?;
    (*size > max).then(|| {
        format!(
            "undo does not store {}: it has {size} bytes, and the limit is {max} (setting \
             `undo.fileBytes`)",
            path.display()
        )
    })
}

/// Returns the coverage of a part that no rule covers. `why` is the reason why it is not read-only.
pub(super) fn coverage(
    policy: &Policy,
    facts: &CallFacts,
    part: &LinePart,
    why: String,
) -> PartCoverage {
    match problem(policy, facts, part) {
        Some(problem) => PartCoverage::Uncovered(problem.into_reason()),
        None if runs_reversibly(policy, facts) => PartCoverage::Allowed(DecisionReason::Reversible),
        None => PartCoverage::Uncovered(why),
    }
}

/// Returns why the mode `auto` asks about this part, if it does.
pub(super) fn problem(
    policy: &Policy,
    facts: &CallFacts,
    part: &LinePart,
) -> Option<ReversibleProblem> {
    if policy.mode != PermissionMode::Auto {
        return None;
    }
    if let Some(why) = part.irreversible_reason() {
        return Some(ReversibleProblem::Irreversible(why.to_owned()));
    }
    if let Some(why) = sandbox::excluded_reason(policy, facts) {
        return Some(ReversibleProblem::Irreversible(why));
    }
    let mut effects = part.finding.effects.iter();
    let service = effects.find_map(|effect| match effect {
        Effect::Service(service) => Some(service.reason()),
        _ => None,
    });
    if let Some(why) = service {
        return Some(ReversibleProblem::NeedsService(why.to_owned()));
    }
    let host = new_hosts(policy, facts, part).next()?;
    Some(ReversibleProblem::NewHost(format!(
        "it contacts {host}, which nothing allows yet"
    )))
}

/// Returns the hosts that a part names and that no rule, no setting and no answer of the user in this
/// session allows.
pub(super) fn new_hosts<'a>(
    policy: &Policy,
    facts: &'a CallFacts,
    part: &'a LinePart,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let named = part
        .finding
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Net(Some(host)) => Some(host.as_str()),
            _ => None,
        });
    let mut named = named.peekable();
    // Merging the lists takes longer than most decisions.
    let hosts = named.peek().map(|_| SettingsHosts::from_policy(policy));
    named.filter(move |host| {
        let is_new = |hosts: &SettingsHosts| match hosts.best_verdict(host) {
            HostVerdict::Allowed => false,
            HostVerdict::Denied => true,
            HostVerdict::Ask => !facts.allowed_hosts.iter().any(|allowed| allowed == host),
        };
        !is_loopback(host) && hosts.as_ref().is_some_and(is_new)
    })
}

/// Returns whether the host is the command itself: its network has its own loopback device.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Returns whether the launcher of a part covers it. In the mode `auto`, only a rule for the launcher
/// covers an irreversible command.
pub(super) fn is_launch_covered(
    policy: &Policy,
    shell: &ShellFacts,
    at: usize,
    before: &[(usize, PartCoverage)],
) -> bool {
    let parts = &shell.analysis.parts;
    let part = parts.get(at);
    if policy.mode != PermissionMode::Auto
        || part.is_none_or(|part| part.irreversible_reason().is_none())
    {
        return true;
    }
    let mut outer = part.and_then(|part| part.outer);
    while let Some(index) = outer {
        let covered = before.get(index).map(|(_, covered)| covered);
        if let Some(PartCoverage::Allowed(DecisionReason::Rule { .. })) = covered {
            return true;
        }
        outer = parts.get(index).and_then(|part| part.outer);
    }
    false
}

/// Returns whether the mode `auto` ignores this allow rule: it covers so much that it says nothing
/// about an irreversible command.
pub(super) fn is_suspended(policy: &Policy, rule: &Rule) -> bool {
    if policy.mode != PermissionMode::Auto {
        return false;
    }
    match &rule.content {
        RuleContent::All => {
            rule.class == RuleClass::Commands || ["Agent", "Task"].contains(&rule.text.trim())
        }
        RuleContent::Command { pattern, text } => {
            policy.sandbox.auto_ignores_command_rules
                || (!pattern.is_exact() && is_broad(text.as_str()))
        }
        _ => false,
    }
}

/// Returns whether the fixed words of a rule with a wildcard are only an interpreter, wrapper or
/// launcher.
pub(super) fn is_broad(text: &str) -> bool {
    let fixed = text.split('*').next().unwrap_or_default();
    let fixed = fixed.trim_end_matches(':');
    // `npm r*` fixes no second word.
    let complete =
        fixed.len() == text.len() || fixed.ends_with(' ') || text[fixed.len()..].starts_with(':');
    let mut words: Vec<&str> = fixed.split_ascii_whitespace().collect();
    if !complete {
        words.pop();
    }
    words.retain(|word| !word.starts_with('-') && !word.contains('='));
    let name = words.first().map(|name| {
        let name = name.rsplit('/').next().unwrap_or(name);
        name.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.')
    });
    let (Some(name), rest) = (name, words.get(1..).unwrap_or_default()) else {
        return true;
    };
    match rest {
        [] => starts_other_programs(name),
        [verb] => match name {
            "npm" | "pnpm" | "yarn" | "bun" => {
                ["run", "run-script", "exec", "x", "dlx"].contains(verb)
            }
            "uv" | "poetry" | "pipenv" | "devbox" | "pdm" | "hatch" | "rye" | "mise" => {
                ["run", "exec", "x"].contains(verb)
            }
            _ => *verb == "exec" || (starts_other_programs(name) && starts_other_programs(verb)),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broad_rules_have_no_word_that_says_what_runs() {
        for broad in [
            "*",
            "bash *",
            "bash -c *",
            "python3 *",
            "python3.12 *",
            "python:*",
            "sudo *",
            "env *",
            "xargs *",
            "npx *",
            "npm run *",
            "pnpm run *",
            "yarn run:*",
            "npm exec *",
            "uv run *",
            "bundle exec *",
            "node *",
            "npm r*",
            "ssh *",
            "/usr/bin/env *",
            "python -m *",
            "env bash *",
        ] {
            let broad_npm = broad == "npm r*";
            assert_eq!(is_broad(broad), !broad_npm, "{broad}");
        }
        for scoped in [
            "git *",
            "git push *",
            "npm *",
            "npm test *",
            "npm run build *",
            "cargo *",
            "make *",
            "python x.py *",
            "uv run pytest *",
            "npx eslint *",
            "gh pr *",
        ] {
            assert!(!is_broad(scoped), "{scoped}");
        }
    }
}
