//! Encodes messages as protobuf and as JSON from a single description.
//!
//! A message is a list of fields, each with its number and its name. The caller omits fields with
//! default values, as both encodings allow. The JSON is that of OTLP: 64-bit integers are strings,
//! and ids are hexadecimal.

use serde_json::{Map, Value, json};

/// A message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProtoMessage(Vec<(u32, &'static str, ProtoField)>);

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProtoField {
    Text(String),
    /// An id: hexadecimal in JSON.
    Bytes(Vec<u8>),
    Bool(bool),
    Int(i64),
    /// A 32-bit number or an enum value.
    Small(u32),
    Fixed(u64),
    Double(f64),
    One(ProtoMessage),
    Many(Vec<ProtoMessage>),
    FixedList(Vec<u64>),
    DoubleList(Vec<f64>),
}

/// The wire types of protobuf.
const VARINT: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const LENGTH: u32 = 2;

impl ProtoMessage {
    pub(crate) fn with(mut self, number: u32, name: &'static str, field: ProtoField) -> Self {
        self.0.push((number, name, field));
        self
    }

    pub(crate) fn with_some(
        self,
        number: u32,
        name: &'static str,
        field: Option<ProtoField>,
    ) -> Self {
        match field {
            Some(field) => self.with(number, name, field),
            None => self,
        }
    }

    pub(crate) fn to_protobuf(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, _, field) in &self.0 {
            field.write(*number, &mut bytes);
        }
        bytes
    }

    pub(crate) fn to_json(&self) -> Value {
        let fields = self.0.iter();
        let fields = fields.map(|(_, name, field)| ((*name).to_owned(), field.to_json()));
        Value::Object(Map::from_iter(fields))
    }
}

impl ProtoField {
    fn write(&self, number: u32, bytes: &mut Vec<u8>) {
        match self {
            Self::Text(text) => write_bytes(number, text.as_bytes(), bytes),
            Self::Bytes(own) => write_bytes(number, own, bytes),
            Self::Bool(is) => {
                write_key(number, VARINT, bytes);
                bytes.push(u8::from(*is));
            }
            Self::Int(own) => {
                write_key(number, VARINT, bytes);
                write_varint(own.cast_unsigned(), bytes);
            }
            Self::Small(own) => {
                write_key(number, VARINT, bytes);
                write_varint(u64::from(*own), bytes);
            }
            Self::Fixed(own) => {
                write_key(number, EIGHT_BYTES, bytes);
                bytes.extend(own.to_le_bytes());
            }
            Self::Double(own) => {
                write_key(number, EIGHT_BYTES, bytes);
                bytes.extend(own.to_le_bytes());
            }
            Self::One(message) => write_bytes(number, &message.to_protobuf(), bytes),
            Self::Many(messages) => {
                for message in messages {
                    write_bytes(number, &message.to_protobuf(), bytes);
                }
            }
            Self::FixedList(list) => {
                let packed: Vec<u8> = list.iter().flat_map(|one| one.to_le_bytes()).collect();
                write_bytes(number, &packed, bytes);
            }
            Self::DoubleList(list) => {
                let packed: Vec<u8> = list.iter().flat_map(|one| one.to_le_bytes()).collect();
                write_bytes(number, &packed, bytes);
            }
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Bytes(bytes) => {
                let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                json!(digits.concat())
            }
            Self::Bool(is) => json!(is),
            Self::Int(own) => json!(own.to_string()),
            Self::Small(own) => json!(own),
            Self::Fixed(own) => json!(own.to_string()),
            Self::Double(own) => double(*own),
            Self::One(message) => message.to_json(),
            Self::Many(messages) => messages.iter().map(ProtoMessage::to_json).collect(),
            Self::FixedList(list) => list.iter().map(u64::to_string).collect(),
            Self::DoubleList(list) => list.iter().map(|one| double(*one)).collect(),
        }
    }
}

/// Returns the number as JSON. Infinities and NaN are strings, as in protobuf's JSON format.
fn double(number: f64) -> Value {
    match number {
        _ if number.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!(number),
    }
}

fn write_key(number: u32, kind: u32, bytes: &mut Vec<u8>) {
    write_varint(u64::from(number << 3 | kind), bytes);
}

fn write_varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn write_bytes(number: u32, own: &[u8], bytes: &mut Vec<u8>) {
    write_key(number, LENGTH, bytes);
    write_varint(own.len() as u64, bytes);
    bytes.extend_from_slice(own);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_encoding_guide() {
        // https://protobuf.dev/programming-guides/encoding
        let one = ProtoMessage::default().with(1, "a", ProtoField::Small(150));
        assert_eq!(one.to_protobuf(), [0x08, 0x96, 0x01]);
        let text = ProtoMessage::default().with(2, "b", ProtoField::Text("testing".to_owned()));
        assert_eq!(text.to_protobuf(), b"\x12\x07testing");
        let nested = ProtoMessage::default().with(3, "c", ProtoField::One(one));
        assert_eq!(nested.to_protobuf(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let negative = ProtoMessage::default().with(1, "a", ProtoField::Int(-1));
        let mut expected = vec![0x08];
        expected.extend([0xff; 9]);
        expected.push(0x01);
        assert_eq!(negative.to_protobuf(), expected);
        let high = ProtoMessage::default().with(16, "p", ProtoField::Bool(true));
        assert_eq!(high.to_protobuf(), [0x80, 0x01, 0x01]);
    }

    #[test]
    fn the_json_of_otlp() {
        let message = ProtoMessage::default()
            .with(1, "traceId", ProtoField::Bytes(vec![0, 0xab]))
            .with(2, "intValue", ProtoField::Int(-5))
            .with(3, "timeUnixNano", ProtoField::Fixed(u64::MAX))
            .with(4, "kind", ProtoField::Small(3))
            .with(5, "bounds", ProtoField::DoubleList(vec![0.5, f64::NAN]))
            .with(6, "counts", ProtoField::FixedList(vec![1]))
            .with(7, "spans", ProtoField::Many(vec![ProtoMessage::default()]));
        assert_eq!(
            message.to_json(),
            json!({"traceId": "00ab", "intValue": "-5", "timeUnixNano": "18446744073709551615",
                   "kind": 3, "bounds": [0.5, "NaN"], "counts": ["1"], "spans": [{}]})
        );
    }
}
