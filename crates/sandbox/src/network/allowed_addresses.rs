//! The addresses that a connection may use, checked after the host name was resolved.

use std::net::IpAddr;

use super::{Host, SpecialAddress, address::embedded};

/// All public addresses, and other addresses that rules name explicitly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    named: Vec<IpAddr>,
    denied: Vec<IpAddr>,
}

impl AllowedAddresses {
    /// Allows only public addresses.
    pub fn public() -> Self {
        Self::default()
    }

    /// Also allows these addresses, public or not.
    #[must_use]
    pub fn with(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        self.named.extend(addresses);
        self
    }

    /// Denies these addresses. Takes precedence over everything else.
    #[must_use]
    pub fn without(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        self.denied.extend(addresses);
        self
    }

    /// Checks that a host with these addresses may be connected to. The error is a human-readable
    /// reason. One refused address refuses the host: a name with both public and private addresses
    /// is an attack, or cannot be distinguished from one here.
    pub fn check_all(&self, host: &Host, addresses: &[IpAddr]) -> Result<(), String> {
        let mut addresses = addresses.iter();
        addresses.try_for_each(|address| self.check(host, *address))
    }

    fn check(&self, host: &Host, address: IpAddr) -> Result<(), String> {
        let address = address.to_canonical();
        let at = match host.address() {
            Some(_) => format!("{host} is"),
            None => format!("{host} resolves to {address}, which is"),
        };
        // An IPv6 address may embed a denied IPv4 address.
        let inner = embedded(address).map(IpAddr::V4);
        if self.denied.contains(&address) || inner.is_some_and(|it| self.denied.contains(&it)) {
            return Err(format!("{at} denied by a rule. Nothing overrides that."));
        }
        match SpecialAddress::classify(address) {
            None => Ok(()),
            Some(special @ (SpecialAddress::Unspecified | SpecialAddress::Multicast)) => {
                Err(format!("{at} {special}. No rule allows that."))
            }
            Some(_) if self.named.contains(&address) => Ok(()),
            Some(special) => Err(format!(
                "{at} {special}. Only a rule that names exactly this address allows that: \
                 \"{}\" in `sandbox.network.allowedDomains`.",
                Host::from(address)
            )),
        }
    }
}
