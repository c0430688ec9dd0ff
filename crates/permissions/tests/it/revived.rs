//! What a call was permitted says the same after it was recorded, read and given its rules again.

use std::{fs, path::Path, sync::Arc};

use haft_contract::{
    Confinement, ControlAccess, ControlAction, HiddenFilter, HostVerdict, NetworkAccess,
    PermissionMode,
};
use haft_permissions::{
    List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope,
    confine, control_names, restore_hidden, restore_rules, rules::RuleClass, sandbox::SettingsHost,
};
use serde_json::json;

use crate::judged::facts;

fn rules(root: &Path) -> RuleSet {
    let bases = PatternBases {
        cwd: root.into(),
        home: root.join("home"),
        slash: root.into(),
    };
    let mut rules = RuleSet::default();
    for (list, text) in [
        (List::Deny, "Read(secret/**)"),
        (List::Deny, "Read(~/*.key)"),
        (List::Deny, "Read(//etc/pass*)"),
        (List::Deny, "Edit(/docs/*.md)"),
        (List::Allow, "WebFetch(domain:*.example.com)"),
        (List::Ask, "WebFetch(domain:ask.example.com)"),
        (List::Deny, "WebFetch(domain:bad.example.com)"),
    ] {
        let added = rules.add(
            list,
            text,
            RuleSource::from_scope(SettingsScope::User),
            &bases,
        );
        assert_eq!(added, Ok(()), "{text}");
    }
    rules
}

fn written_and_read<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

#[test]
fn hidden_files_are_the_same() {
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    let rules = Arc::new(rules(&root));
    let all = [
        rules.hidden_by_classes(&[RuleClass::Reads]),
        rules.hidden_by_classes(&[RuleClass::Reads, RuleClass::Edits]),
        control_names(&[], None),
        rules
            .hidden_by_classes(&[RuleClass::Edits])
            .union(&control_names(&[], None)),
        HiddenFilter::default(),
    ];
    let paths = [
        "secret/a",
        "deep/secret/b/c",
        "secret",
        "home/x.key",
        "home/deep/x.key",
        "x.key",
        "docs/a.md",
        "docs/deep/a.md",
        ".git/config",
        ".claude/worktrees/w/a.rs",
        ".envrc",
        "src/main.rs",
    ];
    let mut hidden = 0;
    for before in all {
        let after: HiddenFilter = written_and_read(&before);
        let after = restore_hidden(after.files());
        assert_eq!(after.files(), before.files());
        assert_eq!(after.is_empty(), before.is_empty());
        let absolute = [Path::new("/etc/passwd"), Path::new("/etc/hosts")];
        let paths = paths.iter().map(|path| root.join(path));
        for path in paths.chain(absolute.map(Path::to_path_buf)) {
            assert_eq!(after.hides(&path), before.hides(&path), "{path:?}");
            hidden += usize::from(after.hides(&path));
        }
    }
    assert!(hidden > 10, "{hidden}");
}

#[test]
fn a_confinement_is_the_same() {
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    for folder in ["home", "docs", ".git/hooks", "locked"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let host = |text: &str| SettingsHost::new(text).unwrap();
    let sandbox = SandboxSettings {
        enabled: Some(true),
        available: true,
        lets_through: true,
        allowed_hosts: vec![host("one.org:8443"), host("[::1]:3000")],
        denied_hosts: vec![host("two.example.com")],
        env: Arc::new([("A".to_owned(), "b".to_owned())].into()),
        withheld: vec!["TOKEN".to_owned()],
        ..SandboxSettings::default()
    };
    let policy = Policy {
        rules: Arc::new(rules(&root)),
        sandbox: Arc::new(sandbox),
        ..Policy::for_directories(PermissionMode::Default, std::slice::from_ref(&root))
            .with_home(Some(&root.join("home")))
    };
    let setting = PathContext {
        cwd: root.clone(),
        home: Some(root.join("home")),
        wrappers: Vec::new(),
    };
    let line = json!({"command": "touch out.txt .envrc && make"});
    let mut before = confine(&policy, &facts("Bash", &line, &setting)).unwrap();
    before.control = before.control.except(vec![root.join(".vscode")]);
    let read: Confinement = written_and_read(&before);
    let told = |confinement: &Confinement| serde_json::to_value(confinement).unwrap();
    assert_eq!(told(&read), told(&before));

    // Without its rules it permits nothing.
    let plain = root.join("src/main.rs");
    let make = |confinement: &Confinement, path: &Path| {
        confinement.control.permits(&ControlAccess {
            path,
            action: ControlAction::MakeFile,
            settings: None,
            new_directory: None,
        })
    };
    assert!(!make(&read, &plain));
    let mut after = read;
    restore_rules(&mut after);
    assert_eq!(told(&after), told(&before));
    assert_eq!(after.control.names(), before.control.names());
    let mut permitted = 0;
    for path in [
        "src/main.rs",
        ".envrc",
        ".npmrc",
        "deep/.envrc",
        "docs/a.md",
        "docs/a.txt",
        ".vscode/tasks.json",
        ".git/hooks/pre-commit",
        ".git/hooks/x.sample",
        ".git/index",
        "HEAD",
    ] {
        let path = root.join(path);
        assert_eq!(make(&after, &path), make(&before, &path), "{path:?}");
        let planted = |one: &Confinement| one.control.is_control_file(&path);
        assert_eq!(planted(&after), planted(&before), "{path:?}");
        permitted += usize::from(make(&after, &path));
    }
    assert!((3..9).contains(&permitted), "{permitted}");
    let (NetworkAccess::ByRule(old), NetworkAccess::ByRule(new)) = (before.network, after.network)
    else {
        panic!("hosts are judged by rule");
    };
    let mut verdicts = Vec::new();
    for (name, port) in [
        ("a.example.com", 443),
        ("ask.example.com", 443),
        ("bad.example.com", 443),
        ("two.example.com", 443),
        ("one.org", 8443),
        ("one.org", 443),
        ("::1", 3000),
        ("other.org", 443),
    ] {
        assert_eq!(new.evaluate(name, port), old.evaluate(name, port), "{name}");
        verdicts.push(new.evaluate(name, port));
    }
    for verdict in [HostVerdict::Allowed, HostVerdict::Denied, HostVerdict::Ask] {
        assert!(verdicts.contains(&verdict), "{verdicts:?}");
    }
}
