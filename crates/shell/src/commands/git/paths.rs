//! The files that git's operands read: `rev:path` and pathspecs.

use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    commands::options::{self, ParsedArguments},
    effect::{Effect, FileWrite, WriteKind},
};

/// The information that a subcommand shows about the paths it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownPaths {
    /// Names, dates and hashes.
    Names,
    /// The content of the paths, or of all files if the line names no path.
    Content,
}

/// Returns the reads of operands that are revisions, objects and pathspecs. The first `texts`
/// operands are neither.
pub(super) fn reads(parsed: &ParsedArguments<'_>, shows: ShownPaths, texts: usize) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut limited = false;
    let mut objects = 0;
    for (at, arg) in parsed.operands.iter().enumerate().skip(texts) {
        let behind_dashes = parsed.before_dashes.is_some_and(|before| at >= before);
        if behind_dashes {
            limited |= pathspec(arg, shows, &mut effects);
        } else if let Some(path) = object_path(arg) {
            objects += 1;
            effects.push(match shows {
                ShownPaths::Names => options::names(&path),
                ShownPaths::Content => options::content(&path),
            });
        } else if parsed.before_dashes.is_none() {
            match nature(arg) {
                OperandNature::Revision => {}
                OperandNature::Either => {
                    pathspec(arg, shows, &mut effects);
                }
                OperandNature::Path => limited |= pathspec(arg, shows, &mut effects),
            }
        }
    }
    let named = parsed.operands.len().saturating_sub(texts);
    let only_objects = named > 0 && objects == named;
    if shows == ShownPaths::Content && !limited && !only_objects {
        effects.push(everything(parsed));
    }
    effects
}

/// Returns a read of everything below the current directory.
pub(super) fn everything(parsed: &ParsedArguments<'_>) -> Effect {
    options::tree(&here(parsed))
}

/// Returns the current directory.
pub(super) fn here(parsed: &ParsedArguments<'_>) -> Arg {
    let nowhere = Span { start: 0, end: 0 };
    let span = parsed.argv.first().map_or(nowhere, |arg| arg.span);
    Arg::literal(".", span)
}

/// Returns writes of the files that a checkout overwrites.
pub(super) fn written(parsed: &ParsedArguments<'_>) -> Vec<Effect> {
    let operands = parsed.operands.iter().enumerate();
    let paths = operands.filter(|(at, arg)| match parsed.before_dashes {
        Some(before) => *at >= before,
        None => !matches!(nature(arg), OperandNature::Revision),
    });
    paths.map(|(_, arg)| checked_out(arg)).collect()
}

/// Returns a write of the files that a pathspec names.
pub(super) fn checked_out(arg: &Arg) -> Effect {
    match arg.text() {
        // `:/` and `:(top)` are relative to the top of the working tree, other magic to the current
        // directory.
        Some(text) if text.starts_with(':') => filled(&Arg::literal(".", arg.span)),
        _ => filled(&pattern(arg)),
    }
}

/// Adds the read of a pathspec. Returns whether the pathspec limits what the subcommand shows.
fn pathspec(arg: &Arg, shows: ShownPaths, effects: &mut Vec<Effect>) -> bool {
    // The files that `:(magic)`, `:!exclude` and `:/from the top` name are not known.
    if arg.text().is_some_and(|text| text.starts_with(':')) {
        return false;
    }
    let path = pattern(arg);
    effects.push(match shows {
        ShownPaths::Names => options::names(&path),
        ShownPaths::Content => options::tree(&path),
    });
    true
}

/// Returns the pathspec as a pattern: git expands patterns that were quoted for the shell.
pub(super) fn pattern(arg: &Arg) -> Arg {
    match arg.text() {
        Some(text) if text.contains(['*', '?', '[']) => Arg {
            span: arg.span,
            value: ArgValue::Glob(text.to_owned()),
        },
        _ => arg.clone(),
    }
}

/// Returns the path of `rev:path`, `:path` and `:2:path`.
fn object_path(arg: &Arg) -> Option<Arg> {
    let text = match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => text,
        ArgValue::Unknown { prefix, .. } => prefix,
    };
    if [":(", ":/", ":!", ":^"]
        .iter()
        .any(|magic| text.starts_with(magic))
    {
        return None;
    }
    let mut depth = 0_usize;
    let colon = text.char_indices().find(|(_, letter)| {
        match letter {
            // `HEAD@{10:30}` contains a colon that is not a separator.
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *letter == ':' && depth == 0
    });
    let (at, _) = colon?;
    let mut path = &text[at + 1..];
    if at == 0
        && let Some(staged) = ["0:", "1:", "2:", "3:"]
            .iter()
            .find_map(|stage| path.strip_prefix(stage))
    {
        path = staged;
    }
    let path = if path.is_empty() { "." } else { path };
    let value = match &arg.value {
        ArgValue::Unknown { one, .. } => ArgValue::Unknown {
            prefix: path.to_owned(),
            one: *one,
        },
        ArgValue::Glob(_) => ArgValue::Glob(path.to_owned()),
        ArgValue::Literal(_) | ArgValue::Braced(_) => ArgValue::Literal(path.to_owned()),
    };
    Some(Arg {
        span: arg.span,
        value,
    })
}

/// Returns whether the operand can only be a path.
pub(super) fn is_path(arg: &Arg) -> bool {
    matches!(nature(arg), OperandNature::Path)
}

enum OperandNature {
    Revision,
    Path,
    Either,
}

/// Returns the kind of an operand, as far as its text shows it.
fn nature(arg: &Arg) -> OperandNature {
    let Some(text) = arg.text() else {
        return OperandNature::Either;
    };
    let dotted = text.starts_with('.') && !text.starts_with("..");
    let path = dotted
        || text == ".."
        || text.starts_with("../")
        || text.starts_with('/')
        || text.ends_with('/');
    if path {
        OperandNature::Path
    } else if text.split('/').any(|part| part == "..") {
        OperandNature::Either
    } else if text == "HEAD"
        || ["..", "^", "~", "@{"]
            .iter()
            .any(|mark| text.contains(mark))
    {
        OperandNature::Revision
    } else {
        OperandNature::Either
    }
}

/// Returns a path relative to the directory that `-C` names.
pub(super) fn below(directory: &Arg, path: &Arg) -> Arg {
    let absolute = |text: &str| text.starts_with('/');
    let join = |text: &str| match directory.text() {
        Some("" | ".") => text.to_owned(),
        Some(directory) if text == "." => directory.to_owned(),
        Some(directory) => format!("{}/{text}", directory.trim_end_matches('/')),
        None => String::new(),
    };
    let value = match &path.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text)
            if absolute(text) =>
        {
            path.value.clone()
        }
        ArgValue::Unknown { prefix, .. } if absolute(prefix) => path.value.clone(),
        _ if directory.text().is_none() => directory.value.clone(),
        ArgValue::Literal(text) | ArgValue::Braced(text) => ArgValue::Literal(join(text)),
        ArgValue::Glob(text) => ArgValue::Glob(join(text)),
        // The expansion may become an absolute path.
        ArgValue::Unknown { prefix, one } => ArgValue::Unknown {
            prefix: if prefix.is_empty() {
                String::new()
            } else {
                join(prefix)
            },
            one: *one,
        },
    };
    Arg {
        span: path.span,
        value,
    }
}

/// Returns a plain write of a path.
pub(super) fn worked(path: &Arg) -> Effect {
    write(path, WriteKind::OperandWrite)
}

/// Returns a write of any file below a path.
pub(super) fn filled(path: &Arg) -> Effect {
    write(path, WriteKind::Tree)
}

/// Returns the removal of a path.
pub(super) fn removed(path: &Arg) -> Effect {
    write(path, WriteKind::Removal)
}

fn write(path: &Arg, how: WriteKind) -> Effect {
    Effect::Write(FileWrite {
        path: path.clone(),
        kind: how,
    })
}
