//! Connections that end early, or that no one wants any more.

use super::*;

#[tokio::test]
async fn a_connection_lost_before_a_call_is_complete_is_retried() {
    let begin =
        event(json!({"type": "content_block_start", "index": 1, "content_block": tool("a")}));
    let half =
        event(json!({"type": "content_block_delta", "index": 1, "delta": json_delta(r#"{"x""#)}));
    let lost = start() + &say(0, "let me") + &begin + &half;
    let whole = start() + &call(0, "b", r#"{"x":1}"#) + &stop("tool_use");
    for broken in [
        HttpReply::events(lost.clone()),
        HttpReply::events(lost.clone()).then_cut(),
    ] {
        let server = HttpFake::start([broken, HttpReply::events(whole.clone())]);
        let (model, _) = retrying(anthropic(&server.url));
        let heard = ask(&model, request()).await;
        assert_eq!(heard.calls(), [r#"b Read {"x":1}"#]);
        assert_eq!(heard.notes()[0], "discard");
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_connection_lost_after_a_complete_call_runs_nothing_twice() {
    let begin =
        event(json!({"type": "content_block_start", "index": 2, "content_block": tool("b")}));
    let lost = start() + &say(0, "let me") + &call(1, "a", r#"{"x":1}"#) + &begin;
    let broken = [
        HttpReply::events(lost.clone()),
        HttpReply::events(lost.clone()).then_cut(),
        HttpReply::events(lost.clone() + &error("overloaded_error")),
    ];
    for answer in broken {
        let server = HttpFake::start([answer]);
        let (model, clock) = retrying(anthropic(&server.url));
        let heard = ask(&model, request()).await;
        assert_eq!(heard.calls(), [r#"a Read {"x":1}"#]);
        assert_eq!(
            (heard.text().as_str(), heard.error.as_ref()),
            ("let me", None)
        );
        assert_eq!(heard.reply.stop, Some(StopReason::CutOff));
        assert!(heard.reply.incomplete);
        assert_eq!(
            (server.requests().len(), clock.waits.lock().unwrap().len()),
            (1, 0)
        );
        // What is left can be answered and sent.
        let mut conversation = Conversation::new();
        conversation.user([Content::text("hello")]);
        conversation
            .assistant(heard.reply.message, vec![ToolResult::text("a", "ok")])
            .unwrap();
    }
}

#[tokio::test]
async fn cut_after_every_event_each_call_is_handed_out_at_most_once() {
    let events: Vec<String> =
        (start() + &say(0, "t") + &call(1, "a", "{}") + &call(2, "b", "{}") + &stop("tool_use"))
            .split_inclusive("\n\n")
            .map(str::to_owned)
            .collect();
    let whole = events.concat();
    for kept in 0..events.len() {
        let broken = HttpReply::events(events[..kept].concat()).then_cut();
        let server = HttpFake::start([broken, HttpReply::events(whole.clone())]);
        let (model, _) = retrying(anthropic(&server.url));
        let heard = ask(&model, request()).await;
        assert_eq!(heard.error, None, "{kept}");
        let mut ids: Vec<&str> = heard
            .handed_out
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        ids.dedup();
        assert!(matches!(ids[..], ["a"] | ["a", "b"]), "{kept}: {ids:?}");
        assert_eq!(heard.handed_out.len(), ids.len(), "{kept}");
    }
}

#[tokio::test]
async fn a_missing_goodbye_is_forgiven() {
    let stream = start() + &say(0, "ok") + &stop("end_turn");
    let without = stream.replace(
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        "",
    );
    assert_ne!(stream, without);
    for answer in [
        HttpReply::events(without.clone()),
        HttpReply::events(without).then_cut(),
    ] {
        let heard = heard(answer).await;
        assert_eq!((heard.error.as_ref(), heard.text().as_str()), (None, "ok"));
    }
}

#[tokio::test]
async fn a_reply_that_no_one_reads_any_more_closes_its_connection() {
    use futures_util::StreamExt;
    let whole = start() + &say(0, "ok") + &stop("end_turn");
    let silent = HttpReply::events(start()).then_silence();
    // It serves one connection after the other, so the second waits for the end of the first.
    let server = HttpFake::start([silent, HttpReply::events(whole)]);
    let model = anthropic(&server.url);
    let mut events = model.stream(request(), CancellationToken::new());
    assert!(matches!(
        events.next().await,
        Some(Ok(ModelEvent::Start { .. }))
    ));
    drop(events);
    assert_eq!(ask(&model, request()).await.text(), "ok");
}
