//! Ten sessions in one process, in lock-step, share nothing.

use std::{
    collections::BTreeMap,
    env, fs,
    sync::{Arc, Mutex},
};

use haft_contract::{ApprovalAnswer, ApprovalRequest, PermissionMode};
use haft_host::{AgentSession, SessionEnd, SessionEvent, agent::AgentEvent};
use haft_testkit::TempProject;
use serde_json::json;
use tokio::{sync::Barrier, task::JoinSet};

use crate::rig::{Recorded, Together, call, config, in_time, says, scripted};

const SESSIONS: usize = 10;

/// What one session left behind.
struct Left {
    number: usize,
    project: TempProject,
    recorded: Recorded,
    asked: Arc<Mutex<Vec<String>>>,
    end: SessionEnd,
}

/// Even ones may not read the secret; every third edits without asking.
async fn run(number: usize, barrier: Arc<Barrier>) -> Left {
    let project = TempProject::new([]);
    project.write("work/who.txt", format!("I am {number}\n"));
    project.write("work/secret.txt", format!("the secret of {number}\n"));
    project.write("work/sub/here.txt", "");
    let model = Together {
        model: scripted(json!([
            {"content": [
                call("Read", json!({"file_path": "who.txt"})),
                call("Read", json!({"file_path": "secret.txt"})),
                call("Write", json!({"file_path": "out.txt", "content": format!("made by {number}")})),
                call("Bash", json!({"command": "cd sub && echo \"$WHO in $(pwd)\""})),
            ]},
            {"content": [call("Bash", json!({"command": "pwd; ls"}))]},
            {"content": [call("Read", json!({"file_path": "../out.txt"}))]},
            says(&format!("done {number}")),
        ])),
        barrier,
    };
    let mut config = config(&project);
    config.settings.settings = Some(json!({"env": {"WHO": format!("who-{number}")}}).to_string());
    config.model.name = Some(format!("model-{number}"));
    if number.is_multiple_of(2) {
        config.deny.push("Read(./secret.txt)".to_owned());
    }
    if number.is_multiple_of(3) {
        config.permission_mode = Some(PermissionMode::AcceptEdits);
    }
    let (recorded, asked) = (Recorded::default(), Arc::new(Mutex::new(Vec::new())));
    let questions = Arc::clone(&asked);
    let parts =
        recorded
            .parts()
            .model(Arc::new(model))
            .questions(move |request: &ApprovalRequest| {
                let input = request.asked.as_ref().map(|asked| asked.input.to_string());
                questions.lock().unwrap().push(input.unwrap_or_default());
                ApprovalAnswer::Allow
            });
    let session = AgentSession::open(config, parts).unwrap();
    let end = session.answer(format!("go {number}")).await.unwrap();
    Left {
        number,
        project,
        recorded,
        asked,
        end,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_sessions_side_by_side_share_nothing() {
    let (directory, before) = (env::current_dir().unwrap(), variables());
    let barrier = Arc::new(Barrier::new(SESSIONS));
    let mut running = JoinSet::new();
    for number in 0..SESSIONS {
        running.spawn(run(number, Arc::clone(&barrier)));
    }
    let all = in_time(running.join_all()).await;
    for left in &all {
        check(left);
    }
    assert_eq!(env::current_dir().unwrap(), directory);
    assert_eq!(variables(), before, "the environment of the process");
    let ids: std::collections::BTreeSet<String> = all.iter().map(session_id).collect();
    assert_eq!(ids.len(), SESSIONS);
}

fn variables() -> BTreeMap<std::ffi::OsString, std::ffi::OsString> {
    env::vars_os().collect()
}

fn session_id(left: &Left) -> String {
    let all = left.recorded.all();
    let mut ids = all.iter().filter_map(|event| match event {
        SessionEvent::Ready(facts) => Some(facts.id.to_string()),
        _ => None,
    });
    ids.next().unwrap()
}

fn check(left: &Left) {
    let Left {
        number, project, ..
    } = left;
    let work = project.path("work");
    assert_eq!(
        left.end,
        SessionEnd {
            has_denials: number.is_multiple_of(2),
            ..SessionEnd::default()
        }
    );
    // Its own files, rules, environment and directory.
    let results = left.recorded.results();
    let [who, secret, written, command, listed, out] = results.as_slice() else {
        panic!("{number}: {results:?}");
    };
    assert!(who.contains(&format!("I am {number}")), "{who}");
    let is_denied = !secret.contains(&format!("the secret of {number}"));
    assert_eq!(is_denied, number.is_multiple_of(2), "{number}: {secret}");
    assert!(written.contains("out.txt"), "{number}: {written}");
    let sub = work.join("sub");
    let told = format!("who-{number} in {}", sub.display());
    assert!(command.contains(&told), "{number}: {command}");
    assert!(
        listed.contains(&sub.display().to_string()),
        "{number}: {listed}"
    );
    assert!(listed.contains("here.txt"), "{number}: {listed}");
    assert!(
        out.contains(&format!("made by {number}")),
        "{number}: {out}"
    );
    assert_eq!(left.recorded.answers(), [format!("done {number}")]);
    // Its own questions: about the edit where edits are asked about, and about no other's.
    let asked = left.asked.lock().unwrap();
    let edits = asked.iter().filter(|input| input.contains("made by"));
    let edits: Vec<&String> = edits.collect();
    assert_eq!(
        edits.len(),
        usize::from(!number.is_multiple_of(3)),
        "{number}: {asked:?}"
    );
    assert!(
        edits
            .iter()
            .all(|input| input.contains(&format!("made by {number}\"")))
    );
    // Its own events.
    for event in left.recorded.all() {
        if let SessionEvent::Agent(AgentEvent::RunStarted(began)) = event {
            assert_eq!(began.cwd, work);
            assert_eq!(began.model, format!("model-{number}"));
        }
    }
    // Its own state, and nothing of another's anywhere in it.
    let projects = project.path("home/.claude/projects");
    let transcript = projects
        .read_dir()
        .unwrap()
        .map(|project| {
            project
                .unwrap()
                .path()
                .join(format!("{}.jsonl", session_id(left)))
        })
        .find(|file| file.exists())
        .unwrap();
    let transcript = fs::read_to_string(transcript).unwrap();
    for other in (0..SESSIONS).filter(|other| other != number) {
        for mark in ["I am", "the secret of", "made by", "done", "go"] {
            let mark = format!("{mark} {other}");
            let whole = transcript.match_indices(&mark).any(|(at, _)| {
                !transcript[at + mark.len()..].starts_with(|next: char| next.is_ascii_digit())
            });
            assert!(!whole, "{number} has {mark:?}");
        }
    }
}
