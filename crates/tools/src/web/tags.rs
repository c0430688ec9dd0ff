//! The tokenizer for HTML tags, and the meaning of tags for the conversion.

use std::borrow::Cow;

/// The maximum length of a tag name in bytes; longer names are cut off.
const MAX_NAME: usize = 40;

/// The meaning of a tag.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TagKind {
    /// Removed with its content.
    pub(super) is_dropped: bool,
    /// Removed, but its content remains.
    pub(super) is_unwrapped: bool,
    /// Has no content and no end tag.
    pub(super) is_void: bool,
    /// Its content reads the same without it.
    pub(super) is_container: bool,
    /// Ends an open paragraph.
    pub(super) ends_paragraph: bool,
}

impl TagKind {
    pub(super) fn for_name(name: &str) -> Self {
        let mut kind = Self::default();
        // As bytes, because a match over strings compares the name with each string in turn.
        match name.as_bytes() {
            b"script" | b"style" | b"svg" | b"iframe" | b"template" | b"noembed" | b"noframes"
            | b"object" | b"canvas" | b"select" | b"datalist" | b"xmp" => kind.is_dropped = true,
            b"noscript" | b"plaintext" | b"math" | b"font" | b"form" | b"frameset" | b"frame"
            | b"base" | b"applet" | b"marquee" | b"nobr" | b"listing" | b"button" => {
                kind.is_unwrapped = true;
            }
            b"area" | b"br" | b"col" | b"embed" | b"img" | b"input" | b"link" | b"meta"
            | b"param" | b"source" | b"track" | b"wbr" => kind.is_void = true,
            b"hr" => {
                kind.is_void = true;
                kind.ends_paragraph = true;
            }
            b"html" | b"body" => kind.is_container = true,
            b"main" | b"article" | b"section" | b"div" => {
                kind.is_container = true;
                kind.ends_paragraph = true;
            }
            b"address" | b"aside" | b"blockquote" | b"details" | b"dl" | b"fieldset"
            | b"figure" | b"footer" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header"
            | b"nav" | b"ol" | b"p" | b"pre" | b"table" | b"ul" => kind.ends_paragraph = true,
            _ => {}
        }
        kind
    }
}

/// A tag in the source text.
pub(super) struct RawTag<'a> {
    /// In lowercase.
    pub(super) name: Cow<'a, str>,
    pub(super) is_end: bool,
    pub(super) attributes: &'a str,
    pub(super) behind: &'a str,
}

/// Reads a tag after its `<`; `None` if it does not end.
pub(super) fn read_tag(inside: &str) -> Option<RawTag<'_>> {
    let (is_end, inside) = match inside.strip_prefix('/') {
        Some(inside) => (true, inside),
        None => (false, inside),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':';
    let end = inside.find(|c| !is_name(c)).unwrap_or(inside.len());
    let name = &inside[..end.min(MAX_NAME)];
    let name = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    let bytes = inside.as_bytes();
    let mut at = end;
    loop {
        match *bytes.get(at)? {
            b'>' => break,
            // A quote starts a value only after a `=`.
            quote @ (b'"' | b'\'') if inside[..at].trim_end().ends_with('=') => {
                let behind = &bytes[at + 1..];
                at += 2 + behind.iter().position(|byte| *byte == quote)?;
            }
            _ => at += 1,
        }
    }
    Some(RawTag {
        name,
        is_end,
        attributes: &inside[end..at],
        behind: &inside[at + 1..],
    })
}

/// Returns the next attribute: its name, its value, and the rest of the text.
pub(super) fn next_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
    if text.is_empty() {
        return None;
    }
    // A `=` at the start is part of the name.
    let skipped = usize::from(text.starts_with('='));
    let end = text[skipped..].find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/');
    let end = end.map_or(text.len(), |at| at + skipped);
    let (name, rest) = text.split_at(end);
    let Some(value) = rest.trim_start().strip_prefix('=') else {
        return Some((name, "", rest));
    };
    let value = value.trim_start();
    let quoted = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quoted {
        let value = &value[1..];
        let end = value.find(quote).unwrap_or(value.len());
        return Some((name, &value[..end], value.get(end + 1..).unwrap_or("")));
    }
    let end = value.find(|c: char| c.is_ascii_whitespace());
    let (value, rest) = value.split_at(end.unwrap_or(value.len()));
    Some((name, value, rest))
}

/// Finds the end tag with this name.
pub(super) fn find_end(text: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at;
        let rest = &text[at + 2..];
        let is_it = rest
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name));
        let behind = rest.as_bytes().get(name.len());
        if is_it && behind.is_none_or(|byte| byte.is_ascii_whitespace() || b"/>".contains(byte)) {
            return Some(at);
        }
        from = at + 2;
    }
    None
}
