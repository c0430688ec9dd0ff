//! Where settings files are, and reading them.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::document::{self, Document, Problem};
use crate::permissions::Scope;

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The directory the session starts in; absolute.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// The user's own settings: `~/.claude`, or what `CLAUDE_CONFIG_DIR` says.
    pub user: PathBuf,
    /// The administrator's.
    pub managed: PathBuf,
}

impl Places {
    /// As the environment has it.
    pub fn of_process(cwd: &Path) -> Self {
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let user = match std::env::var_os("CLAUDE_CONFIG_DIR") {
            Some(dir) if !dir.is_empty() => PathBuf::from(dir),
            _ => home.join(".claude"),
        };
        Self {
            cwd: cwd.to_path_buf(),
            home,
            user,
            managed: PathBuf::from("/etc/claude-code"),
        }
    }
}

/// What the command line says of settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--settings`: a file, or JSON itself.
    pub settings: Option<String>,
    /// `--setting-sources`: which of user, project and local count; all if absent.
    pub sources: Option<Vec<Scope>>,
}

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Whose it is.
    pub scope: Scope,
    /// Where it is; none for JSON on the command line.
    pub file: Option<Arc<Path>>,
    /// What it says.
    pub document: Document,
    /// Where its patterns of the form `/p` start.
    pub slash: PathBuf,
    /// It comes with the workspace: what loosens or runs code waits for trust.
    pub from_workspace: bool,
}

/// Reads every file that counts, the highest rank first.
pub fn load(places: &Places, flags: &Flags) -> (Vec<Layer>, Vec<Problem>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let counts = |scope: Scope| {
        flags
            .sources
            .as_ref()
            .is_none_or(|sources| sources.contains(&scope))
    };
    let mut add = |scope: Scope, path: &Path, slash: &Path, from_workspace: bool| {
        let (layer, problem) = read_layer(scope, path, slash, from_workspace);
        found.extend(layer);
        problems.extend(problem);
    };
    let mut managed = vec![places.managed.join("managed-settings.json")];
    managed.extend(drop_ins(&places.managed.join("managed-settings.d")));
    // Of two files of one rank the later one wins.
    for path in managed.iter().rev() {
        add(Scope::Managed, path, &places.managed, false);
    }
    if let Some(given) = &flags.settings {
        if given.trim_start().starts_with('{') {
            match Document::parse(given) {
                Ok(document) => found.push(Layer {
                    scope: Scope::CommandLine,
                    file: None,
                    document,
                    slash: places.cwd.clone(),
                    from_workspace: false,
                }),
                Err(what) => problems.push(Problem {
                    place: "--settings".to_owned(),
                    what,
                }),
            }
        } else {
            let path = places.cwd.join(given);
            let slash = path.parent().unwrap_or(&places.cwd).to_path_buf();
            let (layer, problem) = read_layer(Scope::CommandLine, &path, &slash, false);
            if layer.is_none() && problem.is_none() {
                problems.push(Problem {
                    place: format!("--settings {given}"),
                    what: "there is no such file".to_owned(),
                });
            }
            found.extend(layer);
            problems.extend(problem);
        }
    }
    let mut add = |scope: Scope, path: &Path, slash: &Path, from_workspace: bool| {
        let (layer, problem) = read_layer(scope, path, slash, from_workspace);
        found.extend(layer);
        problems.extend(problem);
    };
    if counts(Scope::Local) {
        let root = local_root(places);
        let mut directories = vec![root.as_path()];
        if root != places.cwd {
            directories.push(&places.cwd);
        }
        for directory in directories {
            let path = directory.join(".claude/settings.local.json");
            let theirs = is_symlink(&directory.join(".claude")) || is_tracked(directory);
            add(Scope::Local, &path, &places.cwd, theirs);
        }
    }
    if counts(Scope::Project) && places.cwd.join(".claude") != places.user {
        let path = places.cwd.join(".claude/settings.json");
        add(Scope::Project, &path, &places.cwd, true);
    }
    if counts(Scope::User) {
        let path = places.user.join("settings.json");
        add(Scope::User, &path, &places.user, false);
    }
    (found, problems)
}

fn read_layer(
    scope: Scope,
    path: &Path,
    slash: &Path,
    from_workspace: bool,
) -> (Option<Layer>, Option<Problem>) {
    let problem = |what: String| Problem {
        place: path.display().to_string(),
        what: format!("{what}; the file is left out"),
    };
    let document = match document::read(path) {
        Ok(None) => return (None, None),
        Ok(Some(text)) => Document::parse(&text),
        Err(what) => Err(what),
    };
    match document {
        Ok(document) => (
            Some(Layer {
                scope,
                file: Some(Arc::from(path)),
                document,
                slash: slash.to_path_buf(),
                from_workspace,
            }),
            None,
        ),
        Err(what) => (None, Some(problem(what))),
    }
}

/// `*.json` in order of their names, hidden ones left out.
fn drop_ins(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            !name.to_string_lossy().starts_with('.')
        })
        .collect();
    files.sort();
    files
}

fn is_symlink(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

/// Where the local settings of this directory are kept: at the root of its repository, if that is
/// the user's own.
pub fn local_root(places: &Places) -> PathBuf {
    let Some(root) = repository_root(&places.cwd) else {
        return places.cwd.clone();
    };
    let owner = |path: &Path| fs::metadata(path).map(|metadata| metadata.uid()).ok();
    let foreign = owner(&root) != owner(&places.cwd);
    if root == places.home || foreign {
        return places.cwd.clone();
    }
    main_checkout(&root).unwrap_or(root)
}

/// The nearest directory above that holds `.git`.
pub fn repository_root(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .find(|directory| directory.join(".git").exists())
        .map(Path::to_path_buf)
}

/// The checkout that a linked worktree belongs to. Believed only if that checkout knows of it: what
/// a repository says of itself proves nothing.
fn main_checkout(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let text = fs::metadata(&link)
        .ok()
        .filter(fs::Metadata::is_file)
        .and_then(|_| fs::read_to_string(&link).ok())?;
    let own = root.join(text.strip_prefix("gitdir:")?.trim());
    let back = fs::read_to_string(own.join("gitdir")).ok()?;
    if Path::new(back.trim()) != link || own.parent()?.file_name()? != "worktrees" {
        return None;
    }
    let git = own.parent()?.parent()?;
    (git.file_name()? == ".git").then(|| git.parent().map(Path::to_path_buf))?
}

/// Is the local file in git's index, and so part of what others send? Looked for as its bare name
/// in the index, which errs on the side of distrust.
fn is_tracked(directory: &Path) -> bool {
    const NAME: &[u8] = b".claude/settings.local.json";
    let index = directory.join(".git/index");
    fs::read(index).is_ok_and(|bytes| bytes.windows(NAME.len()).any(|window| window == NAME))
}
