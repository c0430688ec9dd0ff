use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_contract::{BoxFuture, CallContext, ProgressUpdate};
use haft_mcp::client::{ApprovedTools, ServerEntry, ToolApprovals};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

use crate::setting::{Setting, entry, has_python, text};

async fn one(modes: &[&str]) -> Setting {
    Setting::new(&json!({"s": entry(modes)})).settled().await
}

#[tokio::test]
async fn a_server_is_connected_listed_page_by_page_and_called() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    assert_eq!(setting.status("s"), ("connected".to_owned(), None));
    let list = setting.servers.list();
    let server = &list.servers[0];
    assert_eq!(server.revision, Some("2025-06-18"));
    assert_eq!(server.instructions.as_deref(), Some("Be kind."));
    assert_eq!(server.tools.as_ref().map(Vec::len), Some(3));
    let said = setting
        .call("mcp__s__echo", json!({"text": "a\nb"}))
        .await
        .unwrap();
    assert_eq!(text(&said), "a\nb");
    let told: Value = serde_json::from_str(&setting.act("").await).unwrap();
    let cwd = setting.dir.path().canonicalize().unwrap();
    assert_eq!(told["env"]["CLAUDECODE"], "1");
    assert_eq!(told["env"]["OWN"], "mine");
    assert_eq!(
        told["env"]["CLAUDE_PROJECT_DIR"],
        setting.dir.path().to_str().unwrap()
    );
    assert_eq!(told["cwd"], cwd.to_str().unwrap());
    setting.servers.close().await;
}

#[tokio::test]
async fn the_stateless_revision_is_spoken_where_a_server_knows_it() {
    if !has_python() {
        return;
    }
    let setting = one(&["modern"]).await;
    assert_eq!(
        setting.servers.list().servers[0].revision,
        Some("2026-07-28")
    );
    let told: Value = serde_json::from_str(&setting.act("").await).unwrap();
    assert_eq!(
        told["meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        told["meta"]["io.modelcontextprotocol/clientInfo"]["name"],
        "haft"
    );
    // It gets the answer it wants first, and is asked again.
    let asked = setting.act("ask").await;
    assert_eq!(
        asked,
        r#"[{"k": {"action": "accept", "content": {"name": "Ada", "n": 7}}}, "s1"]"#
    );
}

#[tokio::test]
async fn a_server_that_ends_when_it_is_asked_about_revisions_is_greeted_the_old_way() {
    if !has_python() {
        return;
    }
    let setting = one(&["strict"]).await;
    assert_eq!(setting.status("s").0, "connected");
    assert!(setting.person.warnings.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_revision_that_no_one_knows_is_a_failure() {
    if !has_python() {
        return;
    }
    let setting = one(&["odd"]).await;
    let (status, error) = setting.status("s");
    assert_eq!(status, "failed");
    assert!(error.unwrap().contains("1999-01-01"));
}

#[tokio::test]
async fn one_bad_server_hurts_no_other() {
    if !has_python() {
        return;
    }
    let named = json!({
        "good": entry(&[]),
        "dead": entry(&["dies"]),
        "never": entry(&["silent"]),
        "missing": {"command": "no-such-program-anywhere"},
    });
    let setting = Setting::with(&named, |options| options.connect = Duration::from_secs(6))
        .settled()
        .await;
    assert_eq!(setting.status("good").0, "connected");
    let dead = setting.status("dead").1.unwrap();
    assert!(
        dead.contains("exit status: 1") && dead.contains("cannot work here"),
        "{dead}"
    );
    assert!(
        setting
            .status("never")
            .1
            .unwrap()
            .contains("did not answer within 6s")
    );
    assert!(
        setting
            .status("missing")
            .1
            .unwrap()
            .contains("in no folder of PATH")
    );
    assert_eq!(setting.person.warnings.lock().unwrap().len(), 3);
    setting.servers.close().await;
}

#[tokio::test]
async fn what_a_server_does_wrong_is_survived_and_said() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    assert_eq!(setting.act("nonsense").await, "still here");
    let huge = setting.act("huge").await;
    assert!(huge.contains("bytes; the limit is 33554432"), "{huge}");
    assert_eq!(setting.act("flood").await, "loud");
    assert_eq!(
        setting.act("refuse").await,
        "error: the server s: refused by the server"
    );
    let failed = setting
        .call("mcp__s__act", json!({"what": "error"}))
        .await
        .unwrap();
    assert!(failed.failed && text(&failed) == "no luck");
    assert_eq!(setting.act("structured").await, r#"{"n":1}"#);
    // All of it was one problem worth a word, and the connection is the same.
    assert_eq!(setting.person.warnings.lock().unwrap().len(), 1);
    assert_eq!(setting.status("s").0, "connected");
}

/// What people are shown of a server that does not work, or talks too much.
#[tokio::test]
async fn the_last_lines_that_a_server_writes_or_logs_are_kept() {
    if !has_python() {
        return;
    }
    let log = |setting: &Setting| setting.servers.list().servers[0].log.clone();
    let dead = one(&["dies"]).await;
    assert_eq!(dead.status("s").0, "failed");
    assert_eq!(log(&dead), ["cannot work here"]);
    dead.servers.close().await;
    let setting = one(&[]).await;
    assert!(log(&setting).is_empty());
    assert_eq!(setting.act("log").await, "logged");
    let logged = log(&setting);
    assert_eq!(logged.len(), 20);
    assert_eq!(logged[18..], ["[warning] step 49", "[info] {\"odd\":1}"]);
    // What a server wrote is still there when it is gone.
    assert!(setting.act("crash").await.contains("going down now"));
    assert_eq!(log(&setting)[0], "going down now");
    setting.servers.close().await;
}

#[tokio::test]
async fn a_crash_is_reported_once_and_the_server_started_again() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    let before = setting.call("mcp__s__pid", json!({})).await.unwrap();
    let crashed = setting.act("crash").await;
    assert!(
        crashed.contains("disconnected during the call"),
        "{crashed}"
    );
    assert!(crashed.contains("going down now"), "{crashed}");
    // A call waits for it.
    let after = setting.call("mcp__s__pid", json!({})).await.unwrap();
    assert_ne!(text(&before), text(&after));
    assert_eq!(setting.person.notices.lock().unwrap().len(), 1);
}

/// Someone who thinks about each changed list until they are let go.
#[derive(Default)]
struct SlowPerson {
    thinks: AtomicBool,
    asked: Notify,
}

impl ToolApprovals for SlowPerson {
    fn may_start<'a>(&'a self, _: &'a ServerEntry) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn approved<'a>(
        &'a self,
        _: &'a ServerEntry,
        tools: Vec<Value>,
    ) -> BoxFuture<'a, ApprovedTools> {
        Box::pin(async move {
            if self.thinks.load(Ordering::SeqCst) {
                self.asked.notify_one();
                std::future::pending::<()>().await;
            }
            tools.into()
        })
    }
}

#[tokio::test]
async fn a_server_that_crashes_while_a_person_is_asked_about_it_is_started_again() {
    if !has_python() {
        return;
    }
    let person = Arc::new(SlowPerson::default());
    let approvals = Arc::clone(&person) as Arc<dyn ToolApprovals>;
    let named = json!({"s": entry(&[])});
    let setting = Setting::with(&named, |options| options.approvals = Some(approvals));
    let setting = setting.settled().await;
    person.thinks.store(true, Ordering::SeqCst);
    assert_eq!(setting.act("grow").await, "grown");
    let asked = timeout(Duration::from_secs(60), person.asked.notified()).await;
    asked.expect("the changed list is asked about");
    person.thinks.store(false, Ordering::SeqCst);
    let crashed = setting.act("crash").await;
    assert!(
        crashed.contains("disconnected during the call"),
        "{crashed}"
    );
    let after = setting.call("mcp__s__echo", json!({"text": "here"})).await;
    assert_eq!(text(&after.unwrap()), "here");
    setting.servers.close().await;
}

#[tokio::test]
async fn progress_is_reported_and_an_interrupt_ends_a_call() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    let (output, mut updates) = setting
        .call_in("mcp__s__act", json!({"what": "progress"}))
        .await;
    assert_eq!(text(&output.unwrap()), "went on");
    let first = updates.recv().await.map(|(_, update)| update);
    assert_eq!(
        first,
        Some(ProgressUpdate::Step {
            done: 1,
            total: Some(3)
        })
    );

    let (cx, _updates) = CallContext::for_test(setting.dir.path());
    let call = setting
        .tool("mcp__s__act")
        .bind(json!({"what": "hang"}))
        .unwrap();
    let cancel = cx.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let ended = call.call(&cx).await.unwrap_err();
    assert_eq!(ended.to_string(), "cancelled");
    let said = setting
        .call("mcp__s__echo", json!({"text": "on"}))
        .await
        .unwrap();
    assert_eq!(text(&said), "on");
}

#[tokio::test]
async fn a_call_without_a_word_ends_at_its_limit() {
    if !has_python() {
        return;
    }
    let mut slow = entry(&[]);
    slow["timeout"] = json!(1000);
    let setting = Setting::new(&json!({"s": slow})).settled().await;
    let late = setting.act("hang").await;
    assert!(late.contains("it did not answer within 1s"), "{late}");
    let quick = |options: &mut haft_mcp::client::ClientOptions| {
        options.idle = Some(Duration::from_millis(300))
    };
    let setting = Setting::with(&json!({"s": entry(&[])}), quick)
        .settled()
        .await;
    let idle = setting.act("hang").await;
    assert!(idle.contains("it reported nothing for 300ms"), "{idle}");
}

#[tokio::test]
async fn what_a_server_asks_is_answered() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    let roots: Value = serde_json::from_str(&setting.act("roots").await).unwrap();
    assert_eq!(
        roots["roots"][0],
        json!({"uri": "file:///work%20space", "name": "work space"})
    );
    let asked: Value = serde_json::from_str(&setting.act("ask").await).unwrap();
    assert_eq!(
        asked,
        json!({"action": "accept", "content": {"name": "Ada", "n": 7}})
    );
    assert!(
        setting
            .act("sample")
            .await
            .contains("does not support sampling")
    );
    assert_eq!(setting.act("ping").await, "{}");
}

#[tokio::test]
async fn a_changed_list_is_asked_for_again_and_the_last_one_is_kept() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    let (_, mut seen) = setting.servers.tools();
    setting.act("grow").await;
    let waiting = setting.servers.tool_changes(&mut seen);
    let changes = timeout(Duration::from_secs(60), waiting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(changes[0].server, "s");
    assert_eq!(changes[0].tools.len(), 4);
    // The next session knows them before its server is up.
    let cache = setting.dir.path().join("cache");
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    let next = Setting::with(&json!({"s": entry(&[])}), |options| {
        options.cache = Some(cache)
    });
    assert_eq!(next.status("s").0, "pending");
    assert_eq!(next.tool("mcp__s__more1").spec().name, "mcp__s__more1");
    // A call waits for the server.
    let said = next
        .call("mcp__s__echo", json!({"text": "early"}))
        .await
        .unwrap();
    assert_eq!(text(&said), "early");
}

#[tokio::test]
async fn servers_are_switched_off_on_and_set_while_a_session_runs() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    setting.servers.toggle("s", false).await.unwrap();
    assert_eq!(setting.status("s").0, "disabled");
    assert!(setting.servers.tools().0.is_empty());
    setting.servers.toggle("s", true).await.unwrap();
    setting.servers.reconnect("s").await.unwrap();
    assert_eq!(setting.status("s").0, "connected");
    assert!(
        setting
            .servers
            .reconnect("x")
            .await
            .unwrap_err()
            .contains("the servers are s")
    );
    let wanted = json!({"t": entry(&[]), "bad": 1});
    let set = setting.servers.set(wanted.as_object().unwrap()).await;
    assert_eq!((set.added, set.errors.len()), (vec!["t".to_owned()], 1));
    let said = setting.servers.server("t").unwrap().connected().await;
    assert!(said.is_ok());
    let set = setting.servers.set(json!({}).as_object().unwrap()).await;
    assert_eq!(set.removed, ["t"]);
    assert!(setting.servers.has("s") && !setting.servers.has("t"));
}

#[tokio::test]
async fn prompts_and_resources_are_there_for_people_and_models() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    let prompts = setting.servers.prompts();
    assert_eq!(prompts[0].command, "mcp__s__greet");
    assert_eq!(prompts[0].argument_hint, "<who> [how]");
    let given = ["Ada".to_owned(), "very".to_owned(), "warmly".to_owned()];
    let folder = setting.dir.path();
    let said = setting
        .servers
        .prompt("mcp__s__greet", &given, folder)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        said[0].as_text(),
        Some(r#"Greet {"who": "Ada", "how": "very warmly"}"#)
    );
    let missing = setting
        .servers
        .prompt("mcp__s__greet", &[], folder)
        .await
        .unwrap();
    assert!(missing.unwrap_err().contains("needs the argument who"));
    assert!(
        setting
            .servers
            .prompt("mcp__s__x", &[], folder)
            .await
            .is_none()
    );

    let tools = haft_mcp::client::resource_tools(&setting.servers, folder.to_path_buf());
    let (cx, _updates) = CallContext::for_test(folder);
    let list = Arc::clone(&tools[0])
        .bind(json!({}))
        .unwrap()
        .call(&cx)
        .await
        .unwrap();
    assert_eq!(text(&list), r#"[{"uri":"x://a","name":"A","server":"s"}]"#);
    let read = json!({"server": "s", "uri": "x://a"});
    let read = Arc::clone(&tools[1])
        .bind(read)
        .unwrap()
        .call(&cx)
        .await
        .unwrap();
    assert_eq!(
        text(&read),
        r#"{"contents":[{"uri":"x://a","text":"inside"}]}"#
    );
    let unknown = json!({"server": "x", "uri": "x://a"});
    let unknown = Arc::clone(&tools[1])
        .bind(unknown)
        .unwrap()
        .call(&cx)
        .await
        .unwrap_err();
    assert!(
        unknown.to_string().contains("the servers are s"),
        "{unknown}"
    );
    let unknown = Arc::clone(&tools[0])
        .bind(json!({"server": "x"}))
        .unwrap()
        .call(&cx)
        .await
        .unwrap_err();
    assert!(
        unknown.to_string().contains("the servers are s"),
        "{unknown}"
    );
}

#[tokio::test]
async fn hundreds_of_calls_leave_nothing_behind() {
    if !has_python() {
        return;
    }
    let setting = one(&[]).await;
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let connection = setting
        .servers
        .server("s")
        .unwrap()
        .connected()
        .await
        .unwrap();
    let before = files();
    for n in 0..500 {
        let input = json!({"text": n.to_string()});
        let answer = connection
            .call_tool("echo", &input, Default::default(), |_| {})
            .await
            .unwrap();
        assert_eq!(answer["content"][0]["text"], n.to_string());
    }
    // Other tests of this process open files meanwhile; one left behind by each call would be 500.
    let after = files();
    assert!(after < before + 250, "{before} open files became {after}");
}
