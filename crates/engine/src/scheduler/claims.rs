//! The paths and state that calls claim, to find out whether two calls conflict.
//!
//! Reads do not conflict, unless both calls require their order or have the same queue. A write
//! conflicts with any read or write that may touch the same file: the same real path, a path above
//! or below it, or a hard link to the same file. An exclusive call conflicts with every other.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use haft_contract::{Effects, PathReach};

use crate::settings::real_path;

/// The effects of a call, with paths that are resolved when a comparison first needs them.
#[derive(Debug)]
pub struct CallClaims {
    effects: Effects,
    reads: OnceLock<Vec<ClaimedPath>>,
    writes: OnceLock<Vec<ClaimedPath>>,
}

/// A real path, and the device and inode of the file there.
#[derive(Debug)]
struct ClaimedPath {
    real: PathBuf,
    file: Option<(u64, u64)>,
}

impl CallClaims {
    /// Creates claims without accessing any file.
    pub fn new(effects: Effects) -> Self {
        Self {
            effects,
            reads: OnceLock::new(),
            writes: OnceLock::new(),
        }
    }

    /// Returns the effects.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Returns whether one of the calls must wait for the other.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let (a, b) = (&self.effects, &other.effects);
        if a.exclusive || b.exclusive {
            return true;
        }
        if a.queue.is_some() && a.queue == b.queue {
            return true;
        }
        let in_order = a.in_order && b.in_order;
        if in_order && may_overlap(&a.reads, &b.reads, || self.reads(), || other.reads()) {
            return true;
        }
        if a.is_read_only() && b.is_read_only() {
            return false;
        }
        may_overlap(&a.writes, &b.writes, || self.writes(), || other.writes())
            || may_overlap(&a.writes, &b.reads, || self.writes(), || other.reads())
            || may_overlap(&a.reads, &b.writes, || self.reads(), || other.writes())
    }

    fn reads(&self) -> &[ClaimedPath] {
        self.reads.get_or_init(|| places(&self.effects.reads))
    }

    fn writes(&self) -> &[ClaimedPath] {
        self.writes.get_or_init(|| places(&self.effects.writes))
    }
}

fn may_overlap<'a>(
    a: &PathReach,
    b: &PathReach,
    a_places: impl FnOnce() -> &'a [ClaimedPath],
    b_places: impl FnOnce() -> &'a [ClaimedPath],
) -> bool {
    match (a, b) {
        (PathReach::Nothing, _) | (_, PathReach::Nothing) => false,
        (PathReach::Anything, _) | (_, PathReach::Anything) => true,
        (PathReach::Paths(_), PathReach::Paths(_)) => {
            let b_places = b_places();
            a_places()
                .iter()
                .any(|a| b_places.iter().any(|b| a.overlaps(b)))
        }
    }
}

fn places(reach: &PathReach) -> Vec<ClaimedPath> {
    match reach {
        PathReach::Paths(paths) => paths
            .iter()
            .map(|path| ClaimedPath::from_path(path))
            .collect(),
        PathReach::Nothing | PathReach::Anything => Vec::new(),
    }
}

impl ClaimedPath {
    fn from_path(path: &Path) -> Self {
        let real = real_path::resolve_links(path);
        let file = fs::metadata(&real)
            .ok()
            .map(|found| (found.dev(), found.ino()));
        Self { real, file }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.real.starts_with(&other.real)
            || other.real.starts_with(&self.real)
            || (self.file.is_some() && self.file == other.file)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn calls_conflict_exactly_where_they_may_touch_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("a"), "").unwrap();
        fs::write(at("b"), "").unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        symlink("a", at("soft")).unwrap();
        symlink("d", at("dlink")).unwrap();
        let reads = |name: &str| Effects::reading([at(name)]);
        let ordered = |name: &str| Effects {
            in_order: true,
            ..reads(name)
        };
        let writes = |name: &str| Effects::writing([at(name)]);
        let cases = [
            ("two reads of one file", reads("a"), reads("a"), false),
            (
                "answered in order, of one file",
                ordered("a"),
                ordered("soft"),
                true,
            ),
            (
                "answered in order, of two files",
                ordered("a"),
                ordered("b"),
                false,
            ),
            (
                "in order beside a plain read",
                ordered("a"),
                reads("a"),
                false,
            ),
            ("read and write of one file", reads("a"), writes("a"), true),
            ("two writes of one file", writes("a"), writes("a"), true),
            ("writes of two files", writes("a"), writes("b"), false),
            (
                "read and write of two files",
                reads("a"),
                writes("b"),
                false,
            ),
            ("hard link", writes("a"), writes("hard"), true),
            ("symbolic link", writes("a"), reads("soft"), true),
            (
                "a folder is read with all below",
                reads("d"),
                writes("d/new"),
                true,
            ),
            (
                "through a linked folder",
                reads("dlink"),
                writes("d/new"),
                true,
            ),
            (
                "a new file by two ways",
                writes("d/n"),
                writes("dlink/n"),
                true,
            ),
            (
                "a file where another wants a folder",
                writes("x"),
                writes("x/y"),
                true,
            ),
            (
                "names with the same beginning",
                writes("d"),
                writes("dx"),
                false,
            ),
            (
                "reads anything, writes one",
                Effects::READS,
                writes("a"),
                true,
            ),
            ("touches nothing", Effects::NONE, writes("a"), false),
            (
                "in one queue",
                Effects::queueing("tasks"),
                Effects::queueing("tasks"),
                true,
            ),
            (
                "in two queues",
                Effects::queueing("tasks"),
                Effects::queueing("memory"),
                false,
            ),
            (
                "in a queue, beside a write",
                Effects::queueing("tasks"),
                writes("a"),
                false,
            ),
            (
                "exclusive beside nothing",
                Effects::NONE,
                Effects::EXCLUSIVE,
                true,
            ),
        ];
        for (what, a, b, expected) in cases {
            let (a, b) = (CallClaims::new(a), CallClaims::new(b));
            assert_eq!(a.conflicts_with(&b), expected, "{what}");
            assert_eq!(
                b.conflicts_with(&a),
                expected,
                "{what}, the other way round"
            );
        }
    }
}
