//! The narrowest rules that would let a call through from now on.

use std::sync::Arc;

use haft_contract::{ContextPatch, PermissionMode, RuleList};
use haft_shell::{Cover, Part};
use serde_json::{Value, json};

use super::{Bases, Behavior, Covered, Facts, List, Policy, Scope, Source, decide, uncovered};

/// More rules than this out of one call are a sign that it should be looked at each time.
const MOST: usize = 5;

/// Programs whose arguments are programs, or other commands: no prefix of theirs is narrow.
const NEVER: [&str; 36] = [
    "bash",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "ruby",
    "perl",
    "php",
    "lua",
    "Rscript",
    "osascript",
    "awk",
    "gawk",
    "sed",
    "env",
    "sudo",
    "doas",
    "su",
    "xargs",
    "watch",
    "setsid",
    "ionice",
    "flock",
    "chroot",
    "exec",
    "eval",
    "ssh",
    "find",
    "parallel",
    "source",
];

/// How many words say what a command does, where the first alone does not.
const DEPTH: [(&str, usize); 30] = [
    ("apt", 2),
    ("apt-get", 2),
    ("brew", 2),
    ("bun", 2),
    ("bundle", 2),
    ("cargo", 2),
    ("composer", 2),
    ("conda", 2),
    ("docker", 2),
    ("docker compose", 3),
    ("dotnet", 2),
    ("gem", 2),
    ("gh", 3),
    ("git", 2),
    ("go", 2),
    ("gradle", 2),
    ("helm", 2),
    ("just", 2),
    ("kubectl", 2),
    ("make", 2),
    ("mvn", 2),
    ("npm", 2),
    ("npm run", 3),
    ("pip", 2),
    ("pnpm", 2),
    ("pnpm run", 3),
    ("poetry", 2),
    ("terraform", 2),
    ("uv", 2),
    ("yarn", 2),
];

/// Rules that let this very call through, tried out; none if no rule does.
pub fn suggest(policy: &Policy, facts: &Facts, bases: &Bases) -> Vec<String> {
    let mut texts = if facts.shell.is_some() {
        commands(policy, facts)
    } else {
        other(facts)
    };
    texts.sort_unstable();
    texts.dedup();
    if texts.is_empty() || texts.len() > MOST {
        return Vec::new();
    }
    let mut tried = policy.clone();
    let rules = Arc::make_mut(&mut tried.rules);
    for text in &texts {
        let source = Source::of(Scope::Session);
        if rules.add(List::Allow, text, source, bases).is_err() {
            return Vec::new();
        }
    }
    if decide(&tried, facts).behavior == Behavior::Allow {
        texts
    } else {
        Vec::new()
    }
}

fn commands(policy: &Policy, facts: &Facts) -> Vec<String> {
    let Some(shell) = &facts.shell else {
        return Vec::new();
    };
    uncovered(policy, facts)
        .into_iter()
        .filter(|(_, covered)| matches!(covered, Covered::Nothing(_)))
        .filter_map(|(at, _)| rule_for(&shell.analysis.parts[at]))
        .collect()
}

/// `Bash(npm run build *)`: the words before the first operand.
fn rule_for(part: &Part) -> Option<String> {
    let name = part.called()?;
    if NEVER.contains(&part.base_name()?) || part.finding.cover == Cover::Exact {
        return None;
    }
    let words: Vec<&str> = part.argv.iter().map_while(|arg| arg.text()).collect();
    let two = words.get(..2).map(|two| two.join(" "));
    let depth = |key: &str| {
        DEPTH
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, depth)| *depth)
    };
    let depth = two
        .as_deref()
        .and_then(depth)
        .or_else(|| depth(name))
        .unwrap_or(1);
    let verb = |word: &&&str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(&byte))
    };
    let verbs = words
        .iter()
        .skip(1)
        .take(depth - 1)
        .take_while(verb)
        .count();
    // Behind an option the verb is not where a rule would look for it.
    if depth > 1 && verbs == 0 && words.len() > 1 {
        return None;
    }
    let prefix = words.get(..=verbs)?.join(" ");
    let plain = |text: &str| !text.contains(['(', ')', '*', '\\', '"', '\'', '$']);
    if !plain(&prefix) {
        return None;
    }
    Some(if part.argv.len() == verbs + 1 {
        format!("Bash({prefix})")
    } else {
        format!("Bash({prefix} *)")
    })
}

fn other(facts: &Facts) -> Vec<String> {
    if let Some(target) = facts.fetches.first() {
        return match target.odd {
            Some(_) => Vec::new(),
            None => vec![format!("WebFetch(domain:{})", target.host)],
        };
    }
    if facts.tool == "Skill" {
        let name = facts.subject.as_deref().unwrap_or_default();
        let name = name.split(' ').next().unwrap_or_default();
        return vec![format!("Skill({name})"), format!("Skill({name} *)")];
    }
    if facts.tool.starts_with("mcp__") || facts.tool == "WebSearch" {
        return vec![facts.tool.clone()];
    }
    Vec::new()
}

/// Rules as updates of permissions, which whoever is asked can hand back; none where there are none.
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

/// What an update of permissions, as hooks and programs write it, changes in the session; nothing where
/// it makes no sense, or only a person may want it.
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
                // Only the user switches this on.
                Ok(PermissionMode::BypassPermissions) | Err(_) => Vec::new(),
                Ok(mode) => vec![ContextPatch::SetMode { mode }],
            }
        }
        _ => Vec::new(),
    }
}

/// Keeps allow rules that a person agreed to, beyond the session.
pub trait KeepRules: Send + Sync {
    /// Keeps them. What goes wrong is the keeper's to report: the session has them already.
    fn keep(&self, rules: &[String]);
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
