//! Detection of commands that wait for input.
//!
//! The input of commands is empty, so a command that asks for input waits in vain or has already
//! given up. haft detects this from the end of its output and suggests an alternative.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// Returns advice for a command that seems to wait for input, from the end of its output. The
/// output must not be trimmed: a line without a line end is a question, or still being written.
pub(crate) fn input_hint(tail: &str) -> Option<String> {
    let last = tail.lines().rev().find(|line| !line.trim().is_empty())?;
    if last.len() > MAX_LENGTH {
        return None;
    }
    let open = !tail.ends_with('\n');
    let question = QUESTIONS.iter().find(|question| {
        (open || question.even_if_ended) && question.words.is_match(last.trim_end())
    });
    if let Some(question) = question {
        return Some(format!(
            "It seems to wait for input: \"{}\". No user can type here. {}",
            clipped(last.trim()),
            question.advice
        ));
    }
    // Patterns that appear in earlier lines: a message about missing input, or a menu of several
    // lines.
    for line in tail.lines().rev().take(LINES) {
        let found = SIGNS.iter().find(|sign| sign.words.is_match(line));
        if let Some(sign) = found {
            return Some(format!(
                "It asked for input: \"{}\". No user can type here. {}",
                clipped(line.trim()),
                sign.advice
            ));
        }
    }
    None
}

/// The maximum length of a question, in bytes.
const MAX_LENGTH: usize = 1000;

/// The maximum distance of a menu, or of a message about missing input, from the end, in lines.
const LINES: usize = 12;

fn clipped(line: &str) -> String {
    const MAX_COUNT: usize = 100;
    let mut clipped: String = line.chars().take(MAX_COUNT).collect();
    if line.chars().count() > MAX_COUNT {
        clipped.push('…');
    }
    clipped
}

struct PromptPattern {
    words: Regex,
    advice: &'static str,
    /// The pattern is so clear that it applies even if a line end follows.
    even_if_ended: bool,
}

/// A pattern, its advice, and whether it applies even if a line end follows.
type PatternRow = (&'static str, &'static str, bool);

fn compiled(rows: &[PatternRow]) -> Vec<PromptPattern> {
    let built = |pattern: &str| {
        RegexBuilder::new(pattern)
            .case_insensitive(true)
            .build()
            .ok()
    };
    let question = |(pattern, advice, even_if_ended): &PatternRow| {
        Some(PromptPattern {
            words: built(pattern)?,
            advice,
            even_if_ended: *even_if_ended,
        })
    };
    rows.iter().filter_map(question).collect()
}

const PASSWORD: &str =
    "Give it by an option, a file or a variable that the program knows, or ask the user to run it.";
const SUDO: &str = "Use `sudo -n` to fail immediately instead, or ask the user to run it.";
const HOST_KEY: &str = "Ask the user whether the host is the right one; then add its key to \
                        known_hosts, or use `-o StrictHostKeyChecking=accept-new`.";
const ACCOUNT: &str = "Ask the user to sign in, or use an address that needs no password.";
const YES: &str = "Run it again with the option that answers in advance (`-y`, `--yes`, `--force`, \
                   `--no-input`), or pipe the answer in: `echo y | COMMAND`.";
const VALUE: &str = "Run it again with the value as an option or argument, or pipe it in: \
                     `printf '%s\\n' VALUE | COMMAND`.";
const CHOICE: &str = "Run it again with the choice as an option; its `--help` should name one.";
const KEY: &str = "Run it again without the pause, or with input: `yes '' | COMMAND`.";
const PAGER: &str = "Switch its pager off (`--no-pager`) or pipe it: `COMMAND | cat`.";
const TERMINAL: &str = "Run it again without asking for a terminal (`docker run -i` without `-t`).";

/// Patterns for the last line. The first one that matches provides the advice.
static QUESTIONS: LazyLock<Vec<PromptPattern>> = LazyLock::new(|| compiled(ASKED));

const ASKED: &[PatternRow] = &[
    (r"^\[sudo\] .*:$", SUDO, false),
    (r"\(yes/no/\[fingerprint\]\)\?$", HOST_KEY, true),
    (r"^(Username|Password) for '.*':$", ACCOUNT, false),
    (
        r"^(?:[^:]*\W)?(password|passphrase|pass phrase|passcode|PIN|OTP|one-time code|verification code)(?: for [^:]+| again| \([^)]*\))?:$",
        PASSWORD,
        false,
    ),
    (
        r"^(?:[\w.-]+ )?(login|username|user name|e-?mail)(?: \([^)]*\))?:$",
        VALUE,
        false,
    ),
    // "[y/N]", "(yes/no)", "[y,n,q,a,d,?]", "([y]/n)", "(y)", after a question.
    (
        r"\?\W*[\[(]\[?(?:y|yes)\]?(?:[/,|][^\])]*(?:\[[^\])]*\])?)?[\])]\W*$",
        YES,
        true,
    ),
    (
        r"[\[(]\[?(?:y|yes|n|no)\]?[/,|][^\])]*[\])]\W*$",
        YES,
        false,
    ),
    (r"\[y\]es, \[n\]o\b.*:$", YES, false),
    (
        r"\b(continue|proceed|are you sure|overwrite|replace|remove|delete|descend into directory|install|is this ok(?:ay)?|confirm|accept|agree|try again|retry|want to|would you like)\b.*\?(?: \(yes\))?$",
        YES,
        false,
    ),
    (
        r"^\W*(press|hit|strike) \W?(any key|enter|return)\b.*\b(continue|proceed|confirm|accept|close|exit|finish|start|install|begin|go on|abort)\b",
        KEY,
        true,
    ),
    (
        r"^\W*(press|hit|strike) (any key|enter|return)\W*$",
        KEY,
        true,
    ),
    (r"^(-- ?More ?--.*|\(END\)|lines \d+-\d+.*)$", PAGER, false),
    (
        r"^\W*(?:please )?(enter|type|select|choose)\s+\S.*[:>?]$",
        VALUE,
        false,
    ),
    (r"^\? .*[:?›»]$", VALUE, false),
    (
        r"^(>>>|mysql>|sqlite>|\w+=[#>]|\(gdb\)|\(lldb\)|\(Pdb\)|ftp>|irb\(main\):.*>)$",
        VALUE,
        false,
    ),
];

/// Patterns for any of the last lines.
static SIGNS: LazyLock<Vec<PromptPattern>> = LazyLock::new(|| compiled(PROMPT_PATTERNS));

const PROMPT_PATTERNS: &[PatternRow] = &[
    (
        r"^sudo: (a terminal is required to read the password|a password is required|no tty present)",
        SUDO,
        true,
    ),
    (r"^Host key verification failed\.$", HOST_KEY, true),
    (
        r"could not read (Username|Password) for '.*': (terminal prompts disabled|No such device or address)",
        ACCOUNT,
        true,
    ),
    (r"^EOFError: EOF when reading a line$", VALUE, true),
    (r"\[Y/n\] Abort\.$", YES, true),
    (r"\[y/N\]: Operation aborted\.$", YES, true),
    (
        r"^(the input device is not a TTY|cannot attach stdin to a TTY-enabled container)",
        TERMINAL,
        true,
    ),
    (
        r"\bcannot prompt because user interactivity has been disabled\b",
        ACCOUNT,
        true,
    ),
    (r"^gpg: cannot open '/dev/tty'", PASSWORD, true),
    (r"^\? .*\(?use arrow[- ]keys", CHOICE, true),
    (r"^◆ ", CHOICE, true),
];

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: &[(&str, &str)] = &[
        ("[sudo] password for joe: ", SUDO),
        ("Password: ", PASSWORD),
        ("Password:", PASSWORD),
        ("joe@example.com's password: ", PASSWORD),
        ("(joe@example.com) Password: ", PASSWORD),
        (
            "Enter passphrase for key '/home/joe/.ssh/id_ed25519': ",
            PASSWORD,
        ),
        ("Enter passphrase (empty for no passphrase): ", PASSWORD),
        ("Enter same passphrase again: ", PASSWORD),
        ("Enter PEM pass phrase:", PASSWORD),
        ("New password: ", PASSWORD),
        ("Retype new password: ", PASSWORD),
        ("Vault password: ", PASSWORD),
        ("Enter OTP: ", PASSWORD),
        ("Password for user postgres: ", PASSWORD),
        ("Username for 'https://github.com': ", ACCOUNT),
        ("Password for 'https://joe@github.com': ", ACCOUNT),
        ("npm notice\nUsername: ", VALUE),
        ("Email (this will be public): ", VALUE),
        ("debian login: ", VALUE),
        (
            "This key is not known by any other names.\nAre you sure you want to continue connecting (yes/no/[fingerprint])? ",
            HOST_KEY,
        ),
        (
            "Are you sure you want to continue connecting (yes/no)? ",
            YES,
        ),
        (
            "After this operation, 4 kB of space will be used.\nDo you want to continue? [Y/n] ",
            YES,
        ),
        ("Do you want to continue? [Y/n]\n", YES),
        ("Proceed ([y]/n)? ", YES),
        ("Proceed (Y/n)? ", YES),
        ("Is this ok [y/N]: ", YES),
        ("Is this ok [y/d/N]: ", YES),
        ("Ok to proceed? (y) ", YES),
        ("Is this OK? (yes) ", YES),
        ("? Overwrite existing files? (y/N) ", YES),
        ("? Are you sure? › (Y/n)", YES),
        ("(1/3) Stage this hunk [y,n,q,a,d,j,J,g,/,e,p,?]? ", YES),
        ("replace a.txt? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", YES),
        ("cp: overwrite 'b'? ", YES),
        ("rm: remove write-protected regular file 'x'? ", YES),
        ("rm: descend into directory 'd'? ", YES),
        ("mv: replace 'b', overriding mode 0444 (r--r--r--)? ", YES),
        ("Continue? ", YES),
        ("Would you like to install it now?", YES),
        ("Delete 3 branches? [y/N] ", YES),
        ("Apply migration? (yes|no) ", YES),
        ("Press any key to continue . . . ", KEY),
        ("Press [Enter] to continue or Ctrl-C to cancel", KEY),
        (
            "Press RETURN/ENTER to continue or any other key to abort:",
            KEY,
        ),
        ("Hit enter to continue\n", KEY),
        ("Press ENTER\n", KEY),
        ("--More--", PAGER),
        ("--More--(45%)", PAGER),
        ("(END)", PAGER),
        ("lines 1-23", PAGER),
        (
            "  Only 'yes' will be accepted to approve.\n\n  Enter a value: ",
            VALUE,
        ),
        ("Enter your name: ", VALUE),
        ("Please select an option: ", VALUE),
        ("Type 'yes' to continue: ", VALUE),
        ("Please choose [1-3]: ", VALUE),
        ("? Project name: ", VALUE),
        ("? Project name: › ", VALUE),
        (">>> ", VALUE),
        ("mysql> ", VALUE),
        ("postgres=# ", VALUE),
        ("(gdb) ", VALUE),
        (
            "sudo: a terminal is required to read the password; either use the -S option\n",
            SUDO,
        ),
        ("sudo: a password is required\n", SUDO),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.\n",
            HOST_KEY,
        ),
        (
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled\n",
            ACCOUNT,
        ),
        (
            "Name: Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nEOFError: EOF when reading a line\n",
            VALUE,
        ),
        ("Do you want to continue? [Y/n] Abort.\n", YES),
        ("Is this ok [y/N]: Operation aborted.\n", YES),
        ("the input device is not a TTY\n", TERMINAL),
        (
            "? Select a framework: » - Use arrow-keys. Return to submit.\n>   Vanilla\n    Vue\n    React\n",
            CHOICE,
        ),
        (
            "◆  Pick a project type.\n│  ● TypeScript\n│  ○ JavaScript\n└",
            CHOICE,
        ),
    ];

    const DOES_NOT_ASK: &[&str] = &[
        "",
        "\n\n",
        "done\n",
        "Compiling haft v0.1.0",
        "Password changed.\n",
        "password: hunter2\n",
        "Password: ok",
        "Resetting passwords:",
        "error: wrong password\n",
        "warning: deprecated, do not continue?\n",
        "usage: tool [y/n] FILE\n",
        "  --color <when>   coloured output (yes/no)\n",
        "  -i, --interactive   ask before each removal [y/N]\n",
        "Is it done? No.\n",
        "What is this?\n",
        "Press Ctrl+C to quit",
        "Press CTRL-C to stop the server\n",
        "  ➜  press h + enter to show help\n",
        " › Press Enter to trigger a test run.\n",
        " › Press a to run all tests.\n",
        "Server listening on http://localhost:3000\n",
        "Watching for file changes...",
        "TypeError: x is not a function",
        "TypeError:",
        "Entering directory '/x':",
        "Selected 3 tests:\n",
        "Select 3 of 10:\n",
        "enter the dragon\n",
        "progress: 50%",
        "Downloading (12/40)",
        "[1/4] Resolving packages...",
        "3 passed (y)\n",
        "[yarn] done",
        "a -> b?",
        "src/main.rs:3: // TODO: remove this?\n",
        "+    println!(\"Continue? [y/N] yes\");\n",
        "Confirm email sent.\n",
        "login: joe\n",
        "Last login: Sun Nov 15",
        "EOFError handling improved\n",
        "more",
        "lines: 4",
        "> haft@0.1.0 start",
        "=>",
        "user@host:~$ ls\n",
        "SELECT 1;\n",
        "Choose wisely\n",
        "(yes)\n",
        "[no]",
        "Continue reading",
        "Everything is up to date. Nothing to install?\n",
    ];

    #[test]
    fn every_pattern_can_be_built() {
        assert_eq!(compiled(ASKED).len(), ASKED.len());
        assert_eq!(compiled(PROMPT_PATTERNS).len(), PROMPT_PATTERNS.len());
    }

    #[test]
    fn every_question_is_known_and_has_the_right_advice() {
        for (tail, advice) in ASKS {
            let found = input_hint(tail);
            assert!(
                found.as_ref().is_some_and(|hint| hint.ends_with(advice)),
                "{tail:?}: {found:?}"
            );
        }
    }

    #[test]
    fn nothing_else_is_taken_for_a_question() {
        for tail in DOES_NOT_ASK {
            assert_eq!(input_hint(tail), None, "{tail:?}");
        }
    }

    #[test]
    fn the_hint_quotes_the_question() {
        let long = format!(
            "{}\nContinue with {}? [y/N] ",
            "x\n".repeat(100),
            "y".repeat(200)
        );
        insta::assert_snapshot!(
            "hints",
            [
                input_hint("Proceed ([y]/n)? "),
                input_hint(&long),
                input_hint("sudo: a password is required\n")
            ]
            .map(Option::unwrap_or_default)
            .join("\n\n")
        );
    }
}
