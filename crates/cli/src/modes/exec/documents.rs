//! JSON texts on stdin: a line each, or indented over several lines.

use super::stdin::{InputLine, LONGEST, Lines};

/// JSON texts, one after the other.
pub(super) struct Documents {
    lines: Lines,
    /// The lines of one that is not at its end.
    begun: Vec<u8>,
    /// A line that begins the next one.
    ahead: Option<Vec<u8>>,
}

impl Documents {
    pub(super) fn new(lines: Lines) -> Self {
        Self {
            lines,
            begun: Vec::new(),
            ahead: None,
        }
    }

    /// The next one; `None` at the end. May be dropped while it waits: nothing is lost.
    pub(super) async fn next(&mut self) -> Option<InputLine> {
        loop {
            let line = match self.ahead.take() {
                Some(line) => line,
                None => match self.lines.next().await {
                    Some(InputLine::Text(line)) => line,
                    other if self.begun.is_empty() => return other,
                    // What is wrong with it is said of what there is.
                    _ => return Some(self.whole()),
                },
            };
            if self.begun.is_empty() {
                if !begins(&line) {
                    return Some(InputLine::Text(line));
                }
                self.begun = line;
                continue;
            }
            // Indented JSON begins no inner line with an opening bracket: another text begins here.
            if line.starts_with(b"{") || line.starts_with(b"[") {
                self.ahead = Some(line);
                return Some(self.whole());
            }
            self.begun.push(b'\n');
            self.begun.extend_from_slice(&line);
            if self.begun.len() > LONGEST {
                let bytes = self.begun.len() as u64;
                self.begun = Vec::new();
                return Some(InputLine::TooLong { bytes });
            }
            if line.starts_with(b"}") || line.starts_with(b"]") {
                return Some(self.whole());
            }
        }
    }

    fn whole(&mut self) -> InputLine {
        InputLine::Text(std::mem::take(&mut self.begun))
    }
}

/// Does a text begin here that goes on in the next line?
fn begins(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let opens = line.starts_with(b"{") || line.starts_with(b"[");
    let goes_on = line.ends_with(b"{") || line.ends_with(b"[") || line.ends_with(b",");
    opens && goes_on
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    async fn read(text: &str) -> Vec<String> {
        let lines = Lines::of(Cursor::new(text.to_owned().into_bytes()));
        let mut documents = Documents::new(lines);
        let mut found = Vec::new();
        while let Some(line) = documents.next().await {
            let InputLine::Text(line) = line else {
                panic!()
            };
            found.push(String::from_utf8(line).unwrap());
        }
        found
    }

    #[tokio::test]
    async fn a_line_each_or_indented() {
        let indented =
            "{\n  \"name\": \"LS\",\n  \"input\": {\n    \"a\": [\n      {}\n    ]\n  }\n}";
        let text = format!("{{\"a\": 1}}\n{indented}\n[\n  1\n]\n{{\"b\": 2}}");
        let found = read(&text).await;
        assert_eq!(found, ["{\"a\": 1}", indented, "[\n  1\n]", "{\"b\": 2}"]);
    }

    #[tokio::test]
    async fn one_that_is_broken_costs_no_other() {
        let found = read("{\"a\":\n{\n  \"b\":\n{\"c\": 3}\n{").await;
        assert_eq!(found, ["{\"a\":", "{\n  \"b\":", "{\"c\": 3}", "{"]);
    }
}
