//! Hostile texts through everything that writes to a terminal.

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use haft_testkit::http::{HttpFake, HttpReply};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    hostile::{assert_clean, everything, name},
    pty::{Input, Screen},
};
use crate::binary::{exec, haft, run};

/// A directory in which everything that can be hostile is.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn haft(&self, args: &[&str]) -> Command {
        let mut command = haft(self.path());
        command.args(args);
        command
    }

    /// A model that says this, each turn a list of blocks.
    fn scripted(&self, turns: &Value) -> Command {
        let turns = turns.as_array().unwrap().iter();
        let turns: Vec<Value> = turns.map(|turn| json!({ "content": turn })).collect();
        let script = self.write(".script.json", &json!({ "turns": turns }).to_string());
        let mut command = haft(self.path());
        command.arg("--script").arg(script);
        command
    }
}

/// What it shows on a terminal, without colours and then with them; clean both times.
fn shown(what: &str, command: &mut Command, stdin: &str) -> Vec<u8> {
    let mut first = None;
    for (term, with_colours) in [("dumb", false), ("xterm-256color", true)] {
        let input = match stdin {
            "" => Input::Terminal,
            _ => Input::Pipe,
        };
        let mut running = Screen::new().run(command.env("TERM", term), input);
        if let Some(mut pipe) = running.child.stdin.take() {
            pipe.write_all(stdin.as_bytes()).unwrap();
        }
        let (seen, _) = running.end();
        assert_clean(&format!("{what}, {term}"), &seen, with_colours);
        first.get_or_insert(seen);
    }
    first.unwrap()
}

/// The same, and what was hostile can be seen.
fn shows(what: &str, command: &mut Command) -> String {
    shows_with(what, command, "")
}

fn shows_with(what: &str, command: &mut Command, stdin: &str) -> String {
    let seen = String::from_utf8(shown(what, command, stdin)).unwrap();
    let forms = ["<U+202E>", "\\u202e", "\\u{202e}", "␛"];
    let visible = forms.iter().any(|form| seen.contains(form));
    assert!(visible, "{what}: nothing hostile was shown: {seen:?}");
    seen
}

#[test]
fn what_a_model_says_is_cleaned_on_a_terminal_and_exact_in_a_pipe() {
    let place = Place::new();
    let text = everything();
    let said = json!([[{"type": "text", "text": text}]]);
    let seen = shows("text", place.scripted(&said).args(["-p", "hi"]));
    assert!(seen.contains("a<U+202E>a") && seen.contains("␛[31mred␛[0m"));
    assert!(
        seen.starts_with("begin ") && seen.ends_with(" end\n"),
        "{seen}"
    );
    let ran = run(place.scripted(&said).args(["-p", "hi"]), b"");
    assert_eq!(ran.stdout, format!("{text}\n"), "every byte in a pipe");

    for (flags, count) in [
        (&["--output-format", "json"][..], 1),
        (&["--output-format", "json", "--verbose"], 1),
        (&["--output-format", "stream-json", "--verbose"], 3),
        (
            &[
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
            ],
            3,
        ),
    ] {
        let mut command = place.scripted(&said);
        let seen = shows("JSON", command.args(["-p", "hi"]).args(flags));
        let lines: Vec<Value> = seen
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(lines.len() >= count, "{flags:?}");
        let last = lines.last().unwrap();
        let result = last.as_array().map_or(last, |all| all.last().unwrap());
        assert_eq!(result["result"], text, "it says the same: {flags:?}");
    }
}

#[test]
fn what_a_provider_answers_is_cleaned() {
    let place = Place::new();
    for status in [400, 401, 404, 529] {
        let error = json!({"type": "invalid_request_error", "message": everything()});
        let body = json!({"type": "error", "error": error, "request_id": name()}).to_string();
        for (body, kind) in [(body, "JSON"), (everything(), "no JSON")] {
            // One for each of the two terminals.
            let replies =
                [(); 2].map(|()| HttpReply::new(status, "application/json", body.clone()));
            let server = HttpFake::start_strict(replies);
            let mut command = place.haft(&["-p", "hi", "--model", "m-1"]);
            command
                .env("ANTHROPIC_BASE_URL", &server.url)
                .env("ANTHROPIC_API_KEY", "key")
                .env("CLAUDE_CODE_MAX_RETRIES", "0");
            let seen = shown(&format!("{status} as {kind}"), &mut command, "");
            assert!(!seen.is_empty(), "{status}");
            server.bodies();
        }
    }
    // In the middle of a stream, and what a model of such a name would say.
    let broken = format!(
        "event: error\ndata: {}\n\n",
        json!({"type": "error", "error": {"type": "overloaded_error", "message": everything()}})
    );
    let replies = [(); 2].map(|()| HttpReply::events(broken.clone()));
    let server = HttpFake::start_strict(replies);
    let mut command = place.haft(&["-p", "hi", "--model", &name()]);
    command
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "key")
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    shows("an error in the stream", &mut command);
    server.bodies();
}

#[test]
fn calls_and_their_results_are_cleaned() {
    let place = Place::new();
    place.write("a.txt", &everything().replace('\0', ""));
    place.write(&name(), "x\n");
    shows(
        "Read",
        &mut place.haft(&["call", "Read", "file_path=a.txt"]),
    );
    shows(
        "Read as JSON",
        &mut place.haft(&["call", "--json", "Read", "file_path=a.txt"]),
    );
    // Its output was on a terminal already, though not a person's; then it is drawn text.
    let mut bash = place.haft(&["call", "Bash", "command=cat a.txt"]);
    shown("Bash", &mut bash, "");
    shows("LS", &mut place.haft(&["call", "LS", "path=."]));
    shows("Glob", &mut place.haft(&["call", "Glob", "pattern=*"]));
    shows(
        "Grep",
        &mut place.haft(&["call", "Grep", "pattern=end", "output_mode=content"]),
    );
    let missing = format!("file_path={}/none", name());
    shows(
        "a missing file",
        &mut place.haft(&["call", "Read", &missing]),
    );
    shows("no such tool", &mut place.haft(&["call", &name()]));
    shows(
        "no such parameter",
        &mut place.haft(&["call", "Read", &format!("{}=1", name())]),
    );
    shows("not a pair", &mut place.haft(&["call", "Read", &name()]));
    let edit =
        json!({"file_path": "a.txt", "old_string": "begin", "new_string": name()}).to_string();
    let mut command = place.haft(&["--permission-mode", "acceptEdits", "call", "Edit", &edit]);
    shown("Edit", &mut command, "");

    let call = json!({"id": name(), "name": "Read", "input": {"file_path": "a.txt"}});
    let mut command = place.haft(&["exec"]);
    let seen = shows_with(
        "exec",
        &mut command,
        &format!("{call}\n{}\n", everything().replace('\n', " ")),
    );
    let answer: Value = serde_json::from_str(seen.lines().next().unwrap()).unwrap();
    assert_eq!(answer["id"], name(), "JSON that says the same");
}

#[test]
fn what_was_changed_is_listed_and_undone_cleanly() {
    let place = Place::new();
    let write = json!({"name": "Write", "input": {"file_path": name(), "content": everything()}});
    let lines = format!("{write}\n");
    exec(place.path(), &["--permission-mode", "acceptEdits"], &lines);
    shows("undo --list", &mut place.haft(&["undo", "--list"]));
    shows("undo --preview", &mut place.haft(&["undo", "--preview"]));
    shows(
        "undo of what is not there",
        &mut place.haft(&["undo", &name()]),
    );
    shows(
        "undo --since",
        &mut place.haft(&["undo", "--since", &name()]),
    );
    shows("undo", &mut place.haft(&["undo"]));
}

#[test]
fn what_may_run_is_explained_cleanly() {
    let place = Place::new();
    let rule = format!("Bash(echo {})", name());
    let hook = json!([{"hooks": [{"type": "command", "command": everything()}]}]);
    let settings = json!({
        "permissions": {
            "allow": [rule, name(), format!("Nope({})", name())],
            "deny": [format!("Read(./{})", name())],
            "additionalDirectories": [name()],
            "defaultMode": name(),
        },
        "hooks": {"PreToolUse": hook, (name()): hook},
        "env": {(name()): everything().replace('\0', "")},
        (name()): name(),
    });
    place.write(".claude/settings.json", &settings.to_string());
    let line = format!("echo {} > {}; rm '{}'", name(), name(), name());
    shows(
        "explain",
        &mut place.haft(&["permissions", "explain", "--bash", &line]),
    );
    shows(
        "explain as JSON",
        &mut place.haft(&["permissions", "explain", "--json", "--bash", &line]),
    );
    let read = format!("file_path={}", name());
    shows(
        "explain Read",
        &mut place.haft(&["permissions", "explain", "Read", &read]),
    );
    shows("list", &mut place.haft(&["permissions", "list"]));
    shows(
        "list as JSON",
        &mut place.haft(&["permissions", "list", "--json"]),
    );
    shows(
        "doctor",
        place
            .haft(&["doctor"])
            .env("PATH", format!("/usr/bin:/bin:{}", name())),
    );
    shows("doctor as JSON", &mut place.haft(&["doctor", "--json"]));
    shows("tools", &mut place.haft(&["tools"]));
    shows("tools of a name", &mut place.haft(&["tools", &name()]));
    let lines = [
        json!({"cmd": line}),
        json!({"cmd": everything()}),
        json!({"cmd": 1, "x": name()}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    shown(
        "classify",
        &mut place.haft(&["permissions", "classify", "--jsonl"]),
        &lines,
    );
    let check = json!({"rules": {"allow": [name()]}, "tool": name(), "input": {"command": name()}, "cwd": "/p"});
    let lines = format!("{check}\n{}\n", name());
    shown(
        "check",
        &mut place.haft(&["permissions", "check", "--jsonl"]),
        &lines,
    );
}

#[test]
fn what_waits_for_trust_is_shown_cleanly() {
    let place = Place::new();
    let hook = json!([{"hooks": [{"type": "command", "command": everything()}]}]);
    let settings = json!({
        "permissions": {"allow": [format!("Bash(echo {})", name())]},
        "hooks": {"PreToolUse": hook},
        "env": {"X": everything()},
    });
    place.write(".claude/settings.json", &settings.to_string());
    let home = tempfile::tempdir().unwrap();
    let mut command = place.haft(&["permissions", "trust", "--yes"]);
    command.env("HOME", home.path());
    shows("trust", &mut command);
    place.write(
        ".claude/settings.json",
        &settings.to_string().replace("echo", "cat"),
    );
    shows("trust of what has changed", &mut command);
}

#[test]
fn conversations_are_listed_and_shown_cleanly() {
    let place = Place::new();
    let turns = json!([
        [{"type": "tool_use", "name": "Read", "input": {"file_path": name()}}],
        [{"type": "text", "text": everything()}],
    ]);
    let title = ["--name", &name()];
    shows(
        "a run",
        place.scripted(&turns).args(["-p", &name()]).args(title),
    );
    let listed = shows("list", &mut place.haft(&["sessions", "list"]));
    shows(
        "list as JSON",
        &mut place.haft(&["sessions", "list", "--json"]),
    );
    let id = listed.lines().nth(1).unwrap().split(' ').next().unwrap();
    shows("show", &mut place.haft(&["sessions", "show", id]));
    shows(
        "show as JSON",
        &mut place.haft(&["sessions", "show", "--json", id]),
    );
    shows(
        "no such one",
        &mut place.haft(&["sessions", "show", &name()]),
    );
}

#[test]
fn the_demo_is_clean_wherever_it_works() {
    let place = Place::new();
    let folder = place.path().join(name());
    fs::create_dir(&folder).unwrap();
    shows(
        "demo",
        place.haft(&["demo", "--fast"]).env("TMPDIR", &folder),
    );
    shows(
        "demo",
        place
            .haft(&["demo", "--fast", "--keep"])
            .env("TMPDIR", &folder),
    );
    shows(
        "no such place",
        place.haft(&["demo"]).env("TMPDIR", folder.join("none")),
    );
}

#[test]
fn errors_and_warnings_quote_cleanly() {
    let place = Place::new();
    let name = name();
    let file = place.write(&format!("{name}.json"), &format!("{{\"{name}\": "));
    let file = file.to_str().unwrap();
    let option = format!("--{name}");
    let equals = format!("--max-turns={name}");
    let prompt = format!("too{name}");
    let cases: Vec<Vec<&str>> = vec![
        vec![&option],
        vec!["-p", &option],
        vec!["call", &option],
        vec!["tools", "--format", &name],
        vec!["permissions", &name],
        vec!["sessions", &name],
        vec!["undo", "x", &name],
        vec!["completions", &name],
        vec!["--permission-mode", &name, "tools"],
        vec!["--max-concurrency", &name, "tools"],
        vec!["--cwd", &name, "tools"],
        vec!["--cwd", &name, "exec"],
        vec!["--cwd", &name, "doctor"],
        vec!["--cwd", &name, "call", "LS"],
        vec!["--cwd", &name, "undo"],
        vec!["--cwd", &name, "permissions", "trust", "--yes"],
        vec!["--cwd", &name, "-p", "hi"],
        vec!["--add-dir", &name, "tools", &name],
        vec!["--settings", &name, "tools"],
        vec!["--settings", file, "tools"],
        vec!["--settings", "{\"a", "tools", &name],
        vec!["--setting-sources", &name, "tools"],
        vec!["--tools", &name, "tools"],
        vec!["--allowed-tools", &name, "--", "tools"],
        vec!["--disallowed-tools", &name, "-p", "hi"],
        vec!["-p", "hi", &equals],
        vec!["-p", "hi", "--script", &name],
        vec!["-p", "hi", "--script", file],
        vec!["-p", "hi", "--replay", &name],
        vec!["-p", "hi", "--resume", &name],
        vec!["-p", "hi", "--mcp-config", &name],
        vec!["-p", "hi", "--mcp-config", file],
        vec!["-p", "hi", "--agents", &name],
        vec!["-p", "hi", "--json-schema", &name],
        vec!["-p", "hi", "--output-format", &name],
        vec!["-p", "hi", "--base-url", &name, "--model", &name],
        vec!["-p", "hi", "--system-prompt-file", &name],
        vec!["-p", "hi", "--session-id", &name],
        vec![&prompt],
    ];
    for args in cases {
        let what = format!("{args:?}");
        // Some are no error at all here; what they show is clean all the same.
        let seen = shown(&what, &mut place.haft(&args), "");
        assert!(!seen.is_empty(), "{what}");
    }
    for args in [
        &["--cwd", &name, "tools"][..],
        &["call", &option],
        &["--setting-sources", &name, "tools"],
    ] {
        shows(&format!("{args:?}"), &mut place.haft(args));
    }
    for args in [
        &["--help"][..],
        &["-p", "--help"],
        &["call", "--help"],
        &["call"],
        &["help", "x"],
    ] {
        let mut command = place.haft(args);
        shown("called by another name", command.arg0(&name), "");
    }
    for variable in [
        "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
        "CLAUDE_CODE_MAX_TURNS",
        "CLAUDE_CODE_MAX_RETRIES",
        "MAX_THINKING_TOKENS",
        "ANTHROPIC_BASE_URL",
        "HAFT_LOG",
        "HOME",
        "CLAUDE_CONFIG_DIR",
    ] {
        let said = json!([[{"type": "text", "text": "hi"}]]);
        let mut command = place.scripted(&said);
        shown(
            variable,
            command.args(["-p", "hi"]).env(variable, &name),
            "",
        );
    }
}

#[test]
fn what_others_wrote_into_the_project_is_quoted_cleanly() {
    let place = Place::new();
    let name = name();
    place.write(
        &format!(".claude/skills/{name}/SKILL.md"),
        &format!("---\nname: [{name}\n---\n"),
    );
    place.write(
        &format!(".claude/agents/{name}.md"),
        &format!("---\nname: {name}\ntools: [\n---\n"),
    );
    place.write(&format!(".claude/commands/{name}.md"), "---\n: [\n---\n");
    place.write(
        ".mcp.json",
        &json!({"mcpServers": {(name.clone()): {"command": name}}}).to_string(),
    );
    place.write("CLAUDE.md", &format!("@{name}\n"));
    place.write(".claude/settings.local.json", &format!("{{\"{name}\": [}}"));
    let said = json!([
        [{"type": "tool_use", "name": name, "input": {(name.clone()): name}}],
        [{"type": "tool_use", "name": "Bash", "input": {"command": format!("touch {name}")}}],
        [{"type": "text", "text": everything()}],
    ]);
    for flags in [
        &["-p", "hi"][..],
        &["-p", "hi", "--setting-sources", "user,project,local"],
    ] {
        let mut command = place.scripted(&said);
        // There is someone to ask, who has gone away.
        shows_with("a project", command.args(flags), " ");
        let mut command = place.scripted(&said);
        let log = command.args(flags).env("HAFT_LOG", "trace");
        shows_with("with the log", log, " ");
    }
}

#[test]
fn neither_a_command_nor_a_hook_writes_to_the_terminal_past_us() {
    let place = Place::new();
    // In a file, where only the kernel can see what it does.
    let script = "for at in /dev/tty /proc/$PPID/fd/1 /proc/self/fd/2; do \
                  printf 'direct\\033[31m' > $at; done; echo ran\n";
    place.write("run.sh", script);
    // A hook is a program of the user's and may do what they may; it has no terminal all the same.
    let write = "printf 'direct\\033[31m' > /dev/tty; true";
    let hook = json!([{"hooks": [{"type": "command", "command": write}]}]);
    let settings = json!({"hooks": {"PreToolUse": hook, "PostToolUse": hook}});
    place.write(".claude/settings.json", &settings.to_string());
    let setsid = ["/usr/bin/setsid", "/bin/setsid"];
    let Some(setsid) = setsid.iter().find(|path| Path::new(path).exists()) else {
        haft_testkit::skip("what a command writes to the terminal past us: no setsid");
        return;
    };
    for flags in ["--allowed-tools=Bash", "--dangerously-skip-permissions"] {
        let inner = place.haft(&[flags, "call", "Bash", "command=sh run.sh"]);
        // It makes the terminal its own, as a shell would have done.
        let mut command = haft_testkit::command(setsid);
        command
            .args(["--wait", "--ctty"])
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(place.path())
            .env_clear()
            .envs([("TERM", "dumb"), ("IS_SANDBOX", "1")]);
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap());
        }
        let (seen, _) = Screen::new().run(&mut command, Input::Terminal).end();
        let shown = String::from_utf8_lossy(&seen).into_owned();
        assert!(shown.contains("ran"), "{flags}: {shown}");
        assert_clean(flags, &seen, false);
    }
}
