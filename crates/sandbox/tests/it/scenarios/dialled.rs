//! What listens in the network that a command has for itself is reached from outside, and nothing else is that way.

use std::{
    fs,
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

use haft_sandbox::{
    CommandHandle, CommandNetwork, NetworkId, PROXY_PORT,
    network::{AllowedAddresses, GateFuture, GateRequest, GateVerdict, NetworkGate, Proxy},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    stand::{Around, Stand, finish},
    table::{View, everywhere},
};
use crate::setting::LONG;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn missing() -> bool {
    haft_testkit::bound_this_process();
    let missing = !Path::new("/usr/bin/python3").exists();
    if missing {
        haft_testkit::skip("servers in a command's network: no /usr/bin/python3");
    }
    missing
}

/// Serves a word to everyone who connects, at a port that is free in its network, or at this one.
fn server(port: u16, word: &str) -> String {
    format!(
        "exec /usr/bin/python3 -I -S -c '
import socket
server = socket.create_server((\"127.0.0.1\", {port}))
print(\"port\", server.getsockname()[1], flush=True)
while True: server.accept()[0].sendall(b\"{word}\")'"
    )
}

/// A command that listens, and where.
async fn serving(stand: &Stand<'_>, port: u16, word: &str) -> (CommandHandle, u16) {
    let mut running = stand.start(&server(port, word)).await;
    let mut said = String::new();
    while !said.ends_with('\n') {
        let byte = timeout(LONG, running.output.read_u8()).await;
        said.push(char::from(byte.expect("it never listens").unwrap()));
    }
    let port = said.trim().strip_prefix("port ");
    let port = port.unwrap_or_else(|| panic!("{}: {said}", stand.case));
    (running, port.parse().unwrap())
}

/// It would go on for good.
async fn stop(mut running: CommandHandle) {
    running.kill(Duration::ZERO);
    finish(running).await;
}

async fn word(stream: std::io::Result<TcpStream>) -> String {
    let mut said = String::new();
    let read = stream.unwrap().read_to_string(&mut said).await;
    read.unwrap();
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_the_network_of_a_command_is_reached_as_long_as_it_runs() {
    let test =
        "scenarios::dialled::a_server_in_the_network_of_a_command_is_reached_as_long_as_it_runs";
    if missing() {
        return;
    }
    everywhere(test, Around::Files, &[View::Proxy], async |stand| {
        if stand.case.reduced() {
            let running = stand.start("true").await;
            assert!(running.network().is_none(), "{}", stand.case);
            finish(running).await;
            return;
        }
        // The same port of the machine is another's.
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let taken = listener.local_addr().unwrap().port();
        let (running, port) = serving(stand, taken, "hello").await;
        assert_eq!(port, taken, "{}", stand.case);
        let network = running.network().unwrap().clone();
        let at = SocketAddr::new(HERE, port);
        assert_eq!(
            word(network.connect(at).await).await,
            "hello",
            "{}",
            stand.case
        );
        listener.set_nonblocking(true).unwrap();
        let reached = listener.accept().map_err(|error| error.kind());
        assert_eq!(reached.unwrap_err(), ErrorKind::WouldBlock);
        // Its processes are found by it, and ours is in another.
        assert_ne!(Some(network.id()), NetworkId::own());
        let processes = running.processes();
        assert!(!processes.is_empty());
        for process in processes {
            assert_eq!(
                NetworkId::for_process(process.pid),
                Some(network.id()),
                "{process:?}"
            );
        }
        // Given up or not: the next one gets what it asked for.
        for round in 0..40 {
            let asking = network.connect(at);
            if round % 2 == 0 {
                let _ = timeout(Duration::ZERO, asking).await;
            } else {
                assert_eq!(word(asking.await).await, "hello");
            }
        }
        // What does not listen is not reached, nor is what is not there.
        let other = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
        let refused = network.connect(other).await.unwrap_err().kind();
        assert_eq!(refused, ErrorKind::ConnectionRefused, "{}", stand.case);
        for outside in [
            "10.0.0.1",
            "0.0.0.0",
            "169.254.169.254",
            "::",
            "::ffff:1.2.3.4",
        ] {
            let at = SocketAddr::new(outside.parse().unwrap(), port);
            let refused = network.connect(at).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{outside}");
        }
        stop(running).await;
        let gone = network.connect(at).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::BrokenPipe, "{}: {gone}", stand.case);
        assert_eq!(gone.to_string(), "the command has ended");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_a_network_for_itself_has_none_to_be_reached_in() {
    let test =
        "scenarios::dialled::a_command_without_a_network_for_itself_has_none_to_be_reached_in";
    let views = [View::Open, View::Nobody, View::ReadOnly, View::Full];
    everywhere(test, Around::Files, &views, async |stand| {
        let running = stand.start("true").await;
        assert!(running.network().is_none(), "{}", stand.case);
        finish(running).await;
    })
    .await;
}

/// A guard that was stopped does not hold the one who asks for long, nor does it lead another astray.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_does_not_answer_is_given_up() {
    let test = "scenarios::dialled::a_guard_that_does_not_answer_is_given_up";
    if missing() {
        return;
    }
    everywhere(test, Around::Files, &[View::Proxy], async |stand| {
        if stand.case.reduced() {
            return;
        }
        let (running, port) = serving(stand, 0, "hello").await;
        let network = running.network().unwrap().clone();
        let at = SocketAddr::new(HERE, port);
        let guard = parent(running.processes()[0].pid);
        signal("-STOP", guard);
        let silent = timeout(LONG, network.connect(at)).await.expect("it waits");
        assert_eq!(silent.unwrap_err().kind(), ErrorKind::TimedOut);
        signal("-CONT", guard);
        // What it answers now is an answer to no one.
        assert!(network.connect(at).await.is_err(), "{}", stand.case);
        stop(running).await;
    })
    .await;
}

fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
    fields.nth(1).unwrap().parse().unwrap()
}

fn signal(signal: &str, pid: u32) {
    let status = haft_testkit::command("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Sends everyone to these addresses of a command's network.
struct Into(Option<CommandNetwork>, Vec<IpAddr>, AllowedAddresses);

impl NetworkGate for Into {
    fn decide(&self, _: GateRequest) -> GateFuture<'_, GateVerdict> {
        let Self(network, addresses, reach) = self;
        let verdict = GateVerdict::AllowAt {
            because: "It is of this session.".to_owned(),
            reach: reach.clone(),
            addresses: addresses.clone(),
            network: network.clone(),
        };
        Box::pin(async move { verdict })
    }
}

/// What a proxy with this gate answers to a client of it that wants `localhost` at this port.
async fn through(gate: Into, port: u16) -> String {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let _proxy = Proxy::serve(listener, std::sync::Arc::new(gate)).unwrap();
    let mut client = TcpStream::connect(at).await.unwrap();
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    let read = timeout(LONG, client.read_to_string(&mut said)).await;
    read.expect("no answer").unwrap();
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_goes_where_its_gate_says_and_rules_about_addresses_hold() {
    let test =
        "scenarios::dialled::a_proxy_goes_where_its_gate_says_and_rules_about_addresses_hold";
    if missing() {
        return;
    }
    everywhere(test, Around::Files, &[View::Proxy], async |stand| {
        if stand.case.reduced() {
            return;
        }
        let (running, port) = serving(stand, 0, "hello").await;
        let network = || Some(running.network().unwrap().clone());
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let loopback = || AllowedAddresses::public().with([HERE, v6]);
        let said = through(Into(network(), vec![v6, HERE], loopback()), port).await;
        assert!(said.ends_with("\r\n\r\nhello"), "{}: {said}", stand.case);
        // A rule that denies the address, and an address elsewhere.
        let denied = loopback().without([HERE]);
        let said = through(Into(network(), vec![HERE], denied), port).await;
        assert!(said.contains("denied by a rule"), "{said}");
        let public = "192.0.2.1".parse().unwrap();
        let said = through(Into(network(), vec![HERE, public], loopback()), port).await;
        assert!(said.contains("192.0.2.1 is not on this machine"), "{said}");
        let said = through(Into(None, vec![public], loopback()), port).await;
        assert!(said.contains("192.0.2.1 is not on this machine"), "{said}");
        // Nothing listens at the other address.
        let said = through(Into(network(), vec![v6], loopback()), port).await;
        assert!(said.contains("cannot be reached at [::1]"), "{said}");
        // The command's own way out is none of ours: it stands in that network, held by no process of the command.
        let held = running.processes();
        let own = format!(":{PROXY_PORT:04X} ");
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", held[0].pid)).unwrap();
        assert!(table.contains(&own), "{table}");
        let gone = network();
        stop(running).await;
        let said = through(Into(gone, vec![HERE], loopback()), port).await;
        assert!(said.contains("the command has ended"), "{said}");
    })
    .await;
}
