//! What settings files say together of confining commands.

use std::sync::Arc;

use haft_contract::PermissionMode;
use haft_engine::{
    Engine, Scheduler, ToolRegistry,
    permissions::{PermissionSettings, SandboxSettings},
    settings::{SettingsFlags, SettingsWatch},
};
use serde_json::{Value, json};

use crate::machine::{LOCAL, MANAGED, Machine, PROJECT, USER};

fn machine(files: &[(&str, Value)]) -> Machine {
    let texts: Vec<(&str, String)> = files
        .iter()
        .map(|(name, value)| (*name, json!({ "sandbox": value }).to_string()))
        .collect();
    Machine::new(texts.iter().map(|(name, text)| (*name, text.as_str())))
}

fn shown(machine: &Machine, paths: &[std::path::PathBuf]) -> Vec<String> {
    let texts = paths.iter().map(|path| path.display().to_string());
    texts.map(|text| machine.plain(&text)).collect()
}

#[test]
fn without_a_word_files_are_confined_and_nothing_is_let_through() {
    let machine = machine(&[]);
    let mut sandbox = machine.load().sandbox();
    let own_secrets = std::mem::take(&mut sandbox.own_secrets);
    let own_directory = std::mem::take(&mut sandbox.own_directory);
    assert_eq!(shown(&machine, &own_directory[..1]), ["/home/.claude"]);
    assert_eq!(
        shown(&machine, &own_secrets),
        ["/home/.claude/haft", "/home/.claude/.claude.json"]
    );
    assert_eq!(sandbox, SandboxSettings::default());
    assert_eq!(sandbox.enabled, None);
    assert!(!sandbox.lets_through && !sandbox.available && sandbox.may_be_lifted);
}

#[test]
fn of_flags_the_highest_rank_wins() {
    let cases = [
        (vec![(USER, true)], Some(true)),
        (vec![(USER, true), (PROJECT, false)], Some(false)),
        (vec![(LOCAL, true), (PROJECT, false)], Some(true)),
        (
            vec![(MANAGED, true), (LOCAL, false), (USER, false)],
            Some(true),
        ),
    ];
    for (files, expected) in cases {
        let values: Vec<(&str, Value)> = files
            .iter()
            .map(|(name, enabled)| (*name, json!({ "enabled": enabled })))
            .collect();
        let machine = machine(&values);
        machine.trust();
        assert_eq!(machine.load().sandbox().enabled, expected, "{files:?}");
    }
}

#[test]
fn lists_are_joined_and_paths_start_where_the_file_says() {
    let paths = |who: &str| {
        json!({"filesystem": {
            "allowWrite": [format!("./{who}"), "/same/", "//same/**", format!("~/{who}")],
        }, "network": {"allowedDomains": [format!("{who}.org"), "all.org"]}})
    };
    let machine = machine(&[(USER, paths("user")), (PROJECT, paths("project"))]);
    machine.trust();
    let mut settings = machine.load();
    let sandbox = settings.sandbox();
    assert_eq!(
        shown(&machine, &sandbox.allow_write),
        [
            "/p/project",
            "/same",
            "/home/project",
            "/home/.claude/user",
            "/home/user",
        ]
    );
    let hosts: Vec<String> = sandbox
        .allowed_hosts
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(hosts, ["project.org", "all.org", "user.org"]);
    assert_eq!(settings.problems, []);
}

#[test]
fn a_project_that_is_not_trusted_tightens_and_never_loosens() {
    let loosens = json!({
        "enabled": false,
        "failIfUnavailable": false,
        "autoAllowBashIfSandboxed": true,
        "allowUnsandboxedCommands": true,
        "excludedCommands": ["make"],
        "filesystem": {"allowWrite": ["~/"], "allowRead": ["~/keys"], "denyRead": ["./x"]},
        "network": {"allowedDomains": ["evil.org"], "deniedDomains": ["a.org"]},
    });
    let strict = json!({
        "enabled": true,
        "failIfUnavailable": true,
        "autoAllowBashIfSandboxed": false,
        "allowUnsandboxedCommands": false,
        "filesystem": {"denyRead": ["~/keys"]},
    });
    let machine = machine(&[(PROJECT, loosens), (USER, strict)]);
    let mut settings = machine.load();
    let sandbox = settings.sandbox();
    assert_eq!(sandbox.enabled, Some(true));
    assert!(sandbox.required && !sandbox.lets_through && !sandbox.may_be_lifted);
    assert!(sandbox.excluded.is_empty() && sandbox.allowed_hosts.is_empty());
    assert!(sandbox.allow_write.is_empty() && sandbox.allow_read.is_empty());
    assert_eq!(sandbox.deny_read.len(), 2);
    assert_eq!(sandbox.denied_hosts.len(), 1);
    insta::assert_snapshot!(settings.untrusted().unwrap());
    // Once trusted, all of it counts.
    machine.trust();
    let mut settings = machine.load();
    let sandbox = settings.sandbox();
    assert_eq!(sandbox.enabled, Some(false));
    assert!(!sandbox.required && sandbox.may_be_lifted);
    assert_eq!(sandbox.excluded.len(), 1);
    assert_eq!(settings.untrusted(), None);
    // What trusting it would loosen is shown.
    let things = settings.loosening_items();
    insta::assert_snapshot!(things.join("\n"));
}

#[test]
fn a_sandbox_that_the_project_switched_on_lets_nothing_through_before_trust() {
    let machine = machine(&[(PROJECT, json!({"enabled": true}))]);
    let mut settings = machine.load();
    let sandbox = settings.sandbox();
    assert_eq!((sandbox.enabled, sandbox.lets_through), (Some(true), false));
    assert_eq!(settings.left_out, ["sandbox.autoAllowBashIfSandboxed"]);
    machine.trust();
    assert!(machine.load().sandbox().lets_through);
}

#[test]
fn some_settings_only_count_in_some_files() {
    let all = json!({
        "filesystem": {"disabled": true, "allowManagedReadPathsOnly": true},
        "network": {"strictAllowlist": true, "allowManagedDomainsOnly": true},
    });
    for (file, users, managed) in [
        (PROJECT, false, false),
        (LOCAL, false, false),
        (USER, true, false),
        (MANAGED, true, true),
    ] {
        let machine = machine(&[(file, all.clone())]);
        machine.trust();
        let mut settings = machine.load();
        let sandbox = settings.sandbox();
        assert_eq!(sandbox.files_open, users, "{file}");
        assert_eq!(sandbox.strict_hosts, users, "{file}");
        assert_eq!(sandbox.managed_hosts_only, managed, "{file}");
        let expected = 4 - 2 * usize::from(users) - 2 * usize::from(managed);
        assert_eq!(settings.problems.len(), expected, "{file}");
    }
    // The administrator says what may be read after all.
    let only = json!({"filesystem": {
        "allowManagedReadPathsOnly": true, "allowRead": ["/a"],
    }});
    let user = json!({"filesystem": {"allowRead": ["/b"]}});
    let machine = machine(&[(MANAGED, only), (USER, user)]);
    let read = machine.load().sandbox().allow_read;
    assert_eq!(read, [std::path::PathBuf::from("/a")]);
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_the_rest_counts() {
    let text = r#"{
  "sandbox": {
    "enabled": "yes",
    "enabledd": true,
    "excludedCommands": ["docker *", 7, ""],
    "filesystem": {
      "allowWrite": ["~/logs/*.log", "/ok"],
      "denyRead": "~/x",
      "denyRaed": []
    },
    "network": {
      "allowedDomains": ["https://a.org", "a.org:http", "ok.org"],
      "allowLocalBinding": true,
      "httpProxyPort": 8080
    },
    "credentials": {"files": [{"mode": "deny"}, {"path": "~/.aws"}], "envVars": [1]},
    "allowAppleEvents": true
  }
}"#;
    let machine = Machine::new([(USER, text), (PROJECT, r#"{"sandbox": 1}"#)]);
    let mut settings = machine.load();
    let sandbox = settings.sandbox();
    assert_eq!(sandbox.enabled, None);
    assert_eq!(sandbox.excluded.len(), 1);
    assert_eq!(shown(&machine, &sandbox.allow_write), ["/ok"]);
    assert_eq!(sandbox.allowed_hosts.len(), 1);
    assert_eq!(sandbox.deny_read.len(), 1);
    insta::assert_snapshot!(machine.problems(&settings).join("\n"));
}

struct Session {
    machine: Machine,
    scheduler: Scheduler,
}

impl Session {
    async fn new(machine: Machine) -> Self {
        let sandbox = machine.load().sandbox();
        let context = machine.context().with_sandbox(sandbox);
        let (engine, _) = Engine::builder(ToolRegistry::new(), machine.files.path("session"))
            .settings_watch(SettingsWatch::new(
                machine.places.clone(),
                SettingsFlags::default(),
            ))
            .build()
            .await;
        Self {
            machine,
            scheduler: engine.scheduler(context.with_mode(PermissionMode::Default)),
        }
    }

    async fn after(&mut self, file: &str, text: &str) -> Arc<SandboxSettings> {
        self.machine.files.write(file, text);
        drop(self.scheduler.start_batch().await);
        self.scheduler.context().sandbox
    }
}

#[tokio::test]
async fn a_running_session_takes_over_what_is_stricter_and_nothing_else() {
    let text = json!({"sandbox": {
        "enabled": true,
        "excludedCommands": ["docker *", "make"],
        "filesystem": {"allowWrite": ["/a", "/b"]},
        "network": {"allowedDomains": ["a.org", "b.org"]},
    }});
    let machine = Machine::new([(USER, text.to_string().as_str())]);
    let mut session = Session::new(machine).await;
    // Looser: nothing of it counts.
    let looser = json!({"sandbox": {
        "enabled": false,
        "excludedCommands": ["docker *", "make", "rm *"],
        "filesystem": {"allowWrite": ["/a", "/b", "/c"], "disabled": true},
        "network": {"allowedDomains": ["a.org", "b.org", "*"]},
    }});
    let before = session.scheduler.context().sandbox;
    let now = session.after(USER, &looser.to_string()).await;
    assert_eq!(now.enabled, Some(true));
    assert_eq!(now.excluded, before.excluded);
    assert_eq!(now.allow_write, before.allow_write);
    assert_eq!(now.allowed_hosts, before.allowed_hosts);
    assert!(!now.files_open);
    // A file in the middle of being edited takes nothing away.
    let now = session.after(USER, r#"{"sandbox": {"#).await;
    assert_eq!(now.allow_write, before.allow_write);
    // Stricter: all of it does, from any file.
    let stricter = json!({"sandbox": {
        "enabled": true,
        "autoAllowBashIfSandboxed": false,
        "allowUnsandboxedCommands": false,
        "excludedCommands": ["make"],
        "filesystem": {"allowWrite": ["/b"], "denyRead": ["~/x"]},
        "network": {"allowedDomains": ["b.org"], "deniedDomains": ["c.org"]},
    }});
    let now = session.after(USER, &stricter.to_string()).await;
    assert!(!now.lets_through && !now.may_be_lifted);
    assert_eq!(now.excluded.len(), 1);
    assert_eq!(now.allow_write, [std::path::PathBuf::from("/b")]);
    assert_eq!((now.allowed_hosts.len(), now.denied_hosts.len()), (1, 1));
    assert_eq!(now.deny_read.len(), 1);
    let project = r#"{"sandbox": {"filesystem": {"denyRead": ["./y"]}}}"#;
    assert_eq!(session.after(PROJECT, project).await.deny_read.len(), 2);
}
