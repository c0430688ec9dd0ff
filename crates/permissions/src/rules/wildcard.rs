//! Text patterns with `*`.

/// A pattern in which `*` matches any text, including spaces and line breaks; `\*` is a literal
/// star.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WildcardPattern {
    /// The literal texts between the stars: one more than there are stars.
    pieces: Vec<String>,
    /// Whether the pattern ends in ` *`, which also matches nothing: `ls *` matches `ls`.
    ends_in_words: bool,
}

impl WildcardPattern {
    /// Parses a pattern.
    pub fn new(pattern: &str) -> Self {
        let mut pieces = vec![String::new()];
        let mut rest = pattern.chars();
        while let Some(next) = rest.next() {
            let last = pieces.len() - 1;
            match next {
                '*' => pieces.push(String::new()),
                '\\' if rest.as_str().starts_with('*') => {
                    rest.next();
                    pieces[last].push('*');
                }
                other => pieces[last].push(other),
            }
        }
        let several = pieces.len() > 2;
        let ends_in_words = match pieces.as_mut_slice() {
            [.., before, last]
                if last.is_empty() && before.ends_with(' ') && (several || before.len() > 1) =>
            {
                before.pop();
                true
            }
            _ => false,
        };
        Self {
            pieces,
            ends_in_words,
        }
    }

    /// Parses a pattern for commands: `npm run test:*` means `npm run test *`.
    pub fn for_command(pattern: &str) -> Self {
        match pattern.strip_suffix(":*") {
            Some(prefix) => Self::new(&format!("{prefix} *")),
            None => Self::new(pattern),
        }
    }

    /// Returns whether all texts that the pattern matches start with this one.
    pub fn starts_with(&self, text: &str) -> bool {
        self.pieces[0].starts_with(text)
    }

    /// Returns whether the pattern matches only one text.
    pub fn is_exact(&self) -> bool {
        self.pieces.len() == 1
    }

    /// Returns whether the pattern matches the text. Takes linear time: each piece is searched
    /// once, from the left.
    pub fn matches(&self, text: &str) -> bool {
        match self.pieces.as_slice() {
            [only] => only == text,
            [first, middle @ .., last] => {
                let Some(mut rest) = text.strip_prefix(first.as_str()) else {
                    return false;
                };
                if self.ends_in_words {
                    return Self::words_follow(middle, first, text);
                }
                for piece in middle {
                    match rest.find(piece.as_str()) {
                        Some(at) => rest = &rest[at + piece.len()..],
                        None => return false,
                    }
                }
                rest.len() >= last.len() && rest.ends_with(last.as_str())
            }
            [] => false,
        }
    }

    /// Matches `first * middle *`, if the end or whitespace follows the last piece.
    fn words_follow(middle: &[String], first: &str, text: &str) -> bool {
        let ends = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\n']);
        let mut rest = &text[first.len()..];
        let Some((last, before)) = middle.split_last() else {
            return ends(rest);
        };
        for piece in before {
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        // All occurrences, including overlapping ones: `aaa` contains `aa` twice.
        (0..=rest.len())
            .filter_map(|at| rest.get(at..)?.strip_prefix(last.as_str()))
            .any(ends)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_stand_for_texts_and_words() {
        let cases = [
            ("npm run build", "npm run build", true),
            ("npm run build", "npm run build --prod", false),
            ("npm run test:*", "npm run test", true),
            ("npm run test:*", "npm run test unit -- -v", true),
            ("npm run test:*", "npm run testing", false),
            ("npm run test*", "npm run testing", true),
            ("ls *", "ls", true),
            ("ls *", "ls -la", true),
            ("ls *", "lsof", false),
            ("ls*", "lsof", true),
            ("* install", "npm install", true),
            ("* install", "install", false),
            ("git * main", "git push origin main", true),
            ("git * main", "git push origin maint", false),
            ("git * push *", "git -C d push", true),
            ("git * push *", "git x pushy", false),
            ("git * push *", "git x pushy push y", true),
            ("git:* push", "git x push", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("*", "", true),
            ("* *", "x", true),
            (" *", "", false),
            ("ab*ba", "aba", false),
            ("*aa *", "aaa", true),
        ];
        for (pattern, text, expected) in cases {
            let wildcard = WildcardPattern::for_command(pattern);
            assert_eq!(wildcard.matches(text), expected, "{pattern} | {text}");
        }
    }

    proptest! {
        /// The same answer as the plain definition by recursion.
        #[test]
        fn agrees_with_the_definition(pattern in "[ab *]{0,8}", text in "[ab ]{0,10}") {
            fn fits(pattern: &[u8], text: &[u8]) -> bool {
                match pattern {
                    [] => text.is_empty(),
                    [b'*', rest @ ..] => (0..=text.len()).any(|at| fits(rest, &text[at..])),
                    [byte, rest @ ..] => text.first() == Some(byte) && fits(rest, &text[1..]),
                }
            }
            let plain = fits(pattern.as_bytes(), text.as_bytes());
            let words = pattern
                .strip_suffix(" *")
                .is_some_and(|before| !before.is_empty() && fits(before.as_bytes(), text.as_bytes()));
            prop_assert_eq!(WildcardPattern::new(&pattern).matches(&text), plain || words);
        }
    }
}
