//! Sandbox settings, and which of them loosen the sandbox.

use serde_json::Value;

use super::SettingsFile;

/// Lists whose entries loosen the sandbox.
pub const ALLOWING: [&str; 6] = [
    "excludedCommands",
    "filesystem.allowRead",
    "filesystem.allowWrite",
    "network.allowedDomains",
    "network.readDomains",
    "offlineCommands",
];

/// Flags that loosen the sandbox, with the loosening value.
pub const LOOSENING: [(&str, bool); 4] = [
    ("allowUnsandboxedCommands", true),
    ("autoAllowBashIfSandboxed", true),
    ("enabled", false),
    ("failIfUnavailable", false),
];

/// Returns the loosening sandbox settings of a file, for the user to review.
pub(super) fn loosening(layer: &SettingsFile) -> Vec<String> {
    let mut things = Vec::new();
    for key in ALLOWING {
        let entries = value(layer, key).and_then(Value::as_array);
        let entries = entries.into_iter().flatten().filter_map(Value::as_str);
        things.extend(entries.map(|entry| format!("sandbox.{key} {entry}")));
    }
    for (key, loose) in LOOSENING {
        if value(layer, key) == Some(&Value::Bool(loose)) {
            things.push(format!("sandbox.{key} {loose}"));
        }
    }
    if value(layer, "enabled") == Some(&Value::Bool(true)) {
        things.push("sandbox.enabled true, which lets confined commands run unasked".to_owned());
    }
    things
}

/// Converts a key to a JSON pointer: `filesystem.denyRead` → `/sandbox/filesystem/denyRead`
pub fn pointer(key: &str) -> String {
    let mut pointer = "/sandbox".to_owned();
    for part in key.split('.').filter(|part| !part.is_empty()) {
        pointer.push('/');
        pointer.push_str(part);
    }
    pointer
}

/// Returns the value of a sandbox key in a file.
pub fn value<'a>(layer: &'a SettingsFile, key: &str) -> Option<&'a Value> {
    layer.document.value.pointer(&pointer(key))
}
