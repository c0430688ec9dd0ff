//! The official Python SDK drives the binary. Each case is a script in `tests/sdk`, which checks what the
//! SDK sees; here stands what the model says, and what it must have been asked.
//!
//! `.ci/run` installs the SDK and demands it; elsewhere the cases say that they are skipped where it is
//! absent. The program that the SDK would start by itself is replaced by one that leaves a mark.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use haft_testkit::{
    anthropic::{called_as, text_reply},
    http::{HttpFake, HttpReply},
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// Where the version is pinned.
const PINNED: &str = include_str!("../sdk/requirements.txt");

/// Marks that it ran, and fails.
const TRAP: &str = "#!/bin/sh\necho \"$0 $*\" >> \"$HAFT_CASE_TRAP\"\nexit 9\n";

/// The Python that has the SDK; `None` where there is none and need not be.
fn python() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| match look() {
            Ok(python) => Some(python),
            Err(why) => {
                haft_testkit::skip(&format!("the Python SDK: {why}; `.ci/run` installs it"));
                None
            }
        })
        .as_deref()
}

fn look() -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let python = target.join("sdk/venv/bin/python");
    if !python.exists() {
        return Err(format!("{} is absent", python.display()));
    }
    let script = "import claude_agent_sdk as sdk; print(sdk.__version__); print(sdk.__file__)";
    let ran = haft_testkit::command(&python)
        .args(["-c", script])
        .output()
        .unwrap();
    let told = String::from_utf8(ran.stdout).unwrap();
    let (version, file) = told
        .trim()
        .split_once('\n')
        .ok_or_else(|| String::from_utf8_lossy(&ran.stderr).into_owned())?;
    if !PINNED
        .lines()
        .any(|line| line == format!("claude-agent-sdk=={version}"))
    {
        return Err(format!("version {version} is installed, another is pinned"));
    }
    let bundled = Path::new(file).parent().unwrap().join("_bundled");
    lay_trap(&bundled);
    Ok(python)
}

/// Puts the trap where the SDK looks for its own program, in the place of whatever is there.
fn lay_trap(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    // Written aside, since other processes may be at it too.
    let mut file = tempfile::NamedTempFile::new_in(folder).unwrap();
    file.write_all(TRAP.as_bytes()).unwrap();
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file.path(), mode).unwrap();
    let path = folder.join("claude");
    file.persist(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), TRAP);
}

/// A case that ran.
struct Ran {
    /// What the model was asked.
    asked: Vec<Value>,
    /// Marks of the program that must not run.
    marks: String,
    _dir: TempDir,
}

/// Runs a case; `None` where there is no SDK.
fn run(script: &str, replies: Vec<HttpReply>) -> Option<Ran> {
    let python = python()?;
    let dir = tempdir().unwrap();
    let (work, home, bin) = (
        dir.path().join("work"),
        dir.path().join("home"),
        dir.path().join("bin"),
    );
    for folder in [&work, &home] {
        fs::create_dir(folder).unwrap();
    }
    lay_trap(&bin);
    let trap = dir.path().join("trap");
    let server = HttpFake::start_strict(replies);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let ran = haft_testkit::command(python)
        .arg(scripts.join(script))
        .current_dir(&work)
        .env_clear()
        .env("HOME", &home)
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HAFT_CASE_BINARY", env!("CARGO_BIN_EXE_haft"))
        .env("HAFT_CASE_DIR", &work)
        .env("HAFT_CASE_URL", &server.url)
        .env("HAFT_CASE_TRAP", &trap)
        .output()
        .unwrap();
    let asked = server.bodies();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && ran.stdout.ends_with(b"done\n"),
        "{script}: {told}\nthe model was asked {} times; last: {:?}",
        asked.len(),
        asked.last().map(|last| last["messages"].to_string())
    );
    Some(Ran {
        asked,
        marks: fs::read_to_string(trap).unwrap_or_default(),
        _dir: dir,
    })
}

/// The same, and only our program may have run.
fn case(script: &str, replies: Vec<HttpReply>) -> Option<Vec<Value>> {
    let ran = run(script, replies)?;
    assert_eq!(ran.marks, "", "another program than ours was started");
    Some(ran.asked)
}

fn bash(id: &str, command: &str) -> HttpReply {
    called_as(id, "Bash", json!({"command": command}))
}

#[test]
fn a_program_that_is_not_ours_would_be_noticed() {
    if let Some(ran) = run("without_us.py", Vec::new()) {
        assert!(
            ran.marks.contains("--output-format stream-json"),
            "{}",
            ran.marks
        );
        assert_eq!(ran.asked.len(), 0);
    }
}

#[test]
fn one_shot() {
    let replies = vec![text_reply("Hello."), text_reply("One."), text_reply("Two.")];
    if let Some(asked) = case("one_shot.py", replies) {
        assert_eq!(asked.len(), 3);
        // Nothing said about a prompt means none.
        assert!(
            matches!(&asked[0]["system"], Value::Null),
            "{}",
            asked[0]["system"]
        );
    }
}

#[test]
fn a_client_that_stays() {
    let write = json!({"file_path": "written.txt", "content": "by the model\n"});
    let replies = vec![
        text_reply("One."),
        called_as("toolu_w", "Write", write),
        text_reply("Written."),
        text_reply("Three."),
    ];
    if let Some(asked) = case("client.py", replies) {
        let models: Vec<_> = asked.iter().map(|one| &one["model"]).collect();
        assert_eq!(models, ["m-1", "m-2", "m-2", "m-1"]);
        let last = asked[3]["messages"].to_string();
        assert!(last.contains("One.") && last.contains("Written."), "{last}");
    }
}

#[test]
fn the_callback_is_asked_for_permission() {
    let option = |label: &str| json!({"label": label, "description": "so"});
    let question = json!({"questions": [{
        "question": "Which way?",
        "header": "Way",
        "options": [option("Left"), option("Right")],
        "multiSelect": false,
    }]});
    let replies = vec![
        bash("toolu_a", "touch allowed"),
        bash("toolu_b", "touch denied"),
        bash("toolu_c", "touch original"),
        bash("toolu_d", "mkdir -p one"),
        bash("toolu_e", "mkdir -p one"),
        text_reply("Done."),
        called_as("toolu_q", "AskUserQuestion", question),
        text_reply("Left it is."),
        bash("toolu_f", "rm gone"),
    ];
    if let Some(asked) = case("can_use_tool.py", replies) {
        assert_eq!(asked.len(), 9);
    }
}

#[test]
fn functions_are_hooks() {
    let replies = vec![
        bash("toolu_a", "touch refused"),
        bash("toolu_b", "touch before"),
        called_as("toolu_c", "Read", json!({"file_path": "a.txt"})),
        text_reply("Done."),
    ];
    if let Some(asked) = case("hooks.py", replies) {
        let last = asked[3]["messages"].to_string();
        for told in [
            "the hook knows more",
            "the hook says no",
            "the hook adds this",
            "forty-two",
        ] {
            assert!(last.contains(told), "{told}: {last}");
        }
    }
}

#[test]
fn functions_are_tools() {
    let call = |id: &str, name: &str| called_as(id, &format!("mcp__calc__{name}"), json!({}));
    let replies = vec![
        called_as("toolu_a", "mcp__calc__add", json!({"a": 40, "b": 2})),
        call("toolu_b", "fail"),
        call("toolu_c", "raise"),
        call("toolu_d", "picture"),
        call("toolu_e", "long"),
        call("toolu_f", "secret"),
        text_reply("Sums."),
    ];
    if let Some(asked) = case("sdk_tool.py", replies) {
        let add = &asked[0]["tools"][0];
        assert_eq!(add["name"], "mcp__calc__add");
        assert_eq!(add["description"], "Adds two numbers.");
        assert_eq!(add["input_schema"]["required"], json!(["a", "b"]));
        let last = asked[6]["messages"].to_string();
        assert!(
            last.contains("image/png") && last.contains("it broke"),
            "{last}"
        );
    }
}

#[test]
fn a_function_is_asked_for_permission() {
    let replies = vec![
        bash("toolu_a", "touch yes"),
        bash("toolu_b", "touch no"),
        bash("toolu_c", "touch odd"),
        text_reply("Done."),
    ];
    if let Some(asked) = case("prompt_tool.py", replies) {
        assert_eq!(asked.len(), 4);
    }
}

#[test]
fn interrupting() {
    let replies = vec![
        bash("toolu_a", "sleep 300"),
        called_as("toolu_b", "mcp__slow__wait", json!({})),
        text_reply("On and on").silent_before("event: content_block_stop"),
        text_reply("Still here."),
    ];
    if let Some(asked) = case("interrupt.py", replies) {
        assert_eq!(asked.len(), 4);
        let last = asked[3]["messages"].to_string();
        assert!(last.contains("[Request interrupted by user]"), "{last}");
    }
}

#[test]
fn limits() {
    let replies = vec![
        bash("toolu_a", "touch made"),
        bash("toolu_b", "touch again"),
        bash("toolu_c", "mkdir folder"),
        text_reply("Done."),
        bash("toolu_d", "touch never"),
        text_reply("Done."),
    ];
    if let Some(asked) = case("limits.py", replies) {
        assert_eq!(asked.len(), 6);
    }
}

#[test]
fn prompts_shapes_and_pieces() {
    let replies = vec![
        text_reply("a"),
        text_reply("b"),
        text_reply("{\"n\": 42}"),
        text_reply("In pieces."),
    ];
    if let Some(asked) = case("prompts.py", replies) {
        let system: Vec<String> = asked.iter().map(|one| one["system"].to_string()).collect();
        assert!(system[0].contains("Be a clerk.") && !system[0].contains("Working directory"));
        assert!(system[1].contains("Be kind.") && system[1].contains("Working directory"));
    }
}

#[test]
fn conversations() {
    let write = json!({"file_path": "notes.txt", "old_string": "old", "new_string": "new"});
    let replies = vec![
        text_reply("Seven."),
        text_reply("Yes."),
        text_reply("Yes."),
        text_reply("Apart."),
        text_reply("Named."),
        text_reply("Kept."),
        text_reply("Gone on."),
        called_as("toolu_r", "Read", json!({"file_path": "notes.txt"})),
        called_as("toolu_w", "Edit", write),
        text_reply("Changed."),
    ];
    if let Some(asked) = case("sessions.py", replies) {
        for (at, remembered) in [(1, true), (2, true), (3, true), (4, false), (6, false)] {
            let messages = asked[at]["messages"].to_string();
            assert_eq!(
                messages.contains("remember 7"),
                remembered,
                "{at}: {messages}"
            );
        }
        assert!(asked[6]["messages"].to_string().contains("keep"));
    }
}
