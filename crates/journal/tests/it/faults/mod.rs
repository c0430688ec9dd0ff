//! A fault at every step of a mutation: killed, or a system call that fails.
//!
//! The steps are the system calls of an undisturbed run. For each of them a child makes the same
//! change from the same state and meets the fault there; then comes the next start, and everything
//! is compared: the files, what was reported, what is left lying about, and what undo gives back.

mod go_on;
mod scene;

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_journal::{UndoMode, UndoSelection, UnitState};

use crate::strace::{self, Ran, Step};
use crate::tree::Tree;
use scene::{CALL, Scene, journal, ticket, work};

const FOLDER: &str = "HAFT_FAULT_FOLDER";
const SCENE: &str = "HAFT_FAULT_SCENE";

/// The child.
#[test]
fn acts() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let scene = Scene::named(&std::env::var(SCENE).unwrap());
    strace::get_ahead();
    match scene.act(&folder) {
        Ok(()) => strace::say("done"),
        Err(error) => strace::say(&format!("failed: {error}")),
    }
    strace::say("end");
    std::process::exit(0);
}

fn variables<'a>(scene: &'a str, folder: &'a Path) -> [(&'a str, &'a str); 2] {
    [(FOLDER, folder.to_str().unwrap()), (SCENE, scene)]
}

fn child(scene: Scene, folder: &Path, injections: &[String]) -> Ran {
    let scene = format!("{scene:?}");
    strace::run("faults::acts", &variables(&scene, folder), injections)
}

/// A scene with a system that is different throughout: what a rename does not do here, and so on.
#[derive(Debug, Clone, Copy)]
struct Play {
    scene: Scene,
    always: &'static [&'static str],
}

impl Play {
    const fn plain(scene: Scene) -> Self {
        Self { scene, always: &[] }
    }

    fn injections(&self, more: impl IntoIterator<Item = String>) -> Vec<String> {
        let always = self.always.iter().map(|&one| one.to_owned());
        always.chain(more).collect()
    }
}

/// The undisturbed run: its steps, and the files before and after.
struct Script {
    play: Play,
    steps: Vec<Step>,
    old: Tree,
    new: Tree,
}

impl Script {
    fn of(play: Play) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        play.scene.set_up(folder);
        let old = Tree::of(&work(folder));
        let name = format!("{:?}", play.scene);
        let (ran, steps) = strace::steps(
            "faults::acts",
            &variables(&name, folder),
            &play.injections([]),
        );
        assert_eq!(ran.said, ["done"], "{play:?}");
        let script = Self {
            play,
            steps,
            new: Tree::of(&work(folder)),
            old,
        };
        assert_ne!(script.old, script.new);
        script.check(folder, &ran, "nothing was disturbed");
        script
    }

    /// One run with a fault, from the state before to the last check.
    fn disturb(&self, fault: &Fault) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        self.play.scene.set_up(folder);
        let injections = self.play.injections(fault.injections.iter().cloned());
        let ran = child(self.play.scene, folder, &injections);
        let what = format!("{:?}, {}", self.play, fault.words);
        assert!(ran.began, "{what}: hit too early");
        assert_eq!(ran.killed, fault.kills, "{what}: {ran:?}");
        if let Some(words) = ran.said.first().filter(|words| *words != "done") {
            assert!(
                !fault.full || words.contains("disk full"),
                "{what}: {words}"
            );
        }
        self.check(folder, &ran, &what);
    }

    /// After a run, disturbed or not: what is true at the next start.
    fn check(&self, folder: &Path, ran: &Ran, what: &str) {
        let scene = self.play.scene;
        let found = Tree::of(&work(folder));
        if !scene.is_in_place() && self.play.always.is_empty() {
            assert!(
                found.is_made_of([&self.old, &self.new]),
                "{what}: half written before the next start"
            );
        }
        let journal = journal(folder);
        let history = journal.history().unwrap();
        assert_eq!(
            history.recover().unwrap(),
            [],
            "{what}: not settled at once"
        );
        let mut found = Tree::of(&work(folder));
        let said = ran.said.first().map(String::as_str);
        if scene == Scene::UndoCreation && said.is_some() {
            // A directory that could not be removed is no reason to keep the file in it.
            found = found.pruned();
        }
        let expected: &[&Tree] = match said {
            _ if scene == Scene::Recovery => &[&self.new],
            Some("done") => &[&self.new],
            Some(error)
                if error.contains("may be incomplete")
                    || error.contains("could not be restored") =>
            {
                &[&self.old, &self.new]
            }
            Some(_) => &[&self.old],
            None => &[&self.old, &self.new],
        };
        assert!(
            expected.contains(&&found),
            "{what}: {said:?}, but {:#?}",
            expected
                .iter()
                .map(|expected| found.difference(expected))
                .collect::<Vec<_>>()
        );
        let units = history.list(100).unwrap();
        let settled = |state: &UnitState| !matches!(state, UnitState::Open | UnitState::Unclear);
        assert!(
            units.iter().all(|unit| settled(&unit.state)),
            "{what}: {units:#?}"
        );
        assert_eq!(litter(folder), Vec::<String>::new(), "{what}: {said:?}");
        if scene == Scene::Recovery {
            return;
        }
        let stands = units
            .iter()
            .any(|unit| unit.call == CALL && unit.state == UnitState::Made);
        assert_eq!(stands, found == self.new, "{what}: {units:#?}");
        if stands {
            let undone = journal.undo(
                &ticket(folder, "back"),
                &UndoSelection::Unit(CALL.to_owned()),
                UndoMode::Apply,
            );
            assert!(undone.is_ok(), "{what}: {undone:?}");
            let found = Tree::of(&work(folder));
            assert_eq!(found.difference(&self.old), Vec::<String>::new(), "{what}");
        }
    }
}

/// What is in the undo journal's folder and should not be.
fn litter(folder: &Path) -> Vec<String> {
    let undo = folder.join("undo");
    let log = fs::read_to_string(undo.join("log.jsonl")).unwrap_or_default();
    let tree = match undo.exists() {
        true => Tree::of(&undo),
        false => return Vec::new(),
    };
    let known = [
        ".ignore",
        "log.jsonl",
        "blobs",
        "live",
        "live/.copies",
        "keep",
    ];
    let known = known.map(Path::new);
    let names = tree.names().filter(|path| {
        let is_kept = path.parent() == Some(Path::new("blobs"))
            && log.contains(path.file_name().unwrap().to_str().unwrap());
        let is_stored = path.starts_with("keep") && log.contains(path.to_str().unwrap());
        !known.contains(path) && !is_kept && !is_stored
    });
    names.map(|path| path.display().to_string()).collect()
}

struct Fault {
    words: String,
    injections: Vec<String>,
    kills: bool,
    /// The disk, or what we may have of it.
    full: bool,
}

impl Fault {
    fn kill(step: &Step) -> Self {
        Self {
            words: format!("killed before {step}"),
            injections: vec![format!("{}:signal=SIGKILL:when={}", step.call, step.nth)],
            kills: true,
            full: false,
        }
    }

    fn error(error: &str, step: &Step) -> Self {
        Self {
            words: format!("{error} at {step}"),
            injections: vec![format!("{}:error={error}:when={}", step.call, step.nth)],
            kills: false,
            full: error != "EIO",
        }
    }

    /// From this step on every call of these names fails.
    fn from(error: &str, steps: &[Step], at: usize, names: &[&str]) -> Self {
        let names = names.iter().map(|name| {
            let made = steps[..at].iter().rev().find(|step| step.call == *name);
            let next = steps[at..].iter().find(|step| step.call == *name);
            let nth = match (made, next) {
                (_, Some(next)) => next.nth,
                (Some(made), None) => made.nth + 1,
                (None, None) => 1,
            };
            format!("{name}:error={error}:when={nth}+")
        });
        Self {
            words: format!("{error} from {} on", steps[at]),
            injections: names.collect(),
            kills: false,
            full: error != "EIO",
        }
    }
}

/// Every second one, unless all are asked for: steps that follow each other are much alike.
fn some(faults: impl Iterator<Item = Fault>) -> Vec<Fault> {
    let each = if haft_testkit::is_thorough() { 1 } else { 2 };
    faults.step_by(each).collect()
}

/// Meets all faults, two at a time, and tells of all that went wrong.
fn meet_all(faults: impl IntoIterator<Item = (Script, Vec<Fault>)>) {
    let all: Vec<(Script, Vec<Fault>)> = faults.into_iter().collect();
    let jobs = all
        .iter()
        .flat_map(|(script, faults)| faults.iter().map(move |fault| (script, fault)));
    let (jobs, broken) = (Mutex::new(jobs), AtomicUsize::new(0));
    let next = || jobs.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((script, fault)) = next() {
                    // The panic has told what is wrong; the others are worth knowing, too.
                    if catch_unwind(AssertUnwindSafe(|| script.disturb(fault))).is_err() {
                        broken.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(broken.into_inner(), 0, "faults that broke a promise");
}

/// For each play the undisturbed run, and the faults that come of its steps.
fn meet(plays: &[Play], faults: impl Fn(&[Step]) -> Vec<Fault>) {
    if !strace::is_there() {
        return;
    }
    meet_all(plays.iter().map(|&play| {
        let script = Script::of(play);
        let faults = faults(&script.steps);
        assert!(!faults.is_empty());
        (script, faults)
    }));
}

/// File systems on which a step is not possible, so that another way is taken.
const OTHERWISE: [Play; 3] = [
    Play {
        scene: Scene::Overwrite,
        always: &["renameat:error=EXDEV"],
    },
    Play {
        scene: Scene::UndoEdit,
        always: &["fchown:error=EPERM"],
    },
    Play {
        scene: Scene::WriteNew,
        always: &["renameat2:error=EINVAL"],
    },
];

/// 77.
#[test]
fn killed_at_every_step_files_are_old_or_new() {
    let mut plays = Scene::ALL.map(Play::plain).to_vec();
    if cfg!(target_arch = "x86_64") {
        // Elsewhere the undo journal's own renames are the same call.
        plays.extend(OTHERWISE);
    }
    meet(&plays, |steps| {
        let changing = steps.iter().filter(|step| step.changes());
        changing.map(Fault::kill).collect()
    });
}

/// Something fails once: what is reported is what happened.
#[test]
fn an_error_at_any_step_changes_all_or_nothing() {
    // Whatever it is that fails.
    let all = [Scene::Overwrite, Scene::WriteNew, Scene::UndoOfUndo].map(Play::plain);
    meet(&all, |steps| {
        let mut seen = HashSet::new();
        // Several that do the same are one: the components of a path, the parts of a file.
        let distinct = steps
            .iter()
            .filter(|step| step.changes() || seen.insert(step.to_string()));
        some(distinct.map(|step| Fault::error("EIO", step)))
    });
    // A step that changes something.
    let changing = [
        Scene::Edit,
        Scene::EditLinked,
        Scene::ReplaceInFiles,
        Scene::UndoEdit,
        Scene::UndoCreation,
        Scene::UndoCommand,
        Scene::UndoOfUndoneCommand,
        Scene::UndoWitnessed,
        Scene::RedoWitnessed,
        Scene::DropOldest,
        Scene::Recovery,
    ];
    meet(&changing.map(Play::plain), |steps| {
        let opening = |step: &Step| step.call.starts_with("openat");
        let steps = steps.iter().filter(|step| step.changes() || opening(step));
        some(steps.map(|step| Fault::error("EIO", step)))
    });
}

/// 78: the disk is full from a step on, for good.
#[test]
fn a_full_disk_changes_all_or_nothing_and_is_named() {
    const TAKE_ROOM: [&str; 9] = [
        "write",
        "pwrite64",
        "fallocate",
        "fsync",
        "fdatasync",
        "fsetxattr",
        "mkdir",
        "mkdirat",
        "renameat2",
    ];
    meet(&Scene::ALL.map(Play::plain), |steps| {
        let taking = (0..steps.len()).filter(|&at| TAKE_ROOM.contains(&steps[at].call.as_str()));
        taking
            .zip(["ENOSPC", "EDQUOT"].iter().cycle())
            .map(|(at, error)| Fault::from(error, steps, at, &TAKE_ROOM))
            .collect()
    });
}

/// The disk is lost at a step: nothing works any more until the next start.
#[test]
fn a_lost_disk_is_settled_at_the_next_start() {
    const ALL: [&str; 18] = [
        "openat",
        "openat2",
        "write",
        "pwrite64",
        "ftruncate",
        "fallocate",
        "fchmod",
        "fchown",
        "fsetxattr",
        "fsync",
        "fdatasync",
        "rename",
        "renameat",
        "renameat2",
        "unlink",
        "unlinkat",
        "mkdir",
        "mkdirat",
    ];
    let scenes = [
        Scene::EditLinked,
        Scene::WriteNew,
        Scene::ReplaceInFiles,
        Scene::UndoOfUndo,
        Scene::UndoCommand,
        Scene::UndoWitnessed,
        Scene::RedoWitnessed,
        Scene::Recovery,
    ];
    meet(&scenes.map(Play::plain), |steps| {
        let changing = (0..steps.len()).filter(|&at| steps[at].changes());
        some(changing.map(|at| Fault::from("EIO", steps, at, &ALL)))
    });
}
