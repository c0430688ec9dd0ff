//! The vectors of the permission rules: each call with its rules, and what must come of it.

use std::path::PathBuf;

use haft_engine::permissions::{
    HookPermission, List, PathContext, PatternBases, Policy, RuleSet, RuleSource, SettingsScope,
    decide,
};
use serde_json::Value;

use crate::judged;

const VECTORS: &str = include_str!("../vectors/permissions.json");

fn mode(name: &str) -> haft_contract::PermissionMode {
    serde_json::from_value(Value::String(name.to_owned())).unwrap()
}

#[test]
fn every_vector_is_decided_as_it_says() {
    let file: Value = serde_json::from_str(VECTORS).unwrap();
    let mut wrong = Vec::new();
    let vectors = file["vectors"].as_array().unwrap();
    for vector in vectors {
        let scope = match vector["rule_source"].as_str() {
            Some("user settings") => SettingsScope::User,
            _ => SettingsScope::Project,
        };
        let bases = PatternBases {
            cwd: "/p".into(),
            home: "/h".into(),
            slash: if scope == SettingsScope::User {
                "/h/.claude".into()
            } else {
                "/p".into()
            },
        };
        let mut rules = RuleSet::default();
        let mut warned = false;
        for list in [List::Deny, List::Ask, List::Allow] {
            for text in vector[list.name()].as_array().unwrap() {
                let added = rules.add(
                    list,
                    text.as_str().unwrap(),
                    RuleSource::from_scope(scope),
                    &bases,
                );
                warned |= added.is_err();
            }
        }
        warned |= !rules.resolve_for_tools(&judged::specs()).is_empty();
        let mut roots: Vec<PathBuf> = vec!["/p".into()];
        let more = vector["additional_dirs"].as_array();
        roots.extend(
            more.into_iter()
                .flatten()
                .map(|dir| dir.as_str().unwrap().into()),
        );
        let policy = Policy {
            home: Some("/h".into()),
            rules: rules.into(),
            ..Policy::new(mode(vector["mode"].as_str().unwrap()), roots)
        };
        let setting = PathContext {
            cwd: "/p".into(),
            home: Some("/h".into()),
            wrappers: Vec::new(),
        };
        let mut facts = judged::facts(vector["tool"].as_str().unwrap(), &vector["input"], &setting);
        if vector["hook"] == "allow" {
            facts.hook = HookPermission::Allow;
        }
        let decision = decide(&policy, &facts);
        let expected = vector["expect"].as_str().unwrap();
        if decision.behavior.name() != expected {
            wrong.push(format!(
                "{}: expected {expected}, got {} because {}",
                vector["id"],
                decision.behavior.name(),
                decision.reason
            ));
        }
        if vector["warning"] == true && !warned {
            wrong.push(format!("{}: no warning", vector["id"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "of {}:\n{}",
        vectors.len(),
        wrong.join("\n")
    );
}
