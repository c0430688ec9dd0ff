//! A sandbox in which attempts are made, and its ground.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_sandbox::{
    ClosedDirectories, CommandHandle, CommandOutput, GuardedNames, Mechanism, ReadOnlyProfile,
    ResourceLimits, Sandbox, SandboxNetwork, SandboxProfile, SandboxSetup, ShellCommand,
    WorkspaceProfile,
};
use tempfile::TempDir;
use tokio::{io::AsyncReadExt, time::timeout};

use super::{
    outside::{Daemons, Spot},
    table::{Attempt, Case, GOT, Scenario, View, has_python},
    user,
};
use crate::setting::LONG;

/// What programs are looked for in, in every sandbox: not where only one user can walk.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The names of control files.
const GUARDED: [&str; 7] = [
    ".git",
    ".claude",
    ".missing.json",
    ".linked.json",
    ".behind",
    "linked.json",
    "settings.json",
];

/// What is around the attempts of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Files and directories.
    Files,
    /// Some of them hidden.
    Hidden,
    /// Some of them protected.
    Control,
    /// And daemons, and a process.
    Daemons,
}

/// Directories with a spot for each attempt, for one sandbox after the other.
pub(super) struct Ground {
    _dir: TempDir,
    base: PathBuf,
    around: Around,
    pub(super) spots: Vec<Spot>,
}

impl Ground {
    pub(super) fn new(scenarios: &[Scenario], around: Around) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("scenarios-")
            .tempdir()
            .unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("project")).unwrap();
        let spot = |scenario: &Scenario| {
            let mut spot = Spot::new(&base, scenario.name, around);
            let shares = ["SHARED", "mq_open"];
            if has_python() && shares.iter().any(|word| scenario.text().contains(word)) {
                spot.daemons.as_mut().map(Daemons::share);
            }
            spot
        };
        Self {
            spots: scenarios.iter().map(spot).collect(),
            _dir: dir,
            base,
            around,
        }
    }

    pub(super) fn project(&self) -> PathBuf {
        self.base.join("project")
    }
}

/// A sandbox on its ground, watched from outside.
pub(super) struct Stand<'a> {
    pub(super) case: Case,
    pub(super) profile: SandboxProfile,
    pub(super) sandbox: Sandbox,
    pub(super) ground: &'a mut Ground,
}

impl<'a> Stand<'a> {
    pub(super) fn new(case: &Case, ground: &'a mut Ground) -> Self {
        let base = &ground.base;
        let env: Vec<_> = [("PATH", PATH.as_ref()), ("HOME", base.as_os_str())]
            .map(|(name, value)| (name.into(), value.to_owned()))
            .into();
        let sandbox = Sandbox::new(SandboxSetup {
            program: user::keeper(),
            shell: "/bin/bash".into(),
            environment: Arc::new(move |_| env.clone()),
            scratch: base.join("scratch"),
            snapshot: None,
            gate: None,
            strictest_mechanism: case.mechanism,
            resource_limits: ResourceLimits::default(),
        });
        let (mut hidden, mut protected) = (Vec::new(), Vec::new());
        match ground.around {
            Around::Hidden => hidden = ground.spots.iter().flat_map(Spot::hidden).collect(),
            Around::Control => protected = ground.spots.iter().flat_map(Spot::protected).collect(),
            Around::Files | Around::Daemons => {}
        }
        let mut guarded = GuardedNames::default();
        if ground.around == Around::Control {
            guarded.parts = GUARDED.map(str::to_owned).into();
            // As if each spot were a home.
            let spots = ground.spots.iter();
            guarded.home.directories = spots.map(|spot| spot.inside.clone()).collect();
            guarded.home.names = ["bin".to_owned()].into();
        }
        let network = match case.view {
            View::Proxy => SandboxNetwork::Proxy,
            View::Nobody => SandboxNetwork::None,
            View::Open | View::ReadOnly | View::Full => SandboxNetwork::Open,
        };
        let profile = match case.view {
            View::Full => SandboxProfile::Full,
            View::ReadOnly => SandboxProfile::ReadOnly(ReadOnlyProfile {
                hidden,
                ..ReadOnlyProfile::default()
            }),
            View::Open | View::Proxy | View::Nobody => {
                SandboxProfile::Workspace(WorkspaceProfile {
                    writable: vec![ground.project()],
                    protected,
                    hidden,
                    guarded: Some(guarded),
                    closed: ClosedDirectories::default(),
                    network,
                })
            }
        };
        Self {
            case: *case,
            profile,
            sandbox,
            ground,
        }
    }

    /// Is it the sandbox that was meant? A weaker one is taken where this one does not work. Panics if
    /// that is not because of the machine.
    pub(super) async fn stands(&self) -> bool {
        let got = self.sandbox.prepare(&self.profile).await.unwrap();
        if got == self.case.mechanism {
            return true;
        }
        let failures = self.sandbox.failures().await;
        let said = format!("{}: not run: {failures:?}", self.case);
        assert!(!is_possible(self.case.mechanism), "{said}");
        haft_testkit::skip(&format!(
            "attempts in a sandbox of {:?}: it cannot be had here",
            self.case.mechanism
        ));
        // The next sandbox has the same scratch directory: this one must not remove it later.
        self.sandbox.close().await;
        false
    }

    /// Makes the attempts, each on its own spot. What of each is seen from outside, and what did it say?
    /// `None` for those that are not tried here.
    pub(super) async fn attempt(
        &mut self,
        scenarios: &[Scenario],
    ) -> Vec<Option<(Vec<String>, String)>> {
        // What is inside may be changed by whom that is allowed to, but for what controls programs.
        let inside = self.case.view == View::ReadOnly;
        let spots = &self.ground.spots;
        let before: Vec<_> = spots.iter().map(|spot| spot.look(inside)).collect();
        let said = self.run(&self.script(scenarios)).await;
        let mut results = Vec::new();
        for ((spot, scenario), before) in self.ground.spots.iter_mut().zip(scenarios).zip(before) {
            if !scenario.is_tried(&self.case) {
                results.push(None);
                continue;
            }
            let mut seen = difference(&before, &spot.look(inside));
            seen.extend(spot.heard());
            let said = said
                .split(MARK)
                .find_map(|part| part.strip_prefix(&format!("{}\n", spot.name)));
            match said {
                Some(said) => {
                    let got = said.lines().filter(|line| line.contains(GOT));
                    seen.extend(got.map(str::to_owned));
                }
                None => seen.push("it was not made".to_owned()),
            }
            results.push(Some((seen, said.unwrap_or_default().to_owned())));
            spot.renew();
        }
        results
    }

    /// All attempts one after the other, each in a process of its own.
    fn script(&self, scenarios: &[Scenario]) -> String {
        let mut script = String::new();
        if self.case.view != View::Full {
            script += "grep -q '^Seccomp:.2' /proc/self/status || exit 99\n";
        }
        let mut interpreted = Vec::new();
        for (spot, scenario) in self.ground.spots.iter().zip(scenarios) {
            if !scenario.is_tried(&self.case) {
                continue;
            }
            let names: Vec<String> = spot
                .names()
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            match scenario.attempt {
                Attempt::Bash(text) => {
                    let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
                    let (mark, names) = (quoted(&format!("{MARK}{}", spot.name)), names.join(" "));
                    script += &format!("echo {mark}; (export {names}; {text}\n)\n");
                }
                Attempt::Python(text) => {
                    interpreted.extend([spot.name.clone(), names.join("\n"), text.to_owned()]);
                }
            }
        }
        if !interpreted.is_empty() {
            let interpreted: Vec<_> = interpreted.iter().map(|word| quoted(word)).collect();
            script += &format!(
                "/usr/bin/python3 -I -S -c {} {}",
                quoted(PYTHON),
                interpreted.join(" ")
            );
        }
        script
    }

    /// Runs a command, and ends what it leaves behind. What did it say?
    pub(super) async fn run(&self, text: &str) -> String {
        finish(self.start(text).await).await
    }

    pub(super) async fn start(&self, text: &str) -> CommandHandle {
        let line = ShellCommand {
            text: text.to_owned(),
            cwd: self.ground.project(),
            source_file: None,
            name_policy: None,
        };
        let running = self.sandbox.start(&self.profile, line).await.unwrap();
        assert!(
            self.case.view == View::Full || running.mechanism() == self.case.mechanism,
            "{}: a weaker sandbox was taken: {:?}",
            self.case,
            self.sandbox.failures().await
        );
        running
    }

    /// Ends it. What is left of it that must not be?
    pub(super) async fn end(self) -> Vec<String> {
        self.sandbox.close().await;
        let left = processes_in(&self.ground.base).into_iter();
        left.map(|process| format!("{}: a process is left: {process}", self.case))
            .collect()
    }
}

/// Can someone else do here what this way of confining needs?
fn is_possible(mechanism: Mechanism) -> bool {
    let line = match mechanism {
        Mechanism::Namespaces => "unshare -Urmn true",
        Mechanism::Bubblewrap => "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all true",
        Mechanism::Reduced => "grep -q landlock /sys/kernel/security/lsm",
        Mechanism::None => "true",
    };
    let status = haft_testkit::command("sh").args(["-c", line]).status();
    status.is_ok_and(|status| status.success())
}

/// Before the name of a scenario, and with it before what that says.
const MARK: &str = "\u{1}";

/// Makes attempts one after the other; in a process each, so that they start with the same.
const PYTHON: &str = r#"
import os, sys, ctypes, errno, fcntl, mmap, pty, resource, signal, socket, struct, termios, threading, time, traceback
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def number(name): return int(os.environ[name])
def call(*arguments):
    done = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return done if done >= 0 else -ctypes.get_errno()
def write(path, **how):
    with open(os.open(path, os.O_WRONLY | os.O_TRUNC, **how), "w") as file: file.write("new")
words = iter(sys.argv[1:])
for name in words:
    names, text = next(words), next(words)
    print("\1" + name, flush=True)
    child = os.fork()
    if child == 0:
        try:
            os.environ.update(line.split("=", 1) for line in names.split("\n"))
            IN, OUT = os.environ["IN"], os.environ["OUT"]
            exec(text)
        except BaseException: traceback.print_exc()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"#;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Waits for a command's own process, and ends what it left behind. What did it all say?
pub(super) async fn finish(mut running: CommandHandle) -> String {
    let mut output = CommandOutput::take(&mut running.output);
    // It may say more than the pipe holds, and what it leaves behind may hold the pipe.
    let reading = tokio::spawn(async move {
        let mut bytes = Vec::new();
        // What is withheld is not there.
        let _ = output.read_to_end(&mut bytes).await;
        bytes
    });
    let ended = timeout(LONG, async {
        running.wait_for_exit().await;
        running.kill(Duration::ZERO);
        running.wait_until_finished().await;
        reading.await
    });
    let bytes = ended.await.expect("it does not end").unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Processes that were started with temporary files below `base`: commands of its sandbox.
fn processes_in(base: &Path) -> Vec<String> {
    let wanted = format!("TMPDIR={}", base.join("scratch").display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environ)
            .split('\0')
            .any(|variable| variable == wanted)
        {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push(format!("{:?} {name}", entry.file_name()));
        }
    }
    found
}

fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (what, was) in before {
        match after.get(what) {
            None => lines.push(format!("{what}: gone")),
            Some(is) if is != was => {
                let changed = was.split(';').zip(is.split(';'));
                let changed = changed.filter(|(was, is)| was != is);
                let changed: Vec<_> = changed.map(|(was, is)| format!("{was} →{is}")).collect();
                lines.push(format!("{what}: {}", changed.join(", ")));
            }
            Some(_) => {}
        }
    }
    let new = after.keys().filter(|what| !before.contains_key(*what));
    lines.extend(new.map(|what| format!("{what}: new")));
    lines
}
