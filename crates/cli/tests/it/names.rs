//! Names of types: a public one is unique in the workspace, any other in its crate, so that each can be found.

use std::collections::BTreeMap;

use crate::sources::SourceFile;

/// A type, where it is written.
struct Defined {
    is_public: bool,
    package: String,
    place: String,
}

/// Every tool has an `Input` in its own file (CONTRIBUTING.md).
const EACH_TOOL_HAS_ONE: &str = "Input";

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

/// The type that a line defines: is it public, and its name. Those inside of functions and tests are told
/// by no one else, and stand deeper.
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
