//! Rules that allow and deny hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AllowedAddresses, Host, HostPattern};

/// Two lists of patterns. A host that neither matches is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    /// The allowed hosts.
    pub allowed: Vec<HostPattern>,
    /// The denied hosts. These patterns take precedence.
    pub denied: Vec<HostPattern>,
}

/// The decision of the rules about a host, with the pattern that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRuleVerdict<'a> {
    /// This pattern allows the host, and none denies it.
    Allowed(&'a HostPattern),
    /// This pattern denies the host.
    Denied(&'a HostPattern),
    /// No pattern matches the host.
    Unknown,
}

impl HostRules {
    /// Evaluates the rules for a host at a port. Denying patterns win.
    pub fn evaluate(&self, host: &Host, port: u16) -> HostRuleVerdict<'_> {
        let fits = |pattern: &&HostPattern| pattern.matches(host, port);
        if let Some(pattern) = self.denied.iter().find(fits) {
            HostRuleVerdict::Denied(pattern)
        } else if let Some(pattern) = self.allowed.iter().find(fits) {
            HostRuleVerdict::Allowed(pattern)
        } else {
            HostRuleVerdict::Unknown
        }
    }

    /// Returns the addresses that are allowed for a host that was allowed.
    ///
    /// An address that is not public is allowed only if a rule names the address itself. A rule for
    /// the host name is not enough: the owner of the name chooses its addresses and could point it
    /// to this machine. The only exception is `localhost`, which means loopback by definition.
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
