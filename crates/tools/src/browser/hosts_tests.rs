//! Where pages go and what they load, as rules say and as commands of the session listen.

use std::{net::TcpListener, path::Path};

use haft_contract::{Card, HostEvaluator, HostLists, HostPolicy, ToolUse};

use super::*;
use crate::shell::{ports::ListeningSocket, session_ports::ListenerPlace};

struct Examples;

impl HostEvaluator for Examples {
    fn evaluate(&self, host: &str, _: u16) -> HostVerdict {
        match host {
            "good.example" => HostVerdict::Allowed,
            "bad.example" | "127.0.0.9" => HostVerdict::Denied,
            _ => HostVerdict::Ask,
        }
    }

    fn lists(&self) -> HostLists {
        HostLists::default()
    }

    fn for_tool(&self, tool: &str) -> Option<HostPolicy> {
        assert_eq!(tool, "Browser");
        Some(HostPolicy::from_evaluator(OfBrowser))
    }
}

/// The same, where a rule denies the browser one more.
struct OfBrowser;

impl HostEvaluator for OfBrowser {
    fn evaluate(&self, host: &str, port: u16) -> HostVerdict {
        match host {
            "worse.example" => HostVerdict::Denied,
            _ => Examples.evaluate(host, port),
        }
    }

    fn lists(&self) -> HostLists {
        HostLists::default()
    }
}

async fn hosts() -> PageHostPolicy {
    let (mut cx, _updates) = CallContext::for_test(Path::new("/"));
    cx.permissions.mode = PermissionMode::Default;
    cx.permissions.hosts = HostPolicy::from_evaluator(Examples);
    let hosts = PageHostPolicy::default();
    let asked = ToolUse {
        id: String::new(),
        name: "Browser".to_owned(),
        input: serde_json::Value::Null,
    };
    let named = NamedCall {
        card: Card::new("Browser", "x"),
        asked,
    };
    hosts.open_for(&cx, &named).await;
    hosts.record_ports(ports(&[3000]));
    hosts
}

fn at(port: u16) -> ListeningSocket {
    let address = Ipv4Addr::LOCALHOST.into();
    let inode = 0;
    ListeningSocket {
        address,
        port,
        inode,
    }
}

/// A command of the session that listens in the network of the machine.
fn ports(ports: &[u16]) -> SessionPorts {
    let by = "background task bash_1 (`serve`)";
    let ports = ports.iter();
    SessionPorts::from_listeners(ports.map(|port| (at(*port), ListenerPlace::Machine, by)))
}

async fn page(hosts: &PageHostPolicy, url: &str) -> RequestVerdict {
    let request = BrowserRequest {
        url: url.to_owned(),
        method: "GET".to_owned(),
        is_page: true,
        from: String::new(),
    };
    RequestInterceptor::intercept(hosts, &request).await
}

async fn passes(hosts: &PageHostPolicy, host: &str, port: u16) -> bool {
    let request = GateRequest {
        host: Host::parse(host.as_bytes()).unwrap(),
        port,
        method: None,
        url: None,
    };
    !matches!(
        NetworkGate::decide(hosts, request).await,
        GateVerdict::Refuse { .. }
    )
}

#[tokio::test]
async fn pages_go_where_rules_say_and_nowhere_else() {
    let hosts = hosts().await;
    assert_eq!(
        page(&hosts, "https://good.example/x").await,
        RequestVerdict::Pass
    );
    assert_eq!(
        page(&hosts, "http://localhost:3000/").await,
        RequestVerdict::Pass
    );
    for (url, why) in [
        ("https://bad.example/", "a rule denies it"),
        ("https://worse.example/", "a rule denies it"),
        (
            "https://new.example/",
            "new.example was not allowed; WebFetch(domain:new.example) would allow it.",
        ),
        ("http://169.254.169.254/", "is private"),
        ("http://10.0.0.1/", "is private"),
        (
            "http://localhost:3001/",
            "Port 3001 of this machine was not allowed",
        ),
        ("http://user:pass@good.example/", "user information"),
        ("file:///etc/passwd", "only http and https"),
    ] {
        let RequestVerdict::Refuse(said) = page(&hosts, url).await else {
            panic!("{url}");
        };
        assert!(said.contains(why), "{url}: {said}");
    }
    hosts.permit("https://new.example/", false);
    assert_eq!(
        page(&hosts, "https://new.example/").await,
        RequestVerdict::Pass
    );
    assert!(!hosts.may_act("https://new.example/"));
    hosts.permit("https://new.example/", true);
    assert!(hosts.may_act("https://new.example/a"));
}

#[tokio::test]
async fn after_a_page_of_the_project_public_hosts_need_a_rule() {
    let hosts = hosts().await;
    assert!(passes(&hosts, "any.example", 443).await);
    assert!(!passes(&hosts, "bad.example", 443).await);
    assert!(!passes(&hosts, "worse.example", 443).await);
    assert!(!passes(&hosts, "clients2.google.com", 443).await);
    assert!(!passes(&hosts, "10.0.0.1", 443).await);
    assert!(!passes(&hosts, "localhost", 22).await && passes(&hosts, "127.0.0.1", 3000).await);
    assert!(!passes(&hosts, "haft.localhost", 80).await);
    assert!(matches!(
        page(&hosts, "http://haft.localhost/none").await,
        RequestVerdict::Serve(_)
    ));
    assert!(
        !passes(&hosts, "any.example", 443).await,
        "it could send files there"
    );
    assert!(passes(&hosts, "good.example", 443).await && passes(&hosts, "unpkg.com", 443).await);
    hosts.begin();
    assert!(passes(&hosts, "any.example", 443).await);
}

#[tokio::test]
async fn pages_of_others_load_nothing_from_this_machine() {
    let hosts = hosts().await;
    let part = |from: &str, url: &str| BrowserRequest {
        url: url.to_owned(),
        method: "GET".to_owned(),
        is_page: false,
        from: from.to_owned(),
    };
    let api = "http://localhost:3000/api";
    for (from, passes) in [
        ("http://localhost:3000/", true),
        ("http://haft.localhost/a.html", true),
        ("http://127.0.0.1:4000/", true),
        ("about:blank", true),
        ("https://good.example/", false),
        ("https://localhost.example/", false),
    ] {
        let verdict = RequestInterceptor::intercept(&hosts, &part(from, api)).await;
        assert_eq!(
            verdict == RequestVerdict::Pass,
            passes,
            "{from}: {verdict:?}"
        );
    }
    let frame = part("https://good.example/", "https://worse.example/frame");
    let verdict = RequestInterceptor::intercept(&hosts, &frame).await;
    assert!(matches!(verdict, RequestVerdict::Refuse(_)), "{verdict:?}");
}

async fn verdict(hosts: &PageHostPolicy, host: &str, port: u16) -> GateVerdict {
    let request = GateRequest {
        host: Host::parse(host.as_bytes()).unwrap(),
        port,
        method: None,
        url: None,
    };
    NetworkGate::decide(hosts, request).await
}

#[tokio::test]
async fn a_port_of_the_session_is_free_as_long_as_it_is_served() {
    let hosts = hosts().await;
    haft_testkit::bound_this_process();
    // Not of the session, but there.
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    let url = format!("http://localhost:{port}/");
    let refused = |verdict: RequestVerdict| match verdict {
        RequestVerdict::Refuse(why) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(page(&hosts, &url).await).contains("was not allowed"));
    hosts.record_ports(ports(&[port]));
    assert_eq!(page(&hosts, &url).await, RequestVerdict::Pass);
    hosts.permit(&url, true);
    let GateVerdict::AllowAt {
        addresses, network, ..
    } = verdict(&hosts, "localhost", port).await
    else {
        panic!("it is refused");
    };
    // Where it listens, and nowhere else.
    assert_eq!(addresses, [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    assert_eq!(network, None);
    assert!(!passes(&hosts, "[::1]", port).await);
    let denied = refused(page(&hosts, &format!("http://127.0.0.9:{port}/")).await);
    assert!(denied.contains("a rule denies it"), "{denied}");
    assert!(!passes(&hosts, "127.0.0.9", port).await);
    // It ends. What else is at that port was never permitted.
    hosts.record_ports(ports(&[]));
    assert_eq!(hosts.ended(&url), None);
    assert!(refused(page(&hosts, &url).await).contains("was not allowed"));
    assert!(!passes(&hosts, "localhost", port).await);
    drop(other);
    // A process that another test starts at this moment has it too, until it runs its program.
    haft_testkit::until("the port is free", || hosts.ended(&url).is_some()).await;
    let ended = refused(page(&hosts, &url).await);
    let expected = format!(
        "Nothing listens at localhost:{port} now: background task bash_1 (`serve`) did, but it has ended or no \
         longer listens. Start it again."
    );
    assert_eq!(ended, expected);
    assert_eq!(hosts.ended(&url), Some(expected));
}

#[tokio::test]
async fn a_port_in_a_network_that_no_one_reaches_is_said_to_be_there() {
    let hosts = hosts().await;
    let by = "background task bash_2 (`unshare -rn serve`)";
    hosts.record_ports(SessionPorts::from_listeners([(
        at(4000),
        ListenerPlace::Unknown,
        by,
    )]));
    let RequestVerdict::Refuse(why) = page(&hosts, "http://localhost:4000/").await else {
        panic!("it passes");
    };
    let said = format!("{by} listens on port 4000 in a network that it created itself");
    assert!(why.starts_with(&said), "{why}");
    assert!(!passes(&hosts, "localhost", 4000).await);
}
