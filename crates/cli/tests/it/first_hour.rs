//! Commands that people run in their first hour, in the real sandbox: git, installs, services of their own.
//!
//! What a program of someone else's needs is tried with that program where it is there, and with a stand-in
//! that opens the same files and sockets where it is not.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::{Read, Write},
    mem::MaybeUninit,
    net::TcpListener,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Conversation, haft};

/// A home, a project in it, and a session that is asked.
struct Desk {
    dir: TempDir,
    path: String,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "home", "bin", "run"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let desk = Self {
            path: String::new(),
            dir,
        };
        let bin = desk.at("bin");
        Self {
            path: format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()),
            ..desk
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    /// A program of that name, before those of the system.
    fn program(&self, name: &str, text: &str) {
        let path = self.at("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A session that may run all commands unasked.
    fn allowed(&self) -> Conversation {
        self.session(&["--allowed-tools", "Bash"])
    }

    fn session(&self, flags: &[&str]) -> Conversation {
        let mut command = haft(&self.at("work"));
        command
            .env("HOME", self.at("home"))
            .env("PATH", &self.path)
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .args(["exec", "--interactive-json"])
            .args(flags);
        Conversation::start(&mut command)
    }

    /// Outside of the sandbox.
    fn shell(&self, line: &str) {
        let ran = haft_testkit::command("sh")
            .args(["-e", "-c", line])
            .current_dir(self.at("work"))
            .env("HOME", self.at("home"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{line}: {ran:?}");
    }
}

fn bash(command: &str) -> Value {
    json!({"id": command, "name": "Bash", "input": {"command": command}})
}

/// The answer, after these answers to what is asked; and what was asked.
fn run(talk: &mut Conversation, command: &str, allow: bool) -> (String, bool, Vec<String>) {
    talk.say(&bash(command));
    let mut asked = Vec::new();
    loop {
        let line = talk.hear();
        match line["type"].as_str() {
            Some("permission_request") => {
                asked.push(line["reason"].as_str().unwrap().to_owned());
                let behavior = if allow { "allow" } else { "deny" };
                talk.say(&json!({
                    "type": "permission_response",
                    "request_id": line["request_id"],
                    "behavior": behavior,
                }));
            }
            Some(_) => {}
            None => {
                let text = line["content"].as_str().unwrap_or_default().to_owned();
                return (text, line["is_error"] == true, asked);
            }
        }
    }
}

#[track_caller]
fn well(talk: &mut Conversation, command: &str) -> String {
    let (text, failed, asked) = run(talk, command, false);
    assert!(!failed && asked.is_empty(), "{command}: {text} {asked:?}");
    text
}

fn is_there(program: &str) -> bool {
    let found = haft_testkit::command(program).arg("--version").output();
    let found = found.is_ok_and(|ran| ran.status.success());
    if !found {
        haft_testkit::skip(&format!("no {program} that works"));
    }
    found
}

const GIT: &str = "git -c user.name=n -c user.email=e@e -c protocol.file.allow=always";

#[test]
fn git_remote_add_and_a_commit_in_a_submodule_work() {
    if !is_there("git") {
        return;
    }
    let desk = Desk::new();
    desk.shell(&format!(
        "mkdir ../inner && cd ../inner && git init -q && echo a > a && git add a && {GIT} commit -qm a
         cd ../work && git init -q && {GIT} submodule --quiet add ../inner sub && {GIT} commit -qm sub"
    ));
    let mut talk = desk.allowed();
    well(&mut talk, "git remote add origin https://example.org/a.git");
    assert_eq!(
        well(&mut talk, "git remote get-url origin"),
        "https://example.org/a.git"
    );
    well(&mut talk, "echo b > sub/b && git -C sub add b");
    let commit = format!("{GIT} -C sub commit -qm 'in the submodule'");
    well(&mut talk, &commit);
    assert_eq!(
        well(&mut talk, "git -C sub log -1 --format=%s"),
        "in the submodule"
    );
    // What decides what git runs stays as it was.
    let (_, failed, asked) = run(&mut talk, "git config core.fsmonitor 'touch pwned'", false);
    assert!(failed || !asked.is_empty());
    let config = fs::read_to_string(desk.at("work/.git/config")).unwrap();
    assert!(!config.contains("pwned"), "{config}");
    assert_eq!(talk.end(), 0);
}

/// What a command writes there, git would run later, outside of any sandbox.
#[test]
fn no_command_plants_a_program_in_the_settings_of_git() {
    if !is_there("git") {
        return;
    }
    let desk = Desk::new();
    // A project whose hooks are elsewhere, as husky puts them.
    desk.shell("git init -q && git config core.hooksPath .husky && git config alias.st status");
    let config = || fs::read_to_string(desk.at("work/.git/config")).unwrap();
    let mut talk = desk.allowed();
    well(&mut talk, "git remote add origin https://example.org/a.git");
    well(&mut talk, "git config user.name me");
    let before = config();
    for (key, value) in [
        ("alias.x", "!touch pwned"),
        ("alias.st", "!touch pwned"),
        ("core.hooksPath", "other"),
        ("core.fsmonitor", "touch pwned"),
        ("core.sshCommand", "touch pwned"),
        ("core.worktree", "/"),
        ("credential.helper", "!touch pwned"),
        ("diff.x.textconv", "touch pwned"),
        ("difftool.x.cmd", "touch pwned"),
        ("filter.x.clean", "touch pwned"),
        ("include.path", "../planted"),
        ("merge.x.driver", "touch pwned"),
        ("no-one.knows", "touch pwned"),
        ("remote.origin.url", "ext::sh -c touch% pwned"),
        ("url.ext::sh.insteadOf", "https://example.org"),
    ] {
        // In a script, which is not looked into, and without a word of what fails.
        let script = format!("git config {key} '{value}' 2>/dev/null || true\n");
        fs::write(desk.at("work/plant.sh"), script).unwrap();
        let (text, _, _) = run(&mut talk, "sh plant.sh", false);
        assert_eq!(config(), before, "{key}");
        assert!(
            text.contains("decide what other programs run") && text.contains(".git/config"),
            "{key}: {text}"
        );
    }
    // Nor by another way than git's own.
    for line in [
        "(cat .git/config; printf '[alias]\\nx = !sh\\n') > new && mv new .git/config",
        "printf '[alias]\\nx = !sh\\n' >> .git/config",
        "ln -sf ../planted .git/config",
        "rm -f .git/config",
    ] {
        fs::write(desk.at("work/plant.sh"), line).unwrap();
        run(&mut talk, "sh plant.sh", false);
        assert_eq!(config(), before, "{line}");
    }
    assert_eq!(talk.end(), 0);
}

const SOCKETS: &str = "\
import multiprocessing, os, socket, tempfile
def double(n): return 2 * n
if __name__ == '__main__':
    s = socket.socket(socket.AF_UNIX)
    s.bind(os.path.join(tempfile.mkdtemp(prefix='org.chromium.Chromium.'), 'SingletonSocket'))
    with multiprocessing.Manager() as m:
        print(m.list([1, 2])[1])
    with multiprocessing.get_context('forkserver').Pool(2) as p:
        print(p.map(double, [1, 2]))
";

#[test]
fn a_socket_fits_into_the_temporary_folder() {
    let desk = Desk::new();
    let mut talk = desk.allowed();
    let folder = well(&mut talk, "echo $TMPDIR");
    // A socket's name has at most 107 bytes; programs add folders and names of their own.
    assert!(
        Path::new(&folder).starts_with("/tmp") && folder.len() <= 40,
        "{folder}"
    );
    if !is_there("python3") {
        return;
    }
    fs::write(desk.at("work/t.py"), SOCKETS).unwrap();
    let text = well(&mut talk, "/usr/bin/env python3 t.py");
    assert_eq!(text, "2\n[2, 4]", "{folder}");
    assert_eq!(talk.end(), 0);
}

const THREADS: &str = "\
import os, shutil, threading
failed = set()
def make(path):
    try: os.mkdir(path)
    except FileExistsError: pass
    except FileNotFoundError:
        make(os.path.dirname(path))
        return make(path)
    except OSError as error: failed.add(error.strerror)
    if path.endswith('a'): return
    try: open(path + '/file', 'r+').close()
    except FileNotFoundError: pass
    except OSError as error: failed.add(error.strerror)
for _ in range(60):
    threads = [threading.Thread(target=make, args=('modules/a/b%d' % n,)) for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    shutil.rmtree('modules')
print(sorted(failed))
";

/// As npm does: each looks for the folder above, and the one that finds none makes it.
#[test]
fn threads_that_make_the_same_folders_do_not_disturb_each_other() {
    if !is_there("python3") {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.at("work/t.py"), THREADS).unwrap();
    let mut talk = desk.allowed();
    assert_eq!(well(&mut talk, "/usr/bin/env python3 t.py"), "[]");
    assert_eq!(talk.end(), 0);
}

/// Answers one connection after the other with this.
fn serve_tcp(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.and_then(|mut stream| stream.write_all(text.as_bytes()));
        }
    });
    port
}

fn serve_unix(path: &Path, text: &'static str) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.and_then(|mut stream| {
                let _ = stream.read(&mut [0; 1]);
                stream.write_all(text.as_bytes())
            });
        }
    });
}

/// A program that reads a file of the home, asks a service, and tries to write.
fn stand_in(reads: &str, asks: &str) -> String {
    format!(
        "#!/usr/bin/python3
import os, socket, sys
home = os.environ['HOME']
if '{reads}':
    print(open(home + '/{reads}').read().strip())
{asks}
s.sendall(b'x')
print(s.recv(100).decode())
try:
    open('written', 'w')
    print('wrote')
except OSError:
    print('could not write')
"
    )
}

#[test]
fn programs_that_ask_a_service_are_asked_about_and_then_reach_exactly_that() {
    if !Path::new("/usr/bin/python3").exists() {
        return haft_testkit::skip("no /usr/bin/python3 for the stand-ins");
    }
    let desk = Desk::new();
    let port = serve_tcp("from the network");
    let tcp = format!("s = socket.create_connection(('127.0.0.1', {port}))");
    fs::create_dir_all(desk.at("home/.docker/run")).unwrap();
    serve_unix(&desk.at("home/.docker/run/docker.sock"), "from the socket");
    let unix = "s = socket.socket(socket.AF_UNIX); s.connect(home + '/.docker/run/docker.sock')";
    fs::create_dir(desk.at("run/systemd")).unwrap();
    serve_unix(&desk.at("run/systemd/private"), "from the manager");
    let manager = "s = socket.socket(socket.AF_UNIX)
s.connect(os.environ['XDG_RUNTIME_DIR'] + '/systemd/private')";
    let cases = [
        // (program, its line, its file, how it asks, what it is answered)
        (
            "gh",
            "gh pr list",
            ".config/gh/hosts.yml",
            tcp.as_str(),
            "from the network",
        ),
        (
            "kubectl",
            "kubectl get pods",
            ".kube/config",
            &tcp,
            "from the network",
        ),
        (
            "docker",
            "docker ps",
            ".docker/config.json",
            unix,
            "from the socket",
        ),
        (
            "systemctl",
            "systemctl --user status nginx",
            "", // it reads nothing of the home
            manager,
            "from the manager",
        ),
    ];
    for (program, line, file, asks, answer) in cases {
        let mut expected = format!("{answer}\ncould not write");
        if !file.is_empty() {
            let path = desk.at("home").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("token of {program}\n")).unwrap();
            expected = format!("token of {program}\n{expected}");
        }
        desk.program(program, &stand_in(file, asks));
        // No one agreed: it does not run at all, rather than without what it needs.
        let mut talk = desk.session(&[]);
        let (text, failed, asked) = run(&mut talk, line, false);
        assert!(failed && asked.len() == 1, "{line}: {text} {asked:?}");
        let (text, failed, asked) = run(&mut talk, line, true);
        assert_eq!(
            (text.as_str(), failed),
            (expected.as_str(), false),
            "{line}: {asked:?}"
        );
        assert_eq!(asked.len(), 1, "{line}: {asked:?}");
        assert_eq!(talk.end(), 0);
        // A rule agrees as well.
        let rule = format!("Bash({line})");
        let mut talk = desk.session(&["--allowed-tools", &rule]);
        assert_eq!(well(&mut talk, line), expected);
        assert_eq!(talk.end(), 0);
    }
    assert!(!desk.at("work/written").exists());
}

/// A program that looks at the journals of the machine: files, and no one is asked.
const READS_JOURNALS: &str = "#!/usr/bin/python3
import os, socket
logs = [name for name in ('/var/log', '/run/log') if os.path.isdir(name) and os.listdir(name) is not None]
print('sees ' + ' '.join(logs))
try:
    socket.create_connection(('127.0.0.1', PORT), timeout=5)
    print('reached the network')
except OSError:
    print('no network')
try:
    open('written', 'w')
    print('wrote')
except OSError:
    print('could not write')
";

#[test]
fn a_look_at_the_journals_of_the_machine_runs_unasked_and_reaches_nothing_else() {
    if !Path::new("/usr/bin/python3").exists() {
        return haft_testkit::skip("no /usr/bin/python3 for the stand-in");
    }
    let desk = Desk::new();
    let port = serve_tcp("from the network").to_string();
    desk.program("journalctl", &READS_JOURNALS.replace("PORT", &port));
    let logs = ["/var/log", "/run/log"].into_iter();
    let logs: Vec<&str> = logs.filter(|log| Path::new(log).is_dir()).collect();
    let expected = format!("sees {}\nno network\ncould not write", logs.join(" "));
    let mut talk = desk.session(&[]);
    for line in [
        "journalctl -u nginx -n 50 --no-pager",
        "journalctl --user -xe",
    ] {
        assert_eq!(well(&mut talk, line), expected.trim_start(), "{line}");
    }
    // What deletes entries is another matter.
    let (_, failed, asked) = run(&mut talk, "journalctl --vacuum-time=1d", false);
    assert!(failed && asked.len() == 1, "{asked:?}");
    assert_eq!(talk.end(), 0);
    assert!(!desk.at("work/written").exists());
}

#[test]
fn what_lists_processes_says_what_it_cannot_show() {
    let desk = Desk::new();
    let mut talk = desk.session(&[]);
    for line in ["ps aux", "pgrep -f haft", "ss -ltn"] {
        let name = line.split(' ').next().unwrap();
        if !is_there(name) {
            continue;
        }
        let (text, _, asked) = run(&mut talk, line, false);
        assert!(asked.is_empty(), "{line}: {asked:?}");
        let told =
            format!("{name} ran in a sandbox, which shows only this command's own processes");
        assert!(text.contains(&told), "{line}: {text}");
    }
    assert_eq!(talk.end(), 0);
}

#[test]
fn an_install_fills_its_caches_and_nothing_else_of_the_home() {
    let desk = Desk::new();
    let mut talk = desk.allowed();
    if is_there("npm") {
        desk.shell(
            "mkdir dep && echo '{\"name\": \"dep\", \"version\": \"1.0.0\"}' > dep/package.json
             echo '{\"name\": \"app\", \"version\": \"1.0.0\"}' > package.json",
        );
        well(
            &mut talk,
            "npm install --offline --no-audit --no-fund ./dep",
        );
        assert!(desk.at("work/node_modules/dep/package.json").exists());
        assert!(desk.at("home/.npm").is_dir());
    }
    let cargo = desk.cargo();
    if let Some(cargo) = cargo {
        desk.shell(
            "mkdir -p lib/src app/src && touch lib/src/lib.rs && echo 'fn main() {}' > app/src/main.rs
             printf '[package]\nname = \"lib\"\nedition = \"2021\"\n' > lib/Cargo.toml
             printf '[package]\nname = \"app\"\nedition = \"2021\"\n[dependencies]\nlib = { path = \"../lib\" }\n' > app/Cargo.toml",
        );
        let build = format!("{cargo} build --offline -q --manifest-path app/Cargo.toml");
        well(&mut talk, &build);
        assert!(desk.at("work/app/target/debug/app").exists());
    }
    // Anything else is asked about by its folder and the setting, though the command came to terms with it:
    // what is there, and what would be new.
    fs::create_dir(desk.at("home/there")).unwrap();
    let lines = "echo x > $HOME/there/file\nmkdir $HOME/new\ntrue\n";
    fs::write(desk.at("work/tool.sh"), lines).unwrap();
    let (text, failed, asked) = run(&mut talk, "sh tool.sh", false);
    assert!(!failed && asked.len() == 1, "{text} {asked:?}");
    let home = desk.at("home");
    for name in ["there/file", "new"] {
        let changing = format!("changing {}", home.join(name).display());
        assert!(asked[0].contains(&changing), "{asked:?}");
        assert!(!home.join(name).exists());
    }
    assert!(
        asked[0].contains("sandbox.filesystem.allowWrite"),
        "{asked:?}"
    );
    // With a yes it is run again, and may do just that.
    let (text, failed, asked) = run(&mut talk, "sh tool.sh", true);
    assert!(!failed && !asked.is_empty(), "{text} {asked:?}");
    assert!(
        home.join("there/file").exists() && home.join("new").exists(),
        "{text} {asked:?}"
    );
    assert_eq!(talk.end(), 0);
}

/// A script hides which tools it runs and what they say; neither their caches nor what is refused depends
/// on it.
#[test]
fn a_script_fills_caches_of_its_tools_and_hides_no_refusal() {
    let desk = Desk::new();
    let home = desk.at("home");
    // It is installed, and makes its cache on its own.
    desk.program(
        "uv",
        "#!/bin/sh\nmkdir -p ~/.cache/uv/wheels && echo filled\n",
    );
    fs::write(desk.at("work/build.sh"), "uv sync\n").unwrap();
    fs::write(desk.at("work/Makefile"), "deps:\n\t@uv sync\n").unwrap();
    let mut talk = desk.allowed();
    assert_eq!(well(&mut talk, "sh build.sh"), "filled");
    if is_there("make") {
        assert_eq!(well(&mut talk, "make -s deps"), "filled");
    }
    let quiet = "{ echo x > ~/kept; chmod 700 ../there; rm ../there/old; } 2>/dev/null\nexit 0\n";
    fs::create_dir(desk.at("there")).unwrap();
    fs::write(desk.at("there/old"), "").unwrap();
    fs::write(desk.at("work/quiet.sh"), quiet).unwrap();
    let (text, failed, asked) = run(&mut talk, "sh quiet.sh", false);
    assert!(!failed && asked.len() == 1, "{text} {asked:?}");
    // The directory beside the project does not exist for the command if it is below `/tmp`.
    let is_below_tmp = desk.at("there").starts_with("/tmp");
    for name in ["home/kept", "there", "there/old"] {
        if is_below_tmp && name.starts_with("there") {
            continue;
        }
        let changing = format!("changing {}", desk.at(name).display());
        assert!(asked[0].contains(&changing), "{name}: {asked:?}");
    }
    assert!(
        asked[0].contains("sandbox.filesystem.allowWrite"),
        "{asked:?}"
    );
    assert!(!home.join("kept").exists() && desk.at("there/old").exists());
    // What is not to be written is no question where the program does without.
    fs::write(
        desk.at("work/reads.sh"),
        "exec 3<> ../there/old || exec 3< ../there/old\nread line <&3\nexit 0\n",
    )
    .unwrap();
    well(&mut talk, "bash reads.sh 2>/dev/null");
    let (text, failed, asked) = run(&mut talk, "sh quiet.sh", true);
    assert!(!failed && !asked.is_empty(), "{text} {asked:?}");
    assert!(home.join("kept").exists());
    assert_eq!(desk.at("there/old").exists(), is_below_tmp);
    assert_eq!(talk.end(), 0);
    // Nothing is left that no tool has used.
    let left = |folder: &str| {
        let entries = fs::read_dir(home.join(folder)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    let caches = left(".cache");
    assert!(caches.contains("uv"), "{caches:?}");
    for unused in [".npm", ".cargo", "go", ".gradle", ".m2", ".cache/pip"] {
        assert!(!home.join(unused).exists(), "{unused}: {:?}", left(""));
    }
}

impl Desk {
    /// The real program behind a version manager's, which would look for versions in the home.
    fn cargo(&self) -> Option<String> {
        let found = haft_testkit::command("rustup")
            .args(["which", "cargo"])
            .output();
        let found = found.ok().filter(|ran| ran.status.success());
        let path = found.map(|ran| String::from_utf8_lossy(&ran.stdout).trim().to_owned());
        let Some(path) = path else {
            haft_testkit::skip("no cargo that rustup knows");
            return None;
        };
        let bin = Path::new(&path).parent()?;
        // The compiler is beside it.
        Some(format!("RUSTC={0}/rustc {0}/cargo", bin.display()))
    }
}

/// The directories below this one that something was opened in while `run` ran, by the kernel's account.
fn opened(tree: &Path, run: impl FnOnce()) -> BTreeSet<PathBuf> {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    let mut directories = vec![tree.to_path_buf()];
    let mut at = 0;
    while let Some(path) = directories.get(at).cloned() {
        let entries = fs::read_dir(&path).unwrap().map(Result::unwrap);
        let below = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        directories.extend(below.map(|entry| entry.path()));
        at += 1;
    }
    // After that, because looking for them opens them.
    let watch = |path: PathBuf| {
        let number = inotify::add_watch(&queue, &path, WatchFlags::OPEN).unwrap();
        (number, path)
    };
    let paths: HashMap<i32, PathBuf> = directories.into_iter().map(watch).collect();
    run();
    let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
    let mut events = inotify::Reader::new(&queue, &mut buffer);
    let mut opened = BTreeSet::new();
    while let Ok(event) = events.next() {
        opened.extend(paths.get(&event.wd()).cloned());
    }
    opened
}

/// A large tree costs nothing before the first call: what is not opened cannot take time.
#[test]
fn nothing_of_a_tree_is_looked_through_before_the_first_call() {
    let desk = Desk::new();
    let work = desk.at("work");
    for number in 0..300 {
        let directory = work.join(format!("a{}/b{number}/c", number % 7));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("file.txt"), "x\n").unwrap();
    }
    fs::write(work.join("x.txt"), "x\n").unwrap();
    let command = || {
        let mut command = haft(&work);
        command.env("HOME", desk.at("home"));
        command
    };
    let script = desk.at("script.json");
    let turns = json!({"turns": [{"content": [{"type": "text", "text": "Done."}]}]});
    fs::write(&script, turns.to_string()).unwrap();
    let by_exec = opened(&work, || {
        let call = json!({"id": 1, "name": "Read", "input": {"file_path": "x.txt"}});
        let ran = crate::binary::run(command().arg("exec"), format!("{call}\n").as_bytes());
        assert!(ran.stdout.contains("\"is_error\":false"), "{}", ran.stdout);
    });
    let by_agent = opened(&work, || {
        let ran = crate::binary::run(
            command().args(["-p", "--script"]).arg(&script).arg("hello"),
            b"",
        );
        assert_eq!(ran.stdout, "Done.\n", "{}", ran.stderr);
    });
    // The directory itself, and no other.
    for opened in [by_exec, by_agent] {
        let below: Vec<_> = opened.iter().filter(|path| **path != work).collect();
        assert!(below.is_empty(), "{below:?}");
    }
}
