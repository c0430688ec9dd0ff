//! Expressions that bash evaluates: `$(( … ))`, subscripts, slices, `[[ a -eq b ]]`.
//!
//! Bash evaluates the *text* of every variable in one, which may hold a command substitution.

use crate::ast::{Arithmetic, ParameterOperation, PartKind, WordPart};

/// Is it made of integers and operators alone?
pub(crate) fn is_plain(expression: &Arithmetic) -> bool {
    let mut text = expression.text.clone();
    // Cut the harmless expansions out, from behind, so that the offsets stay right.
    for part in expression.parts.iter().rev() {
        if matches!(part.kind, PartKind::Text(_)) {
            continue;
        }
        let from = part.span.start.checked_sub(expression.span.start);
        let to = part.span.end.checked_sub(expression.span.start);
        let (Some(from), Some(to)) = (from, to) else {
            return false;
        };
        if !is_a_number(part) || text.get(from..to).is_none() {
            return false;
        }
        text.replace_range(from..to, "1");
    }
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || b" \t\n+-*/%()<>=!&|^~?:,".contains(&byte))
}

/// `$#`, `$?`, `$$`, `$!`, `${#x}` are numbers whatever happens.
fn is_a_number(part: &WordPart) -> bool {
    match &part.kind {
        PartKind::Parameter(parameter) => match parameter.operation {
            ParameterOperation::Plain => ["#", "?", "$"].contains(&parameter.name.as_str()),
            ParameterOperation::Length => true,
            _ => false,
        },
        PartKind::Arithmetic(inner) => is_plain(inner),
        _ => false,
    }
}

/// Is this text one integer?
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
