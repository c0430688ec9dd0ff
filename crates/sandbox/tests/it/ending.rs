//! With what a command ends, and where.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use haft_sandbox::{ExitKind, Mechanism, SandboxProfile, ShellCommand};

use crate::{
    lifetime::{everywhere, gone, line, place, setup},
    setting::{Outcome, Place, output},
};

#[tokio::test]
async fn the_status_is_exact() {
    let cases = [
        // (what, command, how it ends)
        ("nothing", "", ExitKind::Exited(0)),
        ("only a comment", "# nothing", ExitKind::Exited(0)),
        ("a code", "exit 42", ExitKind::Exited(42)),
        ("a large code", "exit 300", ExitKind::Exited(44)),
        (
            "the last command's",
            "false; true; (exit 9)",
            ExitKind::Exited(9),
        ),
        (
            "in the middle",
            "echo a; exit 5; echo b",
            ExitKind::Exited(5),
        ),
        (
            "another program instead",
            "exec sh -c 'exit 6'",
            ExitKind::Exited(6),
        ),
        (
            "no such program",
            "no-such-program-here",
            ExitKind::Exited(127),
        ),
        ("not a program", "/etc/passwd", ExitKind::Exited(126)),
        (
            "exec of none",
            "exec no-such-program-here",
            ExitKind::Exited(127),
        ),
        ("killed", "kill -KILL $$", ExitKind::Killed(9)),
        ("asked to end", "kill -TERM $$", ExitKind::Killed(15)),
        ("a fault", "kill -SEGV $$", ExitKind::Killed(11)),
        (
            "a child killed",
            "sh -c 'kill -KILL $$'",
            ExitKind::Exited(137),
        ),
        (
            "exec, then killed",
            "exec sh -c 'kill -SEGV $$'",
            ExitKind::Killed(11),
        ),
        ("a syntax error", "if", ExitKind::Exited(2)),
        ("an open quote", "echo 'a", ExitKind::Exited(2)),
        (
            "set -e",
            "set -e; (exit 4); echo not here",
            ExitKind::Exited(4),
        ),
        (
            "set -u",
            "set -u; echo $no_such_variable",
            ExitKind::Exited(127),
        ),
        (
            "pipefail",
            "set -o pipefail; (exit 3) | true",
            ExitKind::Exited(3),
        ),
        ("a function's", "f() { return 8; }; f", ExitKind::Exited(8)),
        ("return at the top", "return 3", ExitKind::Exited(2)),
        ("a trap", "trap 'exit 11' EXIT; true", ExitKind::Exited(11)),
        ("a word like an option", "-x", ExitKind::Exited(127)),
        ("a trailing backslash", "false \\", ExitKind::Exited(1)),
    ];
    let mut wrong = Vec::new();
    for (place, profile) in everywhere().await {
        for (what, text, how) in cases {
            let ended = place.run(&profile, text).await.ended;
            if ended.how != how || ended.left != 0 {
                wrong.push(format!("{what}, {}: {ended:?}", profile.name()));
            }
        }
        place.sandbox.close().await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_directory_is_told_as_it_is() {
    let names: [&[u8]; 7] = [
        b"with blank",
        b"with\nline ends\n",
        "mit Umläuten é 漢字".as_bytes(),
        b"invalid \xff\xfe bytes",
        b"-dash",
        b"quote ' \" \\ $HOME `x`",
        b" ",
    ];
    for (place, profile) in everywhere().await {
        for name in names {
            let path = place.project().join(OsStr::from_bytes(name));
            fs::create_dir(&path).unwrap();
            // There at the beginning, and there at the end.
            let here = ShellCommand {
                text: "/bin/pwd | od -An -c | tail -1 >/dev/null; true".to_owned(),
                cwd: path.clone(),
                source_file: None,
                name_policy: None,
            };
            let outcome = run(&place, &profile, here).await;
            assert_eq!(outcome.ended.how, ExitKind::Exited(0), "{}", outcome.text);
            assert_eq!(outcome.ended.cwd.as_ref(), Some(&path));
            symlink(&path, place.project().join("link")).unwrap();
            let outcome = place
                .run(&profile, "cd link; echo \"$OLDPWD\"; false")
                .await;
            assert_eq!(outcome.ended.cwd.as_ref(), Some(&path));
            assert_eq!(outcome.ended.how, ExitKind::Exited(1));
            fs::remove_file(place.project().join("link")).unwrap();
        }
        let none = place.run(&profile, "cd /usr; exit 0").await;
        assert_eq!(none.ended.cwd, None);
        let sub = place.run(&profile, "(cd /usr); cd . && true").await;
        assert_eq!(sub.ended.cwd, Some(place.project()));
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn a_directory_that_is_gone_at_the_end_is_not_told() {
    let place = place(Mechanism::Namespaces);
    for profile in [place.workspace(), SandboxProfile::Full] {
        let text = "mkdir gone; cd gone; rmdir ../gone; echo ok; (exit 3)";
        let outcome = place.run(&profile, text).await;
        assert_eq!(outcome.text, "ok\n");
        assert_eq!(outcome.ended.how, ExitKind::Exited(3));
        assert_eq!(outcome.ended.cwd, None);
    }
    place.sandbox.close().await;
}

#[tokio::test]
async fn a_directory_one_cannot_begin_in_is_an_error_that_says_so() {
    for (place, profile) in everywhere().await {
        let file = place.project().join("file");
        fs::write(&file, "").unwrap();
        for (cwd, said) in [
            (
                place.project().join("not here"),
                "No such file or directory",
            ),
            (file, "Not a directory"),
        ] {
            let line = ShellCommand {
                text: "echo not run".to_owned(),
                cwd: cwd.clone(),
                source_file: None,
                name_policy: None,
            };
            let outcome = run(&place, &profile, line).await;
            assert_eq!(outcome.ended.how, ExitKind::Exited(126));
            assert_eq!(outcome.ended.cwd, None);
            let text = outcome.text;
            assert!(
                text.contains(said) && text.contains(&*cwd.to_string_lossy()),
                "{text}"
            );
            assert!(!text.contains("not run"));
        }
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn a_shell_that_is_not_there_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(dir.path(), Mechanism::Namespaces);
    setup.shell = "/no/such/bash".into();
    let place = Place {
        sandbox: haft_sandbox::Sandbox::new(setup),
        dir,
    };
    for round in 0..20 {
        let profile = [Place::readonly(), SandboxProfile::Full][round % 2].clone();
        let started = place.sandbox.start(&profile, line(&place, "true")).await;
        let error = started.err().unwrap().to_string();
        assert!(error.contains("/no/such/bash: No such file"), "{error}");
    }
    assert_eq!(place.sandbox.failures().await, []);
    place.sandbox.close().await;
}

#[tokio::test]
async fn a_keeper_that_is_not_there_confines_nobody_less() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(dir.path(), Mechanism::Namespaces);
    setup.program = "/no/such/keeper".into();
    let sandbox = haft_sandbox::Sandbox::new(setup);
    let error = sandbox.prepare(&Place::readonly()).await.unwrap_err();
    assert!(
        error.to_string().contains("/no/such/keeper: No such file"),
        "{error}"
    );
    assert_eq!(sandbox.failures().await, []);
}

#[tokio::test]
async fn a_folder_for_temporary_files_that_cannot_be_had_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(dir.path(), Mechanism::Namespaces);
    fs::write(dir.path().join("file"), "").unwrap();
    setup.scratch = dir.path().join("file/scratch");
    let sandbox = haft_sandbox::Sandbox::new(setup);
    let error = sandbox.prepare(&Place::readonly()).await.unwrap_err();
    assert!(
        error.to_string().contains("file/scratch: Not a directory"),
        "{error}"
    );
}

#[tokio::test]
async fn a_command_with_a_nul_byte_is_refused_whole() {
    let place = place(Mechanism::Namespaces);
    let profile = place.workspace();
    let text = "touch first\0touch second";
    let started = place.sandbox.start(&profile, line(&place, text)).await;
    let error = started.err().unwrap().to_string();
    assert!(error.contains("NUL byte"), "{error}");
    assert_eq!(place.run(&profile, "ls").await.text, "");
    place.sandbox.close().await;
}

#[tokio::test]
async fn a_snapshot_brings_functions_and_aliases_and_cannot_break_the_shell() {
    let cases = [
        // (what, snapshot, command, what it writes; SAID stands for the sentence about a snapshot left out)
        ("a function", "f() { echo \"f $1\"; }", "f 1", "f 1\n"),
        (
            "an alias",
            "shopt -s expand_aliases; alias hello='echo hello'",
            "hello you",
            "hello you\n",
        ),
        ("prints", "echo out; echo err >&2", "echo ok", "ok\n"),
        ("reads", "read -r line; cat", "echo ok", "ok\n"),
        ("is broken", "if then fi (", "echo ok", "ok\n"),
        ("fails", "false", "echo ok $?", "ok 0\n"),
        ("returns", "return 3; echo no", "echo ok", "ok\n"),
        (
            "exits",
            "f() { :; }; exit 3",
            "echo ok; cd /usr",
            "SAIDok\n",
        ),
        ("exits by set -e", "set -e; false", "echo ok", "SAIDok\n"),
        ("becomes another", "exec true", "echo ok", "SAIDok\n"),
        ("kills the shell", "kill -KILL $$", "echo ok", "SAIDok\n"),
        ("closes all", "exec >&- 2>&- <&-", "echo ok", "ok\n"),
        (
            "hides builtins",
            "cd() { :; }; read() { :; }; eval() { :; }; exit() { :; }; echo() { :; }; [() { :; }; pwd() { :; }",
            "printf 'ok %s\\n' $#",
            "ok 0\n",
        ),
        ("sets words", "set -- a b c", "echo ok $#", "ok 0\n"),
        ("is in the way", "REPLY=x; IFS=x", "echo ok", "ok\n"),
        (
            "leaves a child",
            "sleep 1000 & disown",
            "echo ok; kill $!",
            "ok\n",
        ),
    ];
    let mut wrong = Vec::new();
    for (what, snapshot, text, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let mut setup = setup(dir.path(), Mechanism::Namespaces);
        let file = dir.path().join("snapshot.sh");
        fs::write(&file, snapshot).unwrap();
        setup.snapshot = Some(file.clone());
        let place = Place {
            sandbox: haft_sandbox::Sandbox::new(setup),
            dir,
        };
        let said = format!(
            "bash: {} ended the shell that read it; the command runs without it\n",
            file.display()
        );
        let expected = expected.replace("SAID", &said);
        for profile in [Place::readonly(), SandboxProfile::Full] {
            // The first finds a shell that was just started, the last one that waited.
            for _ in 0..3 {
                let mut running = place
                    .sandbox
                    .start(&profile, line(&place, text))
                    .await
                    .unwrap();
                let heard = output(&mut running).await;
                let ended = running.wait_for_exit().await;
                running.kill(Duration::ZERO);
                gone(&mut running).await;
                if heard != expected || ended.how != ExitKind::Exited(0) || ended.cwd.is_none() {
                    wrong.push(format!("{what}: {heard:?} {ended:?}"));
                }
            }
        }
        place.sandbox.close().await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_file_to_be_sourced_comes_first_and_cannot_change_the_command() {
    let cases = [
        ("a variable", "x=1", "echo ok $x", "ok 1\n"),
        (
            "reads",
            "read -r REPLY; cat; REPLY='echo bad'",
            "echo ok",
            "ok\n",
        ),
        ("prints", "echo first", "echo ok", "first\nok\n"),
        ("fails", "false", "echo ok", "ok\n"),
        ("goes elsewhere", "cd /usr", "pwd", "/usr\n"),
    ];
    for (place, profile) in everywhere().await {
        for (what, sourced, text, expected) in cases {
            let file = place.project().join("sourced file");
            fs::write(&file, sourced).unwrap();
            let mut line = line(&place, text);
            line.source_file = Some(file);
            let outcome = run(&place, &profile, line).await;
            assert_eq!(outcome.text, expected, "{what}");
            assert_eq!(outcome.ended.how, ExitKind::Exited(0), "{what}");
        }
        let mut line = line(&place, "echo ok");
        line.source_file = Some(Path::new("/no/such/file").to_owned());
        let outcome = run(&place, &profile, line).await;
        assert!(
            outcome.text.ends_with("No such file or directory\nok\n"),
            "{}",
            outcome.text
        );
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn shells_that_wait_are_replaced_when_somebody_kills_them() {
    for (place, profile) in everywhere().await {
        if profile == SandboxProfile::Full {
            continue; // it would be every shell of this user
        }
        // All but its own.
        let text = "for p in /proc/[0-9]*; do p=${p#/proc/}; \
             if [ $p != $$ ] && [ \"$(cat /proc/$p/comm 2>&1)\" = bash ] && \
             grep -qzxF \"PLACE=$PLACE\" /proc/$p/environ 2>/dev/null; then kill -KILL $p 2>/dev/null; fi; done; echo done";
        for _ in 0..3 {
            let outcome = place.run(&profile, text).await;
            assert!(outcome.text.ends_with("done\n"), "{}", outcome.text);
            assert_eq!(outcome.ended.how, ExitKind::Exited(0));
        }
        place.sandbox.close().await;
    }
}

async fn run(place: &Place, profile: &SandboxProfile, line: ShellCommand) -> Outcome {
    let mut running = place.sandbox.start(profile, line).await.unwrap();
    let text = output(&mut running).await;
    let ended = running.wait_for_exit().await;
    gone(&mut running).await;
    Outcome { ended, text }
}

#[tokio::test]
async fn a_directory_one_may_not_enter_is_an_error_for_those_who_may_not() {
    let place = place(Mechanism::Namespaces);
    let closed: PathBuf = place.project().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let line = ShellCommand {
        text: "echo in".to_owned(),
        cwd: closed.clone(),
        source_file: None,
        name_policy: None,
    };
    let mine = fs::read_dir(&closed).is_ok(); // root may
    let outcome = run(&place, &place.workspace(), line).await;
    if mine {
        assert_eq!(outcome.text, "in\n");
    } else {
        assert_eq!(outcome.ended.how, ExitKind::Exited(126));
        assert!(
            outcome.text.contains("Permission denied"),
            "{}",
            outcome.text
        );
    }
    place.sandbox.close().await;
}
