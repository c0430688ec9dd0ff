//! Builds the environment of a command: variables from an allow-list, variables from the settings,
//! and variables that make programs run without user interaction. Nothing else is inherited, in
//! particular no secrets.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    path::Path,
};

use haft_contract::secrets;
use haft_sandbox::SandboxProfile;

/// The sources of a command's environment.
pub(crate) struct EnvironmentSource<'a> {
    /// The environment of this process.
    pub(crate) own: &'a [(OsString, OsString)],
    /// `env` of the settings. These variables are passed because the user named them.
    pub(crate) settings: &'a BTreeMap<String, String>,
    /// The PATH of the user's shell, if known.
    pub(crate) path: Option<&'a str>,
    /// The sandbox profile of the command.
    pub(crate) profile: &'a SandboxProfile,
    /// The port of our own proxy, if the command must use it.
    pub(crate) proxy: Option<u16>,
}

/// Variables that are passed from our own environment.
const PASS: &[&str] = &[
    "CI",
    "COLORTERM",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "PWD",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // The author of commits. Without it git asks or fails, and it is part of every commit anyway.
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    // Certificates. Behind a company proxy, nothing can be downloaded without them.
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // The locations of toolchains.
    "ANDROID_HOME",
    "ANDROID_NDK_HOME",
    "ANDROID_SDK_ROOT",
    "ANT_HOME",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CABAL_DIR",
    "CARGO_HOME",
    "COMPOSER_HOME",
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "CONDA_PREFIX",
    "CONDA_PYTHON_EXE",
    "CONDA_SHLVL",
    "DENO_DIR",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_REPOSITORY",
    "JAVA_HOME",
    "JDK_HOME",
    "JULIA_DEPOT_PATH",
    "KOTLIN_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NODE_PATH",
    "NVM_BIN",
    "NVM_DIR",
    "OPAMROOT",
    "OPAM_SWITCH_PREFIX",
    "PIPX_BIN_DIR",
    "PIPX_HOME",
    "PNPM_HOME",
    "POETRY_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SCALA_HOME",
    "SDKMAN_DIR",
    "STACK_ROOT",
    "UV_PYTHON_INSTALL_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "WORKON_HOME",
];

const PASS_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Variables that configure the user's own proxy. haft replaces them with its own proxy.
pub(super) const PROXIES: &[&str] = &[
    "all_proxy",
    "ftp_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables that are never passed, not even from the settings. They make every program or every
/// bash load code, or change how bash parses a line or where `cd` goes, so that a command would not
/// do what was checked.
const NEVER: &[&str] = &[
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_XTRACEFD",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "GCONV_PATH",
    "GLOBIGNORE",
    "IFS",
    "LOCPATH",
    "NLSPATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "TEXTDOMAIN",
    "TEXTDOMAINDIR",
];

/// `OTEL_` configures the telemetry of the agent, which does not concern the commands.
const NEVER_PREFIXES: &[&str] = &["BASH_FUNC_", "DYLD_", "LD_", "OTEL_"];

/// Defaults that the settings can override.
const DEFAULTS: &[(&str, &str)] = &[
    // Bash sets these itself in an empty environment; other programs do not.
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TERM", "dumb"),
    // No user can scroll in a pager.
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    // No user can answer: programs must fail with a message instead of waiting or opening a window.
    // An empty GIT_ASKPASS also stops git from using `core.askPass` and SSH_ASKPASS.
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GCM_INTERACTIVE", "never"),
    ("GH_PROMPT_DISABLED", "1"),
    ("GIT_ASKPASS", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PIP_NO_INPUT", "1"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    // `git rebase --continue` and `git merge` use the proposed text unchanged.
    ("GIT_EDITOR", "true"),
    // These programs check the network for a newer version, even in read-only commands.
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("NO_UPDATE_NOTIFIER", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("npm_config_update_notifier", "false"),
    // Output is not lost if the process is killed, and is in the right order relative to stderr.
    ("PYTHONUNBUFFERED", "1"),
];

/// Variables that a read-only command always gets. `diff.external` is not pinned: git would treat
/// an empty value as a program name and fail. The audit of the repository's configuration checks it
/// instead.
const READ_ONLY: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_ASKPASS", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_2", "explicit"),
    ("GIT_CONFIG_KEY_3", "log.showSignature"),
    ("GIT_CONFIG_VALUE_3", "false"),
];

/// Variables that inform a program that an agent started it.
const MARKS: &[(&str, &str)] = &[("CLAUDECODE", "1"), ("CLAUDE_CODE_CHILD_SESSION", "1")];

/// Returns whether a command with this profile may connect to this socket.
fn grants_socket(profile: &SandboxProfile, socket: &Path) -> bool {
    match profile {
        SandboxProfile::Workspace(workspace) => {
            fs::canonicalize(socket).is_ok_and(|real| workspace.writable.contains(&real))
        }
        SandboxProfile::ReadOnly(_) | SandboxProfile::Full => false,
    }
}

/// Returns the complete environment of a command. Nothing else is inherited.
pub(crate) fn child(origin: &EnvironmentSource<'_>) -> BTreeMap<OsString, OsString> {
    let read_only = matches!(origin.profile, SandboxProfile::ReadOnly(_));
    let full = matches!(origin.profile, SandboxProfile::Full);
    let mut child = CommandVariables::default();
    for (name, value) in DEFAULTS {
        child.set(name, value);
    }
    let has_agent = |value: &OsStr| full || grants_socket(origin.profile, Path::new(value));
    for (name, value) in origin.own {
        let Some(text) = name.to_str() else { continue };
        if passes(text) || (text == "SSH_AUTH_SOCK" && has_agent(value)) {
            // A command without a network needs no password of a proxy.
            let masked = value.to_str().filter(|_| read_only);
            let masked = masked.and_then(|value| secrets::mask_value(text, value));
            let value = masked.map_or_else(|| value.clone(), OsString::from);
            child.0.insert(name.clone(), value);
        }
    }
    if let Some(path) = origin.path {
        child.set("PATH", path);
    }
    for (name, value) in origin.settings {
        let is_git = read_only && name.starts_with("GIT_");
        let is_agent = !full && name == "SSH_AUTH_SOCK";
        if is_name(name) && !never(name) && !is_git && !is_agent && !value.contains('\0') {
            child.set(name, value);
        }
    }
    child.settle_language();
    if let Some(port) = origin.proxy {
        child.use_proxy(port);
    }
    if read_only {
        child.without_relative_path();
        for (name, value) in READ_ONLY {
            child.set(name, value);
        }
    }
    for (name, value) in MARKS {
        child.set(name, value);
    }
    child.0
}

#[derive(Default)]
struct CommandVariables(BTreeMap<OsString, OsString>);

impl CommandVariables {
    fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.into(), value.into());
    }

    fn has(&self, name: &str) -> bool {
        self.0
            .get(OsStr::new(name))
            .is_some_and(|value| !value.is_empty())
    }

    /// Sets UTF-8 unless the user has chosen a character set, and English messages unless the user
    /// has chosen a language for messages: refusals are detected by the text of messages.
    fn settle_language(&mut self) {
        let chosen = |of: &Self, names: &[&str]| names.iter().any(|name| of.has(name));
        if !chosen(self, &["LC_ALL", "LC_CTYPE", "LANG"]) {
            self.set("LANG", "C.UTF-8");
        }
        if !chosen(self, &["LC_ALL", "LC_MESSAGES"]) {
            self.set("LC_MESSAGES", "C");
        }
    }

    fn use_proxy(&mut self, port: u16) {
        self.0.retain(|name, _| {
            let name = name.to_string_lossy().to_ascii_lowercase();
            !PROXIES.contains(&name.as_str())
        });
        let web = format!("http://127.0.0.1:{port}");
        let any = format!("socks5h://127.0.0.1:{port}");
        let local = "localhost,127.0.0.1,::1";
        for (name, value) in [
            ("http_proxy", web.as_str()),
            ("https_proxy", &web),
            ("all_proxy", &any),
            ("no_proxy", local),
        ] {
            self.set(name, value);
            self.set(&name.to_ascii_uppercase(), value);
        }
        // Node uses these variables only on request.
        self.set("NODE_USE_ENV_PROXY", "1");
    }

    /// Removes relative entries from PATH, so that a program in the working directory cannot
    /// replace one that was checked by its name.
    fn without_relative_path(&mut self) {
        let path = self.0.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let absolute = std::env::split_paths(&path).filter(|entry| entry.is_absolute());
        if let Ok(path) = std::env::join_paths(absolute) {
            self.0.insert("PATH".into(), path);
        }
    }
}

/// Returns whether a variable of our own environment is passed without being named in the settings.
fn passes(name: &str) -> bool {
    let listed = PASS.contains(&name)
        || PROXIES.contains(&name.to_ascii_lowercase().as_str())
        || PASS_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    listed && is_name(name) && !never(name) && !looks_secret(name)
}

fn never(name: &str) -> bool {
    NEVER.contains(&name) || NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn looks_secret(name: &str) -> bool {
    secrets::is_secret(name.as_ref(), OsStr::new(""))
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
