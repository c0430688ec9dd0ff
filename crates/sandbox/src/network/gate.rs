//! Who decides whether a request goes out.

use std::{net::IpAddr, pin::Pin};

use super::{AllowedAddresses, Host, HostRules, Judged};
use crate::CommandNetwork;

/// A future in a box, so that the traits here can stand behind `dyn`.
pub type GateFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Judges every request, and each one anew. May take its time: a person may be asked.
pub trait Gate: Send + Sync {
    /// May this go out? Called before the name is resolved.
    fn judge(&self, request: GateRequest) -> GateFuture<'_, GateVerdict>;
}

/// What wants to go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRequest {
    /// To whom.
    pub host: Host,
    /// At which port.
    pub port: u16,
    /// The method of a plain HTTP request; `None` for a tunnel, which cannot be looked into.
    pub method: Option<String>,
    /// The whole URL of a plain HTTP request; `None` for a tunnel.
    pub url: Option<String>,
}

/// The answer of a [`Gate`]. The reasons are sentences: people and models read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// It may go to the addresses within reach.
    Allow {
        /// Which rule, or who, says so.
        because: String,
        /// Where the host may be.
        reach: AllowedAddresses,
    },
    /// It may go to these addresses of loopback, which stand for the host, and to no others: here, or in the network
    /// that a command has for itself.
    AllowAt {
        /// Who says so.
        because: String,
        /// Where the host may be. It holds for these addresses too.
        reach: AllowedAddresses,
        /// Tried in this order.
        addresses: Vec<IpAddr>,
        /// In which network they are; `None`: in that of this process.
        network: Option<CommandNetwork>,
    },
    /// It may not.
    Refuse {
        /// Why, and what would allow it.
        because: String,
    },
}

/// Decides by rules alone, for when there is no one to ask: what no rule allows is refused, and so is a
/// plain request that could change something (any method but `GET` and `HEAD`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByRules(
    /// The rules.
    pub HostRules,
);

impl ByRules {
    fn verdict(&self, request: &GateRequest) -> GateVerdict {
        let GateRequest { host, port, .. } = request;
        let because = match self.0.judge(host, *port) {
            Judged::Denied(pattern) => {
                format!("The rule \"{pattern}\" denies it. Nothing overrides that.")
            }
            Judged::Unknown => format!("No rule allows it. {}", what_allows(host)),
            Judged::Allowed(pattern) => match request.method.as_deref() {
                None | Some("GET" | "HEAD") => {
                    return GateVerdict::Allow {
                        because: format!("The rule \"{pattern}\" allows it."),
                        reach: self.0.reach(host, *port),
                    };
                }
                Some(method) => format!(
                    "The rule \"{pattern}\" allows the host, but {method} can change something \
                     there, and over plain HTTP only GET and HEAD are let through. Use https if \
                     the host has it."
                ),
            },
        };
        GateVerdict::Refuse { because }
    }
}

/// What would allow a host that no rule speaks of.
fn what_allows(host: &Host) -> String {
    match host.name() {
        Some(_) => format!(
            "To allow it, add \"{host}\" to `sandbox.network.allowedDomains`, or the rule \
             `WebFetch(domain:{host})`."
        ),
        None => format!("To allow it, add \"{host}\" to `sandbox.network.allowedDomains`."),
    }
}

impl Gate for ByRules {
    fn judge(&self, request: GateRequest) -> GateFuture<'_, GateVerdict> {
        Box::pin(async move { self.verdict(&request) })
    }
}
