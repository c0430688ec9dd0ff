//! Handlers that are HTTP servers: the event is posted as JSON, and the response is read like the
//! output of a program.
//!
//! Requests go only to URLs that the settings allow, and headers contain only variables that the
//! settings list. A server can block with its response; an unreachable server blocks nothing.

use std::collections::BTreeMap;

use haft_contract::{HostResolver, HttpClient, HttpPost, secrets};
use haft_settings::HttpHookLimits;
use serde_json::Value;

use super::{config::HttpHandlerConfig, output::HookExit, process_hook::RunError};

/// Posts the event.
pub(super) async fn post(
    post: &HttpHandlerConfig,
    input: &str,
    (client, hosts): (&dyn HttpClient, Option<&dyn HostResolver>),
    limits: &HttpHookLimits,
    env: &BTreeMap<String, String>,
) -> Result<HookExit, RunError> {
    let failed = |why: String| RunError::Unavailable(why);
    let named = check(limits, &post.url).map_err(failed)?;
    let addresses = match (hosts, UrlParts::read(&post.url)) {
        (Some(hosts), Some(address)) => {
            let found = hosts.resolve(address.host_name(), named);
            found.await.map_err(failed)?
        }
        _ => Vec::new(),
    };
    let is_listed = |name: &str| {
        let by_settings = limits.env.as_ref();
        post.env.iter().any(|listed| listed == name)
            && by_settings.is_none_or(|list| list.iter().any(|listed| listed == name))
    };
    let value_of = |name: &str| {
        if !is_listed(name) {
            return String::new();
        }
        let set = env.get(name).cloned();
        set.or_else(|| secrets::variable(name)).unwrap_or_default()
    };
    let headers = post.headers.iter();
    let request = HttpPost {
        url: post.url.clone(),
        headers: headers
            .map(|(name, value)| (name.clone(), filled(value, value_of)))
            .collect(),
        body: input.to_owned(),
        addresses,
    };
    let answer = client.post(request).await.map_err(failed)?;
    if !(200..300).contains(&answer.status) {
        let to = answer.location.map_or_else(String::new, |location| {
            format!(" and points to {location}; write that address into the hook")
        });
        return Err(failed(format!("the server answered {}{to}", answer.status)));
    }
    let body = answer.body.trim();
    let is_object = || serde_json::from_str::<Value>(body).is_ok_and(|value| value.is_object());
    if !body.is_empty() && !is_object() {
        return Err(failed(
            "the server's answer is neither empty nor a JSON object".to_owned(),
        ));
    }
    Ok(HookExit {
        code: Some(0),
        stdout: body.to_owned(),
        stderr: String::new(),
    })
}

/// Checks whether requests to this URL are allowed; the error is the reason why not. `true`: the
/// settings name its host.
fn check(limits: &HttpHookLimits, url: &str) -> Result<bool, String> {
    let address = UrlParts::read(url).ok_or_else(|| {
        format!(
            "{url:?} cannot be used: the URL must start with http:// or https://, and must not contain a \
             user name, a space or a backslash"
        )
    })?;
    match &limits.urls {
        None => Ok(false),
        Some(patterns) if patterns.iter().any(|pattern| address.matches(pattern)) => {
            let mut matching = patterns.iter().filter(|pattern| address.matches(pattern));
            Ok(matching.any(|pattern| {
                // A pattern with a star in the host does not name a host.
                UrlParts::split(pattern).is_some_and(|parts| !parts.host_name().contains('*'))
            }))
        }
        Some(_) => Err(format!(
            "{}://{} is not in allowedHttpHookUrls of the settings",
            address.scheme, address.host
        )),
    }
}

/// A URL split into parts, so that a `*` in a pattern matches only within one part.
struct UrlParts<'a> {
    scheme: &'a str,
    /// The host with the port.
    host: &'a str,
    rest: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Parses a URL. `None` if it is invalid or could be parsed differently by other software.
    fn read(url: &'a str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        let address = Self::split(url)?;
        let is_web = ["http", "https"].contains(&address.scheme);
        let is_host = !address.host.is_empty() && !address.host.contains(['@', '%']);
        (url.bytes().all(plain) && is_web && is_host).then_some(address)
    }

    /// Returns the host without the port; an IPv6 address with its brackets.
    fn host_name(&self) -> &'a str {
        let end = match self.host.starts_with('[') {
            true => self.host.find(']').map(|bracket| bracket + 1),
            false => self.host.find(':'),
        };
        &self.host[..end.unwrap_or(self.host.len())]
    }

    fn split(url: &'a str) -> Option<Self> {
        let (scheme, after) = url.split_once("://")?;
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (host, rest) = after.split_at(end);
        Some(Self { scheme, host, rest })
    }

    fn matches(&self, pattern: &str) -> bool {
        if pattern == "*" {
            return true;
        }
        let Some(pattern) = UrlParts::split(pattern) else {
            return false;
        };
        let or_root = |rest: &str| {
            if rest.is_empty() {
                "/".to_owned()
            } else {
                rest.to_owned()
            }
        };
        let host = self.host.to_ascii_lowercase();
        glob(pattern.scheme, self.scheme)
            && glob(&pattern.host.to_ascii_lowercase(), &host)
            && glob(&or_root(pattern.rest), &or_root(self.rest))
    }
}

/// Matches a pattern whose `*` matches any text, also an empty one.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Replaces `$NAME` and `${NAME}` by variables.
fn filled(text: &str, value_of: impl Fn(&str) -> String) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled += &rest[..at];
        let behind = &rest[at + 1..];
        let (braced, name_at) = match behind.strip_prefix('{') {
            Some(inside) => (true, inside),
            None => (false, behind),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = name_at.find(|c| !is_name(c)).unwrap_or(name_at.len());
        let (name, after) = name_at.split_at(length);
        let is_whole = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && (!braced || after.starts_with('}'));
        if is_whole {
            filled += &value_of(name);
            rest = if braced { &after[1..] } else { after };
        } else {
            filled.push('$');
            rest = behind;
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_inside_its_part_of_an_address() {
        let cases = [
            ("https://a.org/*", "https://a.org/hook", true),
            ("https://a.org/*", "https://a.org", true),
            ("https://a.org/*", "http://a.org/hook", false),
            ("https://a.org/*", "https://a.org.evil.net/", false),
            ("https://*.a.org/*", "https://x.A.org/hook", true),
            ("https://*.a.org/*", "https://evil.net/x.a.org/", false),
            ("https://*.a.org/*", "https://evil.net?.a.org/", false),
            ("https://a.org/in", "https://a.org/in?x=1", false),
            ("http://localhost:*/*", "http://localhost:8080/x", true),
            ("http://localhost/*", "http://localhost:8080/x", false),
            ("*", "https://anything.org/", true),
            ("https://a.org", "https://a.org/", true),
            ("nonsense", "https://a.org/", false),
        ];
        for (pattern, url, expected) in cases {
            assert_eq!(
                UrlParts::read(url).unwrap().matches(pattern),
                expected,
                "{pattern} {url}"
            );
        }
    }

    #[test]
    fn what_others_may_read_otherwise_is_no_address() {
        for url in [
            "https://a.org@evil.net/",
            "https://evil.net\\.a.org/",
            "https://evil.net%2f.a.org/",
            "ftp://a.org/",
            "file:///etc/passwd",
            "https:///x",
            "https://a.org/ x",
            "a.org",
            "",
        ] {
            assert!(UrlParts::read(url).is_none(), "{url}");
            assert!(check(&HttpHookLimits::default(), url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_host_is_read_without_its_port_and_named_without_a_star() {
        for (url, host) in [
            ("http://a.org/x", "a.org"),
            ("http://a.org:80", "a.org"),
            ("http://[::1]:80/x", "[::1]"),
            ("http://[::1]", "[::1]"),
        ] {
            assert_eq!(UrlParts::read(url).unwrap().host_name(), host, "{url}");
        }
        let named = |pattern: &str| {
            let limits = HttpHookLimits {
                urls: Some(vec![pattern.to_owned()]),
                env: None,
            };
            check(&limits, "http://in.a.org:8080/x")
        };
        assert_eq!(named("http://in.a.org:*/*"), Ok(true));
        assert_eq!(named("http://*.a.org:8080/*"), Ok(false));
        assert_eq!(named("*"), Ok(false));
    }

    #[test]
    fn an_empty_list_lets_nothing_out() {
        let limits = HttpHookLimits {
            urls: Some(Vec::new()),
            env: None,
        };
        assert!(check(&limits, "https://a.org/").is_err());
    }

    #[test]
    fn variables_stand_in_headers() {
        let value_of = |name: &str| format!("<{name}>");
        let cases = [
            ("Bearer $TOKEN", "Bearer <TOKEN>"),
            ("${A}-$B.c", "<A>-<B>.c"),
            ("$", "$"),
            ("cost: $5", "cost: $5"),
            ("${A", "${A"),
            ("${}", "${}"),
            ("ü$Aü", "ü<A>ü"),
        ];
        for (text, expected) in cases {
            assert_eq!(filled(text, value_of), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in ".*", pattern in ".*") {
            let _ = filled(&text, |name| name.to_owned());
            let _ = glob(&pattern, &text);
            if let Some(address) = UrlParts::read(&text) {
                address.matches(&pattern);
            }
        }

        #[test]
        fn a_text_fits_itself_with_any_part_left_open(a in "[a-z/.]*", b in "[a-z/.]*", c in "[a-z/.]*") {
            let text = format!("{a}{b}{c}");
            let pattern = format!("{}*{}", a, c);
            assert!(glob(&pattern, &text));
            assert!(glob(&text, &text));
        }
    }
}
