//! What an awk program does, by its words.
//!
//! Nothing but `print` and `printf` writes, behind a `>` outside parentheses; nothing but `system` and a
//! pipe starts a command; nothing but `getline` opens a file of its own choice, unless the list of
//! files is changed.

use super::lexer::{Kind, Token, tokens};
use crate::commands::program::{Act, Program};

/// gawk opens a connection for such a file name, also for one among the files it is to read.
pub(super) fn is_socket(path: &str) -> bool {
    path.starts_with("/inet")
}

/// `/inet/tcp/0/HOST/PORT`.
pub(super) fn contact(path: &str) -> Act {
    Act::Contact(path.split('/').nth(4).map(str::to_owned))
}

/// Reads a program.
pub(super) fn read(program: &str) -> Program {
    let tokens = match tokens(program) {
        Ok(tokens) => tokens,
        Err(why) => {
            return Program {
                acts: Vec::new(),
                doubt: Some(why.into()),
            };
        }
    };
    let mut code = Code {
        tokens: &tokens,
        found: Program::default(),
    };
    code.walk();
    code.found
}

struct Code<'a> {
    tokens: &'a [Token<'a>],
    found: Program,
}

impl<'a> Code<'a> {
    fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn doubt(&mut self, why: &'static str) {
        self.found.doubt.get_or_insert(why.into());
    }

    fn walk(&mut self) {
        let mut printing = false;
        for at in 0..self.tokens.len() {
            let Token { kind, depth } = self.tokens[at];
            match kind {
                Kind::Word("print" | "printf") => {
                    printing = true;
                    // In the head of a `for`: what is a comparison there cannot be said.
                    if depth > 0 {
                        self.doubt("its program prints in an odd place");
                    }
                }
                Kind::Sign(";" | "{" | "}") if depth == 0 => printing = false,
                Kind::Newline if depth == 0 && self.ends_statement(at) => printing = false,
                Kind::Sign(">") if printing && depth == 0 => self.writes(at),
                Kind::Sign(">>") => self.writes(at),
                Kind::Sign("|" | "|&") => self.pipe(at),
                Kind::Sign("@") => {
                    self.doubt("its program includes files or calls functions by name");
                }
                Kind::Word("system") => {
                    let line = match (self.kind(at + 1), self.kind(at + 3)) {
                        (Some(Kind::Sign("(")), Some(Kind::Sign(")"))) => self.literal(at + 2),
                        _ => None,
                    };
                    self.found.acts.push(Act::Run(line));
                }
                Kind::Word("getline") => self.getline(at),
                Kind::Word("ARGV") if !self.compares(at) => {
                    self.doubt("its program changes which files it reads");
                }
                Kind::Word("SYMTAB" | "FUNCTAB") => {
                    self.doubt("its program reaches variables and functions by name");
                }
                _ => {}
            }
        }
    }

    /// A string whose meaning is what is written.
    fn literal(&self, at: usize) -> Option<String> {
        match self.kind(at) {
            Some(Kind::Text(text)) if !text.contains('\\') => Some(text.to_owned()),
            _ => None,
        }
    }

    /// The same, with nothing behind it that would lengthen it.
    fn whole_literal(&self, at: usize) -> Option<String> {
        match self.kind(at + 1) {
            None | Some(Kind::Newline | Kind::Sign(";" | "}" | ")")) => self.literal(at),
            Some(_) => None,
        }
    }

    /// Does the line's end here end a statement? Not behind what needs more.
    fn ends_statement(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.kind(at));
        match before {
            None | Some(Kind::Newline) => true,
            Some(Kind::Sign(sign)) => matches!(sign, ")" | "]" | "++" | "--"),
            Some(Kind::Word(word)) => !matches!(word, "else" | "do"),
            Some(Kind::Number | Kind::Text(_) | Kind::Pattern) => true,
        }
    }

    /// `print > file`: standard output and error are no files.
    fn writes(&mut self, at: usize) {
        let path = self.whole_literal(at + 1);
        match path.as_deref() {
            Some("/dev/stdout" | "/dev/stderr" | "/dev/null") => {}
            Some(path) if is_socket(path) => self.found.acts.push(contact(path)),
            _ => self.found.acts.push(Act::Write(path)),
        }
    }

    /// `print | command` and `command | getline`.
    fn pipe(&mut self, at: usize) {
        let line = match self.kind(at + 1) {
            Some(Kind::Word("getline")) => {
                let begins = match at.checked_sub(2).and_then(|at| self.kind(at)) {
                    None | Some(Kind::Newline | Kind::Sign("(" | "{" | "}" | ";")) => true,
                    Some(_) => false,
                };
                let literal = at.checked_sub(1).and_then(|at| self.literal(at));
                literal.filter(|_| begins)
            }
            _ => self.whole_literal(at + 1),
        };
        self.found.acts.push(match line.as_deref() {
            Some(path) if is_socket(path) => contact(path),
            _ => Act::Run(line),
        });
    }

    /// `getline < file`: the first `<` in the same parentheses is taken for it.
    fn getline(&mut self, at: usize) {
        let depth = self.tokens[at].depth;
        for (offset, token) in self.tokens[at + 1..].iter().enumerate() {
            let ends = match token.kind {
                Kind::Sign(";" | "{" | "}") | Kind::Word("getline") => true,
                Kind::Newline => self.ends_statement(at + 1 + offset),
                _ => token.depth < depth,
            };
            if ends {
                return;
            }
            if token.kind == Kind::Sign("<") && token.depth == depth {
                let path = self.whole_literal(at + offset + 2);
                match path.as_deref() {
                    Some("-" | "/dev/stdin") => {}
                    Some(path) if is_socket(path) => self.found.acts.push(contact(path)),
                    _ => self.found.acts.push(Act::Read(path)),
                }
                return;
            }
        }
    }

    /// `FILENAME == ARGV[1]` only looks.
    fn compares(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.kind(at));
        let index = [at + 1, at + 2, at + 3].map(|at| self.kind(at));
        let behind = self.kind(at + 4);
        matches!(before, Some(Kind::Sign("==" | "!=")))
            && index
                == [
                    Some(Kind::Sign("[")),
                    Some(Kind::Number),
                    Some(Kind::Sign("]")),
                ]
            && matches!(
                behind,
                None | Some(Kind::Newline | Kind::Sign("{" | "}" | ";" | ")" | "&&" | "||" | "?"))
            )
    }
}
