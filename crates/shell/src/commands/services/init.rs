//! systemd and similar tools: units, the journal, scheduled jobs.

use crate::{
    commands::{
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, UnsafeOption, runs, writes},
    },
    effect::{CommandFinding, EffectVerdict, RuleCoverage},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Spec(&SYSTEMCTL),
    KnownCommand::Spec(&JOURNALCTL),
    KnownCommand::Spec(&LOGINCTL),
    KnownCommand::Spec(&HOSTNAMECTL),
    KnownCommand::Spec(&TIMEDATECTL),
    KnownCommand::Spec(&LOCALECTL),
    KnownCommand::Spec(&CRONTAB),
    KnownCommand::Spec(&LAUNCHCTL),
];

const ELSEWHERE: UnsafeOption = runs(
    "-H: -M: --host= --machine= --root= --image=",
    "chooses another machine",
);

/// Verbs that only query. Without a verb, these programs list or show.
const ASKS: &[(&str, &str)] = &[
    (
        "systemctl",
        "status show cat list-units list-sockets list-timers list-automounts list-paths list-jobs \
         list-unit-files list-dependencies list-machines is-active is-enabled is-failed \
         is-system-running get-default whoami",
    ),
    (
        "loginctl",
        "list-sessions session-status show-session list-users user-status show-user list-seats \
         seat-status show-seat",
    ),
    ("hostnamectl", "status"),
    (
        "timedatectl",
        "status show list-timezones timesync-status show-timesync",
    ),
    (
        "localectl",
        "status list-locales list-keymaps list-x11-keymap-models list-x11-keymap-layouts \
         list-x11-keymap-variants list-x11-keymap-options",
    ),
    ("launchctl", "list print print-disabled blame version help"),
];

/// The settings that `hostnamectl hostname` and similar verbs show if no value follows.
const SETTINGS: &str = "hostname icon-name chassis deployment location";

static SYSTEMCTL: CommandSpec = CommandSpec::prints(
    "systemctl",
    "-halrTq -t: -p: -P: -n: -o: --help --version --system --user --type= --state= --failed \
     --property= --all --full --recursive --reverse --with-dependencies --show-types --value --quiet \
     --wait --legend= --no-legend --no-pager --no-ask-password --lines= --output= --plain --timestamp= \
     --before --after --what= --drop-in=",
)
.refusing(&[ELSEWHERE])
.strict()
.with_evaluator(by_verb);

static LOGINCTL: CommandSpec = CommandSpec::prints(
    "loginctl",
    "-hal -p: -P: -n: -o: --help --version --no-pager --no-legend --no-ask-password --property= --all \
     --value --full --lines= --output= --json= -j",
)
.refusing(&[ELSEWHERE])
.strict()
.with_evaluator(by_verb);

static HOSTNAMECTL: CommandSpec = CommandSpec::prints(
    "hostnamectl",
    "-hj --help --version --no-ask-password --transient --static --pretty --json=",
)
.refusing(&[ELSEWHERE])
.strict()
.with_evaluator(by_verb);

static TIMEDATECTL: CommandSpec = CommandSpec::prints(
    "timedatectl",
    "-ha -p: -P: --help --version --no-pager --no-ask-password --monitor --property= --all --value",
)
.refusing(&[ELSEWHERE])
.strict()
.with_evaluator(by_verb);

static LOCALECTL: CommandSpec = CommandSpec::prints(
    "localectl",
    "-hl --help --version --no-pager --no-ask-password --full",
)
.refusing(&[ELSEWHERE])
.strict()
.with_evaluator(by_verb);

static LAUNCHCTL: CommandSpec = CommandSpec::prints("launchctl", "")
    .strict()
    .with_evaluator(by_verb);

static JOURNALCTL: CommandSpec = CommandSpec::prints(
    "journalctl",
    "-hmkxafrqeN -S: -U: -c: -u: -t: -T: -p: -g: -o: -F: -b? -n? -# --help --version --system --user \
     --merge --namespace= --since= --until= --cursor= --after-cursor= --boot=? --unit= --user-unit= \
     --identifier= --exclude-identifier= --priority= --facility= --grep= --case-sensitive=? --dmesg \
     --output= --output-fields= --lines=? --reverse --show-cursor --utc --catalog --no-hostname \
     --no-full --full --all --follow --no-tail --truncate-newline --quiet --no-pager --pager-end \
     --fields --field= --list-boots --list-invocations --list-namespaces --disk-usage --verify \
     --header --list-catalog --dump-catalog --invocation= -I",
)
.refusing(&[
    ELSEWHERE,
    runs(
        "-D: -i: --directory= --file=",
        "reads another journal",
    ),
    writes(
        "--vacuum-size= --vacuum-files= --vacuum-time=",
        "deletes old entries",
    ),
    writes(
        "--rotate --flush --sync --relinquish-var --smart-relinquish-var --update-catalog \
         --setup-keys --cursor-file>",
        "changes the journal",
    ),
])
.strict();

static CRONTAB: CommandSpec = CommandSpec::prints("crontab", "-l -u: -V")
    .refusing(&[
        writes("-r -i", "deletes the scheduled jobs"),
        writes("-e", "edits the scheduled jobs"),
    ])
    .strict()
    .with_evaluator(crontab);

/// Returns whether a verb of one of these programs only queries.
pub(in crate::commands) fn is_reading_verb(verb: &str) -> bool {
    let mut lists = ASKS.iter().map(|(_, verbs)| verbs);
    lists.any(|verbs| verbs.split_ascii_whitespace().any(|listed| listed == verb))
}

fn by_verb(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Text);
    let Some(verb) = parsed.operands.first() else {
        // launchctl prints its help; the others print lists and states.
        return finding;
    };
    let program = parsed.spec.names;
    let asks = ASKS.iter().find(|(name, _)| *name == program);
    let is_listed = |list: &str| {
        let text = verb.text().unwrap_or_default();
        list.split_ascii_whitespace().any(|listed| listed == text)
    };
    let shows = program == "hostnamectl" && parsed.operands.len() == 1 && is_listed(SETTINGS);
    if shows || asks.is_some_and(|(_, verbs)| is_listed(verbs)) {
        return finding;
    }
    match verb.text() {
        _ if finding.coverage == RuleCoverage::Exact => finding,
        None => finding,
        Some("help" | "show-environment" | "log-level" | "log-target") => {
            CommandFinding::unknown("what it shows is not known to be safe").with_span(verb.span)
        }
        _ => CommandFinding::mutating("it changes the system").with_span(verb.span),
    }
}

fn crontab(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let finding = parsed.finding(OperandKind::Files);
    if finding.verdict == EffectVerdict::ReadOnly && !parsed.has("-l") && !parsed.has("-V") {
        return CommandFinding {
            effects: finding.effects,
            ..CommandFinding::mutating("it replaces the scheduled jobs")
        };
    }
    match parsed.operands.first() {
        Some(more) if finding.verdict == EffectVerdict::ReadOnly => {
            CommandFinding::unknown("it may replace the scheduled jobs").with_span(more.span)
        }
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn asking_is_read_only() {
        assert_only_reads(&[
            "systemctl",
            "systemctl status",
            "systemctl status nginx --no-pager -l",
            "systemctl --user status x",
            "systemctl is-active nginx",
            "systemctl list-units --type=service --state=running",
            "systemctl --failed",
            "systemctl show -p MainPID nginx",
            "systemctl cat nginx",
            "systemctl list-timers --all",
            "journalctl -u nginx -n 50 --no-pager",
            "journalctl -xe",
            "journalctl -b -1 -p err",
            "journalctl --since '1 hour ago' -f",
            "journalctl --list-boots",
            "journalctl --disk-usage",
            "loginctl list-sessions",
            "hostnamectl",
            "hostnamectl hostname",
            "timedatectl",
            "timedatectl list-timezones",
            "localectl status",
            "crontab -l",
            "crontab -l -u me",
            "launchctl list",
        ]);
    }

    #[test]
    fn changing_is_not() {
        assert_not_read_only(&[
            "systemctl restart nginx",
            "systemctl enable --now x",
            "systemctl daemon-reload",
            "systemctl edit x",
            "systemctl -H host status",
            "systemctl --host=host status",
            "systemctl -M c status",
            "systemctl poweroff",
            "systemctl set-default x",
            "systemctl show-environment",
            "systemctl status $x",
            "journalctl --vacuum-time=1d",
            "journalctl --vacuum-s=1",
            "journalctl --rotate",
            "journalctl --flush",
            "journalctl -D /x",
            "journalctl --file=/x",
            "journalctl --root=/x",
            "journalctl --cursor-file=x",
            "loginctl terminate-user x",
            "hostnamectl hostname x",
            "hostnamectl set-hostname x",
            "timedatectl set-time x",
            "localectl set-locale x",
            "crontab x",
            "crontab -",
            "crontab -r",
            "crontab -e",
            "crontab",
            "launchctl load x",
        ]);
    }

    #[test]
    fn tables_are_well_formed() {
        assert_well_formed(&[
            SYSTEMCTL,
            JOURNALCTL,
            LOGINCTL,
            HOSTNAMECTL,
            TIMEDATECTL,
            LOCALECTL,
            CRONTAB,
            LAUNCHCTL,
        ]);
    }
}
