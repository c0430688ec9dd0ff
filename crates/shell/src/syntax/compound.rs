//! Compound commands, functions and coprocesses.

use super::commands::{ListTerminator, RESERVED, plain_text};
use super::cursor::in_name;
use super::words::ExpansionStyle;
use super::{ParseResult, Parser};
use crate::ast::{CaseArm, CommandKind, CommandNode, ShellScript, ShellWord};

impl Parser<'_> {
    /// Parses the command that begins with the reserved word at the cursor, which ends at `end`.
    pub(super) fn reserved(&mut self, word: &'static str, end: usize) -> ParseResult<CommandKind> {
        let start = self.at;
        self.at = end;
        match word {
            "{" => Ok(CommandKind::Group(self.body(&["}"])?.0)),
            "if" => self.if_command(),
            "while" | "until" => {
                let (test, _) = self.body(&["do"])?;
                let (body, _) = self.body(&["done"])?;
                Ok(CommandKind::While { test, body })
            }
            "for" => self.for_command(false),
            "select" => self.for_command(true),
            "case" => self.case_command(),
            "function" => self.function_keyword(),
            "coproc" => self.coprocess(),
            "[[" => self.conditional(start),
            _ => {
                self.at = start;
                let message = format!("`{word}` where a command should begin");
                Err(self.error(start, end, &message))
            }
        }
    }

    /// Parses `( … )` or `(( … ))`.
    pub(super) fn parenthesis(&mut self) -> ParseResult<CommandKind> {
        if self.second() == Some(b'(') {
            self.at += 1;
            self.peek();
            let close = self.matching_parenthesis(self.at)?;
            close.must_be_certain(self)?;
            if close.doubled {
                self.at += 1;
                return Ok(CommandKind::Arithmetic(
                    self.parenthesized_arithmetic(close)?,
                ));
            }
            if close.broken {
                return Err(self.unexpected("a line break where bash expects more of `((`"));
            }
            self.enter_scanned()?;
            let subshell = self.subshell()?;
            self.bounds.scanned -= 1;
            return Ok(subshell);
        }
        self.at += 1;
        self.subshell()
    }

    fn subshell(&mut self) -> ParseResult<CommandKind> {
        let script = self.script(ListTerminator::Parenthesis)?;
        if script.items.is_empty() {
            return Err(self.unexpected("expected a command"));
        }
        self.expect(b')', "at the end of a subshell")?;
        Ok(CommandKind::Subshell(script))
    }

    fn if_command(&mut self) -> ParseResult<CommandKind> {
        let mut branches = Vec::new();
        loop {
            let (test, _) = self.body(&["then"])?;
            let (body, end) = self.body(&["elif", "else", "fi"])?;
            branches.push((test, body));
            let otherwise = match end {
                "elif" => continue,
                "else" => Some(self.body(&["fi"])?.0),
                _ => None,
            };
            return Ok(CommandKind::If {
                branches,
                otherwise,
            });
        }
    }

    fn for_command(&mut self, select: bool) -> ParseResult<CommandKind> {
        self.blanks();
        if !select && self.peek() == Some(b'(') && self.second() == Some(b'(') {
            return self.arithmetic_for();
        }
        let name = self.name();
        if name.is_empty() || !self.at_word_end() {
            return Err(self.unexpected("expected the name of the loop variable"));
        }
        self.gap()?;
        let mut words = None;
        // Directly after the name, a brace would be an ordinary word.
        let apart = matches!(self.peek(), Some(b';' | b'\n'));
        if self.eat(b';') {
            self.newlines()?;
        } else {
            self.newlines()?;
            if self.eat_bare("in") {
                words = Some(self.loop_words()?);
            }
        }
        if words.is_none() && !apart && self.at_bare("{") {
            return Err(self.unexpected("expected `do`"));
        }
        let body = self.loop_body()?;
        Ok(CommandKind::For {
            name,
            words,
            body,
            select,
        })
    }

    /// Parses the words after `in`, and the separator after them.
    fn loop_words(&mut self) -> ParseResult<Vec<ShellWord>> {
        let mut words = Vec::new();
        loop {
            self.gap()?;
            match self.peek() {
                Some(b';') => {
                    self.at += 1;
                    break;
                }
                Some(b'\n') => break,
                _ => words.push(self.word(ExpansionStyle::ARGUMENT)?),
            }
        }
        self.newlines()?;
        Ok(words)
    }

    fn arithmetic_for(&mut self) -> ParseResult<CommandKind> {
        self.at += 1;
        self.peek();
        let close = self.matching_parenthesis(self.at)?;
        if !close.doubled {
            return Err(self.unexpected("expected `))`"));
        }
        self.at += 1;
        let parts = self.arithmetic_clauses(close)?;
        self.gap()?;
        self.eat(b';');
        self.newlines()?;
        let body = self.loop_body()?;
        Ok(CommandKind::ArithmeticFor { parts, body })
    }

    /// Parses `do … done`, or `{ … }`.
    fn loop_body(&mut self) -> ParseResult<ShellScript> {
        if self.eat_bare("do") {
            return Ok(self.body(&["done"])?.0);
        }
        if self.eat_bare("{") {
            return Ok(self.body(&["}"])?.0);
        }
        Err(self.unexpected("expected `do`"))
    }

    fn case_command(&mut self) -> ParseResult<CommandKind> {
        self.blanks();
        let word = self.word(ExpansionStyle::SINGLE)?;
        self.newlines()?;
        if !self.eat_bare("in") {
            return Err(self.unexpected("expected `in`"));
        }
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.eat_bare("esac") {
                return Ok(CommandKind::Case { word, arms });
            }
            arms.push(self.arm()?);
        }
    }

    fn arm(&mut self) -> ParseResult<CaseArm> {
        if self.bounds.is_scanned() {
            return Err(self.unexpected("`case` inside `((`"));
        }
        let open = self.eat(b'(');
        let mut patterns = Vec::new();
        loop {
            self.blanks();
            // Some of these are reserved words here as well.
            let odd = |text: &str| match open {
                true => RESERVED.contains(&text),
                false => ["{", "}", "esac"].contains(&text),
            };
            if self.bare().is_some_and(|bare| odd(bare.text())) {
                return Err(self.unexpected("expected a pattern"));
            }
            patterns.push(self.word(ExpansionStyle::PATTERN)?);
            self.blanks();
            if !self.eat(b'|') {
                break;
            }
        }
        self.expect(b')', "after the pattern")?;
        let body = self.script(ListTerminator::Arm)?;
        if self.eat(b';') {
            // The end of the arm is `;;`, `;&` or `;;&`.
            if self.eat(b';') {
                self.eat(b'&');
            } else {
                self.expect(b'&', "after `;`")?;
            }
        } else if !self.at_bare("esac") {
            return Err(self.unexpected("expected `;;`"));
        }
        Ok(CaseArm { patterns, body })
    }

    /// Parses the `()` after the name of a function, and its body.
    pub(super) fn function(&mut self, start: usize, name: &ShellWord) -> ParseResult<CommandNode> {
        let Some(name) = plain_text(name).filter(|name| is_function_name(name)) else {
            return Err(self.unexpected("a parenthesis after text that cannot name a function"));
        };
        let name = name.to_owned();
        self.empty_parentheses()?;
        let kind = self.function_body(name)?;
        Ok(CommandNode {
            span: self.span(start, self.at),
            kind,
            redirects: Vec::new(),
        })
    }

    fn empty_parentheses(&mut self) -> ParseResult<()> {
        self.at += 1;
        self.blanks();
        self.expect(b')', "after the name of a function")
    }

    fn function_keyword(&mut self) -> ParseResult<CommandKind> {
        self.blanks();
        let word = self.word(ExpansionStyle::ARGUMENT)?;
        let Some(name) = plain_text(&word).filter(|name| is_function_name(name)) else {
            return Err(self.unexpected("expected the name of a function"));
        };
        let name = name.to_owned();
        self.blanks();
        if self.peek() == Some(b'(') {
            let before = self.at;
            self.at += 1;
            self.blanks();
            // `function f (…)` is a function whose body is a subshell.
            match self.eat(b')') {
                true => {}
                false => self.at = before,
            }
        }
        self.function_body(name)
    }

    fn function_body(&mut self, name: String) -> ParseResult<CommandKind> {
        self.newlines()?;
        let body = self.compound_command()?;
        Ok(CommandKind::Function {
            name,
            body: Box::new(body),
        })
    }

    fn coprocess(&mut self) -> ParseResult<CommandKind> {
        self.blanks();
        let start = self.at;
        if !self.at_compound() {
            let name = self.name();
            let named = !name.is_empty() && self.at_word_end() && {
                self.blanks();
                self.at_compound()
            };
            if !named {
                self.at = start;
            }
        }
        let body = match self.at_compound() {
            true => self.compound_command()?,
            false => {
                if self.at_bare("time") {
                    return Err(self.unexpected("`time` after `coproc`"));
                }
                let command = self.command(true)?;
                if !matches!(command.kind, CommandKind::Simple { .. }) {
                    return Err(self.unexpected("expected a command after `coproc`"));
                }
                self.refuse_reserved_second_word(&command)?;
                command
            }
        };
        Ok(CommandKind::Coprocess {
            body: Box::new(body),
        })
    }

    /// Rejects a reserved word as the second word: bash then takes the first word after `coproc` as
    /// a name.
    fn refuse_reserved_second_word(&self, command: &CommandNode) -> ParseResult<()> {
        let CommandKind::Simple { words, .. } = &command.kind else {
            return Ok(());
        };
        match words.get(1).and_then(plain_text) {
            Some(second) if RESERVED.contains(&second) => Err(self.error(
                self.at,
                self.at,
                "a reserved word after the first word of `coproc`",
            )),
            _ => Ok(()),
        }
    }

    fn at_compound(&mut self) -> bool {
        let starts = ["{", "if", "while", "until", "for", "select", "case", "[["];
        self.peek() == Some(b'(')
            || self
                .bare()
                .is_some_and(|bare| starts.contains(&bare.text()))
    }

    fn compound_command(&mut self) -> ParseResult<CommandNode> {
        match self.at_compound() {
            true => self.command(true),
            false => Err(self.unexpected("expected a compound command")),
        }
    }
}

fn is_function_name(name: &str) -> bool {
    name.bytes()
        .all(|byte| in_name(byte) || matches!(byte, b'-' | b'.' | b':' | b'/' | b'@' | b'%' | b'['))
}
