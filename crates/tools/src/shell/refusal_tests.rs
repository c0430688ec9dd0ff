use super::*;

fn found(output: &str, code: i32) -> Vec<SandboxRefusal> {
    refusals(
        output,
        code,
        &RefusalContext {
            cwd: Path::new("/w"),
            forbidden: &|path| !path.starts_with("/w"),
            unreadable: &|path| path.starts_with("/h").then(|| path.to_path_buf()),
            homes_closed: true,
            network: SandboxNetwork::None,
        },
    )
}

#[test]
fn a_file_that_could_not_be_read_is_named() {
    let cases = [
        ("cat: /h/.ssh/id: Permission denied", "/h/.ssh/id"),
        ("cat: /h/.ssh/id: No such file or directory", "/h/.ssh/id"),
        ("cat: ../h/x: No such file or directory", "/w/../h/x"),
        (
            "bash: line 1: /h/list: No such file or directory",
            "/h/list",
        ),
        (
            "ls: cannot access '/h/a b': No such file or directory",
            "/h/a b",
        ),
        ("sort: cannot read: /h/x: No such file or directory", "/h/x"),
        ("sed: can't read /h/x: No such file or directory", "/h/x"),
        (
            "head: cannot open '/h/x' for reading: Permission denied",
            "/h/x",
        ),
        ("tar: /h/x: Cannot stat: No such file or directory", "/h/x"),
        ("find: ‘/h/x’: No such file or directory", "/h/x"),
        ("error: Could not access '/h/x'", "/h/x"),
        ("strings: '/h/x': No such file", "/h/x"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/h/x'",
            "/h/x",
        ),
    ];
    for (line, path) in cases {
        let path = PathBuf::from(path);
        let expected = match path.starts_with("/h") {
            true => vec![SandboxRefusal::Read(path)],
            false => Vec::new(),
        };
        assert_eq!(found(line, 1), expected, "{line}");
    }
    // One that is not there for anyone, and one that is not named.
    assert_eq!(found("cat: gone: No such file or directory", 1), []);
    let unnamed = "No such file or directory";
    assert_eq!(found(unnamed, 1), [SandboxRefusal::Homes]);
}

#[test]
fn a_file_that_could_not_be_made_in_a_directory_that_is_not_seen_is_named() {
    let cases = [
        "t.sh: 1: cannot create /h/d/x: Directory nonexistent",
        "touch: cannot touch '/h/d/x': No such file or directory",
        "cp: cannot create regular file '/h/d/x': No such file or directory",
        "mkdir: cannot create directory ‘/h/d/x’: No such file or directory",
        "fatal: Unable to create '/h/d/x': No such file or directory",
    ];
    for line in cases {
        assert_eq!(found(line, 0), [write("/h/d/x")], "{line}");
        // Where the directory is really missing, everyone gets the same message.
        let elsewhere = line.replace("/h/d/x", "/e/d/x");
        assert_eq!(found(&elsewhere, 0), [], "{elsewhere}");
    }
}

fn write(path: &str) -> SandboxRefusal {
    SandboxRefusal::Write(PathBuf::from(path))
}

fn network(host: &str) -> SandboxRefusal {
    SandboxRefusal::Network(Some(host.to_owned()))
}

#[test]
fn a_file_that_could_not_be_changed_is_named() {
    let cases = [
        ("bash: line 1: out.txt: Read-only file system", "/w/out.txt"),
        (
            "bash: line 12: my file: Read-only file system",
            "/w/my file",
        ),
        (
            "/bin/sh: 1: cannot create /etc/x: Read-only file system",
            "/etc/x",
        ),
        ("touch: cannot touch 'a/x': Read-only file system", "/w/a/x"),
        (
            "mkdir: cannot create directory ‘/opt/d’: Read-only file system",
            "/opt/d",
        ),
        (
            "cp: cannot create regular file 'b c': Read-only file system",
            "/w/b c",
        ),
        ("mv: cannot move 'a' to 'b': Read-only file system", "/w/b"),
        ("rm: cannot remove 'a': Read-only file system", "/w/a"),
        (
            "ln: failed to create symbolic link 'l': Read-only file system",
            "/w/l",
        ),
        ("tee: t: Read-only file system", "/w/t"),
        (
            "chmod: changing permissions of 'a': Read-only file system",
            "/w/a",
        ),
        ("dd: failed to open 'b': Read-only file system", "/w/b"),
        (
            "sed: couldn't open temporary file ./sed59DdCa: Read-only file system",
            "/w/sed59DdCa",
        ),
        (
            "fatal: Unable to create '/r/.git/index.lock': Read-only file system",
            "/r/.git/index.lock",
        ),
        (
            "error: could not lock config file .git/config: Read-only file system",
            "/w/.git/config",
        ),
        (
            "fatal: cannot lock ref 'refs/heads/q': Unable to create '/r/.git/refs/heads/q.lock': Read-only file system",
            "/r/.git/refs/heads/q.lock",
        ),
        ("OSError: [Errno 30] Read-only file system: 'p'", "/w/p"),
        (
            "OSError: [Errno 30] Read-only file system: 'a' -> '/b'",
            "/b",
        ),
        ("Error: EROFS: read-only file system, open 'n'", "/w/n"),
        (
            "Error: EROFS: read-only file system, rename 'a' -> 'n'",
            "/w/n",
        ),
        (
            "npm error rofs EROFS: read-only file system, open '/p/package.json'",
            "/p/package.json",
        ),
        (
            "Cannot open pp: Read-only file system at -e line 1.",
            "/w/pp",
        ),
        ("tar: x.tar: Cannot open: Read-only file system", "/w/x.tar"),
        ("w: Read-only file system", "/w/w"),
        (
            "Cannot create temporary file in ./: Read-only file system",
            "/w",
        ),
        (
            "/usr/bin/ld: cannot open output file a.out: Read-only file system",
            "/w/a.out",
        ),
        ("open /x/y: read-only file system", "/x/y"),
        (
            "go: creating work dir: mkdir /x/go-build1: read-only file system",
            "/x/go-build1",
        ),
        (
            "java.io.FileNotFoundException: /x/y (Read-only file system)",
            "/x/y",
        ),
        (
            "Errno::EROFS: Read-only file system @ rb_sysopen - /x/y",
            "/x/y",
        ),
        (
            "Warning: Failed to open the file /x/o: Read-only file system",
            "/x/o",
        ),
        (
            "error: failed to write /p/Cargo.lock\n\nCaused by:\n  failed to open: /p/Cargo.lock\n\nCaused by:\n  Read-only file system (os error 30)",
            "/p/Cargo.lock",
        ),
        (
            "error: failed to create directory `/p/target/debug`\n\nCaused by:\n  Read-only file system (os error 30)",
            "/p/target/debug",
        ),
        (
            "error: Read-only file system (os error 30) at path \"/x/.tmpA\"",
            "/x/.tmpA",
        ),
        ("bash: line 1: /etc/x: Permission denied", "/etc/x"),
        ("touch: cannot touch '/etc/x': Permission denied", "/etc/x"),
        (
            "PermissionError: [Errno 13] Permission denied: '/etc/x'",
            "/etc/x",
        ),
        ("Error: EACCES: permission denied, mkdir '/etc/x'", "/etc/x"),
        (
            "Error: EPERM: operation not permitted, unlink '/etc/x'",
            "/etc/x",
        ),
        (
            "chmod: changing permissions of '/etc/x': Operation not permitted",
            "/etc/x",
        ),
        ("open /etc/x: permission denied", "/etc/x"),
        (
            "error: failed to open: /etc/x\n\nCaused by:\n  Permission denied (os error 13)",
            "/etc/x",
        ),
    ];
    for (output, path) in cases {
        assert_eq!(found(output, 1), [write(path)], "{output}");
    }
}

#[test]
fn what_anybody_would_be_denied_is_no_refusal() {
    for output in [
        // Inside what may be changed: the file's own permissions.
        "touch: cannot touch 'x': Permission denied",
        "cat: secret: Permission denied",
        "chown: changing ownership of 'a': Operation not permitted",
        "git@github.com: Permission denied (publickey).",
        "Permission denied, please try again.",
        "Permission denied",
        "ls: cannot access '/nosuch': No such file or directory",
        "curl: (7) Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server",
        "connect ECONNREFUSED 127.0.0.1:5432",
        "connect ENETUNREACH 127.0.0.1:5432",
        "the read-only flag was given",
        "test read_only_file_system ... ok",
        "HTTP 403 Forbidden",
    ] {
        assert_eq!(found(output, 1), [], "{output}");
    }
    assert_eq!(found("bash: line 1: /opt/x.sh: Permission denied", 126), []);
}

#[test]
fn a_host_that_could_not_be_reached_is_named() {
    let cases = [
        (
            "curl: (6) Could not resolve host: example.com",
            "example.com",
        ),
        (
            "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
            "github.com",
        ),
        (
            "wget: unable to resolve host address ‘example.com’",
            "example.com",
        ),
        (
            "Resolving example.com (example.com)... failed: Temporary failure in name resolution.",
            "example.com",
        ),
        (
            "getaddrinfo EAI_AGAIN packages.example.org",
            "packages.example.org",
        ),
        (
            "npm error request to https://packages.example.org/x failed, reason: getaddrinfo ENOTFOUND packages.example.org",
            "packages.example.org",
        ),
        (
            "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
            "github.com",
        ),
        (
            "ping: example.com: Temporary failure in name resolution",
            "example.com",
        ),
        (
            "Err:1 http://mirror.example.org/debian stable InRelease\n  Temporary failure resolving 'mirror.example.org'",
            "mirror.example.org",
        ),
        (
            "go: example.com/m@v1: Get \"https://proxy.golang.org/m\": dial tcp: lookup proxy.golang.org on 10.0.0.1:53: dial udp 10.0.0.1:53: connect: network is unreachable",
            "proxy.golang.org",
        ),
        (
            "  [6] Could not resolve hostname (Could not resolve host: index.example.org)",
            "index.example.org",
        ),
        (
            "HTTPSConnectionPool(host='simple.example.org', port=443): Max retries exceeded with url: /simple/six/",
            "simple.example.org",
        ),
        (
            "curl: (7) Failed to connect to 1.1.1.1 port 80 after 0 ms: Couldn't connect to server",
            "1.1.1.1",
        ),
        (
            "ssh: connect to host 1.1.1.1 port 22: Network is unreachable",
            "1.1.1.1",
        ),
        (
            "dial tcp 1.1.1.1:443: connect: network is unreachable",
            "1.1.1.1",
        ),
        (
            "Error: connect ENETUNREACH 1.1.1.1:443 - Local (0.0.0.0:0)",
            "1.1.1.1",
        ),
        (
            "bash: line 1: /dev/tcp/1.1.1.1/80: Network is unreachable",
            "1.1.1.1",
        ),
        (
            "java.net.UnknownHostException: repo.maven.org",
            "repo.maven.org",
        ),
        (
            "The sandbox refused the connection to example.com, port 80. No rule allows it.",
            "example.com",
        ),
        (
            "fatal: unable to access 'https://github.com/a/b/': CONNECT tunnel failed, response 403",
            "github.com",
        ),
        (
            "Cloning https://joe@github.com/a/b\ncurl: (56) CONNECT tunnel failed, response 403",
            "github.com",
        ),
        (
            "--2026-- https://example.com/\nProxy tunneling failed: ForbiddenUnable to establish SSL connection.",
            "example.com",
        ),
        (
            "curl: (97) Can't complete SOCKS5 connection to example.com. (2)",
            "example.com",
        ),
    ];
    for (output, host) in cases {
        assert_eq!(found(output, 1), [network(host)], "{output}");
    }
    for output in [
        "OSError: [Errno 101] Network is unreachable",
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "OSError: Tunnel connection failed: 403 Forbidden",
        "ping: socket: Operation not permitted",
    ] {
        assert_eq!(
            found(output, 1),
            [SandboxRefusal::Network(None)],
            "{output}"
        );
    }
}

#[test]
fn the_network_is_not_to_blame_where_it_is_open_or_was_not_needed() {
    let output = "curl: (6) Could not resolve host: example.com\n";
    assert_eq!(found(output, 0), []);
    let open = RefusalContext {
        cwd: Path::new("/w"),
        forbidden: &|_| true,
        unreadable: &|_| None,
        homes_closed: false,
        network: SandboxNetwork::Open,
    };
    assert_eq!(refusals(output, 6, &open), []);
}

#[test]
fn what_names_no_file_is_told_as_it_is() {
    for line in [
        "error: unable to create temporary file: Read-only file system",
        "sqlite3.OperationalError: attempt to write a readonly database",
        "Read-only file system",
    ] {
        assert_eq!(
            found(line, 1),
            [SandboxRefusal::Other(line.to_owned())],
            "{line}"
        );
    }
}

#[test]
fn everything_is_told_once() {
    let output = "touch: cannot touch 'a': Read-only file system\n\
        ok\n\
        touch: cannot touch 'b': Read-only file system\n\
        touch: cannot touch 'a': Read-only file system\n\
        OSError: [Errno 101] Network is unreachable\n\
        curl: (6) Could not resolve host: Example.com\n";
    assert_eq!(
        found(output, 1),
        [write("/w/a"), write("/w/b"), network("example.com")]
    );
    assert_eq!(found(output, 0), [write("/w/a"), write("/w/b")]);
    let many: String = (0..100)
        .map(|number| format!("touch: cannot touch 'f{number}': Read-only file system\n"))
        .collect();
    assert_eq!(found(&many, 1).len(), MAX_COUNT);
    let long = "é line\n".repeat(100_000) + "touch: cannot touch 'a': Read-only file system\n";
    assert_eq!(found(&long, 1), [write("/w/a")]);
}

#[test]
fn every_pattern_can_be_built() {
    assert_eq!(HOSTS.len(), NAMED.len());
    assert!(quoted("'a'").is_some());
    assert!(path_above(&["failed to open: /a"]).is_some());
    assert!(host_in_url("https://a/").is_some());
}

proptest::proptest! {
    #[test]
    fn no_output_is_too_odd(
        start in "\\PC{0,20}",
        words in "(: |\\(|EROFS: |, )?(Read-only file system|Permission denied)(: '|, open '| @ )?",
        end in "\\PC{0,20}",
    ) {
        found(&format!("{start}{words}{end}"), 1);
    }
}

#[test]
fn what_is_mounted_and_could_not_be_replaced_is_named() {
    let busy = "error: could not write config file /r/.git/config: Device or resource busy";
    assert_eq!(found(busy, 128), [write("/r/.git/config")]);
    assert_eq!(
        found(
            "mv: cannot move '/r/.git' to 'x': Device or resource busy",
            1
        ),
        [] // where it was to go is not forbidden
    );
}
