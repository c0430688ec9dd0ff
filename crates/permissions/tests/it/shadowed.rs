//! Rules that are reported as shadowed never change a decision.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_permissions::{
    List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope,
    decide,
    rule_audit::{AuditFacts, FindingKind, audit_rules},
};
use proptest::prelude::*;
use serde_json::json;

use crate::judged;

const COMMANDS: [&str; 22] = [
    "cargo test",
    "cargo test -p core",
    "cargo test -p core -- --nocapture",
    "cargo build --release",
    "make x",
    "make",
    "make SHELL=/bin/x y",
    "go test -exec x ./...",
    "git commit -m x",
    "git -C sub commit -m x",
    "git push origin main",
    "npm run test unit",
    "python3 x.py",
    "rm -rf build",
    "echo 'a b'",
    "touch a b",
    "touch ../a",
    "foo bar",
    "foo  bar baz",
    "timeout 5 foo bar",
    "A=1 foo bar",
    "sh -c 'foo bar'",
];

const PATTERNS: [&str; 14] = [
    "*",
    "cargo *",
    "cargo test *",
    "cargo t*",
    "make *",
    "make:*",
    "go test *",
    "git *",
    "git commit *",
    "foo *",
    "foo bar *",
    "* bar",
    "touch *",
    "rm -rf *",
];

/// The content of a rule: a pattern, or exactly a command.
fn content() -> impl Strategy<Value = String> {
    let pattern = prop::sample::select(&PATTERNS[..]).prop_map(str::to_owned);
    let command = prop::sample::select(&COMMANDS[..]).prop_map(str::to_owned);
    let prefix = command.clone().prop_map(|command| format!("{command} *"));
    prop_oneof![2 => pattern, 2 => command, 1 => prefix]
}

fn rules() -> impl Strategy<Value = Vec<(List, SettingsScope, String)>> {
    let list = prop::sample::select(vec![List::Allow, List::Allow, List::Ask, List::Deny]);
    let scopes = vec![
        SettingsScope::User,
        SettingsScope::Project,
        SettingsScope::Local,
    ];
    let rule = (list, prop::sample::select(scopes), content());
    prop::collection::vec(rule, 2..7)
}

fn line() -> impl Strategy<Value = String> {
    let command = || prop::sample::select(&COMMANDS[..]);
    let joined = prop::sample::select(vec![" && ", " | ", "; ", " > out.txt; ", "  "]);
    prop_oneof![
        2 => command().prop_map(str::to_owned),
        1 => (command(), joined, command())
            .prop_map(|(first, joined, second)| format!("{first}{joined}{second}")),
        1 => command().prop_map(|command| format!("cd sub && {command}")),
    ]
}

fn bases() -> PatternBases {
    PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    }
}

fn policy(rules: &RuleSet, mode: PermissionMode, is_confined: bool) -> Policy {
    Policy {
        rules: Arc::new(rules.clone()),
        sandbox: Arc::new(SandboxSettings {
            unconfined: !is_confined,
            ..SandboxSettings::default()
        }),
        ..Policy::for_directories(mode, &["/p".into()]).with_home(Some("/h".as_ref()))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_shadowed_rule_changes_no_decision_when_it_is_removed(
        texts in rules(),
        line in line(),
        is_confined in any::<bool>(),
    ) {
        let mut all = RuleSet::default();
        for (list, scope, text) in &texts {
            let source = RuleSource::from_scope(*scope);
            let _ = all.add(*list, &format!("Bash({text})"), source, &bases());
        }
        let facts = AuditFacts {
            tools: &[],
            has_program: &|_| true,
            recent_commands: None,
            cwd: "/p".into(),
            home: Some("/h".into()),
        };
        let findings = audit_rules(&all, &facts);
        let shadowed = findings.iter().filter(|one| one.kind == FindingKind::Shadowed);
        let place = PathContext {
            cwd: "/p".into(),
            home: Some("/h".into()),
            wrappers: Vec::new(),
        };
        let call = judged::facts("Bash", &json!({ "command": line }), &place);
        for finding in shadowed {
            let mut less = all.clone();
            less.retain(|rule| {
                rule.text != finding.rule || rule.list != finding.list || rule.source != finding.source
            });
            for mode in [
                PermissionMode::Default,
                PermissionMode::AcceptEdits,
                PermissionMode::Auto,
                PermissionMode::BypassPermissions,
            ] {
                let before = decide(&policy(&all, mode, is_confined), &call).behavior;
                let after = decide(&policy(&less, mode, is_confined), &call).behavior;
                prop_assert_eq!(before, after, "{:?} {} without {:?}", mode, line, finding);
            }
        }
    }
}
