//! What plugins and projects bring, under the rules of trust; what is not taken is reported.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{Talk, answer, call, lines, scripted, text};
use crate::binary::Ran;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A plugin with a hook that notes what it hears, a server and settings.
fn plugin(root: &Path) {
    put(
        root,
        ".claude-plugin/plugin.json",
        &json!({"name": "kit", "version": "2.0"}).to_string(),
    );
    let command = "echo \"$CLAUDE_PLUGIN_ROOT\" >> \"${CLAUDE_PROJECT_DIR}/heard\"";
    let hook = json!([{"matcher": "Read", "hooks": [{"type": "command", "command": command}]}]);
    put(
        root,
        "hooks/hooks.json",
        &json!({"hooks": {"PreToolUse": hook}}).to_string(),
    );
    let servers = json!({"mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/serve"}}});
    put(root, ".mcp.json", &servers.to_string());
    put(root, "settings.json", &json!({"theme": "dark"}).to_string());
}

fn ran(cwd: &Path, flags: &[&str]) -> (Ran, Value) {
    let read = call("Read", json!({"file_path": "a.txt"}));
    let mut command = scripted(cwd, &json!([[read], [text("done")]]));
    command
        .args(["-p", "go", "--output-format", "stream-json"])
        .args(flags);
    let ran = answer(&mut command);
    let init = lines(&ran)
        .into_iter()
        .find(|one| one["subtype"] == "init")
        .unwrap();
    (ran, init)
}

#[test]
fn hooks_servers_and_settings_of_a_plugin_count_or_are_reported() {
    let dir = tempdir().unwrap();
    let kit = dir.path().join("kit");
    plugin(&kit);
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let (ran, init) = ran(dir.path(), &["--plugin-dir", "kit"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        init["plugins"],
        json!([{"name": "kit", "path": kit, "version": "2.0"}])
    );
    let heard = fs::read_to_string(dir.path().join("heard")).unwrap();
    assert_eq!(heard.trim(), kit.to_str().unwrap());
    assert_eq!(init["mcp_servers"][0]["name"], "plugin:kit:db");
    let told = ran.stderr.replace(dir.path().to_str().unwrap(), "[dir]");
    // The server is connected beside the rest, so that its end may come before that is reported.
    let told: Vec<&str> = told
        .lines()
        .filter(|line| !line.contains("MCP server"))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_bare_session_and_one_without_hooks_take_none() {
    let dir = tempdir().unwrap();
    plugin(&dir.path().join("kit"));
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let (_, init) = ran(dir.path(), &["--plugin-dir", "kit", "--bare"]);
    assert_eq!(init["plugins"], json!([]));
    let off = json!({"disableAllHooks": true}).to_string();
    let (ran, init) = ran(
        dir.path(),
        &[
            "--plugin-dir",
            "kit",
            "--strict-mcp-config",
            "--settings",
            &off,
        ],
    );
    assert!(!dir.path().join("heard").exists());
    assert!(
        ran.stderr.contains("hooks are switched off"),
        "{}",
        ran.stderr
    );
    assert_eq!(init["mcp_servers"], json!([]));
}

#[test]
fn installed_plugins_count_where_they_are_enabled() {
    let dir = tempdir().unwrap();
    let (work, home) = (dir.path().join("work"), dir.path().join("home"));
    plugin(&dir.path().join("installed/kit"));
    let list = json!({"version": 2, "plugins": {"kit@shop": [{"installPath": dir.path().join("installed/kit")}]}});
    put(
        &home,
        ".claude/plugins/installed_plugins.json",
        &list.to_string(),
    );
    put(&work, "a.txt", "x\n");
    let start = |enabled: &Value, place: &Path| {
        let settings = json!({"enabledPlugins": enabled}).to_string();
        put(place, ".claude/settings.json", &settings);
        let mut command = scripted(&work, &json!([[text("done")]]));
        command.env("HOME", &home).env_remove("CLAUDE_CONFIG_DIR");
        let ran = answer(command.args(["-p", "go", "--output-format", "stream-json"]));
        fs::remove_file(place.join(".claude/settings.json")).unwrap();
        let init = lines(&ran)
            .into_iter()
            .find(|one| one["subtype"] == "init")
            .unwrap();
        (init["plugins"].as_array().unwrap().len(), ran.stderr)
    };
    assert_eq!(start(&json!({"kit@shop": true}), &home).0, 1);
    assert_eq!(start(&json!({"kit@shop": false}), &home).0, 0);
    let (none, told) = start(&json!({"other@shop": true}), &home);
    assert!(
        none == 0 && told.contains("other@shop is enabled and not installed"),
        "{told}"
    );
    let (none, told) = start(&json!({"kit@shop": true}), &work);
    assert!(
        none == 0 && told.contains("enabledPlugins wait until"),
        "{told}"
    );
}

#[test]
fn the_servers_of_a_project_are_never_silent() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let servers = json!({"mcpServers": {"db": {"command": "serve"}, "off": {"command": "x"}}});
    fs::write(dir.path().join(".mcp.json"), servers.to_string()).unwrap();
    let off = json!({"disabledMcpjsonServers": ["off"]}).to_string();
    let (untrusted, init) = ran(dir.path(), &["--settings", &off]);
    assert!(
        untrusted.stderr.contains("MCP server db is left out"),
        "{}",
        untrusted.stderr
    );
    assert_eq!(init["mcp_server_errors"][0]["category"], "untrusted");
    assert_eq!(init["mcp_server_errors"].as_array().unwrap().len(), 1);
    assert_eq!(init["mcp_servers"], json!([]));
    // To name the scope is enough.
    let (trusted, init) = ran(dir.path(), &["--setting-sources", "user,project"]);
    assert_eq!(init["mcp_servers"][0]["name"], "db");
    // It is connected beside the rest.
    assert!(["failed", "pending"].contains(&init["mcp_servers"][0]["status"].as_str().unwrap()));
    assert_eq!(trusted.code, 0);
    let (left, init) = ran(dir.path(), &["--strict-mcp-config"]);
    assert_eq!(
        (left.stderr.as_str(), &init["mcp_servers"]),
        ("", &json!([]))
    );
    fs::write(dir.path().join(".mcp.json"), "{").unwrap();
    let (broken, _) = ran(dir.path(), &[]);
    assert!(
        broken.stderr.contains("is not valid JSON"),
        "{}",
        broken.stderr
    );
}

#[test]
fn odd_settings_rules_and_heads_are_reported_once_each() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let settings = json!({
        "$schema": "x", "modle": "m", "wibble": 1, "spinnerTipsEnabled": false,
        "permissions": {"deny": ["SlashCommand(/deploy)", "SlashCommand(/ship:*)"]},
    });
    put(dir.path(), "given.json", &settings.to_string());
    let head = "---\nname: twice\ndescription: One.\ndescription: Two.\n---\nDo it.";
    put(dir.path(), ".claude/skills/twice/SKILL.md", head);
    let deploy = "---\ndescription: Ships.\n---\nShip it.";
    put(dir.path(), ".claude/skills/deploy/SKILL.md", deploy);
    let skill = call("Skill", json!({"skill": "deploy"}));
    let mut command = scripted(dir.path(), &json!([[skill], [text("done")]]));
    command.args([
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--settings",
        "given.json",
    ]);
    let ran = answer(&mut command);
    let told = ran.stderr.replace(dir.path().to_str().unwrap(), "[dir]");
    insta::assert_snapshot!(told);
    let messages = lines(&ran);
    let denied = messages.last().unwrap()["permission_denials"]
        .as_array()
        .unwrap();
    assert_eq!(denied.len(), 1, "the old rule still denies: {messages:#?}");
}

#[test]
fn a_plugin_is_read_anew_with_all_it_brings() {
    let dir = tempdir().unwrap();
    let kit = dir.path().join("kit");
    plugin(&kit);
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let read = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "a.txt"}});
    let agent = json!({
        "subagent_type": "kit:helper", "description": "helps", "prompt": "help",
    });
    let turns = json!([
        [read("one")],
        [text("one")],
        [read("two")],
        [text("two")],
        [call("Agent", agent)],
        [text("helped")],
        [text("three")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    let mut talk = Talk::new(command.args(["--plugin-dir", "kit", "--strict-mcp-config"]));
    talk.user("first");
    talk.hear_until("result");
    let heard = |name: &str| {
        let text = fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        text.lines().count()
    };
    assert_eq!((heard("heard"), heard("later")), (1, 0));
    let hooks = fs::read_to_string(kit.join("hooks/hooks.json")).unwrap();
    put(&kit, "hooks/hooks.json", &hooks.replace("/heard", "/later"));
    let helper = "---\nname: helper\ndescription: Helps.\n---\nHelp.";
    put(&kit, "agents/helper.md", helper);
    put(&kit, "commands/greet.md", "Say hello.");
    put(
        &kit,
        "skills/new/SKILL.md",
        "---\ndescription: New.\n---\nDo it.",
    );
    let manifest = json!({"name": "kit", "version": "3.0"}).to_string();
    put(&kit, ".claude-plugin/plugin.json", &manifest);
    talk.request("q", &json!({"subtype": "reload_plugins"}));
    let answer = talk.hear_until("control_response").pop().unwrap();
    let answer = &answer["response"]["response"];
    let names = |list: &Value| {
        let names = list
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].clone());
        names.collect::<Vec<Value>>()
    };
    assert!(
        names(&answer["agents"]).contains(&json!("kit:helper")),
        "{answer}"
    );
    for command in ["kit:greet", "kit:new"] {
        assert!(
            names(&answer["commands"]).contains(&json!(command)),
            "{answer}"
        );
    }
    assert_eq!(answer["plugins"][0]["version"], "3.0");
    talk.user("second");
    talk.hear_until("result");
    assert_eq!((heard("heard"), heard("later")), (1, 1));
    talk.user("third");
    let told = talk.hear_until("result");
    let told = serde_json::to_string(&told).unwrap();
    assert!(
        told.contains("helped") && !told.contains("No agent "),
        "{told}"
    );
    talk.end();
}

#[test]
fn servers_and_the_main_agent_of_plugins_are_read_anew() {
    if !haft_testkit::command("python3")
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        return haft_testkit::skip("no python3 for an MCP server");
    }
    let dir = tempdir().unwrap();
    let kit = dir.path().join("kit");
    let manifest = json!({"name": "kit", "version": "1.0"}).to_string();
    put(&kit, ".claude-plugin/plugin.json", &manifest);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/it/server.py");
    let server = json!({"command": "python3", "args": [script]});
    let servers = |named: Value| json!({"mcpServers": named}).to_string();
    put(&kit, ".mcp.json", &servers(json!({"old": &server})));
    let echo = |server: &str| {
        let name = format!("mcp__plugin_kit_{server}__echo");
        call(&name, json!({"text": format!("by {server}")}))
    };
    let turns = json!([
        [echo("old")],
        [text("one")],
        [echo("new"), echo("old")],
        [text("two")],
    ]);
    let mut command = scripted(dir.path(), &turns);
    command
        .env("MCP_CONNECTION_NONBLOCKING", "0")
        .args(["--plugin-dir", "kit", "--allowedTools"])
        .args(["mcp__plugin_kit_old", "mcp__plugin_kit_new"]);
    let mut talk = Talk::new(&mut command);
    let told = |messages: Vec<Value>| serde_json::to_string(&messages).unwrap();
    talk.user("first");
    let first = told(talk.hear_until("result"));
    assert!(first.contains("by old"), "{first}");
    put(&kit, ".mcp.json", &servers(json!({"new": &server})));
    put(
        &kit,
        "agents/helper.md",
        "---\nname: helper\ndescription: Helps.\n---\nHelp.",
    );
    put(
        &kit,
        "settings.json",
        &json!({"agent": "helper"}).to_string(),
    );
    talk.request("q", &json!({"subtype": "reload_plugins"}));
    let mut heard = talk.hear_until("control_response");
    let answer = heard.pop().unwrap();
    let heard = told(heard);
    assert!(
        heard.contains("the main agent is kit:helper from now on"),
        "{heard}"
    );
    let answer = &answer["response"]["response"];
    let names = |list: &Value| {
        let names = list.as_array().unwrap().iter();
        names
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    assert_eq!(names(&answer["mcpServers"]), ["plugin:kit:new"], "{answer}");
    assert_eq!(answer["error_count"], 0, "{answer}");
    haft_testkit::until_blocking("the server is connected", || {
        talk.request("s", &json!({"subtype": "mcp_status"}));
        let answer = talk.hear_until("control_response").pop().unwrap();
        answer["response"]["response"]["mcpServers"][0]["status"] == "connected"
    });
    talk.user("second");
    let second = told(talk.hear_until("result"));
    assert!(second.contains("by new"), "{second}");
    // The other one is gone with its tools.
    assert!(second.contains("\"is_error\":true"), "{second}");
    talk.end();
}

#[test]
fn a_changed_main_agent_acts_from_the_next_turn_on() {
    let dir = tempdir().unwrap();
    let kit = dir.path().join("kit");
    put(
        &kit,
        ".claude-plugin/plugin.json",
        &json!({"name": "kit"}).to_string(),
    );
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let write = |id: &str| {
        let input = json!({"file_path": format!("{id}.txt"), "content": "new\n"});
        json!({"type": "tool_use", "id": id, "name": "Write", "input": input})
    };
    let turns = json!([
        [write("one")],
        [text("one")],
        [write("two")],
        [text("two")],
        [write("three")],
        [text("three")],
    ]);
    let record = dir.path().join("tape");
    let mut command = scripted(dir.path(), &turns);
    command.args(["--plugin-dir", "kit", "--permission-mode", "acceptEdits"]);
    let mut talk = Talk::new(command.arg("--record").arg(&record));
    let init = |heard: &[Value]| {
        let found = heard.iter().rev().find(|one| one["subtype"] == "init");
        found.cloned().unwrap()
    };
    // The system prompt of the last request.
    let asked = || {
        let tape = fs::read_to_string(&record).unwrap();
        let lines: Vec<Value> = tape
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let parts: Vec<&Value> = lines.iter().filter_map(|line| line.get("part")).collect();
        let mut requests = lines.iter().rev().filter_map(|line| line.get("request"));
        let system = requests.next().unwrap()["parts"][1].as_u64().unwrap();
        parts[usize::try_from(system).unwrap()].to_string()
    };
    talk.user("first");
    let heard = talk.hear_until("result");
    let usual = init(&heard);
    assert!(dir.path().join("one.txt").exists());
    assert!(!asked().contains("Only look."), "{}", asked());

    put(
        &kit,
        "agents/reader.md",
        "---\nname: reader\ndescription: Reads.\ntools: Read, Grep\nmodel: own-model\nmaxTurns: 7\n---\nOnly look.",
    );
    put(
        &kit,
        "settings.json",
        &json!({"agent": "reader"}).to_string(),
    );
    talk.request("q", &json!({"subtype": "reload_plugins"}));
    let heard = talk.hear_until("control_response");
    assert_eq!(
        heard.last().unwrap()["response"]["response"]["error_count"],
        0,
        "{heard:#?}"
    );
    talk.user("second");
    let heard = talk.hear_until("result");
    let now = init(&heard);
    assert_eq!(now["tools"], json!(["Grep", "Read"]), "{now}");
    assert_eq!(now["model"], "own-model");
    assert!(!dir.path().join("two.txt").exists(), "it has no Write");
    assert!(asked().contains("Only look."), "{}", asked());
    talk.request(
        "f",
        &json!({"subtype": "read_file", "path": dir.path().join("a.txt")}),
    );
    let read = talk.hear_until("control_response").pop().unwrap();
    assert_eq!(read["response"]["subtype"], "success", "{read}");

    // Settings come before plugins; a kind that is not there changes nothing, and is reported.
    put(
        dir.path(),
        ".claude/settings.json",
        &json!({"agent": "no-one"}).to_string(),
    );
    talk.request("q", &json!({"subtype": "reload_plugins"}));
    let heard = talk.hear_until("control_response");
    assert_eq!(
        heard.last().unwrap()["response"]["response"]["error_count"],
        1
    );
    let told = serde_json::to_string(&heard).unwrap();
    assert!(told.contains("the main agent stays what it was"), "{told}");

    // Back to what it was.
    fs::remove_file(dir.path().join(".claude/settings.json")).unwrap();
    fs::remove_file(kit.join("settings.json")).unwrap();
    talk.request("q", &json!({"subtype": "reload_plugins"}));
    talk.hear_until("control_response");
    talk.user("third");
    let heard = talk.hear_until("result");
    let now = init(&heard);
    assert_eq!(
        (&now["tools"], &now["model"]),
        (&usual["tools"], &usual["model"])
    );
    assert!(dir.path().join("three.txt").exists());
    assert!(!asked().contains("Only look."), "{}", asked());
    talk.end();
}
