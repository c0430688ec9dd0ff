//! The names of settings: one that is none of them is reported once a file, and left as it is.

use super::{Problem, SettingsFile, nearby};

/// All settings of the convention and our own, by the first part of their names. Those that begin with
/// `spinner` are about looks elsewhere.
const KNOWN: [&str; 74] = [
    "$schema",
    "agent",
    "allowedHttpHookUrls",
    "allowedMcpServers",
    "allowManagedHooksOnly",
    "allowManagedMcpServersOnly",
    "allowManagedPermissionRulesOnly",
    "alwaysThinkingEnabled",
    "apiKeyHelper",
    "askUserQuestionTimeout",
    "attribution",
    "autoCompactEnabled",
    "autoCompactWindow",
    "autoMemoryDirectory",
    "autoMemoryEnabled",
    "autoMode",
    "autoUpdatesChannel",
    "availableModels",
    "awsAuthRefresh",
    "awsCredentialExport",
    "blockedMarketplaces",
    "claudeMd",
    "claudeMdExcludes",
    "cleanupPeriodDays",
    "companyAnnouncements",
    "compat",
    "defaultShell",
    "deniedMcpServers",
    "disableAllHooks",
    "disableAutoMode",
    "disableBundledSkills",
    "disabledMcpjsonServers",
    "disableSkillShellExecution",
    "editorMode",
    "effortLevel",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "env",
    "extraKnownMarketplaces",
    "fallbackModel",
    "feedbackSurveyState",
    "fileSuggestion",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "hooks",
    "httpHookAllowedEnvVars",
    "includeCoAuthoredBy",
    "includeGitInstructions",
    "language",
    "mcpServers",
    "model",
    "modelOverrides",
    "modelPrices",
    "modelSettings",
    "otelHeadersHelper",
    "outputStyle",
    "permissions",
    "plansDirectory",
    "prefersReducedMotion",
    "respectGitignore",
    "sandbox",
    "skillListingBudgetFraction",
    "skillListingMaxDescChars",
    "skillOverrides",
    "skipDangerousModePermissionPrompt",
    "skipWebFetchPreflight",
    "statusLine",
    "strictKnownMarketplaces",
    "subagentStatusLine",
    "teammateMode",
    "theme",
    "tui",
    "useAutoModeDuringPlan",
];

/// What a file names that is no setting, in one sentence.
pub(super) fn unknown(layer: &SettingsFile) -> Option<Problem> {
    let map = layer.document.value.as_object()?;
    let is_known = |key: &str| KNOWN.contains(&key) || key.starts_with("spinner");
    let unknown: Vec<&str> = map
        .keys()
        .map(String::as_str)
        .filter(|key| !is_known(key))
        .collect();
    let first = unknown.first()?;
    let named: Vec<String> = unknown
        .iter()
        .map(|key| match nearby::names(key, KNOWN, 1).first() {
            Some(near) => format!("{key} (did you mean {near}?)"),
            None => (*key).to_owned(),
        })
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
        assert!(KNOWN.is_sorted_by(|a, b| a.to_lowercase() <= b.to_lowercase()));
    }
}
