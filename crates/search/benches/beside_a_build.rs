//! What an open session costs a build beside it that writes 100,000 files.
//!
//! `cargo bench -p haft-search --bench beside_a_build`. The build is a process that does nothing but
//! write, so there is nothing to hide behind: a real one compiles for minutes. It writes into two trees
//! that are alike, a folder of 500 files here and one there, in turns: whatever else the machine does
//! counts for both. A session has searched one of them and is open; the same is done without any
//! session, which shows how much the two differ by themselves. Of each folder the least and the median
//! of all rounds count, added up. `HAFT_BENCH_ROUNDS` says how many rounds, `HAFT_BENCH_PLACE` in which
//! folder (in memory by default, where writing takes the least).
//!
//! What counts is the processor's time of the build, and of the session beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use haft_search::{GrepQuery, IndexSettings, IndexStatus, SearchEngine, StopCondition};
use rustix::time::{ClockId, clock_gettime};

const SOURCES: usize = 5000;
const FOLDERS: usize = 200;
const IN_FOLDER: usize = 500;

/// Where the process that writes is to write.
const WRITE_TO: &str = "HAFT_BENCH_WRITE_TO";

/// The trees: one that is searched, one that is not.
const TREES: [&str; 2] = ["searched", "other"];

/// Where the files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Below a folder that an ignore file names, as that of most builds.
    Ignored,
    /// Folders that the build makes.
    New,
    /// Folders that were there before, so that the session watches them: the most there can be to
    /// tell.
    Watched,
}

/// Seconds, a folder each.
#[derive(Clone, Debug, Default)]
struct Took {
    processor: Vec<f64>,
    clock: Vec<f64>,
}

/// One build, in both trees.
#[derive(Clone, Debug, Default)]
struct Build {
    trees: [Took; 2],
    /// What the session used meanwhile.
    session: f64,
}

fn sources(root: &Path) {
    for number in 0..SOURCES {
        let folder = root.join(format!("src/part{}", number / 50));
        if number % 50 == 0 {
            fs::create_dir_all(&folder).expect("room");
        }
        let line = |line: usize| format!("fn name_{number}_{line}() -> u64 {{ {line} }}\n");
        let text: String = (0..60).map(line).collect();
        fs::write(folder.join(format!("file{number}.rs")), text).expect("room");
    }
}

fn folder(root: &Path, tree: usize, number: usize) -> PathBuf {
    root.join(TREES[tree]).join(format!("out/{number}"))
}

/// The process that writes: says what each folder took, of the processor and by the clock, in
/// nanoseconds.
#[expect(clippy::print_stdout, reason = "it is the answer")]
fn write(root: &Path) {
    for number in 0..FOLDERS {
        // One tree first, then the other: neither has an advantage.
        let first = number % 2;
        for tree in [first, 1 - first] {
            let folder = folder(root, tree, number);
            let (started, before) = (Instant::now(), own_nanoseconds());
            fs::create_dir_all(&folder).expect("room");
            for file in 0..IN_FOLDER {
                fs::write(folder.join(format!("{file}.o")), "object code\n").expect("room");
            }
            let (processor, clock) = (own_nanoseconds() - before, started.elapsed().as_nanos());
            println!("{tree} {processor} {clock}");
        }
    }
}

/// What this thread has used of the processor.
fn own_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What all threads of this process have used of the processor, in seconds.
fn session_time() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("Linux");
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().skip(11).take(2);
    ticks.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn build(root: &Path) -> Build {
    let before = session_time();
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).env(WRITE_TO, root).output();
    let output = output.expect("it runs");
    let mut build = Build {
        session: session_time() - before,
        ..Build::default()
    };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let numbers: Vec<f64> = line
            .split(' ')
            .filter_map(|number| number.parse().ok())
            .collect();
        let [tree, processor, clock] = *numbers else {
            panic!("three numbers: {line}");
        };
        let took = &mut build.trees[tree as usize];
        took.processor.push(processor / 1e9);
        took.clock.push(clock / 1e9);
    }
    build
}

/// A session that has searched the tree and knows all of it.
fn session(root: &Path) -> SearchEngine {
    let engine = SearchEngine::with(IndexSettings::default());
    let started = Instant::now();
    loop {
        search(&engine, root);
        let status = engine.index_status();
        let is_known = |it: &IndexStatus| it.indexed.min(it.watched_files) >= SOURCES;
        if status.iter().any(is_known) {
            break;
        }
        assert!(started.elapsed().as_secs() < 120, "no index: {status:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(200));
    engine
}

fn search(engine: &SearchEngine, root: &Path) {
    let query = GrepQuery::new("name_77_7\\(", root);
    let report = engine.grep(&query, &StopCondition::never());
    assert_eq!(report.expect("a sound query").tally.files, 1);
}

fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    match numbers.len() % 2 {
        0 => f64::midpoint(numbers[half - 1], numbers[half]),
        _ => numbers[half],
    }
}

fn least(numbers: Vec<f64>) -> f64 {
    numbers.into_iter().fold(f64::MAX, f64::min)
}

fn prepare(root: &Path, kind: Kind) {
    for (number, tree) in TREES.iter().enumerate() {
        let tree = root.join(tree);
        let _ = fs::remove_dir_all(tree.join("out"));
        let rules = match kind {
            Kind::Ignored => "out/\n",
            Kind::New | Kind::Watched => "",
        };
        fs::write(tree.join(".ignore"), rules).expect("room");
        if kind != Kind::New {
            for place in 0..FOLDERS {
                fs::create_dir_all(folder(root, number, place)).expect("room");
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "it is a report")]
fn measure(root: &Path, kind: Kind, rounds: usize) {
    let (mut alone, mut beside, mut next, mut idle) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        prepare(root, kind);
        alone.push(build(root));
        prepare(root, kind);
        let searched = root.join(TREES[0]);
        let engine = session(&searched);
        let before = session_time();
        std::thread::sleep(Duration::from_millis(500));
        idle.push(session_time() - before);
        beside.push(build(root));
        let before = session_time();
        search(&engine, &searched);
        next.push(session_time() - before);
    }
    prepare(root, Kind::New);
    println!(
        "\n### {} files in {kind:?} folders, {rounds} rounds\n",
        FOLDERS * IN_FOLDER
    );
    println!("| | | other tree | searched tree | more |");
    println!("|---|---|---|---|---|");
    for (which, builds) in [("no session", &alone), ("open session", &beside)] {
        for (what, pick) in [
            ("processor", (|it| &it.processor) as fn(&Took) -> &Vec<f64>),
            ("clock", |it| &it.clock),
        ] {
            for (how, choose) in [("medians", middle as fn(Vec<f64>) -> f64), ("least", least)] {
                let sum = |tree: usize| -> f64 {
                    let of = |folder: usize| {
                        let all = builds.iter().map(|build| pick(&build.trees[tree])[folder]);
                        choose(all.collect())
                    };
                    (0..FOLDERS).map(of).sum()
                };
                let session = middle(builds.iter().map(|build| build.session).collect());
                let (other, searched) = (sum(1), sum(0) + session);
                let more = (searched / other - 1.0) * 100.0;
                println!(
                    "| {which} | {what}, {how} | {other:.3} s | {searched:.3} s | {more:+.1} % |"
                );
            }
        }
    }
    println!(
        "\nThe session by itself in 0.5 s: {:.2} s; its next search after the build: {:.2} s (medians).",
        middle(idle),
        middle(next),
    );
}

fn main() {
    if let Some(root) = std::env::var_os(WRITE_TO) {
        return write(Path::new(&root));
    }
    let rounds = std::env::var("HAFT_BENCH_ROUNDS");
    let rounds = rounds.ok().and_then(|it| it.parse().ok()).unwrap_or(4);
    // In memory where there is room: what a disk is busy with would hide what is looked for.
    let memory = Some(PathBuf::from("/dev/shm")).filter(|memory| memory.is_dir());
    let place = std::env::var_os("HAFT_BENCH_PLACE").map(PathBuf::from);
    let place = match place.or(memory) {
        Some(place) => tempfile::tempdir_in(place),
        None => tempfile::tempdir(),
    };
    let place = place.expect("a temporary directory");
    let root = place.path().canonicalize().expect("it is there");
    for tree in TREES {
        sources(&root.join(tree));
    }
    for kind in [Kind::Ignored, Kind::New, Kind::Watched] {
        measure(&root, kind, rounds);
    }
}
