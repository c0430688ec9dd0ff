//! The page of a session, in a browser: `tests/page/drive.mjs` does there what a reader does, for a session that haft
//! made, for a transcript that attacks its reader, and for one of five thousand turns.
//!
//! `.ci/run` installs Chromium and what drives it; elsewhere the cases say that they are skipped where either is absent.
//! `HAFT_PAGE_SHOTS` names a folder for pictures of what was seen.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::binary::{haft, run};

const BROWSERS: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// A picture of four pixels.
const PIXELS: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNQDplnOyuD4eYs7fOBHgAjtgVbcmtnSQAAAABJRU5ErkJggg==";

/// What drives the browser, and the browser.
fn browser() -> Option<(PathBuf, &'static str)> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let modules = target.join("page/node/node_modules");
    let chromium = BROWSERS.into_iter().find(|path| Path::new(path).exists());
    let node = haft_testkit::command("node")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let missing = match (modules.join("playwright-core").exists(), chromium, node) {
        (true, Some(chromium), Ok(_)) => return Some((modules, chromium)),
        (_, None, _) => "Chromium",
        (_, _, Err(_)) => "node",
        (false, _, _) => "playwright-core",
    };
    haft_testkit::skip(&format!(
        "the session page in a browser: {missing} is absent; `.ci/run` installs it"
    ));
    None
}

/// Does what a case says with a page, and gives what it measured.
fn drive(case: &str, page: &Path) -> Option<Value> {
    let (modules, chromium) = browser()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/drive.mjs");
    let home = tempdir().unwrap();
    let mut command = haft_testkit::command("node");
    command
        .arg(script)
        .args([case.as_ref(), page.as_os_str()])
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("HAFT_PAGE_MODULES", modules)
        .env("HAFT_PAGE_CHROMIUM", chromium);
    if let Some(shots) = env::var_os("HAFT_PAGE_SHOTS") {
        command.env("HAFT_PAGE_SHOTS", shots);
    }
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "{case}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let measured: Value = serde_json::from_slice(&ran.stdout).unwrap();
    eprintln!("{case}: {measured}");
    Some(measured)
}

/// A directory with a session of it.
struct Exported {
    _dir: TempDir,
    page: PathBuf,
    text: String,
}

fn export(dir: TempDir, session: &str) -> Exported {
    let (page, text) = (dir.path().join("page.html"), dir.path().join("page.md"));
    let ran = run(
        haft(dir.path())
            .args(["sessions", "export", session, "--html"])
            .arg(&page)
            .arg("--md")
            .arg(&text),
        b"",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    Exported {
        text: fs::read_to_string(text).unwrap(),
        page,
        _dir: dir,
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "name": name, "input": input})
}

/// A session that haft makes: calls side by side, subagents, a change, a failure, a picture.
fn real_session() -> Exported {
    let dir = tempdir().unwrap();
    let cwd = dir.path();
    let price = "/// What is taken off, in cents.\npub fn discount(total: u64) -> u64 {\n    if total > 5000 {\n        total / 10\n    } else {\n        0\n    }\n}\n";
    fs::write(cwd.join("price.rs"), price).unwrap();
    fs::write(
        cwd.join("limits.md"),
        "# Limits\n\nFrom 50.00 on, a tenth is taken off.\n",
    )
    .unwrap();
    let pixels = data_encoding::BASE64.decode(PIXELS.as_bytes()).unwrap();
    fs::write(cwd.join("chart.png"), pixels).unwrap();
    let turn = |content: Value| json!({"content": content, "usage": {"input": 1200, "output": 85, "cache_read": 9000}});
    let errand = |prompt: &str| {
        let input = json!({"description": prompt, "prompt": prompt, "subagent_type": "Explore"});
        call("Agent", input)
    };
    let script = json!({
        "turns": [
            turn(json!([
                {"type": "thinking", "thinking": "The comparison may leave the limit itself out."},
                text("I look at the code of the **discount**, and have the rest looked through:\n\n1. the code\n2. the limits"),
                call("Read", json!({"file_path": "price.rs"})),
                call("Grep", json!({"pattern": "discount"})),
                errand("Find all limits"),
                errand("Find the charts"),
            ])),
            turn(json!([
                text("`>` leaves the limit out."),
                call("Edit", json!({"file_path": "price.rs", "old_string": "    if total > 5000 {", "new_string": "    if total >= 5000 {"})),
                call("Bash", json!({"command": "ls *.rs; sleep 0.1"})),
            ])),
            turn(json!([call("Bash", json!({"command": "echo 'no such test' >&2; exit 3"})), call("Read", json!({"file_path": "chart.png"}))])),
            turn(json!([text("A basket of exactly 50.00 gets its discount now.")])),
        ],
        "conversations": [
            {"when": "Find all limits", "turns": [
                turn(json!([call("Grep", json!({"pattern": "50"}))])),
                turn(json!([text("They are in limits.md; this is only in the subagent.")])),
            ]},
            {"when": "Find the charts", "turns": [
                turn(json!([call("Glob", json!({"pattern": "*.png"}))])),
                turn(json!([text("There is one.")])),
            ]},
        ],
    });
    let path = cwd.join(".script.json");
    fs::write(&path, script.to_string()).unwrap();
    let ran = run(
        haft(cwd)
            .args(["-p", "A basket of exactly 50.00 gets no discount. Why?"])
            .args([
                "--permission-mode",
                "acceptEdits",
                "--allowed-tools",
                "Bash",
            ])
            .args(["--name", "Discount at the limit", "--script"])
            .arg(path),
        b"",
    );
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    export(dir, "Discount at the limit")
}

/// Lines of a transcript that did not come from haft.
struct TranscriptLines {
    lines: Vec<String>,
    parent: Option<String>,
    milliseconds: u64,
}

impl TranscriptLines {
    const ID: &str = "0190c0de-0000-7000-8000-000000000001";

    fn new() -> Self {
        Self {
            lines: Vec::new(),
            parent: None,
            milliseconds: 0,
        }
    }

    fn message(&mut self, role: &str, content: &Value, more: &Value) {
        let uuid = format!("00000000-0000-4000-8000-{:012}", self.lines.len() + 1);
        self.milliseconds += 700;
        let (seconds, rest) = (self.milliseconds / 1000, self.milliseconds % 1000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let time = format!(
            "2026-11-16T{hours:02}:{minutes:02}:{:02}.{rest:03}Z",
            seconds % 60
        );
        let mut message = json!({"role": role, "content": content});
        if role == "assistant" {
            message["id"] = json!(format!("msg_{}", self.lines.len()));
            message["model"] = json!("claude-sonnet-4-5");
            message["usage"] = json!({"input_tokens": 900, "output_tokens": 120, "cache_read_input_tokens": 20_000});
        }
        let mut line = json!({"type": role, "uuid": uuid, "parentUuid": self.parent, "timestamp": time,
            "sessionId": Self::ID, "cwd": "/work/<b>shop", "message": message});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        self.lines.push(line.to_string());
        self.parent = Some(uuid);
    }

    fn user(&mut self, content: &Value) {
        self.message("user", content, &json!({}));
    }

    fn assistant(&mut self, content: &Value) {
        self.message("assistant", content, &json!({}));
    }

    fn result(&mut self, id: &str, content: &Value, structured: &Value) {
        let block = json!([{"type": "tool_result", "tool_use_id": id, "content": content}]);
        self.message("user", &block, &json!({"toolUseResult": structured}));
    }

    /// Puts them where the sessions of a new directory are.
    fn export(&self) -> Exported {
        let dir = tempdir().unwrap();
        let cwd = fs::canonicalize(dir.path()).unwrap();
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        };
        let project: String = cwd.to_str().unwrap().chars().map(plain).collect();
        let folder = dir.path().join(".claude/projects").join(project);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{}.jsonl", Self::ID));
        fs::write(file, self.lines.join("\n") + "\n").unwrap();
        export(dir, Self::ID)
    }
}

fn hostile_session() -> Exported {
    let attack = "</title></script><script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\"><!-- ]]> \
        {{script}} \u{2028}\u{2029}\u{202e}gpj.exe\u{202c} <svg onload=window.hacked=1> &lt;script&gt;";
    let linked = "[click](javascript:window.hacked=1) ![p](http://example.com/a.png) <http://example.com/> \
        [data](data:text/html,<script>window.hacked=1</script>) http://example.com/plain `</code><script>window.hacked=1</script>`\n\n\
        <iframe src=\"http://example.com\"></iframe>\n\n```html\n</pre><script>window.hacked=1</script>\n```\n\n| a | b |\n|---|---|\n| <b onclick=window.hacked=1>x</b> | `|` |";
    let mut lines = TranscriptLines::new();
    lines.user(&json!([{"type": "text", "text": attack},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x\" onerror=\"window.hacked=1"}},
        {"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": "PHNjcmlwdD4="}}]));
    lines.assistant(&json!([{"type": "thinking", "thinking": attack, "signature": "s"}, {"type": "text", "text": linked}]));
    lines.assistant(&json!([{"type": "tool_use", "id": attack, "name": attack, "input":
        {"file_path": attack, "__proto__": {"hacked": 1}, "constructor": attack, "nested": {"a": [attack, null, 1.5, true]}}}]));
    let patch = json!({"filePath": attack, "structuredPatch": [{"oldStart": 1, "newStart": 1, "lines": [format!("-{attack}"), format!("+{attack} "), "no sign", ""]}]});
    lines.result(attack, &json!(attack), &patch);
    lines.assistant(
        &json!([{"type": "tool_use", "id": "big", "name": "Bash", "input": {"command": "yes"}}]),
    );
    let big = "0123456789 <b>line</b> of a long output &amp; more\n".repeat(210_000)
        + "the very end of it";
    lines.result("big", &json!(big), &json!({}));
    lines.assistant(
        &json!([{"type": "tool_use", "id": "wide", "name": "Bash", "input": {"command": "tr"}}]),
    );
    lines.result("wide", &json!("wide".repeat(250_000)), &json!({}));
    lines.assistant(&json!([{"type": "text", "text": format!("{}\n{}", "*_`[(<".repeat(2000), "- ".repeat(5000))}]));
    lines.assistant(&json!([{"type": "server_tool_use", "name": attack, "id": "x", "input": {}}]));
    lines.user(&json!("the end"));
    lines.export()
}

fn large_session() -> Exported {
    let mut lines = TranscriptLines::new();
    for turn in 0..5000 {
        lines.user(&json!(format!(
            "This is turn {turn} of many: what does part {} do?",
            turn % 37
        )));
        let words = "It reads the list, sorts it, and writes it back. ".repeat(1 + turn % 9);
        let needle = if turn == 4321 {
            "needle 4321"
        } else {
            "nothing special"
        };
        let said = format!(
            "## Part {}\n\n{words}\n\n- one with `code`\n- two, {needle}\n",
            turn % 37
        );
        let id = format!("toolu_{turn}");
        let (name, input, structured) = match turn % 3 {
            0 => {
                let lines: Vec<String> = (0..turn % 40)
                    .map(|at| format!("{} let value_{at} = {at};", ["-", "+", " "][at % 3]))
                    .collect();
                (
                    "Edit",
                    json!({"file_path": "/work/src/lib.rs"}),
                    json!({"filePath": "/work/src/lib.rs", "structuredPatch": [{"oldStart": 3, "newStart": 3, "lines": lines}]}),
                )
            }
            1 => (
                "Bash",
                json!({"command": format!("make part-{turn}")}),
                json!({}),
            ),
            _ => (
                "Read",
                json!({"file_path": format!("/work/src/part_{turn}.rs")}),
                json!({}),
            ),
        };
        lines.assistant(&json!([{"type": "text", "text": said}, {"type": "tool_use", "id": id, "name": name, "input": input}]));
        lines.result(
            &id,
            &json!("a line of output\n".repeat(20 + turn % 60)),
            &structured,
        );
        lines.assistant(&json!([{"type": "text", "text": format!("That was turn {turn}.")}]));
    }
    lines.export()
}

#[test]
fn a_reader_finds_their_way_through_a_session() {
    if let Some(measured) = drive("session", &real_session().page) {
        assert!(measured["paper"].as_f64() > Some(10_000.0));
    }
}

#[test]
fn a_hostile_transcript_is_shown_and_does_nothing() {
    let exported = hostile_session();
    // In Markdown it is in fences, in quotes, or in code.
    let mut fence: Option<&str> = None;
    for line in exported.text.lines() {
        let marks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if marks.len() > 2 => fence = Some(marks),
            None => {
                let is_kept = ["> ", "**Tool call** `"]
                    .iter()
                    .any(|begin| line.starts_with(begin));
                assert!(is_kept || !line.contains("<script>"), "{line}");
            }
        }
    }
    assert_eq!(fence, None);
    drive("hostile", &exported.page);
}

#[test]
fn five_thousand_turns_stay_usable() {
    let exported = large_session();
    let size = fs::metadata(&exported.page).unwrap().len();
    if let Some(measured) = drive("large", &exported.page) {
        let heap = measured["heapMegabytes"].as_f64().unwrap();
        // What is kept is the data and little more.
        assert!(
            heap < 40.0 + size as f64 * 8.0 / 1e6,
            "{heap} MB for {size} bytes"
        );
    }
}
