use std::time::{Duration, Instant};

use serde_json::json;

use super::Terminal;

#[tokio::test]
async fn vector_18_a_failure_begins_with_its_exit_code() {
    let terminal = Terminal::new();
    assert_eq!(terminal.bash("false").await.failed(), "Exit code 1");
    let text = terminal
        .bash("echo out; echo err >&2; exit 3")
        .await
        .failed();
    assert_eq!(text, "Exit code 3\nout\nerr");
}

#[tokio::test]
async fn vector_19_some_codes_are_answers_and_others_are_explained() {
    let terminal = Terminal::new();
    let heard = terminal.bash("grep nope file.txt").await;
    assert_eq!(
        heard.structured["returnCodeInterpretation"],
        "No matches found"
    );
    assert_eq!(heard.ok(), "");
    let heard = terminal.bash("diff file.txt sub/a.txt").await;
    assert_eq!(heard.structured["returnCodeInterpretation"], "Files differ");
    assert!(heard.ok().contains("> a"));
    terminal.bash("false | grep x; test 1 = 2").await.ok();
    terminal.bash("grep nope missing.txt").await.failed();
    let text = terminal.bash("no-such-command-anywhere").await.failed();
    assert!(text.starts_with("Exit code 127\n"), "{text}");
    assert!(text.ends_with("(command not found)"), "{text}");
    let text = terminal.bash("read -p 'Continue? [y/N] ' x").await;
    assert!(text.failed().starts_with("Exit code 1"));
}

#[tokio::test]
async fn vector_20_a_directory_outside_is_taken_back() {
    let terminal = Terminal::new();
    let text = terminal.bash("cd /").await.ok();
    let root = terminal.root().display();
    assert_eq!(text, format!("Shell cwd was reset to {root}"));
    assert_eq!(terminal.bash("pwd").await.ok(), root.to_string());
}

#[tokio::test]
async fn a_directory_inside_stays_also_after_a_failure() {
    let terminal = Terminal::new();
    assert_eq!(terminal.bash("cd sub").await.ok(), "");
    assert_eq!(terminal.bash("ls").await.ok(), "a.txt");
    assert_eq!(terminal.bash("cd ..; false").await.failed(), "Exit code 1");
    let there = terminal.bash("pwd").await.ok();
    assert_eq!(there, terminal.root().to_str().unwrap());
}

#[tokio::test]
async fn a_session_can_be_kept_in_its_directory() {
    let terminal = Terminal::with_env([("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "1")]);
    let text = terminal.bash("cd sub && echo there").await.ok();
    let root = terminal.root().display();
    assert_eq!(text, format!("there\nShell cwd was reset to {root}"));
    assert_eq!(terminal.bash("pwd").await.ok(), root.to_string());
}

#[tokio::test]
async fn vector_21_variables_do_not_carry_over() {
    let terminal = Terminal::new();
    assert_eq!(terminal.bash("export A=1; f() { :; }").await.ok(), "");
    assert_eq!(
        terminal.bash("echo \"[$A]\"; type -t f").await.failed(),
        "Exit code 1\n[]"
    );
}

#[tokio::test]
async fn vector_22_a_sleep_is_killed_when_its_time_is_over() {
    let terminal = Terminal::new();
    let started = Instant::now();
    for command in ["sleep 60", "git --version; while :; do :; done"] {
        let heard = terminal
            .call("Bash", json!({"command": command, "timeout": 1000}))
            .await;
        assert_eq!(heard.structured["timedOutAfterMs"], 1000);
        let text = heard.failed();
        assert!(text.starts_with("Command timed out after 1s"), "{text}");
    }
    assert!(terminal.shell().tasks().list().is_empty());
    assert!(started.elapsed() < Duration::from_secs(40));
}

#[tokio::test]
async fn vector_23_a_long_command_goes_on_in_the_background() {
    let terminal = Terminal::new();
    let command = "echo begun; for i in $(seq 600); do command sleep 0.1; done; echo done";
    let heard = terminal
        .call("Bash", json!({"command": command, "timeout": 1000}))
        .await;
    let id = heard.task();
    assert_eq!(heard.structured["timedOutAfterMs"], 1000);
    let text = terminal.masked(&heard.ok());
    assert_eq!(
        text,
        format!(
            "The command did not complete within its 1s timeout and was moved to the background: \
             task {id}; output file: [session]/tool-results/bash_[id].txt\n\
             Output so far (6 bytes):\nbegun"
        )
    );
    let text = terminal.call("TaskStop", json!({"task_id": id})).await.ok();
    assert!(text.starts_with("Stopped task bash_1"), "{text}");
}

#[tokio::test]
async fn without_a_background_what_takes_too_long_is_killed() {
    let terminal = Terminal::with_env([("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")]);
    let input =
        json!({"command": "echo begun; while :; do command sleep 0.1; done", "timeout": 1000});
    let text = terminal.call("Bash", input).await.failed();
    assert_eq!(text, "Command timed out after 1s\nbegun");
}

#[tokio::test]
async fn vector_24_long_output_goes_to_a_file_and_of_a_failure_both_ends_are_shown() {
    let terminal = Terminal::new();
    let print = "for i in $(seq 1 10000); do echo \"line $i\"; done";
    let heard = terminal.bash(print).await;
    let path = heard.structured["persistedOutputPath"]
        .as_str()
        .unwrap()
        .to_owned();
    let text = heard.ok();
    assert!(
        text.starts_with("Output too long to show: 98893 characters, 10000 lines."),
        "{text}"
    );
    assert!(text.contains(&path) && text.contains("line 1\n"), "{text}");
    assert!(text.ends_with("line 10000") && text.len() < 3000, "{text}");
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept.lines().count(), 10_000);

    let text = terminal.bash(&format!("{print}; exit 3")).await.failed();
    assert!(text.starts_with("Exit code 3\nline 1\n"), "{text}");
    assert!(
        text.ends_with("line 10000") && text.len() < 10_200,
        "{text}"
    );
    assert!(
        text.contains(" characters truncated] ...") && !text.contains("tool-results"),
        "{text}"
    );
}

#[tokio::test]
async fn vector_25_what_runs_is_listed_for_a_task_that_is_not_there() {
    let terminal = Terminal::new();
    let text = terminal
        .call("TaskStop", json!({"task_id": "bash_9"}))
        .await
        .failed();
    assert_eq!(
        text,
        "There is no task \"bash_9\". No background task is running."
    );
    let input =
        json!({"command": "command sleep 100", "run_in_background": true, "description": "Waits"});
    let id = terminal.call("Bash", input).await.task();
    let text = terminal
        .call("TaskStop", json!({"shell_id": "x"}))
        .await
        .failed();
    assert_eq!(
        text,
        "There is no task \"x\". Running background tasks:\nbash_1: Waits"
    );
    terminal
        .call("TaskStop", json!({"shell_id": id}))
        .await
        .ok();
}

#[tokio::test]
async fn a_file_that_a_command_showed_may_be_edited() {
    let terminal = Terminal::new();
    let path = terminal.root().join("file.txt");
    let edit = json!({"file_path": path, "old_string": "two", "new_string": "2"});
    let text = terminal.call("Edit", edit.clone()).await.failed();
    assert!(text.contains("has not been read yet"), "{text}");
    terminal.bash("wc file.txt").await.ok();
    terminal.call("Edit", edit.clone()).await.failed();
    terminal.bash("head -n 1 file.txt").await.ok();
    terminal.call("Edit", edit).await.ok();
    // A part is not enough to replace the whole.
    let path = terminal.root().join("lines.txt");
    std::fs::write(&path, "1\n2\n3\n").unwrap();
    let write = json!({"file_path": path, "content": "new\n"});
    terminal.bash("head -n 1 lines.txt").await.ok();
    terminal.call("Write", write.clone()).await.failed();
    terminal.bash("cat lines.txt").await.ok();
    terminal.call("Write", write).await.ok();
}

#[tokio::test]
async fn what_is_no_command_is_refused() {
    let terminal = Terminal::new();
    for command in ["", "  \n", "echo \0"] {
        let text = terminal.bash(command).await.failed();
        assert!(text.starts_with("`command` "), "{text}");
    }
}

#[tokio::test]
async fn an_interrupt_ends_a_command_and_what_it_said_is_told() {
    let terminal = Terminal::new();
    let (cx, mut updates) = terminal.context();
    let cancel = cx.cancel.clone();
    let input = json!({"command": "trap '' TERM; echo begun; while :; do command sleep 1; done"});
    let call = terminal.call_in("Bash", input, &cx);
    let interrupt = async {
        updates.recv().await.expect("news");
        cancel.cancel();
        Instant::now()
    };
    let (heard, interrupted) = tokio::join!(call, interrupt);
    assert!(interrupted.elapsed() < Duration::from_secs(3));
    assert_eq!(heard.structured["interrupted"], true);
    assert_eq!(
        heard.failed(),
        "[Request interrupted by user for tool use]\nbegun"
    );
}

#[tokio::test]
async fn input_is_empty_and_there_is_no_terminal() {
    let terminal = Terminal::new();
    assert_eq!(
        terminal.bash("cat; read x || echo nothing").await.ok(),
        "nothing"
    );
    assert_eq!(
        terminal.bash("tty").await.failed(),
        "Exit code 1\nnot a tty"
    );
    let text = terminal.bash("echo x > /dev/tty").await.failed();
    assert!(text.contains("No such device"), "{text}");
}

#[tokio::test]
async fn a_prefix_gets_the_command_as_one_word_and_a_script_is_read_before_it() {
    let terminal = Terminal::new();
    let script = terminal.session.folder.root().join("env.sh");
    std::fs::write(&script, "export FROM_SCRIPT='it is'\n").unwrap();
    let script = script.to_str().unwrap();
    let terminal = Terminal::with_env([
        ("CLAUDE_ENV_FILE", script),
        ("CLAUDE_CODE_SHELL_PREFIX", "printf '<%s>'"),
    ]);
    assert_eq!(terminal.bash("echo 'a'  b").await.ok(), "<echo 'a'  b>");
    let terminal = Terminal::with_env([("CLAUDE_ENV_FILE", script)]);
    assert_eq!(terminal.bash("echo $FROM_SCRIPT").await.ok(), "it is");
}
