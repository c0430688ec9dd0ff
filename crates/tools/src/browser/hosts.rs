//! Permission for the hosts that pages open and load from.
//!
//! Two checks share one state. The first handles [`BrowserRequest`]s for whole pages before
//! anything is sent: host rules decide, otherwise the user is asked once per host. The second is
//! the gate, which handles every connection and knows only hosts: pages may load from public hosts
//! unless a rule denies it.
//!
//! A page of the project may read files of the project. With these checks alone, it could send the
//! files to any public host. So after a page of the project or of this machine was shown, the user
//! is also asked about hosts without a rule, except for a few that only serve libraries. This
//! applies until the browser is closed, because scripts of that page may still run.

use std::{
    collections::{BTreeMap, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use haft_browser::{
    BrowserRequest, RequestInterceptor, RequestVerdict, SERVED_HOST, VerdictFuture, is_loopback_url,
};
use haft_contract::{CallContext, HostVerdict, PermissionMode, PermissionSnapshot};
use haft_sandbox::network::{
    AllowedAddresses, GateFuture, GateRequest, GateVerdict, Host, NetworkGate, SpecialAddress,
};

use super::{files, tool::NAME};
use crate::{
    blocking::blocking,
    host_rules::{host_rules, is_named},
    shell::{
        ShellService,
        host_questions::{HostApprovals, NamedCall, bare, refuse},
        ports,
        session_ports::{PortServer, SessionPorts},
    },
    web::PageUrl,
};

/// Hosts that Chromium contacts on its own.
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

/// Hosts that only serve libraries and fonts: the author of a page cannot read there what the page
/// sent.
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

/// The state of host permissions in a session.
#[derive(Default)]
pub(super) struct PageHostPolicy {
    known: Mutex<PageHostState>,
    /// The user's answers about pages, by host, and by port for this machine.
    questions: HostApprovals,
}

#[derive(Default)]
struct PageHostState {
    permissions: Option<PermissionSnapshot>,
    cwd: PathBuf,
    /// Hosts on whose pages actions were permitted.
    acted: HashSet<String>,
    /// The ports on which commands of the session listened at the last check.
    ports: SessionPorts,
    /// The last command of the session that listened on each port.
    served: BTreeMap<u16, String>,
    /// The shell, which knows the ports of its commands.
    shell: Weak<ShellService>,
    /// Whether a page was shown that may have read files of the project.
    project_shown: bool,
}

/// The kind of an address.
enum HostLocation {
    Served,
    /// A port of this machine.
    Here(u16),
    /// A private network or another special address.
    Special(SpecialAddress),
    Public,
}

impl PageHostPolicy {
    /// Applies the rules of this call from now on, and asks questions on its behalf.
    pub(super) async fn open_for(&self, cx: &CallContext, named: &NamedCall) {
        let mut permissions = cx.permissions.clone();
        permissions.hosts = permissions.hosts.for_tool(NAME);
        {
            let mut known = self.known();
            known.permissions = Some(permissions);
            known.cwd = cx.cwd.to_path_buf();
            if let Ok(shell) = cx.services.get::<ShellService>() {
                known.shell = Arc::downgrade(&shell);
            }
        }
        self.questions.open_for(cx, named);
        self.scan_ports().await;
    }

    /// Updates the ports on which commands of this shell listen.
    pub(super) async fn scan_shell_ports(&self, shell: &ShellService) {
        self.record_ports(shell.listening().await);
    }

    /// Updates the ports on which commands of the calls' shell listen, and returns them.
    pub(super) async fn scan_ports(&self) -> SessionPorts {
        let shell = self.known().shell.upgrade();
        match shell {
            Some(shell) => self.record_ports(shell.listening().await),
            None => self.known().ports.clone(),
        }
    }

    /// Returns the known ports for a connection of a page. Scans again only if the known server of
    /// this port no longer listens. Opening a page always causes a new scan.
    async fn ports_for(&self, host: &Host, port: u16) -> SessionPorts {
        let before = self.known().ports.clone();
        let (seen, host) = (before.clone(), host.clone());
        match blocking(move || seen.is_still_served(&host, port)).await {
            Ok(true) => before,
            _ => self.scan_ports().await,
        }
    }

    fn record_ports(&self, ports: SessionPorts) -> SessionPorts {
        let mut known = self.known();
        let served = ports.all().map(|(port, by)| (port, by.to_owned()));
        known.served.extend(served);
        known.ports = ports.clone();
        ports
    }

    /// Returns the reason why an address of this machine does not answer, if a command of the
    /// session listened there before and nothing does now.
    pub(super) fn ended(&self, url: &str) -> Option<String> {
        let address = PageUrl::read(url).ok()?;
        let HostLocation::Here(port) = place(&address.host, address.port) else {
            return None;
        };
        let by = {
            let known = self.known();
            let now = known.ports.server(&address.host, port);
            let was = known.served.get(&port);
            was.filter(|_| matches!(now, PortServer::None)).cloned()?
        };
        // The lock is released first, because this check takes the kernel milliseconds and other
        // requests wait for the lock.
        let is_free = !ports::is_taken_here(port);
        is_free.then(|| server_ended_message(&address.host, port, &by))
    }

    /// Returns the command of the session that listens at an address of this machine.
    pub(super) fn server(&self, url: &str) -> Option<String> {
        let address = PageUrl::read(url).ok()?;
        let known = self.known();
        match known.ports.server(&address.host, address.port) {
            PortServer::None => None,
            _ => known.served.get(&address.port).cloned(),
        }
    }

    /// Ends a call: later requests of pages are decided by its rules, without asking the user.
    pub(super) fn close(&self) {
        self.questions.close();
    }

    /// Resets the state for a new browser, which has shown no page yet.
    pub(super) fn begin(&self) {
        self.known().project_shown = false;
    }

    /// Records that a page at this address was permitted, by a rule or the user.
    pub(super) fn permit(&self, url: &str, acting: bool) {
        if let Ok(address) = PageUrl::read(url) {
            let name = name_of(&address);
            // If a page is permitted because a command of the session serves it, that ends with the
            // command.
            let by_session = matches!(place(&address.host, address.port), HostLocation::Here(port)
                if self.is_served(&address.host, port));
            if !by_session {
                self.questions.allow(&name);
            }
            if acting {
                self.known().acted.insert(name);
            }
        }
    }

    /// Returns whether this page may be opened without asking.
    pub(super) fn may_open(&self, url: &str, permissions: &PermissionSnapshot) -> bool {
        let Ok(address) = PageUrl::read(url) else {
            return url == "about:blank";
        };
        let hosts = permissions.hosts.for_tool(NAME);
        let was_allowed = self.questions.earlier_answer(&name_of(&address)) == Some(true);
        match place(&address.host, address.port) {
            HostLocation::Served => true,
            // A rule for all hosts is not meant for this machine.
            HostLocation::Here(port) => {
                was_allowed
                    || self.is_served(&address.host, port)
                    || is_named(&hosts.lists(), &address.host, address.port)
            }
            HostLocation::Special(_) => false,
            HostLocation::Public => {
                was_allowed
                    || hosts.evaluate(&address.host_in_rules(), address.port)
                        == HostVerdict::Allowed
            }
        }
    }

    /// Returns whether actions on this page are permitted without asking.
    pub(super) fn may_act(&self, url: &str) -> bool {
        let Ok(address) = PageUrl::read(url) else {
            // The page is empty, or it was opened by a page that was permitted.
            return url == "about:blank" || url.is_empty();
        };
        match place(&address.host, address.port) {
            HostLocation::Served | HostLocation::Here(_) => true,
            HostLocation::Special(_) | HostLocation::Public => {
                self.known().acted.contains(&name_of(&address))
            }
        }
    }

    async fn page(&self, request: &BrowserRequest) -> RequestVerdict {
        let Some(permissions) = self.known().permissions.clone() else {
            return RequestVerdict::Refuse("no call is running".to_owned());
        };
        let address = match PageUrl::read(&request.url) {
            Ok(address) => address,
            Err(why) if request.is_page => return RequestVerdict::Refuse(format!("{why}.")),
            // The gate parses hosts just as strictly.
            Err(_) => return RequestVerdict::Pass,
        };
        let host = address.host_in_rules();
        let by_rule = permissions.hosts.evaluate(&host, address.port);
        let place = place(&address.host, address.port);
        // Files of the project are not on a network, so a list of hosts does not apply to them.
        let is_closed = permissions.hosts.lists().closed;
        if by_rule == HostVerdict::Denied && !(is_closed && matches!(place, HostLocation::Served)) {
            return RequestVerdict::Refuse(match is_closed {
                true => format!(
                    "{host} was not allowed: a rule denies it, or no rule allows it (only allowed hosts are reachable)."
                ),
                false => format!("{host} was not allowed: a rule denies it."),
            });
        }
        if matches!(place, HostLocation::Served) {
            let root = {
                let mut known = self.known();
                known.project_shown = true;
                known.cwd.clone()
            };
            let path = address.url.path().to_owned();
            let served =
                tokio::task::spawn_blocking(move || files::serve(&root, &path, &permissions)).await;
            return match served {
                Ok(served) => RequestVerdict::Serve(served),
                Err(_) => RequestVerdict::Refuse("the file could not be read".to_owned()),
            };
        }
        if !request.is_page {
            return self.part(request, &address, &permissions);
        }
        let is_free = permissions.mode == PermissionMode::BypassPermissions;
        let name = name_of(&address);
        match place {
            HostLocation::Here(port) => {
                let ports = self.scan_ports().await;
                match ports.server(&address.host, port) {
                    PortServer::Machine(_) | PortServer::Command(..) => {
                        self.known().project_shown = true;
                        return RequestVerdict::Pass;
                    }
                    PortServer::Unreachable(by) => {
                        return RequestVerdict::Refuse(unreachable_server_message(port, by));
                    }
                    PortServer::Several(by) => {
                        return RequestVerdict::Refuse(several_servers_message(port, &by));
                    }
                    PortServer::None => {}
                }
                let is_named = is_named(&permissions.hosts.lists(), &address.host, address.port);
                if !is_named
                    && !is_free
                    && self.questions.earlier_answer(&name) != Some(true)
                    && let Some(ended) = self.ended(&request.url)
                {
                    return RequestVerdict::Refuse(ended);
                }
                let reason = format!(
                    "a page requests to open port {port} of this machine, on which no command of this session listens. \
                     Your answer applies to this port for this session"
                );
                if is_named || is_free || self.ask(&name, reason).await == Some(true) {
                    self.known().project_shown = true;
                    return RequestVerdict::Pass;
                }
                RequestVerdict::Refuse(format!(
                    "Port {port} of this machine was not allowed; WebFetch(domain:{host}) would allow it."
                ))
            }
            HostLocation::Special(special) => {
                let named = is_named(&permissions.hosts.lists(), &address.host, address.port);
                match (named || is_free)
                    && !matches!(
                        special,
                        SpecialAddress::Unspecified | SpecialAddress::Multicast
                    ) {
                    true => RequestVerdict::Pass,
                    false => RequestVerdict::Refuse(format!(
                        "The address of {host} is private: {special}. Only a rule that names it allows that."
                    )),
                }
            }
            HostLocation::Public | HostLocation::Served => {
                let reason = format!(
                    "a page requests to open {host}, and no rule allows or denies it. Your answer applies to {host} for \
                     this session"
                );
                if by_rule == HostVerdict::Allowed
                    || is_free
                    || self.ask(&name, reason).await == Some(true)
                {
                    return RequestVerdict::Pass;
                }
                RequestVerdict::Refuse(format!(
                    "{host} was not allowed; WebFetch(domain:{host}) would allow it."
                ))
            }
        }
    }

    /// Decides about parts of a page for which the browser asks first: frames, and requests to this
    /// machine. Pages of other hosts must not reach servers of this machine, which often trust
    /// every client.
    fn part(
        &self,
        request: &BrowserRequest,
        address: &PageUrl,
        permissions: &PermissionSnapshot,
    ) -> RequestVerdict {
        let HostLocation::Here(port) = place(&address.host, address.port) else {
            return RequestVerdict::Pass;
        };
        let from_here = !request.from.contains("://") || is_loopback_url(&request.from);
        match from_here || is_named(&permissions.hosts.lists(), &address.host, address.port) {
            true => RequestVerdict::Pass,
            false => RequestVerdict::Refuse(format!(
                "a page of another machine requested port {port} of this machine"
            )),
        }
    }

    async fn connection(&self, request: &GateRequest) -> GateVerdict {
        let (permissions, project) = {
            let known = self.known();
            (known.permissions.clone(), known.project_shown)
        };
        let Some(permissions) = permissions else {
            return refuse("no call is running".to_owned());
        };
        let host = bare(&request.host);
        let by_rule = permissions.hosts.evaluate(&host, request.port);
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
            HostLocation::Served => refuse(format!("{host} is served without a network")),
            HostLocation::Here(port) => {
                let loopback: [IpAddr; 2] =
                    [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                let reach = reach.with(loopback).with(request.host.address());
                let ports = self.ports_for(&request.host, port).await;
                let (addresses, network) = match ports.server(&request.host, port) {
                    PortServer::Machine(addresses) => (addresses, None),
                    PortServer::Command(network, addresses) => (addresses, Some(network.clone())),
                    PortServer::Unreachable(by) => {
                        return refuse(unreachable_server_message(port, by));
                    }
                    PortServer::Several(by) => return refuse(several_servers_message(port, &by)),
                    PortServer::None => {
                        return match self.is_opened(request, &permissions).await {
                            true => allow("It was allowed.", reach),
                            false => {
                                refuse(format!("Port {port} of this machine was not allowed."))
                            }
                        };
                    }
                };
                // The page may show files of the project.
                self.known().project_shown = true;
                GateVerdict::AllowAt {
                    because: "A command of this session listens there.".to_owned(),
                    reach,
                    addresses,
                    network,
                }
            }
            HostLocation::Special(_) => {
                let named = is_named(&permissions.hosts.lists(), &request.host, request.port);
                match named || is_free {
                    true => allow("A rule names it.", reach.with(request.host.address())),
                    false => refuse(format!("The address of {host} is private.")),
                }
            }
            HostLocation::Public => {
                let opened = self.questions.earlier_answer(&host) == Some(true);
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
                    "a page of the project requests to load from {host}, and could send files of the project there. \
                     Your answer applies to {host} for this session"
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

    /// Returns whether a port of this machine may be reached that no command of the session serves.
    async fn is_opened(&self, request: &GateRequest, permissions: &PermissionSnapshot) -> bool {
        let port = request.port;
        let name = format!("localhost:{port}");
        let is_open = permissions.mode == PermissionMode::BypassPermissions
            || is_named(&permissions.hosts.lists(), &request.host, port)
            || match self.questions.earlier_answer(&name) {
                Some(said) => said,
                // A server that is restarting is missing only for a short time, so the user is not
                // asked.
                None if self.known().served.contains_key(&port) => false,
                None => {
                    let reason = format!(
                        "a page requests a connection to port {port} of this machine, on which no command of this \
                         session listens. Your answer applies to this port for this session"
                    );
                    self.ask(&name, reason).await == Some(true)
                }
            };
        if is_open {
            // The page may show files of the project.
            self.known().project_shown = true;
        }
        is_open
    }

    fn is_served(&self, host: &Host, port: u16) -> bool {
        let known = self.known();
        !matches!(known.ports.server(host, port), PortServer::None)
    }

    async fn ask(&self, about: &str, reason: String) -> Option<bool> {
        self.questions.ask(NAME, about, reason).await
    }

    fn known(&self) -> MutexGuard<'_, PageHostState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key under which the user's answer about an address is stored.
fn name_of(address: &PageUrl) -> String {
    match place(&address.host, address.port) {
        HostLocation::Here(port) => format!("localhost:{port}"),
        _ => address.host_in_rules(),
    }
}

fn server_ended_message(host: &Host, port: u16, by: &str) -> String {
    format!(
        "Nothing listens at {host}:{port} now: {by} did, but it has ended or no longer listens. Start it again."
    )
}

fn several_servers_message(port: u16, by: &[&str]) -> String {
    format!(
        "Port {port} is served by {}, each in its own network, so it is not known which page is meant. Stop one of \
         them (TaskStop), or let one use another port.",
        by.join(" and ")
    )
}

fn unreachable_server_message(port: u16, by: &str) -> String {
    format!(
        "{by} listens on port {port} in a network that it created itself, which cannot be reached. Let it listen \
         without its own network. Files of the project are at http://haft.localhost/PATH."
    )
}

fn place(host: &Host, port: u16) -> HostLocation {
    let name = host.name().unwrap_or_default();
    if name == SERVED_HOST {
        return HostLocation::Served;
    }
    if name == "localhost" || name.ends_with(".localhost") {
        return HostLocation::Here(port);
    }
    match host.address().and_then(SpecialAddress::classify) {
        Some(SpecialAddress::Loopback) => HostLocation::Here(port),
        Some(special) => HostLocation::Special(special),
        None => HostLocation::Public,
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

impl NetworkGate for PageHostPolicy {
    fn decide(&self, request: GateRequest) -> GateFuture<'_, GateVerdict> {
        Box::pin(async move { self.connection(&request).await })
    }
}

impl RequestInterceptor for PageHostPolicy {
    fn intercept<'a>(&'a self, request: &'a BrowserRequest) -> VerdictFuture<'a> {
        Box::pin(self.page(request))
    }
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
