//! Paths as `file:` addresses.

use std::path::{Path, PathBuf};

/// Returns the address of an absolute path. Bytes other than `/` and unreserved characters are
/// percent-encoded.
pub fn from_path(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// Returns the path of an address, or `None` if it is not the address of a local file or not valid
/// UTF-8.
pub fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let Some((&byte, more)) = left.split_first() {
        left = more;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = left
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        left = &left[2..];
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_servers_send_is_understood() {
        let cases = [
            ("file:///a/b.rs", Some("/a/b.rs")),
            ("file:///a%20b/%C3%A9", Some("/a b/é")),
            ("file://localhost/a", Some("/a")),
            (
                "file:///a/node_modules/%40types/x.d.ts",
                Some("/a/node_modules/@types/x.d.ts"),
            ),
            ("file://other/a", None),
            ("http://a/b", None),
            ("untitled:1", None),
            ("file:///%zz", None),
            ("file:///%", None),
        ];
        for (uri, expected) in cases {
            assert_eq!(to_path(uri).as_deref(), expected.map(Path::new), "{uri}");
        }
    }

    proptest! {
        #[test]
        fn a_path_comes_back(name in "/\\PC*") {
            prop_assert_eq!(to_path(&from_path(Path::new(&name))), Some(PathBuf::from(name)));
        }
    }
}
