//! Resolution of host names to addresses.

use std::{io, net::IpAddr};

use tokio::time::{Instant, timeout_at};

use super::{GateFuture, Host};

/// Resolves host names. Called once per connection, and only after the name was allowed.
pub trait NameResolver: Send + Sync {
    /// Returns all addresses, the preferred one first.
    fn resolve<'a>(&'a self, name: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver, including `/etc/hosts` and search domains.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Returns the addresses of a host, at least one: the address itself, or the addresses that the
/// resolver returns for the name. Calls the resolver at most once.
pub async fn addresses_of(
    host: &Host,
    resolver: &dyn NameResolver,
    deadline: Instant,
) -> io::Result<Vec<IpAddr>> {
    let Some(name) = host.name() else {
        return Ok(host.address().into_iter().collect());
    };
    let found = timeout_at(deadline, resolver.resolve(name)).await;
    let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    if found.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it has no addresses",
        ));
    }
    Ok(found)
}
