//! The TCP ports on which processes listen, that is, on which a server can be reached.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A listening socket of a process, in the process's network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListeningSocket {
    /// The socket's address. The unspecified address means all addresses.
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// The inode, which identifies the socket among all open sockets.
    pub(crate) inode: u64,
}

/// The listening sockets of each network namespace. The kernel takes milliseconds to list them, so
/// each namespace is read only once.
#[derive(Debug, Default)]
pub(crate) struct ListenTables(HashMap<(u64, u64), Vec<ListeningSocket>>);

impl ListenTables {
    /// Returns the sockets on which a process listens, in order.
    pub(crate) fn process_sockets(&mut self, pid: u32) -> BTreeSet<ListeningSocket> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let sockets = sockets(&process);
        let network = fs::metadata(process.join("ns/net"));
        let (false, Ok(network)) = (sockets.is_empty(), network) else {
            return BTreeSet::new();
        };
        // Read through the process's own view, because it may be in a separate network namespace.
        let table = self
            .0
            .entry((network.dev(), network.ino()))
            .or_insert_with(|| all_listeners(&process));
        let of_it = table.iter().copied();
        of_it
            .filter(|socket| sockets.contains(&socket.inode))
            .collect()
    }
}

/// Returns the ports on which any of the processes listens, in order. Skips processes that have
/// ended or cannot be inspected.
pub(crate) fn listening(pids: impl IntoIterator<Item = u32>) -> BTreeSet<u16> {
    let mut tables = ListenTables::default();
    let sockets = pids.into_iter().flat_map(|pid| tables.process_sockets(pid));
    sockets.map(|socket| socket.port).collect()
}

/// Returns whether a process still has a socket open.
#[cfg(feature = "browser")]
pub(crate) fn holds(pid: u32, socket: &ListeningSocket) -> bool {
    sockets(Path::new(&format!("/proc/{pid}"))).contains(&socket.inode)
}

/// Returns whether any process in our network namespace listens on this port.
#[cfg(feature = "browser")]
pub(crate) fn is_taken_here(port: u16) -> bool {
    let all = all_listeners(Path::new("/proc/self"));
    all.iter().any(|socket| socket.port == port)
}

/// Returns all listening sockets in the network namespace of a process.
fn all_listeners(process: &Path) -> Vec<ListeningSocket> {
    let mut found = Vec::new();
    for table in ["net/tcp", "net/tcp6"] {
        let table = fs::read_to_string(process.join(table)).unwrap_or_default();
        found.extend(listeners(&table));
    }
    found
}

/// Returns the inodes of a process's open sockets.
fn sockets(process: &Path) -> HashSet<u64> {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return HashSet::new();
    };
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter_map(|link| inode(link.to_str()?)).collect()
}

fn inode(link: &str) -> Option<u64> {
    let number = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Parses the listening sockets in a table of the kernel.
fn listeners(table: &str) -> impl Iterator<Item = ListeningSocket> {
    const LISTEN: &str = "0A";
    table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (address, port) = local.rsplit_once(':')?;
        let socket = ListeningSocket {
            address: address_in(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            inode: inode.parse().ok()?,
        };
        (*state == LISTEN).then_some(socket)
    })
}

/// Parses an address in the kernel's format: words of four bytes, each as a number in the machine's
/// byte order.
fn address_in(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..(at + 1) * 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        net::TcpListener,
        process::{Child, Stdio},
    };

    use super::*;

    /// A child that holds the sockets it is given, until its input ends.
    struct Holder(Child);

    impl Drop for Holder {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn holder(listener: TcpListener) -> Holder {
        let listener = std::os::fd::OwnedFd::from(listener);
        // The socket is its standard error, so that no one else holds it.
        let mut child = haft_testkit::command("sh")
            .args(["-c", "echo ready; read -r line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(listener))
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Holder(child)
    }

    #[test]
    fn a_listening_child_is_found_by_its_port_and_only_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let child = holder(listener);
        assert_eq!(listening([child.0.id()]), BTreeSet::from([port]));
        let found = ListenTables::default().process_sockets(child.0.id());
        let found: Vec<_> = found.into_iter().collect();
        assert_eq!(found.len(), 1);
        let address = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!((found[0].address, found[0].port), (address, port));
        assert!(holds(child.0.id(), &found[0]));
        assert!(!holds(std::process::id(), &found[0]));
        assert!(!listening([std::process::id()]).contains(&port));
        assert_eq!(listening([u32::MAX]), BTreeSet::new());
    }

    #[test]
    fn a_table_of_the_kernel_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
           0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0\n\
           1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000000000000000 20 4 30 10 -1\n\
           2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1\n\
           3: nonsense\n";
        let socket = |address: &str, port, inode| ListeningSocket {
            address: address.parse().unwrap(),
            port,
            inode,
        };
        let found: Vec<ListeningSocket> = listeners(table).collect();
        let (v4, v6) = (socket("127.0.0.1", 8080, 4711), socket("::1", 22, 4713));
        assert_eq!(found, [v4, v6]);
        let mapped = address_in("0000000000000000FFFF00000100007F");
        assert_eq!(mapped, Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(address_in("00000000"), Some(Ipv4Addr::UNSPECIFIED.into()));
        for nonsense in ["", "0100007", "0100007G", "0100007F0", "\u{e9}00007F"] {
            assert_eq!(address_in(nonsense), None, "{nonsense}");
        }
    }
}
