//! Expands `${VAR}` and `${VAR:-default}` in an entry.

/// Returns the text with variables expanded, and the names of those that are not set and have no
/// default; these stay unexpanded. Values are not expanded again.
pub(super) fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (String, Vec<String>) {
    let (mut expanded, mut unset) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        expanded.push_str(before);
        let parsed = from[2..].split_once('}').and_then(|(inside, after)| {
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            is_name(name).then_some((name, default, after))
        });
        let Some((name, default, after)) = parsed else {
            expanded.push_str("${");
            rest = &from[2..];
            continue;
        };
        match (variable(name), default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => {
                expanded.push_str(&from[..from.len() - after.len()]);
                unset.push(name.to_owned());
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    (expanded, unset)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    bytes
        .next()
        .is_some_and(|first| fits(first) && !first.is_ascii_digit())
        && bytes.all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_defaults_take_their_places() {
        let set = |name: &str| match name {
            "X" => Some("x".to_owned()),
            "ONE" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${X}".to_owned()),
            _ => None,
        };
        let cases = [
            // (text, what comes of it, not set)
            ("${X}", "x", ""),
            ("${A}", "${A}", "A"),
            ("${A:-d}", "d", ""),
            ("${A:-https://h/p}/m", "https://h/p/m", ""),
            ("a${ONE}b${B:-}", "a1b", ""),
            ("${EMPTY:-d}", "", ""),
            ("${NESTED}", "${X}", ""),
            ("$X ${ ${1A} ${X", "$X ${ ${1A} ${X", ""),
            ("é${X}é", "éxé", ""),
        ];
        for (text, expected, unset) in cases {
            let (expanded, names) = expand(text, &set);
            assert_eq!(
                (expanded.as_str(), names.join(",").as_str()),
                (expected, unset),
                "{text}"
            );
        }
    }
}
