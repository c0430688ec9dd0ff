//! The guarantee of the scheduler with the real file tools: a batch gives the same answers and files
//! as one call after the other. Read is the hard one: what it answers depends on earlier answers.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::PathBuf};

use haft::{CallResult, Haft, PermissionMode, ToolUse};
use haft_testkit::TempProject;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Few files and two ways to one of them, so that calls meet often.
const PATHS: [&str; 4] = ["a.txt", "b.txt", "link.txt", "new.txt"];

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let path = proptest::sample::select(&PATHS[..]);
    let word = proptest::sample::select(&["one", "two", "three"][..]);
    prop_oneof![
        8 => path.clone().prop_map(|path| ("Read", json!({"file_path": path}))),
        2 => (path.clone(), 1..4_u64)
            .prop_map(|(path, offset)| ("Read", json!({"file_path": path, "offset": offset, "limit": 1}))),
        // Each file has words of its own: a miss names other files that were read by then.
        2 => (path.clone(), word.clone(), word.clone()).prop_map(|(path, old, new)| {
            let own = |word: &str| format!("{word} of {}", path.replace("link", "a"));
            ("Edit", json!({"file_path": path, "old_string": own(old), "new_string": own(new)}))
        }),
        1 => (path, word)
            .prop_map(|(path, word)| ("Write", json!({"file_path": path, "content": format!("{word}\n")}))),
    ]
}

#[derive(Debug, PartialEq)]
struct Seen {
    answers: Vec<(bool, String)>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

async fn session() -> (TempProject, Haft) {
    let project = TempProject::new([]);
    for name in ["a.txt", "b.txt"] {
        let content: String = ["one", "two", "three"]
            .map(|word| format!("{word} of {name}\n"))
            .concat();
        project.write(&format!("work/{name}"), content);
    }
    symlink("a.txt", project.path("work/link.txt")).unwrap();
    let haft = Haft::builder(project.path("work"))
        .permission_mode(PermissionMode::AcceptEdits)
        .session_folder(project.path("session"))
        .build()
        .await
        .unwrap();
    (project, haft)
}

fn seen(project: &TempProject, results: &[CallResult]) -> Seen {
    let root = project.root().display().to_string();
    let answers = results.iter().map(|finished| {
        let mut text = finished.text().replace(&root, "ROOT");
        text = text.replace(&finished.call.to_string(), "ID");
        (finished.is_error, text)
    });
    let answers = answers.collect();
    fs::remove_dir_all(project.path("session")).ok(); // ids and times of the undo journal
    Seen {
        answers,
        files: project.snapshot(),
    }
}

async fn at_once(calls: &[ToolUse]) -> Seen {
    let (project, mut haft) = session().await;
    let results = haft.run(calls.iter().cloned()).await;
    seen(&project, &results)
}

async fn one_by_one(calls: &[ToolUse]) -> Seen {
    let (project, mut haft) = session().await;
    let mut results = Vec::new();
    for call in calls {
        results.extend(haft.run([call.clone()]).await);
    }
    seen(&project, &results)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_of_file_calls_equals_a_serial_run(calls in proptest::collection::vec(call(), 1..12)) {
        let calls: Vec<ToolUse> = calls
            .into_iter()
            .map(|(name, input)| ToolUse { id: String::new(), name: name.to_owned(), input })
            .collect();
        let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let parallel = runtime.block_on(at_once(&calls));
        let serial = runtime.block_on(one_by_one(&calls));
        prop_assert_eq!(parallel, serial);
    }
}
