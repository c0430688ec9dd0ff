//! Secrets that were removed from the process environment.
//!
//! The environment of a process can be read in `/proc/PID/environ`. A program that protects
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

/// Returns whether a variable contains a secret, by its name. A number in a variable whose name ends
/// in `_TOKENS` is a token count, not a secret.
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

/// The text that replaces a secret in the environment and in the output of commands.
pub const MASK: &str = "[masked]";

/// The prefixes by which issuers mark their keys and tokens.
const ISSUED: [&str; 16] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "pypi-",
    "-----BEGIN ",
];

/// Returns the secret part of a variable's value. If the name or a known prefix marks the value as a
/// secret, this is the whole value; otherwise, it is the password in a URL.
pub fn secret_part<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let is_issued = || value.len() >= 16 && ISSUED.iter().any(|start| value.starts_with(start));
    if !value.is_empty() && (is_secret(name.as_ref(), value.as_ref()) || is_issued()) {
        return Some(value);
    }
    let (_, address) = value.split_once("://")?;
    let authority = address.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

/// Returns the value with [`MASK`] in place of its secret part, if it has one.
pub fn mask_value(name: &str, value: &str) -> Option<String> {
    let secret = secret_part(name, value)?;
    // The same text can also occur before the secret part, for example in the scheme of an address.
    let start = secret.as_ptr().addr() - value.as_ptr().addr();
    let (before, after) = (&value[..start], &value[start + secret.len()..]);
    Some(format!("{before}{MASK}{after}"))
}

/// Stores variables that were removed from the environment. Only the first call has an effect.
pub fn store_removed(taken: impl IntoIterator<Item = (OsString, OsString)>) {
    let _ = TAKEN.set(taken.into_iter().collect());
}

/// Returns all removed variables, for a child process that should inherit them.
pub fn removed_variables() -> impl Iterator<Item = (&'static OsStr, &'static OsStr)> {
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
    fn only_the_secret_part_of_a_value_is_masked() {
        let cases = [
            ("API_KEY", "abc", Some("[masked]")),
            ("PGPASSWORD", "1234", Some("[masked]")),
            ("PLAIN", "ghp_0123456789abcdefghij", Some("[masked]")),
            ("PLAIN", "sk-ant-api03-0123456789", Some("[masked]")),
            (
                "DATABASE_URL",
                "postgres://u:p4ss@h/db",
                Some("postgres://u:[masked]@h/db"),
            ),
            (
                "https_proxy",
                "http://u:pw@proxy:8080",
                Some("http://u:[masked]@proxy:8080"),
            ),
            (
                "https_proxy",
                "http://user:http@h",
                Some("http://user:[masked]@h"),
            ),
            ("PLAIN", "sk-1", None),
            ("https_proxy", "http://proxy:8080", None),
            ("REMOTE", "ssh://git@host/a:b", None),
            ("API_KEY", "", None),
            ("MAX_THINKING_TOKENS", "1000", None),
            ("NODE_ENV", "test", None),
        ];
        for (name, value, expected) in cases {
            assert_eq!(
                mask_value(name, value).as_deref(),
                expected,
                "{name}={value}"
            );
        }
    }

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
