//! Commands that print their arguments or information about the machine, and read no file that the
//! line names.

use super::{
    options::{ParsedArguments, evaluate, names},
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, doubts, runs, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("expr yes sleep factor", |_| {
        CommandFinding::read_only("it only prints")
    }),
    KnownCommand::Spec(&CommandSpec::prints(
        "seq",
        "-f: -s: -t: -w --format= --separator= --terminator= --equal-width --help --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "numfmt",
        "-d: -z --debug --delimiter= --field= --format= --from= --from-unit= --grouping \
         --header=? --invalid= --padding= --round= --suffix= --to= --to-unit= --unit-separator= \
         --zero-terminated --help --version -#",
    )),
    KnownCommand::Spec(&CommandSpec::prints("jot", "-cnr -b: -w: -s: -p:")),
    KnownCommand::Spec(&CommandSpec::prints(
        "cal ncal",
        "-31hjyJeopwSMCNbsYvV -A: -B: -d: -m: -n: -H: -W: -# --one --three --year --months= \
         --monday --sunday --julian --week=? --color=? --help --version",
    )),
    KnownCommand::Own("date", date),
    KnownCommand::Spec(&CommandSpec::prints(
        "uname",
        "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine \
         --processor --hardware-platform --operating-system --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "arch whoami groups logname hostid users clear uuidgen mcookie runlevel",
        "-hVrx --help --version --random",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "nproc",
        "--all --ignore= --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "tty",
        "-s --silent --quiet --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "id",
        "-aZgGnruzpPF --context --group --groups --name --real --user --zero --help --version",
    )),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "who",
            "-abdHlmpqrstTuw --all --boot --count --dead --heading --ips --login --message --mesg \
             --process --runlevel --short --time --users --writable --help --version",
        )
        // `who am i` names no files.
        .with_evaluator(|parsed| {
            parsed.finding(match parsed.operands.len() {
                2 => OperandKind::Text,
                _ => OperandKind::Files,
            })
        }),
    ),
    KnownCommand::Spec(&CommandSpec::prints(
        "w",
        "-husfoicpV --no-header --no-current --short --from --old-style --ip-addr --pids \
         --container --terminal --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "last lastb",
        "-aFiRwxhV -f< -n: -s: -t: -p: --hostlast --file< --fulltimes --ip --limit= --nohostname \
         --since= --until= --present= --fullnames --system --time-format= --tab-separated --help \
         --version -#",
    )),
    KnownCommand::Spec(
        &CommandSpec::prints("lastlog", "-b: -h -t: -u: --before= --time= --user= --help")
            .refusing(&[writes("-C -S --clear --set", "changes the log")])
            .strict(),
    ),
    KnownCommand::Spec(&CommandSpec::prints("pinky", "-lbhpfwiqs --help --version")),
    KnownCommand::Spec(&CommandSpec::prints(
        "printenv",
        "-0 --null --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "locale",
        "-amckvV --all-locales --charmaps --category-name --keyword-name --verbose --help --usage \
         --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints("getconf", "-a --help --version").strict()),
    KnownCommand::Spec(&CommandSpec::reads(
        "dircolors",
        "-bcp --sh --bourne-shell --csh --c-shell --print-database --print-ls-colors --help \
         --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints(
        "lsb_release",
        "-vidrcash --version --id --description --release --codename --all --short --help",
    )),
    KnownCommand::Spec(&CommandSpec::prints("sensors", "-uAjfhvn --help --version").strict()),
    KnownCommand::Spec(&HOSTNAME),
    KnownCommand::Spec(
        &CommandSpec::prints("dnsdomainname domainname nisdomainname ypdomainname", "")
            .strict()
            .with_evaluator(|parsed| sets(parsed, "it sets a name of the machine")),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "getent",
            "-Ai --no-addrconfig --no-idn --help --usage --version -V",
        )
        .strict()
        .with_evaluator(getent),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("tput", "-T: -Vx")
            .strict()
            .with_evaluator(tput),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("stty", "-ag --all --save -F< --file< --help --version")
            .strict()
            .with_evaluator(stty),
    ),
    KnownCommand::Spec(&MAN),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "apropos whatis",
            "-dvrwealV -s: -m: -L: --debug --verbose --regex --wildcard --exact --and --long \
             --sections= --section= --systems= --locale= --help --usage --version",
        )
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::prints("resize tset reset setterm", "")
            .strict()
            .with_evaluator(|parsed| {
                worse(
                    parsed.finding(OperandKind::Text),
                    "it sets up the terminal, with a program if the terminal has one",
                )
            }),
    ),
];

static HOSTNAME: CommandSpec = CommandSpec::prints(
    "hostname",
    "-adfiIsvV --alias --domain --fqdn --long --ip-address --all-ip-addresses --short --verbose \
     --help --version",
)
.refusing(&[
    writes("-F< --file<", "sets the name of the machine"),
    writes("-b --boot", "sets the name of the machine"),
    doubts("-A --all-fqdns", "asks a name server"),
])
.strict()
.with_evaluator(|parsed| sets(parsed, "it sets the name of the machine"));

static MAN: CommandSpec = CommandSpec::prints(
    "man",
    "-fkKwWaiIdDV7 -s: -S: -e: -L: -E: -R: --whatis --apropos --global-apropos --where --path \
     --location --where-cat --location-cat --all --ignore-case --match-case --regex --wildcard \
     --names-only --no-subpages --sections= --extension= --locale= --encoding= --recode= --ascii \
     --no-hyphenation --nh --no-justification --nj --debug --default --warnings=? --help --usage \
     --version",
)
.refusing(&[
    runs("-P: --pager=", "starts a program"),
    runs("-H? --html=?", "starts a browser"),
    runs("-X? --gxditview=?", "starts a program"),
    runs("-C< --config-file<", "reads another configuration"),
    doubts("-M: --manpath=", "reads pages from another place"),
    doubts("-l --local-file", "formats a file"),
    doubts("-p: --preprocessor=", "starts programs"),
    doubts(
        "-t -Z -T? --troff --ditroff --troff-device=?",
        "formats for a printer",
    ),
    doubts("-r: --prompt=", "is for a pager"),
    writes("-u -c --update --catman", "updates the stored pages"),
])
.strict()
.with_evaluator(|parsed| {
    let finding = parsed.finding(OperandKind::Text);
    match parsed
        .operands
        .iter()
        .find(|page| page.text().is_some_and(|text| text.contains('/')))
    {
        Some(page) => worse(finding, "it formats a file").with_span(page.span),
        None => finding,
    }
});

/// Analyzes a command that prints without an operand and changes a setting with one.
fn sets(parsed: &ParsedArguments<'_>, what: &'static str) -> CommandFinding {
    match (parsed.verdict(), parsed.operands.first()) {
        (None, Some(operand)) => CommandFinding::mutating(what).with_span(operand.span),
        _ => parsed.finding(OperandKind::Text),
    }
}

/// An operand that is not a format sets the clock. An expansion inside a format cannot.
fn date(argv: &[Arg]) -> CommandFinding {
    static DATE: CommandSpec = CommandSpec::prints(
        "date",
        "-d: -f< -I? -R -u -r: --date= --debug --file< --iso-8601=? --resolution --rfc-email \
         --rfc-822 --rfc-2822 --rfc-3339= --reference= --utc --universal --uct --help --version",
    )
    .refusing(&[writes("-s: --set=", "sets the clock")])
    .strict()
    .with_evaluator(|parsed| {
        let reference = parsed.value("-r").or_else(|| parsed.value("--reference"));
        let stray = parsed
            .operands
            .iter()
            .find(|word| word.text().is_some_and(|text| !text.starts_with('+')));
        let finding = match (parsed.verdict(), stray) {
            (None, Some(word)) => {
                CommandFinding::mutating("it sets the clock").with_span(word.span)
            }
            _ => parsed.finding(OperandKind::Text),
        };
        reference
            .into_iter()
            .fold(finding, |finding, file| finding.with(names(file)))
    });
    let words: Vec<Arg> = argv
        .iter()
        .map(|arg| match &arg.value {
            ArgValue::Unknown { prefix, one: true } if prefix.starts_with('+') => {
                Arg::literal("+", arg.span)
            }
            _ => arg.clone(),
        })
        .collect();
    evaluate(&DATE, &words)
}

/// Analyzes `getent`. Databases that are files are read-only; `hosts` and `networks` query a name
/// server, and other databases may contain secrets.
fn getent(parsed: &ParsedArguments<'_>) -> CommandFinding {
    const FILES: &[&str] = &[
        "passwd",
        "group",
        "services",
        "protocols",
        "rpc",
        "shells",
        "aliases",
        "initgroups",
    ];
    let finding = parsed.finding(OperandKind::Text);
    match parsed.operands.split_first() {
        None => finding,
        Some((database, _)) if database.text().is_some_and(|name| FILES.contains(&name)) => finding,
        Some((database, keys))
            if database
                .text()
                .is_some_and(|name| name.contains("hosts") || name == "networks") =>
        {
            let hosts = keys
                .iter()
                .map(|key| Effect::Net(key.text().map(str::to_owned)));
            let finding = worse(finding, "it asks a name server").with_span(database.span);
            hosts.fold(finding, CommandFinding::with)
        }
        Some((database, _)) => {
            worse(finding, "what it prints may be secret").with_span(database.span)
        }
    }
}

/// Some capabilities contain the name of a program that initializes the terminal.
fn tput(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    match parsed
        .operands
        .iter()
        .find(|word| word.is("init") || word.is("reset"))
    {
        Some(word) => worse(
            finding,
            "it sets up the terminal, with a program if the terminal has one",
        )
        .with_span(word.span),
        None => finding,
    }
}

fn stty(parsed: &ParsedArguments<'_>) -> CommandFinding {
    match (
        parsed.verdict(),
        parsed
            .operands
            .iter()
            .find(|word| !word.is("size") && !word.is("speed")),
    ) {
        (None, Some(word)) => {
            CommandFinding::mutating("it changes the terminal").with_span(word.span)
        }
        _ => parsed.finding(OperandKind::Text),
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{
        assert_not_read_only, assert_read_only, each, effects, verdict,
    };

    #[test]
    fn printing_is_harmless() {
        assert_read_only(&each(
            "expr -5 + 3; expr $x; seq 1 10; seq -s, 5; seq 10 -2 0; seq $x; numfmt --to=iec \
             1048576; factor 42; cal; cal -3; cal 2024; uname -a; arch; nproc --all; whoami; id \
             -un; id root; groups root; who; w -h; last -n 5; tty; users; printenv HOME; locale \
             -a; getconf PAGESIZE; getconf -a; uuidgen; sleep 0.1; sleep $x; clear; lsb_release \
             -a; logname",
        ));
        assert_not_read_only(&each(
            "who --lookup; last -d; uname --odd; getconf -v x; sensors -s; reset; lastlog -C; who \
             --odd",
        ));
    }

    #[test]
    fn query_forms_are_harmless_and_others_are_not() {
        assert_read_only(&each(
            "date; date +%s; date -u '+%F %T'; date -d '1 day ago' +%F; date -d \"$x\" +%s; date \
             -r f; date -Iseconds; date --date=@0; date -R; date \"+$x\"; date -d \"@$x\"; \
             hostname; hostname -I; hostname -f; hostname -s; domainname; getent passwd root; \
             getent group; tput cols; tput setaf 1; tput -T xterm colors; stty -a; stty size; \
             stty; man ls; man 5 passwd; man -k copy; man -w ls; apropos -s 1 copy; whatis ls",
        ));
        assert_not_read_only(&each(
            "date -s now; date --se=x; date 010100002020; date *; date $x; date -d $x; date -us \
             12:00; hostname x; hostname -b x; hostname -F f; hostname *; hostname $x; hostname \
             -A; domainname x; getent hosts example.com; getent ahosts $x; getent shadow; getent \
             $x; tput init; tput reset; tput -S; tput $x; stty -echo; stty sane; stty raw; man -P \
             x ls; man --page=x ls; man -Hx ls; man --html=x ls; man -C f ls; man -M d ls; man -l \
             f; man ./f.1; man *; man $x; man -u",
        ));
        assert_eq!(verdict("date 0101"), "mutating: it sets the clock");
        assert_eq!(effects("date -r f"), ["names f"]);
        assert_eq!(effects("getent hosts example.com"), ["net example.com"]);
    }
}
