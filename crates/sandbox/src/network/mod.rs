//! The way out for commands in an empty network namespace: a proxy that decides by host.
//!
//! A command whose namespace has no network reaches one port, and [`Proxy`] listens there. It speaks
//! HTTP (`CONNECT`, and plain requests in absolute form) and SOCKS5 on that port. The road of a request:
//!
//! 1. the host's bytes are checked ([`Host`]), before anyone judges them: what two parsers could read
//!    differently is refused;
//! 2. the [`Gate`] judges, by rules or by asking;
//! 3. only then is the name resolved, once: a refused name never leaves in a DNS query;
//! 4. every address found is checked ([`Special`], [`AllowedAddresses`]): what is not public is reached only where a
//!    rule names that very address;
//! 5. the connection goes to the address that was checked, and is written to the log ([`GateLogEntry`]).
//!
//! Heads and bodies are read by code of our own (`head`, `body`, `line`), not by hyper, which is in the
//! tree anyway: it accepts what this refuses because two servers may read it differently. Lines that end
//! in a bare LF, empty lines before a request, two Host fields, `Content-Length` twice with the same value
//! or beside `Transfer-Encoding` (which it drops without a word), `Transfer-Encoding: gzip, chunked`;
//! and it shows no one the bytes, so that none of that could be checked afterwards.
//!
//! What this cannot do: a tunnel (`CONNECT`, SOCKS) is not looked into. A command that is allowed a host may
//! send it anything in there, by any method, and ask that server for another site it also serves. Only
//! plain HTTP shows its method and URL to the gate.

mod address;
mod answer;
mod body;
mod dial;
mod end;
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
mod reach;
mod resolve;
mod rules;
mod socks;
mod tunnel;

pub use address::Special;
pub use gate::{ByRules, Gate, GateFuture, GateRequest, GateVerdict};
pub use host::{Host, InvalidHost};
pub use log::GateLogEntry;
pub use pattern::{HostPattern, InvalidPattern};
pub(crate) use proxy::Accepting;
pub use proxy::{Proxy, ProxyLimits, ProxyOptions};
pub use reach::AllowedAddresses;
pub use resolve::{Resolve, SystemResolver, addresses_of};
pub use rules::{HostRules, Judged};
