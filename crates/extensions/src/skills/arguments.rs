//! Splitting the arguments of a slash command like a shell does.

/// Splits a line into arguments, with quotes and backslashes as in a shell. An unclosed quote is a
/// normal character.
pub fn split_arguments(line: &str) -> Vec<String> {
    quoted(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect())
}

fn quoted(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    // `None` between two arguments: `""` starts an argument, but whitespace does not.
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => word.get_or_insert_default().push('\\'),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_as_a_shell_has_them() {
        for (line, expected) in [
            ("", vec![]),
            ("a  b\tc", vec!["a", "b", "c"]),
            ("\"a b\" c", vec!["a b", "c"]),
            ("'a \"b' \"c'\"", vec!["a \"b", "c'"]),
            ("a\\ b \"\" x\"y\"z", vec!["a b", "", "xyz"]),
            ("it's here", vec!["it's", "here"]),
            ("\"\\$x \\n\"", vec!["$x \\n"]),
        ] {
            assert_eq!(split_arguments(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn plain_words_come_back(list in proptest::collection::vec("[a-z]{1,5}", 0..6)) {
            prop_assert_eq!(split_arguments(&list.join(" ")), list);
        }

        #[test]
        fn quoted_words_come_back(list in proptest::collection::vec("[^']{0,6}", 0..6)) {
            let line: Vec<String> = list.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split_arguments(&line.join(" ")), list);
        }
    }
}
