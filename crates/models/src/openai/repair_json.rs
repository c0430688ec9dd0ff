//! Repairs arguments that are almost JSON.
//!
//! Only errors whose repair cannot change a value are repaired: a code fence around the JSON, extra
//! commas, missing closing brackets. A string that was cut off is not repaired, and the model gets
//! an error.

use serde_json::Value;

/// Returns the arguments as a JSON object if no guess is needed, otherwise unchanged.
pub(super) fn repair_json(arguments: &str, cut_off: bool) -> String {
    let text = arguments.trim();
    if matches!(text, "" | "null") {
        return "{}".to_owned();
    }
    match serde_json::from_str(text) {
        // The JSON was encoded twice.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(_)) => inner,
            _ => text.to_owned(),
        },
        Ok(_) => text.to_owned(),
        Err(_) => {
            let bare = without_fences(text);
            let mended = balanced(bare, cut_off);
            match mended.as_deref().map(serde_json::from_str) {
                Some(Ok(Value::Object(_))) => mended.unwrap_or_default(),
                _ => arguments.to_owned(),
            }
        }
    }
}

fn without_fences(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        return text;
    };
    let inside = inside.strip_prefix("json").unwrap_or(inside);
    inside.strip_suffix("```").unwrap_or(inside).trim()
}

/// Removes commas before closing brackets and closes the brackets that are open at the end.
fn balanced(text: &str, cut_off: bool) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 4);
    let mut open = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            out.push(c);
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                if open.pop() != Some(c) {
                    return None;
                }
                drop_comma(&mut out);
            }
            _ => {}
        }
        out.push(c);
    }
    if in_string || (cut_off && !open.is_empty()) {
        return None;
    }
    if !open.is_empty() {
        // A number or a literal at the end may be incomplete.
        if out.ends_with(char::is_alphanumeric) {
            return None;
        }
        drop_comma(&mut out);
        out.extend(open.into_iter().rev());
    }
    Some(out)
}

fn drop_comma(out: &mut String) {
    let kept = out.trim_end();
    if let Some(kept) = kept.strip_suffix(',') {
        out.truncate(kept.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mended_and_what_is_not() {
        let cases = [
            // (what it shows, arguments, cut off, mended; None: as it came)
            ("nothing", " ", false, Some("{}")),
            ("null", "null", false, Some("{}")),
            ("right", r#"{"x":1}"#, false, Some(r#"{"x":1}"#)),
            ("twice encoded", r#""{\"x\":1}""#, false, Some(r#"{"x":1}"#)),
            (
                "fences",
                "```json\n{\"x\":1}\n```",
                false,
                Some(r#"{"x":1}"#),
            ),
            ("commas", r#"{"x":[1,2,],}"#, false, Some(r#"{"x":[1,2]}"#)),
            (
                "a comma in a string",
                r#"{"x":",}",}"#,
                false,
                Some(r#"{"x":",}"}"#),
            ),
            (
                "open brackets",
                r#"{"x":["1""#,
                false,
                Some(r#"{"x":["1"]}"#),
            ),
            ("open brackets, cut off", r#"{"x":["1""#, true, None),
            ("an open number", r#"{"x":[1"#, false, None),
            ("an open string", r#"{"x":"rm -rf /tm"#, false, None),
            ("an open value", r#"{"x":"#, false, None),
            ("wrong brackets", r#"{"x":1]"#, false, None),
            ("no object", "[1,]", false, None),
            ("words", "let me see", false, None),
        ];
        for (what, arguments, cut_off, mended) in cases {
            assert_eq!(
                repair_json(arguments, cut_off),
                mended.unwrap_or(arguments),
                "{what}"
            );
        }
    }
}
