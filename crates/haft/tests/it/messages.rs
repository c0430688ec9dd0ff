use haft::Haft;
use haft_testkit::TempProject;
use serde_json::{Value, json};

async fn answer(message: Value) -> String {
    let project = TempProject::new([("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
    let mut haft = Haft::builder(project.root()).build().await.unwrap();
    match haft.answer(&message).await {
        Ok(answer) => serde_json::to_string_pretty(&answer).unwrap(),
        Err(error) => format!("not answered: {error}"),
    }
    .replace(&project.root().display().to_string(), "PROJECT")
}

#[tokio::test]
async fn an_anthropic_message_is_answered_by_one_user_message() {
    let message = json!({
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.txt"}},
            {"type": "tool_use", "id": "t2", "name": "Write", "input": {"file_path": "b.txt", "content": "x"}},
            {"type": "tool_use", "id": "t3", "name": "Raed", "input": {}},
        ],
    });
    insta::assert_snapshot!(answer(message).await);
}

#[tokio::test]
async fn an_openai_message_is_answered_by_tool_messages() {
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let message = json!({
        "role": "assistant",
        "content": null,
        "tool_calls": [
            call("c1", "Read", "{\"file_path\": \"a.txt\"}"),
            call("c2", "Read", "{\"file_path\": "),
            call("c3", "LS", ""),
        ],
    });
    let answer = answer(message).await;
    // The time of a file is not ours to pin.
    let answer: Vec<&str> = answer
        .lines()
        .filter(|line| !line.contains("a.txt"))
        .collect();
    insta::assert_snapshot!(answer.join("\n"));
}

#[tokio::test]
async fn a_message_without_calls_gets_an_answer_without_results() {
    let anthropic = answer(json!({"role": "assistant", "content": "Done."})).await;
    assert_eq!(anthropic, "null", "providers refuse an empty message");
    let openai = answer(json!({"role": "assistant", "content": "Done.", "tool_calls": null})).await;
    assert_eq!(openai, "[]");
}

#[tokio::test]
async fn what_is_no_assistant_message_is_refused() {
    for message in [
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant"}),
        json!({"role": "assistant", "content": [{"type": "tool_use", "name": "Read"}]}),
        json!({"role": "assistant", "tool_calls": {}}),
        json!([]),
    ] {
        let answer = answer(message.clone()).await;
        assert!(answer.starts_with("not answered: "), "{message}: {answer}");
    }
}
