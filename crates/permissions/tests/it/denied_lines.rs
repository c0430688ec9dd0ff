//! The lines of `tests/corpus/denied.txt`, decided in bypassPermissions; its README has the format.

use std::fs;

use haft_contract::PermissionMode;
use haft_permissions::{
    List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope,
    decide, sandbox::ExcludedCommand,
};
use serde_json::json;

use crate::judged;

const DENIED: &str = include_str!("../corpus/denied.txt");

#[test]
fn deny_rules_hold_through_launchers_and_for_operands() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    for file in [".env", "src/a.rs", "other/a.rs", "sub/x"] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), "").unwrap();
    }
    let bases = PatternBases {
        cwd: root.clone(),
        home: "/nowhere/home".into(),
        slash: root.clone(),
    };
    let mut rules = RuleSet::default();
    for text in ["Bash(rm:*)", "Read(./.env)", "Edit(src/**)"] {
        let added = rules.add(
            List::Deny,
            text,
            RuleSource::from_scope(SettingsScope::User),
            &bases,
        );
        assert!(added.is_ok(), "{text}: {added:?}");
    }
    let place = PathContext {
        cwd: root.clone(),
        home: None,
        wrappers: Vec::new(),
    };
    let mut outcome = "";
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in DENIED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("##"))
    {
        if let Some(class) = line.strip_prefix("== ") {
            outcome = class.split_once(':').expect("an outcome").0;
            continue;
        }
        count += 1;
        let facts = judged::facts("Bash", &json!({ "command": line }), &place);
        let first = line.split(' ').next().unwrap_or_default();
        for excluded in [
            Vec::new(),
            vec![ExcludedCommand::new(&format!("{first}:*"))],
        ] {
            let sandbox = SandboxSettings {
                excluded,
                ..SandboxSettings::default()
            };
            let policy = Policy {
                rules: rules.clone().into(),
                sandbox: sandbox.into(),
                ..Policy::for_directories(
                    PermissionMode::BypassPermissions,
                    std::slice::from_ref(&root),
                )
            };
            let decided = decide(&policy, &facts).behavior.name();
            let is_right = match outcome {
                "held" => decided != "allow",
                outcome => decided == outcome,
            };
            if !is_right {
                wrong.push(format!("{outcome}, but {decided}: {line}"));
            }
        }
    }
    assert!(count > 300, "{count} lines");
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
