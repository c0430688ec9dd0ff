//! A test once more, as a user without rights.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::outside::nobody;

/// Where the keeper of sandboxes is, for a test that was started from a copy.
const KEEPER: &str = "SCENARIOS_KEEPER";

/// The program that keeps sandboxes.
pub(super) fn keeper() -> PathBuf {
    env::var_os(KEEPER).map_or_else(|| env!("CARGO_BIN_EXE_haft-keeper").into(), PathBuf::from)
}

/// A test that runs elsewhere, as another user.
pub(super) struct Second {
    child: std::process::Child,
    _copies: Option<TempDir>,
}

/// Starts the test of this name again as a user without rights. `None` when this is one, or when the
/// system has no way to become one; then it is said.
pub(super) fn start(test: &str) -> Option<Second> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let mut programs = [env::current_exe().unwrap(), keeper()];
    let mut copies = None;
    if !programs.iter().all(|program| reachable(program)) {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for program in &mut programs {
            let copy = dir.path().join(program.file_name().unwrap());
            fs::copy(&*program, &copy).unwrap();
            *program = copy;
        }
        if !programs.iter().all(|program| reachable(program)) {
            haft_testkit::skip(
                "attempts in a sandbox, without rights: no setpriv, or programs out of that user's reach",
            );
            return None;
        }
        copies = Some(dir);
    }
    let [program, keeper] = programs;
    let child = unprivileged(&program)
        .args(["--exact", test, "--nocapture"])
        .env(KEEPER, keeper)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Some(Second {
        child,
        _copies: copies,
    })
}

impl Second {
    /// What it said, if it failed.
    pub(super) fn finish(self) -> Option<String> {
        let output = self.child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let ran = said.contains("1 passed");
        (!output.status.success() || !ran).then(|| format!("without rights:\n{said}"))
    }
}

fn reachable(program: &Path) -> bool {
    let test = unprivileged(Path::new("test"))
        .arg("-x")
        .arg(program)
        .status();
    test.is_ok_and(|status| status.success())
}

fn unprivileged(program: &Path) -> Command {
    let user = nobody();
    let mut command = haft_testkit::command("setpriv");
    command
        .args([format!("--reuid={user}"), format!("--regid={user}")])
        .args(["--clear-groups", "--"])
        .arg(program)
        .current_dir("/");
    command
}
