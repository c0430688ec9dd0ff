//! Commands that start another one as a different user or with a different root. They are never
//! read-only.

use super::{
    options::{ParsedArguments, written},
    shells::{opaque, runs_text, worse},
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle},
    wrappers::starting,
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(
        &other(
            "sudo",
            "-AbBEeHiKklNnPSsVv -C: -D: -g: -h: -p: -R: -r: -T: -t: -U: -u: --askpass \
             --background --bell --close-from= --chdir= --preserve-env=? --edit --group= \
             --set-home --host= --login --remove-timestamp --reset-timestamp --list --no-update \
             --non-interactive --preserve-groups --prompt= --chroot= --role= --stdin --shell \
             --command-timeout= --type= --other-user= --user= --validate --help --version",
        )
        .with_evaluator(sudo),
    ),
    KnownCommand::Spec(&other("sudoedit", "-AknS -u: -g: -p: -C: -D: -T:").with_evaluator(edits)),
    KnownCommand::Spec(&other("doas", "-Lns -a: -C: -u:").with_evaluator(sudo)),
    KnownCommand::Spec(
        &other("pkexec", "--disable-internal-agent --keep-cwd --user=").with_evaluator(sudo),
    ),
    KnownCommand::Spec(
        &other(
            "su runuser",
            "-mplfP -w: -g: -G: -c: -s: -u: --preserve-environment --whitelist-environment= \
             --group= --supp-group= --login --command= --session-command= --fast --shell= --pty \
             --user= --help --version",
        )
        .style(OptionStyle::Gnu)
        .with_evaluator(su),
    ),
    KnownCommand::Spec(
        &other(
            "chroot",
            "--groups= --userspec= --skip-chdir --help --version",
        )
        .with_evaluator(|parsed| elsewhere(parsed, parsed.operands.get(1..).unwrap_or_default())),
    ),
    KnownCommand::Spec(
        &other(
            "unshare",
            "-muinpUCTfrcF -R: -w: -S: -G: --mount=? --uts=? --ipc=? --net=? --pid=? --user=? \
             --cgroup=? --time=? --fork --map-user= --map-group= --map-root-user \
             --map-current-user --map-auto --map-users= --map-groups= --kill-child=? \
             --mount-proc=? --propagation= --setgroups= --keep-caps --root= --wd= --setuid= \
             --setgid= --monotonic= --boottime= --help --version",
        )
        .with_evaluator(|parsed| elsewhere(parsed, &parsed.operands)),
    ),
    KnownCommand::Spec(
        &other(
            "nsenter",
            "-aFZ -t: -m? -u? -i? -n? -p? -C? -U? -T? -S: -G: -r? -w? -W: --all --target= \
             --mount=? --uts=? --ipc=? --net=? --pid=? --cgroup=? --user=? --time=? --setuid= \
             --setgid= --preserve-credentials --root=? --wd=? --wdns= --no-fork --follow-context \
             --help --version",
        )
        .with_evaluator(|parsed| elsewhere(parsed, &parsed.operands)),
    ),
    KnownCommand::Spec(
        &other(
            "setpriv",
            "-d --dump --nnp --no-new-privs --ambient-caps= --inh-caps= --bounding-set= --ruid= \
             --euid= --rgid= --egid= --reuid= --regid= --clear-groups --keep-groups --init-groups \
             --groups= --securebits= --pdeathsig= --selinux-label= --apparmor-profile= \
             --reset-env --help --version",
        )
        .with_evaluator(|parsed| starting(rights(parsed), &parsed.operands)),
    ),
    KnownCommand::Spec(
        &other(
            "prlimit",
            "-c? -d? -e? -f? -i? -l? -m? -n? -q? -r? -s? -t? -u? -v? -x? -y? -p: -o: --pid= \
             --output= --noheadings --raw --verbose --core=? --data=? --nice=? --fsize=? \
             --sigpending=? --memlock=? --rss=? --nofile=? --msgqueue=? --rtprio=? --stack=? \
             --cpu=? --nproc=? --as=? --locks=? --rttime=?",
        )
        .with_evaluator(|parsed| {
            let finding = worse(
                parsed.finding(OperandKind::None),
                "it changes the limits of a process",
            );
            starting(finding, &parsed.operands)
        }),
    ),
];

const fn other(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::reads(names, options).style(OptionStyle::Posix)
}

fn rights(parsed: &ParsedArguments<'_>) -> CommandFinding {
    worse(
        parsed.finding(OperandKind::None),
        "it runs a command with other rights",
    )
}

/// Analyzes `sudo` and programs with the same command line.
fn sudo(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if parsed.has("-e") || parsed.has("--edit") {
        return edits(parsed);
    }
    let mut finding = rights(parsed);
    let assigned = parsed.operands.iter().take_while(|word| {
        word.text()
            .is_some_and(|text| text.contains('=') && !text.starts_with('='))
    });
    let mut own = 0;
    for word in assigned {
        own += 1;
        let name = word
            .text()
            .and_then(|text| text.split_once('='))
            .map_or("", |(name, _)| name);
        finding.effects.push(Effect::Env(name.to_owned()));
    }
    let moved = ["-D", "-R", "-i", "--chdir", "--chroot", "--login"];
    let moved = moved.iter().any(|option| parsed.has(option)) || parsed.spec.is_called("pkexec");
    let command = parsed.operands.get(own..).unwrap_or_default();
    let shell = ["-i", "-s", "--login", "--shell"]
        .iter()
        .any(|option| parsed.has(option));
    match (command.is_empty(), shell, moved) {
        (true, true, _) => opaque(
            finding,
            "a shell runs what it reads from its standard input",
        ),
        (false, _, true) => starting(
            opaque(finding, "its paths are relative to another directory"),
            command,
        ),
        (_, _, _) => starting(finding, command),
    }
}

fn edits(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let files = parsed.operands.iter();
    let finding = CommandFinding::mutating("an editor changes files with other rights");
    files.fold(finding, |finding, file| {
        finding.with(written(file, WriteKind::OperandWrite))
    })
}

/// Analyzes `su -c TEXT user` and `runuser -u user -- command`.
fn su(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = rights(parsed);
    let text = ["-c", "--command", "--session-command"]
        .iter()
        .find_map(|option| parsed.value(option));
    if let Some(text) = text {
        return runs_text(finding, text);
    }
    if parsed.has("-u") || parsed.has("--user") {
        return starting(finding, &parsed.operands);
    }
    opaque(
        finding,
        "a shell runs what it reads from its standard input",
    )
}

/// Adds a command that runs in another root, and marks it as opaque: its program and its paths are
/// not those of this system.
fn elsewhere(parsed: &ParsedArguments<'_>, command: &[&Arg]) -> CommandFinding {
    let finding = worse(
        parsed.finding(OperandKind::None),
        "it runs a command in another root or namespace",
    );
    starting(
        opaque(finding, "its paths are relative to another root"),
        command,
    )
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, each, effects, starts};

    #[test]
    fn other_rights_are_never_harmless() {
        assert_not_read_only(&each(
            "sudo ls; sudo -l; doas ls; su -c ls; su; runuser -u root ls; chroot . ls; unshare \
             ls; nsenter -t 1 -m ls; setpriv ls; prlimit ls; pkexec ls; sudoedit f; sudo -e f",
        ));
    }

    #[test]
    fn what_they_start_is_looked_at() {
        let cases = [
            ("sudo rm x", "rm x"),
            ("sudo -u root -n rm x", "rm x"),
            ("sudo -E FOO=1 rm x", "rm x"),
            ("sudo -- rm x", "rm x"),
            ("sudo -i rm x", "rm x"),
            ("doas -u www rm x", "rm x"),
            ("su -c 'rm x'", "script rm x"),
            ("su root -c 'rm x'", "script rm x"),
            ("su - root --command='rm x'", "script rm x"),
            ("runuser -u root -- rm x", "rm x"),
            ("chroot /jail rm x", "rm x"),
            ("unshare -r --mount-proc rm x", "rm x"),
            ("nsenter -t 1 -m rm x", "rm x"),
            ("setpriv --reuid 1 rm x", "rm x"),
            ("prlimit --nofile=10 rm x", "rm x"),
        ];
        for (line, expected) in cases {
            assert_eq!(starts(line), [expected], "{line}");
        }
        assert_eq!(effects("sudo FOO=1 ls"), ["env FOO"]);
        assert_eq!(effects("sudoedit /etc/hosts"), ["OperandWrite /etc/hosts"]);
        assert_eq!(
            effects("sudo -s"),
            ["opaque a shell runs what it reads from its standard input"]
        );
        assert_eq!(
            effects("su root"),
            ["opaque a shell runs what it reads from its standard input"]
        );
    }
}
