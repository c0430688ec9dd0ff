//! Lines that set a variable and use it.

use haft_contract::PermissionMode;
use haft_permissions::{
    DecisionBehavior, List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SettingsScope,
    decide,
};
use proptest::prelude::*;
use serde_json::json;

use crate::judged;

fn policy(mode: PermissionMode, rules: &[(List, &str)]) -> Policy {
    let bases = PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    };
    let mut set = RuleSet::default();
    for (list, text) in rules {
        let source = RuleSource::from_scope(SettingsScope::User);
        set.add(*list, text, source, &bases).unwrap();
    }
    Policy {
        home: Some("/h".into()),
        rules: set.into(),
        ..Policy::new(mode, vec!["/p".into()])
    }
}

fn behavior(policy: &Policy, line: &str) -> DecisionBehavior {
    let place = PathContext {
        cwd: "/p".into(),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    };
    let facts = judged::facts("Bash", &json!({"command": line}), &place);
    decide(policy, &facts).behavior
}

#[test]
fn a_variable_of_the_line_needs_no_question() {
    let policy = policy(PermissionMode::Default, &[]);
    for line in ["F=a.txt; cat \"$F\"", "F=a.txt", "F=a.txt && wc -l $F"] {
        assert_eq!(behavior(&policy, line), DecisionBehavior::Allow, "{line}");
    }
    for line in [
        "PATH=.; ls",
        "GIT_DIR=x; git log",
        "HOME=/x; ls ~",
        "export F=1",
        "X=touch; $X p",
        "F=/etc/shadow; cat \"$F\"",
        "F=a.txt; echo x > \"$F\"",
    ] {
        assert_eq!(behavior(&policy, line), DecisionBehavior::Ask, "{line}");
    }
}

#[test]
fn a_variable_that_the_settings_pass_asks() {
    let mut policy = policy(PermissionMode::Default, &[]);
    let sandbox = std::sync::Arc::make_mut(&mut policy.sandbox);
    sandbox.env = std::sync::Arc::new([("F".to_owned(), "1".to_owned())].into());
    assert_eq!(behavior(&policy, "F=a.txt"), DecisionBehavior::Ask);
    assert_eq!(behavior(&policy, "G=a.txt"), DecisionBehavior::Allow);
}

#[test]
fn the_environment_is_listed_and_a_named_secret_asks() {
    let mut policy = policy(PermissionMode::Default, &[]);
    let sandbox = std::sync::Arc::make_mut(&mut policy.sandbox);
    sandbox.env = std::sync::Arc::new([("API_KEY".to_owned(), "k-123456789".to_owned())].into());
    for line in ["env", "printenv", "printenv PATH", "set", "declare -p"] {
        assert_eq!(behavior(&policy, line), DecisionBehavior::Allow, "{line}");
    }
    assert_eq!(behavior(&policy, "printenv API_KEY"), DecisionBehavior::Ask);
}

#[test]
fn a_rule_that_denies_a_path_sees_the_value() {
    let rules = [
        (List::Deny, "Read(private/**)"),
        (List::Deny, "Bash(cat b.txt)"),
        (List::Deny, "Edit(out)"),
    ];
    for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
        let policy = policy(mode, &rules);
        for line in [
            "F=private/k; cat \"$F\"",
            "D=private; cat $D/k",
            "F=b.txt; cat $F",
            "F=out; echo x > \"$F\"",
            "F=private/k; timeout 5 cat \"$F\"",
        ] {
            assert_eq!(behavior(&policy, line), DecisionBehavior::Deny, "{line}");
        }
    }
}

const TEMPLATES: [&str; 20] = [
    "{} a.txt",
    "env {} a.txt",
    "cat {}",
    "cat -- {}",
    "rm {}",
    "rm -rf {}",
    "rm -rf {}/*",
    "echo x > {}",
    "wc -l < {}",
    "cp a.txt {}",
    "cp {} out",
    "timeout 5 cat {}",
    "sh -c {}",
    "find {} -name x",
    "find . {}",
    "git log {}",
    "git push origin {}",
    "cd {} && ls",
    "sort a.txt {}",
    "[[ -f {} ]] && cat {}",
];

const VALUES: [&str; 18] = [
    "rm",
    "cat",
    "a.txt",
    "b.txt",
    "out",
    "/",
    "/p",
    "/h",
    "..",
    ".env",
    "private/k",
    "/etc/passwd",
    "/h/x",
    "-delete",
    "--output=p",
    "-o",
    ".git/config",
    "src/a.rs",
];

const RULES: [(List, &str); 14] = [
    (List::Deny, "Bash(rm *)"),
    (List::Deny, "Bash(cat b.txt)"),
    (List::Deny, "Bash(cat .env)"),
    (List::Deny, "Bash(git push origin out)"),
    (List::Deny, "Read(.env)"),
    (List::Deny, "Read(private/**)"),
    (List::Deny, "Read(//etc/**)"),
    (List::Deny, "Edit(out)"),
    (List::Ask, "Bash(cat *)"),
    (List::Ask, "Bash(find * -delete)"),
    (List::Allow, "Bash(cat *)"),
    (List::Allow, "Bash(rm *)"),
    (List::Allow, "Bash(sort *)"),
    (List::Allow, "Edit(out)"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A line with a variable is decided like the line with the value written out, or more
    /// strictly.
    #[test]
    fn a_variable_never_loosens_a_decision(
        template in prop::sample::select(&TEMPLATES[..]),
        value in prop::sample::select(&VALUES[..]),
        quoted in any::<bool>(),
        rules in prop::collection::vec(prop::sample::select(&RULES[..]), 0..5),
        mode in prop::sample::select(vec![
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
            PermissionMode::Auto,
            PermissionMode::BypassPermissions,
        ]),
    ) {
        let policy = policy(mode, &rules);
        let used = if quoted { "\"$F\"" } else { "$F" };
        let variable = format!("F={value}; {}", template.replace("{}", used));
        let literal = behavior(&policy, &template.replace("{}", value));
        let decided = behavior(&policy, &variable);
        prop_assert!(decided >= literal, "{variable}: {decided:?}, written out {literal:?}");
    }
}
