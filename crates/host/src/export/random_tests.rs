//! Transcripts that no program wrote: whatever stands in one, it is exported as text, and nothing of it is markup.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;

/// What must never stand on a page as it is.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--";

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,8}",
        any::<String>(),
        Just(HOSTILE.to_owned()),
        Just("`````\n~~~\n> # [x](javascript:alert(1)) \u{202e}".to_owned()),
        Just("2026-01-31T12:00:00.000Z".to_owned()),
    ]
}

/// Ids of which many lines have the same: chains have circles.
fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (0..8_u8).prop_map(|n| json!(format!("00000000-0000-4000-8000-00000000000{n}"))),
        1 => word().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![
            word(),
            Just("type".to_owned()),
            Just("structuredPatch".to_owned()),
            Just("lines".to_owned()),
            Just("files".to_owned()),
            Just("content".to_owned()),
        ];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        word().prop_map(|text| json!({"type": "text", "text": text})),
        word().prop_map(|text| json!({"type": "thinking", "thinking": text, "signature": text})),
        (id(), word(), anything()).prop_map(
            |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})
        ),
        (id(), anything(), any::<bool>()).prop_map(|(id, content, is_error)| json!({
            "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error,
        })),
        (word(), word()).prop_map(|(kind, data)| json!({
            "type": "image", "source": {"type": "base64", "media_type": kind, "data": data},
        })),
        anything(),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        4 => Just("user".to_owned()),
        4 => Just("assistant".to_owned()),
        1 => Just("system".to_owned()),
        1 => Just("haft-started".to_owned()),
        1 => Just("haft-reply".to_owned()),
        1 => Just("summary".to_owned()),
        1 => word(),
    ];
    let content = prop_oneof![
        3 => vec(block(), 0..5).prop_map(Value::from),
        1 => word().prop_map(Value::from),
        1 => anything(),
    ];
    let said = (kind, id(), id(), content, anything(), anything(), word()).prop_map(
        |(kind, uuid, parent, content, usage, result, time)| {
            let message = json!({"id": uuid, "role": kind, "model": time, "content": content, "usage": usage});
            let line = json!({
                "type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": time, "message": message,
                "requestId": parent, "toolUseId": parent, "toolUseResult": result, "cwd": time, "usage": usage,
            });
            line.to_string()
        },
    );
    prop_oneof![
        12 => said,
        1 => anything().prop_map(|value| value.to_string()),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_transcript_holds_is_exported_as_text(lines in vec(line(), 1..24)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0190c0de-0000-7000-8000-000000000001.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        let prices = Prices::listed();
        match render(&path, ExportFormat::Html, &prices) {
            Ok(page) => {
                prop_assert!(!page.contains("<img src=x"));
                prop_assert!(!page.contains(HOSTILE));
            }
            Err(error) => prop_assert!(matches!(error, ExportError::Empty), "{}", error),
        }
        if let Ok(text) = render(&path, ExportFormat::Markdown, &prices) {
            let hides = text.contains('\u{202e}');
            prop_assert!(!hides);
        }
        // The end of it, as a session that is taken up shows it.
        let shown = crate::exchanges(&path, 3);
        prop_assert!(shown.is_ok_and(|shown| shown.shown.len() <= 3));
    }
}
