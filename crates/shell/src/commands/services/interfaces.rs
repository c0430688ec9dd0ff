//! Network interfaces, routes and sockets of this machine.

use crate::{
    commands::{
        options::Parsed,
        spec::{Entry, Operands, Spec, Style, runs, writes},
    },
    effect::{Finding, Verdict},
};

pub(in crate::commands) const ENTRIES: &[Entry] = &[
    Entry::Spec(&IP),
    Entry::Spec(&IFCONFIG),
    Entry::Spec(&NETSTAT),
    Entry::Spec(&ROUTE),
    Entry::Spec(&ARP),
];

static IP: Spec = Spec::prints(
    "ip",
    "-V -Version -s -stats -statistics -d -details -h -human -human-readable -iec -j -json -p -pretty \
     -f: -family: -4 -6 -0 -M -B -br -brief -o -oneline -t -timestamp -ts -tshort -N -Numeric -c \
     -color --color --brief --json --pretty --details --statistics",
)
.refusing(&[
    runs("-b: -batch: -force", "runs commands from a file"),
    runs("-n: -netns: -a -all", "works in another network"),
    runs("-r -resolve", "looks up names"),
])
.style(Style::Words)
.strict()
.judged(ip);

/// What can be shown, by its full name and the short ones people use.
const OBJECTS: &str = "a addr address l li link r ro route ru rule n neigh neighbor neighbour maddr \
                       maddress ntable tunnel tuntap nexthop netconf mptcp";

fn ip(parsed: &Parsed<'_>) -> Finding {
    let finding = parsed.finding(Operands::Text);
    if finding.verdict != Verdict::ReadOnly {
        return finding;
    }
    let word = |at: usize| parsed.operands.get(at).and_then(|arg| arg.text());
    let Some(object) = word(0) else {
        return finding;
    };
    let shown = OBJECTS
        .split_ascii_whitespace()
        .any(|listed| listed == object);
    let harmless = match word(1) {
        // `ip link s` would set.
        Some("s") => {
            object.starts_with('a') || (object.starts_with('r') && !object.starts_with("ru"))
        }
        Some("show" | "sh" | "list" | "ls" | "lst" | "help") => true,
        Some("get") => object.starts_with('r') && !object.starts_with("ru"),
        Some(_) => false,
        None => true,
    };
    match (object, harmless) {
        ("help", _) => finding,
        ("netns", _) if matches!(word(1), None | Some("list" | "ls")) => finding,
        (_, true) if shown => finding,
        (_, false) if shown => Finding::mutating("it changes the network"),
        _ => Finding::unknown("what it does is not known"),
    }
}

static IFCONFIG: Spec = Spec::prints("ifconfig", "-asvludmrC")
    .strict()
    .judged(ifconfig);

fn ifconfig(parsed: &Parsed<'_>) -> Finding {
    match parsed.operands.get(1) {
        Some(_) if parsed.verdict().is_none() => Finding::mutating("it changes an interface"),
        _ => parsed.finding(Operands::Text),
    }
}

static NETSTAT: Spec = Spec::prints(
    "netstat",
    "-rigsMvWnNepocCFlatuwxSUVhZ46bLRm -A: -I: -f: --route --interfaces=? --groups --statistics \
     --masquerade --verbose --wide --numeric --numeric-hosts --numeric-ports --numeric-users --symbolic \
     --extend --programs --program --timers --continuous --listening --all --fib --cache --context \
     --tcp --udp --udplite --sctp --raw --unix --inet --inet6 --version --help",
)
.strict()
.judged(numeric);

static ROUTE: Spec = Spec::prints(
    "route",
    "-nveFC46 --numeric --verbose --extend --version --help",
)
.refusing(&[writes("-f", "deletes routes")])
.strict()
.judged(route);

static ARP: Spec = Spec::prints(
    "arp",
    "-anev -i: -H: --all --numeric --verbose --device= --version",
)
.refusing(&[
    writes("-d -s --delete --set", "changes the table"),
    writes("-f: --file=", "changes the table"),
])
.strict()
.judged(arp);

/// Names of hosts are looked up, unless numbers are asked for or no hosts are shown.
fn numeric(parsed: &Parsed<'_>) -> Finding {
    let asked = [
        "-n",
        "--numeric",
        "--numeric-hosts",
        "-i",
        "--interfaces",
        "-s",
        "--statistics",
        "-g",
        "--groups",
        "-x",
        "--unix",
        "-V",
        "--version",
        "-h",
        "--help",
        "-I",
    ];
    let finding = parsed.finding(Operands::Text);
    if finding.verdict == Verdict::ReadOnly && !asked.iter().any(|name| parsed.has(name)) {
        return Finding::unknown("it looks up names of hosts");
    }
    finding
}

fn route(parsed: &Parsed<'_>) -> Finding {
    match parsed.operands.first() {
        Some(_) if parsed.verdict().is_none() => Finding::mutating("it changes routes"),
        _ => numeric(parsed),
    }
}

fn arp(parsed: &Parsed<'_>) -> Finding {
    numeric(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn showing_is_read_only() {
        assert_read_only(&[
            "ip a",
            "ip addr",
            "ip addr show dev eth0",
            "ip -4 -br addr show",
            "ip -br link",
            "ip a s",
            "ip route",
            "ip r",
            "ip route get 1.1.1.1",
            "ip -s -j link show eth0",
            "ip neigh",
            "ip rule list",
            "ip netns list",
            "ifconfig",
            "ifconfig -a",
            "ifconfig eth0",
            "netstat -tulpn",
            "netstat -an",
            "netstat -rn",
            "netstat -i",
            "netstat --tcp --numeric",
            "route -n",
            "arp -an",
        ]);
    }

    #[test]
    fn changing_and_looking_up_is_not() {
        assert_not_read_only(&[
            "ip link set eth0 down",
            "ip link s eth0 down",
            "ip addr add 1.1.1.1 dev x",
            "ip route del default",
            "ip netns exec x ls",
            "ip -b file",
            "ip -n x addr",
            "ip -r route",
            "ip xfrm state",
            "ip addr $x",
            "ifconfig eth0 up",
            "ifconfig eth0 1.2.3.4",
            "netstat",
            "netstat -tl",
            "route",
            "route -n add x",
            "arp -a",
            "arp -d x",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        assert_well_formed(&[IFCONFIG, NETSTAT, ROUTE, ARP]);
    }
}
