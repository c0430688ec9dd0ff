//! Commands that try to take all memory or all processes of the machine.

use std::fs;

use haft_sandbox::{
    CommandEnd, CommandHandle, ExceededLimit, ExitKind, Mechanism, ResourceLimits, Sandbox,
    SandboxProfile, SandboxSetup, ShellCommand,
};
use tokio::time::timeout;

use super::user;
use crate::{
    lifetime::setup,
    setting::{LONG, Place, output},
};

const MECHANISMS: [Mechanism; 3] = [
    Mechanism::Namespaces,
    Mechanism::Bubblewrap,
    Mechanism::Reduced,
];

/// Small enough for any machine, large enough for a shell and what it usually starts.
const LIMITS: ResourceLimits = ResourceLimits {
    memory: 200 << 20,
    tasks: 150,
};

/// Without a limit of ours each of these ends by itself before it takes too much.
const HOGS: [(&str, &str); 4] = [
    ("a brace expansion", "echo {1..15000000} >/dev/null"),
    (
        "a string that doubles",
        "ulimit -v 1500000; x=abcdefgh; while x=$x$x; do :; done",
    ),
    (
        "many that are small",
        "ulimit -v 600000; for i in 1 2 3 4 5 6; do \
         (printf -v x '%*s' 60000000 ''; sleep 60; :) & done; wait",
    ),
    (
        "one in a session of its own, after the shell has ended",
        "ulimit -v 1500000; setsid -f bash -c 'x=abcdefgh; while x=$x$x; do :; done' >/dev/null 2>&1",
    ),
];

/// 2,047 processes at most.
const BOMB: &str =
    "bomb() { (( $1 )) || exec sleep 60; bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; };";

struct LimitedPlace {
    place: Place,
    profiles: Vec<SandboxProfile>,
    name: String,
}

/// A sandbox for each mechanism that works here, with these limits.
async fn everywhere(limits: ResourceLimits) -> Vec<LimitedPlace> {
    let mut found = Vec::new();
    for mechanism in MECHANISMS {
        let dir = tempfile::Builder::new()
            .prefix("limits-")
            .tempdir()
            .unwrap();
        let sandbox = Sandbox::new(SandboxSetup {
            program: user::keeper(),
            resource_limits: limits,
            ..setup(dir.path(), mechanism)
        });
        let place = Place { dir, sandbox };
        // What a command may write hardly matters here.
        let mut profiles = vec![place.workspace()];
        if mechanism == Mechanism::Namespaces {
            profiles.push(Place::readonly());
            profiles.push(SandboxProfile::Full);
        } else if haft_testkit::is_thorough() {
            profiles.push(Place::readonly());
        }
        if place.sandbox.prepare(&profiles[0]).await.unwrap() == mechanism {
            found.push(LimitedPlace {
                place,
                profiles,
                name: format!("{mechanism:?}"),
            });
        }
    }
    assert!(!found.is_empty());
    found
}

async fn start(place: &Place, profile: &SandboxProfile, text: &str) -> CommandHandle {
    let line = ShellCommand {
        text: text.to_owned(),
        cwd: place.project(),
        source_file: None,
        name_policy: None,
    };
    place.sandbox.start(profile, line).await.unwrap()
}

/// Waits until a command and all that it started have ended.
async fn run(place: &Place, profile: &SandboxProfile, text: &str) -> CommandEnd {
    let mut running = start(place, profile, text).await;
    let _ = output(&mut running).await;
    timeout(LONG, running.wait_until_finished())
        .await
        .expect("it is not gone");
    running.wait_for_exit().await
}

/// Runs a test again without rights, if this user has any.
fn also_without_rights(test: &str) -> Option<user::Second> {
    user::start(&format!("scenarios::limits::{test}"))
}

fn finish(second: Option<user::Second>) {
    if let Some(failed) = second.and_then(user::Second::finish) {
        panic!("{failed}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_much_memory_is_ended() {
    let second = also_without_rights("a_command_that_takes_too_much_memory_is_ended");
    for LimitedPlace {
        place,
        profiles,
        name,
    } in everywhere(LIMITS).await
    {
        for profile in &profiles {
            for (what, text) in HOGS {
                let ended = run(&place, profile, text).await;
                let what = format!("{name}, {}, {what}: {ended:?}", profile.name());
                let Some(ExceededLimit::Memory { used, limit }) = ended.exceeded else {
                    panic!("{what}");
                };
                assert_eq!(limit, LIMITS.memory, "{what}");
                assert!(used > limit, "{what}");
                assert!(ended.how != ExitKind::Lost, "{what}");
            }
            let next = place.run(profile, "echo next").await;
            assert_eq!(next.text, "next\n");
            assert_eq!(next.ended.exceeded, None);
        }
        place.sandbox.close().await;
    }
    finish(second);
}

#[tokio::test]
async fn a_command_that_starts_too_many_processes_is_ended() {
    let second = also_without_rights("a_command_that_starts_too_many_processes_is_ended");
    for LimitedPlace {
        place,
        profiles,
        name,
    } in everywhere(LIMITS).await
    {
        for profile in &profiles {
            let bombs = [
                format!("{BOMB} bomb 10"),
                format!("{BOMB} bomb 10 >/dev/null 2>&1 &"),
                format!("{BOMB} export -f bomb; setsid -f bash -c 'bomb 10' >/dev/null 2>&1"),
            ];
            for text in bombs {
                let ended = run(&place, profile, &text).await;
                let what = format!("{name}, {}, {text}: {ended:?}", profile.name());
                let Some(ExceededLimit::Tasks { used, limit }) = ended.exceeded else {
                    panic!("{what}");
                };
                assert_eq!(limit, LIMITS.tasks, "{what}");
                assert!(used > limit, "{what}");
            }
            assert_eq!(place.run(profile, "echo next").await.text, "next\n");
        }
        place.sandbox.close().await;
    }
    finish(second);
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let second = also_without_rights("memory_that_processes_share_counts_once");
    // Each of them holds all of it, and is measured several times.
    let text = "printf -v x '%*s' 60000000 ''; for i in 1 2 3 4 5 6; do (sleep 1.2; :) & done; wait; \
                echo ${#x}";
    for LimitedPlace {
        place, profiles, ..
    } in everywhere(LIMITS).await
    {
        for profile in profiles.iter().take(1) {
            let outcome = place.run(profile, text).await;
            assert_eq!(outcome.text, "60000000\n", "{:?}", outcome.ended);
            assert_eq!(outcome.ended.exceeded, None);
        }
        place.sandbox.close().await;
    }
    finish(second);
}

#[tokio::test]
async fn other_commands_go_on_when_one_is_ended() {
    for LimitedPlace {
        place, profiles, ..
    } in everywhere(LIMITS).await
    {
        let profile = &profiles[0];
        let mut other = start(
            &place,
            profile,
            "while read -t 0.05 <> <(:); [ $? -gt 0 ] && [ ! -e done ]; do :; done; echo whole",
        )
        .await;
        let ended = run(&place, profile, &format!("{BOMB} bomb 10")).await;
        assert!(ended.exceeded.is_some());
        fs::write(place.project().join("done"), "").unwrap();
        assert_eq!(output(&mut other).await, "whole\n");
        timeout(LONG, other.wait_until_finished()).await.unwrap();
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn a_program_that_takes_too_much_memory_is_ended() {
    for LimitedPlace {
        place, profiles, ..
    } in everywhere(LIMITS).await
    {
        let mut program = haft_sandbox::ConfinedProgram::new("/bin/bash", place.project());
        program.arguments = vec!["-c".into(), HOGS[1].1.into()];
        let weakest = Mechanism::Reduced;
        let started = place.sandbox.start_program(&profiles[0], program, weakest);
        let process = started.await.unwrap();
        let ended = timeout(LONG, process.wait()).await.unwrap();
        assert!(
            matches!(ended.exceeded, Some(ExceededLimit::Memory { .. })),
            "{ended:?}"
        );
        drop(process);
        place.sandbox.close().await;
    }
}

#[tokio::test]
async fn the_kernel_ends_commands_first_when_the_machine_is_out_of_memory() {
    for LimitedPlace {
        place,
        profiles,
        name,
    } in everywhere(LIMITS).await
    {
        for profile in &profiles {
            let outcome = place.run(profile, "cat /proc/self/oom_score_adj").await;
            assert_eq!(outcome.text, "1000\n", "{name}, {}", profile.name());
        }
        let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
        assert!(own.trim() != "1000");
        place.sandbox.close().await;
    }
}
