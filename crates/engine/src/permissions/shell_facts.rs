//! A command line, read, with its paths resolved.

use std::path::{Path, PathBuf};

use haft_shell::{Analysis, Arg, Effect, How, Part, Place, Value, Verdict, analyze, is_free};

use super::{
    facts::{Setting, Touched},
    git_audit, globs,
    matching::spellings,
};

/// A line longer than this is never let through by a wildcard or as harmless.
pub const LONGEST: usize = 10_000;

/// A command line, read, with its paths resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellFacts {
    /// The line.
    pub line: String,
    /// What it does.
    pub analysis: Analysis,
    /// The paths each part touches.
    pub paths: Vec<Vec<PathUse>>,
    /// Every way each part may be written that means the same, for rules that hold up.
    pub(super) spellings: Vec<Vec<String>>,
    /// Why git cannot be trusted here, if so: a setting of the repository that runs a program.
    pub git: Option<String>,
}

/// A path that a part touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUse {
    /// What is done to it.
    pub access: Access,
    /// Where it leads.
    pub place: Where,
    /// As written in the line.
    pub text: String,
    /// All that the pattern or brace stands for is named by another one, as it is on disk.
    pub resolved: bool,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read: its content (or only names), itself (or all below it).
    Read {
        /// The content, not only names and dates.
        content: bool,
        /// Everything below it too.
        walks: bool,
    },
    /// Written, and how.
    Write(How),
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// Here; several where the directory is one of several.
    Known(Vec<Touched>),
    /// A pattern or an expansion: somewhere below these directories, if anything is known.
    Below(Option<Vec<Touched>>),
}

impl ShellFacts {
    /// Reads a line and resolves its paths. Follows links and looks at git's configuration, reads
    /// nothing else.
    pub fn of(line: &str, setting: &Setting) -> Self {
        let place = Place {
            cwd: setting.cwd.clone(),
            home: setting.home.clone(),
        };
        let analysis = analyze(line, &place);
        let paths = analysis
            .parts
            .iter()
            .map(|part| paths_of(part, line))
            .collect();
        let spellings = analysis.parts.iter().map(spellings).collect();
        let git = git_audit::problem(&analysis.parts);
        Self {
            line: line.to_owned(),
            analysis,
            paths,
            spellings,
            git,
        }
    }

    /// It changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.analysis.verdict == Verdict::ReadOnly && self.line.len() <= LONGEST
    }

    /// Every part with the paths it touches.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &Part, &[PathUse])> {
        let parts = self.analysis.parts.iter().zip(&self.paths).enumerate();
        parts.map(|(at, (part, paths))| (at, part, paths.as_slice()))
    }

    /// Is everything that this part starts harmless?
    pub(super) fn starts_only_harmless(&self, at: usize) -> bool {
        let inner = self.analysis.parts.iter().enumerate();
        inner
            .filter(|(_, part)| part.outer == Some(at))
            .all(|(inner, part)| {
                part.finding.verdict == Verdict::ReadOnly && self.starts_only_harmless(inner)
            })
    }
}

fn paths_of(part: &Part, line: &str) -> Vec<PathUse> {
    let mut paths = Vec::new();
    for effect in &part.finding.effects {
        let (arg, access) = match effect {
            Effect::Read(read) => (
                &read.path,
                Access::Read {
                    content: read.content,
                    walks: read.walks,
                },
            ),
            Effect::Write(write) => (&write.path, Access::Write(write.how)),
            Effect::Net(_) | Effect::Env(_) | Effect::Opaque(_) => continue,
        };
        if arg.text().is_some_and(is_free) {
            continue;
        }
        let text = line.get(arg.span.start..arg.span.end).unwrap_or_default();
        let found = match access {
            // What a pattern means is for the shell to say, and it can be asked to mean another.
            Access::Read { .. } if !line.contains("glob") && !line.contains("GLOB") => {
                on_disk(arg, part.cwd.as_deref())
            }
            Access::Read { .. } | Access::Write(_) => None,
        };
        paths.push(PathUse {
            access,
            place: place_of(arg, part.cwd.as_deref()),
            text: text.to_owned(),
            resolved: found.is_some(),
        });
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            paths.push(PathUse {
                access,
                place: Where::Known(found),
                text: text.to_owned(),
                resolved: true,
            });
        }
    }
    paths
}

/// What a pattern or brace stands for, as it is on disk.
fn on_disk(arg: &Arg, cwd: Option<&[PathBuf]>) -> Option<Vec<Touched>> {
    match &arg.value {
        Value::Glob(text) => globs::expand(text, cwd),
        Value::Braced(text) => {
            let paths = absolute(text, cwd)?;
            Some(paths.iter().map(|path| Touched::new(path)).collect())
        }
        Value::Literal(_) | Value::Unknown { .. } => None,
    }
}

fn place_of(arg: &Arg, cwd: Option<&[PathBuf]>) -> Where {
    match &arg.value {
        Value::Literal(text) => match absolute(text, cwd) {
            Some(paths) => Where::Known(paths.iter().map(|path| Touched::new(path)).collect()),
            None => Where::Below(None),
        },
        Value::Braced(text) => below(text, cwd),
        Value::Glob(text) => {
            let literal = text
                .find(['*', '?', '['])
                .map_or(text.as_str(), |at| &text[..at]);
            let climbs = text[literal.len()..].split('/').any(|part| part == "..");
            if climbs {
                Where::Below(None)
            } else {
                below(literal, cwd)
            }
        }
        Value::Unknown { prefix, .. } if prefix.contains('/') => below(prefix, cwd),
        Value::Unknown { .. } => Where::Below(None),
    }
}

/// The directory that a beginning of a path names.
fn below(prefix: &str, cwd: Option<&[PathBuf]>) -> Where {
    let directory = prefix.rfind('/').map_or(".", |at| &prefix[..=at]);
    let places = absolute(directory, cwd);
    Where::Below(places.map(|paths| paths.iter().map(|path| Touched::new(path)).collect()))
}

fn absolute(text: &str, cwd: Option<&[PathBuf]>) -> Option<Vec<PathBuf>> {
    if Path::new(text).is_absolute() {
        return Some(vec![PathBuf::from(text)]);
    }
    Some(cwd?.iter().map(|place| place.join(text)).collect())
}
