//! Secrets of our own environment, once they are taken out of it.
//!
//! Whatever stands in a process's environment can be read in `/proc/PID/environ`. A program that wants
//! to keep its keys takes them out as the first thing it does and leaves them here; who needs a
//! variable asks [`variable`], which knows both places. A program that does nothing of the kind loses
//! nothing: then there is the environment alone.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    sync::OnceLock,
};

static TAKEN: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// What a name holds that stands for a secret.
const WORDS: [&str; 7] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
];

/// Headers are where some providers, and collectors of telemetry, want their key.
const NAMES: [&str; 5] = [
    "ANTHROPIC_CUSTOM_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
];

/// Does a variable hold a secret, by its name? One that counts tokens does not.
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

/// Keeps what was taken out of the environment. Only the first time counts.
pub fn keep(taken: impl IntoIterator<Item = (OsString, OsString)>) {
    let _ = TAKEN.set(taken.into_iter().collect());
}

/// Everything that was taken out, for a child that is to inherit it.
pub fn taken() -> impl Iterator<Item = (&'static OsStr, &'static OsStr)> {
    let all = TAKEN.get().into_iter().flatten();
    all.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
}

/// A variable of our own, wherever it is now.
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
