//! Commands that take too much memory or too many processes.

use haft_contract::TaskStatus;
use serde_json::json;

use super::Terminal;

/// Ends by itself if no limit does.
const HOG: &str = "ulimit -v 1500000; x=abcdefgh; while x=$x$x; do :; done";
/// 1,023 processes at most.
const BOMB: &str = "bomb() { (( $1 )) || exec sleep 60; bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; }; \
                    bomb 9";

fn limited() -> Terminal {
    Terminal::with_env([
        ("HAFT_COMMAND_MEMORY_MB", "150"),
        ("HAFT_COMMAND_PROCESSES", "100"),
    ])
}

#[tokio::test]
async fn the_result_says_which_limit_a_command_exceeded_and_what_to_do() {
    let terminal = limited();
    let text = terminal.bash(HOG).await.failed();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("Killed: it used "), "{text}");
    assert!(
        first.ends_with(
            " of memory, and a command may use at most 150 MB. Work on less data at a time, or with fewer \
             jobs in parallel."
        ),
        "{text}"
    );
    let text = terminal.bash(BOMB).await.failed();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("Killed: it ran "), "{text}");
    assert!(
        first.ends_with(
            " processes and threads at a time, and a command may run at most 100. Start fewer in parallel."
        ),
        "{text}"
    );
    assert_eq!(terminal.bash("echo next").await.ok(), "next");
}

#[tokio::test]
async fn a_task_that_exceeds_a_limit_says_so_also_when_its_shell_has_ended() {
    let terminal = limited();
    // The first runs in the background from the start, the second is what a command leaves running.
    let input = json!({"command": HOG, "run_in_background": true});
    let first = terminal.call("Bash", input).await.task();
    let left = format!("(sleep 1; {BOMB}) >/dev/null 2>&1 &");
    let second = terminal.bash(&left).await.task();
    for (id, text) in [(first, "150 MB"), (second, "at most 100")] {
        let info = terminal.over(&id).await;
        assert_eq!(info.status, TaskStatus::Killed, "{info:?}");
        let ended = info.ended.clone().unwrap();
        assert!(ended.starts_with("stopped: it "), "{ended}");
        assert!(ended.contains(text), "{ended}");
    }
}
