//! Lists, pipelines and simple commands.

use super::words::ExpansionStyle;
use super::{ParseResult, Parser};
use crate::ast::{
    AssignedValue, CommandKind, CommandNode, ListSeparator, PartKind, Pipeline, ScriptItem,
    ShellScript, ShellWord,
};

/// The end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListTerminator {
    /// The end of the text.
    End,
    /// `)`
    Parenthesis,
    /// Any of these reserved words at the start of a command.
    Word(&'static [&'static str]),
    /// The end of a `case` arm.
    Arm,
}

/// Words with a special meaning at the start of a command.
pub(crate) const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// Builtins that accept `name=( … )` as an argument.
const DECLARATIONS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

impl Parser<'_> {
    /// Parses everything up to the end of the text.
    pub(super) fn whole_script(&mut self) -> ParseResult<ShellScript> {
        let mut script = self.script(ListTerminator::End)?;
        self.finish_documents(&mut script)?;
        Ok(script)
    }

    /// Parses a list that must not be empty, and the word after it.
    pub(super) fn body(
        &mut self,
        until: &'static [&'static str],
    ) -> ParseResult<(ShellScript, &'static str)> {
        let script = self.script(ListTerminator::Word(until))?;
        if script.items.is_empty() {
            return Err(self.unexpected("expected a command"));
        }
        for end in until {
            if self.eat_bare(end) {
                return Ok((script, end));
            }
        }
        Err(self.unexpected(&format!("expected `{}`", until.join("` or `"))))
    }

    /// Parses a list, up to its end.
    pub(super) fn script(&mut self, until: ListTerminator) -> ParseResult<ShellScript> {
        let mut items = Vec::new();
        let mut joined = false;
        loop {
            self.newlines()?;
            if self.at_end(until) {
                if joined {
                    return Err(self.unexpected("expected a command"));
                }
                break;
            }
            let (pipeline, compound) = self.pipeline()?;
            let then = self.separator(until, compound)?;
            joined = matches!(then, Some(ListSeparator::And | ListSeparator::Or));
            items.push(ScriptItem {
                pipeline,
                then: then.unwrap_or(ListSeparator::Sequence),
            });
            if then.is_none() {
                break;
            }
        }
        Ok(ShellScript { items })
    }

    /// Returns whether the list ends here, at the start of a command.
    fn at_end(&mut self, until: ListTerminator) -> bool {
        match until {
            ListTerminator::End => self.peek().is_none(),
            ListTerminator::Parenthesis => self.peek() == Some(b')'),
            ListTerminator::Word(words) => {
                self.bare().is_some_and(|bare| words.contains(&bare.text()))
            }
            ListTerminator::Arm => self.at_arm_end() || self.at_bare("esac"),
        }
    }

    /// Returns whether `;;`, `;&` or `;;&` follows.
    fn at_arm_end(&mut self) -> bool {
        self.peek() == Some(b';') && matches!(self.second(), Some(b';' | b'&'))
    }

    /// Parses the separator between two pipelines. Returns `None` if the list ends here.
    fn separator(
        &mut self,
        until: ListTerminator,
        compound: bool,
    ) -> ParseResult<Option<ListSeparator>> {
        self.gap()?;
        let separator = match (self.peek(), self.second()) {
            (None, _) => None,
            (Some(b'\n'), _) => return Ok(Some(ListSeparator::Sequence)),
            (Some(b';'), Some(b';' | b'&')) if until == ListTerminator::Arm => return Ok(None),
            (Some(b';'), Some(b';' | b'&')) => {
                return Err(self.unexpected("the end of an arm outside `case`"));
            }
            (Some(b';'), _) => {
                self.semicolons += 1;
                Some(ListSeparator::Sequence)
            }
            (Some(b'&'), Some(b'&')) => Some(ListSeparator::And),
            (Some(b'|'), Some(b'|')) => Some(ListSeparator::Or),
            (Some(b'&'), _) => Some(ListSeparator::Background),
            (Some(b')'), _) if until == ListTerminator::Parenthesis => return Ok(None),
            // After a compound command, bash recognises the end of the list without a separator.
            _ if compound && self.at_end(until) => return Ok(None),
            _ => return Err(self.unexpected("expected the end of a command")),
        };
        if separator.is_some() {
            self.at += 1;
        }
        if let Some(ListSeparator::And | ListSeparator::Or) = separator {
            self.peek();
            self.at += 1;
        }
        Ok(separator)
    }

    /// Parses a pipeline, and returns whether it ends in a compound command without redirections.
    fn pipeline(&mut self) -> ParseResult<(Pipeline, bool)> {
        self.peek();
        let start = self.at;
        let mut pipeline = Pipeline {
            span: self.span(start, start),
            negated: false,
            timed: false,
            commands: Vec::new(),
        };
        let mut end = start;
        let mut compound = false;
        let mut prefixed = false;
        loop {
            if self.eat_bare("!") {
                pipeline.negated = !pipeline.negated;
                prefixed = true;
                end = self.at;
            } else if self.eat_bare("time") {
                pipeline.timed = true;
                prefixed = true;
                end = self.at;
                for option in ["-p", "--"] {
                    self.blanks();
                    if self.eat_bare(option) {
                        end = self.at;
                    }
                }
            } else {
                break;
            }
            self.gap()?;
        }
        let nothing = match self.peek() {
            None | Some(b'\n') => true,
            Some(b';') => !self.at_arm_end(),
            _ => false,
        };
        if prefixed && nothing && self.in_substitution {
            return Err(self.unexpected("expected a command"));
        }
        if !(prefixed && nothing) {
            loop {
                let command = self.command(pipeline.commands.is_empty())?;
                end = self.at;
                compound = !matches!(
                    command.kind,
                    CommandKind::Simple { .. } | CommandKind::Coprocess { .. }
                ) && command.redirects.is_empty();
                pipeline.commands.push(command);
                self.gap()?;
                if self.peek() != Some(b'|') || self.second() == Some(b'|') {
                    break;
                }
                self.at += 1;
                self.eat(b'&');
                self.newlines()?;
            }
        }
        pipeline.commands.shrink_to_fit();
        pipeline.span = self.span(start, end);
        Ok((pipeline, compound))
    }

    /// Parses a command with its redirections. The cursor is left directly after it.
    pub(super) fn command(&mut self, first: bool) -> ParseResult<CommandNode> {
        self.enter()?;
        self.peek();
        let start = self.at;
        let reserved = self.bare().and_then(|bare| {
            let text = bare.text();
            let known = RESERVED.iter().find(|word| **word == text)?;
            Some((*known, bare.end))
        });
        let kind = match reserved {
            // After `|`, this is the program named `time`.
            Some(("time", _)) if !first => None,
            Some((word, end)) => Some(self.reserved(word, end)?),
            None if self.peek() == Some(b'(') => Some(self.parenthesis()?),
            None => None,
        };
        let command = match kind {
            Some(kind) => {
                let end = self.at;
                let mut redirects = Vec::new();
                // The redirections of a function belong to its body.
                let inner = matches!(
                    kind,
                    CommandKind::Function { .. } | CommandKind::Coprocess { .. }
                );
                if !inner {
                    self.redirections(&mut redirects)?;
                }
                let end = if redirects.is_empty() { end } else { self.at };
                self.at = end;
                CommandNode {
                    span: self.span(start, end),
                    kind,
                    redirects,
                }
            }
            None => self.simple_command(start)?,
        };
        self.leave();
        Ok(command)
    }

    /// Parses assignments, words and redirections, or a function if `()` follows the first word.
    fn simple_command(&mut self, start: usize) -> ParseResult<CommandNode> {
        let mut assignments = Vec::new();
        let mut words: Vec<ShellWord> = Vec::new();
        let mut redirects = Vec::new();
        let mut declares = false;
        let mut end = start;
        loop {
            self.blanks();
            if let Some(redirect) = self.redirection()? {
                redirects.push(redirect);
                declares = false;
                end = self.at;
                continue;
            }
            match self.peek() {
                Some(b'(') => {
                    let bare = assignments.is_empty() && redirects.is_empty();
                    if bare && words.len() == 1 {
                        return self.function(start, &words[0]);
                    }
                    return Err(self.unexpected("a parenthesis inside a command"));
                }
                Some(b'#') => break,
                _ if self.at_word_end() => break,
                _ => {}
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                let list = matches!(assignment.value, AssignedValue::Array(_));
                if !redirects.is_empty() && (list || assignment.subscript.is_some()) {
                    return Err(self.unexpected("a list or an element after a redirection"));
                }
                assignments.push(assignment);
                end = self.at;
                continue;
            }
            let array = match declares {
                true => self.declared_array()?,
                false => None,
            };
            let word = match array {
                Some(word) => word,
                None => self.word(ExpansionStyle::ARGUMENT)?,
            };
            self.refuse_strange_descriptor(&word)?;
            // When bash prints this command, it puts the word before the redirection, where it is
            // reserved.
            let moved = words.is_empty() && assignments.is_empty() && !redirects.is_empty();
            if moved && plain_text(&word).is_some_and(|text| RESERVED.contains(&text)) {
                return Err(self.unexpected("a reserved word after a redirection"));
            }
            declares |= words.is_empty()
                && redirects.is_empty()
                && plain_text(&word).is_some_and(|name| DECLARATIONS.contains(&name));
            words.push(word);
            end = self.at;
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return Err(self.unexpected("expected a command"));
        }
        self.at = end;
        // A vector begins with room for four; most commands have fewer words.
        words.shrink_to_fit();
        assignments.shrink_to_fit();
        redirects.shrink_to_fit();
        Ok(CommandNode {
            span: self.span(start, end),
            kind: CommandKind::Simple { assignments, words },
            redirects,
        })
    }
}

/// Returns the text of a shell word that consists only of unquoted text.
pub(super) fn plain_text(word: &ShellWord) -> Option<&str> {
    match &word.parts[..] {
        [part] if !part.quoted => match &part.kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
