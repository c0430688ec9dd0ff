//! Hundreds of commands, many of them nasty, and at the end all is as it was.

use std::{fs, path::Path, sync::Arc, time::Duration};

use haft_sandbox::{CommandHandle, ExitKind, Mechanism, Sandbox, SandboxProfile, ShellCommand};
use tokio::{io::AsyncReadExt, sync::Semaphore, time::timeout};

use crate::{
    lifetime::{
        driver::{Driver, profiles},
        sandbox,
    },
    outside::{below, nobody, until},
    setting::LONG,
};

/// How many commands there are.
fn commands() -> usize {
    if haft_testkit::is_thorough() {
        520
    } else {
        200
    }
}
/// After this time a command that killed its guard is ended; whether it did is not the question.
const SHORT: Duration = Duration::from_millis(20);
/// How many at once.
const AT_ONCE: usize = 8;

/// What is done with a command, and what must come of it.
#[derive(Clone, Copy)]
enum Then {
    /// It is read to the end and ends so, after that many bytes.
    Ends(ExitKind, usize),
    /// The shell ends so and leaves something, which is ended.
    Leaves(ExitKind),
    /// It is ended after it wrote something, with this grace.
    Killed(u64),
    /// Where it shares its list of processes with its guard, it ends with that, and nothing can say how;
    /// where it does not, it has to be ended.
    KillsItsGuard,
    /// It is let go of at once.
    Dropped,
}

const CASES: &[(&str, Then)] = &[
    ("echo hello", Then::Ends(ExitKind::Exited(0), 6)),
    (
        "head -c 70000 /dev/urandom",
        Then::Ends(ExitKind::Exited(0), 70_000),
    ),
    ("cat; exit 4", Then::Ends(ExitKind::Exited(4), 0)),
    (
        "for i in {1..20}; do (sleep 1000 &); done; exit 3",
        Then::Leaves(ExitKind::Exited(3)),
    ),
    (
        "setsid sleep 1000 & setsid -f sleep 1000; kill -KILL $$",
        Then::Leaves(ExitKind::Killed(9)),
    ),
    (
        "exec >&- 2>&-; sleep 0.01",
        Then::Ends(ExitKind::Exited(0), 0),
    ),
    ("exec sh -c 'exit 9'", Then::Ends(ExitKind::Exited(9), 0)),
    (
        "sleep 1000 & kill -KILL $PPID; sleep 1000",
        Then::KillsItsGuard,
    ),
    (
        "b() { (( $1 )) && { b $(($1-1)) & b $(($1-1)) & }; wait; }; b 4; echo x",
        Then::Ends(ExitKind::Exited(0), 2),
    ),
    (
        "b() { (( $1 )) && { b $(($1-1)) & b $(($1-1)) & }; sleep 1000; }; echo go; b 4",
        Then::Killed(0),
    ),
    (
        "trap '' TERM HUP; echo go; while :; do sleep 0.1; done",
        Then::Killed(10),
    ),
    ("echo go; yes", Then::Killed(0)),
    (
        "sleep 1000 & kill -STOP $!; echo go; kill -STOP $$",
        Then::Killed(5),
    ),
    ("sleep 1000 & setsid sleep 1000 & yes", Then::Dropped),
    (
        "[ $TMPDIR ] && mkdir -p $TMPDIR/$$/a && chmod 0 $TMPDIR/$$; cd /; (sleep 1000 &) ; exit 1",
        Then::Leaves(ExitKind::Exited(1)),
    ),
    ("if", Then::Dropped),
];
const LARGE: (&str, Then) = (
    "head -c 100000000 /dev/zero",
    Then::Ends(ExitKind::Exited(0), 100_000_000),
);

/// Everything this process has.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    children: usize,
    descriptors: usize,
    files: Vec<String>,
}

fn held(dir: &Path) -> Held {
    let names = |path: &Path| {
        let mut names: Vec<String> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    Held {
        children: below(std::process::id()).len(),
        descriptors: names(Path::new("/proc/self/fd")).len(),
        files: names(dir),
    }
}

/// In a process of its own: what it has is counted.
pub(crate) async fn work(dir: &Path, best: Mechanism) {
    let sandbox = sandbox(dir, best);
    let profiles = profiles(dir);
    fs::write(dir.join("ready"), "").unwrap();
    // What a runtime opens once, it has opened then.
    one(&sandbox, &profiles[2], dir, CASES[0]).await;
    sandbox.close().await;
    let before = held(dir);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = Vec::new();
    for number in 0..commands() {
        let case = match number % 200 {
            100 => LARGE,
            _ => CASES[number % CASES.len()],
        };
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let (sandbox, dir) = (sandbox.clone(), dir.to_owned());
        let profile = profiles[number / CASES.len() % profiles.len()].clone();
        tasks.push(tokio::spawn(async move {
            one(&sandbox, &profile, &dir, case).await;
            drop(place);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    // Ends all of its sandbox; where there is none, it would be everything of this user.
    for profile in &profiles[..2] {
        for _ in 0..10 {
            let text = "setsid sleep 1000 & kill -KILL -1; sleep 1000";
            one(&sandbox, profile, dir, (text, Then::KillsItsGuard)).await;
        }
    }
    sandbox.close().await;
    until("all is as it was", || held(dir) == before).await;
    fs::write(dir.join("done"), "").unwrap();
}

async fn one(sandbox: &Sandbox, profile: &SandboxProfile, dir: &Path, (text, then): (&str, Then)) {
    let line = ShellCommand {
        text: text.to_owned(),
        cwd: dir.to_owned(),
        source_file: None,
        name_policy: None,
    };
    let mut running = sandbox.start(profile, line).await.unwrap();
    let what = format!("{}: {text}", profile.name());
    match then {
        Then::Ends(how, size) => {
            assert_eq!(read_all(&mut running).await, size, "{what}");
            assert_eq!(running.wait_for_exit().await.how, how, "{what}");
        }
        Then::Leaves(how) => {
            let ended = timeout(LONG, running.wait_for_exit()).await.expect(&what);
            assert_eq!(ended.how, how, "{what}");
            assert!(ended.left > 0, "{what}");
            running.kill(Duration::ZERO);
            read_all(&mut running).await;
        }
        Then::Killed(grace) => {
            let mut buffer = [0; 100];
            let read = timeout(LONG, running.output.read(&mut buffer)).await;
            assert!(read.expect(&what).unwrap() > 0, "{what}");
            running.kill(Duration::from_millis(grace));
        }
        Then::KillsItsGuard => {
            if timeout(SHORT, running.wait_for_exit()).await.is_err() {
                running.kill(Duration::ZERO);
            }
        }
        Then::Dropped => return,
    }
    timeout(LONG, running.wait_until_finished())
        .await
        .expect(&what);
}

async fn read_all(running: &mut CommandHandle) -> usize {
    let mut count = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = timeout(LONG, running.output.read(&mut buffer)).await;
        match read.expect("the output does not end").unwrap() {
            0 => return count,
            read => count += read,
        }
    }
}

#[tokio::test]
async fn hundreds_of_commands_leave_nothing() {
    let mut driver = Driver::start("soak", Mechanism::Namespaces);
    driver.finished().await;
    assert!(driver.dir.path().join("done").exists());
    driver.nothing_left(&[]).await;
}

#[tokio::test]
async fn hundreds_of_commands_leave_nothing_where_there_are_no_name_spaces() {
    let mut driver = Driver::start("soak", Mechanism::Reduced);
    driver.finished().await;
    assert!(driver.dir.path().join("done").exists());
    driver.nothing_left(&[]).await;
}

#[tokio::test]
async fn nothing_is_left_of_hundreds_of_commands_when_our_process_is_killed_among_them() {
    for round in 0..6 {
        let mut driver = Driver::start("soak", Mechanism::Namespaces);
        driver.running().await;
        tokio::time::sleep(Duration::from_millis(150 * round)).await;
        let started = driver.below();
        driver.child.kill().unwrap();
        driver.nothing_left(&started).await;
    }
}

#[tokio::test]
async fn the_same_holds_for_somebody_who_is_not_root() {
    if !fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0"))
    {
        return; // then all the other tests show it
    }
    let user = nobody();
    let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
    let before = ["setpriv", &user, &group, "--clear-groups"];
    let mut driver = Driver::start_with("soak", Mechanism::Namespaces, &before);
    driver.finished().await;
    assert!(driver.dir.path().join("done").exists());
    driver.nothing_left(&[]).await;
    let mut driver = Driver::start_with("commands", Mechanism::Namespaces, &before);
    driver.running().await;
    let started = driver.below();
    driver.child.kill().unwrap();
    driver.nothing_left(&started).await;
}
