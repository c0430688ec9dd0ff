//! Does this repository make git run programs?
//!
//! git reads the configuration of whatever repository it finds itself in, and many keys name a
//! program to start, also for `git status`. Such a repository's git is not harmless.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use haft_shell::{Part, Verdict, git_config};

/// More directories of submodules than this are not looked at one by one.
const MOST_DIRECTORIES: usize = 500;

/// Why git is not harmless for these parts of a line, if so. Reads git's own files, starts nothing.
pub(super) fn problem(parts: &[Part]) -> Option<String> {
    let mut looked: Vec<PathBuf> = Vec::new();
    for part in parts {
        if part.base_name() != Some("git") || part.finding.verdict != Verdict::ReadOnly {
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

/// Where git would run: the current directory, changed by each `-C`.
fn directories(part: &Part) -> Option<Vec<PathBuf>> {
    let mut places = part.cwd.clone()?;
    let mut words = part.argv.iter().skip(1);
    while let Some(word) = words.next().and_then(|word| word.text()) {
        match word {
            "-C" => {
                let to = words.next()?.text()?;
                places.iter_mut().for_each(|place| *place = place.join(to));
            }
            word if word.starts_with('-') => {}
            _ => break,
        }
    }
    Some(places)
}

fn in_directory(start: &Path) -> Option<String> {
    for directory in start.ancestors() {
        let dot_git = directory.join(".git");
        if let Ok(metadata) = fs::metadata(&dot_git) {
            return if metadata.is_dir() {
                in_repository(&dot_git)
            } else {
                in_linked(&dot_git)
            };
        }
        // git takes a directory that looks like a repository for one.
        let bare = directory.join("HEAD").is_file()
            && directory.join("objects").is_dir()
            && directory.join("refs").is_dir();
        if bare {
            return in_repository(directory);
        }
    }
    None
}

/// Why git is not harmless where the file `.git` of a worktree or submodule points, if so.
pub(super) fn in_linked(file: &Path) -> Option<String> {
    match linked(file) {
        Some(own) => in_repository(&own),
        None => Some(format!("{} cannot be read", file.display())),
    }
}

/// Where the file `.git` of a worktree or submodule points.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let to = text.strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(to))
}

pub(super) fn in_repository(own: &Path) -> Option<String> {
    let common = match fs::read_to_string(own.join("commondir")) {
        Ok(text) => own.join(text.trim()),
        Err(_) => own.to_path_buf(),
    };
    let files = [common.join("config"), own.join("config.worktree")];
    let own = files.iter().find_map(|file| in_file(file));
    own.or_else(|| in_submodules(&common.join("modules")))
}

/// `git status` looks into submodules, whose own configuration then counts.
fn in_submodules(modules: &Path) -> Option<String> {
    let mut waiting = vec![modules.to_path_buf()];
    let mut looked = 0;
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        looked += 1;
        if looked > MOST_DIRECTORIES {
            return Some("the repository has more submodules than can be looked at".to_owned());
        }
        if let Some(problem) = in_file(&directory.join("config")) {
            return Some(problem);
        }
        // Objects and references hold no configuration, and may be many.
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
    let text = match fs::read(file) {
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
        risk.why
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permissions::{Facts, Policy, Setting, decide};

    fn behavior(root: &Path, line: &str) -> &'static str {
        let setting = Setting {
            cwd: root.to_path_buf(),
            home: None,
        };
        let input = serde_json::json!({ "command": line });
        let facts = Facts::named("Bash", &input, &setting);
        let mode = haft_contract::PermissionMode::Default;
        let policy = Policy::of_directories(mode, &[root.to_path_buf()]);
        decide(&policy, &facts).behavior.name()
    }

    #[test]
    fn a_repository_that_runs_programs_is_asked_about() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
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
}
