//! From a name to addresses.

use std::{io, net::IpAddr};

use super::GateFuture;

/// Finds the addresses of a name. Asked once for a connection, and only after the name was allowed.
pub trait Resolve: Send + Sync {
    /// All addresses, the preferred one first.
    fn resolve<'a>(&'a self, name: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver, `/etc/hosts` and search domains included.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
