//! Every event of hooks.md comes, with the whole binary around it.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use haft_testkit::http::{HttpFake, HttpReply};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{Talk, answer, call, lines, text};
use crate::binary::{Ran, haft};

/// Events of the page that come here, each with the fields that it must bring.
const FIRED: [(&str, &[&str]); 28] = [
    ("ConfigChange", &["source", "file_path"]),
    ("CwdChanged", &["old_cwd", "new_cwd"]),
    ("DirectoryAdded", &["directory", "source"]),
    ("FileChanged", &["file_path", "event"]),
    (
        "InstructionsLoaded",
        &["file_path", "memory_type", "load_reason"],
    ),
    (
        "MessageDisplay",
        &["turn_id", "message_id", "index", "final", "delta"],
    ),
    ("Notification", &["message", "notification_type"]),
    (
        "PermissionDenied",
        &[
            "permission_mode",
            "tool_name",
            "tool_input",
            "tool_use_id",
            "reason",
        ],
    ),
    (
        "PermissionRequest",
        &["permission_mode", "tool_name", "tool_input"],
    ),
    ("PostCompact", &["trigger", "compact_summary"]),
    ("PostToolBatch", &["permission_mode", "tool_calls"]),
    (
        "PostToolUse",
        &[
            "permission_mode",
            "tool_name",
            "tool_input",
            "tool_response",
            "tool_use_id",
        ],
    ),
    (
        "PostToolUseFailure",
        &["permission_mode", "tool_name", "error", "tool_use_id"],
    ),
    ("PreCompact", &["trigger", "custom_instructions"]),
    (
        "PreToolUse",
        &["permission_mode", "tool_name", "tool_input", "tool_use_id"],
    ),
    ("SessionEnd", &["reason"]),
    ("SessionStart", &["source"]),
    ("Setup", &["trigger"]),
    (
        "Stop",
        &[
            "permission_mode",
            "stop_hook_active",
            "last_assistant_message",
            "background_tasks",
        ],
    ),
    ("StopFailure", &["error"]),
    ("SubagentStart", &["agent_id", "agent_type"]),
    (
        "SubagentStop",
        &[
            "permission_mode",
            "agent_id",
            "agent_type",
            "agent_transcript_path",
        ],
    ),
    (
        "TaskCompleted",
        &["permission_mode", "task_id", "task_subject"],
    ),
    (
        "TaskCreated",
        &["permission_mode", "task_id", "task_subject"],
    ),
    (
        "UserPromptExpansion",
        &[
            "expansion_type",
            "command_name",
            "command_args",
            "command_source",
            "prompt",
        ],
    ),
    ("UserPromptSubmit", &["permission_mode", "prompt"]),
    ("WorktreeCreate", &["name"]),
    ("WorktreeRemove", &["worktree_path"]),
];

/// What a matcher must say to be for the events above; the matchers of all others are ignored.
const MATCHED: [(&str, &str); 20] = [
    ("ConfigChange", "user_settings"),
    ("DirectoryAdded", "slash_command"),
    ("FileChanged", "watched.txt"),
    ("InstructionsLoaded", "session_start"),
    ("Notification", "agent_completed"),
    ("PermissionDenied", "Write"),
    ("PermissionRequest", "Write"),
    ("PostCompact", "manual"),
    ("PostToolUse", "Read"),
    ("PostToolUseFailure", "Bash"),
    ("PreCompact", "manual"),
    ("PreToolUse", "Read"),
    ("SessionEnd", "other"),
    ("SessionStart", "startup"),
    ("Setup", "init"),
    ("StopFailure", "overloaded"),
    ("SubagentStart", "general-purpose"),
    ("SubagentStop", "general-purpose"),
    ("UserPromptExpansion", "greet"),
    ("PostToolBatch", "of-nothing"),
];

/// Those that do not: tested with MCP servers (the first two), without teams, or accepted by name only.
const OTHERS: [&str; 5] = [
    "Elicitation",
    "ElicitationResult",
    "PostModelSwitch",
    "PreModelSwitch",
    "TeammateIdle",
];

/// A project and a home, and hooks for every event that keep what they receive.
pub(super) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let folder = tempdir().unwrap();
        let scene = Self { folder };
        for (name, content) in [
            ("p/CLAUDE.md", "Be brief.\n"),
            ("p/a.txt", "one\n"),
            ("p/sub/b.txt", "two\n"),
            ("home/.claude/commands/greet.md", "Greet $ARGUMENTS.\n"),
            ("other/x", ""),
        ] {
            scene.write(name, content);
        }
        scene
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path("p/.log")
    }

    /// A hook for each of these events.
    fn settings(&self, events: &[&str]) -> Value {
        let keep = format!("(cat; echo) >> {}", self.log().display());
        let wrong = format!("cat >> {}", self.path("home/wrong").display());
        let mut hooks = json!({});
        for event in events {
            let command = |command: &str| json!({"type": "command", "command": command});
            let known = MATCHED.iter().find(|(name, _)| name == event);
            let matcher = known.map_or("of-nothing", |(_, matcher)| matcher);
            hooks[event] = json!([{"matcher": matcher, "hooks": [command(&keep)]}]);
            if known.is_some() && matcher != "of-nothing" {
                let other = json!({"matcher": "of-nothing", "hooks": [command(&wrong)]});
                hooks[event].as_array_mut().unwrap().push(other);
            }
        }
        json!({"hooks": hooks})
    }

    pub(super) fn haft(&self, script: &Value, settings: &Value) -> Command {
        let file = self.path("home/script.json");
        fs::write(&file, script.to_string()).unwrap();
        let mut command = haft(&self.path("p"));
        command.env("HOME", self.path("home"));
        command.arg("--script").arg(file);
        command.arg("--settings").arg(settings.to_string());
        command.arg("-p");
        command
    }

    /// The same, whose messages are read.
    pub(super) fn streamed(&self, script: &Value, settings: &Value) -> Command {
        let mut command = self.haft(script, settings);
        command.args(["--output-format", "stream-json"]);
        command
    }

    /// What the hooks received.
    pub(super) fn told(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

pub(super) fn script(turns: &[Value]) -> Vec<Value> {
    let turn = |content: &Value| match content {
        Value::Array(_) => json!({"content": content, "usage": {"input": 10, "output": 5}}),
        other => other.clone(),
    };
    turns.iter().map(turn).collect()
}

fn bash(command: &str) -> Value {
    json!([call("Bash", json!({"command": command}))])
}

pub(super) fn well(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn every_event_of_the_page_comes() {
    let known: BTreeSet<&str> = FIRED.iter().map(|(name, _)| *name).chain(OTHERS).collect();
    let all: BTreeSet<&str> = haft::engine::hooks::HookEventKind::all()
        .map(|one| one.name())
        .collect();
    assert_eq!(known, all);

    let scene = Scene::new();
    let names: Vec<&str> = FIRED.iter().map(|(name, _)| *name).collect();
    let but_worktrees: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !name.starts_with("Worktree"))
        .collect();
    let settings = scene.settings(&but_worktrees);
    let waits = format!(
        "for i in $(seq 600); do grep -q '\"hook_event_name\":\"FileChanged\"' {} && exit 0; sleep 0.1; done; exit 1",
        scene.log().display()
    );
    let agent = json!({"description": "Looks", "prompt": "LOOK AROUND", "run_in_background": true});
    let task = json!({"subject": "Build", "description": "all of it"});
    let turns = [
        json!([call("Read", json!({"file_path": scene.path("p/a.txt")}))]),
        bash("exit 3"),
        json!([call(
            "Write",
            json!({"file_path": "/etc/haft-test", "content": "x"})
        )]),
        json!([call("TaskCreate", task)]),
        json!([call(
            "TaskUpdate",
            json!({"taskId": "1", "status": "completed"})
        )]),
        json!([call("Agent", agent)]),
        bash("cd sub"),
        bash("cd .."),
        bash("echo x > watched.txt"),
        bash(&waits),
        json!([text("Done.")]),
        json!([text("The agent is done.")]),
        json!([text("Nothing more.")]),
    ];
    let said = json!({
        "turns": script(&turns),
        "conversations": [{"when": "LOOK AROUND", "turns": script(&[json!([text("Looked.")])])}],
    });
    let mut command = scene.streamed(&said, &settings);
    let ran = answer(command.args(["--init", "--allowedTools", "Bash", "--", "/greet Ann"]));
    well(&ran);

    // Between two messages a settings file changes, a directory comes, and the conversation is summarized.
    let turns = [
        json!([text("Hello.")]),
        json!([text("Here.")]),
        json!([text("A summary.")]),
    ];
    let mut talk = Talk::new(&mut scene.haft(&json!({"turns": script(&turns)}), &settings));
    talk.user("hi");
    talk.hear_until("result");
    scene.write(
        "home/.claude/settings.json",
        "{\"permissions\": {\"deny\": [\"Read(./x)\"]}}",
    );
    talk.user(&format!("/add-dir {}", scene.path("other").display()));
    talk.hear_until("result");
    talk.user("again");
    talk.hear_until("result");
    talk.user("/compact");
    talk.hear_until("result");
    let (_, code) = talk.end();
    assert_eq!(code, 0);

    // The model cannot answer.
    let fails = json!({"error": {"kind": "overloaded", "message": "no"}});
    let ran = answer(
        scene
            .streamed(&json!({"turns": [fails]}), &settings)
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .arg("hi"),
    );
    assert_ne!(ran.code, 0);

    // Worktrees, made by the hook.
    fs::create_dir(scene.path("copy")).unwrap();
    let mut settings = scene.settings(&names);
    let make = format!(
        "(cat; echo) >> {}; echo {}",
        scene.log().display(),
        scene.path("copy").display()
    );
    settings["hooks"]["WorktreeCreate"][0]["hooks"][0]["command"] = json!(make);
    let turns = [
        json!([call("EnterWorktree", json!({"name": "w"}))]),
        json!([call("ExitWorktree", json!({"action": "remove"}))]),
        json!([text("Done.")]),
    ];
    let mut command = scene.streamed(&json!({"turns": script(&turns)}), &settings);
    well(&answer(command.args([
        "--allowedTools",
        "EnterWorktree",
        "--",
        "go",
    ])));

    let wrong = fs::read_to_string(scene.path("home/wrong")).unwrap_or_default();
    assert_eq!(wrong, "", "a matcher did not tell");
    let told = scene.told();
    for (event, fields) in FIRED {
        let of_event: Vec<&Value> = told
            .iter()
            .filter(|one| one["hook_event_name"] == event)
            .collect();
        assert!(!of_event.is_empty(), "{event} never came");
        for one in of_event {
            for field in fields
                .iter()
                .chain(&["session_id", "transcript_path", "cwd"])
            {
                assert!(
                    one.get(*field).is_some(),
                    "{event} does not say {field}: {one}"
                );
            }
        }
    }
    let notices = told
        .iter()
        .filter_map(|one| one["notification_type"].as_str());
    assert!(notices.collect::<BTreeSet<_>>().contains("agent_completed"));
    let changed: BTreeSet<&str> = told
        .iter()
        .filter_map(|one| one["event"].as_str())
        .collect();
    assert_eq!(changed, ["add"].into());
}

#[test]
fn what_a_hook_wants_watched_is_watched_and_a_change_of_directory_moves_the_watch() {
    let scene = Scene::new();
    let log = scene.log();
    let far = scene.path("other/far.txt");
    let start =
        json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "watchPaths": [far]}});
    let settings = json!({"hooks": {
        "SessionStart": [{"hooks": [{"type": "command", "command": format!("echo '{start}'")}]}],
        "FileChanged": [{"matcher": "here.txt|far.txt", "hooks": [
            {"type": "command", "command": format!("(cat; echo) >> {}; echo export SEEN=yes >> $CLAUDE_ENV_FILE", log.display())},
        ]}],
    }});
    let wait = |count: usize| {
        format!(
            "for i in $(seq 600); do [ \"$(grep -c FileChanged {} 2>/dev/null)\" -ge {count} ] && exit 0; sleep 0.1; done; exit 1",
            log.display()
        )
    };
    let turns = [
        bash("echo 1 > here.txt"),
        bash(&wait(1)),
        bash("cd sub"),
        bash("echo 1 > here.txt"),
        bash(&wait(2)),
        bash(&format!("echo 1 > {}", far.display())),
        bash(&wait(3)),
        bash("echo $SEEN"),
        json!([text("Done.")]),
    ];
    let mut command = scene.streamed(&json!({"turns": script(&turns)}), &settings);
    let ran = answer(
        command
            .args(["--allowedTools", "Bash", "--add-dir"])
            .arg(scene.path("other"))
            .args(["--", "go"]),
    );
    well(&ran);
    let told: Vec<(String, String)> = scene
        .told()
        .iter()
        .map(|one| {
            (
                one["file_path"].as_str().unwrap().to_owned(),
                one["event"].to_string(),
            )
        })
        .collect();
    let paths: Vec<PathBuf> = told.iter().map(|(path, _)| path.into()).collect();
    assert_eq!(
        paths,
        [scene.path("p/here.txt"), scene.path("p/sub/here.txt"), far]
    );
    let messages = lines(&ran);
    let last = messages.iter().rfind(|one| one["type"] == "user").unwrap();
    assert_eq!(last["message"]["content"][0]["content"], "yes", "{last}");
}

#[test]
fn a_call_that_was_put_off_is_made_when_the_session_goes_on() {
    let scene = Scene::new();
    let go = scene.path("home/go");
    let defer =
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}"#;
    let hook = format!(
        "(cat; echo) >> {}; test -e {} || echo '{defer}'",
        scene.log().display(),
        go.display()
    );
    let settings =
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let run = |turns: &[Value], flags: &[&str]| {
        let mut command = scene.streamed(&json!({"turns": script(turns)}), &settings);
        let ran = answer(command.args(flags).args(["--allowedTools", "Bash"]));
        let last = lines(&ran).pop().unwrap();
        (ran, last)
    };
    let (ran, result) = run(&[bash("touch ran; echo it ran")], &["go"]);
    well(&ran);
    assert_eq!(result["stop_reason"], "tool_deferred");
    // Still put off: the same call, and the model is not asked.
    let (ran, result) = run(&[], &["-c"]);
    well(&ran);
    assert_eq!(result["stop_reason"], "tool_deferred", "{}", ran.stdout);
    assert!(!scene.path("p/ran").exists());
    // Now it may be made: without another word, and the model goes on with what came of it.
    fs::write(&go, "").unwrap();
    let (ran, result) = run(&[json!([text("Fine.")])], &["-c"]);
    well(&ran);
    assert_eq!(result["result"], "Fine.", "{}", ran.stdout);
    assert!(scene.path("p/ran").exists());
    let ids: BTreeSet<String> = scene
        .told()
        .iter()
        .map(|one| one["tool_use_id"].to_string())
        .collect();
    assert_eq!((scene.told().len(), ids.len()), (3, 1));
    // It is over: nothing is made again.
    fs::remove_file(scene.path("p/ran")).unwrap();
    let (ran, _) = run(&[json!([text("Yes?")])], &["-c", "well?"]);
    well(&ran);
    assert!(!scene.path("p/ran").exists());

    // A tool that is gone.
    fs::remove_file(&go).unwrap();
    run(&[bash("touch ran")], &["go"]);
    let (ran, result) = run(&[], &["-c", "--disallowedTools", "Bash"]);
    assert_eq!(
        result["stop_reason"], "tool_deferred_unavailable",
        "{} {}",
        ran.stdout, ran.stderr
    );
    assert_eq!(result["is_error"], true);
}

#[test]
fn a_hook_that_hangs_ends_with_the_session_and_one_that_feeds_itself_does_not_run_wild() {
    let scene = Scene::new();
    let watching = |command: &str| {
        let hook = json!({"type": "command", "command": command});
        json!({"hooks": {"FileChanged": [{"matcher": "w.txt", "hooks": [hook]}]}})
    };
    let settings = watching("echo $$ > pid; sleep 600");
    let waits =
        "echo 1 > w.txt; for i in $(seq 600); do test -s pid && exit 0; sleep 0.1; done; exit 1";
    let turns = script(&[bash(waits), json!([text("Done.")])]);
    let mut command = scene.streamed(&json!({"turns": turns}), &settings);
    let ran = answer(command.args(["--allowedTools", "Bash", "--", "go"]));
    well(&ran);
    let pid = fs::read_to_string(scene.path("p/pid")).unwrap();
    let process = PathBuf::from("/proc").join(pid.trim());
    haft_testkit::until_blocking("the hook is gone", || !process.exists());

    let settings = watching("echo x >> w.txt; echo x >> count");
    let turns = script(&[bash("echo 2 > w.txt; sleep 4"), json!([text("Done.")])]);
    let mut command = scene.streamed(&json!({"turns": turns}), &settings);
    let ran = answer(command.args(["--allowedTools", "Bash", "--", "go"]));
    well(&ran);
    let count = fs::read_to_string(scene.path("p/count")).unwrap();
    assert!((1..=12).contains(&count.lines().count()), "{count}");
}

#[test]
fn what_is_too_long_is_kept_in_a_file() {
    let scene = Scene::new();
    let hook =
        json!({"type": "command", "command": "head -c 30000 /dev/zero | tr '\\0' x >&2; exit 2"});
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
    let turns = script(&[bash("echo hi"), json!([text("Done.")])]);
    let mut command = scene.streamed(&json!({"turns": turns}), &settings);
    let ran = answer(command.args(["--", "go"]));
    well(&ran);
    let messages = lines(&ran);
    let result = messages.iter().find(|one| one["type"] == "user").unwrap();
    let content = result["message"]["content"][0]["content"].as_str().unwrap();
    assert!(content.len() < 10_000, "{content}");
    let path = content
        .split_whitespace()
        .find(|word| word.contains("/tool-results/"))
        .unwrap();
    let kept = fs::read_to_string(path.trim_end_matches(['.', ',', ';'])).unwrap();
    assert_eq!(kept, "x".repeat(30_000));
}

#[test]
fn a_server_does_not_send_a_hook_elsewhere() {
    let scene = Scene::new();
    let moved =
        HttpReply::new(307, "text/plain", "").header("Location", "http://169.254.169.254/latest");
    let server = HttpFake::start([moved]);
    for (url, why) in [
        (server.url.as_str(), "the server answered 307"),
        (
            "http://169.254.169.254/latest",
            "the metadata service of a cloud",
        ),
        ("http://0.0.0.0:1/", "the unspecified address"),
        ("http://0x7f.1/", "is not a valid host"),
        ("http://2130706433/", "is not a valid host"),
    ] {
        let hook = json!({"type": "http", "url": url, "timeout": 60});
        let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
        let turns = script(&[bash("echo hi"), json!([text("Done.")])]);
        let mut command = scene.streamed(&json!({"turns": turns}), &settings);
        let ran = answer(command.args(["--allowedTools", "Bash", "--", "go"]));
        well(&ran);
        assert!(ran.stdout.contains(why), "{url}: {}", ran.stdout);
    }
    assert_eq!(server.requests().len(), 1);
}
