//! Hooks that run beside the session: no one waits for them, and what they say comes later.

use std::sync::{Arc, Mutex};

use haft_engine::{
    hooks::{AsyncHookOutput, HookEventSink, HookOutcome, HookRunEvent, HookStage, Hooks},
    permissions::SettingsScope,
};
use haft_testkit::until;
use serde_json::{Value, json};

use super::Rig;

#[derive(Default)]
pub(super) struct Ear(pub(super) Mutex<Vec<HookRunEvent>>);

impl HookEventSink for Ear {
    fn on_event(&self, news: &HookRunEvent) {
        self.0.lock().unwrap().push(news.clone());
    }
}

fn beside(command: &str, field: &str) -> Value {
    let hook = json!({"type": "command", "command": command, field: true});
    json!({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]})
}

/// Waits until something is said.
async fn late(rig: &Rig) -> Vec<AsyncHookOutput> {
    let mut late = Vec::new();
    until("a hook says something", || {
        late = rig.scheduler.engine().hooks().take_async_outputs();
        !late.is_empty()
    })
    .await;
    late
}

#[tokio::test]
async fn nobody_waits_for_it_and_its_word_comes_later_without_a_decision() {
    let said = json!({
        "systemMessage": "m",
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "additionalContext": "c",
        },
    });
    // It ends only after the call has: waiting for it would never end.
    let command = format!("until [ -e ran ]; do sleep 0.01; done; echo '{said}'");
    let mut rig = Rig::new(&[(SettingsScope::User, beside(&command, "async"))], &[]).await;
    assert!(!rig.bash("touch ran").await.is_error);
    let expected = AsyncHookOutput {
        context: Some("c".to_owned()),
        message: Some("m".to_owned()),
        wakes: false,
    };
    assert_eq!(late(&rig).await, [expected]);
}

#[tokio::test]
async fn an_objection_wakes_the_model_where_that_is_wanted() {
    for (command, field, expected) in [
        ("echo why >&2; exit 2", "asyncRewake", Some("why")),
        ("echo why; exit 2", "asyncRewake", Some("why")),
        ("exit 2", "async", None),
        ("exit 1", "asyncRewake", None),
    ] {
        let command = format!("echo over > over; {command}");
        let mut rig = Rig::new(&[(SettingsScope::User, beside(&command, field))], &[]).await;
        rig.bash("echo 1").await;
        let hooks = rig.scheduler.engine().hooks().clone();
        match expected {
            Some(why) => {
                hooks.wait_for_wake().await;
                assert!(hooks.has_waker());
                let said = hooks.take_async_outputs();
                assert_eq!(said[0].context.as_deref(), Some(why), "{command}");
                assert!(said[0].wakes && !hooks.has_waker());
            }
            None => {
                until("it is over", || rig.ran("over")).await;
                assert!(!hooks.has_waker(), "{command}");
            }
        }
    }
}

#[tokio::test]
async fn it_ends_with_the_session() {
    let ear = Arc::new(Ear::default());
    let heard = Arc::clone(&ear);
    let files = [(
        SettingsScope::User,
        beside("echo $$ > pid; sleep 600", "async"),
    )];
    let with = |hooks: Hooks| hooks.with_event_sink(heard);
    let mut rig = Rig::with(&files, &[], with, |builder| builder).await;
    rig.bash("echo 1").await;
    let path = rig.project.path("work/pid");
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    until("the hook says its number", || read().ends_with('\n')).await;
    let pid = read().trim().to_owned();
    rig.scheduler.engine().hooks().shutdown().await;
    let alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    until("it is gone", || !alive()).await;
    let heard = ear.0.lock().unwrap();
    let last = &heard.last().unwrap().stage;
    let HookStage::Ended { outcome, .. } = last else {
        panic!("{last:?}");
    };
    assert_eq!(*outcome, HookOutcome::Cancelled);
}
