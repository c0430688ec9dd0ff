//! The examples for other languages, run with the real interpreters where they are.

use std::{fs, path::Path, process::Output};

fn run(interpreter: &str, script: &str, directory: &Path) -> Option<Output> {
    let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).join(script);
    let ran = haft_testkit::command(interpreter)
        .arg(script)
        .arg(directory)
        .env("HAFT", env!("CARGO_BIN_EXE_haft"))
        .env("HOME", directory)
        .output();
    match ran {
        Ok(output) => Some(output),
        Err(_) => {
            haft_testkit::skip(&format!("the example for {interpreter}: it is not here"));
            None
        }
    }
}

#[test]
fn exec_from_python_and_from_node() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.md"), "# Notes\n").unwrap();
    for (interpreter, script) in [("python3", "exec.py"), ("node", "exec.mjs")] {
        let Some(output) = run(interpreter, script, dir.path()) else {
            continue;
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {stderr}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0], "Markdown files:", "{script}");
        assert!(lines[1].ends_with("notes.md"), "{script}: {}", lines[1]);
        assert_eq!(lines[2..], ["t1 worked", "t2 failed"], "{script}");
    }
}

#[test]
fn an_interactive_exec_from_python() {
    let dir = tempfile::tempdir().unwrap();
    let Some(output) = run("python3", "exec_interactive.py", dir.path()) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    for line in ["asked: Bash", "answer: made", "cancelled: True"] {
        assert!(stdout.contains(line), "{stdout}");
    }
    assert!(dir.path().join("made-by-haft").exists());
}
