//! A canonical spelling of commands, so that rules compare words and not their quoting.
//!
//! A word of plain characters is unchanged, and any other word is in single quotes. Thus different
//! words never have the same spelling, and two words never look like one.

use haft_shell::{Arg, ArgValue};

use super::rules::WildcardPattern;

/// Returns a command in the canonical spelling; `None` if any word is not known before the command
/// runs.
pub(super) fn canonical_command(argv: &[Arg]) -> Option<String> {
    let words: Option<Vec<String>> = argv
        .iter()
        .map(|arg| match &arg.value {
            ArgValue::Literal(text) => Some(spelt(text)),
            ArgValue::Glob(text) if !text.contains(['\'', '"', '\\', ' ']) => Some(text.clone()),
            ArgValue::Glob(_) | ArgValue::Braced(_) | ArgValue::Unknown { .. } => None,
        })
        .collect();
    words.map(|words| words.join(" "))
}

fn spelt(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_@%+=:,./-".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the pattern of a rule that contains quotes, in the canonical spelling. Returns `None` if
/// the rule has no quotes, or other shell syntax than quotes.
pub(super) fn canonical_rule(text: &str) -> Option<WildcardPattern> {
    if !text.contains(['"', '\'']) || text.contains(['\\', '$', '`']) {
        return None;
    }
    let (text, any) = match text.strip_suffix(":*") {
        Some(prefix) => (prefix, " *"),
        None => (text, ""),
    };
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, behind) = word(rest)?;
        words.push(word);
        rest = behind.trim_start();
    }
    Some(WildcardPattern::for_command(&(words.join(" ") + any)))
}

/// Returns the first word in the spelling of patterns, and the text after it. Quotes must enclose
/// the whole word.
fn word(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|first| "\"'".contains(*first));
    let (word, behind) = match quote {
        Some(quote) => {
            let (word, behind) = text[1..].split_once(quote)?;
            (spelt(word).replace('*', r"\*"), behind)
        }
        None => {
            let end = text.find(' ').unwrap_or(text.len());
            (text[..end].to_owned(), &text[end..])
        }
    };
    let ends = behind.is_empty() || behind.starts_with(' ');
    (ends && !(quote.is_none() && word.contains(['"', '\'']))).then_some((word, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_and_a_command_meet_in_their_words() {
        let words = |line: &str| {
            let place = haft_shell::LineLocation {
                cwd: "/w".into(),
                home: None,
            };
            let read = haft_shell::analyze(line, &place);
            canonical_command(&read.parts[0].argv)
        };
        let cases = [
            (r#""npm" test"#, Some("npm test")),
            (r#"npm 'te'"st" -- 'a b'"#, Some("npm test -- 'a b'")),
            (r#"npm "test x""#, Some("npm 'test x'")),
            (r"echo \*", Some("echo '*'")),
            ("echo *.rs", Some("echo *.rs")),
            ("echo $x", None),
            ("echo ''", Some("echo ''")),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line).as_deref(), expected, "{line}");
        }
        let rule = canonical_rule(r#""/my plugins/a.sh" *"#).unwrap();
        assert!(rule.matches(&words(r#"'/my plugins/a.sh' now"#).unwrap()));
        assert!(!rule.matches(&words("/my plugins/a.sh").unwrap()));
        assert!(
            canonical_rule(r#""/p/a.sh" *"#)
                .unwrap()
                .matches("/p/a.sh x")
        );
        assert!(canonical_rule("npm test *").is_none());
        assert!(canonical_rule(r#""$HOME/a.sh" *"#).is_none());
        assert!(canonical_rule(r#"a"b" c"#).is_none());
    }
}
