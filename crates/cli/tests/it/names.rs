//! Names of types: a public one is unique in the workspace, any other in its crate, so that each can be found.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::SourceFile;

/// A type, where it is written.
struct Defined {
    is_public: bool,
    package: String,
    place: String,
}

/// Every tool has an `Input` in its own file (CONTRIBUTING.md).
const EACH_TOOL_HAS_ONE: &str = "Input";

/// Types whose one word says enough: a crate and a name, separated by a space.
const ONE_WORD: &str = include_str!("one_word_types.txt");

#[test]
fn public_types_have_names_of_their_own_and_so_have_others_in_their_crate() {
    let mut types: BTreeMap<String, Vec<Defined>> = BTreeMap::new();
    for file in SourceFile::all("src") {
        for (number, line) in (1..).zip(file.text.lines()) {
            let Some((is_public, name)) = definition(line) else {
                continue;
            };
            types.entry(name.to_owned()).or_default().push(Defined {
                is_public,
                package: file.package().to_owned(),
                place: format!("{}:{number}", file.path),
            });
        }
    }
    assert!(types.len() > 500, "the types were not found");
    types.remove(EACH_TOOL_HAS_ONE);
    let clashes = |defined: &[Defined]| {
        defined.iter().enumerate().any(|(at, one)| {
            let others = &defined[at + 1..];
            others
                .iter()
                .any(|other| one.package == other.package || (one.is_public && other.is_public))
        })
    };
    let clashing: BTreeMap<_, Vec<&str>> = types
        .iter()
        .filter(|(_, defined)| clashes(defined))
        .map(|(name, defined)| (name, defined.iter().map(|one| &*one.place).collect()))
        .collect();
    assert!(clashing.is_empty(), "{clashing:#?}");
}

#[test]
fn types_have_names_of_two_words() {
    let mut one_word = BTreeSet::new();
    for file in SourceFile::all("src") {
        for (_, line) in file.code() {
            let Some((_, name)) = definition(line) else {
                continue;
            };
            let words = name.chars().filter(|letter| letter.is_ascii_uppercase());
            if words.count() == 1 && name != EACH_TOOL_HAS_ONE {
                one_word.insert(format!("{} {name}", file.package()));
            }
        }
    }
    let allowed: BTreeSet<String> = ONE_WORD.lines().map(str::to_owned).collect();
    let new: Vec<_> = one_word.difference(&allowed).collect();
    assert!(new.is_empty(), "one word says too little: {new:#?}");
    let old: Vec<_> = allowed.difference(&one_word).collect();
    assert!(old.is_empty(), "remove from one_word_types.txt: {old:#?}");
}

/// Returns whether the type that a line defines is public, and its name. Only types at the top level of a file
/// begin a line.
fn definition(line: &str) -> Option<(bool, &str)> {
    let (is_public, rest) = match line.strip_prefix("pub ") {
        Some(rest) => (true, rest),
        None if line.starts_with("pub(") => (false, line.split_once(") ")?.1),
        None => (false, line),
    };
    let mut words = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let keyword = words.next()?;
    let name = words.next()?;
    let is_type = matches!(keyword, "struct" | "enum" | "trait" | "type" | "union");
    (is_type && !name.is_empty()).then_some((is_public, name))
}
