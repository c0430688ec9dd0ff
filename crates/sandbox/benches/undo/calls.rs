//! The cost of single system calls, and the commands whose undo has a bound.

use std::{env, fs, fs::OpenOptions, path::Path, time::Duration};

use haft_testkit::measure::{median, millis, row};

use crate::{
    costs,
    project::{Project, inodes, tree},
    row_of,
};

/// The variable that makes this program a process of the measured commands.
const CALL: &str = "HAFT_BENCH_CALL";
/// The number of calls of a measured command.
const CALLS: usize = 20_000;

/// Returns whether this process was started by a measured command.
pub(crate) fn is_call_process() -> bool {
    env::var_os(CALL).is_some()
}

/// Makes the calls of a measured command in the current directory.
pub(crate) fn run() {
    let call = env::var(CALL).unwrap();
    for number in 0..CALLS {
        let path = number.to_string();
        match call.as_str() {
            "open" => drop(OpenOptions::new().write(true).open(path).unwrap()),
            "create" => drop(fs::File::create_new(path).unwrap()),
            "unlink" => fs::remove_file(path).unwrap(),
            _ => panic!("unknown call {call}"),
        }
    }
}

fn fill(root: &Path, count: usize, size: usize) {
    let content = vec![b'x'; size];
    for number in 0..count {
        fs::write(root.join(number.to_string()), &content).unwrap();
    }
}

fn make(call: &str) -> String {
    format!("{CALL}={call} '{}'", env::current_exe().unwrap().display())
}

pub(crate) async fn measure() {
    let files = Project::new(|root| fill(root, CALLS, 4096));
    let empty = Project::new(|_| {});
    let rows = [
        ("20,000 opens of existing 4 KiB files", &files, "open", 1.5),
        ("20,000 created files", &empty, "create", 1.1),
        ("20,000 removed files", &files, "unlink", 1.3),
    ];
    for (what, project, call, bound) in rows {
        row_of(what, costs(project, &make(call)).await, Some(bound));
    }
    write_among_many().await;
    remove_many().await;
}

/// One changed file in a large directory tree against one in an empty directory.
async fn write_among_many() {
    const DIRECTORIES: usize = 150;
    let empty = Project::new(|_| {});
    let large = Project::new(|root| {
        for number in 0..DIRECTORIES {
            let directory = root.join(format!("d{number}"));
            fs::create_dir(&directory).unwrap();
            fill(&directory, 1000, 0);
        }
    });
    let mut walls = Vec::new();
    for project in [&empty, &large] {
        project.prepare();
        let mut samples = Vec::new();
        for _ in 0..11 {
            samples.push(project.witness("echo x > f").await.0.wall);
        }
        walls.push((samples[0], median(samples)));
    }
    let more = |large: Duration, empty: Duration| millis(large) - millis(empty);
    let (first, later) = (more(walls[1].0, walls[0].0), more(walls[1].1, walls[0].1));
    row(
        "`echo x > f` among 150,000 files, more than in an empty directory",
        &format!("{later:.1} ms (first command {first:.1} ms)"),
        "≤ 5 ms",
        later <= 5.0,
    );
}

/// A large tree is removed and restored.
async fn remove_many() {
    let project = Project::new(|root| {
        for number in 0..50 {
            let directory = root.join(format!("modules/d{number}"));
            fs::create_dir_all(&directory).unwrap();
            fill(&directory, 1000, 12_000);
        }
    });
    project.prepare();
    let (before, present) = (tree(&project.root()), inodes(&project.root()));
    let (cost, journal) = project.witness("rm -rf modules").await;
    let stored = inodes(&project.undo_folder().join("keep"));
    let linked = present.intersection(&stored).count();
    let took = project.undo(&journal, &before);
    row(
        "`rm -rf` of 50,000 files (600 MB), undone",
        &format!(
            "{:.1} s; command {:.1} s, {linked} files stored by link",
            took.as_secs_f64(),
            cost.wall.as_secs_f64()
        ),
        "≤ 10 s",
        took <= Duration::from_secs(10) && linked == 50_000,
    );
}
