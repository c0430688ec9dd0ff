//! Models that work for another's calls.

mod team;
mod to_background;

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use haft_agent::{AgentEvent, EndReason, ProjectSessions, SubagentLimits};
use haft_contract::{PermissionMode, SessionId, TaskEvent, TaskStatus};
use serde_json::{Value, json};

use crate::rig::{Rig, assert_valid, scripted, shown};

use self::team::{Setup, aside, call, deny, errand, id_in, kind, listener, say};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_at_once_three_fail_and_one_hangs_until_it_is_interrupted() {
    let rig = Rig::new();
    let calls: Vec<Value> = (0..10)
        .map(|number| {
            let input = errand(&format!("errand {number}"));
            json!({"type": "tool_use", "id": format!("t{number}"), "name": "Task", "input": input})
        })
        .collect();
    let work = |number: usize| {
        json!({
            "content": [
                {"type": "tool_use", "name": "Work", "input": {"key": format!("w{number}"), "pauses": 3}},
                {"type": "tool_use", "name": "Echo", "input": {"text": "no"}},
            ],
            "usage": {"input": 1_000, "output": 100},
        })
    };
    let conversations: Vec<Value> = (0..10)
        .map(|number| {
            let last = match number {
                0..6 => say(&format!("result {number}")),
                6..9 => json!({"error": {"kind": "server", "message": "broken"}}),
                _ => json!({"content": [{"type": "text", "text": "so far"}], "hangs": true}),
            };
            aside(&format!("errand {number}"), &[work(number), last])
        })
        .collect();
    let model = scripted(&json!({
        "turns": [{"content": calls, "usage": {"input": 1_000, "output": 100}}],
        "conversations": conversations,
    }));
    let told = Arc::new(Mutex::new(Vec::new()));
    let setup = Setup {
        rules: deny("Echo"),
        hooks: ["PreToolUse", "SubagentStart", "SubagentStop"]
            .map(|event| listener(event, &told))
            .into(),
        ..Setup::default()
    };
    let mut team = setup.team(&rig, &model).await;
    let (over, control) = (AtomicUsize::new(0), team.agent.control());
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&statuses);
    team.notices.set_listener(move |event| {
        if let TaskEvent::Over(notice) = event {
            kept.lock().unwrap().push(notice.status.name());
            // All but the one that hangs.
            if over.fetch_add(1, Ordering::SeqCst) + 1 == 9 {
                control.interrupt();
            }
        }
    });
    let ended = team.agent.run("go", &rig.ear).await;
    assert_eq!(ended.reason, EndReason::AbortedTools);
    assert_valid(team.agent.conversation());

    let results = team.results();
    assert_eq!(results.len(), 10);
    for number in 0..10 {
        let (is_error, text) = &results[&format!("t{number}")];
        match number {
            0..6 => {
                let id = id_in(text);
                assert_eq!(*text, format!("result {number}\n[agent id: {id}]"));
            }
            6..9 => assert!(text.contains("broken") && *is_error, "{text}"),
            _ => assert_eq!(text, "[Request interrupted by user for tool use]"),
        }
    }
    // Nothing is left, also of the one that hung.
    haft_testkit::until("no subagent runs", || team.crew.running_count() == 0).await;
    assert!(team.notices.running().is_empty());
    assert!(
        team.notices.take_notices().is_empty(),
        "its calls have told the model"
    );
    let mut statuses = statuses.lock().unwrap().clone();
    statuses.sort_unstable();
    let expected = [vec!["completed"; 6], vec!["failed"; 3], vec!["killed"]].concat();
    assert_eq!(statuses, expected);
    // A round of tools each, six last words, and the main agent's reply.
    let requests = 1 + 10 + 6;
    let cost = f64::from(requests) * (1_000.0 + 100.0 * 10.0) / 1e6;
    assert!((ended.ledger.total_cost() - cost).abs() < 1e-9, "{cost}");
    // Each did its work once, and what is denied was denied to each.
    assert_eq!(rig.stage.runs().len(), 10);
    assert!(rig.stage.runs().values().all(|runs| *runs == 1));
    let denied: Vec<_> = ended.permission_denials.iter().collect();
    assert_eq!(denied.len(), 10);
    assert!(denied.iter().all(|denial| denial.tool_name == "Echo"));
    // Hooks were told about each, and who it is.
    let told = told.lock().unwrap();
    let ids = |event: &str| -> BTreeSet<&str> {
        let told = told.iter().filter(|told| told["hook_event_name"] == event);
        told.filter_map(|told| told["agent_id"].as_str()).collect()
    };
    assert_eq!(ids("PreToolUse").len(), 10);
    assert_eq!(ids("SubagentStart").len(), 10);
    assert_eq!(ids("SubagentStop").len(), 6);
    let stop = told
        .iter()
        .find(|told| told["hook_event_name"] == "SubagentStop");
    let stop = stop.unwrap();
    assert_eq!(stop["agent_type"], "general-purpose");
    assert!(
        stop["agent_transcript_path"]
            .as_str()
            .unwrap()
            .contains("/subagents/agent-a")
    );
}

#[tokio::test]
async fn nested_to_the_limit_and_not_deeper() {
    let rig = Rig::new();
    let model = scripted(&json!({
        "turns": [call("Agent", errand("level 1")), say("main done")],
        "conversations": [
            aside("level 1", &[call("Agent", errand("level 2")), say("one done")]),
            aside("level 2", &[call("Agent", errand("level 3")), say("two done")]),
            aside("level 3", &[call("Agent", errand("level 4")), say("three done")]),
        ],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    let ended = team.agent.run("go", &rig.ear).await;
    assert_eq!(ended.text, "main done");
    let has_agent: Vec<bool> = model
        .requests()
        .iter()
        .map(|request| {
            request
                .prefix
                .tools()
                .iter()
                .any(|tool| tool.name == "Agent")
        })
        .collect();
    // Down: main, 1, 2, 3; then 3, 2, 1, main.
    let expected = [true, true, true, false, false, true, true, true];
    assert_eq!(has_agent, expected);
    let last = model.requests()[4].history.clone();
    let last = shown(last.messages());
    assert!(last[2].contains("Unknown tool: Agent"), "{last:#?}");
    let heard = team.heard.0.lock().unwrap();
    let callers: BTreeSet<&str> = heard
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Subagent { agent, .. } => Some(&*agent.tool_use_id),
            _ => None,
        })
        .collect();
    assert_eq!(
        callers.len(),
        3,
        "each is told with the call that launched it"
    );
}

#[tokio::test]
async fn an_interrupt_reaches_the_deepest() {
    let rig = Rig::new();
    let model = scripted(&json!({
        "turns": [call("Agent", errand("level 1")), say("after")],
        "conversations": [
            aside("level 1", &[call("Agent", errand("level 2"))]),
            aside("level 2", &[call("Work", json!({"key": "deep", "until": "never"}))]),
        ],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    let control = team.agent.control();
    let interrupt = async {
        while rig.stage.runs().is_empty() {
            tokio::task::yield_now().await;
        }
        control.interrupt();
    };
    let (ended, ()) = tokio::join!(team.agent.run("go", &rig.ear), interrupt);
    assert_eq!(ended.reason, EndReason::AbortedTools);
    assert_valid(team.agent.conversation());
    haft_testkit::until("no subagent runs", || team.crew.running_count() == 0).await;
    let ended = team.agent.run("again", &rig.ear).await;
    assert_eq!(ended.text, "after");
}

#[tokio::test]
async fn in_the_background_it_is_told_when_it_is_done() {
    let rig = Rig::new();
    let mut input = errand("a long errand");
    input["run_in_background"] = json!(true);
    let model = scripted(&json!({
        "turns": [call("Agent", input), say("launched"), say("I heard")],
        "conversations": [aside("a long errand", &[
            call("Work", json!({"key": "long", "until": "go"})),
            say("found it"),
        ])],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    let ended = team.agent.run("go", &rig.ear).await;
    assert_eq!(ended.text, "launched");
    let launched = team.result("toolu_0_0");
    assert!(launched.contains("works in the background"), "{launched}");
    let running = team.notices.running();
    assert_eq!(running.len(), 1);
    assert!(running[0].in_background);
    rig.stage.flag("go");
    team.notices.wait_for_any_notice().await;
    let ended = team.agent.run_background_notices(&rig.ear).await;
    assert_eq!(ended.text, "I heard");
    let lines = shown(team.agent.conversation().messages());
    let notice = lines
        .iter()
        .find(|line| line.contains("<task_notification>"));
    let notice = notice.unwrap();
    assert!(notice.contains("<result>\nfound it\n</result>"), "{notice}");
    let (_, path) = notice.split_once("<output_file>").unwrap();
    let path = path.split('<').next().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "found it");
    team.crew.close().await;
    assert_eq!(team.crew.running_count(), 0);
}

#[tokio::test]
async fn a_task_in_the_background_is_asked_and_stopped_like_any_other() {
    let rig = Rig::new();
    let mut input = errand("errand");
    input["run_in_background"] = json!(true);
    input["name"] = json!("scout");
    let model = scripted(&json!({
        "turns": [
            call("Agent", input),
            call("TaskOutput", json!({"task_id": "scout", "block": false})),
            call("TaskStop", json!({"task_id": "scout"})),
            call("TaskOutput", json!({"task_id": "scout"})),
            call("TaskStop", json!({"task_id": "scout"})),
            call("TaskStop", json!({"task_id": "nobody"})),
            say("done"),
        ],
        "conversations": [aside("errand", &[json!({"hangs": true})])],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    team.agent.run("go", &rig.ear).await;
    let id = id_in(&team.result("toolu_0_0"));
    let results: Vec<String> = (1..6)
        .map(|number| team.result(&format!("toolu_{number}_0")).replace(&id, "ID"))
        .collect();
    insta::assert_snapshot!(results.join("\n---\n"));
    assert!(team.notices.take_notices().is_empty(), "the model knows");
    haft_testkit::until("no subagent runs", || team.crew.running_count() == 0).await;
}

#[tokio::test]
async fn a_message_reaches_one_at_work_and_takes_one_that_is_done_up_again() {
    let rig = Rig::new();
    let mut input = errand("errand");
    input["run_in_background"] = json!(true);
    input["name"] = json!("scout");
    let to_scout = |message: &str| json!({"to": "scout", "message": message});
    let model = scripted(&json!({
        "turns": [
            call("Agent", input),
            call("SendMessage", to_scout("look left too")),
            call("TaskOutput", json!({"task_id": "scout"})),
            call("SendMessage", to_scout("and now right")),
            call("TaskOutput", json!({"task_id": "scout"})),
            call("SendMessage", json!({"to": "stranger", "message": "hello"})),
            say("done"),
        ],
        "conversations": [aside("errand", &[
            call("Work", json!({"key": "first", "until": "told"})),
            say("left and straight"),
            say("right as well"),
        ])],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    let (heard, stage) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&rig.stage));
    let sink = move |event: &AgentEvent| {
        if let AgentEvent::CallFinished { .. } = event
            && heard.fetch_add(1, Ordering::SeqCst) == 1
        {
            // The message is on its way.
            stage.flag("told");
        }
    };
    team.agent.run("go", &sink).await;
    let id = id_in(&team.result("toolu_0_0"));
    let results: Vec<String> = (1..6)
        .map(|number| {
            let text = team.result(&format!("toolu_{number}_0")).replace(&id, "ID");
            let session = rig.project.path("session");
            text.replace(session.to_str().unwrap(), "SESSION")
        })
        .collect();
    insta::assert_snapshot!(results.join("\n---\n"));
    let asides: Vec<Vec<String>> = model
        .requests()
        .iter()
        .map(|request| shown(request.history.messages()))
        .filter(|lines| lines[0].contains("errand"))
        .collect();
    let last = asides.last().unwrap();
    let said: Vec<&String> = last.iter().filter(|line| !line.contains("toolu")).collect();
    let expected = [
        "user: errand",
        "user: look left too",
        "model: left and straight",
        "user: and now right",
    ];
    assert_eq!(said, expected);
    team.crew.close().await;
}

#[tokio::test]
async fn what_a_kind_may_use_is_what_it_has() {
    let rig = Rig::new();
    let kinds = vec![
        kind("reader", |kind| {
            kind.tools = Some(vec!["Peek".to_owned(), "Nope".to_owned()]);
        }),
        kind("nobody", |kind| kind.tools = Some(vec!["Nope".to_owned()])),
        kind("careful", |kind| {
            kind.disallowed_tools = ["Work", "Agent", "Bash"].map(str::to_owned).into();
        }),
        kind("planner", |kind| {
            kind.permission_mode = Some("plan".to_owned());
            kind.max_turns = Some(1);
            kind.model = Some("small".to_owned());
        }),
    ];
    let of = |kind: &str| {
        let mut input = errand("errand");
        input["subagent_type"] = json!(kind);
        call("Agent", input)
    };
    let model = scripted(&json!({
        "turns": [
            of("reader"), of("nobody"), of("careful"), of("planner"), of("unknown"),
            call("Agent", errand("errand")), say("done"),
        ],
        "conversations": [aside("errand", &[
            call("Append", json!({"path": "a.txt", "line": "x"})),
            say("fine"),
        ])],
    }));
    let setup = Setup {
        kinds,
        mode: PermissionMode::AcceptEdits,
        ..Setup::default()
    };
    let mut team = setup.team(&rig, &model).await;
    team.agent.run("go", &rig.ear).await;
    let results: Vec<String> = (0..6)
        .map(|number| {
            let text = team.result(&format!("toolu_{number}_0"));
            match text.contains("[agent id") {
                true => text.replace(&id_in(&text), "ID"),
                false => text,
            }
        })
        .collect();
    insta::assert_snapshot!(results.join("\n---\n"));
    let asides = model.requests().into_iter().filter(|request| {
        let lines = shown(request.history.messages());
        let is_first = !lines.iter().any(|line| line.starts_with("model:"));
        is_first && lines.iter().any(|line| line.contains("errand"))
    });
    let tools: Vec<(String, String)> = asides
        .map(|request| {
            let tools = request.prefix.tools().iter().map(|tool| tool.name.clone());
            (request.model, tools.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(tools[0], ("m".to_owned(), "Peek".to_owned()));
    assert!(!tools[1].1.contains("Work") && tools[1].1.contains("Append"));
    assert!(!tools[1].1.contains("TaskOutput"), "{tools:?}");
    assert_eq!(tools[2].0, "small");
    // What the careful one may do, the one in plan mode may not.
    let lines = fs::read_to_string(rig.project.path("work").join("a.txt")).unwrap();
    assert_eq!(lines, "alpha\nx\n");
}

#[tokio::test]
async fn a_parent_in_plan_mode_has_no_child_that_changes_things() {
    let rig = Rig::new();
    let model = scripted(&json!({
        "turns": [call("Agent", errand("errand")), say("done")],
        "conversations": [aside("errand", &[
            call("Append", json!({"path": "a.txt", "line": "x"})),
            say("refused"),
        ])],
    }));
    let setup = Setup {
        kinds: vec![kind("general-purpose", |kind| {
            kind.permission_mode = Some("bypassPermissions".to_owned());
        })],
        mode: PermissionMode::Plan,
        ..Setup::default()
    };
    let mut team = setup.team(&rig, &model).await;
    let ended = team.agent.run("go", &rig.ear).await;
    assert_eq!(ended.permission_denials.len(), 1);
    assert_eq!(ended.permission_denials[0].tool_name, "Append");
    let lines = fs::read_to_string(rig.project.path("work").join("a.txt")).unwrap();
    assert_eq!(lines, "alpha\n");
}

#[tokio::test]
async fn no_more_at_once_than_there_may_be() {
    let rig = Rig::new();
    let mut input = errand("errand");
    input["run_in_background"] = json!(true);
    let model = scripted(&json!({
        "turns": [call("Agent", input.clone()), call("Agent", input), say("done")],
        "conversations": [aside("errand", &[json!({"hangs": true})])],
    }));
    let setup = Setup {
        limits: SubagentLimits {
            at_once: 1,
            ..SubagentLimits::default()
        },
        ..Setup::default()
    };
    let mut team = setup.team(&rig, &model).await;
    team.agent.run("go", &rig.ear).await;
    let (is_error, text) = team.results()["toolu_1_0"].clone();
    assert!(
        is_error && text.contains("1 subagents are already running"),
        "{text}"
    );
    team.crew.close().await;
    assert!(team.notices.running().is_empty());
    assert_eq!(team.notices.take_notices()[0].status, TaskStatus::Killed);
}

#[tokio::test]
async fn what_one_has_read_another_has_not_and_all_of_it_can_be_undone() {
    let rig = Rig::new();
    let edit = json!({"file_path": "a.txt", "old_string": "alpha", "new_string": "omega"});
    let model = scripted(&json!({
        "turns": [
            call("Read", json!({"file_path": "a.txt"})),
            call("Agent", errand("errand")),
            call("Edit", json!({"file_path": "a.txt", "old_string": "omega", "new_string": "psi"})),
            call("Undo", json!({})),
            say("done"),
        ],
        "conversations": [aside("errand", &[
            call("Edit", edit.clone()),
            call("Read", json!({"file_path": "a.txt"})),
            call("Edit", edit),
            say("changed"),
        ])],
    }));
    let mut team = Setup::default().team(&rig, &model).await;
    team.agent.run("go", &rig.ear).await;
    let requests = model.requests();
    let asides = requests
        .iter()
        .map(|request| shown(request.history.messages()));
    let asides: Vec<_> = asides.filter(|lines| lines[0].contains("errand")).collect();
    let first = &asides[1];
    assert!(first[2].contains("has not been read yet"), "{first:#?}");
    assert!(team.result("toolu_1_0").starts_with("changed"));
    let results = team.results();
    // Its launcher has not seen what is there now, and is told so.
    let (is_error, text) = &results["toolu_2_0"];
    assert!(*is_error && text.contains("modified since"), "{text}");
    // What it takes back is the last change, no matter who made it.
    assert!(!results["toolu_3_0"].0, "{results:#?}");
    let text = fs::read_to_string(rig.project.path("work").join("a.txt")).unwrap();
    assert_eq!(text, "alpha\n");
}

#[tokio::test]
async fn its_transcript_is_kept_and_a_session_that_was_killed_knows_of_it() {
    let rig = Rig::new();
    let model = scripted(&json!({
        "turns": [
            call("Agent", errand("first errand")),
            call("Agent", errand("second errand")),
        ],
        "conversations": [
            aside("first errand", &[say("done")]),
            aside("second errand", &[call("Work", json!({"key": "second", "until": "never"}))]),
        ],
    }));
    let sessions = ProjectSessions::new(rig.project.path("sessions"));
    let id = SessionId::new();
    let setup = Setup {
        session: Some(sessions.create(id).unwrap()),
        ..Setup::default()
    };
    let mut team = setup.team(&rig, &model).await;
    {
        // Killed: what was in memory is gone, what is on disk is all there is.
        let run = team.agent.run("go", &rig.ear);
        let at_work = async {
            while rig.stage.runs().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = run => panic!("it ended"),
            () = at_work => {}
        }
    }
    let folder = rig.project.path("session/subagents");
    let mut transcripts: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    transcripts.sort();
    let (transcripts, described): (Vec<_>, Vec<_>) = transcripts
        .into_iter()
        .partition(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    assert_eq!((transcripts.len(), described.len()), (2, 2));
    for path in &described {
        let told: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert!(
            told["toolUseId"].is_string() && told["agentType"].is_string(),
            "{told}"
        );
        assert_eq!(told["parentAgentId"], Value::Null);
    }
    for path in &transcripts {
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["type"], "haft-agent");
        let said: Vec<&Value> = lines.iter().filter(|line| line["type"] == "user").collect();
        assert!(said.iter().all(|line| line["isSidechain"] == true));
        assert_eq!(said[0]["agentId"], lines[0]["agentId"]);
    }
    // The same files in another place, as they are when the process dies now.
    let again = scripted(&json!({"turns": [say("I see")]}));
    let after = Rig::new();
    let copy = after.project.path("session/subagents");
    fs::create_dir_all(&copy).unwrap();
    for path in &transcripts {
        fs::copy(path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let setup = Setup {
        session: Some(sessions.fork(id, SessionId::new(), None).unwrap()),
        ..Setup::default()
    };
    let mut team = setup.team(&after, &again).await;
    team.agent.run("what happened?", &after.ear).await;
    let lines = shown(team.agent.conversation().messages()).join("\n");
    assert!(
        lines.contains("cut off while subagents were running"),
        "{lines}"
    );
    assert!(
        lines.contains("(general-purpose): Does second errand"),
        "{lines}"
    );
    assert!(!lines.contains("Does first errand; transcript"), "{lines}");
}
