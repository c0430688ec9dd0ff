//! What is left when the program ends, however it ends: by the end of its input, by SIGTERM, by SIGKILL. Monitors,
//! schedules and sockets are in `schedules`, worktrees in `worktrees`, fetches in `web::files`.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use haft_testkit::until_blocking;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{
    Talk, call, scripted, text,
    worktrees::{Scene, done, enter, script},
};

const ENDS: [&str; 3] = ["EOF", "TERM", "KILL"];

/// A project, a home and a folder for temporary files.
struct Place {
    project: TempDir,
    home: TempDir,
    temporary: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = || tempdir().unwrap();
        let (project, home, temporary) = (folder(), folder(), folder());
        Self {
            project,
            home,
            temporary,
        }
    }

    fn path(&self) -> &Path {
        self.project.path()
    }

    fn talk(&self, turns: &Value, flags: &[&str], settings: &Value) -> Talk {
        let mut command = scripted(self.path(), turns);
        command
            .env("HOME", self.home.path())
            .env("TMPDIR", self.temporary.path())
            .args(flags)
            .args(["--settings", &settings.to_string()]);
        Talk::new(&mut command)
    }

    /// Nothing runs in the project, and nothing new lies there or among the temporary files.
    fn assert_clean(&self, what: &str, kept: &[&str]) {
        until_blocking(&format!("nothing runs after {what}"), || {
            processes_in(self.path()).is_empty()
        });
        assert_eq!(names(self.path()), kept, "{what}");
        assert_eq!(names(self.temporary.path()), [""; 0], "{what}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter(|name| name != ".haft-test-script.json")
        .collect();
    names.sort();
    names
}

fn processes_in(directory: &Path) -> Vec<PathBuf> {
    let directory = fs::canonicalize(directory).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let works_there = |process: &PathBuf| {
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&directory))
    };
    let paths = processes.map(|process| process.path());
    paths.filter(works_there).collect()
}

fn end(talk: Talk, how: &str) {
    match how {
        "EOF" => assert_eq!(talk.end().1, 0),
        signal => {
            talk.signal(signal);
            talk.gone();
        }
    }
}

/// Hooks that never end, with what they started: before a call, beside the session, for a file, and at the start.
#[test]
fn no_hook_outlives_the_program() {
    let hangs = "touch begun; sleep 600 & wait";
    let hook = |fields: Value| {
        let mut hook = json!({"type": "command", "command": hangs});
        for (name, value) in fields.as_object().unwrap() {
            hook[name] = value.clone();
        }
        hook
    };
    let touch = call("Bash", json!({"command": "echo 1 > w.txt"}));
    let cases = [
        ("PreToolUse", json!({"hooks": [hook(json!({}))]})),
        ("PostToolUse", json!({"hooks": [hook(json!({}))]})),
        (
            "UserPromptSubmit",
            json!({"hooks": [hook(json!({"async": true}))]}),
        ),
        (
            "FileChanged",
            json!({"matcher": "w.txt", "hooks": [hook(json!({}))]}),
        ),
        ("SessionStart", json!({"hooks": [hook(json!({}))]})),
        ("Stop", json!({"hooks": [hook(json!({}))]})),
    ];
    for (event, group) in &cases {
        for how in ENDS {
            let place = Place::new();
            let mut group = group.clone();
            // What holds a turn up is waited for at the end of the input, as long as it may take.
            if how == "EOF" && !["UserPromptSubmit", "FileChanged"].contains(event) {
                group["hooks"][0]["timeout"] = json!(1);
            }
            let settings = json!({"hooks": {*event: [group]}});
            let turns = json!([[touch], [text("done")]]);
            let mut talk = place.talk(&turns, &["--allowedTools=Bash"], &settings);
            talk.user("go");
            let begun = place.path().join("begun");
            until_blocking(&format!("the hook {event} runs"), || begun.exists());
            if how == "EOF" {
                talk.hear_until("result");
            }
            end(talk, how);
            until_blocking(&format!("nothing runs after {event} {how}"), || {
                processes_in(place.path()).is_empty()
            });
        }
    }
}

/// One search is under way at a server that never answers.
#[test]
fn a_search_that_is_cut_off_leaves_nothing() {
    for how in ["TERM", "KILL"] {
        let place = Place::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/search", listener.local_addr().unwrap());
        let (sender, events) = mpsc::channel();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{");
            let _ = sender.send("asked");
            let _ = stream.set_read_timeout(Some(Duration::from_secs(100)));
            while matches!(stream.read(&mut head), Ok(1..)) {}
        });
        let turns = json!([
            [call("WebSearch", json!({"query": "rust"}))],
            [text("done")]
        ]);
        let mut command = scripted(place.path(), &turns);
        command
            .env("HOME", place.home.path())
            .env("TMPDIR", place.temporary.path())
            .env("HAFT_SEARCH_URL", url)
            .arg("--allowedTools=WebSearch");
        let mut talk = Talk::new(&mut command);
        talk.user("go");
        let asked = events.recv_timeout(Duration::from_secs(100));
        assert_eq!(asked, Ok("asked"));
        end(talk, how);
        until_blocking(&format!("the connection is gone after {how}"), || {
            server.is_finished()
        });
        server.join().unwrap();
        place.assert_clean(how, &[]);
    }
}

/// A durable schedule is kept on purpose, and nothing else is.
#[test]
fn of_schedules_only_the_durable_ones_stay() {
    for how in ENDS {
        let place = Place::new();
        let cron = |durable: bool| {
            let input = json!({"cron": "7 * * * *", "prompt": "look", "durable": durable});
            call("CronCreate", input)
        };
        let turns = json!([[cron(true), cron(false)], [text("done")]]);
        let mut talk = place.talk(&turns, &[], &json!({}));
        talk.user("go");
        talk.hear_until("result");
        end(talk, how);
        place.assert_clean(how, &[".claude"]);
        let kept = names(&place.path().join(".claude"));
        assert_eq!(kept, ["scheduled_tasks.json"], "{how}");
    }
}

#[test]
fn one_that_is_killed_while_git_makes_it_is_named_by_the_next_start() {
    let scene = Scene::new();
    // What git reads before it writes the first file: it waits there.
    let pipe = scene.path("p/.git/info/attributes");
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    let made = haft_testkit::command("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let turns = script(&[enter("x"), done()]);
    let mut command = scene.haft("p", &json!({"turns": turns}));
    let mut talk = Talk::new(command.arg("-p"));
    talk.user("go");
    let folder = scene.path("p/.git/worktrees/x");
    until_blocking("git makes it", || folder.exists());
    talk.signal("KILL");
    talk.gone();
    fs::remove_file(&pipe).unwrap();
    let (_, ran) = scene.run(&[done()], &[]);
    let named = ran.stderr.contains("ended while creating it");
    assert!(
        named && ran.stderr.contains("was left by session"),
        "{}",
        ran.stderr
    );
    // It is not made a second time beside what is left.
    let (results, _) = scene.run(&[enter("x"), done()], &[]);
    assert_eq!(results[0]["is_error"], true, "{}", results[0]);
    // The message says how to get rid of it, and that works.
    let remove = ran.stderr.split("all its files: ").nth(1).unwrap();
    let remove = remove.split(". If there").next().unwrap();
    let mut shell = haft_testkit::command("bash");
    let shell = shell.args(["-c", remove]).env("HOME", scene.path("home"));
    assert!(shell.status().unwrap().success(), "{remove}");
    let (_, ran) = scene.run(&[done()], &[]);
    assert!(!ran.stderr.contains("worktree"), "{}", ran.stderr);
    let listed = scene.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("worktree ").count(), 1, "{listed}");
}
