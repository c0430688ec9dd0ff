//! Downloads of pages. The host is checked and resolved once, then each address of the host is
//! checked. The size is limited, and redirects are followed only within the same host.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, CallContext, Card, HostVerdict, HttpResponse,
    PermissionMode, Tool, ToolError, ToolUse, WebFetcher, WebRequest,
};
use haft_sandbox::network::{AllowedAddresses, SpecialAddress, addresses_of};
use tokio::time::{Instant, timeout_at};

use super::{WebFetch, WebSession, address::PageUrl};
use crate::host_rules::host_rules;

/// The maximum number of redirects.
const MAX_HOPS: usize = 10;
/// The time limit for resolving a name.
const RESOLVING: Duration = Duration::from_secs(10);

/// The result of a download.
pub(super) enum FetchOutcome {
    Answer(DownloadedPage),
    /// The page is on another host, which was not approved.
    Redirect {
        status: u16,
        to: String,
    },
}

/// A complete response.
pub(super) struct DownloadedPage {
    /// The address after all redirects.
    pub(super) address: PageUrl,
    pub(super) status: u16,
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
}

/// Downloads pages, within the addresses that are allowed.
pub(super) struct Downloader<'a> {
    pub(super) client: &'a dyn WebFetcher,
    pub(super) web: &'a WebSession,
    pub(super) cx: &'a CallContext,
    /// The call, for the question whether a non-public address is allowed.
    pub(super) tool_use: ToolUse,
}

impl Downloader<'_> {
    /// Downloads a page. The time limit applies only to waiting for the network.
    pub(super) async fn download(&self, start: PageUrl) -> Result<FetchOutcome, ToolError> {
        let mut left = self.web.limits.timeout;
        let mut known = HashMap::new();
        let mut address = start.upgraded();
        for _ in 0..=MAX_HOPS {
            let addresses = match known.get(&address.host) {
                Some(addresses) => Vec::clone(addresses),
                None => {
                    let found = self.addresses(&address).await?;
                    known.insert(address.host.clone(), found.clone());
                    found
                }
            };
            let began = Instant::now();
            let deadline = began + left;
            let mut response = self.get(&address, addresses, deadline).await?;
            let status = response.status;
            let location = response.header("location").map(str::to_owned);
            if let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) {
                let to = address.join(&location).map_err(|why| {
                    ToolError::Failed(format!(
                        "{} answers {status} and cannot be followed: {why}.",
                        address.url
                    ))
                })?;
                let to = to.upgraded();
                if !self.follows(&address, &to)? {
                    let to = to.url.to_string();
                    return Ok(FetchOutcome::Redirect { status, to });
                }
                address = to;
                left = left.saturating_sub(began.elapsed());
                continue;
            }
            let bytes = self.body(&address, &mut response, deadline).await?;
            let media_type = response.header("content-type").unwrap_or_default();
            return Ok(FetchOutcome::Answer(DownloadedPage {
                status,
                media_type: media_type.to_owned(),
                bytes,
                address,
            }));
        }
        Err(ToolError::Failed(format!(
            "{} redirects more than {MAX_HOPS} times, the last time to {}. It may be a loop, or require a \
             cookie: fetch another page.",
            self.url(),
            address.url
        )))
    }

    fn url(&self) -> &str {
        self.tool_use.input["url"].as_str().unwrap_or_default()
    }

    async fn get(
        &self,
        address: &PageUrl,
        addresses: Vec<IpAddr>,
        deadline: Instant,
    ) -> Result<HttpResponse, ToolError> {
        let request = WebRequest {
            url: address.url.to_string(),
            addresses,
            headers: vec![(
                "accept".to_owned(),
                "text/markdown, text/html, */*".to_owned(),
            )],
        };
        let answered = timeout_at(deadline, self.client.get(request)).await;
        let answered = answered.map_err(|_| self.timeout_error(address, "has not answered"))?;
        answered.map_err(|failure| {
            let next = match failure.is_transient {
                true => " Try again later, or use another source.",
                false => "",
            };
            ToolError::Failed(format!(
                "{} could not be fetched: {}.{next}",
                address.url, failure.message
            ))
        })
    }

    async fn body(
        &self,
        address: &PageUrl,
        response: &mut HttpResponse,
        deadline: Instant,
    ) -> Result<Vec<u8>, ToolError> {
        let longest = self.web.limits.max_page_bytes;
        let too_long = || {
            ToolError::Failed(format!(
                "{} is longer than {} MB, unpacked. Look for a shorter page, or for a part of it with its own \
                 address.",
                address.url,
                longest >> 20
            ))
        };
        if let Some(encoding) = response.header("content-encoding") {
            // Requested encodings are already unpacked here.
            if !encoding.trim().eq_ignore_ascii_case("identity") {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b", -".contains(&byte);
                let named = match encoding.len() <= 30 && encoding.bytes().all(plain) {
                    true => format!(" ({encoding})"),
                    false => String::new(),
                };
                return Err(ToolError::Failed(format!(
                    "{} is packed in an encoding that was not requested{named} and cannot be read.",
                    address.url
                )));
            }
        }
        let announced = response.header("content-length");
        let announced = announced.and_then(|length| length.parse::<u64>().ok());
        if announced.is_some_and(|length| length > longest as u64) {
            return Err(too_long());
        }
        let read = timeout_at(deadline, response.body.bytes(longest)).await;
        match read {
            Err(_) => Err(self.timeout_error(address, "has not sent all of its answer")),
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(why)) if why.contains("longer than") => Err(too_long()),
            Ok(Err(why)) => Err(ToolError::Failed(format!(
                "the answer of {} cannot be read to its end: {why}. Try again, or use another source.",
                address.url
            ))),
        }
    }

    fn timeout_error(&self, address: &PageUrl, what: &str) -> ToolError {
        ToolError::Failed(format!(
            "{} {what} within {} s. Try again later, or use another source.",
            address.url,
            self.web.limits.timeout.as_secs_f64()
        ))
    }

    /// Returns whether a redirect is followed: only to the same host (ignoring `www.`), and only if
    /// the rules require no new decision for it.
    fn follows(&self, from: &PageUrl, to: &PageUrl) -> Result<bool, ToolError> {
        if from.host == to.host {
            return Ok(true);
        }
        if !to.is_host_of(from) {
            return Ok(false);
        }
        let hosts = &self.cx.permissions.hosts;
        let judge = |at: &PageUrl| hosts.evaluate(&at.host_in_rules(), at.port);
        Ok(match (judge(from), judge(to)) {
            (_, HostVerdict::Denied) => {
                return Err(ToolError::Failed(format!(
                    "{} redirects to {}, which a rule denies.",
                    from.url, to.host
                )));
            }
            (_, HostVerdict::Allowed) => true,
            (from, HostVerdict::Ask) => from != HostVerdict::Allowed,
        })
    }

    /// Resolves a host to its addresses and checks all of them.
    async fn addresses(&self, address: &PageUrl) -> Result<Vec<IpAddr>, ToolError> {
        let deadline = Instant::now() + RESOLVING;
        let host = &address.host;
        let found = addresses_of(host, &*self.web.resolver, deadline).await;
        let found = match found {
            Ok(found) => found,
            // The proxy may be able to resolve the name.
            Err(_) if self.client.has_proxy() => return Ok(Vec::new()),
            Err(error) => {
                return Err(ToolError::Failed(format!(
                    "the host {host} cannot be resolved: {error}. Check how it is written."
                )));
            }
        };
        let reach = self.reach(address);
        let Err(why) = reach.check_all(host, &found) else {
            return Ok(found);
        };
        // Some addresses are never allowed.
        let wider = reach.with(found.iter().copied());
        let may_be_granted = wider.check_all(host, &found).is_ok();
        let refused =
            |why: String| ToolError::Failed(format!("{} is not fetched. {why}", address.url));
        if !may_be_granted {
            return Err(refused(why));
        }
        if self.cx.permissions.mode == PermissionMode::BypassPermissions {
            return Ok(found);
        }
        match self.may_reach(address, &found).await {
            Some(true) => {
                self.web.grant(&host.to_string(), &found);
                Ok(found)
            }
            Some(false) => Err(refused("The user does not allow it.".to_owned())),
            None => Err(refused(why)),
        }
    }

    /// Returns the addresses that are explicitly allowed: addresses in rules, and an address in the
    /// URL, which the user has seen when approving the URL.
    fn reach(&self, address: &PageUrl) -> AllowedAddresses {
        let rules = host_rules(&self.cx.permissions.hosts.lists());
        let mut reach = rules
            .reach(&address.host, address.port)
            .with(address.host.address())
            .with(self.web.granted(&address.host.to_string()));
        if address.is_localhost() {
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            reach = reach.with(loopback);
        }
        reach
    }

    /// Asks the user about a name that resolves to a non-public address. Returns `None` if no user
    /// can be asked.
    async fn may_reach(&self, address: &PageUrl, found: &[IpAddr]) -> Option<bool> {
        let cx = self.cx;
        if cx.permissions.mode == PermissionMode::DontAsk {
            return None;
        }
        let special = found
            .iter()
            .find_map(|one| Some((one, SpecialAddress::classify(*one)?)));
        let (at, special) = special?;
        let host = &address.host;
        let question = ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: cx.call,
            tool: WebFetch::NAME.to_owned(),
            card: Card::new(WebFetch::NAME, address.url.as_str()),
            reason: format!(
                "{host} is at {at}, {special}. Your answer applies to {host} at this address for this session"
            ),
            asked: Some(self.tool_use.clone()),
            ..ApprovalRequest::default()
        };
        match cx.services.approver().ask(question).await {
            ApprovalAnswer::Allow
            | ApprovalAnswer::AllowAlways
            | ApprovalAnswer::Updated { input: None, .. } => Some(true),
            // The call is already running, so it cannot be replaced.
            ApprovalAnswer::Deny { .. }
            | ApprovalAnswer::InputEdited { .. }
            | ApprovalAnswer::Updated { .. } => Some(false),
            ApprovalAnswer::Unavailable => None,
        }
    }
}
