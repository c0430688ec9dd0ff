//! What a client reads, and what is kept.

use std::sync::Arc;

use haft_sandbox::network::{ProxyLimits, RuleGate};

use super::rig::{Closed, Rig, rules};

#[tokio::test]
async fn a_refusal_says_who_why_and_what_would_allow_it() {
    let held = Closed::new();
    let closed = held.port;
    let allowed = [
        "a.com".to_owned(),
        "inside.com".to_owned(),
        "v6.com".to_owned(),
        "meta.com".to_owned(),
        "any.com".to_owned(),
        "nowhere.com".to_owned(),
        format!("127.0.0.1:{closed}"),
    ];
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let gate = RuleGate(rules(&allowed, &["*.bad.com", "8.8.8.8"]));
    let names: &[(&str, &[&[&str]])] = &[
        ("inside.com", &[&["10.1.2.3"]]),
        ("v6.com", &[&["fd00::1"]]),
        ("meta.com", &[&["169.254.169.254"]]),
        ("any.com", &[&["0.0.0.0"]]),
        ("a.com", &[&["8.8.8.8"]]),
    ];
    let rig = Rig::with(Arc::new(gate), names, ProxyLimits::default());
    let requests = [
        "CONNECT evil.com:443 HTTP/1.1\r\n\r\n".to_owned(),
        "GET http://evil.com/x HTTP/1.1\r\n\r\n".to_owned(),
        "HEAD http://evil.com/x HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT a.bad.com:443 HTTP/1.1\r\n\r\n".to_owned(),
        "POST http://a.com/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        "CONNECT a.com:443 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT 192.168.0.1:22 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT [::1]:22 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT inside.com:443 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT v6.com:443 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT meta.com:80 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT any.com:80 HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n".to_owned(),
        "GET http://evil.com\\.a.com/ HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT nowhere.com:443 HTTP/1.1\r\n\r\n".to_owned(),
        format!("CONNECT 127.0.0.1:{closed} HTTP/1.1\r\n\r\n"),
        "GET https://a.com/ HTTP/1.1\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n".to_owned(),
        "GET http://a.com/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n".to_owned(),
    ];
    let mut told = String::new();
    for request in requests {
        let answer = rig.send(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let (first, fields) = head.split_once("\r\n").unwrap();
        assert!(fields.ends_with("\r\nconnection: close"), "{fields}");
        let line = request.lines().next().unwrap();
        let status = first.strip_prefix("HTTP/1.1 ").unwrap();
        told += &format!("{line}\n  {status}\n  {}\n", body.trim_end());
    }
    told += "\nThe log:\n";
    for entry in rig.proxy.log() {
        let allowed = if entry.allowed { "allowed" } else { "refused" };
        let method = entry.method.as_deref().unwrap_or("tunnel");
        let address = entry.address.map(|it| format!(" at {it}"));
        told += &format!(
            "{allowed} {method} {}:{}{}: {}\n",
            entry.host,
            entry.port,
            address.unwrap_or_default(),
            entry.reason
        );
    }
    let port = closed.to_string();
    insta::assert_snapshot!(told.replace(&port, "PORT"));
}
