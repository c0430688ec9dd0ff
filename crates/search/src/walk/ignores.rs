//! Ignore files by ripgrep's rules: which of them apply, and which takes precedence.
//!
//! The files are opened relative to open directories, as regular files, up to a maximum size, and
//! without blocking. A link is followed only if its target is inside the searched tree: files
//! outside must not decide what is ignored, and must not be disclosed by it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::Override;
use ignore::types::Types;

use crate::exclusions::Exclusions;
use crate::handle::{Directory, EntryKind, kind_of};
use crate::skip::{SkipLog, SkipReason};

/// The maximum number of bytes to read of one ignore file.
const MAX_LENGTH: u64 = 8 << 20;
/// The maximum number of invalid lines to report.
const NAMED_LINES: usize = 5;

const GIT: &str = ".git";
const JJ: &str = ".jj";
/// In order of precedence: the first one that matches wins.
const CUSTOM: &str = ".rgignore";
const IGNORE: &str = ".ignore";
const GIT_IGNORE: &str = ".gitignore";
const TELLING: [&str; 5] = [GIT, JJ, CUSTOM, IGNORE, GIT_IGNORE];

/// The rules of a query about names.
pub(crate) struct NameRules {
    /// Shared, because they may contain some hundred compiled globs.
    pub(crate) overrides: Arc<Override>,
    pub(crate) types: Arc<Types>,
    pub(crate) respect_ignore: bool,
    /// Show names that start with a dot.
    pub(crate) hidden: bool,
}

/// The rules of one search.
pub(crate) struct IgnoreRules {
    pub(super) names: NameRules,
    /// The root as passed in, and with all links resolved.
    pub(super) root: PathBuf,
    pub(super) real: PathBuf,
    /// The user's global excludes.
    global: Gitignore,
    /// The rules of the directories above the root, matched against real paths.
    above: Option<Arc<IgnoreLevel>>,
    leave_out: Exclusions,
    elsewhere: Mutex<OutsideDependencies>,
}

/// The files outside the tree that these rules depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutsideDependencies {
    /// Paths of files that were tried, whether they exist or not.
    pub(crate) paths: Vec<PathBuf>,
    /// True if an ignore file is a link: whether it applies then depends on where a search starts.
    pub(crate) has_linked_rules: bool,
}

/// The ignore files of one directory, linked to those of the directories above. A directory without
/// any rules shares the level of its parent.
#[derive(Debug)]
pub(crate) struct IgnoreLevel {
    next: Option<Arc<IgnoreLevel>>,
    custom: Gitignore,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// A repository starts here: the git files of the directories above do not apply.
    has_git: bool,
    /// True if this directory or one above it starts a repository.
    any_git: bool,
    /// True if the directory is above the root, so that it is matched against real paths.
    is_above: bool,
}

/// The relevant files that exist in a directory.
#[derive(Debug, Default)]
pub(crate) struct IgnoreFilesPresent {
    names: Vec<OsString>,
}

/// Returns whether a file with this name, or its existence, affects the rules.
pub(crate) fn is_telling(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.') && TELLING.iter().any(|it| name == *it)
}

impl IgnoreFilesPresent {
    pub(crate) fn record(&mut self, name: &OsStr) {
        if is_telling(name) {
            self.names.push(name.to_os_string());
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|it| it == name)
    }
}

/// A directory whose ignore files are read.
struct RuleDirectory<'a> {
    directory: &'a Directory,
    /// The path that its patterns are relative to.
    path: &'a Path,
    real: &'a Path,
    /// Targets of links must be below this path.
    top: &'a Path,
}

impl IgnoreRules {
    pub(crate) fn new(
        root: &Path,
        real: &Path,
        current_dir: &Path,
        names: NameRules,
        leave_out: Exclusions,
        skips: &SkipLog,
    ) -> Self {
        let respect_ignore = names.respect_ignore;
        let mut rules = Self {
            names,
            root: root.to_path_buf(),
            real: real.to_path_buf(),
            global: match respect_ignore {
                true => GitignoreBuilder::new(current_dir).build_global().0,
                false => Gitignore::empty(),
            },
            above: None,
            leave_out,
            elsewhere: Mutex::default(),
        };
        if respect_ignore {
            let mut above: Vec<&Path> = real.ancestors().skip(1).collect();
            above.reverse();
            for path in above {
                let Ok(directory) = Directory::open_for_entries(path) else {
                    continue;
                };
                let mut telling = IgnoreFilesPresent::default();
                for name in TELLING {
                    rules.depends_on(path.join(name));
                    if directory.stat_entry(OsStr::new(name)).is_some() {
                        telling.record(OsStr::new(name));
                    }
                }
                let place = RuleDirectory {
                    directory: &directory,
                    path,
                    real: path,
                    top: path,
                };
                rules.above = rules.level(&place, &telling, rules.above.clone(), true, skips);
            }
        }
        rules
    }

    /// Returns the files outside the tree that the rules read so far depend on.
    pub(crate) fn elsewhere(&self) -> OutsideDependencies {
        let elsewhere = self.elsewhere.lock();
        elsewhere.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn depends_on(&self, path: PathBuf) {
        let mut elsewhere = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        elsewhere.paths.push(path);
    }

    /// Returns whether the user has global excludes; they are relative to the current directory.
    pub(crate) fn has_global(&self) -> bool {
        !self.global.is_empty()
    }

    /// Returns the rules of the directories above the root.
    pub(crate) fn start(&self) -> Option<Arc<IgnoreLevel>> {
        self.above.clone()
    }

    /// Returns the rules that apply in a directory of the tree.
    pub(crate) fn enter(
        &self,
        directory: &Directory,
        path: &Path,
        telling: &IgnoreFilesPresent,
        above: Option<Arc<IgnoreLevel>>,
        skips: &SkipLog,
    ) -> Option<Arc<IgnoreLevel>> {
        if !self.names.respect_ignore || telling.names.is_empty() {
            return above;
        }
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let place = RuleDirectory {
            directory,
            path,
            real: &self.real.join(below),
            top: &self.real,
        };
        self.level(&place, telling, above, false, skips)
    }

    fn level(
        &self,
        place: &RuleDirectory<'_>,
        telling: &IgnoreFilesPresent,
        next: Option<Arc<IgnoreLevel>>,
        is_above: bool,
        skips: &SkipLog,
    ) -> Option<Arc<IgnoreLevel>> {
        let read = |name: &str| match telling.has(name) {
            true => {
                let file = self.open_rules(place, name);
                parse(file, place.path, &place.path.join(name), skips)
            }
            false => Gitignore::empty(),
        };
        // Follows links, as git does.
        let git = telling.has(GIT).then(|| {
            let found = place.directory.stat_target(OsStr::new(GIT));
            found.and_then(|found| kind_of(&found))
        });
        let git = git.flatten();
        let has_jj = || place.directory.stat_target(OsStr::new(JJ)).is_some();
        let has_git = git.is_some() || (telling.has(JJ) && has_jj());
        let exclude = match git.and_then(|kind| self.exclude_file(place, kind)) {
            Some((file, path)) => parse(Some(file), place.path, &path, skips),
            None => Gitignore::empty(),
        };
        let any_git = has_git || next.as_ref().is_some_and(|next| next.any_git);
        let level = IgnoreLevel {
            any_git,
            next,
            custom: read(CUSTOM),
            ignore: read(IGNORE),
            // Outside a repository the file never applies, and parsing it takes time.
            git: match any_git {
                true => read(GIT_IGNORE),
                false => Gitignore::empty(),
            },
            exclude,
            has_git,
            is_above,
        };
        let says_nothing = !has_git && level.files().into_iter().all(Gitignore::is_empty);
        match says_nothing {
            true => level.next,
            false => Some(Arc::new(level)),
        }
    }

    fn open_rules(&self, place: &RuleDirectory<'_>, name: &str) -> Option<File> {
        let found = place.directory.stat_entry(OsStr::new(name))?;
        if kind_of(&found)? != EntryKind::Link {
            return place.directory.open(OsStr::new(name)).ok()?;
        }
        let link = place.real.join(name);
        self.depends_on(link.clone());
        let mut elsewhere = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        elsewhere.has_linked_rules = true;
        drop(elsewhere);
        let target = fs::canonicalize(link).ok()?;
        if !target.starts_with(place.top) || self.leave_out.excludes(&target) {
            return None;
        }
        open_real(&target)
    }

    /// Returns whether an entry of the tree is hidden. `level` belongs to the directory that
    /// contains the entry.
    pub(super) fn hide(&self, path: &Path, is_dir: bool, level: Option<&IgnoreLevel>) -> bool {
        self.names
            .hide(path, is_dir, || self.by_files(path, is_dir, level))
    }

    /// Returns the decision of the ignore files about an entry.
    pub(crate) fn by_files(
        &self,
        path: &Path,
        is_dir: bool,
        level: Option<&IgnoreLevel>,
    ) -> IgnoreVerdict {
        let mut found = [IgnoreVerdict::Unknown; 4];
        let any_git = level.is_some_and(|level| level.any_git);
        let mut saw_git = false;
        let mut real = None;
        let mut next = level;
        while let Some(level) = next {
            let path = match level.is_above {
                false => path,
                true => real.get_or_insert_with(|| {
                    let below = path.strip_prefix(&self.root).unwrap_or(path);
                    self.real.join(below)
                }),
            };
            let by_git = any_git && !saw_git;
            let files = level.files().into_iter().zip([true, true, by_git, by_git]);
            for ((file, counts), verdict) in files.zip(&mut found) {
                if counts && *verdict == IgnoreVerdict::Unknown && !file.is_empty() {
                    *verdict = IgnoreVerdict::from_match(&file.matched(path, is_dir));
                }
            }
            saw_git |= level.has_git;
            next = level.next.as_deref();
        }
        let decided = found
            .into_iter()
            .find(|verdict| *verdict != IgnoreVerdict::Unknown);
        decided.unwrap_or_else(|| match any_git {
            true => IgnoreVerdict::from_match(&self.global.matched(path, is_dir)),
            false => IgnoreVerdict::Unknown,
        })
    }
}

impl Default for NameRules {
    /// Shows everything that ignore files do not exclude.
    fn default() -> Self {
        Self {
            overrides: Arc::new(Override::empty()),
            types: Arc::new(Types::empty()),
            respect_ignore: true,
            hidden: true,
        }
    }
}

impl NameRules {
    /// Returns whether an entry is hidden. `by_files` returns the decision of the ignore files.
    pub(crate) fn hide(
        &self,
        path: &Path,
        is_dir: bool,
        by_files: impl FnOnce() -> IgnoreVerdict,
    ) -> bool {
        if !self.overrides.is_empty() {
            match self.overrides.matched(path, is_dir) {
                Match::None => {}
                found => return found.is_ignore(),
            }
        }
        let mut is_named = false;
        if self.respect_ignore {
            match by_files() {
                IgnoreVerdict::Ignored => return true,
                IgnoreVerdict::Wanted => is_named = true,
                IgnoreVerdict::Unknown => {}
            }
        }
        if !self.types.is_empty() {
            match self.types.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => is_named = true,
                Match::None => {}
            }
        }
        !is_named && !self.hidden && is_dotted(path)
    }
}

impl IgnoreLevel {
    /// Returns the files in order of precedence.
    fn files(&self) -> [&Gitignore; 4] {
        [&self.custom, &self.ignore, &self.git, &self.exclude]
    }
}

/// The decision of the ignore files about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IgnoreVerdict {
    Unknown,
    Ignored,
    Wanted,
}

impl IgnoreVerdict {
    fn from_match<T>(found: &Match<T>) -> Self {
        match found {
            Match::None => Self::Unknown,
            Match::Ignore(_) => Self::Ignored,
            Match::Whitelist(_) => Self::Wanted,
        }
    }
}

fn is_dotted(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().first() == Some(&b'.'))
}

fn open_real(real: &Path) -> Option<File> {
    let above = Directory::open_for_entries(real.parent()?).ok()?;
    above.open(real.file_name()?).ok()?
}

/// Parses the patterns of a file. An error names only the line number, not the line: the file may
/// be of another kind and its content private.
fn parse(file: Option<File>, relative_to: &Path, from: &Path, skips: &SkipLog) -> Gitignore {
    let Some(file) = file else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(relative_to);
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file.take(MAX_LENGTH)).lines()) {
        // Stop at the first line that is not valid text.
        let Ok(line) = line else { break };
        let line = match number {
            1 => line.trim_start_matches('\u{feff}'),
            _ => &line,
        };
        if builder.add_line(Some(from.to_path_buf()), line).is_err() {
            wrong.push(number);
        }
    }
    if !wrong.is_empty() {
        let named: Vec<String> = wrong
            .iter()
            .take(NAMED_LINES)
            .map(|number: &u64| format!("line {number}: not a valid pattern"))
            .collect();
        let message = named.join("; ");
        skips.add(Some(from), SkipReason::IgnoreFile { message });
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

impl IgnoreRules {
    /// Returns the repository's `info/exclude` file and its path.
    fn exclude_file(&self, place: &RuleDirectory<'_>, git: EntryKind) -> Option<(File, PathBuf)> {
        let dot_git = place.real.join(GIT);
        self.depends_on(dot_git.clone());
        let folder = match git {
            EntryKind::Directory => fs::canonicalize(dot_git).ok()?,
            EntryKind::File => self.common_folder(&fs::canonicalize(dot_git).ok()?, place.real)?,
            _ => return None,
        };
        let path = folder.join("info/exclude");
        self.depends_on(path.clone());
        Some((open_real(&path)?, path))
    }

    /// Returns the directory of the repository that a worktree belongs to.
    fn common_folder(&self, dot_git: &Path, real: &Path) -> Option<PathBuf> {
        let line = first_line(open_real(dot_git)?)?;
        let own = real.join(line.strip_prefix("gitdir: ")?);
        self.depends_on(own.clone());
        let own = fs::canonicalize(own).ok()?;
        self.depends_on(own.join("commondir"));
        let common = own.join(first_line(open_real(&own.join("commondir"))?)?);
        self.depends_on(common.clone());
        fs::canonicalize(common).ok()
    }
}

fn first_line(file: File) -> Option<String> {
    let mut line = String::new();
    BufReader::new(file.take(8 << 10))
        .read_line(&mut line)
        .ok()?;
    Some(line.trim_end_matches(['\n', '\r']).to_owned())
}
