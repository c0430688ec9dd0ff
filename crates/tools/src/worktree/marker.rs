//! The marker of a worktree that a session created: a file in git's administrative folder for it,
//! locked while the session is running. That folder does not exist while the worktree is being
//! created, so until then there is a marker in the common git directory.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use super::checkout::PLACE;

const NAME: &str = "haft.json";

/// The prefix of markers for worktrees that are being created; the name of the worktree follows.
const MAKING: &str = "haft-making-";

/// The maximum number of entries that are checked.
const MAX_ENTRIES: usize = 1000;
const MAX_BYTES: u64 = 64 * 1024;

/// The content of a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorktreeMarker {
    /// The session that created the worktree.
    pub(super) session: String,
    /// The branch that was created for it.
    pub(super) branch: String,
    /// The path of the worktree.
    pub(super) path: PathBuf,
}

/// The lock on a marker: as long as it exists, the worktree is in use.
#[derive(Debug)]
pub(super) struct MarkerLock(#[expect(dead_code, reason = "the lock is held by its file")] File);

impl WorktreeMarker {
    /// Marks a worktree as this session's, and locks the marker.
    pub(super) fn put(&self, folder: &Path) -> io::Result<MarkerLock> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(folder.join(NAME))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        Ok(MarkerLock(file))
    }

    /// Removes the marker: the worktree no longer belongs to a session.
    pub(super) fn remove(folder: &Path) {
        let _ = fs::remove_file(folder.join(NAME));
    }
}

/// Marks a worktree as being created. Without [`done`](Self::done), for example after the process
/// was killed, the marker remains, and the next start finds it.
#[derive(Debug)]
pub(super) struct PendingWorktreeMarker {
    path: PathBuf,
    _lock: File,
}

impl PendingWorktreeMarker {
    /// Marks a worktree as being created in the repository with this git directory; the error says
    /// why that fails.
    pub(super) fn begin(common: &Path, directory: &str, session: &str) -> Result<Self, String> {
        let path = common.join(format!("{MAKING}{directory}"));
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "a worktree of this name is being created, or a session ended while creating it: take another name, or \
                 remove {} when nothing of that worktree exists any longer",
                path.display()
            ),
            _ => format!("{}: {error}", path.display()),
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let written = flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(session.as_bytes()));
        if let Err(error) = written {
            let _ = fs::remove_file(&path);
            return Err(failed(error));
        }
        Ok(Self { path, _lock: file })
    }

    /// Removes the marker: the worktree is complete, or was removed again.
    pub(super) fn done(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A worktree that a session created and did not clean up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedWorktree {
    /// The path of the worktree.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The session that created it.
    pub session: String,
    /// Its checkout.
    pub main: PathBuf,
    /// The marker of a worktree that was not created completely. No session has worked in it.
    pub incomplete_marker: Option<PathBuf>,
}

impl OrphanedWorktree {
    /// Returns a message for the user.
    pub fn notice(&self) -> String {
        let (main, path) = (quoted(&self.main), quoted(&self.path));
        if let Some(marker) = &self.incomplete_marker {
            return format!(
                "the worktree {} was left by session {}, which ended while creating it; no session has worked in it. \
                 To remove it with all its files: git -C {main} worktree unlock {path} 2> /dev/null; rm -rf {path} && \
                 git -C {main} worktree prune --expire=now && rm -f {}. If there is a branch {} that you do not know: git -C {main} branch -d {}",
                self.path.display(),
                self.session,
                quoted(marker),
                self.branch,
                self.branch
            );
        }
        format!(
            "the worktree {} (branch {}) was left by session {}, which did not end properly. To keep it: git -C {main} \
             worktree lock {path}. To remove it with all its files: git -C {main} worktree remove --force {path} && \
             git -C {main} branch -D {}",
            self.path.display(),
            self.branch,
            self.session,
            self.branch
        )
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Finds worktrees of the repository around this directory that a session created and did not
/// remove before it ended. Only reads a few files; runs no program.
pub fn orphaned_worktrees(cwd: &Path) -> Vec<OrphanedWorktree> {
    let root = cwd.ancestors().find(|above| above.join(".git").exists());
    let Some(root) = root else {
        return Vec::new();
    };
    let Some(git) = common_folder(root) else {
        return Vec::new();
    };
    let in_folder = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .take(MAX_ENTRIES)
            .flatten()
            .map(|entry| entry.path())
    };
    let mut left: Vec<OrphanedWorktree> = in_folder(&git.join("worktrees"))
        // The user locked the worktree to keep it.
        .filter(|folder| !folder.join("locked").exists())
        .filter_map(|folder| orphaned_worktree(&folder, root))
        .collect();
    left.extend(in_folder(&git).filter_map(|marker| incomplete_worktree(&marker, root)));
    left.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    left
}

/// Returns a worktree that was not created completely. Its path comes from the marker's name,
/// because the content of the marker cannot be trusted.
fn incomplete_worktree(marker: &Path, root: &Path) -> Option<OrphanedWorktree> {
    let name = marker.file_name()?.to_str()?.strip_prefix(MAKING)?;
    let session = unlocked_text(marker)?;
    (is_name(name) && is_name(&session)).then(|| OrphanedWorktree {
        path: root.join(PLACE).join(name),
        branch: format!("worktree-{name}"),
        session,
        main: root.to_path_buf(),
        incomplete_marker: Some(marker.to_path_buf()),
    })
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

/// Returns the content of a marker whose session has ended.
fn unlocked_text(marker: &Path) -> Option<String> {
    // Opening a pipe must not block.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(marker)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    let mut text = String::new();
    (&file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

fn orphaned_worktree(folder: &Path, root: &Path) -> Option<OrphanedWorktree> {
    let text = unlocked_text(&folder.join(NAME))?;
    let marker: WorktreeMarker = serde_json::from_str(&text).ok()?;
    // Only git's own record is trusted, because any program may have written the marker.
    let known = fs::read_to_string(folder.join("gitdir")).ok()?;
    let known = Path::new(known.trim()).parent()?;
    (known == marker.path && is_name(&marker.branch) && is_name(&marker.session)).then(|| {
        OrphanedWorktree {
            path: marker.path,
            branch: marker.branch,
            session: marker.session,
            main: root.to_path_buf(),
            incomplete_marker: None,
        }
    })
}

/// Returns the git directory that all worktrees of a checkout share.
fn common_folder(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if link.is_dir() {
        return Some(link);
    }
    let text = fs::read_to_string(&link).ok()?;
    let own = root.join(text.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(own.join("commondir")).ok()?;
    Some(own.join(common.trim()))
}
