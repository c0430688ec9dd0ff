//! From HTML to Markdown: the main content where there is one, else the whole page.

use std::thread;

use dom_smoothie::{Config, Readability};
use htmd::{
    HtmlToMarkdown,
    options::{BulletListMarker, Options},
};
use url::Url;

use super::tame::{TamePage, tame};

/// In larger pages the main content is not searched for, which would take longer than all the rest: it is where the
/// page says it is.
const SEARCHED: usize = 512 << 10;
/// A main content shorter than this is none…
const LEAST_CONTENT: usize = 250;
/// …and so is one that leaves out more than this part of the text.
const LEAST_SHARE: usize = 4;
/// Trees are walked by functions that call themselves; how deep, `tame` bounds.
const STACK: usize = 64 << 20;

/// A page as Markdown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HtmlText {
    pub(super) title: String,
    pub(super) text: String,
    /// Only the main content.
    pub(super) is_main: bool,
}

/// Converts a page. Takes its time: not for a thread that others wait for.
pub(super) fn to_markdown(html: &str, url: &str) -> HtmlText {
    let base = Url::parse(url).ok();
    let page = tame(html, base.as_ref());
    let converted = thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK);
        let converting = builder.spawn_scoped(scope, || convert(&page));
        converting.ok()?.join().ok()
    });
    // It comes from elsewhere, and must not fail for it: then there is at least the text.
    let (text, is_main) = converted.unwrap_or_else(|| (bare(&page.html), false));
    HtmlText {
        title: unescaped(&page.title),
        text: tidy(&text),
        is_main,
    }
}

fn convert(page: &TamePage) -> (String, bool) {
    match main_content(page) {
        Some(content) => (markdown(&content), true),
        None => (markdown(&page.html), false),
    }
}

fn main_content(page: &TamePage) -> Option<String> {
    if page.html.len() > SEARCHED {
        let main = page.html.get(page.main.clone()?)?;
        return (main.len() >= page.html.len() / LEAST_SHARE).then(|| main.to_owned());
    }
    let config = Config {
        // They name the languages of code.
        keep_classes: true,
        disable_json_ld: true,
        ..Config::default()
    };
    let mut reader = Readability::new(page.html.as_str(), None, Some(config)).ok()?;
    let article = reader.parse().ok()?;
    let length = article.text_content.trim().len();
    let is_enough = length >= LEAST_CONTENT && length >= page.text_bytes / LEAST_SHARE;
    is_enough.then(|| article.content.to_string())
}

fn markdown(html: &str) -> String {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .skip_tags(vec!["head", "nav", "footer", "input", "meta", "link"])
        .build();
    let converted = converter.convert(html);
    converted
        .unwrap_or_else(|_| bare(html))
        .replace("&#124;", "\\|")
}

/// The text without its tags.
fn bare(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    for piece in html.split('<') {
        // The first piece begins outside of a tag.
        let outside = piece.split_once('>').map_or(piece, |(_, outside)| outside);
        text.push_str(outside);
    }
    unescaped(&text)
}

fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (written, meant) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        text = text.replace(written, meant);
    }
    text
}

/// At most one empty line in a row, none with blanks only.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines() {
        let is_empty = line.trim().is_empty();
        empty = if is_empty { empty + 1 } else { 0 };
        if empty > 1 {
            continue;
        }
        if !is_empty {
            // Two blanks at the end are a line break in Markdown, which the line end is already.
            tidy.push_str(line.trim_end());
        }
        tidy.push('\n');
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = r##"<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>
<nav><a href="/">Home</a><a href="/all">All</a></nav>
<main><article><h1>The guide</h1>
<p>This is a long enough paragraph about something, with commas, and with a <a href="../more?x=1">link</a>, so that it
counts as content. It goes on for a while, and for another while, until there is enough of it to be read.</p>
<pre><code class="language-rust">fn main() {
    println!("a &lt; b");
}</code></pre>
<ul><li>one<li>two<ul><li>deeper</ul></ul>
<table><tr><th>Name<th>Value<tr><td>a|b<td>1</table>
<p>And one more paragraph, which is about as long as the first one was, with commas, too, and with words that
do not mean anything at all but are there all the same, because a page has words.</p></article></main>
<footer>Copyright, nobody reads this</footer><script>alert("x")</script></body></html>"##;

    #[test]
    fn a_page_becomes_markdown_with_its_main_content() {
        let page = to_markdown(DOCS, "https://a.example/docs/guide/");
        assert_eq!(page.title, "A & B");
        insta::assert_snapshot!(page.text);
    }

    #[test]
    fn a_page_without_main_content_is_shown_whole() {
        let page = to_markdown(
            "<h1>Index</h1><ul><li><a href=a.html>A</a><li><a href=b.html>B</a></ul>",
            "https://a.example/x/",
        );
        assert!(!page.is_main);
        insta::assert_snapshot!(page.text, @"
        # Index

        - [A](https://a.example/x/a.html)
        - [B](https://a.example/x/b.html)
        ");
    }

    #[test]
    fn hostile_pages_are_converted_all_the_same() {
        let pages = [
            format!("{}x", "<div>".repeat(1_000_000)),
            format!("{}x", "<ul><li>".repeat(100_000)),
            format!("{}x", "<blockquote>".repeat(100_000)),
            format!("{}x", "<table><tr><td>".repeat(50_000)),
            "<b><p></b>".repeat(30_000),
            "<a href=x>y".repeat(50_000),
            (0..50_000)
                .map(|n| format!("<b id={n}>"))
                .collect::<String>()
                + "x",
            "<p>".repeat(200_000) + "x",
            "&amp;".repeat(200_000),
            "<pre>".repeat(10_000) + &"`".repeat(10_000),
            "<h1>x".repeat(50_000),
            "<select><option>".repeat(50_000) + "x",
        ];
        for page in pages {
            let start: String = page.chars().take(20).collect();
            let began = std::time::Instant::now();
            let _ = to_markdown(&page, "https://a.example/");
            assert!(
                began.elapsed().as_secs() < 60,
                "{start} took {:?}",
                began.elapsed()
            );
        }
    }
}
