//! `REPL` through the binary: who permits it, and what is left of it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Stdio},
};

use haft_testkit::until_blocking;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{Conversation, haft};

fn has_python() -> bool {
    let found = haft_testkit::command("/usr/bin/python3")
        .arg("--version")
        .output();
    let found = found.is_ok_and(|ran| ran.status.success());
    if !found {
        haft_testkit::skip("an interpreter: /usr/bin/python3 is absent");
    }
    found
}

fn python(code: &str) -> Value {
    json!({"name": "REPL", "input": {"language": "python", "code": code}})
}

fn text(answer: &Value) -> String {
    match &answer["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn it_needs_a_rule_or_a_person_and_keeps_its_state() {
    if !has_python() {
        return;
    }
    let dir = tempdir().unwrap();
    // No one can be asked: it is refused, whatever the code says.
    let mut refused = Conversation::new(dir.path());
    let answer = refused.ask(&python("1 + 1"));
    assert_eq!(answer["is_error"], true, "{answer}");
    assert!(text(&answer).contains("it runs a program"), "{answer}");
    refused.end();
    let rule = "--allowedTools=REPL(python)";
    let mut allowed = Conversation::of(haft(dir.path()).arg(rule));
    assert_eq!(
        text(&allowed.ask(&python("x = 20"))),
        "(no output, no value)"
    );
    assert_eq!(text(&allowed.ask(&python("x + 1"))), "=> 21");
    let node = json!({"name": "REPL", "input": {"language": "node", "code": "1"}});
    assert_eq!(allowed.ask(&node)["is_error"], true);
    allowed.end();
    // What is denied as a command is denied here.
    for denied in ["REPL", "REPL(python)", "Bash(python)"] {
        let flags = [
            "--allowedTools=REPL".to_owned(),
            format!("--disallowedTools={denied}"),
        ];
        let mut session = Conversation::of(haft(dir.path()).args(flags));
        let answer = session.ask(&python("open('made', 'w')"));
        assert_eq!(answer["is_error"], true, "{denied}: {answer}");
        session.end();
    }
    assert!(!dir.path().join("made").exists());
}

#[test]
fn the_workspace_profile_holds_it() {
    if !has_python() {
        return;
    }
    let dir = tempdir().unwrap();
    let (work, home) = (dir.path().join("work"), dir.path().join("home"));
    fs::create_dir_all(&work).unwrap();
    fs::create_dir_all(&home).unwrap();
    fs::write(work.join(".env"), "KEY=sesame-77\n").unwrap();
    let flags = ["--allowedTools=REPL", "--disallowedTools=Read(./.env)"];
    let mut session = Conversation::of(haft(&work).env("HOME", &home).args(flags));
    let outside = home.join("made");
    let tries = [
        format!("open({:?}, 'w')", outside.display().to_string()),
        "open('.env').read()".to_owned(),
        "import subprocess\nsubprocess.run(['cat', '.env'], capture_output=True).stdout.decode() or 1/0".to_owned(),
        "import os\nos.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w').write('x')".to_owned(),
    ];
    for code in &tries {
        let answer = session.ask(&python(code));
        assert!(!text(&answer).contains("sesame-77"), "{answer}");
        assert_eq!(answer["is_error"], true, "{code}: {answer}");
    }
    let made = text(&session.ask(&python("open('inside', 'w').write('x')")));
    assert!(made.starts_with("=> 1"), "{made}");
    session.end();
    assert!(!outside.exists() && !work.join(".git/hooks/pre-commit").exists());
    assert!(work.join("inside").exists());
}

/// How many processes work below this directory.
fn processes_in(directory: &Path) -> usize {
    let directory = fs::canonicalize(directory).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let cwds = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    cwds.filter(|cwd| cwd.starts_with(&directory)).count()
}

fn started(dir: &Path) -> Child {
    let mut child = haft(dir)
        .args(["--allowedTools=REPL", "exec"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let code = "import subprocess, threading, os\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\n\
                threading.Thread(target=lambda: __import__('time').sleep(1000), daemon=True).start()\nos.getpid() > 0";
    let line = format!("{}\n", python(code));
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    let mut answer = String::new();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
    lines.read_line(&mut answer).unwrap();
    assert!(answer.contains("=> True"), "{answer}");
    child
}

#[test]
fn nothing_is_left_however_it_ends() {
    if !has_python() {
        return;
    }
    for end in ["EOF", "TERM", "KILL"] {
        let dir = tempdir().unwrap();
        let mut child = started(dir.path());
        assert!(processes_in(dir.path()) > 1);
        match end {
            "EOF" => drop(child.stdin.take()),
            name => {
                let id = child.id().to_string();
                let sent = haft_testkit::command("kill")
                    .args(["-s", name, &id])
                    .status();
                assert!(sent.unwrap().success());
            }
        }
        child.wait().unwrap();
        until_blocking(&format!("nothing runs after {end}"), || {
            processes_in(dir.path()) == 0
        });
    }
}

#[test]
fn what_is_protected_since_it_began_is_protected_from_it_and_its_state_is_kept() {
    if !has_python() {
        return;
    }
    let dir = tempdir().unwrap();
    let project = dir.path().join("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    let mut command = haft(dir.path());
    command.arg("--allowedTools=REPL(python)");
    command.arg("--cwd").arg(&project);
    let mut allowed = Conversation::of(&mut command);
    allowed.ask(&python("import os\nx = 41"));
    let settings = project.join(".claude/settings.local.json");
    fs::write(&settings, "{}").unwrap();
    let tries = "def tried(act):
    try:
        act()
        return 'done'
    except OSError:
        return 'refused'
name = '.claude/settings.local.json'
open('mine', 'w').close()
[tried(act) for act in (
    lambda: open(name, 'w'), lambda: open(name, 'a'),
    lambda: os.rename('mine', name), lambda: os.unlink(name))]";
    let answer = text(&allowed.ask(&python(tries)));
    assert_eq!(answer, "=> ['refused', 'refused', 'refused', 'refused']");
    assert_eq!(text(&allowed.ask(&python("x + 1"))), "=> 42");
    allowed.end();
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{}");
}

#[test]
fn what_is_hidden_since_it_began_ends_it_and_it_is_said_why() {
    if !has_python() {
        return;
    }
    let dir = tempdir().unwrap();
    let (project, home) = (dir.path().join("project"), dir.path().join("home"));
    fs::create_dir_all(&project).unwrap();
    fs::create_dir_all(home.join(".claude")).unwrap();
    let secret = project.canonicalize().unwrap().join("key.txt");
    fs::write(&secret, "s3cret").unwrap();
    let mut command = haft(&project);
    command
        .env("HOME", &home)
        .arg("--allowedTools=REPL(python)");
    let mut allowed = Conversation::of(&mut command);
    allowed.ask(&python("x = 41"));
    let rules = json!({"permissions": {"deny": [format!("Read(/{})", secret.display())]}});
    fs::write(home.join(".claude/settings.json"), rules.to_string()).unwrap();
    // Settings are looked at anew from time to time.
    let mut answer = Value::Null;
    until_blocking("the rule counts", || {
        answer = allowed.ask(&python("'x' in dir()"));
        text(&answer).contains("=> False")
    });
    let said = text(&answer);
    assert!(
        said.contains("have changed since the interpreter started (a rule hides")
            && said.contains("key.txt")
            && said.contains("without its state"),
        "{said}"
    );
    assert_eq!(answer["structured"]["stateLost"], true, "{answer}");
    allowed.end();
}
