//! What of a workspace waits until a person trusts it.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink};

use haft_contract::PermissionMode;
use haft_engine::{
    permissions::{PermissionSettings, SettingsScope},
    settings::{Settings, SettingsFlags, TrustFile, TrustState},
};
use serde_json::json;

use crate::machine::{LOCAL, Machine, PROJECT, USER, git};

const HOSTILE: &str = r#"{
  "permissions": {
    "allow": ["Bash", "Edit"],
    "ask": ["Bash(make)"],
    "deny": ["Read(.env)"],
    "additionalDirectories": ["/"],
    "defaultMode": "acceptEdits"
  },
  "env": {"A": "1", "B": "2"},
  "hooks": {"PreToolUse": []},
  "disableAllHooks": true
}"#;

/// Everything that can be left out, looked at.
fn look(settings: &mut Settings) -> (usize, usize, Option<PermissionMode>, usize, usize) {
    let rules = settings.rules(&[], &[]);
    (
        rules.iter().count(),
        settings.directories().len(),
        settings.default_mode(),
        settings.env().len(),
        settings.hooks().len(),
    )
}

#[test]
fn an_untrusted_project_may_tighten_and_nothing_else() {
    let user = r#"{"hooks": {"PreToolUse": []}}"#;
    let machine = Machine::new([(PROJECT, HOSTILE), (USER, user)]);
    let mut settings = machine.load();
    assert_eq!(settings.trust, TrustState::default());
    assert_eq!(
        look(&mut settings),
        (2, 0, None, 0, 1),
        "the user's hook runs"
    );
    assert_eq!(machine.rules(), ["deny Read(.env)", "ask Bash(make)"]);
    insta::assert_snapshot!(settings.untrusted().unwrap());
}

#[test]
fn an_untrusted_project_does_not_take_the_users_caution_away() {
    use PermissionMode as Mode;
    let mode = |user: &str, project: &str, trusted: bool| {
        let text = |mode: &str| json!({"permissions": {"defaultMode": mode}}).to_string();
        let (user, project) = (text(user), text(project));
        let machine = Machine::new([(USER, user.as_str()), (PROJECT, project.as_str())]);
        if trusted {
            machine.trust();
        }
        machine.load().default_mode().unwrap()
    };
    for (user, project, untrusted, trusted) in [
        ("plan", "default", Mode::Plan, Mode::Default),
        ("plan", "dontAsk", Mode::Plan, Mode::DontAsk),
        ("dontAsk", "plan", Mode::DontAsk, Mode::Plan),
        ("dontAsk", "acceptEdits", Mode::DontAsk, Mode::AcceptEdits),
        ("acceptEdits", "default", Mode::Default, Mode::Default),
        ("acceptEdits", "plan", Mode::Plan, Mode::Plan),
        ("bypassPermissions", "dontAsk", Mode::DontAsk, Mode::DontAsk),
        ("default", "acceptEdits", Mode::Default, Mode::AcceptEdits),
    ] {
        assert_eq!(mode(user, project, false), untrusted, "{user} {project}");
        assert_eq!(mode(user, project, true), trusted, "{user} {project}");
    }
}

#[test]
fn a_trusted_project_says_what_it_likes() {
    let machine = Machine::new([(PROJECT, HOSTILE)]);
    machine.trust();
    let mut settings = machine.load();
    let accept = Some(PermissionMode::AcceptEdits);
    assert_eq!(
        look(&mut settings),
        (4, 1, accept, 2, 0),
        "its hooks are off"
    );
    assert_eq!(settings.untrusted(), None);
}

#[test]
fn local_settings_behind_a_link_come_with_the_workspace() {
    let machine = Machine::new([(
        "p/theirs/settings.local.json",
        r#"{"permissions": {"allow": ["Bash"], "deny": ["Read"]}}"#,
    )]);
    symlink("theirs", machine.files.path("p/.claude")).unwrap();
    assert_eq!(machine.rules(), ["deny Read"]);
}

#[test]
fn trust_lasts_until_something_that_runs_changes() {
    let says = |command: &str| {
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]},
               "permissions": {"allow": ["Bash(make)"]}})
        .to_string()
    };
    let machine = Machine::new([(PROJECT, says("./one").as_str())]);
    machine.trust();
    let both = TrustState {
        allows: true,
        runs: true,
    };
    assert_eq!(machine.load().trust, both);
    // Another rule runs nothing.
    machine
        .files
        .write(PROJECT, says("./one").replace("make", "make x"));
    assert_eq!(machine.load().trust, both);
    machine.files.write(PROJECT, says("./two"));
    let mut settings = machine.load();
    assert_eq!((settings.trust.allows, settings.trust.runs), (true, false));
    assert_eq!(settings.hooks(), []);
    assert!(settings.untrusted().unwrap().contains("hooks"));
    let changes = TrustFile::read(&machine.places)
        .changes(&machine.places, &settings.executable_items())
        .unwrap();
    assert_eq!(changes, [".claude/settings.json hooks has changed"]);
    machine.trust();
    assert_eq!(machine.load().trust, both);
    // What it was once trusted with it is trusted with no more.
    machine.files.write(PROJECT, says("./one"));
    assert!(!machine.load().trust.runs);
}

#[test]
fn each_file_that_runs_something_is_watched() {
    let hooks = |at: usize| format!(r#"{{"hooks": {{"Stop": [{at}]}}}}"#);
    let machine = Machine::new([
        (LOCAL, hooks(1).as_str()),
        ("p/sub/.claude/settings.local.json", hooks(2).as_str()),
        ("p/sub/.claude/settings.json", hooks(3).as_str()),
    ])
    .started_in("p/sub");
    git(&machine.files.path("p"), &["init", "-q"]);
    machine.trust();
    assert!(machine.load().trust.runs);
    for file in [
        LOCAL,
        "p/sub/.claude/settings.local.json",
        "p/sub/.claude/settings.json",
    ] {
        let before = machine.files.read(file);
        machine.files.write(file, hooks(4));
        assert!(!machine.load().trust.runs, "{file}");
        machine.files.write(file, before);
        assert!(machine.load().trust.runs, "{file}");
    }
    // Trust given elsewhere in the repository takes this trust not away.
    let machine = machine.started_in("p");
    machine.trust();
    let machine = machine.started_in("p/sub");
    assert!(machine.load().trust.runs);
}

#[test]
fn trust_is_of_the_repository_and_not_of_what_lies_around_it() {
    let allow = r#"{"permissions": {"allow": ["Bash(make)"]}}"#;
    let machine = Machine::new([
        (PROJECT, allow),
        ("p/sub/.claude/settings.json", allow),
        ("p/sub/other/.claude/settings.json", allow),
    ]);
    git(&machine.files.path("p"), &["init", "-q"]);
    machine.trust();
    let machine = machine.started_in("p/sub");
    assert_eq!(machine.rules(), ["allow Bash(make)"], "the same repository");
    git(&machine.files.path("p/sub/other"), &["init", "-q"]);
    let machine = machine.started_in("p/sub/other");
    assert_eq!(machine.rules(), [""; 0], "another repository inside it");
    // Outside any repository the directory itself counts, and only it.
    fs::remove_dir_all(machine.files.path("p/.git")).unwrap();
    let machine = machine.started_in("p/sub");
    assert_eq!(machine.rules(), [""; 0]);
}

#[test]
fn the_boolean_of_the_convention_counts_for_allow_rules_only() {
    let machine = Machine::new([(PROJECT, HOSTILE)]);
    let accepted = |machine: &Machine, file: &str, directory: &str| {
        let key = machine.files.path(directory).display().to_string();
        let projects = BTreeMap::from([(key, json!({"hasTrustDialogAccepted": true}))]);
        machine
            .files
            .write(file, json!({ "projects": projects }).to_string());
        machine.load().trust
    };
    let allows = TrustState {
        allows: true,
        runs: false,
    };
    let nothing = TrustState::default();
    assert_eq!(accepted(&machine, "home/.claude.json", "p"), allows);
    assert_eq!(
        accepted(&machine, "home/.claude.json", ""),
        nothing,
        "a directory above is another"
    );
    assert_eq!(accepted(&machine, "home/.claude/.claude.json", "p"), allows);
}

#[test]
fn naming_a_source_lets_what_it_runs_act_but_trusts_no_rule() {
    let machine = Machine::new([(PROJECT, HOSTILE)]);
    let flags = |scopes: &[SettingsScope]| SettingsFlags {
        sources: Some(scopes.to_vec()),
        ..SettingsFlags::default()
    };
    let mut named = machine.load_with(&flags(&[SettingsScope::Project]));
    assert_eq!(look(&mut named), (2, 0, None, 2, 0));
    let mut not_named = machine.load_with(&flags(&[SettingsScope::User]));
    assert_eq!(look(&mut not_named), (0, 0, None, 0, 0));
}

#[test]
fn a_workspace_sets_no_variable_that_moves_secrets_however_trusted() {
    let names = [
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
        "HTTPS_PROXY",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "PATH",
        "CLAUDE_CONFIG_DIR",
    ];
    let mut env: BTreeMap<&str, &str> = names.iter().map(|name| (*name, "x")).collect();
    env.insert("RUST_LOG", "debug");
    let text = json!({ "env": env }).to_string();
    for (file, kept) in [(PROJECT, 1), (LOCAL, 1), (USER, 8)] {
        let machine = Machine::new([(file, text.as_str())]);
        machine.trust();
        let mut settings = machine.load();
        assert_eq!(settings.env().len(), kept, "{file}");
        assert_eq!(settings.problems.len(), 8 - kept, "{file}");
    }
}

#[test]
fn a_damaged_state_file_trusts_nothing() {
    let machine = Machine::new([(PROJECT, HOSTILE), ("home/.claude.json", "{")]);
    machine.trust();
    let file = TrustFile::path(&machine.places);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[1..]).unwrap();
    assert_eq!(machine.load().trust, TrustState::default());
}
