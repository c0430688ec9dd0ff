use serde_json::Value;
use tempfile::tempdir;

use crate::binary::{haft, run};

fn tools(args: &[&str]) -> String {
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).arg("tools").args(args), b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.stdout
}

#[test]
fn the_table_for_people() {
    insta::assert_snapshot!(tools(&[]));
}

#[test]
fn what_definitions_cost() {
    insta::assert_snapshot!(tools(&["--cost"]));
    assert_eq!(tools(&["--cost", "Read"]).lines().count(), 2);
}

#[test]
fn one_tool_with_its_parameters() {
    insta::assert_snapshot!(tools(&["Grep"]));
}

#[test]
fn help_for_people() {
    let dir = tempdir().unwrap();
    let mut pages = String::new();
    for args in [
        &["--help"][..],
        &["-p", "--help"],
        &["exec", "--help"],
        &["call", "--help"],
        &["tools", "--help"],
        &["permissions", "--help"],
        &["doctor", "--help"],
    ] {
        let ran = run(haft(dir.path()).args(args), b"");
        assert_eq!(ran.code, 0);
        pages += &format!("$ haft {}\n{}\n", args.join(" "), ran.stdout);
    }
    insta::assert_snapshot!(pages);
}

#[test]
fn the_definitions_a_provider_wants() {
    let list = |args: &[&str]| -> Vec<Value> { serde_json::from_str(&tools(args)).unwrap() };
    let names = |definitions: &[Value], at: &str| -> Vec<String> {
        definitions
            .iter()
            .map(|d| d.pointer(at).unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    let anthropic = list(&["--json"]);
    assert_eq!(
        names(&anthropic, "/name"),
        [
            "AskUserQuestion",
            "Bash",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Glob",
            "Grep",
            "LS",
            "Read",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskStop",
            "TaskUpdate",
            "Think",
            "ToolSearch",
            "Write"
        ]
    );
    assert_eq!(anthropic, list(&["--format", "anthropic"]));
    assert_eq!(
        names(&list(&["--format", "openai"]), "/function/name"),
        names(&anthropic, "/name")
    );
    let mcp = list(&["--format", "mcp"]);
    assert_eq!(mcp[8]["annotations"]["readOnlyHint"], true);
    assert_eq!(mcp[8]["inputSchema"]["type"], "object");
    let one: Value = serde_json::from_str(&tools(&["Read", "--json"])).unwrap();
    assert_eq!(one, anthropic[8]);
}

#[test]
fn a_tool_that_is_not_there_is_answered_with_near_names() {
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).args(["tools", "Raed"]), b"");
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stderr,
        "haft: no tool is called \"Raed\"; did you mean Read?\n"
    );
}
