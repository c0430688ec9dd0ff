//! What programs of the convention count on: clearing, origins, guarded resumes, requests while it runs.

use std::{fs, path::Path, time::UNIX_EPOCH};

use haft_testkit::{
    anthropic::reply,
    http::{HttpFake, HttpReply},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, kinds, lines, scripted, text};
use crate::binary::haft;

fn user(text: &str, more: &Value) -> Value {
    let mut message = json!({"type": "user", "message": {"role": "user", "content": text}});
    for (key, value) in more.as_object().into_iter().flatten() {
        message[key] = value.clone();
    }
    message
}

/// The answer to a request: what was asked for, or why not.
fn ask(talk: &mut Talk, request: &Value) -> Result<Value, String> {
    talk.request("q", request);
    let heard = talk.hear_until("control_response");
    let response = &heard.last().unwrap()["response"];
    match response["subtype"].as_str() {
        Some("success") => Ok(response["response"].clone()),
        _ => Err(response["error"].as_str().unwrap().to_owned()),
    }
}

#[test]
fn clearing_begins_another_session() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("one")], [text("two")]]);
    let mut talk = Talk::new(&mut scripted(dir.path(), &turns));
    talk.user("first");
    let first = talk.hear_until("result").pop().unwrap();
    talk.user("/clear");
    let cleared = talk.hear_until("result");
    let reset = &cleared[0];
    assert_eq!(reset["type"], "conversation_reset", "{cleared:#?}");
    assert_eq!(reset["session_id"], first["session_id"]);
    let id = &reset["new_conversation_id"];
    assert_ne!(*id, first["session_id"]);
    assert!(reset["uuid"].is_string());
    for message in &cleared[1..] {
        assert_eq!(message["session_id"], *id, "{message}");
    }
    talk.user("second");
    let second = talk.hear_until("result").pop().unwrap();
    assert_eq!(
        (&second["result"], &second["session_id"]),
        (&json!("two"), id)
    );
    let (_, code) = talk.end();
    assert_eq!(code, 0);
    // Each has a transcript of its own.
    let listed = answer(haft(dir.path()).args(["sessions", "list"])).stdout;
    for id in [id, &first["session_id"]] {
        assert!(listed.contains(id.as_str().unwrap()), "{listed}");
    }
}

#[test]
fn the_origin_of_a_message_comes_back_with_its_result() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("one")], [text("two")]]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.arg("--replay-user-messages"));
    talk.say(&user("first", &json!({"origin": {"kind": "human"}})));
    let heard = talk.hear_until("result");
    let replayed = heard.iter().find(|one| one["isReplay"] == true).unwrap();
    assert_eq!(replayed["origin"], json!({"kind": "human"}));
    assert_eq!(heard.last().unwrap()["origin"], json!({"kind": "human"}));
    talk.say(&user("second", &json!({})));
    let heard = talk.hear_until("result");
    assert_eq!(heard.last().unwrap().get("origin"), None);
    talk.end();
}

#[test]
fn a_resume_that_would_drop_more_than_a_turn_is_refused() {
    let dir = tempdir().unwrap();
    let turns = json!([[text("one")], [text("two")]]);
    let mut talk = Talk::new(&mut scripted(dir.path(), &turns));
    let prompt = "00000000-0000-4000-8000-000000000002";
    talk.user("first");
    let kept = talk.hear_until("assistant").pop().unwrap()["uuid"].clone();
    let id = talk.hear_until("result").pop().unwrap()["session_id"].clone();
    talk.say(&user("second", &json!({"uuid": prompt})));
    talk.hear_until("result");
    talk.end();
    let resume = |drops: &str, until: bool| {
        let mut command = scripted(dir.path(), &json!([[text("three")]]));
        command.args(["-p", "third", "--output-format", "json", "--fork-session"]);
        command.args([
            "--resume",
            id.as_str().unwrap(),
            "--resume-drops-turn",
            drops,
        ]);
        if until {
            command.args(["--resume-session-at", kept.as_str().unwrap()]);
        }
        answer(&mut command)
    };
    let other = "00000000-0000-4000-8000-000000000009";
    let refused = resume(other, true);
    assert_eq!(refused.code, 1);
    let result: Value = serde_json::from_str(&refused.stdout).unwrap();
    let why = result["errors"][0].as_str().unwrap();
    assert!(
        why.starts_with("Resume rejected by --resume-drops-turn: "),
        "{why}"
    );
    assert!(result["session_id"].is_string());
    let alone = resume(prompt, false);
    assert!(
        alone.stderr.contains("needs the message to resume from"),
        "{}",
        alone.stderr
    );
    let forked = resume(prompt, true);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    let result: Value = serde_json::from_str(&forked.stdout).unwrap();
    assert_ne!(result["session_id"], id);
}

#[test]
fn an_output_style_is_named_as_it_was_given_and_two_are_built_in() {
    let dir = tempdir().unwrap();
    let styled = |style: &str| {
        let mut command = scripted(dir.path(), &json!([[text("done")]]));
        command.args(["-p", "go", "--output-format", "stream-json", "--settings"]);
        command.arg(json!({"outputStyle": style}).to_string());
        let ran = answer(&mut command);
        (lines(&ran)[0]["output_style"].clone(), ran.stderr)
    };
    assert_eq!(styled("Explanatory"), (json!("Explanatory"), String::new()));
    assert_eq!(styled("Learning").0, "Learning");
    let (named, warned) = styled("no-such-style");
    assert_eq!(named, "no-such-style");
    assert!(warned.contains("no output style is called"), "{warned}");
}

#[test]
fn settings_are_applied_to_the_running_session() {
    let dir = tempdir().unwrap();
    let bash = call("Bash", json!({"command": "touch made"}));
    let turns = json!([[text("hi")], [bash], [text("done")], [text("on")]]);
    let mut talk = Talk::new(&mut scripted(dir.path(), &turns));
    talk.user("hello");
    talk.hear_until("result");
    let settings = json!({
        "model": "m-2", "theme": "dark",
        "permissions": {"allow": ["Bash(touch *)"], "defaultMode": "default"},
    });
    let apply = |settings: &Value| json!({"subtype": "apply_flag_settings", "settings": settings});
    talk.request("q", &apply(&settings));
    let heard = talk.hear_until("control_response");
    assert_eq!(heard.last().unwrap()["response"]["subtype"], "success");
    assert!(
        heard[0]["content"].as_str().unwrap().contains("theme"),
        "{heard:#?}"
    );
    talk.user("make it");
    let heard = talk.hear_until("result");
    let init = heard.iter().find(|one| one["subtype"] == "init").unwrap();
    assert_eq!(init["model"], "m-2");
    assert!(dir.path().join("made").exists());
    for (settings, why) in [
        (json!({"hooks": {}}), "hooks cannot be changed"),
        (
            json!({"permissions": {"disableBypassPermissionsMode": "x"}}),
            "cannot be changed",
        ),
        (
            json!({"permissions": {"defaultMode": "bypassPermissions"}}),
            "bypassPermissions",
        ),
        (json!({"permissions": {"allow": "Bash"}}), "a list of texts"),
        (json!({"model": 7}), "a text or null"),
    ] {
        let error = ask(&mut talk, &apply(&settings)).unwrap_err();
        assert!(error.contains(why), "{settings}: {error}");
    }
    talk.end();
}

#[test]
fn settings_are_written_where_they_may_be() {
    let dir = tempdir().unwrap();
    let mut talk = Talk::new(&mut scripted(dir.path(), &json!([[text("hi")]])));
    let update = |source: &str, settings: Value| json!({"subtype": "update_settings", "source": source, "settings": settings});
    let style = || update("localSettings", json!({"outputStyle": "Learning"}));
    assert!(ask(&mut talk, &style()).unwrap_err().contains("not begun"));
    talk.user("hello");
    talk.hear_until("result");
    ask(&mut talk, &style()).unwrap();
    let written = fs::read_to_string(dir.path().join(".claude/settings.local.json")).unwrap();
    assert!(written.contains("Learning"), "{written}");
    for (source, settings, why) in [
        (
            "localSettings",
            json!({"model": "x"}),
            "takes outputStyle only",
        ),
        (
            "userSettings",
            json!({"outputStyle": "x"}),
            "takes effortLevel only",
        ),
        ("projectSettings", json!({}), "is not a settings file"),
        (
            "localSettings",
            json!({"outputStyle": 7}),
            "text is expected",
        ),
    ] {
        let error = ask(&mut talk, &update(source, settings)).unwrap_err();
        assert!(error.contains(why), "{source}: {error}");
    }
    talk.end();
}

#[test]
fn skills_styles_and_plugins_are_looked_for_again() {
    let dir = tempdir().unwrap();
    let plugin = dir.path().join("kit");
    fs::create_dir_all(plugin.join(".claude-plugin")).unwrap();
    let manifest = json!({"name": "kit", "version": "1.2.0"});
    fs::write(
        plugin.join(".claude-plugin/plugin.json"),
        manifest.to_string(),
    )
    .unwrap();
    let mut command = scripted(dir.path(), &json!([[text("hi")]]));
    let mut talk = Talk::new(command.args(["--plugin-dir", "kit"]));
    talk.user("hello");
    let heard = talk.hear_until("result");
    let init = heard.iter().find(|one| one["subtype"] == "init").unwrap();
    let listed = json!([{"name": "kit", "path": plugin, "version": "1.2.0"}]);
    assert_eq!(init["plugins"], listed);
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        ".claude/skills/new/SKILL.md",
        "---\ndescription: New.\n---\nDo it.",
    );
    put(
        ".claude/output-styles/terse.md",
        "---\nname: terse\n---\nBe brief.",
    );
    put("kit/commands/greet.md", "Say hello.");
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let skills = ask(&mut talk, &json!({"subtype": "reload_skills"})).unwrap();
    assert!(
        names(&skills["skills"]).contains(&"new".to_owned()),
        "{skills}"
    );
    let styles = ask(&mut talk, &json!({"subtype": "reload_output_styles"})).unwrap();
    let expected = json!(["default", "Explanatory", "Learning", "terse"]);
    assert_eq!(styles["available_output_styles"], expected);
    let plugins = ask(&mut talk, &json!({"subtype": "reload_plugins"})).unwrap();
    assert_eq!(
        (&plugins["plugins"], &plugins["error_count"]),
        (&listed, &json!(0))
    );
    assert!(
        names(&plugins["commands"]).contains(&"kit:greet".to_owned()),
        "{plugins}"
    );
    assert!(plugins["agents"].is_array() && plugins["mcpServers"].is_array());
    let add =
        json!({"subtype": "reload_plugins", "add_plugins": [{"type": "local", "path": "/x"}]});
    assert!(ask(&mut talk, &add).unwrap_err().contains("--plugin-dir"));
    talk.end();
}

#[test]
fn a_file_is_given_as_far_as_it_may_be_read() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "forty-two\n").unwrap();
    fs::write(dir.path().join("b.bin"), [0xff, 0x00]).unwrap();
    fs::write(dir.path().join(".env"), "KEY=1").unwrap();
    let mut command = scripted(dir.path(), &json!([[text("hi")]]));
    let mut talk = Talk::new(command.args(["--disallowedTools", "Read(./.env)"]));
    talk.user("hello");
    talk.hear_until("result");
    let read = |path: &str, more: Value| {
        let mut request = json!({"subtype": "read_file", "path": path});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        request
    };
    let whole = ask(&mut talk, &read("a.txt", json!({}))).unwrap();
    let path = dir.path().canonicalize().unwrap().join("a.txt");
    assert_eq!(
        whole,
        json!({"contents": "forty-two\n", "absPath": path, "lossy": false})
    );
    let part = ask(&mut talk, &read("a.txt", json!({"max_bytes": 5}))).unwrap();
    assert_eq!(
        (&part["contents"], &part["truncated"]),
        (&json!("forty"), &json!(true))
    );
    let bytes = ask(&mut talk, &read("b.bin", json!({"encoding": "base64"}))).unwrap();
    assert_eq!(
        (&bytes["contents"], &bytes["encoding"]),
        (&json!("/wA="), &json!("base64"))
    );
    let lossy = ask(&mut talk, &read("b.bin", json!({}))).unwrap();
    assert_eq!(lossy["lossy"], true);
    for path in [".env", "/etc/shadow", "missing.txt", "."] {
        assert!(ask(&mut talk, &read(path, json!({}))).is_err(), "{path}");
    }
    talk.end();
}

#[test]
fn a_file_that_the_client_read_counts_as_read_while_it_is_the_same() {
    let dir = tempdir().unwrap();
    let edit = |name: &str| {
        call(
            "Edit",
            json!({"file_path": name, "old_string": "old", "new_string": "new"}),
        )
    };
    for name in ["same.txt", "changed.txt"] {
        fs::write(dir.path().join(name), "old\n").unwrap();
    }
    let turns = json!([
        [text("hi")],
        [edit("same.txt")],
        [edit("changed.txt")],
        [text("done")]
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--permission-mode", "acceptEdits"]));
    talk.user("hello");
    talk.hear_until("result");
    let mtime = |path: &Path| {
        let time = fs::metadata(path).unwrap().modified().unwrap();
        time.duration_since(UNIX_EPOCH).unwrap().as_millis()
    };
    let seed = |name: &str, earlier: u128| {
        let path = dir.path().join(name);
        json!({"subtype": "seed_read_state", "path": path, "mtime": mtime(&path) - earlier})
    };
    ask(&mut talk, &seed("same.txt", 0)).unwrap();
    ask(&mut talk, &seed("changed.txt", 60_000)).unwrap();
    assert!(
        ask(
            &mut talk,
            &json!({"subtype": "seed_read_state", "path": "no", "mtime": 1})
        )
        .is_err()
    );
    talk.user("edit them");
    let heard = talk.hear_until("result");
    let results: Vec<_> = heard.iter().filter(|one| one["type"] == "user").collect();
    let failed = |at: usize| results[at]["message"]["content"][0]["is_error"].clone();
    assert_eq!(
        (failed(0), failed(1)),
        (json!(false), json!(true)),
        "{results:#?}"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("same.txt")).unwrap(),
        "new\n"
    );
    talk.end();
}

#[test]
fn hooks_hear_of_a_read_of_a_file_that_is_not_there() {
    let dir = tempdir().unwrap();
    let hook = |name: &str| {
        let command = format!("cat > {}", dir.path().join(name).display());
        json!([{"matcher": "Read", "hooks": [{"type": "command", "command": command}]}])
    };
    let hooks = json!({"PreToolUse": hook("pre"), "PostToolUseFailure": hook("failed")});
    let read = call("Read", json!({"file_path": "missing.txt"}));
    let mut command = scripted(dir.path(), &json!([[read], [text("done")]]));
    command.args([
        "-p",
        "go",
        "--settings",
        &json!({"hooks": hooks}).to_string(),
    ]);
    assert_eq!(answer(&mut command).code, 0);
    for name in ["pre", "failed"] {
        let told = fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(told.contains("missing.txt"), "{name}: {told}");
    }
}

#[test]
fn refusals_and_answers_that_are_no_stream_are_shown() {
    let dir = tempdir().unwrap();
    let ask = |replies: Vec<HttpReply>, flags: &[&str]| {
        let server = HttpFake::start_strict(replies);
        let mut command = haft(dir.path());
        let url = ["--base-url", &server.url];
        command
            .env("ANTHROPIC_API_KEY", "k")
            .env("OPENAI_API_KEY", "k");
        command.args(["-p", "hi", "--model", "m", "--output-format", "stream-json"]);
        answer(command.args(url).args(flags))
    };
    let anthropic = ["--provider", "anthropic"];
    let openai = ["--provider", "openai"];
    let filtered = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null},
        "finish_reason": "content_filter"}]});
    let json = |body: &Value| HttpReply::new(200, "application/json", body.to_string());
    for ran in [
        ask(vec![reply(&[], "refusal")], &anthropic),
        ask(vec![json(&filtered)], &openai),
    ] {
        let messages = lines(&ran);
        let result = messages.last().unwrap();
        assert_eq!(result["stop_reason"], "refusal", "{result}");
        assert!(
            result["result"]
                .as_str()
                .unwrap()
                .contains("refused to answer"),
            "{result}"
        );
        assert!(kinds(&messages).contains(&"system/informational".to_owned()));
    }
    let whole = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "All at once."}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let ran = ask(vec![json(&whole)], &anthropic);
    assert_eq!(
        lines(&ran).last().unwrap()["result"],
        "All at once.",
        "{}",
        ran.stderr
    );
}

#[test]
fn a_context_that_llama_cpp_finds_too_long_is_compacted() {
    let dir = tempdir().unwrap();
    let refused = json!({"error": {
        "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096,
        "message": "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    }});
    let choice = |text: &str| {
        let message = json!({"role": "assistant", "content": text});
        let body = json!({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        HttpReply::new(200, "application/json", body.to_string())
    };
    let replies = [
        HttpReply::new(400, "application/json", refused.to_string()),
        choice("In short: hello."),
        choice("Hello."),
    ];
    let mut replies = replies.into_iter();
    // How much the model can read is asked for meanwhile, at any moment.
    let server = HttpFake::start_with(move |asked| match asked.target().0 {
        "GET" => HttpReply::error(404, "not_found_error", "no such page"),
        _ => haft_testkit::strict::refusal(asked).unwrap_or_else(|| replies.next().unwrap()),
    });
    let mut command = haft(dir.path());
    command
        .env("OPENAI_API_KEY", "k")
        .args(["-p", "hi", "--model", "m", "--base-url"]);
    let ran = answer(
        command
            .arg(format!("{}/v1", server.url))
            .args(["--output-format", "stream-json"]),
    );
    let messages = lines(&ran);
    assert!(
        kinds(&messages).contains(&"system/compact_boundary".to_owned()),
        "{messages:#?}"
    );
    assert_eq!(messages.last().unwrap()["result"], "Hello.");
}
