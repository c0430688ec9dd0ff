//! The lists of settings files that contain rules: those of `permissions`, and the settings whose
//! entries a question offers as rules with a special name.

use std::collections::BTreeSet;

use haft_contract::rule_offer::{COMMAND_WRAPPER, OFFLINE_COMMAND, READ_DOMAIN, rule_content};
use serde_json::Value;

use super::{SettingsDocument, document};

/// Rules with a special name, the setting that contains them, and the name that an entry of it
/// has in front; empty for none.
const NAMED: [(&str, &[&str], &str); 2] = [
    (OFFLINE_COMMAND, &["sandbox", "offlineCommands"], "Bash"),
    (READ_DOMAIN, &["sandbox", "network", "readDomains"], ""),
];

/// The setting that declares wrappers. Files of the workspace have no say in it.
const WRAPPERS: &[&str] = &["permissions", "wrappers"];

/// Returns the text of a settings file with rules added to a list; everything else is preserved.
pub(super) fn with_rules(text: &str, list: &str, rules: &[String]) -> Result<String, String> {
    let mut text = text.to_owned();
    let mut add = |names: &[&str], entries: Vec<String>| -> Result<(), String> {
        if !entries.is_empty() {
            text = document::with_entries(&text, names, &entries)?;
        }
        Ok(())
    };
    for (name, setting, entry_name) in NAMED {
        let contents = rules.iter().filter_map(|rule| rule_content(rule, name));
        let entries = contents.map(|content| match entry_name {
            "" => content.to_owned(),
            entry_name => format!("{entry_name}({content})"),
        });
        add(setting, entries.collect())?;
    }
    let wrappers = rules.iter().filter_map(|rule| wrapper(rule));
    add(WRAPPERS, wrappers.map(str::to_owned).collect())?;
    let plain = rules.iter().filter(|rule| !has_own_setting(rule));
    add(&["permissions", list], plain.cloned().collect())?;
    Ok(text)
}

/// Returns the wrapper that a rule declares, if it declares one.
pub(super) fn wrapper(rule: &str) -> Option<&str> {
    rule_content(rule, COMMAND_WRAPPER)
}

fn has_own_setting(rule: &str) -> bool {
    let mut names = NAMED
        .iter()
        .map(|(name, ..)| *name)
        .chain([COMMAND_WRAPPER]);
    names.any(|name| rule_content(rule, name).is_some())
}

/// Returns the allow rules in a settings file, and the entries that are rules with a special name.
pub(super) fn allow_rules(text: &str) -> BTreeSet<String> {
    let document = SettingsDocument::parse(text).unwrap_or_default();
    let entries = |names: &[&str]| -> Vec<String> {
        let list = document.value.pointer(&format!("/{}", names.join("/")));
        let entries = list.and_then(Value::as_array).into_iter().flatten();
        let texts = entries.filter_map(Value::as_str);
        texts.map(|text| text.trim().to_owned()).collect()
    };
    let mut rules: BTreeSet<String> = entries(&["permissions", "allow"]).into_iter().collect();
    for (name, setting, entry_name) in NAMED {
        rules.extend(entries(setting).into_iter().map(|entry| {
            let content = rule_content(&entry, entry_name).filter(|_| !entry_name.is_empty());
            format!("{name}({})", content.unwrap_or(&entry))
        }));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_written_to_its_own_setting_and_found_there() {
        let rules = [
            "OfflineCommand(go test *)",
            "Bash(git add *)",
            "ReadDomain(github.com)",
            "CommandWrapper(rtk)",
        ]
        .map(str::to_owned);
        let text = with_rules("{\n  // mine\n  \"env\": {}\n}\n", "allow", &rules).unwrap();
        let written = SettingsDocument::parse(&text).unwrap().value;
        assert_eq!(
            written,
            serde_json::json!({
                "env": {},
                "permissions": {"allow": ["Bash(git add *)"], "wrappers": ["rtk"]},
                "sandbox": {
                    "offlineCommands": ["Bash(go test *)"],
                    "network": {"readDomains": ["github.com"]},
                },
            })
        );
        assert!(text.contains("// mine"));
        assert_eq!(with_rules(&text, "allow", &rules).unwrap(), text);
        let found = allow_rules(&text);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "Bash(git add *)",
                "OfflineCommand(go test *)",
                "ReadDomain(github.com)"
            ]
        );
    }
}
