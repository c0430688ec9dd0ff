//! Markdown parsing: separates code from other text.

/// Returns the files that a text mentions as `@path` outside of code; in order, without duplicates.
pub fn mentions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in prose(text) {
        let mut at = 0;
        while let Some(next) = line[at..].find('@') {
            let begin = at + next;
            at = begin + 1;
            // An address like `a@b.c` is not a mention.
            let stands_free = line[..begin]
                .chars()
                .next_back()
                .is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\''));
            if !stands_free {
                continue;
            }
            let rest = &line[begin + 1..];
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let path = rest[..end].trim_end_matches(|c| ".,;:!?)]}\"'`*".contains(c));
            at = begin + 1 + end;
            if !path.is_empty() && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the parts of each line that are not code.
fn prose(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut fence: Option<FenceLine> = None;
    let mut paragraph: Option<usize> = None;
    let mut at = 0;
    let flush = |paragraph: &mut Option<usize>, end: usize, parts: &mut Vec<_>| {
        if let Some(begin) = paragraph.take() {
            outside_spans(&text[begin..end], parts);
        }
    };
    for line in text.split_inclusive('\n') {
        let mark = FenceLine::parse(line);
        match (&fence, mark) {
            (Some(open), Some(mark)) if mark.closes(open) => fence = None,
            (Some(_), _) => {}
            (None, Some(mark)) => {
                flush(&mut paragraph, at, &mut parts);
                fence = Some(mark);
            }
            (None, None) if line.trim().is_empty() => flush(&mut paragraph, at, &mut parts),
            (None, None) => {
                paragraph.get_or_insert(at);
            }
        }
        at += line.len();
    }
    flush(&mut paragraph, at, &mut parts);
    parts
}

/// Adds the parts of a paragraph outside of `` `spans` ``: a span may contain line breaks, but not
/// end in another paragraph.
fn outside_spans<'a>(text: &'a str, parts: &mut Vec<&'a str>) {
    // All runs of backticks are found once, so that finding the end of a span needs no new search.
    let runs = runs(text);
    let mut from = 0;
    let mut next = 0;
    while next < runs.len() {
        let (begin, length) = runs[next];
        let close = runs[next + 1..]
            .iter()
            .take(MAX_RUNS)
            .position(|(_, other)| *other == length);
        match close {
            Some(offset) => {
                parts.push(&text[from..begin]);
                let (close, length) = runs[next + 1 + offset];
                from = close + length;
                next += offset + 2;
            }
            None => next += 1,
        }
    }
    parts.push(&text[from..]);
}

/// The maximum number of backtick runs that are searched for the end of a span.
const MAX_RUNS: usize = 1000;

fn runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((begin, length)) if *begin + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// A line that opens or closes a code block.
#[derive(Debug, Clone, Copy)]
struct FenceLine {
    mark: u8,
    length: usize,
    /// Text follows the marks, so the line cannot close a block.
    is_named: bool,
}

impl FenceLine {
    fn parse(line: &str) -> Option<Self> {
        let inner = line.trim_start_matches([' ', '\t']);
        let mark = *inner.as_bytes().first()?;
        if mark != b'`' && mark != b'~' {
            return None;
        }
        let length = inner.bytes().take_while(|byte| *byte == mark).count();
        let behind = inner[length..].trim();
        // `` ```a``` `` on one line is a span.
        let is_span = mark == b'`' && behind.contains('`');
        (length >= 3 && !is_span).then_some(Self {
            mark,
            length,
            is_named: !behind.is_empty(),
        })
    }

    fn closes(&self, open: &Self) -> bool {
        self.mark == open.mark && self.length >= open.length && !self.is_named
    }
}

/// Returns the text without HTML comments at the start of a line; those in code stay, and so does
/// an unclosed one.
pub fn without_comments(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut fence: Option<FenceLine> = None;
    // No comment ends after this offset, so many unclosed comments are as cheap as one.
    let last = text.rfind("-->").unwrap_or(0);
    let mut at = 0;
    while at < text.len() {
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        let line = &text[at..end];
        let mark = FenceLine::parse(line);
        match (&fence, mark) {
            (Some(open), Some(mark)) if mark.closes(open) => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (None, None) if at < last && line.trim_start_matches(' ').starts_with("<!--") => {
                let begin = at + line.find("<!--").unwrap_or_default();
                if let Some(close) = text[begin + 4..].find("-->") {
                    at = begin + 4 + close + 3;
                    // A line that contained only the comment is removed with it.
                    let rest = &text[at..];
                    let line_end = rest.find('\n').map_or(rest.len(), |end| end + 1);
                    if rest[..line_end].trim().is_empty() {
                        at += line_end;
                    }
                    continue;
                }
            }
            _ => {}
        }
        output += line;
        at = end;
    }
    output
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mentions_stand_outside_code() {
        for (text, expected) in [
            ("see @a.md and `@b.md`", vec!["a.md"]),
            (
                "@a.md, (@b/c.md). @~/d.md!",
                vec!["a.md", "b/c.md", "~/d.md"],
            ),
            ("mail me@x.org or @ nothing", vec![]),
            ("```\n@a.md\n```\n@b.md", vec!["b.md"]),
            ("~~~~ sh\n@a\n~~~\n@b\n~~~~\n@c", vec!["c"]),
            ("``a ` @b`` @c", vec!["c"]),
            ("`open @a\n\n@b `x`", vec!["a", "b"]),
            ("`open @a\nclosed` @b", vec!["b"]),
            ("```x``` @a", vec!["a"]),
            ("@a @a @b", vec!["a", "b"]),
            ("  ```\n  @a\n  ```\n- @b", vec!["b"]),
            ("```\nnever closed @a", vec![]),
        ] {
            assert_eq!(mentions(text), expected, "{text:?}");
        }
    }

    #[test]
    fn comments_that_begin_a_line_go() {
        for (text, expected) in [
            ("a\n<!-- x -->\nb", "a\nb"),
            ("<!-- x\ny -->\nb", "b"),
            ("a <!-- stays --> b\n", "a <!-- stays --> b\n"),
            ("```\n<!-- stays -->\n```\n", "```\n<!-- stays -->\n```\n"),
            ("<!-- x --> tail\n", " tail\n"),
            ("<!-- never ends\nb", "<!-- never ends\nb"),
            ("<!-- a --><!-- b -->\nc", "c"),
        ] {
            assert_eq!(without_comments(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[`~@<!>a.\n \u{e4}-]{0,120}") {
            let found = mentions(&text);
            prop_assert!(found.iter().all(|path| text.contains(path)));
            prop_assert!(without_comments(&text).len() <= text.len());
        }
    }

    #[test]
    fn long_hostile_texts_take_no_time() {
        let text = "` `` ".repeat(100_000);
        mentions(&text);
        mentions(&"@".repeat(200_000));
        without_comments(&"<!--\n".repeat(50_000));
    }
}
