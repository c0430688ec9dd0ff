//! Variables of the settings whose values look like secrets.

use std::{collections::BTreeMap, sync::Arc};

use haft_contract::secrets;

use super::super::{CallFacts, Policy};

/// Returns the secret variables that commands get and that the line of a call does not name.
pub(super) fn masked(policy: &Policy, facts: &CallFacts) -> Arc<[String]> {
    let named = |name: &str| names(facts).any(|named| named == name);
    present(policy)
        .filter(|name| !named(name))
        .cloned()
        .collect()
}

/// Returns whether the line of a call names a secret variable that its command gets.
pub(crate) fn uses_secret(policy: &Policy, facts: &CallFacts) -> bool {
    present(policy).any(|name| names(facts).any(|named| named == name))
}

/// Returns the environment with the values of `masked` variables replaced.
pub(super) fn without_values(
    env: &Arc<BTreeMap<String, String>>,
    masked: &[String],
) -> Arc<BTreeMap<String, String>> {
    if masked.is_empty() {
        return Arc::clone(env);
    }
    let mut replaced = BTreeMap::clone(env);
    for (name, value) in &mut replaced {
        if masked.contains(name)
            && let Some(mask) = secrets::mask_value(name, value)
        {
            *value = mask;
        }
    }
    Arc::new(replaced)
}

fn present(policy: &Policy) -> impl Iterator<Item = &String> {
    let variables = policy.sandbox.env.iter();
    let secret = variables.filter(|(name, value)| secrets::secret_part(name, value).is_some());
    secret.map(|(name, _)| name)
}

fn names(facts: &CallFacts) -> impl Iterator<Item = &String> {
    facts.shell.iter().flat_map(|shell| &shell.analysis.secrets)
}

#[cfg(test)]
mod tests {
    use haft_contract::secrets;

    /// The reader of lines has no dependency on the contract, so it has its own list.
    #[test]
    fn both_lists_of_secret_names_agree() {
        let names = [
            "API_KEY",
            "GITHUB_TOKEN",
            "PGPASSWORD",
            "DB_PASSWD",
            "SSH_PASSPHRASE",
            "AWS_SECRET_ACCESS_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "npm_config_token",
            "ANTHROPIC_CUSTOM_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
            "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "PATH",
            "HOME",
            "LANG",
            "NODE_ENV",
            "ANTHROPIC_MODEL",
        ];
        for name in names {
            let expected = secrets::is_secret(name.as_ref(), "x".as_ref());
            assert_eq!(haft_shell::is_secret_name(name), expected, "{name}");
        }
    }
}
