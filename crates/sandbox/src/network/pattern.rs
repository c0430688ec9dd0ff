//! The host patterns of rules.

use std::{fmt, net::IpAddr, str::FromStr};

use super::{Host, InvalidHost};

/// A pattern: `example.com`, `*.example.com` (subdomains only), `10.0.0.1`, `[fd00::1]` or `*`,
/// each with an optional `:port`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    hosts: HostMatch,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HostMatch {
    All,
    /// The parent domain with a dot before it.
    Below(String),
    This(Host),
}

/// The error for an invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host pattern `{pattern}` cannot be read: {why}")]
pub struct InvalidPattern {
    pattern: String,
    why: PatternFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum PatternFault {
    #[error("name only the host, without scheme and path")]
    Url,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("write an IPv6 address in brackets, like [::1]")]
    Brackets,
    #[error("use `*` only alone or at the start, as `*.`")]
    Star,
    #[error("an address has nothing below it")]
    BelowAddress,
    #[error("write the name in its ASCII form, which starts with xn--")]
    Ascii,
    #[error("{0}")]
    Host(InvalidHost),
}

impl HostPattern {
    /// Parses a pattern.
    pub fn parse(pattern: &str) -> Result<Self, InvalidPattern> {
        read(pattern).map_err(|why| InvalidPattern {
            pattern: pattern.escape_debug().to_string(),
            why,
        })
    }

    /// Returns whether the pattern matches this host at this port.
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        let host_fits = match &self.hosts {
            HostMatch::All => true,
            HostMatch::Below(suffix) => host
                .name()
                .is_some_and(|name| name.len() > suffix.len() && name.ends_with(suffix)),
            HostMatch::This(this) => this == host,
        };
        host_fits && self.port.is_none_or(|only| only == port)
    }

    /// Returns the host of a pattern that matches exactly one.
    pub fn exactly(&self) -> Option<&Host> {
        match &self.hosts {
            HostMatch::This(host) => Some(host),
            HostMatch::All | HostMatch::Below(_) => None,
        }
    }

    /// Returns the address that the pattern names, if it names one and matches this port.
    pub(super) fn address(&self, port: u16) -> Option<IpAddr> {
        let host = self.exactly().filter(|host| self.matches(host, port))?;
        host.address()
    }
}

fn read(pattern: &str) -> Result<HostPattern, PatternFault> {
    if pattern.contains('/') {
        return Err(PatternFault::Url);
    }
    let (hosts, port) = match pattern.find(']') {
        Some(end) => match &pattern[end + 1..] {
            "" => (pattern, None),
            rest => (
                &pattern[..=end],
                Some(rest.strip_prefix(':').ok_or(PatternFault::Brackets)?),
            ),
        },
        None if pattern.matches(':').count() > 1 => return Err(PatternFault::Brackets),
        None => match pattern.split_once(':') {
            Some((hosts, port)) => (hosts, Some(port)),
            None => (pattern, None),
        },
    };
    let port = port
        .map(|port| parse_port(port.as_bytes()).ok_or(PatternFault::Port))
        .transpose()?;
    let hosts = match hosts.strip_prefix('*') {
        Some("") => HostMatch::All,
        Some(below) => {
            let name = below.strip_prefix('.').ok_or(PatternFault::Star)?;
            match parse_host(name)?.name() {
                Some(name) => HostMatch::Below(format!(".{name}")),
                None => return Err(PatternFault::BelowAddress),
            }
        }
        None => HostMatch::This(parse_host(hosts)?),
    };
    Ok(HostPattern { hosts, port })
}

fn parse_host(host: &str) -> Result<Host, PatternFault> {
    match Host::parse(host.as_bytes()) {
        Err(InvalidHost::Byte(b'*')) => Err(PatternFault::Star),
        Err(InvalidHost::Byte(byte)) if !byte.is_ascii() => Err(PatternFault::Ascii),
        other => other.map_err(PatternFault::Host),
    }
}

/// Parses a port of digits only; 0 is invalid.
pub(super) fn parse_port(digits: &[u8]) -> Option<u16> {
    // `u16::from_str` would accept a plus sign.
    if digits.len() > 5 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let port: u16 = str::from_utf8(digits).ok()?.parse().ok()?;
    (port != 0).then_some(port)
}

impl FromStr for HostPattern {
    type Err = InvalidPattern;

    fn from_str(pattern: &str) -> Result<Self, Self::Err> {
        Self::parse(pattern)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            HostMatch::All => f.write_str("*")?,
            HostMatch::Below(suffix) => write!(f, "*{suffix}")?,
            HostMatch::This(host) => write!(f, "{host}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_labels() {
        let cases = [
            ("example.com", "EXAMPLE.com.", 443, true),
            ("Example.com.", "example.com", 443, true),
            ("example.com", "api.example.com", 443, false),
            ("example.com", "example.com.evil.com", 443, false),
            ("example.com", "notexample.com", 443, false),
            ("*.example.com", "a.b.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("*.example.com", "evilexample.com", 443, false),
            ("*.example.com", "a.example.com.evil.com", 443, false),
            ("example.com:8080", "example.com", 8080, true),
            ("example.com:8080", "example.com", 443, false),
            ("*", "anything.at.all", 1, true),
            ("*", "[::1]", 1, true),
            ("*:443", "example.com", 80, false),
            ("10.0.0.1", "10.0.0.1", 80, true),
            ("10.0.0.1", "[::ffff:10.0.0.1]", 80, true),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1", 80, true),
            ("[FD00::1]:80", "[fd00:0::1]", 80, true),
            ("[fd00::1]:80", "[fd00::1]", 81, false),
            ("*.0.0.1.com", "10.0.0.1", 80, false),
        ];
        for (pattern, host, port, expected) in cases {
            let fits = HostPattern::parse(pattern)
                .unwrap()
                .matches(&Host::parse(host.as_bytes()).unwrap(), port);
            assert_eq!(fits, expected, "{pattern} {host}:{port}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_says_so() {
        let patterns = [
            "",
            "*.",
            "*example.com",
            "a.*.com",
            "**",
            "*.*",
            "*.10.0.0.1",
            "https://example.com",
            "example.com/path",
            "example.com:",
            "example.com:0",
            "example.com:+80",
            "example.com:65536",
            "::1",
            "[::1]80",
            "[::1",
            "127.1",
            "bücher.example",
            "a b",
            "evil\0.com",
            "user@host",
        ];
        let told: Vec<String> = patterns
            .iter()
            .map(|pattern| HostPattern::parse(pattern).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
