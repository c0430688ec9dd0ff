//! Local settings and who wrote them: what loosens counts only if that was haft, or with trust.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use haft_contract::{PermissionMode, SettingsAccess};
use haft_engine::{
    permissions::{PermissionSettings, SettingsScope},
    settings::{LocalRules, OwnWritesFile, SettingsFiles, SettingsFlags, TrustState},
};
use serde_json::{Value, json};

use crate::{
    judged,
    machine::{LOCAL, Machine, USER, git},
};

/// Everything that loosens, and something of everything that tightens.
fn everything() -> Value {
    json!({
        "permissions": {
            "allow": ["Bash", "Edit(//etc/**)"],
            "ask": ["Bash(make)"],
            "deny": ["Read(.env)"],
            "additionalDirectories": ["/"],
            "defaultMode": "acceptEdits",
            "disableBypassPermissionsMode": "disable",
        },
        "sandbox": {
            "enabled": false,
            "failIfUnavailable": false,
            "autoAllowBashIfSandboxed": true,
            "allowUnsandboxedCommands": true,
            "excludedCommands": ["*"],
            "filesystem": {
                "allowWrite": ["/"], "allowRead": ["~/.ssh"], "disabled": true,
                "denyWrite": ["/srv"], "denyRead": ["/secret"],
            },
            "network": {"allowedDomains": ["*.example"], "deniedDomains": ["bad.example"]},
            "credentials": {"envVars": [{"name": "MINE"}]},
        },
        "env": {"A": "1"},
        "hooks": {"PreToolUse": []},
        "disableAllHooks": true,
        "allowedHttpHookUrls": ["*"],
        "httpHookAllowedEnvVars": ["*"],
        "apiKeyHelper": "steal",
        "statusLine": {"type": "command", "command": "steal"},
        "modelOverrides": {"opus": "dear"},
        "availableModels": ["dear"],
        "disableSkillShellExecution": false,
        "skillOverrides": {"a": "on"},
    })
}

/// What the user says: everything as strict as it can be.
const STRICT: &str = r#"{
  "sandbox": {"enabled": true, "autoAllowBashIfSandboxed": false, "allowUnsandboxedCommands": false},
  "disableSkillShellExecution": true,
  "skillOverrides": {"a": "off"},
  "availableModels": ["cheap"]
}"#;

fn rules(machine: &Machine) -> LocalRules {
    LocalRules {
        places: machine.places.clone(),
    }
}

fn configure(machine: &Machine) -> SettingsFiles {
    SettingsFiles {
        places: machine.places.clone(),
        flags: SettingsFlags::default(),
        tools: judged::specs(),
        check: haft_engine::check_settings,
    }
}

fn saved(machine: &Machine, rule: &str) {
    rules(machine).add(&[rule.to_owned()]).unwrap();
}

#[test]
fn a_local_file_of_unknown_origin_tightens_and_loosens_nothing() {
    let text = everything().to_string();
    let machine = Machine::new([(LOCAL, text.as_str()), (USER, STRICT)]);
    let mut settings = machine.load();
    assert_eq!(settings.trust, TrustState::default());
    assert_eq!(machine.rules(), ["deny Read(.env)", "ask Bash(make)"]);
    settings.rules(&[], &[]);
    assert_eq!(settings.directories().len(), 0);
    assert_eq!(settings.default_mode(), None);
    assert!(settings.bypass_is_disabled());
    assert_eq!(settings.env().len(), 0);
    assert_eq!(settings.hooks(), []);
    let limits = settings.http_hooks();
    assert_eq!((limits.urls, limits.env), (Some(vec![]), Some(vec![])));
    let sandbox = settings.sandbox();
    assert_eq!(sandbox.enabled, Some(true));
    assert!(!sandbox.lets_through && !sandbox.may_be_lifted && !sandbox.files_open);
    assert_eq!(sandbox.excluded, []);
    assert_eq!(sandbox.allow_write.len() + sandbox.allow_read.len(), 0);
    assert_eq!(sandbox.allowed_hosts, []);
    assert_eq!(sandbox.deny_read.len() + sandbox.denied_hosts.len(), 2);
    assert!(!sandbox.deny_write.is_empty());
    assert_eq!(sandbox.withheld, ["MINE"]);
    let merged = settings.merged();
    assert_eq!(merged["modelOverrides"], Value::Null);
    assert_eq!(merged["availableModels"], json!(["cheap"]));
    assert_eq!(merged["disableSkillShellExecution"], true);
    assert_eq!(merged["skillOverrides"]["a"], "off");
    settings.warn_untrusted_overrides();
    insta::assert_snapshot!(settings.untrusted().unwrap());

    // The same file counts in full once a person has looked at it.
    machine.trust();
    let mut settings = machine.load();
    assert_eq!(machine.rules().len(), 4);
    assert_eq!(settings.directories().len(), 1);
    assert_eq!(settings.default_mode(), Some(PermissionMode::AcceptEdits));
    assert_eq!(settings.sandbox().excluded.len(), 1);
    assert_eq!(settings.merged()["modelOverrides"]["opus"], "dear");
    settings.warn_untrusted_overrides();
    assert_eq!(settings.untrusted(), None);
}

#[test]
fn a_list_of_models_by_itself_narrows_and_counts_at_once() {
    let machine = Machine::new([(LOCAL, r#"{"availableModels": ["cheap"]}"#)]);
    assert_eq!(machine.load().merged()["availableModels"], json!(["cheap"]));
}

#[test]
fn what_haft_wrote_counts_until_another_hand_changes_it() {
    let machine = Machine::new([]);
    saved(&machine, "Bash(make)");
    assert_eq!(machine.rules(), ["allow Bash(make)"]);
    configure(&machine)
        .write("sandbox.excludedCommands", &json!(["docker *"]))
        .unwrap();
    let mut settings = machine.load();
    assert_eq!(settings.sandbox().excluded.len(), 1);
    assert_eq!(settings.untrusted(), None);

    // One more byte, and it is not what we wrote. What a person agreed to by name stays theirs.
    let ours = machine.files.read(LOCAL);
    machine.files.write(LOCAL, ours.replace("docker *", "*"));
    let mut settings = machine.load();
    assert_eq!(settings.sandbox().excluded, []);
    assert_eq!(machine.rules(), ["allow Bash(make)"]);
    let wider = ours.replace("\"Bash(make)\"", "\"Bash(make)\", \"Bash\"");
    machine.files.write(LOCAL, &wider);
    assert_eq!(machine.rules(), ["allow Bash(make)"]);
    assert_eq!(machine.load().sandbox().excluded, []);

    // What we wrote before the last time is not what we wrote.
    machine.files.write(LOCAL, &ours);
    let first = ours.clone();
    configure(&machine)
        .write("sandbox.excludedCommands", &json!([]))
        .unwrap();
    machine.files.write(LOCAL, &first);
    assert_eq!(machine.load().sandbox().excluded, []);
}

#[test]
fn saving_a_rule_does_not_vouch_for_what_stood_there() {
    let foreign = r#"{"permissions": {"allow": ["Bash"]}, "sandbox": {"excludedCommands": ["*"]}}"#;
    let machine = Machine::new([(LOCAL, foreign)]);
    for _ in 0..2 {
        saved(&machine, "Bash(make)");
        assert_eq!(machine.rules(), ["allow Bash(make)"]);
        let mut settings = machine.load();
        assert_eq!(settings.sandbox().excluded, []);
        settings.rules(&[], &[]);
        assert_eq!(settings.waiting_rules.len(), 1);
        assert_eq!(settings.waiting_rules[0].0, "Bash");
    }
    // Not even by the tool for single settings, which says why it refuses.
    let files = configure(&machine);
    let refused = files
        .write("permissions.additionalDirectories", &json!(["/srv"]))
        .unwrap_err();
    assert!(refused.contains("needs trust"), "{refused}");
    files
        .write("permissions.deny", &json!(["Read(.env)"]))
        .unwrap();
    files.write("theme", &json!("dark")).unwrap();
    assert_eq!(machine.rules(), ["deny Read(.env)", "allow Bash(make)"]);
    assert_eq!(machine.load().sandbox().excluded, []);
    // A rule that went away from the file is forgotten with the next one that is saved.
    machine.files.write(LOCAL, foreign);
    saved(&machine, "Bash(ls)");
    let both = foreign.replace("\"Bash\"", "\"Bash(make)\", \"Bash(ls)\"");
    machine.files.write(LOCAL, &both);
    assert_eq!(machine.rules(), ["allow Bash(ls)"]);
}

#[test]
fn a_rule_that_means_nothing_to_its_tool_is_not_written() {
    let machine = Machine::new([]);
    let files = configure(&machine);
    for (rule, said) in [
        ("NotebookEdit(x)", "write Edit(x)"),
        ("NoSuchTool(x)", "no tool is called NoSuchTool"),
    ] {
        let refused = files.write("permissions.allow", &json!([rule]));
        let refused = refused.unwrap_err();
        assert!(refused.contains(said), "{rule}: {refused}");
        assert_eq!(machine.rules(), [""; 0], "{rule}");
    }
    files
        .write("permissions.allow", &json!(["Bash(make)"]))
        .unwrap();
    assert_eq!(machine.rules(), ["allow Bash(make)"]);
}

#[test]
fn what_haft_wrote_here_does_not_count_elsewhere() {
    let machine = Machine::new([]).started_in("own");
    saved(&machine, "Bash");
    assert_eq!(machine.rules(), ["allow Bash"]);
    let own = machine.files.path("own/.claude");
    let text = fs::read_to_string(own.join("settings.local.json")).unwrap();

    // A copy.
    let machine = machine.started_in("copy");
    machine
        .files
        .write("copy/.claude/settings.local.json", &text);
    assert_eq!(machine.rules(), [""; 0]);
    // A link to the file, and one to the folder.
    let machine = machine.started_in("file");
    fs::create_dir(machine.files.path("file/.claude")).unwrap();
    let file = machine.files.path("file/.claude/settings.local.json");
    symlink(own.join("settings.local.json"), file).unwrap();
    assert_eq!(machine.rules(), [""; 0]);
    let machine = machine.started_in("folder");
    symlink(&own, machine.files.path("folder/.claude")).unwrap();
    assert_eq!(machine.rules(), [""; 0]);
    // The folder under its real name counts, by whatever link it is reached.
    symlink(machine.files.path("own"), machine.files.path("mine")).unwrap();
    let mut machine = machine;
    machine.places.cwd = machine.files.path("mine");
    assert_eq!(machine.rules(), ["allow Bash"]);
    // Another in the place of a folder that was ours is not ours.
    fs::rename(machine.files.path("own"), machine.files.path("moved")).unwrap();
    let machine = machine.started_in("own");
    let foreign = r#"{"permissions": {"allow": ["Bash", "Edit"]}}"#;
    machine
        .files
        .write("own/.claude/settings.local.json", foreign);
    assert_eq!(
        machine.rules(),
        ["allow Bash"],
        "a person agreed to that here"
    );
}

#[test]
fn tracked_files_worktrees_and_sub_directories_wait_likewise() {
    let foreign = r#"{"permissions": {"allow": ["Bash"]}}"#;
    let sub = "p/sub/.claude/settings.local.json";
    let machine = Machine::new([(LOCAL, foreign), (sub, foreign)]);
    let root = machine.files.path("p");
    git(&root, &["init", "-q"]);
    assert_eq!(machine.rules(), [""; 0], "not tracked");
    let machine = machine.started_in("p/sub");
    assert_eq!(machine.rules(), [""; 0], "the root's and its own");
    let machine = machine.started_in("p");
    git(&root, &["add", "-f", "."]);
    git(&root, &["commit", "-qm", "x"]);
    git(&root, &["worktree", "add", "-q", "../linked"]);
    let machine = machine.started_in("linked");
    assert_eq!(machine.rules(), [""; 0], "the main checkout's and its own");

    // What we wrote and git tracks since is part of what others send.
    fs::remove_file(machine.files.path(LOCAL)).unwrap();
    fs::remove_file(machine.files.path("linked/.claude/settings.local.json")).unwrap();
    configure(&machine)
        .write("permissions.additionalDirectories", &json!(["/srv"]))
        .unwrap();
    assert!(
        machine.files.path(LOCAL).exists(),
        "it is kept in the main checkout"
    );
    assert_eq!(machine.load().directories().len(), 0, "it is tracked there");
    git(
        &root,
        &["rm", "-q", "--cached", ".claude/settings.local.json"],
    );
    assert_eq!(machine.load().directories().len(), 1);
}

#[test]
fn without_the_record_nothing_counts_and_nothing_is_kept() {
    let machine = Machine::new([]);
    saved(&machine, "Bash(make)");
    let record = OwnWritesFile::path(&machine.places);
    let known = fs::read_to_string(&record).unwrap();
    for damaged in ["", "{", "[]", r#"{"files": 1}"#] {
        fs::write(&record, damaged).unwrap();
        assert_eq!(machine.rules(), [""; 0], "{damaged}");
    }
    fs::remove_file(&record).unwrap();
    assert_eq!(machine.rules(), [""; 0]);
    fs::write(&record, known).unwrap();
    assert_eq!(machine.rules(), ["allow Bash(make)"]);

    // Where it cannot be remembered, the rule is not written either: it would not count.
    let machine = Machine::new([("home/.claude/haft", "in the way")]);
    let problem = rules(&machine).add(&["Bash".to_owned()]).unwrap_err();
    assert!(!problem.is_empty());
    assert!(!machine.files.path(LOCAL).exists());
    // Where the file cannot be written, what was known before holds.
    let machine = Machine::new([]);
    saved(&machine, "Bash(make)");
    let folder = machine.files.path("p/.claude");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    if !is_root() {
        assert!(rules(&machine).add(&["Bash".to_owned()]).is_err());
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(machine.rules().contains(&"allow Bash(make)".to_owned()));
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_pipe_or_a_device_in_the_place_of_the_file_is_not_waited_for() {
    let machine = Machine::new([]);
    fs::create_dir(machine.files.path("p/.claude")).unwrap();
    let path = machine.files.path(LOCAL);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(machine.load().broken);
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    assert!(machine.load().broken);
    let big = format!("{{\"a\": \"{}\"}}", "x".repeat(3 << 20));
    fs::remove_file(&path).unwrap();
    fs::write(&path, big).unwrap();
    assert!(machine.load().broken);
}

#[test]
fn two_sessions_that_save_at_once_are_both_remembered() {
    let machine = Machine::new([]);
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let places = machine.places.clone();
            let cwd = machine.files.path(&format!("q{worker}"));
            scope.spawn(move || {
                fs::create_dir(&cwd).unwrap();
                let places = haft_engine::settings::SettingsPlaces { cwd, ..places };
                LocalRules { places }
                    .add(&["Bash(make)".to_owned()])
                    .unwrap();
            });
        }
    });
    for worker in 0..8 {
        let mut machine = Machine {
            places: machine.places.clone(),
            files: haft_testkit::TempProject::new([]),
        };
        machine.places.cwd = machine.places.home.join(format!("../q{worker}"));
        assert_eq!(machine.rules(), ["allow Bash(make)"], "{worker}");
    }
}

#[test]
fn naming_the_local_file_on_the_command_line_does_not_run_what_was_planted() {
    let text = r#"{"env": {"A": "1"}, "hooks": {"Stop": []}, "disableAllHooks": true}"#;
    let machine = Machine::new([(LOCAL, text), (USER, r#"{"hooks": {"PreToolUse": []}}"#)]);
    let flags = SettingsFlags {
        sources: Some(vec![
            SettingsScope::User,
            SettingsScope::Project,
            SettingsScope::Local,
        ]),
        ..SettingsFlags::default()
    };
    let runs = || {
        let mut settings = machine.load_with(&flags);
        (settings.env().len(), settings.hooks().len())
    };
    assert_eq!(runs(), (0, 1), "the user's own hook");
    machine.trust();
    assert_eq!(runs(), (1, 0));
}

#[test]
fn names_that_are_no_text_are_told_apart() {
    use std::os::unix::ffi::OsStringExt;
    let folder = |last: u8| std::ffi::OsString::from_vec(vec![b'x', last]);
    let mut machine = Machine::new([]);
    let root = machine.files.root().to_path_buf();
    let foreign = r#"{"permissions": {"allow": ["Edit"]}}"#;
    for last in [0xfe, 0xff] {
        fs::create_dir_all(root.join(folder(last)).join(".claude")).unwrap();
    }
    machine.places.cwd = root.join(folder(0xfe));
    saved(&machine, "Bash");
    machine.trust();
    assert_eq!(machine.rules(), ["allow Bash"]);
    let ours = root.join(folder(0xfe)).join(".claude/settings.local.json");
    let theirs = root.join(folder(0xff)).join(".claude/settings.local.json");
    fs::copy(ours, &theirs).unwrap();
    machine.places.cwd = root.join(folder(0xff));
    assert_eq!(machine.rules(), [""; 0]);
    fs::write(theirs, foreign).unwrap();
    assert_eq!(machine.rules(), [""; 0]);
}
