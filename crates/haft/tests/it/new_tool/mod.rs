//! Adding a tool is one file (`stamp.rs`) and one line: everything else reads its profile.

mod stamp;

use std::sync::Arc;

use haft::{
    CallResult, Haft, HaftBuilder, Services, ToolUse,
    engine::permissions::{
        DecisionBehavior, List, PatternBases, RuleSet, RuleSource, SettingsScope, decide,
    },
    erase, tools,
};
use haft_testkit::TempProject;
use serde_json::{Value, json};
use stamp::{Stamp, StampPad};

const FILES: [(&str, &str); 4] = [
    ("docs/a", "a"),
    ("src/a", "a"),
    ("secret/a", "a"),
    ("locked/a", "a"),
];

fn bases(project: &TempProject) -> PatternBases {
    PatternBases {
        cwd: project.root().to_path_buf(),
        home: project.root().to_path_buf(),
        slash: project.root().to_path_buf(),
    }
}

fn rules(project: &TempProject, written: &[(List, &str)]) -> RuleSet {
    let mut rules = RuleSet::default();
    for (list, text) in written {
        let source = RuleSource::from_scope(SettingsScope::User);
        rules.add(*list, text, source, &bases(project)).unwrap();
    }
    rules
}

fn session(project: &TempProject, written: &[(List, &str)]) -> HaftBuilder {
    Haft::builder(project.root())
        .session_folder(project.path(".session"))
        .rules(rules(project, written))
        .service(Arc::new(StampPad("!")))
        .tool(Stamp) // the one line
}

fn denied(result: &CallResult) -> bool {
    result.metadata.denied.is_some()
}

#[tokio::test]
async fn its_rules_are_about_its_paths() {
    let project = TempProject::new(FILES);
    let written = [
        (List::Allow, "Stamp(docs/**)"),
        (List::Allow, "Seal(secret/**)"),
        (List::Deny, "Stamp(secret/**)"),
        (List::Allow, "Stamp(locked/**)"),
        (List::Deny, "Edit(locked/**)"),
    ];
    let mut haft = session(&project, &written).build().await.unwrap();
    for (path, expected) in [
        ("docs/a", "a!"),
        // No one allows it, and no one can be asked.
        ("src/a", "a"),
        ("secret/a", "a"),
        // What may not be edited may not be stamped.
        ("locked/a", "a"),
    ] {
        let result = haft.call("Stamp", json!({"path": path})).await;
        assert_eq!(
            denied(&result),
            expected == "a",
            "{path}: {}",
            result.text()
        );
        assert_eq!(project.read(path), expected, "{path}");
    }
    // A rule may name a parameter, and another name of the tool.
    let mut haft = session(
        &project,
        &[(List::Allow, "Stamp"), (List::Deny, "Seal(times:3)")],
    )
    .build()
    .await
    .unwrap();
    let result = haft
        .call("Seal", json!({"path": "src/a", "times": 3}))
        .await;
    assert!(denied(&result), "{}", result.text());
    let result = haft
        .call("Seal", json!({"path": "src/a", "times": 2}))
        .await;
    assert_eq!(result.text(), "stamped");
}

#[tokio::test]
async fn its_facts_are_those_of_the_bound_call() {
    let project = TempProject::new(FILES);
    let haft = session(&project, &[]).build().await.unwrap();
    let call = |input: Value| ToolUse {
        id: String::new(),
        name: "Seal".to_owned(),
        input,
    };
    let context = haft.context();
    let engine = haft.engine();
    let facts = engine.facts(
        call(json!({"path": "./docs/../src/a", "times": "2"})),
        &context,
    );
    let facts = facts.await.unwrap();
    assert_eq!(facts.tool, "Stamp");
    assert_eq!(facts.input["times"], 2);
    assert_eq!(facts.writes[0].real, project.path("src/a"));
    let decision = decide(&engine.policy(&context), &facts);
    assert_eq!(decision.behavior, DecisionBehavior::Ask);
    let problem = engine.facts(call(json!({"pth": "a"})), &context).await;
    assert!(problem.unwrap_err().contains("`pth`"));
}

#[tokio::test]
async fn it_is_offered_only_where_its_needs_are_met() {
    let project = TempProject::new(FILES);
    assert!(tools::fitted(vec![erase(Stamp)], &Services::none()).is_empty());
    let haft = session(&project, &[]).build().await.unwrap();
    assert!(haft.pool().find("Stamp").is_some());
    let without = Haft::builder(project.root())
        .session_folder(project.path(".session"))
        .tool(Stamp);
    assert!(
        without
            .build()
            .await
            .unwrap()
            .pool()
            .find("Stamp")
            .is_none()
    );
    // A rule against all of it keeps it out, by any of its names.
    let banned = session(&project, &[(List::Deny, "Seal")])
        .build()
        .await
        .unwrap();
    assert!(banned.pool().find("Stamp").is_none());
}

#[test]
fn warnings_know_it() {
    let project = TempProject::new([]);
    let written = [
        (List::Deny, "Stamp(secret/**)"),
        (List::Deny, "Seal"),
        (List::Deny, "Stmp"),
        (List::Allow, "Stamp(times:3)"),
    ];
    let mut known = rules(&project, &written);
    let mut all: Vec<_> = tools::all();
    all.push(erase(Stamp));
    let specs: Vec<_> = all.iter().map(|tool| tool.spec().clone()).collect();
    let problems = known.resolve_for_tools(&specs);
    let problems: Vec<&str> = problems.iter().map(|one| one.rule.as_str()).collect();
    assert_eq!(problems, ["Stmp", "Stamp(times:3)"]);
}
