//! Finding Chromium and starting it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{CallContext, ToolError};
use haft_sandbox::{
    ClosedDirectories, ConfinedProgram, Mechanism, PROXY_PORT, SandboxNetwork, SandboxProfile,
    WorkspaceProfile, network::NetworkGate,
};
use tokio::net::unix::pipe;

use super::process::{BrowserProcess, OwnSandbox, environment};
use crate::shell::ShellService;

/// The program names, in order of preference.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// The browser program and its settings. This is a service: without it the `Browser` tool is not
/// offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserProgram {
    /// The path of the program.
    pub path: PathBuf,
    /// Whether it shows a window.
    pub headed: bool,
    /// The memory limit of all its processes in MB; above it, the browser is closed.
    pub memory_mb: u64,
}

/// The default memory limit in MB.
const MEMORY_MB: u64 = 2_048;

impl BrowserProgram {
    /// Finds the program at `path`, otherwise the first one in those of `folders` (a `PATH`) that
    /// other users cannot write to. Folders in `outside`, such as the project, are skipped.
    #[must_use]
    pub fn find(path: Option<&Path>, folders: &OsStr, outside: &[PathBuf]) -> Option<Self> {
        let found = match path {
            Some(path) => path.is_absolute().then(|| path.to_path_buf())?,
            None => {
                let folders: Vec<PathBuf> = env::split_paths(folders)
                    .filter(|folder| is_trusted(folder, outside))
                    .collect();
                let mut all = NAMES
                    .iter()
                    .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
                all.find(|path| is_program(path))?
            }
        };
        is_program(&found).then_some(Self {
            path: found,
            headed: false,
            memory_mb: MEMORY_MB,
        })
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Returns whether other users cannot put a program into this folder.
fn is_trusted(folder: &Path, outside: &[PathBuf]) -> bool {
    folder.is_absolute()
        && !outside.iter().any(|other| folder.starts_with(other))
        && fs::metadata(folder).is_ok_and(|found| found.is_dir() && found.mode() & 0o022 == 0)
}

const FLAGS: [&str; 19] = [
    "--remote-debugging-pipe=cbor",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-site-isolation-trials",
    "--no-pings",
    "--mute-audio",
    "--password-store=basic",
    // Loopback connections use the gate, too.
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-features=IsolateOrigins,site-per-process,IsolateSandboxedIframes,AutofillServerCommunication,\
     OptimizationHints,MediaRouter,Translate,LocalNetworkAccessChecks,Prerender2",
];

impl BrowserProgram {
    fn arguments(&self, scratch: &Path, proxy: u16) -> Vec<OsString> {
        let mut all: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        if !self.headed {
            all.push("--headless".into());
        }
        all.push(format!("--proxy-server=socks5://127.0.0.1:{proxy}").into());
        let mut folder = OsString::from("--user-data-dir=");
        folder.push(scratch.join("profile"));
        all.push(folder);
        // Instead of Chromium's default page for new tabs.
        all.push("about:blank".into());
        all
    }
}

/// A started browser, with the pipe that we read from and the one that we write to.
pub(super) type StartedBrowser = (BrowserProcess, pipe::Receiver, pipe::Sender);

/// Starts the browser with its pipe, in haft's sandbox if possible, otherwise in its own.
pub(super) async fn start(
    program: &BrowserProgram,
    shell: &ShellService,
    gate: Arc<dyn NetworkGate>,
    cx: &CallContext,
) -> Result<StartedBrowser, ToolError> {
    let failed =
        |error: io::Error| ToolError::Failed(format!("The browser was not started: {error}"));
    // A window needs the display, which is not reachable from haft's sandbox.
    if program.headed {
        return start_in_own_sandbox(program, shell, gate);
    }
    let scratch = shell.new_program_scratch("browser");
    let ControlPipes {
        theirs: (commands, answers),
        ours: (reader, writer),
    } = ControlPipes::new().map_err(failed)?;
    let mut confined = ConfinedProgram::new(&program.path, "/");
    confined.arguments = program.arguments(&scratch, PROXY_PORT);
    // haft's sandbox confines the whole browser. Chromium's own sandbox would need privileges that
    // it does not have in there.
    confined.arguments.push("--no-sandbox".into());
    confined.env = environment(&scratch, false);
    // The browser's other output is not needed, and a full pipe would block it.
    let nowhere = || {
        let null = fs::File::options().read(true).write(true).open("/dev/null");
        null.map(OwnedFd::from).map_err(failed)
    };
    confined.files = vec![
        (0, nowhere()?),
        (1, nowhere()?),
        (2, nowhere()?),
        (3, commands),
        (4, answers),
    ];
    confined.gate = Some(Arc::clone(&gate));
    confined.scratch = Some(scratch);
    let profile = profile(cx);
    let started = shell.start_program_with_profile(
        &cx.permissions.confinement,
        &profile,
        confined,
        Mechanism::Bubblewrap,
    );
    if let Some(process) = started.await? {
        return Ok((BrowserProcess::Confined(process), reader, writer));
    }
    start_in_own_sandbox(program, shell, gate)
}

/// Starts the browser in Chromium's own sandbox, which does not exist for root.
fn start_in_own_sandbox(
    program: &BrowserProgram,
    shell: &ShellService,
    gate: Arc<dyn NetworkGate>,
) -> Result<StartedBrowser, ToolError> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && program.headed {
        return Err(ToolError::Failed(format!(
            "{} was not started: a browser with a window (`browser.headed`) runs outside of haft's sandbox, and its \
             own sandbox does not work for root. Remove `browser.headed` from the settings, or work as another user.",
            program.path.display()
        )));
    }
    if is_root {
        return Err(ToolError::Failed(format!(
            "{} was not started: haft's sandbox is not strong enough here, and the browser's own sandbox does not \
             work for root. Run `haft doctor` to see what is missing.",
            program.path.display()
        )));
    }
    let pipes = ControlPipes::new()
        .map_err(|error| ToolError::Failed(format!("The browser was not started: {error}")))?;
    let scratch = shell.new_program_scratch("browser");
    let own = OwnSandbox::start(
        &program.path,
        scratch.clone(),
        environment(&scratch, program.headed),
        gate,
        pipes.theirs,
        |proxy| program.arguments(&scratch, proxy),
    )?;
    let (reader, writer) = pipes.ours;
    Ok((BrowserProcess::OwnSandbox(own), reader, writer))
}

/// Directories with sockets of other programs.
const SOCKET_DIRECTORIES: [&str; 3] = ["/run", "/tmp", "/var/tmp"];

/// Returns the sandbox profile: no access to the home directory and the project, writing only to
/// the scratch folder, network only through the gate.
fn profile(cx: &CallContext) -> SandboxProfile {
    let mut closed: Vec<PathBuf> = cx.permissions.directories.to_vec();
    closed.push(cx.cwd.to_path_buf());
    closed.extend(SOCKET_DIRECTORIES.map(PathBuf::from));
    closed.extend(
        env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute() && home != Path::new("/")),
    );
    SandboxProfile::Workspace(WorkspaceProfile {
        writable: Vec::new(),
        protected: Vec::new(),
        hidden: cx.permissions.confinement.hidden.to_vec(),
        guarded: None,
        closed: ClosedDirectories {
            directories: closed,
            ..ClosedDirectories::default()
        },
        network: SandboxNetwork::Proxy,
    })
}

/// The control pipes: the browser's ends and our ends.
struct ControlPipes {
    theirs: (OwnedFd, OwnedFd),
    ours: (pipe::Receiver, pipe::Sender),
}

impl ControlPipes {
    fn new() -> io::Result<Self> {
        let pair = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (their_commands, our_commands) = pair()?;
        let (our_answers, their_answers) = pair()?;
        Ok(Self {
            theirs: (their_commands, their_answers),
            ours: (
                pipe::Receiver::from_owned_fd(our_answers)?,
                pipe::Sender::from_owned_fd(our_commands)?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_only_where_no_one_else_can_put_them() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("browser");
        fs::write(&own, "#!/bin/sh\n").unwrap();
        assert!(
            BrowserProgram::find(Some(&own), OsStr::new(""), &[]).is_none(),
            "it cannot be run"
        );
        let mut rights = fs::metadata(&own).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
        fs::set_permissions(&own, rights).unwrap();
        assert!(BrowserProgram::find(Some(&own), OsStr::new(""), &[]).is_some());
        assert!(
            BrowserProgram::find(Some(Path::new("browser")), OsStr::new("/usr/bin"), &[]).is_none()
        );
        assert!(is_trusted(folder.path(), &[]));
        assert!(!is_trusted(folder.path(), &[folder.path().to_path_buf()]));
        let mut open = fs::metadata(folder.path()).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o777);
        fs::set_permissions(folder.path(), open).unwrap();
        assert!(!is_trusted(folder.path(), &[]));
    }
}
