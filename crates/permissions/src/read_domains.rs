//! Command lines that only read, and that only contact hosts of `sandbox.network.readDomains`.

use haft_contract::{RuleOffer, rule_offer::READ_DOMAIN};
use haft_shell::{Effect, EffectVerdict, LinePart, OwnService, RuleCoverage};

use super::{
    CallFacts, DecisionBehavior, DecisionReason, HookPermission, List, Policy, allow, decide,
    offline,
    reversible::is_loopback,
    rule_offers::LineProposals,
    rules::{Rule, RuleContent},
    sandbox,
    shell_facts::{MAX_LENGTH, ShellFacts},
};

/// The hosts that `gh` contacts to read: the code host, and its API.
const CODE_HOST: [&str; 2] = ["github.com", "api.github.com"];

/// Returns the hosts that a line reads from, and the rule for the last of them, if rules permit all and
/// nothing else permits the line.
pub(super) fn permitted<'a>(
    policy: &'a Policy,
    facts: &CallFacts,
) -> Option<(Vec<String>, &'a Rule)> {
    let shell = facts.shell.as_ref()?;
    let read_rules = || {
        let rules = policy.rules.in_list(List::Allow);
        rules.filter_map(|rule| match &rule.content {
            RuleContent::ReadHost(domain) => Some((rule, domain)),
            _ => None,
        })
    };
    if read_rules().next().is_none()
        || !offline::is_possible(policy)
        || matches!(facts.hook, HookPermission::Allow | HookPermission::Answer)
        || sandbox::excluded_reason(policy, facts).is_some()
        || sandbox::uses_secret(policy, facts)
    {
        return None;
    }
    let hosts = needed_hosts(policy, shell)?;
    let mut last = None;
    for host in &hosts {
        let (rule, _) = read_rules().find(|(_, domain)| domain.matches(host))?;
        last = Some(rule);
    }
    // The parts only read, so the mode does not cover them, and this does not lead back to here.
    if allow::evaluate_line(policy, facts, shell).is_ok() {
        return None;
    }
    Some((hosts, last?))
}

/// Returns the hosts that a line reads from, if it has no other effect.
fn needed_hosts(policy: &Policy, shell: &ShellFacts) -> Option<Vec<String>> {
    if shell.analysis.unreadable.is_some() || shell.line.len() > MAX_LENGTH {
        return None;
    }
    let mut hosts: Vec<String> = Vec::new();
    for (at, part, _) in shell.parts() {
        let is_read_only = part.finding.verdict == EffectVerdict::ReadOnly;
        let at_most = part.finding.verdict;
        if allow::verdict_doubt(policy, shell, at, part, at_most).is_some() {
            return None;
        }
        if is_read_only {
            continue;
        }
        for host in part_hosts(part)? {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    (!hosts.is_empty()).then_some(hosts)
}

/// Returns the hosts that a command reads from, if it names all of them and does nothing else.
fn part_hosts(part: &LinePart) -> Option<Vec<String>> {
    let finding = &part.finding;
    let words: Option<Vec<&str>> = part.argv.iter().map(|arg| arg.text()).collect();
    let words = words?;
    if finding.coverage != RuleCoverage::Prefix
        || !finding.starts.is_empty()
        || !part.assignments.is_empty()
    {
        return None;
    }
    if finding.verdict == EffectVerdict::ReadsNetwork {
        let is_code_host = |effect: &Effect| {
            matches!(
                effect,
                Effect::Service(OwnService::CodeHost) | Effect::Net(None) | Effect::Read(_)
            )
        };
        let only_reads = words.first() == Some(&"gh") && finding.effects.iter().all(is_code_host);
        return only_reads.then(|| CODE_HOST.map(str::to_owned).to_vec());
    }
    let is_reader = match words.as_slice() {
        ["curl" | "wget", ..] => true,
        ["git", verb, ..] => *verb == "ls-remote",
        _ => false,
    };
    if !is_reader || finding.verdict != EffectVerdict::Unknown {
        return None;
    }
    let mut hosts = Vec::new();
    for effect in &finding.effects {
        match effect {
            Effect::Net(Some(host)) if !is_loopback(host) => hosts.push(host.clone()),
            Effect::Write(write) if write.path.is("/dev/null") || write.path.is("-") => {}
            _ => return None,
        }
    }
    // Over ssh it would need a key.
    let over_ssh = words[0] == "git" && !words.iter().any(|word| word.starts_with("https://"));
    (!hosts.is_empty() && !over_ssh).then_some(hosts)
}

impl LineProposals<'_> {
    /// Returns the choice that permits reads at the hosts of the line, if that is all it needs.
    pub(super) fn read_domains_choice(&self) -> Option<RuleOffer> {
        if !self.policy.sandbox.whole || !offline::is_possible(self.policy) {
            return None;
        }
        let hosts = needed_hosts(self.policy, self.shell)?;
        let rules: Vec<String> = hosts
            .iter()
            .map(|host| format!("{READ_DOMAIN}({host})"))
            .collect();
        let tried = self.with_rules(&rules)?;
        let decision = decide(&tried, self.facts);
        let works = decision.behavior == DecisionBehavior::Allow
            && matches!(decision.reason, DecisionReason::Rule { .. });
        works.then(|| RuleOffer::for_call(rules)).flatten()
    }
}
