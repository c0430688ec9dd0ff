//! Replaces invisible characters, and those that change the display of others, with their code
//! points.
//!
//! A line with right-to-left overrides or invisible text would look different to the user than to
//! the model.

use serde_json::Value;

/// Returns the text with such characters replaced by `⟨U+202E⟩` and the like, and without terminal
/// escape sequences.
pub(super) fn visible(text: &str) -> String {
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\u{1b}' if rest.peek() == Some(&'[') => {
                // Skip colours and cursor movements, which contain no text.
                rest.next();
                while rest
                    .next_if(|letter| !('@'..='~').contains(letter))
                    .is_some()
                {}
                rest.next();
            }
            letter if is_plain(letter) => shown.push(letter),
            // Unicode has symbols for control characters.
            letter @ '\0'..='\u{1f}' => {
                let picture = char::from_u32(0x2400 + u32::from(letter));
                shown.push(picture.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            letter => shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter))),
        }
    }
    shown
}

/// Applies [`visible`] to all texts in a value, including keys.
pub(super) fn visible_value(value: &Value) -> Value {
    match value {
        Value::String(text) => visible(text).into(),
        Value::Array(values) => values.iter().map(visible_value).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (visible(name), visible_value(value)))
            .collect(),
        other => other.clone(),
    }
}

fn is_plain(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
        // The soft hyphen, Arabic and Mongolian marks, zero-width spaces, direction marks, word
        // joiners and tags. Emoji and some scripts need the zero-width joiners, so they are shown.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => {
            false
        }
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => false,
        '\u{e0000}'..='\u{e0fff}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misleads_is_spelled_out_and_the_rest_stays() {
        let cases = [
            ("plain\n\ttext", "plain\n\ttext"),
            ("dos\r\nends", "dos\nends"),
            ("progress\rdone", "progress␍done"),
            ("a\u{202e}b\u{2066}c", "a⟨U+202E⟩b⟨U+2066⟩c"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("cut off \u{1b}[", "cut off "),
            ("\u{e0041}\u{200b}\u{9b}", "⟨U+E0041⟩⟨U+200B⟩⟨U+009B⟩"),
            ("👩\u{200d}🔬 שלום", "👩\u{200d}🔬 שלום"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown, "{text:?}");
        }
    }

    #[test]
    fn values_are_cleaned_all_through() {
        let value = serde_json::json!({"a\u{202e}": ["\u{200b}", {"b": "\0"}], "n": 1});
        let clean = serde_json::json!({"a⟨U+202E⟩": ["⟨U+200B⟩", {"b": "␀"}], "n": 1});
        assert_eq!(visible_value(&value), clean);
    }
}
