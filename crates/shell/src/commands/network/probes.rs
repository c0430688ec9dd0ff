//! Programs that resolve names, probe hosts or open plain connections.

use super::refused;
use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, runs},
    },
    effect::{CommandFinding, Effect},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&LOOKUPS),
    KnownCommand::Spec(&PROBES),
    KnownCommand::Spec(&CONNECTIONS),
    KnownCommand::Own("socat", socat),
];

static LOOKUPS: CommandSpec = CommandSpec::prints(
    "dig host nslookup drill kdig delv whois resolvectl systemd-resolve avahi-resolve",
    "-46 -b: -c: -f< -k: -p: -q: -t: -x: -h: -W: -R: -N: -m: -avClrTswV",
)
.with_evaluator(lookup);

static PROBES: CommandSpec = CommandSpec::prints(
    "ping ping6 fping arping traceroute traceroute6 tracepath tcptraceroute mtr nmap masscan hping3",
    "-46AaBbDdfhLnOqRrUvVe -c: -i: -I: -l: -m: -M: -p: -Q: -s: -S: -t: -T: -w: -W: -F: -g: -N: -z:",
)
.with_evaluator(probe);

static CONNECTIONS: CommandSpec = CommandSpec::prints(
    "nc netcat ncat telnet rlogin",
    "-46bCDdFhklNnrStUuvZz -I: -i: -M: -m: -O: -P: -p: -q: -s: -T: -V: -W: -w: -X: -x:",
)
.refusing(&[runs(
    "-e: -c: --exec= --sh-exec= --lua-exec=",
    "starts a program for the connection",
)])
.with_evaluator(connect);

fn lookup(parsed: &ParsedArguments<'_>) -> CommandFinding {
    named(parsed, "it looks up names", |text| {
        hosts::authority_host(text.trim_start_matches('@'))
    })
}

fn probe(parsed: &ParsedArguments<'_>) -> CommandFinding {
    named(parsed, "it contacts a host", hosts::authority_host)
}

fn connect(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let listens = parsed.has("-l");
    let why = if listens {
        "it waits for connections"
    } else {
        "it connects to a host"
    };
    named(parsed, why, hosts::authority_host)
}

/// Adds every operand that may be a host. A port, a record type and an option of dig are not hosts.
fn named(
    parsed: &ParsedArguments<'_>,
    why: &'static str,
    host: fn(&str) -> Option<String>,
) -> CommandFinding {
    let finding = refused(parsed).unwrap_or_else(|| CommandFinding::unknown(why));
    let mut finding = parsed.with_effects(finding, OperandKind::Text);
    let words = parsed.operands.iter().filter(|arg| {
        arg.text().is_none_or(|text| {
            let number = text.bytes().all(|byte| byte.is_ascii_digit());
            let kind = text.len() < 7
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
            !number && !kind && !text.starts_with('+') && text != "in"
        })
    });
    finding
        .effects
        .extend(words.flat_map(|arg| hosts::contacts(arg, host)));
    if finding.effects.is_empty() {
        finding.effects.push(Effect::Net(None));
    }
    finding
}

/// socat's addresses name what it connects: `TCP:host:port`, `EXEC:…`, `OPEN:file`.
fn socat(argv: &[Arg]) -> CommandFinding {
    let mut finding = CommandFinding::unknown("it connects two addresses").requiring_exact_rule();
    for arg in argv.get(1..).unwrap_or_default() {
        let Some(text) = arg.text() else {
            finding.effects.push(Effect::Net(None));
            continue;
        };
        let Some((kind, rest)) = text.split_once(':') else {
            continue;
        };
        let kind = kind.to_ascii_uppercase();
        let connects = ["TCP", "UDP", "OPENSSL", "SSL", "SOCKS", "PROXY", "SCTP"];
        let listens = kind.contains("LISTEN");
        if !listens && connects.iter().any(|known| kind.starts_with(known)) {
            finding
                .effects
                .push(Effect::Net(hosts::authority_host(rest)));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::testing::*, effect::RuleCoverage};

    #[test]
    fn hosts_are_named_and_nothing_is_read_only() {
        let cases: [(&str, &[&str]); 14] = [
            ("dig example.com", &["net example.com"]),
            (
                "dig @8.8.8.8 example.com MX +short",
                &["net 8.8.8.8", "net example.com"],
            ),
            ("host example.com", &["net example.com"]),
            (
                "nslookup example.com 1.1.1.1",
                &["net example.com", "net 1.1.1.1"],
            ),
            ("whois example.com", &["net example.com"]),
            ("ping -c 3 example.com", &["net example.com"]),
            ("traceroute example.com", &["net example.com"]),
            ("nmap -p 80 host", &["net host"]),
            ("nc -zv host 80", &["net host"]),
            ("nc -l 80", &["net ?"]),
            (
                "telnet host 25",
                &["net host", "opaque it can hand a line to a shell"],
            ),
            (
                "socat - TCP:host.com:80",
                &["net host.com", "opaque it can hand a line to a shell"],
            ),
            ("ping $x", &["net ?"]),
            ("dig", &["net ?"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
            assert_not_read_only(&[line]);
        }
        for line in [
            "nc -e sh host 80",
            "ncat --sh-exec x host 80",
            "socat - EXEC:sh",
        ] {
            assert_eq!(find(line).coverage, RuleCoverage::Exact, "{line}");
        }
        assert_well_formed(&[LOOKUPS, PROBES, CONNECTIONS]);
    }
}
