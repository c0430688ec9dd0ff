//! The client for others.

use haft_contract::{HttpClient, HttpPost};
use haft_models::{Http, HttpOptions};
use haft_testkit::http::{HttpFake, HttpReply};

fn http() -> Http {
    Http::new(HttpOptions {
        proxies: false,
        ..HttpOptions::default()
    })
}

fn to(url: &str, headers: &[(&str, &str)]) -> HttpPost {
    let headers = headers.iter();
    HttpPost {
        addresses: Vec::new(),
        url: url.to_owned(),
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: r#"{"a":1}"#.to_owned(),
    }
}

#[tokio::test]
async fn json_goes_out_and_whatever_comes_back_is_given() {
    let server = HttpFake::start([
        HttpReply::new(200, "application/json", "{}"),
        HttpReply::new(500, "text/plain", "broken"),
        HttpReply::new(302, "text/plain", "").header("location", "http://127.0.0.1:1/"),
    ]);
    let client: &dyn HttpClient = &http();
    let answer = client
        .post(to(&server.url, &[("X-Key", "k")]))
        .await
        .unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, "{}"));
    let answer = client.post(to(&server.url, &[])).await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (500, "broken"));
    let answer = client.post(to(&server.url, &[])).await.unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(answer.location.as_deref(), Some("http://127.0.0.1:1/"));
    let seen = server.requests();
    assert_eq!(seen.len(), 3, "a redirect is not followed");
    assert_eq!(seen[0].body["a"], 1);
    let head = seen[0].head.to_lowercase();
    assert!(head.starts_with("post / "), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(head.contains("x-key: k"), "{head}");
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_without_its_value() {
    let client: &dyn HttpClient = &http();
    let secret = "hush\r\nx-other: 1";
    let error = client
        .post(to("http://127.0.0.1:9/", &[("X-Key", secret)]))
        .await;
    let error = error.unwrap_err();
    assert!(
        error.contains("X-Key") && !error.contains("hush"),
        "{error}"
    );
    for url in ["nonsense", "ftp://127.0.0.1/", "file:///etc/passwd"] {
        assert!(client.post(to(url, &[])).await.is_err(), "{url}");
    }
}
