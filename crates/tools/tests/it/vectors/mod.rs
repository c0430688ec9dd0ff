//! The spec's test vectors, as a user meets them: through the tools.
//!
//! - `calls`: tools.md §27
//! - file-tools.md §8: `edits` (1–64), `files` (65–82), `reads` (83–91), `notebooks` (92–95) and
//!   `many` (96–98). A vector is a row of the table in `edits` or a test called `vNNN_…`; what only
//!   the disk or a process can show is tested so in the journal (75, 78) and in the binary (77, 87).

mod calls;
mod edits;
mod files;
mod many;
mod notebooks;
mod reads;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::session::Session;

async fn read(session: &Session, name: &str) -> String {
    session.say("Read", json!({"file_path": name})).await.ok()
}

fn edit(name: &str, old: &str, new: &str) -> Value {
    json!({"file_path": name, "old_string": old, "new_string": new})
}

fn write(name: &str, content: &str) -> Value {
    json!({"file_path": name, "content": content})
}

/// Fails for a vector of file-tools.md §8 that nothing tests.
#[test]
fn every_vector_has_its_test() {
    let mut all: BTreeSet<String> = (1..=98).map(|number: u32| number.to_string()).collect();
    all.insert("51b".to_owned());
    let mut tested: BTreeSet<String> = edits::numbers().map(str::to_owned).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for part in ["tools", "journal", "cli"] {
        for source in sources(&crates.join(part).join("tests/it")) {
            tested.extend(numbers_of_tests(&fs::read_to_string(source).unwrap()));
        }
    }
    let untested: Vec<_> = all.difference(&tested).collect();
    let unknown: Vec<_> = tested.difference(&all).collect();
    assert!(
        untested.is_empty() && unknown.is_empty(),
        "without a test: {untested:?}; not in the table: {unknown:?}"
    );
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    sources
}

/// The numbers in the names of functions `vNNN_…` that are marked as tests.
fn numbers_of_tests(source: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut is_test = false;
    for line in source.lines() {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("#[") {
            let name = line.trim_start_matches("async ").strip_prefix("fn v");
            let number = name.and_then(|name| name.split_once('_'));
            if let (true, Some((number, _))) = (is_test, number)
                && number.starts_with(|digit: char| digit.is_ascii_digit())
            {
                numbers.push(number.trim_start_matches('0').to_owned());
            }
            is_test = false;
        }
    }
    numbers
}

#[test]
fn only_tests_count() {
    let source = "#[test]\nfn v007_x() {}\nfn v008_y() {}\n#[tokio::test]\nasync fn v051b_z() {}\n\
                  #[test]\n#[cfg(unix)]\nfn v009_() {}\n#[test]\nfn vectors_all() {}\n";
    assert_eq!(numbers_of_tests(source), ["7", "51b", "9"]);
}
