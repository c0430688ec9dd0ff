//! Files that a guard cannot store for undo: the call waits for the answer of our process.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex},
};

use haft_sandbox::{
    StorageAnswer, StorageFuture, StorageLease, StoragePolicy, UnstoredFile, WitnessLimits,
};
use haft_witness::KeptWay;
use tokio::sync::Notify;

use crate::{
    setting::Place,
    witness::{WitnessSetup, run_in, write},
};

/// Gives prepared answers in order, each after a signal.
#[derive(Debug)]
struct Answers {
    answers: Mutex<Vec<StorageAnswer>>,
    asked: Mutex<Vec<UnstoredFile>>,
    /// The answers wait for this, if there is one.
    signal: Option<Notify>,
}

impl Answers {
    fn new<const N: usize>(answers: [StorageAnswer; N]) -> Arc<Self> {
        let mut answers = answers.to_vec();
        answers.reverse();
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: Mutex::default(),
            signal: None,
        })
    }

    /// The names and sizes of the files that were asked about.
    fn asked(&self) -> Vec<(String, Option<u64>, u64)> {
        let asked = self.asked.lock().unwrap();
        let name = |file: &UnstoredFile| file.path.file_name().unwrap().display().to_string();
        let all = asked.iter();
        all.map(|file| (name(file), file.link_bytes, file.copy_bytes))
            .collect()
    }
}

impl StoragePolicy for Answers {
    fn decide(self: Arc<Self>, file: UnstoredFile) -> StorageFuture {
        Box::pin(async move {
            self.asked.lock().unwrap().push(file);
            if let Some(signal) = &self.signal {
                signal.notified().await;
            }
            let next = self.answers.lock().unwrap().pop();
            next.unwrap_or(StorageAnswer::Refuse)
        })
    }

    fn on_slow_copy(&self, _: &Path, _: u64) {}
}

fn setup(copy_bytes: u64, pin_bytes: u64, answers: &Arc<Answers>) -> WitnessSetup {
    WitnessSetup {
        limits: WitnessLimits {
            copy_bytes,
            pin_bytes,
            file_bytes: 10_000,
            ..WitnessLimits::default()
        },
        policy: Some(Arc::clone(answers) as _),
        copies: None,
    }
}

fn skip() -> StorageAnswer {
    StorageAnswer::Skip("too large".to_owned())
}

#[tokio::test]
async fn w13_each_answer_applies_to_its_file() {
    let place = Place::new();
    for name in ["skipped", "copied", "refused", "leased"] {
        write(&place, name, &"x".repeat(20_000));
    }
    write(&place, "leased", &"y".repeat(8_000));
    let more = StorageLease {
        copy_bytes: 50_000,
        pin_bytes: 0,
    };
    let answers = Answers::new([
        skip(),
        StorageAnswer::Copy,
        StorageAnswer::Refuse,
        StorageAnswer::Lease(more),
    ]);
    let text = "for f in skipped copied refused leased; do echo new > $f; echo again >> $f; done 2>&1; \
                wc -c < refused";
    let Some(done) = run_in(&place, text, setup(100, 0, &answers)).await else {
        return;
    };
    // Each file is asked about once, before its first byte changes.
    let name = |name: &str, bytes| (name.to_owned(), None, bytes);
    assert_eq!(
        answers.asked(),
        [
            name("skipped", 20_000),
            name("copied", 20_000),
            name("refused", 20_000),
            name("leased", 8_000),
        ]
    );
    assert_eq!(done.text.matches("Read-only file system").count(), 2);
    assert!(done.text.ends_with("\n20000\n"), "{}", done.text);
    let files = done.files(&place);
    let files: Vec<_> = files
        .iter()
        .map(|(name, way, content)| (name.as_str(), *way, content.len()))
        .collect();
    assert_eq!(
        files,
        [
            ("skipped", None, "too large".len()),
            ("copied", Some(KeptWay::Copy), 20_000),
            ("leased", Some(KeptWay::Copy), 8_000),
        ]
    );
}

#[tokio::test]
async fn w3_a_removed_file_is_linked_copied_or_stays() {
    let place = Place::new();
    for name in ["a", "b", "c", "d"] {
        write(&place, name, &name.repeat(5_000));
    }
    let more = StorageLease {
        copy_bytes: 0,
        pin_bytes: 5_000,
    };
    let answers = Answers::new([StorageAnswer::Lease(more), StorageAnswer::Copy]);
    let text = "rm -f a b c d 2>&1; ls";
    let Some(done) = run_in(&place, text, setup(100, 5_000, &answers)).await else {
        return;
    };
    let name = |name: &str| (name.to_owned(), Some(5_000), 5_000);
    assert_eq!(answers.asked(), [name("b"), name("c"), name("d")]);
    assert!(done.text.contains("Read-only file system"), "{}", done.text);
    assert!(done.text.ends_with("\nd\n"), "{}", done.text);
    let files = done.files(&place);
    let ways: Vec<_> = files.iter().map(|(_, way, _)| *way).collect();
    let (link, copy) = (Some(KeptWay::Link), Some(KeptWay::Copy));
    assert_eq!(ways, [link, link, copy]);
    assert_eq!(files[2].2, "c".repeat(5_000));
}

#[tokio::test]
async fn other_calls_continue_while_a_question_is_open() {
    let place = Place::new();
    write(&place, "big", &"x".repeat(20_000));
    let answers = Arc::new(Answers {
        answers: Mutex::new(vec![skip()]),
        asked: Mutex::default(),
        signal: Some(Notify::new()),
    });
    // The first writer waits. The other one waits until the question is open, and changes files.
    let text = "echo new > big & for i in 1 2 3; do echo $i > file$i; done; mkdir d; mv file1 d; \
                touch ready; wait; cat big d/file1";
    let running = run_in(&place, text, setup(100, 0, &answers));
    let ready = place.project().join("ready");
    let waits = async {
        while !ready.exists() || answers.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            fs::metadata(place.project().join("big")).unwrap().len(),
            20_000
        );
        answers.signal.as_ref().unwrap().notify_one();
    };
    let waits = async {
        let limited = tokio::time::timeout(crate::setting::LONG, waits).await;
        limited.is_ok()
    };
    let (done, answered) = if haft_can_witness(&place).await {
        tokio::join!(running, waits)
    } else {
        haft_testkit::skip("held calls: guards cannot mediate here");
        return;
    };
    assert!(answered);
    assert_eq!(done.unwrap().text, "new\n1\n");
}

async fn haft_can_witness(place: &Place) -> bool {
    run_in(place, "true", WitnessSetup::default())
        .await
        .is_some()
}

/// A command that ends with an open question leaves nothing behind.
#[tokio::test]
async fn a_caller_that_is_killed_does_not_change_the_file() {
    let place = Place::new();
    write(&place, "big", &"x".repeat(20_000));
    let answers = Arc::new(Answers {
        answers: Mutex::default(),
        asked: Mutex::default(),
        signal: Some(Notify::new()),
    });
    if !haft_can_witness(&place).await {
        haft_testkit::skip("held calls: guards cannot mediate here");
        return;
    }
    let text = "( echo new > big ) & until [ -e asked ]; do sleep 0.01; done; kill -9 $!; wait; \
                wc -c < big";
    let running = run_in(&place, text, setup(100, 0, &answers));
    let asked = async {
        while answers.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        fs::write(place.project().join("asked"), "").unwrap();
    };
    let limited = tokio::time::timeout(crate::setting::LONG, asked);
    let (done, asked) = tokio::join!(running, limited);
    asked.unwrap();
    // The shell may report the killed process before or after it.
    let text = done.unwrap().text;
    assert!(text.lines().any(|line| line == "20000"), "{text}");
}

/// W14: a file that has not changed since it was copied is not copied again.
#[tokio::test]
async fn w14_a_database_that_commands_open_unchanged_is_stored_once() {
    let place = Place::new();
    let path = write(&place, "data.db", &"x".repeat(2 << 20));
    let copies = place.path("store/.copies");
    fs::create_dir_all(&copies).unwrap();
    let shared = || WitnessSetup {
        limits: WitnessLimits {
            // Enough for one copy.
            copy_bytes: 3 << 20,
            ..WitnessLimits::default()
        },
        policy: None,
        copies: Some(copies.clone()),
    };
    // A change in the same tick of the kernel's clock could have the same times.
    let settled = || {
        let changed = fs::metadata(&path).unwrap().ctime();
        move || {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            i64::try_from(now.as_secs()).unwrap() - changed >= 3
        }
    };
    haft_testkit::until_blocking("a settled file", settled());
    let stored = |done: &crate::witness::Witnessed| {
        let objects = fs::read_dir(done.folder.objects()).unwrap();
        let inodes = objects.map(|one| one.unwrap().metadata().unwrap().ino());
        inodes.collect::<Vec<u64>>()
    };
    let mut inodes = Vec::new();
    for _ in 0..10 {
        let Some(done) = run_in(&place, "exec 3<> data.db; exec 3>&-", shared()).await else {
            return;
        };
        assert_eq!(done.files(&place)[0].1, Some(KeptWay::Copy));
        inodes.extend(stored(&done));
    }
    assert_eq!(inodes.len(), 10);
    inodes.dedup();
    assert_eq!(inodes.len(), 1);
    // After a change it is copied again, also if size and modification time are the same.
    let text = "touch -r data.db ref; printf y | dd of=data.db conv=notrunc status=none; \
                touch -r ref data.db";
    run_in(&place, text, shared()).await.unwrap();
    let done = run_in(&place, "exec 3<> data.db", shared()).await.unwrap();
    assert!(stored(&done) != inodes);
    assert!(done.files(&place)[0].2.starts_with('y'));
}
