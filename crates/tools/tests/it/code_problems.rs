//! What edits break, as real servers say it: those that are asked, and those that are waited for.

use std::{fs, time::Duration};

use serde_json::json;
use tokio::time::timeout;

use crate::{
    code::{Code, LONG, is_missing, servers},
    code_servers::{nothing_runs, python, with_typescript},
};

/// A server runs, and has looked at everything that was read, without having been asked by a call.
async fn warm(code: &Code, files: &[&str]) {
    for file in files {
        let read = code.session.say("Read", json!({"file_path": file})).await;
        read.ok();
    }
    assert_eq!(code.after().await, None);
    // Which opens nothing that is not open.
    let all = json!({"operation": "workspaceSymbol", "filePath": files[0], "query": "greet"});
    code.lsp(all).await.unwrap();
}

#[tokio::test]
async fn the_first_edit_is_compared_with_what_was_read_though_no_call_asked_about_it() {
    if is_missing("pyright-langserver") {
        return;
    }
    let code = Code::new(python());
    warm(&code, &["a.py", "b.py"]).await;
    code.edit("a.py", "name: str", "name: int").await;
    let report = code.reported().await;
    assert!(
        report.contains("b.py:3:13 error reportArgumentType"),
        "{report}"
    );
    code.close().await;
}

#[tokio::test]
async fn a_new_file_that_others_lack_and_one_that_goes_are_noticed() {
    for (server, ending, uses, has, lacks) in [
        (
            "pyright-langserver",
            "py",
            "from c import one\n\nprint(one)\n",
            "one = 1\n",
            "reportMissingImports",
        ),
        (
            "typescript-language-server",
            "ts",
            "import { one } from \"./c\";\nconsole.log(one);\n",
            "export const one = 1;\n",
            "error 2307",
        ),
    ] {
        if is_missing(server) {
            continue;
        }
        // TypeScript does not watch folders that are near the root of the file system.
        let user = format!("some/work/b.{ending}");
        let code = Code::new([
            (user.as_str(), uses),
            ("some/work/pyrightconfig.json", "{}"),
            ("some/work/tsconfig.json", "{}"),
        ]);
        with_typescript(&code);
        let read = code.session.say("Read", json!({"file_path": user})).await;
        read.ok();
        let input = json!({"operation": "diagnostics", "filePath": user});
        let found = code.lsp(input).await.unwrap();
        assert!(found.contains(lacks), "{found}");
        assert_eq!(code.after().await, None);
        let made = format!("some/work/c.{ending}");
        let write = json!({"file_path": made, "content": has});
        code.session.say("Write", write).await.ok();
        let report = code.reported().await;
        assert_eq!(
            report, "The edits above are in place. 1 earlier problem is gone.",
            "{server}"
        );
        fs::remove_file(code.session.project.path(&made)).unwrap();
        let report = code.reported().await;
        assert!(
            report.contains(&format!("{user}:1:")) && report.contains(lacks),
            "{report}"
        );
        code.close().await;
    }
}

#[tokio::test]
async fn rust_analyzer_answers_and_reports_what_an_edit_breaks() {
    let version = haft_testkit::command("rust-analyzer")
        .arg("--version")
        .output();
    if !version.is_ok_and(|ran| ran.status.success()) {
        // Not even by `.ci/run`, which then says so: rustup cannot provide it everywhere.
        if servers().join("../../no-rust-analyzer").exists() {
            eprintln!("SKIPPED: rust-analyzer: rustup does not have it here");
            return;
        }
        return haft_testkit::skip("rust-analyzer is not installed (.ci/run does it by rustup)");
    }
    let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let lock = "version = 3\n\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n";
    let code = Code::new([
        ("Cargo.toml", manifest),
        ("Cargo.lock", lock),
        (
            "src/lib.rs",
            "pub mod a;\n\npub fn twice() -> u32 {\n    a::one() + a::one()\n}\n",
        ),
        ("src/a.rs", "pub fn one() -> u32 {\n    1\n}\n"),
    ]);
    let find =
        json!({"operation": "findReferences", "filePath": "src/a.rs", "line": 1, "symbol": "one"});
    // It answers before it knows everything, and says so.
    let asking = async {
        loop {
            match code.lsp(find.clone()).await {
                Ok(found) if found.contains("src/lib.rs:4:8") => return found,
                Ok(_) => {}
                Err(error) => assert!(error.contains("try again"), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let found = timeout(LONG, asking).await.expect("it finds nothing");
    assert!(
        found.starts_with("src/a.rs:1:8: pub fn one() -> u32 {"),
        "{found}"
    );
    let at = |operation: &str| json!({"operation": operation, "filePath": "src/lib.rs", "line": 4, "symbol": "one"});
    // It stands there twice; either means the same.
    let first = |operation: &str| {
        let mut input = at(operation);
        input["character"] = json!(8);
        input
    };
    let found = code.lsp(first("goToDefinition")).await.unwrap();
    assert_eq!(found, "src/a.rs:1:8: pub fn one() -> u32 {");
    let hover = code.lsp(first("hover")).await.unwrap();
    assert!(hover.contains("pub fn one() -> u32"), "{hover}");
    // What an edit breaks in another file.
    code.open(&["src/a.rs", "src/lib.rs"]).await;
    code.edit("src/a.rs", "one()", "one(more: u32)").await;
    code.edit("src/a.rs", "    1\n", "    more\n").await;
    let report = code.reported().await;
    assert!(
        report.contains("New problems reported by rust-analyzer:\n")
            && report.contains("src/lib.rs:4:"),
        "{report}"
    );
    // Nothing of it is in the project.
    assert!(!code.session.project.path("target").exists());
    let root = code.session.project.root().canonicalize().unwrap();
    code.close().await;
    nothing_runs(&root, "rust-analyzer").await;
}
