//! Environment variables that no file of the workspace may set, trusted or not.

/// Prefixes of variables that control where secrets are sent, what is loaded into every child
/// process, or what git runs.
const BEGINNINGS: [&str; 17] = [
    "ANTHROPIC_",
    "AWS_",
    "AZURE_",
    "BASH_FUNC_",
    "CLAUDE_",
    "CLOUDSDK_",
    "DYLD_",
    "GIT_",
    "GLIBC_",
    "GOOGLE_",
    "HAFT_",
    "LD_",
    "NPM_CONFIG_",
    "OPENAI_",
    "OTEL_",
    "SSH_",
    "VERTEX_",
];

/// Names of other variables of this kind.
const NAMES: [&str; 38] = [
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CLASSPATH",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "HOME",
    "IFS",
    "IS_SANDBOX",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSOPEN",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PAGER",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "REQUESTS_CA_BUNDLE",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "SHELL",
    "SHELLOPTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "_JAVA_OPTIONS",
];

/// Returns whether a variable controls where secrets are sent, what is trusted, or what other
/// programs load and run.
pub(super) fn is_security_sensitive(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with("_PROXY")
        || NAMES.contains(&name.as_str())
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_other_programs_is_known() {
        for name in [
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_API_KEY",
            "OPENAI_BASE_URL",
            "AWS_ENDPOINT_URL",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_USE_BEDROCK",
            "HTTPS_PROXY",
            "https_proxy",
            "no_proxy",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "BASH_ENV",
            "PATH",
            "GIT_SSH_COMMAND",
            "npm_config_script_shell",
            "NODE_EXTRA_CA_CERTS",
            "IS_SANDBOX",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_LOG_TOOL_CONTENT",
        ] {
            assert!(is_security_sensitive(name), "{name}");
        }
        for name in ["NODE_ENV", "RUST_LOG", "DATABASE_URL", "LDAP_HOST", "PATHS"] {
            assert!(!is_security_sensitive(name), "{name}");
        }
    }
}
