//! Here-documents: announced in a command, read after the next line break.

use std::mem;

use super::cursor::ends_word;
use super::source::RewrittenSource;
use super::words::{QuoteContext, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::{
    CommandKind, CommandNode, PartKind, Redirect, RedirectOperator, ShellScript, ShellWord, Span,
    WordPart,
};

/// The here-documents of one script.
#[derive(Default)]
pub(super) struct HereDocuments {
    pending: Vec<PendingHereDocument>,
    /// The bodies, in the order of their announcements. Until the end of the script, the
    /// redirections hold indexes into this list.
    bodies: Vec<ShellWord>,
}

impl HereDocuments {
    pub(super) fn are_none(&self) -> bool {
        self.pending.is_empty() && self.bodies.is_empty()
    }

    pub(super) fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }
}

struct PendingHereDocument {
    tag: String,
    quoted: bool,
    /// `<<-`
    strips_tabs: bool,
    /// The offset of the announcement.
    at: usize,
}

impl Parser<'_> {
    /// Parses the tag after `<<`.
    pub(super) fn here_document(
        &mut self,
        start: usize,
        descriptor: Option<String>,
    ) -> ParseResult<Redirect> {
        // Bash has already read past the text after a line like this.
        if self.bounds.is_scanned() {
            return Err(self.unexpected("a here-document inside `((`"));
        }
        let strips_tabs = self.eat(b'-');
        self.blanks();
        let from = self.at;
        let (tag, quoted) = self.tag()?;
        let span = self.span(from, self.at);
        let number = self.documents.bodies.len() + self.documents.pending.len();
        self.documents.pending.push(PendingHereDocument {
            tag: tag.clone(),
            quoted,
            strips_tabs,
            at: start,
        });
        Ok(Redirect {
            span: self.span(start, self.at),
            descriptor,
            operator: RedirectOperator::HereDocument,
            target: ShellWord {
                span,
                parts: vec![WordPart {
                    span,
                    quoted,
                    kind: PartKind::Text(tag),
                }],
            },
            body: Some(ShellWord {
                span: Span {
                    start: number,
                    end: number,
                },
                parts: Vec::new(),
            }),
        })
    }

    /// Parses the tag. Returns it without its quotes, and whether it had any.
    fn tag(&mut self) -> ParseResult<(String, bool)> {
        let start = self.at;
        if self.peek() == Some(b'#') {
            return Err(self.unexpected("expected the tag of a here-document"));
        }
        let mut tag = String::new();
        let mut quoted = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'$' | b'`' => {
                    return Err(self.unexpected("the tag of a here-document with an expansion"));
                }
                b'<' | b'>' if self.second() == Some(b'(') => {
                    return Err(self.unexpected("the tag of a here-document with an expansion"));
                }
                _ if ends_word(byte) => break,
                b'\\' => {
                    quoted = true;
                    let from = self.at + 1;
                    if self.byte(from).is_none() {
                        return Err(self.unexpected("a backslash at the end of the text"));
                    }
                    self.at = self.character_end(from);
                    tag.push_str(&self.source.text[from..self.at]);
                }
                b'\'' | b'"' => {
                    quoted = true;
                    let from = self.at + 1;
                    let rest = &self.source.text[from..];
                    let length = rest.find(char::from(byte)).unwrap_or(rest.len());
                    let inside = &rest[..length];
                    if length == rest.len() || inside.contains(['\n', '\\', '$', '`']) {
                        let message = "the tag of a here-document that is not plain";
                        return Err(self.error(start, from, message));
                    }
                    tag.push_str(inside);
                    self.at = from + length + 1;
                }
                _ => {
                    let from = self.at;
                    self.bump();
                    tag.push_str(&self.source.text[from..self.at]);
                }
            }
        }
        if tag.is_empty() && !quoted {
            return Err(self.unexpected("expected the tag of a here-document"));
        }
        Ok((tag, quoted))
    }

    /// Reads the bodies of the announced here-documents; the cursor is at the start of a line.
    pub(super) fn gather_documents(&mut self) -> ParseResult<()> {
        for pending in mem::take(&mut self.documents.pending) {
            let body = self.document(&pending)?;
            self.documents.bodies.push(body);
        }
        Ok(())
    }

    fn document(&mut self, pending: &PendingHereDocument) -> ParseResult<ShellWord> {
        let start = self.at;
        let mut body = RewrittenSource::new(&self.source, start);
        let end = loop {
            let line = self.at;
            if line >= self.source.text.len() {
                let at = pending.at;
                return Err(self.error(at, at + 2, "a here-document without its end tag"));
            }
            let length = body.text.len();
            if pending.strips_tabs {
                while self.byte(self.at) == Some(b'\t') {
                    self.at += 1;
                }
            }
            self.document_line(pending.quoted, &mut body);
            let text = &body.text[length..];
            let text = text.strip_suffix('\n').unwrap_or(text);
            if text == pending.tag {
                body.truncate(length);
                break line;
            }
            if self.in_substitution && text.starts_with(&pending.tag) {
                let message = "a line that begins with the end tag of a here-document";
                return Err(self.error(line, self.at, message));
            }
        };
        let after = self.at;
        let span = self.span(start, end);
        let parts = match pending.quoted {
            true => vec![WordPart {
                span,
                quoted: true,
                kind: PartKind::Text(body.text),
            }],
            false => self.within(&body, |inner| inner.document_parts())?,
        };
        self.at = after;
        Ok(ShellWord { span, parts })
    }

    /// Reads one line with its line break. With an unquoted tag, the line continues after a
    /// trailing backslash.
    fn document_line(&mut self, quoted: bool, body: &mut RewrittenSource) {
        let mut kept = self.at;
        let mut at = kept;
        loop {
            match self.byte(at) {
                None => break,
                Some(b'\n') => {
                    at += 1;
                    break;
                }
                Some(b'\\') if !quoted => {
                    if self.byte(at + 1) == Some(b'\n') {
                        body.copy_range(&self.source, kept, at);
                        kept = at + 2;
                    }
                    at = (at + 2).min(self.source.text.len());
                }
                Some(_) => at += 1,
            }
        }
        body.copy_range(&self.source, kept, at);
        self.at = at;
    }

    /// Parses the expansions of a body with an unquoted tag.
    fn document_parts(&mut self) -> ParseResult<Vec<WordPart>> {
        let mut pieces = WordPieces::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'$' => self.dollar(QuoteContext::HereDocument, &mut pieces)?,
                b'`' => self.backquoted(QuoteContext::HereDocument, &mut pieces)?,
                b'\\' => self.double_quoted_escape(b"$`\\", &mut pieces)?,
                _ => self.plain_run(b"$`\\", &mut pieces),
            }
        }
        Ok(self.parts(pieces.list))
    }

    /// Moves the bodies into their redirections, once the script that announced them is complete.
    pub(super) fn finish_documents(&mut self, script: &mut ShellScript) -> ParseResult<()> {
        if let Some(pending) = self.documents.pending.first() {
            let at = pending.at;
            return Err(self.error(at, at + 2, "a here-document without its body"));
        }
        let bodies = mem::take(&mut self.documents.bodies);
        if !bodies.is_empty() {
            attach_script_bodies(
                script,
                &mut bodies.into_iter().map(Some).collect::<Vec<_>>(),
            );
        }
        Ok(())
    }
}

fn attach_script_bodies(script: &mut ShellScript, bodies: &mut [Option<ShellWord>]) {
    for item in &mut script.items {
        for command in &mut item.pipeline.commands {
            attach_bodies(command, bodies);
        }
    }
}

fn attach_bodies(command: &mut CommandNode, bodies: &mut [Option<ShellWord>]) {
    for redirect in &mut command.redirects {
        if let Some(body) = &mut redirect.body
            && let Some(found) = bodies.get_mut(body.span.start).and_then(Option::take)
        {
            *body = found;
        }
    }
    match &mut command.kind {
        CommandKind::Group(script) | CommandKind::Subshell(script) => {
            attach_script_bodies(script, bodies)
        }
        CommandKind::If {
            branches,
            otherwise,
        } => {
            for (test, body) in branches {
                attach_script_bodies(test, bodies);
                attach_script_bodies(body, bodies);
            }
            if let Some(otherwise) = otherwise {
                attach_script_bodies(otherwise, bodies);
            }
        }
        CommandKind::While { test, body } => {
            attach_script_bodies(test, bodies);
            attach_script_bodies(body, bodies);
        }
        CommandKind::For { body, .. } | CommandKind::ArithmeticFor { body, .. } => {
            attach_script_bodies(body, bodies)
        }
        CommandKind::Case { arms, .. } => {
            for arm in arms {
                attach_script_bodies(&mut arm.body, bodies);
            }
        }
        CommandKind::Function { body, .. } | CommandKind::Coprocess { body } => {
            attach_bodies(body, bodies)
        }
        CommandKind::Simple { .. } | CommandKind::Test(_) | CommandKind::Arithmetic(_) => {}
    }
}
