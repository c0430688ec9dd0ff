//! Hosts that a rule names.

/// A host pattern: a name, `*.name` for any depth below it, `*` for all; any other `*` stays inside
/// one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain(String);

impl Domain {
    /// Reads a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(canonical(pattern.trim()))
    }

    /// Does the host fit? Without regard to case or a final dot.
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

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn label_fits(pattern: &str, label: &str) -> bool {
    // A last label of stars would make any top-level domain fit, which no one means.
    match pattern {
        "*" => !label.is_empty(),
        pattern => super::Wildcard::new(pattern).matches(label),
    }
}

fn canonical(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Where a URL leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host as written, without port.
    pub host: String,
    /// Why no rule may allow it, if so.
    pub odd: Option<&'static str>,
}

impl Target {
    /// What has no host: it leads nowhere that a rule could allow.
    pub fn none() -> Self {
        Self {
            host: String::new(),
            odd: Some("it is no web address"),
        }
    }
}

/// The host of a URL; `None` where there is none. Strict: what two parsers could read differently
/// is odd.
pub fn target(url: &str) -> Option<Target> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => (true, host),
        None => (false, authority),
    };
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let odd = if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        Some("only http and https are fetched")
    } else if user {
        Some("the address carries user information")
    } else if host.is_empty() || !host.bytes().all(plain) || rest[end..].starts_with('\\') {
        Some("the host has characters that no host name has")
    } else {
        None
    };
    Some(Target {
        host: host.to_owned(),
        odd,
    })
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
                Domain::new(pattern).matches(host),
                expected,
                "{pattern} {host}"
            );
        }
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
            ("https://[::1]/", Some(("::1", true))),
            ("no address", None),
        ];
        for (url, expected) in cases {
            let got = target(url);
            let got = got.as_ref().map(|t| (t.host.as_str(), t.odd.is_some()));
            assert_eq!(got, expected, "{url:?}");
        }
    }
}
