//! Decides which hosts commands may contact through the proxy. The rules decide first. If no rule
//! applies, the user is asked once per host and session.

use std::{
    fmt,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use haft_contract::{CallContext, HostPolicy, HostVerdict, NetworkAccess};
use haft_sandbox::network::{AllowedAddresses, GateFuture, GateRequest, GateVerdict, NetworkGate};

use super::host_questions::{HostApprovals, NamedCall, bare, refuse};
use crate::host_rules::is_named;

/// The gate of a session. It uses the rules of the latest call, because the rules only change with
/// the settings.
#[derive(Default)]
pub(crate) struct HostGate {
    rules: Mutex<Option<HostPolicy>>,
    questions: HostApprovals,
}

impl HostGate {
    /// Creates a gate that keeps these rules, and asks no questions.
    pub(crate) fn with_rules(rules: HostPolicy) -> Self {
        Self {
            rules: Mutex::new(Some(rules)),
            questions: HostApprovals::default(),
        }
    }

    /// Applies the network rules of this call from now on, and asks questions on its behalf.
    pub(crate) fn open_for(&self, cx: &CallContext, reachable: &NetworkAccess, named: &NamedCall) {
        if let NetworkAccess::ByRule(rules) = reachable {
            *self.rules() = Some(rules.clone());
        }
        self.questions.open_for(cx, named);
    }

    /// Allows this host for the session, as the user decided.
    pub(crate) fn allow(&self, host: &str) {
        self.questions.allow(host);
    }

    /// Returns the hosts that the user has allowed in this session.
    pub(crate) fn allowed_hosts(&self) -> Vec<String> {
        let allowed = self.questions.allowed();
        // `POST host` allows only requests of this kind.
        allowed.filter(|about| !about.contains(' ')).collect()
    }

    async fn verdict(&self, request: &GateRequest) -> GateVerdict {
        let host = bare(&request.host);
        let changes = match request.method.as_deref() {
            None | Some("GET" | "HEAD") => None,
            Some(method) => Some(method),
        };
        let rules = self.rules().clone();
        let passage = rules.as_ref().map_or(HostVerdict::Ask, |rules| {
            rules.evaluate(&host, request.port)
        });
        match (passage, changes) {
            (HostVerdict::Denied, _) => refuse(format!("A rule denies {host}.")),
            (HostVerdict::Allowed, None) => {
                let is_named = rules
                    .is_some_and(|rules| is_named(&rules.lists(), &request.host, request.port));
                let address = request.host.address();
                allow("A rule allows it.", address.filter(|_| is_named))
            }
            (HostVerdict::Allowed, Some(method)) => {
                // A rule only allows reading; a changing request needs a separate question.
                self.ask(request, &format!("{method} {host}")).await
            }
            (HostVerdict::Ask, _) => self.ask(request, &host).await,
        }
    }

    async fn ask(&self, request: &GateRequest, about: &str) -> GateVerdict {
        let what = match &request.url {
            Some(url) => format!("{} {url}", request.method.as_deref().unwrap_or("GET")),
            None => format!("{}, port {}", request.host, request.port),
        };
        let reason = format!(
            "it requests a connection to {what}, and no rule allows or denies it. Your answer applies to {about} for this session"
        );
        match self.questions.ask("Bash", about, reason).await {
            // A user who names an address allows it, even if it is not public.
            Some(true) => allow("The user allows it.", request.host.address()),
            Some(false) => refuse("The user does not allow it.".to_owned()),
            None => refuse(format!(
                "No rule allows {about}, and no user can be asked. To allow it, add \"{}\" to \
                 `sandbox.network.allowedDomains`.",
                request.host
            )),
        }
    }

    fn rules(&self) -> MutexGuard<'_, Option<HostPolicy>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NetworkGate for HostGate {
    fn decide(&self, request: GateRequest) -> GateFuture<'_, GateVerdict> {
        Box::pin(async move { self.verdict(&request).await })
    }
}

impl fmt::Debug for HostGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostGate")
    }
}

/// Allows all public addresses, and this one.
fn allow(because: &str, named: Option<IpAddr>) -> GateVerdict {
    GateVerdict::Allow {
        because: because.to_owned(),
        reach: AllowedAddresses::public().with(named),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use haft_contract::{
        ApprovalAnswer, ApprovalRequest, Card, HostEvaluator, HostGlob, HostLists, Services,
        ToolUse, approval::Approver,
    };
    use haft_sandbox::network::Host;

    use super::*;

    struct Examples;

    impl HostEvaluator for Examples {
        fn evaluate(&self, host: &str, _: u16) -> HostVerdict {
            match host {
                // As a pattern for all addresses would.
                "good.example" | "10.0.0.1" | "169.254.169.254" => HostVerdict::Allowed,
                "bad.example" => HostVerdict::Denied,
                _ => HostVerdict::Ask,
            }
        }

        fn lists(&self) -> HostLists {
            HostLists {
                allowed: vec![HostGlob {
                    host: "10.0.0.1".to_owned(),
                    port: None,
                }],
                ..HostLists::default()
            }
        }
    }

    struct Person {
        says: ApprovalAnswer,
        asked: AtomicUsize,
    }

    impl Approver for Person {
        fn ask(&self, _: ApprovalRequest) -> haft_contract::BoxFuture<'_, ApprovalAnswer> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { self.says.clone() })
        }
    }

    fn gate(says: ApprovalAnswer) -> (HostGate, Arc<Person>) {
        let person = Arc::new(Person {
            says,
            asked: AtomicUsize::new(0),
        });
        let (mut cx, _updates) = CallContext::for_test(Path::new("/"));
        cx.services = Services::none().with_approver(person.clone());
        let gate = HostGate::default();
        let rules = HostPolicy::from_evaluator(Examples);
        let named = NamedCall {
            card: Card::new("Bash", "x"),
            asked: ToolUse {
                id: "toolu_1".to_owned(),
                name: "Bash".to_owned(),
                input: serde_json::json!({"command": "x"}),
            },
        };
        gate.open_for(&cx, &NetworkAccess::ByRule(rules), &named);
        (gate, person)
    }

    fn request(host: &str, method: Option<&str>) -> GateRequest {
        GateRequest {
            host: Host::parse(host.as_bytes()).unwrap(),
            port: 443,
            method: method.map(str::to_owned),
            url: method.map(|_| format!("http://{host}/")),
        }
    }

    fn reaches(reach: &AllowedAddresses, address: &str) -> bool {
        let host = Host::parse(address.as_bytes()).unwrap();
        reach.check_all(&host, &[address.parse().unwrap()]).is_ok()
    }

    async fn passes(gate: &HostGate, host: &str, method: Option<&str>) -> bool {
        let verdict = gate.decide(request(host, method)).await;
        matches!(verdict, GateVerdict::Allow { .. })
    }

    #[tokio::test]
    async fn rules_decide_and_what_they_do_not_name_is_asked_once() {
        let (gate, person) = gate(ApprovalAnswer::Allow);
        let asked = || person.asked.load(Ordering::Relaxed);
        assert!(passes(&gate, "good.example", None).await);
        assert!(passes(&gate, "10.0.0.1", None).await);
        assert!(!passes(&gate, "bad.example", None).await);
        assert_eq!(asked(), 0);
        for _ in 0..3 {
            assert!(passes(&gate, "new.example", None).await);
        }
        assert_eq!(asked(), 1);
        // Over plain HTTP a rule lets through what reads.
        assert!(passes(&gate, "good.example", Some("GET")).await);
        assert_eq!(asked(), 1);
        assert!(passes(&gate, "good.example", Some("POST")).await);
        assert_eq!(asked(), 2);
    }

    #[tokio::test]
    async fn only_a_rule_with_the_address_reaches_one_that_is_not_public() {
        let (gate, _) = gate(ApprovalAnswer::Allow);
        for (host, is_reached) in [("10.0.0.1", true), ("169.254.169.254", false)] {
            let GateVerdict::Allow { reach, .. } = gate.decide(request(host, None)).await else {
                panic!("{host} is refused");
            };
            assert_eq!(reaches(&reach, host), is_reached);
        }
        let GateVerdict::Allow { reach, .. } = gate.decide(request("10.0.0.9", None)).await else {
            panic!("the user's answer has no effect");
        };
        assert!(reaches(&reach, "10.0.0.9"));
    }

    #[tokio::test]
    async fn a_no_is_remembered_and_nobody_is_no() {
        let (denying, person) = gate(ApprovalAnswer::Deny { reason: None });
        assert!(!passes(&denying, "new.example", None).await);
        assert!(!passes(&denying, "new.example", None).await);
        assert_eq!(person.asked.load(Ordering::Relaxed), 1);
        denying.allow("new.example");
        assert!(passes(&denying, "new.example", None).await);

        let (alone, _) = gate(ApprovalAnswer::Unavailable);
        let GateVerdict::Refuse { because } = alone.decide(request("new.example", None)).await
        else {
            panic!("let through");
        };
        assert!(
            because.contains("sandbox.network.allowedDomains"),
            "{because}"
        );
    }
}
