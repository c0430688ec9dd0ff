//! Paths and other strings of the system in JSON.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A path or another string of bytes. In JSON it is a string, or `{"hex": …}` if it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OsBytes(pub Vec<u8>);

impl OsBytes {
    /// Returns the bytes as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

impl From<&Path> for OsBytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<OsBytes> for PathBuf {
    fn from(bytes: OsBytes) -> Self {
        OsString::from_vec(bytes.0).into()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenBytes<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes { hex: String },
}

impl Serialize for OsBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => WrittenBytes::Text(text.into()),
            Err(_) => WrittenBytes::Bytes {
                hex: self.0.iter().map(|byte| format!("{byte:02x}")).collect(),
            },
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for OsBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match WrittenBytes::deserialize(from)? {
            WrittenBytes::Text(text) => Ok(Self(text.into_owned().into_bytes())),
            WrittenBytes::Bytes { hex } => from_hex(&hex)
                .map(Self)
                .ok_or_else(|| D::Error::custom("bytes that are not hexadecimal")),
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_bytes_survive(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let json = serde_json::to_string(&OsBytes(bytes.clone())).unwrap();
            prop_assert_eq!(serde_json::from_str::<OsBytes>(&json).unwrap().0, bytes);
        }
    }

    #[test]
    fn text_stays_readable() {
        let json = serde_json::to_string(&OsBytes::from(Path::new("/p/ä"))).unwrap();
        assert_eq!(json, "\"/p/ä\"");
        let json = serde_json::to_string(&OsBytes(vec![b'/', 0xff])).unwrap();
        assert_eq!(json, r#"{"hex":"2fff"}"#);
        assert!(serde_json::from_str::<OsBytes>(r#"{"hex":"2f0"}"#).is_err());
    }
}
