//! Whom a command can talk to: sockets, and memory that processes share.

use super::{
    stand::Around,
    table::{
        Case, Scenario,
        Unconfined::{Depends, SucceedsForRoot},
        View, bash, check_every_view, python,
    },
};

const OPEN: &str = "it may talk to whoever the user may";

#[tokio::test(flavor = "multi_thread")]
async fn only_the_network_of_the_profile_is_reached() {
    let test = "scenarios::network::only_the_network_of_the_profile_is_reached";
    check_every_view(test, &network(), Around::Daemons).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_daemon_of_the_machine_is_reached() {
    let test = "scenarios::network::no_daemon_of_the_machine_is_reached";
    check_every_view(test, &daemons(), Around::Daemons).await;
}

const _: () = assert!(haft_sandbox::PROXY_PORT == 3128);

fn with_network(case: &Case) -> bool {
    matches!(case.view, View::Open) || (case.view == View::Proxy && !case.reduced())
}

fn proxied(case: &Case) -> bool {
    case.view == View::Proxy && !case.reduced()
}

fn network() -> Vec<Scenario> {
    vec![
        bash("TCP", "exec 3<> /dev/tcp/127.0.0.1/$TCP").happens(Case::open, OPEN),
        bash("TCP (v6)", "exec 3<> /dev/tcp/::1/$TCP6")
            .unconfined(Depends)
            .may_happen(Case::open, OPEN),
        bash("UDP, as names are asked for", "echo name > /dev/udp/127.0.0.1/$UDP").happens(Case::open, OPEN),
        python(
            "UDP (v6) to an address of the other kind",
            r#"
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("::ffff:127.0.0.1", number("UDP")))
"#,
        )
        .unconfined(Depends)
        .may_happen(Case::open, OPEN),
        python(
            "TCP by another protocol",
            r#"
socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", number("TCP"))) # MPTCP
"#,
        )
        .unconfined(Depends)
        .may_happen(Case::open, OPEN),
        python(
            "TCP that starts with its data",
            r#"
socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", number("TCP"))) # MSG_FASTOPEN
"#,
        )
        .happens(Case::open, OPEN),
        python(
            "raw packets",
            r#"
for family, kind, protocol in ((2, 3, 1), (10, 3, 58), (17, 3, 0x300), (17, 2, 0x300), (2, 10, 0x300)):
    try: socket.socket(family, kind, protocol); print("GOT", family, kind)
    except OSError: pass
"#,
        )
        .unconfined(SucceedsForRoot),
        python(
            "other families",
            r#"
usual = (1, 2, 10, 16)
for family in range(3, 46):
    if family in usual: continue
    for kind in (1, 2, 3, 5):
        try: socket.socket(family, kind, 0); print("GOT", family, kind)
        except OSError: pass
"#,
        )
        .unconfined(Depends),
        python(
            "messages to the kernel",
            r#"
for protocol in range(1, 23):
    try: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol); print("GOT", protocol)
    except OSError: pass
"#,
        ),
        python(
            "the list of interfaces",
            r#"
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); print("GOT")
"#,
        )
        .happens(with_network, "programs look at it before they connect"),
        python(
            "change interfaces",
            r#"
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
# RTM_NEWLINK: loopback is up, as it was
s.send(struct.pack("IHHII", 32, 16, 5, 1, 0) + struct.pack("BxHiII", 0, 0, 1, 1, 1))
if struct.unpack("IHHIIi", s.recv(99)[:20])[5] == 0: print("GOT")
"#,
        )
        .unconfined(SucceedsForRoot),
        bash("the proxy", "(exec 3<> /dev/tcp/127.0.0.1/3128) && echo GOT")
            .unconfined(Depends)
            .happens(proxied, "it is there for that")
            .may_happen(Case::open, OPEN),
        python(
            "be a server",
            r#"
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname()); print("GOT")
"#,
        )
        .happens(Case::open, OPEN)
        .happens(proxied, "the loopback interface there is its own"),
    ]
}

fn daemons() -> Vec<Scenario> {
    vec![
        python(
            "a daemon",
            r#"
socket.socket(socket.AF_UNIX).connect(OUT + "/daemon.sock")
"#,
        ),
        python(
            "a daemon by other ways",
            r#"
daemons = OUT
ways = [daemons + "/daemon.sock", "/proc/self/root" + daemons + "/daemon.sock", "daemon.sock"]
ways += ["/proc/%s/root%s/daemon.sock" % (p, daemons) for p in os.listdir("/proc") if p.isdigit()]
os.chdir(daemons)
for way in ways:
    try: socket.socket(socket.AF_UNIX).connect(way)
    except OSError: pass
try: os.symlink(daemons, IN + "/d"); socket.socket(socket.AF_UNIX).connect(IN + "/d/daemon.sock")
except OSError: pass
try: os.link(daemons + "/daemon.sock", IN + "/l"); socket.socket(socket.AF_UNIX).connect(IN + "/l")
except OSError: pass
"#,
        ),
        python(
            "a daemon whose socket was renamed",
            r#"
socket.socket(socket.AF_UNIX).connect(OUT + "/renamed.sock")
"#,
        ),
        python(
            "a log",
            r#"
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", OUT + "/log.sock")
"#,
        ),
        python(
            "a log, by one end of a pair",
            r#"
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
here.sendto(b"x", OUT + "/log.sock")
"#,
        ),
        python(
            "a daemon without a file",
            r#"
socket.socket(socket.AF_UNIX).connect("\0" + os.environ["TAG"])
"#,
        ),
        python(
            "a daemon, by an address that changes",
            r#"
import threading
class Address(ctypes.Structure): _fields_ = [("family", ctypes.c_ushort), ("path", ctypes.c_char * 108)]
own = IN + "/a"
if os.path.exists(own): os.unlink(own)
server = socket.socket(socket.AF_UNIX); server.bind(own); server.listen(9999)
address, done = Address(1, own.encode()), False
def change():
    while not done:
        address.path = (OUT + "/daemon.sock").encode()
        address.path = own.encode()
thread = threading.Thread(target=change); thread.start()
try:
    for _ in range(2000):
        client = socket.socket(socket.AF_UNIX)
        libc.connect(client.fileno(), ctypes.byref(address), ctypes.sizeof(address))
        client.close()
finally: done = True; thread.join()
"#,
        )
        .unconfined(Depends),
        python(
            "a daemon, by a descriptor that changes",
            r#"
import threading
class Address(ctypes.Structure): _fields_ = [("family", ctypes.c_ushort), ("path", ctypes.c_char * 108)]
address, done = Address(1, (OUT + "/daemon.sock").encode()), False
unix, other = socket.socket(socket.AF_UNIX), open("/dev/null")
try: other = socket.socket()
except OSError: pass
number = os.dup(other.fileno())
def change():
    while not done:
        os.dup2(unix.fileno(), number)
        os.dup2(other.fileno(), number)
thread = threading.Thread(target=change); thread.start()
try:
    for _ in range(2000): libc.connect(number, ctypes.byref(address), ctypes.sizeof(address))
finally: done = True; thread.join()
"#,
        )
        .unconfined(Depends),
        python(
            "a daemon, by a process that cannot be inspected",
            r#"
libc.prctl(4, 0, 0, 0, 0) # PR_SET_DUMPABLE
socket.socket(socket.AF_UNIX).connect(OUT + "/daemon.sock")
"#,
        ),
        python(
            "a daemon, below an open directory",
            r#"
directory = os.open(OUT, os.O_PATH)
socket.socket(socket.AF_UNIX).connect("/proc/self/fd/%d/daemon.sock" % directory)
"#,
        ),
        python(
            "a daemon, without waiting",
            r#"
client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
client.connect(OUT + "/daemon.sock")
"#,
        ),
        python(
            "a daemon of one's own, below an open directory",
            r#"
os.makedirs(IN + "/d", exist_ok=True)
directory = os.open(IN + "/d", os.O_PATH)
name = "/proc/self/fd/%d/" % directory + "o"
if os.path.exists(IN + "/d/o"): os.unlink(IN + "/d/o")
server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen()
client = socket.socket(socket.AF_UNIX); client.settimeout(60); client.connect(name); print("GOT")
"#,
        )
        .happens(Case::workspace, "what is inside may be talked to"),
        python(
            "a daemon of one's own without a file",
            r#"
server = socket.socket(socket.AF_UNIX); server.bind("\0" + os.environ["TAG"] + "-own"); server.listen()
socket.socket(socket.AF_UNIX).connect("\0" + os.environ["TAG"] + "-own"); print("GOT")
"#,
        )
        .happens(Case::workspace, "what is inside may be talked to"),
        python(
            "a daemon of one's own",
            r#"
os.chdir(IN)
if os.path.exists("own.sock"): os.unlink("own.sock")
server = socket.socket(socket.AF_UNIX); server.bind("own.sock"); server.listen()
socket.socket(socket.AF_UNIX).connect("own.sock"); print("GOT")
"#,
        )
        .happens(Case::workspace, "what is inside may be talked to"),
        bash("memory with a name", r#"echo new > "/dev/shm/$TAG""#),
        python(
            "memory with a number",
            r#"
libc.shmat.restype = ctypes.c_void_p
if number("SHARED") >= 0 and libc.shmat(number("SHARED"), None, 0) != ctypes.c_void_p(-1).value: print("GOT")
"#,
        )
        .unconfined(Depends)
        .may_happen(Case::reduced, "these names are the machine's"),
        python(
            "a queue of messages",
            r#"
queue = ctypes.CDLL("librt.so.1", use_errno=True).mq_open(b"/" + os.environ["TAG"].encode(), os.O_RDWR)
if queue >= 0: print("GOT")
"#,
        )
        .unconfined(Depends)
        .may_happen(Case::reduced, "these names are the machine's"),
    ]
}
