//! The tokens of an awk program, as gawk, mawk and the one true awk all read them.
//!
//! A slash divides or starts a pattern depending on the token before it, and a pattern can hide a
//! quote. If one awk could read a pattern where another reads a division, the lexer rejects the
//! program.

/// One token of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlacedToken<'a> {
    pub(super) kind: AwkToken<'a>,
    /// The number of parentheses and brackets that are open around the token.
    pub(super) depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwkToken<'a> {
    /// A keyword or name.
    Word(&'a str),
    Number,
    /// A string, as written between its quotes.
    Text(&'a str),
    Pattern,
    Sign(&'static str),
    /// The end of a line, unless it is escaped.
    Newline,
}

/// The operators, longer ones first.
const SIGNS: [&str; 41] = [
    "**=", "**", "||", "|&", "|", "&&", ">>", ">=", ">", "<=", "<", "==", "=", "!=", "!~", "!",
    "++", "+=", "+", "--", "-=", "-", "*=", "*", "%=", "%", "^=", "^", "~", "?", ":", ",", ";",
    "(", ")", "[", "]", "{", "}", "$", "@",
];

/// Returns all tokens, or the reason why they are ambiguous.
pub(super) fn tokens(program: &str) -> Result<Vec<PlacedToken<'_>>, &'static str> {
    let mut lexer = AwkLexer {
        program,
        bytes: program.as_bytes(),
        at: 0,
        tokens: Vec::new(),
        open: Vec::new(),
        after_condition: false,
        closed: 0,
    };
    while lexer.at < program.len() {
        lexer.step()?;
    }
    match lexer.open.is_empty() {
        true => Ok(lexer.tokens),
        false => Err("its program leaves a parenthesis open"),
    }
}

struct AwkLexer<'a> {
    program: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<PlacedToken<'a>>,
    /// The open parentheses and brackets, and whether each holds the condition of an `if` or loop.
    open: Vec<OpenBracket>,
    /// The last token closed the condition of an `if` or loop.
    after_condition: bool,
    /// The index of the token that opened the bracket closed last.
    closed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBracket {
    Condition,
    Parenthesis,
    /// An open bracket, with the index of its token.
    Bracket(usize),
}

/// The meaning of a slash.
enum SlashMeaning {
    Divides,
    StartsPattern,
    Unclear,
}

impl<'a> AwkLexer<'a> {
    fn step(&mut self) -> Result<(), &'static str> {
        let start = self.at;
        match self.bytes[start] {
            b' ' | b'\t' => self.at += 1,
            b'\n' => {
                self.at += 1;
                self.push(AwkToken::Newline);
            }
            b'\\' if self.bytes.get(start + 1) == Some(&b'\n') => self.at += 2,
            b'#' => {
                self.run(|byte| byte != b'\n');
                if self.bytes[self.at - 1] == b'\\' {
                    return Err("its program has a comment that may continue on the next line");
                }
            }
            b'"' => self.text()?,
            b'/' => match self.slash() {
                // After an expression that cannot be assigned to, gawk reads `/=` as the start of a
                // pattern.
                SlashMeaning::Divides if self.bytes.get(start + 1) != Some(&b'=') => {
                    self.at += 1;
                    self.push(AwkToken::Sign("/"));
                }
                SlashMeaning::Divides if self.assignable() => {
                    self.at += 2;
                    self.push(AwkToken::Sign("/="));
                }
                SlashMeaning::StartsPattern => self.pattern()?,
                SlashMeaning::Divides | SlashMeaning::Unclear => {
                    return Err("a slash in its program may divide or start a pattern");
                }
            },
            b'0'..=b'9' => self.number()?,
            b'.' if self.bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => self.number()?,
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.run(is_name);
                self.push(AwkToken::Word(&self.program[start..self.at]));
            }
            _ => self.sign()?,
        }
        Ok(())
    }

    fn run(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| belongs(*byte)) {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: AwkToken<'a>) {
        self.after_condition = false;
        let depth = self.open.len();
        self.tokens.push(PlacedToken { kind, depth });
    }

    fn last(&self) -> Option<AwkToken<'a>> {
        self.tokens.last().map(|token| token.kind)
    }

    fn before_last(&self) -> Option<AwkToken<'a>> {
        let before = self.tokens.len().checked_sub(2)?;
        Some(self.tokens[before].kind)
    }

    /// Reads a number. A number directly followed by a name is ambiguous.
    fn number(&mut self) -> Result<(), &'static str> {
        self.run(|byte| byte.is_ascii_digit());
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.run(|byte| byte.is_ascii_digit());
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            let sign = matches!(self.bytes.get(self.at + 1), Some(b'+' | b'-'));
            let digits = self.at + 1 + usize::from(sign);
            if self.bytes.get(digits).is_some_and(u8::is_ascii_digit) {
                self.at = digits;
                self.run(|byte| byte.is_ascii_digit());
            }
        }
        match self.bytes.get(self.at) {
            Some(byte) if is_name(*byte) || *byte == b'.' => {
                Err("a number in its program runs into a name")
            }
            _ => {
                self.push(AwkToken::Number);
                Ok(())
            }
        }
    }

    fn text(&mut self) -> Result<(), &'static str> {
        let start = self.at + 1;
        self.at = start;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\')
                    if self
                        .bytes
                        .get(self.at + 1)
                        .is_some_and(|byte| *byte != b'\n') =>
                {
                    self.at += 2;
                }
                None | Some(b'\n' | b'\\') => return Err("a string in its program does not end"),
                Some(_) => self.at += 1,
            }
        }
        self.push(AwkToken::Text(
            self.program.get(start..self.at).unwrap_or_default(),
        ));
        self.at += 1;
        Ok(())
    }

    fn slash(&self) -> SlashMeaning {
        match self.last() {
            None | Some(AwkToken::Newline) => SlashMeaning::StartsPattern,
            Some(AwkToken::Number | AwkToken::Text(_)) => SlashMeaning::Divides,
            Some(AwkToken::Pattern) => SlashMeaning::Unclear,
            // After `key in array`, the one true awk reads a pattern.
            Some(AwkToken::Word(_)) if self.before_last() == Some(AwkToken::Word("in")) => {
                SlashMeaning::Unclear
            }
            Some(AwkToken::Word(word)) => match word {
                "print" | "printf" | "return" | "exit" | "else" | "do" => {
                    SlashMeaning::StartsPattern
                }
                "BEGIN" | "END" | "BEGINFILE" | "ENDFILE" | "break" | "case" | "continue"
                | "default" | "delete" | "for" | "func" | "function" | "getline" | "if" | "in"
                | "length" | "next" | "nextfile" | "switch" | "while" => SlashMeaning::Unclear,
                _ => SlashMeaning::Divides,
            },
            Some(AwkToken::Sign(sign)) => match sign {
                ")" if self.after_condition => SlashMeaning::Unclear,
                ")" | "]" => SlashMeaning::Divides,
                "++" | "--" | "$" | "@" => SlashMeaning::Unclear,
                _ => SlashMeaning::StartsPattern,
            },
        }
    }

    /// Returns whether the tokens just read are a variable, a field or an element at the start of a
    /// statement.
    fn assignable(&self) -> bool {
        let begins = |before: usize| match before.checked_sub(1).map(|at| self.tokens[at].kind) {
            None | Some(AwkToken::Newline | AwkToken::Sign("{" | "}" | ";")) => true,
            Some(_) => false,
        };
        let Some(last) = self.tokens.len().checked_sub(1) else {
            return false;
        };
        let field = |at: usize| at > 0 && self.tokens[at - 1].kind == AwkToken::Sign("$");
        match self.tokens[last].kind {
            AwkToken::Word(_) | AwkToken::Number if field(last) => begins(last - 1),
            AwkToken::Word(_) => begins(last),
            AwkToken::Sign("]") => self.closed > 0 && begins(self.closed - 1),
            _ => false,
        }
    }

    /// Reads a pattern, up to the first slash that is not escaped. Some awks read a slash in
    /// brackets as part of the pattern, so no bracket may be open there under any of the counting
    /// rules.
    fn pattern(&mut self) -> Result<(), &'static str> {
        let start = self.at + 1;
        self.at = start;
        loop {
            match self.bytes.get(self.at) {
                Some(b'/') => break,
                Some(b'\\')
                    if self
                        .bytes
                        .get(self.at + 1)
                        .is_some_and(|byte| *byte != b'\n') =>
                {
                    self.at += 2;
                }
                None | Some(b'\n' | b'\\') => return Err("a pattern in its program does not end"),
                Some(_) => self.at += 1,
            }
        }
        let pattern = &self.bytes[start..self.at];
        if !(closed_as_sets(pattern) && closed_plainly(pattern) && closed_by_count(pattern)) {
            return Err("a pattern in its program has a slash in brackets");
        }
        self.at += 1;
        self.push(AwkToken::Pattern);
        Ok(())
    }

    fn sign(&mut self) -> Result<(), &'static str> {
        let rest = &self.bytes[self.at..];
        let found = SIGNS
            .into_iter()
            .find(|sign| rest.starts_with(sign.as_bytes()));
        let Some(sign) = found else {
            return Err("its program has an unknown operator");
        };
        self.at += sign.len();
        match sign {
            "(" => {
                let condition = matches!(
                    self.last(),
                    Some(AwkToken::Word("if" | "while" | "for" | "switch"))
                );
                self.push(AwkToken::Sign(sign));
                self.open.push(match condition {
                    true => OpenBracket::Condition,
                    false => OpenBracket::Parenthesis,
                });
            }
            "[" => {
                self.push(AwkToken::Sign(sign));
                self.open.push(OpenBracket::Bracket(self.tokens.len() - 1));
            }
            ")" | "]" => match (sign, self.open.pop()) {
                ("]", Some(OpenBracket::Bracket(at))) => {
                    self.closed = at;
                    self.push(AwkToken::Sign(sign));
                }
                (")", Some(open @ (OpenBracket::Condition | OpenBracket::Parenthesis))) => {
                    self.push(AwkToken::Sign(sign));
                    self.after_condition = open == OpenBracket::Condition;
                }
                _ => return Err("its program closes a parenthesis that was not opened"),
            },
            _ => self.push(AwkToken::Sign(sign)),
        }
        Ok(())
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether all bracket expressions are closed under the POSIX rules: a `]` in the first
/// position is literal, classes are skipped, and escapes apply.
fn closed_as_sets(pattern: &[u8]) -> bool {
    let mut at = 0;
    while let Some(byte) = pattern.get(at) {
        match byte {
            b'\\' => at += 2,
            b'[' => {
                at += 1 + usize::from(pattern.get(at + 1) == Some(&b'^'));
                at += usize::from(pattern.get(at) == Some(&b']'));
                loop {
                    match (pattern.get(at), pattern.get(at + 1)) {
                        (None, _) | (Some(b'['), Some(b'.' | b'=')) => return false,
                        (Some(b']'), _) => break,
                        (Some(b'\\'), _) => at += 2,
                        (Some(b'['), Some(b':')) => {
                            at += 2;
                            while pattern.get(at).is_some_and(u8::is_ascii_lowercase) {
                                at += 1;
                            }
                            if pattern.get(at..at + 2) != Some(b":]") {
                                return false;
                            }
                            at += 2;
                        }
                        (Some(_), _) => at += 1,
                    }
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    true
}

/// Returns whether all bracket expressions are closed if the first `]` after a `[` always closes
/// it.
fn closed_plainly(pattern: &[u8]) -> bool {
    let mut open = false;
    let mut at = 0;
    while let Some(byte) = pattern.get(at) {
        match byte {
            b'\\' if !open => at += 1,
            b'[' => open = true,
            b']' => open = false,
            _ => {}
        }
        at += 1;
    }
    !open
}

/// Returns whether all brackets are closed if they are counted: a class is one more bracket, and a
/// `]` in the first position is not counted.
fn closed_by_count(pattern: &[u8]) -> bool {
    let (mut open, mut first, mut at) = (0_usize, None, 0);
    while let Some(byte) = pattern.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' if open == 0 || pattern.get(at + 1) == Some(&b':') => {
                if open == 0 {
                    first = Some(at + 1 + usize::from(pattern.get(at + 1) == Some(&b'^')));
                }
                open += 1;
            }
            b']' if open > 0 && first != Some(at) => open -= 1,
            _ => {}
        }
        at += 1;
    }
    open == 0
}
