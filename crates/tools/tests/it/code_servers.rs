//! Servers that misbehave, real ones and stand-ins; plans that make and move files; what rules over all of them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use haft_contract::CallFollowUpService;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    code::{A, B, Code, LONG, STAND_IN, entry, is_missing, script, servers},
    session::text_of,
};

/// Processes of a server that works in this folder, or has its cache there, by a word of their command lines.
pub(crate) fn processes_in(root: &Path, word: &str) -> Vec<i32> {
    // The folder may be gone with its test.
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let all = fs::read_dir("/proc").unwrap().flatten();
    let has = |bytes: Vec<u8>, part: &str| String::from_utf8_lossy(&bytes).contains(part);
    let found = all.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let cwd = fs::read_link(process.path().join("cwd")).ok()?;
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let variables = fs::read(process.path().join("environ")).ok()?;
        let cache = format!("XDG_CACHE_HOME={}/", root.display());
        // A server may work elsewhere than where it was started.
        let is_here = cwd.starts_with(&root) || has(variables, &cache);
        (is_here && has(line, word)).then_some(pid)
    });
    found.collect()
}

fn signal(pids: &[i32], name: &str) {
    assert!(!pids.is_empty(), "the server does not run");
    let pids = pids.iter().map(ToString::to_string);
    let mut kill = haft_testkit::command("kill");
    let sent = kill.arg(format!("-{name}")).args(pids).status().unwrap();
    assert!(sent.success());
}

pub(crate) async fn nothing_runs(root: &Path, word: &str) {
    let gone = async {
        while !processes_in(root, word).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, gone).await.expect("a process is left");
}

pub(crate) fn python() -> [(&'static str, &'static str); 3] {
    [("a.py", A), ("b.py", B), ("pyrightconfig.json", "{}")]
}

fn references() -> Value {
    json!({"operation": "findReferences", "filePath": "a.py", "line": 1, "character": 5})
}

#[tokio::test]
async fn a_real_server_that_hangs_is_named_and_the_session_goes_on() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::patient(python(), true, json!({}), Duration::from_secs(20));
    let root = code.session.folder.root().canonicalize().unwrap();
    code.open(&["a.py", "b.py"]).await;
    let pids = processes_in(&root, "pyright");
    signal(&pids, "STOP");
    let error = code.lsp(references()).await.unwrap_err();
    assert!(
        error.contains("pyright did not answer within 20 s") && error.contains("restart"),
        "{error}"
    );
    // An edit goes on without it.
    code.edit("b.py", "greet(\"x\")", "greet(1)").await;
    assert_eq!(code.after().await, None);
    // It is started anew though it hangs; going on with the old one would be going on with what pyright makes of
    // a question that was given up.
    let restart = json!({"operation": "restart", "filePath": "a.py"});
    code.lsp(restart).await.unwrap();
    let found = code.lsp(references()).await.unwrap();
    assert!(found.contains("b.py:3:7"), "{found}");
    // One that hangs ends with the session nevertheless.
    signal(&processes_in(&root, "pyright"), "STOP");
    code.close().await;
    nothing_runs(&root, "pyright").await;
}

#[tokio::test]
async fn a_real_server_that_is_killed_during_a_call_is_an_error_and_the_next_call_works() {
    if is_missing("pyright-langserver") {
        return;
    }
    // 16
    let code = Code::new(python());
    let root = code.session.folder.root().canonicalize().unwrap();
    code.open(&["a.py", "b.py"]).await;
    let pids = processes_in(&root, "pyright");
    // So that it cannot be faster than we are.
    signal(&pids, "STOP");
    let mut call = Box::pin(code.lsp(references()));
    let waited = timeout(Duration::from_secs(3), &mut call).await;
    assert!(waited.is_err(), "{waited:?}");
    signal(&pids, "KILL");
    let error = call.await.unwrap_err();
    assert!(
        error.contains("pyright died") && error.contains("no answer"),
        "{error}"
    );
    let found = code.lsp(references()).await.unwrap();
    assert!(found.contains("b.py:3:7"), "{found}");
    // It has the documents of the one before.
    code.edit("a.py", "name: str", "name: int").await;
    let report = code.reported().await;
    assert!(report.contains("b.py:3:13 error"), "{report}");
    code.close().await;
    nothing_runs(&root, "pyright").await;
}

/// A stand-in with its folder, which says what it does.
struct StandIn {
    code: Code,
    _folder: tempfile::TempDir,
    steering: PathBuf,
}

impl StandIn {
    fn new(files: &[(&str, &str)], within: Duration, more: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = script(folder.path(), STAND_IN);
        let mut settings = entry(&program);
        for (name, value) in more.as_object().into_iter().flatten() {
            settings["mine"][name] = value.clone();
        }
        let code = Code::patient(files.iter().copied(), true, settings, within);
        let steering = code.session.folder.root().join("cache");
        fs::create_dir_all(&steering).unwrap();
        fs::write(steering.join("how"), "well").unwrap();
        Self {
            code,
            _folder: folder,
            steering,
        }
    }

    fn does(&self, how: &str) {
        fs::write(self.steering.join("how"), how).unwrap();
    }

    async fn symbols(&self) -> Result<String, String> {
        let input = json!({"operation": "documentSymbol", "filePath": "a.mine"});
        self.code.lsp(input).await
    }

    /// The plan of a rename that the server answers with these changes.
    async fn plan(&self, changes: Value) -> Result<String, String> {
        fs::write(
            self.steering.join("edit"),
            json!({"documentChanges": changes}).to_string(),
        )
        .unwrap();
        let input = json!({
            "operation": "rename", "filePath": "a.mine", "line": 1, "character": 1, "newName": "x",
        });
        self.code.lsp(input).await
    }

    fn uri(&self, name: &str) -> String {
        let root = self.code.session.project.root().canonicalize().unwrap();
        format!("file://{}/{name}", root.display())
    }

    async fn call(&self, name: &str, input: Value) -> Result<String, String> {
        let tools = haft_tools::usable(&self.code.session.services);
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let cx = self.code.session.context();
        let bound = tool.clone().bind(input).unwrap();
        bound.check(&cx).await.map_err(|error| error.to_string())?;
        let output = bound.call(&cx).await.map_err(|error| error.to_string())?;
        Ok(text_of(&output))
    }

    fn has(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.code.session.project.path(name)).ok()
    }
}

/// The id that stands behind a word.
fn id_behind(text: &str, word: &str) -> String {
    let id = text.split(word).nth(1).unwrap();
    id.split(['.', ']']).next().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_floods_or_says_nothing_costs_no_one_else_anything() {
    let stand_in = StandIn::new(&[("a.mine", "a\n")], Duration::from_secs(5), json!({}));
    assert_eq!(stand_in.symbols().await.unwrap(), "function f 1");
    stand_in.does("flood");
    assert_eq!(
        timeout(LONG, stand_in.symbols()).await.unwrap().unwrap(),
        "function f 1"
    );
    stand_in.does("silent");
    let error = stand_in.symbols().await.unwrap_err();
    assert!(error.contains("mine did not answer within 5 s"), "{error}");
    stand_in.does("well");
    assert_eq!(stand_in.symbols().await.unwrap(), "function f 1");
    stand_in.code.close().await;
}

#[tokio::test]
async fn what_is_said_of_another_version_or_file_is_not_passed_on() {
    let files = [("a.mine", "a\n"), ("b.mine", "b\n")];
    let stand_in = StandIn::new(&files, Duration::from_secs(5), json!({}));
    stand_in.does("say nothing of documents");
    let code = &stand_in.code;
    for file in ["a.mine", "b.mine"] {
        let read = code.session.say("Read", json!({"file_path": file})).await;
        read.ok();
    }
    stand_in.symbols().await.unwrap();
    assert_eq!(code.after().await, None);
    stand_in.does("other");
    code.edit("a.mine", "a", "A").await;
    assert_eq!(code.after().await, None);
    let asked = json!({"operation": "diagnostics", "filePath": "a.mine"});
    let error = code.lsp(asked).await.unwrap_err();
    assert!(error.contains("has not reported on this file"), "{error}");
    stand_in.code.close().await;
}

#[tokio::test]
async fn one_that_takes_too_much_memory_is_started_once_more_and_then_not() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::with(python(), true, json!({"memoryMb": 5}));
    let asking = async {
        loop {
            if let Err(error) = code.lsp(references()).await
                && error.contains("memoryMb")
            {
                return error;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let error = timeout(LONG, asking).await.unwrap();
    assert!(error.contains("will not be restarted"), "{error}");
    nothing_runs(code.session.folder.root(), "pyright").await;
}

#[tokio::test]
async fn one_that_is_not_to_be_restarted_is_not() {
    let more = json!({"restartOnCrash": false, "maxRestarts": 9});
    let stand_in = StandIn::new(&[("a.mine", "a\n")], LONG, more);
    stand_in.symbols().await.unwrap();
    stand_in.does("die");
    let error = stand_in.symbols().await.unwrap_err();
    assert!(error.contains("will not be restarted"), "{error}");
    stand_in.does("well");
    stand_in.symbols().await.unwrap_err();
    let restart = json!({"operation": "restart", "filePath": "a.mine"});
    stand_in.code.lsp(restart).await.unwrap();
    assert_eq!(stand_in.symbols().await.unwrap(), "function f 1");
    stand_in.code.close().await;
}

#[tokio::test]
async fn a_plan_makes_moves_and_removes_files_as_one_and_one_undo_reverts_it() {
    use std::os::unix::fs::PermissionsExt;
    let files = [
        ("a.mine", "old\n"),
        ("b.mine", "uses old\n"),
        ("gone.mine", "bye\n"),
    ];
    let stand_in = StandIn::new(&files, LONG, json!({}));
    let mode = fs::Permissions::from_mode(0o755);
    let project = &stand_in.code.session.project;
    fs::set_permissions(project.path("a.mine"), mode).unwrap();
    let range = |from: u32, to: u32| json!({"start": {"line": 0, "character": from}, "end": {"line": 0, "character": to}});
    let edit = |name: &str, range: Value, text: &str| {
        let document = json!({"uri": stand_in.uri(name), "version": null});
        json!({"textDocument": document, "edits": [{"range": range, "newText": text}]})
    };
    let preview = stand_in
        .plan(json!([
            {"kind": "create", "uri": stand_in.uri("sub/new.mine")},
            edit("sub/new.mine", range(0, 0), "fresh\n"),
            {"kind": "rename", "oldUri": stand_in.uri("a.mine"), "newUri": stand_in.uri("moved.mine")},
            edit("moved.mine", range(0, 3), "new"),
            edit("b.mine", range(5, 8), "new"),
            {"kind": "delete", "uri": stand_in.uri("gone.mine")},
        ]))
        .await
        .unwrap();
    assert!(
        preview.starts_with(
            "Would change 3 places in 1 file, create 1 file, move 1 file, remove 1 file."
        ),
        "{preview}"
    );
    assert!(
        preview.contains("moved.mine: moved from a.mine, 1 place"),
        "{preview}"
    );
    assert!(preview.contains("gone.mine: removed"), "{preview}");
    let plan = json!({"plan_id": id_behind(&preview, "plan_id ")});
    let done = stand_in.call("ReplaceInFiles", plan).await.unwrap();
    assert_eq!(stand_in.has("a.mine"), None);
    assert_eq!(stand_in.has("gone.mine"), None);
    assert_eq!(stand_in.has("moved.mine").as_deref(), Some("new\n"));
    assert_eq!(stand_in.has("b.mine").as_deref(), Some("uses new\n"));
    assert_eq!(stand_in.has("sub/new.mine").as_deref(), Some("fresh\n"));
    let mode = |name: &str| {
        let found = fs::metadata(project.path(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("moved.mine"), 0o755);
    let undo = json!({"undo_id": id_behind(&done, "[undo_id ")});
    stand_in.call("Undo", undo).await.unwrap();
    for (name, text) in files {
        assert_eq!(stand_in.has(name).as_deref(), Some(text), "{name}");
    }
    assert_eq!(mode("a.mine"), 0o755);
    for name in ["moved.mine", "sub/new.mine"] {
        assert_eq!(stand_in.has(name), None, "{name}");
    }
    stand_in.code.close().await;
}

#[tokio::test]
async fn a_plan_that_cannot_be_made_whole_is_refused_whole() {
    let files = [
        ("a.mine", "a\n"),
        ("b.mine", "b\n"),
        ("folder/c.mine", "c\n"),
    ];
    let stand_in = StandIn::new(&files, LONG, json!({}));
    let root = stand_in.code.session.project.root();
    std::os::unix::fs::symlink(root.join("b.mine"), root.join("link.mine")).unwrap();
    let uri = |name: &str| stand_in.uri(name);
    let cases = [
        (
            json!({"kind": "create", "uri": uri("b.mine")}),
            "already exists",
        ),
        (
            json!({"kind": "create", "uri": "file:///tmp/outside.mine"}),
            "may not be changed",
        ),
        (
            json!({"kind": "create", "uri": uri("../outside.mine")}),
            "may not be changed",
        ),
        (
            json!({"kind": "delete", "uri": uri("missing.mine")}),
            "missing.mine, which is to be removed, does not exist",
        ),
        (
            json!({"kind": "delete", "uri": uri("folder")}),
            "is a folder",
        ),
        (
            json!({"kind": "delete", "uri": uri("link.mine")}),
            "is a link",
        ),
        (
            json!({"kind": "rename", "oldUri": uri("link.mine"), "newUri": uri("z.mine")}),
            "is a link",
        ),
        (
            json!({"kind": "rename", "oldUri": uri("folder"), "newUri": uri("other")}),
            "is a folder",
        ),
        (
            json!({"kind": "rename", "oldUri": uri("a.mine"), "newUri": uri("b.mine")}),
            "already exists",
        ),
        (
            json!({"kind": "vanish", "uri": uri("a.mine")}),
            "cannot be read",
        ),
    ];
    for (step, expected) in cases {
        let first = json!({"kind": "create", "uri": uri("first.mine")});
        let error = stand_in.plan(json!([first, step])).await.unwrap_err();
        assert!(
            error.contains("The whole plan is refused") && error.contains(expected),
            "{step}: {error}"
        );
    }
    // What came up since the preview is not overwritten.
    let create = json!([{"kind": "create", "uri": uri("late.mine")}, {"kind": "delete", "uri": uri("b.mine")}]);
    let preview = stand_in.plan(create).await.unwrap();
    fs::write(root.join("late.mine"), "mine\n").unwrap();
    let plan = json!({"plan_id": id_behind(&preview, "plan_id ")});
    stand_in.call("ReplaceInFiles", plan).await.unwrap_err();
    assert_eq!(stand_in.has("late.mine").as_deref(), Some("mine\n"));
    assert_eq!(stand_in.has("b.mine").as_deref(), Some("b\n"));
    stand_in.code.close().await;
}

#[tokio::test]
async fn a_plan_keeps_the_encoding_of_a_file() {
    let stand_in = StandIn::new(&[("a.mine", "a\n"), ("w.mine", "")], LONG, json!({}));
    let wide = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xff, 0xfe].into_iter().chain(units).collect()
    };
    let path = stand_in.code.session.project.path("w.mine");
    fs::write(&path, wide("é old\r\n")).unwrap();
    let range = json!({"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 5}});
    let edit = json!([{
        "textDocument": {"uri": stand_in.uri("w.mine"), "version": null},
        "edits": [{"range": range, "newText": "𝔘"}],
    }]);
    let preview = stand_in.plan(edit).await.unwrap();
    let plan = json!({"plan_id": id_behind(&preview, "plan_id ")});
    stand_in.call("ReplaceInFiles", plan).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), wide("é 𝔘\r\n"));
    stand_in.code.close().await;
}

#[tokio::test]
async fn a_command_that_breaks_an_open_file_and_a_new_file_that_is_wrong_are_reported() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::new(python());
    code.open(&["a.py", "b.py"]).await;
    // 9
    let command = json!({"command": "sed -i 's/greet(\"x\")/greet(3)/' b.py"});
    code.session.output("Bash", command).await.unwrap();
    let report = code.reported().await;
    assert!(
        report.contains("b.py:3:13 error reportArgumentType"),
        "{report}"
    );
    let new = json!({"file_path": "c.py", "content": "from a import greet\n\nprint(greet(4))\n"});
    code.session.say("Write", new).await.ok();
    let report = code.reported().await;
    assert!(
        report.contains("c.py:3:13 error reportArgumentType"),
        "{report}"
    );
    // A module that a command makes is known at once.
    let command = json!({"command": "printf 'def late() -> int:\\n    return 1\\n' > late.py"});
    code.session.output("Bash", command).await.unwrap();
    code.edit(
        "c.py",
        "print(greet(4))",
        "from late import late\nprint(greet(str(late())))",
    )
    .await;
    let report = code.reported().await;
    assert_eq!(
        report,
        "The edits above are in place. 1 earlier problem is gone."
    );
    code.close().await;
}

/// The TypeScript that a project would have installed.
pub(crate) fn with_typescript(code: &Code) {
    let modules = code.session.project.path("node_modules");
    fs::create_dir_all(&modules).unwrap();
    let typescript = servers().join("../typescript").canonicalize().unwrap();
    std::os::unix::fs::symlink(typescript, modules.join("typescript")).unwrap();
}

#[tokio::test]
async fn a_plugin_of_the_project_writes_nothing_and_reaches_no_one() {
    if is_missing("typescript-language-server") {
        return;
    }
    // 18
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let plugin = format!(
        "const fs = require('fs');
         const tried = [];
         module.exports = () => ({{ create(info) {{
           const root = info.project.getCurrentDirectory();
           try {{ fs.writeFileSync(root + '/written', 'x'); tried.push('wrote'); }} catch (e) {{ tried.push(e.code); }}
           const socket = require('net').connect({port}, '127.0.0.1');
           const done = (what) => fs.writeFileSync(process.env.XDG_CACHE_HOME + '/tried', tried.concat(what).join(' '));
           socket.on('connect', () => done('reached'));
           socket.on('error', (e) => done(e.code));
           return info.languageService;
         }} }});"
    );
    let config = r#"{"compilerOptions": {"plugins": [{"name": "evil"}]}}"#;
    let code = Code::new([
        ("a.ts", "export const one: number = 1;\n"),
        ("tsconfig.json", config),
        ("node_modules/evil/index.js", &plugin),
        (
            "node_modules/evil/package.json",
            r#"{"name": "evil", "main": "index.js"}"#,
        ),
    ]);
    // Plugins are looked for beside it, so that a link will not do.
    let modules = code.session.project.path("node_modules");
    let typescript = servers().join("../typescript");
    let mut copy = haft_testkit::command("cp");
    let copied = copy.arg("-rL").arg(typescript).arg(modules).status();
    assert!(copied.unwrap().success());
    let hover = json!({"operation": "hover", "filePath": "a.ts", "line": 1, "character": 14});
    code.lsp(hover).await.unwrap();
    let caches = fs::read_dir(code.session.folder.root().join("cache")).unwrap();
    let tried = caches.flatten().next().unwrap().path().join("tried");
    let ran = async {
        while !tried.exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, ran).await.expect("the plugin was not loaded");
    let tried = fs::read_to_string(tried).unwrap();
    assert!(
        !tried.contains("wrote") && !tried.contains("reached"),
        "{tried}"
    );
    assert!(!code.session.project.path("written").exists());
    code.close().await;
}

#[tokio::test]
async fn ten_real_packages_under_one_lock_file_have_one_server() {
    if is_missing("typescript-language-server") {
        return;
    }
    // 20
    let code = Code::new([("package-lock.json", "{}"), ("package.json", "{}")]);
    with_typescript(&code);
    for number in 0..10 {
        let project = &code.session.project;
        project.write(&format!("p{number}/tsconfig.json"), "{}");
        let file = format!("p{number}/a.ts");
        project.write(&file, "export function one() { return 1; }\n");
        let input = json!({"operation": "documentSymbol", "filePath": file});
        let found = code.lsp(input).await.unwrap();
        assert!(found.contains("function one 1"), "{found}");
    }
    let root = code.session.project.root();
    let mut started = processes_in(root, "typescript-language-server");
    // A server may be a script that starts itself: only those count that are no one's child among them.
    started.retain(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        let parent: i32 = parent.and_then(|pid| pid.trim().parse().ok()).unwrap_or(0);
        !processes_in(root, "typescript-language-server").contains(&parent)
    });
    assert_eq!(started.len(), 1, "{started:?}");
    code.close().await;
}

#[tokio::test]
async fn a_follower_without_servers_says_nothing() {
    let code = Code::with([("a.none", "a\n")], true, json!({}));
    code.session
        .say("Read", json!({"file_path": "a.none"}))
        .await
        .ok();
    let follower = code.session.services.get::<CallFollowUpService>().unwrap();
    let report = follower.0.report_after_calls(&code.session.services);
    assert_eq!(timeout(LONG, report).await.unwrap(), None);
}
