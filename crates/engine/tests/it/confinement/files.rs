//! Which files a command may change, and which it may not even read.

use std::fs;

use serde_json::json;

use super::*;

#[tokio::test]
async fn what_is_writable_protected_and_hidden() {
    let settings = json!({
        "sandbox": {
            "filesystem": {
                "allowWrite": ["~/cache/**", "//opt/none", "~/*.log"],
                "denyWrite": ["/nowhere", "~/cache/keep"],
                "denyRead": ["~/private", "~/keys/*.pem"],
                "allowRead": ["~/private/shown"],
            },
            "credentials": {
                "files": [{"path": "~/.token", "mode": "deny"}],
                "envVars": [{"name": "MY_TOKEN", "mode": "deny"}, "OTHER"],
            },
        },
        "permissions": {
            "allow": ["Edit(~/notes/**)", "Edit(./src/**)", "Edit(~/.claude/skills/**)"],
            "deny": ["Edit(./locked.txt)", "Edit(*.lock)", "Read(./.env)", "Read(secrets/**)"],
        },
    });
    let mut files = vec![(USER, settings.to_string())];
    for name in [
        "home/cache/a",
        "home/cache/keep/a",
        "home/private/a",
        "home/private/shown/b",
        "home/keys/one.pem",
        "home/keys/one.txt",
        "home/.token",
        "home/notes/a",
        "home/.claude/skills/x/SKILL.md",
        "p/src/a.rs",
        "p/locked.txt",
        "p/deep/down/x.lock",
        "p/.env",
        "p/sub/secrets/k",
        "p/.vscode/tasks.json",
        "p/.npmrc",
        "p/.claude/settings.json",
        "p/packages/a/.envrc",
        "p/node_modules/b/.npmrc",
    ] {
        files.push((name, "{}".to_owned()));
    }
    let machine = Machine::new(files.iter().map(|(name, text)| (*name, text.as_str())));
    git(&machine.places.cwd, &["init", "-q"]);
    let mut session = Session::of_settings(machine, true).await;
    let confinement = session.run("make").await;
    let writable = session.writable(&confinement);
    let protected = session.names(&confinement.protected);
    let hidden = session.names(&confinement.hidden);
    assert_eq!(writable, ["/home/cache", "/home/notes", "/p"]);
    assert_eq!(
        protected,
        [
            "/home/cache/keep",
            "/p/.claude",
            "/p/.git/config",
            "/p/.git/hooks",
            "/p/.npmrc",
            "/p/.vscode",
            "/p/deep/down/x.lock",
            "/p/locked.txt",
            "/p/packages/a/.envrc",
        ]
    );
    let kept = [
        "/home/.claude/haft",
        "/home/.token",
        "/home/keys/one.pem",
        "/home/private/a",
        "/p/.env",
        "/p/sub/secrets",
    ];
    assert_eq!(hidden, kept);
    assert_eq!(*confinement.withheld, ["MY_TOKEN", "OTHER"]);
    assert!(
        confinement
            .control
            .is_control_file(&session.machine.files.path("p/x/.npmrc"))
    );
    assert!(
        !confinement
            .control
            .is_control_file(&session.machine.files.path("p/x/a.rs"))
    );
    // What only reads may change nothing at all, and is kept from the same files.
    let reading = session.run("ls").await;
    assert_eq!(session.names(&reading.hidden), kept);
    assert!(reading.writable.is_empty() && reading.protected.is_empty());
}

#[tokio::test]
async fn what_a_person_agreed_to_write_may_be_written_and_its_neighbours_may_not() {
    let machine = Machine::new([
        ("p/.vscode/tasks.json", "{}"),
        ("p/.vscode/launch.json", "{}"),
        ("q/known.txt", "x"),
        ("q/other.txt", "x"),
        ("q/folder/a", "x"),
    ]);
    let mut session = Session::new(machine, Setup::default()).await;
    // A file outside, new or not: its directory, but for what else is in there.
    for line in ["echo x > ../q/new.txt", "sed -i s/x/y/ ../q/new.txt"] {
        let confinement = session.run(line).await;
        assert_eq!(session.writable(&confinement), ["/p", "/q"], "{line}");
        assert_eq!(
            session.names(&confinement.protected),
            ["/p/.vscode", "/q/folder", "/q/known.txt", "/q/other.txt"],
            "{line}"
        );
    }
    let confinement = session.run("touch ../q/known.txt").await;
    let protected = session.names(&confinement.protected);
    assert!(
        !protected.contains(&"/q/known.txt".to_owned()),
        "{protected:?}"
    );
    // A directory outside: all of it.
    let confinement = session.run("rm -r ../q/folder").await;
    assert_eq!(session.writable(&confinement), ["/p", "/q/folder"]);
    // Right beside the working directory, which stays what it is.
    let confinement = session.run("echo x > ../new.txt").await;
    let protected = session.names(&confinement.protected);
    assert_eq!(session.writable(&confinement), [""]);
    assert!(protected.contains(&"/q".to_owned()), "{protected:?}");
    assert!(protected.contains(&"/p/.vscode".to_owned()));
    assert!(!protected.contains(&"/p".to_owned()));
    // A control file that was named; the others stay.
    let confinement = session.run("echo '{}' > .vscode/tasks.json").await;
    assert_eq!(
        session.names(&confinement.protected),
        ["/p/.vscode/launch.json"]
    );
    let tasks = session.machine.files.path("p/.vscode/tasks.json");
    assert!(!confinement.control.is_control_file(&tasks));
    let new = session.machine.files.path("p/.vscode/new.json");
    assert!(confinement.control.is_control_file(&new));
    // What lands in a directory is not named by naming the directory.
    let confinement = session.run("cp -r ../q/. .").await;
    assert_eq!(session.names(&confinement.protected), ["/p/.vscode"]);
    // A directory that goes away goes with what is in it.
    let confinement = session.run("rm -r .vscode").await;
    assert_eq!(session.names(&confinement.protected), [""; 0]);
}

#[tokio::test]
async fn a_linked_worktree_may_commit_and_not_change_what_runs() {
    let machine = Machine::new([("main/a", "a")]);
    let main = machine.files.path("main");
    git(&main, &["init", "-q"]);
    git(&main, &["add", "a"]);
    git(&main, &["commit", "-qm", "a"]);
    fs::remove_dir_all(machine.files.path("p")).unwrap();
    git(&main, &["worktree", "add", "-q", "../p"]);
    let mut session = Session::new(machine, Setup::default()).await;
    let confinement = session.run("git commit -m x").await;
    assert_eq!(session.writable(&confinement), ["/main/.git", "/p"]);
    assert_eq!(
        session.names(&confinement.protected),
        [
            "/main/.git/config",
            "/main/.git/hooks",
            "/main/.git/worktrees/p/commondir",
            "/main/.git/worktrees/p/gitdir",
            "/p/.git",
        ]
    );
}

#[tokio::test]
async fn a_part_of_a_repository_may_commit_and_not_change_what_runs() {
    let machine = Machine::new([("p/part/a", "a")]);
    git(&machine.files.path("p"), &["init", "-q"]);
    let machine = machine.started_in("p/part");
    let mut session = Session::new(machine, Setup::default()).await;
    let confinement = session.run("git commit -m x").await;
    assert_eq!(session.writable(&confinement), ["/p/.git", "/p/part"]);
    assert_eq!(
        session.names(&confinement.protected),
        ["/p/.git/config", "/p/.git/hooks"]
    );
}

#[tokio::test]
async fn a_session_in_a_folder_of_control_files_changes_what_was_agreed_to_and_nothing_else() {
    let machine = Machine::new([("p/.vscode/tasks.json", "{}"), ("p/.vscode/a/b", "")]);
    let machine = machine.started_in("p/.vscode");
    let mut session = Session::new(machine, Setup::default()).await;
    let confinement = session.run("make").await;
    assert_eq!(session.writable(&confinement), [""; 0]);
    let confinement = session.run("echo x > new.json").await;
    assert_eq!(session.writable(&confinement), ["/p/.vscode"]);
    let kept = session.names(&confinement.protected);
    assert_eq!(kept, ["/p/.vscode/a", "/p/.vscode/tasks.json"]);
}

#[tokio::test]
async fn what_is_denied_is_hidden_wherever_a_link_leads() {
    let settings = json!({"permissions": {"deny": ["Read(*.key)", "Edit(*.lock)"]}}).to_string();
    let machine = Machine::new([
        (USER, settings.as_str()),
        ("elsewhere/real.txt", ""),
        ("p/deep/b.key", ""),
        ("p/x.lock", ""),
    ]);
    let link = machine.files.path("p/a.key");
    std::os::unix::fs::symlink(machine.files.path("elsewhere/real.txt"), link).unwrap();
    let mut session = Session::new(machine, Setup::default()).await;
    let confinement = session.run("make").await;
    let hidden = session.names(&confinement.hidden);
    assert_eq!(hidden, ["/elsewhere/real.txt", "/p/deep/b.key"]);
    assert_eq!(session.names(&confinement.protected), ["/p/x.lock"]);
}

#[tokio::test]
async fn a_link_that_a_command_may_have_made_opens_nothing() {
    let settings = |root: &str| {
        json!({
            "sandbox": {"filesystem": {
                "allowWrite": [format!("{root}/p/out"), "~/cache", format!("{root}/p/a/deep")],
                "denyRead": ["~/keys", format!("{root}/p/secrets")],
                "allowRead": [format!("{root}/p/shown"), "~/keys/public"],
            }},
            "permissions": {"allow": [format!("Edit(/{root}/p/edited/**)")]},
        })
        .to_string()
    };
    let machine = Machine::new([
        ("home/keys/private/k", ""),
        ("home/keys/public/k", ""),
        ("home/disk/cache/x", ""),
        ("p/secrets/k", ""),
        ("victim/deep/x", ""),
    ]);
    let root = machine.files.root().display().to_string();
    machine.files.write(USER, settings(&root));
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(machine.files.path(to), machine.files.path(from)).unwrap();
    };
    // The user's own, outside of what commands change.
    link("home/cache", "home/disk/cache");
    // Made in the workspace.
    link("p/out", "victim");
    link("p/a", "victim");
    link("p/edited", "victim");
    link("p/shown", "home/keys/private");
    let mut session = Session::of_settings(machine, true).await;
    let confinement = session.run("make").await;
    assert_eq!(session.writable(&confinement), ["/home/disk/cache", "/p"]);
    let hidden = ["/home/.claude/haft", "/home/keys/private", "/p/secrets"];
    assert_eq!(session.names(&confinement.hidden), hidden);
    let shown = session.machine.files.path("p/shown");
    fs::remove_file(&shown).unwrap();
    std::os::unix::fs::symlink(session.machine.files.path("p/secrets"), shown).unwrap();
    let confinement = session.run("ls").await;
    assert_eq!(session.names(&confinement.hidden), hidden);
}
