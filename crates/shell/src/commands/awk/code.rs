//! The effects of an awk program, found from its tokens.
//!
//! Only `print` and `printf` write, after a `>` outside parentheses. Only `system` and a pipe start
//! a command. Only `getline` opens a file that the program chooses, unless the program changes the
//! list of files.

use super::lexer::{AwkToken, PlacedToken, tokens};
use crate::commands::program::{ScriptAct, ScriptProgram};

/// Returns whether gawk opens a network connection for this file name. This applies to input files
/// as well.
pub(super) fn is_socket(path: &str) -> bool {
    path.starts_with("/inet")
}

/// Returns the contact for `/inet/tcp/0/HOST/PORT`.
pub(super) fn contact(path: &str) -> ScriptAct {
    ScriptAct::Contact(path.split('/').nth(4).map(str::to_owned))
}

/// Parses a program.
pub(super) fn read(program: &str) -> ScriptProgram {
    let tokens = match tokens(program) {
        Ok(tokens) => tokens,
        Err(why) => {
            return ScriptProgram {
                acts: Vec::new(),
                doubt: Some(why.into()),
            };
        }
    };
    let mut code = AwkAnalyzer {
        tokens: &tokens,
        found: ScriptProgram::default(),
    };
    code.walk();
    code.found
}

struct AwkAnalyzer<'a> {
    tokens: &'a [PlacedToken<'a>],
    found: ScriptProgram,
}

impl<'a> AwkAnalyzer<'a> {
    fn kind(&self, at: usize) -> Option<AwkToken<'a>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn doubt(&mut self, why: &'static str) {
        self.found.doubt.get_or_insert(why.into());
    }

    fn walk(&mut self) {
        let mut printing = false;
        for at in 0..self.tokens.len() {
            let PlacedToken { kind, depth } = self.tokens[at];
            match kind {
                AwkToken::Word("print" | "printf") => {
                    printing = true;
                    // In the head of a `for`, a comparison cannot be distinguished from a
                    // redirection.
                    if depth > 0 {
                        self.doubt("its program prints in an unusual place");
                    }
                }
                AwkToken::Sign(";" | "{" | "}") if depth == 0 => printing = false,
                AwkToken::Newline if depth == 0 && self.ends_statement(at) => printing = false,
                AwkToken::Sign(">") if printing && depth == 0 => self.writes(at),
                AwkToken::Sign(">>") => self.writes(at),
                AwkToken::Sign("|" | "|&") => self.pipe(at),
                AwkToken::Sign("@") => {
                    self.doubt("its program includes files or calls functions by name");
                }
                AwkToken::Word("system") => {
                    let line = match (self.kind(at + 1), self.kind(at + 3)) {
                        (Some(AwkToken::Sign("(")), Some(AwkToken::Sign(")"))) => {
                            self.literal(at + 2)
                        }
                        _ => None,
                    };
                    self.found.acts.push(ScriptAct::Run(line));
                }
                AwkToken::Word("getline") => self.getline(at),
                AwkToken::Word("ARGV") if !self.compares(at) => {
                    self.doubt("its program changes which files it reads");
                }
                AwkToken::Word("SYMTAB" | "FUNCTAB") => {
                    self.doubt("its program reaches variables and functions by name");
                }
                _ => {}
            }
        }
    }

    /// Returns the string token at this index, if it has no escapes.
    fn literal(&self, at: usize) -> Option<String> {
        match self.kind(at) {
            Some(AwkToken::Text(text)) if !text.contains('\\') => Some(text.to_owned()),
            _ => None,
        }
    }

    /// Like [`Self::literal`], but only if nothing that follows is concatenated to the string.
    fn whole_literal(&self, at: usize) -> Option<String> {
        match self.kind(at + 1) {
            None | Some(AwkToken::Newline | AwkToken::Sign(";" | "}" | ")")) => self.literal(at),
            Some(_) => None,
        }
    }

    /// Returns whether the line break here ends a statement. It does not after a token that needs
    /// an operand.
    fn ends_statement(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.kind(at));
        match before {
            None | Some(AwkToken::Newline) => true,
            Some(AwkToken::Sign(sign)) => matches!(sign, ")" | "]" | "++" | "--"),
            Some(AwkToken::Word(word)) => !matches!(word, "else" | "do"),
            Some(AwkToken::Number | AwkToken::Text(_) | AwkToken::Pattern) => true,
        }
    }

    /// Records the target of `print > file`. Standard output and standard error are not
    /// files.
    fn writes(&mut self, at: usize) {
        let path = self.whole_literal(at + 1);
        match path.as_deref() {
            Some("/dev/stdout" | "/dev/stderr" | "/dev/null") => {}
            Some(path) if is_socket(path) => self.found.acts.push(contact(path)),
            _ => self.found.acts.push(ScriptAct::Write(path)),
        }
    }

    /// Records `print | command` and `command | getline`.
    fn pipe(&mut self, at: usize) {
        let line = match self.kind(at + 1) {
            Some(AwkToken::Word("getline")) => {
                let begins = match at.checked_sub(2).and_then(|at| self.kind(at)) {
                    None | Some(AwkToken::Newline | AwkToken::Sign("(" | "{" | "}" | ";")) => true,
                    Some(_) => false,
                };
                let literal = at.checked_sub(1).and_then(|at| self.literal(at));
                literal.filter(|_| begins)
            }
            _ => self.whole_literal(at + 1),
        };
        self.found.acts.push(match line.as_deref() {
            Some(path) if is_socket(path) => contact(path),
            _ => ScriptAct::Run(line),
        });
    }

    /// Records `getline < file`. The first `<` in the same parentheses is the redirection.
    fn getline(&mut self, at: usize) {
        let depth = self.tokens[at].depth;
        for (offset, token) in self.tokens[at + 1..].iter().enumerate() {
            let ends = match token.kind {
                AwkToken::Sign(";" | "{" | "}") | AwkToken::Word("getline") => true,
                AwkToken::Newline => self.ends_statement(at + 1 + offset),
                _ => token.depth < depth,
            };
            if ends {
                return;
            }
            if token.kind == AwkToken::Sign("<") && token.depth == depth {
                let path = self.whole_literal(at + offset + 2);
                match path.as_deref() {
                    Some("-" | "/dev/stdin") => {}
                    Some(path) if is_socket(path) => self.found.acts.push(contact(path)),
                    _ => self.found.acts.push(ScriptAct::Read(path)),
                }
                return;
            }
        }
    }

    /// Returns whether this is a comparison such as `FILENAME == ARGV[1]`.
    fn compares(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.kind(at));
        let index = [at + 1, at + 2, at + 3].map(|at| self.kind(at));
        let behind = self.kind(at + 4);
        matches!(before, Some(AwkToken::Sign("==" | "!=")))
            && index
                == [
                    Some(AwkToken::Sign("[")),
                    Some(AwkToken::Number),
                    Some(AwkToken::Sign("]")),
                ]
            && matches!(
                behind,
                None | Some(
                    AwkToken::Newline | AwkToken::Sign("{" | "}" | ";" | ")" | "&&" | "||" | "?")
                )
            )
    }
}
