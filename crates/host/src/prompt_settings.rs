//! The settings that add to the system prompt: the language, and the signatures of commits.

use haft_engine::settings::Settings;
use serde_json::Value;

/// The maximum length of a value.
const MAX_LENGTH: usize = 2_000;

/// Returns a paragraph for the system prompt; `None` if the settings add nothing.
pub(crate) fn paragraph(settings: &Settings) -> Option<String> {
    let text = |pointer: &str| {
        let value = value(settings, pointer)?.as_str()?.trim();
        let is_said = !value.is_empty() && value.len() <= MAX_LENGTH;
        is_said.then(|| value.to_owned())
    };
    let mut lines = Vec::new();
    if let Some(language) = text("/language") {
        lines.push(format!(
            "Answer in this language, unless the user asks for another: {language}."
        ));
    }
    let signs = value(settings, "/includeCoAuthoredBy").and_then(Value::as_bool) != Some(false);
    let signatures = [
        ("/attribution/commit", "a commit message"),
        ("/attribution/pr", "the description of a pull request"),
    ];
    for (pointer, what) in signatures {
        if let Some(text) = text(pointer).filter(|_| signs) {
            lines.push(format!(
                "End {what} that you write with an empty line and exactly this:\n{text}"
            ));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n\n"))
}

/// Returns the value from the file with the highest rank. Files of an untrusted workspace must not
/// influence the model, so they are ignored.
fn value<'a>(settings: &'a Settings, pointer: &str) -> Option<&'a Value> {
    let mut layers = settings.layers.iter();
    layers.find_map(|layer| {
        let counts = settings.trust.runs || !layer.is_in_workspace();
        layer.document.value.pointer(pointer).filter(|_| counts)
    })
}
