//! Which of the addresses that a name resolves to may be connected to.

use std::net::IpAddr;

use super::{Host, Special, address::embedded};

/// All public addresses, and those others that someone named one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    named: Vec<IpAddr>,
    denied: Vec<IpAddr>,
}

impl AllowedAddresses {
    /// Public addresses only.
    pub fn public() -> Self {
        Self::default()
    }

    /// These as well, public or not.
    #[must_use]
    pub fn with(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        self.named.extend(addresses);
        self
    }

    /// None of these, whatever else holds.
    #[must_use]
    pub fn without(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        self.denied.extend(addresses);
        self
    }

    /// May a host at these addresses be connected to? If not, why not, as a sentence for people. One address
    /// out of bounds spoils them all: a name that points outside and inside at once is a trick, or a network
    /// that no one here can tell from one.
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
        // The way to an address can be written into another one.
        let inner = embedded(address).map(IpAddr::V4);
        if self.denied.contains(&address) || inner.is_some_and(|it| self.denied.contains(&it)) {
            return Err(format!("{at} denied by a rule. Nothing overrides that."));
        }
        match Special::of(address) {
            None => Ok(()),
            Some(special @ (Special::Unspecified | Special::Multicast)) => {
                Err(format!("{at} {special}. No rule allows that."))
            }
            Some(_) if self.named.contains(&address) => Ok(()),
            Some(special) => Err(format!(
                "{at} {special}. Only a rule that names this very address allows that: \
                 \"{}\" in `sandbox.network.allowedDomains`.",
                Host::from(address)
            )),
        }
    }
}
