//! What an interactive front end needs: news of calls, questions with their reasons, messages that can be taken
//! back, command lines that the user types, and commands as data.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, CardSection, ContextPatch, ProgressUpdate, RuleList, RuleScope,
};
use haft_host::{
    AgentSession, CommandOutcome, CommandSource, MemoryScope, PromptDelivery, RewindKind,
    SessionEvent, SessionInput, UndoWhich, agent::AgentEvent,
};
use haft_testkit::{TempProject, until};
use serde_json::{Value, json};

use crate::rig::{Recorded, call, config, in_time, says, scripted};

fn bash(command: &str) -> Value {
    call("Bash", json!({"command": command}))
}

/// A session that is driven message by message.
struct Driven {
    recorded: Recorded,
    input: SessionInput,
    running: tokio::task::JoinHandle<Result<haft_host::SessionEnd, haft_host::OpenError>>,
}

impl Driven {
    fn begin(
        project: &TempProject,
        turns: Value,
        answers: impl Fn(&ApprovalRequest) -> ApprovalAnswer + Send + Sync + 'static,
    ) -> Self {
        let recorded = Recorded::default();
        let parts = recorded.parts().model(Arc::new(scripted(turns)));
        let session = AgentSession::open(config(project), parts.questions(answers)).unwrap();
        let input = session.input();
        let running = tokio::spawn(session.run());
        Self {
            recorded,
            input,
            running,
        }
    }

    /// Waits until so many messages are answered.
    async fn answered(&self, count: usize) {
        until("messages are answered", || {
            self.recorded.answers().len() >= count
        })
        .await;
    }

    async fn end(self) -> Recorded {
        self.input.close();
        in_time(self.running).await.unwrap().unwrap();
        self.recorded
    }
}

fn yes(_: &ApprovalRequest) -> ApprovalAnswer {
    ApprovalAnswer::Allow
}

fn no(_: &ApprovalRequest) -> ApprovalAnswer {
    ApprovalAnswer::Deny { reason: None }
}

#[tokio::test]
async fn a_call_is_reported_when_it_is_bound_and_while_it_runs() {
    let project = TempProject::new([]);
    let waits = "echo hello; until [ -e go ]; do sleep 0.05; done";
    let turns = json!([{"content": [bash(waits)]}, says("done")]);
    let driven = Driven::begin(&project, turns, yes);
    driven.input.submit("go", PromptDelivery::Steer);
    let progress = |recorded: &Recorded| {
        let all = recorded.all().into_iter();
        all.filter_map(|event| match event {
            SessionEvent::Agent(AgentEvent::Progress {
                call,
                tool_use_id,
                update: ProgressUpdate::Text { text },
            }) => Some((call, tool_use_id, text)),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    until("output is reported", || {
        !progress(&driven.recorded).is_empty()
    })
    .await;
    project.write("work/go", "");
    driven.answered(1).await;
    let recorded = driven.end().await;
    let (call, tool_use_id, text) = progress(&recorded).remove(0);
    assert_eq!(text.trim(), "hello");
    let order: Vec<&str> = recorded
        .all()
        .iter()
        .filter_map(|event| match event {
            SessionEvent::Agent(AgentEvent::CallBound {
                call: id,
                tool_use_id: named,
                tool_name,
                card,
            }) => {
                assert_eq!((*id, named, &**tool_name), (call, &tool_use_id, "Bash"));
                assert!(card.subject.contains("echo hello"), "{card}");
                Some("calling")
            }
            SessionEvent::Agent(AgentEvent::CallFinished { finished, .. }) => {
                assert_eq!(finished.call, call);
                Some("answered")
            }
            _ => None,
        })
        .collect();
    assert_eq!(order, ["calling", "answered"]);
}

#[tokio::test]
async fn messages_that_were_not_delivered_come_back() {
    let project = TempProject::new([]);
    let hangs = json!([{"content": [{"type": "text", "text": "hm"}], "hangs": true}, says("x")]);
    let driven = Driven::begin(&project, hangs, no);
    let first = driven.input.submit("go", PromptDelivery::Steer);
    until("it is at work", || {
        let all = driven.recorded.all();
        all.iter().any(|event| event.reply_text().is_some())
    })
    .await;
    let input = &driven.input;
    let ids = [
        input.submit("one", PromptDelivery::AfterRun),
        input.submit("two", PromptDelivery::Steer),
        input.submit("three", PromptDelivery::AfterRun),
    ];
    let command = input.submit("/compact", PromptDelivery::Steer);
    let listed: Vec<_> = input.queued().iter().map(|one| one.uuid).collect();
    assert_eq!(listed, [ids[1], ids[0], ids[2], command]);
    assert_eq!(input.withdraw_newest().unwrap().uuid, command);
    // Up, Up: the two newest are back, one waits.
    assert_eq!(input.withdraw_newest().unwrap().uuid, ids[2]);
    let two = input.withdraw_newest().unwrap();
    assert_eq!((two.uuid, two.delivery), (ids[1], PromptDelivery::Steer));
    assert!(input.withdraw_message(ids[1]).is_none());
    // Said again, and stopped: all of it is back in the order in which it was given, nothing is sent.
    input.submit("two again", PromptDelivery::Steer);
    let back = input.interrupt_and_withdraw();
    let texts: Vec<_> = back
        .iter()
        .map(|one| one.prompt.content[0].as_text().unwrap())
        .collect();
    assert_eq!(texts, ["one", "two again"]);
    driven.answered(1).await;
    let recorded = driven.end().await;
    assert_eq!(recorded.answers().len(), 1);
    let delivered = recorded.all().into_iter().filter_map(|event| match event {
        SessionEvent::Delivered(message) => Some(message.uuid),
        _ => None,
    });
    assert_eq!(delivered.collect::<Vec<_>>(), [first]);
}

/// On threads of its own, so that it is somewhere else each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_taken_back_or_interrupted_at_every_instant() {
    let project = TempProject::new([]);
    for step in 0..60 {
        let hangs = json!([{"content": [{"type": "text", "text": "hm"}], "hangs": true}]);
        let driven = Driven::begin(&project, hangs, no);
        let said = driven.input.submit("go", PromptDelivery::Steer);
        std::thread::sleep(Duration::from_micros(100 * step));
        let back = driven.input.interrupt_and_withdraw();
        match back.first() {
            Some(one) => assert_eq!(one.uuid, said),
            None => driven.answered(1).await,
        }
        driven.end().await;
    }
}

#[tokio::test]
async fn a_message_that_steers_is_delivered_under_its_id() {
    let project = TempProject::new([]);
    let waits = "until [ -e go ]; do sleep 0.05; done";
    let turns = json!([{"content": [bash(waits)]}, says("done")]);
    let driven = Driven::begin(&project, turns, yes);
    driven.input.submit("go", PromptDelivery::Steer);
    until("a call is made", || {
        let all = driven.recorded.all();
        all.iter()
            .any(|event| matches!(event, SessionEvent::Agent(AgentEvent::CallBound { .. })))
    })
    .await;
    let id = driven.input.submit("and this", PromptDelivery::Steer);
    project.write("work/go", "");
    driven.answered(1).await;
    let recorded = driven.end().await;
    let added = recorded.all().into_iter().any(
        |event| matches!(event, SessionEvent::Agent(AgentEvent::MessageInjected { uuid, .. }) if uuid == id),
    );
    assert!(added);
}

#[tokio::test]
async fn a_command_line_that_a_person_types_runs_unasked_unless_it_is_denied() {
    let project = TempProject::new([]);
    let driven = Driven::begin(&project, json!([says("I see")]), no);
    driven.input.run_shell("touch made.txt && echo typed");
    driven.answered(1).await;
    assert!(project.path("work/made.txt").exists());
    let recorded = driven.end().await;
    assert_eq!(recorded.answers(), ["I see"]);
    assert!(recorded.results()[0].contains("typed"));

    let deny = r#"{"permissions": {"deny": ["Bash"]}, "respondToBashCommands": false}"#;
    let project = TempProject::new([("home/.claude/settings.json", deny)]);
    let driven = Driven::begin(&project, json!([says("never asked")]), yes);
    driven.input.run_shell("touch made.txt");
    driven.answered(1).await;
    let recorded = driven.end().await;
    assert!(!project.path("work/made.txt").exists());
    assert_eq!(recorded.answers(), [""]);
    let said = recorded.results();
    assert!(said[0].contains("denied"), "{said:?}");
}

#[tokio::test]
async fn a_question_says_what_why_and_where_an_answer_can_be_kept() {
    let project = TempProject::new([("work/a.txt", "one\ntwo\nthree\n")]);
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"});
    let turns = json!([
        {"content": [call("Read", json!({"file_path": "a.txt"}))]},
        {"content": [call("Edit", edit), bash("ls && touch made > out.log")]},
        says("done"),
    ]);
    let asked: Arc<Mutex<Vec<ApprovalRequest>>> = Arc::default();
    let to = Arc::clone(&asked);
    let driven = Driven::begin(&project, turns, move |request| {
        to.lock().unwrap().push(request.clone());
        match request.tool.as_str() {
            "Bash" => ApprovalAnswer::Updated {
                input: None,
                patches: Vec::<ContextPatch>::new(),
                keep: vec!["Bash(touch *)".to_owned()],
                scope: Some(RuleScope::Project),
            },
            _ => ApprovalAnswer::Allow,
        }
    });
    driven.input.submit("go", PromptDelivery::Steer);
    driven.answered(1).await;
    let recorded = driven.end().await;
    let asked = asked.lock().unwrap();
    let edit = asked.iter().find(|one| one.tool == "Edit").unwrap();
    let CardSection::Diff(hunks) = &edit.preview.as_ref().unwrap().body[0] else {
        panic!("no diff: {:?}", edit.preview);
    };
    assert_eq!((hunks[0].old_start, hunks[0].lines.len()), (1, 4));
    assert!(edit.parts.is_empty() && edit.confinement.is_none());
    let bash = asked.iter().find(|one| one.tool == "Bash").unwrap();
    let parts: Vec<_> = bash
        .parts
        .iter()
        .map(|part| (&*part.text, &*part.meaning, part.asks))
        .collect();
    assert_eq!(parts[0], ("ls", "harmless", false));
    assert!(parts[1].2 && parts[1].1.contains("writes"), "{parts:?}");
    assert!(!bash.reasons.is_empty());
    assert!(bash.confinement.as_ref().unwrap().starts_with("profile "));
    let scopes: Vec<_> = bash
        .destinations
        .iter()
        .map(|place| place.scope.name())
        .collect();
    assert_eq!(scopes, ["local", "project", "user", "session"]);
    let kept = project.read("work/.claude/settings.json");
    assert!(kept.contains("Bash(touch *)"), "{kept}");
    let file = recorded.all().into_iter().find_map(|event| match event {
        SessionEvent::RulesKept { file, problem } => Some((file, problem)),
        _ => None,
    });
    let expected = project.path("work/.claude/settings.json");
    assert_eq!(file, Some((expected, None)));
}

#[tokio::test]
async fn what_a_person_changes_is_judged_again() {
    let project = TempProject::new([("home/kept.txt", "kept")]);
    let home = project.path("home");
    let changed = format!("rm -rf {}", home.display());
    let turns = json!([{"content": [bash("touch made")]}, says("done")]);
    let driven = Driven::begin(&project, turns, move |_| ApprovalAnswer::InputEdited {
        input: json!({"command": changed}),
    });
    driven.input.submit("go", PromptDelivery::Steer);
    driven.answered(1).await;
    let recorded = driven.end().await;
    let said = recorded.results();
    assert!(
        said[0].contains("denied") && said[0].contains("would remove"),
        "{said:?}"
    );
    assert_eq!(project.read("home/kept.txt"), "kept");
}

#[tokio::test]
async fn commands_that_only_read_act_at_once_and_others_wait() {
    let command = "---\ndescription: Theirs\n---\nSay help.";
    let project = TempProject::new([("home/.claude/commands/help.md", command)]);
    let hangs = json!([{"content": [{"type": "text", "text": "hm"}], "hangs": true}]);
    let driven = Driven::begin(&project, hangs, no);
    let commands = driven.input.commands();
    let named = |name: &str| commands.iter().find(|one| one.name == name);
    assert_eq!(named("help").unwrap().source, CommandSource::BuiltIn);
    assert!(named("help").unwrap().read_only && !named("compact").unwrap().read_only);
    assert_eq!(named("user:help").unwrap().source, CommandSource::Command);
    let before = driven.input.command("/status").await;
    assert!(matches!(before, CommandOutcome::Answered(Ok(text)) if text.contains("not begun")));
    driven.input.submit("go", PromptDelivery::Steer);
    until("it is at work", || {
        let all = driven.recorded.all();
        all.iter().any(|event| event.reply_text().is_some())
    })
    .await;
    for line in [
        "/help", "/context", "/cost", "/status", "/hooks", "/mcp", "/tasks", "/memory",
    ] {
        let outcome = driven.input.command(line).await;
        assert!(
            matches!(outcome, CommandOutcome::Answered(Ok(_))),
            "{line}: {outcome:?}"
        );
    }
    for line in ["/compact", "/rename", "/nothing", "no command"] {
        let outcome = driven.input.command(line).await;
        match line {
            "/compact" => assert!(matches!(outcome, CommandOutcome::Queued(_))),
            "/rename" => assert!(matches!(outcome, CommandOutcome::Answered(Err(_)))),
            _ => assert_eq!(outcome, CommandOutcome::Unknown),
        }
    }
    assert_eq!(driven.input.queued().len(), 1);
    driven.input.interrupt_and_withdraw();
    driven.answered(1).await;
    driven.end().await;
}

#[tokio::test]
async fn changes_are_listed_taken_back_and_made_again() {
    let project = TempProject::new([("work/a.txt", "old\n")]);
    let turns = json!([
        {"content": [bash("printf 'new\\n' > a.txt")]},
        says("done"),
    ]);
    let driven = Driven::begin(&project, turns, yes);
    let message = driven.input.submit("change it", PromptDelivery::Steer);
    driven.answered(1).await;
    assert_eq!(project.read("work/a.txt"), "new\n");
    let input = &driven.input;
    let entry = input.undo_list().unwrap().remove(0);
    assert_eq!(entry.message, Some((message, "change it".to_owned())));
    assert_eq!((entry.tool.as_str(), entry.files.len()), ("Bash", 1));
    let preview = input.undo(&UndoWhich::Since(message), true).unwrap();
    assert_eq!(preview.cards.len(), 1);
    assert_eq!(project.read("work/a.txt"), "new\n");
    let CommandOutcome::Answered(Ok(diff)) = input.command("/diff").await else {
        panic!("no diff");
    };
    assert!(diff.contains("-old\n+new"), "{diff}");
    let undone = input.undo(&UndoWhich::Since(message), false).unwrap();
    assert_eq!(project.read("work/a.txt"), "old\n");
    let redo = UndoWhich::Entry(undone.redo.unwrap());
    input.undo(&redo, false).unwrap();
    assert_eq!(project.read("work/a.txt"), "new\n");
    driven.end().await;
}

#[tokio::test]
async fn going_back_says_first_what_changes_and_can_be_taken_back() {
    let project = TempProject::new([]);
    let write = json!({"file_path": "a.txt", "content": "x"});
    let turns = json!([
        says("one"),
        {"content": [call("Write", write)]},
        says("two"),
        says("three"),
    ]);
    let driven = Driven::begin(&project, turns, yes);
    let first = driven.input.submit("first", PromptDelivery::AfterRun);
    driven.answered(1).await;
    let second = driven.input.submit("second", PromptDelivery::AfterRun);
    driven.answered(2).await;
    let points = driven.input.rewind_points().unwrap();
    let said: Vec<_> = points
        .iter()
        .map(|point| (point.uuid, &*point.text))
        .collect();
    assert_eq!(said, [(first, "first"), (second, "second")]);
    assert_eq!(points[1].files.len(), 1);
    // Without a word on how, nothing changes.
    driven
        .input
        .submit(format!("/rewind {second}"), PromptDelivery::AfterRun);
    driven.answered(3).await;
    assert!(project.path("work/a.txt").exists());
    assert_eq!(driven.input.rewind_points().unwrap().len(), 2);
    driven.input.rewind_to(second, RewindKind::Both);
    driven.answered(4).await;
    assert!(!project.path("work/a.txt").exists());
    assert_eq!(driven.input.rewind_points().unwrap().len(), 1);
    let answer = driven.recorded.answers().pop().unwrap();
    let back = answer.split("/rewind ").last().unwrap().to_owned();
    driven
        .input
        .submit(format!("/rewind {back}"), PromptDelivery::AfterRun);
    driven.answered(5).await;
    assert_eq!(driven.input.rewind_points().unwrap().len(), 2, "{answer}");
    let recorded = driven.end().await;
    let rewound = recorded.all().into_iter().any(|event| {
        matches!(event, SessionEvent::Rewound { to, kind: RewindKind::Both } if to == second)
    });
    assert!(rewound);
}

#[tokio::test]
async fn what_is_remembered_and_permitted_stands_in_the_file_that_was_chosen() {
    let project = TempProject::new([]);
    let driven = Driven::begin(&project, json!([says("one")]), no);
    let input = &driven.input;
    // Also before the first message.
    let file = input
        .append_memory("use tabs", MemoryScope::Project)
        .unwrap();
    assert_eq!(file, project.path("work/CLAUDE.md"));
    input
        .append_memory("and spaces", MemoryScope::Project)
        .unwrap();
    assert_eq!(project.read("work/CLAUDE.md"), "- use tabs\n- and spaces\n");
    assert!(input.memory_files()[0].exists);
    assert!(
        input
            .save_rule(RuleList::Allow, "Bash(", RuleScope::User)
            .is_err()
    );
    let kept = input.save_rule(RuleList::Deny, "Bash(curl *)", RuleScope::User);
    let kept = kept.unwrap().unwrap();
    assert_eq!(kept, project.path("home/.claude/settings.json"));
    let rules = input.rules().unwrap();
    assert_eq!(rules[0].rule, "Bash(curl *)");
    assert_eq!(rules[0].file.as_deref(), Some(&*kept));
    let CommandOutcome::Answered(Ok(text)) = input.command("/permissions try curl x").await else {
        panic!("no answer");
    };
    assert!(text.starts_with("deny: "), "{text}");
    driven.end().await;
}

#[tokio::test]
async fn an_earlier_conversation_goes_on_in_place_of_this_one() {
    let project = TempProject::new([]);
    let first = Driven::begin(&project, json!([says("one")]), no);
    first
        .input
        .submit("the first talk", PromptDelivery::AfterRun);
    first.answered(1).await;
    let id = first.input.session_id().unwrap();
    first.end().await;
    let second = Driven::begin(&project, json!([says("two"), says("three")]), no);
    second
        .input
        .submit("another talk", PromptDelivery::AfterRun);
    second.answered(1).await;
    let listed = second.input.session_entries(false).unwrap();
    assert_eq!(listed.len(), 2);
    second
        .input
        .submit(format!("/resume {id}"), PromptDelivery::AfterRun);
    second.answered(2).await;
    second.input.submit("go on", PromptDelivery::AfterRun);
    second.answered(3).await;
    assert_eq!(second.input.session_id(), Some(id));
    let path = second.input.transcript_path().unwrap();
    let said = haft_host::exchanges(&path, 3).unwrap();
    let prompts: Vec<_> = said.shown.iter().map(|one| &*one.prompt).collect();
    assert_eq!(prompts, ["the first talk", "go on"]);
    assert_eq!(said.earlier, 0);
    for file in ["talk.md", "talk.html"] {
        let written = second.input.command(&format!("/export {file}")).await;
        assert!(
            matches!(written, CommandOutcome::Answered(Ok(_))),
            "{written:?}"
        );
        let text = project.read(&format!("work/{file}"));
        assert!(text.contains("the first talk"), "{text}");
    }
    second.end().await;
}

#[tokio::test]
async fn a_question_says_where_a_link_leads() {
    let project = TempProject::new([]);
    project.write("home/notes.txt", "private\n");
    project.write("home/plain.txt", "private\n");
    std::fs::create_dir_all(project.path("work")).unwrap();
    let link = project.path("work/link.txt");
    std::os::unix::fs::symlink(project.path("home/notes.txt"), &link).unwrap();
    let read = |path: &std::path::Path| call("Read", json!({"file_path": path}));
    let reads = [read(&link), read(&project.path("home/plain.txt"))];
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let answers = move |request: &ApprovalRequest| {
        noted
            .lock()
            .unwrap()
            .push(request.resolved_elsewhere.clone());
        ApprovalAnswer::Deny { reason: None }
    };
    let turns = json!([{"content": reads}, says("done")]);
    let driven = Driven::begin(&project, turns, answers);
    driven.input.submit("go", PromptDelivery::Steer);
    driven.answered(1).await;
    driven.end().await;
    let leads = project.path("home/notes.txt").canonicalize().unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(asked.contains(&vec![(link, leads)]), "{asked:?}");
    assert!(asked.contains(&Vec::new()), "{asked:?}");
}

#[tokio::test]
async fn hooks_hear_that_a_person_who_looks_elsewhere_is_waited_for() {
    let project = TempProject::new([]);
    let command = "cat > told.tmp; mv told.tmp told.json";
    let settings = json!({"hooks": {"Notification": [
        {"matcher": "idle_prompt", "hooks": [{"type": "command", "command": command}]},
        {"matcher": "permission_prompt", "hooks": [{"type": "command", "command": "touch other"}]},
    ]}});
    project.write("home/.claude/settings.json", settings.to_string());
    let driven = Driven::begin(&project, json!([says("done")]), no);
    driven.input.submit("go", PromptDelivery::Steer);
    driven.answered(1).await;
    in_time(driven.input.notify_waiting_for_user("It is done")).await;
    let told = project.path("work/told.json");
    until("the hook ran", || told.exists()).await;
    driven.end().await;
    let told: Value = serde_json::from_str(&project.read("work/told.json")).unwrap();
    assert_eq!(told["notification_type"], "idle_prompt");
    assert_eq!(told["message"], "It is done");
    assert!(!project.path("work/other").exists());
}
