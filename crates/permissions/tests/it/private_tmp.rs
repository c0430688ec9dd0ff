//! Decisions about the session's own `/tmp`: vectors F9 and F10 of the specification.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::PermissionMode;
use haft_permissions::{
    List, PathContext, PatternBases, Policy, PrivateTmp, RuleSet, RuleSource, SandboxSettings,
    SettingsScope, confine, decide,
};
use serde_json::json;

use crate::judged;

/// A project, a directory in the place of the machine's `/tmp`, and the session's own folder.
struct PrivateProject {
    base: PathBuf,
    mode: PermissionMode,
    sandbox: SandboxSettings,
    deny: Option<String>,
    _folder: tempfile::TempDir,
}

impl PrivateProject {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        for name in ["p", "tmp/hostdir", "own/dir", "own/mounted", "outside"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in [
            "p/a",
            "tmp/host",
            "tmp/hostdir/x",
            "own/a",
            "own/dir/b",
            "outside/x",
        ] {
            fs::write(base.join(name), "x\n").unwrap();
        }
        symlink(base.join("outside/x"), base.join("own/out")).unwrap();
        symlink(base.join("tmp/a"), base.join("own/near")).unwrap();
        symlink("../../../../../../../../etc/hostname", base.join("own/up")).unwrap();
        let closed = fs::Permissions::from_mode(0o000);
        fs::set_permissions(base.join("own/mounted"), closed).unwrap();
        Self {
            base,
            mode: PermissionMode::Default,
            sandbox: SandboxSettings::default(),
            deny: None,
            _folder: folder,
        }
    }

    fn policy(&self) -> Policy {
        let root = self.base.join("p");
        let bases = PatternBases {
            cwd: root.clone(),
            home: "/h".into(),
            slash: root.clone(),
        };
        let mut rules = RuleSet::default();
        if let Some(text) = &self.deny {
            let source = RuleSource::from_scope(SettingsScope::User);
            rules.add(List::Deny, text, source, &bases).unwrap();
        }
        let policy = Policy {
            home: Some("/h".into()),
            rules: Arc::new(rules),
            sandbox: Arc::new(self.sandbox.clone()),
            ..Policy::new(self.mode, vec![root])
        };
        let own = self.base.join("own");
        let directories = vec![
            (self.base.join("tmp"), own.clone()),
            (PathBuf::from("/tmp"), own),
        ];
        let private = PrivateTmp::new(directories, &policy);
        Policy {
            private_tmp: Some(Arc::new(private)),
            ..policy
        }
    }

    fn decide(&self, line: &str) -> (&'static str, String) {
        let line = line.replace("T/", &format!("{}/", self.base.join("tmp").display()));
        let place = PathContext {
            cwd: self.base.join("p"),
            home: Some("/h".into()),
            wrappers: Vec::new(),
        };
        let mut facts = judged::facts("Bash", &json!({ "command": line }), &place);
        let policy = self.policy();
        facts.resolve_private_tmp(&policy);
        let decision = decide(&policy, &facts);
        let folder = self.base.join("own");
        if let Some(confinement) = confine(&policy, &facts) {
            let mut open = confinement.open.iter().chain(confinement.writable.iter());
            assert!(!open.any(|path| path.starts_with(&folder)), "{line}");
        }
        (decision.behavior.name(), decision.reason.to_string())
    }

    #[track_caller]
    fn assert_all(&self, behavior: &str, lines: &[&str]) {
        let decisions = lines.iter().map(|line| (line, self.decide(line)));
        let others: Vec<_> = decisions
            .filter(|(_, (found, _))| *found != behavior)
            .collect();
        assert!(others.is_empty(), "not {behavior}: {others:#?}");
    }
}

const WRITES: [&str; 12] = [
    "echo x > T/new && cat T/new",
    "echo x >> T/a",
    "echo x > T/host && cat T/host",
    "echo x | tee T/new T/dir/new",
    "cp a T/x",
    "mkdir -p T/q/r && touch T/q/r/s",
    "rm -r T/dir",
    "sed -i s/a/b/ T/a",
    "mv T/a T/c",
    "mktemp",
    "mktemp -d",
    "T=$(mktemp); sort a > \"$T\"; cat \"$T\"",
];

#[test]
fn f9_a_command_writes_and_reads_the_sessions_own_tmp_without_asking() {
    let project = PrivateProject::new();
    project.assert_all("allow", &WRITES);
    let reads = [
        "cat T/a",
        "ls T/dir",
        "cat T/near",
        "cd T/ && ls",
        "grep -r x T/dir",
    ];
    project.assert_all("allow", &reads);
    project.assert_all(
        "ask",
        &[
            // Files of the machine, which the command does not see without permission.
            "cat T/host",
            "cat T/hostdir/x",
            "echo x > T/hostdir/new",
            "cat T/mounted/x",
            "echo x > T/mounted/x",
            // Links of the session that lead elsewhere.
            "cat T/out",
            "echo x > T/out",
            "cp a T/out",
            // Programs.
            "T/a",
            "bash T/a",
            "source T/a",
            "PATH=T/:$PATH ls",
            // Other effects.
            "mv a T/x",
            "echo x > T/x; rm -r ../outside",
            "make > T/log",
            "T=$(mktemp -p ..); sort a > \"$T\"",
            "T=$(mktemp); rm -rf \"$T\"/*",
            "rm -rf T/../outside",
        ],
    );
    let (_, reason) = project.decide("cat T/out");
    assert!(reason.contains("outside/x"), "{reason}");
}

#[test]
fn in_plan_mode_and_without_a_sandbox_a_write_to_tmp_asks() {
    let mut project = PrivateProject::new();
    project.mode = PermissionMode::Plan;
    project.assert_all("ask", &WRITES);
    project.assert_all("allow", &["cat T/a"]);
    project.mode = PermissionMode::Default;
    project.sandbox.unconfined = true;
    project.assert_all("ask", &WRITES);
    project.sandbox.unconfined = false;
    project.sandbox.enabled = Some(false);
    project.assert_all("ask", &WRITES);
    project.sandbox = SandboxSettings {
        files_open: true,
        ..SandboxSettings::default()
    };
    project.assert_all("ask", &WRITES);
}

#[test]
fn a_rule_about_tmp_applies_to_the_sessions_own() {
    let mut project = PrivateProject::new();
    let tmp = project.base.join("tmp");
    project.deny = Some(format!("Read(/{}/dir/**)", tmp.display()));
    project.assert_all("deny", &["cat T/dir/b"]);
    project.deny = Some(format!("Edit(/{}/**)", tmp.display()));
    project.assert_all("deny", &["echo x > T/new", "cp a T/x"]);
    project.assert_all("allow", &["cat T/a"]);
}

#[test]
fn a_working_directory_and_what_contains_tmp_are_the_machines() {
    let project = PrivateProject::new();
    let mut policy = project.policy();
    let directories = vec![(project.base.join("tmp"), project.base.join("own"))];
    policy.roots.push(project.base.join("tmp/hostdir"));
    policy.private_tmp = Some(Arc::new(PrivateTmp::new(directories.clone(), &policy)));
    let place = PathContext {
        cwd: project.base.join("p"),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    };
    let real = |policy: &Policy, path: &Path| {
        let line = format!("cat {}", path.display());
        let mut facts = judged::facts("Bash", &json!({ "command": line }), &place);
        facts.resolve_private_tmp(policy);
        facts
            .shell
            .unwrap()
            .paths
            .iter()
            .flatten()
            .find_map(|one| match &one.place {
                haft_permissions::shell_facts::PathLocation::Known(places) => {
                    Some(places[0].real.clone())
                }
                haft_permissions::shell_facts::PathLocation::Below(_) => None,
            })
    };
    let (own, host) = (
        project.base.join("tmp/a"),
        project.base.join("tmp/hostdir/x"),
    );
    assert_eq!(real(&policy, &own), Some(project.base.join("own/a")));
    assert_eq!(real(&policy, &host), Some(host.clone()));
    policy.roots.push(project.base.join("tmp"));
    policy.private_tmp = Some(Arc::new(PrivateTmp::new(directories, &policy)));
    assert_eq!(real(&policy, &own), Some(own.clone()));
}
