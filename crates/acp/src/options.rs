//! The options that a user can choose in an editor: the mode, the model, the effort.

use haft_contract::PermissionMode;
use haft_host::SessionInput;
use serde_json::{Value, json};

/// The effort levels. The first one means the model's default.
const EFFORTS: [(&str, &str); 6] = [
    ("auto", "The model's default"),
    ("low", "Low"),
    ("medium", "Medium"),
    ("high", "High"),
    ("xhigh", "Very high"),
    ("max", "The maximum"),
];

/// The program that writes changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorWrites {
    /// haft writes the files.
    Direct,
    /// The editor writes the files and lists them for review.
    Review,
}

impl EditorWrites {
    const ALL: [(Self, &str, &str); 2] = [
        (Self::Direct, "direct", "haft writes files"),
        (
            Self::Review,
            "review",
            "The editor writes files, for review",
        ),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, id, _)| *id == name).map(|(one, ..)| *one)
    }

    fn option(self) -> Value {
        let current = Self::ALL.iter().find(|(one, ..)| *one == self);
        let options = Self::ALL.map(|(_, id, name)| json!({"value": id, "name": name}));
        json!({
            "type": "select", "id": "editor_writes", "name": "File writer", "category": "other",
            "currentValue": current.map(|(_, id, _)| *id), "options": options,
        })
    }
}

/// The selected options that the session does not report itself.
#[derive(Debug, Clone)]
pub(crate) struct SelectedOptions {
    pub(crate) effort: String,
    /// Whether `bypassPermissions` is available.
    pub(crate) may_bypass: bool,
    /// The program that writes files. `None` if the editor cannot write files.
    pub(crate) editor_writes: Option<EditorWrites>,
}

/// Returns the available mode with this name.
pub(crate) fn mode(name: &str, chosen: &SelectedOptions) -> Option<PermissionMode> {
    available(chosen)
        .map(|(mode, ..)| mode)
        .find(|mode| mode.name() == name)
}

fn available(
    chosen: &SelectedOptions,
) -> impl Iterator<Item = (PermissionMode, &'static str, &'static str)> {
    let all = [
        (
            PermissionMode::Default,
            "Ask",
            "Reads inside the project; asks before anything else",
        ),
        (
            PermissionMode::AcceptEdits,
            "Accept edits",
            "Edits inside the project without asking",
        ),
        (
            PermissionMode::Plan,
            "Plan",
            "Reads only, until a plan is approved",
        ),
        (
            PermissionMode::Auto,
            "Auto",
            "Commands and edits that undo can restore; asks before anything else",
        ),
        (
            PermissionMode::DontAsk,
            "Do not ask",
            "Denies calls that need your permission",
        ),
        (
            PermissionMode::BypassPermissions,
            "Bypass permissions",
            "Everything that is not denied",
        ),
    ];
    let may_bypass = chosen.may_bypass;
    all.into_iter()
        .filter(move |(mode, ..)| may_bypass || *mode != PermissionMode::BypassPermissions)
}

/// Returns the available modes and the current one.
pub(crate) fn modes(input: &SessionInput, chosen: &SelectedOptions) -> Value {
    let list: Vec<Value> = available(chosen)
        .map(|(mode, name, description)| {
            json!({"id": mode.name(), "name": name, "description": description})
        })
        .collect();
    json!({"currentModeId": input.mode().name(), "availableModes": list})
}

/// Returns all options with their current values.
pub(crate) fn config_options(input: &SessionInput, chosen: &SelectedOptions) -> Value {
    let modes: Vec<Value> = available(chosen)
        .map(|(mode, name, _)| json!({"value": mode.name(), "name": name}))
        .collect();
    let current = input.model();
    let mut models: Vec<Value> = input
        .models()
        .into_iter()
        .map(|model| json!({"value": model.value, "name": model.display_name, "description": model.description}))
        .collect();
    if !models
        .iter()
        .any(|model| model["value"] == current.as_str())
    {
        models.insert(0, json!({"value": current, "name": current}));
    }
    let efforts = EFFORTS.map(|(value, name)| json!({"value": value, "name": name}));
    let mut all = json!([
        {"type": "select", "id": "mode", "name": "Mode", "category": "mode",
         "currentValue": input.mode().name(), "options": modes},
        {"type": "select", "id": "model", "name": "Model", "category": "model",
         "currentValue": current, "options": models},
        {"type": "select", "id": "effort", "name": "Effort", "category": "thought_level",
         "currentValue": chosen.effort, "options": efforts},
    ]);
    if let (Some(all), Some(writes)) = (all.as_array_mut(), chosen.editor_writes) {
        all.push(writes.option());
    }
    all
}

/// Parses an effort level. The inner `None` means the model's default.
pub(crate) fn effort(value: &str) -> Option<Option<&str>> {
    let known = EFFORTS.iter().any(|(name, _)| *name == value);
    known.then(|| Some(value).filter(|value| *value != "auto"))
}
