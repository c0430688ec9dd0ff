//! A checkout and its worktrees.

use std::{
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use haft_contract::CancellationToken;

use super::{
    git::GitRunner,
    marker::{MarkerLock, PendingWorktreeMarker, WorktreeMarker},
};

/// The folder for worktrees in a checkout.
pub(super) const PLACE: &str = ".claude/worktrees";

/// The content of the `.gitignore` file that makes the repository ignore the worktrees.
const IGNORE: &str = "*\n";

/// The maximum length of a name.
const MAX_NAME: usize = 64;

/// A checkout, with the settings for running git in it.
#[derive(Debug, Clone)]
pub(super) struct Checkout {
    pub(super) root: PathBuf,
    /// The git directory that all its worktrees share.
    common: PathBuf,
    git: GitRunner,
}

/// A worktree that git created.
#[derive(Debug)]
pub(super) struct GitWorktree {
    pub(super) checkout: Checkout,
    pub(super) path: PathBuf,
    pub(super) branch: String,
    /// Git's administrative folder for it.
    folder: PathBuf,
    /// Device and inode of its directory, to notice when another directory replaces it.
    identity: (u64, u64),
    /// Whether this session created it, and may remove it.
    pub(super) is_ours: bool,
    held: Option<MarkerLock>,
    /// The commit it was created from.
    base: Option<String>,
}

/// The work that would be lost with a worktree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsavedWork {
    /// The number of changed or new files.
    pub(super) files: usize,
    /// The number of commits that are on no other branch.
    pub(super) commits: usize,
    /// Whether it has submodules, which are not examined.
    pub(super) submodules: bool,
}

impl UnsavedWork {
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Returns the directory name for a worktree name. The error explains why the name is invalid.
pub(super) fn directory_name(name: &str) -> Result<String, String> {
    let wrong = |why: &str| {
        Err(format!(
            "{name:?} is not a valid name for a worktree: {why}. Use letters, digits, dots, dashes and underscores, in \
             parts separated by `/`, at most {MAX_NAME} characters."
        ))
    };
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return wrong("it is empty or too long");
    }
    for part in name.split('/') {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if part.is_empty() || !part.chars().all(plain) {
            return wrong("a part of it is empty or contains another character");
        }
        // Git interprets such parts differently, or rejects them.
        let lower = part.to_ascii_lowercase();
        let ends_badly = lower.ends_with('.') || lower.ends_with(".lock");
        if part.starts_with(['.', '-']) || part.contains("..") || ends_badly {
            return wrong("git does not allow the beginning or end of a part of it");
        }
    }
    // Not nested: a worktree inside another one would be removed together with it.
    Ok(name.replace('/', "+"))
}

/// Returns the checkout that contains a directory: the nearest directory with a `.git`. Does not
/// run git.
pub(super) fn nearest_checkout(cwd: &Path) -> Option<&Path> {
    cwd.ancestors().find(|one| one.join(".git").exists())
}

impl Checkout {
    /// Finds the checkout around a directory; the error says why worktrees cannot be created there.
    pub(super) async fn find(cwd: &Path, cancel: &CancellationToken) -> Result<Self, String> {
        let git = GitRunner::for_directory(cwd, cancel).await?;
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--git-common-dir",
            "--show-toplevel",
        ];
        let found = git.try_run(cwd, &asked, cancel).await?;
        let mut lines = found.stdout.lines();
        if lines.next() == Some("true") {
            return Err(format!(
                "{} is a bare repository: it has no checkout to make a copy of",
                cwd.display()
            ));
        }
        if !found.ok {
            let said = found.stderr.trim();
            return Err(match said.contains("not a git repository") {
                true => format!("{} is in no git repository", cwd.display()),
                false => said.chars().take(500).collect(),
            });
        }
        let (Some(common), Some(root)) = (lines.next(), lines.next()) else {
            return Err("git does not say where the repository is".to_owned());
        };
        let (common, root) = (PathBuf::from(common), PathBuf::from(root));
        let cwd = fs::canonicalize(cwd).map_err(|error| error.to_string())?;
        // A repository can name any directory as its checkout: only the one that was checked is
        // accepted.
        if nearest_checkout(&cwd) != Some(&root) {
            return Err(format!(
                "the repository says that its checkout is {}, which is not where this session works",
                root.display()
            ));
        }
        Ok(Self { root, common, git })
    }

    /// Returns the path of a worktree.
    pub(super) fn place(&self, directory: &str) -> PathBuf {
        self.root.join(PLACE).join(directory)
    }

    /// Creates the folder for all worktrees; the error says why that fails.
    fn make_place(&self) -> Result<(), String> {
        let mut folder = self.root.clone();
        for part in Path::new(PLACE) {
            folder.push(part);
            let made = DirBuilder::new().create(&folder);
            let failed =
                |error: io::Error| format!("{} cannot be created: {error}", folder.display());
            match made {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let is = fs::symlink_metadata(&folder).map_err(failed)?;
                    if !is.is_dir() {
                        return Err(format!(
                            "{} is a link or a file, so no worktree can be created in it",
                            folder.display()
                        ));
                    }
                }
                made => made.map_err(failed)?,
            }
        }
        let ignore = folder.join(".gitignore");
        if fs::symlink_metadata(&ignore).is_err() {
            fs::write(&ignore, IGNORE).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Removes the folder for all worktrees if it has only the files that were created here.
    fn clear_place(&self) {
        let folder = self.root.join(PLACE);
        let ignore = folder.join(".gitignore");
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let only_ours = names.into_iter().all(|one| one.path() == ignore);
        if only_ours && fs::read_to_string(&ignore).is_ok_and(|text| text == IGNORE) {
            let _ = fs::remove_file(&ignore);
            let _ = fs::remove_dir(&folder);
            // Succeeds only if it is empty.
            let _ = fs::remove_dir(self.root.join(".claude"));
        }
    }

    /// Creates a worktree with a new branch; the error says why that fails.
    pub(super) async fn make(
        &self,
        directory: &str,
        session: &str,
        again: bool,
        cancel: &CancellationToken,
    ) -> Result<GitWorktree, String> {
        let path = self.place(directory);
        let branch = format!("worktree-{directory}");
        self.make_place()?;
        let reference = format!("refs/heads/{branch}");
        let known = ["show-ref", "--verify", "--quiet", &reference];
        let looked = self.git.try_run(&self.root, &known, cancel).await;
        let exists = looked.inspect_err(|_| self.clear_place())?.ok;
        if exists && !again {
            self.clear_place();
            return Err(format!(
                "the branch {branch} exists already: take another name, or remove it with `git branch -D {branch}`"
            ));
        }
        let making = PendingWorktreeMarker::begin(&self.common, directory, session);
        let making = making.inspect_err(|_| self.clear_place())?;
        // This call owns the name only if it creates the directory. So the cleanup below never
        // removes the directory of another process.
        if let Err(error) = fs::create_dir(&path) {
            making.done();
            return Err(match error.kind() {
                ErrorKind::AlreadyExists => format!(
                    "{} exists already: take another name, or give it as `path` if it is a worktree",
                    path.display()
                ),
                _ => format!("{} cannot be created: {error}", path.display()),
            });
        }
        let head = ["rev-parse", "--verify", "HEAD"];
        let base = match exists {
            // Earlier commits on the branch are work, too.
            true => None,
            false => self.git.run(&self.root, &head, cancel).await.ok(),
        };
        let base = base.map(|base| base.trim().to_owned());
        let shown = path.to_string_lossy().into_owned();
        let mut arguments = vec!["worktree", "add", "--quiet"];
        match exists {
            true => arguments.extend(["--", &shown, &branch]),
            false => arguments.extend(["-b", &branch, "--", &shown, "HEAD"]),
        }
        let made = self.git.run(&self.root, &arguments, cancel).await;
        let made = match made {
            Ok(_) => self.known(&path, branch.clone()).and_then(|mut made| {
                made.is_ours = true;
                made.base.clone_from(&base);
                made.hold(session)?;
                Ok(made)
            }),
            Err(why) => Err(self.explained(why).await),
        };
        if made.is_err() {
            self.undo(&path, &reference, base.as_deref()).await;
        }
        making.done();
        made
    }

    /// Returns a helpful message for an error of git.
    async fn explained(&self, why: String) -> String {
        let head = ["rev-parse", "--verify", "--quiet", "HEAD"];
        let never = CancellationToken::new();
        let has_commit = self.git.try_run(&self.root, &head, &never).await;
        match has_commit {
            Ok(found) if !found.ok => {
                "the repository has no commit yet, so it cannot be copied".to_owned()
            }
            _ => format!("git could not create it: {why}"),
        }
    }

    /// Removes an incomplete worktree, and its branch if that has no further commits.
    async fn undo(&self, path: &Path, reference: &str, base: Option<&str>) {
        let _ = fs::remove_dir_all(path);
        for folder in self.folders() {
            let back = fs::read_to_string(folder.join("gitdir")).unwrap_or_default();
            if Path::new(back.trim()) == path.join(".git") {
                let _ = fs::remove_dir_all(&folder);
            }
        }
        if let Some(base) = base {
            let never = CancellationToken::new();
            let arguments = ["update-ref", "-d", reference, base];
            let _ = self.git.try_run(&self.root, &arguments, &never).await;
        }
        let _ = fs::remove_dir(self.common.join("worktrees"));
        self.clear_place();
    }

    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common.join("worktrees"));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Returns the worktree at this path. Fails if the repository has no such worktree.
    pub(super) fn known(&self, path: &Path, branch: String) -> Result<GitWorktree, String> {
        let unknown = || {
            format!(
                "{} is not a worktree of the repository in {}; `git worktree list` names its worktrees",
                path.display(),
                self.root.display()
            )
        };
        let is = fs::symlink_metadata(path).map_err(|_| unknown())?;
        let real = fs::canonicalize(path).map_err(|_| unknown())?;
        if !is.is_dir() {
            return Err(unknown());
        }
        let folder = self.folders().into_iter().find(|folder| {
            let back = fs::read_to_string(folder.join("gitdir")).unwrap_or_default();
            let back = Path::new(back.trim());
            back == path.join(".git") || back == real.join(".git")
        });
        let folder = folder.ok_or_else(unknown)?;
        let branch = match branch.is_empty() {
            false => branch,
            true => {
                let head = fs::read_to_string(folder.join("HEAD")).unwrap_or_default();
                let name = head.trim().strip_prefix("ref: refs/heads/");
                name.unwrap_or_default().to_owned()
            }
        };
        Ok(GitWorktree {
            checkout: self.clone(),
            path: real,
            branch,
            folder,
            identity: (is.dev(), is.ino()),
            is_ours: false,
            held: None,
            base: None,
        })
    }
}

impl GitWorktree {
    fn hold(&mut self, session: &str) -> Result<(), String> {
        let marker = WorktreeMarker {
            session: session.to_owned(),
            branch: self.branch.clone(),
            path: self.path.clone(),
        };
        let held = marker.put(&self.folder);
        self.held = Some(held.map_err(|error| format!("it cannot be marked as in use: {error}"))?);
        Ok(())
    }

    /// Tests whether the directory is still the original one.
    fn is_itself(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|is| is.is_dir() && (is.dev(), is.ino()) == self.identity)
    }

    fn git(&self) -> GitRunner {
        self.checkout.git.in_worktree(&self.folder, &self.path)
    }

    /// Returns the work that would be lost; the error says why that is unknown.
    pub(super) async fn unsaved(&self, cancel: &CancellationToken) -> Result<UnsavedWork, String> {
        let mut unsaved = UnsavedWork {
            submodules: self.folder.join("modules").exists(),
            ..UnsavedWork::default()
        };
        if self.is_itself() {
            let status = [
                "status",
                "--porcelain",
                "-z",
                "--untracked-files=all",
                "--ignore-submodules=dirty",
            ];
            let listed = self.git().run(&self.path, &status, cancel).await?;
            unsaved.files = listed.split('\0').filter(|entry| entry.len() > 3).count();
        } else if fs::symlink_metadata(&self.path).is_ok() {
            return Err(format!(
                "{} is no longer the directory that was created: it was replaced",
                self.path.display()
            ));
        }
        let reference = format!("refs/heads/{}", self.branch);
        let tip = match self.branch.is_empty() {
            true => "HEAD",
            false => &reference,
        };
        // `HEAD` is included in case it was moved away from the branch. `--exclude` takes names as
        // in `--branches`: without `refs/heads/`.
        let exclude = format!("--exclude={}", self.branch);
        let mut own = vec![
            "rev-list",
            "--count",
            tip,
            "HEAD",
            "--not",
            &exclude,
            "--branches",
            "--remotes",
            "--tags",
        ];
        own.extend(self.base.as_deref());
        let count = self.git().run(&self.checkout.root, &own, cancel).await?;
        unsaved.commits = count.trim().parse().unwrap_or(usize::MAX);
        Ok(unsaved)
    }

    /// Commits all changes to its branch. Returns whether the branch has commits that no other
    /// branch has.
    pub(super) async fn save(
        &self,
        message: &str,
        cancel: &CancellationToken,
    ) -> Result<bool, String> {
        let unsaved = self.unsaved(cancel).await?;
        if unsaved.submodules {
            return Err("there are submodules in it".to_owned());
        }
        if unsaved.files > 0 {
            let mut git = self.git();
            let email = ["config", "--get", "user.email"];
            if !git.try_run(&self.path, &email, cancel).await?.ok {
                git.set("user.name", "haft");
                git.set("user.email", "haft@localhost");
            }
            let added = git.try_run(&self.path, &["add", "--all"], cancel).await?;
            if !added.ok {
                return Err(added.stderr.trim().chars().take(2000).collect());
            }
            // Git stores only a reference to an embedded repository.
            if added.stderr.contains("embedded git repository") {
                return Err("there is another git repository in it".to_owned());
            }
            let commit = ["commit", "--quiet", "--no-verify", "-m", message];
            git.run(&self.path, &commit, cancel).await?;
        }
        // If `HEAD` was moved, the branch is moved to it.
        let head = ["rev-parse", "--verify", "HEAD"];
        let head = self.git().run(&self.path, &head, cancel).await?;
        let reference = format!("refs/heads/{}", self.branch);
        let here = ["update-ref", &reference, head.trim()];
        let is_elsewhere = fs::read_to_string(self.folder.join("HEAD"))
            .is_ok_and(|text| text.trim() != format!("ref: {reference}"));
        if is_elsewhere {
            self.git().run(&self.path, &here, cancel).await?;
        }
        Ok(self.unsaved(cancel).await?.commits > 0)
    }

    /// Removes the worktree, optionally with its branch. Does not follow symbolic links.
    pub(super) async fn remove(&self, with_branch: bool) -> Result<(), String> {
        let failed = |what: &Path, error: io::Error| {
            format!("{} cannot be removed: {error}", what.display())
        };
        if self.is_itself() {
            let path = self.path.clone();
            let removed = tokio::task::spawn_blocking(move || fs::remove_dir_all(path)).await;
            let removed = removed.map_err(|error| error.to_string())?;
            removed.map_err(|error| failed(&self.path, error))?;
        } else if fs::symlink_metadata(&self.path).is_ok() {
            return Err(format!(
                "{} is no longer the directory that was created, so it is not removed",
                self.path.display()
            ));
        }
        fs::remove_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        if with_branch && !self.branch.is_empty() {
            let never = CancellationToken::new();
            let arguments = ["branch", "-D", "--quiet", "--", &self.branch];
            let root = &self.checkout.root;
            self.checkout.git.run(root, &arguments, &never).await?;
        }
        // Git also removes this folder when it is empty.
        let _ = fs::remove_dir(self.checkout.common.join("worktrees"));
        self.checkout.clear_place();
        Ok(())
    }

    /// Releases the worktree: the worktree remains, but no longer belongs to this session.
    pub(super) fn release(&mut self) {
        if self.is_ours {
            WorktreeMarker::remove(&self.folder);
        }
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for (name, directory) in [("a", "a"), ("fix/a.b_c-1", "fix+a.b_c-1")] {
            assert_eq!(directory_name(name).as_deref(), Ok(directory));
        }
        let long = "a".repeat(65);
        for name in [
            "", "/", "a/", "/a", "a//b", ".", "..", "a/..", ".git", ".GIT", "a b", "ä", "a\\b",
            "-a", "a/-b", "a.lock", "a.LOCK", "a..b", "a.", "~", "a:b", "a\n", &long,
        ] {
            assert!(directory_name(name).is_err(), "{name:?}");
        }
    }
}
