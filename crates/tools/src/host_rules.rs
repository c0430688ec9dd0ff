//! Host rules in the form that the command sandbox evaluates.

use haft_contract::{HostGlob, HostLists};
#[cfg(feature = "web")]
use haft_sandbox::network::HostRules;
use haft_sandbox::network::{Host, HostPattern};

/// Converts the rules for the command sandbox.
#[cfg(feature = "web")]
pub(crate) fn host_rules(lists: &HostLists) -> HostRules {
    HostRules {
        allowed: patterns(&lists.allowed),
        denied: patterns(&lists.denied),
    }
}

/// Returns whether a rule names exactly this host. Only such a host may have an address that is not
/// public; a pattern such as `*` covers public addresses alone.
pub(crate) fn is_named(lists: &HostLists, host: &Host, port: u16) -> bool {
    let allowed = patterns(&lists.allowed);
    let mut allowed = allowed.iter();
    allowed.any(|rule| rule.exactly() == Some(host) && rule.matches(host, port))
}

/// Converts patterns. Those that the command sandbox does not support match no address.
fn patterns(globs: &[HostGlob]) -> Vec<HostPattern> {
    let patterns = globs.iter().filter_map(|glob| {
        let host = match glob.host.contains(':') {
            true => format!("[{}]", glob.host),
            false => glob.host.clone(),
        };
        let port = glob.port.map(|port| format!(":{port}"));
        HostPattern::parse(&(host + &port.unwrap_or_default())).ok()
    });
    patterns.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rule_with_the_host_itself_names_it() {
        let glob = |host: &str, port| HostGlob {
            host: host.to_owned(),
            port,
        };
        let lists = HostLists {
            allowed: vec![
                glob("*", None),
                glob("*.internal", None),
                glob("10.0.0.1", Some(80)),
                glob("::1", None),
            ],
            ..HostLists::default()
        };
        let named = |host: &str, port| {
            let host = Host::parse(host.as_bytes()).unwrap();
            is_named(&lists, &host, port)
        };
        assert!(named("10.0.0.1", 80) && named("[::1]", 443));
        assert!(!named("10.0.0.1", 443) && !named("169.254.169.254", 80));
        assert!(!named("a.internal", 80));
    }
}
