//! The rules the workspace keeps, read from `cargo metadata`; no network.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;
use spdx::{Expression, LicenseReq};

use crate::sources::SourceFile;

/// What each crate may depend on of ours (normal dependencies; tests and examples may use more).
/// A crate that is not here may depend on none.
const GRAPH: [(&str, &[&str]); 18] = [
    (
        "haft-cli",
        &[
            "haft",
            "haft-acp",
            "haft-agent",
            "haft-contract",
            "haft-engine",
            "haft-extensions",
            "haft-host",
            "haft-journal",
            "haft-models",
            "haft-pdf",
            "haft-protocol",
            "haft-sandbox",
            "haft-search",
            "haft-shell",
            "haft-terminal",
            "haft-tools",
        ],
    ),
    (
        "haft-acp",
        &[
            "haft-agent",
            "haft-contract",
            "haft-engine",
            "haft-host",
            "haft-models",
            "haft-terminal",
        ],
    ),
    (
        "haft",
        &["haft-contract", "haft-engine", "haft-host", "haft-tools"],
    ),
    (
        "haft-host",
        &[
            "haft-agent",
            "haft-contract",
            "haft-engine",
            "haft-extensions",
            "haft-mcp",
            "haft-models",
            "haft-telemetry",
            "haft-tools",
        ],
    ),
    ("haft-telemetry", &["haft-contract"]),
    (
        "haft-agent",
        &[
            "haft-contract",
            "haft-engine",
            "haft-extensions",
            "haft-models",
        ],
    ),
    (
        "haft-engine",
        &["haft-contract", "haft-hooks", "haft-permissions"],
    ),
    (
        "haft-permissions",
        &["haft-contract", "haft-settings", "haft-shell"],
    ),
    ("haft-hooks", &["haft-contract", "haft-settings"]),
    ("haft-settings", &["haft-contract", "haft-witness"]),
    ("haft-extensions", &["haft-settings"]),
    (
        "haft-mcp",
        &["haft-contract", "haft-engine", "haft-sandbox"],
    ),
    ("haft-models", &["haft-contract"]),
    ("haft-journal", &["haft-witness"]),
    ("haft-sandbox", &["haft-witness"]),
    ("haft-protocol", &["haft-contract"]),
    (
        "haft-tools",
        &[
            "haft-browser",
            "haft-contract",
            "haft-extensions",
            "haft-journal",
            "haft-lsp",
            "haft-pdf",
            "haft-sandbox",
            "haft-search",
            "haft-settings",
            "haft-shell",
        ],
    ),
    ("haft-testkit", &["haft-contract"]),
];

/// Only ever a dev-dependency.
const DEV_ONLY: &str = "haft-testkit";

/// Licences the product may carry.
const LICENCES: [&str; 12] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unlicense",
    "CC0-1.0",
    "MPL-2.0",
    "Unicode-3.0",
    "BSL-1.0",
];

/// Crates that stand in the tree in two versions, and why no one can help it.
///
/// `syn` is not among them: Cargo.lock holds those that went on to 3 (serde, clap, thiserror and others) at their last
/// version before that, until enumflags2, for landlock, and phf have followed.
const TWICE: [(&str, &str); 1] = [(
    "getrandom",
    "ring is behind; proptest and tempfile, for tests only, are ahead",
)];

/// The packages that are built here: those for other systems need not be on this machine.
fn metadata() -> Value {
    let rustc = haft_testkit::command("rustc").arg("-vV").output().unwrap();
    let rustc = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = haft_testkit::command(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[test]
fn crates_depend_only_on_what_the_design_allows() {
    let metadata = metadata();
    let members = list(&metadata["packages"])
        .iter()
        .filter(|package| package["source"].is_null());
    let ours: BTreeSet<&str> = members
        .clone()
        .map(|package| text(package, "name"))
        .collect();
    assert!(ours.len() >= 8, "{ours:?}");
    for package in members {
        let name = text(package, "name");
        let allowed = GRAPH
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(&[][..], |(_, may)| may);
        for dependency in list(&package["dependencies"]) {
            let on = text(dependency, "name");
            // `kind` is null for normal dependencies.
            if !ours.contains(on) || !dependency["kind"].is_null() {
                continue;
            }
            assert_ne!(on, DEV_ONLY, "{name} ships the test kit");
            assert!(allowed.contains(&on), "{name} may not depend on {on}");
        }
    }
}

#[test]
fn every_licence_is_one_the_product_may_carry() {
    let metadata = metadata();
    let allowed = |requirement: &LicenseReq| {
        LICENCES
            .iter()
            .any(|name| requirement.license.id().is_some_and(|id| id.name == *name))
    };
    for package in list(&metadata["packages"]) {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        // Old manifests write `MIT/Apache-2.0` for a choice.
        let expression = Expression::parse(&licence.replace('/', " OR "))
            .unwrap_or_else(|error| panic!("{name}: {licence:?}: {error}"));
        assert!(
            expression.evaluate(allowed),
            "{name}: {licence} is not allowed"
        );
    }
}

/// Name and version of everything in the tree, a line each.
fn tree() -> String {
    // Not `cargo metadata`, which also lists what no feature in use asks for.
    let tree = haft_testkit::command(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    String::from_utf8(tree.stdout).unwrap()
}

#[test]
fn there_is_one_tls_library() {
    let tree = tree();
    let has = |name: &str| {
        tree.lines()
            .any(|line| line.split(' ').next() == Some(name))
    };
    assert!(has("ring"), "{tree}");
    for other in ["aws-lc-rs", "native-tls", "openssl", "openssl-sys"] {
        assert!(!has(other), "{other} is a second one");
    }
}

#[test]
fn no_crate_is_there_twice() {
    let tree = tree();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    assert!(versions.contains_key("haft-cli"), "{tree}");
    let excused = |name: &str| TWICE.iter().any(|(known, _)| *known == name);
    let twice: Vec<_> = versions
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .collect();
    for (name, versions) in &twice {
        assert!(excused(name), "{name} is there as {versions:?}");
    }
    for (name, _) in TWICE {
        assert!(
            twice.iter().any(|(known, _)| **known == name),
            "{name} needs no excuse any more"
        );
    }
}

#[test]
fn everything_public_is_documented() {
    let metadata = metadata();
    let members: BTreeSet<&str> = list(&metadata["workspace_members"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut count = 0;
    for package in list(&metadata["packages"]) {
        let name = text(package, "name");
        if !members.contains(text(package, "id")) || name == DEV_ONLY {
            continue;
        }
        let library = list(&package["targets"])
            .iter()
            .find(|target| target["kind"][0] == "lib");
        let Some(library) = library else {
            assert_eq!(name, "haft-cli", "{name} has no library");
            continue;
        };
        // A warning is an error in `.ci/run`.
        let source = fs::read_to_string(text(library, "src_path")).unwrap();
        assert!(source.contains("#![warn(missing_docs)]"), "{name}");
        count += 1;
    }
    assert!(count > 15, "{count}");
}

#[test]
fn crates_are_ready_to_be_published() {
    let metadata = metadata();
    let members: BTreeSet<&str> = list(&metadata["workspace_members"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let ours = list(&metadata["packages"]);
    let ours = ours
        .iter()
        .filter(|package| members.contains(text(package, "id")));
    for package in ours {
        let name = text(package, "name");
        let is_private = package["publish"] == Value::Array(Vec::new());
        assert_eq!(is_private, name == DEV_ONLY, "{name}");
        if is_private {
            continue;
        }
        for key in [
            "description",
            "license",
            "readme",
            "documentation",
            "rust_version",
        ] {
            assert_ne!(text(package, key), "", "{name}: {key}");
        }
        for key in ["keywords", "categories"] {
            let count = list(&package[key]).len();
            assert!((1..=5).contains(&count), "{name}: {key}");
        }
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap();
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = fs::read_to_string(folder.join(license));
            assert!(text.is_ok_and(|text| text.len() > 500), "{name}: {license}");
        }
        // What is of ours is published with the same version. What only tests use has none: it would have to be
        // published first, and may build on this very crate.
        for dependency in list(&package["dependencies"]) {
            if !text(dependency, "name").starts_with("haft") {
                continue;
            }
            let wanted = match text(dependency, "kind") {
                "dev" => "*".to_owned(),
                _ => format!("={}", text(package, "version")),
            };
            assert_eq!(text(dependency, "req"), wanted, "{name}: {dependency}");
        }
    }
}

/// Crates without examples switch doctests off, because rustdoc takes seconds for each. An example there would never
/// be compiled.
#[test]
fn every_example_in_the_docs_is_compiled() {
    for file in SourceFile::all("src") {
        let manifest = format!("../{}/Cargo.toml", file.package());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
        if !fs::read_to_string(manifest)
            .unwrap()
            .contains("doctest = false")
        {
            continue;
        }
        let fences = file.text.lines().filter_map(|line| {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
            comment.trim_start().strip_prefix("```")
        });
        // Every other one ends a block.
        for language in fences.step_by(2) {
            let is_text = ["text", "json", "sh", "toml"].contains(&language);
            assert!(is_text, "{}: ```{language}", file.path);
        }
    }
}
