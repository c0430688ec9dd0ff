//! Decides how a command may use files that control other programs.
//!
//! A repository's `.git` is checked file by file: it changes with every commit, and only a few
//! files in it name programs. For a repository's settings, the content decides, so that `git clone`
//! and `git init` work. A file that a command fills later cannot be checked, and is refused.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use haft_contract::{ControlAccess, ControlAction, ControlNames};
use haft_settings::{git_repository, real_path};
use haft_shell::git_config;

use super::super::{
    git_audit,
    protected_files::{self, TableNames, folded, is_protected},
    read_file::read_regular,
    repository_paths::{
        AddedPart, GitPathKind, added_part, below, has_control_files, in_dot_git, in_git,
    },
};

/// The maximum number of submodule directories that are scanned.
const MAX_DIRECTORIES: usize = 500;

/// Directories of installed code, made by programs. They are large, and control files in them are
/// ignored there.
pub(super) const INSTALLED: [&str; 4] = ["node_modules", "target", ".venv", "venv"];

/// Returns whether this is a settings file of a repository. A command may replace it if the new
/// content is safe.
pub(super) fn is_judged(path: &Path) -> bool {
    matches!(in_git(path), Some((_, GitPathKind::Config))) && path.is_file()
}

/// Returns whether this is the directory of a submodule in the repository above it.
pub(super) fn is_module(path: &Path) -> bool {
    let inner = in_dot_git(path).and_then(|(folder, _)| path.strip_prefix(folder).ok());
    inner.is_some_and(|inner| inner.starts_with("modules")) && path.join("HEAD").is_file()
}

/// Returns whether everything in this directory is a control file.
pub(super) fn is_control_folder(path: &Path) -> bool {
    // No table contains this name.
    const ANY: &str = "\u{1}";
    in_dot_git(path).is_none() && is_protected(&path.join(ANY))
}

/// Returns whether this is a control file by its name. Does not apply inside `.git`.
pub(super) fn is_control_file(path: &Path) -> bool {
    in_dot_git(path).is_none() && is_protected(path)
}

/// Returns whether this is a control file, also in a repository.
pub(super) fn is_control(path: &Path) -> bool {
    match in_git(path) {
        Some((_, what)) => what != GitPathKind::Own,
        None => is_protected(path),
    }
}

/// Returns the existing control files of a repository. `dot_git` is its directory, or a file that
/// names one.
pub(super) fn git_control_files(dot_git: &Path) -> Vec<PathBuf> {
    if !dot_git.is_dir() {
        return vec![dot_git.to_path_buf()];
    }
    let mut found = existing_control_files(dot_git);
    for worktree in folders(&dot_git.join("worktrees")) {
        found.extend(existing_control_files(&worktree));
    }
    let mut waiting = vec![dot_git.join("modules")];
    let mut looked = 0;
    while let Some(directory) = waiting.pop() {
        looked += 1;
        if looked > MAX_DIRECTORIES {
            // Refuse changes of all submodules rather than miss the settings of one.
            found.push(dot_git.join("modules"));
            break;
        }
        found.extend(existing_control_files(&directory));
        let inner = folders(&directory);
        waiting.extend(inner.into_iter().filter(|folder| {
            let name = folder.file_name().unwrap_or_default();
            !["objects", "refs", "logs", "hooks", "info", "lfs"]
                .iter()
                .any(|own| name == *own)
        }));
    }
    found
}

fn existing_control_files(folder: &Path) -> Vec<PathBuf> {
    let names = [
        "config",
        "config.worktree",
        "hooks",
        "info/attributes",
        "commondir",
        "gitdir",
    ];
    let paths = names.iter().map(|name| folder.join(name));
    paths.filter(|path| path.exists()).collect()
}

fn folders(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// Returns the names of control files. They match more files than [`permits`] refuses.
pub(super) fn names() -> ControlNames {
    let own =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let TableNames {
        mut parts,
        mut last,
        endings,
    } = protected_files::names();
    // `.git` changes with every commit; the control files in it have their own names.
    parts.remove(".git");
    parts.extend(own(&["hooks"]));
    last.extend(own(&[
        ".git",
        "config",
        "config.worktree",
        "attributes",
        "commondir",
        "gitdir",
        "head",
        "objects",
        "refs",
        // Commands may create them, but those in new directories must not take effect.
        "claude.md",
        "claude.local.md",
        "agents.md",
    ]));
    ControlNames {
        parts,
        last,
        endings,
        closed_to_directories: own(&[".git"]).into_iter().collect(),
        settings: Some((
            "config".to_owned(),
            own(&["HEAD", "objects", "refs"]).into_iter().collect(),
        )),
        ..ControlNames::default()
    }
}

/// Returns whether a command may access a file in this way without controlling other programs.
pub(super) fn permits(used: &ControlAccess<'_>, roots: &[PathBuf]) -> bool {
    if let ControlAction::Remove { made } = used.action {
        // A command may remove files that it made or that are ignored where they are.
        return made
            || used.new_directory.is_some()
            || is_installed(used.path, roots)
            || !is_kept(used.path);
    }
    if !may_add_part(used, roots) {
        return false;
    }
    let Some((folder, what)) = in_git(used.path) else {
        let is_permitted = !is_protected(used.path) || may_arrive(used);
        // A directory that another program has moved away by now did not look like a repository.
        return is_permitted && used.path.parent().is_some_and(Path::exists);
    };
    // A repository in a folder of control files is one of them.
    if folder.parent().is_some_and(is_control_folder) {
        return false;
    }
    match (what, used.action) {
        // A process that has a moved file open could still change it. So only a directory that was
        // a repository before may become one.
        (GitPathKind::Itself | GitPathKind::Own, ControlAction::MoveDirectory { from }) => {
            match in_git(from) {
                Some((_, GitPathKind::Itself)) => what == GitPathKind::Itself,
                Some((other, GitPathKind::Own)) => {
                    what == GitPathKind::Own
                        && other == folder
                        && !holds_control(used.path, &folder)
                        && !holds_control(from, &folder)
                }
                _ => false,
            }
        }
        (GitPathKind::Itself, ControlAction::MakeDirectory) => true,
        (GitPathKind::Own, _) | (GitPathKind::Hook, ControlAction::MakeDirectory) => true,
        // Samples are meant to be renamed; git runs none under these names.
        (
            GitPathKind::Hook,
            ControlAction::MakeFile | ControlAction::MoveFile { .. } | ControlAction::Change,
        ) => used.path.extension().is_some_and(|kind| kind == "sample"),
        (GitPathKind::Config, ControlAction::MoveFile { contents, .. }) => {
            let old = read_regular(used.path).unwrap_or_default();
            contents.is_some_and(|new| config_adds_nothing(used.path, &old, new, roots))
        }
        (
            GitPathKind::Itself
            | GitPathKind::Config
            | GitPathKind::Hook
            | GitPathKind::Attributes
            | GitPathKind::Elsewhere,
            _,
        ) => false,
    }
}

/// Returns whether a control file may be created or changed although it is protected: the command has
/// created its directory, and the user has not used it yet. Programs of version control obey their
/// files there immediately, for example to show their state in the prompt of a shell.
pub(super) fn may_arrive(used: &ControlAccess<'_>) -> bool {
    const VERSION_CONTROL: [&str; 6] = [".hg", ".jj", ".sl", ".pijul", ".bzr", "_darcs"];
    let is_version_control = || {
        let mut names = used.path.iter().map(|name| folded(&name.to_string_lossy()));
        names.any(|name| VERSION_CONTROL.contains(&name.as_str()))
    };
    // `.config/lefthook.yml` applies to the directory above `.config`, which may be older.
    let is_of_older = |new: &Path| protected_files::is_entry_across(used.path, new);
    used.new_directory.is_some_and(|new| !is_of_older(new))
        && in_dot_git(used.path).is_none()
        && !is_version_control()
}

/// Returns whether new settings of a repository start only programs that the old ones start, too.
fn config_adds_nothing(path: &Path, old: &[u8], new: &[u8], roots: &[PathBuf]) -> bool {
    let Ok(new) = str::from_utf8(new) else {
        return false;
    };
    // Only the working tree of a submodule may be set, and only in a working directory.
    let tree = |to: &str| {
        let at = path.parent().map(|own| real_path::normalize(&own.join(to)));
        let inside =
            |at: &PathBuf| roots.iter().any(|root| at.starts_with(root)) && in_git(at).is_none();
        let inner = in_git(path).and_then(|(folder, _)| path.strip_prefix(folder).ok());
        inner.is_some_and(|inner| inner.starts_with("modules")) && at.as_ref().is_some_and(inside)
    };
    git_config::added_risks(&String::from_utf8_lossy(old), new, &tree).is_empty()
}

/// Returns whether a path is a control file or contains one, so that it must stay in place.
fn is_kept(path: &Path) -> bool {
    match in_git(path) {
        None => is_protected(path),
        Some((folder, what)) => {
            what != GitPathKind::Own
                || (path.is_dir() && holds_control(path, &folder))
                || folder.parent().is_some_and(is_control_folder)
        }
    }
}

/// Returns whether this is a directory in `.git` in which only some files name programs.
fn holds_control(path: &Path, folder: &Path) -> bool {
    let inner = below(path, folder);
    let inner: Vec<&str> = inner.iter().map(String::as_str).collect();
    match inner.as_slice() {
        ["info" | "worktrees"] | ["worktrees", _] | ["worktrees", _, "info"] => true,
        // The name does not show where a submodule begins. Its objects contain no settings.
        ["modules", inner @ ..] => !inner.contains(&"objects"),
        _ => false,
    }
}

/// Returns whether a path is in a directory of installed code, which is created and removed as a
/// whole.
fn is_installed(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    let mut above = below.and_then(Path::parent).into_iter().flatten();
    above.any(|name| INSTALLED.iter().any(|installed| name == *installed))
}

/// Returns whether a command may add a part of a repository to a directory, or change its `HEAD`. `false` if the
/// directory could then be a repository with settings or hooks that were not checked.
fn may_add_part(used: &ControlAccess<'_>, roots: &[PathBuf]) -> bool {
    let path = used.path;
    let Some((directory, added)) = added_part(path) else {
        return true;
    };
    let is_elsewhere = path
        .file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case("commondir"));
    if is_elsewhere || has_control_files(directory) {
        return false;
    }
    let config = directory.join("config");
    let safe = |contents: &[u8]| config_adds_nothing(&config, &[], contents, roots);
    match fs::symlink_metadata(&config) {
        // Git reads no settings from a directory.
        Ok(metadata) if metadata.is_dir() => true,
        // A process may still have it open, unless it is installed again.
        Ok(_) if added == AddedPart::First => used.settings.is_some_and(safe),
        Ok(metadata) => metadata.is_file() && read_regular(&config).is_ok_and(|text| safe(&text)),
        Err(_) => true,
    }
}

/// Returns whether this file, which a command has made, would control other programs.
pub(super) fn is_planted(path: &Path, roots: &[PathBuf]) -> bool {
    let directory = path.parent().unwrap_or(path);
    if path.file_name().is_some_and(|name| name == "HEAD")
        && git_repository::has_repository_parts(directory)
        && git_audit::in_repository(directory).is_some()
    {
        return true;
    }
    let Some((folder, what)) = in_git(path) else {
        return is_protected(path);
    };
    // A repository in a folder of control files is one of them.
    if folder.parent().is_some_and(is_control_folder) {
        return true;
    }
    match what {
        GitPathKind::Own => false,
        GitPathKind::Attributes => true,
        // Samples are meant to be renamed; git runs none under these names.
        GitPathKind::Hook => path
            .extension()
            .is_none_or(|extension| extension != "sample"),
        GitPathKind::Config => match read_regular(path) {
            Ok(bytes) => !config_adds_nothing(path, &[], &bytes, roots),
            // Git may read from a named pipe what a process writes to it later.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        },
        GitPathKind::Itself => !path.is_dir() && git_audit::in_linked(path).is_some(),
        GitPathKind::Elsewhere => path
            .parent()
            .is_none_or(|own| git_audit::in_repository(own).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_programs_is_removed_only_by_who_made_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for folder in [
            ".git/info",
            ".git/refs/x",
            ".git/modules/a",
            ".git/worktrees/w",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let roots = [root.clone()];
        let permits = |name: &str, action| {
            let path = root.join(name);
            let path = path.as_path();
            let used = ControlAccess {
                path,
                action,
                settings: None,
                new_directory: None,
            };
            permits(&used, &roots)
        };
        let removed = |name: &str| permits(name, ControlAction::Remove { made: false });
        for kept in [
            ".git",
            ".git/config",
            ".git/hooks",
            ".git/hooks/pre-commit.sample",
            ".git/info",
            ".git/info/attributes",
            ".git/modules",
            ".git/modules/a",
            ".git/worktrees/w",
            ".git/worktrees/w/gitdir",
            ".claude",
            ".claude/settings.json",
            "deep/.npmrc",
        ] {
            assert!(!removed(kept), "{kept}");
            assert!(
                permits(kept, ControlAction::Remove { made: true }),
                "{kept}"
            );
        }
        for free in [
            "src/main.rs",
            "HEAD",
            "objects",
            ".git/HEAD",
            ".git/index",
            ".git/refs/x",
            ".git/info/exclude",
            ".git/modules/a/HEAD",
            "node_modules/a/.npmrc",
            "target/repository/.git/config",
        ] {
            assert!(removed(free), "{free}");
        }
        // A directory brings what was not asked about.
        let from = root.join(".git/x");
        let from = from.as_path();
        for (to, expected) in [
            (".git/y", true),
            (".git/info", false),
            (".git/modules", false),
            (".git/modules/a", false),
            (".git/worktrees/v", false),
        ] {
            let moved = permits(to, ControlAction::MoveDirectory { from });
            assert_eq!(moved, expected, "{to}");
        }
    }

    #[test]
    fn the_second_part_of_a_repository_is_added_only_beside_safe_settings() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let roots = [root.clone()];
        fs::create_dir(root.join("refs")).unwrap();
        let safe = "[core]\n\tbare = true\n".as_bytes();
        let unsafe_ = "[core]\n\tfsmonitor = ./x\n".as_bytes();
        let permits = |name: &str, settings| {
            let path = &root.join(name);
            let action = ControlAction::MakeFile;
            let used = ControlAccess {
                path,
                action,
                settings,
                new_directory: None,
            };
            permits(&used, &roots)
        };
        assert!(permits("HEAD", None) && permits("config", None));
        // Another program has moved the directory away.
        assert!(!permits("moved/config", None) && !permits("moved/objects", None));
        fs::write(root.join("config"), safe).unwrap();
        // A process may have the file open.
        assert!(!permits("HEAD", None));
        assert!(permits("HEAD", Some(safe)));
        assert!(!permits("HEAD", Some(unsafe_)));
        fs::write(root.join("HEAD"), "").unwrap();
        assert!(!permits("config", None), "it is treated like `.git` now");
        assert!(permits("objects", None));
        assert!(!permits("commondir", None));
        // Settings that were there before, in what is no repository yet.
        fs::write(root.join("config"), unsafe_).unwrap();
        assert!(!permits("objects", None) && !permits("HEAD", None));
        fs::remove_file(root.join("config")).unwrap();
        assert!(permits("objects", None));
        fs::create_dir(root.join("hooks")).unwrap();
        assert!(permits("objects", None));
        fs::write(root.join("hooks/pre-commit"), "").unwrap();
        assert!(!permits("objects", None));
    }

    #[test]
    fn what_a_command_made_is_judged_by_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let roots = [root.clone()];
        let planted = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            is_planted(&path, &roots)
        };
        // What `git init` and `git clone` leave behind.
        let plain = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://x/y\n";
        assert!(!planted("new/.git/config", plain));
        assert!(!planted("new/.git/HEAD", "ref: refs/heads/main\n"));
        assert!(!planted("new/.git/hooks/pre-commit.sample", "#!/bin/sh\n"));
        assert!(planted("new/.git/hooks/pre-commit", "#!/bin/sh\n"));
        assert!(planted("bad/.git/config", "[core]\n\tfsmonitor = ./x\n"));
        assert!(planted("bad/.git/info/attributes", "* filter=x\n"));
        // A worktree, and a link to a repository that runs programs.
        let link = format!("gitdir: {}\n", root.join("new/.git").display());
        assert!(!planted("worktree/.git", &link));
        let link = format!("gitdir: {}\n", root.join("bad/.git").display());
        assert!(planted("other/.git", &link));
        assert!(planted("broken/.git", "no link"));
        // By their names.
        assert!(planted(".vscode/tasks.json", "{}"));
        assert!(planted("deep/down/.npmrc", ""));
        assert!(planted(".claude/x/.git/index", ""));
        assert!(!planted(".claude/worktrees/w/a.rs", ""));
        assert!(!planted("src/main.rs", ""));
        // A directory that turns into a repository.
        for directory in ["", "src/"] {
            let at = |name: &str| format!("{directory}{name}");
            assert!(!planted(&at("config"), "[core]\n\tfsmonitor = ./x\n"));
            assert!(!planted(&at("HEAD"), "ref: refs/heads/main\n"));
            fs::create_dir(root.join(at("objects"))).unwrap();
            fs::create_dir(root.join(at("refs"))).unwrap();
            assert!(planted(&at("HEAD"), "ref: refs/heads/main\n"));
            assert!(planted(&at("config"), "[core]\n\tfsmonitor = ./x\n"));
            assert!(planted(&at("hooks/post-checkout"), ""));
            assert!(!planted(&at("config"), plain));
            assert!(!planted(&at("HEAD"), "ref: refs/heads/main\n"));
        }
        assert!(!planted("deep/HEAD", ""));
    }

    #[test]
    fn only_what_names_programs_is_kept_of_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        let git = fs::canonicalize(dir.path()).unwrap().join(".git");
        for file in [
            "HEAD",
            "config",
            "index",
            "hooks/pre-commit",
            "info/attributes",
            "info/exclude",
            "objects/ab/config",
            "modules/a/b/config",
            "modules/a/b/HEAD",
            "modules/a/b/objects/config",
            "worktrees/w/commondir",
            "worktrees/w/HEAD",
        ] {
            let path = git.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = git_control_files(&git);
        let mut names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(&git).unwrap().to_str().unwrap())
            .collect();
        names.sort_unstable();
        let expected = [
            "config",
            "hooks",
            "info/attributes",
            "modules/a/b/config",
            "worktrees/w/commondir",
        ];
        assert_eq!(names, expected);
    }
}
