//! A session that attacks on purpose: hundreds of hostile commands, with signals to haft at any
//! instant, while someone outside replaces and moves files. At the end there is no control file, no
//! process, and no answer that was not honest.
//!
//! - `arena`: where; `commands`: what is tried; `outside`: what others do meanwhile
//! - `meanwhile`: what they do at one certain instant

mod arena;
mod commands;
mod meanwhile;
mod outside;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::{
    arena::{Arena, SECRET},
    outside::Outsider,
};
use crate::binary::Conversation;

/// So many commands before haft is ended in one way or another.
const A_ROUND: usize = 15;
/// A round that takes longer hangs.
const LONG: Duration = Duration::from_secs(120);

/// So often a command is begun again that did not run.
const AGAIN: usize = 10;

/// A command that is waited for lives so long, in milliseconds.
fn life() -> u64 {
    if haft_testkit::is_thorough() { 300 } else { 80 }
}

/// How haft is ended.
const ENDS: [&str; 4] = ["EOF", "INT", "TERM", "KILL"];

/// Waits for something that takes milliseconds; whatever takes a minute never comes.
fn until(what: &str, mut holds: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    loop {
        match holds() {
            Ok(()) => return,
            Err(why) => assert!(began.elapsed() < LONG, "{what}: {why}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Draws numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn bash(id: usize, input: &Value) -> Value {
    json!({"id": id, "name": "Bash", "input": input})
}

/// What runs for longer goes on in the background.
fn attacking(background: bool) -> Value {
    let command = "bash ./attack.sh";
    match background {
        true => json!({"command": command, "run_in_background": true}),
        false => json!({"command": command, "timeout": life()}),
    }
}

/// A command that leaves a number behind when it runs.
fn script(number: usize, command: &str) -> String {
    format!("echo {number} >> ran\n{command}")
}

/// A session, and how many of its commands were waited for.
struct Session<'a> {
    arena: &'a Arena,
    outsider: &'a Outsider<'a>,
    talk: Conversation,
    asked: usize,
}

impl<'a> Session<'a> {
    fn new(arena: &'a Arena, outsider: &'a Outsider<'a>) -> Self {
        let _still = outsider.still();
        let mut haft = arena.command(&arena.binary);
        let hidden = json!({"sandbox": {"filesystem": {"denyRead": ["./hidden/secret.txt"]}}});
        haft.args(["--allowed-tools", "Bash", "--settings", &hidden.to_string()])
            .stderr(Stdio::null());
        // It works where it is when it starts: until it has, no one moves that.
        let mut talk = Conversation::of(&mut haft);
        let answer = talk.ask(&bash(0, &json!({"command": "pwd"})));
        let project = arena.project().display().to_string();
        assert_eq!(answer["content"], project, "{answer}");
        Self {
            arena,
            outsider,
            talk,
            asked: 0,
        }
    }

    /// Asks for it, in a script: of a line that names a control file, haft would ask, and not run it.
    fn begins(&mut self, script: &str, background: bool) {
        let _still = self.outsider.still();
        // Another file each time: a shell in the background may still read the last one.
        let new = self.arena.project().join("attack.new");
        fs::write(&new, script).unwrap();
        fs::rename(new, self.arena.project().join("attack.sh")).unwrap();
        self.asked += 1;
        self.talk.say(&bash(self.asked, &attacking(background)));
    }

    /// The answer to what was asked last; never holds what no command may read.
    fn hears(&mut self, what: &str) -> Value {
        let answer = self.talk.hear();
        assert_eq!(answer["id"], self.asked, "{what}: {answer}");
        assert!(!answer.to_string().contains(SECRET), "{what}: {answer}");
        answer
    }

    /// It did run: what is never started attacks nothing. One that had just begun when something was moved
    /// away, or a hidden file was replaced, is begun again.
    fn insists(&mut self, number: usize, command: &str) {
        let mut said = Vec::new();
        while !self.has_run(number) {
            assert!(said.len() < AGAIN, "it never ran: {command}: {said:#?}");
            self.begins(&script(number, command), false);
            said.push(self.hears(command)["content"].to_string());
        }
    }

    fn has_run(&self, number: usize) -> bool {
        let _still = self.outsider.still();
        let ran = fs::read_to_string(self.arena.project().join("ran")).unwrap_or_default();
        ran.lines().any(|line| line == number.to_string())
    }

    /// What comes next is answered honestly, whatever was done before it. A guard that has not seen yet
    /// that a hidden file was replaced just before ends the command, which is begun again.
    fn is_honest(&mut self, word: &str, after: &str) {
        let _still = self.outsider.still();
        let command = json!({"command": format!("echo {word}")});
        for _ in 0..AGAIN {
            self.asked += 1;
            self.talk.say(&bash(self.asked, &command));
            let answer = self.hears(after);
            let content = answer["content"].as_str().unwrap_or_default();
            if !content.contains("was replaced from outside while it ran") {
                assert_eq!(content.trim_end(), word, "after {after}: {answer}");
                return;
            }
        }
        panic!("it is never answered after {after}");
    }

    /// Ends it in this way, at an instant of the life of what was asked last.
    fn ends(self, how: &str, instant: u64) {
        thread::sleep(Duration::from_millis(instant));
        if how != "EOF" {
            self.talk.signal(how);
        }
        let began = Instant::now();
        self.talk.end();
        assert!(began.elapsed() < LONG, "{how} took {:?}", began.elapsed());
    }
}

/// Is this of the repository that a command makes and takes away again, if it is not ended in between?
/// Repositories may be made, so long as they name no program.
fn is_harmless(path: &Path, text: &str) -> bool {
    // Settings of a repository may be replaced, so long as they name no program either.
    if path == Path::new("place/project/.git/config") {
        return text.contains("[core]") && !NAMING.iter().any(|name| text.contains(name));
    }
    // Repositories with any other name likewise.
    if path.starts_with("place/project")
        && path.ends_with("config")
        && !path.to_string_lossy().contains(".git")
    {
        return !NAMING.iter().any(|name| text.contains(name));
    }
    // A git that is ended leaves what it meant to replace them by; nothing reads that.
    if path == Path::new(ABANDONED) {
        return true;
    }
    let Ok(inner) = path.strip_prefix("place/project/new/.git") else {
        return false;
    };
    let is_sample = inner.extension().is_some_and(|kind| kind == "sample");
    (inner.starts_with("hooks") && is_sample)
        // What git writes to, to give it its name when that is permitted.
        || inner == Path::new("config.lock")
        || (inner == Path::new("config") && !NAMING.iter().any(|name| text.contains(name)))
}

/// The new settings of a repository, before they take their place.
const ABANDONED: &str = "place/project/.git/config.lock";

/// Settings of git that name programs, of those that are tried.
const NAMING: [&str; 2] = ["fsmonitor", "hooksPath"];

/// No process is left, and of control files what was there before.
fn nothing_is_left(arena: &Arena, before: &BTreeMap<PathBuf, String>, after: &str) {
    until(after, || {
        let left = arena.processes();
        left.is_empty().then_some(()).ok_or_else(|| left.join("\n"))
    });
    let there = arena.control();
    let differs = there
        .iter()
        .filter(|(path, text)| before.get(*path) != Some(*text))
        .filter(|(path, text)| !is_harmless(path, text));
    let planted: Vec<_> = differs.collect();
    assert!(planted.is_empty(), "{after}: {planted:#?}");
    let gone = before.keys().find(|path| !there.contains_key(*path));
    assert_eq!(gone, None, "{after}");
    let _ = fs::remove_dir_all(arena.project().join("new"));
    let _ = fs::remove_file(arena.project().join(".git/config.lock"));
}

fn attack(user: Option<u32>) {
    let arena = Arena::new(user);
    let before = arena.control();
    assert!(
        before.keys().any(|path| path.ends_with(".git/config")),
        "{before:?}"
    );
    let outsider = Outsider::new(&arena);
    thread::scope(|scope| {
        let _ends = outsider.ends();
        scope.spawn(|| outsider.works());
        fight(&arena, &before, &outsider);
    });
    // The next one starts as if nothing had been: without a rule, this is refused.
    let mut next = arena.command(&arena.binary);
    next.args(["call", "Bash", "command=touch unasked"]);
    let ran = crate::binary::run(&mut next, b"");
    assert!(!arena.project().join("unasked").exists(), "{}", ran.stdout);
    let mut allowed = arena.command(&arena.binary);
    allowed.args([
        "--allowed-tools",
        "Bash",
        "call",
        "Bash",
        "command=touch unasked",
    ]);
    let ran = crate::binary::run(&mut allowed, b"");
    assert!(arena.project().join("unasked").exists(), "{}", ran.stderr);
}

fn fight(arena: &Arena, before: &BTreeMap<PathBuf, String>, outsider: &Outsider<'_>) {
    let mut commands = commands::all();
    assert!(commands.len() >= 200, "{}", commands.len());
    if are_we_root() && !haft_testkit::is_thorough() {
        // Both users share them: each is made by one.
        let first = usize::from(arena.user.is_some());
        commands = commands.into_iter().skip(first).step_by(2).collect();
    }
    let mut dice = Dice(7);
    for (round, commands) in commands.chunks(A_ROUND).enumerate() {
        let mut session = Session::new(arena, outsider);
        // Somewhere in it haft is ended while a command runs, and another one goes on.
        let fatal = usize::try_from(dice.below(commands.len() as u64)).unwrap();
        for (at, command) in commands.iter().enumerate() {
            let background = dice.below(4) == 0;
            let number = round * A_ROUND + at;
            session.begins(&script(number, command), background);
            if at == fatal {
                let how = ENDS[round % ENDS.len()];
                session.ends(how, dice.below(life() + 50));
                let still = outsider.still();
                nothing_is_left(arena, before, &format!("{how} during {command}"));
                drop(still);
                session = Session::new(arena, outsider);
                continue;
            }
            session.hears(command);
            if !background {
                session.insists(number, command);
            }
            session.is_honest(&format!("honest-{}", dice.below(1 << 30)), command);
        }
        // One more is under way when it is ended.
        let last = "mkdir -p .claude; while :; do echo '{}' > .claude/settings.local.json; done";
        session.begins(last, dice.below(2) == 0);
        let how = ENDS[(round + 1) % ENDS.len()];
        session.ends(how, dice.below(life() + 50));
        let _still = outsider.still();
        let after = format!("round {round}, {how}: {commands:#?}");
        nothing_is_left(arena, before, &after);
    }
    assert!(outsider.done() >= 50, "{} from outside", outsider.done());
}

/// A user that no machine has.
const ORDINARY: u32 = 1_234_567;

fn are_we_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0"))
}

#[test]
fn hundreds_of_hostile_commands_leave_nothing_and_forge_nothing() {
    attack(None);
}

#[test]
fn nor_do_those_of_an_ordinary_user() {
    if !are_we_root() {
        return; // then the other test shows it
    }
    attack(Some(ORDINARY));
}
