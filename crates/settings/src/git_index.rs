//! Checks whether a file is in git's index, and thus part of what others commit.
//!
//! git itself is not started: the configuration of an untrusted repository would decide which
//! programs it runs. If the index cannot be parsed, the file is treated as tracked, which is the
//! safe answer.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    git_repository::{self, GitDiscovery},
    real_path,
};

/// Returns whether the repository that git finds at this file tracks it.
pub(super) fn tracks(file: &Path) -> bool {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return false;
    };
    let repository = match git_repository::discover(directory) {
        GitDiscovery::Found(repository) => repository,
        GitDiscovery::Invalid(_) => return true,
        GitDiscovery::Outside => return false,
    };
    let Some(work_tree) = repository.work_tree else {
        return false;
    };
    let real = real_path::resolve_links(directory).join(name);
    let Ok(path) = real.strip_prefix(&work_tree) else {
        return true;
    };
    match fs::read(repository.git_dir.join("index")) {
        Ok(bytes) => contains_path(&bytes, &path.to_string_lossy()),
        // Without an index, git tracks no files.
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(_) => true,
    }
}

/// Returns whether an index contains this path.
fn contains_path(index: &[u8], path: &str) -> bool {
    let mut held = false;
    let read = each(index, |_, name| {
        let directory = name.ends_with(b"/") && path.as_bytes().starts_with(name);
        held |= directory || name.eq_ignore_ascii_case(path.as_bytes());
    });
    read.is_none() || held
}

/// Returns the paths of submodules in an index, relative to the top of the repository; `None` if
/// the index cannot be parsed.
pub fn repositories(index: &[u8]) -> Option<Vec<PathBuf>> {
    const REPOSITORY: u32 = 0o160_000;
    let mut found = Vec::new();
    each(index, |mode, name| {
        if mode == REPOSITORY {
            found.push(PathBuf::from(OsStr::from_bytes(name)));
        }
    })?;
    Some(found)
}

/// Calls `show` with mode and path of every entry of an index. Returns `None` if the index cannot
/// be parsed; some entries may have been shown then. Object names have one of two lengths, which
/// the index does not specify, so both are tried.
fn each(index: &[u8], mut show: impl FnMut(u32, &[u8])) -> Option<()> {
    let hash = [20, 32]
        .into_iter()
        .find(|hash| each_with(index, *hash, |_, _| {}).is_some())?;
    each_with(index, hash, &mut show)
}

/// Like [`each`], but for one length of object names.
fn each_with(index: &[u8], hash: usize, mut show: impl FnMut(u32, &[u8])) -> Option<()> {
    const BEFORE_MODE: usize = 24;
    const BEHIND_MODE: usize = 12;
    let mut rest = IndexReader(index);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let version = rest.number()?;
    let count = rest.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    for _ in 0..count {
        let before = rest.0.len();
        rest.take(BEFORE_MODE)?;
        let mode = rest.number()?;
        rest.take(BEHIND_MODE + hash)?;
        let flags = u16::from_be_bytes(rest.take(2)?.try_into().ok()?);
        let extended = flags & 0x4000 != 0;
        if extended {
            rest.take(2)?;
        }
        // Version 4 stores only the difference to the previous name.
        if version == 4 {
            let kept = name.len().checked_sub(rest.offset()?)?;
            name.truncate(kept);
        } else {
            name.clear();
        }
        name.extend_from_slice(rest.text()?);
        if version < 4 {
            // Padded to a multiple of eight bytes, including the terminating zero byte.
            let used = before - rest.0.len();
            rest.take(used.next_multiple_of(8) - used)?;
        }
        let said = usize::from(flags & 0x0fff);
        if said != name.len().min(0x0fff) || (extended && version == 2) {
            return None;
        }
        show(mode, &name);
    }
    while rest.0.len() > hash {
        // In a split index, the other entries are in another file, which is not read here.
        if rest.take(4)? == b"link" {
            return None;
        }
        let size = rest.number()?;
        rest.take(usize::try_from(size).ok()?)?;
    }
    (rest.0.len() == hash).then_some(())
}

/// The unread rest of the index.
struct IndexReader<'a>(&'a [u8]);

impl<'a> IndexReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Reads a variable-length number in git's encoding.
    fn offset(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(0x80)? + usize::from(byte & 0x7f);
        }
        Some(value)
    }

    /// Reads up to a zero byte, which is skipped.
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn git(directory: &Path, args: &[&str]) {
        let done = haft_testkit::command("git")
            .args(args)
            .current_dir(directory)
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/local/bin")
            .env("HOME", directory)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "git {args:?}: {said}");
    }

    /// A repository with these files tracked.
    fn repository(format: &str, files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "--object-format", format]);
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
            git(dir.path(), &["add", "-f", file]);
        }
        dir
    }

    #[test]
    fn a_tracked_file_is_found_in_every_kind_of_index() {
        const LOCAL: &str = ".claude/settings.local.json";
        let others = [".claude/settings.json", ".claude/settings.local.jsonc", "a"];
        let with = [&others[..], &[LOCAL, "sub/.claude/settings.local.json"]].concat();
        for format in ["sha1", "sha256"] {
            for (what, change) in [
                ("version 2", &["update-index", "--index-version", "2"][..]),
                ("version 4", &["update-index", "--index-version", "4"]),
                ("extended", &["update-index", "--skip-worktree", "a"]),
            ] {
                let dir = repository(format, &with);
                git(dir.path(), change);
                assert!(tracks(&dir.path().join(LOCAL)), "{format} {what}");
                assert!(
                    tracks(&dir.path().join("sub").join(LOCAL)),
                    "{format} {what}"
                );
                let dir = repository(format, &others);
                git(dir.path(), change);
                assert!(!tracks(&dir.path().join(LOCAL)), "{format} {what}");
            }
        }
    }

    #[test]
    fn repositories_inside_are_found_in_every_kind_of_index() {
        for format in ["sha1", "sha256"] {
            for version in ["2", "4"] {
                let dir = repository(format, &["a", "z"]);
                let inner = dir.path().join("lib/inner");
                fs::create_dir_all(&inner).unwrap();
                git(&inner, &["init", "-q", "--object-format", format]);
                let who = ["-c", "user.name=x", "-c", "user.email=x"];
                git(
                    &inner,
                    &[&who[..], &["commit", "-qm", "x", "--allow-empty"]].concat(),
                );
                git(
                    dir.path(),
                    &["-c", "advice.addEmbeddedRepo=false", "add", "lib/inner"],
                );
                git(dir.path(), &["update-index", "--index-version", version]);
                let index = fs::read(dir.path().join(".git/index")).unwrap();
                assert_eq!(repositories(&index), Some(vec!["lib/inner".into()]));
            }
        }
        assert_eq!(repositories(b"DIRC, but not really"), None);
    }

    #[test]
    fn where_it_cannot_be_told_the_answer_is_yes() {
        const LOCAL: &str = ".claude/settings.local.json";
        let dir = repository("sha1", &["a"]);
        let local = dir.path().join(LOCAL);
        git(dir.path(), &["update-index", "--split-index"]);
        assert!(tracks(&local), "an index in two files");
        fs::write(dir.path().join(".git/index"), "DIRC, but not really").unwrap();
        assert!(tracks(&local), "a broken index");
        fs::remove_file(dir.path().join(".git/index")).unwrap();
        assert!(!tracks(&local), "nothing was ever added");
        fs::remove_dir_all(dir.path().join(".git")).unwrap();
        assert!(!tracks(&local), "no repository");
        fs::write(dir.path().join(".git"), "no such thing").unwrap();
        assert!(tracks(&local), "a repository that is none");
    }

    /// Git walks past a `.git` that is no repository, so the one above tracks the file.
    #[test]
    fn a_directory_that_is_no_repository_hides_none_above_it() {
        const LOCAL: &str = "sub/.claude/settings.local.json";
        let dir = repository("sha1", &[LOCAL]);
        fs::create_dir_all(dir.path().join("sub/.git/objects")).unwrap();
        assert!(tracks(&dir.path().join(LOCAL)));
        let link = dir.path().with_extension("link");
        std::os::unix::fs::symlink(dir.path().join("sub"), &link).unwrap();
        assert!(tracks(&link.join(".claude/settings.local.json")));
        fs::remove_file(link).unwrap();
    }

    #[test]
    fn a_linked_worktree_has_an_index_of_its_own() {
        const LOCAL: &str = ".claude/settings.local.json";
        let dir = repository("sha1", &[LOCAL]);
        let name = ["-c", "user.name=x", "-c", "user.email=x"];
        let commit = [&name[..], &["commit", "-qm", "x"]].concat();
        git(dir.path(), &commit);
        git(dir.path(), &["worktree", "add", "-q", "linked"]);
        assert!(tracks(&dir.path().join("linked").join(LOCAL)));
        git(&dir.path().join("linked"), &["rm", "-q", "--cached", LOCAL]);
        assert!(!tracks(&dir.path().join("linked").join(LOCAL)));
        assert!(tracks(&dir.path().join(LOCAL)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 2..5_u8) {
            let mut index = b"DIRC\0\0\0".to_vec();
            index.push(version);
            index.extend([0, 0, 0, 2]);
            index.extend(bytes);
            contains_path(&index, "a");
            repositories(&index);
        }
    }
}
