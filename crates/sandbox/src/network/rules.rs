//! Which hosts are allowed, and which denied.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AllowedAddresses, Host, HostPattern};

/// Two lists of patterns. What is in neither is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    /// Hosts that may be reached.
    pub allowed: Vec<HostPattern>,
    /// Hosts that may not, whatever allows them.
    pub denied: Vec<HostPattern>,
}

/// What the rules say of a host, and which of them says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged<'a> {
    /// This pattern allows it, and none denies it.
    Allowed(&'a HostPattern),
    /// This pattern denies it.
    Denied(&'a HostPattern),
    /// No pattern speaks of it.
    Unknown,
}

impl HostRules {
    /// What the rules say of a host at a port. Deny wins.
    pub fn judge(&self, host: &Host, port: u16) -> Judged<'_> {
        let fits = |pattern: &&HostPattern| pattern.matches(host, port);
        if let Some(pattern) = self.denied.iter().find(fits) {
            Judged::Denied(pattern)
        } else if let Some(pattern) = self.allowed.iter().find(fits) {
            Judged::Allowed(pattern)
        } else {
            Judged::Unknown
        }
    }

    /// Which addresses of a host may be reached, once it is allowed.
    ///
    /// An address that is not public is reached only if a rule names the address itself. A rule that
    /// names the host is not enough: its owner chooses where it points, and could point it at
    /// this machine. The one exception is `localhost`, which means loopback by definition.
    pub fn reach(&self, host: &Host, port: u16) -> AllowedAddresses {
        let named = self
            .allowed
            .iter()
            .filter_map(|pattern| pattern.address(port));
        let is_localhost = |host: &Host| host.name() == Some("localhost");
        let localhost_named = is_localhost(host)
            && self
                .allowed
                .iter()
                .any(|rule| rule.exactly().is_some_and(is_localhost) && rule.matches(host, port));
        let loopback: &[IpAddr] = match localhost_named {
            true => &[
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
            ],
            false => &[],
        };
        let denied = self
            .denied
            .iter()
            .filter_map(|pattern| pattern.address(port));
        AllowedAddresses::public()
            .with(named.chain(loopback.iter().copied()))
            .without(denied)
    }
}
