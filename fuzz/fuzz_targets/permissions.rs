//! Any text as a command line: it is read, judged and decided, and some things hold of every one.

#![no_main]

use std::sync::LazyLock;

use haft_contract::PermissionMode;
use haft_permissions::{
    CallFacts, List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SettingsScope, decide,
};
use haft_shell::{EffectVerdict, LineLocation, analyze};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static RULES: LazyLock<[Policy; 2]> = LazyLock::new(|| {
    let bases = PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    };
    [false, true].map(|denies| {
        let mut rules = RuleSet::default();
        let mut add = |list, text| {
            let added = rules.add(list, text, RuleSource::from_scope(SettingsScope::User), &bases);
            assert!(added.is_ok());
        };
        add(List::Allow, "Bash(make *)");
        add(List::Allow, "Edit(src/**)");
        add(List::Ask, "Bash(git push *)");
        if denies {
            add(List::Deny, "Bash(rm *)");
            add(List::Deny, "Read(./.env)");
        }
        Policy {
            home: Some("/h".into()),
            rules: rules.into(),
            ..Policy::new(PermissionMode::Default, vec!["/p".into()])
        }
    })
});

fuzz_target!(|line: &str| {
    let place = LineLocation {
        cwd: "/p".into(),
        home: Some("/h".into()),
    };
    let analysis = analyze(line, &place);
    assert!(analysis.span.start <= analysis.span.end && analysis.span.end <= line.len());
    for part in &analysis.parts {
        assert!(line.get(part.span.start..part.span.end).is_some());
        if let Some(outer) = part.outer {
            assert!(outer < analysis.parts.len());
        }
    }

    // One more command that writes is never overlooked.
    let continued = line.len() - line.trim_end_matches('\\').len();
    if continued % 2 == 0 {
        let spoiled = analyze(&format!("{line}\ntouch p"), &place);
        assert_ne!(spoiled.verdict, EffectVerdict::ReadOnly, "{line:?}");
    }

    let setting = PathContext {
        cwd: "/p".into(),
        home: Some("/h".into()),
        wrappers: Vec::new(),
    };
    let tools = haft_tools::all();
    let bash = tools.into_iter().find(|tool| tool.spec().name == "Bash").unwrap();
    let call = bash.bind(json!({ "command": line })).unwrap();
    let mut facts = CallFacts::from_bound_call(&*call);
    facts.read_command(&setting);
    let [without, with] = &*RULES;
    let before = decide(without, &facts);
    let after = decide(with, &facts);
    assert!(after.behavior >= before.behavior, "{line:?}: {before:?} became {after:?}");
});
