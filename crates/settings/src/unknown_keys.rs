//! Unknown settings: they are reported once per file, and otherwise ignored.

use std::collections::BTreeSet;

use super::{SettingsFile, SettingsProblem, reference, suggestions};

/// Accepted settings that the reference does not list, by the first part of their names. Most are
/// settings of Claude Code without effect here. Names that begin with `spinner` are also accepted.
const ELSEWHERE: [&str; 22] = [
    "$schema",
    "allowManagedMcpServersOnly",
    "autoUpdatesChannel",
    "awsAuthRefresh",
    "awsCredentialExport",
    "blockedMarketplaces",
    "claudeMd",
    "companyAnnouncements",
    "compat",
    "disableAutoMode",
    "feedbackSurveyState",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "mcpServers",
    "modelPrices",
    "modelSettings",
    "otelHeadersHelper",
    "skipDangerousModePermissionPrompt",
    "strictKnownMarketplaces",
    "subagentStatusLine",
    "teammateMode",
    "useAutoModeDuringPlan",
];

/// Returns one problem that names all unknown settings of a file.
pub(super) fn unknown(layer: &SettingsFile) -> Option<SettingsProblem> {
    let map = layer.document.value.as_object()?;
    let known: BTreeSet<&str> = reference::keys()
        .map(|key| key.name.split('.').next().unwrap_or_default())
        .chain(ELSEWHERE)
        .collect();
    let is_known = |key: &str| known.contains(key) || key.starts_with("spinner");
    let unknown: Vec<&str> = map
        .keys()
        .map(String::as_str)
        .filter(|key| !is_known(key))
        .collect();
    let first = unknown.first()?;
    let named: Vec<String> = unknown
        .iter()
        .map(
            |key| match suggestions::similar_names(key, known.iter().copied(), 1).first() {
                Some(near) => format!("{key} (did you mean {near}?)"),
                None => (*key).to_owned(),
            },
        )
        .collect();
    let what = match named.len() {
        1 => format!("no setting is called {}; it changes nothing", named[0]),
        _ => format!(
            "no settings are called {}; they change nothing",
            named.join(", ")
        ),
    };
    let pointer = format!("/{}", first.replace('~', "~0").replace('/', "~1"));
    Some(layer.problem(&pointer, &what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        assert!(ELSEWHERE.is_sorted_by(|a, b| a.to_lowercase() <= b.to_lowercase()));
    }
}
