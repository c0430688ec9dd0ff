//! The authorization code flow through the user's browser.

use std::time::Duration;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use futures_util::{StreamExt, stream::FuturesUnordered};
use haft_contract::HttpTransport;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    discovery::{AuthorizationServer, discover},
    form, post, problem,
    store::{StoredToken, TokenStore, now},
};

/// The time limit for the user to log in.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum number of connections that are read concurrently, each for up to [`CALLER_TIMEOUT`].
const MAX_CALLERS: usize = 256;
/// The timeout for a request to arrive.
const CALLER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum length of a redirect request in bytes.
const MAX_CALLBACK: usize = 16 * 1024;

/// The registration of haft with an authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthClient {
    /// The client id; `None` to register dynamically.
    pub id: Option<String>,
    /// The client secret.
    pub secret: Option<String>,
    /// The port of the callback address; `None` for any.
    pub port: Option<u16>,
    /// The address of a client metadata document, for authorization servers that accept it as
    /// client id.
    pub document: Option<String>,
}

impl OAuthClient {
    /// Reads the `oauth` field of an entry.
    pub fn from_entry(entry: &Value) -> Self {
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        Self {
            id: text("clientId"),
            secret: text("clientSecret"),
            port: entry["callbackPort"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok()),
            document: text("clientMetadataUrl"),
        }
    }
}

/// The parameters of a login.
pub struct LoginRequest<'a> {
    /// The address of the server.
    pub url: &'a str,
    /// The `WWW-Authenticate` header of its refusal.
    pub challenge: &'a str,
    /// The registration to use.
    pub client: OAuthClient,
    /// Opens an address in the user's browser.
    pub visit: &'a (dyn Fn(&str) + Send + Sync),
}

/// Logs in and stores the token.
pub async fn login(
    http: &dyn HttpTransport,
    store: &TokenStore,
    request: LoginRequest<'_>,
) -> Result<(), String> {
    let mut authority = discover(http, request.url, request.challenge).await?;
    // The scopes granted so far are requested again, so that none is lost.
    if form::parameter(request.challenge, "error").as_deref() == Some("insufficient_scope") {
        let before = store.scope(request.url, &authority.token);
        authority.scope = union(before, authority.scope);
    }
    let port = request.client.port.unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(|error| {
        format!("the redirect address 127.0.0.1:{port} cannot be opened: {error}")
    })?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let back = format!("http://localhost:{port}/callback");
    let us = register(http, &authority, &request.client, &back).await?;
    let (verifier, state) = (random()?, random()?);
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    let challenge = BASE64URL_NOPAD.encode(digest.as_ref());
    let resource = authority.resource.as_deref().unwrap_or(request.url);
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", us.id.as_str()),
        ("redirect_uri", back.as_str()),
        ("state", state.as_str()),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", resource),
    ];
    if let Some(scope) = &authority.scope {
        query.push(("scope", scope));
        if scope.split(' ').any(|one| one == "offline_access") {
            query.push(("prompt", "consent"));
        }
    }
    let join = if authority.authorize.contains('?') {
        '&'
    } else {
        '?'
    };
    (request.visit)(&format!(
        "{}{join}{}",
        authority.authorize,
        form::encode(&query)
    ));
    let waiting = timeout(TIMEOUT, code(&listener, &state, &authority)).await;
    let code = waiting
        .map_err(|_| format!("the login was not completed in the browser within {TIMEOUT:?}"))??;
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", back.as_str()),
        ("code_verifier", verifier.as_str()),
        ("resource", resource),
    ];
    let answer = ask_for_token(http, &authority.token, &us, &grant).await?;
    let mut token = StoredToken::from_response(&answer, &authority.token, resource, us)?;
    token.scope = token.scope.or(authority.scope);
    store.store_token(request.url, token)
}

/// Returns the union of both sets of scopes.
fn union(first: Option<String>, second: Option<String>) -> Option<String> {
    let (Some(mut all), Some(more)) = (first.clone(), second.clone()) else {
        return first.or(second);
    };
    for scope in more.split(' ') {
        if !all.split(' ').any(|known| known == scope) {
            all = format!("{all} {scope}");
        }
    }
    Some(all)
}

/// The client registration at an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct ClientRegistration {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// `none`, `client_secret_basic` or `client_secret_post`.
    pub(super) method: String,
}

async fn register(
    http: &dyn HttpTransport,
    authority: &AuthorizationServer,
    client: &OAuthClient,
    back: &str,
) -> Result<ClientRegistration, String> {
    if let Some(id) = &client.id {
        return Ok(ClientRegistration {
            id: id.clone(),
            secret: client.secret.clone(),
            method: method(authority, client.secret.is_some(), None),
        });
    }
    if let (Some(document), true) = (&client.document, authority.reads_documents) {
        return Ok(ClientRegistration {
            id: document.clone(),
            secret: None,
            method: "none".to_owned(),
        });
    }
    let Some(place) = &authority.register else {
        return Err(
            "it does not register new clients; set `oauth.clientId` in the entry".to_owned(),
        );
    };
    let mut wanted = json!({
        "client_name": "haft",
        "redirect_uris": [back],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method(authority, true, None),
        "application_type": "native",
    });
    if let Some(scope) = &authority.scope {
        wanted["scope"] = json!(scope);
    }
    let sent = post(http, place, "application/json", &[], wanted.to_string()).await?;
    let (status, answer) = sent;
    let id = answer["client_id"]
        .as_str()
        .filter(|_| (200..300).contains(&status));
    let id = id.ok_or_else(|| {
        format!(
            "it rejects the client registration: {}",
            problem(status, &answer)
        )
    })?;
    let secret = answer["client_secret"].as_str().map(str::to_owned);
    let said = answer["token_endpoint_auth_method"].as_str();
    Ok(ClientRegistration {
        id: id.to_owned(),
        method: method(authority, secret.is_some(), said),
        secret,
    })
}

/// Returns the authentication method: the agreed one, otherwise the best one that the authorization
/// server supports.
fn method(authority: &AuthorizationServer, has_secret: bool, agreed: Option<&str>) -> String {
    let known = |name: &str| authority.auth_methods.iter().any(|one| one == name);
    match agreed {
        Some(agreed) => agreed,
        None if known("none") || !has_secret => "none",
        None if known("client_secret_basic") || authority.auth_methods.is_empty() => {
            "client_secret_basic"
        }
        None if known("client_secret_post") => "client_secret_post",
        None => "none",
    }
    .to_owned()
}

/// Requests a token with this grant.
pub(super) async fn ask_for_token(
    http: &dyn HttpTransport,
    place: &str,
    us: &ClientRegistration,
    grant: &[(&str, &str)],
) -> Result<Value, String> {
    let mut pairs = grant.to_vec();
    let mut headers = Vec::new();
    match (us.method.as_str(), &us.secret) {
        ("client_secret_basic", Some(secret)) => {
            let both = format!("{}:{}", form::escape(&us.id), form::escape(secret));
            headers.push((
                "authorization".to_owned(),
                format!("Basic {}", BASE64.encode(both.as_bytes())),
            ));
        }
        ("client_secret_post", Some(secret)) => {
            pairs.extend([
                ("client_id", us.id.as_str()),
                ("client_secret", secret.as_str()),
            ]);
        }
        _ => pairs.push(("client_id", us.id.as_str())),
    }
    let kind = "application/x-www-form-urlencoded";
    let (status, answer) = post(http, place, kind, &headers, form::encode(&pairs)).await?;
    match (200..300).contains(&status) && answer["access_token"].is_string() {
        true => Ok(answer),
        false => Err(format!("it issues no token: {}", problem(status, &answer))),
    }
}

/// Waits for the browser to return with an authorization code.
async fn code(
    listener: &TcpListener,
    state: &str,
    authority: &AuthorizationServer,
) -> Result<String, String> {
    // Any program on this machine can connect and send nothing. The browser must not wait for it.
    let mut callers = FuturesUnordered::new();
    loop {
        let (mut stream, query) = tokio::select! {
            accepted = listener.accept(), if callers.len() < MAX_CALLERS => {
                let (mut stream, _) = accepted.map_err(|error| error.to_string())?;
                callers.push(async move {
                    let query = callback(&mut stream).await;
                    (stream, query)
                });
                continue;
            }
            Some(caller) = callers.next() => caller,
        };
        let Some(query) = query else {
            let _ = reply(&mut stream, "404 Not Found", "Not found.").await;
            continue;
        };
        let value = |name: &str| {
            let found = query.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.clone())
        };
        // Any process on this machine can connect: requests that do not belong to this login are
        // rejected.
        if value("state").as_deref() != Some(state) {
            let _ = reply(&mut stream, "400 Bad Request", "Unknown login.").await;
            continue;
        }
        let said = match (value("code"), value("error")) {
            _ if !is_sender(value("iss").as_deref(), authority) => {
                Err("the browser was redirected by another authorization server".to_owned())
            }
            (Some(code), None) => Ok(code),
            (_, Some(error)) => {
                let about = value("error_description").unwrap_or_default();
                Err(format!("it was refused: {error} {about}")
                    .trim_end()
                    .to_owned())
            }
            (None, None) => Err("the redirect has no authorization code".to_owned()),
        };
        let words = match &said {
            Ok(_) => "You are logged in. You can close this window.",
            Err(_) => "The login failed. You can close this window.",
        };
        let _ = reply(&mut stream, "200 OK", words).await; // the browser may have disconnected
        return said;
    }
}

/// Returns whether the response comes from the expected issuer (RFC 9207). The names are compared
/// literally.
fn is_sender(named: Option<&str>, authority: &AuthorizationServer) -> bool {
    match (named, authority.issuer.as_deref()) {
        (Some(named), issuer) => issuer == Some(named),
        (None, _) => !authority.names_itself,
    }
}

async fn callback(stream: &mut TcpStream) -> Option<Vec<(String, String)>> {
    let mut head = Vec::new();
    let reading = async {
        let mut buffer = [0; 1024];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_CALLBACK {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(length) => head.extend_from_slice(&buffer[..length]),
            }
        }
    };
    timeout(CALLER_TIMEOUT, reading).await.ok()?;
    let text = String::from_utf8_lossy(&head);
    let target = text
        .lines()
        .next()?
        .strip_prefix("GET ")?
        .split(' ')
        .next()?;
    let query = target.strip_prefix("/callback")?.strip_prefix('?')?;
    Some(form::decode(query))
}

async fn reply(stream: &mut TcpStream, status: &str, words: &str) -> std::io::Result<()> {
    let length = words.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream
        .write_all(format!("{head}{words}").as_bytes())
        .await?;
    stream.shutdown().await
}

/// Returns 32 random bytes as text.
fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::getrandom(&mut bytes).map_err(|error| error.to_string())?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

impl StoredToken {
    /// Reads the response of the token endpoint.
    pub(super) fn from_response(
        answer: &Value,
        place: &str,
        resource: &str,
        us: ClientRegistration,
    ) -> Result<Self, String> {
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        let kind = text("token_type").unwrap_or_default();
        if !kind.is_empty() && !kind.eq_ignore_ascii_case("bearer") {
            return Err(format!("haft cannot use tokens of the type {kind}"));
        }
        Ok(Self {
            access: text("access_token").ok_or("it issues no token")?,
            refresh: text("refresh_token"),
            expires: answer["expires_in"]
                .as_u64()
                .map(|seconds| now().saturating_add(seconds)),
            place: place.to_owned(),
            resource: resource.to_owned(),
            client: us,
            scope: text("scope").filter(|scope| !scope.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn callers_that_say_nothing_do_not_keep_the_browser_waiting() {
        haft_testkit::bound_this_process();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let authority = AuthorizationServer {
            resource: None,
            scope: None,
            authorize: "https://a/authorize".to_owned(),
            token: "https://a/token".to_owned(),
            register: None,
            auth_methods: Vec::new(),
            issuer: None,
            names_itself: false,
            reads_documents: false,
        };
        let mut silent = Vec::new();
        for _ in 0..50 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let browser = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = "GET /callback?state=s&code=c HTTP/1.1\r\nhost: x\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        // Each silent one may take its whole time: one after the other they would take 500 s.
        let both = async { tokio::join!(code(&listener, "s", &authority), browser) };
        let (code, answer) = timeout(CALLER_TIMEOUT * 3, both).await.unwrap();
        assert_eq!(code.as_deref(), Ok("c"));
        assert!(answer.contains("You are logged in"), "{answer}");
        drop(silent);
    }

    #[test]
    fn scopes_are_joined_each_once() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(union(some("a b"), some("b c")), some("a b c"));
        assert_eq!(union(None, some("a")), some("a"));
        assert_eq!(union(some("a"), None), some("a"));
    }
}
