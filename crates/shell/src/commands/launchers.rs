//! Commands that start another one although their name does not suggest it, or that parse it
//! themselves.

use super::{
    options::{ParsedArguments, is_no_file, written},
    shells::{opaque, runs_text, runs_words, worse},
    spec::{KnownCommand, OperandKind, OptionStyle, doubts, writes},
    wrappers::{started_words, starting, wrapper},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    // Users do not expect these commands to start a program, so only an exact rule may allow them.
    KnownCommand::Spec(
        &wrapper("setsid", "-cfw --ctty --fork --wait")
            .with_evaluator(|parsed| starting(only_exact(parsed), &parsed.operands)),
    ),
    KnownCommand::Spec(
        &wrapper(
            "ionice",
            "-c: -n: -p: -t --class= --classdata= --pid= --ignore",
        )
        .refusing(&[doubts(
            "-P: -u: --pgid= --uid=",
            "is for processes that already run",
        )])
        .with_evaluator(|parsed| {
            let sets = ["-c", "-n", "--class", "--classdata"]
                .iter()
                .any(|option| parsed.has(option));
            match parsed.has("-p") || parsed.has("--pid") || parsed.operands.is_empty() {
                true => running(parsed, sets),
                false => starting(only_exact(parsed), &parsed.operands),
            }
        }),
    ),
    KnownCommand::Spec(
        &wrapper(
            "flock",
            "-sexunoF -w: -E: --shared --exclusive --unlock --nonblock --nb --timeout= --wait= \
             --conflict-exit-code= --close --no-fork --verbose",
        )
        .with_evaluator(flock),
    ),
    KnownCommand::Spec(
        &wrapper(
            "watch",
            "-bcCdegprtwx -n: -q: --beep --color --no-color --differences=? --errexit --chgexit \
             --equexit= --interval= --precise --no-rerun --no-title --no-wrap --exec",
        )
        .with_evaluator(|parsed| {
            let exec = parsed.has("-x") || parsed.has("--exec");
            match exec {
                true => starting(only_exact(parsed), &parsed.operands),
                false => runs_words(only_exact(parsed), &parsed.operands),
            }
        }),
    ),
    KnownCommand::Spec(
        &wrapper("taskset", "-acp --all-tasks --cpu-list --pid").with_evaluator(|parsed| {
            match parsed.has("-p") || parsed.has("--pid") {
                true => running(parsed, parsed.operands.len() > 1),
                false => starting(parsed.finding(OperandKind::None), started_words(parsed, 1)),
            }
        }),
    ),
    KnownCommand::Spec(
        &wrapper(
            "chrt",
            "-bdfiorRavpm -T: -P: -D: --batch --deadline --fifo --idle --other --rr \
             --reset-on-fork --all-tasks --pid --max --verbose",
        )
        .with_evaluator(|parsed| {
            if parsed.has("-p") || parsed.has("--pid") || parsed.has("-m") || parsed.has("--max") {
                return running(parsed, parsed.operands.len() > 1);
            }
            let finding = worse(
                parsed.finding(OperandKind::None),
                "it changes how a command is scheduled",
            );
            starting(finding, started_words(parsed, 1))
        }),
    ),
    KnownCommand::Spec(
        &wrapper(
            "strace ltrace",
            "-ACcDdfhikLlnqrtTvVwxYyzZ -a: -b: -e: -E: -I: -O: -p: -P: -s: -S: -u: -U: -X: \
             --trace= --follow-forks --summary --summary-only --no-abbrev --seccomp-bpf \
             --string-limit=",
        )
        .refusing(&[writes("-o> --output>", "writes its trace into a file")])
        .with_evaluator(|parsed| {
            starting(
                worse(
                    parsed.finding(OperandKind::None),
                    "it inspects a command while it runs",
                ),
                &parsed.operands,
            )
        }),
    ),
    KnownCommand::Spec(
        &wrapper(
            "script",
            "-aefq -B: -E: -I: -O: -T: -m: -o: -t? -c: --append --return --flush --quiet \
             --command= --log-in= --log-out= --log-io= --log-timing= --timing=? --force --echo= \
             --output-limit= --logging-format=",
        )
        .style(OptionStyle::Gnu)
        .with_evaluator(script),
    ),
    KnownCommand::Own(
        "parallel sem fakeroot faketime unbuffer rlwrap dbus-run-session xvfb-run valgrind gdb \
         lldb perf numactl cpulimit torsocks proxychains proxychains4 firejail bwrap systemd-run \
         start-stop-daemon daemonize expect at batch cgexec catchsegv trickle eatmydata proot \
         fakechroot dtach tmux screen entr",
        |_| opaque(CommandFinding::read_only(""), RUNS),
    ),
    // Programs that change the personality, user, group, limit, scheduler or root, then start the
    // operand.
    KnownCommand::Own(
        "setarch linux32 linux64 uname26 i386 i486 i586 i686 athlon x86_64 ppc ppc32 ppc64 ppcle \
         ppc64le s390 s390x sparc sparc32 sparc32bash sparc64 alpha ia64 mips mips32 mips64 parisc \
         parisc32 parisc64 arm armh aarch64 arm64 riscv32 riscv64 loongarch64 capsh sg choom \
         schedtool chpst softlimit envdir envuidgid setuidgid setlock pgrphack fghack tini \
         tini-static dumb-init catatonit gosu su-exec s6-setuidgid s6-softlimit s6-envdir \
         s6-applyuidgid s6-setsid execlineb pexec runcon lxc-attach \
         lxc-execute systemd-inhibit systemd-cat systemd-nspawn run0 machinectl \
         apptainer singularity enroot distrobox distrobox-enter schroot \
         arch-chroot qemu-i386 qemu-x86_64 qemu-arm qemu-armeb qemu-aarch64 \
         qemu-ppc64le qemu-riscv64 qemu-s390x box64 box86 wine wine64",
        |_| opaque(CommandFinding::read_only(""), RUNS),
    ),
    // Agents, terminals, watchers and script helpers that start their operand.
    KnownCommand::Own(
        "ssh-agent gpg-agent dbus-launch xinit startx xterm uxterm urxvt rxvt konsole \
         gnome-terminal xfce4-terminal mate-terminal lxterminal terminator alacritty kitty foot \
         wezterm x-terminal-emulator run-parts chronic ifne ts mispipe pee zrun vipe vidir \
         hyperfine watchexec reflex nodemon direnv dotenv \
         dotenvx envchain aws-vault chamber doppler asdf mise rtx nix nix-shell \
         guix devbox pipx coreutils socksify tsocks \
         runc crun ctr nerdctl logrotate anacron",
        |_| opaque(CommandFinding::read_only(""), RUNS),
    ),
    // Programs with a subcommand that passes a line to the shell.
    KnownCommand::Own(
        "sqlite3 psql mysql mariadb hg svn \
         mutt neomutt mailx ranger nnn mc vifm lf",
        |_| {
            opaque(
                CommandFinding::read_only(""),
                "it can hand a line to a shell",
            )
        },
    ),
];

const RUNS: &str = "it runs other programs";

fn only_exact(parsed: &ParsedArguments<'_>) -> CommandFinding {
    worse(
        parsed.finding(OperandKind::None),
        "it starts another command",
    )
    .requiring_exact_rule()
}

/// Analyzes a command that shows or changes the scheduling of a running process.
fn running(parsed: &ParsedArguments<'_>, sets: bool) -> CommandFinding {
    match sets {
        true => CommandFinding::mutating("it changes how a running process is scheduled"),
        false => parsed.finding(OperandKind::Text),
    }
}

fn flock(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = only_exact(parsed);
    let Some((lock, rest)) = parsed.operands.split_first() else {
        return finding;
    };
    let descriptor = lock
        .text()
        .is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    if !descriptor {
        finding.effects.push(written(lock, WriteKind::OperandWrite));
    }
    match rest {
        [option, text, ..] if option.is("-c") || option.is("--command") => runs_text(finding, text),
        _ => starting(finding, rest),
    }
}

fn script(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = worse(
        parsed.finding(OperandKind::None),
        "it records a session into a file",
    );
    let logs = [
        "-B",
        "-I",
        "-O",
        "-T",
        "-t",
        "--log-in",
        "--log-out",
        "--log-io",
        "--log-timing",
        "--timing",
    ];
    let logs = logs.iter().filter_map(|log| parsed.value(log));
    let files = logs
        .chain(parsed.operands.iter().copied())
        .filter(|file| !is_no_file(file));
    let finding = files.fold(finding, |finding, file| {
        finding.with(written(file, WriteKind::OperandWrite))
    });
    let default = parsed.argv.first().filter(|_| parsed.operands.is_empty());
    let default = default.map(|name| Arg::literal("typescript", name.span));
    let finding = default.iter().fold(finding, |finding, file| {
        finding.with(written(file, WriteKind::OperandWrite))
    });
    match parsed.value("-c").or_else(|| parsed.value("--command")) {
        Some(text) => runs_text(finding, text),
        None => opaque(
            finding,
            "a shell runs what it reads from its standard input",
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::testing::{
            assert_not_read_only, assert_read_only, each, effects, find, starts, verdict,
        },
        effect::RuleCoverage,
    };

    #[test]
    fn what_they_start_is_looked_at() {
        let cases = [
            ("setsid -f touch p", "touch p"),
            ("ionice -c 3 touch p", "touch p"),
            ("flock -n lock touch p", "touch p"),
            ("flock lock -c 'touch p'", "script touch p"),
            ("watch -n1 touch p", "script touch p"),
            ("watch -x touch p", "touch p"),
            ("taskset -c 1 touch p", "touch p"),
            ("chrt -b 0 touch p", "touch p"),
            ("strace -f -o out ls a", "ls a"),
            ("script -c 'touch p' /dev/null", "script touch p"),
        ];
        for (line, expected) in cases {
            assert_eq!(starts(line), [expected], "{line}");
        }
    }

    #[test]
    fn only_asking_about_a_process_is_harmless() {
        assert_read_only(&each(
            "taskset -p 1; ionice -p 1; ionice; chrt -p 1; chrt -m; taskset -c 0 ls",
        ));
        assert_not_read_only(&each(
            "setsid ls; ionice ls; ionice -c 3 -p 1; flock lock ls; watch ls; taskset -p 1 2; \
             chrt -p 1 2; strace ls; strace -o out ls; parallel ls; script out; script -c ls out; \
             watch $x; flock $x ls; taskset 1 $x",
        ));
        for line in ["watch ls", "setsid ls", "ionice ls", "flock lock ls"] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
        assert_eq!(verdict("watch ls"), "unknown: it starts another command");
    }

    #[test]
    fn their_own_effects_count_too() {
        assert_eq!(effects("flock lock ls"), ["OperandWrite lock"]);
        assert_eq!(effects("flock 9 ls"), [""; 0]);
        assert_eq!(effects("strace -o out ls"), ["OptionWrite out"]);
        assert_eq!(effects("script -c ls"), ["OperandWrite typescript"]);
    }
}
