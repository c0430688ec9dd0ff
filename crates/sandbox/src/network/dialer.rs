//! The steps from a request to a connection: ask the gate, resolve, check, connect.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{
    GateLogEntry, GateRequest, GateVerdict, Host, NameResolver, NetworkGate, ProxyLimits,
    addresses_of, log::GateLog,
};
use crate::CommandNetwork;

/// The state that the connections of a proxy share.
pub(super) struct Dialer {
    pub(super) gate: Arc<dyn NetworkGate>,
    pub(super) resolver: Arc<dyn NameResolver>,
    pub(super) limits: ProxyLimits,
    pub(super) log: GateLog,
}

/// The reason why a connection failed. The texts are whole paragraphs for the client.
#[derive(Debug)]
pub(super) enum DialFailure {
    /// The gate or the address check refused it.
    Refused(String),
    /// It was allowed, but the name cannot be resolved.
    Unresolved(String),
    /// It was allowed, but the connection failed.
    Unreachable(String, io::ErrorKind),
}

impl Dialer {
    /// Parses a host as the client sent it. An invalid host is refused here, before any policy.
    pub(super) fn host(
        &self,
        bytes: &[u8],
        port: u16,
        method: Option<&str>,
    ) -> Result<Host, DialFailure> {
        Host::parse(bytes).map_err(|invalid| {
            let host = shown(bytes);
            let because = format!("This is not a valid host: {invalid}. No rule allows that.");
            let failure = DialFailure::Refused(refusal(&host, port, &because));
            self.log.add(GateLogEntry {
                host,
                port,
                method: method.map(str::to_owned),
                allowed: false,
                reason: because,
                address: None,
            });
            failure
        })
    }

    /// Opens a connection for a request if the gate allows it. If `gone` completes first, because
    /// the client has left, the gate's decision is no longer awaited.
    pub(super) async fn open(
        &self,
        request: GateRequest,
        gone: impl Future<Output = ()>,
    ) -> Result<TcpStream, DialFailure> {
        let mut entry = GateLogEntry {
            host: request.host.to_string(),
            port: request.port,
            method: request.method.clone(),
            allowed: false,
            reason: String::new(),
            address: None,
        };
        let (host, port) = (request.host.clone(), request.port);
        let verdict = tokio::select! {
            biased;
            verdict = self.gate.decide(request) => verdict,
            () = gone => GateVerdict::Refuse {
                because: "The client left before it was decided.".to_owned(),
            },
        };
        let deadline = Instant::now() + self.limits.connect;
        let (because, reach, addresses, network) = match verdict {
            GateVerdict::Refuse { because } => return Err(self.refused(entry, because)),
            GateVerdict::Allow { because, reach } => {
                match addresses_of(&host, &*self.resolver, deadline).await {
                    Ok(addresses) => (because, reach, addresses, None),
                    Err(error) => {
                        let text = format!("The host {host} cannot be resolved: {error}.\n");
                        (entry.allowed, entry.reason) = (true, because);
                        self.log.add(entry);
                        return Err(DialFailure::Unresolved(text));
                    }
                }
            }
            GateVerdict::AllowAt {
                because,
                reach,
                addresses,
                network,
            } => {
                let outside = addresses
                    .iter()
                    .find(|address| !address.to_canonical().is_loopback());
                if let Some(outside) = outside {
                    let because = format!("{outside} is not on this machine.");
                    return Err(self.refused(entry, because));
                }
                (because, reach, addresses, network)
            }
        };
        if let Err(because) = reach.check_all(&host, &addresses) {
            return Err(self.refused(entry, because));
        }
        let (outcome, address) = connect(&addresses, port, network.as_ref(), deadline).await;
        entry.allowed = true;
        entry.reason = because;
        entry.address = Some(address);
        self.log.add(entry);
        outcome.map_err(|error| {
            let text = format!(
                "The host {host} cannot be reached at {address}: {}.\n",
                reason(&error)
            );
            DialFailure::Unreachable(text, error.kind())
        })
    }

    fn refused(&self, entry: GateLogEntry, because: String) -> DialFailure {
        let failure = DialFailure::Refused(refusal(&entry.host, entry.port, &because));
        self.log.add(GateLogEntry {
            reason: because,
            ..entry
        });
        failure
    }
}

/// Returns the text of a system error without its number.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => error.kind().to_string(),
        None => error.to_string(),
    }
}

/// Returns an invalid host in printable form, cut to the maximum length of a host.
fn shown(bytes: &[u8]) -> String {
    const MAX_COUNT: usize = 253;
    match bytes.get(..MAX_COUNT) {
        Some(start) => format!("{}...", start.escape_ascii()),
        None => bytes.escape_ascii().to_string(),
    }
}

fn refusal(host: &str, port: u16, because: &str) -> String {
    format!("The sandbox refused the connection to {host}, port {port}. {because}\n")
}

/// Tries the addresses in turn. Returns the connection or the last error, with its address.
async fn connect(
    addresses: &[IpAddr],
    port: u16,
    network: Option<&CommandNetwork>,
    deadline: Instant,
) -> (io::Result<TcpStream>, SocketAddr) {
    let mut last = (
        Err(io::ErrorKind::NotFound.into()),
        SocketAddr::from(([0, 0, 0, 0], port)),
    );
    for (tried, address) in (0..).zip(addresses) {
        let address = SocketAddr::new(address.to_canonical(), port);
        // The remaining time is divided evenly, so that an address that does not answer leaves time
        // for the others.
        let left = deadline.saturating_duration_since(Instant::now());
        let rest = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let turn = Instant::now() + left / rest;
        let outcome = match network {
            None => timeout_at(turn, TcpStream::connect(address)).await,
            Some(network) => timeout_at(turn, network.connect(address)).await,
        };
        let outcome = outcome.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if let Ok(server) = &outcome {
            // Sends small packets immediately. An error affects only the speed.
            let _ = server.set_nodelay(true);
            return (outcome, address);
        }
        last = (outcome, address);
    }
    last
}
