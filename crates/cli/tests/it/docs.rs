use std::{fs, path::Path};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What stands between backquotes and looks like a path of this repository.
fn paths(document: &str) -> Vec<&str> {
    let quoted = document.split('`').skip(1).step_by(2);
    let roots = ["crates/", "benches/", ".ci/", "fuzz/"];
    quoted
        .filter(|word| roots.iter().any(|root| word.starts_with(root)))
        .collect()
}

#[test]
fn every_path_the_documents_name_exists() {
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ] {
        let text = text(document);
        let named = paths(&text);
        for path in &named {
            assert!(
                root().join(path).exists(),
                "{document} names {path}, which is not there"
            );
        }
        if document == "ARCHITECTURE.md" {
            assert!(
                named.len() > 20,
                "the map names only {} places",
                named.len()
            );
        }
    }
}

#[test]
fn the_map_has_every_crate() {
    let map = text("ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            map.contains(&format!("`crates/{name}`")),
            "{name} is not on the map"
        );
    }
}

#[test]
fn ci_runs_the_test_command_of_the_readme() {
    let command = "cargo test --workspace";
    assert!(text("README.md").contains(command));
    assert!(text(".ci/run").contains(command));
}

#[test]
fn the_changelog_has_this_version() {
    assert!(text("CHANGELOG.md").contains(concat!("## ", env!("CARGO_PKG_VERSION"))));
}
