//! What a path leads to is changed between the decision and the tool: nothing outside what was
//! decided on is read or written.
//!
//! A layer stands exactly between the two, so each case is put to the test without any luck; then a
//! thread that swaps at random instants tries its own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use haft::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, CallResult, Haft,
    PermissionMode,
    engine::{
        layers::{Layer, LayerChain, LayerResult},
        permissions::{List, PatternBases, RuleSet, RuleSource, SettingsScope},
        pipeline::AdmittedCall,
    },
};
use haft_testkit::TempProject;
use serde_json::{Value, json};

/// It is in every file that may not be seen.
const SECRET: &str = "s3cret-content";
/// …and in the names of files that are not in the working directory.
const SECRET_NAME: &str = "s3cret-name";

type Action = Box<dyn FnMut() + Send>;

/// Does something when a call has been admitted and its tool has not begun.
#[derive(Default)]
struct Between(Mutex<Option<Action>>);

impl Between {
    fn set(&self, action: impl FnMut() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(action));
    }
}

impl Layer for Between {
    fn call<'a>(
        &'a self,
        _: &'a AdmittedCall,
        cx: &'a CallContext,
        next: LayerChain<'a>,
    ) -> BoxFuture<'a, LayerResult> {
        if let Some(mut action) = self.0.lock().unwrap().take() {
            action();
        }
        next.run(cx)
    }
}

struct Desk {
    project: TempProject,
    work: PathBuf,
    haft: Haft,
    between: Arc<Between>,
}

fn notebook(text: &str) -> String {
    let cell = json!({"cell_type": "markdown", "id": "c1", "metadata": {}, "source": [text]});
    json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

impl Desk {
    async fn new(mode: PermissionMode, approver: Option<Arc<dyn Approver>>) -> Self {
        let project = TempProject::new([]);
        project.write("work/a.txt", "open text\n");
        project.write("work/n.ipynb", notebook("open text").as_bytes());
        project.write("work/dir/f.txt", "open text\n");
        for folder in ["work/denied", "outside"] {
            project.write(&format!("{folder}/f.txt"), format!("open {SECRET}\n"));
            project.write(&format!("{folder}/n.ipynb"), notebook(SECRET).as_bytes());
            project.write(&format!("{folder}/{SECRET_NAME}"), SECRET);
        }
        let work = fs::canonicalize(project.path("work")).unwrap();
        let bases = PatternBases {
            home: work.clone(),
            slash: work.clone(),
            cwd: work.clone(),
        };
        let mut rules = RuleSet::default();
        for rule in ["Read(./denied/**)", "Edit(./denied/**)"] {
            let source = RuleSource::from_scope(SettingsScope::Project);
            rules.add(List::Deny, rule, source, &bases).unwrap();
        }
        let between = Arc::new(Between::default());
        let mut builder = Haft::builder(&work)
            .permission_mode(mode)
            .rules(rules)
            .session_folder(project.path("session"))
            .layer(Arc::clone(&between) as Arc<dyn Layer>);
        if let Some(approver) = approver {
            builder = builder.approver(approver);
        }
        let haft = builder.build().await.unwrap();
        Self {
            project,
            work,
            haft,
            between,
        }
    }

    /// Calls a tool, and swaps something for a link when it has been permitted.
    async fn swapped(&mut self, tool: &str, input: Value, name: &str, to: &str) -> CallResult {
        let (path, target) = (self.work.join(name), self.project.path(to));
        let aside = self.work.join("aside");
        let (link, kept) = (path.clone(), aside.clone());
        self.between.set(move || {
            fs::rename(&link, &kept).unwrap();
            symlink(&target, &link).unwrap();
        });
        let finished = self.haft.call(tool, input).await;
        assert!(
            path.is_symlink(),
            "{tool} was not admitted: {}",
            finished.text()
        );
        fs::remove_file(&path).unwrap();
        fs::rename(aside, path).unwrap();
        finished
    }

    fn secrets(&self) -> Vec<String> {
        let read = |name: &str| self.project.read(name);
        let files = ["outside/f.txt", "outside/n.ipynb", "work/denied/f.txt"];
        files.map(read).to_vec()
    }
}

fn all_of(finished: &CallResult) -> String {
    format!("{}\n{:?}", finished.text(), finished.structured)
}

fn holds_back(finished: &CallResult, what: &str) {
    let all = all_of(finished);
    assert!(!all.contains(SECRET), "{what}: {all}");
    assert!(!all.contains(SECRET_NAME), "{what}: {all}");
}

const MODES: [PermissionMode; 2] = [
    PermissionMode::AcceptEdits,
    PermissionMode::BypassPermissions,
];

#[tokio::test]
async fn a_link_put_in_place_after_the_decision_is_not_read_through() {
    for mode in MODES {
        let mut desk = Desk::new(mode, None).await;
        let content = json!("content");
        let cases = [
            ("Read", json!({"file_path": "a.txt"}), "a.txt", "f.txt"),
            ("Read", json!({"file_path": "dir/f.txt"}), "dir", ""),
            (
                "Read",
                json!({"file_path": "n.ipynb"}),
                "n.ipynb",
                "n.ipynb",
            ),
            (
                "Grep",
                json!({"pattern": "open", "path": "a.txt", "output_mode": content}),
                "a.txt",
                "f.txt",
            ),
            (
                "Grep",
                json!({"pattern": "open", "path": "dir", "output_mode": content}),
                "dir",
                "",
            ),
            (
                "Grep",
                json!({"pattern": "open", "path": "dir/f.txt", "output_mode": content}),
                "dir",
                "",
            ),
            (
                "Grep",
                json!({"pattern": "open", "output_mode": content}),
                "a.txt",
                "f.txt",
            ),
            (
                "Grep",
                json!({"pattern": "open", "output_mode": content}),
                "dir",
                "",
            ),
            ("Glob", json!({"pattern": "**/*", "path": "dir"}), "dir", ""),
            ("Glob", json!({"pattern": "dir/*"}), "dir", ""),
            ("LS", json!({"path": "dir"}), "dir", ""),
            (
                "ReplaceInFiles",
                json!({"pattern": "open", "replacement": "x", "path": "dir"}),
                "dir",
                "",
            ),
        ];
        for (tool, input, name, file) in cases {
            for place in ["outside", "work/denied"] {
                let to = format!("{place}/{file}");
                let what = format!("{mode:?}: {tool} {input}, {name} -> {to}");
                let finished = desk
                    .swapped(tool, input.clone(), name, to.trim_end_matches('/'))
                    .await;
                holds_back(&finished, &what);
            }
        }
    }
}

#[tokio::test]
async fn a_link_put_in_place_after_the_decision_is_not_written_through() {
    for mode in MODES {
        let mut desk = Desk::new(mode, None).await;
        for name in ["a.txt", "dir/f.txt", "n.ipynb"] {
            let read = desk.haft.call("Read", json!({"file_path": name})).await;
            assert!(!read.is_error, "{}", read.text());
        }
        let before = desk.secrets();
        let edit = |name: &str| json!({"file_path": name, "old_string": "open", "new_string": "x"});
        let cases = [
            ("Edit", edit("a.txt"), "a.txt", "f.txt"),
            ("Edit", edit("dir/f.txt"), "dir", ""),
            (
                "Write",
                json!({"file_path": "a.txt", "content": "x"}),
                "a.txt",
                "f.txt",
            ),
            (
                "Write",
                json!({"file_path": "dir/new", "content": "x"}),
                "dir",
                "",
            ),
            (
                "NotebookEdit",
                json!({"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "x"}),
                "n.ipynb",
                "n.ipynb",
            ),
            (
                "ReplaceInFiles",
                json!({"pattern": "open", "replacement": "x", "path": "a.txt", "preview": false}),
                "a.txt",
                "f.txt",
            ),
            (
                "ReplaceInFiles",
                json!({"pattern": "open", "replacement": "x", "path": "dir", "preview": false}),
                "dir",
                "",
            ),
        ];
        for (tool, input, name, file) in cases {
            for place in ["outside", "work/denied"] {
                let to = format!("{place}/{file}");
                let what = format!("{mode:?}: {tool} {input}, {name} -> {to}");
                let finished = desk
                    .swapped(tool, input.clone(), name, to.trim_end_matches('/'))
                    .await;
                assert!(finished.is_error, "{what}: {}", finished.text());
                holds_back(&finished, &what);
                assert_eq!(desk.secrets(), before, "{what}");
                assert!(
                    !desk.project.path(&format!("{place}/new")).exists(),
                    "{what}"
                );
            }
        }
    }
}

#[tokio::test]
async fn links_inside_the_working_directory_still_lead_where_they_lead() {
    let mut desk = Desk::new(PermissionMode::AcceptEdits, None).await;
    symlink("a.txt", desk.work.join("link.txt")).unwrap();
    symlink("dir", desk.work.join("link")).unwrap();
    let content = json!("content");
    let cases = [
        ("Read", json!({"file_path": "link.txt"}), "open text"),
        ("Read", json!({"file_path": "link/f.txt"}), "open text"),
        ("Read", json!({"file_path": "link/../a.txt"}), "open text"),
        (
            "Grep",
            json!({"pattern": "open", "path": "link.txt", "output_mode": content}),
            "link.txt:1:open text",
        ),
        (
            "Grep",
            json!({"pattern": "open", "path": "link", "output_mode": content}),
            "link/f.txt:1:open text",
        ),
        (
            "Glob",
            json!({"pattern": "*.txt", "path": "link"}),
            "link/f.txt",
        ),
        ("LS", json!({"path": "link"}), "f.txt"),
        (
            "Edit",
            json!({"file_path": "link/f.txt", "old_string": "open", "new_string": "new"}),
            "Edited",
        ),
        (
            "Write",
            json!({"file_path": "link/fresh.txt", "content": "x"}),
            "Created",
        ),
    ];
    for (tool, input, expected) in cases {
        let finished = desk.haft.call(tool, input.clone()).await;
        assert!(!finished.is_error, "{tool} {input}: {}", finished.text());
        assert!(
            finished.text().contains(expected),
            "{tool} {input}: {}",
            finished.text()
        );
    }
    assert_eq!(desk.project.read("work/dir/f.txt"), "new text\n");
    assert_eq!(desk.project.read("work/dir/fresh.txt"), "x");
}

/// Agrees to everything, and does something before.
struct Agrees(Mutex<Option<Action>>);

impl Approver for Agrees {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        if let Some(mut action) = self.0.lock().unwrap().take() {
            action();
        }
        Box::pin(async { ApprovalAnswer::Allow })
    }
}

#[tokio::test]
async fn what_a_person_agreed_to_is_what_is_opened() {
    let agrees = Arc::new(Agrees(Mutex::new(None)));
    let approver = Some(Arc::clone(&agrees) as Arc<dyn Approver>);
    let mut desk = Desk::new(PermissionMode::Default, approver).await;
    desk.project.write("elsewhere/f.txt", "harmless\n");
    let link = desk.work.join("link");
    symlink(desk.project.path("elsewhere"), &link).unwrap();
    let content = json!("content");
    let calls = [
        ("Read", json!({"file_path": "link/f.txt"})),
        (
            "Grep",
            json!({"pattern": "harmless", "path": "link", "output_mode": content}),
        ),
        ("Glob", json!({"pattern": "*", "path": "link"})),
        ("LS", json!({"path": "link"})),
    ];
    for (tool, input) in calls {
        let agreed = desk.haft.call(tool, input.clone()).await;
        assert!(!agreed.is_error, "{tool}: {}", agreed.text());
        let (at, to) = (link.clone(), desk.project.path("outside"));
        *agrees.0.lock().unwrap() = Some(Box::new(move || {
            fs::remove_file(&at).unwrap();
            symlink(&to, &at).unwrap();
        }));
        let swapped = desk.haft.call(tool, input.clone()).await;
        assert!(swapped.is_error, "{tool}: {}", swapped.text());
        let text = swapped.text();
        assert!(
            text.contains("than when this call was permitted"),
            "{tool}: {text}"
        );
        holds_back(&swapped, tool);
        fs::remove_file(&link).unwrap();
        symlink(desk.project.path("elsewhere"), &link).unwrap();
    }
}

/// Puts a link in the place of something and takes it away again, over and over.
struct Swapper {
    done: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(path: &Path, to: &Path) -> Self {
        let (done, swaps) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let link = path.with_extension("link");
        let kept = path.with_extension("kept");
        let path = path.to_path_buf();
        symlink(to, &link).unwrap();
        let (ended, count) = (Arc::clone(&done), Arc::clone(&swaps));
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                fs::rename(&path, &kept).unwrap();
                fs::rename(&link, &path).unwrap();
                thread::yield_now();
                fs::rename(&path, &link).unwrap();
                fs::rename(&kept, &path).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                thread::yield_now();
            }
            fs::remove_file(&link).unwrap();
        });
        Self {
            done,
            swaps,
            thread: Some(thread),
        }
    }

    fn stop(mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        assert!(self.swaps.load(Ordering::Relaxed) > 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_calls_while_links_are_swapped_show_nothing() {
    let mut desk = Desk::new(PermissionMode::BypassPermissions, None).await;
    // In this mode only the rule is in the way, so the denied folder is the target.
    let file = Swapper::start(&desk.work.join("a.txt"), &desk.work.join("denied/f.txt"));
    let folder = Swapper::start(&desk.work.join("dir"), &desk.work.join("denied"));
    let content = json!("content");
    let calls = [
        ("Read", json!({"file_path": "a.txt"}), 1000),
        ("Read", json!({"file_path": "dir/f.txt"}), 500),
        (
            "Grep",
            json!({"pattern": "open", "path": "a.txt", "output_mode": content}),
            300,
        ),
        (
            "Grep",
            json!({"pattern": "open", "path": "dir", "output_mode": content}),
            300,
        ),
        (
            "Grep",
            json!({"pattern": "open", "output_mode": content}),
            300,
        ),
        ("Glob", json!({"pattern": "**/*"}), 200),
        ("LS", json!({"path": "dir"}), 200),
    ];
    for (tool, input, times) in calls {
        for _ in 0..times {
            let finished = desk.haft.call(tool, input.clone()).await;
            holds_back(&finished, &format!("{tool} {input}"));
        }
    }
    file.stop();
    folder.stop();
}

#[tokio::test]
async fn a_search_leaves_stores_of_keys_out_unless_it_begins_there() {
    let project = TempProject::new([]);
    for name in [".ssh/id", ".aws/credentials", ".config/gh/hosts.yml"] {
        project.write(&format!("home/{name}"), format!("key {SECRET}\n"));
    }
    project.write("home/notes.txt", "key ring\n");
    project.write("home/.config/other.txt", "key ring\n");
    let home = fs::canonicalize(project.path("home")).unwrap();
    let agrees = Arc::new(Agrees(Mutex::new(None)));
    let mut haft = Haft::builder(&home)
        .home(&home)
        .session_folder(project.path("session"))
        .approver(agrees)
        .build()
        .await
        .unwrap();
    let grep = |path: &str| json!({"pattern": "key", "path": path, "output_mode": "content"});
    for path in [".", ".config"] {
        let found = haft.call("Grep", grep(path)).await;
        holds_back(&found, path);
        assert!(found.text().contains("key ring"), "{}", found.text());
    }
    let listed = haft.call("Glob", json!({"pattern": "**/*"})).await.text();
    assert!(
        listed.contains("notes.txt") && !listed.contains("credentials"),
        "{listed}"
    );
    // A person was asked for this one, and agreed.
    let agreed = haft.call("Grep", grep(".ssh")).await;
    assert!(all_of(&agreed).contains(SECRET), "{}", agreed.text());
}

#[tokio::test]
async fn a_change_of_many_files_at_once_leaves_control_files_out() {
    let mut desk = Desk::new(PermissionMode::AcceptEdits, None).await;
    let control = [
        "work/.npmrc",
        "work/.vscode/tasks.json",
        "work/.claude/x.json",
    ];
    for name in control {
        desk.project.write(name, "open text\n");
    }
    let input = json!({"pattern": "text", "replacement": "x", "preview": false});
    let changed = desk.haft.call("ReplaceInFiles", input).await;
    assert!(!changed.is_error, "{}", changed.text());
    assert_eq!(desk.project.read("work/a.txt"), "open x\n");
    for name in control {
        assert_eq!(desk.project.read(name), "open text\n", "{name}");
    }
}
