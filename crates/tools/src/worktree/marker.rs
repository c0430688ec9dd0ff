//! The marker of a worktree that a session made: in the folder that git keeps of it, locked while the
//! session lives. While it is being made that folder is not there yet: until then one lies beside it.

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

/// What the name of a marker begins with whose worktree is being made; the name of the worktree follows.
const MAKING: &str = "haft-making-";

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

/// Says that a worktree is being made. Without [`done`](Self::done), as when the process is killed, it stays, and the
/// next start finds it.
#[derive(Debug)]
pub(super) struct MakingMarker {
    path: PathBuf,
    _lock: File,
}

impl MakingMarker {
    /// A worktree of this name is being made in the repository whose folder this is; the error says why none can be.
    pub(super) fn begin(common: &Path, directory: &str, session: &str) -> Result<Self, String> {
        let path = common.join(format!("{MAKING}{directory}"));
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "a worktree of this name is being made, or was when a session ended: take another name, or remove \
                 {} once nothing is left of it",
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

    /// It is made, or nothing is left of it.
    pub(super) fn done(self) {
        let _ = fs::remove_file(&self.path);
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
    /// It was not made to the end: the file that says so. No one has worked in it.
    pub half_made: Option<PathBuf>,
}

impl LeftWorktree {
    /// What a person should know of it.
    pub fn notice(&self) -> String {
        let (main, path) = (quoted(&self.main), quoted(&self.path));
        if let Some(marker) = &self.half_made {
            return format!(
                "the worktree {} was left by session {}, which ended while it was being made; no one has worked in it. \
                 To remove all that is in it: git -C {main} worktree unlock {path} 2> /dev/null; rm -rf {path} && \
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
    let in_folder = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.take(MOST).flatten().map(|entry| entry.path())
    };
    let mut left: Vec<LeftWorktree> = in_folder(&git.join("worktrees"))
        // Locked by a person: they want to keep it.
        .filter(|folder| !folder.join("locked").exists())
        .filter_map(|folder| left_one(&folder, root))
        .collect();
    left.extend(in_folder(&git).filter_map(|marker| half_made(&marker, root)));
    left.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    left
}

/// One that was not made to the end. Where it is, its name says: the marker may be anyone's words.
fn half_made(marker: &Path, root: &Path) -> Option<LeftWorktree> {
    let name = marker.file_name()?.to_str()?.strip_prefix(MAKING)?;
    let session = unlocked_text(marker)?;
    (is_name(name) && is_name(&session)).then(|| LeftWorktree {
        path: root.join(PLACE).join(name),
        branch: format!("worktree-{name}"),
        session,
        main: root.to_path_buf(),
        half_made: Some(marker.to_path_buf()),
    })
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

/// What a marker says whose session is gone.
fn unlocked_text(marker: &Path) -> Option<String> {
    // A pipe in its place would be waited for.
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
    (&file).take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

fn left_one(folder: &Path, root: &Path) -> Option<LeftWorktree> {
    let text = unlocked_text(&folder.join(NAME))?;
    let marker: Marker = serde_json::from_str(&text).ok()?;
    // What git knows counts: the marker may be anyone's words.
    let known = fs::read_to_string(folder.join("gitdir")).ok()?;
    let known = Path::new(known.trim()).parent()?;
    (known == marker.path && is_name(&marker.branch) && is_name(&marker.session)).then(|| {
        LeftWorktree {
            path: marker.path,
            branch: marker.branch,
            session: marker.session,
            main: root.to_path_buf(),
            half_made: None,
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
