//! Settings files: which count, what they say together, and what is wrong with them.

use std::{fs, os::unix::fs::symlink};

use haft_contract::PermissionMode;
use haft_engine::{
    permissions::{List, PermissionSettings, SettingsScope},
    settings::{LocalRules, SettingsFlags},
};
use serde_json::json;

use crate::{
    judged,
    machine::{LOCAL, MANAGED, Machine, PROJECT, USER, git},
};

fn flag(settings: &str) -> SettingsFlags {
    SettingsFlags {
        settings: Some(settings.to_owned()),
        ..SettingsFlags::default()
    }
}

fn sources(scopes: &[SettingsScope]) -> SettingsFlags {
    SettingsFlags {
        sources: Some(scopes.to_vec()),
        ..SettingsFlags::default()
    }
}

/// Every file says who it is, and denies a tool of its name.
fn everybody() -> Machine {
    let says = |who: &str| {
        json!({"who": who, "only": {who: true}, "permissions": {"deny": [format!("mcp__{who}")]}})
            .to_string()
    };
    let files = [
        (MANAGED, says("managed")),
        ("etc/managed-settings.d/20.json", says("twenty")),
        ("etc/managed-settings.d/10.json", says("ten")),
        ("etc/managed-settings.d/.hidden.json", says("hidden")),
        ("etc/managed-settings.d/30.txt", says("text")),
        (LOCAL, says("local")),
        (PROJECT, says("project")),
        (USER, says("user")),
        ("given.json", says("given")),
    ];
    Machine::new(files.iter().map(|(name, text)| (*name, text.as_str())))
}

#[test]
fn ranks_are_managed_flag_local_project_user() {
    let machine = everybody();
    let path = machine.files.path("given.json").display().to_string();
    let settings = machine.load_with(&flag(&path));
    let order: Vec<_> = settings
        .layers
        .iter()
        .map(|layer| layer.document.value["who"].as_str().unwrap())
        .collect();
    // Drop-ins come after the base file by their names, and the later one wins.
    let expected = [
        "twenty", "ten", "managed", "given", "local", "project", "user",
    ];
    assert_eq!(order, expected);
    let merged = settings.merged();
    assert_eq!(merged["who"], "twenty");
    let only = merged["only"].as_object().unwrap();
    assert_eq!(only.len(), expected.len(), "objects are merged by key");
    let denied = merged["permissions"]["deny"].as_array().unwrap();
    assert_eq!(denied[0], "mcp__twenty");
    assert_eq!(denied[6], "mcp__user");
    let mut problems = settings.problems.iter();
    assert!(problems.all(|problem| problem.text.contains("no settings are called who, only")));
}

#[test]
fn sources_limit_local_project_and_user_and_nothing_else() {
    let machine = everybody();
    let who = |flags: &SettingsFlags| -> Vec<String> {
        let settings = machine.load_with(flags);
        let layers = settings.layers.iter();
        let who = layers.map(|layer| layer.document.value["who"].as_str().unwrap().to_owned());
        who.filter(|who| !["twenty", "ten", "managed"].contains(&who.as_str()))
            .collect()
    };
    assert_eq!(who(&SettingsFlags::default()), ["local", "project", "user"]);
    assert_eq!(who(&sources(&[])), [""; 0]);
    assert_eq!(who(&sources(&[SettingsScope::User])), ["user"]);
    let both = sources(&[SettingsScope::Project, SettingsScope::Local]);
    assert_eq!(who(&both), ["local", "project"]);
    let none_but_the_flag = SettingsFlags {
        settings: Some(r#"{"who": "inline"}"#.to_owned()),
        ..sources(&[])
    };
    assert_eq!(who(&none_but_the_flag), ["inline"]);
}

#[test]
fn lists_are_joined_without_doubles_and_some_values_are_taken_whole() {
    let machine = Machine::new([
        (
            LOCAL,
            r#"{"a": [3, 1], "fallbackModel": ["x"], "deep": {"k": 1, "l": {"m": 1}}}"#,
        ),
        (
            USER,
            r#"{"a": [1, 2], "fallbackModel": ["y"], "deep": {"k": 2, "l": {"n": 2}}, "b": true}"#,
        ),
    ]);
    assert_eq!(
        machine.load().merged(),
        json!({
            "a": [3, 1, 2],
            "fallbackModel": ["x"],
            "deep": {"k": 1, "l": {"m": 1, "n": 2}},
            "b": true,
        })
    );
}

#[test]
fn available_models_are_joined_unless_the_administrator_names_them() {
    let with = |managed: &str| {
        let machine = Machine::new([
            (MANAGED, managed),
            (LOCAL, r#"{"availableModels": ["b"]}"#),
            (USER, r#"{"availableModels": ["c"]}"#),
        ]);
        machine.trust();
        machine.load().merged()["availableModels"].clone()
    };
    assert_eq!(with(r#"{"availableModels": ["a"]}"#), json!(["a"]));
    assert_eq!(with("{}"), json!(["b", "c"]));
}

#[test]
fn comments_trailing_commas_and_a_byte_order_mark_are_fine() {
    let machine = Machine::new([(
        USER,
        "\u{feff}// mine\n{\n  /* what may not run */ \"permissions\": {\n    \"deny\": [\"Bash(rm *)\",],\n  },\n}\n",
    )]);
    let mut settings = machine.load();
    let rules = settings.rules(&[], &[]);
    let rule = rules.iter().next().unwrap();
    assert_eq!(rule.text, "Bash(rm *)");
    assert_eq!(
        machine.plain(&rule.source.to_string()),
        "/home/.claude/settings.json:4"
    );
    assert_eq!(settings.problems, []);
}

#[test]
fn a_broken_file_is_left_out_and_the_others_count() {
    let machine = Machine::new([
        (
            PROJECT,
            "{\n  \"permissions\": {\n    \"deny\": [\"Read\" \"Edit\"]\n  }\n}\n",
        ),
        (LOCAL, "[\"not an object\"]"),
        (USER, r#"{"permissions": {"deny": ["Bash(rm *)"]}}"#),
        (MANAGED, "{\"a\": 1"),
    ]);
    fs::create_dir_all(machine.files.path("etc/managed-settings.d/10.json")).unwrap();
    fs::write(
        machine.files.path("etc/managed-settings.d/20.json"),
        [0xff, 0xfe],
    )
    .unwrap();
    let settings = machine.load();
    insta::assert_snapshot!(machine.problems(&settings).join("\n"));
    assert_eq!(machine.rules(), ["deny Bash(rm *)"]);
}

#[test]
fn a_broken_entry_is_left_out_and_the_others_count() {
    let machine = Machine::new([(
        USER,
        r#"{
  "permissions": {
    "deny": [
      "Bash(rm *)",
      "Bash(rm *",
      7,
      "Raed(x)"
    ],
    "allow": ["mcp__*", "Write(docs/**)", "Edit(docs/**)"],
    "ask": "Bash",
    "additionalDirectories": "../q",
    "defaultMode": "yolo"
  },
  "env": {"A": "1", "B": ["x"]},
  "hooks": {}
}"#,
    )]);
    let mut settings = machine.load();
    let mut rules = settings.rules(&[], &[]);
    settings.check_rules(&mut rules, &judged::specs());
    let counted: Vec<_> = rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(counted, ["Bash(rm *)", "Edit(docs/**)"]);
    assert_eq!(
        settings.directories(),
        [""; 0].map(std::path::PathBuf::from)
    );
    assert_eq!(settings.default_mode(), None);
    assert_eq!(settings.env().len(), 1);
    insta::assert_snapshot!(machine.problems(&settings).join("\n"));
}

#[test]
fn a_name_given_twice_is_told_since_rules_may_be_lost_by_it() {
    let machine = Machine::new([(
        USER,
        "{\n  \"permissions\": {\"deny\": [\"Read\"]},\n  \"permissions\": {\"deny\": [\"Edit\"]}\n}",
    )]);
    assert_eq!(machine.rules(), ["deny Edit"]);
    assert_eq!(
        machine.problems(&machine.load()),
        [
            "/home/.claude/settings.json:3: permissions occurs twice; only the value on this line applies"
        ]
    );
}

#[test]
fn what_is_too_large_or_no_plain_file_is_left_out() {
    let machine = Machine::new([]);
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(2 << 20));
    machine.files.write(USER, &large);
    fs::create_dir_all(machine.files.path(PROJECT)).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        machine.files.path(LOCAL),
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    let settings = machine.load();
    assert_eq!(settings.layers, []);
    assert_eq!(
        machine.problems(&settings),
        [
            "/p/.claude/settings.local.json: it is not a regular file; the file is left out",
            "/p/.claude/settings.json: it is not a regular file; the file is left out",
            "/home/.claude/settings.json: it is larger than 2 MiB; the file is left out",
        ]
    );
}

#[test]
fn a_large_file_is_read_in_time_that_grows_with_its_size() {
    let rules: Vec<String> = (0..60_000).map(|at| format!("Bash(x{at})")).collect();
    let text = json!({"permissions": {"deny": rules}}).to_string();
    assert!(text.len() < 2 << 20);
    let machine = Machine::new([(PROJECT, text.as_str())]);
    assert_eq!(machine.rules().len(), 60_000);
}

#[test]
fn the_flag_takes_a_file_or_json_and_says_when_it_is_neither() {
    let machine = Machine::new([(
        "p/more/given.json",
        r#"{"permissions": {"deny": ["Edit(/x)"]}}"#,
    )]);
    let place = |given: &str| {
        let mut settings = machine.load_with(&flag(given));
        let rules = settings.rules(&[], &[]);
        let rule = rules.iter().next().map(|rule| rule.source.to_string());
        (
            rule.map(|at| machine.plain(&at)),
            machine.problems(&settings),
        )
    };
    assert_eq!(
        place("more/given.json"),
        (Some("/p/more/given.json:1".to_owned()), vec![])
    );
    assert_eq!(
        place(r#" {"permissions": {"deny": ["Edit(/x)"]}}"#),
        (Some("command line".to_owned()), vec![])
    );
    for broken in ["{\"a\": ", "nowhere.json", "more"] {
        let (rule, problems) = place(broken);
        assert_eq!((rule, problems.len()), (None, 1), "{broken}: {problems:?}");
    }
}

#[test]
fn a_pattern_with_one_slash_starts_where_its_file_belongs() {
    let machine = Machine::new([
        (USER, r#"{"permissions": {"deny": ["Read(/user)"]}}"#),
        (PROJECT, r#"{"permissions": {"deny": ["Read(/project)"]}}"#),
        (LOCAL, r#"{"permissions": {"deny": ["Read(/local)"]}}"#),
        (
            "elsewhere/given.json",
            r#"{"permissions": {"deny": ["Read(/given)"]}}"#,
        ),
    ]);
    let given = machine.files.path("elsewhere/given.json");
    let mut settings = machine.load_with(&flag(&given.display().to_string()));
    let rules = settings.rules(&[], &["Read(/flag)".to_owned()]);
    for (path, expected) in [
        ("home/.claude/user", true),
        ("p/user", false),
        ("p/project", true),
        ("p/local", true),
        ("elsewhere/given", true),
        ("p/given", false),
        ("p/flag", true),
    ] {
        let input = json!({"file_path": machine.files.path(path)});
        let facts = machine.facts("Read", &input);
        let denied = rules.iter().any(|rule| facts.matches_rule(rule));
        assert_eq!(denied, expected, "{path}");
    }
}

#[test]
fn local_settings_lie_at_the_root_of_the_repository() {
    let machine = Machine::new([
        (
            LOCAL,
            r#"{"permissions": {"deny": ["mcp__root"]}, "who": "root"}"#,
        ),
        (
            "p/sub/.claude/settings.local.json",
            r#"{"permissions": {"deny": ["mcp__sub"]}, "who": "sub"}"#,
        ),
        (PROJECT, r#"{"permissions": {"deny": ["mcp__above"]}}"#),
    ])
    .started_in("p/sub");
    // Outside a repository only the starting directory counts.
    assert_eq!(machine.rules(), ["deny mcp__sub"]);
    git(&machine.files.path("p"), &["init", "-q"]);
    assert_eq!(machine.rules(), ["deny mcp__root", "deny mcp__sub"]);
    assert_eq!(machine.load().merged()["who"], "root");
    assert_eq!(machine.load().local_file(), machine.files.path(LOCAL));
}

#[test]
fn a_repository_that_is_the_home_directory_lends_no_root() {
    let machine = Machine::new([]).started_in("home/code/x");
    git(&machine.files.path("home"), &["init", "-q"]);
    let local = "home/code/x/.claude/settings.local.json";
    assert_eq!(machine.load().local_file(), machine.files.path(local));
}

#[test]
fn a_repository_of_someone_else_lends_no_root() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give a folder away.
    }
    let machine = Machine::new([]).started_in("p/sub");
    git(&machine.files.path("p"), &["init", "-q"]);
    std::os::unix::fs::chown(machine.files.path("p"), Some(12_345), None).unwrap();
    let local = "p/sub/.claude/settings.local.json";
    assert_eq!(machine.load().local_file(), machine.files.path(local));
}

#[test]
fn a_linked_worktree_has_the_local_settings_of_its_main_checkout() {
    let machine = Machine::new([("p/a", "a")]).started_in("linked");
    let main = machine.files.path("p");
    git(&main, &["init", "-q"]);
    git(&main, &["add", "a"]);
    git(&main, &["commit", "-qm", "a"]);
    fs::remove_dir(machine.files.path("linked")).unwrap();
    git(&main, &["worktree", "add", "-q", "../linked"]);
    assert_eq!(machine.load().local_file(), machine.files.path(LOCAL));
}

#[test]
fn a_worktree_that_its_checkout_does_not_know_is_not_believed() {
    let own = |machine: &Machine| {
        let local = machine.files.path("forged/.claude/settings.local.json");
        machine.load().local_file() == local
    };
    let gitdir = |machine: &Machine, to: &str| {
        let to = machine.files.path(to);
        let link = format!("gitdir: {}\n", to.display());
        machine.files.write("forged/.git", link);
    };
    // It names a worktree of another checkout, which names another place.
    let machine = Machine::new([("p/a", "a")]).started_in("forged");
    let main = machine.files.path("p");
    git(&main, &["init", "-q"]);
    git(&main, &["add", "a"]);
    git(&main, &["commit", "-qm", "a"]);
    git(&main, &["worktree", "add", "-q", "../linked"]);
    gitdir(&machine, "p/.git/worktrees/linked");
    assert!(own(&machine));
    // It names the other checkout itself.
    gitdir(&machine, "p/.git");
    assert!(own(&machine));
    // It names a folder of its own that is made to look like one of a checkout.
    gitdir(&machine, "p/.git/worktrees/none");
    assert!(own(&machine));
    let back = machine.files.path("forged/.git").display().to_string();
    machine.files.write("p/fake/worktrees/x/gitdir", back);
    gitdir(&machine, "p/fake/worktrees/x");
    assert!(own(&machine), "a folder that is not called .git is none");
}

#[test]
fn at_home_the_users_file_is_not_also_the_projects() {
    let machine =
        Machine::new([(USER, r#"{"permissions": {"allow": ["Bash(make)"]}}"#)]).started_in("home");
    let scopes = |machine: &Machine| -> Vec<_> {
        machine
            .load()
            .layers
            .iter()
            .map(|layer| layer.scope)
            .collect()
    };
    assert_eq!(scopes(&machine), [SettingsScope::User]);
    // Also by another name of the same place.
    symlink(machine.files.path("home"), machine.files.path("link")).unwrap();
    let machine = machine.started_in("link");
    assert_eq!(scopes(&machine), [SettingsScope::User]);
}

#[test]
fn only_the_administrators_rules_count_if_they_say_so() {
    let machine = Machine::new([
        (
            MANAGED,
            r#"{"allowManagedPermissionRulesOnly": true, "permissions": {"deny": ["Bash(rm *)"], "allow": ["Bash(make)"]}}"#,
        ),
        (
            USER,
            r#"{"permissions": {"allow": ["Bash"], "deny": ["Read"]}}"#,
        ),
        (PROJECT, r#"{"permissions": {"allow": ["Edit"]}}"#),
    ]);
    let mut settings = machine.load();
    let rules = settings.rules(&["Edit".to_owned()], &["Write".to_owned()]);
    let texts = crate::machine::texts(&rules);
    assert_eq!(texts, ["deny Bash(rm *)", "allow Bash(make)"]);
    assert_eq!(
        settings.untrusted(),
        None,
        "trust would not make them count"
    );
    // Said by anyone else it means nothing.
    let machine = Machine::new([(
        USER,
        r#"{"allowManagedPermissionRulesOnly": true, "permissions": {"deny": ["Read"]}}"#,
    )]);
    assert_eq!(machine.rules(), ["deny Read"]);
}

#[test]
fn whose_hooks_run_is_settled_by_the_administrator_first() {
    let hooks = |more: &str| format!(r#"{{"hooks": {{"Stop": []}}{more}}}"#);
    let scopes = |managed: &str, user: &str| -> Vec<SettingsScope> {
        let (managed, user) = (hooks(managed), hooks(user));
        let machine = Machine::new([(MANAGED, managed.as_str()), (USER, user.as_str())]);
        let hooks = machine.load().hooks();
        hooks.into_iter().map(|(scope, ..)| scope).collect()
    };
    let (managed, user) = (SettingsScope::Managed, SettingsScope::User);
    assert_eq!(scopes("", ""), [managed, user]);
    assert_eq!(scopes("", r#", "disableAllHooks": true"#), [managed]);
    assert_eq!(scopes(r#", "disableAllHooks": true"#, ""), [managed; 0]);
    let kept = scopes(
        r#", "disableAllHooks": false"#,
        r#", "disableAllHooks": true"#,
    );
    assert_eq!(kept, [managed, user], "the highest rank wins");
    assert_eq!(scopes(r#", "allowManagedHooksOnly": true"#, ""), [managed]);
    let said_by_the_user = scopes("", r#", "allowManagedHooksOnly": true"#);
    assert_eq!(said_by_the_user, [managed, user]);
}

#[test]
fn the_mode_is_that_of_the_highest_file_that_may_say_it() {
    let mode = |file: &str, mode: &str| {
        let text = json!({"permissions": {"defaultMode": mode}}).to_string();
        let machine = Machine::new([(file, text.as_str())]);
        let mut settings = machine.load();
        (settings.default_mode(), settings.problems.len())
    };
    use PermissionMode as Mode;
    assert_eq!(mode(USER, "plan"), (Some(Mode::Plan), 0));
    assert_eq!(mode(USER, "manual"), (Some(Mode::Default), 0));
    assert_eq!(
        mode(USER, "bypassPermissions"),
        (Some(Mode::BypassPermissions), 0)
    );
    assert_eq!(mode(PROJECT, "dontAsk"), (Some(Mode::DontAsk), 0));
    assert_eq!(mode(PROJECT, "bypassPermissions"), (None, 1));
    assert_eq!(mode(LOCAL, "bypassPermissions"), (None, 1));
    assert_eq!(mode(USER, "auto"), (Some(Mode::Auto), 0));
    assert_eq!(mode(PROJECT, "auto"), (None, 1));
    assert_eq!(mode(LOCAL, "auto"), (None, 1));
    let machine = Machine::new([
        (LOCAL, r#"{"permissions": {"defaultMode": "plan"}}"#),
        (USER, r#"{"permissions": {"defaultMode": "acceptEdits"}}"#),
    ]);
    assert_eq!(machine.load().default_mode(), Some(Mode::Plan));
}

#[test]
fn any_file_may_forbid_bypass() {
    for file in [MANAGED, USER, PROJECT, LOCAL] {
        let text = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;
        let machine = Machine::new([(file, text)]);
        assert!(machine.load().bypass_is_disabled(), "{file}");
    }
    let machine = Machine::new([(
        USER,
        r#"{"permissions": {"disableBypassPermissionsMode": "enable"}}"#,
    )]);
    assert!(!machine.load().bypass_is_disabled());
}

#[test]
fn any_file_may_forbid_auto_and_suspend_rules_for_it() {
    for file in [MANAGED, USER, PROJECT, LOCAL] {
        for text in [
            r#"{"permissions": {"disableAutoMode": "disable"}}"#,
            r#"{"disableAutoMode": "disable"}"#,
        ] {
            let machine = Machine::new([(file, text)]);
            assert!(machine.load().auto_is_disabled(), "{file}");
        }
        let machine = Machine::new([(file, r#"{"autoMode": {"classifyAllShell": true}}"#)]);
        let mut settings = machine.load();
        assert!(!settings.auto_is_disabled());
        assert!(settings.sandbox().auto_ignores_command_rules, "{file}");
    }
}

#[test]
fn hard_denials_that_are_rules_deny_and_sentences_are_listed() {
    let text = r#"{"autoMode": {
        "hard_deny": ["Bash(git push *)", "never touch billing"],
        "allow": ["x"], "environment": ["y"], "soft_deny": ["z"]
    }, "useAutoModeDuringPlan": true}"#;
    let machine = Machine::new([(PROJECT, text)]);
    let mut settings = machine.load();
    let rules = settings.rules(&[], &[]);
    let denied: Vec<&str> = rules
        .in_list(List::Deny)
        .map(|rule| rule.text.as_str())
        .collect();
    assert_eq!(denied, ["Bash(git push *)"]);
    assert_eq!(settings.auto_sentences(), ["never touch billing"]);
    assert_eq!(
        settings.auto_keys_without_effect(),
        [
            "autoMode.environment",
            "autoMode.allow",
            "autoMode.soft_deny",
            "useAutoModeDuringPlan"
        ]
    );
    assert_eq!(settings.problems, []);
}

#[test]
fn directories_start_where_the_session_does() {
    let machine = Machine::new([(
        USER,
        r#"{"permissions": {"additionalDirectories": ["../q", "~/notes", "/abs", "~", "../q"]}}"#,
    )]);
    let directories: Vec<String> = machine
        .load()
        .directories()
        .iter()
        .map(|path| machine.plain(&path.display().to_string()))
        .collect();
    assert_eq!(directories, ["/p/../q", "/home/notes", "/abs", "/home"]);
}

#[test]
fn rules_that_a_person_keeps_leave_the_rest_of_the_file_alone() {
    let text = "{\n    // mine\n    \"env\": {\"A\": \"1\"}, // keep\n    \"permissions\": {\n        \"deny\": [\"Read(.env)\"],\n        \"allow\": [\n            \"Bash(make)\", // builds\n        ]\n    }\n}\n";
    let machine = Machine::new([(LOCAL, text)]);
    let local = LocalRules {
        places: machine.places.clone(),
    };
    let rules = ["Bash(npm test *)".to_owned(), "Bash(make)".to_owned()];
    local.add(&rules).unwrap();
    local.add(&rules).unwrap();
    insta::assert_snapshot!(machine.files.read(LOCAL));
    assert_eq!(machine.rules().len(), 3);
}

#[test]
fn a_kept_rule_makes_the_folder_and_the_file() {
    let machine = Machine::new([]);
    let local = LocalRules {
        places: machine.places.clone(),
    };
    local.add(&["mcp__toy__x".to_owned()]).unwrap();
    assert_eq!(machine.rules(), ["allow mcp__toy__x"]);
    let folder = fs::read_dir(machine.files.path("p/.claude")).unwrap();
    assert_eq!(folder.count(), 1, "nothing else is left behind");
}

#[test]
fn a_rule_is_not_kept_in_what_cannot_be_understood_or_is_reached_by_a_link() {
    let machine = Machine::new([(LOCAL, "{\"permissions\": "), ("theirs/x", "")]);
    let local = LocalRules {
        places: machine.places.clone(),
    };
    let rule = ["Bash(make)".to_owned()];
    assert!(local.add(&rule).is_err());
    assert_eq!(machine.files.read(LOCAL), "{\"permissions\": ");
    for text in [
        r#"{"permissions": []}"#,
        r#"{"permissions": {"allow": {}}}"#,
    ] {
        machine.files.write(LOCAL, text);
        assert!(local.add(&rule).is_err());
        assert_eq!(machine.files.read(LOCAL), text);
    }
    fs::remove_file(machine.files.path(LOCAL)).unwrap();
    symlink(machine.files.path("theirs/x"), machine.files.path(LOCAL)).unwrap();
    assert!(local.add(&rule).is_err(), "the file is a link");
    fs::remove_dir_all(machine.files.path("p/.claude")).unwrap();
    symlink(
        machine.files.path("theirs"),
        machine.files.path("p/.claude"),
    )
    .unwrap();
    assert!(local.add(&rule).is_err(), "the folder is a link");
    assert_eq!(machine.files.read("theirs/x"), "");
}
