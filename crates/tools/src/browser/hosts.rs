//! Where pages go, and what they load.
//!
//! Two judges share one memory. [`BrowserRequest`]s of whole pages are judged before anything of them is sent, by the
//! rules for hosts, else by the person, once a host. Every connection then comes to the gate, which knows only hosts:
//! what pages load from public hosts passes, unless a rule denies it.
//!
//! That would let a page of the project, which may read files of the project, send them to any host. So once a page
//! of the project or of this machine was shown, hosts without a rule are asked about too, but for the few that only
//! hand out libraries. It holds until the browser is closed: what ran in such a page may still run.

use std::{
    collections::{BTreeSet, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use haft_browser::{BrowserRequest, Judging, RequestJudge, SERVED_HOST, Verdict, is_loopback_url};
use haft_contract::{CallContext, HostVerdict, PermissionMode, PermissionSnapshot};
use haft_sandbox::network::{
    AllowedAddresses, Gate, GateFuture, GateRequest, GateVerdict, Host, Special,
};

use super::{files, tool::NAME};
use crate::{
    shell::host_questions::{HostQuestions, Named, bare, refuse},
    web::{PageAddress, host_rules, is_named},
};

/// Chromium calls these by itself.
const CALLS_HOME: [&str; 10] = [
    "accounts.google.com",
    "www.google.com",
    "clients.google.com",
    "connectivitycheck.gstatic.com",
    "content-autofill.googleapis.com",
    "update.googleapis.com",
    "optimizationguide-pa.googleapis.com",
    "safebrowsing.googleapis.com",
    "redirector.gvt1.com",
    "edgedl.me.gvt1.com",
];

/// They hand out libraries and fonts and take nothing: the author of a page cannot read there what it sent.
const LIBRARIES: [&str; 10] = [
    "ajax.googleapis.com",
    "cdn.jsdelivr.net",
    "cdn.tailwindcss.com",
    "cdnjs.cloudflare.com",
    "code.jquery.com",
    "esm.sh",
    "fonts.googleapis.com",
    "fonts.gstatic.com",
    "maxcdn.bootstrapcdn.com",
    "unpkg.com",
];

/// What a session knows of hosts.
#[derive(Default)]
pub(super) struct PageHosts {
    known: Mutex<KnownPages>,
    /// What the person said of pages, by host, and by port for this machine.
    questions: HostQuestions,
}

#[derive(Default)]
struct KnownPages {
    permissions: Option<PermissionSnapshot>,
    cwd: PathBuf,
    /// Hosts on whose pages something was done, with permission.
    acted: HashSet<String>,
    /// Ports that processes of the session listen on.
    ports: BTreeSet<u16>,
    /// A page that may have read files of the project was shown.
    project_shown: bool,
}

/// Where something is.
enum Place {
    Served,
    /// A port of this machine.
    Here(u16),
    /// A private network and the like.
    Special(Special),
    Public,
}

impl PageHosts {
    /// From now on by the rules of this call, with questions in its name.
    pub(super) fn open_for(&self, cx: &CallContext, named: &Named, ports: BTreeSet<u16>) {
        let mut permissions = cx.permissions.clone();
        permissions.hosts = permissions.hosts.for_tool(NAME);
        let mut known = self.known();
        known.permissions = Some(permissions);
        known.cwd = cx.cwd.to_path_buf();
        known.ports = ports;
        self.questions.open_for(cx, named);
    }

    /// Processes of the session listen on these ports now.
    pub(super) fn note_ports(&self, ports: BTreeSet<u16>) {
        self.known().ports = ports;
    }

    /// The call is over: what pages do from now on is judged by its rules, and asks no one.
    pub(super) fn close(&self) {
        self.questions.close();
    }

    /// A new browser has shown nothing.
    pub(super) fn begin(&self) {
        self.known().project_shown = false;
    }

    /// A page at this address was permitted, by a rule or a person.
    pub(super) fn permit(&self, url: &str, acting: bool) {
        if let Ok(address) = PageAddress::read(url) {
            let name = name_of(&address);
            self.questions.allow(&name);
            if acting {
                self.known().acted.insert(name);
            }
        }
    }

    /// Is nothing more to be asked for opening this?
    pub(super) fn may_open(&self, url: &str, permissions: &PermissionSnapshot) -> bool {
        let Ok(address) = PageAddress::read(url) else {
            return url == "about:blank";
        };
        let hosts = permissions.hosts.for_tool(NAME);
        let was_allowed = self.questions.said(&name_of(&address)) == Some(true);
        match place(&address.host, address.port) {
            Place::Served => true,
            // A rule for all hosts was not made with this machine in mind.
            Place::Here(port) => {
                was_allowed
                    || self.known().ports.contains(&port)
                    || is_named(&hosts.lists(), &address.host, address.port)
            }
            Place::Special(_) => false,
            Place::Public => {
                was_allowed
                    || hosts.judge(&address.host_in_rules(), address.port) == HostVerdict::Allowed
            }
        }
    }

    /// Is nothing more to be asked for acting on this page?
    pub(super) fn may_act(&self, url: &str) -> bool {
        let Ok(address) = PageAddress::read(url) else {
            // Nothing is there, or it came from a page that was permitted.
            return url == "about:blank" || url.is_empty();
        };
        match place(&address.host, address.port) {
            Place::Served | Place::Here(_) => true,
            Place::Special(_) | Place::Public => self.known().acted.contains(&name_of(&address)),
        }
    }

    async fn page(&self, request: &BrowserRequest) -> Verdict {
        let Some(permissions) = self.known().permissions.clone() else {
            return Verdict::Refuse("no call is under way".to_owned());
        };
        let address = match PageAddress::read(&request.url) {
            Ok(address) => address,
            Err(why) if request.is_page => return Verdict::Refuse(format!("{why}.")),
            // The gate reads hosts just as strictly.
            Err(_) => return Verdict::Pass,
        };
        let host = address.host_in_rules();
        let by_rule = permissions.hosts.judge(&host, address.port);
        let place = place(&address.host, address.port);
        // Files of the project are not on any network that a list of hosts could be about.
        let is_closed = permissions.hosts.lists().closed;
        if by_rule == HostVerdict::Denied && !(is_closed && matches!(place, Place::Served)) {
            return Verdict::Refuse(match is_closed {
                true => format!(
                    "{host} was not allowed: a rule denies it, or none allows it and only such hosts are reached."
                ),
                false => format!("{host} was not allowed: a rule denies it."),
            });
        }
        if matches!(place, Place::Served) {
            let root = {
                let mut known = self.known();
                known.project_shown = true;
                known.cwd.clone()
            };
            let path = address.url.path().to_owned();
            let served =
                tokio::task::spawn_blocking(move || files::serve(&root, &path, &permissions)).await;
            return match served {
                Ok(served) => Verdict::Serve(served),
                Err(_) => Verdict::Refuse("the file could not be read".to_owned()),
            };
        }
        if !request.is_page {
            return self.part(request, &address, &permissions);
        }
        let is_free = permissions.mode == PermissionMode::BypassPermissions;
        let name = name_of(&address);
        match place {
            Place::Here(port) => {
                let is_ours = self.known().ports.contains(&port)
                    || is_named(&permissions.hosts.lists(), &address.host, address.port);
                let reason = format!(
                    "a page wants to go to port {port} of this machine, on which no command of this session listens. \
                     A yes holds for this port and this session"
                );
                if is_ours || is_free || self.ask(&name, reason).await == Some(true) {
                    self.known().project_shown = true;
                    return Verdict::Pass;
                }
                Verdict::Refuse(format!(
                    "Port {port} of this machine was not allowed; WebFetch(domain:{host}) would allow it."
                ))
            }
            Place::Special(special) => {
                let named = is_named(&permissions.hosts.lists(), &address.host, address.port);
                match (named || is_free)
                    && !matches!(special, Special::Unspecified | Special::Multicast)
                {
                    true => Verdict::Pass,
                    false => Verdict::Refuse(format!(
                        "The address of {host} is private: {special}. Only a rule that names it allows that."
                    )),
                }
            }
            Place::Public | Place::Served => {
                let reason = format!(
                    "a page wants to go to {host}, and no rule says whether it may. A yes holds for {host} and this session"
                );
                if by_rule == HostVerdict::Allowed
                    || is_free
                    || self.ask(&name, reason).await == Some(true)
                {
                    return Verdict::Pass;
                }
                Verdict::Refuse(format!(
                    "{host} was not allowed; WebFetch(domain:{host}) would allow it."
                ))
            }
        }
    }

    /// What a page loads beside itself, of which the browser asks first: frames, and what is on this machine. Pages of
    /// others have no business with servers of this machine, which often trust all who reach them.
    fn part(
        &self,
        request: &BrowserRequest,
        address: &PageAddress,
        permissions: &PermissionSnapshot,
    ) -> Verdict {
        let Place::Here(port) = place(&address.host, address.port) else {
            return Verdict::Pass;
        };
        let from_here = !request.from.contains("://") || is_loopback_url(&request.from);
        match from_here || is_named(&permissions.hosts.lists(), &address.host, address.port) {
            true => Verdict::Pass,
            false => Verdict::Refuse(format!(
                "a page of another machine wanted port {port} of this one"
            )),
        }
    }

    async fn connection(&self, request: &GateRequest) -> GateVerdict {
        let (permissions, project, ours) = {
            let known = self.known();
            let ours = known.ports.contains(&request.port);
            (known.permissions.clone(), known.project_shown, ours)
        };
        let Some(permissions) = permissions else {
            return refuse("no call is under way".to_owned());
        };
        let host = bare(&request.host);
        let by_rule = permissions.hosts.judge(&host, request.port);
        let rules = host_rules(&permissions.hosts.lists());
        let reach = rules.reach(&request.host, request.port);
        let is_free = permissions.mode == PermissionMode::BypassPermissions;
        let allow = |because: &str, reach: AllowedAddresses| GateVerdict::Allow {
            because: because.to_owned(),
            reach,
        };
        if by_rule == HostVerdict::Denied {
            return refuse(format!("A rule denies {host}."));
        }
        match place(&request.host, request.port) {
            Place::Served => refuse(format!("{host} is served without a network")),
            Place::Here(port) => {
                let loopback: [IpAddr; 2] =
                    [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                let reach = reach.with(loopback).with(request.host.address());
                let reason = format!(
                    "a page wants to talk to port {port} of this machine, on which no command of this session listens. \
                     A yes holds for this port and this session"
                );
                let name = format!("localhost:{port}");
                let ours =
                    ours || is_named(&permissions.hosts.lists(), &request.host, request.port);
                match ours || is_free || self.ask(&name, reason).await == Some(true) {
                    true => {
                        // It may show files of the project.
                        self.known().project_shown = true;
                        allow("It is of this session, or was allowed.", reach)
                    }
                    false => refuse(format!("Port {port} of this machine was not allowed.")),
                }
            }
            Place::Special(_) => {
                let named = is_named(&permissions.hosts.lists(), &request.host, request.port);
                match named || is_free {
                    true => allow("A rule names it.", reach.with(request.host.address())),
                    false => refuse(format!("The address of {host} is private.")),
                }
            }
            Place::Public => {
                let opened = self.questions.said(&host) == Some(true);
                if by_rule == HostVerdict::Allowed || opened || is_free {
                    return allow("It is allowed.", reach);
                }
                if calls_home(&host) {
                    return refuse(format!("{host} is called by the browser itself."));
                }
                if !project || LIBRARIES.contains(&host.as_str()) {
                    return allow("It is public.", reach);
                }
                let reason = format!(
                    "a page of the project wants to load from {host}, and could send files of the project there. \
                     A yes holds for {host} and this session"
                );
                match self.ask(&host, reason).await {
                    Some(true) => allow("The user allows it.", reach),
                    Some(false) => refuse("The user does not allow it.".to_owned()),
                    None => refuse(format!(
                        "{host} was not allowed for pages of the project; WebFetch(domain:{host}) would allow it."
                    )),
                }
            }
        }
    }

    async fn ask(&self, about: &str, reason: String) -> Option<bool> {
        self.questions.ask(NAME, about, reason).await
    }

    fn known(&self) -> MutexGuard<'_, KnownPages> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What answers are kept by.
fn name_of(address: &PageAddress) -> String {
    match place(&address.host, address.port) {
        Place::Here(port) => format!("localhost:{port}"),
        _ => address.host_in_rules(),
    }
}

fn place(host: &Host, port: u16) -> Place {
    let name = host.name().unwrap_or_default();
    if name == SERVED_HOST {
        return Place::Served;
    }
    if name == "localhost" || name.ends_with(".localhost") {
        return Place::Here(port);
    }
    match host.address().and_then(Special::of) {
        Some(Special::Loopback) => Place::Here(port),
        Some(special) => Place::Special(special),
        None => Place::Public,
    }
}

fn calls_home(host: &str) -> bool {
    let numbered = || {
        let first = host.strip_suffix(".google.com").unwrap_or_default();
        let digits = first.strip_prefix("clients");
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    CALLS_HOME.contains(&host) || host.ends_with(".clients.google.com") || numbered()
}

impl Gate for PageHosts {
    fn judge(&self, request: GateRequest) -> GateFuture<'_, GateVerdict> {
        Box::pin(async move { self.connection(&request).await })
    }
}

impl RequestJudge for PageHosts {
    fn judge<'a>(&'a self, request: &'a BrowserRequest) -> Judging<'a> {
        Box::pin(self.page(request))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use haft_contract::{Card, HostLists, Hosts, JudgeHosts, ToolUse};

    use super::*;

    struct Examples;

    impl JudgeHosts for Examples {
        fn judge(&self, host: &str, _: u16) -> HostVerdict {
            match host {
                "good.example" => HostVerdict::Allowed,
                "bad.example" => HostVerdict::Denied,
                _ => HostVerdict::Ask,
            }
        }

        fn lists(&self) -> HostLists {
            HostLists::default()
        }

        fn for_tool(&self, tool: &str) -> Option<Hosts> {
            assert_eq!(tool, "Browser");
            Some(Hosts::by(OfBrowser))
        }
    }

    /// The same, where a rule denies the browser one more.
    struct OfBrowser;

    impl JudgeHosts for OfBrowser {
        fn judge(&self, host: &str, port: u16) -> HostVerdict {
            match host {
                "worse.example" => HostVerdict::Denied,
                _ => Examples.judge(host, port),
            }
        }

        fn lists(&self) -> HostLists {
            HostLists::default()
        }
    }

    fn hosts() -> PageHosts {
        let (mut cx, _updates) = CallContext::for_test(Path::new("/"));
        cx.permissions.mode = PermissionMode::Default;
        cx.permissions.hosts = Hosts::by(Examples);
        let hosts = PageHosts::default();
        let asked = ToolUse {
            id: String::new(),
            name: "Browser".to_owned(),
            input: serde_json::Value::Null,
        };
        let named = Named {
            card: Card::new("Browser", "x"),
            asked,
        };
        hosts.open_for(&cx, &named, BTreeSet::from([3000]));
        hosts
    }

    async fn page(hosts: &PageHosts, url: &str) -> Verdict {
        let request = BrowserRequest {
            url: url.to_owned(),
            method: "GET".to_owned(),
            is_page: true,
            from: String::new(),
        };
        RequestJudge::judge(hosts, &request).await
    }

    async fn passes(hosts: &PageHosts, host: &str, port: u16) -> bool {
        let request = GateRequest {
            host: Host::parse(host.as_bytes()).unwrap(),
            port,
            method: None,
            url: None,
        };
        matches!(Gate::judge(hosts, request).await, GateVerdict::Allow { .. })
    }

    #[tokio::test]
    async fn pages_go_where_rules_say_and_nowhere_else() {
        let hosts = hosts();
        assert_eq!(page(&hosts, "https://good.example/x").await, Verdict::Pass);
        assert_eq!(page(&hosts, "http://localhost:3000/").await, Verdict::Pass);
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
            let Verdict::Refuse(said) = page(&hosts, url).await else {
                panic!("{url}");
            };
            assert!(said.contains(why), "{url}: {said}");
        }
        hosts.permit("https://new.example/", false);
        assert_eq!(page(&hosts, "https://new.example/").await, Verdict::Pass);
        assert!(!hosts.may_act("https://new.example/"));
        hosts.permit("https://new.example/", true);
        assert!(hosts.may_act("https://new.example/a"));
    }

    #[tokio::test]
    async fn after_a_page_of_the_project_public_hosts_need_a_rule() {
        let hosts = hosts();
        assert!(passes(&hosts, "any.example", 443).await);
        assert!(!passes(&hosts, "bad.example", 443).await);
        assert!(!passes(&hosts, "worse.example", 443).await);
        assert!(!passes(&hosts, "clients2.google.com", 443).await);
        assert!(!passes(&hosts, "10.0.0.1", 443).await);
        assert!(!passes(&hosts, "localhost", 22).await && passes(&hosts, "127.0.0.1", 3000).await);
        assert!(!passes(&hosts, "haft.localhost", 80).await);
        assert!(matches!(
            page(&hosts, "http://haft.localhost/none").await,
            Verdict::Serve(_)
        ));
        assert!(
            !passes(&hosts, "any.example", 443).await,
            "it could send files there"
        );
        assert!(
            passes(&hosts, "good.example", 443).await && passes(&hosts, "unpkg.com", 443).await
        );
        hosts.begin();
        assert!(passes(&hosts, "any.example", 443).await);
    }

    #[tokio::test]
    async fn pages_of_others_load_nothing_from_this_machine() {
        let hosts = hosts();
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
            let verdict = RequestJudge::judge(&hosts, &part(from, api)).await;
            assert_eq!(verdict == Verdict::Pass, passes, "{from}: {verdict:?}");
        }
        let frame = part("https://good.example/", "https://worse.example/frame");
        let verdict = RequestJudge::judge(&hosts, &frame).await;
        assert!(matches!(verdict, Verdict::Refuse(_)), "{verdict:?}");
    }
}
