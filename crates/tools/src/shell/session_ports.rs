//! The ports on which commands of the session listen, and their networks. The browser uses them to
//! find the server of a local page.
//!
//! A command may have the machine's network or its own, so the same port can be served twice. The
//! result is a snapshot, and only contains processes that certainly belong to the session.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use haft_sandbox::{
    CommandNetwork, NetworkId, PROXY_PORT, PinnedProcess, ProcessInfo, network::Host,
};

use super::{
    ShellService,
    ports::{self, ListenTables, ListeningSocket},
};
use crate::{blocking::blocking, web::strip_invisible};

/// The maximum length of a shown command line, in characters.
const SHOWN: usize = 80;

/// The session's listening sockets at the time of the scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionPorts(Vec<SessionListener>);

/// A socket on which a command listens.
#[derive(Debug, Clone)]
pub(crate) struct SessionListener {
    pub(crate) socket: ListeningSocket,
    pub(crate) place: ListenerPlace,
    /// The name of the listening command, for users and models.
    pub(crate) server: String,
    /// The process that was inspected.
    process: Option<Arc<SeenProcess>>,
}

/// A process of a command. It belongs to the command as long as it exists, because no process
/// leaves its guard.
#[derive(Debug)]
struct SeenProcess {
    pid: u32,
    pinned: PinnedProcess,
}

/// The network in which a process listens.
#[derive(Debug, Clone)]
pub(crate) enum ListenerPlace {
    /// The machine's network, as our process sees it.
    Machine,
    /// The command's own network.
    Command(CommandNetwork),
    /// Another network, which the process must have created.
    Unknown,
}

/// The server of a host and a port.
#[derive(Debug)]
pub(crate) enum PortServer<'a> {
    /// No command of the session.
    None,
    /// A process in the machine's network, at these addresses.
    Machine(Vec<IpAddr>),
    /// A process in the command's own network.
    Command(&'a CommandNetwork, Vec<IpAddr>),
    /// A process in a network that cannot be reached.
    Unreachable(&'a str),
    /// Several processes in different networks: it is not known which one is meant.
    Several(Vec<&'a str>),
}

impl SessionPorts {
    /// Returns the server of a loopback host at this port.
    pub(crate) fn server(&self, host: &Host, port: u16) -> PortServer<'_> {
        let wanted = addresses_of(host);
        let mut places: BTreeMap<Option<NetworkId>, (&SessionListener, BTreeSet<usize>)> =
            BTreeMap::new();
        let mut unreachable = None;
        for one in self.0.iter().filter(|one| one.socket.port == port) {
            let network = match &one.place {
                ListenerPlace::Machine => None,
                ListenerPlace::Command(network) => Some(network.id()),
                ListenerPlace::Unknown => {
                    unreachable = Some(one);
                    continue;
                }
            };
            let answers = (0..).zip(&wanted).filter(|(_, address)| {
                // On this port, the proxy for the command's connections listens, which is not a
                // server of the command.
                let is_proxy = network.is_some() && port == PROXY_PORT && address.is_ipv4();
                !is_proxy && answers(one.socket.address, **address)
            });
            let answers: BTreeSet<usize> = answers.map(|(at, _)| at).collect();
            if !answers.is_empty() {
                let (_, found) = places.entry(network).or_insert((one, BTreeSet::new()));
                found.extend(answers);
            }
        }
        let mut found = places.into_values();
        match (found.next(), found.next()) {
            (None, _) => match unreachable {
                Some(one) => PortServer::Unreachable(&one.server),
                None => PortServer::None,
            },
            (Some((one, answers)), None) => {
                let mut addresses: Vec<IpAddr> = answers.into_iter().map(|at| wanted[at]).collect();
                // A process that listens on all IPv6 addresses may not accept IPv4 connections.
                if one.socket.address == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
                    addresses.reverse();
                }
                match &one.place {
                    ListenerPlace::Command(network) => PortServer::Command(network, addresses),
                    _ => PortServer::Machine(addresses),
                }
            }
            (Some((first, _)), Some((second, _))) => {
                let others = found.map(|(one, _)| one.server.as_str());
                let first = [first.server.as_str(), second.server.as_str()];
                PortServer::Several(first.into_iter().chain(others).collect())
            }
        }
    }

    /// Returns whether the same processes still serve the port. Cheap: it only checks the open
    /// files of the recorded processes. Processes that began to listen since then are not noticed.
    pub(crate) fn is_still_served(&self, host: &Host, port: u16) -> bool {
        let mut listeners = self.0.iter().filter(|one| one.socket.port == port);
        !matches!(self.server(host, port), PortServer::None)
            && listeners.all(|one| {
                one.process.as_ref().is_some_and(|process| {
                    ports::holds(process.pid, &one.socket) && process.pinned.is_alive()
                })
            })
    }

    /// Returns all ports, each with a command that listens on it.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, &str)> {
        self.0
            .iter()
            .map(|one| (one.socket.port, one.server.as_str()))
    }

    /// Creates a result from these listeners.
    #[cfg(test)]
    pub(crate) fn from_listeners(
        listeners: impl IntoIterator<Item = (ListeningSocket, ListenerPlace, &'static str)>,
    ) -> Self {
        let listener = |(socket, place, by): (_, _, &str)| SessionListener {
            socket,
            place,
            server: by.to_owned(),
            process: None,
        };
        Self(listeners.into_iter().map(listener).collect())
    }
}

/// Returns the addresses of a loopback host.
fn addresses_of(host: &Host) -> Vec<IpAddr> {
    match host.address() {
        Some(address) => vec![address.to_canonical()],
        None => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    }
}

/// Returns whether a socket that listens on `listens` accepts connections to `address`.
fn answers(listens: IpAddr, address: IpAddr) -> bool {
    match listens {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => true,
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.is_ipv4(),
        listens => listens == address,
    }
}

/// A process and the sockets on which it listens.
struct ListeningProcess {
    process: Arc<SeenProcess>,
    network: Option<NetworkId>,
    sockets: BTreeSet<ListeningSocket>,
}

impl ListeningProcess {
    /// Inspects a process. Returns `None` if it listens on no socket.
    fn inspect(pid: u32, tables: &mut ListenTables) -> Option<Self> {
        // The process is pinned before it is inspected. If the pinned process still exists
        // afterwards, it is the one that was inspected.
        let pinned = PinnedProcess::from_pid(pid)?;
        let sockets = tables.process_sockets(pid);
        (!sockets.is_empty()).then(|| Self {
            process: Arc::new(SeenProcess { pid, pinned }),
            network: NetworkId::for_process(pid),
            sockets,
        })
    }
}

fn listening_processes(pids: Vec<u32>) -> Vec<ListeningProcess> {
    let mut tables = ListenTables::default();
    let all = pids.into_iter();
    all.filter_map(|pid| ListeningProcess::inspect(pid, &mut tables))
        .collect()
}

fn pids_of(processes: &[ProcessInfo]) -> Vec<u32> {
    processes.iter().map(|process| process.pid).collect()
}

impl ShellService {
    /// Returns the sockets on which background tasks and interpreters listen now.
    pub(crate) async fn listening(&self) -> SessionPorts {
        let mut found = Vec::new();
        for (id, command, job) in self.tasks().jobs() {
            let pids = pids_of(&job.processes().await);
            let seen = blocking(move || listening_processes(pids)).await;
            let seen = seen.unwrap_or_default();
            if seen.is_empty() {
                continue;
            }
            let by = format!("background task {id} (`{}`)", shown(&command));
            let still = pids_of(&job.processes().await);
            found.extend(listeners(&seen, &still, job.network.as_ref(), &by));
        }
        let before = self.interpreters().running();
        let pids = before.iter().map(|(_, running, _)| pids_of(running));
        let pids: Vec<u32> = pids.flatten().collect();
        if pids.is_empty() {
            return SessionPorts(found);
        }
        let seen = blocking(move || listening_processes(pids)).await;
        let seen = seen.unwrap_or_default();
        for (language, running, network) in self.interpreters().running() {
            let by = format!("the {language} interpreter of REPL");
            found.extend(listeners(&seen, &pids_of(&running), network.as_ref(), &by));
        }
        SessionPorts(found)
    }
}

/// Returns the listening sockets of the inspected processes that still belong to the command.
fn listeners(
    seen: &[ListeningProcess],
    still: &[u32],
    of_command: Option<&CommandNetwork>,
    by: &str,
) -> Vec<SessionListener> {
    let own = NetworkId::own();
    let is_of_it =
        |one: &&ListeningProcess| still.contains(&one.process.pid) && one.process.pinned.is_alive();
    let listeners = seen.iter().filter(is_of_it).flat_map(|one| {
        let place = match (one.network, of_command) {
            (Some(network), _) if Some(network) == own => ListenerPlace::Machine,
            (Some(network), Some(command)) if network == command.id() => {
                ListenerPlace::Command(command.clone())
            }
            _ => ListenerPlace::Unknown,
        };
        one.sockets.iter().map(move |socket| SessionListener {
            socket: *socket,
            place: place.clone(),
            server: by.to_owned(),
            process: Some(Arc::clone(&one.process)),
        })
    });
    listeners.collect()
}

/// Returns a command line, shortened for use in a sentence.
fn shown(command: &str) -> String {
    strip_invisible(&haft_browser::one_line(command, SHOWN)).replace('`', "'")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    type Listener = (ListeningSocket, ListenerPlace, &'static str);

    fn listener(address: &str, port: u16, place: ListenerPlace, by: &'static str) -> Listener {
        let address = address.parse().unwrap();
        let inode = 0;
        (
            ListeningSocket {
                address,
                port,
                inode,
            },
            place,
            by,
        )
    }

    /// Who serves it, in a line.
    fn server(ports: &[Listener], host: &str, port: u16) -> String {
        let host = Host::parse(host.as_bytes()).unwrap();
        match SessionPorts::from_listeners(ports.to_vec()).server(&host, port) {
            PortServer::None => "none".to_owned(),
            PortServer::Machine(addresses) => format!("machine {addresses:?}"),
            PortServer::Command(_, addresses) => format!("command {addresses:?}"),
            PortServer::Unreachable(by) => format!("unreachable {by}"),
            PortServer::Several(by) => format!("several {by:?}"),
        }
    }

    #[test]
    fn a_port_is_served_at_the_addresses_that_are_listened_on() {
        let here = |address, port| listener(address, port, ListenerPlace::Machine, "a");
        let ports = [
            here("127.0.0.1", 1),
            here("0.0.0.0", 2),
            here("::", 3),
            here("::1", 4),
            here("127.0.0.2", 5),
            here("127.0.0.1", 6),
            here("::1", 6),
            listener("127.0.0.1", 7, ListenerPlace::Unknown, "b"),
        ];
        for (host, port, expected) in [
            ("localhost", 1, "machine [127.0.0.1]"),
            ("app.localhost", 1, "machine [127.0.0.1]"),
            ("[::1]", 1, "none"),
            ("127.0.0.2", 1, "none"),
            ("localhost", 2, "machine [127.0.0.1]"),
            ("127.0.0.2", 2, "machine [127.0.0.2]"),
            ("localhost", 3, "machine [::1, 127.0.0.1]"),
            ("127.0.0.1", 3, "machine [127.0.0.1]"),
            ("localhost", 4, "machine [::1]"),
            ("127.0.0.1", 4, "none"),
            // What listens at 127.0.0.1 there is not of this session.
            ("localhost", 5, "none"),
            ("localhost", 6, "machine [127.0.0.1, ::1]"),
            ("localhost", 7, "unreachable b"),
            ("localhost", 8, "none"),
        ] {
            assert_eq!(server(&ports, host, port), expected, "{host}:{port}");
        }
    }

    #[test]
    fn only_what_still_is_of_the_command_counts() {
        haft_testkit::bound_this_process();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = std::process::id();
        let seen = || {
            let mut seen = ListeningProcess::inspect(own, &mut ListenTables::default()).unwrap();
            seen.sockets.retain(|socket| socket.port == port);
            [seen]
        };
        let found = listeners(&seen(), &[own], None, "a");
        assert_eq!(found.len(), 1);
        assert!(matches!(found[0].place, ListenerPlace::Machine));
        assert!(listeners(&seen(), &[1], None, "a").is_empty());
        let ports = SessionPorts(found);
        let localhost = Host::parse(b"localhost").unwrap();
        assert!(ports.is_still_served(&localhost, port));
        assert!(!ports.is_still_served(&localhost, port.wrapping_add(1)));
        let [mut ended] = seen();
        drop(listener);
        assert!(!ports.is_still_served(&localhost, port));
        // Its number may be another's by now.
        let mut child = haft_testkit::command("true").spawn().unwrap();
        let pid = child.id();
        let pinned = PinnedProcess::from_pid(pid).unwrap();
        ended.process = Arc::new(SeenProcess { pid, pinned });
        child.wait().unwrap();
        assert!(listeners(&[ended], &[pid], None, "a").is_empty());
    }

    #[test]
    fn a_command_line_stays_in_its_sentence() {
        assert_eq!(shown("a\n`b`\u{1b}[31m").matches('`').count(), 0);
        assert!(shown(&"x".repeat(500)).chars().count() <= SHOWN + 1);
    }
}
