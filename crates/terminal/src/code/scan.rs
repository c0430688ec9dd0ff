//! Splits a line of code into tokens, using a language's table.

use std::ops::Range;

use super::{CodeToken, LexState, languages::LanguageSyntax};

pub(super) fn line(
    language: &LanguageSyntax,
    state: LexState,
    text: &str,
) -> (Vec<(Range<usize>, CodeToken)>, LexState) {
    let mut scanner = CodeScanner {
        language,
        text,
        position: 0,
        tokens: Vec::new(),
    };
    if language.is_diff {
        scanner.diff();
        return (scanner.tokens, LexState::Code);
    }
    let mut state = state;
    while scanner.position < text.len() {
        state = match state {
            LexState::Code => scanner.code(),
            LexState::Comment(rule, depth) => scanner.comment(rule, depth),
            LexState::Text(rule) => scanner.string(rule),
        };
    }
    // A single-line string ends with its line, whether it was closed or not.
    if let LexState::Text(rule) = state
        && !language.strings[rule].is_multiline
    {
        state = LexState::Code;
    }
    (scanner.tokens, state)
}

struct CodeScanner<'a> {
    language: &'a LanguageSyntax,
    text: &'a str,
    position: usize,
    tokens: Vec<(Range<usize>, CodeToken)>,
}

impl CodeScanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.position..]
    }

    fn push(&mut self, length: usize, token: CodeToken) {
        let end = self.position + length;
        match self.tokens.last_mut() {
            Some((range, last)) if *last == token => range.end = end,
            _ => self.tokens.push((self.position..end, token)),
        }
        self.position = end;
    }

    fn diff(&mut self) {
        let token = match self.text.as_bytes().first() {
            Some(b'+') => CodeToken::Added,
            Some(b'-') => CodeToken::Removed,
            Some(b'@') => CodeToken::Type,
            _ => CodeToken::Plain,
        };
        if !self.text.is_empty() {
            self.push(self.text.len(), token);
        }
    }

    /// Scans one token of code. Afterwards the scanner may be inside a comment or a string.
    fn code(&mut self) -> LexState {
        let language = self.language;
        let rest = &self.text[self.position..];
        // In languages where a comment marker may also occur within words (`#`), it starts a
        // comment only after whitespace.
        let behind_blank =
            self.text[..self.position].ends_with(|c: char| c.is_whitespace()) || self.position == 0;
        let may_begin = behind_blank || !language.comment_needs_blank;
        if may_begin
            && language
                .line_comments
                .iter()
                .any(|mark| rest.starts_with(mark))
        {
            self.push(rest.len(), CodeToken::Comment);
            return LexState::Code;
        }
        let comment = language
            .block_comments
            .iter()
            .position(|(open, _)| rest.starts_with(open));
        if let Some(rule) = comment {
            self.push(language.block_comments[rule].0.len(), CodeToken::Comment);
            return LexState::Comment(rule, 1);
        }
        if language.has_lifetimes && rest.starts_with('\'') {
            let length = character_literal(rest);
            self.push(
                length.unwrap_or(1),
                match length {
                    Some(_) => CodeToken::String,
                    None => CodeToken::Plain,
                },
            );
            return LexState::Code;
        }
        let string = language
            .strings
            .iter()
            .position(|rule| rest.starts_with(rule.open));
        if let Some(rule) = string {
            self.push(language.strings[rule].open.len(), CodeToken::String);
            return LexState::Text(rule);
        }
        self.word();
        LexState::Code
    }

    fn comment(&mut self, rule: usize, depth: u32) -> LexState {
        let (open, close) = self.language.block_comments[rule];
        let rest = self.rest();
        let closes = rest.find(close);
        let opens = rest.find(open).filter(|_| self.language.comments_nest);
        match (opens, closes) {
            (Some(opens), Some(closes)) if opens < closes => {
                self.push(opens + open.len(), CodeToken::Comment);
                LexState::Comment(rule, depth + 1)
            }
            (_, Some(closes)) => {
                self.push(closes + close.len(), CodeToken::Comment);
                match depth {
                    0 | 1 => LexState::Code,
                    _ => LexState::Comment(rule, depth - 1),
                }
            }
            (Some(opens), None) => {
                self.push(opens + open.len(), CodeToken::Comment);
                LexState::Comment(rule, depth + 1)
            }
            (None, None) => {
                self.push(self.rest().len(), CodeToken::Comment);
                LexState::Comment(rule, depth)
            }
        }
    }

    fn string(&mut self, rule: usize) -> LexState {
        let rule_of = &self.language.strings[rule];
        let rest = self.rest();
        let mut characters = rest.char_indices();
        while let Some((at, character)) = characters.next() {
            if rule_of.has_escapes && character == '\\' {
                characters.next();
                continue;
            }
            if rest[at..].starts_with(rule_of.close) {
                self.push(at + rule_of.close.len(), CodeToken::String);
                return LexState::Code;
            }
        }
        self.push(rest.len(), CodeToken::String);
        LexState::Text(rule)
    }

    /// Scans a name, a number, or a single character.
    fn word(&mut self) {
        let language = self.language;
        let rest = &self.text[self.position..];
        let Some(first) = rest.chars().next() else {
            return;
        };
        if first.is_ascii_digit() {
            let length = number_length(rest);
            return self.push(length, CodeToken::Number);
        }
        if !language.is_name_start(first) {
            return self.push(first.len_utf8(), CodeToken::Plain);
        }
        let length = rest
            .find(|c: char| !language.is_in_name(c))
            .unwrap_or(rest.len());
        let length = length.max(first.len_utf8());
        let (name, behind) = rest.split_at(length);
        let token = self.kind_of_name(name, behind);
        self.push(length, token);
    }

    fn kind_of_name(&self, name: &str, behind: &str) -> CodeToken {
        let language = self.language;
        let lower;
        let word = match language.ignores_case {
            true => {
                lower = name.to_lowercase();
                &*lower
            }
            false => name,
        };
        let is_in = |words: &str| words.split_ascii_whitespace().any(|one| one == word);
        let is_key = language
            .key_sign
            .is_some_and(|sign| behind.trim_start_matches(' ').starts_with(sign));
        if is_key
            && self.text[..self.position]
                .trim_start_matches(['-', ' ', '{', ','])
                .is_empty()
        {
            return CodeToken::Keyword;
        }
        if language.has_tags
            && (self.text[..self.position].ends_with('<')
                || self.text[..self.position].ends_with("</"))
        {
            return CodeToken::Keyword;
        }
        match () {
            () if is_in(language.keywords) => CodeToken::Keyword,
            () if is_in(language.constants) => CodeToken::Number,
            () if is_in(language.types) => CodeToken::Type,
            () if language.has_macros && behind.starts_with('!') && !behind.starts_with("!=") => {
                CodeToken::Call
            }
            () if behind.starts_with('(') && !language.is_data => CodeToken::Call,
            () if language.capitals_are_types && is_type_name(name) => CodeToken::Type,
            () => CodeToken::Plain,
        }
    }
}

/// Returns true for `Name`, but not for `NAME`, which is a constant unless it is a single letter.
fn is_type_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && (name.len() == 1 || name.contains(char::is_lowercase))
}

/// Returns the length of a character literal (`'a'` or `'\n'`), or `None` for a lifetime.
fn character_literal(rest: &str) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        characters.next()?;
        return characters
            .take(10)
            .find(|(_, c)| *c == '\'')
            .map(|(at, _)| at + 1);
    }
    let (at, close) = characters.next()?;
    (close == '\'').then_some(at + 1)
}

fn number_length(rest: &str) -> usize {
    let mut before = ' ';
    for (at, character) in rest.char_indices() {
        let goes_on = match character {
            '.' => {
                !rest[at..].starts_with("..")
                    && rest[at + 1..].starts_with(|c: char| c.is_ascii_digit())
            }
            '+' | '-' => matches!(before, 'e' | 'E') && !rest.starts_with("0x"),
            _ => character.is_ascii_alphanumeric() || character == '_',
        };
        if !goes_on {
            return at;
        }
        before = character;
    }
    rest.len()
}
