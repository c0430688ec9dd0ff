//! One self-contained HTML page: it needs no other file, no request and no build.
//!
//! **Invariant:** apart from the escaped title, the contents of the transcript are on the page only
//! as JSON in a script element that browsers do not run, with every character escaped that could end
//! this element. The page's own script displays them through text nodes. The page's content security
//! policy allows only this script and the style, by their hashes. So even markup that got into the
//! page could neither run nor load anything.

use data_encoding::BASE64;
use ring::digest::{SHA256, digest};

use super::outline::ExportOutline;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");

/// The parts of the script, in order of their dependencies.
const SCRIPTS: [&str; 8] = [
    include_str!("page/base.js"),
    include_str!("page/nodes.js"),
    include_str!("page/highlight.js"),
    include_str!("page/markdown.js"),
    include_str!("page/render.js"),
    include_str!("page/list.js"),
    include_str!("page/timeline.js"),
    include_str!("page/main.js"),
];

pub(super) fn render(outline: &ExportOutline) -> String {
    let script = format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat());
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(STYLE)
    );
    let title = escaped(&outline.session.title);
    let data = data(outline);
    let values = [
        ("policy", policy.as_str()),
        ("version", env!("CARGO_PKG_VERSION")),
        ("title", &title),
        ("style", STYLE),
        ("data", &data),
        ("script", &script),
    ];
    // In one pass, because a value may contain text that looks like a placeholder.
    let mut page = String::with_capacity(HTML.len() + data.len() + script.len() + STYLE.len());
    let mut rest = HTML;
    while let Some((before, after)) = rest.split_once("{{") {
        page += before;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        let value = values.iter().find(|(place, _)| *place == name);
        page += value.map(|(_, value)| *value).unwrap_or_default();
        rest = after;
    }
    page + rest
}

/// Returns the hash of a text in the format of a content security policy.
fn hash(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    format!("sha256-{}", BASE64.encode(hash.as_ref()))
}

/// Returns JSON without characters that are special in HTML.
fn data(outline: &ExportOutline) -> String {
    let json = serde_json::to_string(outline).unwrap_or_else(|_| "null".to_owned());
    let mut data = String::with_capacity(json.len() + json.len() / 16);
    for letter in json.chars() {
        match letter {
            // These characters occur only in strings, where an escape is equivalent.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                data += &format!("\\u{:04x}", u32::from(letter));
            }
            letter => data.push(letter),
        }
    }
    data
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_one_that_browsers_compute() {
        let known = "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        assert_eq!(hash("abc"), known);
    }

    #[test]
    fn the_parts_of_the_page_hold_nothing_that_ends_their_element() {
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
        assert!(!STYLE.contains("</style"));
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "fetch(",
        ] {
            assert!(!SCRIPTS.concat().contains(word), "{word}");
        }
    }
}
