//! Rules that are reported as shadowed never change a decision.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_permissions::{
    List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope,
    decide,
    rule_audit::{AuditFacts, FindingKind, audit_rules},
};
use haft_testkit::is_thorough;
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

/// The content of a rule: a command, its beginning with a star, or a pattern.
fn content(command: &'static str) -> impl Strategy<Value = String> {
    let words: Vec<&str> = command.split(' ').collect();
    let beginning = move |count: usize| format!("{} *", words[..count.min(words.len())].join(" "));
    let pattern = prop::sample::select(&PATTERNS[..]).prop_map(str::to_owned);
    prop_oneof![
        2 => Just(command.to_owned()),
        3 => (1_usize..4).prop_map(beginning),
        1 => pattern,
    ]
}

type DrawnRule = (List, SettingsScope, String);

fn rules(command: &'static str) -> impl Strategy<Value = Vec<DrawnRule>> {
    let list = prop::sample::select(vec![
        List::Allow,
        List::Allow,
        List::Allow,
        List::Ask,
        List::Deny,
    ]);
    let scopes = vec![SettingsScope::User, SettingsScope::Local];
    let rule = (list, prop::sample::select(scopes), content(command));
    prop::collection::vec(rule, 2..6)
}

fn line(command: &'static str) -> impl Strategy<Value = String> {
    let other = prop::sample::select(&COMMANDS[..]);
    let joined = prop::sample::select(vec![" && ", " | ", "; ", " > out.txt; ", "  "]);
    prop_oneof![
        2 => Just(command.to_owned()),
        1 => (joined, other).prop_map(move |(joined, other)| format!("{command}{joined}{other}")),
        2 => Just(format!("cd sub && {command}")),
        1 => Just(format!("{command} more")),
        1 => Just(format!("{command} > out.txt")),
    ]
}

/// Rules about a command, and a line that contains it.
fn case() -> impl Strategy<Value = (Vec<DrawnRule>, String)> {
    let command = prop::sample::select(&COMMANDS[..]);
    command.prop_flat_map(|command| (rules(command), line(command)))
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
    #![proptest_config(ProptestConfig::with_cases(if is_thorough() { 2_000 } else { 200 }))]

    #[test]
    fn a_shadowed_rule_changes_no_decision_when_it_is_removed(
        (texts, line) in case(),
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
