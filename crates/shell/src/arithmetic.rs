//! Expressions that bash evaluates: `$(( … ))`, subscripts, slices, `[[ a -eq b ]]`.
//!
//! Bash also evaluates the *text* of every variable in such an expression. That text may contain a
//! command substitution.

use crate::ast::{ArithmeticExpression, ParameterOperation, PartKind, WordPart};

/// Returns whether the expression consists of integers and operators only.
pub(crate) fn is_plain(expression: &ArithmeticExpression) -> bool {
    let mut text = expression.text.clone();
    // Cut out the safe expansions, last one first, so that the remaining offsets stay valid.
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

/// Returns whether a part is always a number: `$#`, `$?`, `$$`, `${#x}`, or a plain `$(( … ))`.
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

/// Returns whether the text is a single integer.
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
