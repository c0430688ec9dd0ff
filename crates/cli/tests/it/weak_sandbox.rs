//! Machines on which commands cannot be confined, or only in part: it is said, and what counted on it
//! asks.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Qword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};
use serde_json::{Value, json};

use crate::{
    binary::{Ran, run},
    headless::code::stand_in,
    secrecy::tree,
    users::{self, Home, User},
};

/// What `becomes_haft_on_a_weaker_machine` is to forbid, and what it then starts.
const WEAKNESS: &str = "WEAK_SANDBOX_WEAKNESS";
const PROGRAM: &str = "WEAK_SANDBOX_PROGRAM";
/// Stands before what the program itself prints.
const MARK: &str = "--- from here on it is another program ---\n";

/// No name spaces can be had.
pub(crate) const REDUCED: &str = "reduced";
/// Nor can Landlock.
const NOTHING: &str = "nothing";
/// Landlock cannot be had, and name spaces only as long as they are not counted out.
const FADING: &str = "fading";

const WARNED_REDUCED: &str = "commands are confined only in part here";
pub(crate) const WARNED_NOTHING: &str = "commands are not confined here at all";

/// Started again by the other tests, this forbids itself what confining takes, as containers and some
/// systems do, and becomes the program that is to be tested. By itself there is nothing to do.
#[test]
fn becomes_haft_on_a_weaker_machine() {
    let (Ok(weakness), Ok(program)) = (env::var(WEAKNESS), env::var(PROGRAM)) else {
        return;
    };
    let words: Vec<String> = serde_json::from_str(&program).unwrap();
    seccompiler::apply_filter(&filter(&weakness)).unwrap();
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(MARK.as_bytes()).unwrap();
    stdout.flush().unwrap();
    drop(stdout);
    let error = haft_testkit::command(&words[0])
        .args(&words[1..])
        .env_remove(WEAKNESS)
        .env_remove(PROGRAM)
        .exec();
    panic!("{}: {error}", words[0]);
}

fn filter(weakness: &str) -> BpfProgram {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    if weakness == FADING {
        rules.insert(libc::SYS_landlock_create_ruleset, Vec::new());
        return compiled(rules);
    }
    for call in [libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount] {
        rules.insert(call, Vec::new());
    }
    // A process in new name spaces; others are what every program makes.
    let spaces = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID];
    let with = spaces.map(|flag| {
        let flag = u64::try_from(flag).unwrap();
        let set = SeccompCondition::new(0, Qword, SeccompCmpOp::MaskedEq(flag), flag);
        SeccompRule::new(vec![set.unwrap()]).unwrap()
    });
    rules.insert(libc::SYS_clone, with.to_vec());
    if weakness == NOTHING {
        rules.insert(libc::SYS_landlock_create_ruleset, Vec::new());
    }
    compiled(rules)
}

fn compiled(rules: BTreeMap<i64, Vec<SeccompRule>>) -> BpfProgram {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        env::consts::ARCH.try_into().unwrap(),
    );
    filter.unwrap().try_into().unwrap()
}

/// What starts `haft` with these arguments on such a machine.
fn started(home: &Home, weakness: &str, args: &[&str]) -> Command {
    let mut haft = home.haft();
    haft.args(args);
    // What setpriv is told to start is the last of it.
    let mut words: Vec<String> = vec![haft.get_program().to_string_lossy().into_owned()];
    words.extend(
        haft.get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    if weakness == FADING {
        // In a name space of their own people count name spaces for themselves.
        let at = words.len() - args.len() - 1;
        let apart = ["unshare", "--user", "--map-root-user", "--"];
        words.splice(at..at, apart.map(str::to_owned));
    }
    let mut command = haft_testkit::command(users::this_program());
    let test = "weak_sandbox::becomes_haft_on_a_weaker_machine";
    command
        .args(["--exact", test, "--nocapture"])
        .current_dir(home.path("work"))
        .env_clear()
        .env("HOME", home.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env(WEAKNESS, weakness)
        .env(PROGRAM, json!(words).to_string());
    command
}

/// `haft` with these arguments on such a machine, with this on stdin.
pub(crate) fn weak(home: &Home, weakness: &str, args: &[&str], stdin: &str) -> Ran {
    let mut ran = run(&mut started(home, weakness, args), stdin.as_bytes());
    let (_, own) = ran.stdout.split_once(MARK).unwrap();
    ran.stdout = own.to_owned();
    ran
}

fn home(user: User) -> Home {
    let home = Home::new(user);
    home.write("work/a.txt", "alpha");
    home
}

fn bash(command: &str) -> Value {
    json!({"name": "Bash", "input": {"command": command}})
}

/// The answers of `haft exec`, and what was complained of.
fn exec(home: &Home, weakness: &str, flags: &[&str], commands: &[&str]) -> (Vec<Value>, String) {
    let lines: String = commands
        .iter()
        .map(|command| format!("{}\n", bash(command)))
        .collect();
    let ran = weak(home, weakness, &[flags, &["exec"]].concat(), &lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answers = ran.stdout.lines();
    let answers = answers.map(|line| serde_json::from_str(line).unwrap());
    (answers.collect(), ran.stderr)
}

fn content(answer: &Value) -> &str {
    answer["content"].as_str().unwrap()
}

#[test]
fn where_nothing_confines_it_is_said_once_and_what_was_harmless_asks() {
    for user in users::all() {
        let home = home(user);
        let commands = ["cat a.txt", "ls", "cat a.txt | wc -c"];
        let (answers, said) = exec(&home, NOTHING, &[], &commands);
        for answer in &answers {
            assert_eq!(answer["is_error"], true, "{user:?}: {answer}");
            assert!(
                content(answer).contains("nothing confines commands on this machine"),
                "{user:?}: {answer}"
            );
            assert!(!content(answer).contains("alpha"), "{user:?}");
        }
        assert_eq!(said.matches(WARNED_NOTHING).count(), 1, "{user:?}: {said}");
        assert!(
            said.contains("all your files can be read and changed"),
            "{said}"
        );

        // A rule still lets it run, and it is said all the same; a part that merely reads is not
        // covered by the rule for the other.
        let flags = ["--allowedTools", "Bash(cat *)"];
        let (answers, said) = exec(&home, NOTHING, &flags, &["cat a.txt", "ls && cat a.txt"]);
        assert_eq!(content(&answers[0]).trim_end(), "alpha", "{user:?}");
        assert_eq!(answers[1]["is_error"], true, "{user:?}: {}", answers[1]);
        assert_eq!(said.matches(WARNED_NOTHING).count(), 1, "{user:?}: {said}");
    }
}

#[test]
fn where_it_is_confined_in_part_the_holes_are_named_and_what_holds_holds() {
    for user in users::all() {
        let home = home(user);
        home.folder("other");
        home.write("work/write.sh", "echo new > ../other/made; echo done");
        let flags = ["--allowedTools", "Bash(sh *)"];
        let (answers, said) = exec(&home, REDUCED, &flags, &["cat a.txt", "sh write.sh"]);
        if said.contains(WARNED_NOTHING) {
            haft_testkit::skip("this kernel has no Landlock");
            continue;
        }
        assert_eq!(content(&answers[0]).trim_end(), "alpha", "{user:?}");
        assert!(
            !home.path("other/made").exists(),
            "{user:?}: {}",
            answers[1]
        );
        assert_eq!(said.matches(WARNED_REDUCED).count(), 1, "{user:?}: {said}");
        for hole in [
            "modes, owners and times",
            "hidden",
            "control other programs",
            "sockets",
        ] {
            assert!(said.contains(hole), "{hole}: {said}");
        }
    }
}

#[test]
fn the_mode_auto_is_not_used_and_one_line_says_why() {
    for user in users::all() {
        let home = home(user);
        let trusted = run(home.haft().args(["permissions", "trust", "--yes"]), b"");
        assert_eq!(trusted.code, 0, "{}", trusted.stderr);
        for weakness in [REDUCED, NOTHING] {
            let flags = ["--permission-mode", "auto"];
            let (answers, said) = exec(&home, weakness, &flags, &["touch made"]);
            let line =
                |found| format!("auto needs the full sandbox; here: {found}. Using default.");
            // A kernel without Landlock confines nothing in either case.
            let reduced = said.matches(&line("reduced (no user namespaces)")).count();
            let none = said.matches(&line("none")).count();
            assert_eq!(reduced + none, 1, "{user:?}: {said}");
            assert!(weakness == REDUCED || none == 1, "{user:?}: {said}");
            assert_eq!(answers[0]["is_error"], true, "{user:?}: {}", answers[0]);
            assert!(!home.path("work/made").exists());
        }
    }
}

#[test]
fn a_single_call_and_an_explanation_know_it_too() {
    for user in users::all() {
        let home = home(user);
        let ran = weak(&home, NOTHING, &["call", "Bash", "command=cat a.txt"], "");
        assert_eq!(ran.code, 2, "{user:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains("alpha"), "{user:?}: {}", ran.stdout);
        assert_eq!(
            ran.stderr.matches(WARNED_NOTHING).count(),
            1,
            "{}",
            ran.stderr
        );
        let explain = ["permissions", "explain", "--bash", "cat a.txt"];
        let ran = weak(&home, NOTHING, &explain, "");
        assert!(ran.stdout.starts_with("ask: "), "{user:?}: {}", ran.stdout);
        assert!(
            ran.stdout.contains(WARNED_NOTHING),
            "{user:?}: {}",
            ran.stdout
        );
        let json = [&explain[..], &["--json"]].concat();
        let ran = weak(&home, REDUCED, &json, "");
        let told: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(told["sandbox_warning"].is_string(), "{user:?}: {told}");
    }
}

#[test]
fn a_session_says_it_in_its_first_message() {
    for user in users::all() {
        let home = home(user);
        let turns = json!({"turns": [
            {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "cat a.txt"}}]},
            {"content": [{"type": "text", "text": "Done."}]},
        ]});
        home.write("script.json", &turns.to_string());
        let script = home.path("script.json").display().to_string();
        let flags = [
            "-p",
            "go",
            "--script",
            &script,
            "--output-format",
            "stream-json",
            "--verbose",
        ];
        for (weakness, warned) in [(NOTHING, WARNED_NOTHING), (REDUCED, "commands are ")] {
            let ran = weak(&home, weakness, &flags, "");
            let messages: Vec<Value> = ran
                .stdout
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let init = messages.iter().find(|message| message["subtype"] == "init");
            let warning = init.unwrap()["sandbox_warning"].as_str().unwrap();
            assert!(warning.contains(warned), "{user:?}: {warning}");
            assert_eq!(
                ran.stderr.matches(warning).count(),
                1,
                "{user:?}: {}",
                ran.stderr
            );
            assert_eq!(
                ran.stdout.matches(warning).count(),
                1,
                "{user:?}: {}",
                ran.stdout
            );
        }
        // Where all of it holds there is nothing to say.
        let ran = run(home.haft().args(flags), b"");
        if !ran.stderr.contains("commands are ") {
            assert!(!ran.stdout.contains("sandbox_warning"), "{}", ran.stdout);
        }
    }
}

/// What confines commands works when it is decided that they may run unasked, and no longer when they
/// are started.
#[test]
fn where_the_sandbox_is_gone_after_the_decision_nothing_runs_unconfined() {
    for user in users::all() {
        let home = home(user);
        home.folder("other");
        let mut command = started(&home, FADING, &["exec"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ask = |command: &str| -> Value {
            writeln!(stdin, "{}", bash(command)).unwrap();
            loop {
                let line = stdout.next().unwrap().unwrap();
                if let Ok(answer) = serde_json::from_str(&line) {
                    return answer;
                }
            }
        };
        let answer = ask("cat a.txt");
        assert_eq!(content(&answer).trim_end(), "alpha", "{user:?}: {answer}");
        // From now on there are no further name spaces, and what stood in them ends.
        let limits = ["user", "mnt", "pid", "net"].map(|kind| {
            let file = format!("/proc/sys/user/max_{kind}_namespaces");
            format!("echo 0 > {file}; grep -qx 0 {file} || exit 1")
        });
        let mut counted_out = haft_testkit::command("nsenter");
        if !rustix::process::geteuid().is_root() {
            // Who is root there already need not, and may not, become it.
            counted_out.arg("--preserve-credentials");
        }
        counted_out.args(["--user", "--target"]);
        counted_out.arg(child.id().to_string());
        counted_out.args(["sh", "-c", &limits.join("; ")]);
        assert!(counted_out.status().unwrap().success(), "{user:?}");
        let below: Vec<u32> = tree(child.id()).into_iter().skip(1).collect();
        assert!(!below.is_empty(), "{user:?}: a keeper and shells");
        // The first of them is the keeper, with which all others go.
        let keeper = below[0].try_into().unwrap();
        let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
        rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        let runs = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while below.iter().any(runs) {
            std::thread::yield_now();
        }
        let answer = ask("cat a.txt");
        assert_eq!(answer["is_error"], true, "{user:?}: {answer}");
        assert!(!content(&answer).contains("alpha"), "{user:?}: {answer}");
        assert!(
            content(&answer).contains("allowed without asking only because it would run in one"),
            "{user:?}: {answer}"
        );
        // Now it is known, so that it is asked about.
        let answer = ask("cat a.txt");
        assert_eq!(answer["is_error"], true, "{user:?}: {answer}");
        assert!(
            content(&answer).contains("nothing confines commands on this machine"),
            "{user:?}: {answer}"
        );
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches(WARNED_NOTHING).count(), 1, "{user:?}: {said}");
    }
}

#[test]
fn a_language_server_that_nothing_confines_is_started_only_if_the_user_says_so() {
    for user in users::all() {
        let home = home(user);
        home.write("work/a.mine", "a\n");
        home.folder("home/.claude");
        stand_in(&home.path("home/server"));
        let trusted = run(home.haft().args(["permissions", "trust", "--yes"]), b"");
        assert_eq!(trusted.code, 0, "{}", trusted.stderr);
        let entry = json!({"command": home.path("home/server"), "args": ["f"], "extensionToLanguage": {".mine": "mine"}});
        let ask = |allowed: bool| {
            let settings = json!({"lsp": {"mine": entry, "allowUnsandboxed": allowed}});
            home.write("home/.claude/settings.json", &settings.to_string());
            let call = json!({"name": "LSP", "input": {"operation": "documentSymbol", "filePath": "a.mine"}});
            let ran = weak(&home, NOTHING, &["exec"], &format!("{call}\n"));
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            serde_json::from_str::<Value>(ran.stdout.trim()).unwrap()
        };
        let refused = ask(false);
        assert_eq!(refused["is_error"], true, "{user:?}: {refused}");
        assert!(
            content(&refused).contains("cannot be confined here, so it was not started")
                && content(&refused).contains("lsp.allowUnsandboxed"),
            "{user:?}: {refused}"
        );
        assert_eq!(content(&ask(true)), "function f 1", "{user:?}");
    }
}
