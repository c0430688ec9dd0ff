//! What comes of answers, good and bad.

use super::*;

/// A server that says exactly these bytes to everyone.
fn raw(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    haft_testkit::bound_this_process();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(&bytes);
        }
    });
    url
}

#[tokio::test]
async fn a_page_is_markdown_between_marks() {
    let sent = "<title>T</title><h1>Hello</h1><p>See <a href=/x>this</a>.</p><script>no()</script>";
    let server = HttpFake::start([html(sent)]);
    let web = Web::new();
    let result = web.fetch(&format!("{}/a", server.url)).await;
    assert!(!result.is_error, "{}", result.text());
    let text = result.text().replace(&server.url, "[server]");
    insta::assert_snapshot!(text);
    let asked = &server.requests()[0];
    assert_eq!(asked.target(), ("GET", "/a"));
    assert_eq!(
        header(&asked.head, "accept"),
        Some("text/markdown, text/html, */*")
    );
    let agent = header(&asked.head, "user-agent").unwrap();
    assert!(agent.starts_with("haft/"), "{agent}");
    for unsent in ["cookie", "authorization", "referer"] {
        assert_eq!(header(&asked.head, unsent), None);
    }
    let mut structured = result.structured.clone().unwrap();
    assert!(structured["durationMs"].take().is_u64());
    assert_eq!(
        structured,
        json!({
            "bytes": sent.len(),
            "code": 200,
            "codeText": "OK",
            "result": result.text(),
            "durationMs": null,
            "url": format!("{}/a", server.url),
        })
    );
}

#[tokio::test]
async fn what_a_server_refuses_keeps_its_status() {
    for (code, code_text) in [
        (400, "Bad Request"),
        (404, "Not Found"),
        (500, "Internal Server Error"),
    ] {
        let server = HttpFake::start([HttpReply::new(code, "text/html", "<p>sorry")]);
        let result = Web::new().fetch(&server.url).await;
        let text = result.text();
        assert!(result.is_error && text.contains("sorry"), "{text}");
        let structured = result.structured.unwrap();
        assert_eq!(
            (&structured["code"], &structured["codeText"]),
            (&json!(code), &json!(code_text))
        );
        assert_eq!(structured["bytes"], 8);
    }
}

#[tokio::test]
async fn ten_redirects_are_followed_and_no_eleventh() {
    let server = HttpFake::start_with(|asked| {
        let left: u32 = asked.target().1[1..].parse().unwrap_or_default();
        match left {
            0 => html("<p>the end"),
            left => {
                let next = format!("/{}", left - 1);
                HttpReply::new(302, "text/html", "").header("location", &next)
            }
        }
    });
    let web = Web::new();
    let ten = web.fetch(&format!("{}/10", server.url)).await;
    assert!(ten.text().contains("the end"), "{}", ten.text());
    let eleven = web.fetch(&format!("{}/11", server.url)).await;
    assert!(
        eleven.is_error && eleven.text().contains("redirects more than 10 times"),
        "{}",
        eleven.text()
    );
}

#[tokio::test]
async fn every_bad_answer_is_a_clear_error() {
    let large = "x".repeat(1 << 20);
    let bomb = {
        let mut child = haft_testkit::command("sh")
            .args(["-c", "head -c 200000000 /dev/zero | gzip -9"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut packed = Vec::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_end(&mut packed)
            .unwrap();
        child.wait().unwrap();
        packed
    };
    let head =
        |rest: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n{rest}").into_bytes();
    let many: String = (0..100_000).map(|n| format!("x-{n}: y\r\n")).collect();
    let faked = |reply: HttpReply| Ok::<HttpReply, Vec<u8>>(reply);
    type Faked = Result<HttpReply, Vec<u8>>;
    let cases: Vec<(&str, Faked, &str)> = vec![
        (
            "not found",
            faked(HttpReply::new(404, "text/html", "<p>no such page")),
            "answered 404 Not Found",
        ),
        (
            "no access",
            faked(HttpReply::new(403, "text/plain", "")),
            "requires credentials",
        ),
        (
            "broken",
            faked(HttpReply::new(503, "text/plain", "busy")),
            "answered 503 Service Unavailable",
        ),
        (
            "endless body",
            faked(html(&large).endless()),
            "is longer than 1 MB, unpacked",
        ),
        (
            "too long",
            faked(html(&large.repeat(2))),
            "is longer than 1 MB, unpacked",
        ),
        (
            "announced length",
            Err(head("content-length: 99999999999\r\n\r\nx")),
            "is longer than 1 MB",
        ),
        (
            "a bomb",
            faked(HttpReply::new(200, "text/html", bomb).header("content-encoding", "gzip")),
            "is longer than 1 MB, unpacked",
        ),
        (
            "broken gzip",
            faked(
                HttpReply::new(200, "text/html", "no gzip at all")
                    .header("content-encoding", "gzip"),
            ),
            "cannot be read to its end",
        ),
        (
            "other packing",
            faked(html("x").header("content-encoding", "br")),
            "packed in an encoding that was not requested",
        ),
        (
            "silence in the middle",
            faked(html("<p>half").then_silence()),
            "has not sent all of its answer within 1 s",
        ),
        (
            "silence",
            Err(Vec::new()),
            "cannot be fetched|gave no answer|could not be fetched",
        ),
        (
            "cut off",
            faked(html("<p>half").then_cut()),
            "cannot be read to its end",
        ),
        (
            "no HTTP",
            Err(b"SSH-2.0-OpenSSH_9\r\n".to_vec()),
            "gave no answer that can be read",
        ),
        (
            "a huge head",
            Err(head(&format!("x: {}\r\n\r\n", "y".repeat(4 << 20)))),
            "could not be fetched",
        ),
        (
            "many headers",
            Err(head(&format!("{many}\r\n"))),
            "could not be fetched",
        ),
        (
            "a circle",
            faked(HttpReply::new(302, "text/html", "").header("location", "/again")),
            "redirects more than 10 times",
        ),
        (
            "to a file",
            faked(HttpReply::new(302, "text/html", "").header("location", "file:///etc/passwd")),
            "only http and https",
        ),
        (
            "to data",
            faked(HttpReply::new(302, "text/html", "").header("location", "data:text/html,x")),
            "only http and https",
        ),
        (
            "to a user",
            faked(HttpReply::new(302, "text/html", "").header("location", "http://u:p@127.0.0.1/")),
            "user information",
        ),
        ("nothing", faked(html("")), "contain no text"),
    ];
    let mut web = Web::new();
    web.limits = WebLimits {
        timeout: Duration::from_secs(1),
        max_page_bytes: 1 << 20,
        ..WebLimits::default()
    };
    let mut haft = web.session().await;
    for (what, reply, expected) in cases {
        let fake;
        let url = match reply {
            Ok(reply) => {
                fake = HttpFake::start([reply]);
                fake.url.clone()
            }
            Err(bytes) => raw(bytes),
        };
        let result = fetch(&mut haft, &format!("{url}/{}", what.replace(' ', "-"))).await;
        let text = result.text();
        let is_as_expected = expected.split('|').any(|one| text.contains(one));
        assert!(is_as_expected, "{what}: {text}");
        assert_eq!(result.is_error, what != "nothing", "{what}: {text}");
        assert!(text.chars().count() < 3_000, "{what}: {text}");
    }
}

#[tokio::test]
async fn pages_are_kept_for_a_while_and_long_ones_come_in_parts() {
    let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    let server = HttpFake::start_with(move |_| HttpReply::new(200, "text/plain", long.clone()));
    let web = Web::new();
    let mut haft = web.session().await;
    let mut seen = String::new();
    let mut offset = 0;
    loop {
        let input = json!({"url": server.url, "prompt": "x", "offset": offset});
        let text = in_time(haft.call("WebFetch", input)).await.text();
        let (_, rest) = text.split_once("\">\n").unwrap();
        let (part, behind) = rest.split_once("\n</web_page>").unwrap();
        seen += part;
        seen.push('\n');
        match behind.split_once("continue with offset ") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(
        seen.lines()
            .filter(|line| line.starts_with("line "))
            .count(),
        20_000
    );
    assert_eq!(server.requests().len(), 1);
    let past = json!({"url": server.url, "prompt": "x", "offset": 9_999_999});
    let past = in_time(haft.call("WebFetch", past)).await;
    assert!(
        past.is_error && past.text().contains("past the end"),
        "{}",
        past.text()
    );
    // Another session knows nothing of it, nor does one that keeps nothing.
    web.fetch(&server.url).await;
    assert_eq!(server.requests().len(), 2);
    let mut none = Web::new();
    none.limits.cache_ttl = Duration::ZERO;
    let mut haft = none.session().await;
    for _ in 0..2 {
        fetch(&mut haft, &server.url).await;
    }
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn pictures_notebooks_and_others_are_kept_and_read_like_files() {
    let png = data_encoding::BASE64
        .decode(b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
        .unwrap();
    let notebook = json!({"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "source": "print(1)", "outputs": [], "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let notebook = notebook.to_string();
    let server = HttpFake::start_with(move |asked| match asked.target().1 {
        "/p" => HttpReply::new(200, "text/html", png.clone()),
        "/n.ipynb" => HttpReply::new(200, "application/json", notebook.clone()),
        _ => HttpReply::new(200, "application/zip", b"PK\x03\x04\0\0".to_vec()),
    });
    let web = Web::new();
    let mut haft = web.session().await;
    let picture = fetch(&mut haft, &format!("{}/p", server.url)).await;
    let is_picture =
        |block: &haft_contract::Content| matches!(block, haft_contract::Content::Image { .. });
    assert!(picture.content.iter().any(is_picture), "{}", picture.text());
    let cells = fetch(&mut haft, &format!("{}/n.ipynb", server.url))
        .await
        .text();
    assert!(
        cells.contains("<cell id=\"c1\">") && cells.contains("print(1)"),
        "{cells}"
    );
    let other = fetch(&mut haft, &format!("{}/x", server.url)).await;
    let text = other.text();
    assert!(
        !other.is_error && text.contains("application/zip, 6 bytes"),
        "{text}"
    );
    let path = text
        .split("saved as ")
        .nth(1)
        .unwrap()
        .trim_end_matches('.');
    assert_eq!(std::fs::read(path).unwrap(), b"PK\x03\x04\0\0");
    assert!(
        std::path::Path::new(path).starts_with(web.folder()),
        "{path}"
    );
    // Nothing lies in the workspace.
    assert_eq!(std::fs::read_dir(web.project.root()).unwrap().count(), 1);
}

#[tokio::test]
async fn charsets_and_packed_bodies_are_read() {
    let packed = haft_testkit::command("sh")
        .args(["-c", "printf '<p>gepackt' | gzip"])
        .output()
        .unwrap()
        .stdout;
    let server = HttpFake::start_with(move |asked| match asked.target().1 {
        "/gzip" => {
            HttpReply::new(200, "text/html", packed.clone()).header("content-encoding", "gzip")
        }
        "/latin" => HttpReply::new(200, "text/html; charset=iso-8859-1", b"<p>caf\xe9".to_vec()),
        _ => HttpReply::new(
            200,
            "text/html",
            b"<meta charset=shift_jis><p>\x93\xfa\x96\x7b".to_vec(),
        ),
    });
    let mut haft = Web::new().session().await;
    for (path, expected) in [("gzip", "gepackt"), ("latin", "café"), ("meta", "日本")] {
        let text = fetch(&mut haft, &format!("{}/{path}", server.url))
            .await
            .text();
        assert!(text.contains(expected), "{text}");
    }
}
