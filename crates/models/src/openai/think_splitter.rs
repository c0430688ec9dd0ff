//! Separates thinking from text if a server sends both as text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits a streamed text that may begin with `<think>…</think>`.
#[derive(Debug, Default)]
pub(super) struct ThinkSplitter {
    state: ThinkState,
    /// Text that cannot be assigned yet because it may be the beginning of a tag.
    pending: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum ThinkState {
    #[default]
    Beginning,
    Thinking,
    /// White space between thinking and text. It is dropped.
    Gap,
    Text,
}

/// A piece of thinking or of text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ThinkPiece {
    Thinking(String),
    Text(String),
}

impl ThinkSplitter {
    pub(super) fn push(&mut self, text: &str) -> Vec<ThinkPiece> {
        let mut pieces = Vec::new();
        self.pending.push_str(text);
        if self.state == ThinkState::Beginning {
            let said = self.pending.trim_start();
            if let Some(rest) = said.strip_prefix(OPEN) {
                self.pending = rest.to_owned();
                self.state = ThinkState::Thinking;
            } else if OPEN.starts_with(said) {
                return pieces;
            } else {
                self.state = ThinkState::Text;
            }
        }
        if self.state == ThinkState::Thinking {
            if let Some((thought, rest)) = self.pending.split_once(CLOSE) {
                add(&mut pieces, ThinkPiece::Thinking(thought.to_owned()));
                self.pending = rest.to_owned();
                self.state = ThinkState::Gap;
            } else {
                let kept = tail_that_may_be(CLOSE, &self.pending);
                let rest = self.pending.split_off(self.pending.len() - kept);
                let thought = std::mem::replace(&mut self.pending, rest);
                add(&mut pieces, ThinkPiece::Thinking(thought));
            }
        }
        if self.state == ThinkState::Gap {
            self.pending = self.pending.trim_start().to_owned();
            if !self.pending.is_empty() {
                self.state = ThinkState::Text;
            }
        }
        if self.state == ThinkState::Text {
            let text = std::mem::take(&mut self.pending);
            add(&mut pieces, ThinkPiece::Text(text));
        }
        pieces
    }

    /// Ends the text and returns the pending pieces.
    pub(super) fn finish(&mut self) -> Vec<ThinkPiece> {
        let rest = std::mem::take(&mut self.pending);
        let mut pieces = Vec::new();
        let piece = match self.state {
            ThinkState::Thinking => ThinkPiece::Thinking(rest),
            ThinkState::Beginning | ThinkState::Gap | ThinkState::Text => ThinkPiece::Text(rest),
        };
        add(&mut pieces, piece);
        pieces
    }
}

fn add(pieces: &mut Vec<ThinkPiece>, piece: ThinkPiece) {
    let (ThinkPiece::Thinking(text) | ThinkPiece::Text(text)) = &piece;
    if !text.is_empty() {
        pieces.push(piece);
    }
}

/// Returns the number of bytes at the end of the text that may be the beginning of the tag.
fn tail_that_may_be(tag: &str, text: &str) -> usize {
    let longest = (1..tag.len()).rev();
    longest
        .into_iter()
        .find(|length| text.ends_with(&tag[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let mut pieces: Vec<ThinkPiece> = chunks
            .iter()
            .flat_map(|chunk| splitter.push(chunk))
            .collect();
        pieces.extend(splitter.finish());
        let (mut thinking, mut text) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                ThinkPiece::Thinking(piece) => thinking += &piece,
                ThinkPiece::Text(piece) => text += &piece,
            }
        }
        (thinking, text)
    }

    #[test]
    fn thinking_is_told_from_text_however_it_is_cut() {
        let cases = [
            ("<think>hm</think>\n\nhello", "hm", "hello"),
            ("\n<think>a </thi b</think>c", "a </thi b", "c"),
            ("hello <think>no</think>", "", "hello <think>no</think>"),
            ("<thin air", "", "<thin air"),
            ("<think>never ends", "never ends", ""),
            ("", "", ""),
            ("<", "", "<"),
        ];
        for (text, thinking, said) in cases {
            let expected = (thinking.to_owned(), said.to_owned());
            assert_eq!(split(&[text]), expected, "{text}");
            let single: Vec<String> = text.chars().map(String::from).collect();
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            assert_eq!(split(&single), expected, "{text}, a character at a time");
        }
    }
}
