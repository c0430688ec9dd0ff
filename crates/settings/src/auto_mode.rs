//! The settings of the permission mode `auto`.

use serde_json::Value;

use super::{Settings, SettingsFile, SettingsProblem};

/// Keys that other programs need because a model decides there. They have no effect.
const WITHOUT_EFFECT: [&str; 4] = [
    "/autoMode/environment",
    "/autoMode/allow",
    "/autoMode/soft_deny",
    "/useAutoModeDuringPlan",
];

const HARD_DENY: &str = "/autoMode/hard_deny";

impl Settings {
    /// Returns whether the mode `auto` ignores allow rules for commands. Any file may require it.
    pub fn auto_ignores_command_rules(&self) -> bool {
        self.layers
            .iter()
            .any(|layer| layer.document.value["autoMode"]["classifyAllShell"] == true)
    }

    /// Returns whether any file disables the mode `auto`.
    pub fn auto_is_disabled(&self) -> bool {
        self.layers.iter().any(|layer| {
            let value = &layer.document.value;
            let disables = |switch: &Value| *switch == "disable" || *switch == true;
            disables(&value["disableAutoMode"])
                || disables(&value["permissions"]["disableAutoMode"])
        })
    }

    /// Returns the keys in the files that have no effect on the mode `auto`, by their names.
    pub fn auto_keys_without_effect(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for pointer in WITHOUT_EFFECT {
            let mut layers = self.layers.iter();
            if layers.any(|layer| layer.document.value.pointer(pointer).is_some()) {
                found.push(pointer.trim_start_matches('/').replace('/', "."));
            }
        }
        found
    }

    /// Returns the entries of `autoMode.hard_deny` that are permission rules: the file, the place in
    /// it, and the text.
    pub fn auto_deny_rules(&self) -> Vec<(&SettingsFile, String, &str)> {
        self.hard_deny()
            .filter(|(_, _, text)| is_rule(text))
            .collect()
    }

    /// Returns the entries of `autoMode.hard_deny` that are sentences. Nothing here can enforce them.
    pub fn auto_sentences(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (_, _, text) in self.hard_deny().filter(|(_, _, text)| !is_rule(text)) {
            if !found.iter().any(|one| one == text) {
                found.push(text.to_owned());
            }
        }
        found
    }

    fn hard_deny(&self) -> impl Iterator<Item = (&SettingsFile, String, &str)> {
        self.layers.iter().flat_map(|layer| {
            let entries = layer.document.value.pointer(HARD_DENY);
            let entries = entries.and_then(Value::as_array).into_iter().flatten();
            entries.enumerate().filter_map(move |(at, entry)| {
                let text = entry.as_str()?.trim();
                (!text.is_empty()).then(|| (layer, format!("{HARD_DENY}/{at}"), text))
            })
        })
    }

    /// Records values of `autoMode.hard_deny` that are not texts.
    pub fn check_auto_mode(&mut self) {
        let mut problems: Vec<SettingsProblem> = Vec::new();
        for layer in &self.layers {
            let Some(value) = layer.document.value.pointer(HARD_DENY) else {
                continue;
            };
            let texts = value
                .as_array()
                .is_some_and(|entries| entries.iter().all(Value::is_string));
            if !texts {
                problems.push(layer.problem(HARD_DENY, "a list of texts is expected"));
            }
        }
        self.problems.extend(problems);
    }
}

/// Returns whether a text is a permission rule: a tool's name, alone or with a text in parentheses.
fn is_rule(text: &str) -> bool {
    let (name, rest) = text.split_at(text.find('(').unwrap_or(text.len()));
    let is_name =
        name.starts_with(|first: char| first.is_ascii_uppercase()) || name.starts_with("mcp__");
    let plain = |next: char| next.is_ascii_alphanumeric() || "_-*".contains(next);
    is_name && name.chars().all(plain) && (rest.is_empty() || rest.ends_with(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_sentences_are_told_apart() {
        for rule in [
            "Bash(git push *)",
            "Bash",
            "mcp__calc__add",
            "Edit(//etc/**)",
        ] {
            assert!(is_rule(rule), "{rule}");
        }
        for sentence in [
            "never touch billing",
            "Never push (or publish)",
            "billing",
            "git push",
        ] {
            assert!(!is_rule(sentence), "{sentence}");
        }
    }
}
