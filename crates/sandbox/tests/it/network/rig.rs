//! A proxy, servers and clients for tests.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use haft_sandbox::network::{
    GateFuture, HostPattern, HostRules, NameResolver, NetworkGate, Proxy, ProxyLimits,
    ProxyOptions, RuleGate,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
};

pub(super) fn patterns(list: &[&str]) -> Vec<HostPattern> {
    list.iter()
        .map(|pattern| HostPattern::parse(pattern).unwrap())
        .collect()
}

pub(super) fn rules(allowed: &[&str], denied: &[&str]) -> HostRules {
    HostRules {
        allowed: patterns(allowed),
        denied: patterns(denied),
    }
}

/// Names with the answers that are given for them, one after the other; the last one stays.
#[derive(Default)]
pub(super) struct Names {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(super) fn new(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let address = |text: &&str| text.parse().unwrap();
        let answers = names.iter().map(|(name, answers)| {
            let answers = answers
                .iter()
                .map(|answer| answer.iter().map(address).collect());
            ((*name).to_owned(), answers.collect())
        });
        Arc::new(Self {
            answers: answers.collect(),
            asked: Mutex::default(),
        })
    }

    /// All that was asked for, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl NameResolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.iter().filter(|it| *it == name).count();
        asked.push(name.to_owned());
        let answer = self
            .answers
            .get(name)
            .and_then(|answers| answers.get(before).or(answers.last()).cloned())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"));
        Box::pin(async move { answer })
    }
}

/// A proxy on a port of its own.
pub(super) struct Rig {
    pub(super) proxy: Proxy,
    pub(super) address: SocketAddr,
    pub(super) names: Arc<Names>,
}

impl Rig {
    pub(super) fn new(allowed: &[&str], names: &[(&str, &[&[&str]])]) -> Self {
        let gate = Arc::new(RuleGate(rules(allowed, &[])));
        Self::with(gate, names, ProxyLimits::default())
    }

    pub(super) fn with(
        gate: Arc<dyn NetworkGate>,
        names: &[(&str, &[&[&str]])],
        limits: ProxyLimits,
    ) -> Self {
        haft_testkit::bound_this_process();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let names = Names::new(names);
        let options = ProxyOptions {
            resolver: names.clone(),
            limits,
        };
        Self {
            proxy: Proxy::serve_with(listener, gate, options).unwrap(),
            address,
            names,
        }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes, and reads all that comes back.
    pub(super) async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.connect().await;
        client.write_all(bytes.as_ref()).await.unwrap();
        read_all(&mut client).await
    }
}

/// What can be read until the other side ends, in good or in bad.
pub(super) async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8(bytes).unwrap()
}

/// Reads exactly these bytes.
pub(super) async fn expect(stream: &mut TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(
        bytes.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

/// A server whose connections the test holds in hand.
pub(super) struct Server {
    listener: TcpListener,
    pub(super) port: u16,
}

impl Server {
    pub(super) async fn new() -> Self {
        haft_testkit::bound_this_process();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    pub(super) async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

/// A port at which no one listens, and no one else will.
pub(super) struct Closed {
    _bound: TcpSocket,
    pub(super) port: u16,
}

impl Closed {
    pub(super) fn new() -> Self {
        let bound = TcpSocket::new_v4().unwrap();
        bound.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let port = bound.local_addr().unwrap().port();
        Self {
            _bound: bound,
            port,
        }
    }
}

/// A server that answers every connection with the same bytes, and hands over what it was sent: all
/// until the head's end, and what else came until the proxy closed.
pub(super) struct Canned {
    pub(super) port: u16,
    requests: mpsc::UnboundedReceiver<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Canned {
    pub(super) async fn new(answer: impl Into<Vec<u8>>) -> Self {
        let server = Server::new().await;
        let (port, answer) = (server.port, answer.into());
        let (sender, requests) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                let mut stream = server.accept().await;
                let mut request = Vec::new();
                while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                drop(stream.write_all(&answer).await);
                drop(stream.shutdown().await);
                drop(stream.read_to_end(&mut request).await);
                drop(sender.send(String::from_utf8(request).unwrap()));
            }
        });
        Self {
            port,
            requests,
            task,
        }
    }

    pub(super) async fn request(&mut self) -> String {
        self.requests.recv().await.unwrap()
    }

    /// Nothing more has come, and will.
    pub(super) fn is_idle(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.task.abort();
    }
}
