//! Where names may point.

use std::sync::Arc;

use haft_sandbox::network::{ProxyLimits, RuleGate};

use super::rig::{Canned, Rig, rules};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn get(host: &str, port: u16) -> String {
    format!("GET http://{host}:{port}/ HTTP/1.1\r\n\r\n")
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

#[tokio::test]
async fn a_name_that_points_inside_is_refused() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
    ] {
        // Named exactly, below a wildcard, and by `*`: none of them names the address.
        let allowed = ["app.test", "*.app.test", "*"];
        let answers: &[&[&str]] = &[&[address]];
        let rig = Rig::new(&allowed, &[("app.test", answers), ("a.app.test", answers)]);
        for host in ["app.test", "a.app.test"] {
            let answer = rig.send(get(host, 80)).await;
            assert_eq!(status(&answer), "403", "{host} {address} {answer}");
        }
        let log = rig.proxy.log();
        assert!(
            log.iter()
                .all(|entry| !entry.allowed && entry.address.is_none())
        );
    }
}

#[tokio::test]
async fn an_address_inside_is_reached_only_by_its_own_name() {
    let server = Canned::new(OK).await;
    let port = server.port;
    let names: &[(&str, &[&[&str]])] = &[("app.test", &[&["127.0.0.1"]])];
    let exact = format!("127.0.0.1:{port}");
    let other = format!("127.0.0.1:{}", port ^ 1);
    let mapped = format!("[::ffff:127.0.0.1]:{port}");
    let cases: [(&[&str], &str, &str); 9] = [
        (&[&exact], "127.0.0.1", "200"),
        (&["127.0.0.1"], "127.0.0.1", "200"),
        (&[&mapped], "127.0.0.1", "200"),
        (&["127.0.0.1"], "[::ffff:127.0.0.1]", "200"),
        (&["*"], "127.0.0.1", "403"),
        (&[&other], "127.0.0.1", "403"),
        (&["127.0.0.2"], "127.0.0.1", "403"),
        // A name needs a rule of its own, and one for where it points.
        (&["app.test", &exact], "app.test", "200"),
        (&[&exact], "app.test", "403"),
    ];
    for (allowed, host, expected) in cases {
        let rig = Rig::new(allowed, names);
        let answer = rig.send(get(host, port)).await;
        assert_eq!(status(&answer), expected, "{allowed:?} {host} {answer}");
    }
}

#[tokio::test]
async fn localhost_means_loopback_if_a_rule_says_localhost() {
    let server = Canned::new(OK).await;
    let port = server.port;
    let cases: [(&str, &[&str], &str); 5] = [
        ("localhost", &["127.0.0.1"], "200"),
        ("localhost", &["127.0.0.1", "::1"], "200"),
        ("*", &["127.0.0.1"], "403"),
        ("localhost", &["127.0.0.1", "10.0.0.1"], "403"),
        ("localhost", &["127.0.0.2"], "403"),
    ];
    for (rule, addresses, expected) in cases {
        let rig = Rig::new(&[rule], &[("localhost", &[addresses])]);
        let answer = rig.send(get("localhost", port)).await;
        assert_eq!(status(&answer), expected, "{rule} {addresses:?} {answer}");
    }
    // The rule is about that name alone.
    let rig = Rig::new(
        &["localhost", "app.test"],
        &[("app.test", &[&["127.0.0.1"]])],
    );
    assert_eq!(status(&rig.send(get("app.test", port)).await), "403");
}

#[tokio::test]
async fn one_address_inside_spoils_the_others() {
    let mut server = Canned::new(OK).await;
    let port = server.port;
    let exact = format!("127.0.0.1:{port}");
    for addresses in [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"]] {
        let rig = Rig::new(&["app.test", &exact], &[("app.test", &[&addresses])]);
        let answer = rig.send(get("app.test", port)).await;
        assert_eq!(status(&answer), "403", "{answer}");
        assert!(answer.contains("10.0.0.1"), "{answer}");
    }
    assert!(server.is_idle());
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let server = Canned::new(OK).await;
    let port = server.port;
    // No one listens at the first: the server's socket is bound to the other alone.
    let allowed = ["app.test", "127.0.0.9", "127.0.0.1"];
    let rig = Rig::new(&allowed, &[("app.test", &[&["127.0.0.9", "127.0.0.1"]])]);
    assert_eq!(status(&rig.send(get("app.test", port)).await), "200");
    assert_eq!(
        rig.proxy.log()[0].address,
        Some(([127, 0, 0, 1], port).into())
    );
}

/// A name that answers differently the second time: it is asked once, and what was checked is what
/// is connected to.
#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection() {
    let server = Canned::new(OK).await;
    let port = server.port;
    let exact = format!("127.0.0.1:{port}");
    let rig = Rig::new(
        &["app.test", &exact],
        &[("app.test", &[&["127.0.0.1"], &["127.0.0.2"]])],
    );
    assert_eq!(status(&rig.send(get("app.test", port)).await), "200");
    assert_eq!(rig.names.asked(), ["app.test"]);
    // The second connection asks anew, and is checked anew.
    assert_eq!(status(&rig.send(get("app.test", port)).await), "403");
    assert_eq!(rig.names.asked(), ["app.test", "app.test"]);
}

/// A query for a name that no one allowed could carry data out.
#[tokio::test]
async fn a_refused_name_is_not_resolved() {
    let rig = Rig::new(&["app.test"], &[]);
    for host in ["secret.evil.com", "app.test.evil.com", "xapp.test"] {
        assert_eq!(status(&rig.send(get(host, 80)).await), "403", "{host}");
    }
    assert!(rig.names.asked().is_empty());
}

#[tokio::test]
async fn a_denied_address_is_denied_by_any_name() {
    let mut server = Canned::new(OK).await;
    let port = server.port;
    let gate = RuleGate(rules(
        &["*", "127.0.0.1", "8.8.8.8"],
        &["127.0.0.1", "8.8.8.8"],
    ));
    let names: &[(&str, &[&[&str]])] = &[
        ("app.test", &[&["127.0.0.1"]]),
        ("dns.test", &[&["8.8.8.8"]]),
        ("nat.test", &[&["64:ff9b::8.8.8.8"]]),
    ];
    let rig = Rig::with(Arc::new(gate), names, ProxyLimits::default());
    for host in ["app.test", "dns.test", "nat.test", "127.0.0.1"] {
        let answer = rig.send(get(host, port)).await;
        assert_eq!(status(&answer), "403", "{host} {answer}");
    }
    assert!(server.is_idle());
}
