//! Finds the authorization server of an MCP server. The protected resource metadata (RFC 9728)
//! names it; its own metadata (RFC 8414) describes it.

use haft_contract::HttpTransport;
use serde_json::Value;

use super::{form, get_json, nearness, secure};
use crate::client::remote::origin;

/// The authorization server of a server, with its endpoints.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AuthorizationServer {
    /// The resource that the token is for, if the server names it.
    pub(super) resource: Option<String>,
    /// The scopes to request, if any are named.
    pub(super) scope: Option<String>,
    pub(super) authorize: String,
    pub(super) token: String,
    pub(super) register: Option<String>,
    /// The client authentication methods of the token endpoint.
    pub(super) auth_methods: Vec<String>,
    pub(super) issuer: Option<String>,
    /// True if the authorization response contains the issuer.
    pub(super) names_itself: bool,
    /// True if a client may use the address of a metadata document as its id.
    pub(super) reads_documents: bool,
}

/// Finds the authorization server of the server at `url`; `challenge` is the server's
/// `WWW-Authenticate` header.
pub(super) async fn discover(
    http: &dyn HttpTransport,
    url: &str,
    challenge: &str,
) -> Result<AuthorizationServer, String> {
    let base = origin(url).ok_or("the URL is invalid")?;
    let protected = protected_resource(http, url, challenge).await?;
    let resource = protected
        .as_ref()
        .and_then(|found| found["resource"].as_str());
    if let Some(resource) = resource
        && !covers(resource, url)
    {
        return Err(format!(
            "its metadata describes {resource} instead of {url}"
        ));
    }
    let named = protected
        .as_ref()
        .and_then(|found| found["authorization_servers"][0].as_str());
    let issuer = named.unwrap_or(base).trim_end_matches('/').to_owned();
    reachable(url, &issuer)?;
    let found = authority(http, &issuer).await?;
    let asked = form::parameter(challenge, "scope");
    let scopes = |value: &Value| {
        let listed = value.as_array()?.iter().filter_map(Value::as_str);
        let joined = listed.collect::<Vec<_>>().join(" ");
        (!joined.is_empty()).then_some(joined)
    };
    let supported = protected
        .as_ref()
        .and_then(|found| scopes(&found["scopes_supported"]));
    let mut scope = asked.filter(|scope| !scope.is_empty()).or(supported);
    let Some(found) = found else {
        if named.is_some() {
            return Err(format!(
                "{issuer} publishes no authorization server metadata"
            ));
        }
        // The default endpoints of 2025-03-26.
        return Ok(AuthorizationServer {
            resource: None,
            scope,
            authorize: format!("{base}/authorize"),
            token: format!("{base}/token"),
            register: Some(format!("{base}/register")),
            auth_methods: Vec::new(),
            issuer: None,
            names_itself: false,
            reads_documents: false,
        });
    };
    if let Some(other) = found["issuer"].as_str()
        && !is_issuer(other, &issuer, named.is_some())
    {
        return Err(format!(
            "the metadata of {issuer} names another issuer, {other}"
        ));
    }
    let methods = found["code_challenge_methods_supported"].as_array();
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        return Err(format!("{issuer} does not support PKCE with S256"));
    }
    // Without this scope, no refresh token is issued.
    let offers_offline = scopes(&found["scopes_supported"])
        .is_some_and(|all| all.split(' ').any(|one| one == OFFLINE));
    if offers_offline
        && scope
            .as_ref()
            .is_some_and(|scope| !scope.split(' ').any(|one| one == OFFLINE))
    {
        scope = scope.map(|scope| format!("{scope} {OFFLINE}"));
    }
    let place = |name: &str| found[name].as_str().map(str::to_owned);
    let needed = |name: &str| place(name).ok_or_else(|| format!("{issuer} names no {name}"));
    let auth_methods = found["token_endpoint_auth_methods_supported"]
        .as_array()
        .into_iter()
        .flatten();
    let authority = AuthorizationServer {
        resource: resource.map(str::to_owned),
        scope,
        authorize: needed("authorization_endpoint")?,
        token: needed("token_endpoint")?,
        register: place("registration_endpoint"),
        auth_methods: auth_methods
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        issuer: place("issuer"),
        names_itself: found["authorization_response_iss_parameter_supported"] == true,
        reads_documents: found["client_id_metadata_document_supported"] == true,
    };
    let places = [&authority.authorize, &authority.token];
    for place in places.into_iter().chain(&authority.register) {
        reachable(url, place)?;
    }
    may_be_visited(&authority.authorize)?;
    Ok(authority)
}

const OFFLINE: &str = "offline_access";

/// Returns the protected resource metadata of the server: from the address in its challenge, or
/// from the well-known addresses.
async fn protected_resource(
    http: &dyn HttpTransport,
    url: &str,
    challenge: &str,
) -> Result<Option<Value>, String> {
    if let Some(named) = form::parameter(challenge, "resource_metadata") {
        reachable(url, &named)?;
        return get_json(http, &named).await;
    }
    let base = origin(url).unwrap_or_default();
    let path = path(url);
    let usual = format!("{base}/.well-known/oauth-protected-resource");
    if !path.is_empty()
        && let Some(found) = get_json(http, &format!("{usual}{path}")).await?
    {
        return Ok(Some(found));
    }
    get_json(http, &usual).await
}

/// Returns the metadata of an issuer from the well-known addresses.
async fn authority(http: &dyn HttpTransport, issuer: &str) -> Result<Option<Value>, String> {
    let base = origin(issuer).ok_or("the issuer is not a valid URL")?;
    let path = path(issuer);
    let mut places = vec![
        format!("{base}/.well-known/oauth-authorization-server{path}"),
        format!("{base}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{issuer}/.well-known/openid-configuration"));
    }
    for place in places {
        if let Some(found) = get_json(http, &place).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns whether the issuer in a metadata document is the requested one. Otherwise any server
/// could pose as another issuer (RFC 8414, 3.3). Many differ by a trailing slash. If no issuer was
/// named (2025-03-26), it must have the same origin.
fn is_issuer(published: &str, requested: &str, was_named: bool) -> bool {
    match was_named {
        true => published.trim_end_matches('/') == requested,
        false => origin(published) == origin(requested),
    }
}

/// Checks that the server at `url` may name the address `place`. A server must not lead haft to an
/// address that is nearer than the server: to this machine, or into the user's network.
fn reachable(url: &str, place: &str) -> Result<(), String> {
    secure(place)?;
    match nearness(place)? < nearness(url)? {
        false => Ok(()),
        true => Err(format!(
            "{url} names {place}, which is on this machine or in your own network"
        )),
    }
}

/// Checks an authorization endpoint: no fragment, and no parameter that a login adds.
fn may_be_visited(authorize: &str) -> Result<(), String> {
    let (address, query) = authorize.split_once('?').unwrap_or((authorize, ""));
    let named = form::decode(query);
    let ours = |name: &String| OWN_PARAMETERS.contains(&name.as_str());
    match named.iter().find(|(name, _)| ours(name)) {
        _ if address.contains('#') || query.contains('#') => Err(format!(
            "{authorize} has a fragment, which no authorization endpoint has"
        )),
        Some((name, _)) => Err(format!(
            "{authorize} already has the parameter `{name}`, which a login adds"
        )),
        None => Ok(()),
    }
}

/// The parameters that [`login`](super::login()) adds to the authorization endpoint.
const OWN_PARAMETERS: [&str; 9] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
    "scope",
    "prompt",
];

/// Returns the path of an address, without a slash at its end.
fn path(url: &str) -> &str {
    let base = origin(url).unwrap_or_default();
    let rest = &url[base.len()..];
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    rest[..end].trim_end_matches('/')
}

/// Returns whether `url` is the resource or below it.
fn covers(resource: &str, url: &str) -> bool {
    let same = origin(resource)
        .is_some_and(|own| origin(url).is_some_and(|other| own.eq_ignore_ascii_case(other)));
    let (outer, inner) = (path(resource), path(url));
    let below = inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    same && below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_names_no_place_on_this_machine() {
        let far = "https://mcp.example/mcp";
        for place in [
            "http://localhost:8080/x",
            "http://127.0.0.1/x",
            "https://127.8.8.8/x",
            "https://[::1]:9/x",
            "https://LOCALHOST/x",
            "https://a@0.0.0.0/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.0.0.1/",
            "https://[::ffff:127.0.0.1]/",
            "https://%6cocalhost/",
            "https://x.localhost./",
            "https://169.254.169.254/",
            "https://10.0.0.1/",
            "https://[fd00::1]/",
        ] {
            assert!(reachable(far, place).is_err(), "{place}");
        }
        for place in [
            "http://localhost:8080/x",
            "https://10.0.0.1/",
            "https://[::1]:9/x",
        ] {
            assert!(
                reachable("http://127.0.0.1:1/mcp", place).is_ok(),
                "{place}"
            );
        }
        assert!(reachable("https://10.0.0.2/mcp", "https://10.0.0.1/").is_ok());
        assert!(reachable("https://10.0.0.2/mcp", "https://127.0.0.1/").is_err());
        assert!(reachable(far, "https://login.example").is_ok());
    }

    #[test]
    fn a_browser_is_sent_only_where_nothing_of_ours_stands_already() {
        let cases = [
            ("https://a/authorize", true),
            ("https://a/authorize?tenant=x&flow=state", true),
            (
                "https://a/authorize?redirect_uri=https://evil.example",
                false,
            ),
            ("https://a/authorize?x=1&st%61te=fixed", false),
            ("https://a/authorize#", false),
            ("https://a/authorize?x=1#", false),
        ];
        for (address, expected) in cases {
            assert_eq!(may_be_visited(address).is_ok(), expected, "{address}");
        }
    }

    #[test]
    fn a_resource_covers_what_is_below_it() {
        let cases = [
            ("https://a/mcp", "https://a/mcp", true),
            ("https://a", "https://a/mcp", true),
            ("https://a/", "https://a/mcp?x", true),
            ("https://a/mc", "https://a/mcp", false),
            ("https://b/mcp", "https://a/mcp", false),
            ("https://a/mcp/x", "https://a/mcp", false),
        ];
        for (resource, url, expected) in cases {
            assert_eq!(covers(resource, url), expected, "{resource} {url}");
        }
        assert_eq!(path("https://a/b/?q"), "/b");
        assert_eq!(path("https://a"), "");
    }
}
