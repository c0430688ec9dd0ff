//! The hosts in rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host pattern: a name, `*.name` for all subdomains, `*` for all hosts; any other `*` matches
/// within one label. All spellings of an address, with brackets or without, are the same pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainPattern(String);

impl DomainPattern {
    /// Parses a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(canonical(pattern.trim()))
    }

    /// Returns whether the pattern matches the host. Ignores case and a final dot.
    pub fn matches(&self, host: &str) -> bool {
        let host = canonical(host);
        let pattern = self.0.as_str();
        if pattern == "*" {
            return true;
        }
        if let Some(below) = pattern.strip_prefix("*.") {
            let Some(labels) = host.strip_suffix(below) else {
                return false;
            };
            return labels.len() > 1 && labels.ends_with('.') && !below.contains('*');
        }
        let (mut wanted, mut given) = (pattern.split('.'), host.split('.'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                (Some(pattern), Some(label)) if label_fits(pattern, label) => {}
                _ => return false,
            }
        }
    }
}

impl std::fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn label_fits(pattern: &str, label: &str) -> bool {
    // A `*` alone matches any one label, even the last one, but not an empty label.
    match pattern {
        "*" => !label.is_empty(),
        pattern => super::WildcardPattern::new(pattern).matches(label),
    }
}

/// Returns the canonical form of a host: a rule that denies an address must deny every spelling of
/// it.
fn canonical(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let inside = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Ok(address) = inside.unwrap_or(&host).parse::<Ipv6Addr>() {
        return one_spelling(address);
    }
    match ipv4_as_programs_read_it(&host) {
        Some(address) => address.to_string(),
        None => host,
    }
}

/// Returns the canonical form of an address: `::ffff:1.2.3.4` becomes 1.2.3.4.
fn one_spelling(address: Ipv6Addr) -> String {
    IpAddr::V6(address).to_canonical().to_string()
}

/// Parses an IPv4 address as most programs do: they interpret `127.1`, `0x7f.1`, `0177.0.0.1` and
/// `2130706433` as 127.0.0.1.
fn ipv4_as_programs_read_it(host: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| -> Option<u64> {
        let (digits, base) = match part.strip_prefix("0x") {
            // `0x` alone means 0.
            Some("") => return Some(0),
            Some(digits) => (digits, 16),
            None if part.len() > 1 && part.starts_with('0') => (&part[1..], 8),
            None => (part, 10),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number.then(|| u64::from_str_radix(digits, base).ok())?
    };
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) {
        return None;
    }
    // The last number fills all remaining bytes.
    let left = 8 * (4 - first.len());
    if *last >= 1 << left {
        return None;
    }
    let above = first.iter().fold(0, |bits, part| bits << 8 | part);
    u32::try_from(above << left | last).ok().map(Ipv4Addr::from)
}

/// Returns a host in the form for a URL: an IPv6 address in brackets.
pub(crate) fn in_url(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// The target of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTarget {
    /// The host as written, without the port; an IPv6 address in canonical form, without brackets.
    pub host: String,
    /// The reason why no rule may allow the target, if any.
    pub odd: Option<&'static str>,
}

impl UrlTarget {
    /// Returns the target of a text without a host, which no rule can allow.
    pub fn none() -> Self {
        Self {
            host: String::new(),
            odd: Some("it is not a web address"),
        }
    }
}

/// Returns the target of a URL; `None` if it has no host. Parses strictly: a host that two parsers
/// could read differently is never allowed.
pub fn target(url: &str) -> Option<UrlTarget> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => (true, host),
        None => (false, authority),
    };
    let (host, bad_host) = match host.strip_prefix('[') {
        Some(rest) => in_brackets(rest),
        None => {
            let host = host.split(':').next().unwrap_or_default();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
            let why = match host {
                "" => Some("the address names no host"),
                host if !host.bytes().all(plain) => {
                    Some("the host has characters that no host name has")
                }
                _ => None,
            };
            (host.to_owned(), why)
        }
    };
    let odd = if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        Some("only http and https are fetched")
    } else if user {
        Some("the address carries user information")
    } else if rest[end..].starts_with('\\') {
        Some("the address has a backslash after its host")
    } else {
        bad_host
    };
    Some(UrlTarget { host, odd })
}

/// Returns the host after a `[`, and the reason why it is invalid, if it is.
fn in_brackets(rest: &str) -> (String, Option<&'static str>) {
    let Some((inside, port)) = rest.split_once(']') else {
        return (
            rest.to_owned(),
            Some("the bracket of its host is not closed"),
        );
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match inside.parse::<Ipv6Addr>() {
        Err(_) => (
            inside.to_owned(),
            Some("the brackets of its host hold no IPv6 address"),
        ),
        Ok(address) if port.is_empty() || port.strip_prefix(':').is_some_and(is_port) => {
            (one_spelling(address), None)
        }
        Ok(address) => (
            one_spelling(address),
            Some("only a port may follow the brackets of its host"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_fit_by_whole_labels() {
        let cases = [
            ("example.com", "EXAMPLE.com.", true),
            ("example.com", "api.example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("example.*", "example.evil.com", false),
            ("example.*", "example.org", true),
            ("*", "anything.at.all", true),
            ("api-*.example.com", "api-1.example.com", true),
            ("api-*.example.com", "api-1.x.example.com", false),
            ("trusted.com", "trusted.com.evil.com", false),
        ];
        for (pattern, host, expected) in cases {
            assert_eq!(
                DomainPattern::new(pattern).matches(host),
                expected,
                "{pattern} {host}"
            );
        }
    }

    #[test]
    fn an_address_is_the_same_in_every_spelling() {
        let same = [
            (
                "::1",
                &["[::1]", "0:0:0:0:0:0:0:1", "[0::0:1]", "::0001"][..],
            ),
            (
                "127.0.0.1",
                &[
                    "[::ffff:127.0.0.1]",
                    "::FFFF:7F00:1",
                    "127.1",
                    "127.0.1",
                    "2130706433",
                    "0x7f000001",
                    "0X7F.1",
                    "0177.0.0.1",
                    "017700000001",
                    "127.0.0.1.",
                ],
            ),
            (
                "2606:4700::1111",
                &["[2606:4700:0:0:0:0:0:1111]", "2606:4700:0::1111"],
            ),
        ];
        for (one, others) in same {
            for other in others {
                assert!(DomainPattern::new(one).matches(other), "{one} {other}");
                assert!(DomainPattern::new(other).matches(one), "{other} {one}");
            }
        }
        let different = [
            ("::1", "::2"),
            ("::1", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.1.example"),
            ("127.0.0.1", "127.0.0.0.1"),
            ("127.0.0.1", "128.1"),
            ("0.0.0.1", "4294967297"),
            ("127.0.0.1", "0x7f.1g"),
            ("127.0.0.1", "[127.0.0.1"),
        ];
        for (one, other) in different {
            assert!(!DomainPattern::new(one).matches(other), "{one} {other}");
        }
        assert!(DomainPattern::new("*").matches("[::1]"));
        assert_eq!(DomainPattern::new("[0:0::1]").to_string(), "::1");
    }

    #[test]
    fn odd_addresses_are_known() {
        let cases = [
            ("https://example.com/a", Some(("example.com", false))),
            ("https://example.com:8080", Some(("example.com", false))),
            ("https://good.com@evil.com/", Some(("evil.com", true))),
            ("https://evil.com\\@good.com/", Some(("evil.com", true))),
            ("ftp://example.com", Some(("example.com", true))),
            ("https://ex\0ample.com", Some(("ex\0ample.com", true))),
            ("https://[::1]/", Some(("::1", false))),
            ("http://[0:0::0:1]:8080/x", Some(("::1", false))),
            ("http://[::FFFF:127.0.0.1]/", Some(("127.0.0.1", false))),
            ("http://[::ffff:7f00:1]/", Some(("127.0.0.1", false))),
            (
                "https://[2606:4700::1111]",
                Some(("2606:4700::1111", false)),
            ),
            ("http://[fe80::1%25eth0]/", Some(("fe80::1%25eth0", true))),
            ("http://[127.0.0.1]/", Some(("127.0.0.1", true))),
            ("http://[::1]evil.com/", Some(("::1", true))),
            ("http://[::1]:80@evil.com/", Some(("evil.com", true))),
            ("http://[::1", Some(("::1", true))),
            ("http://::1/", Some(("", true))),
            ("no address", None),
        ];
        for (url, expected) in cases {
            let got = target(url);
            let got = got.as_ref().map(|t| (t.host.as_str(), t.odd.is_some()));
            assert_eq!(got, expected, "{url:?}");
        }
    }
}
