//! A real client, where there is one.

use tokio::process::Command;

use super::rig::{Canned, Rig};

/// What curl prints, and its exit code; `None` if there is no curl.
async fn curl(rig: &Rig, scheme: &str, arguments: &[&str]) -> Option<(String, i32)> {
    haft_testkit::bound_this_process();
    let output = Command::new("curl")
        .args(["--silent", "--max-time", "60", "--noproxy", ""])
        .args(["--proxy", &format!("{scheme}://{}", rig.address)])
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    Some((text, output.status.code().unwrap_or(-1)))
}

#[tokio::test]
async fn curl_gets_through_each_way() {
    let server = Canned::new("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let port = server.port;
    let rule = format!("127.0.0.1:{port}");
    let rig = Rig::new(&["app.test", &rule], &[("app.test", &[&["127.0.0.1"]])]);
    let url = format!("http://app.test:{port}/");
    for (scheme, arguments) in [
        ("http", vec![url.as_str()]),
        ("http", vec!["--proxytunnel", &url]),
        ("socks5h", vec![&url]),
    ] {
        let Some(got) = curl(&rig, scheme, &arguments).await else {
            return;
        };
        assert_eq!(got, ("hi".to_owned(), 0), "{scheme} {arguments:?}");
    }
    let Some((text, _)) = curl(&rig, "http", &["http://evil.com/"]).await else {
        return;
    };
    assert!(text.contains("No rule allows it."), "{text}");
    // 97: the SOCKS server said no.
    let socks = curl(&rig, "socks5h", &["http://evil.com/"]).await;
    assert_eq!(socks, Some((String::new(), 97)));
}
