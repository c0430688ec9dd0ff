//! The witness: what a guard stores before it carries out a change.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_sandbox::{
    CommandOutput, Mechanism, ShellCommand, StoragePolicy, WitnessLimits, WitnessRequest,
};
use haft_witness::{KeptWay, OpenUnit, UnitFolder, UnitHeader, WitnessedChange, WitnessedKind};
use tokio::{io::AsyncReadExt, time::timeout};

use crate::setting::{LONG, Place};

/// A witnessed command that has ended.
pub(crate) struct Witnessed {
    pub(crate) text: String,
    failure: Option<String>,
    pub(crate) folder: UnitFolder,
    changes: Vec<WitnessedChange>,
    is_complete: bool,
}

/// What a guard may store, and how it asks for more.
#[derive(Default)]
pub(crate) struct WitnessSetup {
    pub(crate) limits: WitnessLimits,
    pub(crate) policy: Option<Arc<dyn StoragePolicy>>,
    pub(crate) copies: Option<PathBuf>,
}

/// Runs a command with a witness. `None` if none can be had here.
async fn run(place: &Place, text: &str) -> Option<Witnessed> {
    run_with(place, text, WitnessLimits::default()).await
}

async fn run_with(place: &Place, text: &str, limits: WitnessLimits) -> Option<Witnessed> {
    let setup = WitnessSetup {
        limits,
        ..WitnessSetup::default()
    };
    run_in(place, text, setup).await
}

pub(crate) async fn run_in(place: &Place, text: &str, setup: WitnessSetup) -> Option<Witnessed> {
    let store = place.path("store");
    fs::create_dir_all(&store).unwrap();
    place.sandbox.set_witness_store(Some(store.clone()));
    let profile = place.workspace();
    if !place.sandbox.can_witness(&profile).await.unwrap() {
        haft_testkit::skip("a witness: guards cannot mediate here");
        return None;
    }
    let count = fs::read_dir(&store).unwrap().count();
    let header = UnitHeader {
        call: format!("call_{count}"),
        tool: "Bash".to_owned(),
        about: text.to_owned(),
        time: 0,
        roots: vec![(&*place.project()).into()],
    };
    let (folder, open) = UnitFolder::create(store.join(count.to_string()), &header).unwrap();
    let OpenUnit { log, .. } = &open;
    let request = WitnessRequest {
        log: log.try_clone().unwrap(),
        objects: folder.objects(),
        roots: vec![place.project()],
        limits: setup.limits,
        copies: setup.copies,
        policy: setup.policy,
    };
    let command = ShellCommand {
        text: text.to_owned(),
        cwd: place.project(),
        source_file: None,
        name_policy: None,
    };
    let started = place
        .sandbox
        .start_witnessed(&profile, command, Mechanism::None, &request);
    let mut running = started.await.unwrap();
    let mut output = CommandOutput::take(&mut running.output);
    let mut bytes = Vec::new();
    // The handle answers questions of the guard while it waits.
    let both = async {
        tokio::join!(
            output.read_to_end(&mut bytes),
            running.wait_until_finished()
        )
    };
    let (read, ()) = timeout(LONG, both).await.unwrap();
    read.unwrap();
    let log = folder.read().unwrap();
    Some(Witnessed {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        failure: running.wait_for_exit().await.witness_failure,
        changes: log.changes,
        is_complete: log.is_complete,
        folder,
    })
}

impl Witnessed {
    /// The names that changed, relative to the project, each with the kind of its first entry.
    fn names(&self, place: &Place) -> Vec<(String, Option<WitnessedKind>)> {
        let named = self.changes.iter().filter_map(|change| match change {
            WitnessedChange::Name { path, entry } => {
                let kind = entry.as_ref().map(|entry| entry.kind);
                Some((below(place, path.as_path()), kind))
            }
            _ => None,
        });
        named.collect()
    }

    /// The files that changed, each with how it was stored and its stored content.
    pub(crate) fn files(&self, place: &Place) -> Vec<(String, Option<KeptWay>, String)> {
        let files = self.changes.iter().filter_map(|change| match change {
            WitnessedChange::Object {
                path,
                kept,
                missing,
                ..
            } => {
                let content = kept.as_ref().map(|kept| {
                    fs::read_to_string(self.folder.objects().join(&kept.name)).unwrap()
                });
                let content = content.or(missing.clone()).unwrap_or_default();
                let way = kept.as_ref().map(|kept| kept.way);
                Some((below(place, path.as_path()), way, content))
            }
            _ => None,
        });
        files.collect()
    }
}

fn below(place: &Place, path: &Path) -> String {
    let below = path.strip_prefix(place.project()).unwrap();
    below.display().to_string()
}

pub(crate) fn write(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.project().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn old_contents_and_names_are_stored_before_they_change() {
    let place = Place::new();
    for name in [
        "written",
        "truncated",
        "removed",
        "replaced",
        "moved",
        "d/f",
    ] {
        write(&place, name, name);
    }
    let inode = fs::metadata(place.project().join("removed")).unwrap().ino();
    let text = "echo 2 > written; echo 3 >> written; truncate -s 1 truncated; rm removed; \
                echo new > new; mv new replaced; mv moved elsewhere; rm -r d; \
                mkdir made; echo x > made/x; mv made/x made/y; echo gone > gone; rm gone; ln -s a link";
    let Some(done) = run(&place, text).await else {
        return;
    };
    assert_eq!((done.text.as_str(), &done.failure), ("", &None));
    assert!(done.is_complete);
    let file = |name: &str, way: KeptWay| (name.to_owned(), Some(way), name.to_owned());
    assert_eq!(
        done.files(&place),
        [
            file("written", KeptWay::Copy),
            file("truncated", KeptWay::Copy),
            file("removed", KeptWay::Link),
            file("replaced", KeptWay::Link),
            file("d/f", KeptWay::Link),
            ("d".to_owned(), None, String::new()),
        ]
    );
    let name = |name: &str, kind| (name.to_owned(), kind);
    let existing = Some(WitnessedKind::File);
    assert_eq!(
        done.names(&place),
        [
            name("removed", existing),
            name("new", None),
            name("replaced", existing),
            name("moved", existing),
            name("elsewhere", None),
            name("d/f", existing),
            name("d", Some(WitnessedKind::Directory)),
            name("made", None),
            name("gone", None),
            name("link", None),
        ]
    );
    let stored = fs::read_dir(done.folder.objects()).unwrap();
    let inodes: Vec<u64> = stored
        .map(|one| one.unwrap().metadata().unwrap().ino())
        .collect();
    assert!(inodes.contains(&inode), "the file itself is kept");
}

#[tokio::test]
async fn metadata_is_stored_by_path_and_by_open_file() {
    let place = Place::new();
    for name in ["a", "b", "c", "d/x"] {
        let path = write(&place, name, name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let text = "chmod 600 a; touch -d 2001-01-01 b; chmod 700 d; exec 3< c; chmod 611 /dev/fd/3; \
                stat -c %a a c d; stat -c %Y b";
    let Some(done) = run(&place, text).await else {
        return;
    };
    assert_eq!(done.text, "600\n611\n700\n978307200\n");
    let changed = done.changes.iter().filter_map(|change| match change {
        WitnessedChange::Object {
            path, entry, kept, ..
        } => Some((below(&place, path.as_path()), entry.mode, kept.is_some())),
        _ => None,
    });
    let changed: Vec<_> = changed.collect();
    // `touch` opens the file for writing.
    assert_eq!(
        changed,
        [
            ("a".to_owned(), 0o640, false),
            ("b".to_owned(), 0o640, true),
            ("d".to_owned(), 0o755, false),
            ("c".to_owned(), 0o640, false),
        ]
    );
}

#[tokio::test]
async fn a_moved_directory_is_one_line() {
    let place = Place::new();
    write(&place, "src/deep/file", "text");
    let Some(done) = run(&place, "mv src lib; echo 2 > lib/deep/file; mv lib other").await else {
        return;
    };
    let moves: Vec<_> = done
        .changes
        .iter()
        .filter_map(|change| match change {
            WitnessedChange::Moved { from, to, .. } => {
                Some((below(&place, from.as_path()), below(&place, to.as_path())))
            }
            _ => None,
        })
        .collect();
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(moves, [pair("src", "lib"), pair("lib", "other")]);
    assert_eq!(
        done.files(&place),
        [(
            "lib/deep/file".to_owned(),
            Some(KeptWay::Copy),
            "text".to_owned()
        )]
    );
}

#[tokio::test]
async fn a_file_over_the_limit_is_named_and_the_command_continues() {
    let place = Place::new();
    write(&place, "big", &"x".repeat(5000));
    write(&place, "small", "small");
    let limits = WitnessLimits {
        copy_bytes: 4096,
        file_bytes: 4096,
        pin_bytes: 100,
        ..WitnessLimits::default()
    };
    let Some(done) = run_with(&place, "echo 2 > big; rm small; cat big", limits).await else {
        return;
    };
    assert_eq!(done.text, "2\n");
    let files = done.files(&place);
    assert_eq!(files[0].1, None);
    assert!(files[0].2.contains("undo.fileBytes"), "{files:?}");
    assert_eq!(files[1].1, Some(KeptWay::Link));
}

#[tokio::test]
async fn w22_a_command_cannot_reach_its_log_or_the_stored_files() {
    let place = Place::new();
    write(&place, "a", "old");
    let store = place.path("store");
    let text = format!(
        "echo new > a; for f in {0}/0/log {0}/0/objects/1 {0}/0/objects/new {0}/.copies/x; do echo x >> $f; rm -f $f; \
         ln a $f; mv a $f; done; ls /proc/$PPID/fd 2>&1 | head -1; for fd in /proc/self/fd/*; do readlink $fd; done",
        store.display()
    );
    let Some(done) = run(&place, &text).await else {
        return;
    };
    assert_eq!(
        done.files(&place),
        [("a".to_owned(), Some(KeptWay::Copy), "old".to_owned())]
    );
    assert!(done.is_complete);
    assert_eq!(fs::read_dir(done.folder.objects()).unwrap().count(), 1);
    assert_eq!(
        fs::read_to_string(place.project().join("a")).unwrap(),
        "new\n"
    );
    let open = done.text.lines().filter(|line| line.starts_with('/'));
    let mut open = open.filter(|line| !line.starts_with("/dev/") && !line.starts_with("/proc/"));
    assert_eq!(open.next(), None, "{}", done.text);
}

#[tokio::test]
async fn a_log_over_the_limit_ends_and_the_command_continues() {
    let place = Place::new();
    let limits = WitnessLimits {
        log_bytes: 2000,
        ..WitnessLimits::default()
    };
    let text = "for i in {1..100}; do : > $i; rm $i; done; echo done";
    let Some(done) = run_with(&place, text, limits).await else {
        return;
    };
    assert_eq!(done.text, "done\n");
    assert!(!done.is_complete);
    let size = fs::metadata(done.folder.log()).unwrap().len();
    assert!(size < 2500, "{size}");
    assert!(done.failure.unwrap().contains("too many changes"));
}
