//! What goes with a directory that a line removes or moves away.

use std::{
    fs,
    path::{Path, PathBuf},
};

use haft_shell::{LinePart, WriteKind};

use super::{
    matching::written,
    rules::PathPattern,
    shell_facts::{PathUse, Where},
};

/// More files than this below one directory are not looked at one by one.
const MOST: usize = 2_000;

/// A directory that is removed, with what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Removed {
    directory: PathBuf,
    below: Vec<PathBuf>,
    /// There is more than was looked at.
    more: bool,
}

impl Removed {
    /// The directories that the parts of a line remove, looked through.
    pub(super) fn of(parts: &[LinePart], paths: &[Vec<PathUse>]) -> Vec<Self> {
        let mut all = Vec::new();
        for (part, paths) in parts.iter().zip(paths) {
            // `find … -delete` removes files below its starting points.
            let deletes = part.base_name() == Some("find");
            let removed = written(paths).filter(|(_, how)| {
                *how == WriteKind::Removal || (deletes && *how == WriteKind::Tree)
            });
            for (path, _) in removed {
                let (Where::Known(places) | Where::Below(Some(places))) = &path.place else {
                    continue;
                };
                let directories = places.iter().filter(|touched| touched.real.is_dir());
                all.extend(directories.map(|touched| Self::looked_through(&touched.real)));
            }
        }
        all
    }

    pub(super) fn looked_through(directory: &Path) -> Self {
        let mut removed = Self {
            directory: directory.to_path_buf(),
            below: Vec::new(),
            more: false,
        };
        let mut waiting = vec![directory.to_path_buf()];
        while let Some(next) = waiting.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
                if removed.below.len() >= MOST {
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

    /// What is below it, if all of it was looked at.
    pub(super) fn whole(&self) -> Option<&[PathBuf]> {
        (!self.more).then_some(&self.below)
    }

    /// The first file that goes with it and that one of these covers, or may.
    pub(super) fn takes(&self, denied: &[&PathPattern]) -> Option<&Path> {
        let covered = |path: &&PathBuf| denied.iter().any(|pattern| pattern.covers(path));
        let found = self.below.iter().find(covered);
        let unseen = || {
            let reaches = |pattern: &&PathPattern| pattern.reaches_below(&self.directory);
            (self.more && denied.iter().any(reaches)).then_some(&self.directory)
        };
        found.or_else(unseen).map(PathBuf::as_path)
    }
}
