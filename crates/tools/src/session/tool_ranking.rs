//! Ranking of deferred tools for a query.

use haft_contract::ToolSpec;

/// The maximum number of tools that are searched, more than any session needs.
const CATALOGUE: usize = 10_000;

/// The result of a query.
#[derive(Debug)]
pub(super) struct ToolMatches<'a> {
    pub(super) tools: Vec<&'a ToolSpec>,
    /// Requested names that no tool has.
    pub(super) unknown: Vec<&'a str>,
}

/// Searches tools. `select:A,B` selects tools by name, without a limit. Any other query is a list
/// of terms: returns at most `limit` tools that contain any of them, sorted by the number of matching
/// terms and the quality of the match, then by name. A tool must contain every `+term` in its name.
pub(super) fn search<'a>(specs: &[&'a ToolSpec], query: &'a str, limit: usize) -> ToolMatches<'a> {
    let specs = &specs[..specs.len().min(CATALOGUE)];
    if let Some(list) = query.trim().strip_prefix("select:") {
        return select(specs, list);
    }
    let words: Vec<SearchWord> = query
        .split_whitespace()
        .filter_map(SearchWord::parse)
        .collect();
    let mut found: Vec<(usize, &ToolSpec)> = specs
        .iter()
        .filter_map(|spec| Some((points(spec, &words)?, *spec)))
        .filter(|(points, _)| *points > 0)
        .collect();
    found.sort_by(|(a, left), (b, right)| b.cmp(a).then_with(|| left.name.cmp(&right.name)));
    let tools = found.into_iter().map(|(_, spec)| spec).take(limit);
    ToolMatches {
        tools: tools.collect(),
        unknown: Vec::new(),
    }
}

fn select<'a>(specs: &[&'a ToolSpec], list: &'a str) -> ToolMatches<'a> {
    let mut matches = ToolMatches {
        tools: Vec::new(),
        unknown: Vec::new(),
    };
    let names = list.split(',').map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let has_alias = |spec: &ToolSpec| spec.profile.aliases.iter().any(|alias| alias == name);
        let by_name = specs.iter().find(|spec| spec.name == name);
        match by_name.or_else(|| specs.iter().find(|spec| has_alias(spec))) {
            Some(spec) if matches.tools.iter().any(|taken| taken.name == spec.name) => {}
            Some(spec) => matches.tools.push(spec),
            None => matches.unknown.push(name),
        }
    }
    matches
}

/// A word of a query.
struct SearchWord {
    text: String,
    /// The tool's name must contain it.
    required: bool,
}

impl SearchWord {
    fn parse(word: &str) -> Option<Self> {
        let (text, required) = match word.strip_prefix('+') {
            Some(text) => (text, true),
            None => (word, false),
        };
        (!text.is_empty()).then(|| Self {
            text: text.to_lowercase(),
            required,
        })
    }
}

/// Returns how well a tool matches; `None` if its name lacks a required word.
fn points(spec: &ToolSpec, words: &[SearchWord]) -> Option<usize> {
    let name = spec.name.to_lowercase();
    let parts = name_parts(&spec.name);
    let hint = spec.profile.search_hint.to_lowercase();
    let description = spec.description.to_lowercase();
    let mut points = 0;
    for SearchWord { text, required } in words {
        let is_in_name = name.contains(text.as_str());
        if *required && !is_in_name {
            return None;
        }
        points += if name == *text {
            20
        } else if parts.contains(text) {
            12
        } else if is_in_name {
            8
        } else if has_word(&hint, text) {
            5
        } else if has_word(&description, text) {
            2
        } else {
            usize::from(hint.contains(text.as_str()) || description.contains(text.as_str()))
        };
    }
    Some(points)
}

/// Splits a name: `mcp__files__readFile` → mcp, files, read, file.
fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && after_lower;
        if begins || !letter.is_alphanumeric() {
            parts.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(letter.to_lowercase());
        }
        after_lower = letter.is_lowercase() || letter.is_numeric();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric())
        .any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use haft_contract::ToolProfile;
    use serde_json::json;

    use super::*;

    fn tool(name: &str, hint: &'static str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object"}),
            profile: ToolProfile {
                search_hint: hint.into(),
                ..ToolProfile::default()
            },
        }
    }

    fn catalogue() -> Vec<ToolSpec> {
        vec![
            tool(
                "NotebookEdit",
                "jupyter ipynb",
                "Changes a cell of a notebook.",
            ),
            tool("Undo", "revert restore", "Undoes changes to files."),
            tool("mcp__git__log", "", "Shows the commits."),
            tool("mcp__git__status", "", "Shows what changed."),
            tool("mcp__github__list_issues", "bugs tickets", "Lists issues."),
            tool(
                "mcp__slack__sendMessage",
                "",
                "Sends a message to a channel, with files.",
            ),
        ]
    }

    #[test]
    fn queries_and_what_they_find() {
        let cases = [
            // (what it shows, query, most, found, unknown)
            (
                "exact names, in the order asked",
                "select:Undo,NotebookEdit",
                1,
                "Undo NotebookEdit",
                "",
            ),
            (
                "blanks, repeats and unknown names",
                "select: Undo, Undo,Nope,",
                5,
                "Undo",
                "Nope",
            ),
            (
                "a name is not a part of one",
                "select:mcp__git",
                5,
                "",
                "mcp__git",
            ),
            (
                "a part of the name beats a longer part",
                "git",
                5,
                "mcp__git__log mcp__git__status mcp__github__list_issues",
                "",
            ),
            (
                "more words beat fewer",
                "git commits",
                5,
                "mcp__git__log mcp__git__status mcp__github__list_issues",
                "",
            ),
            ("the hint counts", "jupyter", 5, "NotebookEdit", ""),
            (
                "the hint beats the description",
                "restore files",
                5,
                "Undo mcp__slack__sendMessage",
                "",
            ),
            (
                "words inside a camel-case name",
                "message",
                5,
                "mcp__slack__sendMessage",
                "",
            ),
            ("case means nothing", "NOTEBOOK", 5, "NotebookEdit", ""),
            (
                "a word that must be in the name",
                "+git shows",
                5,
                "mcp__git__log mcp__git__status mcp__github__list_issues",
                "",
            ),
            ("and is not", "+gitlab commits", 5, "", ""),
            (
                "two of them",
                "+git +issues",
                5,
                "mcp__github__list_issues",
                "",
            ),
            ("a lone plus is no word", "+ undo", 5, "Undo", ""),
            (
                "at most so many, equals by name",
                "shows",
                1,
                "mcp__git__log",
                "",
            ),
            ("nothing", "weather", 5, "", ""),
        ];
        let catalogue = catalogue();
        let specs: Vec<&ToolSpec> = catalogue.iter().collect();
        for (what, query, most, found, unknown) in cases {
            let matches = search(&specs, query, most);
            let names: Vec<&str> = matches.tools.iter().map(|spec| &*spec.name).collect();
            assert_eq!(names.join(" "), found, "{what}");
            assert_eq!(matches.unknown.join(" "), unknown, "{what}");
        }
    }

    #[test]
    fn what_is_beyond_the_catalogue_is_not_looked_at() {
        let many: Vec<ToolSpec> = (0..=CATALOGUE)
            .map(|number| tool(&format!("tool_{number}"), "", ""))
            .collect();
        let specs: Vec<&ToolSpec> = many.iter().collect();
        assert_eq!(search(&specs, "select:tool_9999", 5).tools.len(), 1);
        assert_eq!(
            search(&specs, "select:tool_10000", 5).unknown,
            ["tool_10000"]
        );
    }
}
