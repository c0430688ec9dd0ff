//! What it costs to find out what a command changed, in a tree of 150,000 files.
//!
//! Prints the first time, when everything is looked at and kept, and the median of later ones, which
//! look only at directories in which something happened; and how many times quicker those are. The
//! bar: at most 50 ms of this thread, and 10 times as quick as a look at everything. It is counted in
//! time on the processor, so that other work on the machine does not matter.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::{fs, path::Path, time::Duration};

use haft_journal::{Journal, Sweep, SweepLimits, WriteGrant};

const DIRECTORIES: usize = 15_000;
const FILES: usize = 10;
const ROUNDS: usize = 21;
const BAR: Duration = Duration::from_millis(50);

fn main() -> std::io::Result<()> {
    let place = tempfile::tempdir()?;
    let root = fs::canonicalize(place.path())?.join("tree");
    for number in 0..DIRECTORIES {
        let directory = root.join(format!("a{}/b{}", number / 100, number % 100));
        fs::create_dir_all(&directory)?;
        for file in 0..FILES {
            fs::write(
                directory.join(format!("f{file}")),
                format!("{number} {file}\n"),
            )?;
        }
    }
    let limits = SweepLimits {
        look: Duration::from_secs(60),
        keep: Duration::from_secs(60),
        ..SweepLimits::default()
    };
    let journal = Journal::new(None)
        .with_undo(place.path().join("undo"))
        .with_sweep_limits(limits);
    let whole = command(&journal, &root, 0)?;
    let mut times: Vec<Duration> = (1..=ROUNDS)
        .map(|round| command(&journal, &root, round))
        .collect::<Result<_, _>>()?;
    let second = times[0];
    times.sort();
    let median = times[ROUNDS / 2];
    let ratio = whole.as_secs_f64() / median.as_secs_f64();
    println!(
        "first {whole:.1?}, second {second:.1?}, then {median:.1?}: {ratio:.0} times as quick"
    );
    if cfg!(debug_assertions) {
        return Ok(());
    }
    assert!(median <= BAR && ratio >= 10.0, "slower than promised");
    Ok(())
}

/// What is added to a command that writes a file and makes another.
fn command(journal: &Journal, root: &Path, round: usize) -> std::io::Result<Duration> {
    let sweep = Sweep {
        roots: vec![root.to_path_buf()],
        ..Sweep::default()
    };
    let start = on_processor()?;
    let before = journal.before_command(&sweep);
    let mut spent = on_processor()? - start;
    fs::write(root.join("a1/b1/f1"), format!("changed {round}"))?;
    fs::write(root.join(format!("a2/new{round}")), "")?;
    let start = on_processor()?;
    let grant = WriteGrant::unconfined(format!("call-{round}"), "Bash");
    let changed = journal.after_command(before, &grant, "a command", &|_| false);
    spent += on_processor()? - start;
    assert_eq!(
        changed.modified.len() + changed.created.len(),
        2,
        "{changed:?}"
    );
    Ok(spent)
}

/// How long this thread has run.
fn on_processor() -> std::io::Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    nanoseconds
        .map(Duration::from_nanos)
        .ok_or_else(|| std::io::Error::other("no time of this thread"))
}
