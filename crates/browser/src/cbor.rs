//! An encoder and decoder for the part of CBOR that Chromium uses. CBOR is Chromium's internal
//! message format. With JSON, Chromium would first convert each message to text, which takes longer
//! than everything else for a large response.
//!
//! Every map and list is wrapped in an envelope (tag 24, a byte string with a 32-bit length), so
//! that a message, and each part that is not needed, can be skipped without parsing.

use std::fmt;

use data_encoding::BASE64;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

/// Tag 24, then a byte string with a four-byte length.
const ENVELOPE: [u8; 3] = [0xd8, 0x18, 0x5a];
/// The length of an envelope header: the tag and the length.
pub(crate) const ENVELOPE_HEAD: usize = 7;
const MAP: u8 = 0xbf;
const LIST: u8 = 0x9f;
const END: u8 = 0xff;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const DOUBLE: u8 = 0xfb;
/// Integers below this are exact in a double.
const EXACT: f64 = 9e15;
/// Tag 22, before bytes that JSON would contain as base64.
const BINARY: u8 = 0xd6;
/// The maximum nesting depth. Chromium sends nothing deeper.
const MAX_DEPTH: usize = 320;

/// Encodes a command for Chromium.
pub(crate) fn write(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    write_value(value, &mut bytes);
    bytes
}

fn write_value(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Null => to.push(NULL),
        Value::Bool(false) => to.push(FALSE),
        Value::Bool(true) => to.push(TRUE),
        Value::String(text) => write_text(text, to),
        // Chromium supports only 32-bit integers.
        Value::Number(number) => match number.as_i64().and_then(|n| i32::try_from(n).ok()) {
            Some(number) if number < 0 => write_head(1, !number as u32, to),
            Some(number) => write_head(0, number as u32, to),
            None => {
                to.push(DOUBLE);
                to.extend_from_slice(&number.as_f64().unwrap_or_default().to_be_bytes());
            }
        },
        Value::Array(all) => write_enveloped(LIST, to, |to| {
            for one in all {
                write_value(one, to);
            }
        }),
        Value::Object(all) => write_enveloped(MAP, to, |to| {
            for (name, one) in all {
                write_text(name, to);
                write_value(one, to);
            }
        }),
    }
}

fn write_text(text: &str, to: &mut Vec<u8>) {
    // Outgoing messages are far smaller than four gigabytes.
    write_head(3, u32::try_from(text.len()).unwrap_or(u32::MAX), to);
    to.extend_from_slice(text.as_bytes());
}

fn write_head(kind: u8, number: u32, to: &mut Vec<u8>) {
    let kind = kind << 5;
    match number {
        0..24 => to.push(kind | number as u8),
        24..0x100 => to.extend_from_slice(&[kind | 24, number as u8]),
        0x100..0x1_0000 => {
            to.push(kind | 25);
            to.extend_from_slice(&(number as u16).to_be_bytes());
        }
        _ => {
            to.push(kind | 26);
            to.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn write_enveloped(first: u8, to: &mut Vec<u8>, inside: impl FnOnce(&mut Vec<u8>)) {
    to.extend_from_slice(&ENVELOPE);
    let at = to.len();
    to.extend_from_slice(&[0; 4]);
    to.push(first);
    inside(to);
    to.push(END);
    let length = u32::try_from(to.len() - at - 4).unwrap_or(u32::MAX);
    to[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Returns the length of a message with this header, including its envelope, or `None` if the
/// header is invalid.
pub(crate) fn message_length(head: [u8; ENVELOPE_HEAD]) -> Option<usize> {
    let [a, b, c, length @ ..] = head;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    ([a, b, c] == ENVELOPE).then_some(length + ENVELOPE_HEAD)
}

/// Returns the id of the call that a message answers, from the start of the message: Chromium
/// writes the id first.
pub(crate) fn id_of(start: &[u8]) -> Option<u64> {
    let rest = start.get(ENVELOPE_HEAD..)?;
    let rest = rest.strip_prefix(&[MAP, 0x62, b'i', b'd'])?;
    let mut reader = CborReader { rest, depth: 0 };
    let first = reader.byte().ok()?;
    (first >> 5 == 0).then(|| reader.number(first).ok())?
}

/// Decodes a message.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CborError> {
    T::deserialize(&mut CborReader {
        rest: bytes,
        depth: 0,
    })
}

/// The reason why a message cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CborError(String);

impl fmt::Display for CborError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for CborError {}

impl de::Error for CborError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

struct CborReader<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> CborReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CborError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| CborError("it ends in the middle".to_owned()))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, CborError> {
        Ok(self.take(1)?[0])
    }

    /// Returns the number that is encoded with an initial byte.
    fn number(&mut self, first: u8) -> Result<u64, CborError> {
        let wide = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        match first & 31 {
            number @ 0..24 => Ok(number.into()),
            width @ 24..=27 => self.take(1 << (width - 24)).map(wide),
            _ => Err(unexpected(first)),
        }
    }

    fn bytes(&mut self, first: u8) -> Result<&'a [u8], CborError> {
        let length = self.number(first)?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Skips the envelope header of a map or list, if any.
    fn open(&mut self) {
        if self.rest.starts_with(&ENVELOPE) {
            self.rest = self.rest.get(ENVELOPE_HEAD..).unwrap_or_default();
        }
    }

    fn text<V: Visitor<'a>>(&mut self, first: u8, visitor: V) -> Result<V::Value, CborError> {
        let bytes = self.bytes(first)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => visitor.visit_str(text),
            Err(_) => visitor.visit_string(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// Returns whether the next byte ends a map or list, and consumes it if so.
    fn is_end(&mut self) -> bool {
        let rest = self.rest.strip_prefix(&[END]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CborError>,
    ) -> Result<T, CborError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(CborError("it is nested too deeply".to_owned()));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }
}

fn unexpected(byte: u8) -> CborError {
    CborError(format!("the byte {byte:#04x} starts no value"))
}

impl<'de> de::Deserializer<'de> for &mut CborReader<'de> {
    type Error = CborError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CborError> {
        self.open();
        let first = self.byte()?;
        match (first, first >> 5) {
            (_, 0) => visitor.visit_u64(self.number(first)?),
            (_, 1) => {
                let number = i64::try_from(self.number(first)?);
                visitor.visit_i64(!number.map_err(|_| unexpected(first))?)
            }
            // A string of 16-bit units in little-endian order.
            (_, 2) => {
                let units = self.bytes(first)?.chunks_exact(2);
                let units: Vec<u16> = units
                    .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
                    .collect();
                visitor.visit_string(String::from_utf16_lossy(&units))
            }
            (_, 3) => self.text(first, visitor),
            (BINARY, _) => {
                let first = self.byte()?;
                visitor.visit_string(BASE64.encode(self.bytes(first)?))
            }
            (MAP, _) => self.nested(|reader| visitor.visit_map(CborEntries(reader))),
            (LIST, _) => self.nested(|reader| visitor.visit_seq(CborEntries(reader))),
            (FALSE, _) => visitor.visit_bool(false),
            (TRUE, _) => visitor.visit_bool(true),
            (NULL, _) => visitor.visit_unit(),
            (DOUBLE, _) => {
                let bytes = self.take(8)?.try_into().unwrap_or_default();
                let number = f64::from_be_bytes(bytes);
                // All numbers from scripts are doubles: integral ones are decoded as integers.
                if number.fract() == 0.0 && number.abs() < EXACT {
                    visitor.visit_i64(number as i64)
                } else {
                    visitor.visit_f64(number)
                }
            }
            _ => Err(unexpected(first)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CborError> {
        match self.rest.first() {
            Some(&NULL) => {
                self.byte()?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, CborError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, CborError> {
        let name: String = de::Deserialize::deserialize(self)?;
        visitor.visit_enum(name.into_deserializer())
    }

    /// A value in an envelope is skipped in one step.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, CborError> {
        match self.rest.first_chunk().copied().and_then(message_length) {
            Some(length) => {
                self.take(length)?;
                visitor.visit_unit()
            }
            None => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// The entries of a map or list, up to its end.
struct CborEntries<'r, 'de>(&'r mut CborReader<'de>);

impl<'de> MapAccess<'de> for CborEntries<'_, 'de> {
    type Error = CborError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, CborError> {
        if self.0.is_end() {
            return Ok(None);
        }
        seed.deserialize(&mut *self.0).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, CborError> {
        seed.deserialize(&mut *self.0)
    }
}

impl<'de> SeqAccess<'de> for CborEntries<'_, 'de> {
    type Error = CborError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, CborError> {
        if self.0.is_end() {
            return Ok(None);
        }
        seed.deserialize(&mut *self.0).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>()
                .prop_filter("neither whole nor none", |number| {
                    number.is_finite() && number.fract() != 0.0
                })
                .prop_map(Value::from),
            ".{0,300}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::hash_map(".{0,8}", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any_value()) {
            let bytes = write(&value);
            prop_assert_eq!(read::<Value>(&bytes), Ok(value.clone()));
            if value.is_object() || value.is_array() {
                let head = *bytes.first_chunk().unwrap();
                prop_assert_eq!(message_length(head), Some(bytes.len()));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(read::<Value>(&bytes));
        }

        #[test]
        fn a_message_that_was_cut_off_is_refused(value in any_value(), cut in 1_usize..50) {
            let bytes = write(&json!({"a": value}));
            let cut = bytes.len().saturating_sub(cut);
            prop_assert!(read::<Value>(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn whole_numbers_stay_whole() {
        for (number, text) in [
            (2.0, "2"),
            (-7.0, "-7"),
            (2.5, "2.5"),
            (1e300, "1e+300"),
            (-0.0, "0"),
        ] {
            let mut bytes = vec![DOUBLE];
            bytes.extend_from_slice(&f64::to_be_bytes(number));
            assert_eq!(read::<Value>(&bytes).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_only_chromium_writes() {
        // {"t": "é" in units of sixteen bits, "b": the bytes 1 2 3}
        let mut bytes = vec![MAP, 0x61, b't', 0x42, 0xe9, 0x00];
        bytes.extend_from_slice(&[0x61, b'b', BINARY, 0x43, 1, 2, 3, END]);
        let read = read::<Value>(&bytes);
        assert_eq!(read, Ok(json!({"t": "é", "b": "AQID"})));
    }

    #[test]
    fn what_is_not_wanted_is_passed_over() {
        #[derive(Deserialize, Debug, PartialEq)]
        struct Wanted {
            id: u64,
            kind: Option<Kind>,
        }
        #[derive(Deserialize, Debug, PartialEq)]
        #[serde(rename_all = "camelCase")]
        enum Kind {
            PageLoad,
        }
        let value =
            json!({"other": {"a": [1, {"b": -2}]}, "text": "x", "id": 7, "kind": "pageLoad"});
        let kind = Some(Kind::PageLoad);
        assert_eq!(read(&write(&value)), Ok(Wanted { id: 7, kind }));
        let value = json!({"id": 8, "kind": null});
        assert_eq!(read(&write(&value)), Ok(Wanted { id: 8, kind: None }));
    }

    #[test]
    fn nesting_has_an_end() {
        let bytes = [LIST].repeat(1_000_000);
        assert!(read::<Value>(&bytes).is_err());
    }
}
