//! What is let through as harmless changes nothing when it runs without a sandbox, in a project that
//! has programs of its own everywhere a name may lead: beside the files, in `PATH`, behind a pinned
//! toolchain, in git's settings. The lines are those of the classifier's corpus.

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    ffi::OsString,
    fs,
    hash::{Hash, Hasher},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use haft_permissions::{PathContext, Policy, decide, shell_facts::ShellFacts};
use serde_json::json;

use crate::judged;

/// Seconds a line may take; none needs them, a pager or a loop would.
const TIMEOUT: &str = "10";

const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n",
    ),
    ("README.md", "# Demo\n\nfoo bar\n"),
    ("a.txt", "one 1\ntwo 2\nabc 3\n"),
    ("app.log", "2024 error id=17\n"),
    ("b.txt", "one 9\nabc 4\n"),
    ("config.yaml", "name: demo\n"),
    (
        "data.json",
        "{\"items\": [{\"id\": 1, \"name\": \"one\"}]}\n",
    ),
    ("docs/guide.md", "# guide\n"),
    ("files.txt", "a.txt\nb.txt\n"),
    ("go.mod", "module demo\n\ngo 1.21\n\ntoolchain go1.99.0\n"),
    ("notes.txt", "# notes\nfoo bar\n"),
    ("numbers.txt", "1\n5\n"),
    (
        "package.json",
        "{\"name\": \"demo\", \"version\": \"1.0.0\"}\n",
    ),
    ("scripts/build.sh", "#!/bin/sh\necho build\n"),
    ("src/lib.rs", "pub struct Foo;\n"),
    ("src/main.rs", "fn main() {}\n"),
    ("users.csv", "id,name\n1,ada\n"),
    (".gitattributes", "* filter=f diff=f\n"),
    (".cargo/config.toml", "[build]\nrustc = \"./x\"\n"),
];

/// Programs of the project that stand in for what a name usually means.
const PROGRAMS: &[&str] = &["cat", "f", "g", "git", "ls", "x"];

struct Project {
    root: PathBuf,
    home: PathBuf,
    _folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let (root, home) = (base.join("project"), base.join("home"));
        fs::create_dir_all(&home).unwrap();
        for (name, text) in FILES {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        symlink("a.txt", root.join("link.txt")).unwrap();
        for name in PROGRAMS {
            program(&root.join(name));
        }
        // One of the names is in the directories that `PATH` leads to, the others are not, so that
        // most lines still run.
        for name in ["ls", "f", "g", "x"] {
            program(&root.join("bin").join(name));
        }
        for name in ["cargo", "rustc"] {
            program(&root.join("toolchain/bin").join(name));
        }
        let pin = format!(
            "[toolchain]\npath = \"{}\"\n",
            root.join("toolchain").display()
        );
        fs::write(root.join("rust-toolchain.toml"), pin).unwrap();
        let project = Self {
            root,
            home,
            _folder: folder,
        };
        for step in [
            "git init -q -b main --template=",
            "git add -A",
            "git -c user.name=a -c user.email=a@b commit -qm first",
            "git config filter.f.clean ./x",
            "git config diff.f.textconv ./x",
            "git config core.fsmonitor ./x",
            "echo more >> README.md",
            "tar -cf archive.tar README.md docs",
        ] {
            let mut command = haft_testkit::command("bash");
            command.args(["-c", step]);
            project.set_up(&mut command);
            command.env("PATH", std::env::var_os("PATH").unwrap());
            command.status().unwrap();
        }
        let _ = fs::remove_file(project.root.join("a-program-ran"));
        project
    }

    /// The variables that commands get.
    fn variable(&self, name: &str) -> Option<OsString> {
        match name {
            "PATH" => {
                let mut path = self.root.join("bin").into_os_string();
                path.push(":");
                path.push(std::env::var_os("PATH").unwrap_or_default());
                Some(path)
            }
            "HOME" => Some(self.home.clone().into()),
            "LANG" => Some("C.UTF-8".into()),
            _ => None,
        }
    }

    fn set_up(&self, command: &mut Command) {
        command
            .current_dir(&self.root)
            .env_clear()
            .env("TERM", "dumb")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("npm_config_update_notifier", "false")
            .env("npm_config_logs_max", "0")
            .env("npm_config_cache", "/dev/null/none")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        for name in ["PATH", "HOME", "LANG"] {
            command.env(name, self.variable(name).unwrap());
        }
        // Toolchain launchers would install themselves into the new home otherwise.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
            let there = home.as_ref().map(|home| home.join(folder));
            let there = there.filter(|path| path.is_dir());
            if let Some(value) = std::env::var_os(name).map(PathBuf::from).or(there) {
                command.env(name, value);
            }
        }
    }

    fn behavior(&self, line: &str) -> &'static str {
        let setting = PathContext {
            cwd: self.root.clone(),
            home: Some(self.home.clone()),
            wrappers: Vec::new(),
        };
        let input = json!({ "command": line });
        let mut facts = judged::facts("Bash", &input, &setting);
        facts.shell = Some(ShellFacts::in_environment(line, &setting, &|name| {
            self.variable(name)
        }));
        let policy = Policy::for_directories(Default::default(), std::slice::from_ref(&self.root))
            .with_home(Some(&self.home));
        decide(&policy, &facts).behavior.name()
    }

    /// Everything in it, as it is.
    fn picture(&self) -> BTreeMap<PathBuf, u64> {
        let mut picture = BTreeMap::new();
        look(&self.root, &mut picture);
        look(&self.home, &mut picture);
        picture
    }
}

/// A program that leaves a mark in the project's folder it is started in, or beside itself.
fn program(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n: > \"${0%/*}/a-program-ran\"\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn look(folder: &Path, picture: &mut BTreeMap<PathBuf, u64>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mut hasher = DefaultHasher::new();
        metadata.permissions().mode().hash(&mut hasher);
        if metadata.is_file() {
            // git may refresh what it knows of the working files.
            if path.ends_with(".git/index") {
                continue;
            }
            fs::read(&path).unwrap().hash(&mut hasher);
        } else if metadata.is_dir() {
            look(&path, picture);
        }
        picture.insert(path, hasher.finish());
    }
}

/// The lines of the corpus that are read-only (`true`) or certainly not; those in between left out.
fn corpus() -> Vec<(bool, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shell/tests/corpus");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "txt") {
            continue;
        }
        let mut truth = None;
        for line in fs::read_to_string(path).unwrap().split('\n') {
            if let Some(header) = line.strip_prefix("== ") {
                truth = match header.split(':').next().unwrap() {
                    "readonly" => Some(true),
                    "open" => None,
                    _ => Some(false),
                };
            } else if !line.is_empty() && !line.starts_with("## ") {
                let text = line
                    .replace('␤', "\n")
                    .replace('␍', "\r")
                    .replace('␉', "\t");
                lines.extend(truth.map(|truth| (truth, text)));
            }
        }
    }
    lines
}

/// Without network, and with everything it leaves behind ended with it, where the machine can do that.
fn cage() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [
        &["--net", "--pid", "--fork", "--kill-child"],
        &[
            "--user",
            "--map-root-user",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
        ],
    ];
    let works = |way: &&[&str]| {
        let mut tried = haft_testkit::command("unshare");
        tried.args(*way).arg("true");
        tried.stdout(Stdio::null()).stderr(Stdio::null());
        tried.status().is_ok_and(|status| status.success())
    };
    WAYS.into_iter().find(works)
}

#[test]
fn what_is_let_through_runs_nothing_of_the_project() {
    let Some(cage) = cage() else {
        haft_testkit::skip("running the lines that are let through: no name spaces");
        return;
    };
    let lines = corpus();
    // haft-shell's tests run all of them.
    let each = if haft_testkit::is_thorough() { 1 } else { 2 };
    let next = AtomicUsize::new(0);
    let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let work = || {
        let project = Project::new();
        let mut before = project.picture();
        let mut changes = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((harmless, line)) = lines.get(at) else {
                break changes;
            };
            if project.behavior(line) != "allow" {
                continue;
            }
            // Never run a line that is known to do harm.
            if !harmless {
                changes.push(format!("{line}: let through and not read-only"));
                continue;
            }
            if !at.is_multiple_of(each) {
                continue;
            }
            counts[0].fetch_add(1, Ordering::Relaxed);
            let mut command = haft_testkit::command("timeout");
            command.args(["-k", "1", TIMEOUT, "unshare"]).args(cage);
            command.args(["bash", "-c", line]);
            project.set_up(&mut command);
            if command.status().unwrap().success() {
                counts[1].fetch_add(1, Ordering::Relaxed);
            }
            let after = project.picture();
            if after != before {
                let changed = after
                    .iter()
                    .filter(|(path, hash)| before.get(*path) != Some(hash));
                let changed: Vec<_> = changed.map(|(path, _)| path.clone()).collect();
                changes.push(format!("{line}: {changed:?}"));
                before = after;
            }
        }
    };
    let changes: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.flatten().collect()
    });
    let [run, succeeded] = counts.map(AtomicUsize::into_inner);
    eprintln!("{run} lines were let through and run, {succeeded} of them succeeded");
    assert!(
        changes.is_empty(),
        "lines changed the project, or would:\n{}",
        changes.join("\n")
    );
    // A machine without any of the tools would prove nothing.
    assert!(
        succeeded >= 300 / each,
        "only {succeeded} of {run} lines succeeded"
    );
}

#[test]
fn what_the_project_chooses_is_asked_about() {
    let project = Project::new();
    let asked = [
        "ls",
        "ls -l src",
        "env ls",
        "timeout 5 ls",
        "cat a.txt | xargs ls",
        "git status",
        "git log -1",
        "cargo --version",
        "cargo tree --offline",
        "cargo metadata --no-deps --format-version 1",
        "cd src && cargo --version",
        "rustc --version",
        "rustup show",
        "go version",
    ];
    for line in asked {
        assert_eq!(project.behavior(line), "ask", "{line}");
    }
    for line in [
        "cat a.txt",
        "/bin/ls",
        "grep foo notes.txt",
        "echo ls",
        "pwd",
    ] {
        assert_eq!(project.behavior(line), "allow", "{line}");
    }
    // The test is void if these would not run.
    let mut command = haft_testkit::command("bash");
    command.args(["-c", "ls"]);
    project.set_up(&mut command);
    command.status().unwrap();
    assert!(project.root.join("bin/a-program-ran").exists());
    fs::remove_file(project.root.join("rust-toolchain.toml")).unwrap();
    assert_eq!(project.behavior("rustc --version"), "allow");
    assert_eq!(project.behavior("cargo --version"), "ask");
    fs::remove_dir_all(project.root.join(".cargo")).unwrap();
    assert_eq!(project.behavior("cargo --version"), "allow");
}

/// Who trusts a workspace lets it choose its toolchain, not what `ls` is.
#[test]
fn trust_covers_pins_and_no_more() {
    let project = Project::new();
    let setting = PathContext {
        cwd: project.root.clone(),
        home: Some(project.home.clone()),
        wrappers: Vec::new(),
    };
    let behavior = |line: &str, trusted: bool| {
        let mut facts = judged::facts("Bash", &json!({ "command": line }), &setting);
        facts.shell = Some(ShellFacts::in_environment(line, &setting, &|name| {
            project.variable(name)
        }));
        let mut policy =
            Policy::for_directories(Default::default(), std::slice::from_ref(&project.root));
        std::sync::Arc::make_mut(&mut policy.sandbox).trusted = trusted;
        decide(&policy, &facts).behavior.name()
    };
    assert_eq!(behavior("cargo --version", true), "allow");
    assert_eq!(behavior("cargo --version", false), "ask");
    assert_eq!(behavior("ls", true), "ask");
    assert_eq!(behavior("git status", true), "ask");
}

#[test]
fn a_line_in_another_character_set_is_asked_about() {
    let project = Project::new();
    let setting = PathContext {
        cwd: project.root.clone(),
        home: None,
        wrappers: Vec::new(),
    };
    let behavior = |line: &str, locale: &str| {
        let mut facts = judged::facts("Bash", &json!({ "command": line }), &setting);
        facts.shell = Some(ShellFacts::in_environment(line, &setting, &|name| {
            (name == "LC_ALL").then(|| locale.into())
        }));
        let policy =
            Policy::for_directories(Default::default(), std::slice::from_ref(&project.root));
        decide(&policy, &facts).behavior.name()
    };
    assert_eq!(behavior("grep 表 notes.txt", "ja_JP.SJIS"), "ask");
    assert_eq!(behavior("grep 表 notes.txt", "ja_JP.UTF-8"), "allow");
    assert_eq!(behavior("grep foo notes.txt", "ja_JP.SJIS"), "allow");
}
