//! Paths in git repositories.
//!
//! Git accepts every directory with a valid `HEAD`, `objects` and `refs` as a repository, whatever its name. It then
//! obeys the settings and hooks in it. So a directory that has two of these parts is treated like `.git`. A command
//! or a file tool may add parts in any order, so each part that is added is checked against what is already there.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use haft_settings::git_repository;

use super::protected_files::folded;

/// The meaning of a path to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitPathKind {
    /// The repository itself: a directory, or a file `.git` that names one.
    Itself,
    /// Settings, which may name programs.
    Config,
    /// A program, or the directory of programs.
    Hook,
    /// Assigns files to the programs that process them.
    Attributes,
    /// Names the directory with the rest of the repository.
    Elsewhere,
    /// Any other file of git.
    Own,
}

/// Returns the path of the repository that a path is in, and its meaning there: of a `.git`, or of another
/// directory with the parts of a repository if the path controls git there.
pub(super) fn in_git(path: &Path) -> Option<(PathBuf, GitPathKind)> {
    let named = in_dot_git(path);
    if named
        .as_ref()
        .is_some_and(|(_, what)| *what != GitPathKind::Own)
    {
        return named;
    }
    let unnamed = path.ancestors().find_map(|directory| {
        let what = git(&below(path, directory));
        let controls = what != GitPathKind::Own && git_repository::has_repository_parts(directory);
        controls.then(|| (directory.to_path_buf(), what))
    });
    unnamed.or(named)
}

/// Returns the path of the `.git` that a path is in, and its meaning there. Reads no file.
pub(super) fn in_dot_git(path: &Path) -> Option<(PathBuf, GitPathKind)> {
    let mut folder = PathBuf::new();
    let mut rest = path.components();
    loop {
        let part = rest.next()?;
        folder.push(part);
        if let Component::Normal(name) = part
            && folded(&name.to_string_lossy()) == ".git"
        {
            break;
        }
    }
    let what = git(&below(path, &folder));
    Some((folder, what))
}

/// Returns the names from a directory down to a path, in small letters.
pub(super) fn below(path: &Path, directory: &Path) -> Vec<String> {
    let inner = path.strip_prefix(directory).unwrap_or(path);
    let names = inner.components();
    names
        .map(|part| folded(&part.as_os_str().to_string_lossy()))
        .collect()
}

fn git(inner: &[String]) -> GitPathKind {
    let inner: Vec<&str> = inner.iter().map(String::as_str).collect();
    match_names(&inner)
}

fn match_names(inner: &[&str]) -> GitPathKind {
    match inner {
        [] => GitPathKind::Itself,
        ["config" | "config.worktree"] => GitPathKind::Config,
        ["hooks", ..] => GitPathKind::Hook,
        ["info", "attributes"] => GitPathKind::Attributes,
        ["commondir" | "gitdir"] => GitPathKind::Elsewhere,
        ["worktrees", _, inner @ ..] if !inner.is_empty() => match_names(inner),
        // Submodules are named by their paths, so the name does not show where one begins.
        ["modules", .., "config" | "config.worktree"] => GitPathKind::Config,
        ["modules", .., "info", "attributes"] => GitPathKind::Attributes,
        ["modules", .., "commondir" | "gitdir"] => GitPathKind::Elsewhere,
        ["modules", inner @ ..] if inner.contains(&"hooks") => GitPathKind::Hook,
        _ => GitPathKind::Own,
    }
}

/// The effect of a part on the directory to which it is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddedPart {
    /// From now on, the directory is treated as a repository. Until now its settings could be written freely,
    /// also by a process that still has them open.
    First,
    /// The directory was already treated as a repository, but git did not accept it yet.
    More,
}

/// Returns the directory to which a file or directory of this path would add a part of a repository.
pub(super) fn added_part(path: &Path) -> Option<(&Path, AddedPart)> {
    let (directory, name) = (path.parent()?, path.file_name()?);
    let folded_name = folded(&name.to_string_lossy());
    if !["head", "objects", "refs", "commondir"].contains(&folded_name.as_str()) {
        return None;
    }
    // In `.git`, settings and hooks are protected by their names.
    let settings = in_dot_git(&directory.join("config"));
    if settings.is_some_and(|(_, what)| what == GitPathKind::Config) {
        return None;
    }
    if !git_repository::has_repository_parts_with(directory, name) {
        return None;
    }
    if !git_repository::has_repository_parts(directory) {
        return Some((directory, AddedPart::First));
    }
    let is_valid =
        git_repository::common_dir_if_valid(directory).is_ok_and(|found| found.is_some());
    (!is_valid).then_some((directory, AddedPart::More))
}

/// Returns whether a directory holds files, other than `config`, that control git if the directory is a
/// repository.
pub(super) fn has_control_files(directory: &Path) -> bool {
    let exists = |name: &str| fs::symlink_metadata(directory.join(name)).is_ok();
    exists("config.worktree") || exists("commondir") || has_hooks(&directory.join("hooks"))
}

/// Returns whether a directory of hooks holds more than samples, which git does not run.
fn has_hooks(hooks: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(hooks) else {
        return false;
    };
    let Ok(mut entries) = fs::read_dir(hooks) else {
        return true;
    };
    let is_sample = |name: PathBuf| name.extension().is_some_and(|kind| kind == "sample");
    !metadata.is_dir()
        || entries.any(|entry| !entry.is_ok_and(|entry| is_sample(entry.file_name().into())))
}

/// Returns whether writing this path would change the settings or hooks of a repository that is not named
/// `.git`, or would make a directory with settings a repository.
pub(super) fn controls_repository(path: &Path) -> bool {
    const NAMES: [&str; 9] = [
        "config",
        "config.worktree",
        "hooks",
        "attributes",
        "commondir",
        "gitdir",
        "head",
        "objects",
        "refs",
    ];
    let telling = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        NAMES.iter().any(|known| *known == folded(&name))
    };
    if !path.components().any(telling) {
        return false;
    }
    if in_git(path).is_some_and(|(_, what)| !matches!(what, GitPathKind::Own | GitPathKind::Itself))
    {
        return true;
    }
    // A file tool makes the directories on the way to a file.
    let mut missing = path
        .ancestors()
        .take_while(|above| *above == path || fs::symlink_metadata(above).is_err());
    missing.any(|path| added_part(path).is_some())
}

#[cfg(test)]
#[path = "repository_paths_tests.rs"]
mod tests;
