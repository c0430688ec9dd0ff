//! Commands that inspect or signal processes.

use super::{
    options::{names, names_below},
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, writes},
};
use crate::{
    arg::{Arg, ArgValue},
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[
    KnownCommand::Own("ps", ps),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "top",
            "-bciHSsO1hV -w? -n: -d: -o: -p: -u: -U: -E: -e: --batch-mode --cmdline-toggle \
             --delay= --scale-summary-mem= --scale-task-mem= --threads-show --idle-toggle \
             --iterations= --list-fields --sort-override= --pid= --accum-time-toggle \
             --secure-mode --filter-any-user= --filter-only-euser= --width=? --single-cpu-toggle \
             --help --version",
        )
        .strict()
        .with_evaluator(|parsed| {
            let ends = [
                "-b",
                "-h",
                "-V",
                "-O",
                "--batch-mode",
                "--help",
                "--version",
                "--list-fields",
            ];
            match ends.iter().any(|option| parsed.has(option)) {
                true => parsed.finding(OperandKind::Text),
                false => worse(
                    parsed.finding(OperandKind::Text),
                    "its keys can signal processes",
                ),
            }
        }),
    ),
    KnownCommand::Spec(&CommandSpec::prints(
        "pgrep",
        "-lavwcfinoxLAhVH -d: -g: -G: -O: -P: -s: -t: -u: -U: -F< -r: --delimiter= --list-name \
         --list-full --inverse --lightweight --count --full --pgroup= --group= --ignore-case \
         --newest --oldest --older= --parent= --session= --terminal= --euid= --uid= --exact \
         --pidfile< --logpidfile --runstates= --ignore-ancestors --cgroup= --env= --ns= --nslist= \
         --quiet --help --version",
    )),
    KnownCommand::Spec(&CommandSpec::prints("pidof", "-scnqxzhVtw -d: -o: -S:")),
    KnownCommand::Spec(&CommandSpec::prints(
        "pstree",
        "-aAcgGhlnpsStTuUVZ -C: -H: -N: --arguments --ascii --compact-not --color= --show-pgids \
         --vt100 --highlight-all --highlight-pid= --long --numeric-sort --ns-sort= --show-pids \
         --show-parents --ns-changes --thread-names --hide-threads --uid-changes --unicode \
         --version --security-context --help",
    )),
    KnownCommand::Spec(&CommandSpec::prints("pwdx", "-hV --help --version")),
    KnownCommand::Spec(
        &CommandSpec::prints(
            "pmap",
            "-xXdqphV -A: --extended --device --quiet --show-path --range= --help --version",
        )
        .refusing(&[writes(
            "-n -N> --create-rc --create-rc-to>",
            "writes a configuration",
        )])
        .strict(),
    ),
    KnownCommand::Spec(
        &CommandSpec::reads(
            "fuser",
            "-acfIlmMsuvwV46 -n: --all --inode --list-signals --mount --ismountpoint --namespace= \
             --silent --user --verbose --writeonly --version --ipv4 --ipv6",
        )
        .refusing(&[writes("-k --kill", "kills processes")])
        .operands(OperandKind::Names)
        .strict(),
    ),
    KnownCommand::Own("lsof", lsof),
    KnownCommand::Own("kill", kill),
    KnownCommand::Own("pkill killall killall5 skill xkill", |_| {
        CommandFinding::mutating("it signals processes")
    }),
    KnownCommand::Own("renice snice", |_| {
        CommandFinding::mutating("it changes how processes are scheduled")
    }),
];

/// Analyzes `ps`, which has three option styles. One letter shows the environment of other
/// processes.
fn ps(argv: &[Arg]) -> CommandFinding {
    const UNIX: &str = "AaNTdejflFycMLmHwVPZ";
    const BSD: &str = "acfghjlmnrsuvwxSTXZHLV";
    const FLAGS: &str = "--forest --headers --no-headers --heading --no-heading --noheadings \
                         --cumulative --deselect --context --info --version --help --threads";
    const VALUES: &str = "--sort --format --pid --ppid --quick-pid --sid --tty --user --User --group --Group \
             --cols --columns --width --rows --lines";
    let secret = |arg: &Arg| {
        CommandFinding::unknown("it may show the environment of other processes")
            .with_span(arg.span)
    };
    let unread = |arg: &Arg| {
        CommandFinding::unknown("its options are not known to be safe").with_span(arg.span)
    };
    let has = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
    // If an argument makes no sense, ps parses all of them again in BSD style, where `e` shows the
    // environment.
    let (mut all, mut user) = (None, None);
    let mut words = argv.get(1..).unwrap_or_default().iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            return unread(word);
        };
        let (mut value, mut columns) = (None, false);
        if text.starts_with("--") {
            let (name, attached) = text
                .split_once('=')
                .map_or((text, None), |(name, value)| (name, Some(value)));
            if has(FLAGS, name) {
                continue;
            }
            if !has(VALUES, name) {
                return unread(word);
            }
            columns = name == "--format";
            value = attached
                .map(|value| Arg::literal(value, word.span))
                .or_else(|| words.next().cloned());
        } else if let Some(letters) = text.strip_prefix('-') {
            for (at, letter) in letters.char_indices() {
                if UNIX.contains(letter) {
                    all = all.or((letter == 'e').then_some(word));
                    continue;
                }
                if !"CGUgpqstuoOk".contains(letter) {
                    return unread(word);
                }
                let attached = &letters[at + 1..];
                value = match attached.is_empty() {
                    true => words.next().cloned(),
                    false => Some(Arg::literal(attached, word.span)),
                };
                columns = "oO".contains(letter);
                let flags = |text: &str| {
                    text.bytes()
                        .all(|byte| byte == b'e' || BSD.as_bytes().contains(&byte))
                };
                if value.as_ref().and_then(Arg::text).is_some_and(flags) {
                    user = Some(word);
                    all = all.or(value
                        .as_ref()
                        .and_then(Arg::text)
                        .filter(|text| text.contains('e'))
                        .map(|_| word));
                }
                break;
            }
        } else if text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b',')
        {
            continue;
        } else {
            for (at, letter) in text.char_indices() {
                if BSD.contains(letter) {
                    continue;
                }
                if letter == 'e' {
                    return secret(word);
                }
                if !"oOpqtUk".contains(letter) {
                    return unread(word);
                }
                let attached = &text[at + 1..];
                value = match attached.is_empty() {
                    true => words.next().cloned(),
                    false => Some(Arg::literal(attached, word.span)),
                };
                columns = "oO".contains(letter);
                break;
            }
        }
        match value.map(|value| value.value) {
            Some(ArgValue::Literal(text) | ArgValue::Braced(text))
                if columns && text.to_lowercase().contains("env") =>
            {
                return secret(word);
            }
            Some(ArgValue::Literal(_) | ArgValue::Braced(_)) | None => {}
            Some(ArgValue::Unknown { one: true, .. }) if !columns => {}
            Some(_) => return unread(word),
        }
    }
    match (all, user) {
        (Some(word), Some(_)) => secret(word),
        _ => CommandFinding::read_only("it only inspects processes"),
    }
}

/// Analyzes `lsof`. Some of its options begin with a plus, and some values are optional.
fn lsof(argv: &[Arg]) -> CommandFinding {
    let mut finding = CommandFinding::read_only("it only lists open files");
    let mut words = argv.get(1..).unwrap_or_default().iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            // All of its options are safe, except those of a device cache, which Linux does not
            // have.
            finding.effects.push(names(word));
            continue;
        };
        let mut letters = match text.strip_prefix(['-', '+']) {
            Some(letters) if !letters.is_empty() => letters.chars(),
            _ => {
                finding.effects.push(names(word));
                continue;
            }
        };
        while let Some(letter) = letters.next() {
            let attached = letters.as_str();
            if "?abChKlnNoOPQRtUvVXEwMH".contains(letter) {
                continue;
            }
            let value = match letter {
                // The value is optional; the next argument may be a file.
                'F' | 'T' | 'x' | 'S' | 'L' | 'r' | 'g' | 's' | 'f' | 'm' => None,
                'i' if attached.is_empty() => {
                    words.as_slice().first().and_then(Arg::text).filter(|next| {
                        let begins =
                            |first: char| first.is_ascii_digit() || ":@TUtu".contains(first);
                        next.starts_with(begins) && !next.contains('/')
                    })
                }
                'i' => Some(attached),
                'c' | 'd' | 'D' | 'p' | 'u' | 'e' if attached.is_empty() => {
                    let Some(next) = words.next() else { break };
                    if "dD".contains(letter) && text.starts_with('+') {
                        finding.effects.push(names_below(next));
                    } else if letter == 'D' {
                        return CommandFinding::unknown("its option -D is not known to be safe")
                            .with_span(word.span);
                    }
                    break;
                }
                'c' | 'p' | 'u' | 'e' | 'd' => break,
                _ => {
                    let reason = format!("its option -{letter} is not known to be safe");
                    return CommandFinding {
                        effects: finding.effects,
                        ..CommandFinding::unknown(reason).with_span(word.span)
                    };
                }
            };
            if let Some(address) = value {
                if attached.is_empty() {
                    words.next();
                }
                if let Some(host) = named_host(address) {
                    finding = worse(finding, "it asks a name server")
                        .with_span(word.span)
                        .with(Effect::Net(Some(host)));
                }
            }
            break;
        }
    }
    finding
}

/// Returns the host of `[46][protocol][@host][:port]`, if it is a name.
fn named_host(address: &str) -> Option<String> {
    let (_, behind) = address.split_once('@')?;
    let host = match behind.strip_prefix('[') {
        Some(_) => return None,
        None => behind.split(':').next().unwrap_or_default(),
    };
    host.bytes()
        .any(|byte| byte.is_ascii_alphabetic())
        .then(|| host.to_owned())
}

/// Analyzes `kill`. Signal 0 only checks whether a process exists.
fn kill(argv: &[Arg]) -> CommandFinding {
    let signals = CommandFinding::mutating("it signals a process");
    let words = argv.get(1..).unwrap_or_default();
    let pids = match words {
        [list, rest @ ..]
            if list.is("-l") || list.is("-L") || list.is("--list") || list.is("--table") =>
        {
            return match rest.iter().all(|word| word.text().is_some()) {
                true => CommandFinding::read_only("it only lists signals"),
                false => signals,
            };
        }
        [none, rest @ ..] if none.is("-0") => rest,
        [option, none, rest @ ..] if (option.is("-s") || option.is("-n")) && none.is("0") => rest,
        _ => return signals,
    };
    let plain = |word: &&Arg| {
        word.text().is_some_and(|text| {
            text.trim_start_matches('%')
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        })
    };
    let one = |word: &&Arg| matches!(word.value, ArgValue::Unknown { one: true, .. });
    let certain = pids.iter().filter(plain).count();
    let uncertain = pids.iter().filter(one).count();
    // Two uncertain arguments could be another signal and a process.
    match certain + uncertain == pids.len() && (uncertain == 0 || pids.len() == 1) {
        true => CommandFinding::read_only("it only checks whether a process exists"),
        false => signals,
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn processes_may_be_looked_at() {
        assert_read_only(&each(
            "ps; ps aux; ps -ef; ps aux --sort=-%mem; ps -p 1 -o pid,comm; ps -eo pid,ppid,cmd; \
             ps auxww; ps -u root -o pid=; ps axo pid,etime,args; ps --forest -e; ps -p \"$x\"; \
             ps -aux; ps -fp 12; ps 12 13; ps -C bash; ps --ppid 2 -o pid; ps ax -o pid,user; ps \
             -T -p 1; top -b -n 1; top -bn1 -o %CPU; pgrep -f cargo; pgrep -la $x; pidof init; \
             pstree -p; pwdx 1; pmap -x 1; fuser 8080/tcp; fuser -v .; kill -l; kill -l 9; kill \
             -0 12; kill -0 \"$x\"; kill -s 0 12",
        ));
        assert_not_read_only(&each(
            "ps e; ps auxe; ps eww; ps -p 1 e; ps -o environ; ps axo pid,env; ps $x; ps -p $x; ps \
             --odd; ps -auxe; ps -e -aux; ps -o \"$x\"; ps -E; top; top -n 1; pmap -N f 1; fuser \
             -k 8080/tcp; fuser -9 x; kill 12; kill -9 12; kill %1; kill -0 $x; kill -0 \"$x\" \
             \"$y\"; kill -l $x; kill -s 9 12; kill -0 -9 12; pkill x; killall x; renice 5 1; \
             kill $x; top -b $x",
        ));
    }

    #[test]
    fn open_files_may_be_looked_at() {
        assert_read_only(&each(
            "lsof; lsof -p 1; lsof -nP -iTCP -sTCP:LISTEN; lsof README.md; lsof -t -nP -i:8080; \
             lsof -i :8080; lsof +D src; lsof -u root; lsof -c bash -a -d cwd; lsof -i TCP:80; \
             lsof -i4; lsof $x; lsof -Fn -p 1; lsof -i @127.0.0.1:80; lsof -i tcp",
        ));
        assert_not_read_only(&each(
            "lsof -i @example.com; lsof -i@example.com:80; lsof -D b; lsof -k f; lsof -Z x; lsof \
             -iTCP@host",
        ));
        assert_eq!(effects("lsof -i TCP@example.com:80"), ["net example.com"]);
        assert_eq!(effects("lsof -p 1 f"), ["names f"]);
        assert_eq!(effects("lsof +D src"), ["names below src"]);
        assert_eq!(effects("lsof -i :80"), [""; 0]);
    }
}
