//! Undo of commands is exact: random operations through a real guard, undo, and undo of the undo. The same
//! when our process is killed in between.

mod operations;
mod tree;
mod vectors;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use haft_journal::{
    Journal, JournalError, UndoError, UndoHistory, UndoMode, UndoSelection, WriteGrant,
};
use haft_sandbox::{Mechanism, Sandbox, ShellCommand, WitnessLimits, WitnessRequest};
use tempfile::TempDir;
use tokio::time::timeout;

use self::operations::Random;
use self::tree::{differences, tree};
use crate::{
    lifetime::{driver::profiles, sandbox},
    outside::{marked, until},
    setting::LONG,
};

/// The variables for the process that makes the operations, and for the one that is killed.
const SEED: &str = "EXACT_UNDO_SEED";
const PROCESS: &str = "EXACT_UNDO_PROCESS";
const FOLDER: &str = "EXACT_UNDO_FOLDER";
/// The variable with another command for that process.
const TEXT: &str = "EXACT_UNDO_TEXT";
/// The variable for running one seed alone.
const ONLY: &str = "EXACT_UNDO_ONLY";

/// The number of processes of a command, and of operations of each.
const PROCESSES: usize = 3;
const OPERATIONS: usize = 14;

fn grant(call: &str) -> WriteGrant {
    WriteGrant::unconfined(call, "Bash")
}

/// The command that makes the operations of a seed: several processes at once.
fn command(seed: u64) -> String {
    let program = env::current_exe().unwrap();
    let one = |process| {
        format!(
            "{SEED}={seed} {PROCESS}={process} '{}' --exact exact_undo::makes_operations --ignored >/dev/null 2>&1",
            program.display()
        )
    };
    let all: Vec<String> = (0..PROCESSES).map(one).collect();
    format!("{} & wait", all.join(" & "))
}

#[test]
#[ignore = "started by other tests, in a sandbox"]
fn makes_operations() {
    let (Ok(seed), Ok(process)) = (env::var(SEED), env::var(PROCESS)) else {
        return;
    };
    let process: usize = process.parse().unwrap();
    let seed = seed.parse::<u64>().unwrap() * 16 + process as u64 + 1;
    let root = env::current_dir().unwrap();
    operations::run(&root, &mut Random::new(seed), OPERATIONS, process);
}

/// Runs a command in the project below a folder with a witness, as the Bash tool does. Returns `false` if
/// no guard can witness here.
#[expect(clippy::print_stderr, reason = "shown only with a failure")]
async fn run(folder: &Path, sandbox: &Sandbox, journal: &Journal, text: String) -> bool {
    let [_, profile, _] = profiles(folder);
    let roots = vec![project(folder)];
    sandbox.set_witness_store(journal.witness_store());
    if !sandbox.can_witness(&profile).await.unwrap() {
        haft_testkit::skip("exact undo: guards cannot mediate here");
        return false;
    }
    let unit = journal
        .begin_witness("call", "Bash", &text, &roots)
        .unwrap();
    let request = WitnessRequest {
        log: unit.log().try_clone().unwrap(),
        objects: unit.folder().join("objects"),
        roots,
        limits: WitnessLimits::default(),
        copies: None,
        policy: None,
    };
    let command = ShellCommand {
        text,
        cwd: project(folder),
        source_file: None,
        name_policy: None,
    };
    let started = sandbox.start_witnessed(&profile, command, Mechanism::None, &request);
    let mut running = started.await.unwrap();
    drop(request);
    timeout(LONG, running.wait_until_finished()).await.unwrap();
    assert_eq!(running.wait_for_exit().await.witness_failure, None);
    // If an assertion fails, the test shows what the guard saw.
    eprintln!("{}", fs::read_to_string(unit.folder().join("log")).unwrap());
    let changes = journal.finish_witness(unit, &grant("call"), &|_| false);
    assert_eq!(changes.uncovered, None);
    assert_eq!(changes.not_restorable, []);
    true
}

fn folder() -> TempDir {
    haft_testkit::bound_this_process();
    let folder = tempfile::Builder::new().prefix("exact-").tempdir().unwrap();
    fs::create_dir(folder.path().join("project")).unwrap();
    folder
}

fn project(folder: &Path) -> PathBuf {
    fs::canonicalize(folder).unwrap().join("project")
}

fn undo(history: &UndoHistory, which: &UndoSelection, seed: u64) -> Option<String> {
    match history.undo(&grant("undo"), which, UndoMode::Apply) {
        Ok(undone) => {
            assert_eq!(undone.left, []);
            undone.unit
        }
        Err(JournalError::Undo(UndoError::Nothing)) => None,
        Err(error) => panic!("{which:?}, seed {seed}: {error}"),
    }
}

fn check(what: &str, seed: u64, expected: &Tree, root: &Path) {
    let different = differences(expected, &tree(root));
    assert!(
        different.is_empty(),
        "{what}, seed {seed}:\n{}",
        different.join("\n")
    );
}

type Tree = std::collections::BTreeMap<String, String>;

#[tokio::test]
async fn undo_restores_the_tree_and_undo_of_the_undo_the_end_of_the_command() {
    let runs = match haft_testkit::is_thorough() {
        true => 600,
        false => 120,
    };
    let only = env::var(ONLY).ok().and_then(|seed| seed.parse().ok());
    let folder = folder();
    let root = project(folder.path());
    let sandbox = sandbox(folder.path(), Mechanism::Namespaces);
    for seed in only.map_or(0..runs, |seed: u64| seed..seed + 1) {
        for entry in fs::read_dir(&root).unwrap().flatten() {
            let path = entry.path();
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        operations::prepare(&root, &mut Random::new(seed));
        let before = tree(&root);
        let undo_folder = folder.path().join("undo");
        let journal = Journal::new(None).with_undo(&undo_folder);
        if !run(folder.path(), &sandbox, &journal, command(seed)).await {
            return;
        }
        let after = tree(&root);
        let history = journal.history().unwrap();
        match undo(history, &UndoSelection::Last, seed) {
            None => check("nothing changed", seed, &before, &root),
            Some(unit) => {
                check("after undo", seed, &before, &root);
                undo(history, &UndoSelection::Unit(unit), seed);
                check("after undo of the undo", seed, &after, &root);
            }
        }
        // The store of the sandbox stays; its contents are those of one run.
        drop(journal);
        for entry in fs::read_dir(&undo_folder).unwrap().flatten() {
            let path = entry.path();
            if !path.ends_with("live") {
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            }
        }
    }
    sandbox.close().await;
}

#[tokio::test]
#[ignore = "started by another test, which kills it"]
async fn works_until_it_is_killed() {
    let (Ok(seed), Some(folder)) = (env::var(SEED), env::var_os(FOLDER)) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let journal = Journal::new(None).with_undo(folder.join("undo"));
    let sandbox = sandbox(&folder, Mechanism::Namespaces);
    let text = match env::var(TEXT) {
        Ok(text) => text,
        Err(_) => format!("{}; sleep 1000", command(seed.parse().unwrap())),
    };
    run(&folder, &sandbox, &journal, text).await;
}

/// Returns the process that is killed while its command runs in the project below a folder.
fn killable(folder: &Path) -> Command {
    let mut process = Command::new(env::current_exe().unwrap());
    process
        .args([
            "--exact",
            "exact_undo::works_until_it_is_killed",
            "--ignored",
        ])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    process
}

/// Starts a process that runs this command.
fn start_process(folder: &Path, text: &str) -> Child {
    let mut process = killable(folder);
    process.env(SEED, "0").env(TEXT, text).spawn().unwrap()
}

#[tokio::test]
async fn undo_survives_the_death_of_our_process() {
    let runs = match haft_testkit::is_thorough() {
        true => 120,
        false => 25,
    };
    for seed in 0..runs {
        let folder = folder();
        let root = project(folder.path());
        operations::prepare(&root, &mut Random::new(seed));
        let before = tree(&root);
        let mut process = killable(folder.path())
            .env(SEED, seed.to_string())
            .spawn()
            .unwrap();
        // At whatever point it is: between its start and the end of all operations.
        let mut random = Random::new(seed + 1);
        tokio::time::sleep(Duration::from_millis(20 + random.below(60) as u64)).await;
        process.kill().unwrap();
        process.wait().unwrap();
        until("no process is left", || {
            marked(&folder.path().display().to_string()).is_empty()
        })
        .await;
        let history = UndoHistory::open(folder.path().join("undo"));
        history.recover().unwrap();
        let listed = history.list(10).unwrap();
        if listed.is_empty() {
            check("nothing is listed", seed, &before, &root);
            continue;
        }
        assert_eq!(listed[0].left, [], "seed {seed}");
        undo(&history, &UndoSelection::Last, seed);
        check("after death and undo", seed, &before, &root);
    }
}
