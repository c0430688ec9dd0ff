use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, kinds, lines, text};
use crate::binary::haft;

pub(super) fn turn(content: Value) -> Value {
    json!({"content": content, "usage": {"input": 10, "output": 5}})
}

fn errand(prompt: &str) -> Value {
    json!({"description": "Runs an errand", "prompt": prompt})
}

pub(super) fn aside(when: &str, turns: &[Value]) -> Value {
    json!({"when": when, "turns": turns})
}

/// `haft` with a script that speaks for subagents too.
pub(super) fn scripted(cwd: &Path, turns: &[Value], conversations: &[Value]) -> Command {
    let script = cwd.join(".haft-test-script.json");
    let said = json!({"turns": turns, "conversations": conversations});
    fs::write(&script, said.to_string()).unwrap();
    let mut command = haft(cwd);
    command.arg("--script").arg(script);
    command
}

pub(super) fn streamed(command: &mut Command) -> Vec<Value> {
    let ran = answer(command.args(["-p", "go", "--output-format", "stream-json"]));
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    lines(&ran)
}

fn of_kind<'a>(told: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let kinds = kinds(told);
    let found = kinds.iter().zip(told).filter(|(one, _)| *one == kind);
    found.map(|(_, message)| message).collect()
}

/// The result of a call, as the stream tells it.
pub(super) fn result_of<'a>(told: &'a [Value], id: &str) -> &'a Value {
    let mut users = told.iter().filter(|message| message["type"] == "user");
    users
        .find(|message| message["message"]["content"][0]["tool_use_id"] == id)
        .unwrap()
}

pub(super) fn transcripts(cwd: &Path) -> Vec<PathBuf> {
    let projects = cwd.join(".claude/projects");
    let mut found = Vec::new();
    let mut left = vec![projects];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                left.push(path);
            } else if name.starts_with("agent-") && name.ends_with(".jsonl") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn what_subagents_do_is_told_under_the_call_that_launched_them() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "alpha\n").unwrap();
    let turns = [
        turn(json!([
            call("Agent", errand("the first errand")),
            call("Task", errand("the second errand")),
        ])),
        turn(json!([text("both done")])),
    ];
    let read = turn(json!([
        text("I look"),
        call("Read", json!({"file_path": "a.txt"}))
    ]));
    let write = turn(json!([call(
        "Write",
        json!({"file_path": "b.txt", "content": "b"})
    )]));
    let conversations = [
        aside("first", &[read, turn(json!([text("it says alpha")]))]),
        aside("second", &[write, turn(json!([text("I may not")]))]),
    ];
    let prices = json!({"scripted": {
        "input": 1_000_000, "output": 0, "cache_read": 0, "cache_write": 0, "cache_write_1h": 0,
    }});
    let mut command = scripted(dir.path(), &turns, &conversations);
    let told = streamed(command.args(["--prices", &prices.to_string()]));

    let init = of_kind(&told, "system/init")[0];
    let tools = init["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("Task")) && !tools.contains(&json!("Agent")));
    assert_eq!(
        init["agents"],
        json!(["Explore", "Plan", "architect", "general-purpose"])
    );

    let below = |id: &str| -> Vec<&Value> {
        let told = told.iter();
        told.filter(|one| one["parent_tool_use_id"] == id).collect()
    };
    let shown: Vec<String> = below("toolu_0_0")
        .iter()
        .map(|message| {
            let block = &message["message"]["content"][0];
            format!("{} {}", message["subagent_type"], block["type"])
        })
        .collect();
    let expected = [
        r#""general-purpose" "tool_use""#,
        r#""general-purpose" "tool_result""#,
    ];
    assert_eq!(shown, expected, "its words are for its launcher alone");
    assert_eq!(below("toolu_0_1").len(), 2);

    let first = result_of(&told, "toolu_0_0");
    let structured = &first["tool_use_result"];
    assert_eq!(structured["status"], "completed");
    assert_eq!(structured["content"], json!([text("it says alpha")]));
    assert_eq!(structured["totalToolUseCount"], 1);
    assert_eq!(structured["totalTokens"], 15);
    let id = structured["agentId"].as_str().unwrap();
    let content = &first["message"]["content"][0]["content"];
    assert_eq!(content[1], text(&format!("[agent id: {id}]")));

    let denied = of_kind(&told, "system/permission_denied");
    assert_eq!(denied.len(), 1);
    let second = &result_of(&told, "toolu_0_1")["tool_use_result"];
    assert_eq!(denied[0]["agent_id"], second["agentId"]);
    let started = of_kind(&told, "system/task_started");
    let over = of_kind(&told, "system/task_notification");
    assert_eq!((started.len(), over.len()), (2, 2));

    let result = told.last().unwrap();
    assert_eq!(result["result"], "both done");
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
    // Six replies of 10 tokens at one dollar each; the main agent's own are two.
    assert_eq!(result["total_cost_usd"], 60.0);
    assert_eq!(result["usage"]["input_tokens"], 20);
    assert_eq!(result["modelUsage"]["scripted"]["inputTokens"], 60);

    let kept = transcripts(dir.path());
    assert_eq!(kept.len(), 2);
    let one = kept.iter().find(|path| path.to_string_lossy().contains(id));
    let lines = fs::read_to_string(one.unwrap()).unwrap();
    assert!(lines.contains("the first errand") && lines.contains(r#""isSidechain":true"#));
}

#[test]
fn what_they_say_is_told_where_that_is_wanted() {
    let dir = tempdir().unwrap();
    let turns = [
        turn(json!([call("Agent", errand("errand"))])),
        turn(json!([text("done")])),
    ];
    let conversations = [aside("errand", &[turn(json!([text("my words")]))])];
    let mut command = scripted(dir.path(), &turns, &conversations);
    let told = streamed(command.arg("--forward-subagent-text"));
    let below = told
        .iter()
        .find(|one| one["parent_tool_use_id"] == "toolu_0_0");
    assert_eq!(below.unwrap()["message"]["content"][0], text("my words"));
}

#[test]
fn v9_v10_kinds_come_from_flags_and_folders_and_have_the_tools_they_say() {
    let dir = tempdir().unwrap();
    let agents = dir.path().join(".claude/agents");
    fs::create_dir_all(&agents).unwrap();
    let write = |name: &str, text: &str| fs::write(agents.join(name), text).unwrap();
    write(
        "reader.md",
        "---\nname: reader\ndescription: reads\ntools: Read, Nope\n---\nYou read.",
    );
    write(
        "silent.md",
        "---\nname: silent\n---\nNobody knows when to call.",
    );
    write(
        "lost.md",
        "---\nname: lost\ndescription: lost\ntools: Nope\n---\nYou have nothing.",
    );
    let of = |kind: &str| {
        let mut input = errand(&format!("errand of {kind}"));
        input["subagent_type"] = json!(kind);
        call("Agent", input)
    };
    let turns = [
        turn(json!([of("reader"), of("silent"), of("lost"), of("given")])),
        turn(json!([text("done")])),
    ];
    let conversations = [
        aside(
            "reader",
            &[
                turn(json!([call("Glob", json!({"pattern": "*"}))])),
                turn(json!([text("read")])),
            ],
        ),
        aside("given", &[turn(json!([text("given")]))]),
    ];
    let given = r#"{"given": {"description": "given", "prompt": "You are given."}}"#;
    let mut command = scripted(dir.path(), &turns, &conversations);
    let told = streamed(command.args(["--agents", given]));
    let init = of_kind(&told, "system/init")[0];
    let names = json!([
        "Explore",
        "Plan",
        "architect",
        "general-purpose",
        "given",
        "lost",
        "reader"
    ]);
    assert_eq!(init["agents"], names);
    let text_of = |id: &str| {
        let content = &result_of(&told, id)["message"]["content"][0]["content"];
        match content.as_str() {
            Some(text) => text.to_owned(),
            None => content[0]["text"].as_str().unwrap().to_owned(),
        }
    };
    assert_eq!(text_of("toolu_0_0"), "read");
    assert!(text_of("toolu_0_1").contains("No agent has the type \"silent\""));
    assert!(text_of("toolu_0_2").contains("only the tools Nope"));
    assert_eq!(text_of("toolu_0_3"), "given");
    let globbed = told
        .iter()
        .find(|one| one["parent_tool_use_id"] == "toolu_0_0" && one["type"] == "user");
    let globbed = globbed.unwrap()["message"]["content"][0]["content"].to_string();
    assert!(globbed.contains("Unknown tool: Glob"), "{globbed}");
}

#[test]
fn a_rule_keeps_a_kind_from_being_launched() {
    let dir = tempdir().unwrap();
    let mut input = errand("errand");
    input["subagent_type"] = json!("Explore");
    let turns = [
        turn(json!([
            call("Agent", input),
            call("Agent", errand("errand"))
        ])),
        turn(json!([text("done")])),
    ];
    let conversations = [aside("errand", &[turn(json!([text("fine")]))])];
    let mut command = scripted(dir.path(), &turns, &conversations);
    let told = streamed(command.args(["--disallowedTools", "Task(Explore)"]));
    let denied = of_kind(&told, "system/permission_denied");
    assert_eq!(denied.len(), 1);
    assert_eq!(denied[0]["tool_use_id"], "toolu_0_0");
    assert_eq!(
        result_of(&told, "toolu_0_1")["tool_use_result"]["status"],
        "completed"
    );
}

#[test]
fn the_main_agent_can_be_of_a_kind() {
    let dir = tempdir().unwrap();
    let given = json!({"reviewer": {
        "description": "reviews",
        "prompt": "You review.",
        "tools": ["Read", "Agent(Explore)"],
        "initialPrompt": "Begin with the tests.",
        "maxTurns": 1,
    }});
    let turns = [turn(json!([call("Agent", errand("errand"))]))];
    let mut command = scripted(dir.path(), &turns, &[]);
    let flags = [
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--agent",
        "reviewer",
    ];
    let ran = answer(command.args(flags).args(["--agents", &given.to_string()]));
    let told = lines(&ran);
    assert_eq!(
        of_kind(&told, "system/init")[0]["tools"],
        json!(["Task", "Read"])
    );
    let refused = result_of(&told, "toolu_0_0")["message"]["content"][0]["content"].to_string();
    assert!(refused.contains("Available: Explore"), "{refused}");
    assert_eq!(told.last().unwrap()["subtype"], "error_max_turns");

    let mut command = scripted(dir.path(), &turns, &[]);
    let ran = answer(command.args(["-p", "go", "--agent", "nobody"]));
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr
            .contains("no agent is called \"nobody\"; there are: Explore"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_program_brings_kinds_of_its_own_and_is_asked_for_each_subagent() {
    let dir = tempdir().unwrap();
    let mut input = errand("errand");
    input["subagent_type"] = json!("scribe");
    let turns = [
        turn(json!([call("Agent", input)])),
        turn(json!([text("done")])),
    ];
    let conversations = [aside(
        "errand",
        &[
            turn(json!([call(
                "Write",
                json!({"file_path": "b.txt", "content": "b"})
            )])),
            turn(json!([text("written")])),
        ],
    )];
    let mut command = scripted(dir.path(), &turns, &conversations);
    let mut talk = Talk::new(command.args(["--permission-prompt-tool", "stdio"]));
    let agents = json!({"scribe": {"description": "writes", "prompt": "You write."}});
    let hooks = json!({"SubagentStart": [{"hookCallbackIds": ["h"]}]});
    talk.request(
        "1",
        &json!({"subtype": "initialize", "agents": agents, "hooks": hooks}),
    );
    let answered = talk.hear_until("control_response").pop().unwrap();
    let known = answered["response"]["response"]["agents"]
        .as_array()
        .unwrap();
    let names: BTreeSet<&str> = known
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains("scribe") && names.contains("Explore"),
        "{names:?}"
    );
    talk.user("go");
    let hook = talk.hear_until("control_request").pop().unwrap();
    let input = &hook["request"]["input"];
    assert_eq!(input["hook_event_name"], "SubagentStart");
    assert_eq!(input["agent_type"], "scribe");
    talk.respond(&hook, &json!({}));
    let asked = talk.hear_until("control_request").pop().unwrap();
    assert_eq!(asked["request"]["subtype"], "can_use_tool");
    assert_eq!(asked["request"]["agent_id"], input["agent_id"]);
    talk.respond(&asked, &json!({"behavior": "allow"}));
    let told = talk.hear_until("result");
    assert_eq!(told.last().unwrap()["result"], "done");
    let (_, code) = talk.end();
    assert_eq!(code, 0);
    assert_eq!(fs::read_to_string(dir.path().join("b.txt")).unwrap(), "b");
}

#[test]
fn one_in_the_background_is_waited_for_and_its_words_are_told() {
    let dir = tempdir().unwrap();
    let mut input = errand("errand");
    input["run_in_background"] = json!(true);
    let turns = [
        turn(json!([call("Agent", input)])),
        turn(json!([text("launched")])),
        turn(json!([text("it found gold")])),
    ];
    let wait = "while [ ! -e go ]; do command sleep 0.05; done";
    let conversations = [aside(
        "errand",
        &[
            turn(json!([call("Bash", json!({"command": wait}))])),
            turn(json!([text("gold")])),
        ],
    )];
    let mut command = scripted(dir.path(), &turns, &conversations);
    let mut talk = Talk::new(command.arg("--allowedTools=Bash"));
    talk.user("go");
    // Nothing more comes: what is still at work is waited for.
    talk.stdin = None;
    let told = talk.hear_until("result");
    assert_eq!(told.last().unwrap()["result"], "launched");
    let launched = &result_of(&told, "toolu_0_0")["tool_use_result"];
    assert_eq!(launched["status"], "async_launched");
    fs::write(dir.path().join("go"), "").unwrap();
    let told = talk.hear_until("result");
    assert_eq!(told.last().unwrap()["result"], "it found gold");
    let file = launched["outputFile"].as_str().unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "gold");
    let (_, code) = talk.end();
    assert_eq!(code, 0);
}

#[test]
fn killed_and_resumed_the_model_knows_who_was_at_work() {
    let dir = tempdir().unwrap();
    let turns = [turn(json!([call("Agent", errand("errand"))]))];
    let hanging = json!({"content": [], "hangs": true});
    let conversations = [aside(
        "errand",
        &[
            turn(json!([call("Glob", json!({"pattern": "*"}))])),
            hanging,
        ],
    )];
    let mut command = scripted(dir.path(), &turns, &conversations);
    let mut talk = Talk::new(&mut command);
    talk.user("go");
    talk.hear_until("system/task_progress");
    talk.signal("KILL");
    talk.child.wait().unwrap();
    let path = transcripts(dir.path()).pop().unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let id = name.trim_start_matches("agent-").trim_end_matches(".jsonl");

    let letter = json!({"to": id, "message": "go on"});
    let turns = [
        turn(json!([call("SendMessage", letter)])),
        turn(json!([call("TaskOutput", json!({"task_id": id}))])),
        turn(json!([text("it is done")])),
    ];
    let conversations = [aside(
        "errand",
        &[
            json!({"error": {"kind": "local", "message": "this was said before"}}),
            turn(json!([text("I went on")])),
        ],
    )];
    let mut command = scripted(dir.path(), &turns, &conversations);
    let told = streamed(command.args(["--continue", "--fork-session"]));
    // A fork is another session: it has no subagents of its own.
    let refused = result_of(&told, "toolu_0_0")["message"]["content"][0]["content"].to_string();
    assert!(refused.contains("No agent "), "{refused}");

    let sessions = dir.path().join(".claude/projects");
    let session = path
        .ancestors()
        .nth(2)
        .unwrap()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(path.starts_with(&sessions));
    let mut command = scripted(dir.path(), &turns, &conversations);
    let told = streamed(command.arg(format!("--resume={session}")));
    let last = of_kind(&told, "result/success").pop().unwrap();
    assert_eq!(last["result"], "it is done", "{told:#?}");
    let lines = fs::read_to_string(&path).unwrap();
    assert!(lines.contains("I went on"));
    let main = path.ancestors().nth(2).unwrap().with_extension("jsonl");
    let main = fs::read_to_string(main).unwrap();
    assert!(main.contains("cut off while subagents were running"));
}

#[test]
fn a_kind_brings_hooks_skills_and_what_it_remembers_and_hooks_of_a_project_need_trust() {
    let dir = tempdir().unwrap();
    let agents = dir.path().join("project/.claude/agents");
    let memory = dir.path().join(".claude/agent-memory/mine");
    for folder in [&agents, &memory, &dir.path().join(".claude/agents")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(memory.join("MEMORY.md"), "The tests are slow.\n").unwrap();
    let skill = dir.path().join(".claude/skills/brew");
    fs::create_dir_all(&skill).unwrap();
    fs::write(
        skill.join("SKILL.md"),
        "---\ndescription: tea\n---\nBoil water first.\n",
    )
    .unwrap();
    fs::write(dir.path().join("project/CLAUDE.md"), "Use tabs.\n").unwrap();
    let file = |name: &str| {
        format!(
            "---\nname: {name}\ndescription: d\nmemory: user\nskills: brew\nhooks:\n  Stop:\n  - hooks:\n    - type: command\n      \
             command: touch {name}-stopped\n---\nYou are {name}."
        )
    };
    fs::write(dir.path().join(".claude/agents/mine.md"), file("mine")).unwrap();
    fs::write(agents.join("theirs.md"), file("theirs")).unwrap();
    // Trust in the project says nothing about it.
    let other = dir.path().join("other");
    fs::create_dir_all(other.join(".claude/agents")).unwrap();
    fs::write(other.join(".claude/agents/far.md"), file("far")).unwrap();
    let project = dir.path().join("project");
    let of = |kind: &str| {
        let mut input = errand("errand");
        input["subagent_type"] = json!(kind);
        call("Agent", input)
    };
    let turns = [
        turn(json!([of("mine"), of("theirs"), of("far")])),
        turn(json!([text("done")])),
    ];
    let conversations = [aside("errand", &[turn(json!([text("fine")]))])];
    let record = dir.path().join("record.jsonl");
    let run = |trusts: bool| {
        let mut command = scripted(&project, &turns, &conversations);
        command.env("HOME", dir.path());
        command.arg("--add-dir").arg(&other);
        if trusts {
            command.args(["--setting-sources", "user,project"]);
        }
        let _ = fs::remove_file(&record);
        streamed(command.arg("--record").arg(&record));
    };
    let stopped = |name: &str| project.join(format!("{name}-stopped")).exists();
    run(false);
    assert!(stopped("mine") && !stopped("theirs"));
    let asked = fs::read_to_string(&record).unwrap();
    assert!(asked.contains("The tests are slow.") && asked.contains("Boil water first."));
    assert!(asked.contains("Use tabs."), "what the project wants known");
    run(true);
    assert!(stopped("theirs") && !stopped("far"));
    let asked = fs::read_to_string(&record).unwrap();
    assert!(asked.contains("You are far."), "it ran");

    // What may not be read is not told to a subagent either.
    let mut command = scripted(&project, &turns, &conversations);
    command.env("HOME", dir.path());
    let _ = fs::remove_file(&record);
    command.arg("--record").arg(&record);
    streamed(command.args(["--disallowedTools", "Read(./CLAUDE.md)"]));
    let asked = fs::read_to_string(&record).unwrap();
    assert!(asked.contains("You are mine.") && !asked.contains("Use tabs."));
}
