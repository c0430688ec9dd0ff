//! The guarantee: random batches give the same files, results and context as a serial run.

use std::{collections::BTreeMap, path::PathBuf};

use haft_contract::{PermissionMode, ToolUse};
use haft_engine::{CallResult, SessionContext};
use haft_testkit::TempProject;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::rig::{Rig, tool_use};

/// A small set, so that calls meet often: files, a folder, links to both, a hard link.
const PATHS: [&str; 9] = [
    "a.txt",
    "b.txt",
    "d/c.txt",
    "d",
    "soft.txt",
    "dlink/c.txt",
    "hard.txt",
    "new.txt",
    "d/new.txt",
];

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let path = proptest::sample::select(&PATHS[..]);
    let folder = proptest::sample::select(&["d", ".", "d/..", "d/e", "dlink"][..]);
    prop_oneof![
        6 => (path.clone(), "[a-z]{1,3}", 0..12_u8)
            .prop_map(|(path, line, pauses)| ("Append", json!({"path": path, "line": line, "pauses": pauses}))),
        6 => (path, 0..12_u8)
            .prop_map(|(path, pauses)| ("Peek", json!({"path": path, "pauses": pauses}))),
        1 => (folder, 0..12_u8)
            .prop_map(|(path, pauses)| ("Move", json!({"path": path, "pauses": pauses}))),
        1 => Just(("Boom", json!({"place": "call"}))),
        1 => Just(("Append", json!({"path": "a.txt"}))),
        1 => Just(("Nonsense", json!({}))),
    ]
}

#[derive(Debug, PartialEq)]
struct Seen {
    results: Vec<(String, bool, String)>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    context: (PathBuf, PermissionMode),
}

async fn rig() -> Rig {
    let rig = Rig::new().await;
    let project = &rig.project;
    project.write("work/d/c.txt", "gamma\n");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, project.path(&format!("work/{name}"))).unwrap();
    };
    link("a.txt", "soft.txt");
    link("d", "dlink");
    std::fs::hard_link(project.path("work/b.txt"), project.path("work/hard.txt")).unwrap();
    rig
}

fn seen(project: &TempProject, context: &SessionContext, results: &[CallResult]) -> Seen {
    let root = project.root().display().to_string();
    let cwd = context
        .cwd
        .strip_prefix(project.root())
        .unwrap_or(&context.cwd)
        .to_path_buf();
    Seen {
        results: results
            .iter()
            .map(|finished| {
                (
                    finished.name.clone(),
                    finished.is_error,
                    finished.text().replace(&root, "ROOT"),
                )
            })
            .collect(),
        files: project.snapshot(),
        context: (cwd, context.mode),
    }
}

async fn at_once(calls: &[ToolUse]) -> Seen {
    let mut rig = rig().await;
    let mut turn = rig.scheduler.start_batch().await;
    for call in calls {
        turn.push(call.clone());
    }
    let mut results = Vec::new();
    while let Some(finished) = turn.next().await {
        results.push(finished);
    }
    drop(turn);
    seen(&rig.project, &rig.scheduler.context(), &results)
}

async fn one_by_one(calls: &[ToolUse]) -> Seen {
    let mut rig = rig().await;
    let mut results = Vec::new();
    for call in calls {
        let mut turn = rig.scheduler.start_batch().await;
        turn.push(call.clone());
        results.push(turn.next().await.unwrap());
    }
    seen(&rig.project, &rig.scheduler.context(), &results)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_equals_a_serial_run(calls in proptest::collection::vec(call(), 1..14)) {
        // Panics of `Boom` are part of the test, not news.
        std::panic::set_hook(Box::new(|_| {}));
        let calls: Vec<ToolUse> =
            calls.into_iter().map(|(name, input)| tool_use(name, input)).collect();
        let runtime = runtime();
        let parallel = runtime.block_on(at_once(&calls));
        let serial = runtime.block_on(one_by_one(&calls));
        let _ = std::panic::take_hook();
        prop_assert_eq!(parallel, serial);
    }
}
