//! Where it is fought, and what is found there afterwards.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

/// Begins what no command may read.
pub(super) const SECRET: &str = "not-for-commands";

/// Where things are put that were in the way of what was put back.
pub(super) const OBSTACLES: &str = "outside/obstacles";

const FOLDERS: [&str; 6] = [
    "home/.ssh",
    "place/project/sub",
    "place/project/hidden",
    "place/project/.vscode",
    "outside/away",
    OBSTACLES,
];

const FILES: [(&str, &str); 5] = [
    ("home/.keep", ""),
    ("home/.ssh/id_rsa", SECRET),
    ("place/project/plain.txt", "plain\n"),
    ("place/project/hidden/secret.txt", SECRET),
    ("place/project/.vscode/settings.json", "{}\n"),
];

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
const NAMES: [&str; 7] = [
    ".mcp.json",
    ".bashrc",
    ".envrc",
    ".npmrc",
    ".gitmodules",
    ".gitconfig",
    ".profile",
];
/// Files that control git in a directory that it accepts as a repository.
const IN_REPOSITORY: [&str; 4] = [
    "config",
    "config.worktree",
    "commondir",
    "hooks/post-checkout",
];

/// What haft keeps for itself.
const OWN: [&str; 2] = ["home/.claude/projects/", "home/.claude/haft/"];

/// Where it is fought: a project, a home, and a place that belongs to neither.
pub(super) struct Arena {
    dir: TempDir,
    pub(super) binary: PathBuf,
    pub(super) user: Option<u32>,
}

impl Arena {
    pub(super) fn new(user: Option<u32>) -> Self {
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
        for folder in FOLDERS {
            fs::create_dir_all(arena.dir.path().join(folder)).unwrap();
        }
        for (file, text) in FILES {
            fs::write(arena.dir.path().join(file), text).unwrap();
        }
        fs::set_permissions(arena.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = user {
            let owner = format!("{user}:{user}");
            let mut change = haft_testkit::command("chown");
            change.args(["-R", &owner]).arg(arena.dir.path());
            assert!(change.status().unwrap().success());
        }
        let git = arena.command("git").args(["init", "-q", "."]).status();
        assert!(git.unwrap().success());
        arena
    }

    pub(super) fn project(&self) -> PathBuf {
        self.dir.path().join("place/project")
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A path in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Gives a file to whom the project belongs.
    pub(super) fn give(&self, path: &Path) {
        if self.user.is_some() {
            let _ = chown(path, self.user, self.user);
        }
    }

    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = haft_testkit::command("setpriv");
                let ids = [format!("--reuid={user}"), format!("--regid={user}")];
                command
                    .args(ids)
                    .arg("--clear-groups")
                    .arg(program.as_ref());
                command
            }
            None => haft_testkit::command(program.as_ref()),
        };
        command
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    /// What is there of control files, and what they hold.
    pub(super) fn control(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![self.path("place"), self.home(), self.path(OBSTACLES)];
        while let Some(directory) = waiting.pop() {
            let has = |name: &&str| directory.join(name).symlink_metadata().is_ok();
            let is_repository = ["HEAD", "objects", "refs"].iter().all(has);
            for name in IN_REPOSITORY
                .iter()
                .filter(|name| is_repository && has(name))
            {
                let path = directory.join(name);
                let text = fs::read(&path).unwrap_or_default();
                let relative = path.strip_prefix(self.dir.path()).unwrap();
                found.insert(
                    relative.to_owned(),
                    String::from_utf8_lossy(&text).into_owned(),
                );
            }
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let relative = path.strip_prefix(self.dir.path()).unwrap();
                let text = relative.to_string_lossy().to_lowercase();
                let matters = PARTS.iter().any(|part| text.contains(part))
                    || NAMES.iter().any(|name| text.ends_with(name));
                if kind.is_dir() {
                    waiting.push(path);
                } else if matters
                    && !OWN.iter().any(|own| text.starts_with(own))
                    && (text.contains(".git/") || !self.is_untrusted(&path))
                {
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

    /// Whether a command made a directory above, and haft does not trust it.
    fn is_untrusted(&self, path: &Path) -> bool {
        let record = fs::read(self.home().join(".claude/haft/untrusted.json")).unwrap_or_default();
        let record: Value = serde_json::from_slice(&record).unwrap_or_default();
        let known = record["directories"].as_array().into_iter().flatten();
        let known: Vec<u64> = known.filter_map(|one| one["inode"].as_u64()).collect();
        let mut above = path.ancestors();
        above.any(|above| fs::metadata(above).is_ok_and(|above| known.contains(&above.ino())))
    }

    /// Processes of this arena, of every user.
    pub(super) fn processes(&self) -> Vec<String> {
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
