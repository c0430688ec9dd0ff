use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use haft_contract::{BoxFuture, CancellationToken, Content};
use haft_models::{
    Conversation, ErrorKind, Fallback, Model, ModelRequest, Recorder, Replay, RequestPrefix, Retry,
    RetryClock, RetryPolicy, ScriptedModel, SystemBlock, ToolResult,
};

use crate::ask::{Heard, Instant, ask, request, retrying};

const LOOK_AND_SAY: &str = r#"{"turns": [
    {"content": [
        {"type": "thinking", "thinking": "I should look.", "signature": "S"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "name": "Read", "input": {"file_path": "/p/a"}},
        {"type": "tool_use", "id": "b", "name": "Read", "input_text": "{\"file_pa"}
    ], "pieces": 3},
    {"error": {"kind": "overloaded", "message": "busy"}},
    {"content": [{"type": "text", "text": "Done."}], "usage": {"input": 5, "output": 2}}
]}"#;

/// Two turns: the calls of the first are answered with the given text.
async fn session(model: &dyn Model, result: &str) -> Vec<Heard> {
    let prefix = Arc::new(RequestPrefix::new(
        vec![SystemBlock::stable("Be good.")],
        vec![],
    ));
    let mut conversation = Conversation::new();
    conversation.user([Content::text("look")]);
    let first = ask(
        model,
        ModelRequest::new("m", prefix.clone(), conversation.history()),
    )
    .await;
    let calls = first.reply.calls.iter().cloned();
    let results = calls.map(|call| match call.into_use() {
        Ok(call) => ToolResult::text(call.id, result),
        Err(answer) => answer,
    });
    conversation
        .assistant(first.reply.message.clone(), results.collect())
        .unwrap();
    let second = ask(
        model,
        ModelRequest::new("m", prefix, conversation.history()),
    )
    .await;
    vec![first, second]
}

#[tokio::test]
async fn a_script_is_said_turn_by_turn() {
    let scripted = ScriptedModel::parse(LOOK_AND_SAY).unwrap();
    let (model, _) = retrying(scripted.clone());
    let heard = session(&model, "text").await;
    assert_eq!(heard[0].text(), "Let me see.");
    assert_eq!(
        heard[0].calls()[0],
        r#"toolu_0_2 Read {"file_path":"/p/a"}"#
    );
    assert!(heard[0].calls()[1].starts_with("b Read bad: the JSON is cut off"));
    assert_eq!(heard[1].notes(), ["retry 1 after 500ms: busy"]);
    assert_eq!(
        (heard[1].text().as_str(), heard[1].reply.usage.input),
        ("Done.", 5)
    );
    assert_eq!(scripted.requests().len(), 3);
    let over = ask(&model, request()).await;
    assert_eq!(
        over.error.unwrap().to_string(),
        "the script has ended: it has 3 turns"
    );
}

#[test]
fn a_script_that_is_wrong_says_where() {
    let error = ScriptedModel::parse(r#"{"turns": [{"contents": []}]}"#).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the script: unknown field `contents`"),
        "{text}"
    );
    let error = ScriptedModel::open("no/such/file".as_ref()).unwrap_err();
    assert!(
        error.to_string().starts_with("the script no/such/file: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_script_that_fails_after_a_call_is_cut_off_there() {
    let script = r#"{"turns": [{
        "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {"x": 1}}],
        "error": {"kind": "connection", "message": "lost"}
    }]}"#;
    let (model, _) = retrying(ScriptedModel::parse(script).unwrap());
    let heard = ask(&model, request()).await;
    assert_eq!(heard.notes(), ["cut off: lost"]);
    assert_eq!(heard.calls(), [r#"a Read {"x":1}"#]);
}

#[tokio::test]
async fn another_model_takes_over_from_one_that_is_overloaded_and_stays() {
    let busy = r#"{"error": {"kind": "overloaded", "message": "busy"}}"#;
    let script = format!(r#"{{"turns": [{busy}, {busy}, {busy}, {{"content": []}}]}}"#);
    let first = ScriptedModel::parse(&script).unwrap();
    let says = |text: &str| format!(r#"{{"content": [{{"type": "text", "text": "{text}"}}]}}"#);
    let second = ScriptedModel::parse(&format!(
        r#"{{"turns": [{}, {}]}}"#,
        says("one"),
        says("two")
    ))
    .unwrap();
    let policy = RetryPolicy {
        max_overloaded: Some(3),
        ..RetryPolicy::default()
    };
    let clock = Arc::new(Instant::default());
    let first_retried = Retry::with_clock(Arc::new(first.clone()), policy, clock.clone());
    let model = Fallback::new(Arc::new(first_retried)).then(Arc::new(second.clone()), "other");
    let heard = ask(&model, request()).await;
    let fallback = "fallback m to other";
    assert_eq!(heard.notes().last().map(String::as_str), Some(fallback));
    assert_eq!(
        (heard.text().as_str(), heard.reply.message.model.as_deref()),
        ("one", Some("other"))
    );
    assert_eq!(
        (clock.waits.lock().unwrap().len(), first.requests().len()),
        (2, 3)
    );
    assert_eq!(ask(&model, request()).await.text(), "two");
    assert_eq!(first.requests().len(), 3, "not asked again");
    assert_eq!(second.requests()[1].model, "other");
    model.reset();
    assert_eq!(ask(&model, request()).await.error, None);
    assert_eq!(first.requests().len(), 4);
}

#[tokio::test]
async fn another_model_does_not_help_against_a_wrong_key_nor_after_a_call() {
    let other = || Arc::new(ScriptedModel::parse(r#"{"turns": [{"content": []}]}"#).unwrap());
    let wrong_key =
        ScriptedModel::parse(r#"{"turns": [{"error": {"kind": "auth", "message": "no"}}]}"#)
            .unwrap();
    let model = Fallback::new(Arc::new(wrong_key)).then(other(), "other");
    assert_eq!(ask(&model, request()).await.kind(), Some(ErrorKind::Auth));
    let late = r#"{"turns": [{
        "content": [{"type": "tool_use", "name": "Read", "input": {"x": 1}}],
        "error": {"kind": "overloaded", "message": "busy"}
    }]}"#;
    let model = Fallback::new(Arc::new(ScriptedModel::parse(late).unwrap())).then(other(), "other");
    let heard = ask(&model, request()).await;
    assert_eq!(
        (heard.kind(), heard.handed_out.len()),
        (Some(ErrorKind::Overloaded), 1)
    );
}

/// A recorded session, and the path of its recording.
async fn recorded(dir: &tempfile::TempDir) -> (Vec<Heard>, std::path::PathBuf) {
    let path = dir.path().join("session.jsonl");
    let scripted = Arc::new(ScriptedModel::parse(LOOK_AND_SAY).unwrap());
    let recorder = Recorder::create(scripted, &path).unwrap();
    let (model, _) = retrying(recorder);
    (session(&model, "text").await, path)
}

#[test]
fn only_the_owner_can_read_a_recording_also_over_an_existing_file() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let scripted = Arc::new(ScriptedModel::parse(LOOK_AND_SAY).unwrap());
    let _recorder = Recorder::create(scripted, &path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_recording_says_the_same_again() {
    let dir = tempfile::tempdir().unwrap();
    let (heard, path) = recorded(&dir).await;
    let replay = Replay::open(&path).unwrap().strict();
    let (model, _) = retrying(replay.clone());
    let again = session(&model, "text").await;
    for (heard, again) in heard.iter().zip(&again) {
        assert_eq!(
            (&heard.events, &heard.reply, &heard.error),
            (&again.events, &again.reply, &again.error)
        );
    }
    assert_eq!((replay.divergences(), replay.unused()), (vec![], 0));
    let over = ask(&model, request()).await;
    assert_eq!(
        over.error.unwrap().to_string(),
        "the recording has ended: it has 3 requests"
    );
}

#[tokio::test]
async fn what_a_recording_looks_like() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = recorded(&dir).await;
    let text = std::fs::read_to_string(&path).unwrap();
    let events = |line: &&str| !line.starts_with(r#"{"event""#);
    let lines: Vec<&str> = text.lines().filter(events).collect();
    insta::assert_snapshot!(lines.join("\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_session_that_goes_otherwise_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = recorded(&dir).await;
    let replay = Replay::open(&path).unwrap();
    let (model, _) = retrying(replay.clone());
    let again = session(&model, "other text").await;
    assert_eq!(again[1].text(), "Done.", "it goes on");
    let divergences: Vec<String> = replay
        .divergences()
        .iter()
        .map(ToString::to_string)
        .collect();
    insta::assert_snapshot!(divergences.join("\n"));

    let strict = Replay::open(&path).unwrap().strict();
    let (model, _) = retrying(strict);
    let failed = session(&model, "other text").await;
    let error = failed[1].error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Local);
    assert_eq!(error.to_string(), divergences[0]);
}

#[tokio::test]
async fn requests_of_a_recording_may_come_in_another_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.jsonl");
    let asked = |text: &str| {
        let mut conversation = Conversation::new();
        conversation.user([Content::text(text)]);
        ModelRequest::new(
            "m",
            Arc::new(RequestPrefix::default()),
            conversation.history(),
        )
    };
    let says = |text: &str| format!(r#"{{"content": [{{"type": "text", "text": "{text}"}}]}}"#);
    let script = format!(r#"{{"turns": [{}, {}]}}"#, says("one"), says("two"));
    let recorder =
        Recorder::create(Arc::new(ScriptedModel::parse(&script).unwrap()), &path).unwrap();
    ask(&recorder, asked("1")).await;
    ask(&recorder, asked("2")).await;
    let replay = Replay::open(&path).unwrap();
    assert_eq!(ask(&replay, asked("2")).await.text(), "two");
    assert_eq!(ask(&replay, asked("1")).await.text(), "one");
    assert_eq!(replay.divergences(), []);
}

#[tokio::test]
async fn recordings_that_are_none_say_where() {
    let cases = [
        ("{\"version\":1}\nnot json\n", "line 2: "),
        (
            "{\"version\":9}\n",
            "line 1: version 9 is not known; this is 1",
        ),
        (
            "{\"version\":1}\n{\"request\":{\"request\":0,\"parts\":[3]}}\n",
            "line 2: a request that does not fit",
        ),
        (
            "{\"end\":{\"request\":4}}\n",
            "line 1: request 4 was not started",
        ),
    ];
    for (text, expected) in cases {
        let error = Replay::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let missing = Replay::open("no/such/file".as_ref()).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("the recording no/such/file: "),
        "{missing}"
    );
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_is_an_error_not_a_loss() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            match bytes.starts_with(b"{\"version") {
                true => Ok(bytes.len()),
                false => Err(std::io::Error::other("no space left")),
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let scripted = Arc::new(ScriptedModel::parse(LOOK_AND_SAY).unwrap());
    let recorder = Recorder::new(scripted, Box::new(Full)).unwrap();
    let error = ask(&recorder, request()).await.error.unwrap();
    assert_eq!(
        error.to_string(),
        "the recording cannot be written: no space left"
    );
}

#[tokio::test]
async fn being_told_to_stop_ends_the_wait_for_a_retry() {
    #[derive(Debug)]
    struct Never(CancellationToken);
    impl RetryClock for Never {
        fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
            // The one that waits is stopped.
            self.0.cancel();
            Box::pin(std::future::pending())
        }
        fn chance(&self) -> f64 {
            0.0
        }
    }
    let cancel = CancellationToken::new();
    let busy = ScriptedModel::parse(
        r#"{"turns": [{"error": {"kind": "overloaded", "message": "busy"}}]}"#,
    )
    .unwrap();
    let clock = Arc::new(Never(cancel.clone()));
    let model = Retry::with_clock(Arc::new(busy), RetryPolicy::default(), clock);
    let events: Vec<_> = model.stream(request(), cancel).collect().await;
    assert_eq!(events.len(), 2, "the note of the retry, then the end");
    assert_eq!(events[1].as_ref().unwrap_err().kind, ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_server_that_was_there_once_is_waited_for() {
    let refused = r#"{"error": {"kind": "refused", "message": "nobody listens"}}"#;
    let refusals = [refused; 11].join(", ");
    let script = format!(
        r#"{{"turns": [{{"content": [{{"type": "text", "text": "here"}}]}}, {refusals}]}}"#
    );
    let (model, clock) = retrying(ScriptedModel::parse(&script).unwrap());
    assert!(ask(&model, request()).await.error.is_none());
    let error = ask(&model, request()).await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert_eq!(clock.waits.lock().unwrap().len(), 10);
}
