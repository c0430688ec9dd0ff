//! Command lines that write an unknown set of files below a directory (`tar x`, `git checkout`, `cp
//! -r`). If a deny rule applies to files below that directory, the user is asked.

use std::{
    fs,
    path::{Path, PathBuf},
};

use haft_shell::{Effect, EffectVerdict, LinePart, WriteKind};

use super::{
    Policy, TouchedPath,
    removed_trees::RemovedTree,
    rule_matching::denied_paths,
    rules::RuleClass,
    shell_facts::{PathAccess, PathLocation, PathUse, ShellFacts},
};

/// The paths that a command line may write without naming them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeWrite {
    /// Any path below this directory.
    Below(TouchedPath),
    /// Any path.
    Anywhere,
    /// Only this path, known from the current contents of the copied or moved sources.
    Exactly(PathBuf),
}

impl TreeWrite {
    /// Returns the tree writes of the parts of a line. Reads the file system: nothing is below a
    /// file, and the targets of a copy or move depend on the contents of its sources.
    pub(super) fn from_parts(
        parts: &[LinePart],
        paths: &[Vec<PathUse>],
        stored: &[Vec<PathUse>],
    ) -> Vec<Self> {
        let mut all = Vec::new();
        let changing = changing(parts);
        for (at, part) in parts.iter().enumerate() {
            // If nothing else in the line changes files, the part finds the current files.
            let alone = changing.iter().all(|changing| *changing == at);
            let brought = copied_names(part, &paths[at]).filter(|_| alone);
            let uses = paths[at].iter().chain(&stored[at]);
            for path in uses.filter(|path| path.access == PathAccess::Write(WriteKind::Tree)) {
                let (places, names) = match &path.place {
                    PathLocation::Known(places) => (places.iter(), brought.as_ref()),
                    PathLocation::Below(Some(places)) => (places.iter(), None),
                    PathLocation::Below(None) => {
                        all.push(Self::Anywhere);
                        continue;
                    }
                };
                for touched in places.filter(|touched| !(alone && is_file(touched))) {
                    match names {
                        Some(names) => all.extend(names.iter().flat_map(|name| {
                            let paths = touched.given_and_real().map(|path| path.join(name));
                            paths.map(Self::Exactly)
                        })),
                        None => all.push(Self::Below(touched.clone())),
                    }
                }
            }
        }
        all
    }
}

/// Returns why a line must not be allowed if it may write denied files together with the rest of a
/// directory. Ignores read rules: writing reveals no contents.
pub(super) fn denied_below(policy: &Policy, shell: &ShellFacts) -> Option<String> {
    let denied = denied_paths(policy, |rule| rule.class != RuleClass::Reads);
    if denied.is_empty() {
        return None;
    }
    let reaches = |path: &Path| denied.iter().any(|pattern| pattern.reaches_below(path));
    let covers = |path: &Path| denied.iter().any(|pattern| pattern.covers(path));
    let why = "a file that may not be changed";
    shell.tree_writes.iter().find_map(|filled| match filled {
        TreeWrite::Anywhere => Some(format!("it may write {why}")),
        TreeWrite::Below(touched) => {
            let reached = touched.given_and_real().into_iter().any(reaches);
            reached.then(|| format!("below {} it may write {why}", touched.given.display()))
        }
        TreeWrite::Exactly(path) => {
            covers(path).then(|| format!("it writes {}, {why}", path.display()))
        }
    })
}

fn is_file(touched: &TouchedPath) -> bool {
    let plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    touched.given_and_real().into_iter().all(plain)
}

/// Returns the first two parts that may change a file.
fn changing(parts: &[LinePart]) -> Vec<usize> {
    let changes = |part: &LinePart| {
        let writes = |effect: &Effect| matches!(effect, Effect::Write(_));
        part.finding.verdict != EffectVerdict::ReadOnly || part.finding.effects.iter().any(writes)
    };
    let parts = parts.iter().enumerate();
    let changing = parts.filter(|(_, part)| changes(part));
    changing.map(|(index, _)| index).take(2).collect()
}

/// Returns the names that `cp` and `mv` create below their target, relative to each source; the
/// empty name means the source itself. Returns `None` if they are not known.
fn copied_names(part: &LinePart, paths: &[PathUse]) -> Option<Vec<PathBuf>> {
    if !matches!(part.base_name(), Some("cp" | "mv")) {
        return None;
    }
    let mut names = vec![PathBuf::new()];
    let read = paths
        .iter()
        .filter(|path| matches!(path.access, PathAccess::Read { walks: true, .. }));
    for path in read {
        let PathLocation::Known(places) = &path.place else {
            return None;
        };
        for touched in places {
            if touched.real.is_dir() {
                let removed = RemovedTree::scan(&touched.real);
                let below = removed.complete_paths()?.iter();
                let below = below.filter_map(|path| path.strip_prefix(&touched.real).ok());
                names.extend(below.map(Path::to_path_buf));
            } else if !is_file(touched) {
                return None;
            }
        }
    }
    Some(names)
}
