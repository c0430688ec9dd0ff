//! `/config`: shows and changes single settings.

use std::path::PathBuf;

use haft_contract::{SettingRisk, SettingsAccess};
use haft_engine::settings::SettingsFiles;
use serde_json::{Map, Value};

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking};
use crate::{SessionInput, resolved_settings::known_tools};

pub(super) static CONFIG: BuiltInCommand = BuiltInCommand {
    name: "config",
    hint: "[key | key=value]",
    description: "Show settings, or save one in your settings",
    acts: CommandAction::AnytimeIf(
        |arguments| !arguments.contains('='),
        |input, arguments| Box::pin(config(input, arguments)),
    ),
};

async fn config(input: &SessionInput, arguments: &str) -> CommandAnswer {
    let arguments = arguments.trim();
    let Some((key, value)) = arguments.split_once('=') else {
        let shared = input.clone();
        let key = arguments.to_owned();
        return blocking(move || show(&shared, &key)).await;
    };
    let (key, value) = (key.trim().to_owned(), value.trim());
    // A value that is not JSON is a string.
    let value: Value =
        serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    let (shared, named, given) = (input.clone(), key.clone(), value.clone());
    let file = blocking(move || shared.save_setting(&named, &given)).await?;
    // A setting that a running session can apply takes effect immediately.
    let mut now = Map::new();
    now.insert(key.clone(), value);
    let suffix = match input.apply_settings(&now).await {
        Ok(unused) if unused.is_empty() => "",
        _ => "; it applies from the next session on",
    };
    Ok(format!("{key} is saved in {}{suffix}.", file.display()))
}

fn show(input: &SessionInput, key: &str) -> CommandAnswer {
    if key.is_empty() {
        let merged = input.files().read("")?;
        return serde_json::to_string_pretty(&merged).map_err(|error| error.to_string());
    }
    if let SettingRisk::Unknown(why) = input.files().risk(key) {
        return Err(why);
    }
    let value = input.files().read(key)?;
    Ok(match value.is_null() {
        true => format!("{key} is not set."),
        false => format!("{key} = {value}"),
    })
}

impl SessionInput {
    /// Saves a setting, given as a dotted name, in the user's own file after validating it. Returns
    /// the path of the file. Blocks on disk I/O: do not call it on an async task that others wait
    /// for.
    pub fn save_setting(&self, key: &str, value: &Value) -> Result<PathBuf, String> {
        let files = self.files();
        if let SettingRisk::Unknown(why) = files.risk(key) {
            return Err(why);
        }
        Ok(files.write_user(key, value)?.file.into())
    }

    /// Returns the current value of a setting, given as a dotted name, merged from all files;
    /// `None` if it is not set. Reads files.
    pub fn setting(&self, key: &str) -> Option<Value> {
        let value = self.files().read(key).ok()?;
        (!value.is_null()).then_some(value)
    }

    fn files(&self) -> SettingsFiles {
        SettingsFiles {
            places: self.0.settings.settings.places.clone(),
            flags: self.0.settings.flags.clone(),
            tools: known_tools(),
            check: haft_engine::check_settings,
        }
    }
}
