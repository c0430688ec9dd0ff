//! The client for pages: where it connects to, and what it does not accept.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    thread,
};

use haft_contract::{WebFetcher, WebRequest};
use haft_models::{HttpOptions, WebClient};
use haft_testkit::http::{HttpFake, HttpReply, header};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

fn client() -> WebClient {
    WebClient::new(HttpOptions {
        proxies: false,
        ..HttpOptions::default()
    })
}

fn request(url: &str, addresses: &[&str]) -> WebRequest {
    WebRequest {
        url: url.to_owned(),
        addresses: addresses.iter().map(|one| one.parse().unwrap()).collect(),
        headers: Vec::new(),
    }
}

async fn failure(url: &str, addresses: &[&str]) -> String {
    let failed = client().get(request(url, addresses)).await;
    failed.err().unwrap().message
}

/// Speaks TLS with a certificate that no one vouches for. `None` without openssl, which makes one.
fn self_signed() -> Option<u16> {
    let dir = tempfile::tempdir().unwrap();
    let (key, certificate) = (dir.path().join("key.pem"), dir.path().join("cert.pem"));
    let made = haft_testkit::command("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args([
            "-subj",
            "/CN=site.example",
            "-addext",
            "subjectAltName=DNS:site.example",
        ])
        .args([
            "-days",
            "2",
            "-keyout",
            key.to_str()?,
            "-out",
            certificate.to_str()?,
        ])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        haft_testkit::skip("a certificate that no one vouches for: it needs openssl");
        return None;
    }
    let certificate = CertificateDer::from_pem_file(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::Stream::new(&mut session, &mut stream);
            let mut head = [0; 1024];
            if tls.read(&mut head).is_ok() {
                let _ = tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx");
            }
        }
    });
    Some(port)
}

#[tokio::test]
async fn bad_tls_is_refused_and_said_to_be() {
    if let Some(port) = self_signed() {
        let url = format!("https://site.example:{port}/");
        let why = failure(&url, &["127.0.0.1"]).await;
        assert!(
            why.contains("the certificate of site.example") && why.contains("not accepted"),
            "{why}"
        );
    }
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = plain.accept() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    let why = failure(&format!("https://site.example:{port}/"), &["127.0.0.1"]).await;
    assert!(why.contains("does not support TLS"), "{why}");
}

#[tokio::test]
async fn a_request_goes_to_its_addresses_and_to_no_others() {
    let server = HttpFake::start([HttpReply::new(302, "text/html", "x")
        .header("location", "/y")
        .header("set-cookie", "a=b")]);
    let port = server.url.rsplit(':').next().unwrap();
    let client = client();
    for _ in 0..2 {
        let url = format!("http://no-such-name.example:{port}/x");
        let mut answer = client.get(request(&url, &["127.0.0.1"])).await.unwrap();
        assert_eq!(
            (answer.status, answer.header("location")),
            (302, Some("/y"))
        );
        assert_eq!(answer.body.bytes(10).await.unwrap(), b"x");
    }
    let asked = server.requests();
    // Neither a redirect was followed nor a cookie kept.
    assert_eq!(asked.len(), 2);
    assert_eq!(header(&asked[1].head, "cookie"), None);
    assert_eq!(
        header(&asked[1].head, "host"),
        Some(format!("no-such-name.example:{port}").as_str())
    );
    // Names that were not looked up are not looked up here either, nor is any other kind of address fetched.
    let why = failure("http://localhost:1/", &[]).await;
    assert!(
        why.contains("the addresses of localhost were not checked"),
        "{why}"
    );
    for odd in [
        "file:///etc/passwd",
        "http://u:p@127.0.0.1/",
        "ftp://127.0.0.1/",
    ] {
        let why = failure(odd, &["127.0.0.1"]).await;
        assert!(why.contains("not the address of a web page"), "{why}");
    }
    let why = failure("http://gone.example:1/", &["127.0.0.1"]).await;
    assert!(why.contains("gone.example:1 cannot be reached"), "{why}");
}
