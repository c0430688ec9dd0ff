//! `$…`, backquotes, and process substitution.

use std::mem;

use super::commands::ListTerminator;
use super::cursor::starts_name;
use super::source::RewrittenSource;
use super::words::{PlacedPart, QuoteContext, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::{
    CommandKind, ListSeparator, ParameterExpansion, ParameterOperation, PartKind, ScriptItem,
    ShellScript, ShellWord,
};

impl Parser<'_> {
    /// Parses the `$` at the cursor and the expansion that it begins.
    pub(super) fn dollar(
        &mut self,
        quote: QuoteContext,
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        let start = self.at;
        let second = self.second();
        self.at += 1;
        self.peek();
        let kind = match second {
            Some(b'(') => self.dollar_parenthesis()?,
            Some(b'{') => {
                self.at += 1;
                self.enter()?;
                let parameter = self.braced_parameter(start, quote)?;
                self.leave();
                PartKind::Parameter(parameter)
            }
            Some(b'[') => {
                self.at += 1;
                PartKind::Arithmetic(self.bracketed_arithmetic()?)
            }
            Some(b'\'' | b'"') if quote == QuoteContext::None && self.bounds.is_scanned() => {
                // Bash replaces it while it searches for the end, and reads the result again.
                return Err(self.unexpected("`$'` or `$\"` inside `((`"));
            }
            Some(b'\'') if quote == QuoteContext::None => return self.ansi_quoted(start, pieces),
            Some(b'"') if quote == QuoteContext::None => {
                // Bash evaluates the translation, if the variable names a message catalog that
                // contains one.
                pieces.push(PlacedPart {
                    start,
                    end: self.at,
                    quoted: true,
                    kind: PartKind::Parameter(ParameterExpansion {
                        name: "TEXTDOMAIN".to_owned(),
                        operation: ParameterOperation::Evaluates,
                    }),
                });
                let start = self.at;
                return self.double_quoted(start, pieces);
            }
            Some(byte) if starts_name(byte) => plain(self.name()),
            Some(byte @ (b'0'..=b'9' | b'$' | b'#' | b'?' | b'-' | b'!' | b'*' | b'@')) => {
                self.at += 1;
                plain(char::from(byte).to_string())
            }
            _ => {
                pieces.text(start, self.at, quote != QuoteContext::None, "$");
                return Ok(());
            }
        };
        self.expansions += 1;
        pieces.push(PlacedPart {
            start,
            end: self.at,
            quoted: quote != QuoteContext::None,
            kind,
        });
        Ok(())
    }

    /// Parses `(` after a `$`: a command, or arithmetic if `((` ends in `))`.
    fn dollar_parenthesis(&mut self) -> ParseResult<PartKind> {
        self.at += 1;
        if self.peek() == Some(b'(') {
            let close = self.matching_parenthesis(self.at)?;
            close.must_be_certain(self)?;
            if close.doubled {
                self.at += 1;
                return Ok(PartKind::Arithmetic(self.parenthesized_arithmetic(close)?));
            }
            return Ok(PartKind::Command(self.scanned_script()?));
        }
        Ok(PartKind::Command(self.substituted_script()?))
    }

    /// Parses `<(` or `>(` at the cursor.
    pub(super) fn process_substitution(&mut self, pieces: &mut WordPieces) -> ParseResult<()> {
        let start = self.at;
        self.at += 1;
        self.peek();
        self.at += 1;
        let script = match self.peek() {
            Some(b'(') => {
                self.matching_parenthesis(self.at)?.must_be_certain(self)?;
                self.scanned_script()?
            }
            _ => self.substituted_script()?,
        };
        self.expansions += 1;
        pieces.push(PlacedPart {
            start,
            end: self.at,
            quoted: false,
            kind: PartKind::Process(script),
        });
        Ok(())
    }

    /// Like [`Self::substituted_script`], but for a script that begins with a parenthesis. Bash has
    /// already searched for its end.
    fn scanned_script(&mut self) -> ParseResult<ShellScript> {
        self.enter_scanned()?;
        let script = self.substituted_script()?;
        self.bounds.scanned -= 1;
        Ok(script)
    }

    /// Parses a script up to and including `)`. The here-documents inside belong to this script.
    fn substituted_script(&mut self) -> ParseResult<ShellScript> {
        self.enter()?;
        let outer = mem::take(&mut self.documents);
        let semicolons = mem::take(&mut self.semicolons);
        let substitution = mem::replace(&mut self.in_substitution, true);
        let list = mem::replace(&mut self.in_substituted_list, false);
        self.gap()?;
        let start = self.at;
        let timed = self.at_bare("time");
        let mut script = self.script(ListTerminator::Parenthesis)?;
        if timed && !keeps_time(&script) {
            return Err(self.error(start, self.at, "`time` at the start of a substitution"));
        }
        if !self.documents.are_none() && (self.semicolons > 0 || !is_simple(&script)) {
            // When bash prints such a script, a `;` is lost.
            let message = "a here-document in a substitution of several commands";
            return Err(self.error(start, self.at, message));
        }
        self.finish_documents(&mut script)?;
        self.expect(b')', "at the end of a substitution")?;
        self.documents = outer;
        self.semicolons = semicolons;
        self.in_substitution = substitution;
        self.in_substituted_list = list;
        self.leave();
        Ok(script)
    }

    /// Parses the backquote at the cursor, up to the next one. Bash removes the backslashes first.
    pub(super) fn backquoted(
        &mut self,
        quote: QuoteContext,
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        let start = self.at;
        let mut rewritten = RewrittenSource::new(&self.source, start + 1);
        let mut kept = start + 1;
        let mut at = kept;
        loop {
            match self.byte(at) {
                None => return Err(self.error(start, start + 1, "a backquote without its end")),
                Some(b'`') => break,
                Some(b'\\') => {
                    let dropped = match (self.byte(at + 1), quote) {
                        (Some(b'\n'), _) => 2,
                        (Some(b'`' | b'$' | b'\\'), _) | (Some(b'"'), QuoteContext::Double) => 1,
                        (Some(b'"'), QuoteContext::BracedDouble | QuoteContext::Arithmetic) => {
                            let message = "an escaped quote in backquotes here is ambiguous";
                            return Err(self.error(at, at + 2, message));
                        }
                        _ => 0,
                    };
                    rewritten.copy_range(&self.source, kept, at);
                    kept = at + dropped;
                    at += 2;
                }
                Some(byte) => {
                    // Inside double quotes, bash's brace expansion takes this as the closing quote.
                    self.odd_braces |= byte == b'"' && quote != QuoteContext::None;
                    at += 1;
                }
            }
        }
        rewritten.copy_range(&self.source, kept, at);
        self.enter()?;
        let script = self.within(&rewritten, |inner| inner.whole_script())?;
        self.leave();
        self.at = at + 1;
        self.expansions += 1;
        pieces.push(PlacedPart {
            start,
            end: self.at,
            quoted: quote != QuoteContext::None,
            kind: PartKind::Command(script),
        });
        Ok(())
    }
}

/// Returns whether the script has only simple commands, none of them in the background.
fn is_simple(script: &ShellScript) -> bool {
    let background = |item: &ScriptItem| item.then == ListSeparator::Background;
    if script.items.iter().any(background) {
        return false;
    }
    let mut commands = script.items.iter().flat_map(|item| &item.pipeline.commands);
    commands.all(|command| matches!(command.kind, CommandKind::Simple { .. }))
}

/// Returns whether both of bash's readings of a substitution agree on a leading `time`. The first
/// reading treats it as a command name, so the rest must be words in both readings.
fn keeps_time(script: &ShellScript) -> bool {
    let Some(first) = script.items.first() else {
        return false;
    };
    let Some(CommandKind::Simple { assignments, words }) =
        first.pipeline.commands.first().map(|command| &command.kind)
    else {
        return false;
    };
    let list = |word: &ShellWord| {
        word.parts
            .iter()
            .any(|part| matches!(part.kind, PartKind::Array(_)))
    };
    assignments.is_empty() && !first.pipeline.negated && !words.iter().any(list)
}

fn plain(name: String) -> PartKind {
    PartKind::Parameter(ParameterExpansion {
        name,
        operation: ParameterOperation::Plain,
    })
}
