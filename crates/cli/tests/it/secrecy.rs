//! What other processes of the same user can find out about this one: not its keys.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::users::{self, Home, User};

/// Values that must not be found; none of them is what its name says.
const SECRETS: [(&str, &str); 6] = [
    ("ANTHROPIC_API_KEY", "value-of-the-first-key"),
    ("ANTHROPIC_AUTH_TOKEN", "value-of-the-token"),
    ("ANTHROPIC_CUSTOM_HEADERS", "X-Auth: value-of-a-header"),
    ("OPENAI_API_KEY", "value-of-the-second-key"),
    ("DEPLOY_PASSWORD", "value-of-a-password"),
    // No shell makes such a name, but a program can.
    ("=ODD_KEY", "value-of-something-odd"),
];

fn with_secrets(command: &mut Command) -> &mut Command {
    command.envs(SECRETS)
}

/// A session that has answered once, so that its sandbox stands.
struct Session {
    child: Child,
}

impl Session {
    fn new(home: &Home) -> Self {
        home.write("work/a.txt", "alpha");
        let mut child = with_secrets(&mut home.haft())
            .arg("exec")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let call = json!({"name": "Bash", "input": {"command": "cat a.txt; env"}});
        let stdin = child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{call}\n").as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains("alpha"), "{line}");
        assert!(!line.contains("value-of-"), "{line}");
        Self { child }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The process and everything below it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten();
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .map(|pid| pid.parse::<u32>().unwrap()),
            );
        }
        at += 1;
    }
    found
}

#[test]
fn no_process_of_a_session_has_a_key_in_its_environment() {
    for user in users::all() {
        let home = Home::new(user);
        let session = Session::new(&home);
        let tree = tree(session.pid());
        assert!(tree.len() > 2, "{user:?}: a keeper and shells: {tree:?}");
        let mut looked = 0;
        for pid in tree {
            let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else {
                continue; // it cannot even be read
            };
            looked += 1;
            let text = String::from_utf8_lossy(&environ);
            assert!(!text.contains("value-of-"), "{user:?}: {pid}: {text:?}");
        }
        let can_look = rustix::process::geteuid().is_root();
        assert!(looked > 2 || !can_look, "{user:?}: {looked}");
    }
}

/// Attaches to a process, prints whether that worked, lets it go.
const ATTACH: &str = r#"
    my %number = (x86_64 => 101, aarch64 => 117);
    my ($pid, $arch) = @ARGV;
    my $did = syscall($number{$arch}, 16, $pid + 0, 0, 0);
    print $did == 0 ? "attached" : "refused";
    if ($did == 0) { waitpid($pid, 0x40000000); syscall($number{$arch}, 17, $pid + 0, 0, 0); }
"#;

/// What someone learns of a process: its environment, its memory, by attaching to it.
fn look_into(home: &Home, pid: u32) -> (bool, bool, Option<bool>) {
    let environ = home.shell(&format!("cat /proc/{pid}/environ"));
    // Opening it is what is permitted or not; where it begins nothing is to be read.
    let memory = home.shell(&format!("exec 3</proc/{pid}/mem && echo open"));
    home.write("attach.pl", ATTACH);
    let arch = std::env::consts::ARCH;
    let attached = home.shell(&format!("perl ../attach.pl {pid} {arch}"));
    (
        environ.contains("value-of-"),
        memory.contains("open"),
        (!attached.is_empty()).then(|| attached == "attached"),
    )
}

#[test]
fn a_process_of_the_same_user_cannot_look_into_a_session() {
    for user in users::all() {
        if user == User::Same && rustix::process::geteuid().is_root() {
            continue; // nothing is kept from root
        }
        let home = Home::new(user);
        let session = Session::new(&home);
        assert_eq!(
            look_into(&home, session.pid()),
            (false, false, Some(false)),
            "{user:?}"
        );
        // The same tried on a process that does nothing about it.
        let mut plain = with_secrets(&mut home.command(Path::new("sleep")))
            .arg("1000")
            .spawn()
            .unwrap();
        // Until it is no longer what becomes it.
        while fs::read_link(format!("/proc/{}/exe", plain.id()))
            .is_ok_and(|program| !program.ends_with("sleep") && !program.ends_with("coreutils"))
        {
            std::thread::yield_now();
        }
        let (environ, memory, attached) = look_into(&home, plain.id());
        plain.kill().unwrap();
        plain.wait().unwrap();
        assert!(environ, "{user:?}: the test itself sees nothing");
        if !memory || attached == Some(false) {
            users::skip("this system lets no process attach to another that is not its child");
        }
    }
}

#[test]
fn a_session_that_crashes_leaves_no_memory_behind() {
    // Told to abort as soon as it is there; whether it would have left its memory behind is in how it
    // ended.
    let ended = |home: &Home, program: &str| {
        let line = format!("ulimit -c unlimited; {program}");
        let mut child = with_secrets(&mut home.command(Path::new("sh")))
            .args(["-c", &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let call = json!({"name": "Read", "input": {"file_path": "a.txt"}});
        let _ = stdin.write_all(format!("{call}\n").as_bytes());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
        child.wait().unwrap()
    };
    let home = Home::new(User::Same);
    home.write("work/a.txt", "alpha");
    let haft = format!("exec {} exec", env!("CARGO_BIN_EXE_haft"));
    let status = ended(&home, &haft);
    assert_eq!(status.signal(), Some(6), "{status:?}");
    assert!(!status.core_dumped(), "{status:?}");
    let files = fs::read_dir(home.path("work")).unwrap().flatten();
    let cores = files.filter(|file| file.file_name().to_string_lossy().contains("core"));
    assert_eq!(cores.count(), 0);
    if !ended(&home, "exec cat").core_dumped() {
        users::skip("this system writes no core files at all");
    }
}

#[test]
fn a_hook_inherits_everything_and_is_an_ordinary_process() {
    for user in users::all() {
        let home = Home::new(user);
        home.write("work/a.txt", "alpha");
        let seen = home.path("home/seen");
        let hook = format!(
            "env > {0}; cat /proc/self/environ > /dev/null && echo readable >> {0}",
            seen.display()
        );
        let settings = json!({"hooks": {"PreToolUse": [{"hooks": [
            {"type": "command", "command": hook},
        ]}]}});
        let output = with_secrets(&mut home.haft())
            .args(["--settings", &settings.to_string()])
            .args(["call", "Read", "file_path=a.txt"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{user:?}: {output:?}");
        let seen = fs::read_to_string(seen).unwrap();
        for (name, value) in SECRETS {
            if name.starts_with('=') {
                continue; // bash does not pass it on
            }
            assert!(
                seen.contains(&format!("{name}={value}\n")),
                "{user:?}: {name}"
            );
        }
        assert!(seen.contains("readable"), "{user:?}: {seen}");
    }
}
