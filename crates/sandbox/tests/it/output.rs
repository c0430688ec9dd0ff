//! What a command writes, byte for byte and in order.

use std::{fs, time::Duration};

use haft_sandbox::{ExitKind, Mechanism, SandboxProfile};
use tokio::{io::AsyncReadExt, time::timeout};

use crate::{
    lifetime::{everywhere, gone, line, place, read_until},
    setting::LONG,
};

#[tokio::test]
async fn what_is_written_arrives_as_it_was_written() {
    let many = "for i in {1..200}; do echo out $i; echo err $i >&2; done";
    let ordered: String = (1..=200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    let cases: [(&str, &str, &[u8]); 18] = [
        ("in order", many, ordered.as_bytes()),
        ("bytes", r"printf '\0\1\377\200\n\0'", b"\0\x01\xff\x80\n\0"),
        ("no line end", "printf abc", b"abc"),
        ("nothing", "true", b""),
        ("/dev/stderr", "echo a >/dev/stderr; echo b", b"a\nb\n"),
        ("/dev/stdout", "echo a >/dev/stdout; echo b", b"a\nb\n"),
        ("/dev/fd", "echo a >/dev/fd/2", b"a\n"),
        ("proc", "echo a >/proc/self/fd/1; echo b", b"a\nb\n"),
        (
            "a child's proc",
            "sh -c 'echo a >/proc/self/fd/1'; echo b",
            b"a\nb\n",
        ),
        ("closed", "exec >&-; exec 2>&-; true", b""),
        (
            "closed and opened",
            "exec 3>&1 >&-; echo a >&3; exec >&3; echo b",
            b"a\nb\n",
        ),
        ("line ends of others", "echo a\r\necho b\r\n", b"a\r\nb\r\n"),
        ("a here-document", "cat <<X\na\nb\nX\necho c", b"a\nb\nc\n"),
        ("a trailing backslash", "echo a \\", b"a \\\n"),
        ("a line that goes on", "echo a \\\n b", b"a b\n"),
        ("input is empty", "cat; read x; echo $?", b"1\n"),
        (
            "a function",
            "f() { echo \"$@\"; }; f a 'b  c'",
            b"a b  c\n",
        ),
        ("no words", "echo $# \"$@\" $0", b"0 bash\n"),
    ];
    let mut wrong = Vec::new();
    for (place, profile) in everywhere().await {
        for (what, text, expected) in cases {
            let mut running = place
                .sandbox
                .start(&profile, line(&place, text))
                .await
                .unwrap();
            let mut heard = Vec::new();
            let read = timeout(LONG, running.output.read_to_end(&mut heard)).await;
            read.unwrap().unwrap();
            let how = running.wait_for_exit().await.how;
            if heard != expected || how != ExitKind::Exited(0) {
                let heard = String::from_utf8_lossy(&heard).into_owned();
                wrong.push(format!("{what}, {}: {how:?} {heard:?}", profile.name()));
            }
            gone(&mut running).await;
        }
        place.sandbox.close().await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn no_descriptor_of_ours_is_left_to_what_a_command_starts() {
    for (place, profile) in everywhere().await {
        let outcome = place
            .run(
                &profile,
                "sh -c 'for f in /proc/self/fd/*; do echo ${f##*/}; done'",
            )
            .await;
        // `sh` itself opens the directory, as the number that is free.
        let numbers: Vec<&str> = outcome.text.split_whitespace().collect();
        assert_eq!(
            numbers,
            ["0", "1", "2", "3"],
            "{}, {:?}",
            profile.name(),
            place.sandbox.prepare(&profile).await
        );
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn an_unterminated_here_document_is_what_bash_makes_of_it() {
    let place = place(Mechanism::Namespaces);
    let outcome = place.run(&SandboxProfile::Full, "cat <<X\na\nb").await;
    assert!(outcome.text.contains("wanted `X'"), "{}", outcome.text);
    assert!(outcome.text.ends_with("a\nb\n"), "{}", outcome.text);
    assert_eq!(outcome.ended.how, ExitKind::Exited(0));
    place.sandbox.close().await;
}

#[tokio::test]
async fn a_hundred_megabytes_pass() {
    let place = place(Mechanism::Namespaces);
    for profile in [place.workspace(), SandboxProfile::Full] {
        let text = "head -c 100000000 /dev/zero; echo end";
        let mut running = place
            .sandbox
            .start(&profile, line(&place, text))
            .await
            .unwrap();
        let mut buffer = vec![0; 1 << 16];
        let (mut count, mut last) = (0, Vec::new());
        loop {
            let read = timeout(LONG, running.output.read(&mut buffer)).await;
            match read.unwrap().unwrap() {
                0 => break,
                read => {
                    count += read;
                    last = buffer[..read].to_vec();
                }
            }
        }
        assert_eq!(count, 100_000_004);
        assert!(last.ends_with(b"end\n"));
        assert_eq!(running.wait_for_exit().await.how, ExitKind::Exited(0));
        gone(&mut running).await;
    }
    place.sandbox.close().await;
}

#[tokio::test]
async fn a_command_of_a_megabyte_runs() {
    for (place, profile) in everywhere().await {
        let body = "0123456789abcdef\n".repeat(65_536);
        let text = format!("cksum <<'END'\n{body}END\necho done");
        let outcome = place.run(&profile, &text).await;
        let size = body.len().to_string();
        assert!(
            outcome.text.contains(&size) && outcome.text.ends_with("done\n"),
            "{}",
            outcome.text
        );
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn what_is_written_after_the_shell_ended_arrives() {
    for (place, profile) in everywhere().await {
        // It waits for the shell's end, which it sees as another parent.
        let text = "shell=$$; (while kill -0 $shell 2>/dev/null; do sleep 0.01; done; echo after; sleep 1000) & echo before";
        let mut running = place
            .sandbox
            .start(&profile, line(&place, text))
            .await
            .unwrap();
        let ended = timeout(LONG, running.wait_for_exit()).await.unwrap();
        assert_eq!(ended.how, ExitKind::Exited(0));
        assert!(ended.left > 0);
        read_until(&mut running, "before\nafter\n").await;
        running.kill(Duration::ZERO);
        gone(&mut running).await;
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn nobody_reads_and_the_writer_is_ended_all_the_same() {
    for (place, profile) in everywhere().await {
        let mut running = place
            .sandbox
            .start(&profile, line(&place, "trap '' TERM PIPE; yes; yes"))
            .await
            .unwrap();
        running.kill(Duration::ZERO);
        gone(&mut running).await;
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn ten_commands_run_at_once() {
    // Each waits until all ten are there: one after the other, none would end.
    for (place, profile) in everywhere().await {
        if profile.name() == "readonly" {
            continue; // they could not see each other's files
        }
        let mut running = Vec::new();
        for number in 0..10 {
            let text = format!(
                "touch here-{number}; until [ $(ls here-* | wc -l) = 10 ]; do sleep 0.02; done; echo {number}"
            );
            let started = place.sandbox.start(&profile, line(&place, &text)).await;
            running.push(started.unwrap());
        }
        for (number, running) in running.iter_mut().enumerate() {
            read_until(running, &format!("{number}\n")).await;
            gone(running).await;
        }
        for number in 0..10 {
            fs::remove_file(place.project().join(format!("here-{number}"))).unwrap();
        }
        place.sandbox.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_commands_are_started_from_many_threads() {
    for (place, profile) in everywhere().await {
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let (sandbox, profile) = (place.sandbox.clone(), profile.clone());
                let line = line(&place, &format!("echo {number}; exit {number}"));
                tokio::spawn(async move {
                    let mut running = sandbox.start(&profile, line).await.unwrap();
                    let mut text = String::new();
                    running.output.read_to_string(&mut text).await.unwrap();
                    assert_eq!(text, format!("{number}\n"));
                    assert_eq!(running.wait_for_exit().await.how, ExitKind::Exited(number));
                    running.wait_until_finished().await;
                })
            })
            .collect();
        for task in tasks {
            timeout(LONG, task).await.unwrap().unwrap();
        }
        place.sandbox.close().await;
    }
}
