//! Suggests the narrowest rules that would allow a call from now on. For commands that is the exact
//! command: a command that needs permission has no prefix that is known to be safe with any further
//! arguments.

use std::{path::Path, sync::Arc};

use haft_contract::{
    ContextPatch, PermissionMode, RuleDestination, RuleList, RuleMatch, RuleScope,
};
use haft_shell::{LinePart, RuleCoverage, is_safe_variable};
use serde_json::{Value, json};

use super::{
    CallFacts, DecisionBehavior, List, PartCoverage, PatternBases, Policy, RuleSource,
    SettingsScope, decide,
    protected_files::is_systems_own,
    rules::{RuleClass, in_url},
    shell_facts::ShellFacts,
    uncovered_parts,
};

/// The maximum number of suggested rules. A call that needs more should be checked each time.
const MAX_COUNT: usize = 5;

/// The parameter of tools that run a command line unchanged.
const LINE: &str = "command";

/// The maximum length of a suggested rule, in characters. Users do not read longer ones before they
/// agree.
const MAX_RULE: usize = 200;

/// Programs whose arguments are programs or other commands. The rule does not contain what they
/// run, so even identical text may run something else. Version numbers at the end are ignored.
const NEVER: [&str; 66] = [
    "ash",
    "awk",
    "bash",
    "bun",
    "bunx",
    "busybox",
    "chroot",
    "csh",
    "dash",
    "deno",
    "direnv",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "find",
    "fish",
    "flock",
    "gawk",
    "ghci",
    "groovy",
    "guile",
    "ionice",
    "irb",
    "jshell",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "mawk",
    "mksh",
    "node",
    "nodejs",
    "nsenter",
    "npx",
    "nu",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pipx",
    "pnpx",
    "psql",
    "pwsh",
    "pypy",
    "python",
    "Rscript",
    "ruby",
    "sed",
    "setsid",
    "sh",
    "source",
    "sqlite",
    "ssh",
    "su",
    "sudo",
    "systemd-run",
    "tclsh",
    "tcsh",
    "unshare",
    "uvx",
    "watch",
    "xargs",
    "yash",
    "zsh",
];

/// Returns rules that allow exactly this call, after testing that they do; none if no rule does.
pub fn suggest(policy: &Policy, facts: &CallFacts, bases: &PatternBases) -> Vec<String> {
    let offers = match (&facts.shell, facts.rules) {
        // The parameter names the program. The code that it runs is in another parameter and
        // differs each time, so the rule applies to every use of the program and says so.
        (Some(shell), RuleMatch::Command(parameter)) if parameter != LINE => {
            vec![exact_rule(&facts.tool, &shell.line).into_iter().collect()]
        }
        (Some(shell), _) => commands(policy, facts, shell),
        (None, _) => vec![other(facts)],
    };
    let mut offers = offers.into_iter();
    offers
        .find(|rules| would_allow(policy, facts, bases, SettingsScope::Session, rules))
        .unwrap_or_default()
}

/// Returns the user rule that would allow a call with this path, after testing that it does.
/// Returns `None` for kernel files, devices and services, for which no rule should be saved.
pub fn path_rule(
    policy: &Policy,
    facts: &CallFacts,
    bases: &PatternBases,
    path: &Path,
) -> Option<String> {
    let text = path.to_str()?;
    // A rule with pattern characters would match more than this path.
    let is_plain = !text.contains(|next: char| next.is_control() || r"*?[\()".contains(next));
    if !is_plain || is_systems_own(path) {
        return None;
    }
    [RuleClass::Reads, RuleClass::Edits]
        .into_iter()
        .find_map(|class| {
            let rule = [format!("{}(/{text})", class.word())];
            let works = would_allow(policy, facts, bases, SettingsScope::User, &rule);
            works.then(|| rule.concat())
        })
}

fn would_allow(
    policy: &Policy,
    facts: &CallFacts,
    bases: &PatternBases,
    scope: SettingsScope,
    texts: &[String],
) -> bool {
    let short = |text: &String| text.chars().count() <= MAX_RULE;
    if texts.is_empty() || texts.len() > MAX_COUNT || !texts.iter().all(short) {
        return false;
    }
    let mut tried = policy.clone();
    let rules = Arc::make_mut(&mut tried.rules);
    let added = texts.iter().all(|text| {
        let source = RuleSource::from_scope(scope);
        rules.add(List::Allow, text, source, bases).is_ok()
    });
    added && decide(&tried, facts).behavior == DecisionBehavior::Allow
}

/// Returns the possible suggestions for a command line, the best first: a rule for each command
/// that needs one, or a rule for the whole line, if a part alone could mean something else.
fn commands(policy: &Policy, facts: &CallFacts, shell: &ShellFacts) -> Vec<Vec<String>> {
    let parts: Vec<&LinePart> = uncovered_parts(policy, facts)
        .into_iter()
        .filter(|(_, covered)| matches!(covered, PartCoverage::Uncovered(_)))
        .map(|(at, _)| &shell.analysis.parts[at])
        .collect();
    let is_readable = shell.analysis.unreadable.is_none();
    if parts.is_empty() || !is_readable || !parts.iter().all(|part| may_be_kept(part)) {
        return Vec::new();
    }
    let mut offers = Vec::new();
    // After a `cd`, the same words apply to other files; with other input, they do other things.
    let joins = shell.line.replace("||", "").contains(['<', '>', '|']);
    if !joins && !parts.iter().any(|part| part.after_cd) {
        let mut rules: Vec<String> = parts
            .iter()
            .filter_map(|part| exact_rule(RuleClass::Commands.word(), &part.text))
            .collect();
        rules.sort_unstable();
        rules.dedup();
        offers.push(rules);
    }
    // With substitutions or globs, the line may expand to another command the next time.
    if parts.len() <= MAX_COUNT && !shell.line.contains(['$', '`', '*', '?', '[']) {
        offers.push(
            exact_rule(RuleClass::Commands.word(), shell.line.trim())
                .into_iter()
                .collect(),
        );
    }
    offers
}

/// Returns whether the same text means the same command the next time.
fn may_be_kept(part: &LinePart) -> bool {
    let Some(name) = part.base_name() else {
        // A redirection: only a rule for the whole line can match it.
        return part.argv.is_empty() && part.assignments.is_empty();
    };
    let name = match name {
        "." => "source",
        name => name.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.'),
    };
    let second = part.argv.get(1).and_then(|word| word.text());
    let starts_another = second.is_some_and(|second| match name {
        "uv" | "poetry" | "pipenv" | "devbox" | "pdm" | "hatch" => second == "run",
        "npm" | "pnpm" | "yarn" => ["exec", "x", "dlx"].contains(&second),
        _ => second == "exec",
    });
    !NEVER.contains(&name)
        && !starts_another
        && part.finding.coverage != RuleCoverage::Exact
        && part.argv.iter().all(|word| word.text().is_some())
        && part
            .assignments
            .iter()
            .all(|one| one.plain && is_safe_variable(&one.name))
}

/// Returns a rule like `Bash(npm run build)` that matches only this text; `None` if a rule cannot
/// contain the text.
fn exact_rule(tool: &str, text: &str) -> Option<String> {
    if text.is_empty() || text.contains(char::is_control) {
        return None;
    }
    let mut content = String::with_capacity(text.len());
    for next in text.chars() {
        match next {
            '(' | ')' | '\\' => content.extend(['\\', next]),
            // The content is unescaped twice: as text in parentheses, and as a pattern.
            '*' => content.push_str("\\\\*"),
            plain => content.push(plain),
        }
    }
    Some(format!("{tool}({content})"))
}

fn other(facts: &CallFacts) -> Vec<String> {
    if let Some(target) = facts.fetches.first() {
        return match target.odd {
            Some(_) => Vec::new(),
            None => vec![format!("{}(domain:{})", facts.tool, in_url(&target.host))],
        };
    }
    if let Some(subject) = &facts.subject {
        return exact_rule(&facts.tool, subject).into_iter().collect();
    }
    if facts.from_server || facts.rules == RuleMatch::NameOnly {
        return vec![facts.tool.clone()];
    }
    Vec::new()
}

/// Returns rules as permission updates, which the caller can send back with its answer; empty if
/// `rules` is empty.
pub fn updates(rules: &[String]) -> Value {
    if rules.is_empty() {
        return json!([]);
    }
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| match rule.split_once('(') {
            Some((tool, content)) => json!({
                "toolName": tool,
                "ruleContent": content.strip_suffix(')').unwrap_or(content),
            }),
            None => json!({"toolName": rule}),
        })
        .collect();
    json!([{
        "type": "addRules",
        "rules": rules,
        "behavior": "allow",
        "destination": "localSettings",
    }])
}

/// Returns the session changes for a permission update, as hooks and programs write it. Empty if
/// the update is invalid or only the user may make it.
pub fn patches(update: &Value) -> Vec<ContextPatch> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    match update.get("type").and_then(Value::as_str) {
        Some("addRules") => {
            let list = match update.get("behavior").and_then(Value::as_str) {
                Some("allow") => RuleList::Allow,
                Some("ask") => RuleList::Ask,
                Some("deny") => RuleList::Deny,
                _ => return Vec::new(),
            };
            let rules = update.get("rules").and_then(Value::as_array);
            rules
                .into_iter()
                .flatten()
                .filter_map(|rule| {
                    let tool = text(rule, "toolName")?;
                    let rule = match text(rule, "ruleContent") {
                        Some(content) => format!("{tool}({content})"),
                        None => tool,
                    };
                    Some(ContextPatch::AddRule { list, rule })
                })
                .collect()
        }
        Some("addDirectories") => {
            let directories = update.get("directories").and_then(Value::as_array);
            let paths = directories.into_iter().flatten().filter_map(Value::as_str);
            paths
                .map(|path| ContextPatch::AddDirectory { path: path.into() })
                .collect()
        }
        Some("setMode") => {
            let mode = update.get("mode").cloned().unwrap_or_default();
            match serde_json::from_value(mode) {
                // Only the user may enable this mode.
                Ok(PermissionMode::BypassPermissions) | Err(_) => Vec::new(),
                Ok(mode) => vec![ContextPatch::SetMode { mode }],
            }
        }
        _ => Vec::new(),
    }
}

/// Saves allow rules that the user agreed to, beyond the session.
pub trait RuleStore: Send + Sync {
    /// Saves rules in `scope`, which is never [`RuleScope::Session`]. The implementation must
    /// report errors itself: the rules already apply in the session.
    fn save(&self, rules: &[String], scope: RuleScope);

    /// Returns the places in which rules can be saved, the usual one first.
    fn destinations(&self) -> Vec<RuleDestination> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_handed_back_mean_what_was_offered() {
        let rules = ["Bash(npm run *)", "Bash(echo (a))", "mcp__calc__add"].map(str::to_owned);
        let updates = updates(&rules);
        let meant: Vec<ContextPatch> = patches(&updates[0]);
        let expected = rules.map(|rule| ContextPatch::AddRule {
            list: RuleList::Allow,
            rule,
        });
        assert_eq!(meant, expected);
        assert_eq!(super::updates(&[]), json!([]));
    }

    #[test]
    fn what_only_a_person_may_want_is_no_patch() {
        let none = [
            json!({"type": "setMode", "mode": "bypassPermissions"}),
            json!({"type": "setMode", "mode": "no such"}),
            json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "perhaps"}),
            json!({"type": "unknown"}),
            json!(null),
        ];
        for update in none {
            assert_eq!(patches(&update), [], "{update}");
        }
        let mode = json!({"type": "setMode", "mode": "acceptEdits"});
        assert_eq!(
            patches(&mode),
            [ContextPatch::SetMode {
                mode: PermissionMode::AcceptEdits
            }]
        );
    }
}
