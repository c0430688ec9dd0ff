//! A session that attacks on purpose: hundreds of hostile commands, with signals to haft at any
//! instant. At the end there is no control file, no process, and no answer that was not honest.

mod commands;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::Conversation;

/// So many commands before haft is ended in one way or another.
const A_ROUND: usize = 15;
/// A round that takes longer hangs.
const LONG: Duration = Duration::from_secs(120);

/// By what control files are told here.
const PARTS: [&str; 7] = [
    ".claude/",
    ".vscode/",
    ".husky/",
    ".git/hooks/",
    ".git/config",
    ".git/info/attributes",
    ".git/modules/",
];
const NAMES: [&str; 8] = [
    ".mcp.json",
    ".bashrc",
    ".envrc",
    ".npmrc",
    ".gitmodules",
    ".gitconfig",
    ".profile",
    "project/head",
];

/// What haft keeps for itself.
const OWN: [&str; 2] = ["home/.claude/projects/", "home/.claude/haft/"];

/// How haft is ended.
const ENDS: [&str; 4] = ["EOF", "INT", "TERM", "KILL"];

struct Arena {
    dir: TempDir,
    binary: PathBuf,
    user: Option<u32>,
}

impl Arena {
    fn new(user: Option<u32>) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("hostile-")
            .tempdir()
            .unwrap();
        let arena = Self {
            binary: dir.path().join("haft"),
            dir,
            user,
        };
        fs::copy(env!("CARGO_BIN_EXE_haft"), &arena.binary).unwrap();
        for folder in ["home", "place/project/sub"] {
            fs::create_dir_all(arena.dir.path().join(folder)).unwrap();
        }
        fs::write(arena.home().join(".keep"), "").unwrap();
        fs::write(arena.project().join("plain.txt"), "plain\n").unwrap();
        fs::set_permissions(arena.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = user {
            let owner = format!("{user}:{user}");
            let mut change = Command::new("chown");
            change.args(["-R", &owner]).arg(arena.dir.path());
            assert!(change.status().unwrap().success());
        }
        let git = arena.command("git").args(["init", "-q", "."]).status();
        assert!(git.unwrap().success());
        arena
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("place/project")
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                let ids = [format!("--reuid={user}"), format!("--regid={user}")];
                command
                    .args(ids)
                    .arg("--clear-groups")
                    .arg(program.as_ref());
                command
            }
            None => Command::new(program.as_ref()),
        };
        command
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    /// What is there of control files, and what they hold.
    fn control(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![self.dir.path().join("place"), self.home()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let relative = path.strip_prefix(self.dir.path()).unwrap();
                let text = relative.to_string_lossy().to_lowercase();
                let matters = PARTS.iter().any(|part| text.contains(part))
                    || NAMES.iter().any(|name| text.ends_with(name));
                if kind.is_dir() {
                    waiting.push(path);
                } else if matters && !OWN.iter().any(|own| text.starts_with(own)) {
                    found.insert(
                        relative.to_owned(),
                        fs::read(&path)
                            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                            .unwrap_or_default(),
                    );
                }
            }
        }
        found
    }

    /// Processes of this arena, of every user.
    fn processes(&self) -> Vec<String> {
        let place = self.dir.path().to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let process = entry.path();
            let cwd = fs::read_link(process.join("cwd")).unwrap_or_default();
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if cwd.to_string_lossy().contains(&place) || line.contains(&place) {
                found.push(format!("{}: {line}", process.display()));
            }
        }
        found
    }
}

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
        false => json!({"command": command, "timeout": 400}),
    }
}

fn attack(user: Option<u32>) {
    let arena = Arena::new(user);
    let before = arena.control();
    assert!(
        before.keys().any(|path| path.ends_with(".git/config")),
        "{before:?}"
    );
    let commands = commands::all();
    assert!(commands.len() >= 200, "{}", commands.len());
    let mut dice = Dice(7);
    let mut waited_for = 0;
    for (round, commands) in commands.chunks(A_ROUND).enumerate() {
        let end = ENDS[round % ENDS.len()];
        let mut haft = arena.command(&arena.binary);
        haft.args(["--allowed-tools", "Bash"]).stderr(Stdio::null());
        let mut talk = Conversation::of(&mut haft);
        for (at, command) in commands.iter().enumerate() {
            let background = dice.below(4) == 0;
            // In a script: of a line that names a control file, haft would ask, and not run it.
            fs::write(
                arena.project().join("attack.sh"),
                format!("echo >> ran\n{command}"),
            )
            .unwrap();
            waited_for += usize::from(!background);
            let answer = talk.ask(&bash(2 * at, &attacking(background)));
            assert_eq!(answer["id"], 2 * at, "{command}: {answer}");
            // What comes next is answered honestly, whatever was done before it.
            let word = format!("honest-{}", dice.below(1 << 30));
            let answer = talk.ask(&bash(
                2 * at + 1,
                &json!({"command": format!("echo {word}")}),
            ));
            assert_eq!(answer["id"], 2 * at + 1, "{command}: {answer}");
            let content = answer["content"].as_str().unwrap_or_default();
            assert_eq!(content.trim_end(), word, "after {command}: {answer}");
        }
        // One more is under way when it is ended.
        let last = "mkdir -p .claude; while :; do echo '{}' > .claude/settings.local.json; done";
        fs::write(arena.project().join("attack.sh"), last).unwrap();
        talk.say(&bash(1000, &attacking(dice.below(2) == 0)));
        thread::sleep(Duration::from_millis(dice.below(120)));
        if end != "EOF" {
            talk.signal(end);
        }
        let began = Instant::now();
        talk.end();
        assert!(began.elapsed() < LONG, "{end} took {:?}", began.elapsed());
        until(end, || {
            let left = arena.processes();
            left.is_empty().then_some(()).ok_or_else(|| left.join("\n"))
        });
        // They did run: what is never started attacks nothing.
        let ran = fs::read_to_string(arena.project().join("ran")).unwrap();
        assert!(
            ran.lines().count() >= waited_for,
            "round {round}: {commands:#?}"
        );
        let after = arena.control();
        let differs = after
            .iter()
            .filter(|(path, text)| before.get(*path) != Some(*text));
        let planted: Vec<_> = differs.collect();
        assert!(
            planted.is_empty(),
            "round {round}, {end}: {planted:#?} by {commands:#?}"
        );
        let gone = before.keys().find(|path| !after.contains_key(*path));
        assert_eq!(gone, None, "round {round}, {end}: {commands:#?}");
    }
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

#[test]
fn hundreds_of_hostile_commands_leave_nothing_and_forge_nothing() {
    attack(None);
}

#[test]
fn nor_do_those_of_an_ordinary_user() {
    let root =
        fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0"));
    if !root {
        return; // then the other test shows it
    }
    attack(Some(1_234_567));
}
