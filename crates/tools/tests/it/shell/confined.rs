use std::{
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BackgroundTasks, BoxFuture, Confinement,
    ConfinementProfile, ControlFiles, HostPolicy, NetworkAccess,
};
use haft_testkit::ControlFile;
use serde_json::json;

use super::Terminal;

/// Says the same to everything, and remembers what it was asked.
struct Person {
    says: ApprovalAnswer,
    asked: Mutex<Vec<String>>,
}

impl Approver for Person {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.asked.lock().unwrap().push(question.reason);
        Box::pin(async { self.says.clone() })
    }
}

fn person(terminal: &mut Terminal, says: ApprovalAnswer) -> Arc<Person> {
    let person = Arc::new(Person {
        says,
        asked: Mutex::default(),
    });
    let services = terminal.session.services.clone();
    terminal.session.services = services.with_approver(person.clone());
    person
}

fn real(terminal: &Terminal) -> PathBuf {
    terminal.root().canonicalize().unwrap()
}

fn workspace(terminal: &Terminal) -> Confinement {
    let root = real(terminal);
    Confinement {
        profile: ConfinementProfile::Workspace,
        protected: Arc::from([root.join("sub")]),
        control: ControlFiles::from_rules(ControlFile("evil.cfg")),
        writable: Arc::from([root]),
        network: NetworkAccess::Anybody,
        ..Confinement::default()
    }
}

#[tokio::test]
async fn what_only_reads_cannot_write_and_the_refusal_names_what_would_allow_it() {
    let mut terminal = Terminal::new();
    terminal.confinement = Confinement::default();
    assert_eq!(terminal.bash("cat file.txt").await.ok(), "one\ntwo");
    let text = terminal.bash("echo x > new.txt").await.failed();
    let text = text.replace(real(&terminal).to_str().unwrap(), "[root]");
    insta::assert_snapshot!(terminal.masked(&text));
    assert!(!terminal.root().join("new.txt").exists());
}

#[tokio::test]
async fn with_a_yes_it_runs_again_and_may_change_just_that() {
    let mut terminal = Terminal::new();
    terminal.confinement = Confinement::default();
    let person = person(&mut terminal, ApprovalAnswer::Allow);
    let text = terminal
        .bash("echo more >> file.txt; cat file.txt")
        .await
        .ok();
    // The first run was refused in its first part only, so its code was that of `cat`.
    assert!(
        text.contains("Read-only file system") && text.ends_with("one\ntwo"),
        "{text}"
    );
    assert!(person.asked.lock().unwrap().is_empty());
    let text = terminal
        .bash("echo more >> file.txt && cat file.txt")
        .await
        .ok();
    assert_eq!(text, "one\ntwo\nmore");
    let asked = person.asked.lock().unwrap().clone();
    let root = real(&terminal);
    assert_eq!(
        asked,
        [format!(
            "the sandbox refused: changing {0}/file.txt. The command has run, and would run again \
             with changes of {0}/file.txt allowed",
            root.display()
        )]
    );
    // The next one is as confined as before.
    let text = terminal
        .bash("echo x > other.txt; cat other.txt")
        .await
        .ok();
    assert_eq!(text, "x");
    assert_eq!(person.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_refused_write_is_asked_about_though_the_command_ended_well() {
    let mut terminal = Terminal::new();
    terminal.confinement = workspace(&terminal);
    let person = person(&mut terminal, ApprovalAnswer::Allow);
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().canonicalize().unwrap().join("new");
    let command = format!("echo x > {}; true", file.display());
    terminal.bash(&command).await.ok();
    assert!(file.exists());
    let asked = person.asked.lock().unwrap().clone();
    assert!(
        asked[0].contains(&format!("changing {}", file.display()))
            && asked[0].contains("sandbox.filesystem.allowWrite"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_no_is_told_with_its_reason() {
    let mut terminal = Terminal::new();
    terminal.confinement = workspace(&terminal);
    let reason = Some("not there".to_owned());
    person(&mut terminal, ApprovalAnswer::Deny { reason });
    let text = terminal.bash("echo x > sub/a.txt").await.failed();
    assert!(text.starts_with("Exit code 1\n"), "{text}");
    assert!(
        text.ends_with("The user did not allow it. They said: not there"),
        "{text}"
    );
    assert_eq!(
        std::fs::read_to_string(terminal.root().join("sub/a.txt")).unwrap(),
        "a\n"
    );
}

#[tokio::test]
async fn what_is_protected_or_outside_is_asked_for() {
    let mut terminal = Terminal::new();
    terminal.confinement = workspace(&terminal);
    let person = person(&mut terminal, ApprovalAnswer::Allow);
    assert_eq!(terminal.bash("echo x > free.txt").await.ok(), "");
    assert!(person.asked.lock().unwrap().is_empty());
    assert_eq!(terminal.bash("echo x > sub/a.txt").await.ok(), "");
    assert_eq!(
        std::fs::read_to_string(terminal.root().join("sub/a.txt")).unwrap(),
        "x\n"
    );
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = outside.path().canonicalize().unwrap().join("out.txt");
    let text = terminal.bash(&format!("echo x > {}", file.display())).await;
    assert_eq!(text.ok(), "");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
    assert_eq!(person.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_file_that_decides_what_others_run_cannot_be_made() {
    let mut terminal = Terminal::new();
    terminal.confinement = workspace(&terminal);
    let text = terminal
        .bash("echo bad > evil.cfg; echo good > fine.txt")
        .await
        .ok();
    let text = text.replace(real(&terminal).to_str().unwrap(), "[root]");
    insta::assert_snapshot!(text);
    assert!(!terminal.root().join("evil.cfg").exists());
    assert!(terminal.root().join("fine.txt").exists());
}

#[tokio::test]
async fn a_task_leaves_no_such_file_either() {
    let mut terminal = Terminal::new();
    terminal.confinement = workspace(&terminal);
    let command = "echo bad > evil.cfg; rm file.txt";
    let input = json!({"command": command, "run_in_background": true});
    let id = terminal.call("Bash", input).await.task();
    let notices = terminal.session.services.get::<BackgroundTasks>().unwrap();
    notices.wait_for_any_notice().await;
    let notes = notices.take_notices().remove(0).notes;
    assert!(
        notes[0].starts_with("The sandbox refused changes to"),
        "{notes:?}"
    );
    let text = terminal.call("TaskOutput", json!({"task_id": id})).await;
    assert!(text.ok().contains("<note>The sandbox refused changes to"));
    assert!(!terminal.root().join("evil.cfg").exists());
    assert!(!terminal.root().join("file.txt").exists());
}

/// Speaks to the proxy without a program that CI may not have.
fn fetch(port: u16) -> String {
    let request = format!(
        "GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n"
    );
    format!("exec 3<>/dev/tcp/127.0.0.1/3128; printf '{request}' >&3; cat <&3")
}

/// Answers every connection.
fn server() -> u16 {
    haft_testkit::bound_this_process();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[tokio::test]
async fn an_unknown_host_is_asked_for_once_a_session() {
    let port = server();
    let mut terminal = Terminal::new();
    terminal.confinement = Confinement {
        network: NetworkAccess::ByRule(HostPolicy::ask_all()),
        ..workspace(&terminal)
    };
    let person = person(&mut terminal, ApprovalAnswer::Allow);
    for _ in 0..2 {
        let text = terminal.bash(&fetch(port)).await.ok();
        assert!(text.ends_with("welcome"), "{text}");
    }
    let asked = person.asked.lock().unwrap().clone();
    let [reason] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert!(
        reason.contains(&format!("GET http://127.0.0.1:{port}/")),
        "{reason}"
    );
    // There is no way around the proxy.
    let direct = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    terminal.bash(&direct).await.failed();
}

#[tokio::test]
async fn with_nobody_to_ask_an_unknown_host_is_refused_by_name() {
    let port = server();
    let mut terminal = Terminal::new();
    terminal.confinement = Confinement {
        network: NetworkAccess::ByRule(HostPolicy::ask_all()),
        ..workspace(&terminal)
    };
    let command = format!("{} | grep welcome && exit 0; exit 7", fetch(port));
    let text = terminal.bash(&command).await.failed();
    let text = text.replace(&port.to_string(), "[port]");
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn what_a_command_did_can_be_undone() {
    let terminal = Terminal::new();
    let command = "rm file.txt; echo changed > sub/a.txt; mkdir new; touch new/x; exit 1";
    assert_eq!(terminal.bash(command).await.failed(), "Exit code 1");
    assert!(!terminal.root().join("file.txt").exists());
    terminal.call("Undo", json!({})).await.ok();
    let text = |name: &str| std::fs::read_to_string(terminal.root().join(name)).unwrap();
    assert_eq!(
        (text("file.txt"), text("sub/a.txt")),
        ("one\ntwo\n".to_owned(), "a\n".to_owned())
    );
    assert!(!terminal.root().join("new").exists());
}

#[tokio::test]
async fn a_command_gets_a_known_environment() {
    let terminal = Terminal::with_env([("GIVEN_TOKEN", "by settings"), ("TZ", "")]);
    let text = terminal.bash("echo $CLAUDECODE $CLAUDE_CODE_CHILD_SESSION $GIVEN_TOKEN ${CARGO_PKG_NAME-none} ${TZ-none}").await.ok();
    assert_eq!(text, "1 1 by settings none none");
}

#[tokio::test]
async fn what_is_hidden_or_closed_is_asked_for_by_its_name_and_then_read() {
    let mut terminal = Terminal::new();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = home.path().canonicalize().unwrap();
    std::fs::create_dir(place.join(".ssh")).unwrap();
    for (name, text) in [
        (".ssh/a", "key a\n"),
        (".ssh/b", "key b\n"),
        ("notes", "n\n"),
    ] {
        std::fs::write(place.join(name), text).unwrap();
    }
    terminal.confinement = Confinement {
        hidden: Arc::from([place.join(".ssh")]),
        stores: Arc::from([place.join(".ssh")]),
        closed: Arc::from([place.clone()]),
        untold: Some("$f".to_owned()),
        ..Confinement::default()
    };
    let person = person(&mut terminal, ApprovalAnswer::Allow);
    let line = |name: &str| format!("f={}/{name}; cat $f", place.display());
    let text = terminal.bash(&line(".ssh/a")).await.ok();
    assert_eq!(text, "key a");
    assert_eq!(
        *person.asked.lock().unwrap(),
        [format!(
            "the sandbox refused: reading {0}/.ssh/a. The command has run, and would run again with \
             reading of {0}/.ssh/a allowed",
            place.display()
        )]
    );
    assert_eq!(terminal.bash(&line("notes")).await.ok(), "n");
    // What was allowed once is closed again, and so is what lies beside it.
    let line = |name: &str| format!("cat {}/{name} || true", place.display());
    let text =
        terminal.bash(&line(".ssh/a")).await.ok() + &terminal.bash(&line(".ssh/b")).await.ok();
    assert!(!text.contains("key a") && !text.contains("key b"), "{text}");
    let line = |name: &str| format!("f={}/{name}; cat $f", place.display());
    // What a rule denies is never asked for.
    terminal.confinement.stores = Arc::default();
    let asked = person.asked.lock().unwrap().len();
    let text = terminal.bash(&line(".ssh/b")).await.failed();
    assert!(!text.contains("key b"), "{text}");
    assert_eq!(person.asked.lock().unwrap().len(), asked);
}
