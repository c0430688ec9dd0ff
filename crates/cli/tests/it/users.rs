//! The same once more as an ordinary user, where the tests run as root.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// Of an account that owns nothing.
const NOBODY: u32 = 65534;

/// Who runs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// The one who runs the tests.
    Same,
    /// Someone without rights, in the place of root.
    Ordinary,
}

/// Everyone something can be tried as here. Says so where there should be more.
pub(crate) fn all() -> Vec<User> {
    if !rustix::process::geteuid().is_root() {
        return vec![User::Same];
    }
    let setpriv = Command::new("setpriv").arg("--version").output();
    if setpriv.is_ok() {
        vec![User::Same, User::Ordinary]
    } else {
        haft_testkit::skip("an ordinary user in the place of root: no setpriv");
        vec![User::Same]
    }
}

/// A folder that this user owns, and programs that they reach.
pub(crate) struct Home {
    dir: TempDir,
    user: User,
}

impl Home {
    pub(crate) fn new(user: User) -> Self {
        haft_testkit::bound_this_process();
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = Self { dir, user };
        home.folder("work");
        home.folder("home");
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    pub(crate) fn folder(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
        self.give(name);
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        self.give(name);
    }

    fn give(&self, name: &str) {
        if self.user == User::Ordinary {
            chown(self.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// A program, as this user, in the folder `work`, with an environment of its own.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = match self.user {
            User::Same => Command::new(program),
            User::Ordinary => {
                let mut command = Command::new("setpriv");
                command
                    .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
                    .args(["--clear-groups", "--"])
                    .arg(self.reachable(program));
                command
            }
        };
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin");
        command
    }

    /// A program where this user can start it: where it is, or a copy.
    fn reachable(&self, program: &Path) -> PathBuf {
        if !program.is_absolute() {
            return program.to_path_buf();
        }
        let open = |path: &Path| {
            fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o005 == 0o005)
        };
        if program.ancestors().all(open) {
            return program.to_path_buf();
        }
        let copy = self.path(&program.file_name().unwrap().to_string_lossy());
        if !copy.exists() {
            fs::copy(program, &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        }
        copy
    }

    /// `haft`, as this user.
    pub(crate) fn haft(&self) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_haft")))
    }

    /// What a line of shell prints, as this user; nothing where it fails.
    pub(crate) fn shell(&self, line: &str) -> String {
        let mut command = self.command(Path::new("sh"));
        let output = command
            .args(["-c", line])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// This test program, to be started again.
pub(crate) fn this_program() -> PathBuf {
    env::current_exe().unwrap()
}
