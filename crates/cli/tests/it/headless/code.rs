use std::{ffi::OsString, fs, path::Path};

use haft_testkit::{
    anthropic::{called, said},
    http::HttpFake,
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::answer;
use crate::binary::haft;

/// The messages of each request, as text.
fn asked(server: &HttpFake) -> Vec<String> {
    let bodies = server.bodies();
    bodies
        .iter()
        .map(|body| body["messages"].to_string())
        .collect()
}

#[test]
fn an_edit_that_breaks_a_caller_is_reported_in_the_same_run_and_one_that_breaks_nothing_is_not() {
    let binary = Path::new(env!("CARGO_BIN_EXE_haft"));
    let servers = binary
        .ancestors()
        .nth(2)
        .unwrap()
        .join("lsp/node_modules/.bin");
    if !servers.join("pyright-langserver").exists() {
        return haft_testkit::skip("pyright is not installed (.ci/run does it)");
    }
    let dir = tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (a, b) = (root.join("a.py"), root.join("b.py"));
    fs::write(&a, "def greet(name: str) -> str:\n    return name\n").unwrap();
    fs::write(&b, "from a import greet\n\nprint(greet(\"x\"))\n").unwrap();
    fs::write(root.join("pyrightconfig.json"), "{}").unwrap();
    let trusted = answer(haft(&root).args(["permissions", "trust", "--yes"]));
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    let problems =
        |file: &Path| called("LSP", json!({"operation": "diagnostics", "filePath": file}));
    let edit = |old: &str, new: &str| {
        called(
            "Edit",
            json!({"file_path": a, "old_string": old, "new_string": new}),
        )
    };
    let server = HttpFake::start_strict(vec![
        called("Read", json!({"file_path": a})),
        called("Read", json!({"file_path": b})),
        called("ToolSearch", json!({"query": "select:LSP"})),
        problems(&a),
        problems(&b),
        edit("    return name\n", "    # as it is\n    return name\n"),
        problems(&b),
        edit("name: str", "name: int"),
        problems(&b), // a busy machine may need longer than a reply waits
        said("Done."),
    ]);
    let mut path = OsString::from(&servers);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = haft(&root);
    command
        .env("PATH", path)
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .args([
            "--model",
            "m-1",
            "--permission-mode",
            "acceptEdits",
            "-p",
            "go",
        ]);
    let ran = answer(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = asked(&server);
    let first: Value = server.bodies()[0]["tools"].clone();
    let names = first
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].to_string());
    assert!(!names.collect::<Vec<_>>().contains(&"\"LSP\"".to_owned()));
    assert!(!asked[7].contains("The edits above"), "{}", asked[7]);
    let last = asked.last().unwrap();
    assert!(last.contains("New problems reported by pyright"), "{last}");
    assert!(
        last.contains("b.py:3:13 error reportArgumentType"),
        "{last}"
    );
}
