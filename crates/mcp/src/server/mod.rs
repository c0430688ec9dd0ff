//! Our side as a server.
//!
//! - [`service`]: what a server does, whatever carries its messages; `pool`: a pool of tools as one
//! - `session`: the life of a session in the revisions that begin with `initialize`, and requests of the
//!   stateless one; `parked`: requests of the latter that wait for an answer of the client's
//! - `stdio`: lines of a pipe; `http`: streamable HTTP
//!
//! **Invariants.** Each session has a service of its own. A request that is called off is dropped, and no other
//! is. What a client sends is bounded before it is read.

pub mod http;
mod outgoing;
mod parked;
pub mod pool;
pub mod service;
mod session;
pub mod stdio;

pub use http::{HttpAccess, HttpServer, HttpServerOptions};
pub use pool::{KeptResults, NarrowRoots, OpenCalls, PoolService, PromptDefinition, PromptSource};
pub use service::{
    ClientAskError, ClientFacts, LogLevel, McpService, OpenSession, RequestContext,
    ServerDescription, ServiceAnswer, SessionNotifier,
};
pub use stdio::serve_lines;
