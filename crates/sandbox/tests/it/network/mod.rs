//! The proxy, through real sockets on loopback.
//!
//! - `rig`: a proxy, servers and clients for tests
//! - `rules`: what must hold of patterns and lists, whatever they name
//! - `tunnels`: CONNECT and SOCKS5; half-closed connections
//! - `plain`: requests in absolute form; `smuggling`: those that hide another
//! - `addresses`: where names may point
//! - `refusals`: what a client reads, and what is kept
//! - `bounds`: limits, and the end of everything
//! - `curl`: a real client, where there is one

mod addresses;
mod bounds;
mod curl;
mod plain;
mod refusals;
mod rig;
mod rules;
mod smuggling;
mod tunnels;
