use std::{
    path::Path,
    time::{Duration, Instant},
};

use haft_contract::{BackgroundTasks, TaskKind, TaskStatus};
use haft_testkit::until;
use serde_json::{Value, json};

use super::Terminal;

/// Waits until no process is left in this directory.
pub(super) async fn nothing_runs_in(directory: &Path) {
    let directory = std::fs::canonicalize(directory).unwrap();
    let is_in = |process: &std::fs::DirEntry| {
        let cwd = std::fs::read_link(process.path().join("cwd"));
        cwd.is_ok_and(|cwd| cwd.starts_with(&directory))
    };
    let left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter(is_in).count()
    };
    until("no process is left", || left() == 0).await;
}

async fn started(terminal: &Terminal, command: &str) -> String {
    let input = json!({"command": command, "run_in_background": true});
    terminal.call("Bash", input).await.task()
}

#[tokio::test]
async fn a_task_is_started_asked_and_announced() {
    let terminal = Terminal::new();
    let input = json!({"command": "echo one; echo two; exit 5", "run_in_background": true, "description": "Counts"});
    let heard = terminal.call("Bash", input).await;
    let id = heard.task();
    assert_eq!(
        terminal.masked(&heard.ok()),
        "Started background task bash_1; output file: [session]/tool-results/bash_[id].txt"
    );
    let info = terminal.over(&id).await;
    assert_eq!((info.status, info.exit_code), (TaskStatus::Failed, Some(5)));
    assert_eq!(
        std::fs::read_to_string(&info.output_file).unwrap(),
        "one\ntwo\n"
    );
    // The watcher may be a moment behind.
    let notices = terminal.session.services.get::<BackgroundTasks>().unwrap();
    notices.wait_for_any_notice().await;
    let notice = notices.take_notices().remove(0);
    assert_eq!((&notice.id, notice.status), (&info.id, info.status));
    assert_eq!(
        notice.summary,
        "Background command \"Counts\" has ended: exit code 5"
    );
    assert_eq!(notice.result, "one\ntwo");
    assert!(notices.running().is_empty());

    let heard = terminal.call("TaskOutput", json!({"task_id": id})).await;
    assert_eq!(heard.structured["exit_code"], 5);
    insta::assert_snapshot!(terminal.masked(&heard.ok()));
    let text = terminal
        .call("TaskStop", json!({"task_id": id}))
        .await
        .failed();
    assert_eq!(
        text,
        "Task bash_1 is not running: it is failed (exit code 5)."
    );
}

#[tokio::test]
async fn only_what_is_new_is_told_and_lines_can_be_picked() {
    let terminal = Terminal::new();
    let go = terminal.root().join("go");
    let command = "echo apple; echo pear; while [ ! -e go ]; do command sleep 0.05; done; echo plum; echo apricot";
    let id = started(&terminal, command).await;
    let ask = |input: Value| terminal.call("TaskOutput", input);
    let mut text = String::new();
    for _ in 0..3000 {
        text += &ask(json!({"bash_id": id, "block": false})).await.ok();
        if text.contains("pear") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        text.contains("apple") && text.contains("<retrieval_status>not_ready<"),
        "{text}"
    );
    let text = ask(json!({"task_id": id, "timeout": 50})).await.ok();
    assert!(
        text.contains("<retrieval_status>timeout<") && text.contains("<output></output>"),
        "{text}"
    );
    std::fs::write(go, "").unwrap();
    let text = ask(json!({"task_id": id, "filter": "^ap"})).await.ok();
    assert!(
        text.contains("<retrieval_status>success<") && text.contains("<status>completed<"),
        "{text}"
    );
    assert!(text.contains("<output>\napricot\n</output>"), "{text}");
    let text = ask(json!({"task_id": id, "filter": "("})).await.failed();
    assert!(
        text.contains("`filter` is not a valid regular expression"),
        "{text}"
    );
}

#[tokio::test]
async fn a_task_that_is_stopped_is_gone_with_all_it_started() {
    let terminal = Terminal::new();
    let id = started(
        &terminal,
        "mkdir busy; cd busy; (trap '' TERM; while :; do command sleep 0.1; echo x >> tick; done) & wait",
    )
    .await;
    let tick = terminal.root().join("busy/tick");
    until("the command runs", || tick.exists()).await;
    let heard = terminal.call("TaskStop", json!({"task_id": id})).await;
    assert_eq!(heard.structured["task_type"], "local_bash");
    heard.ok();
    nothing_runs_in(&terminal.root().join("busy")).await;
    assert_eq!(terminal.over(&id).await.status, TaskStatus::Killed);
}

#[tokio::test]
async fn who_follows_the_session_hears_of_a_task_and_can_stop_it() {
    let terminal = Terminal::new();
    let notices = terminal.session.services.get::<BackgroundTasks>().unwrap();
    let id = started(&terminal, "command sleep 100").await;
    let running = notices.running();
    assert_eq!(
        (&running[0].id, &*running[0].prompt),
        (&id, "command sleep 100")
    );
    assert!(notices.stop(&id));
    notices.wait_until_idle(TaskKind::Shell).await;
    assert_eq!(notices.take_notices()[0].status, TaskStatus::Killed);
}

#[tokio::test]
async fn what_the_model_has_asked_about_is_not_told_again() {
    let terminal = Terminal::new();
    let notices = terminal.session.services.get::<BackgroundTasks>().unwrap();
    let id = started(&terminal, "echo x").await;
    terminal
        .call("TaskOutput", json!({"task_id": id}))
        .await
        .ok();
    notices.wait_until_idle(TaskKind::Shell).await;
    assert!(notices.take_notices().is_empty());
}

#[tokio::test]
async fn a_task_lives_no_longer_than_it_may() {
    let terminal = Terminal::new();
    let input = json!({"command": "command sleep 100", "run_in_background": true, "timeout": 500});
    let id = terminal.call("Bash", input).await.task();
    let info = terminal.over(&id).await;
    assert_eq!(
        info.ended.as_deref(),
        Some("stopped: it ran longer than 500ms")
    );
}

#[tokio::test]
async fn what_a_command_leaves_running_becomes_a_task() {
    let terminal = Terminal::new();
    let started = Instant::now();
    let command = "(echo ready; while :; do command sleep 0.1; done) & touch x; echo started";
    let heard = terminal.bash(command).await;
    let id = heard.task();
    let text = heard.ok();
    assert!(
        text.contains("Still running as background task bash_1: "),
        "{text}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    terminal.call("TaskStop", json!({"task_id": id})).await.ok();
    let info = terminal.over(&id).await;
    let kept = std::fs::read_to_string(info.output_file).unwrap();
    assert!(
        kept.contains("started\n") && kept.contains("ready\n"),
        "{kept}"
    );
}

#[tokio::test]
async fn what_only_reads_leaves_nothing_running() {
    let terminal = Terminal::new();
    let text = terminal.bash("tail -f file.txt & echo started").await.ok();
    assert!(
        text.contains("started") && !text.contains("background task"),
        "{text}"
    );
    assert!(terminal.shell().tasks().list().is_empty());
}

#[tokio::test]
async fn a_command_can_be_sent_to_the_background_while_it_runs() {
    let terminal = Terminal::new();
    let (cx, mut updates) = terminal.context();
    let (shell, call) = (terminal.shell(), cx.call);
    assert!(!shell.move_to_background(call));
    let input = json!({"command": "cd sub; echo begun; while :; do command sleep 0.1; done"});
    let calling = terminal.call_in("Bash", input, &cx);
    let wish = async {
        updates.recv().await.expect("news");
        assert!(shell.move_to_background(call));
    };
    let (heard, ()) = tokio::join!(calling, wish);
    assert_eq!(heard.structured["backgroundedByUser"], true);
    let text = terminal.masked(&heard.ok());
    insta::assert_snapshot!(text);
    shell.close().await;
    assert_eq!(terminal.over("bash_1").await.status, TaskStatus::Killed);
}

#[tokio::test]
async fn a_request_that_comes_before_the_command_runs_is_not_lost() {
    let terminal = Terminal::new();
    let (cx, _updates) = terminal.context();
    let (shell, call) = (terminal.shell(), cx.call);
    let input = json!({"command": "while :; do command sleep 0.1; done"});
    let calling = terminal.call_in("Bash", input, &cx);
    // The call has got as far as it gets without waiting for anything.
    let request = async { assert!(shell.move_to_background(call)) };
    let (heard, ()) = tokio::join!(calling, request);
    assert_eq!(heard.structured["backgroundedByUser"], true);
    shell.close().await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_takes_its_command_along() {
    let terminal = Terminal::new();
    let tick = terminal.root().join("busy/tick");
    let command = "mkdir busy; cd busy; while :; do command sleep 0.1; echo x >> tick; done";
    let begun = async {
        until("the command runs", || tick.exists()).await;
    };
    tokio::select! {
        heard = terminal.bash(command) => panic!("{heard:?}"),
        () = begun => {}
    }
    nothing_runs_in(&terminal.root().join("busy")).await;
}

#[tokio::test]
async fn a_session_that_ends_takes_its_tasks_along() {
    let terminal = Terminal::new();
    started(
        &terminal,
        "mkdir busy; cd busy; while :; do command sleep 0.1; echo x >> tick; done",
    )
    .await;
    let tick = terminal.root().join("busy/tick");
    until("the command runs", || tick.exists()).await;
    let busy = terminal.root().join("busy");
    let Terminal { session, .. } = terminal;
    drop(session.services);
    nothing_runs_in(&busy).await;
}
