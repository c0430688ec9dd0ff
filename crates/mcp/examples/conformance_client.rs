//! The client as the official conformance package drives it. The last argument is the address of a
//! server; the scenario is in `MCP_CONFORMANCE_SCENARIO`, and further settings are in
//! `MCP_CONFORMANCE_CONTEXT`.
//!
//! It connects, logs in if required (the package plays the browser), calls every tool and exits. It
//! exits with 1 if the server cannot be connected.

#![expect(
    clippy::print_stderr,
    reason = "errors go to the stderr of the test suite"
)]

use std::{env, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use haft_contract::{BoxFuture, HttpMethod, HttpRequest, HttpTransport, SecretFile};
use haft_mcp::{
    client::{
        ClientHost, ClientOptions, Connection, ElicitationAnswer, ServerElicitation, ServerScope,
        Servers, entries,
        oauth::{LoginRequest, OAuthClient, TokenStore, login},
    },
    peer::{PeerError, RequestTimeout},
};
use haft_models::{Http, HttpOptions};
use serde_json::{Map, Value, json};

/// The maximum number of logins.
const MAX_LOGINS: usize = 3;

/// The address of the package's client metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// A host that agrees to everything.
struct AcceptingHost;

impl ClientHost for AcceptingHost {
    fn warn(&self, text: &str) {
        eprintln!("{text}");
    }

    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn can_elicit(&self) -> bool {
        true
    }

    fn elicit(&self, _: ServerElicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Accept(json!({})) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let url = env::args().next_back().unwrap_or_default();
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    match run(&url, &context).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str, context: &Value) -> Result<(), String> {
    let http: Arc<dyn HttpTransport> = Arc::new(Http::new(HttpOptions {
        proxies: false,
        ..HttpOptions::default()
    }));
    let folder = env::temp_dir().join(format!("haft-conformance-{}", std::process::id()));
    let store = Arc::new(TokenStore::new(
        SecretFile::McpTokens.below(&folder),
        Arc::clone(&http),
    ));
    let named = json!({"server": {"type": "http", "url": url}});
    let done = session(url, context, &named, &http, &store).await;
    let _ = std::fs::remove_dir_all(folder); // files of this run only
    done
}

async fn session(
    url: &str,
    context: &Value,
    named: &Value,
    http: &Arc<dyn HttpTransport>,
    store: &Arc<TokenStore>,
) -> Result<(), String> {
    let empty = Map::new();
    let mut logins = 0;
    loop {
        let servers = Servers::default();
        servers.add(entries(
            named.as_object().unwrap_or(&empty),
            ServerScope::Given,
        ));
        let options = ClientOptions {
            http: Some(Arc::clone(http)),
            tokens: Some(Arc::clone(store) as _),
            connect: Duration::from_secs(20),
            ..ClientOptions::default()
        };
        servers.start(options, Arc::new(AcceptingHost), None);
        let server = servers.server("server")?;
        let refused = match server.connected().await {
            Err(why) => match server.challenge() {
                Some(challenge) => challenge,
                None => return Err(why),
            },
            Ok(connection) => {
                let refused = use_everything(&connection, context).await;
                match refused {
                    None => {
                        servers.close().await;
                        return Ok(());
                    }
                    Some(challenge) => challenge,
                }
            }
        };
        servers.close().await;
        if logins == MAX_LOGINS {
            return Err("it refuses again and again".to_owned());
        }
        logins += 1;
        let visits = Arc::clone(http);
        let request = LoginRequest {
            url,
            challenge: &refused,
            client: OAuthClient {
                id: context["client_id"].as_str().map(str::to_owned),
                secret: context["client_secret"].as_str().map(str::to_owned),
                port: None,
                document: Some(DOCUMENT.to_owned()),
            },
            visit: &move |address| {
                let (http, address) = (Arc::clone(&visits), address.to_owned());
                tokio::spawn(async move { browse(&*http, address).await });
            },
        };
        login(&**http, store, request).await?;
    }
}

/// Calls every tool and reads every resource and prompt. Returns the challenge if a call was
/// refused with one.
async fn use_everything(connection: &Connection, context: &Value) -> Option<String> {
    let patience = RequestTimeout::default();
    let tools = connection.list_tools(patience).await.unwrap_or_default();
    let mut calls: Vec<(String, Value)> = Vec::new();
    match context["toolCalls"].as_array() {
        Some(wanted) => calls.extend(wanted.iter().map(|call| {
            let name = call["name"].as_str().unwrap_or_default();
            (name.to_owned(), call["arguments"].clone())
        })),
        None => calls.extend(tools.iter().map(|tool| {
            let name = tool["name"].as_str().unwrap_or_default();
            // The schema of the first tool must be echoed unchanged.
            let arguments = match name {
                "json_schema_echo" => json!({"schema": tools[0]["inputSchema"]}),
                _ => arguments(tool),
            };
            (name.to_owned(), arguments)
        })),
    }
    for (name, arguments) in calls {
        let called = connection.call_tool(&name, &arguments, patience, |_| {});
        if let Err(PeerError::Unauthorized { challenge, .. }) = called.await {
            return Some(challenge);
        }
    }
    for resource in connection
        .list_resources(patience)
        .await
        .unwrap_or_default()
    {
        let uri = resource["uri"].as_str().unwrap_or_default();
        let _ = connection.read_resource(uri, patience).await; // the package checks the request
    }
    for prompt in connection.list_prompts(patience).await.unwrap_or_default() {
        let name = prompt["name"].as_str().unwrap_or_default();
        let _ = connection.get_prompt(name, &Map::new(), patience).await; // likewise
    }
    None
}

/// Plays the browser: follows redirects.
async fn browse(http: &dyn HttpTransport, mut address: String) {
    for _ in 0..5 {
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: address.clone(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let Ok(response) = http.open(request).await else {
            return;
        };
        match response.header("location") {
            Some(to) => address = to.to_owned(),
            None => return,
        }
    }
}

/// Returns a value of the right type for each required property.
fn arguments(tool: &Value) -> Value {
    let schema = &tool["inputSchema"];
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let filled = required.map(|name| {
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("text"),
        };
        (name.to_owned(), value)
    });
    Value::Object(filled.collect())
}
