//! The marker of a worktree that a session made: in the folder that git keeps of it, locked while the
//! session lives.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

const NAME: &str = "haft.json";

/// So many are looked at.
const MOST: usize = 1000;
const LONGEST: u64 = 64 * 1024;

/// What the marker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// The session that made the worktree.
    pub(super) session: String,
    /// The branch it made for it.
    pub(super) branch: String,
    /// Where the worktree is.
    pub(super) path: PathBuf,
}

/// Holds the lock: the worktree is in use.
#[derive(Debug)]
pub(super) struct Held(#[expect(dead_code, reason = "the lock is held by its file")] File);

impl Marker {
    /// Marks a worktree as this session's.
    pub(super) fn put(&self, folder: &Path) -> io::Result<Held> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(folder.join(NAME))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        Ok(Held(file))
    }

    /// Takes the mark away: the worktree is someone's who wants it.
    pub(super) fn remove(folder: &Path) {
        let _ = fs::remove_file(folder.join(NAME));
    }
}

/// A worktree that a session made and did not get to put in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftWorktree {
    /// Where it is.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The session.
    pub session: String,
    /// Its checkout.
    pub main: PathBuf,
}

impl LeftWorktree {
    /// What a person should know of it.
    pub fn notice(&self) -> String {
        let (main, path) = (quoted(&self.main), quoted(&self.path));
        format!(
            "the worktree {} (branch {}) was left by session {}, which did not end properly. To keep it: git -C {main} \
             worktree lock {path}. To remove it with all that is in it: git -C {main} worktree remove --force {path} && \
             git -C {main} branch -D {}",
            self.path.display(),
            self.branch,
            self.session,
            self.branch
        )
    }
}

/// As a shell reads it back.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Worktrees of the repository around this directory that sessions left which are gone. A few files are
/// read, and nothing runs.
pub fn left_behind(cwd: &Path) -> Vec<LeftWorktree> {
    let root = cwd.ancestors().find(|above| above.join(".git").exists());
    let Some(root) = root else {
        return Vec::new();
    };
    let Some(git) = common_folder(root) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(git.join("worktrees")) else {
        return Vec::new();
    };
    let entries = entries.take(MOST).flatten().map(|entry| entry.path());
    let mut left: Vec<LeftWorktree> = entries
        // Locked by a person: they want to keep it.
        .filter(|folder| !folder.join("locked").exists())
        .filter_map(|folder| left_one(&folder, root))
        .collect();
    left.sort_by(|a, b| a.path.cmp(&b.path));
    left
}

fn left_one(folder: &Path, root: &Path) -> Option<LeftWorktree> {
    // A pipe in its place would be waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(folder.join(NAME))
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    let mut text = String::new();
    (&file).take(LONGEST).read_to_string(&mut text).ok()?;
    let marker: Marker = serde_json::from_str(&text).ok()?;
    // What git knows counts: the marker may be anyone's words.
    let known = fs::read_to_string(folder.join("gitdir")).ok()?;
    let known = Path::new(known.trim()).parent()?;
    let is_name = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
    };
    (known == marker.path && is_name(&marker.branch) && is_name(&marker.session)).then(|| {
        LeftWorktree {
            path: marker.path,
            branch: marker.branch,
            session: marker.session,
            main: root.to_path_buf(),
        }
    })
}

/// Where git keeps what all worktrees of a checkout share.
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
