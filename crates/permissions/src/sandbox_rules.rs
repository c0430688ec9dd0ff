//! Entries of the sandbox settings that permit commands: `sandbox.offlineCommands` and
//! `sandbox.network.readDomains`. They are read as rules, so that they have a source, and are saved,
//! limited and removed like others.

use haft_contract::rule_offer::{OFFLINE_COMMAND, READ_DOMAIN, rule_content};
use haft_settings::{PatternBases, RuleSource, Settings, SettingsProblem, sandbox::pointer};

use super::rules::{List, RuleClass, RuleSet};

/// The settings, and the name of the rules that their entries are.
const LISTS: [(&str, &str); 2] = [
    ("offlineCommands", OFFLINE_COMMAND),
    ("network.readDomains", READ_DOMAIN),
];

/// Adds the rules of all files. Returns the problems in them, and the settings of which entries wait
/// for trust.
pub(super) fn add_rules(
    settings: &Settings,
    rules: &mut RuleSet,
    bases: &PatternBases,
) -> (Vec<SettingsProblem>, Vec<String>) {
    let (mut problems, mut waiting) = (Vec::new(), Vec::new());
    for layer in &settings.layers {
        for (key, name) in LISTS {
            let pointer = pointer(key);
            let Some(value) = layer.document.value.pointer(&pointer) else {
                continue;
            };
            let shown = format!("sandbox.{key}");
            let Some(entries) = value.as_array() else {
                let what = format!("{shown}: a list is expected; it is left out");
                problems.push(layer.problem(&pointer, &what));
                continue;
            };
            for (at, entry) in entries.iter().enumerate() {
                let here = format!("{pointer}/{at}");
                let text = entry.as_str().map(str::trim).unwrap_or_default();
                let rule = format!("{name}({})", entry_text(text));
                let waits = layer.from_workspace && !settings.trust.allows;
                if waits && !layer.agreed.contains(&rule) {
                    if !waiting.contains(&shown) {
                        waiting.push(shown.clone());
                    }
                    continue;
                }
                let source = RuleSource {
                    scope: layer.scope,
                    file: layer.file.clone(),
                    line: layer.document.line(&here),
                };
                let added = match text.is_empty() {
                    true => Err("a text is expected".to_owned()),
                    false => rules
                        .add(List::Allow, &rule, source, bases)
                        .map_err(|problem| problem.problem),
                };
                if let Err(problem) = added {
                    let what = format!("{shown}: {entry} is left out: {problem}");
                    problems.push(layer.problem(&here, &what));
                }
            }
        }
    }
    (problems, waiting)
}

/// Returns the command of an entry: it may be written with the tool's name or without.
fn entry_text(text: &str) -> &str {
    rule_content(text, RuleClass::Commands.word()).unwrap_or(text)
}
