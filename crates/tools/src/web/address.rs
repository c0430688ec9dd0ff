//! Strict parsing of page addresses, so that no two programs can interpret one differently.
//!
//! Rules check the host in the written text, but the connection goes to the host that the URL
//! parser finds. This module ensures that both are the same before any rule is checked.

use haft_sandbox::network::{Host, SpecialAddress};
use url::Url;

/// An address that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageUrl {
    /// Without a fragment, and with the normalized host.
    pub(crate) url: Url,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

const MAX_LENGTH: usize = 4_000;

impl PageUrl {
    /// Parses an address that a model wrote. The error explains what to write instead.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_LENGTH {
            return Err(format!("the URL is longer than {MAX_LENGTH} bytes"));
        }
        if let Some(odd) = text
            .chars()
            .find(|c| c.is_control() || c.is_whitespace() || *c == '\\')
        {
            return Err(format!(
                "the URL contains the character {odd:?}, which is not valid in URLs; write it percent-encoded"
            ));
        }
        let url = Url::parse(text).map_err(|error| {
            format!(
                "{text:?} is not an absolute URL ({error}); write one such as https://example.com/page"
            )
        })?;
        let address = Self::from_url(url)?;
        let written = written_host(text);
        let same = Host::parse(written.as_bytes()).is_ok_and(|host| host == address.host);
        if !same {
            return Err(format!(
                "the host {written:?} can be read in more than one way; write {} if you mean that",
                address.host
            ));
        }
        Ok(address)
    }

    /// Resolves a link or redirect against this address.
    pub(crate) fn join(&self, location: &str) -> Result<Self, String> {
        let location = location.trim();
        if location.len() > MAX_LENGTH || location.chars().any(char::is_control) {
            return Err("it points to an address that cannot be read".to_owned());
        }
        let url = self.url.join(location);
        let url = url.map_err(|error| format!("it points to an invalid address ({error})"))?;
        Self::from_url(url)
    }

    fn from_url(mut url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(format!(
                "only http and https are fetched, not {scheme}; use Read for files"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "the URL carries user information (the part before @), which is never sent; leave it out"
                    .to_owned(),
            );
        }
        let host = url.host_str().unwrap_or_default();
        let host = Host::parse(host.as_bytes())
            .map_err(|invalid| format!("{host:?} is not a valid host: {invalid}"))?;
        let port = url.port_or_known_default().unwrap_or_default();
        if port == 0 {
            return Err("the URL names port 0, where nothing can listen".to_owned());
        }
        // The host is normalized: it has no final dot, and an IPv4 address in an IPv6 address is
        // written as IPv4.
        url.set_host(Some(&host.to_string()))
            .map_err(|error| format!("{host}: {error}"))?;
        url.set_fragment(None);
        Ok(Self { url, host, port })
    }

    /// Changes http to https, except for an explicit port, a non-public address, and a name without
    /// a dot.
    pub(crate) fn upgraded(mut self) -> Self {
        let is_upgraded = self.url.scheme() == "http"
            && self.url.port().is_none()
            && !self.is_here()
            && self.url.set_scheme("https").is_ok();
        if is_upgraded {
            self.port = 443;
        }
        self
    }

    /// Returns the kind of the host's address if it is not public.
    pub(crate) fn special(&self) -> Option<SpecialAddress> {
        match self.host.address() {
            Some(address) => SpecialAddress::classify(address),
            None => self.is_localhost().then_some(SpecialAddress::Loopback),
        }
    }

    pub(crate) fn is_localhost(&self) -> bool {
        let name = self.host.name().unwrap_or_default();
        name == "localhost" || name.ends_with(".localhost")
    }

    fn is_here(&self) -> bool {
        self.special().is_some() || self.host.name().is_some_and(|name| !name.contains('.'))
    }

    /// Tests whether the hosts are equal, ignoring `www.`.
    pub(crate) fn is_host_of(&self, other: &Self) -> bool {
        fn bare(host: &Host) -> String {
            let text = host.to_string();
            text.strip_prefix("www.").unwrap_or(&text).to_owned()
        }
        self.host == other.host || bare(&self.host) == bare(&other.host)
    }

    /// Returns the host in the format of rules: an IP address without brackets.
    pub(crate) fn host_in_rules(&self) -> String {
        match self.host.address() {
            Some(address) => address.to_string(),
            None => self.host.to_string(),
        }
    }
}

/// Returns the host in the written text: after the scheme, before port and path.
fn written_host(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    match authority.find(']') {
        Some(at) => &authority[..=at],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        PageUrl::read(text).map(|address| address.upgraded().url.to_string())
    }

    #[test]
    fn plain_addresses_are_read_and_go_over_https() {
        let cases = [
            ("https://Example.COM./a?b=c#d", "https://example.com/a?b=c"),
            ("http://example.com", "https://example.com/"),
            ("http://example.com:80/", "https://example.com/"),
            ("http://example.com:8080/", "http://example.com:8080/"),
            ("http://localhost/x", "http://localhost/x"),
            ("http://127.0.0.1:3000/", "http://127.0.0.1:3000/"),
            ("http://[::1]/", "http://[::1]/"),
            ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"),
            ("http://intranet/x", "http://intranet/x"),
            (
                "https://xn--bcher-kva.example/",
                "https://xn--bcher-kva.example/",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let odd = [
            "",
            "example.com",
            "//example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "file://example.com/etc/passwd",
            "data:text/html,x",
            "javascript:alert(1)",
            "view-source:https://example.com/",
            "https://user@example.com/",
            "https://user:word@example.com/",
            "https://good.example@evil.example/",
            "https://evil.example\\@good.example/",
            "https://good.example\\.evil.example/",
            "https://exa\nmple.com/",
            "https://exa\tmple.com/",
            "https://example.com/a b",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.01/",
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
            "http://１２７.0.0.1/",
            "https://bücher.example/",
            "https://ex%61mple.com/",
            "https://example.com%2f@evil.example/",
            "https://example.com%00.evil.example/",
            "http://[fe80::1%25eth0]/",
            "http://[::1/",
            "https://example..com/",
            "https:example.com/",
            "https:/example.com/",
            "https:///example.com/",
            "https://example.com:0/",
            "https://example.com:99999/",
            "https://exa\u{ad}mple.com/",
            "https://example.com\u{200b}/",
        ];
        for text in odd {
            assert!(read(text).is_err(), "{text:?} was read as {:?}", read(text));
        }
    }

    #[test]
    fn the_ascii_form_of_a_name_is_offered() {
        let error = read("https://bücher.example/x").unwrap_err();
        assert!(error.contains("xn--bcher-kva.example"), "{error}");
    }

    #[test]
    fn a_page_may_point_to_itself_only_in_ways_that_can_be_read() {
        let page = PageUrl::read("https://example.com/a/b").unwrap();
        let cases = [
            ("/c", Some(("https://example.com/c", true))),
            ("c?d", Some(("https://example.com/a/c?d", true))),
            (
                "//www.example.com/",
                Some(("https://www.example.com/", true)),
            ),
            (
                "https://evil.example/",
                Some(("https://evil.example/", false)),
            ),
            (
                "http://169.254.169.254/x",
                Some(("http://169.254.169.254/x", false)),
            ),
            ("file:///etc/passwd", None),
            ("data:text/html,x", None),
            ("https://user@example.com/", None),
            ("https://example.com:0/", None),
            ("https://example.com/\r\nX-Evil: 1", None),
        ];
        for (location, expected) in cases {
            let got = page.join(location).ok();
            let got = got.map(|to| (to.url.to_string(), to.is_host_of(&page)));
            let expected = expected.map(|(url, same)| (url.to_owned(), same));
            assert_eq!(got, expected, "{location}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in ".*") {
            let _ = PageUrl::read(&text);
            let _ = PageUrl::read(&format!("https://{text}"));
        }

        /// What rules judge is what is connected to.
        #[test]
        fn the_host_that_is_read_is_the_host_that_is_written(text in "https?://[a-z0-9.@:\\\\/#?\\[\\]%-]{1,30}") {
            if let Ok(address) = PageUrl::read(&text) {
                let written = written_host(&text).to_ascii_lowercase();
                let written = written.strip_suffix('.').unwrap_or(&written);
                let host = address.host.to_string();
                proptest::prop_assert!(host == written || address.host.address().is_some());
            }
        }
    }
}
