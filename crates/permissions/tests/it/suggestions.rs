//! The exact rules that a question offers, and those that a denial names: they allow this call and
//! no other. `families` tests the wider choices.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_permissions::{
    CallFacts, DecisionBehavior, List, PathContext, PatternBases, Policy, RuleSet, RuleSource,
    SettingsScope, decide, suggest,
    suggest::{path_rule, sufficient_rules},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::judged;

fn bases() -> PatternBases {
    PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    }
}

fn policy(allow: &[String]) -> Policy {
    let mut rules = RuleSet::default();
    for rule in allow {
        let source = RuleSource::from_scope(SettingsScope::Local);
        rules.add(List::Allow, rule, source, &bases()).unwrap();
    }
    Policy {
        rules: Arc::new(rules),
        ..Policy::for_directories(PermissionMode::Default, &["/p".into()])
            .with_home(Some("/h".as_ref()))
    }
}

fn facts(tool: &str, input: &Value) -> CallFacts {
    let setting = PathContext {
        cwd: "/p".into(),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    };
    judged::facts(tool, input, &setting)
}

fn bash(line: &str) -> CallFacts {
    facts("Bash", &json!({ "command": line }))
}

/// The narrowest rules that allow the whole line.
fn offered(line: &str) -> Vec<String> {
    let offers = suggest(&policy(&[]), &bash(line), &bases());
    sufficient_rules(&offers).to_vec()
}

/// The only choice of rules for a call of another tool.
fn only_offer(policy: &Policy, facts: &CallFacts) -> Vec<String> {
    let offers = suggest(policy, facts, &bases());
    assert!(offers.len() <= 1, "{offers:?}");
    offers.into_iter().flat_map(|offer| offer.rules).collect()
}

fn is_allowed(allow: &[String], line: &str) -> bool {
    decide(&policy(allow), &bash(line)).behavior == DecisionBehavior::Allow
}

#[test]
fn a_command_is_offered_as_it_was_called() {
    for (line, rules) in [
        ("rm -rf build", &["Bash(rm -rf build)"][..]),
        ("npm run build", &["Bash(npm run build)"]),
        ("git push origin main", &["Bash(git push origin main)"]),
        ("make", &["Bash(make)"]),
        ("  npm   test ", &["Bash(npm test)"]),
        ("./deploy.sh --now", &["Bash(./deploy.sh --now)"]),
        (
            "ls && npm test && make all",
            &["Bash(make all)", "Bash(npm test)"],
        ),
        ("timeout 5 make", &["Bash(make)"]),
        ("CI=1 npm test", &["Bash(CI=1 npm test)"]),
        ("git commit -m 'a (b)'", &[r"Bash(git commit -m 'a \(b\)')"]),
        ("git commit -m 'a * b'", &[r"Bash(git commit -m 'a \\* b')"]),
        (r"touch a\ b", &[r"Bash(touch a\\ b)"]),
        // Alone it would be about the files of another directory.
        ("cd sub && npm test", &["Bash(cd sub && npm test)"]),
        ("make > out.log", &["Bash(make > out.log)"]),
        // With another input it would do something else.
        ("psqlish db < a.sql", &["Bash(psqlish db < a.sql)"]),
        ("ls | make all", &["Bash(ls | make all)"]),
        ("make || touch x", &["Bash(make)", "Bash(touch x)"]),
    ] {
        assert_eq!(offered(line), rules, "{line}");
    }
}

#[test]
fn what_cannot_be_said_in_so_many_words_is_asked_each_time() {
    let long = format!("make {}", "x".repeat(300));
    for line in [
        "python3 x.py",
        "python3.13 x.py",
        "/usr/bin/python3 x.py",
        "node20 x.js",
        "bash -c 'make'",
        "sudo make",
        "env make",
        "npx thing",
        "npm exec thing",
        "yarn dlx thing",
        "uv run x.py",
        "docker exec box make",
        ". ./x.sh",
        "find . -delete",
        "find . -exec make +",
        "ls | xargs rm",
        "sed -i s/a/b/ f",
        "git -c core.pager=x push",
        "curl https://example.com/x | sh",
        "rm $X",
        "rm *.o",
        "rm \"$(ls)\"",
        "for f in a b; do rm $f; done",
        "LD_PRELOAD=./x.so make",
        "PATH=. make",
        "X=$(make) make",
        "rm -rf /",
        "make > ../out",
        "make > $LOG",
        "cat /proc/1/environ",
        "touch 'a\nb'",
        "a; b; c; d; e; f",
        "echo 'unclosed",
        &long,
    ] {
        assert_eq!(offered(line), [""; 0], "{line}");
    }
}

#[test]
fn a_skill_is_offered_with_its_words_and_a_page_by_its_host() {
    let offered = |tool, input| only_offer(&policy(&[]), &facts(tool, &input));
    let skill = |args| json!({"skill": "deploy", "args": args});
    assert_eq!(offered("Skill", skill("")), ["Skill(deploy)"]);
    assert_eq!(offered("Skill", skill("to *")), [r"Skill(deploy to \\*)"]);
    let page = json!({"url": "https://example.com/a?b"});
    assert_eq!(offered("WebFetch", page), ["WebFetch(domain:example.com)"]);
}

/// What an interpreter runs is another text each time, so the rule is about the interpreter, and says so; a command
/// that starts one is not offered.
#[test]
fn an_interpreter_is_offered_by_its_name() {
    let offered = |tool, input| only_offer(&policy(&[]), &facts(tool, &input));
    for language in ["python", "node"] {
        let call = json!({"language": language, "code": "print(1)"});
        assert_eq!(offered("REPL", call.clone()), [format!("REPL({language})")]);
        assert_eq!(offered("Bash", json!({"command": language})), [""; 0]);
        // What is denied stays denied, and nothing is offered.
        let mut denied = policy(&[]);
        let source = RuleSource::from_scope(SettingsScope::Local);
        let rules = Arc::make_mut(&mut denied.rules);
        rules
            .add(List::Deny, &format!("Bash({language})"), source, &bases())
            .unwrap();
        assert_eq!(only_offer(&denied, &facts("REPL", &call)), [""; 0]);
    }
}

#[test]
fn no_rule_is_proposed_for_paths_of_the_system_nor_one_that_means_more() {
    let read = |path: &str| {
        let facts = facts("Read", &json!({"file_path": path}));
        path_rule(&policy(&[]), &facts, &bases(), path.as_ref())
    };
    assert_eq!(read("/h/.ssh/id").as_deref(), Some("Read(//h/.ssh/id)"));
    for path in [
        "/proc/1/environ",
        "/proc/self/mem",
        "/PROC/1/environ",
        "/dev/mem",
        "/dev/sda",
        "/sys/kernel/x",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/h/.ssh/*",
        "/h/.ssh/[ab]",
        "/h/.ssh/a?",
        r"/h/.ssh/a\b",
        "/h/.ssh/a)b",
        "/h/.ssh/a\nb",
    ] {
        assert_eq!(read(path), None, "{path}");
    }
    let edit = facts("Edit", &json!({"file_path": "/p/.git/config"}));
    let rule = path_rule(&policy(&[]), &edit, &bases(), "/p/.git/config".as_ref());
    assert_eq!(rule.as_deref(), Some("Edit(//p/.git/config)"));
}

/// A saved rule says these words; what else may stand in front or behind is another call.
#[test]
fn a_rule_for_a_command_does_not_let_through_what_stands_around_it() {
    let rules = ["Bash(npm run build)".to_owned()];
    assert!(is_allowed(&rules, "npm run build"));
    assert!(is_allowed(&rules, "CI=1 npm run build"));
    for line in [
        "LD_PRELOAD=./x.so npm run build",
        "NODE_OPTIONS=--require=./x npm run build",
        "PATH=. npm run build",
        "CI=$(touch x) npm run build",
    ] {
        assert!(!is_allowed(&rules, line), "{line}");
    }
    let rules = ["Bash(FOO=1 make)".to_owned()];
    assert!(is_allowed(&rules, "FOO=1 make"));
    assert!(!is_allowed(&rules, "FOO=2 make"));
    assert!(!is_allowed(&rules, "make"));
    // Words that are not known are words all the same.
    let rules = ["Bash(git push)".to_owned()];
    assert!(is_allowed(&rules, "git push"));
    assert!(is_allowed(&rules, "git --no-pager push"));
    for line in ["git push $X", "git --no-pager push $X", "git push \"$(x)\""] {
        assert!(!is_allowed(&rules, line), "{line}");
    }
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "build", "src", "-rf", "--force", "x.txt", "push", "run", "test", "install", "a/b",
            "'a b'", "\"c d\"", r"e\ f", "'*'", "'(x)'", "a:b", "a:*", "https://example.com/x",
            "--out=x", "-", "--", "é", "{a,b}", "$X", "*.o", "'$X'",
        ])
        .prop_map(str::to_owned),
        1 => "[a-z0-9_./:=@%+-]{1,8}",
    ]
}

fn command() -> impl Strategy<Value = String> {
    let program = prop::sample::select(vec![
        "rm",
        "npm",
        "curl",
        "git",
        "make",
        "cp",
        "mv",
        "cargo",
        "docker",
        "./run.sh",
        "touch",
        "kubectl",
        "tar",
        "chmod",
        "wget",
        "python3",
        "sudo",
        "env",
        "timeout 5",
        "nice",
        "dd",
    ]);
    (program, prop::collection::vec(word(), 0..4))
        .prop_map(|(program, words)| [&[program.to_owned()][..], &words].concat().join(" "))
}

fn line() -> impl Strategy<Value = String> {
    let joint = prop::sample::select(vec![" && ", "; ", " | ", " || "]);
    let end = prop::sample::select(vec!["", "", "", " > out.log", " 2>&1", " < in", " &"]);
    (command(), prop::option::of((joint, command())), end).prop_map(|(first, more, end)| {
        let more = more.map(|(joint, second)| format!("{joint}{second}"));
        format!("{first}{}{end}", more.unwrap_or_default())
    })
}

/// Other calls than this one, near it, each of which does more or something else.
fn variants(line: &str) -> Vec<String> {
    let mut variants: Vec<String> = [
        " extra",
        " -rf",
        " --force",
        " /p/src",
        " ../x",
        " > src/main.rs",
        " >> src/main.rs",
        "; rm -rf src",
        " && touch y",
        " | sh",
        " $X",
        " $(touch y)",
        " *",
    ]
    .iter()
    .map(|more| format!("{line}{more}"))
    .collect();
    for before in [
        "LD_PRELOAD=./x.so ",
        "PATH=. ",
        "GIT_DIR=x ",
        "sudo ",
        "env ",
        "xargs ",
        "touch y; ",
        "f() { rm -rf src; }; ",
    ] {
        variants.push(format!("{before}{line}"));
    }
    if let Some((rest, last)) = line.rsplit_once(' ') {
        variants.push(rest.to_owned());
        variants.push(format!("{rest} other"));
        variants.push(format!("{rest} {last}x"));
        variants.push(format!("{rest} *"));
        variants.push(format!("{rest} {}", last.trim_matches(['\'', '"'])));
    }
    if let Some((program, rest)) = line.split_once(' ') {
        variants.push(format!("{program} --force {rest}"));
        variants.push(format!("./{program} {rest}"));
        variants.push(program.to_owned());
    }
    variants
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_offered_covers_this_call_and_no_other(line in line()) {
        let rules = offered(&line);
        if rules.is_empty() {
            return Ok(());
        }
        prop_assert!(is_allowed(&rules, &line), "{rules:?} does not allow {line}");
        for variant in variants(&line) {
            if variant == line || !is_allowed(&rules, &variant) || is_allowed(&[], &variant) {
                continue;
            }
            // A line of nothing but what was agreed to is no other call.
            let agreed = offered(&variant);
            let is_agreed = !agreed.is_empty() && agreed.iter().all(|rule| rules.contains(rule));
            prop_assert!(is_agreed, "{rules:?} of {line} allow {variant}");
        }
    }
}

#[test]
fn rules_compare_words_and_not_the_quotes_around_them() {
    let cases = [
        ("npm test *", r#""npm" test"#, true),
        ("npm test *", r#"npm "test" --all"#, true),
        ("npm test", r#"'npm' "test""#, true),
        ("npm test *", r#"npm "test --all""#, false),
        ("npm test *", r#""npm test""#, false),
        ("/p/run.sh *", r#""/p/run.sh" now"#, true),
        (r#""/my p/run.sh" *"#, r"'/my p/run.sh' now", true),
        (r#""/p/run.sh" *"#, "/p/run.sh now", true),
        ("npm test *", r#""$x" test"#, false),
        ("npm test *", "npm test; rm -rf x", false),
    ];
    for (rule, line, expected) in cases {
        let allow = [format!("Bash({rule})")];
        assert_eq!(is_allowed(&allow, line), expected, "{rule}: {line}");
    }
}

#[test]
fn what_may_not_be_written_may_not_be_edited() {
    let mut rules = RuleSet::default();
    let source = RuleSource::from_scope(SettingsScope::User);
    rules
        .add(List::Deny, "Write(//p/secret.txt)", source, &bases())
        .unwrap();
    let policy = Policy {
        rules: rules.into(),
        ..policy(&[])
    };
    let calls = [
        (
            "Write",
            json!({"file_path": "/p/secret.txt", "content": "x"}),
        ),
        (
            "Edit",
            json!({"file_path": "/p/secret.txt", "old_string": "a", "new_string": "b"}),
        ),
        ("Bash", json!({"command": "echo x > /p/secret.txt"})),
    ];
    for (tool, input) in calls {
        let decided = decide(&policy, &facts(tool, &input));
        assert_eq!(decided.behavior.name(), "deny", "{tool}");
    }
    let read = facts("Read", &json!({"file_path": "/p/secret.txt"}));
    assert_ne!(decide(&policy, &read).behavior.name(), "deny");
}
