//! The choices of rules in a question of an editor.

use serde_json::{Value, json};

use super::editor::{Editor, call, project, text};

fn bash(line: &str) -> Value {
    call("Bash", json!({ "command": line }))
}

/// The ids and labels of the options of a question.
fn options(question: &Value) -> Vec<(&str, &str)> {
    let options = question["params"]["options"].as_array().unwrap().iter();
    options
        .map(|option| {
            let text = |name: &str| option[name].as_str().unwrap();
            (text("optionId"), text("name"))
        })
        .collect()
}

/// Vector F1, with programs that are missing: the questions are the same.
#[test]
fn the_family_of_a_command_answers_the_next_one() {
    let dir = project();
    let line = "cd . && bd-of-no-one show 12 2>&1 | tail -5";
    let turns = [bash(line), bash("bd-of-no-one show 13"), text("ok")];
    let mut editor = Editor::with_turns(&dir, &turns);
    editor.answers = vec!["always"];
    editor.prompt("go");
    let questions = editor.questions();
    assert_eq!(questions.len(), 1);
    let exact = format!("Always allow Bash({line})");
    assert_eq!(
        options(questions[0]),
        [
            ("allow", "Allow"),
            ("always", "Always allow Bash(bd-of-no-one show *)"),
            ("always-2", exact.as_str()),
            (
                "task",
                "Allow Bash(bd-of-no-one show *) until the result of this prompt"
            ),
            ("minutes", "Allow Bash(bd-of-no-one show *) for 30 minutes"),
            (
                "session",
                "Allow Bash(bd-of-no-one show *) for this session"
            ),
            ("reject", "Reject"),
        ]
    );
}

/// Vector R5.
#[test]
fn a_choice_for_the_task_ends_with_the_result_of_the_prompt() {
    let dir = project();
    let turns = [
        bash("bd-of-no-one show 12"),
        bash("bd-of-no-one show 13"),
        text("ok"),
        bash("bd-of-no-one show 14"),
        text("ok"),
    ];
    let mut editor = Editor::with_turns(&dir, &turns);
    editor.answers = vec!["task", "reject"];
    editor.prompt("go");
    assert_eq!(editor.questions().len(), 1);
    editor.prompt("go on");
    let questions = editor.questions();
    assert_eq!(questions.len(), 1, "the earlier one is not listed again");
    let content = questions[0].to_string();
    assert!(content.contains("has ended with its task"), "{content}");
}

/// Vector F6.
#[test]
fn a_narrower_choice_and_a_part_that_asks_again() {
    let dir = project();
    let turns = [
        bash("bd-of-no-one list -a"),
        bash("bd-of-no-one list -b"),
        bash("bd-of-no-one list -a"),
        bash("bd-of-no-one sync && python3 -c 'print(1)'"),
        text("ok"),
    ];
    let mut editor = Editor::with_turns(&dir, &turns);
    editor.answers = vec!["always-2", "reject", "reject"];
    editor.prompt("go");
    let questions = editor.questions();
    assert_eq!(questions.len(), 3);
    let again = "Always allow Bash(bd-of-no-one sync *) (asks again for python3 -c 'print(1)')";
    assert_eq!(options(questions[2])[1], ("always", again));
}
