//! Rows of the table of permission rules that take settings files, several calls or a sandbox. The
//! numbers are those of the table.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_engine::{
    Engine, SessionContext, ToolFilters, ToolRegistry,
    permissions::{
        DecisionBehavior, List, PatternBases, PermissionSettings, Policy, RuleSet, RuleSource,
        SandboxSettings, SettingsScope, decide,
    },
};
use haft_testkit::toy_tools;
use serde_json::{Value, json};

use crate::{
    machine::{Machine, PROJECT, USER},
    rig::tool_use,
};

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

/// Rules as a settings file has them.
fn lists(allow: &[&str], ask: &[&str], deny: &[&str]) -> String {
    json!({"permissions": {"allow": allow, "ask": ask, "deny": deny}}).to_string()
}

/// A machine whose project is trusted.
fn trusted(files: &[(&str, String)]) -> Machine {
    let machine = Machine::new(files.iter().map(|(name, text)| (*name, text.as_str())));
    machine.trust();
    machine
}

/// A policy with these rules in the project's settings.
fn policy(machine: &Machine, mode: PermissionMode, rules: &[(List, &str)]) -> Policy {
    let cwd = machine.places.cwd.clone();
    let bases = PatternBases {
        home: machine.places.home.clone(),
        slash: cwd.clone(),
        cwd: cwd.clone(),
    };
    let mut all = RuleSet::default();
    for (list, text) in rules {
        all.add(
            *list,
            text,
            RuleSource::from_scope(SettingsScope::Project),
            &bases,
        )
        .unwrap();
    }
    Policy {
        rules: all.into(),
        ..Policy::for_directories(mode, &[cwd]).with_home(Some(&machine.places.home))
    }
}

#[tokio::test]
async fn row_18_and_116_a_tool_that_is_denied_is_not_offered_and_calls_of_it_are_refused() {
    for (rule, left) in [("Append", 6), ("*", 0)] {
        let machine = Machine::new([]);
        let policy = policy(
            &machine,
            PermissionMode::BypassPermissions,
            &[(List::Deny, rule)],
        );
        let mut registry = ToolRegistry::new();
        for toy in toy_tools::all() {
            registry.add_erased(toy).unwrap();
        }
        let (engine, _) = Engine::builder(registry, machine.files.path("session"))
            .filters(ToolFilters {
                rules: policy.rules.clone(),
                ..ToolFilters::default()
            })
            .build()
            .await;
        assert_eq!(engine.pool().iter().len(), left, "{rule}");
        let context = SessionContext::new(&machine.places.cwd)
            .with_rules((*policy.rules).clone())
            .with_mode(policy.mode);
        let mut scheduler = engine.scheduler(context);
        let mut turn = scheduler.start_batch().await;
        turn.push(tool_use("Append", json!({"path": "a", "line": "x"})));
        let finished = turn.next().await.unwrap();
        let expected = format!("Permission to use Append has been denied by rule {rule}.");
        assert!(
            finished.text().starts_with(&expected),
            "{}",
            finished.text()
        );
        assert!(finished.is_error && !machine.files.path("p/a").exists());
    }
}

#[test]
fn row_52_a_critical_removal_is_asked_about_in_every_mode() {
    use PermissionMode as Mode;
    let machine = Machine::new([]);
    let home = machine.places.home.display().to_string();
    let parent = machine.files.root().display().to_string();
    for line in [
        "rm -rf /",
        &format!("rm -rf {home}"),
        &format!("rm -r {parent}"),
        "rm -rf /*",
    ] {
        for (mode, expected) in [
            (Mode::Default, DecisionBehavior::Ask),
            (Mode::AcceptEdits, DecisionBehavior::Ask),
            (Mode::Plan, DecisionBehavior::Ask),
            (Mode::BypassPermissions, DecisionBehavior::Ask),
            (Mode::DontAsk, DecisionBehavior::Deny),
        ] {
            let rules = [(List::Allow, "Bash(rm *)"), (List::Allow, "Bash")];
            let policy = policy(&machine, mode, &rules);
            let decision = decide(&policy, &machine.facts("Bash", &bash(line)));
            assert_eq!(
                decision.behavior, expected,
                "{line} {mode:?}: {}",
                decision.reason
            );
        }
    }
}

#[test]
fn row_67_a_slash_in_the_users_file_starts_at_the_users_folder() {
    let write = |machine: &Machine| {
        let file = machine.files.path("p/docs/x.md");
        machine.verdict("Write", &json!({"file_path": file}))
    };
    let rule = lists(&["Edit(/docs/**)"], &[], &[]);
    assert_eq!(write(&trusted(&[(USER, rule.clone())])), "ask");
    assert_eq!(write(&trusted(&[(PROJECT, rule)])), "allow");
}

#[test]
fn row_68_only_the_users_own_rule_reaches_outside() {
    let edit = |file: &str| {
        let machine = Machine::new([("elsewhere/s.txt", "s")]);
        let path = machine.files.path("elsewhere/s.txt");
        let rule = lists(&[&format!("Edit(/{})", path.display())], &[], &[]);
        machine.files.write(file, rule);
        machine.trust();
        machine.verdict("Edit", &json!({"file_path": path}))
    };
    assert_eq!(edit(USER), "allow");
    assert_eq!(edit(PROJECT), "ask");
    assert_eq!(edit("p/.claude/settings.local.json"), "ask");
}

#[test]
fn row_99_a_denial_of_the_user_beats_an_allowance_of_the_project_and_the_other_way_round() {
    let allow = lists(&["Bash(x)"], &[], &[]);
    let deny = lists(&[], &[], &["Bash(x)"]);
    for (first, second) in [(USER, PROJECT), (PROJECT, USER)] {
        let machine = trusted(&[(first, deny.clone()), (second, allow.clone())]);
        assert_eq!(machine.verdict("Bash", &bash("x")), "deny", "{first}");
    }
}

#[test]
fn row_100_an_untrusted_project_allows_nothing() {
    let allow = lists(&["Bash(x)"], &[], &[]);
    let machine = Machine::new([(PROJECT, allow.as_str())]);
    assert_eq!(machine.verdict("Bash", &bash("x")), "ask");
    let mut settings = machine.load();
    settings.rules(&[], &[]);
    let warning = settings.untrusted().unwrap();
    assert!(warning.starts_with("this workspace has not been trusted"));
    assert!(warning.contains("1 allow rule;"), "{warning}");
    machine.trust();
    assert_eq!(machine.verdict("Bash", &bash("x")), "allow");
}

#[test]
fn row_101_the_flag_takes_several_rules_in_one_text() {
    let machine = Machine::new([]);
    let verdict = |flag: &[&str], command: &str| {
        let mut settings = machine.load();
        let flag: Vec<String> = flag.iter().map(|text| (*text).to_owned()).collect();
        let rules = settings.rules(&flag, &[]);
        assert_eq!(settings.problems, []);
        let cwd = machine.places.cwd.clone();
        let policy = Policy {
            rules: rules.into(),
            ..Policy::for_directories(PermissionMode::Default, &[cwd])
        };
        let decision = decide(&policy, &machine.facts("Bash", &bash(command)));
        decision.behavior.name()
    };
    let list = ["Bash(git log *),Read"];
    assert_eq!(verdict(&list, "git log -3"), "allow");
    assert_eq!(verdict(&list, "make"), "ask");
    assert_eq!(
        verdict(&["Bash(make) Bash(npm, run)", "Edit"], "make"),
        "allow"
    );
}

#[test]
fn rows_102_and_103_a_sandbox_answers_the_question_put_to_all_commands_only() {
    let machine = Machine::new([]);
    let verdict = |rules: &[(List, &str)], mode, command: &str| {
        let policy = Policy {
            sandbox: Arc::new(SandboxSettings {
                enabled: Some(true),
                available: true,
                lets_through: true,
                ..SandboxSettings::default()
            }),
            ..policy(&machine, mode, rules)
        };
        let decision = decide(&policy, &machine.facts("Bash", &bash(command)));
        decision.behavior.name()
    };
    let mode = PermissionMode::Default;
    assert_eq!(verdict(&[(List::Ask, "Bash")], mode, "make"), "allow");
    let push = [(List::Ask, "Bash(git push *)")];
    assert_eq!(verdict(&push, mode, "git push"), "ask");
    assert_eq!(verdict(&[(List::Deny, "Bash(make)")], mode, "make"), "deny");
    assert_eq!(verdict(&[], mode, "rm -rf /"), "ask");
    assert_eq!(verdict(&[], PermissionMode::Plan, "make"), "ask");
}

#[test]
fn rows_109_and_110_an_additional_directory_is_read_freely_and_edited_like_the_first() {
    let machine = |mode: &str| {
        let text = json!({"permissions": {
            "additionalDirectories": ["../q"], "defaultMode": mode,
        }});
        trusted(&[(USER, text.to_string()), ("q/a", "a".to_owned())])
    };
    let plain = machine("default");
    let file = |machine: &Machine| json!({"file_path": machine.files.path("q/a")});
    assert_eq!(plain.verdict("Read", &file(&plain)), "allow");
    assert_eq!(plain.verdict("Edit", &file(&plain)), "ask");
    let edits = machine("acceptEdits");
    assert_eq!(edits.verdict("Edit", &file(&edits)), "allow");
    // A directory whose name begins the same is another one.
    let sibling = json!({"file_path": edits.files.path("q2/a")});
    assert_eq!(edits.verdict("Read", &sibling), "ask");
}

#[test]
fn row_122_commands_that_read_are_held_to_what_may_not_be_read() {
    let deny = lists(&[], &[], &["Read(./private/**)"]);
    let machine = trusted(&[
        (PROJECT, deny),
        ("p/private/notes.txt", "n".to_owned()),
        ("p/README.md", "r".to_owned()),
    ]);
    for (line, expected) in [
        ("wc -l private/notes.txt", "deny"),
        ("wc -l \"$1\"", "ask"),
        ("wc -l README.md", "allow"),
        ("cat < private/notes.txt", "deny"),
        ("cat private/../private/notes.txt", "deny"),
        ("cd private && cat notes.txt", "deny"),
        ("cat p*/notes.txt", "deny"),
        ("cat {private,x}/notes.txt", "deny"),
        ("cat p*/none.txt", "ask"),
        ("grep -r n .", "ask"),
    ] {
        let decision = machine.decide("Bash", &bash(line));
        let got = decision.behavior.name();
        assert_eq!(got, expected, "{line}: {}", decision.reason);
    }
}
