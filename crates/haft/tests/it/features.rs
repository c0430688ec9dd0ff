//! What an embedder may choose is written where they look.

use std::{collections::BTreeMap, fs, path::Path};

/// A file of this crate.
fn text(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The features of the manifest, and whether they are on by default.
fn declared() -> BTreeMap<String, bool> {
    let manifest = text("Cargo.toml");
    let (_, rest) = manifest.split_once("[features]\n").unwrap();
    let section = rest.split("\n[").next().unwrap();
    let lines = section.lines().filter(|line| !line.starts_with('#'));
    let features: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(" = ")).collect();
    let (_, default) = features
        .iter()
        .find(|(name, _)| *name == "default")
        .unwrap();
    let is_default = |name: &str| default.contains(&format!("\"{name}\""));
    let others = features.iter().filter(|(name, _)| *name != "default");
    others
        .map(|(name, _)| ((*name).to_owned(), is_default(name)))
        .collect()
}

#[test]
fn the_table_names_every_feature_and_no_other() {
    let docs = text("src/lib.rs");
    let rows = docs.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let told: BTreeMap<String, bool> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim);
            let name = cells.next().unwrap().trim_end_matches('`').to_owned();
            (name, cells.next() == Some("yes"))
        })
        .collect();
    assert_eq!(told, declared());
}
