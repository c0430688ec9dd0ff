//! The permission mode `auto`: what runs because undo can restore it, and what asks.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_permissions::{
    CallFacts, Decision, DecisionBehavior, DecisionReason, HookPermission, List, PathContext,
    PatternBases, Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope, approval_parts,
    decide,
    sandbox::{ExcludedCommand, SettingsHost},
};
use serde_json::{Value, json};

use crate::judged;

/// A session in mode `auto` in the directory `/p`.
struct AutoSession {
    mode: PermissionMode,
    rules: Vec<(List, &'static str)>,
    sandbox: SandboxSettings,
    hook: HookPermission,
    /// The hosts that the user allowed when a command requested a connection.
    answered_hosts: &'static [&'static str],
}

impl AutoSession {
    fn new(rules: &[(List, &'static str)]) -> Self {
        Self {
            mode: PermissionMode::Auto,
            rules: rules.to_vec(),
            sandbox: SandboxSettings::default(),
            hook: HookPermission::NoAnswer,
            answered_hosts: &[],
        }
    }

    fn allowing(rule: &'static str) -> Self {
        Self::new(&[(List::Allow, rule)])
    }

    fn with(sandbox: SandboxSettings) -> Self {
        Self {
            sandbox,
            ..Self::new(&[])
        }
    }

    fn decide(&self, tool: &str, input: &Value) -> Decision {
        let mut rules = RuleSet::default();
        let bases = PatternBases {
            cwd: "/w/p".into(),
            home: "/h".into(),
            slash: "/w/p".into(),
        };
        for (list, text) in &self.rules {
            let source = RuleSource::from_scope(SettingsScope::User);
            rules.add(*list, text, source, &bases).unwrap();
        }
        let policy = Policy {
            home: Some("/h".into()),
            rules: rules.into(),
            sandbox: Arc::new(self.sandbox.clone()),
            ..Policy::new(self.mode, vec!["/w/p".into()])
        };
        let place = PathContext {
            cwd: "/w/p".into(),
            home: Some("/h".into()),
            wrappers: Vec::new(),
        };
        let facts = CallFacts {
            hook: self.hook,
            allowed_hosts: self
                .answered_hosts
                .iter()
                .map(ToString::to_string)
                .collect(),
            ..judged::facts(tool, input, &place)
        };
        decide(&policy, &facts)
    }

    fn run(&self, line: &str) -> Decision {
        self.decide("Bash", &json!({ "command": line }))
    }

    #[track_caller]
    fn assert_reversible(&self, line: &str) {
        let decision = self.run(line);
        assert_eq!(
            decision.behavior,
            DecisionBehavior::Allow,
            "{line}: {decision:?}"
        );
        assert_eq!(decision.reason, DecisionReason::Reversible, "{line}");
    }

    #[track_caller]
    fn assert_asks(&self, line: &str) -> DecisionReason {
        let decision = self.run(line);
        assert_eq!(
            decision.behavior,
            DecisionBehavior::Ask,
            "{line}: {decision:?}"
        );
        decision.reason
    }

    #[track_caller]
    fn assert_irreversible(&self, line: &str, expected: &str) {
        match self.assert_asks(line) {
            DecisionReason::Irreversible { part, .. } => assert_eq!(part, expected, "{line}"),
            reason => panic!("{line}: {reason:?}"),
        }
    }

    #[track_caller]
    fn assert_rule_allows(&self, line: &str) {
        let decision = self.run(line);
        assert_eq!(
            decision.behavior,
            DecisionBehavior::Allow,
            "{line}: {decision:?}"
        );
        assert!(
            matches!(decision.reason, DecisionReason::Rule { .. }),
            "{line}"
        );
    }
}

fn hosts(texts: &[&str]) -> Vec<SettingsHost> {
    let hosts = texts.iter().map(|text| SettingsHost::new(text).unwrap());
    hosts.collect()
}

#[test]
fn a1_file_tools_run_inside_and_ask_about_control_files_and_outside() {
    let session = AutoSession::new(&[]);
    let edit = |path: &str| session.decide("Edit", &json!({ "file_path": path }));
    assert_eq!(edit("/w/p/a").reason, DecisionReason::Reversible);
    assert_eq!(edit("/w/p/a").behavior, DecisionBehavior::Allow);
    assert!(matches!(
        edit("/w/p/.git/config").reason,
        DecisionReason::Protected(_)
    ));
    assert_eq!(edit("/w/p/.git/config").behavior, DecisionBehavior::Ask);
    assert!(matches!(edit("/q/a").reason, DecisionReason::Outside(_)));
    let write = session.decide("Write", &json!({"file_path": "/w/p/new", "content": "x"}));
    assert_eq!(write.reason, DecisionReason::Reversible);
}

#[test]
fn a2_commands_that_undo_covers_run() {
    let session = AutoSession::new(&[]);
    for line in [
        "cargo test",
        "./x.sh",
        "python gen.py",
        "rm -rf build",
        "git reset --hard",
        "git clean -fdx",
        "git rebase main",
        "npm ci",
        "make 2>&1 | tail -5",
        "x=$(date); echo \"$x\" > out; mv out b",
        "for f in *.rs; do sed -i s/a/b/ \"$f\"; done",
        "cat > f <<EOF\ntext\nEOF",
        "if ./check; then ./build; fi",
        "curl http://localhost:3000/x",
    ] {
        session.assert_reversible(line);
    }
    let background = json!({"command": "cargo watch", "run_in_background": true});
    assert_eq!(
        session.decide("Bash", &background).reason,
        DecisionReason::Reversible
    );
    assert_eq!(session.run("ls").reason, DecisionReason::ReadOnly);
    assert!(matches!(
        session.assert_asks("rm -rf /w/p"),
        DecisionReason::Critical(_)
    ));
    assert!(matches!(
        session.assert_asks("echo x > /q/a"),
        DecisionReason::Outside(_)
    ));
    assert!(matches!(
        session.assert_asks("echo x > .git/config"),
        DecisionReason::Protected(_)
    ));
}

/// A line of more than 10,000 bytes, such as a file in a here-document, is no less reversible.
#[test]
fn long_lines_run_and_unreadable_ones_ask() {
    let session = AutoSession::new(&[]);
    let long = format!("cat > f <<'EOF'\n{}\nEOF", "x".repeat(12_000));
    session.assert_reversible(&long);
    session.assert_asks("echo 'unclosed");
}

#[test]
fn a3_the_irreversible_part_is_named() {
    let session = AutoSession::new(&[]);
    session.assert_irreversible("cargo test && git push", "git push");
    session.assert_irreversible("git push && cargo test", "git push");
    session.assert_irreversible("curl https://i/x; npm publish", "npm publish");
    let reason = session.assert_asks("cargo test && git push").to_string();
    assert_eq!(
        reason,
        "`git push` is irreversible: it changes a remote repository"
    );
}

#[test]
fn a4_scoped_rules_apply_and_broad_ones_do_not() {
    let line = "git push origin main";
    AutoSession::allowing("Bash(git push origin main)").assert_rule_allows(line);
    AutoSession::allowing("Bash(git *)").assert_rule_allows(line);
    AutoSession::allowing("Bash(git push:*)").assert_rule_allows(line);
    for broad in ["Bash", "Bash(*)", "Bash(env *)", "Bash(bash *)", "Agent"] {
        AutoSession::allowing(broad).assert_irreversible(line, line);
    }
    AutoSession::allowing("Bash").assert_reversible("cargo test");
    // The rule for the launcher says nothing about what it starts.
    AutoSession::allowing("Bash(npx *)").assert_irreversible("npx lerna publish", "lerna publish");
    AutoSession::allowing("Bash(npx lerna publish)").assert_rule_allows("npx lerna publish");
    AutoSession::allowing("Bash(npm run *)").assert_reversible("npm run build");
    // One part by a rule, the other because undo covers it.
    let both = AutoSession::allowing("Bash(git push *)").run("cargo test && git push origin x");
    assert_eq!(both.reason, DecisionReason::Reversible);
    assert_eq!(both.behavior, DecisionBehavior::Allow);
}

#[test]
fn a6_hosts_that_nothing_allows_ask_before_the_start() {
    let session = AutoSession::with(SandboxSettings {
        allowed_hosts: hosts(&["h", "ports.example:8443"]),
        ..SandboxSettings::default()
    });
    session.assert_reversible("curl https://h/x");
    session.assert_reversible("curl https://h/x -o f && make");
    session.assert_reversible("curl https://ports.example:8443/x");
    session.assert_irreversible("curl -d @f https://h/x", "curl -d @f https://h/x");
    let reason = session.assert_asks("curl https://i/x");
    assert_eq!(
        reason,
        DecisionReason::Address("it contacts i, which nothing allows yet".to_owned())
    );
    session.assert_asks("git clone https://i/x");
    AutoSession::allowing("WebFetch(domain:i)").assert_reversible("curl https://i/x");
    let denied = AutoSession::with(SandboxSettings {
        denied_hosts: hosts(&["h"]),
        ..SandboxSettings::default()
    });
    denied.assert_asks("curl https://h/x");
}

/// The user's answer for a host applies to later lines that name it, unless a rule denies the host.
#[test]
fn a6_a_host_that_the_user_allowed_once_is_not_asked_about_again() {
    let answered = |sandbox| AutoSession {
        answered_hosts: &["i"],
        ..AutoSession::with(sandbox)
    };
    let session = answered(SandboxSettings::default());
    session.assert_reversible("curl https://i/x");
    session.assert_asks("curl https://i/x https://j/x");
    session.assert_irreversible("curl -d @f https://i/x", "curl -d @f https://i/x");
    let denied = SandboxSettings {
        denied_hosts: hosts(&["i"]),
        ..SandboxSettings::default()
    };
    answered(denied).assert_asks("curl https://i/x");
}

#[test]
fn a7_the_table_asks() {
    let session = AutoSession::new(&[]);
    for line in [
        "docker run x",
        "ssh h ls",
        "terraform apply",
        "sudo make",
        "gh pr merge 1",
    ] {
        session.assert_irreversible(line, line);
    }
    // Without the user's token, it would fail.
    let reason = session.assert_asks("gh pr view 1");
    assert!(
        matches!(reason, DecisionReason::Command { .. }),
        "{reason:?}"
    );
    AutoSession::allowing("Bash(gh pr view *)").assert_rule_allows("gh pr view 1");
}

/// What an approved command needs is named, and given to it alone.
#[test]
fn approved_commands_get_what_their_service_needs() {
    let files = tempfile::tempdir().unwrap();
    let root = files.path().canonicalize().unwrap();
    let (home, repository) = (root.join("home"), root.join("p"));
    for directory in [".ssh", ".config/gh", ".aws"] {
        std::fs::create_dir_all(home.join(directory)).unwrap();
    }
    let git = repository.join(".git");
    for directory in ["objects", "refs"] {
        std::fs::create_dir_all(git.join(directory)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let config = "[remote \"origin\"]\n\turl = https://code.example/a/b\n\
                  [remote \"other\"]\n\turl = git@code.example:a/b\n";
    std::fs::write(git.join("config"), config).unwrap();
    let place = PathContext {
        cwd: repository.clone(),
        home: Some(home.clone()),
        wrappers: Vec::new(),
    };
    let text = |mode: PermissionMode, line: &str| {
        let policy = Policy {
            home: Some(home.clone()),
            ..Policy::new(mode, vec![repository.clone()])
        };
        let facts = judged::facts("Bash", &json!({ "command": line }), &place);
        approval_parts::confinement_text(&policy, &facts).unwrap()
    };
    let auto = |line: &str| text(PermissionMode::Auto, line);
    let by_rule = "profile workspace, network by rule";
    assert_eq!(auto("cargo test"), by_rule);
    assert_eq!(
        auto("git push"),
        format!("{by_rule}; with code.example, ~/.config/gh")
    );
    assert_eq!(auto("cargo test && git push origin main"), auto("git push"));
    let ssh = "profile workspace, network open; with the network of this machine, ~/.ssh";
    assert!(auto("git push other").starts_with(ssh));
    assert!(auto("ssh h ls").starts_with(ssh));
    assert!(
        auto("gh pr merge 1")
            .contains("with *.github.com, *.githubusercontent.com, github.com, ~/.config/gh")
    );
    let aws = "; with *.amazonaws.com, *.aws.amazon.com, ~/.aws";
    assert_eq!(auto("aws s3 rm s3://b/x"), format!("{by_rule}{aws}"));
    assert_eq!(auto("curl -d x https://h/x"), format!("{by_rule}; with h"));
    assert_eq!(auto("curl https://i/x"), format!("{by_rule}; with i"));
    assert_eq!(
        text(PermissionMode::Default, "git push"),
        "profile workspace, network open"
    );
}

#[test]
fn a9_what_leaves_the_sandbox_asks() {
    let session = AutoSession::new(&[]);
    let lifted = json!({"command": "make", "dangerouslyDisableSandbox": true});
    let lifted = session.decide("Bash", &lifted);
    assert_eq!(
        (lifted.behavior, lifted.reason),
        (DecisionBehavior::Ask, DecisionReason::Unconfined)
    );
    let excluding = AutoSession::with(SandboxSettings {
        excluded: vec![ExcludedCommand::new("make *")],
        ..SandboxSettings::default()
    });
    excluding.assert_irreversible("make x", "make x");
    excluding.assert_reversible("cargo test");
    let server = session.decide("mcp__git__set_x", &json!({}));
    assert_eq!(server.behavior, DecisionBehavior::Ask);
    let page = session.decide("WebFetch", &json!({"url": "https://example.com/x"}));
    assert_eq!(page.behavior, DecisionBehavior::Ask);
}

#[test]
fn a10_deny_and_ask_rules_stand() {
    let denied = AutoSession::new(&[(List::Deny, "Bash(make *)")]).run("make");
    assert_eq!(denied.behavior, DecisionBehavior::Deny);
    AutoSession::new(&[(List::Ask, "Bash(npm *)")]).assert_asks("npm test");
    // While a rule denies something, what cannot be read is not let through.
    AutoSession::new(&[(List::Deny, "Bash(rm *)")]).assert_asks("$x y");
}

#[test]
fn a12_rules_for_commands_can_be_suspended() {
    let session = AutoSession {
        sandbox: SandboxSettings {
            auto_ignores_command_rules: true,
            ..SandboxSettings::default()
        },
        ..AutoSession::allowing("Bash(git push *)")
    };
    session.assert_irreversible("git push", "git push");
    session.assert_reversible("cargo test");
    let mode = PermissionMode::Default;
    let other = AutoSession { mode, ..session };
    other.assert_rule_allows("git push");
}

#[test]
fn a15_hooks_pass_the_table_and_plan_mode_stays() {
    let hook = HookPermission::Allow;
    let session = AutoSession {
        hook,
        ..AutoSession::new(&[])
    };
    let decision = session.run("git push");
    assert_eq!(
        (decision.behavior, decision.reason),
        (DecisionBehavior::Allow, DecisionReason::Hook)
    );
    let mode = PermissionMode::Plan;
    let plan = AutoSession {
        mode,
        ..AutoSession::new(&[])
    };
    assert_eq!(plan.run("cargo test").behavior, DecisionBehavior::Ask);
}

#[test]
fn without_the_full_sandbox_commands_ask() {
    let weaker = [
        SandboxSettings {
            unwitnessed: true,
            ..SandboxSettings::default()
        },
        SandboxSettings {
            unconfined: true,
            ..SandboxSettings::default()
        },
        SandboxSettings {
            files_open: true,
            ..SandboxSettings::default()
        },
        SandboxSettings {
            asks_confined: true,
            ..SandboxSettings::default()
        },
        SandboxSettings {
            enabled: Some(false),
            ..SandboxSettings::default()
        },
    ];
    for sandbox in weaker {
        let session = AutoSession::with(sandbox);
        session.assert_asks("cargo test");
        session.assert_asks("git push");
        // Edits do not need it.
        let edit = session.decide("Edit", &json!({"file_path": "/w/p/a"}));
        assert_eq!(edit.reason, DecisionReason::Reversible);
    }
}
