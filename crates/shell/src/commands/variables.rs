//! The variables that a line may safely set.

/// Returns whether the text is a variable name in bash, without a subscript.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether a command may receive this variable with any value, except that a locale must
/// also pass [`is_harmless_value`].
///
/// Such a variable changes how information is shown, never what runs or what is read.
pub fn is_harmless(name: &str) -> bool {
    matches!(name, "TZ" | "NO_COLOR" | "CI" | "TERM") || is_locale(name)
}

/// Returns whether a command may receive this variable with this value. `None` means that the value
/// is unknown.
pub fn is_harmless_value(name: &str, value: Option<&str>) -> bool {
    is_harmless(name) && (!is_locale(name) || value.is_some_and(has_known_charset))
}

/// Returns whether a variable chooses a locale, and with it the character set of the lines that
/// bash reads.
pub fn is_locale(name: &str) -> bool {
    name == "LANG"
        || name.strip_prefix("LC_").is_some_and(|rest| {
            rest.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
}

/// Returns whether a locale's texts are plain bytes or UTF-8, as this crate reads them.
///
/// In another character set, a letter may end in the byte of a quote or a backslash. Bash and the
/// programs it starts would then split the line differently.
pub fn has_known_charset(locale: &str) -> bool {
    if ["", "C", "POSIX"].contains(&locale) {
        return true;
    }
    let Some((language, charset)) = locale.split_once('.') else {
        return false;
    };
    let charset = charset.split_once('@').map_or(charset, |(set, _)| set);
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let utf8 = charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8");
    let modifier = locale.split_once('@').is_none_or(|(_, more)| plain(more));
    utf8 && modifier && !language.is_empty() && plain(language)
}

/// Returns whether a variable chooses a program that bash or another program starts, or the place
/// where it is searched.
pub fn chooses_programs(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "BROWSER",
        "CDPATH",
        "ENV",
        "GNUMAKEFLAGS",
        "IFS",
        "LESSCLOSE",
        "LESSOPEN",
        "MAKEFLAGS",
        "MAKEFILES",
        "PATH",
        "PROMPT_COMMAND",
        "RUSTC",
        "SHELL",
        "SHELLOPTS",
        "TAR_OPTIONS",
        "VISUAL",
    ];
    // The author and committer, and their dates.
    let plain_git = ["GIT_AUTHOR_", "GIT_COMMITTER_"]
        .iter()
        .any(|start| name.starts_with(start));
    let starts = ["BASH_", "DYLD_", "GIT_", "LD_", "PS"]
        .iter()
        .any(|start| name.starts_with(start));
    let ends = ["ASKPASS", "EDITOR", "PAGER", "_RSH", "_WRAPPER"]
        .iter()
        .any(|end| name.ends_with(end));
    NAMES.contains(&name) || ends || (starts && !plain_git)
}

/// Upper-case names that users commonly give to their variables and that no program reads.
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

/// Returns whether `read` or a loop may set this variable.
///
/// Bash and the programs it starts read upper-case names (and a few others), so only a plain user
/// variable is safe.
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
    fn a_locale_is_harmless_in_a_charset_that_is_known() {
        let known = [
            "",
            "C",
            "POSIX",
            "C.UTF-8",
            "C.utf8",
            "en_US.UTF-8",
            "de_DE.utf8@euro",
            "sr_RS.UTF-8@latin",
        ];
        for locale in known {
            assert!(is_harmless_value("LC_ALL", Some(locale)), "{locale}");
        }
        for locale in [
            "en_US",
            "ja_JP",
            "ja_JP.SJIS",
            "zh_CN.GBK",
            "zh_TW.Big5",
            "zh_CN.GB18030",
            "ko_KR.UHC",
            "de_DE@euro",
            "de_DE.ISO-8859-15",
            ".UTF-8",
            "../x.UTF-8",
            "C.UTF-8/..",
            "C.UTF-8@../x",
            "UTF-8",
        ] {
            assert!(!is_harmless_value("LANG", Some(locale)), "{locale}");
        }
        assert!(!is_harmless_value("LC_CTYPE", None));
        assert!(is_harmless_value("TZ", None));
        assert!(!is_harmless_value("PATH", Some("C")));
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
