//! Settings files that change while a session runs: it gets stricter, never looser.

use std::{fs, sync::Arc};

use haft_contract::{Content, PermissionMode};
use haft_engine::{
    Engine, Scheduler, SessionContext, ToolRegistry,
    settings::{SettingsFlags, SettingsWatch},
};
use haft_testkit::toy_tools;
use serde_json::json;

use crate::{
    machine::{LOCAL, MANAGED, Machine, PROJECT, USER, texts},
    rig::tool_use,
};

struct Session {
    machine: Machine,
    scheduler: Scheduler,
}

impl Session {
    async fn new(machine: Machine) -> Self {
        let context = machine.context();
        Self::with(machine, context, SettingsFlags::default()).await
    }

    async fn with(machine: Machine, context: SessionContext, flags: SettingsFlags) -> Self {
        machine.files.write("p/a.txt", "alpha\n");
        let mut registry = ToolRegistry::new();
        for toy in toy_tools::all() {
            registry.add_erased(toy).unwrap();
        }
        let (engine, _) = Engine::builder(registry, machine.files.path("session"))
            .settings_watch(SettingsWatch::new(machine.places.clone(), flags))
            .build()
            .await;
        Self {
            scheduler: Arc::clone(&engine).scheduler(context),
            machine,
        }
    }

    /// What the model reads of a call.
    async fn call(&mut self, tool: &str, path: &str) -> String {
        let input = match tool {
            "Append" => json!({"path": path, "line": "x"}),
            _ => json!({ "path": path }),
        };
        let mut turn = self.scheduler.start_batch().await;
        turn.push(tool_use(tool, input));
        let finished = turn.next().await.unwrap();
        let texts: Vec<_> = finished
            .content
            .iter()
            .filter_map(Content::as_text)
            .collect();
        texts.join("\n")
    }

    fn rules(&self) -> Vec<String> {
        texts(&self.scheduler.context().rules)
    }
}

#[tokio::test]
async fn a_rule_that_denies_counts_from_the_next_turn_on() {
    for file in [USER, PROJECT, LOCAL, MANAGED] {
        let mut session = Session::new(Machine::new([])).await;
        assert_eq!(session.call("Peek", "a.txt").await, "alpha\n");
        let deny = r#"{"permissions": {"deny": ["Read(a.txt)"]}}"#;
        session.machine.files.write(file, deny);
        let answer = session.call("Peek", "a.txt").await;
        assert!(
            answer.contains("denied by rule Read(a.txt)"),
            "{file}: {answer}"
        );
        // One that goes away again stays in force: the one who can write the file could let themselves
        // do anything.
        fs::remove_file(session.machine.files.path(file)).unwrap();
        let answer = session.call("Peek", "a.txt").await;
        assert!(answer.contains("denied by rule"), "{file}: {answer}");
    }
}

#[tokio::test]
async fn a_rule_that_allows_waits_for_the_next_session() {
    let mut session = Session::new(Machine::new([])).await;
    session.machine.trust();
    for file in [USER, PROJECT, LOCAL, MANAGED] {
        let allow = r#"{"permissions": {"allow": ["Append", "Edit"], "defaultMode": "bypassPermissions", "additionalDirectories": ["/"]}}"#;
        session.machine.files.write(file, allow);
        let answer = session.call("Append", "a.txt").await;
        assert!(answer.contains("was not granted"), "{file}: {answer}");
    }
    assert_eq!(session.rules(), [""; 0]);
    assert_eq!(session.scheduler.context().mode, PermissionMode::Default);
    assert_eq!(session.machine.files.read("p/a.txt"), "alpha\n");
}

#[tokio::test]
async fn a_rule_that_allowed_and_is_taken_out_allows_no_more() {
    let allow = r#"{"permissions": {"allow": ["mcp__a", "Append"]}}"#;
    let mut session = Session::new(Machine::new([(USER, allow)])).await;
    assert_eq!(session.call("Append", "a.txt").await, "was 6 bytes");
    // In the middle of an edit nothing can be told, so nothing changes.
    session.machine.files.write(USER, &allow[..20]);
    assert_eq!(session.call("Append", "a.txt").await, "was 8 bytes");
    let fewer = r#"{"permissions": {"allow": ["mcp__a"]}}"#;
    session.machine.files.write(USER, fewer);
    let answer = session.call("Append", "a.txt").await;
    assert!(answer.contains("was not granted"), "{answer}");
    assert_eq!(session.rules(), ["allow mcp__a"]);
    // Back again it counts in the next session.
    session.machine.files.write(USER, allow);
    assert!(
        session
            .call("Append", "a.txt")
            .await
            .contains("was not granted")
    );
}

#[tokio::test]
async fn a_drop_in_that_only_changes_is_seen() {
    let file = "etc/managed-settings.d/10.json";
    let mut session = Session::new(Machine::new([(file, "{}")])).await;
    assert_eq!(session.call("Peek", "a.txt").await, "alpha\n");
    let deny = r#"{"permissions": {"deny": ["Peek"]}}"#;
    session.machine.files.write(file, deny);
    assert!(
        session
            .call("Peek", "a.txt")
            .await
            .contains("denied by rule Peek")
    );
}

#[tokio::test]
async fn the_file_of_the_flag_is_watched_too() {
    let machine = Machine::new([("p/given.json", "{}")]);
    let context = machine.context();
    let flags = SettingsFlags {
        settings: Some("given.json".to_owned()),
        ..SettingsFlags::default()
    };
    let mut session = Session::with(machine, context, flags).await;
    assert_eq!(session.call("Peek", "a.txt").await, "alpha\n");
    let ask = r#"{"permissions": {"ask": ["Peek"]}}"#;
    session.machine.files.write("p/given.json", ask);
    assert!(
        session
            .call("Peek", "a.txt")
            .await
            .contains("ask rule Peek")
    );
}

#[tokio::test]
async fn bypass_ends_when_a_file_forbids_it() {
    let machine = Machine::new([]);
    let context = machine
        .context()
        .with_mode(PermissionMode::BypassPermissions);
    let mut session = Session::with(machine, context, SettingsFlags::default()).await;
    assert_eq!(session.call("Append", "a.txt").await, "was 6 bytes");
    let forbid = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;
    session.machine.files.write(MANAGED, forbid);
    assert!(
        session
            .call("Append", "a.txt")
            .await
            .contains("was not granted")
    );
}

#[tokio::test]
async fn when_only_the_administrators_rules_count_what_was_denied_stays_denied() {
    let user = r#"{"permissions": {"allow": ["Append"], "deny": ["Peek"]}}"#;
    let mut session = Session::new(Machine::new([(USER, user)])).await;
    let only = r#"{"allowManagedPermissionRulesOnly": true}"#;
    session.machine.files.write(MANAGED, only);
    assert!(
        session
            .call("Append", "a.txt")
            .await
            .contains("was not granted")
    );
    assert!(
        session
            .call("Peek", "a.txt")
            .await
            .contains("denied by rule")
    );
}

#[tokio::test]
async fn a_call_of_the_same_turn_is_judged_as_the_turn_began() {
    let mut session = Session::new(Machine::new([])).await;
    let path = session.machine.files.path(USER);
    let mut turn = session.scheduler.start_batch().await;
    turn.push(tool_use("Peek", json!({"path": "a.txt"})));
    assert!(!turn.next().await.unwrap().is_error);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, r#"{"permissions": {"deny": ["Peek"]}}"#).unwrap();
    turn.push(tool_use("Peek", json!({"path": "a.txt"})));
    assert!(!turn.next().await.unwrap().is_error);
    drop(turn);
    assert!(
        session
            .call("Peek", "a.txt")
            .await
            .contains("denied by rule")
    );
}

#[tokio::test]
async fn what_is_not_trusted_hides_nothing_that_is_stricter() {
    let loose = r#"{"sandbox": {"enabled": false, "excludedCommands": ["*"]},
        "permissions": {"allow": ["Bash"]}}"#;
    let mut session = Session::new(Machine::new([(LOCAL, loose), (PROJECT, loose)])).await;
    session.call("Peek", "a.txt").await;
    session
        .machine
        .files
        .write(USER, r#"{"sandbox": {"enabled": true}}"#);
    session.call("Peek", "a.txt").await;
    let sandbox = session.scheduler.context().sandbox.clone();
    assert_eq!(sandbox.enabled, Some(true));
    assert!(sandbox.excluded.is_empty());
    assert_eq!(session.rules(), [""; 0]);
    // A local file of another origin that comes later adds nothing either.
    session
        .machine
        .files
        .write(LOCAL, loose.replace("Bash", "Edit"));
    session.call("Peek", "a.txt").await;
    assert_eq!(session.rules(), [""; 0]);
    assert!(session.scheduler.context().sandbox.excluded.is_empty());
}
