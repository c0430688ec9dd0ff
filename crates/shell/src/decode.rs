//! The conversion of shell words into the arguments that a program receives.

use std::path::Path;

use crate::{
    arg::{Arg, ArgValue},
    ast::{ParameterOperation, PartKind, ShellWord, Span, WordPart},
    walk::KnownValues,
};

/// The maximum number of texts from one brace expansion. Above it, the arguments are unknown.
const MAX_BRACED: usize = 256;

/// The variables with a known value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownVariables<'a> {
    /// `~` and `$HOME`.
    pub(crate) home: Option<&'a str>,
    /// `$PWD`.
    pub(crate) pwd: Option<&'a str>,
    /// The variables that the line sets.
    pub(crate) line: Option<&'a KnownValues>,
}

impl KnownVariables<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.line.and_then(|values| values.get(name))
    }
}

/// Returns the arguments that a shell word becomes: one, or several for a brace expansion.
pub(crate) fn args(word: &ShellWord, known: KnownVariables<'_>) -> Vec<Arg> {
    let mut texts = vec![String::new()];
    let mut braced = false;
    let mut certainty = ArgCertainty::Certain;
    for part in &word.parts {
        let piece = piece(part, known);
        // The text before the first unknown part is the prefix; the text after it is unknown.
        match piece {
            DecodedPiece::Text(text) => {
                if certainty.keeps_text() {
                    texts.iter_mut().for_each(|whole| whole.push_str(&text));
                }
            }
            DecodedPiece::Glob(text) => {
                if certainty.keeps_text() {
                    texts.iter_mut().for_each(|whole| whole.push_str(&text));
                }
                certainty = certainty.and(ArgCertainty::Glob);
            }
            DecodedPiece::Several(options) if options.len() * texts.len() <= MAX_BRACED => {
                braced = true;
                if certainty.keeps_text() {
                    let joined = texts.iter().flat_map(|whole| {
                        options.iter().map(move |option| format!("{whole}{option}"))
                    });
                    texts = joined.collect();
                }
            }
            DecodedPiece::Several(_) => certainty = certainty.and(ArgCertainty::Many),
            DecodedPiece::Unknown { one } => {
                let doubt = if one {
                    ArgCertainty::One
                } else {
                    ArgCertainty::Many
                };
                certainty = certainty.and(doubt);
            }
        }
    }
    let values = texts.into_iter().map(|text| match certainty {
        ArgCertainty::Certain if braced => ArgValue::Braced(text),
        ArgCertainty::Certain => ArgValue::Literal(text),
        ArgCertainty::Glob => ArgValue::Glob(text),
        ArgCertainty::One => ArgValue::Unknown {
            prefix: text,
            one: true,
        },
        ArgCertainty::Many => ArgValue::Unknown {
            prefix: text,
            one: false,
        },
    });
    let span = word.span;
    values.map(|value| Arg { span, value }).collect()
}

/// Returns whether the word contains the value of a variable that the line sets.
pub(crate) fn uses_value(word: &ShellWord, known: KnownVariables<'_>) -> bool {
    word.parts.iter().any(|part| match &part.kind {
        PartKind::Parameter(parameter) => known.value(&parameter.name).is_some(),
        _ => false,
    })
}

/// Returns the text of a shell word that is never split: an assigned value, or an operand of
/// `[[ … ]]`.
pub(crate) fn text(word: &ShellWord, known: KnownVariables<'_>) -> Option<String> {
    let mut whole = String::new();
    for part in &word.parts {
        match piece(part, known) {
            DecodedPiece::Text(text) | DecodedPiece::Glob(text) => whole.push_str(&text),
            DecodedPiece::Several(_) | DecodedPiece::Unknown { .. } => return None,
        }
    }
    Some(whole)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ArgCertainty {
    Certain,
    Glob,
    One,
    Many,
}

impl ArgCertainty {
    fn and(self, other: Self) -> Self {
        self.max(other)
    }

    /// Returns whether text is still collected: up to the first expansion. A pattern keeps its
    /// whole text.
    fn keeps_text(self) -> bool {
        self <= Self::Glob
    }
}

enum DecodedPiece {
    Text(String),
    Glob(String),
    Several(Vec<String>),
    Unknown { one: bool },
}

fn piece(part: &WordPart, known: KnownVariables<'_>) -> DecodedPiece {
    match &part.kind {
        PartKind::Text(text) => DecodedPiece::Text(text.clone()),
        PartKind::Glob(text) => DecodedPiece::Glob(text.clone()),
        PartKind::Brace(Some(options)) => DecodedPiece::Several(options.clone()),
        PartKind::Brace(None) => DecodedPiece::Unknown { one: false },
        PartKind::Tilde(text) => match (text.as_str(), known.home) {
            ("~", Some(home)) => DecodedPiece::Text(home.to_owned()),
            ("~+", Some(_)) => variable(known.pwd, true),
            _ => DecodedPiece::Unknown { one: true },
        },
        PartKind::Parameter(parameter) => {
            let plain = parameter.operation == ParameterOperation::Plain;
            match parameter.name.as_str() {
                "HOME" if plain => variable(known.home, part.quoted),
                "PWD" if plain => variable(known.pwd, part.quoted),
                // Always a number.
                "?" | "#" | "$" if plain => DecodedPiece::Unknown { one: true },
                // Lists remain several arguments inside quotes.
                "@" => DecodedPiece::Unknown { one: false },
                name if plain && known.value(name).is_some() => {
                    variable(known.value(name), part.quoted)
                }
                _ => DecodedPiece::Unknown {
                    one: part.quoted
                        && !matches!(parameter.operation, ParameterOperation::Subscript(..)),
                },
            }
        }
        // A process substitution expands to the name of a pipe.
        PartKind::Process(_) => DecodedPiece::Text(crate::walk::PIPE.to_owned()),
        PartKind::Array(_) => DecodedPiece::Unknown { one: true },
        PartKind::Arithmetic(_) => DecodedPiece::Unknown { one: true },
        PartKind::Command(_) => DecodedPiece::Unknown { one: part.quoted },
    }
}

fn variable(value: Option<&str>, quoted: bool) -> DecodedPiece {
    let splits = |text: &str| text.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
    match value {
        Some(text) if quoted || !splits(text) => DecodedPiece::Text(text.to_owned()),
        _ => DecodedPiece::Unknown { one: quoted },
    }
}

/// Returns the source text at `span` as rules match it: with its quotes, and with continued lines joined.
pub(crate) fn source<'a>(line: &'a str, span: Span) -> std::borrow::Cow<'a, str> {
    let text = line.get(span.start..span.end).unwrap_or_default();
    if text.contains("\\\n") {
        text.replace("\\\n", "").into()
    } else {
        text.into()
    }
}

/// Returns a path without `.` and `..`, resolved by its text alone.
pub(crate) fn lexical(path: &Path) -> std::path::PathBuf {
    use std::path::Component;
    let mut clean = std::path::PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}
