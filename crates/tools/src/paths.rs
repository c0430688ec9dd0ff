//! Paths: default values for missing path parameters, the files that a path may open, and
//! formatting of paths, which are shortened where that is clear and never contain line breaks.

use std::{ffi::OsStr, fmt::Write, os::unix::ffi::OsStrExt, path::Path};

#[cfg(any(feature = "fs", feature = "search"))]
use haft_contract::{CallContext, PathConstraint, ToolError};
#[cfg(any(feature = "fs", feature = "search"))]
use serde_json::Value;

/// Returns the real path that a path of the call must resolve to, as determined by the permission
/// check; `None` without a check.
#[cfg(any(feature = "fs", feature = "search"))]
pub(crate) fn path_constraint(
    path: &Path,
    cx: &CallContext,
) -> Result<Option<std::path::PathBuf>, ToolError> {
    match cx.permissions.authorized.constraint_for(path) {
        PathConstraint::Anywhere => Ok(None),
        PathConstraint::Exactly(real) => Ok(Some(real)),
        PathConstraint::Nowhere => Err(ToolError::Failed(format!(
            "{} is not among the files that this call may access, so it was not opened.",
            path.display()
        ))),
    }
}

/// Formats a path as the model would write it: relative to `cwd` if it is inside, otherwise
/// unchanged.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => escaped(rest.as_os_str()),
        Err(_) => escaped(path.as_os_str()),
    }
}

/// Escapes control characters and bytes that are not UTF-8; nearly all names stay unchanged.
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

/// Escapes all non-ASCII characters like JSON: this shows invisible ones, and the model can send
/// the name back in this form.
#[cfg(feature = "fs")]
pub(crate) fn escape_json(name: &str) -> String {
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

/// Fills in a missing `path`, including the values that models send for "none", so that all later
/// steps see the directory.
#[cfg(any(feature = "fs", feature = "search"))]
pub(crate) fn fill_path(input: &mut Value) {
    let Some(input) = input.as_object_mut() else {
        return;
    };
    let given = match input.get("path") {
        None | Some(Value::Null) => false,
        Some(Value::String(path)) => !matches!(path.trim(), "" | "null" | "undefined"),
        Some(_) => true, // validation reports what it should have been
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
            assert_eq!(escape_json(name), expected);
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
