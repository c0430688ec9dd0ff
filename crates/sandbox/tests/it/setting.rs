//! A place to run commands in.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_sandbox::{
    ClosedDirectories, CommandEnd, GuardedNames, Mechanism, ReadOnlyProfile, ResourceLimits,
    Sandbox, SandboxNetwork, SandboxProfile, SandboxSetup, ShellCommand, WorkspaceProfile,
};
use tempfile::TempDir;
use tokio::{io::AsyncReadExt, time::timeout};

/// Long enough for any machine; nothing is measured by it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) sandbox: Sandbox,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ended: CommandEnd,
    pub(crate) text: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(Mechanism::Namespaces)
    }

    pub(crate) fn with(best: Mechanism) -> Self {
        haft_testkit::bound_this_process();
        let dir = tempfile::Builder::new()
            .prefix("sandbox-")
            .tempdir()
            .unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        let env = ["PATH", "HOME"]
            .into_iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let env: Vec<_> = env.collect();
        let sandbox = Sandbox::new(SandboxSetup {
            program: env!("CARGO_BIN_EXE_haft-keeper").into(),
            shell: "/bin/bash".into(),
            environment: Arc::new(move |_| env.clone()),
            scratch: dir.path().join("scratch"),
            snapshot: None,
            gate: None,
            strictest_mechanism: best,
            resource_limits: ResourceLimits::default(),
        });
        Self { dir, sandbox }
    }

    /// The directory that may be changed.
    pub(crate) fn project(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join("project")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn readonly() -> SandboxProfile {
        SandboxProfile::ReadOnly(ReadOnlyProfile::default())
    }

    pub(crate) fn workspace(&self) -> SandboxProfile {
        SandboxProfile::Workspace(WorkspaceProfile {
            writable: vec![self.project()],
            protected: Vec::new(),
            hidden: Vec::new(),
            guarded: Some(GuardedNames::default()),
            closed: ClosedDirectories::default(),
            network: SandboxNetwork::Open,
        })
    }

    pub(crate) async fn run(&self, profile: &SandboxProfile, text: &str) -> Outcome {
        let line = ShellCommand {
            text: text.to_owned(),
            cwd: self.project(),
            source_file: None,
            name_policy: None,
        };
        let mut running = self.sandbox.start(profile, line).await.unwrap();
        let mut bytes = Vec::new();
        let read = timeout(LONG, running.output.read_to_end(&mut bytes)).await;
        read.expect("the output does not end").unwrap();
        let ended = timeout(LONG, running.wait_for_exit())
            .await
            .expect("it does not end");
        timeout(LONG, running.wait_until_finished())
            .await
            .expect("it is not gone");
        Outcome {
            ended,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

/// What a file holds, if it is there.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// All that a command writes.
pub(crate) async fn output(running: &mut haft_sandbox::CommandHandle) -> String {
    let mut bytes = Vec::new();
    let read = timeout(LONG, running.output.read_to_end(&mut bytes)).await;
    read.expect("the output does not end").unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
