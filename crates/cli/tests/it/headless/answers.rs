use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{answer, call, kinds, lines, scripted, steady_lines, text};
use crate::binary::{haft, run};

#[test]
fn the_answer_as_text_and_as_one_object() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("Hello.")]]);
    let ran = answer(scripted(dir.path(), &turns).args(["-p", "hi"]));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "Hello.\n"),
        "{}",
        ran.stderr
    );

    let ran = answer(scripted(dir.path(), &turns).args(["-p", "hi", "--output-format", "json"]));
    let messages = lines(&ran);
    assert_eq!(
        (ran.code, kinds(&messages)),
        (0, vec!["result/success".to_owned()])
    );
    let id = messages[0]["session_id"].as_str().unwrap();
    assert_eq!(id.len(), 36);

    let verbose = ["-p", "hi", "--output-format=json", "--verbose"];
    let ran = answer(scripted(dir.path(), &turns).args(verbose));
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(kinds(all), ["system/init", "assistant", "result/success"]);
}

#[test]
fn every_message_of_a_run_with_a_tool() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let turns = json!([
        [
            text("Let me see."),
            call("Read", json!({"file_path": dir.path().join("a.txt")}))
        ],
        [text("Two lines.")],
    ]);
    let flags = ["-p", "how many lines?", "--output-format", "stream-json"];
    let ran = answer(scripted(dir.path(), &turns).args(flags));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(steady_lines(&lines(&ran), dir.path()));
}

#[test]
fn the_pieces_of_a_reply_stand_around_its_messages() {
    let dir = tempdir().unwrap();
    let turns = json!([{
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            text("Hello."),
            call("LS", json!({"path": "."})),
        ],
        "pieces": 4,
        "usage": {"input": 3, "output": 7},
    }, [text("Done.")]]);
    let flags = [
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
    ];
    let ran = answer(scripted(dir.path(), &turns).args(flags));
    let told: Vec<String> = lines(&ran)
        .iter()
        .map(|message| match message["type"].as_str().unwrap() {
            "stream_event" => message["event"].to_string(),
            "assistant" => format!("assistant {}", message["message"]["content"][0]["type"]),
            other => other.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_comes_on_stdin_goes_behind_the_prompt() {
    let dir = tempdir().unwrap();
    let record = dir.path().join("tape");
    let turns = json!([[text("ok")]]);
    let mut command = scripted(dir.path(), &turns);
    let ran = run(
        command.args(["-p", "review this", "--record"]).arg(&record),
        b"a diff\n",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let tape = fs::read_to_string(&record).unwrap();
    assert!(tape.contains("review this\\n\\na diff\\n"), "{tape}");

    // The recording says the same again, without the script.
    let mut command = haft(dir.path());
    let ran = run(
        command.args(["-p", "review this", "--replay"]).arg(&record),
        b"a diff\n",
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "ok\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn long_calls_and_results_stay_lines_that_readers_take() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("big.txt");
    let big = "x".repeat(3 << 20);
    let write = |content: &str| call("Write", json!({"file_path": file, "content": content}));
    let turns = json!([[write(&big)], [write("small")], [text("Done.")]]);
    let flags = ["-p", "go", "--output-format", "stream-json"];
    let mode = ["--permission-mode", "acceptEdits"];
    let ran = answer(scripted(dir.path(), &turns).args(flags).args(mode));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let longest = ran.stdout.lines().map(|line| line.chars().count()).max();
    assert!(
        longest.is_some_and(|longest| longest < 1_000_000),
        "{longest:?}"
    );
    let messages = lines(&ran);
    let expected = [
        "system/init",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ];
    assert_eq!(kinds(&messages)[..6], expected);
    let called = messages[1]["message"]["content"][0]["input"].to_string();
    assert!(called.contains("the rest is left out of this line"));
    // The call itself had all of it, and the second one replaced all of it.
    let replaced = &messages[4]["tool_use_result"];
    assert_eq!(replaced["type"], "update", "{replaced}");
    assert_eq!(replaced.get("originalFile"), None);
    assert_eq!(fs::read_to_string(&file).unwrap(), "small");
}

#[test]
fn tools_and_system_prompts_are_what_was_asked_for() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("CLAUDE.md"), "Speak like a pirate.").unwrap();
    let turns = json!([[text("ok")]]);
    let record = dir.path().join("tape");
    let asked = |flags: &[&str]| {
        let mut command = scripted(dir.path(), &turns);
        command.args(["-p", "hi", "--output-format", "stream-json", "--record"]);
        let ran = answer(command.arg(&record).args(flags));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (lines(&ran), fs::read_to_string(&record).unwrap())
    };
    let (messages, tape) = asked(&[]);
    assert!(tape.contains("pirate") && tape.contains("Working directory"));
    let offered = messages[0]["tools"].as_array().unwrap();
    assert!(offered.contains(&json!("Read")) && offered.contains(&json!("Bash")));

    let (messages, tape) = asked(&[
        "--tools",
        "",
        "--system-prompt",
        "",
        "--setting-sources",
        "",
        "--append-system-prompt",
        "- be brief",
    ]);
    assert_eq!(messages[0]["tools"], json!([]));
    assert!(!tape.contains("pirate") && !tape.contains("Working directory"));
    assert!(tape.contains("- be brief"));

    let (_, tape) = asked(&["--exclude-dynamic-system-prompt-sections"]);
    let parts: Vec<&str> = tape
        .lines()
        .filter(|line| line.contains("Working directory"))
        .collect();
    assert!(
        parts.len() == 1 && parts[0].contains("\"role\":\"user\""),
        "{parts:?}"
    );
}

#[test]
fn the_flags_that_programs_start_it_with() {
    let dir = tempdir().unwrap();
    let user = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
    let cwd = dir.path().to_str().unwrap();
    let dirs = format!("--add-dir={cwd}");
    let cases: [(&[&str], bool); 4] = [
        (
            &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--system-prompt",
                "",
                "--setting-sources",
                "",
                "--print",
                "--",
                "tools",
            ],
            false,
        ),
        (
            &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--system-prompt",
                "",
                "--setting-sources",
                "",
                "--input-format",
                "stream-json",
            ],
            true,
        ),
        (
            &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--system-prompt",
                "",
                "--tools",
                "",
                "--max-turns",
                "2",
                "--add-dir",
                cwd,
                "--add-dir",
                cwd,
                "--betas",
                "a,b",
                "--thinking",
                "adaptive",
                "--effort",
                "low",
                "--input-format",
                "stream-json",
            ],
            true,
        ),
        (
            &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--input-format",
                "stream-json",
                "--max-turns=3",
                "--permission-prompt-tool=stdio",
                "--allowedTools=Read",
                "--permission-mode=default",
                "--include-partial-messages",
                &dirs,
                "--debug",
            ],
            true,
        ),
    ];
    for (flags, talks) in cases {
        let input = if talks {
            format!("{user}\n")
        } else {
            String::new()
        };
        let mut command = scripted(dir.path(), &json!([[text("ok")]]));
        let ran = run(command.args(flags), input.as_bytes());
        assert_eq!(ran.code, 0, "{flags:?}\n{}", ran.stderr);
        let messages = lines(&ran);
        assert_eq!(kinds(&messages)[0], "system/init", "{flags:?}");
        assert_eq!(messages.last().unwrap()["result"], "ok", "{flags:?}");
    }
}

#[test]
fn what_nobody_trusts_is_left_out_and_told_of() {
    let dir = tempdir().unwrap();
    let hook = json!({"type": "command", "command": "touch ran"});
    let settings = json!({"hooks": {"SessionStart": [{"hooks": [hook]}]}});
    fs::create_dir(dir.path().join("work")).unwrap();
    let cwd = dir.path().join("work");
    fs::create_dir(cwd.join(".claude")).unwrap();
    fs::write(cwd.join(".claude/settings.json"), settings.to_string()).unwrap();
    let turns = json!([[text("ok")]]);
    let flags = ["-p", "hi", "--output-format", "stream-json"];
    let mut command = scripted(&cwd, &turns);
    let ran = answer(command.args(flags).env("HOME", dir.path()));
    let init = &lines(&ran)[0];
    let told = init["untrusted"].as_str().unwrap();
    assert!(
        told.contains("hooks") && ran.stderr.contains(told),
        "{told} {}",
        ran.stderr
    );
    assert!(!cwd.join("ran").exists());

    let mut command = scripted(&cwd, &turns);
    let named = ["--setting-sources", "project"];
    let ran = answer(command.args(flags).args(named).env("HOME", dir.path()));
    assert_eq!(lines(&ran)[0].get("untrusted"), None);
    assert!(cwd.join("ran").exists());
}

#[test]
fn an_answer_has_the_shape_that_was_asked_for() {
    let dir = tempdir().unwrap();
    let schema = json!({"type": "object", "required": ["n"]}).to_string();
    let flags = [
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--json-schema",
        &schema,
    ];
    let turns = json!([[text("seven")], [text("{\"n\": 7}")]]);
    let ran = answer(scripted(dir.path(), &turns).args(flags));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let messages = lines(&ran);
    let expected = ["system/init", "assistant", "assistant", "result/success"];
    assert_eq!(kinds(&messages), expected);
    assert_eq!(messages[3]["structured_output"], json!({"n": 7}));
    assert_eq!(messages[3]["num_turns"], 2);
    assert_eq!(messages[3]["usage"]["input_tokens"], 20);

    let never = json!([[text("a")], [text("b")], [text("c")], [text("d")]]);
    let ran = answer(scripted(dir.path(), &never).args(flags));
    let result = lines(&ran).pop().unwrap();
    assert_eq!(ran.code, 1);
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result.get("result"), None);

    let ran =
        answer(scripted(dir.path(), &never).args(["-p", "hi", "--json-schema", "{\"type\": 1}"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
}

/// With a schema of an object the answer is given by a call, and the run ends with it.
#[test]
fn an_answer_is_given_by_a_call_whose_input_has_the_shape() {
    let dir = tempdir().unwrap();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 5}},
                        "required": ["n"], "additionalProperties": false})
    .to_string();
    let flags = [
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--json-schema",
        &schema,
    ];
    let give = |input: Value| json!([call("StructuredOutput", input)]);
    let run = |turns: Value, more: &[&str]| {
        let ran = answer(scripted(dir.path(), &turns).args(flags).args(more));
        (lines(&ran), ran.code)
    };
    // Nothing is asked after it, whatever tools there are.
    for more in [&[][..], &["--tools", ""], &["--permission-mode", "plan"]] {
        let turns = json!([give(json!({"n": 7})), [text("never asked")]]);
        let (messages, code) = run(turns, more);
        let result = messages.last().unwrap();
        assert_eq!(
            (code, &result["subtype"]),
            (0, &json!("success")),
            "{result}"
        );
        assert_eq!(result["structured_output"], json!({"n": 7}));
        assert_eq!(result["result"], "{\"n\":7}");
        let tools = messages[0]["tools"].as_array().unwrap();
        assert!(tools.contains(&json!("StructuredOutput")), "{tools:?}");
        let replies = messages.iter().filter(|one| one["type"] == "assistant");
        assert_eq!(replies.count(), 1, "{messages:#?}");
    }
    // What does not fit is an error result, and the model tries again.
    let wrong = [
        json!({}),
        json!({"n": 1}),
        json!({"n": "x"}),
        json!({"n": 7, "m": 1}),
    ];
    let mut turns: Vec<Value> = wrong.iter().cloned().map(give).collect();
    turns.push(give(json!({"n": 8})));
    let (messages, code) = run(json!(turns), &[]);
    assert_eq!(code, 0);
    assert_eq!(
        messages.last().unwrap()["structured_output"],
        json!({"n": 8})
    );
    let refused = messages
        .iter()
        .filter(|one| one["message"]["content"][0]["is_error"] == true);
    assert_eq!(refused.count(), 4);
    // Five times and no more.
    let mut turns: Vec<Value> = wrong.iter().cloned().map(give).collect();
    turns.extend([give(json!({})), give(json!({"n": 9}))]);
    let (messages, code) = run(json!(turns), &[]);
    let result = messages.last().unwrap();
    assert_eq!(code, 1);
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["num_turns"], 5);
    let same = vec![give(json!({})); 6];
    let (messages, _) = run(json!(same), &[]);
    let result = messages.last().unwrap();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    // The last turn that there may be is enough for it.
    let (messages, _) = run(json!([give(json!({"n": 7}))]), &["--max-turns", "1"]);
    let result = messages.last().unwrap();
    assert_eq!(result["structured_output"], json!({"n": 7}), "{result}");
    // Words alone: it is reminded once.
    let (messages, _) = run(json!([[text("seven")], give(json!({"n": 7}))]), &[]);
    let result = messages.last().unwrap();
    assert_eq!(result["structured_output"], json!({"n": 7}), "{result}");
    let (messages, code) = run(
        json!([[text("a")], [text("b")], give(json!({"n": 7}))]),
        &[],
    );
    let result = messages.last().unwrap();
    assert_eq!(code, 1);
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["num_turns"], 2);
}

/// No tool has the shape of a list: it is the text of the answer.
#[test]
fn a_shape_that_no_tool_can_have_is_that_of_the_text() {
    let dir = tempdir().unwrap();
    let schema = json!({"type": "array", "items": {"type": "integer"}}).to_string();
    let flags = [
        "-p",
        "hi",
        "--output-format",
        "stream-json",
        "--json-schema",
        &schema,
    ];
    let turns = json!([[text("none")], [text("{}")], [text("[1, 2]")]]);
    let ran = answer(scripted(dir.path(), &turns).args(flags));
    let messages = lines(&ran);
    assert_eq!(messages.last().unwrap()["structured_output"], json!([1, 2]));
    let tools = messages[0]["tools"].as_array().unwrap();
    assert!(!tools.contains(&json!("StructuredOutput")));
}

#[test]
fn the_version_is_one_that_readers_know() {
    let dir = tempdir().unwrap();
    for flags in [&["-v"][..], &["-p", "-v"]] {
        let ran = answer(haft(dir.path()).args(flags));
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.starts_with("2.1.240 (haft "), "{}", ran.stdout);
    }
}
