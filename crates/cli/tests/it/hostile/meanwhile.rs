//! What others do at one certain instant of a command's life, and what the command makes of it.

use std::{fs, path::Path, process::Stdio, thread, time::Duration};

use serde_json::{Value, json};

use super::{
    Dice,
    arena::{Arena, SECRET},
    bash, until,
};
use crate::binary::Conversation;

/// Root, where the tests are, and an ordinary user.
fn everybody(attempt: impl Fn(&Arena)) {
    attempt(&Arena::new(None));
    if super::are_we_root() {
        attempt(&Arena::new(Some(super::ORDINARY)));
    }
}

fn session(arena: &Arena, settings: &Value) -> Conversation {
    let mut haft = arena.command(&arena.binary);
    let settings = settings.to_string();
    haft.args(["--allowed-tools", "Bash", "--settings", &settings])
        .stderr(Stdio::null());
    Conversation::of(&mut haft)
}

fn say(arena: &Arena, talk: &mut Conversation, script: &str) {
    fs::write(arena.project().join("attack.sh"), script).unwrap();
    let input = json!({"command": "bash ./attack.sh", "timeout": 60_000});
    talk.say(&bash(1, &input));
}

/// Waits until the command has left this behind.
fn has_made(path: &Path) {
    until("it never began", || match path.exists() {
        true => Ok(()),
        false => Err(path.display().to_string()),
    });
}

fn content(answer: &Value) -> &str {
    answer["content"].as_str().unwrap_or_default()
}

#[test]
fn a_denied_file_that_was_missing_is_not_read_when_it_comes_back() {
    everybody(|arena| {
        let hidden = arena.path("place/project/hidden/secret.txt");
        let away = arena.path("outside/away/secret");
        fs::rename(&hidden, &away).unwrap();
        let denied = json!({"sandbox": {"filesystem": {"denyRead": ["./hidden/secret.txt"]}}});
        let mut talk = session(arena, &denied);
        let script =
            "echo > began; until cat hidden/secret.txt; do sleep 0.01; done 2>/dev/null; sleep 30";
        say(arena, &mut talk, script);
        has_made(&arena.project().join("began"));
        fs::rename(&away, &hidden).unwrap();
        let answer = talk.hear();
        assert!(!content(&answer).contains(SECRET), "{answer}");
        assert!(
            content(&answer).contains("replaced from outside"),
            "{answer}"
        );
        talk.end();
    });
}

#[test]
fn a_hidden_file_is_not_read_however_close_to_the_start_it_is_replaced() {
    everybody(|arena| {
        let hidden = arena.path("place/project/hidden/secret.txt");
        let denied = json!({"sandbox": {"filesystem": {"denyRead": ["./hidden/secret.txt"]}}});
        let mut talk = session(arena, &denied);
        let mut dice = Dice(3);
        for round in 0..40 {
            let script =
                "for i in 1 2 3 4 5; do cat hidden/secret.txt; sleep 0.01; done 2>/dev/null";
            say(arena, &mut talk, script);
            thread::sleep(Duration::from_micros(dice.below(60_000)));
            let new = arena.path("outside/new");
            fs::write(&new, format!("{SECRET} {round}")).unwrap();
            arena.give(&new);
            fs::rename(&new, &hidden).unwrap();
            let answer = talk.hear();
            assert!(!answer.to_string().contains(SECRET), "{round}: {answer}");
        }
        talk.end();
    });
}

/// All that takes control files away, and puts others in their place.
const REMOVALS: &str = "
rm -rf .git/hooks .git/config
mv .git/hooks h; rm -rf h
mv .git/config c; rm -f c
mv .git g; rm -rf g
printf '[core]\n\tfsmonitor = ./x\n' > n; mv -f n .git/config; rm -f n
mkdir .git/h; mv -T .git/h .git/hooks; rmdir .git/h
find .git/hooks .git/config -delete
python3 -c 'import os
d = os.open(\".git\", os.O_RDONLY)
for name in [\"config\", \"hooks/pre-push.sample\"]:
    try: os.unlink(name, dir_fd=d)
    except OSError: pass'
echo all tried";

#[test]
fn control_files_that_were_away_when_a_command_began_are_not_removed_by_it() {
    everybody(|arena| {
        let before = arena.control();
        let (hooks, away) = (
            arena.path("place/project/.git/hooks"),
            arena.path("outside/away/it"),
        );
        fs::rename(&hooks, &away).unwrap();
        let mut talk = session(arena, &json!({}));
        let wait = "echo > began; until [ -e .git/hooks ]; do sleep 0.01; done";
        say(arena, &mut talk, &format!("{wait}{REMOVALS}"));
        has_made(&arena.project().join("began"));
        fs::rename(&away, &hooks).unwrap();
        let answer = talk.hear();
        assert!(content(&answer).contains("all tried"), "{answer}");
        assert_eq!(arena.control(), before, "{answer}");
        talk.end();
    });
}

#[test]
fn nor_are_those_that_came_into_their_place() {
    everybody(|arena| {
        let before = arena.control();
        let (git, new) = (arena.path("place/project/.git"), arena.path("outside/new"));
        let copied = arena.command("cp").arg("-a").args([&git, &new]).status();
        assert!(copied.unwrap().success());
        let mut talk = session(arena, &json!({}));
        let wait = "echo > began; until [ -e go-on ]; do sleep 0.01; done";
        say(arena, &mut talk, &format!("{wait}{REMOVALS}"));
        has_made(&arena.project().join("began"));
        fs::rename(&git, arena.path("outside/away/it")).unwrap();
        fs::rename(&new, &git).unwrap();
        fs::write(arena.project().join("go-on"), "").unwrap();
        let answer = talk.hear();
        assert!(content(&answer).contains("all tried"), "{answer}");
        assert_eq!(arena.control(), before, "{answer}");
        talk.end();
    });
}

#[test]
fn what_a_command_made_and_what_is_installed_it_may_remove() {
    everybody(|arena| {
        let installed = arena.path("place/project/node_modules/a");
        fs::create_dir_all(&installed).unwrap();
        fs::write(installed.join(".npmrc"), "").unwrap();
        for path in [installed.as_path(), installed.parent().unwrap()] {
            arena.give(path);
        }
        arena.give(&installed.join(".npmrc"));
        let mut talk = session(arena, &json!({}));
        let script = "set -e
            git init -q new; cd new; git config user.name x; git config user.name y; cd ..
            git clone -q new copy 2>/dev/null; mv new other; rm -r other copy node_modules
            mkdir -p a/b; echo > a/b/c; ln -s c a/b/d; mkfifo a/b/e; rm -r a; echo fine";
        say(arena, &mut talk, script);
        let answer = talk.hear();
        assert_eq!(content(&answer), "fine", "{answer}");
        for gone in ["new", "other", "copy", "node_modules", "a"] {
            assert!(!arena.project().join(gone).exists(), "{gone}");
        }
        talk.end();
    });
}

#[test]
fn a_directory_brings_nothing_to_names_that_are_kept() {
    everybody(|arena| {
        let denied = ["./plain.env", "./conf/secret.env", "./keys/*.key"];
        let denied = json!({"sandbox": {"filesystem": {"denyWrite": denied}}});
        let before = arena.control();
        let mut talk = session(arena, &denied);
        let script = "
            echo > plain.env; echo > n; mv n plain.env
            mkdir c; echo > c/secret.env; mv c conf
            mkdir k; echo > k/a.key; mv k keys
            mkdir free; echo > free/a.key; mv free moved
            mv .git/info .git/x; mkdir .git/x; echo '* filter=x' > .git/x/attributes; mv .git/x .git/info
            rm -r .git/info; mv -T .git/x .git/info
            mkdir -p .git/m/a/hooks; echo > .git/m/a/hooks/pre-commit; mv .git/m .git/modules
            mkdir -p .git/w/a; echo > .git/w/a/commondir; mv .git/w .git/worktrees
            mkdir -p $TMPDIR/d/.claude; echo > $TMPDIR/d/.claude/settings.json; mv -T $TMPDIR/d here
            echo all tried";
        say(arena, &mut talk, script);
        let answer = talk.hear();
        assert!(content(&answer).contains("all tried"), "{answer}");
        for denied in [
            "plain.env",
            "conf/secret.env",
            "keys/a.key",
            ".git/worktrees",
        ] {
            assert!(!arena.project().join(denied).exists(), "{denied}: {answer}");
        }
        assert!(arena.project().join("moved/a.key").exists(), "{answer}");
        assert_eq!(arena.control(), before, "{answer}");
        talk.end();
    });
}

#[test]
fn a_session_stays_where_it_was_when_its_directory_is_moved_meanwhile() {
    everybody(|arena| {
        let (project, away) = (arena.project(), arena.path("outside/away/it"));
        let mut talk = session(arena, &json!({}));
        for script in ["", "cd sub; "] {
            let text =
                format!("echo > began; until [ -e go-on ]; do sleep 0.01; done; {script}true");
            talk.say(&bash(1, &json!({"command": text, "timeout": 60_000})));
            has_made(&project.join("began"));
            fs::rename(&project, &away).unwrap();
            fs::write(away.join("go-on"), "").unwrap();
            let answer = talk.hear();
            // Below `/tmp` the command sees its directory at the old path in any case.
            let reset = format!("Shell cwd was reset to {}", project.display());
            let stays = project.starts_with("/tmp") && answer["is_error"] == false;
            assert!(stays || content(&answer).contains(&reset), "{answer}");
            fs::rename(&away, &project).unwrap();
            for made in ["began", "go-on"] {
                fs::remove_file(project.join(made)).unwrap();
            }
            let answer = talk.ask(&bash(2, &json!({"command": "pwd"})));
            let directory = Path::new(content(&answer));
            assert!(
                directory == project || directory == project.join("sub"),
                "{answer}"
            );
        }
        talk.end();
    });
}
