//! The server: offers haft's tools to MCP clients.
//!
//! - [`service`]: the operations of a server, independent of the transport; `pool`: a tool pool as
//!   a service
//! - `session`: a session in the revisions with `initialize`, and requests of the
//!   stateless one; `parked`: requests of the stateless revision that wait for an answer of the
//!   client
//! - `stdio`: lines over a pipe; `http`: streamable HTTP
//!
//! **Invariants.** Each session has its own service. Cancelling a request drops only this request.
//! The size of input is limited before it is read.

mod client_requests;
pub mod http;
mod parked;
pub mod pool;
pub mod service;
mod session;
pub mod stdio;

pub use http::{HttpAccess, HttpServer, HttpServerOptions};
pub use pool::{
    ActiveCalls, NarrowRoots, PoolService, PromptDefinition, PromptSource, StoredResults,
};
pub use service::{
    ClientInfo, ClientRequestError, LogLevel, McpService, OpenSession, RequestContext,
    ServerDescription, ServiceAnswer, SessionNotifier,
};
pub use stdio::serve_lines;
