//! `permissions.wrappers`: who may declare a wrapper, and what follows (vector F5).

use haft_engine::{permissions::PermissionSettings, settings::SettingsFlags};
use serde_json::json;

use crate::machine::{LOCAL, MANAGED, Machine, PROJECT, USER};

const RTK: &str = r#"{"permissions": {"wrappers": ["rtk"]}}"#;

fn verdict(machine: &Machine, line: &str) -> &'static str {
    machine.verdict("Bash", &json!({ "command": line }))
}

#[test]
fn the_user_and_the_administrator_declare_wrappers() {
    for file in [USER, MANAGED] {
        let machine = Machine::new([(file, RTK)]);
        assert_eq!(verdict(&machine, "rtk git status"), "allow", "{file}");
        assert_eq!(verdict(&machine, "rtk rm x"), "ask", "{file}");
        assert_eq!(machine.problems(&machine.load()), [""; 0]);
    }
    let both = r#"{"permissions": {"wrappers": ["rtk"], "deny": ["Bash(rm *)"]}}"#;
    let machine = Machine::new([(USER, both)]);
    assert_eq!(verdict(&machine, "rtk rm x"), "deny");
    let machine = Machine::new([]);
    let flags = SettingsFlags {
        settings: Some(RTK.to_owned()),
        ..SettingsFlags::default()
    };
    let mut settings = machine.load_with(&flags);
    assert_eq!(settings.rules(&[], &[]).wrappers(), ["rtk"]);
}

#[test]
fn a_file_of_the_workspace_declares_none() {
    for file in [PROJECT, LOCAL] {
        let machine = Machine::new([(file, RTK)]);
        machine.trust();
        assert_eq!(verdict(&machine, "rtk git status"), "ask", "{file}");
        let mut settings = machine.load();
        assert!(settings.rules(&[], &[]).wrappers().is_empty());
        let problems = machine.problems(&settings);
        let what = "only managed and user settings may declare wrappers; it is left out";
        assert!(
            problems.iter().any(|problem| problem.contains(what)),
            "{problems:?}"
        );
    }
}

#[test]
fn what_is_no_wrapper_is_reported() {
    let texts = r#"{"permissions": {"wrappers": ["sudo", 7, "./x", "rtk"]}}"#;
    let machine = Machine::new([(USER, texts)]);
    let mut settings = machine.load();
    assert_eq!(settings.rules(&[], &[]).wrappers(), ["rtk"]);
    assert_eq!(machine.problems(&settings).len(), 3);
    let machine = Machine::new([(USER, r#"{"permissions": {"wrappers": "rtk"}}"#)]);
    let mut settings = machine.load();
    assert!(settings.rules(&[], &[]).wrappers().is_empty());
    assert_eq!(machine.problems(&settings).len(), 1);
}

#[test]
fn with_the_administrators_rules_only_their_wrappers_apply() {
    let only = r#"{"allowManagedPermissionRulesOnly": true}"#;
    let machine = Machine::new([(MANAGED, only), (USER, RTK)]);
    assert!(machine.load().rules(&[], &[]).wrappers().is_empty());
}
