//! The history of this repository as a series of edits: what people really change,
//! with what models really get wrong.
//!
//! Each hunk of the latest commits becomes one Edit, with three lines of context
//! (more, until it is the only such place, as a model is told to). Undamaged, all
//! of them must give the commit's bytes; damaged ones must be right or refused.

use std::ops::Range;
use std::path::Path;

use haft_journal::edit::{EditRequest, apply, plan};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::Desk;
use crate::damage::{Damage, Hunk, HunkLine, tolerant_count};

const COMMITS: &str = "60";
const HUNKS: usize = 400;
const CONTEXT: usize = 3;

/// A text file before and after a commit.
struct Revision {
    name: String,
    before: String,
    after: String,
}

fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let mut command = haft_testkit::command("git");
    command
        .current_dir(root)
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Empty without git or without history (a shallow clone, a source archive).
fn revisions() -> Vec<Revision> {
    let log = git(&[
        "log",
        "-n",
        COMMITS,
        "--no-merges",
        "--diff-filter=M",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "--format=",
    ]);
    let log = String::from_utf8(log.unwrap_or_default()).unwrap_or_default();
    let blob =
        |id: &str| git(&["cat-file", "blob", id]).and_then(|bytes| String::from_utf8(bytes).ok());
    log.lines()
        .filter_map(|line| {
            // `:mode mode before after M<TAB>name`
            let (columns, name) = line.split_once('\t')?;
            let mut ids = columns.split(' ').skip(2);
            let (before, after) = (blob(ids.next()?)?, blob(ids.next()?)?);
            let text = |text: &str| !text.contains(['\0', '\r']) && text.len() < 400_000;
            (text(&before) && text(&after)).then(|| Revision {
                name: name.to_owned(),
                before,
                after,
            })
        })
        .collect()
}

/// Which lines became which: what lies between the equal runs of a diff.
fn changes(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut changes, mut old_end, mut new_end) = (Vec::new(), 0, 0);
    let operations = capture_diff_slices(Algorithm::Myers, old, new);
    let equal = operations.iter().filter_map(|operation| match operation {
        DiffOp::Equal { .. } => Some((operation.old_range(), operation.new_range())),
        _ => None,
    });
    let end = (old.len()..old.len(), new.len()..new.len());
    for (of_old, of_new) in equal.chain([end]) {
        if old_end < of_old.start || new_end < of_new.start {
            changes.push((old_end..of_old.start, new_end..of_new.start));
        }
        (old_end, new_end) = (of_old.end, of_new.end);
    }
    changes
}

/// The hunks from the last to the first, so that line numbers stay those of `before`.
fn hunks(revision: &Revision) -> Vec<Hunk> {
    let old: Vec<&str> = revision.before.split_inclusive('\n').collect();
    let new: Vec<&str> = revision.after.split_inclusive('\n').collect();
    let changes = changes(&old, &new);
    let mut hunks = Vec::new();
    let mut rest = changes.as_slice();
    while let Some((last, earlier)) = rest.split_last() {
        // What lies behind has been changed already; only context before it is still as it was.
        let behind = changes
            .get(rest.len())
            .map_or(old.len(), |next| next.0.start);
        let mut context = CONTEXT;
        let (start, end, taken) = loop {
            let end = (last.0.end + context).min(behind);
            let mut start = last.0.start.saturating_sub(context);
            // A change within the context belongs to the hunk.
            let mut taken = earlier.len();
            while taken > 0 && earlier[taken - 1].0.end >= start {
                taken -= 1;
                start = start.min(earlier[taken].0.start.saturating_sub(context));
            }
            let text = old[start..end].concat();
            let places = tolerant_count(&revision.before, &text);
            if places == 1 || context > old.len() {
                break (start, end, taken);
            }
            context *= 2;
        };
        let mut lines = Vec::new();
        let mut position = start;
        for (removed, added) in &rest[taken..] {
            let kept = old[position..removed.start].iter();
            lines.extend(kept.map(|line| HunkLine::Kept((*line).to_owned())));
            lines.extend(
                old[removed.clone()]
                    .iter()
                    .map(|line| HunkLine::Removed((*line).to_owned())),
            );
            lines.extend(
                new[added.clone()]
                    .iter()
                    .map(|line| HunkLine::Added((*line).to_owned())),
            );
            position = removed.end;
        }
        lines.extend(
            old[position..end]
                .iter()
                .map(|line| HunkLine::Kept((*line).to_owned())),
        );
        hunks.push(Hunk {
            first_line: start + 1,
            lines,
        });
        rest = &rest[..taken];
    }
    hunks
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn the_history_of_this_repository_can_be_replayed() {
    let revisions = revisions();
    if revisions.is_empty() {
        haft_testkit::skip("replaying this repository: no git, or no history");
        return;
    }
    let mut total = 0;
    // Of the hunks that a damage really changes: how many there are, how many were applied.
    let mut counts = [(0_usize, 0_usize); Damage::ALL.len()];
    for revision in &revisions {
        let hunks = hunks(revision);
        if total + hunks.len() > HUNKS {
            continue;
        }
        total += hunks.len();
        replay_on_disk(revision, &hunks);
        let mut file = revision.before.clone();
        for hunk in &hunks {
            let expected = hunk.applied_to(&file);
            let clean = hunk.sides(Damage::None).0;
            for (damage, (damaged, applied)) in Damage::ALL.into_iter().zip(&mut counts) {
                let done = try_edit(revision, &file, hunk, damage, &expected);
                if damage == Damage::None || hunk.sides(damage).0 != clean {
                    *damaged += 1;
                    *applied += usize::from(done);
                }
                assert!(
                    done || damage != Damage::None,
                    "{}: {hunk:?}",
                    revision.name
                );
            }
            file = expected;
        }
        assert_eq!(file, revision.after, "{}", revision.name);
    }
    say(&format!(
        "{total} hunks of {} files replayed; applied:",
        revisions.len()
    ));
    for (damage, (damaged, applied)) in Damage::ALL.into_iter().zip(counts) {
        let share = 100.0 * applied as f64 / damaged.max(1) as f64;
        say(&format!(
            "{share:>6.1} %  {applied} of {damaged}  {damage:?}"
        ));
    }
}

/// Applies a hunk with LF and with CRLF. Both must agree, and both must be right or refused.
/// A file without a line break has no line ending that the edit could keep, so only LF is tried.
fn try_edit(revision: &Revision, file: &str, hunk: &Hunk, damage: Damage, expected: &str) -> bool {
    let (old, new) = hunk.sides(damage);
    let change = EditRequest {
        old: &old,
        new: &new,
        replace_all: false,
    };
    let edited = |file: &str| {
        let planned = plan(file.as_bytes(), &change).ok()?;
        Some(String::from_utf8(apply(file.as_bytes(), &planned)).unwrap())
    };
    let with_lf = edited(file);
    let what = format!("{} {damage:?}: {hunk:?}", revision.name);
    if file.contains('\n') {
        let with_crlf = edited(&crlf(file));
        assert_eq!(with_crlf, with_lf.as_deref().map(crlf), "{what}");
    }
    if let Some(result) = &with_lf {
        assert_eq!(result, expected, "{what}");
    }
    with_lf.is_some()
}

fn replay_on_disk(revision: &Revision, hunks: &[Hunk]) {
    let unchanged = (revision.before.clone(), revision.after.clone());
    // A file without a line break has no line ending that an edit could keep.
    let has_lines = revision.before.contains('\n');
    let with_crlf = has_lines.then(|| (crlf(&revision.before), crlf(&revision.after)));
    for (before, after) in [Some(unchanged), with_crlf].into_iter().flatten() {
        let desk = Desk::with_read(&before);
        for hunk in hunks {
            let (old, new) = hunk.sides(Damage::None);
            desk.edit("file", &old, &new).unwrap();
        }
        assert_eq!(
            String::from_utf8(desk.get("file")).unwrap(),
            after,
            "{}",
            revision.name
        );
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the shares are the result of this test"
)]
fn say(line: &str) {
    println!("replay: {line}");
}
