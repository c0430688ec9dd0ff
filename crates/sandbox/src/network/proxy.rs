//! The proxy: serves HTTP and SOCKS5 on one port.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use super::{
    GateLogEntry, NameResolver, NetworkGate, SystemResolver, dialer::Dialer, http, log::GateLog,
    socks,
};

/// The pause after an error of `accept`, which mostly means too many open files.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A proxy that runs until it is dropped. Its connections end with it.
pub struct Proxy {
    dialer: Arc<Dialer>,
    accepting: Option<ListenerGuard>,
}

/// Keeps a listener in service until it is dropped.
pub(crate) struct ListenerGuard(AbortHandle);

/// The resolver and limits of a proxy.
pub struct ProxyOptions {
    /// The resolver of host names.
    pub resolver: Arc<dyn NameResolver>,
    /// The limits for clients.
    pub limits: ProxyLimits,
}

/// Limits for the clients of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// The number of simultaneous connections; further ones wait.
    pub connections: usize,
    /// The maximum size of a message head in bytes.
    pub head: usize,
    /// The timeout for the request of a client.
    pub handshake: Duration,
    /// The time limit for resolving and connecting together.
    pub connect: Duration,
    /// The time for which a connection may be idle after one side has sent everything. Idle
    /// connections are closed after at most twice this time.
    pub silence: Duration,
    /// The maximum number of decisions in the log.
    pub log: usize,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: 64 * 1024,
            handshake: Duration::from_secs(30),
            connect: Duration::from_secs(30),
            silence: Duration::from_secs(300),
            log: 1000,
        }
    }
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            limits: ProxyLimits::default(),
        }
    }
}

impl Proxy {
    /// Serves the clients of a listener in the current tokio runtime. The listener may belong to
    /// another network namespace; outgoing connections use that of this process.
    pub fn serve(listener: std::net::TcpListener, gate: Arc<dyn NetworkGate>) -> io::Result<Self> {
        Self::serve_with(listener, gate, ProxyOptions::default())
    }

    /// Like [`Proxy::serve`], but with the given resolver and limits.
    pub fn serve_with(
        listener: std::net::TcpListener,
        gate: Arc<dyn NetworkGate>,
        options: ProxyOptions,
    ) -> io::Result<Self> {
        let mut proxy = Self::with(gate, options);
        proxy.accepting = Some(proxy.accept_from(listener)?);
        Ok(proxy)
    }

    /// Creates a proxy without a listener. It serves only the listeners given to
    /// [`accept_from`](Self::accept_from).
    pub(crate) fn with(gate: Arc<dyn NetworkGate>, options: ProxyOptions) -> Self {
        let ProxyOptions { resolver, limits } = options;
        let dialer = Arc::new(Dialer {
            gate,
            resolver,
            limits,
            log: GateLog::new(limits.log),
        });
        Self {
            dialer,
            accepting: None,
        }
    }

    /// Serves the clients of one more listener.
    pub(crate) fn accept_from(&self, listener: std::net::TcpListener) -> io::Result<ListenerGuard> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let accepting = runtime.spawn(accept(listener, Arc::clone(&self.dialer)));
        Ok(ListenerGuard(accepting.abort_handle()))
    }

    /// Returns the latest decisions, oldest first.
    pub fn log(&self) -> Vec<GateLogEntry> {
        self.dialer.log.all()
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts connections. Dropping this future ends them.
async fn accept(listener: TcpListener, dialer: Arc<Dialer>) {
    let most = dialer.limits.connections.min(Semaphore::MAX_PERMITS);
    let slots = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                let dialer = Arc::clone(&dialer);
                connections.spawn(async move {
                    connection(client, &dialer).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the sandbox's proxy cannot take a connection");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            }
        }
    }
}

async fn connection(mut client: TcpStream, dialer: &Dialer) {
    // An error affects only the speed.
    let _ = client.set_nodelay(true);
    let (reader, mut writer) = client.split();
    let mut reader = BufReader::new(reader);
    let first = match timeout(dialer.limits.handshake, reader.fill_buf()).await {
        Ok(Ok(buffer)) => buffer.first().copied(),
        _ => None,
    };
    match first {
        None => {}
        Some(socks::VERSION) => socks::serve(reader, &mut writer, dialer).await,
        Some(_) => http::serve(reader, &mut writer, dialer).await,
    }
}
