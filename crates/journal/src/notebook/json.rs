//! A JSON parser that returns only the byte span of each value.
//!
//! [`parse`] checks the whole text once. After that a [`JsonNode`] can be walked without errors and
//! without building a tree, so a large notebook needs little more memory than its text. Like other
//! notebook readers, the parser accepts `NaN` and `Infinity` as numbers.

use std::fmt;

use memchr::memchr2;

/// The maximum nesting depth. No notebook needs more, and the parser is recursive.
const MAX_DEPTH: usize = 256;

/// A syntax error and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The description of the error.
    pub what: &'static str,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

/// A value in a checked text.
#[derive(Clone, Copy)]
pub(super) struct JsonNode<'a> {
    text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A `"key": value` pair of an object.
#[derive(Clone, Copy)]
pub(super) struct ObjectMember<'a> {
    pub(super) key: JsonNode<'a>,
    pub(super) value: JsonNode<'a>,
}

/// Checks the whole text. Spans are offsets into `text`.
pub(super) fn parse(text: &str) -> Result<JsonNode<'_>, JsonFault> {
    let mut checker = JsonChecker {
        bytes: text.as_bytes(),
        at: 0,
    };
    let found = checker.document();
    found
        .map(|(start, end)| JsonNode { text, start, end })
        .map_err(|what| fault(text.as_bytes(), checker.at, what))
}

/// Converts an offset to line and column; the text need not be UTF-8.
pub(super) fn fault(bytes: &[u8], at: usize, what: &'static str) -> JsonFault {
    let before = &bytes[..at.min(bytes.len())];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |last| last + 1);
    JsonFault {
        line: memchr::memchr_iter(b'\n', before).count() + 1,
        column: String::from_utf8_lossy(&before[line_start..])
            .chars()
            .count()
            + 1,
        what,
    }
}

impl<'a> JsonNode<'a> {
    pub(super) fn raw(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    pub(super) fn is_object(&self) -> bool {
        self.raw().starts_with('{')
    }

    pub(super) fn is_array(&self) -> bool {
        self.raw().starts_with('[')
    }

    pub(super) fn is_string(&self) -> bool {
        self.raw().starts_with('"')
    }

    /// Returns the elements of an array; empty for other values.
    pub(super) fn elements(&self) -> Vec<JsonNode<'a>> {
        if self.is_array() {
            self.items()
        } else {
            Vec::new()
        }
    }

    /// Returns the members of an object; empty for other values.
    pub(super) fn members(&self) -> Vec<ObjectMember<'a>> {
        if !self.is_object() {
            return Vec::new();
        }
        let items = self.items();
        let (pairs, _) = items.as_chunks();
        let member = |&[key, value]: &[JsonNode<'a>; 2]| ObjectMember { key, value };
        pairs.iter().map(member).collect()
    }

    /// Returns the value of a key. Of duplicate keys the last one is used, as in other JSON readers.
    pub(super) fn get(&self, key: &str) -> Option<JsonNode<'a>> {
        let found = self.members().into_iter().rfind(|member| member.is(key));
        found.map(|member| member.value)
    }

    /// Returns the decoded string. An unpaired surrogate becomes U+FFFD.
    pub(super) fn text(&self) -> Option<String> {
        self.is_string().then(|| unescape(self.raw()))
    }

    /// Like [`Self::text`], but also accepts a list of strings, the other form of text in
    /// notebooks.
    pub(super) fn joined(&self) -> Option<String> {
        if self.is_array() {
            self.elements().iter().map(JsonNode::text).collect()
        } else {
            self.text()
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        self.raw().parse().ok()
    }

    fn node_at(&self, start: usize) -> JsonNode<'a> {
        JsonNode {
            text: self.text,
            start,
            end: skip(self.text.as_bytes(), start),
        }
    }

    /// Returns the values between the brackets: elements, or keys and values alternately.
    fn items(&self) -> Vec<JsonNode<'a>> {
        let bytes = self.text.as_bytes();
        let mut items = Vec::new();
        let mut at = self.start + 1;
        while at < self.end - 1 {
            match bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => at += 1,
                _ => {
                    let item = self.node_at(at);
                    at = item.end;
                    items.push(item);
                }
            }
        }
        items
    }
}

impl ObjectMember<'_> {
    pub(super) fn is(&self, key: &str) -> bool {
        let raw = self.key.raw();
        &raw[1..raw.len() - 1] == key || raw.contains('\\') && unescape(raw) == key
    }
}

/// Returns the end of the value that begins at `start` of a checked text.
fn skip(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => {
                at += 1;
                continue; // occurs only between brackets
            }
            _ => {
                let ends = |byte: &u8| b" \t\n\r,:]}".contains(byte);
                let length = bytes[at..].iter().position(ends);
                at = length.map_or(bytes.len(), |length| at + length);
            }
        }
        if depth == 0 {
            return at;
        }
    }
}

/// Returns the end of a checked string, after its closing quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn unescape(quoted: &str) -> String {
    let inner = &quoted[1..quoted.len() - 1];
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(found) = rest.find('\\') {
        text.push_str(&rest[..found]);
        rest = &rest[found + 1..];
        let (character, used) = match rest.as_bytes()[0] {
            b'b' => ('\u{8}', 1),
            b'f' => ('\u{c}', 1),
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b't' => ('\t', 1),
            b'u' => unicode(rest),
            other => (char::from(other), 1),
        };
        text.push(character);
        rest = &rest[used..];
    }
    text.push_str(rest);
    text
}

/// Decodes `uXXXX`, or a surrogate pair of them; returns the character and its length in bytes.
fn unicode(rest: &str) -> (char, usize) {
    let unit = |from: usize| {
        let digits = rest.get(from..from + 4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(1).unwrap_or(0xfffd);
    if let Some(character) = char::from_u32(u32::from(first)) {
        return (character, 5);
    }
    let second = rest.get(5..7).filter(|next| *next == "\\u");
    if let Some(second) = second.and_then(|_| unit(7))
        && let Some(Ok(character)) = char::decode_utf16([first, second]).next()
    {
        return (character, 11);
    }
    (char::REPLACEMENT_CHARACTER, 5)
}

struct JsonChecker<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl JsonChecker<'_> {
    fn document(&mut self) -> Result<(usize, usize), &'static str> {
        self.blanks();
        let start = self.at;
        self.value(0)?;
        let end = self.at;
        self.blanks();
        match self.peek() {
            None => Ok((start, end)),
            Some(_) => Err("more text after the end of the document"),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("nested too deeply");
        }
        match self.peek() {
            None => Err("the text ends where a value should be"),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                let words: [&[u8]; 5] = [b"null", b"true", b"false", b"NaN", b"Infinity"];
                let word = words
                    .into_iter()
                    .find(|word| self.bytes[self.at..].starts_with(word));
                self.at += word.ok_or("a value was expected here")?.len();
                Ok(())
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), &'static str> {
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err("a key in double quotes was expected here");
            }
            self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err("`:` was expected here");
            }
            self.at += 1;
            self.blanks();
            self.value(depth + 1)?;
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                None => return Err("the text ends inside an object"),
                Some(_) => return Err("`,` or `}` was expected here"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), &'static str> {
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blanks();
            self.value(depth + 1)?;
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                None => return Err("the text ends inside an array"),
                Some(_) => return Err("`,` or `]` was expected here"),
            }
        }
    }

    fn string(&mut self) -> Result<(), &'static str> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err("the text ends inside a string"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    let digits = match self.bytes.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
                        Some(b'u') => 4,
                        _ => return Err("no such escape in a string"),
                    };
                    let hex = self.bytes.get(self.at + 2..self.at + 2 + digits);
                    if !hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                        return Err("`\\u` needs four hexadecimal digits");
                    }
                    self.at += 2 + digits;
                }
                Some(0..0x20) => return Err("a control character in a string: escape it"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn number(&mut self) -> Result<(), &'static str> {
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.bytes[self.at..].starts_with(b"Infinity") {
            self.at += 8;
            return Ok(());
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), &'static str> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from {
            return Err("a digit was expected here");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_with_line_and_column() {
        let deep = "[".repeat(1000);
        let cases = [
            ("", "1:1: the text ends where a value should be"),
            ("{\"a\": 1,\n \"é\" 2}", "2:6: `:` was expected here"),
            (
                "{\"a\": 1,}",
                "1:9: a key in double quotes was expected here",
            ),
            ("[1 2]", "1:4: `,` or `]` was expected here"),
            ("[01]", "1:3: `,` or `]` was expected here"),
            ("[-]", "1:3: a digit was expected here"),
            ("[1.]", "1:4: a digit was expected here"),
            (
                "[\"a\n\"]",
                "1:4: a control character in a string: escape it",
            ),
            ("[\"\\x\"]", "1:3: no such escape in a string"),
            ("[\"\\u12\"]", "1:3: `\\u` needs four hexadecimal digits"),
            (
                "{\"a\": [1, {",
                "1:12: a key in double quotes was expected here",
            ),
            ("[1", "1:3: the text ends inside an array"),
            ("{} x", "1:4: more text after the end of the document"),
            ("<<<<<<<", "1:1: a value was expected here"),
            (deep.as_str(), "1:258: nested too deeply"),
        ];
        for (text, expected) in cases {
            let fault = parse(text).err().expect(text);
            assert_eq!(fault.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn values_are_found_where_they_are() {
        let text = r#" {"a" : [1.0, {"]": "}\\"}, NaN , -Infinity,"x"], "\u0062":"\ud83d\ude00\ud83d|\n", "a": [] } "#;
        let root = parse(text).unwrap();
        let members = root.members();
        let raw: Vec<_> = members[0]
            .value
            .elements()
            .iter()
            .map(JsonNode::raw)
            .collect();
        assert_eq!(raw, ["1.0", r#"{"]": "}\\"}"#, "NaN", "-Infinity", "\"x\""]);
        assert_eq!(root.get("b").unwrap().text().unwrap(), "😀\u{fffd}|\n");
        assert_eq!(root.get("a").unwrap().raw(), "[]", "the last of two");
        assert!(root.get("c").is_none());
        assert_eq!(parse("3").unwrap().number(), Some(3));
        assert_eq!(parse("[\"a\", \"b\"]").unwrap().joined().unwrap(), "ab");
        assert!(parse("[\"a\", 1]").unwrap().joined().is_none());
    }
}
