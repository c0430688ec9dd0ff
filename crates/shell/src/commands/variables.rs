//! Which variables a line may set without harm.

/// Is this a name bash takes, without a subscript?
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// May a command get any value of this variable? It changes how things are shown, never what runs or
/// what is read.
pub fn is_harmless(name: &str) -> bool {
    matches!(name, "LANG" | "TZ" | "NO_COLOR" | "CI" | "TERM")
        || name.strip_prefix("LC_").is_some_and(|rest| {
            rest.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
}

/// Names in capitals that people give to what they read or loop over, and that no program looks at.
const OWN: &[&str] = &[
    "ARG",
    "ARGS",
    "BRANCH",
    "COL",
    "COLS",
    "COMMIT",
    "COUNT",
    "DIR",
    "DIRS",
    "ENTRY",
    "EXT",
    "FIELD",
    "FILE",
    "FILENAME",
    "FILES",
    "HASH",
    "ID",
    "IDX",
    "INDEX",
    "ITEM",
    "ITEMS",
    "KEY",
    "KEYS",
    "LINE",
    "LINES_READ",
    "MATCH",
    "MODULE",
    "NAME",
    "NAMES",
    "NUM",
    "PATTERN",
    "PID",
    "PIDS",
    "PKG",
    "REPLY",
    "REPO",
    "RESULT",
    "SHA",
    "SIZE",
    "SRC",
    "STATUS",
    "TAG",
    "TARGET",
    "TEXT",
    "TYPE",
    "VAL",
    "VALUE",
    "VALUES",
    "VAR",
    "VER",
    "VERSION",
    "WORD",
    "WORDS",
];

/// May `read` or a loop set this variable? Bash and the programs it starts look at names in capitals
/// (and a few others), so only a plain name of one's own is harmless.
pub fn is_own(name: &str) -> bool {
    if !is_name(name) {
        return false;
    }
    let shouted = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    if shouted {
        return name.len() == 1 || OWN.contains(&name);
    }
    !name.ends_with("_proxy")
        && !name.starts_with("npm_")
        && !matches!(name, "auto_resume" | "histchars")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_variables_are_harmless() {
        for name in ["LC_ALL", "LC_CTYPE", "LANG", "TZ", "NO_COLOR", "CI", "TERM"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in [
            "PATH",
            "LD_PRELOAD",
            "LC_x",
            "FOO",
            "TERMINFO",
            "LANGUAGE",
            "TZDIR",
            "lang",
            "",
        ] {
            assert!(!is_harmless(name), "{name}");
        }
    }

    #[test]
    fn a_name_of_ones_own_is_plain() {
        for name in [
            "x",
            "line",
            "_",
            "file_name",
            "F",
            "FILE",
            "camelCase",
            "i2",
        ] {
            assert!(is_own(name), "{name}");
        }
        for name in [
            "PATH",
            "IFS",
            "LD_PRELOAD",
            "BASH_ENV",
            "GIT_PAGER",
            "PS4",
            "HOME",
            "a[0]",
            "a b",
            "",
            "1x",
            "http_proxy",
            "npm_config_script_shell",
            "é",
        ] {
            assert!(!is_own(name), "{name}");
        }
    }
}
