//! `rsync`: copies between directories and between machines.

use super::{
    files::fills,
    hosts,
    options::{ParsedArguments, names, tree, written},
    reading::unseen,
    shells::worse,
    spec::{CommandSpec, KnownCommand, OperandKind, doubts, runs, writes},
};
use crate::{
    arg::Arg,
    effect::{CommandFinding, WriteKind},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Spec(&RSYNC)];

static RSYNC: CommandSpec = CommandSpec::reads(
    "rsync",
    "-vqcarRbudlLkKHpEAXogDtUNOJSnWxIyzCF0s8hPi46Vm -B: -@: -f: --verbose --info= --debug= \
     --stderr= --quiet --no-motd --checksum --archive --recursive --inc-recursive \
     --no-inc-recursive --relative --no-implied-dirs --backup --suffix= --update --inplace \
     --append --append-verify --dirs --links --copy-links --copy-unsafe-links --safe-links \
     --munge-links --copy-dirlinks --keep-dirlinks --hard-links --perms --no-perms \
     --executability --chmod= --acls --xattrs --owner --no-owner --group --no-group --devices \
     --specials --times --no-times --atimes --open-noatime --crtimes --omit-dir-times \
     --omit-link-times --super --fake-super --sparse --preallocate --dry-run --whole-file \
     --no-whole-file --checksum-choice= --one-file-system --block-size= --existing \
     --ignore-non-existing --ignore-existing --remove-source-files --del --delete --delete-before \
     --delete-during --delete-delay --delete-after --delete-excluded --ignore-missing-args \
     --delete-missing-args --ignore-errors --force --max-delete= --max-size= --min-size= \
     --partial --delay-updates --prune-empty-dirs --numeric-ids --usermap= --groupmap= --chown= \
     --timeout= --contimeout= --ignore-times --size-only --modify-window= --fuzzy --compare-dest= \
     --copy-dest= --link-dest= --compress --compress-choice= --compress-level= --skip-compress= \
     --cvs-exclude --filter= --exclude= --exclude-from< --include= --include-from< --from0 \
     --secluded-args --protect-args --address= --port= --sockopts= --blocking-io --outbuf= \
     --stats --8-bit-output --human-readable --progress --itemize-changes --out-format= \
     --log-file-format= --list-only --bwlimit= --fsync --protocol= --iconv= --checksum-seed= \
     --ipv4 --ipv6 --version --help",
)
.refusing(&[
    runs("-e: --rsh=", "starts a program"),
    runs("--rsync-path=", "starts a program"),
    runs(
        "-M: --remote-option= --daemon --config= --copy-as= --early-input<",
        "changes what runs",
    ),
    writes("--log-file>", "writes a log"),
    writes(
        "-T: --temp-dir= --backup-dir> --partial-dir>",
        "writes into another directory",
    ),
    writes(
        "--write-batch> --only-write-batch> --read-batch<",
        "works from a stored batch",
    ),
    doubts("--files-from<", "reads the names of files from a file"),
    doubts("--mkpath", "makes directories"),
    doubts("--password-file<", "reads a password"),
])
.strict()
.with_evaluator(rsync);

fn rsync(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let has = |options: &[&str]| options.iter().any(|option| parsed.has(option));
    if has(&["--version", "--help"]) && parsed.verdict().is_none() {
        return CommandFinding::read_only("it only prints");
    }
    let Some((target, sources)) = parsed.operands.split_last() else {
        return parsed.finding(OperandKind::None);
    };
    // rsync lists a single operand.
    let (target, sources) = if sources.is_empty() {
        (None, vec![*target])
    } else {
        (Some(*target), sources.to_vec())
    };
    let only_looks = has(&["-n", "--dry-run", "--list-only"]) || target.is_none();
    let mut finding = match (parsed.verdict(), only_looks) {
        (Some(finding), _) => finding,
        (None, true) => CommandFinding::read_only("it only lists what it would copy"),
        (None, false) => CommandFinding::mutating("it copies files"),
    };
    finding = parsed.with_effects(finding, OperandKind::None);
    let moves = has(&["--remove-source-files"]) && !only_looks;
    for source in sources {
        if is_remote(source) {
            finding = contacts(finding, source);
            continue;
        }
        finding.effects.push(tree(source));
        finding
            .effects
            .extend(moves.then(|| written(source, WriteKind::Removal)));
    }
    if let Some(list) = parsed.value("--files-from") {
        finding.effects.push(tree(&unseen(list)));
    }
    let deletes = parsed
        .options
        .iter()
        .any(|given| given.name.starts_with("--del"));
    match target {
        None => finding,
        Some(target) if is_remote(target) => contacts(finding, target),
        Some(target) if only_looks => finding.with(names(target)),
        Some(target) => finding
            .with(fills(target))
            .with_all(deletes.then(|| written(target, WriteKind::Removal))),
    }
}

/// Returns whether this is `host:path`, `host::module` or `rsync://host/path`.
fn is_remote(place: &Arg) -> bool {
    place.text().is_some_and(|text| {
        text.split_once(':')
            .is_some_and(|(host, _)| !host.contains('/'))
    })
}

fn contacts(finding: CommandFinding, place: &Arg) -> CommandFinding {
    hosts::with_remote(
        worse(finding, "it contacts a host").with_span(place.span),
        place,
    )
}

#[cfg(test)]
mod tests {
    use crate::{
        commands::testing::{assert_not_read_only, assert_read_only, each, effects, find},
        effect::RuleCoverage,
    };

    #[test]
    fn a_dry_run_between_directories_is_harmless() {
        assert_read_only(&each(
            "rsync -avn a/ b/; rsync -a --dry-run --delete a b; rsync --list-only a; rsync a/; \
             rsync --version",
        ));
        assert_not_read_only(&each(
            "rsync -a a b; rsync -avn a host:b; rsync -n -e ssh a b; rsync -n --rsh=x a b; rsync \
             --rsync-path=x -n a b; rsync -n --log-file=l a b; rsync -n $x b; rsync -n * b; rsync \
             --daemon; rsync -n --files-from=l a b; rsync rsync://host/m/; rsync host:a",
        ));
        assert_eq!(find("rsync -n -e ssh a b").coverage, RuleCoverage::Exact);
    }

    #[test]
    fn effects_name_both_sides() {
        let cases: [(&str, &[&str]); 6] = [
            ("rsync -a a b", &["tree a", "Tree b"]),
            (
                "rsync -a --delete a b c",
                &["tree a", "tree b", "Tree c", "Removal c"],
            ),
            (
                "rsync -a --remove-source-files a b",
                &["tree a", "Removal a", "Tree b"],
            ),
            (
                "rsync -a a me@example.com:b",
                &["tree a", "net example.com"],
            ),
            (
                "rsync -a rsync://example.com/m b",
                &["net example.com", "Tree b"],
            ),
            ("rsync -an a b", &["tree a", "names b"]),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
    }
}
