//! Which browser a session has.

use std::path::{Path, PathBuf};

use haft_engine::settings::Settings;
use haft_tools::BrowserProgram;
use serde_json::Value;

use crate::Environment;

const SETTING: &str = "browser";
/// `off`: none, whatever is installed.
const VARIABLE: &str = "HAFT_BROWSER";

/// The program by the user's own settings, else the one that is installed. What a project says does not count.
pub fn browser_program(
    settings: &Settings,
    environment: &Environment,
    cwd: &Path,
) -> Option<BrowserProgram> {
    if environment.variable(VARIABLE).as_deref() == Some("off") {
        return None;
    }
    let users = settings.layers.iter();
    let users = users.filter(|layer| !layer.from_workspace && layer.scope.is_users());
    let said: Vec<&Value> = users
        .filter_map(|layer| layer.document.value.get(SETTING))
        .collect();
    let of = |name: &str| said.iter().find_map(|value| value.get(name));
    let path = of("path").and_then(Value::as_str).map(PathBuf::from);
    let folders = environment.variable("PATH").unwrap_or_default();
    let outside = [cwd.to_path_buf()];
    let mut program = BrowserProgram::find(path.as_deref(), folders.as_ref(), &outside)?;
    program.headed = of("headed").and_then(Value::as_bool).unwrap_or(false);
    if let Some(most) = of("memoryMb").and_then(Value::as_u64) {
        program.memory_mb = most.max(256);
    }
    Some(program)
}
