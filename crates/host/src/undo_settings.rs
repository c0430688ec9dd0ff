//! `undo`: how much is stored so that commands can be undone.

use haft_engine::settings::{Settings, SettingsProblem};
use haft_tools::WitnessLimits;
use serde_json::Value;

/// The name of the setting.
const SETTING: &str = "undo";

/// Returns the limits of stored files. Files of a workspace are ignored, because the limits decide how
/// much of the user's disk is used, and what can be undone.
pub(crate) fn limits(settings: &mut Settings) -> WitnessLimits {
    let mut limits = WitnessLimits::default();
    let fields = [
        ("copyBytes", &mut limits.copy_bytes),
        ("fileBytes", &mut limits.file_bytes),
        ("pinBytes", &mut limits.pin_bytes),
    ];
    for (name, limit) in fields {
        let mut users = settings.layers.iter();
        let value = users.find_map(|layer| {
            let is_users = !layer.from_workspace && layer.scope.is_users();
            let value = layer.document.value.get(SETTING)?.get(name)?;
            is_users.then(|| value.clone())
        });
        match value.as_ref().map(|value| (value, value.as_u64())) {
            None => {}
            Some((_, Some(bytes))) => *limit = bytes,
            Some((value, None)) => settings.problems.push(problem(name, value)),
        }
    }
    limits
}

fn problem(name: &str, value: &Value) -> SettingsProblem {
    SettingsProblem {
        place: format!("{SETTING}.{name}"),
        text: format!("{value}: expected a number of bytes; the default applies"),
    }
}
