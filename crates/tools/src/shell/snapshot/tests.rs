use std::{fs, path::PathBuf, process::Command as Plain, time::Instant};

use super::*;

const MARK: &str = "b7c1d0f2-mark";

async fn taken(
    rc: &str,
    limit: Duration,
) -> (tempfile::TempDir, Result<ShellSnapshot, SnapshotError>) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rc");
    fs::write(&file, rc).unwrap();
    let snapshot = take(home.path(), Some(&file), MARK, limit).await;
    (home, snapshot)
}

/// Long enough for a loaded machine; nothing waits for it.
const PATIENT: Duration = Duration::from_secs(60);

fn loaded(snapshot: &ShellSnapshot, line: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("snapshot");
    fs::write(&file, &snapshot.text).unwrap();
    let checked = Plain::new("bash").arg("-n").arg(&file).output().unwrap();
    assert!(checked.status.success(), "{checked:?}\n{}", snapshot.text);
    let output = Plain::new("bash")
        .args(["--norc", "-c", "source \"$1\" || exit; eval \"$2\"", "bash"])
        .arg(&file)
        .arg(line)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const RC: &str = r#"
case $- in
    *i*) ;;
    *) return ;;
esac
echo "Welcome back"; printf 'no line end'
echo noise >&2
read -r answer
read -rs -p 'Password: ' secret
PATH=/own/bin:$PATH
alias ll='ls -l'
alias ls='ls --color=auto'
alias rm='rm -i'
alias quote='echo "it'\''s"'
alias for='echo'
alias builtin='echo'
shopt -s globstar extglob nullglob
set -o pipefail
set -u
IFS=x
greet() { echo "hello $1"; _helper; }
_helper() { echo helped; }
_unused() { :; }
printf() { echo stolen; }
declare() { echo stolen; }
cd() { command cd "$@" && ls; }
pattern() { case $1 in @(a|b)) echo yes;; esac; }
document() {
    cat <<END
}
other () 
$1
END
}
alias printf='echo'
trap 'echo debugging' DEBUG
PROMPT_COMMAND='echo prompted'
sleep 1000 &
"#;

#[tokio::test]
async fn an_rc_file_that_does_everything_is_taken_over_where_it_is_harmless() {
    let (home, snapshot) = taken(RC, PATIENT).await;
    let snapshot = snapshot.unwrap();
    insta::assert_snapshot!("nasty", snapshot.text);
    assert!(snapshot.path.starts_with("/own/bin:"));
    assert_eq!(
        snapshot.left_out,
        ["builtin", "cd", "for", "pattern", "printf", "rm"]
    );
    assert_eq!(loaded(&snapshot, "greet you"), "hello you\nhelped\n");
    assert_eq!(loaded(&snapshot, "quote"), "it's\n");
    assert_eq!(loaded(&snapshot, "document x"), "}\nother () \nx\n");
    assert_eq!(
        loaded(&snapshot, "type -t ll printf cd"),
        "alias\nbuiltin\nbuiltin\n"
    );
    assert_eq!(
        loaded(&snapshot, "echo /nosuch*; shopt -q extglob || echo off"),
        "\noff\n"
    );
    assert_nothing_runs_in(home.path());
}

#[tokio::test]
async fn an_empty_rc_file_gives_an_empty_snapshot() {
    let (_home, snapshot) = taken("", PATIENT).await;
    assert_eq!(loaded(&snapshot.unwrap(), "echo ok"), "ok\n");
}

#[tokio::test]
async fn an_rc_file_that_ends_the_shell_costs_only_the_snapshot() {
    for rc in [
        "exit 1",
        "exec true",
        "exec sh",
        "kill -9 $$",
        "set -e; false",
        "if",
        "exec >/dev/null",
        "echo b7c1d0f2-mark; exit",
        "builtin() { :; }; unset() { :; }",
    ] {
        let (home, snapshot) = taken(rc, PATIENT).await;
        // Bash goes on behind a syntax error in an rc file; then there is simply nothing in it.
        match snapshot {
            Ok(snapshot) => assert_eq!(
                (rc, snapshot.text.as_str()),
                ("if", "shopt -s expand_aliases\n")
            ),
            Err(absent) => assert_eq!((rc, absent), (rc, SnapshotError::NoAnswer)),
        }
        assert_nothing_runs_in(home.path());
    }
}

#[tokio::test]
async fn an_rc_file_that_does_not_end_is_given_up_with_all_it_started() {
    for rc in [
        "while :; do :; done",
        "sleep 1000",
        "trap '' TERM INT HUP; sleep 1000 & wait",
    ] {
        let started = Instant::now();
        let (home, snapshot) = taken(rc, Duration::from_millis(300)).await;
        assert_eq!((rc, snapshot), (rc, Err(SnapshotError::Slow)));
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_nothing_runs_in(home.path());
    }
    let (home, snapshot) = taken("yes", PATIENT).await;
    assert_eq!(snapshot, Err(SnapshotError::Long));
    assert_nothing_runs_in(home.path());
}

#[tokio::test]
async fn who_stops_waiting_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let rc = home.path().join("rc");
    let ready = home.path().join("ready");
    fs::write(&rc, "sleep 1000 & : > ready; wait").unwrap();
    let waiting = take(home.path(), Some(&rc), MARK, PATIENT);
    let is_ready = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answer = waiting => panic!("{answer:?}"),
        () = is_ready => {}
    }
    assert_nothing_runs_in(home.path());
}

/// Processes are recognized by where they run: the home of the test, which no one else has.
fn assert_nothing_runs_in(home: &Path) {
    let home = home.canonicalize().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let running: Vec<PathBuf> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == home))
            .collect();
        if running.is_empty() {
            return;
        }
        // Killed, but not gone yet.
        assert!(Instant::now() < deadline, "{running:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
