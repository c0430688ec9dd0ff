//! `sandbox.offlineCommands`: what runs without network, what still asks, and when it is offered.

use std::sync::Arc;

use haft_contract::{
    ConfinementProfile, NetworkAccess, PermissionMode, RuleOffer, rule_offer::OfferKind,
};
use haft_permissions::{
    CallFacts, DecisionBehavior, DecisionReason, HookPermission, List, PathContext, PatternBases,
    Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope, confine, decide,
    sandbox::ExcludedCommand, suggest, suggest::command_rules,
};
use serde_json::json;

use crate::judged;

fn bases() -> PatternBases {
    PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    }
}

fn sandbox() -> SandboxSettings {
    SandboxSettings {
        whole: true,
        ..SandboxSettings::default()
    }
}

fn policy(mode: PermissionMode, sandbox: SandboxSettings, rules: &[(List, &str)]) -> Policy {
    let mut set = RuleSet::default();
    for (list, rule) in rules {
        let source = RuleSource::from_scope(SettingsScope::Session);
        set.add(*list, rule, source, &bases()).unwrap();
    }
    Policy {
        rules: Arc::new(set),
        sandbox: Arc::new(sandbox),
        ..Policy::for_directories(mode, &["/p".into()]).with_home(Some("/h".as_ref()))
    }
}

fn facts(line: &str) -> CallFacts {
    let setting = PathContext {
        cwd: "/p".into(),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    };
    judged::facts("Bash", &json!({ "command": line }), &setting)
}

const GO: [(List, &str); 2] = [
    (List::Allow, "OfflineCommand(go test *)"),
    (List::Allow, "OfflineCommand(go build *)"),
];

/// The behavior, and whether the reason is an entry.
fn outcome(policy: &Policy, line: &str) -> (DecisionBehavior, bool) {
    let decision = decide(policy, &facts(line));
    let is_offline = matches!(decision.reason, DecisionReason::Offline(_));
    (decision.behavior, is_offline)
}

fn first_offer(policy: &Policy, line: &str) -> RuleOffer {
    let offers = suggest(policy, &facts(line), &bases());
    offers.into_iter().next().unwrap_or_default()
}

#[test]
fn f12_similar_commands_run_without_network_and_others_ask() {
    let policy = policy(PermissionMode::Default, sandbox(), &GO);
    for line in [
        "go test ./...",
        "go build -o bin ./cmd",
        "cd sub && go test ./... 2>&1 | tail -5",
        "go test ./... && git status && ls",
        "go build ./... && go test ./...",
    ] {
        assert_eq!(
            outcome(&policy, line),
            (DecisionBehavior::Allow, true),
            "{line}"
        );
        let confined = confine(&policy, &facts(line)).unwrap();
        assert_eq!(confined.profile, ConfinementProfile::Workspace, "{line}");
        let NetworkAccess::Only(hosts) = &confined.network else {
            panic!("{line}: {:?}", confined.network);
        };
        assert!(hosts.lists().closed && hosts.lists().allowed.is_empty());
        assert!(confined.required, "{line}");
    }
    for line in [
        "go get x",
        "go test ./... && go get x",
        "go test -exec ./x ./...",
        "go test ./... > ../out",
        "go test ./... > $OUT",
        "go vet ./...",
        "FOO=1 go test ./...",
        "sudo go test ./...",
        "sh -c 'go test ./...'",
        "cat ~/.ssh/id_rsa && go test ./...",
    ] {
        assert_eq!(outcome(&policy, line).0, DecisionBehavior::Ask, "{line}");
    }
}

#[test]
fn an_entry_has_no_effect_without_the_whole_sandbox() {
    let weak = [
        SandboxSettings {
            enabled: Some(true),
            ..sandbox()
        },
        SandboxSettings {
            unconfined: true,
            ..sandbox()
        },
        SandboxSettings {
            unwitnessed: true,
            ..sandbox()
        },
        SandboxSettings {
            files_open: true,
            ..sandbox()
        },
        SandboxSettings {
            enabled: Some(false),
            ..sandbox()
        },
        SandboxSettings {
            excluded: vec![ExcludedCommand::new("go test *")],
            ..sandbox()
        },
    ];
    for (at, sandbox) in weak.into_iter().enumerate() {
        let policy = policy(PermissionMode::Default, sandbox, &GO);
        let (behavior, _) = outcome(&policy, "go test ./...");
        assert_eq!(behavior, DecisionBehavior::Ask, "{at}");
        let first = first_offer(&policy, "go vet ./...");
        if at < 5 {
            assert_eq!(first.kind(), OfferKind::AllowRules, "{at}: {first:?}");
        }
    }
}

#[test]
fn deny_rules_ask_rules_and_modes_win_over_an_entry() {
    let with = |mode, list, rule| {
        let rules = [GO[0], GO[1], (list, rule)];
        outcome(&policy(mode, sandbox(), &rules), "go test ./...")
    };
    let default = PermissionMode::Default;
    for (list, rule, expected) in [
        (List::Deny, "Bash(go *)", DecisionBehavior::Deny),
        (List::Deny, "Bash", DecisionBehavior::Deny),
        (List::Ask, "Bash(go test *)", DecisionBehavior::Ask),
        (List::Ask, "Bash", DecisionBehavior::Ask),
    ] {
        assert_eq!(with(default, list, rule).0, expected, "{rule}");
    }
    let plan = with(PermissionMode::Plan, List::Allow, "Bash(x)");
    assert_eq!(plan.0, DecisionBehavior::Ask);
    // A rule for commands opens the network.
    assert_eq!(
        with(default, List::Allow, "Bash(go test *)"),
        (DecisionBehavior::Allow, false)
    );
    // So does a hook.
    let policy = policy(default, sandbox(), &GO);
    let mut facts = facts("go test ./...");
    facts.hook = HookPermission::Allow;
    let network = confine(&policy, &facts).unwrap().network;
    assert!(matches!(network, NetworkAccess::Anybody));
}

#[test]
fn an_entry_cannot_deny_or_ask_and_must_name_a_command() {
    for (list, rule) in [
        (List::Deny, "OfflineCommand(go test *)"),
        (List::Ask, "ReadDomain(github.com)"),
        (List::Allow, "OfflineCommand"),
        (List::Allow, "ReadDomain"),
    ] {
        let source = RuleSource::from_scope(SettingsScope::User);
        let added = RuleSet::default().add(list, rule, source, &bases());
        assert!(added.is_err(), "{rule}");
    }
}

#[test]
fn the_first_choice_about_a_runner_covers_its_toolchain() {
    let policy = policy(PermissionMode::Default, sandbox(), &[]);
    let first = first_offer(&policy, "cd web && go test ./... 2>&1 | tail -5");
    assert_eq!(
        first.rules,
        [
            "OfflineCommand(go test *)",
            "OfflineCommand(go build *)",
            "OfflineCommand(go vet *)",
            "OfflineCommand(gofmt *)",
            "OfflineCommand(golangci-lint run *)",
        ]
    );
    assert_eq!(first.asks_again, Vec::<String>::new());
    assert_eq!(command_rules(&first.rules)[0], "Bash(go test *)");
    let offers = suggest(&policy, &facts("go test ./..."), &bases());
    assert_eq!(offers[1].rules, ["Bash(go test *)"]);
    // Parts of another kind get their usual rules with it, or ask again.
    let mixed = first_offer(&policy, "npm run lint && git commit -m x");
    assert_eq!(mixed.kind(), OfferKind::Offline);
    assert!(
        mixed.rules.contains(&"Bash(git commit *)".to_owned()),
        "{mixed:?}"
    );
    let open = first_offer(&policy, "go test ./... && python3 -c 1");
    assert_eq!(open.asks_again, ["python3 -c 1"]);
    for other in ["go get x", "git commit -m x", "bd show 1"] {
        assert_eq!(
            first_offer(&policy, other).kind(),
            OfferKind::AllowRules,
            "{other}"
        );
    }
}

/// What the choice permits runs offline, for one command of each toolchain.
#[test]
fn the_choice_permits_what_it_lists_and_nothing_with_network() {
    let asking = policy(PermissionMode::Default, sandbox(), &[]);
    for line in [
        "go vet ./...",
        "npm test",
        "bun run lint:fix",
        "pnpm typecheck",
        "cargo clippy --workspace",
        "pytest -q",
        "uv run mypy .",
        "flutter test",
        "mvn test",
        "./gradlew check",
        "dotnet test",
        "cmake --build build",
        "make test",
        "mise run lint",
        "just ci",
    ] {
        let offer = first_offer(&asking, line);
        assert_eq!(offer.kind(), OfferKind::Offline, "{line}");
        let rules: Vec<(List, &str)> = offer
            .rules
            .iter()
            .map(|rule| (List::Allow, rule.as_str()))
            .collect();
        let policy = policy(PermissionMode::Default, sandbox(), &rules);
        for rule in &offer.rules {
            let words = rule
                .trim_start_matches("OfflineCommand(")
                .trim_end_matches(" *)");
            let write = if words == "gofmt" { " -w x.go" } else { "" };
            let line = words.replace('*', "x") + write;
            assert_eq!(
                outcome(&policy, &line),
                (DecisionBehavior::Allow, true),
                "{line}"
            );
            let network = confine(&policy, &facts(&line)).unwrap().network;
            assert!(matches!(network, NetworkAccess::Only(_)), "{line}");
        }
    }
}
