//! Text in rules that looks like a key.

use haft_contract::secrets::{MASK, is_secret, secret_part};

/// The words before a credential in an HTTP header.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// The minimum length of a credential after one of these, in bytes.
const MIN_CREDENTIAL: usize = 8;

/// The minimum length of random text that is treated as a key, in bytes.
const MIN_RANDOM: usize = 32;

/// Returns a rule with [`MASK`] in place of text that looks like a key; `None` if it has none.
pub fn mask_keys(text: &str) -> Option<String> {
    let is_separator =
        |next: char| next.is_whitespace() || matches!(next, '"' | '\'' | '(' | ')' | ',' | ';');
    let mut masked = String::with_capacity(text.len());
    let mut previous = "";
    let mut has_key = false;
    let mut rest = text;
    while !rest.is_empty() {
        let start = rest.find(|next| !is_separator(next)).unwrap_or(rest.len());
        let (before, word) = rest.split_at(start);
        masked.push_str(before);
        let end = word.find(is_separator).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        if word.is_empty() {
            continue;
        }
        match mask_word(previous, word) {
            Some(word) => {
                has_key = true;
                masked.push_str(&word);
            }
            None => masked.push_str(word),
        }
        previous = word;
    }
    has_key.then_some(masked)
}

/// Returns an argument in a rule with its key masked, if it contains a key.
fn mask_word(previous: &str, word: &str) -> Option<String> {
    let scheme = previous.to_ascii_lowercase();
    let scheme = scheme.trim_end_matches(':');
    let is_literal = word.len() >= MIN_CREDENTIAL && !word.contains(['*', '$']);
    let is_header = scheme.ends_with("-key") || scheme.ends_with("-token");
    if is_literal && (SCHEMES.contains(&scheme) || (previous.ends_with(':') && is_header)) {
        return Some(MASK.to_owned());
    }
    let is_option = previous.starts_with('-')
        && is_secret(
            previous.trim_start_matches('-').replace('-', "_").as_ref(),
            word.as_ref(),
        );
    if is_option && is_literal && !word.starts_with('-') {
        return Some(MASK.to_owned());
    }
    if let Some((name, value)) = word.split_once(['=', ':'])
        && !value.is_empty()
        && !value.contains(['*', '$'])
        && !value.starts_with("//")
    {
        let plain = name.trim_start_matches('-').replace('-', "_");
        let is_long = value.len() >= MIN_CREDENTIAL;
        if (is_long && secret_part(&plain, value).is_some()) || is_random(value) {
            return Some(format!("{}{MASK}", &word[..=name.len()]));
        }
    }
    if is_random(word) || secret_part("", word).is_some() {
        return Some(MASK.to_owned());
    }
    None
}

/// Returns whether the text is long and mixes letters and digits like a generated key.
fn is_random(word: &str) -> bool {
    let is_key_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-=.".contains(&byte);
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    word.len() >= MIN_RANDOM
        && word.bytes().all(is_key_letter)
        && !word.contains('/')
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_and_other_text_is_not() {
        let keys = [
            (
                "Bash(curl -H \"Authorization: Bearer abcdefgh12\" https://x)",
                "abcdefgh12",
            ),
            ("Bash(API_KEY=hunter2secret make)", "hunter2secret"),
            ("Bash(x --api-key hunter2secret)", "hunter2secret"),
            ("Bash(x --token=hunter2secret)", "hunter2secret"),
            ("Bash(curl -H 'x-api-key: hunter2secret')", "hunter2secret"),
            (
                "Bash(git push https://me:hunter2secret@x.org)",
                "hunter2secret",
            ),
            (
                "Bash(gh auth ghp_0123456789abcdefghij)",
                "ghp_0123456789abcdefghij",
            ),
            (
                "Bash(x aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF)",
                "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF",
            ),
        ];
        for (rule, key) in keys {
            let masked = mask_keys(rule).unwrap_or_else(|| panic!("{rule} has a key"));
            assert!(!masked.contains(key) && masked.contains(MASK), "{masked}");
        }
        let plain = [
            "Bash(cargo test -p core)",
            "Bash(git show 0123456789abcdef0123456789abcdef01234567)",
            "Bash(API_KEY=$KEY make)",
            "Bash(curl -H \"Authorization: Bearer *\" https://x)",
            "Bash(cat crates/permissions/src/ReadMe2/AVeryLongPathWithoutKeys.rs)",
            "WebFetch(domain:example.org)",
            "Bash(npm run test:unit)",
            "Read(//usr/include/**)",
        ];
        for rule in plain {
            assert_eq!(mask_keys(rule), None, "{rule}");
        }
    }
}
