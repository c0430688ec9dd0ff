//! What ignore files say, by ripgrep's rules: which of them count, and which has the last word.
//!
//! The files are read through opened directories, as files and not as what a link may lead to, up
//! to a size, and without waiting. A link is followed only if it stays inside the tree that is
//! searched: what lies outside must not decide, nor be found out by, what is ignored.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::Override;
use ignore::types::Types;

use crate::handle::{Directory, EntryKind, kind_of};
use crate::leave_out::LeaveOut;
use crate::skip::{SkipLog, SkipReason};

/// No more is read of one ignore file.
const LONGEST: u64 = 8 << 20;
/// At most this many lines that are not understood are named.
const NAMED_LINES: usize = 5;

const GIT: &str = ".git";
const JJ: &str = ".jj";
/// Each has the last word over those behind it.
const CUSTOM: &str = ".rgignore";
const IGNORE: &str = ".ignore";
const GIT_IGNORE: &str = ".gitignore";
const TELLING: [&str; 5] = [GIT, JJ, CUSTOM, IGNORE, GIT_IGNORE];

/// What a query says of names.
pub(crate) struct NameRules {
    /// Shared: some hundred globs are compiled in them.
    pub(crate) overrides: Arc<Override>,
    pub(crate) types: Arc<Types>,
    pub(crate) respect_ignore: bool,
    /// Names that start with a dot are visible.
    pub(crate) hidden: bool,
}

/// The rules of one search.
pub(crate) struct IgnoreRules {
    pub(super) names: NameRules,
    /// The root as it was given, and after all links.
    pub(super) root: PathBuf,
    pub(super) real: PathBuf,
    /// The user's own excludes.
    global: Gitignore,
    /// Of the directories above the root, by real paths.
    above: Option<Arc<Level>>,
    leave_out: LeaveOut,
    elsewhere: Mutex<Elsewhere>,
}

/// What these rules depend on beyond the directories of the tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    /// Files that were looked for, whether they are there or not.
    pub(crate) paths: Vec<PathBuf>,
    /// An ignore file is a link: whether it counts depends on where a search begins.
    pub(crate) has_linked_rules: bool,
}

/// What the ignore files of one directory say, and those above it. A directory that says nothing
/// has the level of the one above.
#[derive(Debug)]
pub(crate) struct Level {
    next: Option<Arc<Level>>,
    custom: Gitignore,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// A repository begins here: what git's files above say does not count.
    has_git: bool,
    /// Here or above.
    any_git: bool,
    /// It is above the root, so it is asked with real paths.
    is_above: bool,
}

/// Which of the files that matter are in a directory.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    names: Vec<OsString>,
}

/// Does it matter what a file of this name says, or that it is there?
pub(crate) fn is_telling(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.') && TELLING.iter().any(|it| name == *it)
}

impl Telling {
    pub(crate) fn note(&mut self, name: &OsStr) {
        if is_telling(name) {
            self.names.push(name.to_os_string());
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|it| it == name)
    }
}

/// A directory whose ignore files are read.
struct Place<'a> {
    directory: &'a Directory,
    /// What its patterns are relative to.
    path: &'a Path,
    real: &'a Path,
    /// Links may lead no further than this.
    top: &'a Path,
}

impl IgnoreRules {
    pub(crate) fn new(
        root: &Path,
        real: &Path,
        current_dir: &Path,
        names: NameRules,
        leave_out: LeaveOut,
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
                let Ok(directory) = Directory::through(path) else {
                    continue;
                };
                let mut telling = Telling::default();
                for name in TELLING {
                    rules.depends_on(path.join(name));
                    if directory.look(OsStr::new(name)).is_some() {
                        telling.note(OsStr::new(name));
                    }
                }
                let place = Place {
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

    /// What the rules that were read so far depend on, beyond the directories of the tree.
    pub(crate) fn elsewhere(&self) -> Elsewhere {
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

    /// Whether the user's own excludes say anything; they are relative to the current directory.
    pub(crate) fn has_global(&self) -> bool {
        !self.global.is_empty()
    }

    /// What counts above the root.
    pub(crate) fn start(&self) -> Option<Arc<Level>> {
        self.above.clone()
    }

    /// What counts in a directory of the tree.
    pub(crate) fn enter(
        &self,
        directory: &Directory,
        path: &Path,
        telling: &Telling,
        above: Option<Arc<Level>>,
        skips: &SkipLog,
    ) -> Option<Arc<Level>> {
        if !self.names.respect_ignore || telling.names.is_empty() {
            return above;
        }
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let place = Place {
            directory,
            path,
            real: &self.real.join(below),
            top: &self.real,
        };
        self.level(&place, telling, above, false, skips)
    }

    fn level(
        &self,
        place: &Place<'_>,
        telling: &Telling,
        next: Option<Arc<Level>>,
        is_above: bool,
        skips: &SkipLog,
    ) -> Option<Arc<Level>> {
        let read = |name: &str| match telling.has(name) {
            true => {
                let file = self.open_rules(place, name);
                parse(file, place.path, &place.path.join(name), skips)
            }
            false => Gitignore::empty(),
        };
        // Links followed, as git does.
        let git = telling.has(GIT).then(|| {
            let found = place.directory.look_through(OsStr::new(GIT));
            found.and_then(|found| kind_of(&found))
        });
        let git = git.flatten();
        let has_jj = || place.directory.look_through(OsStr::new(JJ)).is_some();
        let has_git = git.is_some() || (telling.has(JJ) && has_jj());
        let exclude = match git.and_then(|kind| self.exclude_file(place, kind)) {
            Some((file, path)) => parse(Some(file), place.path, &path, skips),
            None => Gitignore::empty(),
        };
        let any_git = has_git || next.as_ref().is_some_and(|next| next.any_git);
        let level = Level {
            any_git,
            next,
            custom: read(CUSTOM),
            ignore: read(IGNORE),
            // Outside a repository it never counts, and understanding one takes a while.
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

    fn open_rules(&self, place: &Place<'_>, name: &str) -> Option<File> {
        let found = place.directory.look(OsStr::new(name))?;
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
        if !target.starts_with(place.top) || self.leave_out.holds(&target) {
            return None;
        }
        open_real(&target)
    }

    /// Is an entry of the tree left out? `level` is that of the directory it is in.
    pub(super) fn hide(&self, path: &Path, is_dir: bool, level: Option<&Level>) -> bool {
        self.names
            .hide(path, is_dir, || self.by_files(path, is_dir, level))
    }

    /// What ignore files say of an entry.
    pub(crate) fn by_files(&self, path: &Path, is_dir: bool, level: Option<&Level>) -> Verdict {
        let mut found = [Verdict::Unknown; 4];
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
                if counts && *verdict == Verdict::Unknown && !file.is_empty() {
                    *verdict = Verdict::of(&file.matched(path, is_dir));
                }
            }
            saw_git |= level.has_git;
            next = level.next.as_deref();
        }
        let decided = found
            .into_iter()
            .find(|verdict| *verdict != Verdict::Unknown);
        decided.unwrap_or_else(|| match any_git {
            true => Verdict::of(&self.global.matched(path, is_dir)),
            false => Verdict::Unknown,
        })
    }
}

impl Default for NameRules {
    /// What ignore files do not name is visible.
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
    /// Is an entry left out? `by_files` is what ignore files say.
    pub(crate) fn hide(
        &self,
        path: &Path,
        is_dir: bool,
        by_files: impl FnOnce() -> Verdict,
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
                Verdict::Ignored => return true,
                Verdict::Wanted => is_named = true,
                Verdict::Unknown => {}
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

impl Level {
    /// In the order of their weight.
    fn files(&self) -> [&Gitignore; 4] {
        [&self.custom, &self.ignore, &self.git, &self.exclude]
    }
}

/// What ignore files say of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Unknown,
    Ignored,
    Wanted,
}

impl Verdict {
    fn of<T>(found: &Match<T>) -> Self {
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
    let above = Directory::through(real.parent()?).ok()?;
    above.open(real.file_name()?).ok()?
}

/// Reads the patterns of a file. What is wrong with a line is said without the line: it may be a
/// file of another kind.
fn parse(file: Option<File>, relative_to: &Path, from: &Path, skips: &SkipLog) -> Gitignore {
    let Some(file) = file else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(relative_to);
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file.take(LONGEST)).lines()) {
        // What is no text is no list of patterns from there on.
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
    /// The repository's private excludes, and where they are.
    fn exclude_file(&self, place: &Place<'_>, git: EntryKind) -> Option<(File, PathBuf)> {
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

    /// The repository a worktree belongs to.
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
