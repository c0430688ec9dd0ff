//! Commands that print information about the machine: hardware, memory, mounts, network.

use super::{
    options::{ParsedArguments, written},
    shells::{opaque, worse},
    spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, doubts, writes},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, Effect, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&CommandSpec::prints(
        "free",
        "-bkmghltvwLV -s: -c: --bytes --kilo --mega --giga --tera --peta --kibi --mebi --gibi \
         --tebi --pebi --human --si --lohi --total --committed --seconds= --count= --wide --line \
         --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "uptime",
        "-phsVrc --pretty --since --raw --container --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "lscpu",
        "-abBcJxyhVr -C? -e? -p? -s: --all --online --bytes --caches=? --offline --json \
         --extended=? --parse=? --sysroot= --hex --physical --raw --output-all --hierarchic=? \
         --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "lsblk",
        "-ADJMOPSabdfilmnprstyzhVN -E: -I: -T? -e: -o: -w: -x: --noempty --discard --dedup= \
         --include= --json --merge --output-all --pairs --scsi --tree=? --all --bytes --nodeps \
         --exclude= --fs --ascii --list --perms --noheadings --output= --paths --raw --inverse \
         --topology --width= --sort= --shell --zoned --sysroot= --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints("lsmod", "-h --help")),
    KnownCommand::Spec(&CommandSpec::reads(
        "modinfo",
        "-adlpn0hV -F: -k: -b: --author --description --license --parameters --filename --null \
         --field= --set-version= --basedir= --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "lsmem lsns lsipc lslocks",
        "-JPabnrSsuWlgmqcetyhVip -o: -T: --json --pairs --all --bytes --noheadings --output= \
         --output-all --raw --split= --sysroot= --summary=? --list --task= --notruncate --nowrap \
         --type= --tree= --shmems --queues --semaphores --global --id= --time-format= --creator \
         --export --newline --numeric-perms --time --shell --noinaccessible --pid= --help \
         --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "lsusb",
        "-vtVh -s: -d: -D< --verbose --tree --version --help",
    )),
    KnownCommand::Spec(
        &CommandSpec::prints("lspci", "-mtvkxbDPn -s: -d: -i< -p< -F< --help --version")
            .refusing(&[
                doubts("-q -Q", "asks a name server"),
                doubts("-M -A: -O: -G -H:", "touches the hardware"),
            ])
            .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "lshw",
            "-short -class: -C: -json -html -xml -businfo -sanitize -numeric -quiet -notime \
             -version",
        )
        .style(OptionStyle::Words)
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "dmidecode",
            "-qhV -t: -s: --quiet --type= --string= --help --version",
        )
        .strict(),
    ),
    KnownCommand::Spec(&CommandSpec::prints(
        "findmnt",
        "-smkAabCcDefiJlnPRrUuvyxhV -p? -w: -d: -F< -N: -O: -o: -S: -T: -M: -t: --fstab --mtab \
         --kernel --poll=? --timeout= --all --ascii --bytes --nocanonicalize --canonicalize --df \
         --direction= --evaluate --tab-file< --first-only --invert --json --list --task= \
         --noheadings --options= --output= --output-all --pairs --pseudo --shadowed --submounts \
         --raw --real --source= --target= --tree --mountpoint= --types= --uniq --notruncate \
         --nofsroot --shell --verify --verbose --vfs-all --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "vmstat",
        "-afmnsdDwtyhV -p: -S: --active --forks --slabs --one-header --stats --disk --disk-sum \
         --partition= --unit= --wide --timestamp --no-first --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "iostat mpstat",
            "-cdhkmNstVxyzAnTHu -p? -P: -I: -o: -j: -g: --human --pretty --dec=",
        )
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("pidstat", "-dHhIlRrstUuVvw -C: -G: -p: -T: --human --dec=").strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "mount",
            "-lvhV -t: --show-labels --verbose --types= --help --version",
        )
        .strict()
        .with_evaluator(|parsed| lists(parsed, true, "it mounts a file system")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "swapon",
            "-sv --summary --show=? --noheadings --raw --bytes --verbose -hV --help --version",
        )
        .strict()
        .with_evaluator(|parsed| lists(parsed, true, "it changes where memory is swapped to")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "losetup",
            "-aJln -j: -O: --all --json --list --noheadings --associated= --output= --output-all \
             --raw",
        )
        .strict()
        .with_evaluator(|parsed| lists(parsed, true, "it changes a loop device")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "fdisk sfdisk",
            "-lxJ -o: --list --list-details --output= --bytes",
        )
        .strict()
        .with_evaluator(|parsed| {
            let only_lists = ["-l", "-x", "-J", "--list", "--list-details"]
                .iter()
                .any(|option| parsed.has(option));
            match only_lists {
                true => parsed.finding(OperandKind::Names),
                false => lists(parsed, false, "it changes a partition table"),
            }
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "ldconfig",
            "-pv -C< --print-cache --verbose -V --help --version",
        )
        .strict()
        .with_evaluator(|parsed| {
            lists(
                parsed,
                parsed.has("-p") || parsed.has("--print-cache"),
                "it rebuilds the list of libraries",
            )
        }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "dmesg",
            "-JkPprSuwWxdeTthV -F< -f: -L? -l: -s: --file< --facility= --json --kernel --color=? \
             --level= --nopager --force-prefix --raw --noescape --syslog --buffer-size= \
             --userspace --follow --follow-new --decode --show-delta --reltime --ctime --notime \
             --time-format= --since= --until= --help --version",
        )
        .refusing(&[
            writes("-C -c --clear --read-clear", "forgets the messages"),
            writes(
                "-D -E -n: --console-off --console-on --console-level=",
                "changes what the console shows",
            ),
            doubts("-H --human", "starts a pager"),
        ])
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "sysctl",
            "-aAXbeNnxo -r: --all --deprecated --binary --ignore --names --values --pattern= -hVd \
             --help --version",
        )
        .refusing(&[writes(
            "-w -p? -f? -q --write --load=? --system --quiet",
            "changes a setting of the kernel",
        )])
        .strict()
        .with_evaluator(|parsed| {
            let sets = parsed
                .operands
                .iter()
                .find(|word| word.text().is_some_and(|text| text.contains('=')));
            match (parsed.verdict(), sets) {
                (None, Some(word)) => {
                    CommandFinding::mutating("it changes a setting of the kernel").with_span(word.span)
                }
                _ => parsed.finding(OperandKind::Text),
            }
        }),
    ),
    KnownCommand::Spec(&SS),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "netstat",
        "-rigsMvWnNepocClaFZtuwxSU46 -A: --route --interfaces --groups --statistics --masquerade \
         --verbose --wide --numeric --numeric-hosts --numeric-ports --numeric-users --symbolic \
         --extend --programs --program --timers --continuous --listening --all --fib --cache \
         --context --tcp --udp --raw --unix --inet --inet6 --protocol= --version --help",
        )
        .with_evaluator(|parsed| {
            let local = ["-s", "-i", "-x", "--statistics", "--interfaces", "--unix", "--version", "--help"];
            match local.iter().any(|option| parsed.has(option)) {
                true => parsed.finding(OperandKind::Text),
                false => by_number(parsed, parsed.finding(OperandKind::Text)),
            }
        }),
    ),
    KnownCommand::Spec(&CommandSpec::prints("ifconfig", "-asv").strict().with_evaluator(|parsed| {
        lists(
            parsed,
            parsed.operands.len() < 2,
            "it changes a network interface",
        )
    })),
    KnownCommand::Spec(
        &CommandSpec::prints("route", "-nNveFC46")
            .strict()
            .with_evaluator(|parsed| {
                let asked = parsed.operands.is_empty();
                by_number(parsed, lists(parsed, asked, "it changes the routes"))
            }),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("arp", "-vnae -i: --verbose --numeric --device=")
            .strict()
            .with_evaluator(|parsed| {
                let asked = parsed.operands.is_empty();
                by_number(parsed, lists(parsed, asked, "it asks about or changes an address"))
            }),
    ),
    KnownCommand::Own("ip", ip),
];

/// Analyzes a command that lists if the line requests it and, for most of them, if no operand is
/// present.
fn lists(parsed: &ParsedArguments<'_>, asked: bool, otherwise: &'static str) -> CommandFinding {
    let named = !parsed.operands.is_empty() && !parsed.spec.is_called("ifconfig");
    match parsed.verdict() {
        None if asked && !named => parsed.finding(OperandKind::Text),
        _ => {
            let targets = parsed
                .operands
                .iter()
                .map(|target| written(target, WriteKind::OperandWrite));
            targets.fold(CommandFinding::mutating(otherwise), CommandFinding::with)
        }
    }
}

/// Makes the finding unknown without `-n`, because the command then resolves host names.
fn by_number(parsed: &ParsedArguments<'_>, finding: CommandFinding) -> CommandFinding {
    match ["-n", "--numeric", "--numeric-hosts"]
        .iter()
        .any(|option| parsed.has(option))
    {
        true => finding,
        false => worse(finding, "it asks a name server"),
    }
}

static SS: CommandSpec = CommandSpec::prints(
    "ss",
    "-hVnalompeTisbEZz460tMSudwxHOBQ -f: -A: -F< --help --version --numeric --all --listening \
     --bound-inactive --options --extended --memory --processes --threads --info --tipcinfo \
     --summary --tos --cgroup --bpf --events --context --contexts --ipv4 --ipv6 --packet --tcp \
     --mptcp --sctp --udp --dccp --raw --unix --tipc --vsock --xdp --family= --no-header \
     --no-queues --oneline --inet-sockopt --query= --socket= --filter<",
)
.refusing(&[
    writes("-K --kill", "closes connections"),
    writes("-D> --diag>", "writes into a file"),
    doubts("-r --resolve", "asks a name server"),
    doubts("-N: --net=", "inspects another network namespace"),
])
.strict()
.with_evaluator(|parsed| {
    let finding = parsed.finding(OperandKind::Text);
    let named = parsed.operands.windows(2).find_map(|pair| {
        let host = pair[1]
            .text()
            .filter(|_| pair[0].is("dst") || pair[0].is("src"))?;
        let numbers = host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"./:*".contains(&byte));
        let bracketed = host.starts_with('[') || host.contains("::");
        (!numbers && !bracketed).then(|| host.to_owned())
    });
    match named {
        Some(host) => worse(finding, "it asks a name server").with(Effect::Net(Some(host))),
        None => finding,
    }
});

/// Analyzes `ip [options] object [command …]`. An abbreviation may mean a command that makes a
/// change, so only some are accepted.
fn ip(argv: &[Arg]) -> CommandFinding {
    const QUIET: &str = "-4 -6 -0 -M -B -V -Version -br -brief -s -stats -statistics -d -details \
                         -o -oneline -j -json -p -pretty -h -human -human-readable -iec -c -color \
                         -c=always -c=auto -c=never -t -timestamp -ts -tshort -N -Numeric";
    const OBJECTS: &str = "address addr a link l route r ro neighbour neighbor neigh n rule ru maddress maddr \
             mroute netns tunnel tuntap nexthop ntable vrf netconf tcp_metrics";
    let unread = |arg: &Arg| {
        CommandFinding::unknown("its arguments are not known to be safe").with_span(arg.span)
    };
    // Both `ip netns exec NAME COMMAND` and `ip vrf exec …` may be abbreviated; `ip -b FILE`.
    let runs = |text: &str| {
        (!text.is_empty() && "exec".starts_with(text)) || ["-b", "-batch"].contains(&text)
    };
    let mut given = argv.iter().skip(1);
    if let Some(arg) = given.find(|arg| arg.text().is_some_and(runs)) {
        return opaque(unread(arg), "it runs a command, or those of a file");
    }
    let mut words = argv.get(1..).unwrap_or_default().iter();
    let object = loop {
        let Some(word) = words.next() else {
            return CommandFinding::read_only("it only prints");
        };
        match word.text() {
            Some("-f" | "-family")
                if words.next().is_some_and(|family| family.text().is_some()) => {}
            Some(text)
                if text.starts_with('-') && QUIET.split_whitespace().any(|known| known == text) => {
            }
            Some(text) if OBJECTS.split_whitespace().any(|known| known == text) => break text,
            Some("help") => return CommandFinding::read_only("it only prints"),
            _ => return unread(word),
        }
    };
    let Some(command) = words.next() else {
        return CommandFinding::read_only("it only lists");
    };
    match command.text() {
        Some("show" | "sh" | "list" | "lst" | "ls" | "help") => {
            CommandFinding::read_only("it only lists")
        }
        Some("s") if object.starts_with(['a', 'r']) => CommandFinding::read_only("it only lists"),
        Some("get") if object.starts_with("ro") || object == "r" => {
            CommandFinding::read_only("it only asks the kernel")
        }
        Some(
            "add" | "del" | "delete" | "set" | "change" | "replace" | "flush" | "append"
            | "restore",
        ) => CommandFinding::mutating("it changes the network").with_span(command.span),
        _ => unread(command),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, each, effects, verdict,
    };

    #[test]
    fn telling_about_the_machine_is_harmless() {
        assert_read_only(&each(
            "free -h; free -m; uptime -p; lscpu; lscpu -e=cpu,node; lsblk -f; lsblk -o NAME,SIZE; \
             lsmod; lsusb -t; lspci -nn; lspci -v; lshw -short; lshw -class disk; findmnt /; \
             findmnt -t ext4; vmstat 1 2; iostat -x 1 1; mpstat -P ALL; pidstat -p 1; mount; \
             mount -l; mount -t ext4; swapon --show; swapon -s; losetup -a; fdisk -l; fdisk -l \
             /dev/sda; ldconfig -p; dmesg; dmesg -T; dmesg -l err",
        ));
        assert_not_read_only(&each(
            "lspci -q; lspci -M; lshw -dump f; lshw $x; pidstat -e ls; mount -a; mount /dev/sda1 \
             /mnt; mount -o remount,rw /; swapon -a; swapon f; losetup -d /dev/loop0; losetup f; \
             fdisk /dev/sda; ldconfig; ldconfig d; dmesg -c; dmesg -C; dmesg -n 1; dmesg -H; \
             iostat $x; dmidecode --dump-bin f",
        ));
        assert_eq!(
            effects("mount /dev/sda1 /mnt"),
            ["OperandWrite /dev/sda1", "OperandWrite /mnt"]
        );
    }

    #[test]
    fn the_kernel_and_the_network_may_be_asked() {
        assert_read_only(&each(
            "sysctl -a; sysctl kernel.ostype; sysctl -n kernel.hostname; ss -tlnp; ss -s; ss -tan \
             state established; ss -tn dst 10.0.0.1; ss -x; netstat -tlnp; netstat -an; netstat \
             -s; netstat -i; ifconfig; ifconfig -a; ifconfig eth0; route -n; arp -n; ip addr; ip \
             a; ip a show lo; ip -br link; ip route; ip route show default; ip -4 addr show; ip \
             r; ip a s lo; ip route get 1.1.1.1; ip -s link show eth0; ip -j addr; ip neigh; ip \
             netns; ip netns list",
        ));
        assert_not_read_only(&each(
            "sysctl -w a=1; sysctl a=1; sysctl -p; sysctl --system; sysctl $x; ss -K dst \
             10.0.0.1; ss -D out; ss -tD out; ss --diag=out; ss -r; ss -tn dst example.com; \
             ifconfig eth0 down; route add default x; arp -d x; arp example.com; ip link set eth0 \
             down; ip link s eth0 down; ip addr add 10.0.0.1/8 dev lo; ip addr flush dev eth0; ip \
             -batch f; ip -b f; ip netns exec x ls; ip -n x addr; ip $x; ip link add dummy0; ip \
             route del default; ip xfrm state; ip link $x; arp -a; netstat -t; netstat -r; route",
        ));
        assert_eq!(effects("ss -tn dst example.com"), ["net example.com"]);
        assert_eq!(effects("ss -D out"), ["OptionWrite out"]);
        assert_eq!(
            verdict("ip link set lo down"),
            "mutating: it changes the network"
        );
    }
}
