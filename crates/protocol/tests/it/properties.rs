//! Any value comes back as it went.

use std::borrow::Cow;

use haft_contract::{Content, RuleOffer};
use haft_protocol::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 4.0)),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((".{0,5}", inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    let entries = prop::collection::vec(("[a-z]{1,5}", any_json()), 0..3);
    entries.prop_map(|entries| entries.into_iter().collect())
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    ".{0,12}".prop_map(Cow::Owned)
}

fn maybe_text() -> impl Strategy<Value = Option<Cow<'static, str>>> {
    prop::option::of(text())
}

fn id() -> impl Strategy<Value = Option<WireId>> {
    let usual = any::<u128>().prop_map(|bits| WireId::from(uuid::Uuid::from_u128(bits)));
    prop::option::of(prop_oneof![usual, "[a-z]{0,5}".prop_map(WireId::from)])
}

fn block() -> impl Strategy<Value = AssistantBlock<'static>> {
    prop_oneof![
        text().prop_map(|text| AssistantBlock::Text { text }),
        (text(), text(), prop::collection::vec(any_json(), 0..2)).prop_map(
            |(thinking, signature, details)| AssistantBlock::Thinking {
                thinking,
                signature,
                details: details.into(),
            }
        ),
        text().prop_map(|data| AssistantBlock::RedactedThinking { data }),
        (text(), text(), any_object(), any_object()).prop_map(|(id, name, input, extra)| {
            AssistantBlock::ToolUse {
                id,
                name,
                input: Cow::Owned(input.into()),
                extra: Cow::Owned(extra),
            }
        }),
    ]
}

fn usage() -> impl Strategy<Value = UsageReport<'static>> {
    (any::<u64>(), any::<u64>(), prop::option::of(any::<u64>())).prop_map(
        |(input_tokens, output_tokens, cache_read_input_tokens)| UsageReport {
            input_tokens,
            output_tokens,
            cache_read_input_tokens,
            ..UsageReport::default()
        },
    )
}

fn reply() -> impl Strategy<Value = ApiMessage<'static>> {
    let blocks = prop::collection::vec(block(), 0..3);
    (maybe_text(), text(), blocks, maybe_text(), usage()).prop_map(
        |(id, model, content, stop_reason, usage)| ApiMessage {
            id,
            kind: MessageKind::Message,
            role: MessageRole::Assistant,
            model,
            content,
            stop_reason,
            stop_sequence: None,
            usage,
        },
    )
}

fn stream_event() -> impl Strategy<Value = StreamEvent<'static>> {
    let delta = prop_oneof![
        text().prop_map(|text| BlockDelta::TextDelta { text }),
        text().prop_map(|thinking| BlockDelta::ThinkingDelta { thinking }),
        text().prop_map(|signature| BlockDelta::SignatureDelta { signature }),
        text().prop_map(|partial_json| BlockDelta::InputJsonDelta { partial_json }),
    ];
    prop_oneof![
        reply().prop_map(|message| StreamEvent::MessageStart { message }),
        (any::<usize>(), block()).prop_map(|(index, content_block)| {
            StreamEvent::ContentBlockStart {
                index,
                content_block,
            }
        }),
        (any::<usize>(), delta)
            .prop_map(|(index, delta)| StreamEvent::ContentBlockDelta { index, delta }),
        any::<usize>().prop_map(|index| StreamEvent::ContentBlockStop { index }),
        (maybe_text(), usage()).prop_map(|(stop_reason, usage)| StreamEvent::MessageDelta {
            delta: StopDelta {
                stop_reason,
                stop_sequence: None,
            },
            usage,
        }),
        Just(StreamEvent::MessageStop),
    ]
}

fn session_message() -> impl Strategy<Value = SessionMessage<'static>> {
    let pieces = (stream_event(), maybe_text(), id(), id()).prop_map(
        |(event, parent_tool_use_id, session_id, uuid)| {
            SessionMessage::StreamEvent(StreamEventMessage {
                event,
                parent_tool_use_id,
                session_id,
                uuid,
            })
        },
    );
    let replies = (reply(), maybe_text(), maybe_text(), id(), id()).prop_map(
        |(message, error, agent_id, session_id, uuid)| {
            SessionMessage::Assistant(AssistantMessage {
                error,
                agent_id,
                session_id,
                uuid,
                ..AssistantMessage::new(message)
            })
        },
    );
    let results = (text(), ".{0,9}", any::<bool>(), any_json(), id()).prop_map(
        |(tool_use_id, text, synthetic, structured, uuid)| {
            let block = ToolResultBlock {
                tool_use_id,
                content: match synthetic {
                    true => ToolResultContent::Text(text.into()),
                    false => ToolResultContent::Blocks(vec![Content::text(text)].into()),
                },
                is_error: Some(synthetic),
            };
            let content = UserContent::Blocks(vec![UserBlock::ToolResult(block)]);
            SessionMessage::User(UserMessage {
                // A null is no result.
                tool_use_result: (!structured.is_null()).then_some(Cow::Owned(structured)),
                is_synthetic: synthetic,
                uuid,
                ..UserMessage::new(UserBody::new(content))
            })
        },
    );
    let questions = (text(), any_object(), any::<bool>()).prop_map(|(tool, input, offered)| {
        let rules = vec!["Bash(ls *)".to_owned(), "Read".to_owned()];
        let offers: Vec<RuleOffer> = match offered {
            true => RuleOffer::for_call(rules).into_iter().collect(),
            false => Vec::new(),
        };
        let suggestions = PermissionUpdate::offered(&offers);
        let suggestions = serde_json::to_value(suggestions).unwrap();
        SessionMessage::ControlRequest(ControlRequest {
            request_id: "r".into(),
            request: SessionRequest::CanUseTool(Box::new(CanUseToolRequest {
                tool_name: tool.clone(),
                input: Cow::Owned(input.into()),
                permission_suggestions: serde_json::from_value(suggestions).unwrap(),
                blocked_path: None,
                decision_reason: Some(tool.clone()),
                decision_reason_type: None,
                tool_use_id: tool,
                agent_id: None,
                title: None,
                display_name: None,
                description: None,
            })),
        })
    });
    prop_oneof![pieces, replies, results, questions]
}

proptest! {
    #[test]
    fn what_a_session_says_comes_back(message in session_message()) {
        let line = serde_json::to_string(&message).unwrap();
        let read: SessionMessage<'_> = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }

    #[test]
    fn ids_are_given_once(message in session_message(), bits in any::<u128>()) {
        let mut stamped = message.clone();
        let uuid = uuid::Uuid::from_u128(bits);
        stamped.stamp(Some(uuid.into()), || uuid);
        let before = serde_json::to_value(&message).unwrap();
        let after = serde_json::to_value(&stamped).unwrap();
        for name in ["session_id", "uuid"] {
            match before.get(name) {
                Some(given) => prop_assert_eq!(&after[name], given),
                None if before["type"] == "control_request" => {
                    prop_assert_eq!(after.get(name), None);
                }
                None => prop_assert_eq!(&after[name], &json!(uuid)),
            }
        }
        let mut raw = SessionMessage::from(before);
        raw.stamp(Some(uuid.into()), || uuid);
        if !matches!(message, SessionMessage::ControlRequest(_)) {
            prop_assert_eq!(serde_json::to_value(&raw).unwrap(), after);
        }
    }

    #[test]
    fn any_line_is_read_and_a_message_as_its_keys_say(
        mut fields in any_object(),
        values in prop::collection::vec(any_json(), 7),
        kind in prop_oneof![
            Just("user"), Just("control_request"), Just("control_response"),
            Just("control_cancel_request"), Just("keep_alive"), Just("odd"),
        ],
    ) {
        let names = [
            "message", "uuid", "shouldQuery", "priority", "request", "response", "request_id",
        ];
        for (name, value) in names.into_iter().zip(values) {
            fields.insert(name.to_owned(), value);
        }
        fields.insert("type".to_owned(), kind.into());
        let line = Value::Object(fields);
        match ClientMessage::read(line.to_string().as_bytes()).unwrap() {
            ClientMessage::User(user) => {
                prop_assert_eq!(kind, "user");
                prop_assert_eq!(&user.message, &line["message"]);
                let id = line["uuid"].as_str().and_then(|id| id.parse::<uuid::Uuid>().ok());
                prop_assert_eq!(user.uuid.and_then(|id| id.uuid()), id);
                prop_assert_eq!(user.should_query == Some(false), line["shouldQuery"] == false);
                prop_assert_eq!(user.priority.as_deref(), line["priority"].as_str());
            }
            ClientMessage::ControlRequest(request) => {
                prop_assert_eq!(kind, "control_request");
                let id = serde_json::to_value(&request.request_id).unwrap();
                prop_assert_eq!(&id, &line["request_id"]);
                let subtype = line["request"]["subtype"].as_str().unwrap_or_default();
                prop_assert_eq!(request.request.subtype(), subtype);
            }
            ClientMessage::ControlResponse(answer) => {
                prop_assert_eq!(kind, "control_response");
                let id = line["response"]["request_id"].as_str().unwrap_or_default();
                prop_assert_eq!(answer.response.request_id().as_str(), id);
            }
            ClientMessage::ControlCancelRequest(_) => {
                prop_assert_eq!(kind, "control_cancel_request");
            }
            ClientMessage::KeepAlive => prop_assert_eq!(kind, "keep_alive"),
            ClientMessage::Other(kept) => {
                prop_assert_eq!(kind, "odd");
                prop_assert_eq!(kept, line);
            }
        }
    }

    #[test]
    fn a_client_says_what_it_meant(message in any_json(), id in id(), urgent in any::<bool>()) {
        let input = UserInput {
            message,
            uuid: id,
            priority: urgent.then(|| "now".to_owned()),
            should_query: Some(urgent),
            ..UserInput::default()
        };
        let message = ClientMessage::User(Box::new(input));
        let line = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(ClientMessage::read(line.as_bytes()).unwrap(), message);
    }
}
