//! The meaning of an exit code, and the handling of a line that exceeds its timeout. Both depend on
//! the programs that the line runs.

use std::path::PathBuf;

use haft_shell::{
    Analysis, Arg, LineLocation, LinePart, StartedProgram, analyze,
    ast::{CommandKind, CommandNode, ShellScript},
    commands, syntax,
};

/// The meaning of an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExitMeaning {
    /// The command failed. If false, its code is an answer (`grep` found nothing).
    pub(crate) failed: bool,
    /// The explanation of the code, if the number alone is not clear.
    pub(crate) text: Option<String>,
}

/// The handling of a line that exceeds its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeoutAction {
    /// The line continues in the background.
    Background,
    /// The line is killed, for this reason.
    Kill(&'static str),
}

/// Programs that exit with the code of the program they start.
const PASSING_ON: &[&str] = &[
    "bash", "builtin", "command", "dash", "doas", "env", "exec", "ionice", "nice", "nohup", "sh",
    "stdbuf", "sudo", "taskset", "time", "timeout",
];

/// The maximum nesting of scripts inside scripts, and of wrappers around wrappers.
const MAX_DEPTH: usize = 8;

/// Returns the meaning of the exit code of a line. It depends on the last command, which set the
/// code.
pub(crate) fn exit_meaning(line: &str, analysis: &Analysis, code: i32) -> ExitMeaning {
    if code == 0 {
        return ExitMeaning {
            failed: false,
            text: None,
        };
    }
    let last = last(line, analysis, MAX_DEPTH);
    if let (1, Some(last)) = (code, &last)
        && let Some(answer) = answer(last)
    {
        return ExitMeaning {
            failed: false,
            text: Some(answer.to_owned()),
        };
    }
    let timed = last.is_some_and(|last| last.timed);
    ExitMeaning {
        failed: true,
        text: failure(code, timed),
    }
}

fn answer(last: &LastCommand) -> Option<&'static str> {
    Some(match (last.question?, last.negated) {
        (ExitQuestion::Matches, false) => "No matches found",
        (ExitQuestion::Matches, true) => "Matches found (the command is negated)",
        (ExitQuestion::Difference, false) => "Files differ",
        (ExitQuestion::Difference, true) => "Files are the same (the command is negated)",
        (ExitQuestion::Condition, _) => "Condition is false",
        (ExitQuestion::Walk, false) => "Some directories could not be read",
        // `! find` exits with 1 if all directories were read. No sensible command does this.
        (ExitQuestion::Walk, true) => return None,
    })
}

fn failure(code: i32, timed: bool) -> Option<String> {
    let text = match code {
        124 if timed => "timeout ended it".to_owned(),
        126 => "found, but it cannot be run: it is a directory, or not executable".to_owned(),
        127 => "command not found".to_owned(),
        129.. => format!("killed by {}", signal(code - 128)?),
        _ => return None,
    };
    Some(text)
}

fn signal(number: i32) -> Option<&'static str> {
    // By number: the numbers are the same on all supported machines.
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL (illegal instruction)",
        5 => "SIGTRAP",
        6 => "SIGABRT (aborted)",
        7 => "SIGBUS (bus error)",
        8 => "SIGFPE (arithmetic error)",
        9 => "SIGKILL (from outside, or out of memory)",
        10 => "SIGUSR1",
        11 => "SIGSEGV (segmentation fault)",
        12 => "SIGUSR2",
        13 => "SIGPIPE (its output is no longer read)",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU (out of processor time)",
        25 => "SIGXFSZ (file too large)",
        31 => "SIGSYS (a system call that is not allowed)",
        _ => return None,
    })
}

/// The command that determines the exit code of a line.
struct LastCommand {
    question: Option<ExitQuestion>,
    /// Inverted by `!`.
    negated: bool,
    /// Run by `timeout`.
    timed: bool,
}

/// The question that a command answers with exit code 1.
#[derive(Clone, Copy)]
enum ExitQuestion {
    Matches,
    Difference,
    Condition,
    Walk,
}

fn last(line: &str, analysis: &Analysis, depth: usize) -> Option<LastCommand> {
    let script = syntax::parse(line).ok()?;
    let (command, negated) = last_command(&script)?;
    let mut last = match &command.kind {
        CommandKind::Test(_) => LastCommand {
            question: Some(ExitQuestion::Condition),
            negated: false,
            timed: false,
        },
        CommandKind::Simple { .. } => {
            let part = analysis
                .parts
                .iter()
                .find(|part| part.outer.is_none() && part.span == command.span)?;
            inner(&part.argv, depth)?
        }
        _ => return None,
    };
    last.negated ^= negated;
    Some(last)
}

/// Returns the last command of a script, also inside groups and loops, and whether its code is
/// inverted.
fn last_command(script: &ShellScript) -> Option<(&CommandNode, bool)> {
    let pipeline = &script.items.last()?.pipeline;
    let command = pipeline.commands.last()?;
    let inside = match &command.kind {
        CommandKind::Group(script) | CommandKind::Subshell(script) => script,
        CommandKind::For { body, .. } | CommandKind::ArithmeticFor { body, .. } => body,
        _ => return Some((command, pipeline.negated)),
    };
    let (command, negated) = last_command(inside)?;
    Some((command, negated ^ pipeline.negated))
}

/// Returns the command without its wrappers, such as `sudo` and `timeout`.
fn inner(argv: &[Arg], depth: usize) -> Option<LastCommand> {
    let name = argv.first()?.text()?;
    let name = name.rsplit('/').next().unwrap_or(name);
    let question = question(name, argv);
    if question.is_none() && PASSING_ON.contains(&name) && depth > 0 {
        let starts = commands::evaluate_command(name, argv).starts;
        let mut last = match starts.last()? {
            StartedProgram::Command { argv, more: false } => inner(argv, depth - 1)?,
            StartedProgram::Script(text) => {
                let line = text.text()?;
                last(line, &read(line), depth - 1)?
            }
            StartedProgram::Command { .. } => return None,
        };
        last.timed |= name == "timeout";
        return Some(last);
    }
    Some(LastCommand {
        question,
        negated: false,
        timed: false,
    })
}

fn question(name: &str, argv: &[Arg]) -> Option<ExitQuestion> {
    Some(match name {
        "grep" | "rg" | "egrep" | "fgrep" => ExitQuestion::Matches,
        "diff" => ExitQuestion::Difference,
        "test" | "[" => ExitQuestion::Condition,
        "find" => ExitQuestion::Walk,
        "git" => match git_subcommand(argv)? {
            "grep" => ExitQuestion::Matches,
            "diff" => ExitQuestion::Difference,
            _ => return None,
        },
        _ => return None,
    })
}

fn git_subcommand(argv: &[Arg]) -> Option<&str> {
    let mut words = argv.iter().skip(1);
    loop {
        match words.next()?.text()? {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" => {
                words.next();
            }
            option if option.starts_with('-') => {}
            word => return Some(word),
        }
    }
}

/// Returns the handling of a line that exceeds its timeout.
pub(crate) fn when_slow(analysis: &Analysis) -> TimeoutAction {
    if analysis.unreadable.is_some() {
        return TimeoutAction::Kill("what it runs cannot be read from the line");
    }
    let is_git = |part: &LinePart| part.base_name() == Some("git");
    if analysis.parts.iter().any(is_git) {
        return TimeoutAction::Kill("it runs git, which may hold a lock on the repository");
    }
    // The first command that is not a wrapper.
    let passes_on = |part: &&LinePart| {
        let name = part.base_name();
        name.is_none_or(|name| PASSING_ON.contains(&name))
    };
    let first = analysis.parts.iter().find(|part| !passes_on(part));
    if first.is_some_and(|part| part.base_name() == Some("sleep")) {
        return TimeoutAction::Kill("it waits by sleep");
    }
    TimeoutAction::Background
}

/// Analyzes a line. Only the command names are used, so any directory will do.
fn read(line: &str) -> Analysis {
    let place = LineLocation {
        cwd: PathBuf::from("/"),
        home: None,
    };
    analyze(line, &place)
}

/// Programs that show the processes of the machine, or its listening sockets.
const PROCESS_LISTS: [&str; 13] = [
    "fuser", "htop", "killall", "lsof", "netstat", "pgrep", "pidof", "pidwait", "pkill", "ps",
    "pstree", "ss", "top",
];

/// Returns the first program of a line that lists processes or sockets, if any.
pub(crate) fn lists_processes(analysis: &Analysis) -> Option<&str> {
    let mut names = analysis.parts.iter().filter_map(LinePart::base_name);
    names.find(|name| PROCESS_LISTS.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str, code: i32) -> (bool, String) {
        let ExitMeaning { failed, text } = exit_meaning(line, &read(line), code);
        (failed, text.unwrap_or_default())
    }

    #[test]
    fn code_one_is_an_answer_of_some_commands() {
        let cases = [
            ("grep x f", "No matches found"),
            ("ls | egrep x", "No matches found"),
            ("cd a && rg x", "No matches found"),
            ("true; fgrep x f", "No matches found"),
            ("/usr/bin/grep -q x f", "No matches found"),
            ("LC_ALL=C grep x f 2>/dev/null", "No matches found"),
            ("timeout 5 nice -n 3 env A=1 grep x f", "No matches found"),
            ("sudo grep x f", "No matches found"),
            ("bash -c 'cd a; grep x f'", "No matches found"),
            ("time grep x f", "No matches found"),
            ("(cd a && grep x f)", "No matches found"),
            ("{ ls; grep x f; }", "No matches found"),
            ("for f in *; do grep x \"$f\"; done", "No matches found"),
            ("git -C d --no-pager grep x", "No matches found"),
            ("! grep x f", "Matches found (the command is negated)"),
            ("! ! grep x f", "No matches found"),
            ("diff a b", "Files differ"),
            ("git diff --exit-code", "Files differ"),
            ("! diff a b", "Files are the same (the command is negated)"),
            ("test -f x", "Condition is false"),
            ("[ -f x ]", "Condition is false"),
            ("[[ -f x ]]", "Condition is false"),
            ("! [ -f x ]", "Condition is false"),
            ("find . -name x", "Some directories could not be read"),
        ];
        for (line, expected) in cases {
            assert_eq!(said(line, 1), (false, expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn every_other_code_is_a_failure() {
        for line in [
            "grep x f | head",
            "grep x f && make",
            "make",
            "git status",
            "git -c diff.x=y log",
            "grep x f | xargs rm",
            "if grep x f; then false; fi",
            "$X f",
            "grep x 'f",
            "echo grep",
            "! find .",
            "",
        ] {
            assert_eq!(said(line, 1), (true, String::new()), "{line}");
        }
        assert_eq!(said("grep x f", 2), (true, String::new()));
        assert_eq!(said("diff a b", 2), (true, String::new()));
        assert_eq!(said("make", 0), (false, String::new()));
        assert_eq!(said("grep x f || true", 0), (false, String::new()));
    }

    #[test]
    fn codes_of_the_shell_are_put_into_words() {
        let cases = [
            ("nosuch", 127, "command not found"),
            ("grep x f; nosuch", 127, "command not found"),
            (
                "./f",
                126,
                "found, but it cannot be run: it is a directory, or not executable",
            ),
            ("./a", 139, "killed by SIGSEGV (segmentation fault)"),
            (
                "./a",
                137,
                "killed by SIGKILL (from outside, or out of memory)",
            ),
            ("./a", 134, "killed by SIGABRT (aborted)"),
            ("timeout 1 make", 124, "timeout ended it"),
            ("make", 124, ""),
            ("exit 200", 200, ""),
            ("ssh x", 255, ""),
            ("x", -1, ""),
        ];
        for (line, code, expected) in cases {
            assert_eq!(
                said(line, code),
                (true, expected.to_owned()),
                "{line} {code}"
            );
        }
    }

    #[test]
    fn what_is_killed_at_its_timeout() {
        for line in [
            "sleep 500",
            "sleep 5; make",
            "A=1 /bin/sleep 5",
            "timeout 900 sleep 500",
            "(sleep 500)",
            "git fetch",
            "make && git push",
            "echo $(git log)",
            "bash -c 'cd x && git gc'",
            "cat <(git log)",
            "for f in *; do git add $f; done",
            "make 'x",
            "if true; then",
        ] {
            assert!(
                matches!(when_slow(&read(line)), TimeoutAction::Kill(_)),
                "{line}"
            );
        }
        for line in [
            "make",
            "npm start",
            "make; sleep 5",
            "echo git",
            "./git-like",
            "while true; do date; sleep 1; done",
            "",
        ] {
            assert_eq!(when_slow(&read(line)), TimeoutAction::Background, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_odd(
            line in "((!|timeout 1|sudo|env A=1|bash -c|grep|git|diff|\\[|\\(|\\)|'|\"|\\$x|;|\\||&&) ?){0,8}",
            code in proptest::prelude::any::<i32>(),
        ) {
            let analysis = read(&line);
            exit_meaning(&line, &analysis, code);
            exit_meaning(&line, &analysis, 1);
            when_slow(&analysis);
        }
    }
}
