//! Programs that are confined for long, with open files of their own.

use std::{
    fs,
    io::{Read, Write},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::Path,
    time::Duration,
};

use haft_sandbox::{
    ClosedDirectories, CommandOutput, ConfinedProcess, ConfinedProgram, ExitKind, Mechanism,
    Sandbox, SandboxError, SandboxNetwork, SandboxProfile, SandboxSetup, WorkspaceProfile,
};
use rustix::io::{FdFlags, fcntl_setfd};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    lifetime::{driver::Driver, everywhere, place, setup},
    outside::{below, is_there, marked, until},
    setting::{LONG, Place},
};

/// Says that it is ready, then so at each interrupt, and does nothing else. A built-in that waits is interrupted
/// at once; a program that bash waited for would have to end first. It waits for moments only: a signal just before
/// a wait begins is noticed by bash when the wait is over.
const INTERRUPTED: &str =
    "trap 'echo interrupted' INT; echo ready; while :; do read -r -t 0.2; done";

fn bash(place: &Place, script: &str) -> ConfinedProgram {
    let mut program = ConfinedProgram::new("/bin/bash", place.project());
    program.arguments = vec!["-c".into(), script.into(), "bash".into()];
    program.env = place.sandbox.environment(&Place::readonly());
    program
}

async fn start(
    place: &Place,
    profile: &SandboxProfile,
    program: ConfinedProgram,
) -> ConfinedProcess {
    let started = place
        .sandbox
        .start_program(profile, program, Mechanism::None)
        .await;
    started.unwrap()
}

/// Reads until a line of its own is this.
async fn read_line(output: &mut CommandOutput, line: &str) {
    let mut said = String::new();
    while !said.ends_with('\n') {
        let byte = timeout(LONG, output.read_u8()).await;
        let byte = byte.unwrap_or_else(|_| panic!("it never says {line:?}: {said:?}"));
        said.push(char::from(byte.unwrap()));
    }
    assert_eq!(said.trim_end(), line);
}

async fn all(output: &mut CommandOutput) -> String {
    let mut text = String::new();
    let read = timeout(LONG, output.read_to_string(&mut text)).await;
    read.expect("its output does not end").unwrap();
    text
}

async fn ended(process: &ConfinedProcess) -> ExitKind {
    let ended = timeout(LONG, process.wait()).await;
    ended.expect("it does not end").how
}

async fn gone(process: &ConfinedProcess) {
    let gone = timeout(LONG, process.control().wait_until_finished()).await;
    gone.expect("it is not gone");
}

#[tokio::test]
async fn it_talks_through_its_pipes_and_ends_with_its_code() {
    for (place, profile) in everywhere().await {
        let script = "read -r line; echo \"out $line\"; echo \"err $line\" >&2; exit 3";
        let mut process = start(&place, &profile, bash(&place, script)).await;
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(b"hello\n").await.unwrap();
        assert_eq!(all(&mut process.stdout).await, "out hello\n");
        assert_eq!(all(&mut process.stderr).await, "err hello\n");
        assert_eq!(ended(&process).await, ExitKind::Exited(3));
        gone(&process).await;
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn open_files_are_found_at_their_numbers_and_no_others_are() {
    for (place, profile) in everywhere().await {
        // One that our process was started with, or forgot.
        let (_left, open) = std::io::pipe().unwrap();
        fcntl_setfd(&open, FdFlags::empty()).unwrap();
        let (commands, mut command) = std::io::pipe().unwrap();
        let (mut answer, answers) = std::io::pipe().unwrap();
        let script = "for n in /proc/self/fd/*; do [ -e $n ] && echo ${n##*/}; done; \
                      read -r line <&3; echo \"got $line\" >&4; echo \"no stdin: $(cat)\"";
        let mut program = bash(&place, script);
        let null = OwnedFd::from(fs::File::open("/dev/null").unwrap());
        program.files = vec![(4, answers.into()), (3, commands.into()), (0, null)];
        let mut process = start(&place, &profile, program).await;
        assert!(process.stdin.is_none());
        command.write_all(b"{}\n").unwrap();
        let read = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            answer.read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(timeout(LONG, read).await.unwrap().unwrap(), "got {}\n");
        let text = all(&mut process.stdout).await;
        assert_eq!(text, "0\n1\n2\n3\n4\nno stdin: \n", "{}", profile.name());
        assert_eq!(ended(&process).await, ExitKind::Exited(0));
        drop(open);
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn its_environment_and_folders_are_those_it_was_given() {
    let place = place(Mechanism::Namespaces);
    let mut program = ConfinedProgram::new("env", place.project());
    program.env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("TMPDIR".into(), "/elsewhere".into()),
        ("A".into(), "b c".into()),
    ];
    let mut process = start(&place, &place.workspace(), program).await;
    let mut lines: Vec<_> = all(&mut process.stdout)
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    let scratch = process.scratch().display().to_string();
    let expected = [
        "A=b c".to_owned(),
        "PATH=/usr/bin:/bin".to_owned(),
        format!("TMPDIR={scratch}"),
    ];
    assert_eq!(lines, expected);
    drop(process);
    until("its temporary files are gone", || {
        !Path::new(&scratch).exists()
    })
    .await;
}

#[tokio::test]
async fn it_writes_where_its_profile_says_and_reaches_no_one() {
    haft_testkit::bound_this_process();
    let place = place(Mechanism::Namespaces);
    let mechanism = place.sandbox.prepare(&place.workspace()).await.unwrap();
    if mechanism > Mechanism::Bubblewrap {
        return haft_testkit::skip("programs cannot be confined here");
    }
    let (inside, outside) = (place.path("cache"), place.path("project/file"));
    fs::create_dir(&inside).unwrap();
    haft_testkit::bound_this_process();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "echo a > {}/a && echo inside; echo a > {} && echo outside; echo a > $TMPDIR/a && echo scratch; \
         (echo > /dev/tcp/127.0.0.1/{port}) && echo network",
        inside.display(),
        outside.display(),
    );
    let profile = SandboxProfile::Workspace(WorkspaceProfile {
        writable: vec![fs::canonicalize(&inside).unwrap()],
        protected: Vec::new(),
        hidden: Vec::new(),
        guarded: None,
        closed: ClosedDirectories::default(),
        network: SandboxNetwork::None,
    });
    let mut process = start(&place, &profile, bash(&place, &script)).await;
    assert_eq!(all(&mut process.stdout).await, "inside\nscratch\n");
    assert!(!outside.exists() && inside.join("a").exists());
}

#[tokio::test]
async fn a_program_that_no_guard_connects_for_has_no_unix_socket() {
    if !Path::new("/usr/bin/python3").exists() {
        haft_testkit::skip("a program without Unix sockets: no /usr/bin/python3");
        return;
    }
    let place = place(Mechanism::Namespaces);
    let mechanism = place.sandbox.prepare(&place.workspace()).await.unwrap();
    if mechanism > Mechanism::Bubblewrap {
        return haft_testkit::skip("programs cannot be confined here");
    }
    let inside = place.path("cache");
    fs::create_dir(&inside).unwrap();
    let script = "/usr/bin/python3 -I -S -c 'import socket; socket.socketpair(); print(\"pair\"); \
                  socket.socket(socket.AF_UNIX)' 2> /dev/null || echo refused";
    let profile = SandboxProfile::Workspace(WorkspaceProfile {
        writable: vec![fs::canonicalize(&inside).unwrap()],
        protected: Vec::new(),
        hidden: Vec::new(),
        guarded: None,
        closed: ClosedDirectories::default(),
        network: SandboxNetwork::None,
    });
    let mut process = start(&place, &profile, bash(&place, script)).await;
    assert_eq!(all(&mut process.stdout).await, "pair\nrefused\n");
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    for (place, profile) in everywhere().await {
        let weakest = Mechanism::None;
        let missing = ConfinedProgram::new("/no/such/program", place.project());
        let tried = place.sandbox.start_program(&profile, missing, weakest);
        let Err(SandboxError::Program(error)) = tried.await else {
            panic!("it was started");
        };
        assert!(error.to_string().contains("/no/such/program: No such file"));
        let nowhere = ConfinedProgram::new("/bin/true", "/no/such/folder");
        let tried = place.sandbox.start_program(&profile, nowhere, weakest);
        let Err(SandboxError::Program(error)) = tried.await else {
            panic!("it was started");
        };
        assert!(error.to_string().contains("/no/such/folder: No such file"));
        // A command can still be run.
        assert_eq!(place.run(&profile, "echo a").await.text, "a\n");
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn where_only_a_weaker_way_works_nothing_is_started() {
    let place = place(Mechanism::Reduced);
    let script = format!("echo a > {}", place.path("project/file").display());
    let program = bash(&place, &script);
    let workspace = place.workspace();
    let tried = place
        .sandbox
        .start_program(&workspace, program, Mechanism::Bubblewrap);
    let tried = tried.await;
    let weak = Err(SandboxError::TooWeak {
        found: Mechanism::Reduced,
    });
    assert_eq!(
        format!("{:?}", tried.map(|_| ())),
        format!("{:?}", weak as Result<(), _>)
    );
    assert!(!place.path("project/file").exists());
    assert!(marked(&place.dir.path().display().to_string()).is_empty());
}

#[tokio::test]
async fn it_alone_is_interrupted() {
    for (place, profile) in everywhere().await {
        // A child that would say so, too.
        let script = format!("bash -c \"{INTERRUPTED}\" </dev/null >&2 & {INTERRUPTED}");
        let mut process = start(&place, &profile, bash(&place, &script)).await;
        read_line(&mut process.stdout, "ready").await;
        for _ in 0..20 {
            process.interrupt();
            read_line(&mut process.stdout, "interrupted").await;
        }
        process.kill(Duration::ZERO);
        assert!(matches!(ended(&process).await, ExitKind::Killed(9 | 15)));
        gone(&process).await;
        let child = all(&mut process.stderr).await;
        assert!(!child.contains("interrupted"), "{child}");
        place.sandbox.close().await;
    }
}

/// As by `nohup`, or by a shell that starts us in the background: those ignore interrupts, and a program that
/// finds them ignored leaves it so.
#[tokio::test]
async fn it_is_interrupted_where_our_process_ignores_interrupts() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = dir.path().join("heedless");
    let script = format!(
        "#!/bin/sh\ntrap '' INT QUIT TERM HUP USR1 CHLD\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_haft-keeper")
    );
    fs::write(&keeper, script).unwrap();
    fs::set_permissions(&keeper, fs::Permissions::from_mode(0o755)).unwrap();
    let sandbox = Sandbox::new(SandboxSetup {
        program: keeper,
        ..setup(dir.path(), Mechanism::Namespaces)
    });
    let place = Place { dir, sandbox };
    // Bash itself ignores QUIT; what comes after 31 is not to be changed.
    let ignored = "while read -r a b; do [ $a = SigIgn: ] && echo ignored $((0x$b & 0x7ffffffb)); \
                   done </proc/self/status";
    let script = format!("{ignored}; {INTERRUPTED}");
    let mut process = start(&place, &place.workspace(), bash(&place, &script)).await;
    read_line(&mut process.stdout, "ignored 0").await;
    read_line(&mut process.stdout, "ready").await;
    process.interrupt();
    read_line(&mut process.stdout, "interrupted").await;
}

#[tokio::test]
async fn an_interrupt_ends_what_does_not_expect_it() {
    let place = place(Mechanism::Namespaces);
    let mut program = ConfinedProgram::new("/bin/cat", place.project());
    program.env = place.sandbox.environment(&Place::readonly());
    let process = start(&place, &place.workspace(), program).await;
    // It is that program from the beginning on, whether or not it has said anything.
    process.interrupt();
    assert_eq!(ended(&process).await, ExitKind::Killed(2));
    // There is nothing left to interrupt.
    process.interrupt();
    gone(&process).await;
    process.interrupt();
}

#[tokio::test]
async fn nothing_that_it_started_is_left_when_it_ends_or_is_dropped() {
    for (place, profile) in everywhere().await {
        for drops in [false, true] {
            let strays =
                "setsid sleep 1000 & (sleep 1000 >/dev/null &); trap '' TERM; echo ready; ";
            let rest = if drops {
                "while :; do sleep 1; done"
            } else {
                ""
            };
            let program = bash(&place, &format!("{strays}{rest}"));
            let mut process = start(&place, &profile, program).await;
            read_line(&mut process.stdout, "ready").await;
            let started = below(std::process::id());
            let control = process.control();
            let scratch = process.scratch().to_path_buf();
            if drops {
                drop(process);
            } else {
                assert_eq!(ended(&process).await, ExitKind::Exited(0));
                gone(&process).await;
                assert!(process.processes().is_empty());
            }
            timeout(LONG, control.wait_until_finished()).await.unwrap();
            until("what it started has ended", || {
                let sleeps = started.iter().filter(|seen| seen.name == "sleep");
                !sleeps.into_iter().any(is_there)
            })
            .await;
            if drops {
                until("its temporary files are gone", || !scratch.exists()).await;
            }
        }
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn closing_the_sandbox_ends_it() {
    let place = place(Mechanism::Namespaces);
    let mut process = start(&place, &place.workspace(), bash(&place, INTERRUPTED)).await;
    read_line(&mut process.stdout, "ready").await;
    place.sandbox.close().await;
    gone(&process).await;
    assert!(process.control().has_ended());
}

#[tokio::test]
async fn when_a_hidden_file_is_replaced_it_ends_and_says_nothing_more() {
    let place = place(Mechanism::Namespaces);
    let secret = place.path("project/secret");
    fs::write(&secret, "hidden").unwrap();
    let secret = fs::canonicalize(secret).unwrap();
    let SandboxProfile::Workspace(mut workspace) = place.workspace() else {
        unreachable!();
    };
    workspace.hidden = vec![secret.clone()];
    workspace.guarded = None;
    let profile = SandboxProfile::Workspace(workspace);
    if place.sandbox.prepare(&profile).await.unwrap() > Mechanism::Bubblewrap {
        return haft_testkit::skip("files cannot be hidden here");
    }
    let script = format!(
        "echo ready; echo ready >&2; while :; do cat {0} 2>/dev/null; cat {0} >&2; done",
        secret.display()
    );
    let mut process = start(&place, &profile, bash(&place, &script)).await;
    read_line(&mut process.stdout, "ready").await;
    read_line(&mut process.stderr, "ready").await;
    let fresh = place.path("project/fresh");
    fs::write(&fresh, "revealed").unwrap();
    fs::rename(&fresh, &secret).unwrap();
    let mut stderr = CommandOutput::take(&mut process.stderr);
    let unread = tokio::spawn(async move {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text).await; // it is withheld
        String::from_utf8_lossy(&text).into_owned()
    });
    let end = timeout(LONG, process.wait()).await.unwrap();
    assert_eq!(end.uncovered, Some(secret));
    // An error, or the end, where it had no time to write anything.
    let mut text = Vec::new();
    let read = timeout(LONG, process.stdout.read_to_end(&mut text)).await;
    assert!(read.is_ok() && text.is_empty(), "{text:?}");
    let told = timeout(LONG, unread).await.unwrap().unwrap();
    assert!(!told.contains("revealed"), "{told}");
}

#[tokio::test]
async fn it_ends_when_our_process_is_killed() {
    for mechanism in [
        Mechanism::Namespaces,
        Mechanism::Bubblewrap,
        Mechanism::Reduced,
    ] {
        let mut driver = Driver::start("programs", mechanism);
        driver.running().await;
        let started = driver.below();
        assert!(started.len() > 6, "{started:?}");
        let beside = |dir: &Path| {
            let entries = fs::read_dir(dir).unwrap().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|name| name.starts_with("scratch-")).count()
        };
        let dir = tempfile::TempDir::path(&driver.dir).to_path_buf();
        assert_eq!(beside(&dir), 2);
        driver.child.kill().unwrap();
        driver.child.wait().unwrap();
        until("their temporary files are gone", || beside(&dir) == 0).await;
        driver.nothing_left(&started).await;
    }
}

/// What the driver does: programs that run on, with strays.
pub(crate) async fn programs(dir: &Path, best: Mechanism) {
    let sandbox = crate::lifetime::sandbox(dir, best);
    let mut held = Vec::new();
    for profile in &crate::lifetime::driver::profiles(dir)[1..] {
        let mut program = ConfinedProgram::new("/bin/bash", dir);
        let script =
            "setsid sleep 1000 & trap '' TERM INT HUP; echo ready; while :; do sleep 1; done";
        program.arguments = vec!["-c".into(), script.into()];
        program.env = sandbox.environment(profile);
        let started = sandbox.start_program(profile, program, Mechanism::None);
        let mut process = started.await.unwrap();
        read_line(&mut process.stdout, "ready").await;
        held.push(process);
    }
    fs::write(dir.join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

/// Run by hand, with other work on the machine: `cargo test -p haft-sandbox --test it -- --ignored confined::rounds`.
#[tokio::test]
#[ignore = "takes minutes"]
async fn rounds_of_interrupts_under_load() {
    let place = place(Mechanism::Namespaces);
    for _ in 0..200 {
        let mut process = start(&place, &place.workspace(), bash(&place, INTERRUPTED)).await;
        read_line(&mut process.stdout, "ready").await;
        for _ in 0..10 {
            process.interrupt();
            read_line(&mut process.stdout, "interrupted").await;
        }
    }
}
