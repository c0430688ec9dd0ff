//! A project, and commands that run there in a sandbox.

use std::{
    collections::{BTreeMap, HashSet},
    env,
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hasher},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use haft_journal::{Journal, UndoMode, UndoSelection, WriteGrant};
use haft_sandbox::{
    ClosedDirectories, ExitKind, GuardedNames, Mechanism, ResourceLimits, Sandbox, SandboxNetwork,
    SandboxProfile, SandboxSetup, ShellCommand, WitnessLimits, WitnessRequest, WorkspaceProfile,
};
use haft_testkit::measure::median;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_haft-keeper");
/// The kernel reports CPU time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// A directory in which commands run, and the preparation of its contents.
pub(crate) struct Project {
    folder: TempDir,
    fill: Box<dyn Fn(&Path)>,
}

/// The time that a command took, and the CPU time of its processes and of the journal after it.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    pub(crate) processes: Duration,
    pub(crate) journal: Duration,
}

impl Cost {
    pub(crate) fn median(costs: Vec<Cost>) -> Self {
        Self {
            wall: median(costs.iter().map(|cost| cost.wall).collect()),
            processes: median(costs.iter().map(|cost| cost.processes).collect()),
            journal: median(costs.iter().map(|cost| cost.journal).collect()),
        }
    }
}

impl Project {
    /// Creates a project. `fill` creates its contents before each command.
    pub(crate) fn new(fill: impl Fn(&Path) + 'static) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("haft-bench-undo-")
            .tempdir()
            .unwrap();
        Self {
            folder,
            fill: Box::new(fill),
        }
    }

    /// Returns the directory of the project.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Creates the contents again.
    pub(crate) fn prepare(&self) {
        let _ = fs::remove_dir_all(self.root());
        let _ = fs::remove_dir_all(self.undo_folder());
        fs::create_dir(self.root()).unwrap();
        (self.fill)(&self.root());
    }

    /// Runs a command without a witness.
    pub(crate) async fn run(&self, command: &str) -> Cost {
        let sandbox = self.sandbox();
        let begun = cpu();
        let start = Instant::now();
        let mut running = sandbox
            .start(&self.profile(), self.line(command))
            .await
            .unwrap();
        assert_eq!(
            running.wait_for_exit().await.how,
            ExitKind::Exited(0),
            "{command}"
        );
        let wall = start.elapsed();
        sandbox.close().await;
        Cost {
            wall,
            processes: cpu() - begun,
            journal: Duration::ZERO,
        }
    }

    /// Runs a command with a witness and undoes it. The cost does not include the undo.
    pub(crate) async fn run_witnessed(&self, command: &str) -> Cost {
        let before = tree(&self.root());
        let (cost, journal) = self.witness(command).await;
        self.undo(&journal, &before);
        cost
    }

    /// Runs a command with a witness, and returns the journal that can undo it.
    pub(crate) async fn witness(&self, command: &str) -> (Cost, Journal) {
        let sandbox = self.sandbox();
        let journal = Journal::new(None).with_undo(self.undo_folder());
        let roots = vec![self.root()];
        sandbox.set_witness_store(journal.witness_store());
        let (profile, begun) = (self.profile(), cpu());
        let start = Instant::now();
        let unit = journal
            .begin_witness("call", "Bash", command, &roots)
            .unwrap();
        let request = WitnessRequest {
            log: unit.log().try_clone().unwrap(),
            objects: unit.folder().join("objects"),
            roots,
            limits: WitnessLimits::default(),
            copies: None,
            policy: None,
        };
        let mut running = sandbox
            .start_witnessed(&profile, self.line(command), Mechanism::None, &request)
            .await
            .unwrap();
        drop(request);
        running.wait_until_finished().await;
        let end = running.wait_for_exit().await;
        assert_eq!(
            (end.how, end.witness_failure),
            (ExitKind::Exited(0), None),
            "{command}"
        );
        let ran = start.elapsed();
        // The CPU time of the guard counts when its keeper has exited.
        sandbox.close().await;
        let (closed, start) = (cpu(), Instant::now());
        let changes = journal.finish_witness(unit, &grant(), &|_| false);
        let cost = Cost {
            wall: ran + start.elapsed(),
            processes: closed - begun,
            journal: cpu() - closed,
        };
        assert_eq!((changes.uncovered, changes.not_restorable), (None, vec![]));
        (cost, journal)
    }

    /// Undoes the command, and checks that the tree is the one before it. Returns the time of the undo.
    pub(crate) fn undo(&self, journal: &Journal, before: &Tree) -> Duration {
        let start = Instant::now();
        let history = journal.history().unwrap();
        let undone = history.undo(&grant(), &UndoSelection::Last, UndoMode::Apply);
        let took = start.elapsed();
        // A command without changes has no unit.
        if let Ok(undone) = undone {
            assert_eq!(undone.left, []);
        }
        let after = tree(&self.root());
        let names = before.keys().chain(after.keys());
        let mut different = names.filter(|name| before.get(*name) != after.get(*name));
        assert_eq!(different.next(), None);
        took
    }

    /// Returns the folder of the undo journal.
    pub(crate) fn undo_folder(&self) -> PathBuf {
        self.folder.path().join("undo")
    }

    fn line(&self, command: &str) -> ShellCommand {
        ShellCommand {
            text: command.to_owned(),
            cwd: self.root(),
            source_file: None,
            name_policy: None,
        }
    }

    fn profile(&self) -> SandboxProfile {
        SandboxProfile::Workspace(WorkspaceProfile {
            writable: vec![fs::canonicalize(self.root()).unwrap()],
            protected: Vec::new(),
            hidden: Vec::new(),
            guarded: Some(GuardedNames::default()),
            closed: ClosedDirectories::default(),
            network: SandboxNetwork::None,
        })
    }

    fn sandbox(&self) -> Sandbox {
        let mut variables: Vec<(OsString, OsString)> = ["PATH", "CARGO_HOME", "RUSTUP_HOME"]
            .into_iter()
            .filter_map(|name| Some((OsString::from(name), env::var_os(name)?)))
            .collect();
        variables.push(("HOME".into(), self.root().join(".home").into()));
        if let Some(home) = env::home_dir() {
            for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                if env::var_os(name).is_none() {
                    variables.push((name.into(), home.join(folder).into()));
                }
            }
        }
        Sandbox::new(SandboxSetup {
            program: BINARY.into(),
            shell: haft_sandbox::system_shell().unwrap(),
            environment: Arc::new(move |_| variables.clone()),
            scratch: self.folder.path().join("scratch"),
            snapshot: None,
            gate: None,
            strictest_mechanism: Mechanism::Namespaces,
            resource_limits: ResourceLimits::default(),
        })
    }
}

fn grant() -> WriteGrant {
    WriteGrant::unconfined("call", "Bash")
}

/// Returns the CPU time of this process and of all processes that it has waited for.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    // utime, stime, cutime, cstime
    let ticks: u32 = fields
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u32>().unwrap())
        .sum();
    TICK * ticks
}

/// A line for each path: kind, mode, size or target, and content.
pub(crate) type Tree = BTreeMap<String, String>;

/// Returns the contents of a directory.
pub(crate) fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if metadata.is_file() {
                let mut hasher = DefaultHasher::new();
                hasher.write(&fs::read(&path).unwrap());
                format!("{:016x}", hasher.finish())
            } else {
                pending.push(path.clone());
                String::new()
            };
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, format!("{:o} {content}", metadata.mode()));
        }
    }
    found
}

/// Returns the inode numbers of all entries below a directory.
pub(crate) fn inodes(root: &Path) -> HashSet<u64> {
    let mut found = HashSet::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let metadata = fs::symlink_metadata(entry.path()).unwrap();
            found.insert(metadata.ino());
            if metadata.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    found
}
