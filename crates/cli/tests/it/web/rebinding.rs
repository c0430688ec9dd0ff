//! Names that change what they stand for, tried for real: in a network name space with a name server, public and
//! private addresses of its own.
//!
//! The test starts itself again inside of the name spaces; there it answers DNS and HTTP, and runs the binary.

use std::{
    collections::HashMap,
    env, fs,
    io::{Read, Write},
    net::{IpAddr, TcpListener, UdpSocket},
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

use tempfile::tempdir;

use crate::binary::{haft, run};

const INSIDE: &str = "HAFT_TEST_INSIDE_NETWORK";
const NAME: &str = "web::rebinding::names_that_change_reach_nothing_private";
const PUBLIC: &str = "93.184.216.34";
const PRIVATE: [&str; 4] = ["127.0.0.1", "10.0.0.5", "169.254.169.254", "192.168.7.7"];
const PORT: u16 = 8080;

#[test]
fn names_that_change_reach_nothing_private() {
    if env::var_os(INSIDE).is_some() {
        return inside();
    }
    let can = Command::new("unshare")
        .args(["-n", "-m", "ip", "link", "set", "lo", "up"])
        .output();
    if !can.is_ok_and(|ran| ran.status.success()) {
        haft_testkit::skip("DNS rebinding in a network of its own: it needs root, unshare and ip");
        return;
    }
    let ran = haft_testkit::command("unshare")
        .args(["-n", "-m", "--propagation", "private"])
        .arg(env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("1 passed"), "{text}");
}

fn must(program: &str, args: &[&str]) {
    let ran = Command::new(program).args(args).output().unwrap();
    assert!(
        ran.status.success(),
        "{program} {args:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Who was asked what: address and path.
type Log = Arc<Mutex<Vec<(String, String)>>>;

fn inside() {
    must("ip", &["link", "set", "lo", "up"]);
    for address in PRIVATE.iter().skip(1).chain([&PUBLIC]) {
        must(
            "ip",
            &["addr", "add", &format!("{address}/32"), "dev", "lo"],
        );
    }
    let dir = tempdir().unwrap();
    for (path, text) in [
        (
            "/etc/resolv.conf",
            "nameserver 127.0.0.1\noptions attempts:1 timeout:2\n",
        ),
        ("/etc/hosts", "127.0.0.1 localhost\n"),
        ("/etc/nsswitch.conf", "hosts: files dns\n"),
    ] {
        let own = dir.path().join(path.rsplit('/').next().unwrap());
        fs::write(&own, text).unwrap();
        // It may be a link to a file that is not here.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        must(
            "mount",
            &["--bind", own.to_str().unwrap(), target.to_str().unwrap()],
        );
    }
    let names = name_server();
    let log = Log::default();
    for address in PRIVATE.iter().chain([&PUBLIC]) {
        page_server(address, &log);
    }
    let cwd = dir.path().join("work");
    fs::create_dir(&cwd).unwrap();
    // (what it shows, rules, URL, what the answer says, asks of the public server)
    let rule = "WebFetch(domain:*.example) WebFetch(domain:rebind.example)";
    let cases = [
        (
            "it works at all",
            "plain.example",
            "/hello",
            "page of 93.184.216.34",
            1,
        ),
        (
            "the second answer is private",
            "rebind.example",
            "/hello",
            "page of 93.184.216.34",
            1,
        ),
        (
            "and so is the next call's",
            "rebind.example",
            "/hello",
            "resolves to 127.0.0.1, which is a loopback address",
            0,
        ),
        (
            "a redirect to itself goes to the same address",
            "flips.example",
            "/self",
            "page of 93.184.216.34",
            2,
        ),
        (
            "public and private at once",
            "both.example",
            "/hello",
            "which is an address of a private network",
            0,
        ),
        (
            "a cloud's secrets",
            "meta.example",
            "/hello",
            "the metadata service of a cloud",
            0,
        ),
        (
            "an address inside another",
            "mapped.example",
            "/hello",
            "which is an address of a private network",
            0,
        ),
        (
            "a redirect to an address",
            "plain.example",
            "/to-address",
            "redirects to another host",
            1,
        ),
        (
            "a redirect to a name that is private",
            "plain.example",
            "/to-name",
            "redirects to another host",
            1,
        ),
        (
            "a redirect to www, which is private",
            "tricky.example",
            "/to-www",
            "which is a loopback address",
            1,
        ),
        (
            "no such name",
            "missing.example",
            "/",
            "cannot be resolved",
            0,
        ),
    ];
    for (what, host, path, expected, public) in cases {
        log.lock().unwrap().clear();
        let url = format!("http://{host}:{PORT}{path}");
        let text = fetch(&cwd, rule, &url);
        assert!(text.contains(expected), "{what}: {text}");
        let log = log.lock().unwrap().clone();
        let private: Vec<_> = log.iter().filter(|(at, _)| at != PUBLIC).collect();
        assert!(private.is_empty(), "{what}: {private:?}");
        assert_eq!(log.len(), public, "{what}: {log:?}");
    }
    // A refused name never leaves.
    names.lock().unwrap().clear();
    let text = fetch(
        &cwd,
        "WebFetch(domain:other.example)",
        &format!("http://plain.example:{PORT}/"),
    );
    assert!(text.contains("plain.example"), "{text}");
    assert!(
        names.lock().unwrap().is_empty(),
        "{:?}",
        names.lock().unwrap()
    );
}

fn fetch(cwd: &Path, rules: &str, url: &str) -> String {
    let ran = run(
        haft(cwd).args([
            "--allowedTools",
            rules,
            "call",
            "WebFetch",
            &format!("url={url}"),
            "prompt=x",
        ]),
        b"",
    );
    ran.stdout + &ran.stderr
}

/// What a name stands for at its first question, and at all later ones.
fn answers(name: &str, times: usize) -> Vec<IpAddr> {
    let texts: &[&str] = match (name, times) {
        ("plain.example" | "tricky.example", _) => &[PUBLIC],
        ("rebind.example" | "flips.example", 0) => &[PUBLIC],
        ("rebind.example" | "flips.example", _) => &["127.0.0.1"],
        ("www.tricky.example", _) => &["127.0.0.1"],
        ("both.example", _) => &[PUBLIC, "10.0.0.5"],
        ("meta.example", _) => &["169.254.169.254"],
        ("mapped.example", _) => &["::ffff:10.0.0.5"],
        _ => &[],
    };
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Answers questions; gives the names that were asked for.
fn name_server() -> Arc<Mutex<Vec<String>>> {
    let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&asked);
    thread::spawn(move || {
        let mut counts: HashMap<(String, u16), usize> = HashMap::new();
        let mut packet = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            let Some((name, kind, end)) = question(&packet[..length]) else {
                continue;
            };
            log.lock().unwrap().push(name.clone());
            let times = counts.entry((name.clone(), kind)).or_default();
            let found = answers(&name, *times);
            *times += 1;
            let is_known = !answers(&name, 0).is_empty();
            let records: Vec<Vec<u8>> = found
                .iter()
                .filter_map(|address| match (address, kind) {
                    (IpAddr::V4(v4), 1) => Some(v4.octets().to_vec()),
                    (IpAddr::V6(v6), 28) => Some(v6.octets().to_vec()),
                    _ => None,
                })
                .collect();
            let mut reply = packet[..2].to_vec();
            // An answer of one who knows; whether the name is there at all.
            reply.extend([
                0x85,
                if is_known { 0x80 } else { 0x83 },
                0,
                1,
                0,
                records.len() as u8,
                0,
                0,
                0,
                0,
            ]);
            reply.extend(&packet[12..end]);
            for record in records {
                // The name of the question; the kind; the internet; not to be kept.
                reply.extend([
                    0xc0,
                    12,
                    0,
                    kind as u8,
                    0,
                    1,
                    0,
                    0,
                    0,
                    0,
                    0,
                    record.len() as u8,
                ]);
                reply.extend(record);
            }
            let _ = socket.send_to(&reply, from);
        }
    });
    asked
}

/// The name and kind of a question, and where it ends.
fn question(packet: &[u8]) -> Option<(String, u16, usize)> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]);
    Some((labels.join("."), kind, at + 4))
}

/// Serves pages at an address.
fn page_server(address: &'static str, log: &Log) {
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let log = Arc::clone(log);
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            log.lock().unwrap().push((address.to_owned(), path.clone()));
            let to = match path.as_str() {
                "/self" => Some("/hello".to_owned()),
                "/to-address" => Some(format!("http://169.254.169.254:{PORT}/latest")),
                "/to-name" => Some(format!("http://meta.example:{PORT}/latest")),
                "/to-www" => Some(format!("http://www.tricky.example:{PORT}/")),
                _ => None,
            };
            let reply = match to {
                Some(to) => format!(
                    "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                ),
                None => {
                    let body = format!("<p>page of {address}</p>");
                    let length = body.len();
                    format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    )
                }
            };
            let _ = stream.write_all(reply.as_bytes());
        }
    });
}
