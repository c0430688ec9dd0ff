//! Telling thinking from text where a server sends both as text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits a streamed text that may begin with `<think>…</think>`.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    state: State,
    /// What cannot be told yet: it may be the beginning of a tag.
    pending: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Beginning,
    Thinking,
    /// White space between the two, which belongs to neither.
    Gap,
    Text,
}

/// A piece of either.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Thinking(String),
    Text(String),
}

impl Splitter {
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.pending.push_str(text);
        if self.state == State::Beginning {
            let said = self.pending.trim_start();
            if let Some(rest) = said.strip_prefix(OPEN) {
                self.pending = rest.to_owned();
                self.state = State::Thinking;
            } else if OPEN.starts_with(said) {
                return pieces;
            } else {
                self.state = State::Text;
            }
        }
        if self.state == State::Thinking {
            if let Some((thought, rest)) = self.pending.split_once(CLOSE) {
                add(&mut pieces, Piece::Thinking(thought.to_owned()));
                self.pending = rest.to_owned();
                self.state = State::Gap;
            } else {
                let kept = tail_that_may_be(CLOSE, &self.pending);
                let rest = self.pending.split_off(self.pending.len() - kept);
                let thought = std::mem::replace(&mut self.pending, rest);
                add(&mut pieces, Piece::Thinking(thought));
            }
        }
        if self.state == State::Gap {
            self.pending = self.pending.trim_start().to_owned();
            if !self.pending.is_empty() {
                self.state = State::Text;
            }
        }
        if self.state == State::Text {
            let text = std::mem::take(&mut self.pending);
            add(&mut pieces, Piece::Text(text));
        }
        pieces
    }

    /// The text is over.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let rest = std::mem::take(&mut self.pending);
        let mut pieces = Vec::new();
        let piece = match self.state {
            State::Thinking => Piece::Thinking(rest),
            State::Beginning | State::Gap | State::Text => Piece::Text(rest),
        };
        add(&mut pieces, piece);
        pieces
    }
}

fn add(pieces: &mut Vec<Piece>, piece: Piece) {
    let (Piece::Thinking(text) | Piece::Text(text)) = &piece;
    if !text.is_empty() {
        pieces.push(piece);
    }
}

/// How many bytes at the end may be the beginning of the tag.
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
        let mut splitter = Splitter::default();
        let mut pieces: Vec<Piece> = chunks
            .iter()
            .flat_map(|chunk| splitter.push(chunk))
            .collect();
        pieces.extend(splitter.finish());
        let (mut thinking, mut text) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Thinking(piece) => thinking += &piece,
                Piece::Text(piece) => text += &piece,
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
