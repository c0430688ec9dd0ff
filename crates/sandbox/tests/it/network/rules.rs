//! What must hold of patterns and lists, whatever they name.

use haft_sandbox::network::{Host, HostPattern, HostRuleVerdict, HostRules};
use proptest::prelude::*;

use super::rig::rules;

/// Names that are often below, beside or within each other.
fn host() -> impl Strategy<Value = String> {
    let labels = prop::collection::vec(
        prop::sample::select(vec!["a", "b", "com", "evil", "nota"]),
        1..5,
    );
    prop_oneof![
        labels.prop_map(|labels| labels.join(".")),
        Just("10.0.0.1".to_owned()),
        Just("[fd00::1]".to_owned()),
    ]
}

fn pattern() -> impl Strategy<Value = HostPattern> {
    let port = prop_oneof![Just(""), Just(":80"), Just(":443")];
    let names = (prop_oneof![Just(""), Just("*.")], host())
        .prop_filter_map("an address has nothing below it", |(star, host)| {
            HostPattern::parse(&format!("{star}{host}")).ok()
        });
    let all = Just("*".parse().unwrap());
    (prop_oneof![9 => names, 1 => all], port)
        .prop_map(|(pattern, port): (HostPattern, _)| format!("{pattern}{port}").parse().unwrap())
}

fn lists() -> impl Strategy<Value = HostRules> {
    let list = || prop::collection::vec(pattern(), 0..4);
    (list(), list()).prop_map(|(allowed, denied)| HostRules { allowed, denied })
}

fn port() -> impl Strategy<Value = u16> {
    prop::sample::select(vec![80u16, 443, 8080])
}

fn parsed(host: &str) -> Host {
    Host::parse(host.as_bytes()).unwrap()
}

proptest! {
    #[test]
    fn deny_beats_allow(rules in lists(), host in host(), port in port()) {
        let host = parsed(&host);
        let denied = rules.denied.iter().any(|pattern| pattern.matches(&host, port));
        let allowed = rules.allowed.iter().any(|pattern| pattern.matches(&host, port));
        let expected = match rules.evaluate(&host, port) {
            HostRuleVerdict::Denied(pattern) => pattern.matches(&host, port) && denied,
            HostRuleVerdict::Allowed(pattern) => pattern.matches(&host, port) && allowed && !denied,
            HostRuleVerdict::Unknown => !allowed && !denied,
        };
        prop_assert!(expected);
    }

    #[test]
    fn one_more_denied_pattern_never_allows(
        rules in lists(), more in pattern(), host in host(), port in port(),
    ) {
        let host = parsed(&host);
        let before = matches!(rules.evaluate(&host, port), HostRuleVerdict::Allowed(_));
        let mut stricter = rules.clone();
        stricter.denied.push(more);
        let after = matches!(stricter.evaluate(&host, port), HostRuleVerdict::Allowed(_));
        prop_assert!(before || !after);
    }

    /// CVE-2026-24052: `trusted.com` must not let `trusted.com.evil.com` through.
    #[test]
    fn a_name_is_itself_and_nothing_around_it(
        host in "[a-z]{1,8}(\\.[a-z]{1,8}){0,3}", around in "[a-z0-9-]{1,5}", port in port(),
    ) {
        let exact: HostPattern = host.parse().unwrap();
        let below: HostPattern = format!("*.{host}").parse().unwrap();
        prop_assert!(exact.matches(&parsed(&host), port));
        prop_assert!(!below.matches(&parsed(&host), port));
        let under = format!("{around}.{host}");
        prop_assert!(!exact.matches(&parsed(&under), port));
        prop_assert!(below.matches(&parsed(&under), port));
        for other in [
            format!("{around}{host}"),
            format!("{host}x{around}"),
            format!("{host}.{around}.evil"),
            format!("{around}.{host}.evil"),
        ] {
            prop_assert!(!exact.matches(&parsed(&other), port), "{}", other);
        }
        for other in [format!("{around}{host}"), format!("{under}.evil"), format!("{under}x")] {
            // `xa.b` is below `b`, but the pattern speaks of `*.a.b`.
            prop_assert!(!below.matches(&parsed(&other), port), "{}", other);
        }
    }

    #[test]
    fn a_pattern_is_read_back(pattern in pattern()) {
        prop_assert_eq!(pattern.to_string().parse(), Ok(pattern));
    }

    #[test]
    fn any_text_is_a_pattern_or_an_error(text in ".{0,40}") {
        if let Err(error) = HostPattern::parse(&text) {
            prop_assert!(error.to_string().contains(&text.escape_debug().to_string()));
        }
    }
}

#[test]
fn the_rule_that_decides_is_named() {
    let rules = rules(
        &["*.example.com", "a.com:443"],
        &["bad.example.com", "*:25"],
    );
    let cases = [
        ("api.example.com", 443, "allowed by *.example.com"),
        ("bad.example.com", 443, "denied by bad.example.com"),
        ("api.example.com", 25, "denied by *:25"),
        ("a.com", 443, "allowed by a.com:443"),
        ("a.com", 80, "unknown"),
        ("example.com", 443, "unknown"),
    ];
    for (host, port, expected) in cases {
        let told = match rules.evaluate(&parsed(host), port) {
            HostRuleVerdict::Allowed(pattern) => format!("allowed by {pattern}"),
            HostRuleVerdict::Denied(pattern) => format!("denied by {pattern}"),
            HostRuleVerdict::Unknown => "unknown".to_owned(),
        };
        assert_eq!(told, expected, "{host}:{port}");
    }
}
