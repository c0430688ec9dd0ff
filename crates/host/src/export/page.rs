//! One page with everything in it: no file beside it, no request, nothing to build.
//!
//! **Invariant:** what a transcript says is on the page once, as JSON in a script element that browsers do not
//! run, with every character that could end that element escaped; the page's own script shows it through text nodes.
//! The policy of the page names that script and its style by their hashes and allows nothing else, so that markup that
//! got in all the same would neither run nor load anything.

use data_encoding::BASE64;
use ring::digest::{SHA256, digest};

use super::outline::Outline;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");

/// The parts of the script, each using what stands before it.
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

pub(super) fn render(outline: &Outline) -> String {
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
    // In one pass: a value may look like a place.
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

/// As a policy names what it allows.
fn hash(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    format!("sha256-{}", BASE64.encode(hash.as_ref()))
}

/// JSON that no reader of HTML mistakes for anything else.
fn data(outline: &Outline) -> String {
    let json = serde_json::to_string(outline).unwrap_or_else(|_| "null".to_owned());
    let mut data = String::with_capacity(json.len() + json.len() / 16);
    for letter in json.chars() {
        match letter {
            // These stand in strings only, where an escape means the same.
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
