//! Makes HTML safe for the parser that reads it next.
//!
//! HTML parsers repair broken HTML. For some pages the repair takes hours or creates a tree that is
//! a million elements deep. So a page is first sanitized here: in one pass, with time and memory
//! linear in its length. The result is well nested, at most [`MAX_DEPTH`] levels deep, and has only
//! tags and attributes that matter for the text.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use url::Url;

use super::tags::{RawTag, TagKind, find_end, next_attribute, read_tag};

/// The size of a large page, in bytes. In a large page, searching for the main content would take
/// longer than everything else, so only its `main` and `article` elements define the main content.
const LARGE: usize = 512 << 10;
/// The maximum nesting depth of elements.
const MAX_DEPTH: usize = 160;
/// The maximum number of elements of a page. Of further elements, only the text remains.
const MAX_TAGS: usize = 150_000;
/// The minimum number of bytes between two cut positions.
const BETWEEN_CUTS: usize = 8 << 10;
/// The maximum length of an attribute value, in bytes.
const MAX_VALUE: usize = 2_000;

/// A sanitized page.
pub(super) struct SanitizedHtml {
    pub(super) html: String,
    /// The number of bytes outside of tags.
    pub(super) text_bytes: usize,
    pub(super) title: String,
    /// The range of the largest `main` or `article` element.
    pub(super) main: Option<Range<usize>>,
    /// Whether the page is larger than [`LARGE`].
    pub(super) is_large: bool,
    /// Positions at which a large page can be cut. Converting the parts separately results in the
    /// same text.
    pub(super) cuts: Vec<usize>,
}

const ATTRIBUTES: [&str; 17] = [
    "href", "src", "alt", "title", "class", "id", "lang", "colspan", "rowspan", "start", "content",
    "name", "property", "datetime", "role", "itemprop", "hidden",
];
/// Sanitizes a page. `base`, the address of the page, makes its links absolute.
pub(super) fn sanitize(html: &str, base: Option<&Url>) -> SanitizedHtml {
    sanitize_as(html, base, html.len() > LARGE)
}

pub(super) fn sanitize_as(html: &str, base: Option<&Url>, is_large: bool) -> SanitizedHtml {
    let mut sanitizer = HtmlSanitizer {
        rest: html,
        base,
        out: String::with_capacity(html.len()),
        open: Vec::new(),
        unclosed: HashSet::new(),
        beyond: Vec::new(),
        tags: 0,
        text_bytes: 0,
        title: String::new(),
        main: None,
        is_large,
        cuts: Vec::new(),
        in_others: 0,
    };
    while sanitizer.step() {}
    sanitizer.close_from(0);
    SanitizedHtml {
        html: sanitizer.out,
        main: sanitizer.main,
        is_large: sanitizer.is_large,
        cuts: sanitizer.cuts,
        text_bytes: sanitizer.text_bytes,
        title: sanitizer
            .title
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    }
}

struct HtmlSanitizer<'a> {
    rest: &'a str,
    base: Option<&'a Url>,
    out: String,
    /// The open elements.
    open: Vec<OpenElement<'a>>,
    /// Names of elements that have no end tag in the rest of the page. Avoids searching for it
    /// again.
    unclosed: HashSet<String>,
    /// Names of elements that were too deep to be opened.
    beyond: Vec<Cow<'a, str>>,
    tags: usize,
    text_bytes: usize,
    title: String,
    main: Option<Range<usize>>,
    is_large: bool,
    cuts: Vec<usize>,
    /// The number of open elements that are not containers.
    in_others: usize,
}

struct OpenElement<'a> {
    name: Cow<'a, str>,
    kind: TagKind,
    /// The start of its tag in the output.
    start: usize,
}

impl<'a> HtmlSanitizer<'a> {
    /// Processes the next text and the tag after it; false at the end.
    fn step(&mut self) -> bool {
        let at = memchr::memchr(b'<', self.rest.as_bytes()).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(at);
        self.text_bytes += text.len();
        self.out.push_str(text);
        self.rest = rest;
        let Some(inside) = rest.strip_prefix('<') else {
            return false;
        };
        match inside.as_bytes().first() {
            Some(b'!' | b'?') => self.skip_declaration(inside),
            Some(byte) if byte.is_ascii_alphabetic() || *byte == b'/' => {
                // A tag without an end includes the rest of the page, as in a browser.
                let Some(tag) = read_tag(inside) else {
                    return false;
                };
                self.rest = tag.behind;
                self.take(tag);
            }
            _ => {
                self.out.push_str("&lt;");
                self.rest = inside;
            }
        }
        true
    }

    fn skip_declaration(&mut self, inside: &'a str) {
        let (from, end) = match inside.strip_prefix("!--") {
            Some(comment) => (comment, "-->"),
            None => (inside, ">"),
        };
        self.rest = from.find(end).map_or("", |at| &from[at + end.len()..]);
    }

    fn take(&mut self, tag: RawTag<'a>) {
        let name = &*tag.name;
        let kind = TagKind::for_name(name);
        if name.is_empty() || kind.is_unwrapped {
            return;
        }
        if tag.is_end {
            return self.close(name);
        }
        if kind.is_dropped {
            self.skip_to_end(name);
            return;
        }
        if name == "title" || name == "textarea" {
            let text = self.skip_to_end(name).unwrap_or_default();
            if name == "title" && self.title.is_empty() {
                self.title = text[..text.floor_char_boundary(500)].to_owned();
            }
            return;
        }
        self.tags += 1;
        if self.tags > MAX_TAGS {
            self.out.push('\n');
            return;
        }
        self.close_implied(name, kind);
        if kind.is_void {
            self.write_start(&tag);
            return;
        }
        if self.open.len() >= MAX_DEPTH {
            if self.beyond.len() < MAX_TAGS {
                self.beyond.push(tag.name);
            }
            return;
        }
        let start = self.out.len();
        let last = self.cuts.last().copied().unwrap_or_default();
        if self.is_large
            && self.in_others == 0
            && start - last >= BETWEEN_CUTS
            && kind.ends_paragraph
        {
            self.cuts.push(start);
        }
        self.write_start(&tag);
        self.in_others += usize::from(!kind.is_container);
        self.open.push(OpenElement {
            name: tag.name,
            kind,
            start,
        });
    }

    /// Skips to the end of the element and returns its text. Returns `None` if the element has no
    /// end tag; then only its start tag is removed.
    fn skip_to_end(&mut self, name: &str) -> Option<&'a str> {
        if self.unclosed.contains(name) {
            return None;
        }
        let Some(at) = find_end(self.rest, name) else {
            self.unclosed.insert(name.to_owned());
            return None;
        };
        let (text, behind) = self.rest.split_at(at);
        self.rest = behind.find('>').map_or("", |end| &behind[end + 1..]);
        Some(text)
    }

    /// Handles an end tag, which also closes all elements inside.
    fn close(&mut self, name: &str) {
        if self.beyond.last().is_some_and(|last| last == name) {
            self.beyond.pop();
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.close_from(at);
        }
    }

    fn close_from(&mut self, at: usize) {
        while self.open.len() > at {
            if let Some(OpenElement { name, kind, start }) = self.open.pop() {
                self.write_end(&name);
                self.in_others -= usize::from(!kind.is_container);
                let range = start..self.out.len();
                let is_main = name == "main" || name == "article";
                if is_main
                    && self
                        .main
                        .as_ref()
                        .is_none_or(|main| main.len() < range.len())
                {
                    self.main = Some(range);
                }
            }
        }
        self.beyond.clear();
    }

    /// Closes the elements that this start tag ends.
    fn close_implied(&mut self, name: &str, kind: TagKind) {
        let (ended, within): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "tr" => (&["tr"], &["table"]),
            "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot"], &["table"]),
            "option" => (&["option"], &["select"]),
            "a" => (&["a"], &["td", "th", "li", "div", "body"]),
            _ => (&[], &[]),
        };
        for at in (0..self.open.len()).rev() {
            let open = &*self.open[at].name;
            if ended.contains(&open) {
                self.close_from(at);
                break;
            }
            if within.contains(&open) || ended.is_empty() {
                break;
            }
        }
        if kind.ends_paragraph && self.open.last().is_some_and(|open| open.name == "p") {
            self.close_from(self.open.len() - 1);
        }
    }

    fn write_start(&mut self, tag: &RawTag<'_>) {
        self.out.push('<');
        self.out.push_str(&tag.name);
        let mut rest = tag.attributes;
        let mut kept = 0;
        while let Some((name, value, behind)) = next_attribute(rest) {
            rest = behind;
            let Some(name) = ATTRIBUTES.iter().find(|own| own.eq_ignore_ascii_case(name)) else {
                continue;
            };
            // The class of code contains its language. Otherwise these attributes only help to find
            // the main content, which is not searched in large pages.
            let names_code = *name == "class" && matches!(&*tag.name, "code" | "pre");
            let marks_only = ["class", "id", "role", "itemprop"].contains(name);
            if self.is_large && marks_only && !names_code {
                continue;
            }
            kept += 1;
            if kept > ATTRIBUTES.len() || value.len() > MAX_VALUE {
                continue;
            }
            let value = match *name {
                "href" | "src" => match self.absolute_link(value) {
                    Some(whole) => whole,
                    None => continue,
                },
                _ => Cow::Borrowed(value),
            };
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            match value.contains('"') {
                true => self.out.push_str(&value.replace('"', "&quot;")),
                false => self.out.push_str(&value),
            }
            self.out.push('"');
        }
        self.out.push('>');
    }

    fn write_end(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// Returns a link as an absolute address. Returns `None` for fragments of the page, scripts and
    /// embedded images.
    fn absolute_link<'l>(&self, link: &'l str) -> Option<Cow<'l, str>> {
        let link = link.trim();
        let starts = |with: &str| {
            link.get(..with.len())
                .is_some_and(|it| it.eq_ignore_ascii_case(with))
        };
        if link.is_empty() || link.starts_with('#') || starts("javascript:") || starts("data:") {
            return None;
        }
        if starts("http://") || starts("https://") || starts("mailto:") {
            return Some(Cow::Borrowed(link));
        }
        let Some(base) = self.base else {
            return Some(Cow::Borrowed(link));
        };
        let whole = base.join(&link.replace("&amp;", "&")).ok()?;
        Some(Cow::Owned(whole.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tamed(html: &str) -> String {
        let base = Url::parse("https://a.example/docs/x").unwrap();
        sanitize(html, Some(&base)).html
    }

    #[test]
    fn tags_are_nested_well_and_links_are_whole() {
        let cases = [
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"),
            ("<b><div>x</b>y</div>", "<b><div>x</div></b>y"),
            ("a<script>if (a<b) </script>b", "ab"),
            ("a<SCRIPT>x</Script >b", "ab"),
            ("a<!-- <b> -->b<!doctype html>c", "abc"),
            (
                "<a href='/y?a=1&amp;b'>z</a>",
                "<a href=\"https://a.example/y?a=1&b\">z</a>",
            ),
            ("<a href=#top>z</a>", "<a>z</a>"),
            ("<a href=\"JavaScript:x\" onclick=\"y\">z</a>", "<a>z</a>"),
            (
                "<img src=data:image/png;base64,xx alt=q>",
                "<img alt=\"q\">",
            ),
            ("1 < 2 <3 & 4", "1 &lt; 2 &lt;3 & 4"),
            (
                "<a title='say \"x\"'>z",
                "<a title=\"say &quot;x&quot;\">z</a>",
            ),
            ("x<svg><path d='1'></svg>y", "xy"),
            ("x<svg>y", "xy"),
            ("x<b", "x"),
            ("x</b>y", "xy"),
            (
                "<table><tr><td>1<td>2<tr><td>3</table>",
                "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
            ),
        ];
        for (html, expected) in cases {
            assert_eq!(tamed(html), expected, "{html}");
        }
        assert_eq!(sanitize("<title> A\n b </title>", None).title, "A b");
        let page = sanitize(
            "x<article>1</article><main>long<p>er</main>y<article>2",
            None,
        );
        assert_eq!(&page.html[page.main.unwrap()], "<main>long<p>er</p></main>");
    }

    #[test]
    fn nothing_is_deeper_than_it_may_be() {
        let deep = format!(
            "{}x{}y",
            "<div>".repeat(1_000_000),
            "</div>".repeat(1_000_000)
        );
        let tame = tamed(&deep);
        assert_eq!(tame.matches("<div>").count(), MAX_DEPTH);
        assert_eq!(tame.matches("</div>").count(), MAX_DEPTH);
        assert!(tame.ends_with("y"), "the end is lost");
    }

    #[test]
    fn hostile_pages_take_no_longer_than_others() {
        let began = std::time::Instant::now();
        for piece in [
            "<a ",
            "<svg>",
            "<a '",
            "</",
            "<b id=1>",
            "<!--",
            "<title>",
            "<b><p></b>",
            "<table><b>",
            "<",
            "<x =\"",
        ] {
            let page = piece.repeat(1_000_000 / piece.len());
            let tame = sanitize(&page, None);
            assert!(tame.html.len() <= 6 * page.len(), "{piece}");
        }
        // Each of them would take hours if it were quadratic.
        assert!(began.elapsed().as_secs() < 60);
    }

    proptest::proptest! {
        #[test]
        fn what_comes_out_is_nested_well(html in "(<(/?(p|b|div|li|td|a|script|svg|br|title)( [a-z]+=('|\")?[a-z]*('|\")?)?>)?|[a-z<>&\"' ]{0,5}){0,30}") {
            let out = sanitize(&html, None).html;
            let mut open: Vec<&str> = Vec::new();
            let mut rest = out.as_str();
            while let Some(at) = rest.find('<') {
                let tag = read_tag(&rest[at + 1..]).unwrap();
                let name = &rest[at + 1 + usize::from(tag.is_end)..][..tag.name.len()];
                rest = tag.behind;
                if tag.is_end {
                    proptest::prop_assert_eq!(open.pop(), Some(name));
                } else if !TagKind::for_name(name).is_void {
                    open.push(name);
                }
            }
            proptest::prop_assert!(open.is_empty());
        }
    }
}
