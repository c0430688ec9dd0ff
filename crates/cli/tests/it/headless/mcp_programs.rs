//! MCP servers that are programs: one of our own, in Python, which does what it is told.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{answer, call, lines, scripted, text};
use crate::binary::haft;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/it/server.py");

pub(super) fn entry(modes: &[&str]) -> Value {
    let mut args = vec![SCRIPT];
    args.extend(modes);
    json!({"command": "python3", "args": args})
}

pub(super) fn named(modes: &[&str]) -> String {
    json!({"mcpServers": {"s": entry(modes)}}).to_string()
}

/// What the calls of a run came to.
pub(super) fn results(command: &mut Command) -> (Vec<String>, Vec<Value>, String) {
    command.args(["-p", "go", "--output-format", "stream-json"]);
    let ran = answer(command);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stderr, ran.stdout);
    let messages = lines(&ran);
    let users = messages.iter().filter(|one| one["type"] == "user");
    let blocks = users.flat_map(|one| {
        one["message"]["content"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    });
    let blocks = blocks.filter(|block| block["type"] == "tool_result");
    let texts = blocks.map(|block| match &block["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    (texts.collect(), messages, ran.stderr)
}

#[test]
fn tools_of_a_program_are_offered_called_and_held_to_their_schema() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let calls = json!([
        [
            call("mcp__s__echo", json!({"text": "over stdio"})),
            call("mcp__s__echo", json!({})),
            call("mcp__s__act", json!({"what": "error"})),
            call("ListMcpResourcesTool", json!({})),
        ],
        [text("done")],
    ]);
    let mut command = scripted(dir.path(), &calls);
    command.args(["--mcp-config", &named(&[]), "--allowedTools", "mcp__s"]);
    let (texts, messages, stderr) = results(&mut command);
    let init = messages
        .iter()
        .find(|one| one["subtype"] == "init")
        .unwrap();
    assert_eq!(
        init["mcp_servers"],
        json!([{"name": "s", "status": "connected"}])
    );
    assert!(init["slash_commands"].to_string().contains("mcp__s__greet"));
    assert!(init["tools"].to_string().contains("mcp__s__echo"));
    assert_eq!(texts[0], "over stdio");
    assert!(texts[1].contains("`text` is required"), "{}", texts[1]);
    assert!(texts[2].contains("no luck"), "{}", texts[2]);
    assert!(texts[3].contains("x://a"), "{}", texts[3]);
    assert_eq!(stderr, "");
}

/// 25,000 tokens are 100,000 characters, unless a variable or the tool says otherwise.
#[test]
fn a_long_result_is_kept_in_a_file_and_shown_in_part() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let long = |tool: &str, lines: usize| {
        let name = format!("mcp__s__{tool}");
        call(&name, json!({"what": "long", "lines": lines}))
    };
    let run = |tokens: Option<&str>| {
        let dir = tempdir().unwrap();
        let calls = json!([
            [long("act", 6_000)],
            [long("act", 7_000)],
            [long("more", 7_000)],
            [text("done")],
        ]);
        let mut command = scripted(dir.path(), &calls);
        command.args([
            "--mcp-config",
            &named(&["long"]),
            "--allowedTools",
            "mcp__s",
        ]);
        if let Some(tokens) = tokens {
            command.env("MAX_MCP_OUTPUT_TOKENS", tokens);
        }
        let (texts, messages, _) = results(&mut command);
        let whole: Vec<bool> = texts
            .iter()
            .map(|text| text.matches("a line of this").count() >= 6_000)
            .collect();
        for (text, is_whole) in texts.iter().zip(&whole).filter(|(_, is_whole)| !**is_whole) {
            assert!(
                text.len() < 5_000 && text.contains("tool-results/"),
                "{text}"
            );
            assert!(text.contains("begin") && text.contains("end"), "{text}");
            let path = text
                .split_whitespace()
                .find(|word| word.contains("tool-results/"));
            let path = path.unwrap().trim_end_matches(['.', ',', ':', ')', ']']);
            let kept = fs::read_to_string(path).unwrap();
            assert!(
                kept.starts_with("begin") && kept.ends_with("end"),
                "{is_whole}"
            );
        }
        (whole, messages)
    };
    let (whole, messages) = run(None);
    assert_eq!(whole, [true, false, true]);
    // From 10,000 tokens on a person is warned.
    let is_warning = |one: &Value| {
        let text = "the result of mcp__s__act is long: 90009 characters";
        one["type"] == "system" && one.to_string().contains(text)
    };
    assert!(messages.iter().any(is_warning), "{messages:#?}");
    let (whole, _) = run(Some("30000"));
    assert_eq!(whole, [true, true, true]);
    let (whole, _) = run(Some("10"));
    assert_eq!(whole, [false, false, true]);
}

#[test]
fn without_a_rule_a_call_is_refused_whatever_the_server_says_of_its_tool() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let calls = json!([[call("mcp__s__pid", json!({}))], [text("done")]]);
    let mut command = scripted(dir.path(), &calls);
    command.args([
        "--mcp-config",
        &named(&[]),
        "--disallowedTools",
        "mcp__s__pid",
    ]);
    let (texts, ..) = results(&mut command);
    assert!(texts[0].contains("mcp__s__pid"), "{}", texts[0]);
    assert!(texts[0].parse::<u32>().is_err());
}

#[test]
fn a_prompt_of_a_server_is_a_command_that_needs_its_arguments() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let mut command = scripted(dir.path(), &json!([[text("hello")]]));
    command.args([
        "--mcp-config",
        &named(&[]),
        "-p",
        "/mcp__s__greet Ada",
        "--output-format",
        "json",
    ]);
    let ran = answer(&mut command);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut command = scripted(dir.path(), &json!([[text("never")]]));
    command.args(["--mcp-config", &named(&[]), "-p", "/mcp__s__greet"]);
    let ran = answer(&mut command);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains("needs the argument who"), "{all}");
}

#[test]
fn a_resource_that_a_prompt_mentions_goes_with_it() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let mut command = scripted(dir.path(), &json!([[text("seen")]]));
    command.args([
        "--mcp-config",
        &named(&[]),
        "-p",
        "Look at @s:x://a and @s: and @nobody:x",
    ]);
    let ran = answer(&mut command);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let mut found = Vec::new();
    let mut left = vec![dir.path().join(".claude/projects")];
    while let Some(folder) = left.pop() {
        for path in fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            match path.is_dir() {
                true => left.push(path),
                false => found.push(fs::read_to_string(path).unwrap_or_default()),
            }
        }
    }
    let all = found.concat();
    assert!(
        all.contains("Contents of x://a of the MCP server s:\\ninside"),
        "{all}"
    );
}

/// A server that takes its time to start stands in the user's file: the first turn does not wait for it.
#[test]
fn a_search_for_tools_waits_for_servers_that_are_being_connected() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let slow = json!({"command": "sh", "args": ["-c", format!("sleep 2; exec python3 {SCRIPT}")]});
    let file = json!({"mcpServers": {"s": slow}}).to_string();
    fs::write(dir.path().join(".claude.json"), file).unwrap();
    let calls = json!([
        [call("ToolSearch", json!({"query": "select:mcp__s__echo"}))],
        [call("mcp__s__echo", json!({"text": "found late"}))],
        [text("done")],
    ]);
    let mut command = scripted(dir.path(), &calls);
    command.args(["--allowedTools", "mcp__s"]);
    let (texts, messages, _) = results(&mut command);
    let init = messages
        .iter()
        .find(|one| one["subtype"] == "init")
        .unwrap();
    assert_eq!(
        init["mcp_servers"],
        json!([{"name": "s", "status": "pending"}])
    );
    assert_eq!(texts[1], "found late", "{texts:?}");
}

#[test]
fn the_doctor_connects_servers_and_says_what_they_are_and_cost() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let servers = json!({"mcpServers": {"s": entry(&[]), "dead": entry(&["dies"]), "ws": {"type": "ws", "url": "wss://x"}}});
    fs::write(dir.path().join(".claude.json"), servers.to_string()).unwrap();
    let ran = answer(
        haft(dir.path())
            .args(["doctor", "--json"])
            .env("MCP_TIMEOUT", "20000"),
    );
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let mcp = sections
        .iter()
        .find(|section| section["name"] == "mcp")
        .unwrap();
    let row = |name: &str| {
        let mut rows = mcp["rows"].as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap().clone()
    };
    let good = row("s");
    assert_eq!(good["state"], "ok");
    let told = good["text"].as_str().unwrap();
    for part in [
        "connected",
        "user scope",
        "revision 2025-06-18",
        "3 tools",
        "tokens",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(row("dead")["state"], "bad");
    assert!(
        row("dead")["text"]
            .as_str()
            .unwrap()
            .contains("cannot work here")
    );
    assert!(
        row("ws")["text"]
            .as_str()
            .unwrap()
            .contains("not supported")
    );
    assert_eq!((report["ok"].as_bool(), ran.code), (Some(false), 1));
}

/// Names come from files of others.
#[test]
fn names_of_servers_do_not_act_on_the_terminal() {
    let dir = tempdir().unwrap();
    let odd = "a\u{1b}[2Jb";
    let servers = json!({"mcpServers": {odd: {"command": "true"}}}).to_string();
    fs::write(dir.path().join(".mcp.json"), &servers).unwrap();
    fs::write(dir.path().join(".claude.json"), &servers).unwrap();
    for args in [&["doctor"][..], &["mcp", "list"], &["mcp", "get", odd]] {
        let ran = answer(haft(dir.path()).args(args));
        assert!(!ran.stdout.contains('\u{1b}'), "{args:?}: {}", ran.stdout);
        assert!(!ran.stderr.contains('\u{1b}'), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_hook_calls_a_tool_of_a_server() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), "x\n").unwrap();
    let decision = json!({"decision": "block", "reason": "not ${tool_name}"}).to_string();
    let hook =
        json!({"type": "mcp_tool", "server": "s", "tool": "echo", "input": {"text": decision}});
    let settings =
        json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}}).to_string();
    let calls = json!([
        [call("Read", json!({"file_path": "a.txt"}))],
        [text("done")]
    ]);
    let mut command = scripted(dir.path(), &calls);
    command.args(["--mcp-config", &named(&[]), "--settings", &settings]);
    let (texts, ..) = results(&mut command);
    assert!(texts[0].contains("not Read"), "{}", texts[0]);
}

#[test]
fn servers_of_a_project_wait_for_trust_and_again_when_they_change() {
    let dir = tempdir().unwrap();
    let start = |marker: &str| json!({"mcpServers": {"s": {"command": "touch", "args": [marker]}}});
    let run = |flags: &[&str]| {
        let mut command = scripted(dir.path(), &json!([[text("done")]]));
        answer(command.args(["-p", "go"]).args(flags))
    };
    let file = dir.path().join(".mcp.json");
    fs::write(&file, start("one").to_string()).unwrap();
    let before = run(&[]);
    assert!(before.stderr.contains("touch one"), "{}", before.stderr);
    assert!(!dir.path().join("one").exists());
    let trusted = answer(haft(dir.path()).args(["permissions", "trust", "--yes"]));
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    run(&["--settings", "{}"]);
    until("the server was started", || {
        dir.path().join("one").exists() || {
            run(&[]);
            false
        }
    });
    fs::write(&file, start("two").to_string()).unwrap();
    let changed = run(&[]);
    assert!(changed.stderr.contains("touch two"), "{}", changed.stderr);
    assert!(!dir.path().join("two").exists());
}

#[test]
fn servers_are_named_listed_shown_and_taken_out() {
    if haft_testkit::lacks("python3") {
        return;
    }
    let dir = tempdir().unwrap();
    let haft = |args: &[&str]| answer(haft(dir.path()).arg("mcp").args(args));
    assert!(
        haft(&["list"])
            .stdout
            .contains("No MCP server is configured")
    );
    let added = haft(&["add", "-e", "A=1", "s", "--", "python3", SCRIPT]);
    assert!(
        added.stdout.contains("Added MCP server s to "),
        "{}{}",
        added.stdout,
        added.stderr
    );
    assert_eq!(haft(&["add", "s", "--", "x"]).code, 1);
    let json = entry(&["dies"]).to_string();
    assert_eq!(haft(&["add-json", "-s", "project", "team", &json]).code, 0);
    let listed = haft(&["list"]).stdout;
    let row = listed
        .lines()
        .find(|line| line.starts_with("s "))
        .unwrap_or_default();
    assert!(
        row.contains("local") && row.contains("connected") && row.contains("2025-06-18"),
        "{listed}"
    );
    assert!(listed.contains("team is left out (untrusted)"), "{listed}");
    let shown = haft(&["get", "s"]);
    assert!(
        shown.stdout.contains("echo  Says it again."),
        "{}",
        shown.stdout
    );
    assert_eq!(haft(&["get", "x"]).code, 1);
    for said in ["are deleted", "This project has no approvals"] {
        let reset = haft(&["reset-project-choices"]);
        assert!(reset.stdout.contains(said), "{}", reset.stdout);
    }
    assert_eq!(haft(&["remove", "s"]).code, 0);
    assert_eq!(haft(&["remove", "team"]).code, 0);
    assert!(
        haft(&["list"])
            .stdout
            .contains("No MCP server is configured")
    );
}

#[test]
fn no_server_outlives_a_haft_that_is_killed() {
    if haft_testkit::lacks("python3") {
        return;
    }
    kill(false);
}

/// As `pkill -9 haft` does.
#[test]
fn nor_one_that_is_killed_with_its_guards() {
    if haft_testkit::lacks("python3") {
        return;
    }
    kill(true);
}

fn kill(guards: bool) {
    let dir = tempdir().unwrap();
    let turns = json!([[call("mcp__s__pid", json!({}))], {"content": [text("on")], "hangs": true}]);
    let mut command = scripted(dir.path(), &turns);
    command
        .args([
            "-p",
            "go",
            "--output-format",
            "stream-json",
            "--allowedTools",
            "mcp__s",
        ])
        .args([
            "--mcp-config",
            &named(if guards { &["stays"] } else { &["child"] }),
        ])
        .stdin(Stdio::null())
        .stdout(fs::File::create(dir.path().join("out")).unwrap())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let out = || fs::read_to_string(dir.path().join("out")).unwrap();
    until("the call is answered", || out().contains("tool_result"));
    let group = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    let pid = out()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|one| {
            one["message"]["content"][0]["content"]
                .as_str()?
                .parse::<u32>()
                .ok()
        });
    let pid = pid.expect("the server says who it is");
    // What it let go of has the same command line.
    let others = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|one| fs::read_to_string(one.path().join("cmdline")).ok());
        let mark = dir.path().to_str().unwrap().to_owned();
        lines
            .filter(|line| {
                line.contains("server.py") && line.contains("child") && !line.contains(&mark)
            })
            .count()
    };
    assert!(group(pid) && (guards || others() >= 2));
    child.kill().unwrap();
    if guards {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let guard = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        let guard = guard.and_then(|guard| guard.trim().parse().ok()).unwrap();
        kill_process(Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
    }
    child.wait().unwrap();
    until("the server is gone", || !group(pid));
    if !guards {
        until("and what it started", || others() == 0);
    }
}

pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "waited in vain: {what}"
        );
        sleep(Duration::from_millis(20));
    }
}
