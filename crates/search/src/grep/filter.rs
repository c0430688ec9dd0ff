//! The globs and the file type of a query, and suggestions for an unknown file type.

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

use super::GrepQuery;
use crate::SearchError;

pub(super) fn overrides(query: &GrepQuery) -> Result<Override, SearchError> {
    let mut builder = OverrideBuilder::new(&query.current_dir);
    for glob in &query.globs {
        if glob.contains('\0') {
            return Err(SearchError::NulByte { field: "glob" });
        }
        builder.add(glob).map_err(|error| invalid(glob, &error))?;
    }
    builder
        .build()
        .map_err(|error| invalid(&query.globs.join(" "), &error))
}

fn invalid(glob: &str, error: &ignore::Error) -> SearchError {
    let diagnostic = match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    };
    SearchError::InvalidGlob {
        glob: glob.to_owned(),
        diagnostic,
    }
}

pub(super) fn types(query: &GrepQuery) -> Result<Types, SearchError> {
    let Some(name) = &query.file_type else {
        // Like ripgrep's unselected defaults, but without compiling some hundred globs.
        return Ok(Types::empty());
    };
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| {
        let hint = near_types(&builder, name);
        SearchError::UnknownFileType {
            name: name.clone(),
            hint,
        }
    })
}

/// Suggests types for an unknown name. Models often pass an extension where the type has another
/// name (`tsx` for `ts`), so extensions are compared first.
fn near_types(builder: &TypesBuilder, name: &str) -> String {
    let wanted = name.trim_start_matches(['*', '.']).to_lowercase();
    let extension = format!("*.{wanted}");
    let definitions = builder.definitions();
    let mut near: Vec<(usize, &str)> = definitions
        .iter()
        .filter(|it| it.globs().contains(&extension))
        .map(|it| (0, it.name()))
        .collect();
    if near.is_empty() {
        let reach = if wanted.len() < 4 { 1 } else { 2 };
        near.extend(
            definitions
                .iter()
                .map(|it| (distance(it.name(), &wanted), it.name())),
        );
        near.retain(|(changes, _)| *changes <= reach);
        near.sort_unstable();
    }
    let near: Vec<&str> = near.into_iter().map(|(_, name)| name).take(5).collect();
    match near.as_slice() {
        [] => format!("no type has a name like it; give `glob: \"*.{wanted}\"` instead"),
        names => format!(
            "did you mean {}? `glob: \"*.{wanted}\"` works for any extension",
            names.join(", ")
        ),
    }
}

/// Returns the edit distance of two words in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_names_those_near_it() {
        let cases = [
            // (given, part of the text)
            ("pyton", "did you mean python"),
            (".rs", "did you mean rust"),
            ("tsx", "did you mean"),
            ("mjs", "did you mean js"),
            ("qqqqqq", "glob: \"*.qqqqqq\""),
        ];
        for (given, part) in cases {
            let query = GrepQuery {
                file_type: Some(given.to_owned()),
                ..GrepQuery::new("x", "/")
            };
            match types(&query) {
                Ok(_) => assert_eq!(given, "tsx", "known in some versions"),
                Err(error) => assert!(error.to_string().contains(part), "{given} gave {error}"),
            }
        }
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("rust", "rust", 0),
            ("rsut", "rust", 2),
            ("py", "", 2),
            ("pyton", "python", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
