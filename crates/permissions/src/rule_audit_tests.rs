use super::*;
use crate::{PatternBases, SettingsScope};

fn source(scope: SettingsScope) -> RuleSource {
    RuleSource::from_scope(scope)
}

fn rules(texts: &[(List, &str)]) -> RuleSet {
    let bases = PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    };
    let mut rules = RuleSet::default();
    for (list, text) in texts {
        rules
            .add(*list, text, source(SettingsScope::User), &bases)
            .unwrap();
    }
    rules
}

fn audit(rules: &RuleSet) -> Vec<RuleFinding> {
    audit_with(rules, None)
}

fn audit_with(rules: &RuleSet, recent: Option<&[String]>) -> Vec<RuleFinding> {
    let has_program = |name: &str| name != "no-such-program";
    audit_rules(
        rules,
        &AuditFacts {
            tools: &[],
            has_program: &has_program,
            recent_commands: recent,
            cwd: "/p".into(),
            home: Some("/h".into()),
        },
    )
}

fn kinds(texts: &[(List, &str)]) -> Vec<(String, &'static str)> {
    let findings = audit(&rules(texts)).into_iter();
    findings.map(|one| (one.rule, one.kind.name())).collect()
}

/// Vector R6.
#[test]
fn rules_are_shadowed_dead_and_risky() {
    let allow = |text| (List::Allow, text);
    let found = |text: &str, kind: &'static str| vec![(text.to_owned(), kind)];
    assert_eq!(
        kinds(&[
            allow("Bash(cargo test -p core)"),
            allow("Bash(cargo test *)")
        ]),
        found("Bash(cargo test -p core)", "shadowed")
    );
    assert_eq!(
        kinds(&[allow("Bash(cd x && make)")]),
        found("Bash(cd x && make)", "dead")
    );
    assert_eq!(
        kinds(&[allow("Bash(python3 *)")]),
        found("Bash(python3 *)", "risky")
    );
    let bearer = "Bash(curl -H \"Authorization: Bearer aaaabbbbcccc\" https://x.org)";
    let findings = audit(&rules(&[allow(bearer)]));
    assert!(!findings.is_empty());
    for finding in findings {
        assert_eq!(finding.kind, FindingKind::Risky);
        assert!(
            !format!("{finding:?}").contains("aaaabbbbcccc"),
            "{finding:?}"
        );
    }
}

#[test]
fn other_rules_without_effect_are_found() {
    use List::{Allow, Ask, Deny};
    type Case<'a> = (&'a [(List, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 12] = [
        (&[(Allow, "Bassh(x)")], &["dead"]),
        (&[(Allow, "Bash(no-such-program *)")], &["dead"]),
        (&[(Deny, "Bash(cd x && make *)")], &[]),
        (
            &[
                (Deny, "Bash(git push *)"),
                (Allow, "Bash(git push origin *)"),
            ],
            &["shadowed", "risky"],
        ),
        (
            &[(Ask, "Bash(make *)"), (Allow, "Bash(make x)")],
            &["shadowed"],
        ),
        (&[(Allow, "Bash(make *)"), (Deny, "Bash(make x)")], &[]),
        (&[(Allow, "Bash")], &["risky"]),
        (&[(Allow, "Bash(* install)")], &["risky"]),
        (&[(Allow, "Bash(ls*)")], &["risky"]),
        (&[(Allow, "Bash(python -m pytest *)")], &[]),
        (&[(Allow, "mcp__a"), (Allow, "mcp__a__b")], &["shadowed"]),
        (
            &[(Allow, "Bash(git *)"), (Allow, "Bash(git commit -m x)")],
            &[],
        ),
    ];
    for (texts, expected) in cases {
        let found: Vec<&str> = kinds(texts).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(found, expected, "{texts:?}");
    }
}

#[test]
fn rules_of_one_family_are_merged_per_file() {
    let texts: Vec<String> = (0..14)
        .map(|at| format!("Bash(cargo test case_{at})"))
        .collect();
    let all: Vec<(List, &str)> = texts
        .iter()
        .map(|text| (List::Allow, text.as_str()))
        .collect();
    let findings = audit(&rules(&all));
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.kind, FindingKind::Mergeable);
    assert_eq!(finding.reason, "14 rules can be one: Bash(cargo test *)");
    let fix = finding.fix.as_ref().unwrap();
    assert_eq!(fix.removed.len(), 14);
    assert_eq!(fix.added.as_deref(), Some("Bash(cargo test *)"));
}

#[test]
fn rules_that_no_recent_command_matches_are_dead() {
    let all = rules(&[
        (List::Allow, "Bash(foo *)"),
        (List::Allow, "Bash(bar *)"),
        (List::Deny, "Bash(baz *)"),
    ]);
    let recent = ["cd x && foo  1 | tail".to_owned()];
    let findings = audit_with(&all, Some(&recent));
    let found: Vec<&str> = findings.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(found, ["Bash(bar *)"]);
    assert_eq!(findings[0].fix, None);
}
