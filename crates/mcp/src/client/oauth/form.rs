//! Encodes and decodes forms, queries and header parameters.

/// Encodes pairs as a query or a form.
pub(super) fn encode(pairs: &[(&str, &str)]) -> String {
    let encoded = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    encoded.collect::<Vec<_>>().join("&")
}

/// Escapes everything except unreserved characters.
pub(super) fn escape(text: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => {
                let _ = write!(escaped, "%{other:02X}"); // writing to a string cannot fail
            }
        }
    }
    escaped
}

/// Decodes the pairs of a query.
pub(super) fn decode(query: &str) -> Vec<(String, String)> {
    let pairs = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (unescape(name), unescape(value))
        });
    pairs.collect()
}

fn unescape(text: &str) -> String {
    let (mut bytes, mut at) = (Vec::with_capacity(text.len()), 0);
    let all = text.as_bytes();
    while let Some(byte) = all.get(at) {
        let hex = all
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                at += 2;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a parameter of `WWW-Authenticate: Bearer name="value", …`.
pub(super) fn parameter(challenge: &str, wanted: &str) -> Option<String> {
    let mut rest = challenge.trim();
    rest = rest.split_once(' ').map_or(rest, |(_, rest)| rest);
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim().trim_start_matches(',').trim();
        let after = after.trim_start();
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = behind.trim_start().trim_start_matches(',').trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_as_they_were() {
        let query = encode(&[("a b", "c&d=é"), ("x", "")]);
        assert_eq!(query, "a%20b=c%26d%3D%C3%A9&x=");
        let read = decode(&query);
        assert_eq!(
            read,
            [
                ("a b".to_owned(), "c&d=é".to_owned()),
                ("x".to_owned(), String::new())
            ]
        );
        assert_eq!(decode("a=1+2&b=%zz")[0].1, "1 2");
    }

    #[test]
    fn a_challenge_has_parameters() {
        let challenge = r#"Bearer error="insufficient_scope", scope="a b", resource_metadata="https://x/y", n=1"#;
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("a b"));
        assert_eq!(
            parameter(challenge, "resource_metadata").as_deref(),
            Some("https://x/y")
        );
        assert_eq!(parameter(challenge, "n").as_deref(), Some("1"));
        assert_eq!(parameter(challenge, "other"), None);
        assert_eq!(parameter("Bearer", "scope"), None);
    }
}
