//! kill -9 in the middle of a session; two processes on one file.
//!
//! The test binary runs itself: with `HAFT_CRASH` set, the test of that name is
//! the child. It says on its standard output what it has done; the parent kills
//! it, settles what was interrupted, and looks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::UNIX_EPOCH;

use haft_journal::edit::EditRequest;
use haft_journal::{
    ContentHash, FileChange, Journal, PageRequest, UndoMode, UndoSelection, UnitState, WriteGrant,
};

use crate::strace;

const ROLE: &str = "HAFT_CRASH";
const FILES: usize = 4;
const CALLS: u64 = 12;

fn child(test: &str, folder: &Path, name: &str) -> Child {
    haft_testkit::command(std::env::current_exe().unwrap())
        .args([
            &format!("crash::{test}"),
            "--exact",
            "--nocapture",
            "--quiet",
        ])
        .env(ROLE, folder)
        .env("HAFT_CRASH_NAME", name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A state of a file that tells whether it is whole: each line names the generation, and the last
/// one counts them. Sizes differ widely, so that a half written file cannot look right.
fn content(file: usize, generation: u64) -> String {
    let lines = (generation * 37 + file as u64 * 11) % 50;
    let mut text = format!("generation {generation}\n");
    for line in 0..lines {
        text.push_str(&format!(
            "{generation} {line} ================================\n"
        ));
    }
    text.push_str(&format!("end {generation} {lines}\n"));
    text
}

/// The generation of a whole file; panics if it is a mixture.
fn generation(file: usize, found: &[u8]) -> u64 {
    let text = std::str::from_utf8(found).unwrap();
    let first = text.lines().next().unwrap_or_default();
    let number: u64 = first.strip_prefix("generation ").unwrap().parse().unwrap();
    assert!(content(file, number) == text, "file {file} is half written");
    number
}

fn file(folder: &Path, number: usize) -> PathBuf {
    folder.join("work").join(format!("file-{number}"))
}

fn ticket(folder: &Path, call: &str) -> WriteGrant {
    WriteGrant::new(call, "Crash", [folder.join("work")])
}

fn journal(folder: &Path) -> Journal {
    Journal::new(None).with_undo(folder.join("session/undo"))
}

/// The child: changes files in every way there is.
#[test]
fn changes_files() {
    let Some(folder) = std::env::var_os(ROLE).map(PathBuf::from) else {
        return;
    };
    strace::get_ahead();
    let journal = journal(&folder);
    for number in 0..FILES {
        let request = PageRequest {
            limit: Some(10_000),
            ..PageRequest::default()
        };
        journal.read(&file(&folder, number), &request).unwrap();
    }
    strace::say("begin");
    for step in 1..=CALLS {
        let call = format!("call-{step:04}");
        let ticket = ticket(&folder, &call);
        let number = step as usize % FILES;
        let path = file(&folder, number);
        let now = fs::read_to_string(&path).unwrap();
        match step % 5 {
            // Edit needs a text that is there once: the whole.
            0 | 1 => {
                let (old, new) = (now.as_str(), content(number, step));
                let change = EditRequest {
                    old,
                    new: &new,
                    replace_all: false,
                };
                journal.edit(&ticket, &path, &change).unwrap();
            }
            2 => {
                let all = (0..FILES).map(|number| FileChange {
                    path: file(&folder, number),
                    authorized_path: None,
                    expected: ContentHash::compute(&fs::read(file(&folder, number)).unwrap()),
                    content: content(number, step).into_bytes(),
                });
                journal.apply_all(&ticket, all.collect()).unwrap();
            }
            3 => {
                journal
                    .undo(&ticket, &UndoSelection::Last, UndoMode::Apply)
                    .unwrap();
            }
            _ => {
                let made = folder.join(format!("work/made-{step}/deep/file"));
                journal.write(&ticket, &made, &content(0, step)).unwrap();
            }
        }
        strace::say(&call);
    }
    strace::say("end");
    std::process::exit(0);
}

fn set_up(folder: &Path) {
    fs::create_dir(folder.join("work")).unwrap();
    for number in 0..FILES {
        fs::write(file(folder, number), content(number, 0)).unwrap();
    }
    // The last file is written in place.
    fs::hard_link(file(folder, FILES - 1), folder.join("twin")).unwrap();
}

/// Somewhere in a long session: files are old or new, nothing is left lying about, and everything
/// that was completed can be taken back. (Every step of each kind of change: `faults`.)
#[test]
fn killed_in_the_middle_of_a_session_all_of_it_can_be_taken_back() {
    if !strace::is_there() {
        return;
    }
    let run = |folder: &Path, injections: &[String]| {
        let variables = [(ROLE, folder.to_str().unwrap())];
        strace::run("crash::changes_files", &variables, injections)
    };
    let dir = tempfile::tempdir().unwrap();
    set_up(dir.path());
    let variables = [(ROLE, dir.path().to_str().unwrap())];
    let (ran, steps) = strace::steps("crash::changes_files", &variables, &[]);
    assert_eq!(ran.said.len() as u64, CALLS);
    let mut is_running = false;
    for (at, step) in steps.iter().filter(|step| step.changes()).enumerate() {
        // The calls are alike: a number that divides no count of their steps finds all of them.
        if at % 7 == 0 {
            let dir = tempfile::tempdir().unwrap();
            set_up(dir.path());
            let kill = format!("{}:signal=SIGKILL:when={}", step.call, step.nth);
            let ran = run(dir.path(), &[kill]);
            assert!(ran.killed, "{step}");
            let interrupted = check(dir.path(), &ran.said);
            assert_eq!(interrupted, usize::from(is_running), "{step}");
        }
        let is_record = |kind: &str| {
            step.line
                .contains(&format!("{{\\\"kind\\\":\\\"{kind}\\\""))
        };
        is_running = is_record("intent") || is_running && !is_record("outcome");
    }
}

/// What holds after a kill and the next start. How many units were found interrupted: none or one.
fn check(folder: &Path, done: &[String]) -> usize {
    let last = done.len() as u64 + 1;
    let journal = journal(folder);
    let history = journal.history().unwrap();
    assert_eq!(history.recover().unwrap(), []);
    let mut generations = Vec::new();
    for number in 0..FILES {
        generations.push(generation(number, &fs::read(file(folder, number)).unwrap()));
    }
    assert!(generations.iter().all(|&found| found <= last));
    assert_eq!(
        fs::read(folder.join("twin")).unwrap(),
        fs::read(file(folder, FILES - 1)).unwrap()
    );
    // A unit of several files happened as a whole, or not at all.
    let listed = history.list(1_000).unwrap();
    let states: BTreeMap<&str, &UnitState> = listed
        .iter()
        .map(|unit| (unit.id.as_str(), &unit.state))
        .collect();
    for call in done {
        assert!(
            matches!(
                states[call.as_str()],
                UnitState::Made | UnitState::Undone { .. }
            ),
            "{call}: {:?}",
            states[call.as_str()]
        );
    }
    assert!(
        listed
            .iter()
            .all(|unit| !matches!(unit.state, UnitState::Open | UnitState::Unclear))
    );
    let standing = listed.iter().filter(|unit| unit.state == UnitState::Made);
    let files = standing.flat_map(|unit| unit.files.iter().map(|file| file.real.clone()));
    no_litter(&folder.join("work"), &files.collect::<Vec<_>>());

    if listed
        .iter()
        .any(|unit| matches!(unit.state, UnitState::Made | UnitState::Undone { .. }))
    {
        let all = journal.undo(
            &ticket(folder, "all"),
            &UndoSelection::Since(UNIX_EPOCH),
            UndoMode::Apply,
        );
        // Undone to the last step already: fine, too.
        if let Err(error) = all {
            assert!(error.to_string().contains("undone already"), "{error}");
        }
    }
    for number in 0..FILES {
        assert_eq!(
            generation(number, &fs::read(file(folder, number)).unwrap()),
            0
        );
    }
    assert_eq!(crate::names_in(&folder.join("work")).len(), FILES);
    journal.recovered().len()
}

/// Nothing of ours but the files, and directories only where a file stands.
fn no_litter(directory: &Path, standing: &[PathBuf]) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!name.starts_with(".haft-"), "litter: {}", path.display());
        if path.is_dir() {
            let real = path.canonicalize().unwrap();
            let used = standing.iter().any(|file| file.starts_with(&real));
            assert!(used, "an empty directory was left: {}", path.display());
            no_litter(&path, standing);
        }
    }
}

/// The child: marks its own lines of a shared file, one after the other.
#[test]
fn marks_its_lines() {
    let Some(folder) = std::env::var_os(ROLE).map(PathBuf::from) else {
        return;
    };
    let name = std::env::var("HAFT_CRASH_NAME").unwrap();
    let journal = Journal::new(None).with_undo(folder.join(&name));
    let path = folder.join("shared");
    let mut out = std::io::stdout();
    for line in 0..EDITS {
        let (old, new) = (
            format!("{name} {line:03} open"),
            format!("{name} {line:03} done"),
        );
        let change = EditRequest {
            old: &old,
            new: &new,
            replace_all: false,
        };
        // Refused is fine, lost is not: look again and retry.
        for _ in 0..1_000 {
            journal.read(&path, &PageRequest::default()).unwrap();
            let ticket = WriteGrant::unconfined(format!("{name}-{line}"), "Edit");
            match journal.edit(&ticket, &path, &change) {
                Ok(_) => {
                    writeln!(out, "\ndone {line}").unwrap();
                    break;
                }
                Err(error) => assert!(error.to_string().contains("since"), "{error}"),
            }
        }
    }
}

const EDITS: usize = 60;

#[test]
fn two_processes_on_one_file_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        |name: &str, number: usize, state: &str| format!("{name} {number:03} {state}\n\n\n\n\n");
    let text = |state: &str| -> String {
        (0..EDITS)
            .flat_map(|number| [line("left", number, state), line("right", number, state)])
            .collect()
    };
    fs::write(dir.path().join("shared"), text("open")).unwrap();
    let children = ["left", "right"].map(|name| child("marks_its_lines", dir.path(), name));
    for mut child in children {
        let out = BufReader::new(child.stdout.take().unwrap());
        let done = out
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.starts_with("done "))
            .count();
        assert!(child.wait().unwrap().success());
        assert_eq!(done, EDITS);
    }
    let found = fs::read_to_string(dir.path().join("shared")).unwrap();
    assert_eq!(found, text("done"));
}
