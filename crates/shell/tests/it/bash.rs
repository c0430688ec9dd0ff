//! Running bash on many texts.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Where bash is; says so loudly where there is none.
pub(crate) fn path() -> Option<&'static Path> {
    let found = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
        .into_iter()
        .map(Path::new)
        .find(|path| path.exists());
    if found.is_none() {
        haft_testkit::skip("lines compared with bash: no bash");
    }
    found
}

/// What every command that is not a builtin does instead of running: its words are noted. A line that
/// goes on for too long is ended.
const PREPARATION: &str = r#"
ulimit -t 2 -v 500000 2>/dev/null
FUNCNEST=3
command_not_found_handle() {
    { printf '%s\0' "$#" "$@"; } >>"$NOTES"
    read -r -d '' -N 2000 bulk <"$NOTES" 2>/dev/null
    if [[ ${#bulk} -ge 600 ]]; then kill -9 $$; fi
    return 1
}
unset BASH_ENV
"#;

/// A place where lines can run without finding any program.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    /// Lines run so far: each has notes of its own, as what it leaves in the background may be late.
    count: std::cell::Cell<usize>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("preparation"), PREPARATION).unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        Stage {
            folder,
            count: Default::default(),
        }
    }

    /// Runs a line and returns the words of every command that bash looked for and did not find.
    pub(crate) fn run(&self, bash: &Path, line: &str) -> Vec<Vec<String>> {
        let folder = self.folder.path();
        self.count.set(self.count.get() + 1);
        let notes = folder.join(format!("notes{}", self.count.get()));
        fs::write(&notes, "").unwrap();
        let work = folder.join("empty");
        let mut child = haft_testkit::command(bash)
            .args(["-c", "--", line])
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("LC_ALL", "C.UTF-8")
            .env("BASH_ENV", folder.join("preparation"))
            .env("NOTES", &notes)
            .env("HOME", "/home/of/nobody")
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = format!("-{}", child.id());
        // What runs in the background holds the pipe, too: its end is the end of everything.
        let mut output = child.stdout.take().unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let _ = output.read_to_end(&mut Vec::new());
            let _ = sender.send(());
        });
        let ended = receiver.recv_timeout(Duration::from_secs(20)).is_ok();
        // Whatever is left of it, or was started by it without the pipe.
        let _ = haft_testkit::command("kill")
            .args(["-9", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = child.wait();
        assert!(ended, "runs for too long: {line:?}");
        for entry in fs::read_dir(&work).unwrap() {
            let _ = fs::remove_file(entry.unwrap().path());
        }
        let noted = fs::read(&notes).unwrap();
        fs::remove_file(&notes).unwrap();
        let notes = String::from_utf8_lossy(&noted).into_owned();
        let mut fields = notes.split('\0');
        let mut commands = Vec::new();
        while let Some(count) = fields.next().and_then(|field| field.parse::<usize>().ok()) {
            commands.push(fields.by_ref().take(count).map(str::to_owned).collect());
        }
        commands
    }
}

/// Gives bash a script, and texts on its standard input; returns what it prints between zero bytes.
fn answers(bash: &Path, script: &str, texts: &[&str]) -> Vec<String> {
    let mut child = haft_testkit::command(bash)
        .args(["-c", script, "bash"])
        .arg(bash)
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes: Vec<u8> = texts
        .iter()
        .flat_map(|text| [text.as_bytes(), b"\0"].concat())
        .collect();
    let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut answers: Vec<String> = output.split('\0').map(str::to_owned).collect();
    answers.pop();
    assert_eq!(answers.len(), texts.len());
    answers
}

/// Whether bash finds no fault with the syntax of each text. Its status does not tell for `[[ ]]`, and a
/// here-document without an end is only a warning.
pub(crate) fn accepts(bash: &Path, texts: &[&str]) -> Vec<bool> {
    let script = r#"while IFS= read -r -d '' text; do
        fault=$("$1" -n -c -- "$text" 2>&1 </dev/null) || fault="fault $fault"
        case $fault in
            '' | *'warning: here-document'*) printf 'yes\0' ;;
            *) printf 'no\0' ;;
        esac
    done"#;
    answers(bash, script, texts)
        .iter()
        .map(|answer| answer == "yes")
        .collect()
}

/// Each text inside a function, as bash prints that. Each in a process of its own: a fault in one text
/// can make bash misread the next.
pub(crate) fn prints(bash: &Path, texts: &[&str]) -> Vec<String> {
    let script = r#"while IFS= read -r -d '' text; do (eval "f() { $text"$'\n}'; declare -f f); printf '\0'; done"#;
    answers(bash, script, texts)
}

/// The words of each text, a simple command without substitutions.
pub(crate) fn words(bash: &Path, texts: &[&str]) -> Vec<Vec<String>> {
    let script = r#"while IFS= read -r -d '' text; do eval "set -- $text"; printf '%s\x02' "$@"; printf '\0'; done"#;
    let list = |answer: String| {
        let mut words: Vec<String> = answer.split('\u{2}').map(str::to_owned).collect();
        words.pop();
        words
    };
    answers(bash, script, texts).into_iter().map(list).collect()
}
