//! Which hosts a command may reach.

use haft_contract::HostVerdict;

use super::*;

fn passage(confinement: &Confinement, host: &str) -> HostVerdict {
    match &confinement.network {
        NetworkAccess::ByRule(hosts) => hosts.evaluate(host, 443),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn hosts_come_from_settings_and_rules() {
    let settings = json!({
        "sandbox": {
            "enabled": true,
            "network": {
                "allowedDomains": ["*.example.com", "one.org:22"],
                "deniedDomains": ["bad.example.com"],
            },
        },
        "permissions": {
            "allow": ["WebFetch(domain:docs.rs)", "WebFetch(domain:both.org)"],
            "deny": ["WebFetch(domain:evil.example.com)"],
            "ask": ["WebFetch(domain:both.org)"],
        },
    });
    let machine = Machine::new([(USER, settings.to_string().as_str())]);
    let mut session = Session::of_settings(machine, true).await;
    let confinement = session.run("make").await;
    for (host, expected) in [
        ("a.example.com", HostVerdict::Allowed),
        ("docs.rs", HostVerdict::Allowed),
        ("bad.example.com", HostVerdict::Denied),
        ("evil.example.com", HostVerdict::Denied),
        ("both.org", HostVerdict::Ask),
        ("one.org", HostVerdict::Ask),
        ("other.org", HostVerdict::Ask),
    ] {
        assert_eq!(passage(&confinement, host), expected, "{host}");
    }
}

#[tokio::test]
async fn the_administrator_may_be_the_only_one_to_name_hosts() {
    let managed = json!({"sandbox": {"network": {
        "allowManagedDomainsOnly": true, "allowedDomains": ["good.org"],
    }}});
    let user = json!({
        "sandbox": {"enabled": true, "network": {"allowedDomains": ["mine.org"]}},
        "permissions": {"allow": ["WebFetch(domain:docs.rs)"]},
    });
    let (managed, user) = (managed.to_string(), user.to_string());
    let machine = Machine::new([
        (crate::machine::MANAGED, managed.as_str()),
        (USER, user.as_str()),
    ]);
    let mut session = Session::of_settings(machine, true).await;
    let confinement = session.run("make").await;
    for (host, expected) in [
        ("good.org", HostVerdict::Allowed),
        ("mine.org", HostVerdict::Denied),
        ("docs.rs", HostVerdict::Denied),
        ("other.org", HostVerdict::Denied),
    ] {
        assert_eq!(passage(&confinement, host), expected, "{host}");
    }
}

#[tokio::test]
async fn what_reads_from_a_service_is_asked_about_and_runs_with_that_reach_alone() {
    let mut session = Session::new(Machine::new([]), Setup::default()).await;
    let confinement = session.run("gh pr list").await;
    assert_eq!(session.asked().len(), 1);
    assert_eq!(confinement.profile, ConfinementProfile::ReadOnly);
    assert!(matches!(confinement.network, NetworkAccess::Anybody));
    assert!(confinement.writable.is_empty() && confinement.caches.is_empty());
    // What needs no service has no network either.
    let confinement = session.run("gh --version").await;
    assert!(matches!(confinement.network, NetworkAccess::Nobody));
    // A rule is as good as an answer.
    let allow = r#"{"permissions": {"allow": ["Bash(kubectl get *)"]}}"#;
    let mut session = Session::new(Machine::new([(USER, allow)]), Setup::default()).await;
    let confinement = session.run("kubectl get pods | head").await;
    assert_eq!(session.asked().len(), 0);
    assert_eq!(confinement.profile, ConfinementProfile::ReadOnly);
    assert!(matches!(confinement.network, NetworkAccess::Anybody));
}
