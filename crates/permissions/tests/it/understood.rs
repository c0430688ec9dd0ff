//! Rules held against the tools there are.

use haft_permissions::{List, PatternBases, RuleSet, RuleSource, SettingsScope};

use crate::judged;

#[test]
fn a_rule_that_means_nothing_to_its_tool_is_left_out_and_told() {
    let bases = PatternBases {
        cwd: "/p".into(),
        home: "/h".into(),
        slash: "/p".into(),
    };
    let mut table = String::new();
    for (list, text) in [
        (List::Deny, "Grep(src/**)"),
        (List::Allow, "NotebookEdit(*.ipynb)"),
        (List::Deny, "FileSearch(x)"),
        (List::Deny, "WebSearch(x)"),
        (List::Allow, "Skill(deploy *)"),
        (List::Allow, "Task(Explore)"),
        (List::Allow, "Agent(model:opus)"),
        (List::Deny, "Agent(plugin:reviewer)"),
        (List::Deny, "KillShell"),
        (List::Deny, "Monitor(rm *)"),
        (List::Deny, "TaskStop(task_id:1)"),
        (List::Allow, "TodoWrite(x)"),
        (List::Deny, "Workflow(anything)"),
        (List::Deny, "NoSuchTool"),
        (List::Allow, "NoSuchTool(x)"),
        (List::Deny, "no_such_tool(a:b)"),
    ] {
        let mut rules = RuleSet::default();
        let source = RuleSource::from_scope(SettingsScope::User);
        rules.add(list, text, source, &bases).unwrap();
        let problems = rules.resolve_for_tools(&judged::specs());
        let problem = problems.first();
        let said = problem.map_or("", |problem| problem.problem.as_str());
        let stays = if rules.is_empty() {
            "left out"
        } else {
            "counts"
        };
        assert_eq!(rules.is_empty(), problem.is_some_and(|one| one.left_out));
        let line = format!("{:5} {text:24} {stays:8} {said}", list.name());
        table += &format!("{}\n", line.trim_end());
    }
    insta::assert_snapshot!(table);
}
