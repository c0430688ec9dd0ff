//! Access to settings, for a tool that reads and changes them. The engine knows what they mean.

use serde_json::Value;

/// The risk of changing a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingRisk {
    /// A preference, such as the appearance or the model.
    Light,
    /// The setting may loosen permissions, run code, or contain a secret; the text is the reason.
    Heavy(String),
    /// The setting does not exist or is not available here; the text is the reason.
    Unknown(String),
}

/// A changed setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// The value before the change, merged from all files.
    pub before: Value,
    /// The new value in the file.
    pub after: Value,
    /// The path of the file.
    pub file: String,
}

/// Reads and changes settings; its methods block on disk I/O. A service, as `Arc<dyn
/// SettingsAccess>`.
pub trait SettingsAccess: Send + Sync {
    /// Returns the risk of a setting, given as a dotted name such as `permissions.allow`.
    fn risk(&self, setting: &str) -> SettingRisk;

    /// Returns the current value, merged from all files; `Null` if it is not set.
    fn read(&self, setting: &str) -> Result<Value, String>;

    /// Writes a value; `Null` removes the setting. The error says what is wrong with the value.
    fn write(&self, setting: &str, value: &Value) -> Result<SettingChange, String>;

    /// Like [`write`](Self::write), but into the user's own file, regardless of the project.
    fn write_user(&self, setting: &str, value: &Value) -> Result<SettingChange, String> {
        let _ = value;
        Err(format!(
            "{setting} cannot be written into the user's settings here"
        ))
    }
}
