//! Package managers of the operating system: installed packages and local package lists.

use crate::{
    arg::Arg,
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, runs},
        verbs::{self, VerbProgram, change, unsure, verb},
    },
    effect::{CommandFinding, Effect},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&DPKG),
    KnownCommand::Spec(&DPKG_QUERY),
    KnownCommand::Spec(&DPKG_DEB),
    KnownCommand::Own("apt", apt),
    KnownCommand::Own("apt-get", apt_get),
    KnownCommand::Own("apt-cache", apt_cache),
    KnownCommand::Own("apt-mark", apt_mark),
    KnownCommand::Spec(&RPM),
    KnownCommand::Own("dnf yum microdnf zypper", dnf),
    KnownCommand::Own("brew", brew),
    KnownCommand::Own("pacman", pacman),
    KnownCommand::Own("snap flatpak", snap),
    KnownCommand::Own("apk", apk),
];

const INSTALLS: &str = "it changes the installed packages";

static DPKG: CommandSpec = CommandSpec::prints(
    "dpkg",
    "-sLlSpC -c< -I< -f< --status --print-avail --listfiles --list --search --audit \
     --get-selections --yet-to-unpack --print-architecture --print-foreign-architectures \
     --compare-versions --help --version --no-pager --contents< --info< --field< --force-help \
     --assert-help --robot",
)
.style(OptionStyle::Whole)
.strict()
.with_evaluator(dpkg);

fn dpkg(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mutes = ["--no-pager", "--robot"];
    let asks = parsed
        .options
        .iter()
        .any(|given| !mutes.contains(&given.name));
    match parsed.verdict() {
        None if asks => parsed.finding(OperandKind::Text),
        _ => parsed.with_effects(CommandFinding::mutating(INSTALLS), OperandKind::Text),
    }
}

static DPKG_QUERY: CommandSpec = CommandSpec::prints(
    "dpkg-query",
    "-sLlSpWc -f: --status --print-avail --listfiles --list --show --search --control-list \
     --control-show --control-path --help --version --no-pager --load-avail --showformat=",
)
.style(OptionStyle::Whole)
.strict();

static DPKG_DEB: CommandSpec = CommandSpec::prints(
    "dpkg-deb",
    "-cIfW --contents --info --field --show --showformat= --help --version --fsys-tarfile \
     --ctrl-tarfile",
)
.style(OptionStyle::Whole)
.strict()
.with_evaluator(dpkg_deb);

fn dpkg_deb(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match parsed.verdict() {
        None => parsed.finding(OperandKind::Files),
        Some(_) => CommandFinding::mutating("it packs or unpacks files"),
    }
}

/// Options that every verb of apt accepts.
macro_rules! apt {
    () => {
        " -qaihv --quiet --all-versions --installed --upgradable --upgradeable --manual-installed \
         --names-only --full --recurse --important --no-recommends --no-suggests --no-enhances \
         --no-pre-depends --no-depends --no-conflicts --no-breaks --no-replaces --help --version -n \
         --no-all-versions --verbose -V "
    };
}

const APT_REFUSED: &[UnsafeOption] = &[runs(
    "-o: -c: --option= --config-file= -t: --target-release= --default-release= -p: -s: \
     --pkg-cache= --src-cache=",
    "injects configuration",
)];

const fn local(names: &'static str) -> CommandSpec {
    verb(names, apt!()).refusing(APT_REFUSED)
}

const APT: VerbProgram = VerbProgram {
    before: CommandSpec::prints("apt", apt!())
        .refusing(APT_REFUSED)
        .style(OptionStyle::Posix)
        .strict(),
    verbs: &[local("list show policy depends rdepends showsrc help")],
    others: &[
        unsure("changelog moo", "it contacts a host").contacting(),
        unsure("search", "it queries an index of packages"),
        unsure("edit-sources", "it starts an editor"),
        change("update", "it fetches the lists of packages").contacting(),
        change("download source", "it downloads packages").contacting(),
        change(
            "install reinstall remove purge autoremove autopurge upgrade full-upgrade dist-upgrade \
             satisfy build-dep clean autoclean dselect-upgrade check",
            INSTALLS,
        )
        .contacting(),
    ],
    unknown: "what this verb does is not known",
};

const APT_GET: VerbProgram = VerbProgram {
    verbs: &[local("help indextargets")],
    ..APT
};

const APT_CACHE: VerbProgram = VerbProgram {
    verbs: &[local(
        "policy show search depends rdepends pkgnames madison stats showpkg showsrc dump dumpavail unmet \
         dotty xvcg help",
    )],
    others: &[change("gencaches", "it writes the cache")],
    ..APT
};

const APT_MARK: VerbProgram = VerbProgram {
    verbs: &[local(
        "showauto showmanual showhold showinstall showremove showpurge help",
    )],
    others: &[change(
        "auto manual hold unhold minimize-manual install remove purge",
        "it changes marks",
    )],
    ..APT
};

fn apt(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&APT, argv)
}

fn apt_get(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&APT_GET, argv)
}

fn apt_cache(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&APT_CACHE, argv)
}

fn apt_mark(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&APT_MARK, argv)
}

static RPM: CommandSpec = CommandSpec::prints(
    "rpm",
    "-qailfpcdsRv --query --all --info --list --file --package --configfiles --docfiles --state \
     --requires --provides --conflicts --obsoletes --recommends --suggests --changelog --changes \
     --scripts --triggers --filetriggers --last --whatprovides --whatrequires --whatrecommends \
     --whatconflicts --group= --qf= --queryformat= --nodigest --nosignature --version --help --verbose \
     --showrc",
)
.style(OptionStyle::Whole)
.strict()
.with_evaluator(rpm);

fn rpm(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let asks = ["-q", "--query", "--version", "--help", "--showrc"];
    match parsed.verdict() {
        Some(finding) => finding,
        // `-i` alone installs.
        None if !asks.iter().any(|name| parsed.has(name)) => CommandFinding::mutating(INSTALLS),
        None => {
            let remote = parsed.operands.iter();
            let mut remote =
                remote.filter(|arg| arg.text().is_none_or(|text| text.contains("://")));
            match remote.next() {
                Some(_) => CommandFinding::unknown("it fetches a package").with(Effect::Net(None)),
                None if parsed.has("-p") || parsed.has("--package") || parsed.has("-f") => {
                    parsed.finding(OperandKind::Files)
                }
                None => parsed.finding(OperandKind::Text),
            }
        }
    }
}

fn only(argv: &[Arg], words: &[&str]) -> bool {
    matches!(argv, [_, only] if words.iter().any(|word| only.is(word)))
}

fn first(argv: &[Arg]) -> &str {
    argv.get(1).and_then(Arg::text).unwrap_or_default()
}

fn dnf(argv: &[Arg]) -> CommandFinding {
    if only(argv, &["--version", "--help"]) {
        return CommandFinding::read_only("it only prints");
    }
    let asks = [
        "list",
        "info",
        "search",
        "repolist",
        "repoquery",
        "provides",
        "history",
        "check-update",
        "se",
        "if",
    ];
    if asks.contains(&first(argv)) {
        return CommandFinding::unknown("it may fetch the lists of packages")
            .with(Effect::Net(None));
    }
    CommandFinding::mutating(INSTALLS).with(Effect::Net(None))
}

const BREW: VerbProgram = VerbProgram {
    before: CommandSpec::prints(
        "brew",
        "-vh --version --help --prefix --cellar --repository --caskroom --cache --env",
    )
    .style(OptionStyle::Posix)
    .strict(),
    verbs: &[
        verb(
            "list ls leaves commands config",
            "-1lrtv --formula --formulae --cask --casks --full-name --versions --multiple --pinned \
             --installed-on-request --installed-as-dependency --quiet --include-aliases --help",
        ),
    ],
    others: &[
        unsure("info search outdated deps uses desc doctor home livecheck", "it may update itself first")
            .contacting(),
        change("update upgrade install reinstall uninstall remove rm cleanup autoremove tap untap link \
                unlink pin unpin services bundle", INSTALLS).contacting(),
    ],
    unknown: "what this verb does is not known",
};

fn brew(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&BREW, argv)
}

/// The first option of pacman selects the operation, and its letters modify it.
fn pacman(argv: &[Arg]) -> CommandFinding {
    let harmless = |arg: &Arg| {
        let Some(text) = arg.text() else { return false };
        let letters =
            |allowed: &str, rest: &str| rest.chars().all(|letter| allowed.contains(letter));
        match text {
            "--query" | "--version" | "--help" | "--info" | "--list" | "--owns" | "--search"
            | "--explicit" | "--foreign" | "--native" | "--deps" | "--unrequired" | "--quiet"
            | "--groups" | "--check" | "--upgrades" | "--changelog" => true,
            _ => match text.strip_prefix('-') {
                None => true,
                Some("V" | "h" | "T") => true,
                Some(letter) if letter.starts_with('Q') => {
                    letters("ilosemntdukqcgpv", &letter[1..])
                }
                // Searching and showing use the local lists. With `-y`, pacman downloads the lists.
                Some(letter) if letter.starts_with('S') => {
                    letter.len() > 1 && letters("siglq", &letter[1..])
                }
                Some(letter) if letter.starts_with('F') => letters("lxq", &letter[1..]),
                Some(_) => false,
            },
        }
    };
    let operation = first(argv);
    let asks = [
        "-Q",
        "-S",
        "-F",
        "-T",
        "-V",
        "-h",
        "--query",
        "--version",
        "--help",
    ];
    let known = asks.iter().any(|asks| operation.starts_with(asks));
    if known && argv[1..].iter().all(harmless) {
        return CommandFinding::read_only("it only reads");
    }
    CommandFinding::mutating(INSTALLS)
}

fn snap(argv: &[Arg]) -> CommandFinding {
    let plain = argv.iter().all(|arg| arg.text().is_some());
    match first(argv) {
        "list" | "version" | "--version" | "connections" | "services" | "changes" | "help"
        | "--help"
            if plain =>
        {
            CommandFinding::read_only("it only reads")
        }
        "info" | "search" | "find" | "remote-info" | "remote-ls" => {
            CommandFinding::unknown("it queries a store").with(Effect::Net(None))
        }
        "run" | "enter" => CommandFinding::unknown("it runs a program"),
        _ => CommandFinding::mutating(INSTALLS).with(Effect::Net(None)),
    }
}

const APK: VerbProgram = VerbProgram {
    before: CommandSpec::prints(
        "apk",
        "-Vhqv --version --help --quiet --verbose --print-arch",
    )
    .style(OptionStyle::Posix)
    .strict(),
    verbs: &[
        verb(
            "info",
            "-aLrRdetPpswvq -W: --all --contents --rdepends --depends --description --installed \
             --license --provides --replaces --size --triggers --webpage --who-owns= --quiet --verbose \
             --help",
        ),
        verb("stats version audit", "--help"),
    ],
    others: &[
        unsure(
            "list search policy dot fetch",
            "it may fetch the lists of packages",
        )
        .contacting(),
        change("add del fix update upgrade cache index", INSTALLS).contacting(),
    ],
    unknown: "what this verb does is not known",
};

fn apk(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&APK, argv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn inventories_are_read_only() {
        assert_read_only(&[
            "dpkg -l",
            "dpkg -l 'lib*'",
            "dpkg -L bash",
            "dpkg -s bash",
            "dpkg -S /bin/ls",
            "dpkg --print-architecture",
            "dpkg -c x.deb",
            "dpkg --compare-versions 1 lt 2",
            "dpkg-query -W -f '${Package}' bash",
            "dpkg-deb -c x.deb",
            "apt list --installed",
            "apt show bash",
            "apt-cache policy bash",
            "apt-cache search --names-only x",
            "apt-mark showmanual",
            "apt --version",
            "rpm -qa",
            "rpm -qi bash",
            "rpm -ql bash",
            "rpm -qf /bin/ls",
            "rpm -q --qf x bash",
            "rpm -qpl x.rpm",
            "dnf --version",
            "brew list --versions",
            "brew --prefix",
            "brew leaves",
            "pacman -Q",
            "pacman -Qi bash",
            "pacman -Ss x",
            "pacman -Qo /bin/ls",
            "snap list",
            "apk info -L bash",
        ]);
    }

    #[test]
    fn installing_fetching_and_injecting_are_not() {
        assert_not_read_only(&[
            "dpkg -i x.deb",
            "dpkg -r x",
            "dpkg --configure -a",
            "dpkg --admindir=x -l",
            "dpkg --pre-invoke=x -l",
            "dpkg --root=/x -l",
            "dpkg",
            "dpkg -l $x",
            "dpkg-deb -x a b",
            "dpkg-deb -b a",
            "apt install x",
            "apt update",
            "apt search x",
            "apt upgrade",
            "apt list -o Dir::Bin=x",
            "apt -o a=b list",
            "apt-get install -y x",
            "apt-get -s install x",
            "apt-get update",
            "apt-cache -c f show x",
            "apt-mark hold x",
            "apt changelog x",
            "rpm -i x.rpm",
            "rpm -U x.rpm",
            "rpm -e x",
            "rpm -q --eval x",
            "rpm --eval '%(x)'",
            "rpm -E x",
            "rpm -qp https://example.com/x.rpm",
            "rpm --dbpath x -qa",
            "rpm -V bash",
            "rpm",
            "dnf install x",
            "dnf list",
            "brew install x",
            "brew info x",
            "brew outdated",
            "pacman -S x",
            "pacman -Sy",
            "pacman -Syu",
            "pacman -Ssy x",
            "pacman -R x",
            "pacman -Q --dbpath x",
            "pacman",
            "snap install x",
            "snap info x",
            "apk add x",
            "apk search x",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        for program in [&APT, &APT_GET, &APT_CACHE, &APT_MARK, &BREW, &APK] {
            program.assert_well_formed();
        }
        assert_well_formed(&[DPKG, DPKG_QUERY, DPKG_DEB, RPM]);
    }
}
