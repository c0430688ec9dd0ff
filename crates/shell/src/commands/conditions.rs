//! `test` and `[`.
//!
//! `-v` and `-R` evaluate the subscript of a name. Therefore an uncertain argument is accepted only
//! where it cannot become an operator.

use super::{spec::KnownCommand, variables::is_name};
use crate::{
    arg::{Arg, ArgValue},
    commands::options::names,
    effect::{CommandFinding, Effect},
};

pub(super) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("test [", test)];

/// Unary operators that test the file after them.
const ON_FILES: &str = "bcdefghkprsuwxGLNOS";

/// Binary operators.
const BINARY: &[&str] = &[
    "=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

fn test(argv: &[Arg]) -> CommandFinding {
    let bracket = argv.first().is_some_and(|name| name.is("["));
    let words = argv.get(1..).unwrap_or_default();
    let words = match words.split_last() {
        Some((last, others)) if bracket && last.is("]") => others,
        _ if bracket => return CommandFinding::unknown("its ] is missing"),
        _ => words,
    };
    let at = |index: usize| words.get(index).and_then(Arg::text);
    for (index, word) in words.iter().enumerate() {
        let before = index.checked_sub(1).and_then(at);
        let joins = |word: Option<&str>| matches!(word, Some("-a" | "-o"));
        let binary = |word: Option<&str>| word.is_some_and(|word| BINARY.contains(&word));
        let last = index + 1 == words.len();
        let behind_operator = before.is_some_and(|word| is_unary(word) || BINARY.contains(&word));
        let operand = behind_operator || binary(at(index + 1)) || words.len() == 1
            // With three arguments, the middle one is the binary operator.
            || (words.len() == 3 && (index == 0 && joins(at(1)) || index == 2 && joins(at(1))))
            || (last && (joins(before) || before == Some("!")));
        if let Some("-v" | "-R") = before.filter(|_| !binary(at(index))) {
            if !word.text().is_some_and(is_name) {
                return CommandFinding::unknown("-v evaluates what the name holds")
                    .with_span(word.span);
            }
            continue;
        }
        let certain = match &word.value {
            ArgValue::Literal(_) | ArgValue::Braced(_) => true,
            ArgValue::Unknown { one, .. } => *one && operand,
            // No file name that this pattern matches can be an operator.
            ArgValue::Glob(pattern) => {
                operand && pattern.contains(['.', '/']) && !pattern.contains('[')
            }
        };
        if !certain {
            return CommandFinding::unknown("an expansion may become an operator")
                .with_span(word.span);
        }
    }
    let looked_at = words.windows(2).filter_map(|pair| {
        let operator = pair[0].text()?.strip_prefix('-')?;
        (operator.len() == 1 && ON_FILES.contains(operator)).then(|| names(&pair[1]))
    });
    let compared = words.windows(3).flat_map(|three| {
        let files = matches!(three[1].text(), Some("-nt" | "-ot" | "-ef"));
        files
            .then(|| [names(&three[0]), names(&three[2])])
            .into_iter()
            .flatten()
    });
    let effects: Vec<Effect> = looked_at.chain(compared).collect();
    CommandFinding {
        effects,
        ..CommandFinding::read_only("it only tests")
    }
}

/// Returns whether this is a unary operator, except the operators that evaluate their argument
/// (`-a` and `-o` are also binary).
fn is_unary(word: &str) -> bool {
    let letter = word.strip_prefix('-');
    letter.is_some_and(|letter| {
        letter.len() == 1 && (ON_FILES.contains(letter) || "nzt".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::{assert_not_read_only, assert_read_only, each, effects};

    #[test]
    fn a_word_that_cannot_become_an_operator_is_harmless() {
        assert_read_only(&each(
            "[ -f a ]; [ -z \"$x\" ]; [ \"$x\" = root ]; [ root = \"$x\" ]; [ 3 -gt 2 ]; [ \"$x\" \
             -gt 3 ]; [ ! -e a ]; [ \"$x\" ]; [ ! \"$x\" ]; [ ]; test -f a; test; test -n \"$x\"; \
             [ -f a -a -n \"$x\" ]; [ \"$x\" = a -o \"$y\" = b ]; [ -v name ]; [ -e *.txt ]; [ -d \
             \"$x\" ]; [ a -nt \"$x\" ]; [ \"$x\" != \"$y\" ]; [ \"$x\" -a \"$y\" ]; [ -t 1 ]; [ \
             -v = x ]; test \"$x\" == \"$y\"",
        ));
        assert_not_read_only(&each(
            "[ -f a; [ $x ]; [ $x = a ]; [ a = $x ]; [ \"$x\" \"$y\" ]; [ -v 'a[$x]' ]; [ -v a[0] \
             ]; [ -v \"$x\" ]; [ -R $x ]; test -v 'a[0]'; test \"$x\" b; [ ! \"$x\" b ]; [ -e * \
             ]; [ *.txt ] x; [ -f a -a \"$x\" \"$y\" ]; [ \"$x\" a = b ]; [ a -o \"$x\" 'a[0]' ]; \
             [ -a \"$x\" b ]; [ -e [-.]? ]",
        ));
        assert_eq!(effects("[ -f a ]"), ["names a"]);
        assert_eq!(effects("[ a -nt b ]"), ["names a", "names b"]);
        assert_eq!(effects("[ -n a ]"), [""; 0]);
    }
}
