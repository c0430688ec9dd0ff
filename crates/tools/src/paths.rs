//! How a path that was left out is filled in, which file a path may open, and how paths are shown: short where
//! that is clear, and never able to break a line.

use std::{ffi::OsStr, fmt::Write, os::unix::ffi::OsStrExt, path::Path};

#[cfg(any(feature = "fs", feature = "search"))]
use haft_contract::{CallContext, MustLead, ToolError};
#[cfg(any(feature = "fs", feature = "search"))]
use serde_json::Value;

/// Where a path of the call must lead: what it led to when the call was judged. `None` where nothing was judged.
#[cfg(any(feature = "fs", feature = "search"))]
pub(crate) fn must_lead(
    path: &Path,
    cx: &CallContext,
) -> Result<Option<std::path::PathBuf>, ToolError> {
    match cx.permissions.judged.must_lead(path) {
        MustLead::Anywhere => Ok(None),
        MustLead::To(real) => Ok(Some(real)),
        MustLead::Nowhere => Err(ToolError::Failed(format!(
            "{} was not part of what this call was permitted, so it was not opened.",
            path.display()
        ))),
    }
}

/// The path as the model would write it: relative to `cwd` where it lies below, else as it is.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => escaped(rest.as_os_str()),
        Err(_) => escaped(path.as_os_str()),
    }
}

/// A name with control characters and bytes that are no UTF-8 made visible; nearly always the name
/// itself.
pub(crate) fn escaped(name: &OsStr) -> String {
    if let Some(plain) = name.to_str()
        && !plain.contains(char::is_control)
    {
        return plain.to_owned();
    }
    let mut text = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '\\' {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A name letter by letter, as JSON writes it: shows what cannot be seen, and can be sent back so.
#[cfg(feature = "fs")]
pub(crate) fn spelt(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_ascii() && !character.is_ascii_control() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Fills in a `path` that was left out, also in the ways models leave things out, so that everyone
/// after this sees which directory is meant.
#[cfg(any(feature = "fs", feature = "search"))]
pub(crate) fn fill_path(input: &mut Value) {
    let Some(input) = input.as_object_mut() else {
        return;
    };
    let given = match input.get("path") {
        None | Some(Value::Null) => false,
        Some(Value::String(path)) => !matches!(path.trim(), "" | "null" | "undefined"),
        Some(_) => true, // validation says what it should have been
    };
    if !given {
        input.insert("path".to_owned(), Value::from("."));
    }
}

#[cfg(test)]
mod tests {
    #[cfg(any(feature = "fs", feature = "search"))]
    use serde_json::json;

    use super::*;

    #[cfg(any(feature = "fs", feature = "search"))]
    #[test]
    fn a_path_left_out_is_the_working_directory() {
        let cases = [
            (json!({}), json!(".")),
            (json!({"path": null}), json!(".")),
            (json!({"path": ""}), json!(".")),
            (json!({"path": "undefined"}), json!(".")),
            (json!({"path": "null"}), json!(".")),
            (json!({"path": "src"}), json!("src")),
            (json!({"path": 3}), json!(3)),
        ];
        for (mut input, path) in cases {
            fill_path(&mut input);
            assert_eq!(input["path"], path);
        }
    }

    #[test]
    fn paths_are_short_inside_the_working_directory() {
        let cases = [
            ("/w/a/b.rs", "a/b.rs"),
            ("/w", "."),
            ("/w/../x", "../x"),
            ("/elsewhere/b.rs", "/elsewhere/b.rs"),
            ("/wide/b.rs", "/wide/b.rs"),
        ];
        for (path, expected) in cases {
            assert_eq!(shown(Path::new(path), Path::new("/w")), expected);
        }
    }

    #[cfg(feature = "fs")]
    #[test]
    fn a_name_is_spelt_as_json_writes_it() {
        let cases = [
            ("plain name.txt", "plain name.txt"),
            ("cafe\u{301}", r"cafe\u0301"),
            ("10.30\u{202f}AM", r"10.30\u202fAM"),
            ("\u{1f600}", r"\ud83d\ude00"),
        ];
        for (name, expected) in cases {
            assert_eq!(spelt(name), expected);
            let read: String = serde_json::from_str(&format!("\"{expected}\"")).unwrap();
            assert_eq!(read, name);
        }
    }

    #[test]
    fn a_name_cannot_break_the_line_it_stands_on() {
        let cases: [(&[u8], &str); 5] = [
            ("grün \\ ok".as_bytes(), "grün \\ ok"),
            (b"two\nlines", r"two\nlines"),
            (b"bell\x07", r"bell\u{7}"),
            (b"caf\xe9", r"caf\xe9"),
            (b"a\\b\xff", r"a\\b\xff"),
        ];
        for (name, expected) in cases {
            assert_eq!(escaped(OsStr::from_bytes(name)), expected);
        }
    }
}
