use super::*;

/// Two ends in one process, that remember what was reported.
struct Ends {
    left: Peer,
    right: Peer,
    left_handler: Arc<Echo>,
}

#[derive(Default)]
struct Echo {
    problems: Mutex<Vec<String>>,
    notified: Mutex<Vec<String>>,
    dropped: Arc<Mutex<bool>>,
}

struct Pipe {
    to: Mutex<Option<WeakPeer>>,
}

impl MessageSink for Pipe {
    fn send(&self, message: RpcMessage) -> Result<(), PeerError> {
        let to = self.to.lock().unwrap().as_ref().and_then(WeakPeer::upgrade);
        match to {
            Some(peer) => {
                peer.receive_text(&message.to_line());
                Ok(())
            }
            None => Err(PeerError::Closed("gone".to_owned())),
        }
    }
}

impl PeerHandler for Echo {
    fn request<'a>(
        &'a self,
        _: &'a RpcId,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>> {
        struct Notes(Arc<Mutex<bool>>);
        impl Drop for Notes {
            fn drop(&mut self) {
                *self.0.lock().unwrap() = true;
            }
        }
        Box::pin(async move {
            match method {
                "echo" => Ok(params),
                "hang" => {
                    let _notes = Notes(Arc::clone(&self.dropped));
                    std::future::pending().await
                }
                other => Err(RpcError::no_method(other)),
            }
        })
    }

    fn notification(&self, method: &str, _: Value) {
        self.notified.lock().unwrap().push(method.to_owned());
    }

    fn problem(&self, what: &str) {
        self.problems.lock().unwrap().push(what.to_owned());
    }
}

fn ends() -> (Ends, Arc<Echo>) {
    let pipes = [(); 2].map(|()| {
        Arc::new(Pipe {
            to: Mutex::new(None),
        })
    });
    let handlers = [(); 2].map(|()| Arc::new(Echo::default()));
    let left = Peer::new(Arc::clone(&pipes[0]) as _, Arc::clone(&handlers[0]) as _);
    let right = Peer::new(Arc::clone(&pipes[1]) as _, Arc::clone(&handlers[1]) as _);
    *pipes[0].to.lock().unwrap() = Some(right.downgrade());
    *pipes[1].to.lock().unwrap() = Some(left.downgrade());
    let ends = Ends {
        left,
        right,
        left_handler: Arc::clone(&handlers[0]),
    };
    (ends, Arc::clone(&handlers[1]))
}

#[tokio::test]
async fn requests_are_answered_and_errors_are_errors() {
    let (ends, _) = ends();
    let params = json!({"b": 1, "a": [null]});
    let answer = ends.left.request("echo", params.clone()).await;
    assert_eq!(answer, Ok(params));
    let refused = ends.left.request("nothing", Value::Null).await;
    let Err(PeerError::Answered(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.code, code::METHOD_NOT_FOUND);
    assert_eq!(ends.left.waiting(), 0);
    assert_eq!(ends.right.waiting(), 0);
}

#[tokio::test]
async fn a_request_that_no_one_waits_for_is_called_off() {
    let (ends, other) = ends();
    let limit = RequestTimeout::new(Duration::from_millis(20));
    let slow = ends
        .left
        .request_within("hang", Value::Null, limit, |_| {})
        .await;
    assert_eq!(
        slow,
        Err(PeerError::TimedOut(
            "it did not answer within 20ms".to_owned()
        ))
    );
    haft_testkit::until("the other end was called off", || {
        *other.dropped.lock().unwrap()
    })
    .await;
    assert_eq!(ends.left.waiting(), 0);
}

#[tokio::test]
async fn progress_is_reported_and_keeps_a_call_alive() {
    let (ends, _) = ends();
    let left = ends.left.clone();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    let calling = tokio::spawn(async move {
        let params = json!({"_meta": {"progressToken": null}});
        let limit = RequestTimeout {
            whole: None,
            idle: Some(Duration::from_secs(30)),
        };
        left.request_within("hang", params, limit, |report| {
            seen.lock().unwrap().push(report["progress"].clone());
        })
        .await
    });
    haft_testkit::until("calls wait", || ends.left.waiting() == 1).await;
    for step in 1..3 {
        let params = json!({"progressToken": 1, "progress": step});
        ends.right.notify("notifications/progress", params).unwrap();
    }
    haft_testkit::until("both reports came", || reports.lock().unwrap().len() == 2).await;
    ends.left.close("enough");
    let ended = calling.await.unwrap();
    assert_eq!(ended, Err(PeerError::Closed("enough".to_owned())));
    let late = ends.left.request("echo", Value::Null).await;
    assert_eq!(late, Err(PeerError::Closed("enough".to_owned())));
}

#[tokio::test]
async fn what_is_no_message_and_wrong_ids_are_reported_and_harm_nothing() {
    let (ends, _) = ends();
    ends.left.receive_text(b"hello");
    ends.left
        .receive_text(br#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    ends.left
        .receive_text(br#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    ends.left
        .receive_text(br#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    assert_eq!(
        *ends.left_handler.notified.lock().unwrap(),
        ["notifications/x"]
    );
    insta::assert_snapshot!(ends.left_handler.problems.lock().unwrap().join("\n"), @r#"
    it sent an invalid message: no JSON: expected value at line 1 column 1
    it answered the unknown request 77
    it answered the unknown request 1
    "#);
    assert!(ends.left.request("echo", json!(1)).await.is_ok());
}

#[tokio::test]
async fn a_message_that_is_too_long_fails_the_call_that_it_answers() {
    let (ends, _) = ends();
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let left = ends.left.clone();
            tokio::spawn(async move { left.request("hang", Value::Null).await })
        })
        .collect();
    haft_testkit::until("calls wait", || ends.left.waiting() == 2).await;
    ends.left
        .on_oversized(br#"{"result":{"x":"y"},"id": 2}"#, 99, 10);
    haft_testkit::until("calls wait", || ends.left.waiting() == 1).await;
    ends.left.on_oversized(b"no id", 99, 10);
    for call in calls {
        let why = "it sent a message of 99 bytes; the limit is 10".to_owned();
        assert_eq!(call.await.unwrap(), Err(PeerError::Transport(why)));
    }
}
