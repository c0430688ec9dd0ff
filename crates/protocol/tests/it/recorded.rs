//! Lines that programs have written: `session` by haft before it had these types, `golden_*` by the
//! specification.

use haft_protocol::{ClientMessage, ClientRequest, SessionMessage, SessionRequest, StreamEvent};
use serde_json::Value;

const SESSION: &str = include_str!("lines/session.jsonl");
const GOLDEN_SESSION: &str = include_str!("lines/golden_session.jsonl");
const GOLDEN_CLIENT: &str = include_str!("lines/golden_client.jsonl");

/// Is it understood down to its last part?
fn is_understood(message: &SessionMessage<'_>) -> bool {
    match message {
        SessionMessage::Other(_) => false,
        SessionMessage::ControlRequest(request) => {
            !matches!(request.request, SessionRequest::Other(_))
        }
        SessionMessage::StreamEvent(message) => !matches!(message.event, StreamEvent::Other(_)),
        _ => true,
    }
}

#[test]
fn what_a_session_has_written_is_read_and_written_the_same_to_the_byte() {
    let mut kinds = std::collections::BTreeSet::new();
    for line in SESSION.lines() {
        let message: SessionMessage<'_> = serde_json::from_str(line).unwrap();
        assert!(is_understood(&message), "{line}");
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
        let value: Value = serde_json::from_str(line).unwrap();
        let part = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        kinds.insert((part("type"), part("subtype")));
    }
    assert!(kinds.len() >= 22, "{kinds:?}");
}

#[test]
fn what_the_specification_shows_loses_nothing() {
    for line in GOLDEN_SESSION.lines() {
        let message: SessionMessage<'_> = serde_json::from_str(line).unwrap();
        assert!(is_understood(&message), "{line}");
        let expected: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
    }
    for line in GOLDEN_CLIENT.lines() {
        let message = ClientMessage::read(line.as_bytes()).unwrap();
        assert!(!matches!(message, ClientMessage::Other(_)), "{line}");
        if let ClientMessage::ControlRequest(request) = &message {
            assert!(!matches!(request.request, ClientRequest::Other(_)));
        }
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }
}
