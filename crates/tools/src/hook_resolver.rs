//! Address checks for HTTP hooks: a name is resolved once, and every address is classified with the
//! same table that is used for the network of commands.

use std::net::IpAddr;

use haft_contract::{BoxFuture, HostResolver};
use haft_sandbox::network::{Host, NameResolver, SpecialAddress, SystemResolver};

/// Resolves hosts for hooks. Numeric addresses in a hook's URL are allowed, even private ones,
/// because the user wrote them; unspecified, multicast and unnamed metadata addresses are refused.
/// The addresses of a name are checked more strictly, because others control them.
pub struct HookAddresses<R = SystemResolver>(pub R);

impl<R: NameResolver> HostResolver for HookAddresses<R> {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        is_named: bool,
    ) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(self.checked(host, is_named))
    }
}

impl<R: NameResolver> HookAddresses<R> {
    async fn checked(&self, host: &str, is_named: bool) -> Result<Vec<IpAddr>, String> {
        let read = Host::parse(host.as_bytes());
        let read = read.map_err(|invalid| format!("{host:?} is not a valid host: {invalid}"))?;
        if let Some(address) = read.address() {
            return match SpecialAddress::classify(address) {
                Some(special @ (SpecialAddress::Unspecified | SpecialAddress::Multicast)) => {
                    Err(format!("{host} is {special}: hooks may not post to it"))
                }
                Some(special @ SpecialAddress::Metadata) if !is_named => {
                    Err(unnamed(host, special))
                }
                _ => Ok(vec![address]),
            };
        }
        let name = read.name().unwrap_or(host);
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let found = self.0.resolve(name).await;
        let found = found.map_err(|error| format!("{host} cannot be resolved: {error}"))?;
        if found.is_empty() {
            return Err(format!("{host} cannot be resolved: it has no addresses"));
        }
        // If one address is not allowed, the host is refused.
        for address in &found {
            match SpecialAddress::classify(*address) {
                None if !is_local => {}
                None => {
                    return Err(format!(
                        "{host} resolves to {address}, which is not this machine"
                    ));
                }
                Some(SpecialAddress::Loopback) if is_local => {}
                Some(special @ (SpecialAddress::Unspecified | SpecialAddress::Multicast)) => {
                    return Err(format!(
                        "{host} resolves to {special}: hooks may not post to it"
                    ));
                }
                Some(_) if is_named => {}
                Some(special) => return Err(unnamed(&format!("{host} ({address})"), special)),
            }
        }
        Ok(found)
    }
}

fn unnamed(host: &str, special: SpecialAddress) -> String {
    format!(
        "{host} is {special}: allowed only if allowedHttpHookUrls in the settings names the host"
    )
}

#[cfg(test)]
mod tests {
    use std::io;

    use haft_sandbox::network::GateFuture;

    use super::*;

    /// Every name leads there.
    struct To(&'static [&'static str]);

    impl NameResolver for To {
        fn resolve<'a>(&'a self, _: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Ok(self.0.iter().map(|one| one.parse().unwrap()).collect()) })
        }
    }

    #[tokio::test]
    async fn names_do_not_lead_inside_unless_the_settings_name_them() {
        // (host, where it leads, without being named, named)
        let cases: [(&str, &[&str], bool, bool); 16] = [
            ("[::1]", &[], true, true),
            ("0x7f.1", &[], false, false),
            ("hooks.example.com", &["93.184.216.34"], true, true),
            ("hooks.example.com", &["10.0.0.1"], false, true),
            (
                "hooks.example.com",
                &["93.184.216.34", "127.0.0.1"],
                false,
                true,
            ),
            ("hooks.example.com", &["169.254.169.254"], false, true),
            ("hooks.example.com", &["::ffff:192.168.0.1"], false, true),
            ("hooks.example.com", &["0.0.0.0"], false, false),
            ("hooks.example.com", &[], false, false),
            ("localhost", &["127.0.0.1", "::1"], true, true),
            ("localhost", &["93.184.216.34"], false, false),
            ("127.0.0.1", &[], true, true),
            ("10.1.2.3", &[], true, true),
            ("169.254.169.254", &[], false, true),
            ("0.0.0.0", &[], false, false),
            ("a b", &["93.184.216.34"], false, false),
        ];
        for (host, to, unnamed, named) in cases {
            let addresses = HookAddresses(To(to));
            for (is_named, expected) in [(false, unnamed), (true, named)] {
                let found = addresses.resolve(host, is_named).await;
                assert_eq!(
                    found.is_ok(),
                    expected,
                    "{host} {to:?} {is_named} {found:?}"
                );
            }
        }
    }
}
