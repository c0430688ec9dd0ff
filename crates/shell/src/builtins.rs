//! Bash's builtins and reserved words.

use crate::syntax::commands::RESERVED;

/// Bash's builtin commands, which are not searched for in `PATH`.
const BUILTINS: [&str; 61] = [
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Returns whether `name` is a bash builtin.
pub fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

/// Returns whether `name` is a reserved word at the start of a command.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_commands_of_bash_are_known() {
        for (name, builtin, reserved) in [
            ("cd", true, false),
            ("[", true, false),
            ("suspend", true, false),
            ("time", false, true),
            ("esac", false, true),
            ("ls", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_builtin(name), builtin, "{name}");
            assert_eq!(is_reserved(name), reserved, "{name}");
        }
        assert!(BUILTINS.is_sorted());
    }
}
