//! The files that are removed together with a directory that a line removes or moves away.

use std::{
    fs,
    path::{Path, PathBuf},
};

use haft_shell::{LinePart, WriteKind};

use super::{
    rule_matching::written,
    rules::PathPattern,
    shell_facts::{PathLocation, PathUse},
};

/// The maximum number of files that are scanned below one directory.
const MAX_COUNT: usize = 2_000;

/// A directory that is removed, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemovedTree {
    directory: PathBuf,
    below: Vec<PathBuf>,
    /// The scan ended at the maximum number of files.
    more: bool,
}

impl RemovedTree {
    /// Scans the directories that the parts of a line remove.
    pub(super) fn from_parts(parts: &[LinePart], paths: &[Vec<PathUse>]) -> Vec<Self> {
        let mut all = Vec::new();
        for (part, paths) in parts.iter().zip(paths) {
            // `find … -delete` removes files below its starting points.
            let deletes = part.base_name() == Some("find");
            let removed = written(paths).filter(|(_, how)| {
                *how == WriteKind::Removal || (deletes && *how == WriteKind::Tree)
            });
            for (path, _) in removed {
                let (PathLocation::Known(places) | PathLocation::Below(Some(places))) = &path.place
                else {
                    continue;
                };
                let directories = places.iter().filter(|touched| touched.real.is_dir());
                all.extend(directories.map(|touched| Self::scan(&touched.real)));
            }
        }
        all
    }

    pub(super) fn scan(directory: &Path) -> Self {
        let mut removed = Self {
            directory: directory.to_path_buf(),
            below: Vec::new(),
            more: false,
        };
        let mut waiting = vec![directory.to_path_buf()];
        while let Some(next) = waiting.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
                if removed.below.len() >= MAX_COUNT {
                    removed.more = true;
                    return removed;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(entry.path());
                }
                removed.below.push(entry.path());
            }
        }
        removed
    }

    /// Returns the paths below the directory, if the scan was complete.
    pub(super) fn complete_paths(&self) -> Option<&[PathBuf]> {
        (!self.more).then_some(&self.below)
    }

    /// Returns the first removed path that one of these patterns covers. If the scan was incomplete
    /// and a pattern may cover a file below the directory, returns the directory.
    pub(super) fn first_denied(&self, denied: &[&PathPattern]) -> Option<&Path> {
        let covered = |path: &&PathBuf| denied.iter().any(|pattern| pattern.covers(path));
        let found = self.below.iter().find(covered);
        let unseen = || {
            let reaches = |pattern: &&PathPattern| pattern.reaches_below(&self.directory);
            (self.more && denied.iter().any(reaches)).then_some(&self.directory)
        };
        found.or_else(unseen).map(PathBuf::as_path)
    }
}
