//! What must hold of decisions, whatever the rules and the call.

use std::sync::Arc;

use haft_contract::{ConfinementProfile, PermissionMode};
use haft_permissions::{
    CallFacts, DecisionBehavior, DecisionReason, HookPermission, List, PathContext, PatternBases,
    Policy, RuleSet, RuleSource, SandboxSettings, SettingsScope, decide, profile,
    sandbox::ExcludedCommand,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::judged;

const RULES: [&str; 26] = [
    "Bash",
    "Bash(rm *)",
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(npm run test:*)",
    "Bash(echo *)",
    "Bash(* x)",
    "Bash(env *)",
    "Bash(ls)",
    "Read",
    "Read(.env)",
    "Read(./private/**)",
    "Read(//etc/**)",
    "Read(~/x)",
    "Edit",
    "Edit(src/**)",
    "Edit(/out.txt)",
    "Edit(//p/.git/config)",
    "Write",
    "WebFetch",
    "WebFetch(domain:*.example.com)",
    "mcp__git",
    "mcp__git__get_*",
    "Agent(Explore)",
    "Skill(deploy *)",
    "Bash(run_in_background:true)",
];

const LINES: [&str; 38] = [
    "ls",
    "ls -la src && wc -l src/*.rs",
    "rm -rf x",
    "rm -rf /",
    "rm \"$D\"/*",
    "git status",
    "git push origin main",
    "git -C sub log",
    "git -c a=b log",
    "cd sub && git status",
    "echo $(rm x)",
    "echo a > out.txt",
    "echo a > ../y",
    "echo a | sh",
    "cat .env",
    "cat private/k",
    "cat $f",
    "cat /etc/passwd",
    "env make",
    "sudo rm x",
    "timeout 5 rm x",
    "find . -exec rm {} +",
    "find . -delete",
    "xargs -n1 foo",
    "sh -c 'rm x'",
    "eval \"$x\"",
    "$RUNNER ps",
    "LD_PRELOAD=x ls",
    "curl https://api.example.com/x",
    "sed -i s/a/b/ f",
    "mkdir out",
    "for f in a b; do cat $f; done",
    "echo 'unclosed",
    "npm run test unit",
    "ls | tee out.txt",
    "chmod +x src/a",
    "gofmt -w src",
    "cat > src/a <<EOF\n$x\nEOF",
];

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let path = prop::sample::select(vec![
        "/p/a",
        "/p/src/a.rs",
        "/p/.env",
        "/p/.git/config",
        "/p/private/k",
        "/etc/hosts",
        "/h/x",
        "/p2/a",
        "/p/../etc/hosts",
    ]);
    let url = prop::sample::select(vec![
        "https://api.example.com/a",
        "https://example.com",
        "https://u@example.com",
        "ftp://x",
        "",
    ]);
    prop_oneof![
        6 => (prop::sample::select(&LINES[..]), any::<bool>()).prop_map(|(line, background)| {
            ("Bash", json!({"command": line, "run_in_background": background}))
        }),
        2 => "\\PC{0,40}".prop_map(|line| ("Bash", json!({"command": line}))),
        2 => path.clone().prop_map(|path| ("Read", json!({"file_path": path}))),
        2 => path.clone().prop_map(|path| ("Edit", json!({"file_path": path}))),
        1 => path.clone().prop_map(|path| ("Write", json!({"file_path": path}))),
        1 => path.prop_map(|path| ("Grep", json!({"path": path, "pattern": "x"}))),
        1 => url.prop_map(|url| ("WebFetch", json!({"url": url}))),
        1 => Just(("mcp__git__get_x", json!({}))),
        1 => Just(("Agent", json!({"subagent_type": "Explore"}))),
        1 => Just(("Skill", json!({"skill": "deploy", "args": "x"}))),
        1 => Just(("AskUserQuestion", question())),
        1 => ("[A-Za-z_]{1,12}", "\\PC{0,12}").prop_map(|(_, text)| ("Unknown", json!({"x": text}))),
    ]
}

fn question() -> Value {
    let options = json!([{"label": "a", "description": "A"}, {"label": "b", "description": "B"}]);
    json!({"questions": [{"question": "Which?", "header": "Which", "options": options}]})
}

fn mode() -> impl Strategy<Value = PermissionMode> {
    prop::sample::select(vec![
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::Auto,
        PermissionMode::DontAsk,
        PermissionMode::BypassPermissions,
    ])
}

type Written = Vec<(List, &'static str, bool)>;

fn rules() -> impl Strategy<Value = Written> {
    let list = prop::sample::select(vec![List::Deny, List::Ask, List::Allow]);
    prop::collection::vec(
        (list, prop::sample::select(&RULES[..]), any::<bool>()),
        0..8,
    )
}

fn setting() -> PathContext {
    PathContext {
        cwd: "/p".into(),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    }
}

fn policy(mode: PermissionMode, written: &Written) -> Policy {
    let mut rules = RuleSet::default();
    for (list, text, users) in written {
        let scope = if *users {
            SettingsScope::User
        } else {
            SettingsScope::Project
        };
        let bases = PatternBases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: "/p".into(),
        };
        // Some rules stand in the wrong list, and are left out: that is fine.
        let _ = rules.add(*list, text, RuleSource::from_scope(scope), &bases);
    }
    Policy {
        home: Some("/h".into()),
        rules: rules.into(),
        ..Policy::new(mode, vec!["/p".into()])
    }
}

fn facts(call: &(&'static str, Value), hook: HookPermission) -> CallFacts {
    CallFacts {
        hook,
        ..judged::facts(call.0, &call.1, &setting())
    }
}

fn hook() -> impl Strategy<Value = HookPermission> {
    prop::sample::select(vec![
        HookPermission::NoAnswer,
        HookPermission::Allow,
        HookPermission::Ask,
    ])
}

fn sandbox() -> impl Strategy<Value = SandboxSettings> {
    let enabled = prop::option::of(any::<bool>());
    let excluded = prop::sample::select(vec!["make", "rm *", "git *", "ls"]);
    let flags = prop::array::uniform6(any::<bool>());
    (enabled, prop::option::of(excluded), flags).prop_map(|(enabled, excluded, flags)| {
        let [
            available,
            lets_through,
            may_be_lifted,
            files_open,
            asks_confined,
            unwitnessed,
        ] = flags;
        SandboxSettings {
            enabled,
            available,
            lets_through,
            may_be_lifted,
            files_open,
            asks_confined,
            unwitnessed,
            excluded: excluded.map(ExcludedCommand::new).into_iter().collect(),
            ..SandboxSettings::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// In plan mode nothing is let through that changes anything, whatever the rules say.
    #[test]
    fn plan_mode_lets_only_readers_through(
        written in rules(),
        call in call(),
        sandbox in sandbox(),
    ) {
        let facts = facts(&call, HookPermission::NoAnswer);
        let policy = Policy {
            sandbox: Arc::new(sandbox),
            plan: Some("/h/.claude/plans/s.md".into()),
            ..policy(PermissionMode::Plan, &written)
        };
        let decision = decide(&policy, &facts);
        let reads = facts.is_read_only();
        prop_assert!(decision.behavior != DecisionBehavior::Allow || reads, "{decision:?}");
    }

    /// A sandbox stands in for consent only where it holds, and what reads is held to it.
    #[test]
    fn only_what_is_confined_is_let_through_for_it(
        mode in mode(),
        written in rules(),
        call in call(),
        sandbox in sandbox(),
    ) {
        let facts = facts(&call, HookPermission::NoAnswer);
        let sandbox = Arc::new(sandbox);
        let policy = Policy { sandbox: Arc::clone(&sandbox), ..policy(mode, &written) };
        let decision = decide(&policy, &facts);
        let profile = profile(&policy, &facts).map(|(profile, _)| profile);
        prop_assert_eq!(profile.is_some(), facts.shell.is_some());
        if decision.reason == DecisionReason::Sandboxed {
            prop_assert_eq!(profile, Some(ConfinementProfile::Workspace));
            prop_assert!(sandbox.enabled == Some(true) && sandbox.available);
            prop_assert!(!sandbox.files_open && mode != PermissionMode::Plan);
        }
        if decision.reason == DecisionReason::Reversible && facts.shell.is_some() {
            prop_assert_eq!(profile, Some(ConfinementProfile::Workspace));
            prop_assert!(mode == PermissionMode::Auto && sandbox.enabled != Some(false));
            prop_assert!(!sandbox.files_open && !sandbox.asks_confined && !sandbox.unwitnessed);
        }
        if decision.reason == DecisionReason::ReadOnly && sandbox.excluded.is_empty() {
            prop_assert!(profile.is_none_or(|profile| profile == ConfinementProfile::ReadOnly));
        }
    }

    /// A wish to leave the sandbox is never granted by rules, modes or hooks.
    #[test]
    fn only_a_person_grants_a_wish_to_leave_the_sandbox(
        mode in mode(),
        written in rules(),
        call in call(),
        hook in hook(),
        sandbox in sandbox(),
    ) {
        let (tool, mut input) = call;
        let policy = Policy { sandbox: sandbox.into(), ..policy(mode, &written) };
        let before = profile(&policy, &facts(&(tool, input.clone()), hook));
        // No other tool has such a parameter.
        if tool == "Bash" {
            input["dangerouslyDisableSandbox"] = json!(true);
        }
        let wish = facts(&(tool, input), hook);
        let after = profile(&policy, &wish);
        if before != after {
            prop_assert_eq!(after.map(|(profile, _)| profile), Some(ConfinementProfile::Full));
            prop_assert!(decide(&policy, &wish).behavior >= DecisionBehavior::Ask);
        }
    }

    /// A deny rule that speaks of the call decides, whatever else is said.
    #[test]
    fn deny_dominates(mode in mode(), written in rules(), call in call(), hook in hook()) {
        let policy = policy(mode, &written);
        let facts = facts(&call, hook);
        let speaks = policy.rules.in_list(List::Deny).any(|rule| facts.matches_rule(rule));
        let decision = decide(&policy, &facts);
        if speaks {
            prop_assert_eq!(decision.behavior, DecisionBehavior::Deny);
        } else if decision.behavior == DecisionBehavior::Deny {
            prop_assert_eq!(mode, PermissionMode::DontAsk);
        }
    }

    /// One more deny rule makes no decision looser; nor does one more ask rule.
    #[test]
    fn more_rules_that_hold_up_never_loosen(
        mode in mode(),
        written in rules(),
        more in prop::sample::select(&RULES[..]),
        deny in any::<bool>(),
        call in call(),
        hook in hook(),
    ) {
        let facts = facts(&call, hook);
        let before = decide(&policy(mode, &written), &facts).behavior;
        let mut stricter = written;
        stricter.push((if deny { List::Deny } else { List::Ask }, more, true));
        let after = decide(&policy(mode, &stricter), &facts).behavior;
        prop_assert!(after >= before, "{before:?} became {after:?}");
    }

    /// The same for the mode `auto` in every sandbox: what it lets through for undo's sake, too.
    #[test]
    fn one_more_deny_rule_never_loosens_auto(
        written in rules(),
        more in prop::sample::select(&RULES[..]),
        call in call(),
        sandbox in sandbox(),
    ) {
        let facts = facts(&call, HookPermission::NoAnswer);
        let sandbox = Arc::new(sandbox);
        let decided = |written: &Written| {
            let policy = policy(PermissionMode::Auto, written);
            decide(&Policy { sandbox: Arc::clone(&sandbox), ..policy }, &facts).behavior
        };
        let before = decided(&written);
        let mut stricter = written.clone();
        stricter.push((List::Deny, more, true));
        prop_assert!(decided(&stricter) >= before);
    }

    /// Whatever is irreversible is asked about, unless a rule of some words allows it.
    #[test]
    fn auto_asks_about_everything_irreversible(call in call(), sandbox in sandbox()) {
        let facts = facts(&call, HookPermission::NoAnswer);
        let policy = Policy { sandbox: sandbox.into(), ..policy(PermissionMode::Auto, &Vec::new()) };
        let mut parts = facts.shell.iter().flat_map(|shell| &shell.analysis.parts);
        if parts.any(|part| part.irreversible_reason().is_some()) {
            prop_assert!(decide(&policy, &facts).behavior >= DecisionBehavior::Ask);
        }
    }

    /// One more allow rule makes no decision stricter.
    #[test]
    fn more_rules_that_allow_never_tighten(
        mode in mode(),
        written in rules(),
        more in prop::sample::select(&RULES[..]),
        call in call(),
    ) {
        let facts = facts(&call, HookPermission::NoAnswer);
        let before = decide(&policy(mode, &written), &facts).behavior;
        let mut looser = written;
        looser.push((List::Allow, more, true));
        let after = decide(&policy(mode, &looser), &facts).behavior;
        prop_assert!(after <= before, "{before:?} became {after:?}");
    }

    /// A child is permitted nothing that its parent is not.
    #[test]
    fn a_child_is_never_freer_than_its_parent(
        parent_mode in mode(),
        child_mode in mode(),
        parent in rules(),
        child in rules(),
        call in call(),
        hook in hook(),
    ) {
        let facts = facts(&call, hook);
        let parent = policy(parent_mode, &parent);
        let child = policy(child_mode, &child);
        let narrowed = decide(&parent, &facts).stricter(decide(&child, &facts));
        prop_assert!(narrowed.behavior >= decide(&parent, &facts).behavior);
        prop_assert!(narrowed.behavior >= decide(&child, &facts).behavior);
    }

    /// The same answer for the same question, and always one.
    #[test]
    fn deciding_is_deterministic_and_total(
        mode in mode(),
        written in rules(),
        tool in "\\PC{0,12}",
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let policy = policy(mode, &written);
        for (tool, input) in [
            ("Bash", json!({"command": text})),
            ("Read", json!({"file_path": text})),
            ("WebFetch", json!({"url": text})),
            (tool.as_str(), json!({"x": text})),
            ("Bash", json!({"command": 7})),
            ("Edit", Value::Null),
        ] {
            let first = judged::try_facts(tool, &input, &setting());
            let second = judged::try_facts(tool, &input, &setting());
            let first = first.map(|facts| decide(&policy, &facts));
            let second = second.map(|facts| decide(&policy, &facts));
            prop_assert_eq!(first, second);
        }
    }
}
