//! Where paths really lead: rules, roots and control files are judged by both names of a file.

use std::os::unix::fs::symlink;

use haft_contract::PermissionMode;
use haft_engine::permissions::DecisionReason;
use serde_json::{Value, json};

use crate::machine::{LOCAL, Machine, PROJECT, USER};

fn deny(rules: &[&str]) -> String {
    json!({"permissions": {"deny": rules}}).to_string()
}

fn file(machine: &Machine, name: &str) -> Value {
    json!({"file_path": machine.files.path(name)})
}

fn link(machine: &Machine, name: &str, to: &str) {
    let at = machine.files.path(name);
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(machine.files.path(to), at).unwrap();
}

#[test]
fn row_75_a_link_to_a_key_is_that_key() {
    let user = json!({"permissions": {
        "allow": ["Read(./project/**)"], "deny": ["Read(~/.ssh/**)"],
    }});
    let machine = Machine::new([(USER, user.to_string().as_str()), ("home/.ssh/id", "key")]);
    link(&machine, "p/project/key", "home/.ssh/id");
    link(&machine, "p/project/dir", "home/.ssh");
    for name in ["p/project/key", "p/project/dir/id", "home/.ssh/id"] {
        assert_eq!(
            machine.verdict("Read", &file(&machine, name)),
            "deny",
            "{name}"
        );
    }
    for line in ["cat project/key", "cat project/dir/id", "cat ~/.ssh/id"] {
        let input = json!({"command": line});
        assert_eq!(machine.verdict("Bash", &input), "deny", "{line}");
    }
    // Without a rule a key is still asked about.
    std::fs::remove_file(machine.files.path(USER)).unwrap();
    let decision = machine.decide("Read", &file(&machine, "p/project/key"));
    assert!(matches!(decision.reason, DecisionReason::Sensitive(..)));
}

#[test]
fn a_denied_file_is_denied_by_each_of_its_names() {
    let rules = deny(&["Read(./secret.txt)", "Read(./vault/**)"]);
    let machine = Machine::new([
        (PROJECT, rules.as_str()),
        ("p/secret.txt", "s"),
        ("p/kept/key", "k"),
        ("p/open.txt", "o"),
    ]);
    link(&machine, "p/alias.txt", "p/secret.txt");
    link(&machine, "p/twice.txt", "p/alias.txt");
    link(&machine, "p/here", "p");
    // The rule names a link, and the file is called by its own name.
    link(&machine, "p/vault", "p/kept");
    for (name, expected) in [
        ("p/secret.txt", "deny"),
        ("p/alias.txt", "deny"),
        ("p/twice.txt", "deny"),
        ("p/here/secret.txt", "deny"),
        ("p/here/here/alias.txt", "deny"),
        ("p/open.txt/../secret.txt", "deny"),
        ("p/nowhere/../secret.txt", "deny"),
        ("p/vault/key", "deny"),
        ("p/kept/key", "deny"),
        ("p/vault/../open.txt", "allow"),
        ("p/open.txt", "allow"),
        ("p/secret.txt.bak", "allow"),
    ] {
        for tool in ["Read", "Write"] {
            let expected = match (tool, expected) {
                ("Write", "allow") => "ask",
                (_, expected) => expected,
            };
            let decision = machine.decide(tool, &file(&machine, name));
            let got = decision.behavior.name();
            assert_eq!(got, expected, "{tool} {name}: {}", decision.reason);
        }
    }
    for line in [
        "cat alias.txt",
        "cat here/secret.txt",
        "head -1 kept/key",
        "cat < twice.txt",
    ] {
        let input = json!({"command": line});
        assert_eq!(machine.verdict("Bash", &input), "deny", "{line}");
    }
}

#[test]
fn a_session_started_behind_a_link_has_the_same_rules() {
    let project = json!({"permissions": {
        "deny": ["Read(.env)", "Read(./private/**)"], "allow": ["Edit(src/**)"],
    }});
    let machine = Machine::new([
        (PROJECT, project.to_string().as_str()),
        ("p/.env", "e"),
        ("p/private/k", "k"),
        ("p/src/a.rs", "a"),
    ]);
    machine.trust();
    link(&machine, "link", "p");
    let machine = machine.started_in("link");
    for folder in ["link", "p"] {
        let call = |tool: &str, name: &str| {
            machine.verdict(tool, &file(&machine, &format!("{folder}/{name}")))
        };
        assert_eq!(call("Read", ".env"), "deny", "{folder}");
        assert_eq!(call("Read", "private/k"), "deny", "{folder}");
        assert_eq!(call("Read", "src/a.rs"), "allow", "{folder}");
        assert_eq!(call("Edit", "src/a.rs"), "allow", "{folder}");
        assert_eq!(call("Edit", "b.rs"), "ask", "{folder}");
    }
    let real = machine.files.path("p/.env").display().to_string();
    let input = json!({"command": format!("cat {real}")});
    assert_eq!(machine.verdict("Bash", &input), "deny");
}

#[test]
fn a_home_behind_a_link_is_the_same_home() {
    let user = deny(&["Read(~/notes/**)"]);
    let mut machine = Machine::new([
        (USER, user.as_str()),
        ("home/notes/n", "n"),
        ("home/.ssh/id", "k"),
    ]);
    link(&machine, "people/me", "home");
    machine.places.home = machine.files.path("people/me");
    for folder in ["home", "people/me"] {
        let notes = file(&machine, &format!("{folder}/notes/n"));
        assert_eq!(machine.verdict("Read", &notes), "deny", "{folder}");
        let key = machine.decide("Read", &file(&machine, &format!("{folder}/.ssh/id")));
        assert!(
            matches!(key.reason, DecisionReason::Sensitive(..)),
            "{folder}"
        );
        let all = machine.files.path(folder).display().to_string();
        let removal = json!({"command": format!("rm -rf {all}")});
        let decision = machine.decide("Bash", &removal);
        assert!(
            matches!(decision.reason, DecisionReason::Critical(_)),
            "{folder}: {}",
            decision.reason
        );
    }
}

#[test]
fn the_boundary_is_one_of_whole_names_and_real_places() {
    let edits = json!({"permissions": {"defaultMode": "acceptEdits"}}).to_string();
    let machine = Machine::new([
        (USER, edits.as_str()),
        ("p/a", "a"),
        ("p-sibling/a", "a"),
        ("p2/a", "a"),
        ("out/a", "a"),
    ]);
    link(&machine, "p/out", "out");
    link(&machine, "p/dangling", "out/new");
    link(&machine, "out/back", "p");
    for (name, expected) in [
        ("p/a", "allow"),
        ("p/new/deep/file", "allow"),
        ("p-sibling/a", "ask"),
        ("p2/a", "ask"),
        ("p/../p2/a", "ask"),
        ("p/../p/a", "allow"),
        ("p/out/a", "ask"),
        ("p/out/new", "ask"),
        ("p/dangling", "ask"),
        ("p/out/../a", "ask"),
        ("out/back/a", "allow"),
        ("p/out/back/a", "allow"),
    ] {
        for tool in ["Read", "Write"] {
            let decision = machine.decide(tool, &file(&machine, name));
            let got = decision.behavior.name();
            assert_eq!(got, expected, "{tool} {name}: {}", decision.reason);
        }
    }
    // The kernel's own way round: into itself, whatever the rest says.
    let root = machine.files.root().display().to_string();
    for name in [
        format!("/proc/self/root{root}/p/a"),
        format!("/proc/thread-self/root{root}/out/a"),
        "/proc/self/cwd/a".to_owned(),
        "/proc/self/environ".to_owned(),
        "/dev/fd/0".to_owned(),
        "/PROC/self/environ".to_owned(),
    ] {
        for tool in ["Read", "Write"] {
            let decision = machine.decide(tool, &json!({ "file_path": name }));
            assert_eq!(decision.behavior.name(), "ask", "{tool} {name}");
        }
    }
}

#[test]
fn a_denied_file_is_denied_by_way_of_the_kernel_too() {
    let rules = deny(&["Read(./.env)"]);
    let machine = Machine::new([(PROJECT, rules.as_str()), ("p/.env", "e")]);
    let path = machine.files.path("p/.env").display().to_string();
    for name in [
        format!("/proc/self/root{path}"),
        format!("/proc/self/root/proc/self/root{path}"),
        format!("/{path}"),
        format!("/tmp/..{path}"),
        path.replace("/p/", "/p/./"),
    ] {
        let decision = machine.decide("Read", &json!({ "file_path": name }));
        assert_eq!(
            decision.behavior.name(),
            "deny",
            "{name}: {}",
            decision.reason
        );
        let line = json!({"command": format!("cat {name}")});
        let decision = machine.decide("Bash", &line);
        assert_eq!(
            decision.behavior.name(),
            "deny",
            "cat {name}: {}",
            decision.reason
        );
    }
}

#[test]
fn a_control_file_is_one_by_each_of_its_names_and_cases() {
    let edits = json!({"permissions": {"defaultMode": "acceptEdits", "allow": ["Edit"]}});
    let machine = Machine::new([(LOCAL, edits.to_string().as_str()), ("p/.git/config", "")]);
    machine.trust();
    link(&machine, "p/innocent", "p/.git/config");
    link(&machine, "p/folder", "p/.git");
    link(&machine, "p/.vscode", "p/plain");
    std::fs::create_dir(machine.files.path("p/plain")).unwrap();
    for name in [
        "p/.git/config",
        "p/.GIT/config",
        "p/.Git/hooks/pre-commit",
        "p/innocent",
        "p/folder/hooks/x",
        "p/.vscode/tasks.json",
        "p/sub/.Claude/settings.json",
        "p/.Mcp.JSON",
        "p/.BASHRC",
    ] {
        let decision = machine.decide("Write", &file(&machine, name));
        assert!(
            matches!(decision.reason, DecisionReason::Protected(_)),
            "{name}: {}",
            decision.reason
        );
    }
    let plain = machine.decide("Write", &file(&machine, "p/plain/tasks.json"));
    assert_eq!(plain.behavior.name(), "allow", "{}", plain.reason);
}

#[test]
fn a_link_gives_a_rule_no_further_reach() {
    // The user allows edits below a folder of the workspace, by an absolute path; a link there
    // leads elsewhere.
    let machine = Machine::new([("out/a", "a"), ("p/docs/b", "b")]);
    let rule = format!("Edit(/{}/**)", machine.files.path("p/docs").display());
    let user = json!({"permissions": {"allow": [rule]}}).to_string();
    machine.files.write(USER, user);
    link(&machine, "p/docs/away", "out");
    assert_eq!(
        machine.verdict("Edit", &file(&machine, "p/docs/b")),
        "allow"
    );
    assert_eq!(
        machine.verdict("Edit", &file(&machine, "p/docs/away/a")),
        "ask"
    );
    // Nor does it where the folder itself is the link.
    std::fs::remove_dir_all(machine.files.path("p/docs")).unwrap();
    link(&machine, "p/docs", "out");
    assert_eq!(machine.verdict("Edit", &file(&machine, "p/docs/a")), "ask");
    assert_eq!(machine.load().default_mode(), None::<PermissionMode>);
}
