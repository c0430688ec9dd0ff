//! Reads a command line as bash 5.2 reads it under `bash -c`: no aliases, no extended patterns
//! outside `[[ ]]`, no history expansion, not in POSIX mode.
//!
//! Everything that bash would evaluate is a node of the tree. Where bash itself reads a text twice by
//! different rules (once to find its end, once to expand it), only what both readings agree on is
//! accepted; all else is a [`SyntaxError`], never a silent text. A substitution it even prints from its
//! own tree and reads again, so that the faults of its printer count, too. Time is linear in the length of the
//! line: no construct is read again because of what surrounds it, except for the few texts that
//! bash rewrites before reading them (backquotes and here-documents), whose nesting is bounded.
//!
//! # Layout
//! - `source`: the text, and where each byte of a rewritten text came from
//! - `cursor`: looking at the text, bounds
//! - `commands`, `compound`, `conditional`, `redirections`, `here_documents`: the grammar
//! - `words`, `quotes`, `expansions`, `parameters`, `arithmetic`, `assignments`: what a word is made of
//! - `braces`, `sequences`, `patterns`: what unquoted text means
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

use crate::ast::{Script, Span};
use here_documents::Documents;
use source::Source;

/// Why a line could not be read with certainty, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// What was found, for the person or model that wrote the line.
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

/// Reads a whole line (or several) as bash would.
pub fn parse(line: &str) -> Result<Script, SyntaxError> {
    // Bash cannot hold the first of these, and uses the other two as marks of its own.
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
        source: Source::whole(line),
        at: 0,
        bounds: Bounds {
            depth: 0,
            rewritten: 0,
            arithmetic: 0,
            scanned: 0,
            alternatives: MAX_ALTERNATIVES,
            braced_words: braces::MAX_WORDS,
            braced_bytes: braces::MAX_EXPANDED,
        },
        documents: Documents::default(),
        in_substitution: false,
        in_substituted_list: false,
        odd_braces: false,
        expansions: 0,
        semicolons: 0,
        in_double_quotes: 0,
    };
    parser.whole_script()
}

/// How deep constructs may nest. Far beyond what people write, and far from the end of the stack.
const MAX_DEPTH: usize = 100;
/// How often a rewritten text may hold another: each is a copy of what it holds.
const MAX_REWRITTEN: usize = 8;
/// How often an arithmetic expression may hold another, and a subshell that begins with `((` too: the
/// end of each is looked for beforehand.
const MAX_ARITHMETIC: usize = 8;
/// How many bytes the brace expansions of one line may become before they are no longer listed.
const MAX_ALTERNATIVES: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Bounds {
    depth: usize,
    rewritten: usize,
    arithmetic: usize,
    /// Commands around this place that begin with `((`.
    scanned: usize,
    /// What is left of [`MAX_ALTERNATIVES`].
    alternatives: usize,
    /// The remainder of [`braces::MAX_WORDS`] and [`braces::MAX_EXPANDED`].
    braced_words: u64,
    braced_bytes: u64,
}

impl Bounds {
    /// Inside something whose end bash looks for before it reads it.
    fn is_scanned(self) -> bool {
        self.arithmetic > 0 || self.scanned > 0
    }
}

struct Parser<'t> {
    source: Source<'t>,
    /// The next byte of the source.
    at: usize,
    bounds: Bounds,
    documents: Documents,
    /// Inside `$( )`, `<( )` or `>( )`, where bash also ends a here-document at `TAG)`.
    in_substitution: bool,
    /// Inside `name=( )` inside such a thing, where bash loses track of backslashes.
    in_substituted_list: bool,
    /// The word being read holds something that makes bash's brace expansion lose track of quotes.
    odd_braces: bool,
    /// Expansions seen so far: tells whether a stretch had any.
    expansions: usize,
    /// `;` between the commands of this script so far.
    semicolons: usize,
    /// Double quotes around this place, also outside the substitution it is in.
    in_double_quotes: usize,
}
