use haft_contract::Content;
use serde_json::json;

use super::Terminal;

#[tokio::test]
async fn both_outputs_come_in_the_order_they_were_written() {
    let terminal = Terminal::new();
    let command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done";
    let expected: Vec<String> = (1..=5).map(|i| format!("out {i}\nerr {i}")).collect();
    assert_eq!(terminal.bash(command).await.ok(), expected.join("\n"));
}

#[tokio::test]
async fn colours_and_carriage_returns_are_gone() {
    let terminal = Terminal::new();
    let text = terminal
        .bash(r"printf '\033[31mred\033[0m\r\n10%%\r100%%\n\n\n'")
        .await
        .ok();
    assert_eq!(text, "red\n100%");
}

#[tokio::test]
async fn a_hundred_megabytes_are_counted_and_the_first_64_kept() {
    let terminal = Terminal::new();
    let heard = terminal
        .bash("head -c 100000000 /dev/zero | tr '\\0' 'a'")
        .await;
    let path = heard.structured["persistedOutputPath"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 64 << 20);
    let text = heard.ok();
    assert!(
        text.starts_with("Output too long to show: 100000000 bytes. The first 64 MiB are in"),
        "{text}"
    );
    assert!(text.len() < 3000);
}

#[tokio::test]
async fn what_is_no_text_is_kept_and_not_shown() {
    let terminal = Terminal::new();
    let heard = terminal.bash("head -c 5000 /dev/urandom").await;
    let path = heard.structured["persistedOutputPath"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 5000);
    let text = heard.ok();
    assert!(text.contains("5000 bytes, not text"), "{text}");
    assert!(!text.contains('\u{fffd}'));
}

#[tokio::test]
async fn a_picture_is_shown() {
    let terminal = Terminal::new();
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let heard = terminal
        .bash(&format!("echo 'data:image/png;base64,{pixel}'"))
        .await;
    assert_eq!(heard.structured["isImage"], true);
    assert!(
        matches!(&heard.content[..], [Content::Image { .. }]),
        "{heard:?}"
    );
}

#[tokio::test]
async fn a_picture_larger_than_any_text_is_shown() {
    let terminal = Terminal::new();
    let print = "printf 'data:image/png;base64,'; head -c 600000 /dev/zero | base64 -w 0";
    let heard = terminal.bash(print).await;
    assert!(
        matches!(&heard.content[..], [Content::Image { .. }]),
        "{}",
        heard.text
    );
}

#[tokio::test]
async fn a_command_may_close_its_output_and_go_on() {
    let terminal = Terminal::new();
    let text = terminal
        .bash("echo before; exec >&- 2>&-; command sleep 0.3; exit 4")
        .await
        .failed();
    assert_eq!(text, "Exit code 4\nbefore");
}

#[tokio::test]
async fn a_shell_that_is_killed_is_told_as_such() {
    let terminal = Terminal::new();
    let text = terminal.bash("echo before; kill -9 $$").await.failed();
    assert!(text.starts_with("Exit code 137\nbefore"), "{text}");
}

#[tokio::test]
async fn no_output_is_no_text() {
    let terminal = Terminal::new();
    let heard = terminal.bash("true").await;
    assert!(heard.content.is_empty());
    assert_eq!(
        heard.structured,
        json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false})
    );
}
