//! Host names and addresses, validated before any rule is evaluated.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The maximum length of a DNS name.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A host: a name in lower case without a final dot, or an address.
///
/// Each host has only one form, so that the checked host is the one that is connected to: an
/// IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) becomes that IPv4 address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host(HostKind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HostKind {
    Name(String),
    Address(IpAddr),
}

/// The reason why bytes are not a valid host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHost {
    /// The host is empty.
    #[error("it is empty")]
    Empty,
    /// A byte that is not a letter, digit, hyphen, dot or underscore.
    #[error("it has the byte {0:#04x}, which no host name has")]
    Byte(u8),
    /// The host is longer than a DNS name can be.
    #[error("it is longer than {MAX_NAME} bytes")]
    Long,
    /// A label between two dots is empty or too long.
    #[error("a part of it between dots is empty or longer than {MAX_LABEL} bytes")]
    Label,
    /// The last label is a number, as in `0x7f.1`, `2130706433`, `0177.0.0.1`: programs interpret
    /// these forms differently.
    #[error("it ends in a number, but is not an IPv4 address of four decimal numbers")]
    Number,
    /// The brackets do not contain an IPv6 address.
    #[error("it has brackets without an IPv6 address in them")]
    Brackets,
}

impl Host {
    /// Parses a name, an IPv4 address of four decimal numbers, or an IPv6 address in brackets.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidHost> {
        if let Some(rest) = bytes.strip_prefix(b"[") {
            let inside = rest.strip_suffix(b"]").ok_or(InvalidHost::Brackets)?;
            let address: Option<Ipv6Addr> =
                str::from_utf8(inside).ok().and_then(|it| it.parse().ok());
            return Ok(IpAddr::V6(address.ok_or(InvalidHost::Brackets)?).into());
        }
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        if let Some(odd) = bytes.iter().find(|byte| !plain(byte)) {
            return Err(InvalidHost::Byte(*odd));
        }
        let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
        if bytes.is_empty() {
            return Err(InvalidHost::Empty);
        }
        if bytes.len() > MAX_NAME {
            return Err(InvalidHost::Long);
        }
        let name: String = bytes
            .iter()
            .map(|byte| byte.to_ascii_lowercase() as char)
            .collect();
        let mut last = "";
        for label in name.split('.') {
            if label.is_empty() || label.len() > MAX_LABEL {
                return Err(InvalidHost::Label);
            }
            last = label;
        }
        if is_number(last) {
            let address: Ipv4Addr = name.parse().map_err(|_| InvalidHost::Number)?;
            return Ok(Self(HostKind::Address(address.into())));
        }
        Ok(Self(HostKind::Name(name)))
    }

    /// Returns the name, if the host is one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            HostKind::Name(name) => Some(name),
            HostKind::Address(_) => None,
        }
    }

    /// Returns the address, if the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        match self.0 {
            HostKind::Name(_) => None,
            HostKind::Address(address) => Some(address),
        }
    }
}

/// Returns whether some programs would interpret a host with this last label as an IPv4 address.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self(HostKind::Address(address.to_canonical()))
    }
}

/// Formats the host as in a URL: IPv6 in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            HostKind::Name(name) => f.write_str(name),
            HostKind::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            HostKind::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_host_has_one_spelling() {
        let label = "a".repeat(63);
        let long = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        let cases = [
            ("example.com", "example.com"),
            ("EXAMPLE.Com.", "example.com"),
            ("localhost", "localhost"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("1and1.com", "1and1.com"),
            ("1.2.3.4.com", "1.2.3.4.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("[::ffff:a00:1]", "10.0.0.1"),
            (long.as_str(), long.as_str()),
        ];
        for (given, expected) in cases {
            let host = Host::parse(given.as_bytes()).map(|host| host.to_string());
            assert_eq!(host.as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn what_two_parsers_could_read_differently_is_no_host() {
        use InvalidHost as No;
        let label = "a".repeat(64);
        let long = format!("{}.com", "a.".repeat(126).trim_end_matches('.'));
        let cases: &[(&[u8], No)] = &[
            (b"", No::Empty),
            (b".", No::Empty),
            (b"evil.com\0.allowed.com", No::Byte(0)),
            (b"evil.com\r\n", No::Byte(b'\r')),
            (b"user@evil.com", No::Byte(b'@')),
            (b"evil.com/allowed.com", No::Byte(b'/')),
            (b"evil.com\\.allowed.com", No::Byte(b'\\')),
            (b"evil.com%00.allowed.com", No::Byte(b'%')),
            (b"a b", No::Byte(b' ')),
            (b"b\xc3\xbccher.example", No::Byte(0xc3)),
            (b"*.example.com", No::Byte(b'*')),
            (b"::1", No::Byte(b':')),
            (b"a..b", No::Label),
            (b".a", No::Label),
            (b"a..", No::Label),
            (label.as_bytes(), No::Label),
            (long.as_bytes(), No::Long),
            (b"0x7f.1", No::Number),
            (b"2130706433", No::Number),
            (b"0177.0.0.1", No::Number),
            (b"127.1", No::Number),
            (b"127.0.0.01", No::Number),
            (b"256.0.0.1", No::Number),
            (b"1.2.3.4.5", No::Number),
            (b"0x7f000001", No::Number),
            (b"127.0.0.0X1", No::Number),
            (b"example.0x", No::Number),
            (b"[::1", No::Brackets),
            (b"[]", No::Brackets),
            (b"[127.0.0.1]", No::Brackets),
            (b"[fe80::1%eth0]", No::Brackets),
            (b"[::1].com", No::Brackets),
        ];
        for (given, expected) in cases {
            let got = Host::parse(given);
            assert_eq!(got.as_ref(), Err(expected), "{}", given.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn reading_a_host_again_changes_nothing(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(host) = Host::parse(&bytes) {
                prop_assert_eq!(Host::parse(host.to_string().as_bytes()), Ok(host));
            }
        }

        #[test]
        fn names_of_plain_bytes_keep_to_the_rules(text in "[A-Za-z0-9._x-]{0,300}") {
            if let Ok(host) = Host::parse(text.as_bytes()) {
                let text = host.to_string();
                prop_assert!(text.len() <= 253 && !text.ends_with('.'));
                prop_assert_eq!(text.to_lowercase(), text.clone());
                prop_assert_eq!(host.address().is_some(), text.parse::<IpAddr>().is_ok());
            }
        }

        #[test]
        fn an_address_is_read_back(bits in any::<u128>(), v4 in any::<u32>()) {
            for address in [IpAddr::from(Ipv6Addr::from(bits)), IpAddr::from(Ipv4Addr::from(v4))] {
                let host = Host::from(address);
                prop_assert_eq!(Host::parse(host.to_string().as_bytes()), Ok(host));
            }
        }
    }
}
