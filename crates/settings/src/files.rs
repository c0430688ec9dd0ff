//! The paths of settings files, and reading them.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    document::{self, SettingsDocument, SettingsParseError, SettingsProblem},
    git_index, git_repository,
    own_writes::{self, OwnWritesFile},
};
use crate::{SettingsScope, real_path};

/// The name of settings given as text on the command line, for problem reports.
pub const GIVEN: &str = "given settings";

/// The path of a directory's local settings file.
pub(super) const LOCAL: &str = ".claude/settings.local.json";

/// The folders of settings files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsPlaces {
    /// The directory where the session starts; absolute.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// The user's own folder: `~/.claude`, or `CLAUDE_CONFIG_DIR`.
    pub user: PathBuf,
    /// The administrator's folder.
    pub managed: PathBuf,
}

impl SettingsPlaces {
    /// Detects the folders from the environment.
    pub fn detect(cwd: &Path) -> Self {
        // A relative `HOME` would be a folder in the workspace.
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
            .unwrap_or_else(|| PathBuf::from("/"));
        let user = std::env::var_os("CLAUDE_CONFIG_DIR")
            .and_then(|dir| std::path::absolute(dir).ok())
            .unwrap_or_else(|| home.join(".claude"));
        Self {
            cwd: cwd.to_path_buf(),
            home,
            user,
            managed: PathBuf::from("/etc/claude-code"),
        }
    }
}

/// The command line flags for settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsFlags {
    /// `--settings`: a file, or JSON text.
    pub settings: Option<String>,
    /// `--setting-sources`: which of user, project and local settings are used; all if absent.
    pub sources: Option<Vec<SettingsScope>>,
}

/// A settings file.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsFile {
    /// Its scope.
    pub scope: SettingsScope,
    /// Its path; `None` for JSON on the command line.
    pub file: Option<Arc<Path>>,
    /// Its content.
    pub document: SettingsDocument,
    /// The base directory of path patterns of the form `/p`.
    pub slash: PathBuf,
    /// Whether it comes with the workspace or its author is unknown: then loosening settings need
    /// trust, too.
    pub from_workspace: bool,
    /// Allow rules in it that the user approved here: they apply without trust.
    pub agreed: BTreeSet<String>,
}

/// The result of searching for settings files.
#[derive(Debug, Default)]
pub(super) struct FoundSettings {
    /// The files, by descending rank.
    pub(super) layers: Vec<SettingsFile>,
    pub(super) problems: Vec<SettingsProblem>,
    /// Whether a file exists but could not be read.
    pub(super) broken: bool,
}

/// Reads all settings files that apply.
pub(super) fn load(places: &SettingsPlaces, flags: &SettingsFlags) -> FoundSettings {
    let mut read = Vec::new();
    // Of two files of the same rank the later one wins.
    for path in managed(places).iter().rev() {
        read.extend(read_layer(SettingsScope::Managed, path, &places.managed));
    }
    read.extend(
        flags
            .settings
            .as_ref()
            .map(|given| read_flag(places, given)),
    );
    let counts = |scope: SettingsScope| {
        let sources = flags.sources.as_ref();
        sources.is_none_or(|sources| sources.contains(&scope))
    };
    if counts(SettingsScope::Local) {
        let root = local_root(places);
        let mut directories = vec![root.as_path()];
        if root != places.cwd {
            directories.push(&places.cwd);
        }
        let mut record = None;
        for directory in directories {
            read.extend(read_local(places, directory, &mut record));
        }
    }
    // In the home directory both are the same file, which is the user's own.
    let own = real_path::resolve_links(&places.cwd.join(".claude"))
        == real_path::resolve_links(&places.user);
    if counts(SettingsScope::Project) && !own {
        let path = places.cwd.join(".claude/settings.json");
        let mut project = read_layer(SettingsScope::Project, &path, &places.cwd);
        if let Some(Ok(layer)) = &mut project {
            layer.from_workspace = true;
        }
        read.extend(project);
    }
    if counts(SettingsScope::User) {
        let path = places.user.join("settings.json");
        read.extend(read_layer(SettingsScope::User, &path, &places.user));
    }
    let mut found = FoundSettings::default();
    for layer in read {
        match layer {
            Ok(layer) => {
                found.problems.extend(layer.repeated());
                found.layers.push(layer);
            }
            Err(problem) => {
                found.problems.push(problem);
                found.broken = true;
            }
        }
    }
    found
}

/// Reads the argument of `--settings`: a file, or JSON text.
pub fn read_flag(places: &SettingsPlaces, given: &str) -> Result<SettingsFile, SettingsProblem> {
    let problem = |what: String| SettingsProblem {
        place: GIVEN.to_owned(),
        text: what,
    };
    if given.trim_start().starts_with('{') {
        return Ok(SettingsFile {
            scope: SettingsScope::CommandLine,
            file: None,
            document: SettingsDocument::parse(given)
                .map_err(|broken| problem(broken.to_string()))?,
            slash: places.cwd.clone(),
            from_workspace: false,
            agreed: BTreeSet::new(),
        });
    }
    let path = places.cwd.join(given);
    let slash = path.parent().unwrap_or(&places.cwd).to_path_buf();
    match read_layer(SettingsScope::CommandLine, &path, &slash) {
        Some(read) => read,
        None => Err(problem(format!("{} is not a file", path.display()))),
    }
}

/// Reads the local settings of a directory. They may loosen permissions without trust only if haft
/// wrote them.
fn read_local(
    places: &SettingsPlaces,
    directory: &Path,
    record: &mut Option<OwnWritesFile>,
) -> Option<Result<SettingsFile, SettingsProblem>> {
    let path = directory.join(LOCAL);
    let text = document::read(&path).transpose()?;
    // The check uses the same text that is parsed below, so replacing the file in between has no
    // effect.
    let ours = text.as_ref().ok().map(|text| {
        let record = record.get_or_insert_with(|| OwnWritesFile::read(places));
        let ours = record.for_directory(directory);
        let linked = own_writes::is_linked(directory);
        let is_ours = ours.is_all_of(text) && !linked && !git_index::tracks(&path);
        let agreed = if linked {
            BTreeSet::new()
        } else {
            ours.into_rules()
        };
        (is_ours, agreed)
    });
    let mut local = layer_of(SettingsScope::Local, &path, &places.cwd, text);
    if let (Ok(layer), Some((is_ours, agreed))) = (&mut local, ours) {
        layer.from_workspace = !is_ours;
        layer.agreed = agreed;
    }
    Some(local)
}

/// Reads a file; `None` if it does not exist.
fn read_layer(
    scope: SettingsScope,
    path: &Path,
    slash: &Path,
) -> Option<Result<SettingsFile, SettingsProblem>> {
    let text = document::read(path).transpose()?;
    Some(layer_of(scope, path, slash, text))
}

fn layer_of(
    scope: SettingsScope,
    path: &Path,
    slash: &Path,
    text: Result<String, String>,
) -> Result<SettingsFile, SettingsProblem> {
    let document = match text {
        Ok(text) => SettingsDocument::parse(&text),
        Err(what) => Err(SettingsParseError {
            line: None,
            text: what,
        }),
    };
    match document {
        Ok(document) => Ok(SettingsFile {
            scope,
            file: Some(Arc::from(path)),
            document,
            slash: slash.to_path_buf(),
            from_workspace: false,
            agreed: BTreeSet::new(),
        }),
        Err(SettingsParseError { line, text: what }) => Err(SettingsProblem {
            place: place(path, line),
            text: format!("{what}; the file is left out"),
        }),
    }
}

fn place(file: &Path, line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{}:{line}", file.display()),
        None => file.display().to_string(),
    }
}

impl SettingsFile {
    /// Returns whether the file is in the workspace, regardless of its author: settings that run
    /// code then need trust.
    pub fn is_in_workspace(&self) -> bool {
        matches!(self.scope, SettingsScope::Local | SettingsScope::Project)
    }

    /// Creates a problem report for one value of the file.
    pub fn problem(&self, pointer: &str, what: &str) -> SettingsProblem {
        let line = self.document.line(pointer);
        SettingsProblem {
            place: match &self.file {
                Some(file) => place(file, line),
                None => GIVEN.to_owned(),
            },
            text: what.to_owned(),
        }
    }

    /// Reports names that occur twice in one object. Only the last one is used, so a list of rules
    /// may get lost.
    fn repeated(&self) -> impl Iterator<Item = SettingsProblem> {
        self.document.repeated.iter().map(|pointer| {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            let what = format!("{name} occurs twice; only the value on this line applies");
            self.problem(pointer, &what)
        })
    }
}

/// Returns the administrator's files, the base file first.
pub(super) fn managed(places: &SettingsPlaces) -> Vec<PathBuf> {
    let mut files = vec![managed_base(places)];
    files.extend(drop_ins(&places.managed));
    files
}

/// Returns the administrator's base file.
pub(super) fn managed_base(places: &SettingsPlaces) -> PathBuf {
    places.managed.join("managed-settings.json")
}

/// Returns additional files of the administrator: `*.json`, sorted by name, without hidden ones.
pub(super) fn drop_ins(managed: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(managed.join("managed-settings.d")) else {
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
    files.sort_unstable();
    files
}

/// Returns the directory of the local settings: the root of the repository, or for a linked
/// worktree the root of the main checkout. Returns the working directory outside a repository, if
/// the repository belongs to another user, or if its root is the home directory.
pub fn local_root(places: &SettingsPlaces) -> PathBuf {
    let Some(root) = repository_root(&places.cwd) else {
        return places.cwd.clone();
    };
    let own = rustix::process::geteuid().as_raw();
    let foreign = !fs::metadata(&root).is_ok_and(|metadata| metadata.uid() == own);
    if foreign || real_path::resolve_links(&root) == real_path::resolve_links(&places.home) {
        return places.cwd.clone();
    }
    main_checkout(&root).unwrap_or(root)
}

/// Returns the innermost ancestor that contains `.git`.
pub fn repository_root(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .find(|directory| directory.join(".git").exists())
        .map(Path::to_path_buf)
}

/// Returns the git directory of a submodule: inside the repository above, if its configuration
/// points back to the submodule. A `.git` file that names any other folder is not trusted.
pub fn module_folder(root: &Path) -> Option<PathBuf> {
    let own = fs::canonicalize(git_repository::linked_git_dir(&root.join(".git"))?).ok()?;
    let real = fs::canonicalize(root).ok()?;
    let mut above = real.ancestors().skip(1);
    above.find(|above| own.starts_with(above.join(".git/modules")))?;
    let settings = fs::read_to_string(own.join("config")).ok()?;
    let worktree = settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "worktree").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let back = fs::canonicalize(own.join(worktree)).ok()?;
    (back == real && own.join("HEAD").is_file()).then_some(own)
}

/// Returns the checkout that a linked worktree belongs to, but only if that checkout lists the
/// worktree: what a repository claims about itself is not a proof.
pub fn main_checkout(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let own = git_repository::linked_git_dir(&link)?;
    let back = fs::read_to_string(own.join("gitdir")).ok()?;
    if Path::new(back.trim()) != link || own.parent()?.file_name()? != "worktrees" {
        return None;
    }
    let git = own.parent()?.parent()?;
    (git.file_name()? == ".git").then(|| git.parent().map(Path::to_path_buf))?
}
