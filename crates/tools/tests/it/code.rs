//! Real language servers: what `LSP` answers, and what is reported after edits. The numbers are those of the vectors.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_contract::{CallFollowUpService, Confinement, ConfinementProfile, Services};
use haft_tools::{LanguageServerSetup, LanguageServers, ShellProgram};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::session::Session;

/// Long enough for any machine; nothing is measured by it.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Where `.ci/run` puts the servers.
pub(crate) fn servers() -> PathBuf {
    let child = Path::new(env!("CARGO_BIN_EXE_haft-tools-child"));
    let target = child.ancestors().nth(2).unwrap();
    target.join("lsp/node_modules/.bin")
}

/// Is it there? Said once where it is not.
pub(crate) fn is_missing(server: &str) -> bool {
    let missing = !servers().join(server).exists();
    if missing {
        haft_testkit::skip(&format!("{server} is not installed (.ci/run does it)"));
    }
    // The servers are started by node.
    missing || haft_testkit::lacks("node")
}

pub(crate) struct Code {
    pub(crate) session: Session,
}

impl Code {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self::with(files, true, json!({}))
    }

    pub(crate) fn with<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        trusted: bool,
        settings: Value,
    ) -> Self {
        Self::patient(files, trusted, settings, LONG)
    }

    /// The same, where an answer is waited for that long.
    pub(crate) fn patient<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        trusted: bool,
        settings: Value,
        answer_within: Duration,
    ) -> Self {
        haft_testkit::bound_this_process();
        let mut session = Session::new(files);
        let mut path = OsString::from(servers());
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let hidden = session.project.path(".hidden");
        let setup = LanguageServerSetup {
            workspace: session.project.root().canonicalize().unwrap(),
            top: session.project.root().canonicalize().unwrap(),
            trusted,
            settings,
            plugins: Value::Null,
            answer_within,
            cache: session.folder.root().join("cache"),
            confinement: Arc::new(move || Confinement {
                profile: ConfinementProfile::Workspace,
                hidden: [hidden.clone()]
                    .into_iter()
                    .filter(|path| path.exists())
                    .collect(),
                ..Confinement::default()
            }),
            path: Some(path),
        };
        let program = ShellProgram::new(env!("CARGO_BIN_EXE_haft-tools-child").into());
        let services = Services::none()
            .with(Arc::new(program))
            .with(Arc::new(setup));
        session.services =
            haft_tools::with_services(services, session.folder.root(), session.project.root());
        Self { session }
    }

    pub(crate) async fn lsp(&self, input: Value) -> Result<String, String> {
        let said = timeout(LONG, self.session.output("LSP", input)).await;
        let said = said.expect("it does not answer");
        said.map(|output| crate::session::text_of(&output))
            .map_err(|error| error.to_string())
    }

    /// Reads files and waits until the server knows what is wrong with them.
    pub(crate) async fn open(&self, files: &[&str]) {
        for file in files {
            let read = self.session.say("Read", json!({"file_path": file})).await;
            read.ok();
            let input = json!({"operation": "diagnostics", "filePath": file});
            self.lsp(input).await.unwrap();
        }
        assert_eq!(self.after().await, None);
    }

    pub(crate) async fn edit(&self, file: &str, old: &str, new: &str) {
        let input = json!({"file_path": file, "old_string": old, "new_string": new});
        self.session.say("Edit", input).await.ok();
    }

    /// What is reported after the calls of a reply.
    pub(crate) async fn after(&self) -> Option<String> {
        let follower = self.session.services.get::<CallFollowUpService>().unwrap();
        let report = follower.0.report_after_calls(&self.session.services);
        timeout(LONG, report).await.expect("it does not end")
    }

    /// The same, until something is: a busy machine may need longer than a reply waits.
    pub(crate) async fn reported(&self) -> String {
        let asking = async {
            loop {
                if let Some(report) = self.after().await {
                    return report;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(LONG, asking).await.expect("nothing is reported")
    }

    /// Nothing is reported, once the server has seen everything.
    pub(crate) async fn nothing_reported(&self, file: &str) {
        assert_eq!(self.after().await, None);
        let input = json!({"operation": "diagnostics", "filePath": file});
        self.lsp(input).await.unwrap();
        assert_eq!(self.after().await, None);
    }

    pub(crate) async fn close(self) {
        let servers = self.session.services.get::<LanguageServers>().unwrap();
        timeout(LONG, servers.close()).await.unwrap();
    }
}

pub(crate) const A: &str = "def greet(name: str) -> str:\n    return name\n";
pub(crate) const B: &str = "from a import greet\n\nprint(greet(\"x\"))\n";

#[tokio::test]
async fn pyright_answers_about_places() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::new([("a.py", A), ("b.py", B), ("pyrightconfig.json", "{}")]);
    let at = |operation: &str, file: &str, line: u32, character: u32| json!({"operation": operation, "filePath": file, "line": line, "character": character});
    // 1
    let found = code.lsp(at("findReferences", "a.py", 1, 5)).await.unwrap();
    let expected = "a.py:1:5: def greet(name: str) -> str:\n\
                    b.py:1:15: from a import greet\n\
                    b.py:3:7: print(greet(\"x\"))";
    assert_eq!(found, expected);
    let found = code.lsp(at("goToDefinition", "b.py", 3, 8)).await.unwrap();
    assert_eq!(found, "a.py:1:5: def greet(name: str) -> str:");
    // 3
    let mut off = at("goToDefinition", "b.py", 3, 1);
    off["symbol"] = json!("greet");
    let found = code.lsp(off).await.unwrap();
    let expected = "\"greet\" is at 3:7, not at 3:1; taken from there.\n\
                    a.py:1:5: def greet(name: str) -> str:";
    assert_eq!(found, expected);
    let hover = code.lsp(at("hover", "b.py", 3, 8)).await.unwrap();
    assert!(hover.contains("greet(name: str) -> str"), "{hover}");
    let symbols = json!({"operation": "documentSymbol", "filePath": "a.py"});
    let symbols = code.lsp(symbols).await.unwrap();
    assert!(symbols.starts_with("function greet 1"), "{symbols}");
    let symbols = json!({"operation": "workspaceSymbol", "filePath": "a.py", "query": "greet"});
    let symbols = code.lsp(symbols).await.unwrap();
    assert!(symbols.contains("function greet a.py:1"), "{symbols}");
    let calls = code.lsp(at("incomingCalls", "a.py", 1, 5)).await.unwrap();
    assert_eq!(calls, "b.py:3:7: print(greet(\"x\"))");
    let nothing = code.lsp(at("goToDefinition", "b.py", 2, 1)).await.unwrap();
    assert_eq!(nothing, "pyright found no places.");
    let missing = code.lsp(at("hover", "c.xyz", 1, 1)).await.unwrap_err();
    assert!(missing.contains("c.xyz"), "{missing}");
    code.close().await;
}

#[tokio::test]
async fn what_an_edit_breaks_is_reported_and_nothing_else() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::new([("a.py", A), ("b.py", B), ("pyrightconfig.json", "{}")]);
    code.open(&["a.py", "b.py"]).await;
    // 4
    code.edit("b.py", "greet(\"x\")", "greet(1)").await;
    let report = code.reported().await;
    assert!(
        report.starts_with(
            "The edits above are in place. New problems reported by pyright:\n\
             b.py:3:13 error reportArgumentType: "
        ),
        "{report}"
    );
    // 5: it moves, and that is no news.
    code.edit(
        "b.py",
        "from a import greet\n",
        "from a import greet\n\n# one\n# two\n",
    )
    .await;
    code.nothing_reported("b.py").await;
    // 6
    code.edit("b.py", "greet(1)", "greet(\"y\")").await;
    let report = code.reported().await;
    assert_eq!(
        report,
        "The edits above are in place. 1 earlier problem is gone."
    );
    // 7: broken and repaired in one reply.
    code.edit("b.py", "greet(\"y\")", "greet(2)").await;
    code.edit("b.py", "greet(2)", "greet(\"z\")").await;
    code.nothing_reported("b.py").await;
    // A caller in another file.
    code.edit("a.py", "name: str", "name: int").await;
    let report = code.reported().await;
    assert!(
        report.contains("b.py:6:13 error reportArgumentType"),
        "{report}"
    );
    // 9: by a command.
    fs::write(code.session.project.path("a.py"), A).unwrap();
    let report = code.reported().await;
    assert!(
        report.contains("is gone") || report.contains("are gone"),
        "{report}"
    );
    code.close().await;
}

#[tokio::test]
async fn typescript_counts_as_it_does_and_names_other_files() {
    if is_missing("typescript-language-server") {
        return;
    }
    let files = [
        (
            "a.ts",
            "export function greet(s: string): string { return s; }\n",
        ),
        (
            "b.ts",
            "import { greet } from \"./a\";\nconst s=\"é𝔘\"; greet(s)\n",
        ),
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}"),
    ];
    let code = Code::new(files);
    // The one that the project would have installed.
    let modules = code.session.project.path("node_modules");
    fs::create_dir(&modules).unwrap();
    let typescript = servers().join("../typescript").canonicalize().unwrap();
    std::os::unix::fs::symlink(typescript, modules.join("typescript")).unwrap();
    // 2
    let input =
        json!({"operation": "goToDefinition", "filePath": "b.ts", "line": 2, "character": 15});
    let found = code.lsp(input).await.unwrap();
    assert!(
        found.starts_with("a.ts:1:17: export function greet"),
        "{found}"
    );
    // 8
    code.open(&["a.ts", "b.ts"]).await;
    code.edit("a.ts", "greet(s: string)", "greet(s: number)")
        .await;
    let report = code.reported().await;
    assert!(report.contains("b.ts:2:21 error 2345"), "{report}");
    code.close().await;
}

#[tokio::test]
async fn bash_has_symbols() {
    if is_missing("bash-language-server") {
        return;
    }
    // 14
    let code = Code::new([("run.sh", "#!/bin/bash\n\ngreet() {\n  echo hi\n}\n")]);
    let input = json!({"operation": "documentSymbol", "filePath": "run.sh"});
    let symbols = code.lsp(input).await.unwrap();
    assert!(symbols.contains("function greet 3"), "{symbols}");
    code.close().await;
}

/// Answers `initialize`, then does what its folder says.
pub(crate) const STAND_IN: &str = r#"
LC_ALL=C
say() { printf 'Content-Length: %s\r\n\r\n%s' "${#1}" "$1"; }
hear() { while IFS= read -r line; do case "$line" in Content-Length*) n=${line#*: }; n=${n%$'\r'};; $'\r') break;; esac; done; IFS= read -r -N "$n" body; }
range='"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}}'
publish() { say "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":\"file://$PWD/$1\",\"version\":$2,\"diagnostics\":[{$range,\"message\":\"$3\"}]}}"; }
hear; say '{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"documentSymbolProvider":true,"renameProvider":true}}}'
while hear; do
  how=$(cat "$XDG_CACHE_HOME/../how")
  # haft waits 5 s for a server that says nothing about a new document.
  if [ "$how" = well ]; then
    opened=$(sed -n '/didOpen/s/.*"uri":"\([^"]*\)".*/\1/p' <<<"$body")
    [ -n "$opened" ] && say "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":\"$opened\",\"diagnostics\":[]}}"
  fi
  if [ "$how" = other ]; then case "$body" in *textDocument/didChange\"*) publish a.mine 1 old; publish b.mine 2 elsewhere;; esac; fi
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$body")
  [ -n "$id" ] || continue
  case $how in
    die) kill -9 $$;;
    garbage) echo this is no protocol; sleep 1000;;
    silent) continue;;
    flood) for n in {1..20000}; do publish a.mine 99 flood; done; head -c 5000000 /dev/zero | tr '\0' x >&2;;
  esac
  case "$body" in
    *textDocument/rename*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$(cat "$XDG_CACHE_HOME/../edit")}";;
    *) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":[{\"name\":\"f\",\"kind\":12,$range}]}";;
  esac
done"#;

/// A program that is no server.
pub(crate) fn entry(script: &Path) -> Value {
    json!({"mine": {"command": script, "extensionToLanguage": {".mine": "mine"}}})
}

pub(crate) fn script(folder: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("server");
    fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn what_is_not_trusted_starts_nothing() {
    // 15
    let folder = tempfile::tempdir().unwrap();
    let program = script(folder.path(), "touch \"$0.started\"");
    let code = Code::with([("a.mine", "a\n")], false, entry(&program));
    let input = json!({"operation": "documentSymbol", "filePath": "a.mine"});
    let error = code.lsp(input).await.unwrap_err();
    assert!(
        error.contains("not trusted") && error.contains("haft permissions trust"),
        "{error}"
    );
    code.session
        .say("Read", json!({"file_path": "a.mine"}))
        .await
        .ok();
    assert_eq!(code.after().await, None);
    assert!(!folder.path().join("server.started").exists());
}

#[tokio::test]
async fn a_server_that_cannot_begin_says_why_and_is_not_tried_again() {
    // 17
    let folder = tempfile::tempdir().unwrap();
    let program = script(
        folder.path(),
        "echo first >&2; echo \"no component here\" >&2; exit 1",
    );
    let code = Code::with([("a.mine", "a\n")], true, entry(&program));
    let input = json!({"operation": "documentSymbol", "filePath": "a.mine"});
    let error = code.lsp(input.clone()).await.unwrap_err();
    assert!(
        error.contains("mine failed to start: no component here"),
        "{error}"
    );
    fs::remove_file(&program).unwrap();
    let error = code.lsp(input).await.unwrap_err();
    assert!(error.contains("no component here"), "{error}");
}

#[tokio::test]
async fn a_server_that_dies_hangs_or_floods_is_an_error_and_the_next_call_works() {
    let folder = tempfile::tempdir().unwrap();
    let program = script(folder.path(), STAND_IN);
    let code = Code::with([("a.mine", "a\n")], true, entry(&program));
    let how = code.session.folder.root().join("cache/how");
    fs::create_dir_all(how.parent().unwrap()).unwrap();
    let input = json!({"operation": "documentSymbol", "filePath": "a.mine"});
    fs::write(&how, "well").unwrap();
    assert_eq!(code.lsp(input.clone()).await.unwrap(), "function f 1");
    for bad in ["die", "garbage"] {
        fs::write(&how, bad).unwrap();
        let error = code.lsp(input.clone()).await.unwrap_err();
        assert!(
            error.contains("mine died") && error.contains("restarted"),
            "{bad}: {error}"
        );
        // 16: the next one finds it again.
        fs::write(&how, "well").unwrap();
        assert_eq!(
            code.lsp(input.clone()).await.unwrap(),
            "function f 1",
            "{bad}"
        );
    }
    let restart = json!({"operation": "restart", "filePath": "a.mine"});
    assert_eq!(code.lsp(restart).await.unwrap(), "mine was restarted.");
    assert_eq!(code.lsp(input).await.unwrap(), "function f 1");
    code.close().await;
}

#[tokio::test]
async fn a_server_writes_to_its_cache_alone_reads_nothing_hidden_and_reaches_no_one() {
    // 18: whatever of the project it runs.
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = format!(
        "{{ echo x > written && echo wrote; cat .hidden 2>&1; (echo > /dev/tcp/127.0.0.1/{port}) && echo reached; \
         echo x > \"$TMPDIR/t\" && echo temporary; echo done; }} > \"$XDG_CACHE_HOME/said\" 2>/dev/null"
    );
    let program = script(folder.path(), &text);
    let files = [("a.mine", "a\n"), (".hidden", "secret words\n")];
    let code = Code::with(files, true, entry(&program));
    let input = json!({"operation": "documentSymbol", "filePath": "a.mine"});
    code.lsp(input).await.unwrap_err();
    let cache = code.session.folder.root().join("cache");
    let own = fs::read_dir(cache).unwrap().next().unwrap().unwrap().path();
    let said = fs::read_to_string(own.join("said")).unwrap();
    assert!(said.ends_with("temporary\ndone\n"), "{said}");
    assert!(
        !said.contains("wrote") && !said.contains("reached") && !said.contains("secret"),
        "{said}"
    );
    assert!(!code.session.project.path("written").exists());
}

#[tokio::test]
async fn packages_under_one_lock_file_share_a_server() {
    // 20, with a server of our own that says where it was started.
    let folder = tempfile::tempdir().unwrap();
    let program = script(
        folder.path(),
        "echo $PWD >> \"$XDG_CACHE_HOME/started\"; exit 1",
    );
    let settings = json!({"mine": {
        "command": program, "extensionToLanguage": {".mine": "mine"}, "rootMarkers": ["lock", "package"],
    }});
    let code = Code::with([("lock", "")], true, settings);
    for number in 0..10 {
        code.session
            .project
            .write(&format!("p{number}/package"), "");
        let file = format!("p{number}/a.mine");
        code.session.project.write(&file, "a\n");
        let input = json!({"operation": "documentSymbol", "filePath": file});
        code.lsp(input).await.unwrap_err();
    }
    let cache = fs::read_dir(code.session.folder.root().join("cache")).unwrap();
    let caches: Vec<PathBuf> = cache.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(caches.len(), 1, "{caches:?}");
    let started = fs::read_to_string(caches[0].join("started")).unwrap();
    let root = code.session.project.root().canonicalize().unwrap();
    assert_eq!(started.trim(), root.to_str().unwrap());
}

#[tokio::test]
async fn a_rename_is_a_plan_that_is_carried_out_and_undone_as_one() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::new([("a.py", A), ("b.py", B), ("pyrightconfig.json", "{}")]);
    code.open(&["a.py", "b.py"]).await;
    let rename = |line: u32, character: u32| {
        let mut input = json!({"operation": "rename", "filePath": "a.py", "newName": "hello"});
        (input["line"], input["character"]) = (json!(line), json!(character));
        input
    };
    // 10
    let plan = |text: &str| {
        let id = text.split("plan_id ").nth(1).unwrap().split('.').next();
        json!({"plan_id": id.unwrap()})
    };
    let preview = code.lsp(rename(1, 5)).await.unwrap();
    assert!(
        preview.starts_with("Would change 3 places in 2 files."),
        "{preview}"
    );
    let tools = haft_tools::usable(&code.session.services);
    let call = async |name: &str, input: Value| {
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let (bound, cx) = (tool.clone().bind(input).unwrap(), code.session.context());
        bound.check(&cx).await.map_err(|error| error.to_string())?;
        let output = bound.call(&cx).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(crate::session::text_of(&output))
    };
    let read = |name: &str| fs::read_to_string(code.session.project.path(name)).unwrap();
    let done = call("ReplaceInFiles", plan(&preview)).await.unwrap();
    assert!(done.starts_with("Changed 3 places in 2 files"), "{done}");
    assert_eq!(read("b.py"), B.replace("greet", "hello"));
    assert_eq!(code.after().await, None);
    let id = done
        .split("[undo_id ")
        .nth(1)
        .unwrap()
        .split(']')
        .next()
        .unwrap();
    call("Undo", json!({"undo_id": id})).await.unwrap();
    assert_eq!((read("a.py"), read("b.py")), (A.to_owned(), B.to_owned()));
    // 11
    let preview = code.lsp(rename(1, 5)).await.unwrap();
    fs::write(code.session.project.path("b.py"), format!("{B}# more\n")).unwrap();
    call("ReplaceInFiles", plan(&preview)).await.unwrap_err();
    assert_eq!(read("a.py"), A);
    // 13
    let error = code.lsp(rename(1, 2)).await.unwrap_err();
    assert!(error.starts_with("Nothing to rename"), "{error}");
    code.close().await;
}

#[tokio::test]
async fn a_rename_keeps_line_ends() {
    if is_missing("typescript-language-server") {
        return;
    }
    // 12
    let files = [
        (
            "a.ts",
            "export const one = 1;\r\nexport const two = one + one;\r\n",
        ),
        ("tsconfig.json", "{}"),
    ];
    let code = Code::new(files);
    let modules = code.session.project.path("node_modules");
    fs::create_dir(&modules).unwrap();
    let typescript = servers().join("../typescript").canonicalize().unwrap();
    std::os::unix::fs::symlink(typescript, modules.join("typescript")).unwrap();
    let input = json!({"operation": "rename", "filePath": "a.ts", "line": 1, "character": 14, "newName": "uno"});
    let preview = code.lsp(input).await.unwrap();
    let id = preview
        .split("plan_id ")
        .nth(1)
        .unwrap()
        .split('.')
        .next()
        .unwrap();
    let tools = haft_tools::usable(&code.session.services);
    let tool = tools
        .iter()
        .find(|tool| tool.spec().name == "ReplaceInFiles")
        .unwrap();
    let bound = tool.clone().bind(json!({"plan_id": id})).unwrap();
    bound.call(&code.session.context()).await.unwrap();
    let text = fs::read_to_string(code.session.project.path("a.ts")).unwrap();
    assert_eq!(
        text,
        "export const uno = 1;\r\nexport const two = uno + uno;\r\n"
    );
    code.close().await;
}
