//! Servers at an address that this test makes up, honest or not.

use std::sync::{Arc, Mutex};

use haft_contract::{HttpTransport, SecretFile};
use haft_mcp::client::oauth::{LoginRequest, OAuthClient, TokenStore, login};
use haft_models::{Http, HttpOptions};
use haft_testkit::http::{HttpFake, HttpReply, RecordedHttpRequest, header};
use serde_json::{Value, json};

use crate::setting::{Setting, text};

fn http() -> Arc<dyn HttpTransport> {
    Arc::new(Http::new(HttpOptions {
        proxies: false,
        ..HttpOptions::default()
    }))
}

fn json_reply(status: u16, body: &Value) -> HttpReply {
    HttpReply::new(status, "application/json", body.to_string())
}

fn answer(asked: &RecordedHttpRequest, result: &Value) -> HttpReply {
    json_reply(
        200,
        &json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}),
    )
}

/// What a server with one tool answers to everything but calls; `None`: that is for the test.
fn usual(asked: &RecordedHttpRequest) -> Option<HttpReply> {
    let result = match asked.body["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        Some("tools/call") => return None,
        Some("server/discover") => {
            let error = json!({"code": -32601, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": error});
            return Some(json_reply(200, &body));
        }
        Some(_) => return Some(HttpReply::new(202, "text/plain", "")),
        None if asked.target().0 == "DELETE" => return Some(HttpReply::new(200, "text/plain", "")),
        None => return None,
    };
    Some(answer(asked, &result))
}

async fn connected(kind: &str, url: &str, tokens: Option<Arc<TokenStore>>) -> Setting {
    let named = json!({"s": {"type": kind, "url": url}});
    let setting = Setting::with(&named, |options| {
        options.http = Some(http());
        options.tokens = tokens.map(|tokens| tokens as _);
    });
    setting.settled().await
}

#[tokio::test]
async fn a_server_with_events_that_wants_to_know_who_asks_needs_a_login() {
    for status in [401, 403] {
        let fake = HttpFake::start_with(move |_| {
            HttpReply::new(status, "text/plain", "who?")
                .header("www-authenticate", "Bearer scope=\"a\"")
        });
        let setting = connected("sse", &format!("{}/sse", fake.url), None).await;
        let (state, error) = setting.status("s");
        assert_eq!(state, "needs-auth", "{error:?}");
        let challenge = setting.servers.server("s").unwrap().challenge();
        assert_eq!(challenge.as_deref(), Some("Bearer scope=\"a\""));
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_taken_up_where_it_ended() {
    let calls: Arc<Mutex<Option<Value>>> = Arc::default();
    let id = Arc::clone(&calls);
    let fake = HttpFake::start_with(move |asked| {
        if let Some(reply) = usual(asked) {
            return reply;
        }
        let mut id = id.lock().unwrap();
        if asked.body["method"] == "tools/call" {
            *id = Some(asked.body["id"].clone());
            return HttpReply::events("id: e1\nretry: 10\ndata:\n\n");
        }
        match (header(&asked.head, "last-event-id"), &*id) {
            (Some("e1"), Some(_)) => HttpReply::events("id: e2\nretry: 10\ndata:\n\n"),
            (Some("e2"), Some(id)) => {
                let result = json!({"content": [{"type": "text", "text": "resumed"}]});
                let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
                HttpReply::events(format!("id: e3\ndata: {message}\n\n"))
            }
            // It has no stream of its own.
            _ => HttpReply::new(405, "text/plain", ""),
        }
    });
    let setting = connected("http", &format!("{}/mcp", fake.url), None).await;
    let said = setting.call("mcp__s__t", json!({})).await.unwrap();
    assert_eq!(text(&said), "resumed");
}

#[tokio::test]
async fn a_stream_that_never_brings_the_answer_is_given_up() {
    let fake = HttpFake::start_with(|asked| {
        usual(asked).unwrap_or_else(|| match asked.target().0 {
            "POST" => HttpReply::events("id: e1\nretry: 1\ndata:\n\n"),
            _ => HttpReply::events("id: e1\nretry: 1\ndata:\n\n"),
        })
    });
    let setting = connected("http", &format!("{}/mcp", fake.url), None).await;
    let failed = setting.call("mcp__s__t", json!({})).await.unwrap_err();
    assert!(
        failed.to_string().contains("ended before the answer came"),
        "{failed}"
    );
}

/// A store with a token for an address, as a login leaves it.
fn store(dir: &std::path::Path, url: &str) -> Arc<TokenStore> {
    let token = json!({url: {
        "access": "the-token", "refresh": null, "expires": null, "place": "https://a.example/token",
        "resource": url, "client": {"id": "us", "secret": null, "method": "none"},
    }});
    let file = SecretFile::McpTokens.below(dir);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, token.to_string()).unwrap();
    Arc::new(TokenStore::new(file, http()))
}

#[tokio::test]
async fn a_token_goes_to_its_server_and_to_no_other_place_it_points_to() {
    let thief = HttpFake::start_with(|_| HttpReply::new(200, "text/plain", ""));
    let elsewhere = format!("{}/mcp", thief.url);
    let fake = HttpFake::start_with(move |asked| match asked.target().1 {
        "/old" => HttpReply::new(307, "text/plain", "").header("location", "/mcp"),
        "/away" => HttpReply::new(307, "text/plain", "").header("location", &elsewhere),
        _ => usual(asked).unwrap_or_else(|| HttpReply::new(405, "text/plain", "")),
    });
    let dir = tempfile::tempdir().unwrap();
    let old = format!("{}/old", fake.url);
    let setting = connected("http", &old, Some(store(dir.path(), &old))).await;
    assert_eq!(setting.status("s").0, "connected");
    let all = fake.requests();
    let at_new = all.iter().find(|asked| asked.target().1 == "/mcp").unwrap();
    assert_eq!(
        header(&at_new.head, "authorization"),
        Some("Bearer the-token")
    );
    let away = format!("{}/away", fake.url);
    let setting = connected("http", &away, Some(store(dir.path(), &away))).await;
    let (state, error) = setting.status("s");
    assert_eq!(state, "failed");
    assert!(error.unwrap().contains("it redirects to"));
    assert!(thief.requests().is_empty());
}

/// What comes of a login at a server whose documents say this.
async fn login_with(
    documents: impl Fn(&str, &str) -> Option<Value> + Send + 'static,
) -> Result<(), String> {
    let own: Arc<Mutex<String>> = Arc::default();
    let base = Arc::clone(&own);
    let fake = HttpFake::start_with(move |asked| {
        let base = base.lock().unwrap().clone();
        match documents(&base, asked.target().1) {
            Some(document) => json_reply(200, &document),
            None => HttpReply::new(404, "text/plain", ""),
        }
    });
    own.lock().unwrap().clone_from(&fake.url);
    let dir = tempfile::tempdir().unwrap();
    let store = TokenStore::new(SecretFile::McpTokens.below(dir.path()), http());
    let url = format!("{}/mcp", fake.url);
    let challenge = format!("Bearer resource_metadata=\"{}/resource\"", fake.url);
    let request = LoginRequest {
        url: &url,
        challenge: &challenge,
        client: OAuthClient::default(),
        visit: &|address| panic!("{address} is not to be visited"),
    };
    let http = http();
    login(&*http, &store, request).await
}

const AUTHORITY: &str = "/.well-known/oauth-authorization-server";

#[tokio::test]
async fn documents_that_lead_elsewhere_end_a_login_before_anyone_visits_anything() {
    let resource = |base: &str, authority: &str| json!({"resource": format!("{base}/mcp"), "authorization_servers": [authority]});
    let authority = |base: &str| {
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
        })
    };
    type Documents = Box<dyn Fn(&str, &str) -> Option<Value> + Send>;
    let with = move |change: fn(&mut Value)| -> Documents {
        Box::new(move |base, path| match path {
            "/resource" => Some(resource(base, base)),
            AUTHORITY => {
                let mut document = authority(base);
                change(&mut document);
                Some(document)
            }
            _ => None,
        })
    };
    let cases: Vec<(&str, Documents, &str)> = vec![
        (
            "another resource",
            Box::new(move |_, path| {
                (path == "/resource")
                    .then(|| resource("https://other.example", "https://a.example"))
            }),
            "metadata describes",
        ),
        (
            "a file as issuer",
            Box::new(move |base, path| {
                (path == "/resource").then(|| resource(base, "file:///etc"))
            }),
            "is not HTTPS",
        ),
        (
            "an issuer without encryption",
            Box::new(move |base, path| {
                (path == "/resource").then(|| resource(base, "http://a.example"))
            }),
            "is not HTTPS",
        ),
        (
            "another issuer",
            with(|document| document["issuer"] = json!("https://attacker.example")),
            "another issuer",
        ),
        (
            "a file to visit",
            with(|document| document["authorization_endpoint"] = json!("file:///etc/passwd")),
            "is not HTTPS",
        ),
        (
            "a script to visit",
            with(|document| document["authorization_endpoint"] = json!("javascript:alert(1)")),
            "is not HTTPS",
        ),
        (
            "tokens without encryption",
            with(|document| document["token_endpoint"] = json!("http://a.example/token")),
            "is not HTTPS",
        ),
        (
            "no PKCE",
            with(|document| document["code_challenge_methods_supported"] = json!(["plain"])),
            "does not support PKCE",
        ),
    ];
    for (what, documents, expected) in cases {
        let failed = login_with(documents).await.unwrap_err();
        assert!(failed.contains(expected), "{what}: {failed}");
    }
}

#[tokio::test]
async fn a_challenge_that_points_to_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = TokenStore::new(SecretFile::McpTokens.below(dir.path()), http());
    for place in [
        "file:///etc/passwd",
        "http://a.example/x",
        "ftp://a",
        "http://evil.example\\@localhost/",
    ] {
        let request = LoginRequest {
            url: "http://127.0.0.1:1/mcp",
            challenge: &format!("Bearer resource_metadata=\"{place}\""),
            client: OAuthClient::default(),
            visit: &|address| panic!("{address} is not to be visited"),
        };
        assert!(login(&*http(), &store, request).await.is_err(), "{place}");
    }
}
