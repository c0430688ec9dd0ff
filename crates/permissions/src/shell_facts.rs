//! The facts about a command line: its analysis, with paths resolved.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_shell::{
    Analysis, AnalyzedLine, Arg, ArgValue, Effect, EffectVerdict, LineLocation, LinePart,
    OwnService, WriteKind, analyze_wrapped, commands::variables::has_known_charset, is_stream,
    stores_nothing,
};

use super::{
    facts::{MAX_PATH, PathContext, TouchedPath},
    git_audit, globs,
    named_operands::NamedOperands,
    program_audit::ResolvedPrograms,
    removed_trees::RemovedTree,
    rule_matching::spellings,
    tree_writes::TreeWrite,
};

/// The maximum length of a line that a wildcard rule or the read-only verdict may allow, in bytes.
pub const MAX_LENGTH: usize = 10_000;

/// The facts about a command line.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellFacts {
    /// The line.
    pub line: String,
    /// The analysis of the line.
    pub analysis: Arc<Analysis>,
    /// The paths that each part touches.
    pub paths: Vec<Vec<PathUse>>,
    /// All spellings of each part that mean the same, for deny and ask rules.
    pub(super) spellings: Vec<Vec<String>>,
    /// The reason why git is not read-only here, if it is not: a setting of the repository that
    /// runs a program.
    pub git: Option<String>,
    /// The programs that the names in the line lead to.
    pub(super) programs: ResolvedPrograms,
    /// The locale of the environment, if the line has another meaning in its character set.
    pub(super) charset: Option<String>,
    /// The paths that git also reads for each part, relative to the top of the repository. Deny
    /// rules apply to them.
    pub(super) stored: Vec<Vec<PathUse>>,
    /// Paths in the arguments of each part that no table describes.
    pub(super) named: Vec<NamedOperands>,
    /// The directories that the line removes, with the files in them.
    pub(super) removed: Vec<RemovedTree>,
    /// The directories below which the line may write any file.
    pub(super) tree_writes: Vec<TreeWrite>,
}

/// A path that a part touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUse {
    /// The kind of access.
    pub access: PathAccess,
    /// The location of the path.
    pub place: PathLocation,
    /// The path as written in the line.
    pub text: String,
    /// Whether another [`PathUse`] contains the files on disk that the pattern or brace matches.
    pub resolved: bool,
}

/// An access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// Reads the path.
    Read {
        /// Also reads contents, not only names and times.
        content: bool,
        /// Also reads everything below the path.
        walks: bool,
    },
    /// Writes the path, in this way.
    Write(WriteKind),
}

/// The location of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathLocation {
    /// Known paths; several if the working directory may be one of several.
    Known(Vec<TouchedPath>),
    /// A pattern or an expansion: any path below these directories, if they are known.
    Below(Option<Vec<TouchedPath>>),
}

/// Converts the context of a call for the line analysis.
fn place(setting: &PathContext) -> LineLocation {
    LineLocation {
        cwd: setting.cwd.clone(),
        home: setting.home.clone(),
    }
}

impl ShellFacts {
    /// Analyzes a line and resolves its paths. Also reads git's configuration, `PATH` and the files
    /// that pin programs.
    pub fn analyze(line: &str, setting: &PathContext) -> Self {
        Self::in_environment(line, setting, &|name| std::env::var_os(name))
    }

    /// Like [`Self::analyze`], but uses an existing analysis of this line, if it fits.
    pub(super) fn analyze_or_reuse(
        line: &str,
        setting: &PathContext,
        read: Option<&AnalyzedLine>,
    ) -> Self {
        let place = place(setting);
        let fits = |read: &&AnalyzedLine| setting.wrappers.is_empty() && read.is_of(line, &place);
        let analysis = read.filter(fits).map_or_else(
            || Arc::new(analyze_wrapped(line, &place, &setting.wrappers)),
            |read| Arc::clone(read.analysis()),
        );
        Self::from_analysis(line, analysis, setting, &|name| std::env::var_os(name))
    }

    /// Like [`Self::analyze`], but with these environment variables.
    pub fn in_environment(
        line: &str,
        setting: &PathContext,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Self {
        let place = place(setting);
        let analysis = Arc::new(analyze_wrapped(line, &place, &setting.wrappers));
        Self::from_analysis(line, analysis, setting, variable)
    }

    fn from_analysis(
        line: &str,
        analysis: Arc<Analysis>,
        setting: &PathContext,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Self {
        let source = LineSource::new(line);
        let paths = analysis.parts.iter().map(|part| paths_of(part, source));
        let paths: Vec<Vec<PathUse>> = paths.collect();
        let spellings = analysis.parts.iter().map(spellings).collect();
        let git = git_audit::problem(&analysis.parts);
        let path = variable("PATH");
        let programs =
            ResolvedPrograms::from_parts(&analysis.parts, path.as_deref(), setting.home.as_deref());
        let stored = analysis.parts.iter().map(|part| stored(part, source));
        let stored: Vec<Vec<PathUse>> = stored.collect();
        Self {
            programs,
            charset: charset(line, variable),
            tree_writes: TreeWrite::from_parts(&analysis.parts, &paths, &stored),
            stored,
            named: named(&analysis.parts, &paths),
            removed: RemovedTree::from_parts(&analysis.parts, &paths),
            line: line.to_owned(),
            analysis,
            paths,
            spellings,
            git,
        }
    }

    /// Returns whether the line changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.analysis.verdict == EffectVerdict::ReadOnly && self.line.len() <= MAX_LENGTH
    }

    /// Returns every part with the paths that it touches.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &LinePart, &[PathUse])> {
        let parts = self.analysis.parts.iter().zip(&self.paths).enumerate();
        parts.map(|(at, (part, paths))| (at, part, paths.as_slice()))
    }

    /// Returns whether the verdict of everything that this part starts is at most this one.
    pub(super) fn starts_only(&self, at: usize, at_most: EffectVerdict) -> bool {
        let inner = self.analysis.parts.iter().enumerate();
        inner
            .filter(|(_, part)| part.outer == Some(at))
            .all(|(inner, part)| {
                part.finding.verdict <= at_most && self.starts_only(inner, at_most)
            })
    }

    /// Returns whether a launcher starts this part: a rule for the launcher covers it.
    pub(super) fn is_launched(&self, index: usize) -> bool {
        let parts = &self.analysis.parts;
        let mut outer = parts[index].outer;
        while let Some(index) = outer {
            if parts[index].finding.is_launcher {
                return true;
            }
            outer = parts[index].outer;
        }
        false
    }

    /// Returns the user's services to which the line sends requests.
    pub(super) fn services(&self) -> impl Iterator<Item = OwnService> {
        let effects = self
            .analysis
            .parts
            .iter()
            .flat_map(|part| &part.finding.effects);
        effects.filter_map(|effect| match effect {
            Effect::Service(service) => Some(*service),
            _ => None,
        })
    }
}

/// A line, with a fact that is computed once for all its paths.
#[derive(Clone, Copy)]
struct LineSource<'a> {
    line: &'a str,
    /// The line may change what a pattern means.
    sets_globs: bool,
}

impl<'a> LineSource<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            line,
            sets_globs: line.contains("glob") || line.contains("GLOB"),
        }
    }
}

fn paths_of(part: &LinePart, source: LineSource<'_>) -> Vec<PathUse> {
    let line = source.line;
    let mut paths = Vec::new();
    for effect in &part.finding.effects {
        let (arg, access) = match effect {
            Effect::Read(read) => (
                &read.path,
                PathAccess::Read {
                    content: read.content,
                    walks: read.is_recursive,
                },
            ),
            Effect::Write(write) => (&write.path, PathAccess::Write(write.kind)),
            Effect::Net(_)
            | Effect::Service(_)
            | Effect::Env(_)
            | Effect::Irreversible(_)
            | Effect::Opaque(_) => continue,
        };
        let free = match access {
            PathAccess::Read { .. } => is_stream,
            PathAccess::Write(_) => stores_nothing,
        };
        if arg.text().is_some_and(free) {
            continue;
        }
        let text = line.get(arg.span.start..arg.span.end).unwrap_or_default();
        let found = match access {
            // The shell resolves a pattern, and its options can change the meaning.
            PathAccess::Read { .. } if !source.sets_globs => on_disk(arg, part.cwd.as_deref()),
            PathAccess::Read { .. } | PathAccess::Write(_) => None,
        };
        let mut place = place_of(arg, part.cwd.as_deref());
        if matches!(access, PathAccess::Write(_))
            && let PathLocation::Known(places) = &mut place
        {
            places.iter_mut().for_each(TouchedPath::mark_written);
        }
        paths.push(PathUse {
            access,
            place,
            text: text.to_owned(),
            resolved: found.is_some(),
        });
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            paths.push(PathUse {
                access,
                place: PathLocation::Known(found),
                text: text.to_owned(),
                resolved: true,
            });
        }
    }
    paths
}

/// Returns the locale of the environment, if a line that is not ASCII has another meaning in it.
fn charset(line: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    if line.is_ascii() {
        return None;
    }
    let locales = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let mut locales = locales.filter_map(variable);
    let foreign = locales.find(|locale| !locale.to_str().is_some_and(has_known_charset));
    foreign.map(|locale| locale.to_string_lossy().into_owned())
}

fn named(parts: &[LinePart], paths: &[Vec<PathUse>]) -> Vec<NamedOperands> {
    let parts = parts.iter().zip(paths);
    let named = parts.map(|(part, paths)| NamedOperands::collect(part, paths));
    named.collect()
}

/// Returns what git reads relative to the top of its repository, even if it runs in a subdirectory:
/// objects by `revision:path`, and all files if no path limits the command.
fn stored(part: &LinePart, source: LineSource<'_>) -> Vec<PathUse> {
    if part.base_name() != Some("git") {
        return Vec::new();
    }
    let (Some(places), Some(moved)) = (git_audit::directories(part), git_audit::moved(part)) else {
        return Vec::new();
    };
    let tops: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| git_audit::top(place))
        .collect();
    let same = moved.as_os_str().is_empty() && Some(&tops) == part.cwd.as_ref();
    if tops.is_empty() || same {
        return Vec::new();
    }
    let mut again = part.clone();
    again.cwd = Some(tops.clone());
    // After `-C`, paths in effects are relative to the start of the line, and objects are not.
    for effect in &mut again.finding.effects {
        let path = match effect {
            Effect::Read(read) => &mut read.path,
            Effect::Write(write) => &mut write.path,
            Effect::Net(_)
            | Effect::Service(_)
            | Effect::Env(_)
            | Effect::Irreversible(_)
            | Effect::Opaque(_) => continue,
        };
        if let ArgValue::Literal(text) = &mut path.value
            && let Ok(rest) = Path::new(text.as_str()).strip_prefix(&moved)
        {
            *text = rest.to_string_lossy().into_owned();
        }
    }
    // The files of a branch are also written relative to the top; a named path is not.
    let whole = |place: &PathLocation| match place {
        PathLocation::Known(places) => places.iter().all(|touched| tops.contains(&touched.given)),
        PathLocation::Below(_) => false,
    };
    paths_of(&again, source)
        .into_iter()
        .filter(|path| match path.access {
            PathAccess::Read { content, .. } => content,
            PathAccess::Write(how) => how == WriteKind::Tree && whole(&path.place),
        })
        .collect()
}

/// Returns the files on disk that a pattern or brace matches.
fn on_disk(arg: &Arg, cwd: Option<&[PathBuf]>) -> Option<Vec<TouchedPath>> {
    match &arg.value {
        ArgValue::Glob(text) | ArgValue::Braced(text) if text.len() > MAX_PATH => None,
        ArgValue::Glob(text) => globs::expand_on_disk(text, cwd),
        ArgValue::Braced(text) => {
            let paths = absolute(text, cwd)?;
            Some(paths.iter().map(|path| TouchedPath::new(path)).collect())
        }
        ArgValue::Literal(_) | ArgValue::Unknown { .. } => None,
    }
}

fn place_of(arg: &Arg, cwd: Option<&[PathBuf]>) -> PathLocation {
    let text = match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) | ArgValue::Glob(text) => text,
        ArgValue::Unknown { prefix, .. } => prefix,
    };
    if text.len() > MAX_PATH {
        // A program can open it only in parts, or after it shortens it.
        return PathLocation::Below(None);
    }
    match &arg.value {
        ArgValue::Literal(text) => match absolute(text, cwd) {
            Some(paths) => {
                PathLocation::Known(paths.iter().map(|path| TouchedPath::new(path)).collect())
            }
            None => PathLocation::Below(None),
        },
        ArgValue::Braced(text) => below(text, cwd),
        ArgValue::Glob(text) => {
            let literal = text
                .find(['*', '?', '['])
                .map_or(text.as_str(), |at| &text[..at]);
            let climbs = text[literal.len()..].split('/').any(|part| part == "..");
            if climbs {
                PathLocation::Below(None)
            } else {
                below(literal, cwd)
            }
        }
        ArgValue::Unknown { prefix, .. } if prefix.contains('/') => below(prefix, cwd),
        ArgValue::Unknown { .. } => PathLocation::Below(None),
    }
}

/// Returns the location of any path below the directory of a known beginning.
fn below(prefix: &str, cwd: Option<&[PathBuf]>) -> PathLocation {
    let directory = prefix.rfind('/').map_or(".", |at| &prefix[..=at]);
    let places = absolute(directory, cwd);
    PathLocation::Below(
        places.map(|paths| paths.iter().map(|path| TouchedPath::new(path)).collect()),
    )
}

pub(super) fn absolute(text: &str, cwd: Option<&[PathBuf]>) -> Option<Vec<PathBuf>> {
    if Path::new(text).is_absolute() {
        return Some(vec![PathBuf::from(text)]);
    }
    Some(cwd?.iter().map(|place| place.join(text)).collect())
}
