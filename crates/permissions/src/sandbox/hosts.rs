//! The hosts that a confined command may connect to.

use std::{fmt, sync::Arc};

use haft_contract::{HostEvaluator, HostGlob, HostLists, HostPolicy, HostVerdict, PermissionMode};

use super::{
    super::{
        Policy, RuleSet, SettingsScope,
        rules::{DomainPattern, List, RuleContent},
    },
    SandboxSettings,
};

/// A host in the settings: `host`, `*.host`, `[v6]`, each with a `:port` or for every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsHost {
    text: String,
    domain: DomainPattern,
    port: Option<u16>,
}

impl SettingsHost {
    /// Parses a host; the error says what is wrong.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let unlike = "write a host such as example.com, *.example.com or [::1]";
        if text.contains('/') {
            return Err(unlike.to_owned());
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("the bracket is not closed")?;
                let port = match port {
                    "" => None,
                    port => Some(
                        port.strip_prefix(':')
                            .ok_or("only `:PORT` may follow `]`")?,
                    ),
                };
                (host, port)
            }
            None => match text.rsplit_once(':') {
                // A host with more than one colon and without brackets is an IPv6 address.
                Some((host, port)) if !host.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let port = match port {
            None => None,
            Some("*") => None,
            Some(port) => match port.parse() {
                Ok(port) => Some(port),
                Err(_) => return Err(format!("{port:?} is not a port")),
            },
        };
        let plain = |next: char| next.is_ascii_alphanumeric() || "-._:*".contains(next);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(unlike.to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            domain: DomainPattern::new(host),
            port,
        })
    }

    fn pattern(&self) -> HostGlob {
        HostGlob {
            host: self.domain.to_string(),
            port: self.port,
        }
    }

    fn from_pattern(pattern: &HostGlob) -> Self {
        let HostGlob { host, port } = pattern;
        Self {
            text: match port {
                Some(port) if host.contains(':') => format!("[{host}]:{port}"),
                Some(port) => format!("{host}:{port}"),
                None => host.clone(),
            },
            domain: DomainPattern::new(host),
            port: *port,
        }
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.domain.matches(host)
    }
}

impl fmt::Display for SettingsHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The hosts in settings and rules, merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsHosts {
    /// The allowed hosts.
    pub allowed: Vec<SettingsHost>,
    /// The hosts for which the user is asked each time.
    pub asked: Vec<SettingsHost>,
    /// The denied hosts. These take precedence.
    pub denied: Vec<SettingsHost>,
    /// Whether all other hosts are denied without asking.
    pub closed: bool,
}

impl SettingsHosts {
    /// Returns the lists in force: those of the settings, and the rules `WebFetch(domain:…)`.
    pub fn from_policy(policy: &Policy) -> Self {
        Self::for_tool(policy, None)
    }

    /// Like [`SettingsHosts::from_policy`], but includes rules for this tool alone: `Browser(domain:…)`.
    fn for_tool(policy: &Policy, tool: Option<&str>) -> Self {
        let sandbox = &policy.sandbox;
        let managed_only = sandbox.managed_hosts_only;
        let of_rules = |list: List| {
            policy.rules.in_list(list).filter_map(move |rule| {
                let counts = list != List::Allow
                    || !managed_only
                    || rule.source.scope == SettingsScope::Managed;
                let domain = match &rule.content {
                    RuleContent::Domain(domain) => Some(domain.clone()),
                    RuleContent::Unresolved(open)
                        if tool.is_some_and(|tool| rule.tool.matches_name(tool)) =>
                    {
                        open.domain()
                    }
                    _ => None,
                };
                domain.filter(|_| counts).map(|domain| SettingsHost {
                    text: domain.to_string(),
                    domain,
                    port: None,
                })
            })
        };
        let both = |own: &[SettingsHost], list: List| {
            let mut all = own.to_vec();
            super::extend_unique(&mut all, of_rules(list));
            all
        };
        Self {
            allowed: both(&sandbox.allowed_hosts, List::Allow),
            asked: both(&[], List::Ask),
            denied: both(&sandbox.denied_hosts, List::Deny),
            closed: sandbox.strict_hosts || managed_only,
        }
    }

    /// Returns lists that deny every host.
    pub(super) fn none() -> Self {
        Self {
            allowed: Vec::new(),
            asked: Vec::new(),
            denied: Vec::new(),
            closed: true,
        }
    }

    /// Returns the lists with only these hosts allowed, and all others denied.
    pub(super) fn limited_to(self, hosts: &[String]) -> Self {
        let hosts = hosts.iter().filter_map(|host| SettingsHost::new(host).ok());
        Self {
            allowed: hosts.collect(),
            closed: true,
            ..self
        }
    }

    /// Returns the verdict about a host.
    pub fn verdict(&self, host: &str, port: u16) -> HostVerdict {
        let named = |list: &[SettingsHost]| list.iter().any(|one| one.matches(host, port));
        // A host that two parsers could read differently is denied.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if named(&self.denied) || !host.bytes().all(plain) {
            HostVerdict::Denied
        } else if named(&self.asked) {
            HostVerdict::Ask
        } else if named(&self.allowed) {
            HostVerdict::Allowed
        } else if self.closed {
            HostVerdict::Denied
        } else {
            HostVerdict::Ask
        }
    }

    /// Returns the verdict about a host whose port is not known: the most lenient of all ports that a
    /// list names.
    pub fn best_verdict(&self, host: &str) -> HostVerdict {
        let ports = self.allowed.iter().filter_map(|one| one.port);
        let verdicts = ports.chain([443, 80]).map(|port| self.verdict(host, port));
        let verdicts: Vec<HostVerdict> = verdicts.collect();
        let best = [HostVerdict::Allowed, HostVerdict::Ask];
        let mut best = best.into_iter().filter(|best| verdicts.contains(best));
        best.next().unwrap_or(HostVerdict::Denied)
    }

    pub(super) fn into_host_policy(self) -> HostPolicy {
        HostPolicy::from_evaluator(self)
    }

    /// Restores the value from serializable lists.
    pub(crate) fn from_lists(lists: &HostLists) -> Self {
        let read = |list: &[HostGlob]| list.iter().map(SettingsHost::from_pattern).collect();
        Self {
            allowed: read(&lists.allowed),
            asked: read(&lists.asked),
            denied: read(&lists.denied),
            closed: lists.closed,
        }
    }
}

impl HostEvaluator for SettingsHosts {
    fn evaluate(&self, host: &str, port: u16) -> HostVerdict {
        self.verdict(host, port)
    }

    fn lists(&self) -> HostLists {
        let written = |list: &[SettingsHost]| list.iter().map(SettingsHost::pattern).collect();
        HostLists {
            allowed: written(&self.allowed),
            asked: written(&self.asked),
            denied: written(&self.denied),
            closed: self.closed,
        }
    }
}

/// The hosts in rules and settings, merged at each query.
#[derive(Debug, Clone)]
pub struct HostsByPolicy {
    /// The rules.
    pub rules: Arc<RuleSet>,
    /// The sandbox settings, with the hosts that commands may connect to.
    pub sandbox: Arc<SandboxSettings>,
    /// The tool whose own host rules also apply.
    pub tool: Option<String>,
}

impl HostsByPolicy {
    fn merged_hosts(&self) -> SettingsHosts {
        let policy = Policy {
            rules: Arc::clone(&self.rules),
            sandbox: Arc::clone(&self.sandbox),
            ..Policy::new(PermissionMode::Default, Vec::new())
        };
        SettingsHosts::for_tool(&policy, self.tool.as_deref())
    }
}

impl HostEvaluator for HostsByPolicy {
    fn evaluate(&self, host: &str, port: u16) -> HostVerdict {
        self.merged_hosts().verdict(host, port)
    }

    fn lists(&self) -> HostLists {
        self.merged_hosts().lists()
    }

    fn for_tool(&self, tool: &str) -> Option<HostPolicy> {
        Some(HostPolicy::from_evaluator(Self {
            tool: Some(tool.to_owned()),
            ..self.clone()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PatternBases, RuleSource};

    #[test]
    fn hosts_are_read_with_and_without_a_port() {
        let cases = [
            ("example.com", "EXAMPLE.com.", 443, true),
            ("example.com", "api.example.com", 443, false),
            ("*.example.com", "a.b.example.com", 80, true),
            ("*.example.com", "example.com", 80, false),
            ("example.com:8443", "example.com", 8443, true),
            ("example.com:8443", "example.com", 443, false),
            ("example.com:*", "example.com", 443, true),
            ("[::1]", "::1", 80, true),
            ("[::1]:3000", "::1", 3000, true),
            ("[::1]:3000", "::1", 80, false),
            ("::1", "::1", 80, true),
            ("127.0.0.1:5432", "127.0.0.1", 5432, true),
            ("*", "anything.at.all", 1, true),
            ("trusted.com", "trusted.com.evil.com", 443, false),
            ("trusted.com", "evil\0.trusted.com", 443, false),
        ];
        for (pattern, host, port, expected) in cases {
            let read = SettingsHost::new(pattern).unwrap();
            assert_eq!(
                read.matches(host, port),
                expected,
                "{pattern} {host}:{port}"
            );
        }
        for wrong in [
            "",
            "https://example.com",
            "a b",
            "[::1",
            "[::1]x",
            "x:y",
            "x/y",
        ] {
            assert!(SettingsHost::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn denied_beats_asked_beats_allowed() {
        let list = |texts: &[&str]| -> Vec<SettingsHost> {
            let read = texts.iter().map(|text| SettingsHost::new(text).unwrap());
            read.collect()
        };
        let mut rules = SettingsHosts {
            allowed: list(&["*.example.com", "one.org"]),
            asked: list(&["ask.example.com"]),
            denied: list(&["bad.example.com", "one.org:25"]),
            closed: false,
        };
        assert_eq!(rules.verdict("good.example.com", 443), HostVerdict::Allowed);
        assert_eq!(rules.verdict("ask.example.com", 443), HostVerdict::Ask);
        assert_eq!(rules.verdict("bad.example.com", 443), HostVerdict::Denied);
        assert_eq!(rules.verdict("one.org", 443), HostVerdict::Allowed);
        assert_eq!(rules.verdict("one.org", 25), HostVerdict::Denied);
        assert_eq!(rules.verdict("other.org", 443), HostVerdict::Ask);
        assert_eq!(
            rules.verdict("evil.org\0.example.com", 443),
            HostVerdict::Denied
        );
        rules.closed = true;
        assert_eq!(rules.verdict("other.org", 443), HostVerdict::Denied);
        assert_eq!(rules.verdict("ask.example.com", 443), HostVerdict::Ask);
    }

    #[test]
    fn rules_of_one_tool_count_for_it_alone() {
        let bases = PatternBases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: "/p".into(),
        };
        let mut rules = RuleSet::default();
        for (list, text) in [
            (List::Deny, "Browser(domain:*.bad.example)"),
            (List::Allow, "Browser(domain:good.example)"),
            (List::Ask, "Browser(domain:ask.good.example)"),
            (List::Deny, "Browser(action:evaluate)"),
            (List::Deny, "WebFetch(domain:worse.example)"),
            (List::Deny, "Skill(domain:other.example)"),
        ] {
            let source = RuleSource {
                scope: SettingsScope::User,
                file: None,
                line: None,
            };
            rules.add(list, text, source, &bases).unwrap();
        }
        let all = HostPolicy::from_evaluator(HostsByPolicy {
            rules: Arc::new(rules),
            sandbox: Arc::default(),
            tool: None,
        });
        let browser = all.for_tool("Browser");
        for (host, for_all, for_browser) in [
            ("a.bad.example", HostVerdict::Ask, HostVerdict::Denied),
            ("good.example", HostVerdict::Ask, HostVerdict::Allowed),
            ("ask.good.example", HostVerdict::Ask, HostVerdict::Ask),
            ("worse.example", HostVerdict::Denied, HostVerdict::Denied),
            ("other.example", HostVerdict::Ask, HostVerdict::Ask),
            ("evaluate", HostVerdict::Ask, HostVerdict::Ask),
        ] {
            assert_eq!(all.evaluate(host, 443), for_all, "{host}");
            assert_eq!(browser.evaluate(host, 443), for_browser, "{host}");
        }
        assert_eq!(browser.lists().denied.len(), 2);
    }
}
