//! Secrets that were removed from the process environment.
//!
//! The environment of a process can be read in `/proc/PID/environ`. A program that wants to protect
//! its keys removes them from the environment as its first action and stores them here. Code that
//! needs a variable calls [`variable`], which reads both places. In a program that removes nothing,
//! [`variable`] just reads the environment.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    sync::OnceLock,
};

static TAKEN: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Parts of the names of variables that contain secrets.
const WORDS: [&str; 7] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
];

/// Variables with HTTP headers, in which some providers and telemetry collectors expect a key.
const NAMES: [&str; 5] = [
    "ANTHROPIC_CUSTOM_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
];

/// Returns whether a variable contains a secret, by its name. A number of tokens is not a secret.
pub fn is_secret(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let is_number = || {
        let text = value.to_string_lossy();
        !text.is_empty() && text.trim().bytes().all(|byte| byte.is_ascii_digit())
    };
    if name.ends_with("_TOKENS") && is_number() {
        return false;
    }
    NAMES.contains(&name.as_str()) || WORDS.iter().any(|word| name.contains(word))
}

/// Stores the variables that were removed from the environment. Only the first call has an effect.
pub fn keep(taken: impl IntoIterator<Item = (OsString, OsString)>) {
    let _ = TAKEN.set(taken.into_iter().collect());
}

/// Returns all removed variables, for a child process that should inherit them.
pub fn taken() -> impl Iterator<Item = (&'static OsStr, &'static OsStr)> {
    let all = TAKEN.get().into_iter().flatten();
    all.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
}

/// Returns a variable of this process, whether it was removed from the environment or not.
pub fn variable(name: &str) -> Option<String> {
    let taken = TAKEN.get().and_then(|taken| taken.get(OsStr::new(name)));
    match taken {
        Some(value) => value.to_str().map(str::to_owned),
        None => env::var(name).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let secret = |name: &str, value: &str| is_secret(name.as_ref(), value.as_ref());
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_CUSTOM_HEADERS",
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "PGPASSWORD",
            "npm_config_token",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ] {
            assert!(secret(name, "x"), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "LANG",
        ] {
            assert!(!secret(name, "x"), "{name}");
        }
        assert!(!secret("MAX_THINKING_TOKENS", "1000"));
        assert!(secret("DEPLOY_TOKENS", "a,b"));
        assert!(secret("DB_PASSWORD", "1234"));
    }
}
