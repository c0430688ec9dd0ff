//! A session over a pipe.

use std::time::Duration;

use haft_contract::CancellationToken;
use haft_mcp::server::serve_lines;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex},
    task::JoinHandle,
};

use crate::fixture::Fixture;

pub(crate) const MAX_LENGTH: usize = 100_000;

/// A client that says what a test wants it to say.
pub(crate) struct RawClient {
    to: DuplexStream,
    from: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl RawClient {
    fn start() -> Self {
        let (to, input) = duplex(64 * 1024);
        let (output, from) = duplex(64 * 1024);
        let stop = CancellationToken::new();
        let server = tokio::spawn(async move {
            serve_lines(&Fixture, BufReader::new(input), output, MAX_LENGTH, stop).await
        });
        Self {
            to,
            from: BufReader::new(from).lines(),
            server,
        }
    }

    pub(crate) async fn greeted(revision: &str, capabilities: Value) -> Self {
        let mut client = Self::start();
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        });
        client
            .say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        assert_eq!(client.hear().await["id"], 0);
        client
            .say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.raw(&message.to_string()).await;
    }

    pub(crate) async fn raw(&mut self, text: &str) {
        self.to.write_all(text.as_bytes()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).await.unwrap();
    }

    /// Goes away without a word.
    pub(crate) async fn drop_now(self) {
        let Self { to, from, server } = self;
        drop((to, from));
        let ended = tokio::time::timeout(Duration::from_secs(20), server).await;
        // What could not be written is no error of the server's.
        let _ = ended.expect("it ends").unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.from.next_line()).await;
        let line = line.expect("an answer in time").unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        self.hear().await
    }

    /// Closes the input, and waits for the end.
    pub(crate) async fn end(self) {
        drop(self.to);
        drop(self.from);
        let ended = tokio::time::timeout(Duration::from_secs(20), self.server).await;
        ended.expect("it ends").unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_newest_revision_that_both_know_is_agreed_on() {
    let cases = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
    ];
    for (wanted, agreed) in cases {
        let mut client = RawClient::start();
        let answer = client
            .ask(1, "initialize", json!({"protocolVersion": wanted}))
            .await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{wanted}");
        assert_eq!(client.ask(2, "ping", json!({})).await["result"], json!({}));
        client.end().await;
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_answered_and_harms_nothing() {
    let mut client = RawClient::start();
    let early = client.ask(1, "tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32600);
    client.raw("{\"jsonrpc\": \"2.0\", ").await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    client.raw("[]").await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client
        .raw(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#)
        .await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client.raw(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#).await;
    client
        .raw(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#)
        .await;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"x","params":"{}"}}"#,
        "y".repeat(MAX_LENGTH)
    );
    client.raw(&long).await;
    let refused = client.hear().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(5), &json!(-32600))
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("100000"),
        "{refused}"
    );
    let answer = client
        .ask(6, "initialize", json!({"protocolVersion": "2025-06-18"}))
        .await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "fixture");
    let unknown = client.ask(7, "no/such", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let wrong = client.ask(8, "tools/list", json!([1])).await;
    assert_eq!(wrong["error"]["code"], -32602);
    client.end().await;
}

#[tokio::test]
async fn batches_are_taken_where_the_revision_has_them() {
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]);
    let mut client = RawClient::greeted("2025-03-26", json!({})).await;
    client.say(batch.clone()).await;
    let mut ids = [
        client.hear().await["id"].clone(),
        client.hear().await["id"].clone(),
    ];
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, [json!(1), json!(2)]);
    client.end().await;
    let mut client = RawClient::greeted("2025-06-18", json!({})).await;
    client.say(batch).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client.end().await;
}

#[tokio::test]
async fn one_call_is_cancelled_and_no_other() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    let call = |id: u64| {
        let params = json!({"name": "test_slow", "_meta": {"progressToken": id}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    client.say(call(1)).await;
    client.say(call(2)).await;
    for _ in 0..2 {
        assert_eq!(client.hear().await["method"], "notifications/progress");
    }
    let again = client.ask(1, "ping", json!({})).await;
    assert_eq!(again["error"]["code"], -32600, "an id that is in use");
    let params = json!({"requestId": 1, "reason": "changed my mind"});
    client
        .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    // The id of the cancelled call is free, its answer never comes, and the other still runs.
    let free = client.ask(1, "ping", json!({})).await;
    assert_eq!(free, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let busy = client.ask(2, "ping", json!({})).await;
    assert_eq!(busy["error"]["code"], -32600);
    client.end().await;
}

#[tokio::test]
async fn the_client_is_asked_and_its_answer_goes_to_the_call() {
    let mut client = RawClient::greeted("2025-11-25", json!({"elicitation": {}})).await;
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    client
        .say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        .await;
    let asked = client.hear().await;
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["message"], "Who?");
    let wrong = json!({"jsonrpc": "2.0", "id": "other", "result": {"action": "accept"}});
    client.say(wrong).await;
    let answer = json!({"action": "accept", "content": {"username": "me"}});
    client
        .say(json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}))
        .await;
    let ended = client.hear().await;
    assert_eq!(ended["id"], 1);
    assert!(
        ended["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("\"me\""),
        "{ended}"
    );
    client.end().await;
}

#[tokio::test]
async fn log_messages_are_those_that_the_client_wants() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    let wrong = client
        .ask(1, "logging/setLevel", json!({"level": "loud"}))
        .await;
    assert_eq!(wrong["error"]["code"], -32602);
    assert_eq!(
        client
            .ask(2, "logging/setLevel", json!({"level": "error"}))
            .await["result"],
        json!({})
    );
    let quiet = client
        .ask(3, "tools/call", json!({"name": "test_tool_with_logging"}))
        .await;
    assert_eq!(quiet["id"], 3);
    client
        .ask(4, "logging/setLevel", json!({"level": "debug"}))
        .await;
    let first = client
        .ask(5, "tools/call", json!({"name": "test_tool_with_logging"}))
        .await;
    assert_eq!(first["method"], "notifications/message");
    client.end().await;
}

#[tokio::test]
async fn requests_of_the_stateless_revision_need_no_greeting() {
    let mut client = RawClient::start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let found = client
        .ask(1, "server/discover", json!({"_meta": meta}))
        .await;
    assert_eq!(found["result"]["resultType"], "complete");
    assert_eq!(found["result"]["supportedVersions"][4], "2026-07-28");
    let name = "test_input_required_result_elicitation";
    let asked = client
        .ask(2, "tools/call", json!({"name": name, "_meta": meta}))
        .await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(
        result["inputRequests"]["user_name"]["method"],
        "elicitation/create"
    );
    let state = &result["requestState"];
    let answers = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
    // Another request cannot take it up.
    let other = json!({"name": "test_simple_text", "_meta": meta, "requestState": state, "inputResponses": answers});
    assert_eq!(
        client.ask(3, "tools/call", other).await["error"]["code"],
        -32602
    );
    let again =
        json!({"name": name, "_meta": meta, "requestState": state, "inputResponses": answers});
    let done = client.ask(4, "tools/call", again.clone()).await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!");
    // It is over.
    assert_eq!(
        client.ask(5, "tools/call", again).await["error"]["code"],
        -32602
    );
    client.end().await;
}

#[tokio::test]
async fn a_client_that_goes_in_the_middle_ends_the_session() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    let params = json!({"name": "test_slow", "_meta": {"progressToken": 1}});
    client
        .say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        .await;
    client.hear().await;
    client.end().await;
}
