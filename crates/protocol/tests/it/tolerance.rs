//! A field of the wrong type is absent, what is not known is passed over or kept, and only JSON that is
//! none fails.

use haft_protocol::{
    CallAnswer, ClientMessage, ClientRequest, DescribedTool, InitializeRequest, McpMessageReply,
    PermissionReply, PermissionUpdate, RawOrParsed, SessionMessage, UpdateDestination,
};
use serde_json::{Value, json};

fn request(body: Value) -> ClientRequest {
    let line = json!({"type": "control_request", "request_id": "r", "request": body});
    match ClientMessage::from(line) {
        ClientMessage::ControlRequest(request) => request.request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_that_is_no_json_says_where() {
    let error = ClientMessage::read(b"{\"type\":").unwrap_err();
    let expected = "EOF while parsing a value at line 1 column 8";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_of_no_known_type_is_kept_as_it_was_written() {
    let lines = [
        json!({"type": "odd", "x": [1]}),
        json!({"type": 5}),
        json!(["keep_alive"]),
        json!("user"),
        json!(null),
    ];
    for line in lines {
        assert_eq!(
            ClientMessage::from(line.clone()),
            ClientMessage::Other(line)
        );
    }
    let odd = json!({"type": "system", "subtype": "of_tomorrow", "x": 1});
    let read: SessionMessage<'_> = serde_json::from_value(odd.clone()).unwrap();
    assert_eq!(read, SessionMessage::Other(odd));
}

#[test]
fn a_message_says_a_text_or_blocks_and_else_why_not() {
    let said = |message: Value| match ClientMessage::from(message) {
        ClientMessage::User(user) => user.content().map_err(|error| error.to_string()),
        other => panic!("{other:?}"),
    };
    let with = |content: Value| json!({"type": "user", "message": {"content": content}});
    assert_eq!(said(with(json!("hi"))).unwrap()[0].as_text(), Some("hi"));
    let blocks = json!([{"type": "text", "text": "hi", "cache_control": {}}]);
    assert_eq!(said(with(blocks)).unwrap()[0].as_text(), Some("hi"));
    let no_content = "a message has no content: a text or a list of blocks";
    for none in [
        json!({"type": "user"}),
        json!({"type": "user", "message": ["hi"]}),
        with(json!({"text": "hi"})),
    ] {
        assert_eq!(said(none).unwrap_err(), no_content);
    }
    assert_eq!(
        said(with(json!([{"type": "nope"}]))).unwrap_err(),
        "a message has a block that cannot be taken: unknown variant `nope`, expected one of `text`, \
         `image`, `document`"
    );
    assert_eq!(
        said(with(json!([5]))).unwrap_err(),
        "a message has a block that cannot be taken: invalid type: integer `5`, expected internally \
         tagged enum Content"
    );
}

#[test]
fn a_request_that_is_not_known_still_has_its_name() {
    assert_eq!(request(json!({"subtype": "nope"})).subtype(), "nope");
    for nameless in [
        json!({"subtype": 5}),
        json!({}),
        json!(["interrupt"]),
        json!(null),
    ] {
        let request = request(nameless);
        assert!(matches!(request, ClientRequest::Other(_)));
        assert_eq!(request.subtype(), "");
    }
    let message = ClientMessage::from(json!({"type": "control_request", "request_id": 7}));
    let ClientMessage::ControlRequest(request) = message else {
        panic!("{message:?}");
    };
    assert_eq!(serde_json::to_value(&request.request_id).unwrap(), json!(7));
}

#[test]
fn fields_of_the_wrong_type_are_absent() {
    let subtypes = [
        "initialize",
        "interrupt",
        "set_permission_mode",
        "set_model",
        "set_max_thinking_tokens",
        "mcp_status",
        "mcp_reconnect",
        "mcp_toggle",
        "mcp_set_servers",
        "mcp_message",
        "get_context_usage",
        "rewind_files",
        "stop_task",
        "background_tasks",
        "cancel_async_message",
        "apply_flag_settings",
        "get_settings",
        "list_models",
        "list_permission_rules",
        "get_session_cost",
        "reload_skills",
        "reload_plugins",
        "seed_read_state",
        "rename_session",
        "get_binary_version",
    ];
    let fields = [
        "hooks",
        "agents",
        "sdkMcpServers",
        "jsonSchema",
        "systemPrompt",
        "title",
        "cancel_queued",
        "mode",
        "model",
        "max_thinking_tokens",
        "serverName",
        "enabled",
        "servers",
        "server_name",
        "message",
        "detail",
        "user_message_id",
        "dry_run",
        "task_id",
        "tool_use_id",
        "message_uuid",
        "settings",
        "path",
        "mtime",
    ];
    for subtype in subtypes {
        for value in [
            json!(null),
            json!(-1.5),
            json!([[1]]),
            json!({"a": 1}),
            json!("x"),
        ] {
            let mut body = json!({"subtype": subtype});
            for field in fields {
                body[field] = value.clone();
            }
            let read = request(body);
            assert_eq!(read.subtype(), subtype);
            assert!(
                !matches!(read, ClientRequest::Other(_)),
                "{subtype} {value}"
            );
        }
    }
    let ClientRequest::RewindFiles(rewind) =
        request(json!({"subtype": "rewind_files", "user_message_id": 5, "dry_run": "yes"}))
    else {
        panic!();
    };
    assert_eq!(
        (rewind.user_message_id.as_str(), rewind.dry_run),
        ("", false)
    );
    let ClientRequest::SetPermissionMode(set) = request(json!({"subtype": "set_permission_mode"}))
    else {
        panic!();
    };
    assert_eq!((set.mode.parsed(), set.mode.value()), (None, &Value::Null));
}

#[test]
fn hooks_of_a_client_keep_their_order_and_ids_that_are_none() {
    let ClientRequest::Initialize(initialize) = request(json!({
        "subtype": "initialize",
        "hooks": {
            "Stop": [{"matcher": null, "hookCallbackIds": ["a", 5], "timeout": "soon"}, 5],
            "PreToolUse": {"hookCallbackIds": ["b"]},
        },
        "systemPrompt": ["a", 5, "b"],
        "appendSystemPrompt": 5,
        "sdkMcpServers": ["calc", 5],
        "ofTomorrow": true,
    })) else {
        panic!();
    };
    let hooks = initialize.hooks.as_ref().unwrap();
    let names: Vec<&str> = hooks.0.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Stop", "PreToolUse"]);
    let [stop] = hooks.0[0].1.as_slice() else {
        panic!("{hooks:?}");
    };
    let ids: Vec<Option<&str>> = stop
        .hook_callback_ids
        .iter()
        .map(|id| id.parsed().map(String::as_str))
        .collect();
    assert_eq!(ids, [Some("a"), None]);
    assert_eq!((stop.timeout, hooks.0[1].1.len()), (None, 0));
    assert_eq!(
        initialize.system_prompt.as_ref().unwrap().joined(),
        "a\n\nb"
    );
    assert_eq!(initialize.append_system_prompt, None);
    assert_eq!(initialize.sdk_mcp_servers, ["calc"]);
    let nothing: InitializeRequest = serde_json::from_value(json!({"hooks": []})).unwrap();
    assert_eq!(nothing.hooks, Some(Default::default()));
}

#[test]
fn answers_that_are_neither_good_nor_bad_are_bad() {
    let answered = |response: Value| {
        let line = json!({"type": "control_response", "response": response});
        match ClientMessage::from(line) {
            ClientMessage::ControlResponse(answer) => {
                let id = answer.response.request_id().as_str().to_owned();
                (id, answer.response.into_result())
            }
            other => panic!("{other:?}"),
        }
    };
    let good = json!({"subtype": "success", "request_id": "a", "response": {"x": 1}});
    assert_eq!(answered(good), ("a".to_owned(), Ok(json!({"x": 1}))));
    let empty = json!({"subtype": "success", "request_id": "a"});
    assert_eq!(answered(empty), ("a".to_owned(), Ok(Value::Null)));
    let bad = json!({"subtype": "error", "request_id": "a", "error": "no"});
    assert_eq!(answered(bad), ("a".to_owned(), Err("no".to_owned())));
    let failed = || Err("it failed".to_owned());
    let odd = json!({"subtype": "perhaps", "request_id": "a", "error": 5});
    assert_eq!(answered(odd), ("a".to_owned(), failed()));
    assert_eq!(
        answered(json!(["success", "a", {}])),
        (String::new(), failed())
    );
}

#[test]
fn whatever_is_not_a_yes_is_none_and_updates_are_kept_as_written() {
    for odd in [
        json!("allow"),
        json!(["allow"]),
        json!({"behavior": 1}),
        json!(null),
    ] {
        assert_ne!(
            PermissionReply::from(odd).behavior.as_deref(),
            Some("allow")
        );
    }
    let update = json!({
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "ls"}, {"x": 1}, 5],
        "behavior": "odd",
        "destination": "localSettings",
        "of_tomorrow": true,
    });
    let reply = PermissionReply::from(json!({
        "behavior": "allow",
        "updatedInput": null,
        "updatedPermissions": [update, {"type": "odd"}],
    }));
    let [known, unknown] = reply.updated_permissions.as_slice() else {
        panic!("{reply:?}");
    };
    assert_eq!(known.value(), &update);
    let Some(PermissionUpdate::AddRules(rules)) = known.parsed() else {
        panic!("{known:?}");
    };
    assert_eq!((rules.rules.len(), rules.behavior), (1, None));
    assert_eq!(rules.destination, Some(UpdateDestination::LocalSettings));
    assert_eq!(unknown.parsed(), None);
    assert_eq!(unknown.value(), &json!({"type": "odd"}));
    assert_eq!(RawOrParsed::<u8>::from(json!("x")).into_value(), json!("x"));
}

#[test]
fn what_a_server_says_of_a_tool_or_a_call_may_be_odd() {
    let odd = DescribedTool::from(json!({
        "name": "add",
        "title": 5,
        "annotations": {"readOnlyHint": "yes", "title": "Adds"},
        "_meta": [true],
    }));
    let annotations = odd.annotations.unwrap();
    assert_eq!(
        (annotations.read_only_hint, odd.title, odd.meta),
        (None, None, None)
    );
    assert_eq!(annotations.title.as_deref(), Some("Adds"));

    let odd = CallAnswer::from(json!({"content": "text", "isError": "yes"}));
    assert_eq!((odd.blocks().len(), odd.is_error), (0, false));
    assert_eq!(odd.content, Some(json!("text")));
    assert_eq!(
        CallAnswer::from(json!([[], {}, true])),
        CallAnswer::default()
    );
    let null = CallAnswer::from(json!({"content": null}));
    assert_eq!(null.content, Some(Value::Null));

    for none in [
        json!("x"),
        json!({}),
        json!({"mcp_response": [1]}),
        json!(null),
    ] {
        assert_eq!(McpMessageReply::from(none).mcp_response, None);
    }
    for written in [
        json!({}),
        json!({"jsonrpc": "2.0", "id": 7, "result": {"tools": []}}),
    ] {
        let reply = McpMessageReply::from(json!({"mcp_response": written}));
        assert_eq!(reply.mcp_response.map(Value::Object), Some(written));
    }
}
