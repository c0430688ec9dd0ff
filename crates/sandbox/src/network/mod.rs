//! Network access for commands in an empty network namespace: a proxy that decides by host.
//!
//! A command whose namespace has no network can reach one port, on which [`Proxy`] listens. The
//! proxy supports HTTP (`CONNECT`, and plain requests in absolute form) and SOCKS5 on that port. It
//! handles each request in these steps:
//!
//! 1. It validates the host ([`Host`]) before any rule is evaluated: a host that two parsers could
//!    read differently is refused.
//! 2. The [`NetworkGate`] decides, by rules or by asking the user.
//! 3. Only then does it resolve the name, once: a refused name never leaves in a DNS query.
//! 4. It checks every resolved address ([`SpecialAddress`], [`AllowedAddresses`]): an address that is not
//!    public is allowed only if a rule names that address.
//! 5. It connects to the address that it checked, and logs the decision ([`GateLogEntry`]).
//!
//! The proxy parses heads and bodies itself (`head`, `body`, `line`) and does not use hyper, which
//! is a dependency anyway. Hyper accepts messages that two servers may read differently: lines that
//! end in a bare LF, empty lines before a request, two Host fields, `Content-Length` twice with the
//! same value or together with `Transfer-Encoding` (which it drops silently), `Transfer-Encoding:
//! gzip, chunked`. It also hides the raw bytes, so that the proxy could not check any of that
//! itself.
//!
//! Limitation: the proxy does not inspect a tunnel (`CONNECT`, SOCKS). A command that may connect
//! to a host can send it any data through a tunnel, with any method, and request other sites that
//! the same server hosts. The gate sees the method and URL only of plain HTTP requests.

mod address;
mod allowed_addresses;
mod body;
mod connection_end;
mod dialer;
mod exchange;
mod gate;
mod head;
#[cfg(test)]
mod head_tests;
mod host;
mod http;
mod idle;
mod line;
mod log;
mod pattern;
mod proxy;
mod proxy_reply;
mod resolve;
mod rules;
mod socks;
mod tunnel;

pub use address::SpecialAddress;
pub use allowed_addresses::AllowedAddresses;
pub use gate::{GateFuture, GateRequest, GateVerdict, NetworkGate, RuleGate};
pub use host::{Host, InvalidHost};
pub use log::GateLogEntry;
pub use pattern::{HostPattern, InvalidPattern};
pub(crate) use proxy::ListenerGuard;
pub use proxy::{Proxy, ProxyLimits, ProxyOptions};
pub use resolve::{NameResolver, SystemResolver, addresses_of};
pub use rules::{HostRuleVerdict, HostRules};
