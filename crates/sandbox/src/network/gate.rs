//! The interface that decides whether a request may leave the sandbox.

use std::{net::IpAddr, pin::Pin};

use super::{AllowedAddresses, Host, HostRuleVerdict, HostRules};
use crate::CommandNetwork;

/// A boxed future, so that the traits here are object safe.
pub type GateFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Decides about each request separately. May take long, because it may ask the user.
pub trait NetworkGate: Send + Sync {
    /// Decides whether a request may be sent. Called before the name is resolved.
    fn decide(&self, request: GateRequest) -> GateFuture<'_, GateVerdict>;
}

/// A request that is about to leave the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRequest {
    /// The target host.
    pub host: Host,
    /// The target port.
    pub port: u16,
    /// The method of a plain HTTP request; `None` for a tunnel, which cannot be inspected.
    pub method: Option<String>,
    /// The complete URL of a plain HTTP request; `None` for a tunnel.
    pub url: Option<String>,
}

/// The decision of a [`NetworkGate`]. The reasons are sentences that users and models read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// The request may be sent to the allowed addresses of its host.
    Allow {
        /// The rule, or the user's answer, that allows it.
        because: String,
        /// The addresses that are allowed for the host.
        reach: AllowedAddresses,
    },
    /// The request may be sent only to these loopback addresses, which replace those of the host:
    /// on this machine, or in a command's own network.
    AllowAt {
        /// The reason why it is allowed.
        because: String,
        /// The addresses that are allowed for the host. The check applies to `addresses`, too.
        reach: AllowedAddresses,
        /// The addresses, in the order of the attempts.
        addresses: Vec<IpAddr>,
        /// The network that contains the addresses; `None` for the network of this process.
        network: Option<CommandNetwork>,
    },
    /// The request is refused.
    Refuse {
        /// The reason, and a rule that would allow it.
        because: String,
    },
}

/// A gate that decides by rules alone, for sessions without a user who can be asked. Refuses
/// everything that no rule allows, and plain HTTP requests that could change the server's data (any
/// method except `GET` and `HEAD`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleGate(
    /// The rules.
    pub HostRules,
);

impl RuleGate {
    fn verdict(&self, request: &GateRequest) -> GateVerdict {
        let GateRequest { host, port, .. } = request;
        let because = match self.0.evaluate(host, *port) {
            HostRuleVerdict::Denied(pattern) => {
                format!("The rule \"{pattern}\" denies it. Nothing overrides that.")
            }
            HostRuleVerdict::Unknown => format!("No rule allows it. {}", what_allows(host)),
            HostRuleVerdict::Allowed(pattern) => match request.method.as_deref() {
                None | Some("GET" | "HEAD") => {
                    return GateVerdict::Allow {
                        because: format!("The rule \"{pattern}\" allows it."),
                        reach: self.0.reach(host, *port),
                    };
                }
                Some(method) => format!(
                    "The rule \"{pattern}\" allows the host, but {method} can change something \
                     there, and over plain HTTP only GET and HEAD are allowed. Use https if the \
                     host supports it."
                ),
            },
        };
        GateVerdict::Refuse { because }
    }
}

/// Returns the text that explains how to allow a host that no rule matches.
fn what_allows(host: &Host) -> String {
    match host.name() {
        Some(_) => format!(
            "To allow it, add \"{host}\" to `sandbox.network.allowedDomains`, or the rule \
             `WebFetch(domain:{host})`."
        ),
        None => format!("To allow it, add \"{host}\" to `sandbox.network.allowedDomains`."),
    }
}

impl NetworkGate for RuleGate {
    fn decide(&self, request: GateRequest) -> GateFuture<'_, GateVerdict> {
        Box::pin(async move { self.verdict(&request) })
    }
}
