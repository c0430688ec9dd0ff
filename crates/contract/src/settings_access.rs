//! Settings, for a tool that reads and changes them. What they mean is the engine's business.

use serde_json::Value;

/// What a setting can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingRisk {
    /// A matter of taste: how things look, which model is asked.
    Light,
    /// It may loosen what is permitted, run code, or hold a secret; here is why.
    Heavy(String),
    /// No such setting, or one that cannot be had here; here is why.
    Unknown(String),
}

/// A setting that was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// What it was, all files together.
    pub before: Value,
    /// What the file says now.
    pub after: Value,
    /// Which file.
    pub file: String,
}

/// Reads and changes settings, and waits for the disk. A service, as `Arc<dyn Configure>`.
pub trait SettingsAccess: Send + Sync {
    /// What this setting can do, named with dots as in `permissions.allow`.
    fn weigh(&self, setting: &str) -> SettingRisk;

    /// Its value now, all files together; `Null` where no one has set it.
    fn read(&self, setting: &str) -> Result<Value, String>;

    /// Writes it; `Null` takes it out. The error says what is wrong with the value.
    fn write(&self, setting: &str, value: &Value) -> Result<SettingChange, String>;

    /// The same into the user's own file, whatever the project.
    fn write_user(&self, setting: &str, value: &Value) -> Result<SettingChange, String> {
        let _ = value;
        Err(format!(
            "{setting} cannot be written into the user's settings here"
        ))
    }
}
