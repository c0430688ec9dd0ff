//! A test of the sandbox on this machine: a command in each profile tries forbidden actions, and
//! the probe checks whether they succeeded.

use std::{
    collections::BTreeSet,
    fs, io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio::io::AsyncReadExt;

use crate::{
    ClosedDirectories, GuardedNames, Mechanism, ReadOnlyProfile, Sandbox, SandboxError,
    SandboxNetwork, SandboxProfile, ShellCommand, WorkspaceProfile,
};

/// The result for one promise: a guarantee of a profile that the probe tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFinding {
    /// The name of the profile.
    pub profile: &'static str,
    /// The human-readable text of the promise.
    pub promise: &'static str,
    /// Whether the promise held.
    pub held: bool,
}

/// The results for a machine.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// The mechanism that confines commands.
    pub mechanism: Mechanism,
    /// Better mechanisms that do not work here, each with its error.
    pub failures: Vec<(Mechanism, String)>,
    /// The result for each promise.
    pub findings: Vec<ProbeFinding>,
}

/// Tests every promise of the profiles `readonly` and `workspace` with real files, sockets and
/// processes, in a new folder below `among`.
pub async fn probe(sandbox: &Sandbox, among: &Path) -> Result<ProbeReport, SandboxError> {
    let fixture = ProbeFixture::new(among, sandbox.shell()).map_err(SandboxError::Scratch)?;
    let mut findings = Vec::new();
    let mut mechanism = Mechanism::Namespaces;
    let readonly = SandboxProfile::ReadOnly(ReadOnlyProfile {
        hidden: vec![fixture.secret()],
        closed: ClosedDirectories::default(),
    });
    let workspace = SandboxProfile::Workspace(WorkspaceProfile {
        writable: vec![fixture.inside()],
        protected: vec![fixture.control()],
        hidden: vec![fixture.secret()],
        guarded: Some(GuardedNames {
            last: BTreeSet::from([NEW_CONTROL.to_owned()]),
            ..GuardedNames::default()
        }),
        closed: ClosedDirectories::default(),
        network: SandboxNetwork::None,
    });
    for profile in [readonly, workspace] {
        let (used, output) = fixture.attempt(sandbox, &profile).await?;
        mechanism = mechanism.max(used);
        findings.extend(fixture.check_promises(&profile, &output));
        fixture.restore().map_err(SandboxError::Scratch)?;
    }
    Ok(ProbeReport {
        mechanism,
        failures: sandbox.failures().await,
        findings,
    })
}

/// Files, sockets and a process that a command must not touch.
struct ProbeFixture {
    folder: PathBuf,
    listener: TcpListener,
    datagrams: UdpSocket,
    bystander: Child,
}

/// A control file that does not exist yet.
const NEW_CONTROL: &str = "new-control";

const OLD: &str = "old";
const SECRET: &str = "a text that no command may read";
const MODE: u32 = 0o640;

impl ProbeFixture {
    fn new(among: &Path, shell: &Path) -> io::Result<Self> {
        let folder = fs::canonicalize(among)?.join(format!("haft-probe-{}", std::process::id()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        datagrams.set_nonblocking(true)?;
        // This process waits for a line that never comes.
        let bystander = Command::new(shell)
            .args(["-c", "read"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        // Created last, so that no folder is left if one of the others fails.
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let fixture = Self {
            folder,
            listener,
            datagrams,
            bystander,
        };
        fs::create_dir(fixture.inside())?;
        fs::write(fixture.secret(), SECRET)?;
        fixture.restore()?;
        Ok(fixture)
    }

    fn inside(&self) -> PathBuf {
        self.folder.join("inside")
    }

    fn outside(&self) -> PathBuf {
        self.folder.join("outside")
    }

    fn secret(&self) -> PathBuf {
        self.folder.join("secret")
    }

    fn control(&self) -> PathBuf {
        self.inside().join("control")
    }

    /// Writes the files that commands may have changed again.
    fn restore(&self) -> io::Result<()> {
        for file in [self.outside(), self.control()] {
            fs::write(&file, OLD)?;
            fs::set_permissions(&file, fs::Permissions::from_mode(MODE))?;
        }
        Ok(())
    }

    /// Runs a command that tries all actions. Returns its output, which contains everything that it
    /// could read.
    async fn attempt(
        &self,
        sandbox: &Sandbox,
        profile: &SandboxProfile,
    ) -> Result<(Mechanism, String), SandboxError> {
        let failed = |error: io::Error| SandboxError::Shell(error);
        let tcp = self.listener.local_addr().map_err(failed)?.port();
        let udp = self.datagrams.local_addr().map_err(failed)?.port();
        let text = format!(
            "cd ..; echo new > outside; chmod 666 outside; echo new > inside/control; \
             echo new > inside/made; cat secret; echo new > inside/{NEW_CONTROL}; \
             (echo x > /dev/tcp/127.0.0.1/{tcp}); (echo x > /dev/udp/127.0.0.1/{udp}); \
             kill -9 {}; true",
            self.bystander.id(),
        );
        let command = ShellCommand {
            text,
            cwd: self.inside(),
            source_file: None,
            name_policy: None,
        };
        let mut handle = sandbox.start(profile, command).await?;
        let mut output = Vec::new();
        handle
            .output
            .read_to_end(&mut output)
            .await
            .map_err(failed)?;
        handle.wait_until_finished().await;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok((handle.mechanism(), output))
    }

    /// Checks which actions of the command succeeded.
    fn check_promises(&self, profile: &SandboxProfile, output: &str) -> Vec<ProbeFinding> {
        let is_unchanged = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text == OLD);
        let mode = fs::metadata(self.outside()).map(|found| found.permissions().mode() & 0o777);
        let made = self.inside().join("made");
        let may_write = matches!(profile, SandboxProfile::Workspace(_));
        let wrote = fs::remove_file(&made).is_ok();
        // The network of a `workspace` command is a setting; the probe closes it.
        let (tcp, udp) = match may_write {
            true => (
                "where its network is closed, no host can be reached by TCP",
                "where its network is closed, no host can be reached by UDP",
            ),
            false => (
                "no host can be reached by TCP",
                "no host can be reached by UDP",
            ),
        };
        let mut findings = vec![
            (
                "files outside cannot be written",
                is_unchanged(&self.outside()),
            ),
            (
                "modes of files outside cannot be changed",
                mode.is_ok_and(|mode| mode == MODE),
            ),
            (
                "control files cannot be written",
                is_unchanged(&self.control()),
            ),
            (
                "control files cannot be made",
                fs::remove_file(self.inside().join(NEW_CONTROL)).is_err(),
            ),
            ("hidden files cannot be read", !output.contains(SECRET)),
            (tcp, self.listener.accept().is_err()),
            (udp, self.datagrams.recv(&mut [0; 8]).is_err()),
            (
                "other processes cannot be signalled",
                self.bystander_lives(),
            ),
        ];
        findings.push(if may_write {
            ("files of the workspace can be written", wrote)
        } else {
            ("files of the workspace cannot be written", !wrote)
        });
        findings
            .into_iter()
            .map(|(promise, held)| ProbeFinding {
                profile: profile.name(),
                promise,
                held,
            })
            .collect()
    }

    fn bystander_lives(&self) -> bool {
        // A zombie is a dead process that was not reaped yet.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.bystander.id()));
        stat.is_ok_and(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| !rest.starts_with('Z'))
        })
    }
}

impl Drop for ProbeFixture {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
