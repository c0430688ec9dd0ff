//! What is outside of a sandbox and must stay as it is: files, daemons that listen, a process.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{MetadataExt, OpenOptionsExt, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use super::{stand::Around, table::GOT};

/// Where one attempt is made: directories of its own, all alike.
pub(super) struct Spot {
    /// The name of the attempt.
    pub(super) name: String,
    /// Below what may be changed by commands that may change files.
    pub(super) inside: PathBuf,
    pub(super) outside: PathBuf,
    /// The reading end of the pipe outside: without one, no one can write to it.
    fifo: fs::File,
    /// What was there at first.
    fresh: BTreeMap<String, String>,
    around: Around,
    pub(super) daemons: Option<Daemons>,
}

/// Control files in the part of a scenario that may be changed. The last two are not what they seem:
/// one is a link, the other lies behind a directory that is one.
pub(super) const CONTROL: [&str; 5] = [
    ".git/config",
    ".git/hooks",
    ".claude/settings.json",
    ".linked.json",
    ".behind/settings.json",
];
/// A control file that is not there.
pub(super) const MISSING: &str = ".missing.json";

impl Spot {
    pub(super) fn new(base: &Path, name: &str, around: Around) -> Self {
        let inside = base.join("project").join(folder(name));
        let outside = base.join("outside").join(folder(name));
        let (fifo, fresh) = fill(&inside, &outside, around);
        Self {
            name: name.to_owned(),
            around,
            fifo,
            fresh,
            daemons: (around == Around::Daemons).then(|| Daemons::new(&outside)),
            inside,
            outside,
        }
    }

    /// As it was at first.
    pub(super) fn renew(&mut self) {
        if let Some(daemons) = &mut self.daemons {
            daemons.renew();
        }
        // Sockets cannot be made again under the same names by who still holds them.
        let around = match self.around {
            Around::Daemons => return,
            around => around,
        };
        if files(&self.inside, &self.outside) != self.fresh {
            let _ = fs::remove_dir_all(&self.inside);
            let _ = fs::remove_dir_all(&self.outside);
            (self.fifo, self.fresh) = fill(&self.inside, &self.outside, around);
        }
    }

    pub(super) fn protected(&self) -> Vec<PathBuf> {
        let mut protected: Vec<_> = CONTROL.map(|path| self.inside.join(path)).into();
        protected.push(self.inside.join(MISSING));
        protected
    }

    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        vec![
            self.outside.join("hidden"),
            self.outside.join("vault"),
            self.inside.join("deep/secret"),
        ]
    }

    /// What an attempt is told of it.
    pub(super) fn names(&self) -> Vec<(&'static str, String)> {
        let mut names = vec![
            ("IN", self.inside.display().to_string()),
            ("OUT", self.outside.display().to_string()),
            ("NAME", folder(&self.name)),
        ];
        names.extend(self.daemons.iter().flat_map(Daemons::names));
        names
    }

    /// All there is to know about what an attempt could have changed.
    pub(super) fn look(&self, inside: bool) -> BTreeMap<String, String> {
        let mut seen = BTreeMap::new();
        look_at(&self.outside, &mut seen);
        if inside {
            look_at(&self.inside, &mut seen);
        }
        for path in self.protected() {
            look_at(&path, &mut seen);
            if let Ok(real) = fs::canonicalize(&path) {
                look_at(&real, &mut seen);
            }
        }
        seen.extend(self.daemons.iter().flat_map(Daemons::look));
        seen
    }

    /// What reached someone here since this was asked the last time.
    pub(super) fn heard(&mut self) -> Vec<String> {
        let mut heard: Vec<String> = self.daemons.iter_mut().flat_map(Daemons::heard).collect();
        let mut buffer = [0; 512];
        if self.fifo.read(&mut buffer).is_ok_and(|read| read > 0) {
            heard.push("a pipe was reached".to_owned());
        }
        heard
    }
}

/// A scenario's name as that of a folder.
fn folder(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(plain).collect()
}

fn fill(inside: &Path, outside: &Path, around: Around) -> (fs::File, BTreeMap<String, String>) {
    for path in ["dir", "empty"] {
        fs::create_dir_all(outside.join(path)).unwrap();
    }
    fs::write(outside.join("file"), "old\n").unwrap();
    fs::write(outside.join("dir/inner"), "old\n").unwrap();
    let fifo = outside.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    fs::create_dir_all(inside).unwrap();
    fs::write(inside.join("file"), "mine\n").unwrap();
    symlink(outside.join("file"), inside.join("planted")).unwrap();
    match around {
        Around::Hidden => fill_hidden(inside, outside),
        Around::Control => fill_control(inside),
        Around::Files | Around::Daemons => {}
    }
    let fifo = fs::OpenOptions::new()
        .read(true)
        .custom_flags(0o4000 /* O_NONBLOCK */)
        .open(fifo);
    (fifo.unwrap(), files(inside, outside))
}

fn fill_hidden(inside: &Path, outside: &Path) {
    fs::write(outside.join("hidden"), format!("{GOT} what is hidden\n")).unwrap();
    fs::hard_link(outside.join("hidden"), outside.join("twin")).unwrap();
    fs::create_dir(outside.join("vault")).unwrap();
    fs::write(outside.join("vault/key"), format!("{GOT} the key\n")).unwrap();
    fs::create_dir(inside.join("deep")).unwrap();
    fs::write(inside.join("deep/secret"), format!("{GOT} the secret\n")).unwrap();
}

fn fill_control(at: &Path) {
    for path in [".git/hooks", ".claude", "real"] {
        fs::create_dir_all(at.join(path)).unwrap();
    }
    fs::write(at.join(".git/config"), "[core]\n").unwrap();
    fs::write(at.join(".git/HEAD"), "ref\n").unwrap();
    fs::write(at.join(".git/hooks/pre-commit"), "true\n").unwrap();
    fs::write(at.join(".claude/settings.json"), "{}\n").unwrap();
    fs::write(at.join("real/linked.json"), "{}\n").unwrap();
    fs::write(at.join("real/settings.json"), "{}\n").unwrap();
    symlink("real/linked.json", at.join(".linked.json")).unwrap();
    symlink("real", at.join(".behind")).unwrap();
}

fn files(inside: &Path, outside: &Path) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    look_at(outside, &mut seen);
    look_at(inside, &mut seen);
    seen
}

/// A file or directory with everything below. The time of the last change of the inode tells of
/// changes of mode, owner, attributes and links that nothing else would.
fn look_at(path: &Path, seen: &mut BTreeMap<String, String>) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return;
    };
    let kind = metadata.file_type();
    let held = if kind.is_file() {
        format!(
            "{:?}",
            fs::read(path)
                .unwrap_or_default()
                .escape_ascii()
                .to_string()
        )
    } else if kind.is_symlink() {
        format!("{:?}", fs::read_link(path).unwrap_or_default())
    } else {
        String::new()
    };
    let text = format!(
        "{held}; inode {}; mode {:o}; owner {}:{}; links {}; size {}; modified {}.{}; changed {}.{}",
        metadata.ino(),
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    );
    seen.insert(path.display().to_string(), text);
    if kind.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            look_at(&entry.path(), seen);
        }
    }
}

/// Daemons that listen, and a process that minds its own business.
pub(super) struct Daemons {
    /// A name that no one else on this machine uses.
    tag: String,
    victim: Child,
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    daemon: UnixListener,
    /// Was given its name after it had been bound under another one, as ssh does.
    renamed: UnixListener,
    log: UnixDatagram,
    /// Has no file.
    nameless: UnixListener,
    /// A file in memory.
    shared: PathBuf,
    /// Memory and messages that have no file; the number of the memory, once they are there.
    number: Option<i32>,
    /// What was seen of it at first.
    fresh: BTreeMap<String, String>,
}

impl Daemons {
    fn new(at: &Path) -> Self {
        let base = at.ancestors().nth(2).and_then(Path::file_name).unwrap();
        let name = at.file_name().unwrap().to_string_lossy();
        let tag = format!("{}-{name}", base.display());
        let address = SocketAddr::from_abstract_name(&tag).unwrap();
        let renamed = UnixListener::bind(at.join("n.sock")).unwrap();
        fs::rename(at.join("n.sock"), at.join("renamed.sock")).unwrap();
        let shared = Path::new("/dev/shm").join(&tag);
        let _ = fs::write(&shared, "old\n");
        let mut daemons = Self {
            victim: victim(),
            tcp: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            tcp6: TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok(),
            udp: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            daemon: UnixListener::bind(at.join("daemon.sock")).unwrap(),
            renamed,
            log: UnixDatagram::bind(at.join("log.sock")).unwrap(),
            nameless: UnixListener::bind_addr(&address).unwrap(),
            shared,
            number: None,
            fresh: BTreeMap::new(),
            tag,
        };
        daemons.fresh = daemons.look();
        daemons.tcp.set_nonblocking(true).unwrap();
        if let Some(tcp6) = &daemons.tcp6 {
            tcp6.set_nonblocking(true).unwrap();
        }
        daemons.udp.set_nonblocking(true).unwrap();
        daemons.daemon.set_nonblocking(true).unwrap();
        daemons.renamed.set_nonblocking(true).unwrap();
        daemons.log.set_nonblocking(true).unwrap();
        daemons.nameless.set_nonblocking(true).unwrap();
        daemons
    }

    /// The process is as it was at first.
    fn renew(&mut self) {
        if self.look() != self.fresh {
            let _ = self.victim.kill();
            let _ = self.victim.wait();
            self.victim = victim();
            let _ = fs::write(&self.shared, "old\n");
            self.fresh = self.look();
        }
    }

    /// Makes memory and a queue of messages that processes share by number and by name.
    pub(super) fn share(&mut self) {
        let said = self.python("mq_open(name, 0o102, 0o600, None); print(shmget(0, 4096, 0o1600))");
        self.number = said.trim().parse().ok();
    }

    fn python(&self, text: &str) -> String {
        let text = format!(
            "import ctypes; libc, librt = ctypes.CDLL(None), ctypes.CDLL('librt.so.1'); \
             mq_open, mq_unlink, shmget, shmctl = librt.mq_open, librt.mq_unlink, libc.shmget, libc.shmctl; \
             name = b'/{}'; {text}",
            self.tag
        );
        let output = haft_testkit::command("/usr/bin/python3")
            .args(["-I", "-S", "-c", &text])
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }

    /// What an attempt is told of it.
    fn names(&self) -> Vec<(&'static str, String)> {
        let port = |port: io::Result<std::net::SocketAddr>| port.unwrap().port().to_string();
        let tcp6 = self.tcp6.as_ref().map(|tcp6| port(tcp6.local_addr()));
        vec![
            ("VICTIM", self.victim.id().to_string()),
            ("TCP", port(self.tcp.local_addr())),
            ("TCP6", tcp6.unwrap_or_else(|| "1".to_owned())),
            ("UDP", port(self.udp.local_addr())),
            ("SHARED", self.number.unwrap_or(-1).to_string()),
            ("TAG", self.tag.clone()),
        ]
    }

    fn heard(&mut self) -> Vec<String> {
        let mut buffer = [0; 512];
        let mut heard = Vec::new();
        let mut note = |what: &str, there: bool| {
            if there {
                heard.push(format!("{what} was reached"));
            }
            there
        };
        while note("a TCP listener", self.tcp.accept().is_ok()) {}
        if let Some(tcp6) = &self.tcp6 {
            while note("a TCP listener (v6)", tcp6.accept().is_ok()) {}
        }
        while note("a UDP socket", self.udp.recv(&mut buffer).is_ok()) {}
        while note("a daemon", self.daemon.accept().is_ok()) {}
        while note("a renamed daemon", self.renamed.accept().is_ok()) {}
        while note("a log", self.log.recv(&mut buffer).is_ok()) {}
        while note("a daemon without a file", self.nameless.accept().is_ok()) {}
        heard
    }

    /// How the process is, and what it shares.
    pub(super) fn look(&self) -> BTreeMap<String, String> {
        let pid = self.victim.id();
        let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        let mut seen = BTreeMap::new();
        let stat = file("stat").unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split(' ').collect();
        let gone = fields
            .get(1)
            .is_none_or(|state| matches!(*state, "Z" | "X"));
        seen.insert("the process is gone".to_owned(), gone.to_string());
        let nice = fields.get(17).copied().unwrap_or_default();
        seen.insert("its niceness".to_owned(), nice.to_owned());
        seen.insert("its limits".to_owned(), file("limits").unwrap_or_default());
        look_at(&self.shared, &mut seen);
        seen
    }
}

/// Does nothing until its standard input ends: when we do, at the latest.
fn victim() -> Child {
    let victim = haft_testkit::command("/bin/sh")
        .args(["-c", "read x", "sh", &format!("{GOT} its arguments")])
        .env_clear()
        .env("SECRET", format!("{GOT} its environment"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Until it is the shell, it still is this process.
    while !fs::read(format!("/proc/{}/cmdline", victim.id()))
        .is_ok_and(|line| line.starts_with(b"/bin/sh\0"))
    {
        std::thread::yield_now();
    }
    victim
}

impl Drop for Daemons {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.shared);
        if let Some(number) = self.number {
            self.python(&format!("mq_unlink(name); shmctl({number}, 0, None)"));
        }
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
