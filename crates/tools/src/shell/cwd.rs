//! The session's working directory after a command.

use std::path::{Path, PathBuf};

/// The working directory of later calls, after a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CwdChange {
    /// Unchanged.
    Unchanged,
    /// Another directory inside the session's directories.
    MovedTo(PathBuf),
    /// The session's first directory, to which the working directory is reset.
    Reset(PathBuf),
}

/// Returns how a command that ended in the directory `left_in` changes the session's directory
/// `cwd`. `directories` are the session's directories. If `fixed` is set, the session always
/// returns to the first one. Follows links.
pub(crate) fn after(
    left_in: Option<&Path>,
    cwd: &Path,
    directories: &[PathBuf],
    fixed: bool,
) -> CwdChange {
    let project = directories.first().map_or(cwd, PathBuf::as_path);
    // The directory is unknown if the shell was killed. The session's directory then stays the
    // same.
    let Some(left_in) = left_in else {
        return CwdChange::Unchanged;
    };
    if same(left_in, cwd) && (!fixed || same(cwd, project)) {
        return CwdChange::Unchanged;
    }
    if fixed {
        return CwdChange::Reset(project.to_path_buf());
    }
    let inside = directories.iter().find_map(|directory| {
        let real = directory.canonicalize().ok()?;
        let below = left_in.strip_prefix(&real).ok()?;
        // Use the path that the user gave for the directory, not its real path. Joining an empty
        // path would add a slash.
        Some(match below.as_os_str().is_empty() {
            true => directory.clone(),
            false => directory.join(below),
        })
    });
    match inside {
        Some(path) if left_in.is_dir() => CwdChange::MovedTo(path),
        _ => CwdChange::Reset(project.to_path_buf()),
    }
}

fn same(a: &Path, b: &Path) -> bool {
    a == b || b.canonicalize().is_ok_and(|real| real == a)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_session_moves_inside_its_directories_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (project, other) = (root.join("project"), root.join("other"));
        for path in ["project/sub", "project-2", "other", "gone"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::remove_dir(root.join("gone")).unwrap();
        let link = root.join("link");
        symlink(&project, &link).unwrap();
        let directories = [project.clone(), other.clone()];
        let to = |path: &Path| CwdChange::MovedTo(path.to_path_buf());
        let back = || CwdChange::Reset(project.clone());
        let cases = [
            (
                "nowhere",
                Some(&project),
                &project,
                false,
                CwdChange::Unchanged,
            ),
            ("unknown", None, &project, false, CwdChange::Unchanged),
            (
                "below",
                Some(&project.join("sub")),
                &project,
                false,
                to(&project.join("sub")),
            ),
            ("another", Some(&other), &project, false, to(&other)),
            (
                "up again",
                Some(&project),
                &project.join("sub"),
                false,
                to(&project),
            ),
            ("outside", Some(&root), &project, false, back()),
            (
                "a name alike",
                Some(&root.join("project-2")),
                &project,
                false,
                back(),
            ),
            (
                "removed",
                Some(&project.join("removed")),
                &project,
                false,
                back(),
            ),
            (
                "kept there",
                Some(&project.join("sub")),
                &project,
                true,
                back(),
            ),
            (
                "kept, at home",
                Some(&project),
                &project,
                true,
                CwdChange::Unchanged,
            ),
        ];
        for (what, left_in, cwd, fixed, expected) in cases {
            let moved = after(left_in.map(PathBuf::as_path), cwd, &directories, fixed);
            assert_eq!(moved, expected, "{what}");
        }
        // A session that knows its directory by a link keeps that name.
        let directories = [link.clone()];
        assert_eq!(
            after(Some(&project), &link, &directories, false),
            CwdChange::Unchanged
        );
        assert_eq!(
            after(Some(&project.join("sub")), &link, &directories, false),
            CwdChange::MovedTo(link.join("sub"))
        );
    }
}
