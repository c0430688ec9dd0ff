//! Streamable HTTP: clients post messages to one address.
//!
//! - `access`: access control; `headers`: checks of headers
//! - `sessions`: the sessions of clients that start with `initialize`, and the shared state of a
//!   client's requests in the stateless revision
//! - `post`: incoming messages; `streams`: outgoing messages, stored for clients that lose their
//!   connection; `reply`: responses
//!
//! **Invariants.** A request is processed only after its host, origin and token were checked. The
//! sizes of bodies and headers and the numbers of sessions and connections are limited; an unused
//! session ends. A session is not accessible to holders of another token than the one that started
//! it. In a session, a lost connection cancels nothing, unless the client stays away for
//! [`HttpServerOptions::disconnect_timeout`]; a request of the stateless revision ends with its
//! connection.

mod access;
mod headers;
mod post;
mod reply;
mod sessions;
mod streams;

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use haft_contract::CancellationToken;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

pub use access::HttpAccess;

use self::sessions::HttpSessions;
use super::service::OpenSession;
use crate::frames::MAX_FRAME;

/// The maximum number of open connections.
const MAX_CONNECTIONS: usize = 256;
/// The maximum size of the request headers in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// A response.
type ServerResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct HttpServerOptions {
    /// The access control.
    pub access: HttpAccess,
    /// The path for messages.
    pub path: String,
    /// The maximum size of a message in bytes.
    pub longest: usize,
    /// The time after which an unused session ends.
    pub idle: Duration,
    /// The time after which the requests of a session are cancelled, if its client has no
    /// connection and sends nothing.
    pub disconnect_timeout: Duration,
    /// The time limit for a client to send the request headers.
    pub head: Duration,
    /// The time limit for a client to send the body.
    pub body: Duration,
}

impl HttpServerOptions {
    /// Creates options with the default path and limits.
    pub fn new(access: HttpAccess) -> Self {
        Self {
            access,
            path: "/mcp".to_owned(),
            longest: MAX_FRAME,
            idle: Duration::from_secs(30 * 60),
            disconnect_timeout: Duration::from_secs(30),
            head: Duration::from_secs(30),
            body: Duration::from_secs(120),
        }
    }
}

/// A listening server.
pub struct HttpServer {
    listener: TcpListener,
    state: Arc<HttpState>,
}

struct HttpState {
    options: HttpServerOptions,
    sessions: HttpSessions,
    address: SocketAddr,
}

impl HttpServer {
    /// Listens on this address.
    pub async fn bind(
        address: SocketAddr,
        options: HttpServerOptions,
        open: Arc<dyn OpenSession>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let sessions = HttpSessions::new(open, options.idle, options.disconnect_timeout);
        Ok(Self {
            listener,
            state: Arc::new(HttpState {
                options,
                sessions,
                address,
            }),
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.state.address
    }

    /// Serves until `stop` is cancelled; then every session ends.
    pub async fn run(self, stop: CancellationToken) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut ticks = tokio::time::interval(self.state.sessions.sweep_every());
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = ticks.tick() => {
                    self.state.sessions.end_idle();
                    while connections.try_join_next().is_some() {}
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Too many open files, or a client that disconnected immediately.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                tracing::warn!("too many connections");
                continue;
            };
            let _ = stream.set_nodelay(true);
            let state = Arc::clone(&self.state);
            connections.spawn(async move {
                let service = service_fn(|request| {
                    let state = Arc::clone(&state);
                    async move { Ok::<_, Infallible>(state.answer(request).await) }
                });
                let serving = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(state.options.head)
                    .max_buf_size(MAX_HEAD)
                    .serve_connection(TokioIo::new(stream), service);
                if let Err(error) = serving.await {
                    tracing::debug!(%error, "a connection broke");
                }
                drop(slot);
            });
        }
        connections.shutdown().await;
        self.state.sessions.end_all().await;
    }
}

impl HttpState {
    async fn answer(&self, request: Request<Incoming>) -> ServerResponse {
        let (uri, headers) = (request.uri(), request.headers());
        let holder = match self.options.access.check(uri, headers, self.address) {
            Ok(holder) => holder,
            Err(refused) => return *refused,
        };
        if request.uri().path() != self.options.path {
            return reply::plain(StatusCode::NOT_FOUND, "not found");
        }
        match *request.method() {
            Method::POST => self.post(request, holder).await,
            Method::GET => self.listen(request.headers(), holder),
            Method::DELETE => self.end(request.headers(), holder).await,
            _ => reply::not_allowed("GET, POST, DELETE"),
        }
    }

    /// Reads a body of limited size.
    async fn body(&self, body: Incoming) -> Result<Bytes, ServerResponse> {
        let longest = self.options.longest;
        let too_long = || {
            let words = format!("the message is too long; the limit is {longest} bytes");
            reply::error(StatusCode::PAYLOAD_TOO_LARGE, &words)
        };
        let announced = body.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > longest) {
            return Err(too_long());
        }
        let limited = http_body_util::Limited::new(body, longest);
        let Ok(collected) = tokio::time::timeout(self.options.body, limited.collect()).await else {
            let words = "the body took too long";
            return Err(reply::error(StatusCode::REQUEST_TIMEOUT, words));
        };
        match collected {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_long()),
            Err(error) => Err(reply::error(
                StatusCode::BAD_REQUEST,
                &format!("the body could not be read: {error}"),
            )),
        }
    }
}

fn full_body(text: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::new(text.into()).boxed_unsync()
}
