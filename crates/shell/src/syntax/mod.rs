//! A parser for command lines, as bash 5.2 reads them under `bash -c`: no aliases, no extended
//! patterns outside `[[ ]]`, no history expansion, not in POSIX mode.
//!
//! Everything that bash would evaluate is a node of the tree. Bash itself reads some texts twice by
//! different rules (once to find the end, once to expand). The parser accepts only texts on which
//! both readings agree. Any other text is a [`SyntaxError`], never a plain text. Bash even prints a
//! substitution from its own tree and parses the output again, so the parser must also account for
//! the faults of bash's printer.
//!
//! Parsing takes linear time in the length of the line: no construct is parsed again because of the
//! text around it. The exceptions are the texts that bash rewrites before it reads them (backquotes
//! and here-documents), whose nesting is bounded.
//!
//! # Layout
//! - `source`: the text, and the origin of each byte of a rewritten text
//! - `cursor`: reading the text, bounds
//! - `commands`, `compound`, `conditional`, `redirections`, `here_documents`: the grammar
//! - `words`, `quotes`, `expansions`, `parameters`, `arithmetic`, `assignments`: the parts of a
//!   shell word
//! - `braces`, `sequences`, `patterns`: the meaning of unquoted text
//! - `outline`: a tree as text, for tests

mod arithmetic;
mod assignments;
mod braces;
pub(crate) mod commands;
mod compound;
mod conditional;
mod cursor;
mod expansions;
mod here_documents;
mod outline;
mod parameters;
mod patterns;
mod quotes;
mod redirections;
mod sequences;
mod source;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

pub use outline::outline;

use crate::ast::{ShellScript, Span};
use here_documents::HereDocuments;
use source::ParserSource;

/// The reason why a line could not be parsed with certainty, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The reason, for the user or model that wrote the line.
    pub message: String,
    /// The place in the line.
    pub span: Span,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "cannot read the command line at byte {}: {}",
            self.span.start, self.message
        )
    }
}

impl std::error::Error for SyntaxError {}

type ParseResult<T> = Result<T, SyntaxError>;

/// Parses a whole line (or several) as bash would.
pub fn parse(line: &str) -> Result<ShellScript, SyntaxError> {
    // Bash cannot represent the first of these characters, and uses the other two as internal
    // marks.
    if let Some(at) = line
        .bytes()
        .position(|byte| matches!(byte, 0 | 0x01 | 0x7f))
    {
        return Err(SyntaxError {
            message: format!("the control character 0x{:02x}", line.as_bytes()[at]),
            span: Span {
                start: at,
                end: at + 1,
            },
        });
    }
    let mut parser = Parser {
        source: ParserSource::from_line(line),
        at: 0,
        bounds: ParserBounds {
            depth: 0,
            rewritten: 0,
            arithmetic: 0,
            scanned: 0,
            alternatives: MAX_ALTERNATIVES,
            braced_words: braces::MAX_WORDS,
            braced_bytes: braces::MAX_EXPANDED,
        },
        documents: HereDocuments::default(),
        in_substitution: false,
        in_substituted_list: false,
        odd_braces: false,
        expansions: 0,
        semicolons: 0,
        in_double_quotes: 0,
    };
    parser.whole_script()
}

/// The maximum nesting depth of constructs: far more than users write, and far below the end of the
/// stack.
const MAX_DEPTH: usize = 100;
/// The maximum nesting of rewritten texts. Each is a copy of its content.
const MAX_REWRITTEN: usize = 8;
/// The maximum nesting of arithmetic expressions, and of subshells that begin with `((`. The end of
/// each is searched for in advance.
const MAX_ARITHMETIC: usize = 8;
/// The total number of bytes that the brace expansions of one line may list. Above it, they are no
/// longer listed.
const MAX_ALTERNATIVES: usize = 1 << 20;

#[derive(Clone, Copy)]
struct ParserBounds {
    depth: usize,
    rewritten: usize,
    arithmetic: usize,
    /// The number of enclosing commands that begin with `((`.
    scanned: usize,
    /// The unused part of [`MAX_ALTERNATIVES`].
    alternatives: usize,
    /// The unused part of [`braces::MAX_WORDS`] and [`braces::MAX_EXPANDED`].
    braced_words: u64,
    braced_bytes: u64,
}

impl ParserBounds {
    /// Returns whether the cursor is inside a construct whose end bash searches for before it
    /// parses it.
    fn is_scanned(self) -> bool {
        self.arithmetic > 0 || self.scanned > 0
    }
}

struct Parser<'t> {
    source: ParserSource<'t>,
    /// The next byte of the source.
    at: usize,
    bounds: ParserBounds,
    documents: HereDocuments,
    /// Inside `$( )`, `<( )` or `>( )`, where bash also ends a here-document at `TAG)`.
    in_substitution: bool,
    /// Inside `name=( )` in a substitution, where bash loses track of backslashes.
    in_substituted_list: bool,
    /// The current word contains text that makes bash's brace expansion lose track of quotes.
    odd_braces: bool,
    /// The number of expansions so far, to detect whether a range contained any.
    expansions: usize,
    /// The number of `;` between the commands of this script so far.
    semicolons: usize,
    /// The number of enclosing double quotes, including those outside the current substitution.
    in_double_quotes: usize,
}
