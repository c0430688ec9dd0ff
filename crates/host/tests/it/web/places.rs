//! Where it goes, and where not.

use super::*;

#[tokio::test]
async fn a_redirect_to_another_host_is_named_and_not_followed() {
    let other = HttpFake::start([html("secret")]);
    let there = other.url.replace("127.0.0.1", "localhost");
    let server = HttpFake::start([HttpReply::new(301, "text/html", "").header("location", &there)]);
    let web = Web::new().allowing(&["WebFetch"]);
    let web = Web {
        mode: PermissionMode::BypassPermissions,
        ..web
    };
    let result = web.fetch(&server.url).await;
    let text = result.text();
    assert!(!result.is_error, "{text}");
    assert!(
        text.contains(&there) && text.contains("301 Moved Permanently"),
        "{text}"
    );
    assert!(
        text.starts_with(&server.url) && text.contains("call WebFetch again"),
        "{text}"
    );
    assert_eq!(other.requests().len(), 0);
    assert_eq!(result.structured.unwrap()["code"], 301);
}

#[tokio::test]
async fn redirects_within_a_host_are_followed_and_its_name_is_resolved_once() {
    let server = HttpFake::start_with(|asked| match asked.target().1 {
        "/a" => HttpReply::new(302, "text/html", "").header("location", "b?x=1"),
        _ => html("<p>the end"),
    });
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    // The second answer would be another machine.
    let web = Web::new()
        .allowing(&[
            "WebFetch(domain:site.example)",
            "WebFetch(domain:127.0.0.1)",
        ])
        .names([("site.example", &[&["127.0.0.1"], &["127.0.0.2"]])]);
    let result = web.fetch(&format!("http://site.example:{port}/a")).await;
    assert!(result.text().contains("the end"), "{}", result.text());
    assert_eq!(*web.names.asked.lock().unwrap(), ["site.example"]);
    let hosts: Vec<_> = server
        .requests()
        .iter()
        .map(|asked| header(&asked.head, "host").unwrap().to_owned())
        .collect();
    assert_eq!(
        hosts,
        [
            format!("site.example:{port}"),
            format!("site.example:{port}")
        ]
    );
}

#[tokio::test]
async fn www_is_the_same_host_only_where_the_decision_is_the_same() {
    let to = |server: &str| server.rsplit(':').next().unwrap().to_owned();
    let start = || {
        HttpFake::start_with(|asked| {
            let host = header(&asked.head, "host").unwrap_or_default().to_owned();
            match host.starts_with("www.") {
                true => html("<p>the end"),
                false => HttpReply::new(302, "text/html", "")
                    .header("location", &format!("http://www.{host}/")),
            }
        })
    };
    let names = [
        ("site.example", &[&["127.0.0.1"][..]][..]),
        ("www.site.example", &[&["127.0.0.1"][..]][..]),
    ];
    let cases = [
        (
            &[
                "WebFetch(domain:127.0.0.1)",
                "WebFetch(domain:site.example)",
                "WebFetch(domain:www.site.example)",
            ][..],
            None,
            "the end",
        ),
        (
            &[
                "WebFetch(domain:127.0.0.1)",
                "WebFetch(domain:site.example)",
            ][..],
            None,
            "redirects to another host",
        ),
        (
            &["WebFetch(domain:127.0.0.1)", "WebFetch"][..],
            None,
            "the end",
        ),
        (
            &["WebFetch(domain:127.0.0.1)", "WebFetch"][..],
            Some("WebFetch(domain:www.site.example)"),
            "which a rule denies",
        ),
    ];
    for (allowed, denied, expected) in cases {
        let server = start();
        let mut web = Web::new().allowing(allowed).names(names);
        web.denied.extend(denied);
        let url = format!("http://site.example:{}/", to(&server.url));
        let text = web.fetch(&url).await.text();
        assert!(text.contains(expected), "{allowed:?} {denied:?}: {text}");
    }
}

#[tokio::test]
async fn what_is_not_public_needs_a_rule_that_names_it_or_a_person() {
    let server = HttpFake::start([html("<p>inside")]);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    let at = |host: &str| format!("http://{host}:{port}/");
    let names = [
        ("evil.example", &[&["127.0.0.1"][..]][..]),
        ("both.example", &[&["93.184.216.34", "127.0.0.1"][..]][..]),
        ("mapped.example", &[&["::ffff:127.0.0.1"][..]][..]),
        ("meta.example", &[&["169.254.169.254"][..]][..]),
        ("zero.example", &[&["0.0.0.0"][..]][..]),
        ("localhost", &[&["127.0.0.1"][..]][..]),
    ];
    let all = &[
        "WebFetch",
        "WebFetch(domain:*)",
        "WebFetch(domain:*.example)",
    ][..];
    // (rules, URL, what comes of it where no one can be asked)
    let cases = [
        (
            all,
            at("evil.example"),
            "evil.example resolves to 127.0.0.1, which is a loopback address",
        ),
        (
            &["WebFetch(domain:evil.example)"][..],
            at("evil.example"),
            "loopback address",
        ),
        (
            all,
            at("both.example"),
            "both.example resolves to 127.0.0.1",
        ),
        (all, at("mapped.example"), "loopback address"),
        (all, at("meta.example"), "the metadata service of a cloud"),
        (
            all,
            at("zero.example"),
            "the unspecified address. No rule allows that",
        ),
        (all, at("127.0.0.1"), "127.0.0.1 is a loopback address"),
        (all, at("[::1]"), "[::1] is a loopback address"),
        (
            all,
            at("[::ffff:127.0.0.1]"),
            "127.0.0.1 is a loopback address",
        ),
        (all, at("0.0.0.0"), "the unspecified address"),
        (all, at("localhost"), "localhost is a loopback address"),
        (all, at("169.254.169.254"), "metadata service"),
        (
            all,
            at("2130706433"),
            "is not a valid host|more than one way",
        ),
        (
            all,
            at("0x7f.0.0.1"),
            "is not a valid host|more than one way",
        ),
        (
            &[
                "WebFetch(domain:evil.example)",
                "WebFetch(domain:127.0.0.1)",
            ][..],
            at("evil.example"),
            "inside",
        ),
        (
            &["WebFetch(domain:127.0.0.1)"][..],
            at("127.0.0.1"),
            "inside",
        ),
        (
            &["WebFetch(domain:localhost)"][..],
            at("localhost"),
            "inside",
        ),
    ];
    for (allowed, url, expected) in cases {
        let text = Web::new()
            .allowing(allowed)
            .names(names)
            .fetch(&url)
            .await
            .text();
        let is_as_expected = expected.split('|').any(|one| text.contains(one));
        assert!(is_as_expected, "{allowed:?} {url}: {text}");
    }
    assert_eq!(server.requests().len(), 3);

    // A person is asked once for a host, about what it is.
    let mut web = Web::new().allowing(all).names(names);
    web.person = person(ApprovalAnswer::Allow);
    let mut haft = web.session().await;
    for path in ["a", "b"] {
        let text = fetch(&mut haft, &format!("{}{path}", at("evil.example")))
            .await
            .text();
        assert!(text.contains("inside"), "{text}");
    }
    let asked = web.person.as_ref().unwrap().asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(
        asked[0].starts_with("evil.example is at 127.0.0.1, a loopback address"),
        "{asked:?}"
    );
    // No word lets it reach no address at all; a no is a no; and where no one may be asked, it is one too.
    let text = fetch(&mut haft, &at("zero.example")).await.text();
    assert!(text.contains("No rule allows that"), "{text}");
    let mut refused = Web::new().allowing(all).names(names);
    refused.person = person(ApprovalAnswer::Deny { reason: None });
    let text = refused.fetch(&at("evil.example")).await.text();
    assert!(text.contains("does not allow it"), "{text}");
    let mut silent = Web::new().allowing(all).names(names);
    silent.mode = PermissionMode::DontAsk;
    silent.person = person(ApprovalAnswer::Allow);
    let text = silent.fetch(&at("evil.example")).await.text();
    assert!(text.contains("loopback address"), "{text}");
    // What a rule denies stays denied, in every mode and by every name.
    let mut denied = Web::new().names(names);
    denied.denied = vec!["WebFetch(domain:127.0.0.1)"];
    denied.mode = PermissionMode::BypassPermissions;
    for host in ["evil.example", "127.0.0.1", "[::ffff:127.0.0.1]"] {
        let text = denied.fetch(&at(host)).await.text();
        assert!(!text.contains("inside"), "{host}: {text}");
    }
}

/// A server at an address of version 6, or none where the machine has no such addresses.
fn server_at_v6() -> Option<u16> {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        haft_testkit::skip("this machine has no IPv6");
        return None;
    };
    let port = listener.local_addr().unwrap().port();
    haft_testkit::bound_this_process();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\n<p>inside",
            );
        }
    });
    Some(port)
}

#[tokio::test]
async fn an_ipv6_address_is_allowed_by_a_rule_that_names_it_however_it_is_written() {
    let Some(port) = server_at_v6() else { return };
    for rule in [
        "WebFetch(domain:[::1])",
        "WebFetch(domain:::1)",
        "WebFetch(domain:[0:0:0:0:0:0:0:1])",
    ] {
        for host in ["[::1]", "[0:0::0:1]", "[::0001]"] {
            let web = Web::new().allowing(&[rule]);
            let text = web.fetch(&format!("http://{host}:{port}/")).await.text();
            assert!(text.contains("inside"), "{rule} {host}: {text}");
        }
    }
    let server = HttpFake::start([html("<p>inside")]);
    let port_v4 = server.url.rsplit(':').next().unwrap();
    let web = Web::new().allowing(&["WebFetch(domain:[::ffff:127.0.0.1])"]);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"] {
        let text = web.fetch(&format!("http://{host}:{port_v4}/")).await.text();
        assert!(text.contains("inside"), "{host}: {text}");
    }
}

#[tokio::test]
async fn an_address_that_is_denied_is_denied_in_every_spelling() {
    let Some(port) = server_at_v6() else { return };
    let server = HttpFake::start([html("<p>inside")]);
    let port_v4: u16 = server.url.rsplit(':').next().unwrap().parse().unwrap();
    let cases = [
        (
            &[
                "WebFetch(domain:[::1])",
                "WebFetch(domain:::1)",
                "WebFetch(domain:0:0::1)",
            ][..],
            port,
            &[
                "[::1]",
                "[0:0::0:1]",
                "[::0001]",
                "[::0.0.0.1]",
                "six.example",
            ][..],
        ),
        (
            &[
                "WebFetch(domain:127.0.0.1)",
                "WebFetch(domain:[::ffff:127.0.0.1])",
                "WebFetch(domain:::FFFF:7F00:1)",
                "WebFetch(domain:127.1)",
            ],
            port_v4,
            &[
                "127.0.0.1",
                "127.0.0.1.",
                "[::ffff:127.0.0.1]",
                "[::ffff:7f00:1]",
                "127.1",
                "0x7f.1",
                "2130706433",
                "0177.0.0.1",
                "four.example",
                "mapped.example",
            ],
        ),
    ];
    for (rules, port, hosts) in cases {
        for rule in rules {
            for host in hosts {
                let mut web = Web::new().allowing(&["WebFetch"]).names([
                    ("six.example", &[&["::1"]]),
                    ("four.example", &[&["127.0.0.1"]]),
                    ("mapped.example", &[&["::ffff:127.0.0.1"]]),
                ]);
                web.denied = vec![rule];
                web.mode = PermissionMode::BypassPermissions;
                let result = web.fetch(&format!("http://{host}:{port}/")).await;
                let text = result.text();
                assert!(result.is_error, "{rule} {host}: {text}");
                assert!(!text.contains("inside"), "{rule} {host}: {text}");
            }
        }
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn why_an_ipv6_address_is_not_fetched_is_said() {
    let cases = [
        (
            "http://[::1]:8080/",
            "it contacts [::1].",
            "WebFetch(domain:[::1])",
        ),
        (
            "http://[::ffff:127.0.0.1]/",
            "it contacts 127.0.0.1.",
            "WebFetch(domain:127.0.0.1)",
        ),
        (
            "https://[2606:4700::1111]/",
            "it contacts [2606:4700::1111]",
            "WebFetch(domain:[2606:4700::1111])",
        ),
    ];
    for (url, why, rule) in cases {
        let result = Web::new().allowing(&[]).fetch(url).await;
        let text = result.text();
        assert!(result.is_error && text.contains(why), "{url}: {text}");
        assert!(text.contains(rule), "{url}: {text}");
        assert!(!text.contains("no host name has"), "{url}: {text}");
    }
}

#[tokio::test]
async fn only_rules_and_people_let_it_out_in_any_mode() {
    let server = HttpFake::start([html("<p>x")]);
    for mode in [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
    ] {
        let mut web = Web::new()
            .allowing(&[])
            .names([("a.example", &[&["127.0.0.1"]])]);
        web.mode = mode;
        web.searcher = Some(Arc::new(WebSearcher::Service(Box::new(
            readers::OneHit::default(),
        ))));
        let result = web.fetch("http://a.example:1/").await;
        assert!(
            result.is_error && result.metadata.denied.is_some(),
            "{mode:?}: {}",
            result.text()
        );
        // Not even its name went out.
        assert!(web.names.asked.lock().unwrap().is_empty());
        let found = in_time(
            web.session()
                .await
                .call("WebSearch", json!({"query": "rust"})),
        )
        .await;
        assert!(
            found.metadata.denied.is_some(),
            "{mode:?}: {}",
            found.text()
        );
    }
    assert!(server.requests().is_empty());
}
