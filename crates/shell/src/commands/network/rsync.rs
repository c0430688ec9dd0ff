//! rsync.

use super::{refused, write};
use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::{self, Parsed},
        spec::{Entry, Operands, Spec, Style, runs},
    },
    effect::{Effect, Finding, How},
};

pub(in crate::commands) const ENTRIES: &[Entry] = &[Entry::Spec(&RSYNC)];

static RSYNC: Spec = Spec::prints(
    "rsync",
    "-vqcarRbudlLkKHpEAXogDtUNOJSnWxImyzCF0s8hPi46V -B: -@: -T> -f: -M: --verbose --info= --debug= \
     --stderr= --quiet --no-motd --checksum --archive --recursive --inc-recursive --no-inc-recursive \
     --relative --no-implied-dirs --backup --backup-dir> --suffix= --update --inplace --append \
     --append-verify --dirs --old-dirs --mkpath --links --copy-links --copy-unsafe-links --safe-links \
     --munge-links --copy-dirlinks --keep-dirlinks --hard-links --perms --executability --chmod= --acls \
     --xattrs --owner --group --devices --specials --times --atimes --open-noatime --crtimes \
     --omit-dir-times --omit-link-times --super --fake-super --sparse --preallocate --dry-run \
     --whole-file --no-whole-file --checksum-choice= --one-file-system --block-size= --existing \
     --ignore-non-existing --ignore-existing --del --delete --delete-before --delete-during \
     --delete-delay --delete-after --delete-excluded --ignore-missing-args --delete-missing-args \
     --ignore-errors --force --max-delete= --max-size= --min-size= --partial --partial-dir= \
     --delay-updates --prune-empty-dirs --numeric-ids --usermap= --groupmap= --chown= --timeout= \
     --contimeout= --ignore-times --size-only --modify-window= --temp-dir> --fuzzy --compare-dest< \
     --copy-dest< --link-dest< --compress --compress-choice= --compress-level= --skip-compress= \
     --cvs-exclude --filter= --exclude= --exclude-from< --include= --include-from< --files-from< \
     --from0 --secluded-args --address= --port= --blocking-io --outbuf= --stats --8-bit-output \
     --human-readable --progress --itemize-changes --out-format= --log-file> --log-file-format= \
     --password-file< --list-only --bwlimit= --stop-after= --stop-at= --fsync --write-batch> \
     --only-write-batch> --read-batch< --protocol= --iconv= --ipv4 --ipv6 --version --help \
     --remove-source-files --no-perms --no-owner --no-group --no-times --no-links --no-o --no-g --no-p",
)
.refusing(&[runs(
    "-e: --rsh= --rsync-path= --remote-option= --daemon --config= --server --sender",
    "chooses the program that connects",
)])
.style(Style::Whole)
.strict()
.judged(rsync);

fn rsync(parsed: &Parsed<'_>) -> Finding {
    if parsed.operands.is_empty()
        && (parsed.has("--version") || parsed.has("-V") || parsed.has("--help"))
    {
        return parsed.finding(Operands::Text);
    }
    let Some((target, sources)) = parsed.operands.split_last() else {
        return Finding::unknown("it copies files");
    };
    // One operand alone is listed.
    let lists = sources.is_empty() || parsed.has("--list-only");
    let sources = if sources.is_empty() {
        &parsed.operands[..]
    } else {
        sources
    };
    let mut effects = Vec::new();
    let mut remote = false;
    for source in sources {
        match elsewhere(source) {
            Some(contact) => {
                remote = true;
                effects.push(contact);
            }
            None => {
                effects.push(options::tree(source));
                if parsed.has("--remove-source-files") {
                    effects.push(write(source, How::Removal));
                }
            }
        }
    }
    let mut sends = false;
    if !lists {
        match elsewhere(target) {
            Some(contact) => {
                remote = true;
                sends = true;
                effects.push(contact);
            }
            None => effects.push(write(target, How::Work)),
        }
    }
    let dry = parsed.has("-n") || parsed.has("--dry-run") || lists;
    let writes = [
        "--log-file",
        "--write-batch",
        "--only-write-batch",
        "--backup-dir",
        "--temp-dir",
        "-T",
    ]
    .iter()
    .any(|name| parsed.has(name));
    let finding = match refused(parsed) {
        Some(finding) => finding,
        None if sends => Finding::mutating("it sends files to a host"),
        None if remote => Finding::unknown("it contacts a host"),
        None if dry && !writes && parsed.verdict().is_none() => {
            Finding::read_only("it only says what it would copy")
        }
        None => Finding::mutating("it copies files"),
    };
    let mut finding = parsed.with_effects(finding, Operands::Text);
    finding.effects.extend(effects);
    finding
}

/// `host:path`, `host::module`, `rsync://host/`.
fn elsewhere(arg: &Arg) -> Option<Effect> {
    let Some(text) = arg.text() else {
        return Some(Effect::Net(None));
    };
    let before = text.split(':').next().unwrap_or_default();
    let remote = text.contains("://") || (text.contains(':') && !before.contains('/'));
    remote.then(|| Effect::Net(hosts::of_remote_path(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn a_local_dry_run_is_read_only() {
        assert_read_only(&[
            "rsync --version",
            "rsync -avn a/ b/",
            "rsync --dry-run -r --delete a b",
            "rsync --list-only a",
            "rsync a/",
        ]);
        assert_not_read_only(&[
            "rsync -a a b",
            "rsync -avn a host:b",
            "rsync -n host:a b",
            "rsync -n --no-dry-run a b",
            "rsync -n --no-n a b",
            "rsync -n --log-file=f a b",
            "rsync -n --write-batch=f a b",
            "rsync -e ssh a host:b",
            "rsync -n $x b",
            "rsync --daemon",
            "rsync",
        ]);
    }

    #[test]
    fn files_and_hosts_are_named() {
        let cases: [(&str, &[&str]); 6] = [
            ("rsync -a a b", &["tree a", "Work b"]),
            ("rsync -a a b c/", &["tree a", "tree b", "Work c/"]),
            ("rsync -a a me@Host.com:b", &["tree a", "net host.com"]),
            ("rsync host::m/x .", &["net host", "Work ."]),
            ("rsync rsync://h.com/x", &["net h.com"]),
            (
                "rsync --remove-source-files a b",
                &["tree a", "Removal a", "Work b"],
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(effects(line), expected, "{line}");
        }
        assert_well_formed(&[RSYNC]);
    }
}
