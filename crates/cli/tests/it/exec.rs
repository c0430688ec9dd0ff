use std::fs;

use serde_json::json;
use tempfile::tempdir;

use crate::binary::{Conversation, exec, haft};

#[test]
fn calls_are_answered_in_order_and_what_was_read_is_remembered() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let lines = r#"
{"id": 1, "name": "Edit", "input": {"file_path": "a.txt", "old_string": "two", "new_string": "2"}}
{"id": "r", "name": "Read", "input": {"file_path": "a.txt"}}
{"name": "Edit", "input": {"file_path": "a.txt", "old_string": "two", "new_string": "2"}}

{"id": null, "name": "Read", "input": {"file_path": "a.txt", "offset": "2"}}
"#;
    let answers = exec(dir.path(), &["--permission-mode", "acceptEdits"], lines);
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0]["id"], 1);
    assert_eq!(answers[0]["is_error"], true);
    let refused = answers[0]["content"].as_str().unwrap();
    assert!(refused.contains("has not been read yet"), "{refused}");
    assert_eq!(answers[1]["id"], "r");
    assert_eq!(answers[1]["content"], "     1\tone\n     2\ttwo");
    assert_eq!(answers[1]["structured"]["file"]["totalLines"], 2);
    assert!(answers[1]["duration_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(answers[2]["is_error"], false, "{}", answers[2]);
    assert_eq!(answers[2]["id"], json!(null));
    let rest = answers[3]["content"].as_str().unwrap();
    assert!(rest.starts_with("     2\t2\n"), "{rest}");
    assert_eq!(answers[3]["metadata"]["repairs"][0]["parameter"], "offset");
    assert_eq!(
        fs::read_to_string(dir.path().join("a.txt")).unwrap(),
        "one\n2\n"
    );
}

#[test]
fn an_anthropic_message_is_one_batch() {
    let dir = tempdir().unwrap();
    let lines = json!({
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Now."},
            {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "n.txt", "content": "new\n"}},
            {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "n.txt"}},
            {"type": "tool_use", "id": "t3", "name": "Grep", "input": {"pattern": "new", "output_mode": "content"}},
        ],
    });
    let answers = exec(
        dir.path(),
        &["--permission-mode", "acceptEdits"],
        &format!("{lines}\n"),
    );
    let results = answers[0]["content"].as_array().unwrap();
    assert_eq!(answers[0]["role"], "user");
    let ids: Vec<_> = results
        .iter()
        .map(|result| result["tool_use_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["t1", "t2", "t3"]);
    // The read and the search come after the write of the file they see.
    assert_eq!(results[1]["content"], "     1\tnew");
    assert_eq!(results[2]["content"], "n.txt:1:new");
}

#[test]
fn an_openai_message_is_answered_in_its_own_shape() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let lines = json!({
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function",
             "function": {"name": "Read", "arguments": "{\"file_path\": \"a.txt\"}"}},
            {"id": "c2", "type": "function", "function": {"name": "Nope", "arguments": "{}"}},
        ],
    });
    let answers = exec(dir.path(), &[], &format!("{lines}\n"));
    assert_eq!(
        answers[0][0],
        json!({"role": "tool", "tool_call_id": "c1", "content": "     1\tx"})
    );
    assert_eq!(answers[0][1]["tool_call_id"], "c2");
    assert!(
        answers[0][1]["content"]
            .as_str()
            .unwrap()
            .starts_with("Error: ")
    );
}

#[test]
fn a_long_result_is_kept_and_can_be_read_back() {
    let dir = tempdir().unwrap();
    let text: String = (0..5000)
        .map(|n| format!("a needle in line {n}\n"))
        .collect();
    fs::create_dir(dir.path().join("work")).unwrap();
    fs::write(dir.path().join("work/big.txt"), text).unwrap();
    let grep = json!({"name": "Grep", "input": {"pattern": "needle", "output_mode": "content", "head_limit": 0}});
    let flags = ["--cwd", "work"];
    let answers = exec(dir.path(), &flags, &format!("{grep}\n"));
    let kept = answers[0]["metadata"]["stored"]
        .as_str()
        .unwrap()
        .to_owned();
    let content = answers[0]["content"].as_str().unwrap();
    assert!(content.len() < 3000 && content.contains(&kept), "{content}");
    let whole = fs::read_to_string(&kept).unwrap();
    assert_eq!(
        whole.lines().filter(|line| line.contains("needle")).count(),
        5000
    );
    // The results of another session are as far away as any file outside.
    let read = json!({"name": "Read", "input": {"file_path": kept, "limit": 1}});
    assert_eq!(
        exec(dir.path(), &flags, &format!("{read}\n"))[0]["is_error"],
        true
    );

    // Those of its own a session may read.
    let mut talk = Conversation::new(&dir.path().join("work"));
    let kept = talk.ask(&grep)["metadata"]["stored"].clone();
    let read = json!({"name": "Read", "input": {"file_path": kept, "limit": 1}});
    let answer = talk.ask(&read);
    assert_eq!(answer["is_error"], false, "{answer}");
    assert_eq!(talk.end(), 0);
}

#[test]
fn only_the_tools_asked_for_are_there() {
    let dir = tempdir().unwrap();
    let line = "{\"name\": \"LS\", \"input\": {}}\n";
    assert_eq!(
        exec(dir.path(), &["--tools", "LS,Read"], line)[0]["is_error"],
        false
    );
    for flags in [
        &["--tools", "Read"][..],
        &["--disallowed-tools", "LS"],
        &["--tools", ""],
        &["--bare"],
    ] {
        assert_eq!(
            exec(dir.path(), flags, line)[0]["is_error"],
            true,
            "{flags:?}"
        );
    }
}

#[test]
fn a_message_without_calls_is_answered_by_nothing_to_send() {
    let dir = tempdir().unwrap();
    let lines = [
        json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}]}),
        json!({"role": "assistant", "content": "Done."}),
        json!({"role": "assistant", "content": "Done.", "tool_calls": null}),
        json!({"object": "response", "output": [{"type": "message", "role": "assistant", "content": []}]}),
    ];
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let answers = exec(dir.path(), &[], &(lines.join("\n") + "\n"));
    assert_eq!(answers, [json!(null), json!(null), json!([]), json!([])]);
}

#[test]
fn whole_answers_of_providers_are_understood_indented_or_not() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    let arguments = "{\"file_path\": \"a.txt\"}";
    let function = json!({"name": "Read", "arguments": arguments});
    let call = json!({"id": "c1", "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let completion = json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    });
    let item = json!({"type": "function_call", "id": "fc", "call_id": "c2", "name": "Read", "arguments": arguments});
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": []});
    let response = json!({"id": "r", "object": "response", "output": [reasoning, item]});
    let items = json!([reasoning, item]);
    let lines = format!(
        "{completion}\n{}\n{response}\n{}\n{item}\n",
        serde_json::to_string_pretty(&completion).unwrap(),
        serde_json::to_string_pretty(&items).unwrap(),
    );
    let answers = exec(dir.path(), &[], &lines);
    assert_eq!(answers.len(), 5);
    for answer in &answers[..2] {
        assert_eq!(answer[0]["role"], "tool");
        assert_eq!(answer[0]["tool_call_id"], "c1");
    }
    let text = "     1\tforty-two";
    assert_eq!(answers[0][0]["content"], text);
    let output = json!([{"type": "function_call_output", "call_id": "c2", "output": text}]);
    assert_eq!(answers[2], output);
    for answer in &answers[3..] {
        assert_eq!(answer[0]["call_id"], "c2", "{answer}");
    }
}

#[test]
fn calls_ask_report_and_are_cancelled_by_lines() {
    let dir = tempdir().unwrap();
    let mut talk = Conversation::start(haft(dir.path()).args(["exec", "--interactive-json"]));
    // Denied, allowed with other arguments, allowed by a rule from then on.
    talk.say(&json!({"id": 1, "name": "Bash", "input": {"command": "touch denied"}}));
    let asked = talk.hear();
    assert_eq!(asked["type"], "permission_request", "{asked}");
    assert_eq!((&asked["id"], &asked["name"]), (&json!(1), &json!("Bash")));
    assert_eq!(asked["input"]["command"], "touch denied");
    assert!(asked["reason"].is_string());
    assert_eq!(asked["rules"], json!(["Bash(touch denied)"]));
    assert_eq!(
        asked["offers"],
        json!([{"rules": ["Bash(touch denied)"], "asks_again": []}])
    );
    let respond = |asked: &serde_json::Value, more: serde_json::Value| {
        let mut line = json!({"type": "permission_response", "request_id": asked["request_id"]});
        for (key, value) in more.as_object().unwrap() {
            line[key] = value.clone();
        }
        line
    };
    talk.say(&respond(
        &asked,
        json!({"behavior": "deny", "message": "not that"}),
    ));
    let answer = talk.hear();
    assert_eq!(
        (&answer["id"], &answer["is_error"]),
        (&json!(1), &json!(true))
    );
    assert!(
        answer["content"].as_str().unwrap().contains("not that"),
        "{answer}"
    );
    // An answer to no question, and a second one to the same, are errors of their own.
    for (id, behavior) in [
        (json!("permission_77"), "allow"),
        (asked["request_id"].clone(), "allow"),
        (asked["request_id"].clone(), "perhaps"),
    ] {
        talk.say(&json!({"type": "permission_response", "request_id": id, "behavior": behavior}));
        let problem = talk.hear();
        assert_eq!(
            (&problem["type"], &problem["request_id"]),
            (&json!("error"), &id),
            "{problem}"
        );
        let expected = match behavior {
            "allow" => "waits for an answer",
            _ => "`behavior` must be",
        };
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains(expected), "{problem}");
    }
    talk.say(&json!({"id": 2, "name": "Bash", "input": {"command": "touch one"}}));
    let asked = talk.hear();
    let changed = json!({"behavior": "allow", "updated_input": {"command": "touch other"}, "rules": ["Bash(touch *)"]});
    talk.say(&respond(&asked, changed));
    assert_eq!(talk.hear()["is_error"], false);
    assert!(dir.path().join("other").exists() && !dir.path().join("one").exists());
    talk.say(&json!({"id": 3, "name": "Bash", "input": {"command": "touch three"}}));
    assert_eq!(talk.hear()["id"], 3, "the rule counts: nothing is asked");
    // Cancelled while it runs; the next one is served.
    let command = "echo started; sleep 300";
    talk.say(&json!({"id": "slow", "name": "Bash", "input": {"command": command}}));
    let told = talk.hear();
    assert_eq!(
        (&told["type"], &told["id"]),
        (&json!("progress"), &json!("slow")),
        "{told}"
    );
    assert_eq!(told["text"], "started\n");
    talk.say(&json!({"type": "cancel", "id": "slow"}));
    let line = talk.hear();
    assert_eq!(
        (&line["id"], &line["is_error"]),
        (&json!("slow"), &json!(true))
    );
    talk.say(&json!({"id": 5, "name": "LS", "input": {"path": "."}}));
    assert_eq!(talk.hear()["id"], 5);
    // Nothing can be answered once the input is over.
    assert_eq!(talk.end(), 0);
}
