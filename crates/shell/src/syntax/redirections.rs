//! Redirections.

use super::commands::plain_text;
use super::cursor::in_name;
use super::words::ExpansionStyle;
use super::{ParseResult, Parser};
use crate::ast::{PartKind, Redirect, RedirectOperator, ShellWord};

impl Parser<'_> {
    /// Parses all redirections after a compound command.
    pub(super) fn redirections(&mut self, redirects: &mut Vec<Redirect>) -> ParseResult<()> {
        loop {
            let before = self.at;
            self.blanks();
            match self.redirection()? {
                Some(redirect) => redirects.push(redirect),
                None => {
                    self.at = before;
                    return Ok(());
                }
            }
        }
    }

    /// Parses the redirection at the cursor, if any.
    pub(super) fn redirection(&mut self) -> ParseResult<Option<Redirect>> {
        self.peek();
        let start = self.at;
        let descriptor = self.descriptor()?;
        let operator = match (self.peek(), self.second()) {
            (Some(b'<' | b'>'), Some(b'(')) => None,
            (Some(b'&'), Some(b'>')) if descriptor.is_none() => {
                self.at += 1;
                self.peek();
                self.at += 1;
                Some(match self.eat(b'>') {
                    true => RedirectOperator::AppendBoth,
                    false => RedirectOperator::WriteBoth,
                })
            }
            (Some(b'<'), _) => Some(self.input_operator()),
            (Some(b'>'), _) => Some(self.output_operator()),
            _ => None,
        };
        let Some(operator) = operator else {
            self.at = start;
            return Ok(None);
        };
        let redirect = match operator {
            RedirectOperator::HereDocument => self.here_document(start, descriptor)?,
            _ => {
                self.blanks();
                let target = self.target(operator)?;
                let operator = match operator {
                    RedirectOperator::DuplicateOut if !names_descriptor(&target) => {
                        RedirectOperator::WriteBoth
                    }
                    other => other,
                };
                Redirect {
                    span: self.span(start, self.at),
                    descriptor,
                    operator,
                    target,
                    body: None,
                }
            }
        };
        Ok(Some(redirect))
    }

    /// Parses `2` or `{name}` before an operator.
    fn descriptor(&mut self) -> ParseResult<Option<String>> {
        let start = self.at;
        let written = match self.peek() {
            Some(b'0'..=b'9') => self.digits(),
            Some(b'{') => {
                self.at += 1;
                let name = self.name();
                match !name.is_empty() && self.eat(b'}') {
                    true => format!("{{{name}}}"),
                    false => String::new(),
                }
            }
            _ => return Ok(None),
        };
        let follows = matches!(self.peek(), Some(b'<' | b'>')) && self.second() != Some(b'(');
        if written.is_empty() || !follows {
            self.at = start;
            return Ok(None);
        }
        if !written.starts_with('{') && written.len() > 9 {
            return Err(self.error(start, self.at, "a descriptor that is too large"));
        }
        Ok(Some(written))
    }

    fn input_operator(&mut self) -> RedirectOperator {
        self.at += 1;
        match self.peek() {
            Some(b'<') => {
                self.at += 1;
                match self.eat(b'<') {
                    true => RedirectOperator::HereString,
                    false => RedirectOperator::HereDocument,
                }
            }
            Some(b'&') => {
                self.at += 1;
                RedirectOperator::DuplicateIn
            }
            Some(b'>') => {
                self.at += 1;
                RedirectOperator::ReadWrite
            }
            _ => RedirectOperator::Read,
        }
    }

    fn output_operator(&mut self) -> RedirectOperator {
        self.at += 1;
        let operator = match self.peek() {
            Some(b'>') => RedirectOperator::Append,
            Some(b'&') => RedirectOperator::DuplicateOut,
            Some(b'|') => RedirectOperator::Clobber,
            _ => return RedirectOperator::Write,
        };
        self.at += 1;
        operator
    }

    fn target(&mut self, operator: RedirectOperator) -> ParseResult<ShellWord> {
        let style = match operator {
            RedirectOperator::HereString => ExpansionStyle::SINGLE,
            _ => ExpansionStyle::ARGUMENT,
        };
        let duplicates = matches!(
            operator,
            RedirectOperator::DuplicateIn | RedirectOperator::DuplicateOut
        );
        let closes = duplicates && self.peek() == Some(b'-');
        let start = self.at;
        let word = self.word(style)?;
        // Bash ends the target at this character, regardless of the text after it.
        if closes && plain_text(&word) != Some("-") {
            return Err(self.error(start, self.at, "text directly after `&-`"));
        }
        self.refuse_strange_descriptor(&word)?;
        Ok(word)
    }

    /// Rejects `{a[1]}>`: bash may read this word as a descriptor.
    pub(super) fn refuse_strange_descriptor(&mut self, word: &ShellWord) -> ParseResult<()> {
        if !matches!(self.peek(), Some(b'<' | b'>')) {
            return Ok(());
        }
        let first = word.parts.first().filter(|part| !part.quoted);
        let strange = match first.map(|part| &part.kind) {
            Some(PartKind::Text(text)) => {
                let name = text
                    .strip_prefix('{')
                    .map(|rest| rest.trim_end_matches('}'));
                let variable = |name: &str| {
                    word.parts.len() > 1
                        || (name.bytes().all(in_name) && !name.starts_with(char::is_numeric))
                };
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                name.is_some_and(variable) || text.contains('[') || digits
            }
            Some(PartKind::Brace(None)) => true,
            _ => false,
        };
        match strange {
            true => Err(self.unexpected("a word that may be a descriptor")),
            false => Ok(()),
        }
    }
}

/// Returns whether the target is `2`, `2-` or `-`. Any other text may be a file.
fn names_descriptor(target: &ShellWord) -> bool {
    let Some(text) = plain_text(target) else {
        return false;
    };
    let digits = text.strip_suffix('-').unwrap_or(text);
    !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
