//! Checks whether a repository makes git run programs.
//!
//! git reads the configuration of the repository that it runs in. Many keys name a program to
//! start, even for `git status`. With such keys, git is not treated as read-only.

use std::{
    collections::HashMap,
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use haft_shell::{EffectVerdict, LinePart, git_config};

use haft_settings::{
    git_index,
    git_repository::{self, GitDiscovery},
    real_path,
};

use super::read_file::{open_regular, read_regular};

/// The maximum number of submodule directories and nested repositories that are checked.
const MAX_DIRECTORIES: usize = 500;

/// The maximum nesting depth of repositories that is checked.
const MAX_DEPTH: usize = 8;

/// The maximum size of an index that is checked, in bytes.
const MAX_INDEX: u64 = 1 << 29;

/// Returns why git is not read-only in these parts of a line, if it is not. Reads git's files and
/// starts no program.
pub(super) fn problem(parts: &[LinePart]) -> Option<String> {
    let mut looked: Vec<PathBuf> = Vec::new();
    for part in parts {
        if part.base_name() != Some("git") || part.finding.verdict != EffectVerdict::ReadOnly {
            continue;
        }
        let Some(directories) = directories(part) else {
            return Some("where git would run is not known".to_owned());
        };
        for directory in directories {
            if looked.contains(&directory) {
                continue;
            }
            if let Some(problem) = in_directory(&directory) {
                return Some(problem);
            }
            looked.push(directory);
        }
    }
    None
}

/// Returns the directories in which git would run: the current ones, changed by each `-C`.
pub(super) fn directories(part: &LinePart) -> Option<Vec<PathBuf>> {
    let to = moved(part)?;
    let places = part.cwd.as_ref()?.iter();
    Some(places.map(|place| place.join(&to)).collect())
}

/// Returns the path of all `-C` options, relative to the current directory; `None` if unknown.
pub(super) fn moved(part: &LinePart) -> Option<PathBuf> {
    let mut to = PathBuf::new();
    let mut words = part.argv.iter().skip(1);
    while let Some(word) = words.next().and_then(|word| word.text()) {
        match word {
            "-C" => to.push(words.next()?.text()?),
            word if word.starts_with('-') => {}
            _ => break,
        }
    }
    Some(to)
}

/// Returns the top of the working tree that git finds in this directory. Without a valid
/// repository, returns the nearest directory with a `.git`, because the line may make it valid.
pub(super) fn top(start: &Path) -> Option<PathBuf> {
    if let GitDiscovery::Found(repository) = git_repository::discover(start) {
        return repository.work_tree;
    }
    let mut above = start.ancestors();
    let top = above.find(|directory| fs::symlink_metadata(directory.join(".git")).is_ok())?;
    Some(top.to_path_buf())
}

fn in_directory(start: &Path) -> Option<String> {
    match git_repository::discover(start) {
        GitDiscovery::Found(repository) => match &repository.work_tree {
            Some(top) => in_working_tree(top, 0),
            None => in_repository(&repository.git_dir),
        },
        GitDiscovery::Invalid(path) => Some(unreadable(&path)),
        GitDiscovery::Outside => None,
    }
}

fn unreadable(path: &Path) -> String {
    format!("{} cannot be read", path.display())
}

/// Returns why git is not read-only in the working tree at this directory, if it is not. Checks its
/// own settings and those of nested repositories in its index. git reads these even if they are not
/// submodules.
fn in_working_tree(top: &Path, depth: usize) -> Option<String> {
    let dot_git = top.join(".git");
    let Ok(metadata) = fs::metadata(&dot_git) else {
        return None;
    };
    let own = match metadata.is_dir() {
        true => dot_git,
        false => match git_repository::linked_git_dir(&dot_git) {
            Some(own) => own,
            None => return Some(unreadable(&dot_git)),
        },
    };
    if let Some(problem) = in_repository(&own) {
        return Some(problem);
    }
    let index = own.join("index");
    let inner = match indexed(&index) {
        Ok(inner) => inner,
        Err(problem) => return Some(format!("{} {problem}", index.display())),
    };
    if inner.is_empty() {
        return None;
    }
    if depth >= MAX_DEPTH || inner.len() > MAX_DIRECTORIES {
        return Some("the repository contains more repositories than can be checked".to_owned());
    }
    // Settings may set another working tree. Then the paths are relative to that one.
    let mut tops = vec![top.to_path_buf()];
    for file in config_files(&own) {
        let Ok(bytes) = read_regular(&file) else {
            continue;
        };
        let Some(tree) = git_config::working_tree(&String::from_utf8_lossy(&bytes)) else {
            continue;
        };
        if str::from_utf8(&bytes).is_err() {
            return Some(format!("core.worktree in {} is not text", file.display()));
        }
        tops.push(real_path::resolve_links(&own.join(tree)));
    }
    let inner = inner.iter();
    inner
        .flat_map(|path| tops.iter().map(move |top| top.join(path)))
        .find_map(|path| in_working_tree(&path, depth + 1))
}

/// Returns the repositories that an index names. The error says why it cannot be read. An index may
/// be large, so the result is cached until the file changes.
fn indexed(index: &Path) -> Result<Vec<PathBuf>, &'static str> {
    type IndexCache = Mutex<HashMap<PathBuf, ([i64; 5], Vec<PathBuf>)>>;
    static CACHE: LazyLock<IndexCache> = LazyLock::new(IndexCache::default);
    let mut file = match open_regular(index) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(_) => return Err("cannot be read"),
    };
    let metadata = file.metadata().map_err(|_| "cannot be read")?;
    if metadata.len() > MAX_INDEX {
        return Err("is too large to be examined");
    }
    let stamp = [
        i64::try_from(metadata.ino()).unwrap_or(i64::MAX),
        i64::try_from(metadata.len()).unwrap_or(i64::MAX),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime_nsec(),
    ];
    let mut kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, found)) = kept.get(index)
        && *at == stamp
    {
        return Ok(found.clone());
    }
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes);
    read.map_err(|_| "cannot be read")?;
    let found = git_index::repositories(&bytes).ok_or("cannot be understood")?;
    if kept.len() >= MAX_DIRECTORIES {
        kept.clear();
    }
    kept.insert(index.to_path_buf(), (stamp, found.clone()));
    Ok(found)
}

/// Returns why git is not read-only in the repository that the file `.git` of a worktree or submodule names, if it is
/// not.
pub(super) fn in_linked(file: &Path) -> Option<String> {
    match git_repository::linked_git_dir(file) {
        Some(own) => in_repository(&own),
        None => Some(unreadable(file)),
    }
}

/// Returns why git is not read-only in the repository of this directory, if it is not.
pub(super) fn in_repository(own: &Path) -> Option<String> {
    let Ok(common) = git_repository::common_dir(own) else {
        return Some(unreadable(&own.join("commondir")));
    };
    let found = config_files(own).iter().find_map(|file| in_file(file));
    found.or_else(|| in_submodules(&common.join("modules")))
}

/// Returns the settings files of the repository of this directory.
fn config_files(own: &Path) -> Vec<PathBuf> {
    let common = git_repository::common_dir(own).unwrap_or_else(|_| own.to_path_buf());
    vec![common.join("config"), own.join("config.worktree")]
}

/// Checks the submodules' own settings, which `git status` reads.
fn in_submodules(modules: &Path) -> Option<String> {
    let mut waiting = vec![modules.to_path_buf()];
    let mut looked = 0;
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        looked += 1;
        if looked > MAX_DIRECTORIES {
            return Some("the repository has more submodules than can be checked".to_owned());
        }
        if let Some(problem) = in_file(&directory.join("config")) {
            return Some(problem);
        }
        // Directories of objects and references contain no configuration and may be large.
        let inner = entries.flatten().filter(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir())
                && !["objects", "refs", "logs", "hooks", "info", "lfs"]
                    .iter()
                    .any(|name| entry.file_name() == *name)
        });
        waiting.extend(inner.map(|entry| entry.path()));
    }
    None
}

pub(super) fn in_file(file: &Path) -> Option<String> {
    let text = match read_regular(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("{} cannot be read: {error}", file.display())),
    };
    let risk = git_config::executable_keys(&text).into_iter().next()?;
    Some(format!(
        "{} in {}:{} {}",
        risk.key,
        file.display(),
        risk.line,
        risk.effect
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallFacts, PathContext, Policy, decide};

    fn behavior(root: &Path, line: &str) -> &'static str {
        let setting = PathContext {
            cwd: root.to_path_buf(),
            home: None,
            wrappers: Vec::new(),
        };
        let input = serde_json::json!({ "command": line });
        let rules = haft_contract::RuleMatch::Command("command");
        let mut facts = CallFacts::without_effects("Bash", rules, input);
        facts.opaque = true;
        facts.read_command(&setting);
        let mode = haft_contract::PermissionMode::Default;
        let policy = Policy::for_directories(mode, &[root.to_path_buf()]);
        decide(&policy, &facts).behavior.name()
    }

    #[test]
    fn a_repository_that_runs_programs_is_asked_about() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        git(&root, "init -q");
        fs::create_dir_all(root.join("sub")).unwrap();
        let config = root.join(".git/config");
        fs::write(&config, "[core]\n\tbare = false\n").unwrap();
        assert_eq!(behavior(&root, "git status"), "allow");
        fs::write(&config, "[core]\n\tfsmonitor = ./evil\n").unwrap();
        for line in ["git status", "git -C sub log", "ls | git diff"] {
            assert_eq!(behavior(&root, line), "ask", "{line}");
        }
        assert_eq!(behavior(&root, "ls"), "allow");
        // A nested directory that looks like a repository.
        fs::write(&config, "").unwrap();
        let nested = root.join("nested");
        for part in ["objects", "refs"] {
            fs::create_dir_all(nested.join(part)).unwrap();
        }
        fs::write(nested.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(nested.join("config"), "[core]\n\tfsmonitor = ./evil\n").unwrap();
        assert_eq!(behavior(&root, "git -C nested status"), "ask");
    }

    fn git(directory: &Path, line: &str) {
        let done = haft_testkit::command("git")
            .args(line.split(' '))
            .current_dir(directory)
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/local/bin")
            .env("HOME", directory)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "git {line}: {said}");
    }

    /// git really runs the filter of a repository that is inside another one, without any
    /// `.gitmodules`: what is asked about is what would run.
    #[test]
    fn a_repository_inside_counts_too() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let inner = root.join("lib/inner");
        fs::create_dir_all(&inner).unwrap();
        let who = "-c user.name=x -c user.email=x@x commit -qm x";
        git(&root, "init -q");
        git(&inner, "init -q");
        fs::write(inner.join(".gitattributes"), "* filter=f\n").unwrap();
        fs::write(inner.join("a"), "one\n").unwrap();
        git(&inner, "add -A");
        git(&inner, who);
        git(&root, "-c advice.addEmbeddedRepo=false add lib/inner");
        git(&root, who);
        assert_eq!(behavior(&root, "git status"), "allow");
        let mark = root.join("mark");
        git(
            &inner,
            &format!("config filter.f.clean {}", script(&root, &mark)),
        );
        fs::write(inner.join("a"), "two\n").unwrap();
        git(&root, "status");
        assert!(
            mark.exists(),
            "the test is void: git does not run the filter"
        );
        for line in ["git status", "git -C lib diff", "git diff --stat"] {
            assert_eq!(behavior(&root, line), "ask", "{line}");
        }
        git(&inner, "config --unset filter.f.clean");
        assert_eq!(behavior(&root, "git status"), "allow");
        // An index that cannot be understood hides what is inside.
        fs::write(root.join(".git/index"), "DIRC, but not really").unwrap();
        assert_eq!(behavior(&root, "git status"), "ask");
    }

    fn script(root: &Path, mark: &Path) -> String {
        use std::os::unix::fs::PermissionsExt;
        let script = root.join("filter");
        fs::write(
            &script,
            format!("#!/bin/sh\ntouch {}\ncat\n", mark.display()),
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        script.display().to_string()
    }
}
