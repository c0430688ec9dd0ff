//! What commands of the session listen on, and in whose network: where a page on this machine is to be found.
//!
//! A command may have the network of the machine or one for itself, so the same port can be served twice. What is said
//! of a port here is said of it at this moment, by processes that certainly are the session's.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use haft_sandbox::{CommandNetwork, NetworkId, PROXY_PORT, PinnedProcess, Process, network::Host};

use super::{
    Shell,
    ports::{ListeningSocket, listening_sockets},
};
use crate::{blocking::blocking, web::harmless};

/// The longest command line that is shown, in characters.
const SHOWN: usize = 80;

/// What the session listened on when it was looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionPorts(Vec<SessionListener>);

/// A socket that a command listens on.
#[derive(Debug, Clone)]
pub(crate) struct SessionListener {
    pub(crate) socket: ListeningSocket,
    pub(crate) place: ListenerPlace,
    /// Who listens, for people and models.
    pub(crate) by: String,
}

/// Whose network it listens in.
#[derive(Debug, Clone)]
pub(crate) enum ListenerPlace {
    /// That of the machine, as our process sees it.
    Machine,
    /// One that its command has for itself.
    Command(CommandNetwork),
    /// Another one, which it must have made.
    Unknown,
}

/// Who serves a host and a port.
#[derive(Debug)]
pub(crate) enum PortServer<'a> {
    /// No command of the session.
    None,
    /// One in the network of the machine, at these addresses.
    Machine(Vec<IpAddr>),
    /// One in a network that it has for itself.
    Command(&'a CommandNetwork, Vec<IpAddr>),
    /// One in a network into which there is no way.
    Unreachable(&'a str),
    /// Several, each in another network: which one is meant cannot be known.
    Several(Vec<&'a str>),
}

impl SessionPorts {
    /// Who serves this host, which must be one of loopback, at this port?
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
                // There stands the way out of the command, which is no server of it.
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
                Some(one) => PortServer::Unreachable(&one.by),
                None => PortServer::None,
            },
            (Some((one, answers)), None) => {
                let mut addresses: Vec<IpAddr> = answers.into_iter().map(|at| wanted[at]).collect();
                // One that listens on all addresses of the newer kind may leave out the older ones.
                if one.socket.address == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
                    addresses.reverse();
                }
                match &one.place {
                    ListenerPlace::Command(network) => PortServer::Command(network, addresses),
                    _ => PortServer::Machine(addresses),
                }
            }
            (Some((first, _)), Some((second, _))) => {
                let others = found.map(|(one, _)| one.by.as_str());
                let first = [first.by.as_str(), second.by.as_str()];
                PortServer::Several(first.into_iter().chain(others).collect())
            }
        }
    }

    /// All ports, each with one who listens there.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, &str)> {
        self.0.iter().map(|one| (one.socket.port, one.by.as_str()))
    }

    #[cfg(test)]
    pub(crate) fn of(listeners: Vec<SessionListener>) -> Self {
        Self(listeners)
    }
}

/// Where a host of loopback is.
fn addresses_of(host: &Host) -> Vec<IpAddr> {
    match host.address() {
        Some(address) => vec![address.to_canonical()],
        None => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    }
}

/// Does a socket that listens there answer to this address?
fn answers(listens: IpAddr, address: IpAddr) -> bool {
    match listens {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => true,
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.is_ipv4(),
        listens => listens == address,
    }
}

/// A process and what it listens on.
struct ListeningProcess {
    pid: u32,
    pinned: PinnedProcess,
    network: Option<NetworkId>,
    sockets: BTreeSet<ListeningSocket>,
}

impl ListeningProcess {
    /// `None` if it listens on nothing.
    fn of(pid: u32) -> Option<Self> {
        // Before it is looked at: it is this one that is looked at, if it still is there afterwards.
        let pinned = PinnedProcess::of(pid)?;
        let sockets = listening_sockets(pid);
        (!sockets.is_empty()).then(|| Self {
            pid,
            pinned,
            network: NetworkId::of(pid),
            sockets,
        })
    }
}

fn listening_processes(pids: Vec<u32>) -> Vec<ListeningProcess> {
    pids.into_iter().filter_map(ListeningProcess::of).collect()
}

fn pids_of(processes: &[Process]) -> Vec<u32> {
    processes.iter().map(|process| process.pid).collect()
}

impl Shell {
    /// What commands in the background, and interpreters, listen on now.
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

/// What those of the processes that were seen listen on that still are of the command.
fn listeners(
    seen: &[ListeningProcess],
    still: &[u32],
    of_command: Option<&CommandNetwork>,
    by: &str,
) -> Vec<SessionListener> {
    let own = NetworkId::own();
    let is_of_it = |one: &&ListeningProcess| still.contains(&one.pid) && one.pinned.is_there();
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
            by: by.to_owned(),
        })
    });
    listeners.collect()
}

/// A command line in a sentence.
fn shown(command: &str) -> String {
    harmless(&haft_browser::one_line(command, SHOWN)).replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(address: &str, port: u16, place: ListenerPlace, by: &str) -> SessionListener {
        SessionListener {
            socket: ListeningSocket {
                address: address.parse().unwrap(),
                port,
            },
            place,
            by: by.to_owned(),
        }
    }

    /// Who serves it, in a line.
    fn server(ports: &[SessionListener], host: &str, port: u16) -> String {
        let host = Host::parse(host.as_bytes()).unwrap();
        match SessionPorts::of(ports.to_vec()).server(&host, port) {
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
        let socket = ListeningSocket {
            address: Ipv4Addr::LOCALHOST.into(),
            port: 1,
        };
        let own = std::process::id();
        let seen = |pid| ListeningProcess {
            pid,
            pinned: PinnedProcess::of(own).unwrap(),
            network: NetworkId::own(),
            sockets: BTreeSet::from([socket]),
        };
        let found = listeners(&[seen(own)], &[own], None, "a");
        assert_eq!(found.len(), 1);
        assert!(matches!(found[0].place, ListenerPlace::Machine));
        assert!(listeners(&[seen(own)], &[1], None, "a").is_empty());
        // Its number may be another's by now.
        let mut child = haft_testkit::command("true").spawn().unwrap();
        let ended = ListeningProcess {
            pinned: PinnedProcess::of(child.id()).unwrap(),
            ..seen(child.id())
        };
        child.wait().unwrap();
        assert!(listeners(&[ended], &[child.id()], None, "a").is_empty());
    }

    #[test]
    fn a_command_line_stays_in_its_sentence() {
        assert_eq!(shown("a\n`b`\u{1b}[31m").matches('`').count(), 0);
        assert!(shown(&"x".repeat(500)).chars().count() <= SHOWN + 1);
    }
}
