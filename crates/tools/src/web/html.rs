//! Converts HTML to Markdown: the main content if it is found, otherwise the whole page.

use std::{
    num::NonZero,
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use dom_smoothie::{Config, Readability};
use htmd::{
    HtmlToMarkdown,
    options::{BulletListMarker, Options},
};
use url::Url;

use super::html_sanitizer::{SanitizedHtml, sanitize};

/// The minimum length of the main content, in bytes. Shorter main content is ignored.
const MIN_CONTENT: usize = 250;
/// The minimum share of the main content in the text, as a divisor: 4 means a quarter.
const MIN_SHARE: usize = 4;
/// Stack size: trees are processed recursively. [`html_sanitizer`](super::html_sanitizer) limits
/// their depth.
const STACK: usize = 64 << 20;

/// The minimum length of a part of a large page. The tree of a short part fits in the processor's
/// cache, and the next one reuses the same memory: a single tree for everything takes twice as
/// long.
const MIN_PART: usize = 32 << 10;
/// The maximum number of parts that are converted at the same time.
const MAX_THREADS: usize = 4;

/// A page as Markdown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HtmlText {
    pub(super) title: String,
    pub(super) text: String,
    /// Whether `text` has only the main content.
    pub(super) is_main: bool,
}

/// Converts a page. This is slow, so it must not run on an async thread.
pub(super) fn to_markdown(html: &str, url: &str) -> HtmlText {
    let base = Url::parse(url).ok();
    let page = sanitize(html, base.as_ref());
    let converted = match page.is_large {
        true => large(&page, threads()),
        false => run_in_parallel([|| small(&page)]).and_then(|mut one| one.pop()),
    };
    // The page is untrusted and may make the conversion fail; then at least the text is returned.
    let (text, is_main) = converted.unwrap_or_else(|| (tidy(&bare(&page.html)), false));
    HtmlText {
        title: unescaped(&page.title),
        text: text.trim().into(),
        is_main,
    }
}

/// Runs these functions in parallel, each in a thread with a large stack. Returns `None` if one of
/// them failed.
fn run_in_parallel<T: Send, F: FnOnce() -> T + Send>(
    work: impl IntoIterator<Item = F>,
) -> Option<Vec<T>> {
    thread::scope(|scope| {
        let start = |work| {
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, work).ok()
        };
        // Starts all of them before waiting for one.
        let begun: Vec<_> = work.into_iter().map(start).collect();
        let ended: Vec<_> = begun.into_iter().map(|one| one?.join().ok()).collect();
        ended.into_iter().collect()
    })
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn small(page: &SanitizedHtml) -> (String, bool) {
    match main_content(page) {
        Some(content) => (tidy(&markdown(&content)), true),
        None => (tidy(&markdown(&page.html)), false),
    }
}

/// Converts a large page in parts, in several threads.
fn large(page: &SanitizedHtml, threads: usize) -> Option<(String, bool)> {
    let is_enough = |main: &Range<usize>| main.len() >= page.html.len() / MIN_SHARE;
    let main = page.main.clone().filter(is_enough);
    let is_main = main.is_some();
    let parts = parts(page, main.unwrap_or(0..page.html.len()));
    let next = AtomicUsize::new(0);
    let convert = || {
        let mut converted = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(at) else {
                return converted;
            };
            converted.push((at, tidy(&markdown(part))));
        }
    };
    let threads = threads.min(MAX_THREADS).min(parts.len());
    let mut texts = vec![String::new(); parts.len()];
    for (at, text) in run_in_parallel((0..threads).map(|_| convert))?
        .into_iter()
        .flatten()
    {
        texts[at] = text;
    }
    Some((joined(&texts), is_main))
}

/// Splits the shown range of a page at its cut positions.
fn parts(page: &SanitizedHtml, shown: Range<usize>) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = shown.start;
    for cut in page.cuts.iter().copied() {
        if cut >= start + MIN_PART && cut < shown.end {
            parts.push(&page.html[start..cut]);
            start = cut;
        }
    }
    parts.push(&page.html[start..shown.end]);
    parts
}

/// Joins the parts that are not empty. The indentation of the first line of a part remains, because
/// it may be code.
fn joined(parts: &[String]) -> String {
    let edges = parts.iter().map(|part| {
        let part = part.trim_end();
        let blank = part.len() - part.trim_start().len();
        let line = part[..blank].rfind('\n').map_or(0, |at| at + 1);
        &part[line..]
    });
    let some = edges.filter(|part| !part.is_empty());
    some.collect::<Vec<&str>>().join("\n\n")
}

fn main_content(page: &SanitizedHtml) -> Option<String> {
    let config = Config {
        // Classes contain the languages of code.
        keep_classes: true,
        disable_json_ld: true,
        ..Config::default()
    };
    let mut reader = Readability::new(page.html.as_str(), None, Some(config)).ok()?;
    let article = reader.parse().ok()?;
    let length = article.text_content.trim().len();
    let is_enough = length >= MIN_CONTENT && length >= page.text_bytes / MIN_SHARE;
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

/// Returns the text without its tags.
fn bare(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    for piece in html.split('<') {
        // The first piece starts outside of a tag.
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

/// Removes repeated empty lines, and spaces at line ends. The indentation of the first line
/// remains.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim_end().lines() {
        let is_empty = line.trim().is_empty();
        empty = if is_empty { empty + 1 } else { 0 };
        if empty > 1 {
            continue;
        }
        if !is_empty {
            // Two trailing spaces are a line break in Markdown, but the newline already breaks the
            // line.
            tidy.push_str(line.trim_end());
        }
        tidy.push('\n');
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

#[cfg(test)]
mod tests {
    use super::{super::html_sanitizer::sanitize_as, *};

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

    /// Sections with everything that a page has, deep in containers.
    fn long_page() -> String {
        let mut page = String::from("<html><body><div id=x><main><p>Before.");
        for number in 0..2_500 {
            page += &format!(
                "<section><h2>Part {number}</h2>plain text <b>bold</b><p>Words about {number}, \
                 <a href=/{number}>a link</a>.<ul><li>one<li>two<ul><li>deeper</ul></ul>\
                 <div><blockquote><p>quoted {number}</blockquote></div><ol><li>a<p>b</ol>\
                 <pre><code class=language-sh>echo {number}\n\n  x</code></pre>\
                 <table><tr><th>a<th>b<tr><td>{number}<td>2</table></section>\n"
            );
        }
        page + "<p>After.</main></div><footer>end</footer>"
    }

    #[test]
    fn a_large_page_reads_the_same_in_parts() {
        let page = sanitize(&long_page(), None);
        assert!(page.is_large && page.cuts.len() > 20, "{}", page.cuts.len());
        let main = page.main.clone().unwrap();
        let whole = markdown(&page.html[main]);
        for threads in [1, 2, 3, 4, 64] {
            let (parts, is_main) = large(&page, threads).unwrap();
            assert!(is_main);
            assert_eq!(tidy(&parts), tidy(&whole), "{threads}");
        }
        // Without a main content the whole page is shown.
        let bare = long_page()
            .replace("<main>", "<div>")
            .replace("</main>", "</div>");
        let page = sanitize(&bare, None);
        let (converted, is_main) = large(&page, 4).unwrap();
        assert!(!is_main);
        assert_eq!(tidy(&converted), tidy(&markdown(&page.html)));
        // What cannot be cut is converted in one piece.
        let one = sanitize(&format!("<table>{}", "<tr><td>x".repeat(80_000)), None);
        assert!(one.is_large && one.cuts.is_empty());
        assert!(large(&one, 4).unwrap().0.contains("x"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20))]

        /// Wherever a page can be cut, the parts read as the whole.
        #[test]
        fn a_cut_changes_nothing(pieces in proptest::collection::vec(
            "<(div|section|p|ul|li|b|pre|h2|table|td|blockquote|/div|/section|/p|/ul|/b|/pre|/table|/blockquote)>[a-z ]{0,6}", 1..12)) {
            let filler = format!("<p>{}</p>", "word ".repeat(1_700));
            let page = sanitize_as(&pieces.join(&filler), None, true);
            let whole = tidy(&markdown(&page.html));
            for cut in page.cuts.iter().take(6) {
                let (before, behind) = page.html.split_at(*cut);
                let parts = joined(&[markdown(before), markdown(behind)]);
                proptest::prop_assert_eq!(tidy(&parts), &*whole, "{}", cut);
            }
        }
    }

    #[test]
    fn a_part_that_begins_with_code_keeps_its_blanks() {
        let filler = format!("<p>{}</p>", "word ".repeat(1_700));
        let page = sanitize_as(&format!("{filler}<pre>   a\n b</pre>{filler}"), None, true);
        let at = page.html.find("<pre>").unwrap();
        assert!(page.cuts.contains(&at));
        let (before, behind) = page.html.split_at(at);
        let parts = joined(&[markdown(before), markdown(behind)]);
        assert!(parts.contains("   a\n b"), "{parts}");
        assert_eq!(tidy(&parts), tidy(&markdown(&page.html)));
        let odd = ["\n \n  x\n\n".to_owned(), String::new(), "  y ".to_owned()];
        assert_eq!(joined(&odd), "  x\n\n  y");
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
