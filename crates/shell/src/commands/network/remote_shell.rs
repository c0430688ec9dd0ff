//! ssh and programs that use it.

use super::{refused, write};
use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::{self, ParsedArguments},
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs},
    },
    effect::{CommandFinding, Effect, WriteKind},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&SSH),
    KnownCommand::Spec(&SCP),
    KnownCommand::Spec(&SFTP),
    KnownCommand::Spec(&AROUND),
    KnownCommand::Spec(&KEYGEN),
];

const REFUSED: &[UnsafeOption] = &[runs(
    "-o: -F: -S: -D: -E: -I: -w:",
    "injects configuration or starts a program",
)];

/// The first operand is the host; the other operands are the command that runs there.
static SSH: CommandSpec = CommandSpec::prints(
    "ssh slogin mosh autossh",
    "-1246AaCfGgKkMNnqsTtVvXxYy -B: -b: -c: -e: -i< -J: -L: -l: -m: -O: -P: -p: -Q: -R: -W:",
)
.refusing(&[runs(
    "-o: -F: -S: -D: -E: -I: -w:",
    "injects configuration or opens a tunnel",
)])
.style(OptionStyle::Posix)
.with_evaluator(ssh);

fn ssh(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding =
        refused(parsed).unwrap_or_else(|| CommandFinding::unknown("it runs commands on a host"));
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    let jumps = parsed.options.iter().filter(|given| given.name == "-J");
    let jumps = jumps.filter_map(|given| given.value.as_ref());
    let first = parsed.operands.first().copied();
    let all = first.into_iter().chain(jumps);
    finding
        .effects
        .extend(all.flat_map(|host| hosts::contacts(host, login_host)));
    if parsed.operands.is_empty() {
        finding.effects.push(Effect::Net(None));
    }
    finding
}

fn login_host(text: &str) -> Option<String> {
    hosts::url_host(text).or_else(|| hosts::authority_host(text))
}

static SCP: CommandSpec = CommandSpec::prints("scp", "-346ABCOpqRrTv -c: -i< -J: -l: -P: -X:")
    .refusing(REFUSED)
    .with_evaluator(scp);

fn scp(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut effects = Vec::new();
    let mut sends = false;
    if let Some((target, sources)) = parsed.operands.split_last() {
        for source in sources {
            effects.push(match elsewhere(source) {
                Some(contact) => contact,
                None => options::tree(source),
            });
        }
        match elsewhere(target) {
            Some(contact) => {
                sends = true;
                effects.push(contact);
            }
            None => effects.push(write(target, WriteKind::Tree)),
        }
    }
    let finding = refused(parsed).unwrap_or_else(|| {
        if sends {
            CommandFinding::mutating("it sends files to a host")
        } else {
            CommandFinding::mutating("it copies files from a host")
        }
    });
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    finding.effects.extend(effects);
    finding
}

fn elsewhere(arg: &Arg) -> Option<Effect> {
    let Some(text) = arg.text() else {
        return Some(Effect::Net(None));
    };
    let before = text.split(':').next().unwrap_or_default();
    let remote = text.contains("://") || (text.contains(':') && !before.contains('/'));
    remote.then(|| Effect::Net(hosts::remote_path_host(text)))
}

static SFTP: CommandSpec = CommandSpec::prints(
    "sftp ftp lftp tftp ncftp",
    "-46AaCfNpqrvdegint -B: -b< -c: -i< -J: -l: -P: -R: -X: -u:",
)
.refusing(&[runs(
    "-o: -F: -S: -D: -s:",
    "injects configuration or starts a program",
)])
.with_evaluator(sftp);

fn sftp(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = refused(parsed)
        .unwrap_or_else(|| CommandFinding::unknown("it exchanges files with a host"));
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    let contacts = match parsed.operands.first() {
        Some(host) => hosts::contacts(host, login_host),
        None => vec![Effect::Net(None)],
    };
    finding.effects.extend(contacts);
    finding
}

static AROUND: CommandSpec =
    CommandSpec::prints("ssh-copy-id ssh-keyscan sshfs", "").with_evaluator(around);

fn around(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::unknown("it contacts a host");
    let named = parsed.operands.iter();
    let named = named.flat_map(|host| hosts::contacts(host, login_host));
    finding.effects.extend(named);
    finding
}

/// `-l` shows a fingerprint; all other modes create or change keys.
static KEYGEN: CommandSpec = CommandSpec::prints("ssh-keygen", "-lv -f< -E:")
    .strict()
    .with_evaluator(keygen);

fn keygen(parsed: &ParsedArguments<'_>) -> CommandFinding {
    if parsed.verdict().is_none() && parsed.has("-l") {
        return parsed.finding(OperandKind::Text);
    }
    let file = parsed
        .value("-f")
        .map(|file| write(file, WriteKind::OperandWrite));
    let mut finding = CommandFinding::mutating("it makes or changes keys");
    finding.effects.extend(file);
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::RuleCoverage};

    #[test]
    fn nothing_is_read_only_and_hosts_are_named() {
        let cases: [(&str, &[&str]); 12] = [
            ("ssh me@Host.com ls", &["net host.com"]),
            ("ssh -p 22 -i key host ls -la", &["read key", "net host"]),
            ("ssh -J jump.com host", &["net host", "net jump.com"]),
            ("ssh ssh://me@h.com:22", &["net h.com"]),
            ("ssh -V", &["net ?"]),
            ("ssh $x ls", &["net ?"]),
            ("scp a b host:c", &["tree a", "tree b", "net host"]),
            ("scp -r host:a .", &["net host", "Tree ."]),
            ("scp ./a:b host:", &["tree ./a:b", "net host"]),
            (
                "sftp me@host.com",
                &["net host.com", "opaque it can hand a line to a shell"],
            ),
            (
                "ftp host.com",
                &["net host.com", "opaque it can hand a line to a shell"],
            ),
            ("ssh-keyscan host.com", &["net host.com"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
            assert_not_read_only(&[line]);
        }
        for line in [
            "ssh -o ProxyCommand=x host",
            "ssh -F f host",
            "scp -S x a host:",
            "sftp -D x host",
        ] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
        assert_well_formed(&[SSH, SCP, SFTP, KEYGEN]);
        assert_read_only(&["ssh-keygen -l -f key.pub", "ssh-keygen -lf key.pub -E md5"]);
        assert_not_read_only(&[
            "ssh-keygen -t ed25519 -f key",
            "ssh-keygen -R host",
            "ssh-keygen",
        ]);
    }
}
