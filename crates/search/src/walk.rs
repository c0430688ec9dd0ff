//! Which files exist for a search: one parallel walk by ripgrep's rules.
//!
//! `.gitignore`, `.ignore`, `.rgignore`, `.git/info/exclude` and the user's global excludes apply
//! as in ripgrep, including those of the directories above the root. Links are not followed, and
//! version control directories are never entered unless the root itself lies inside one.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::leave_out::LeaveOut;
use crate::skip::SkipLog;
use crate::stop::Watch;

const VERSION_CONTROL: [&str; 5] = [".git", ".svn", ".hg", ".bzr", ".jj"];

/// A tree and the rules that decide what of it is visible.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Path,
    /// What ripgrep's current directory would be: the user's global excludes are relative to it.
    pub(crate) current_dir: &'a Path,
    pub(crate) respect_ignore: bool,
    pub(crate) hidden: bool,
    pub(crate) overrides: Override,
    pub(crate) types: Types,
    pub(crate) threads: usize,
    pub(crate) leave_out: LeaveOut,
}

/// What one thread does with each entry that is not a directory.
pub(crate) type Visitor<'s> = Box<dyn FnMut(DirEntry) + Send + 's>;

impl Tree<'_> {
    fn builder(self) -> WalkBuilder {
        let mut builder = WalkBuilder::new(self.root);
        builder
            .threads(self.threads)
            .hidden(!self.hidden)
            .parents(self.respect_ignore)
            .ignore(self.respect_ignore)
            .git_ignore(self.respect_ignore)
            .git_global(self.respect_ignore)
            .git_exclude(self.respect_ignore)
            .overrides(self.overrides)
            .types(self.types)
            .current_dir(self.current_dir);
        if self.respect_ignore {
            builder.add_custom_ignore_filename(".rgignore");
        }
        builder
    }

    /// Calls one visitor per thread until the tree is done or `watch` says stop. `keep` is asked
    /// once for every entry before anything is read from it, so a directory it refuses costs
    /// nothing.
    pub(crate) fn walk<'s>(
        self,
        watch: &'s Watch,
        skips: &'s SkipLog,
        keep: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
        mut visitor: impl FnMut() -> Visitor<'s>,
    ) {
        let leave_out = self.leave_out.clone();
        let mut builder = self.builder();
        let filter_watch = watch.clone();
        builder.filter_entry(move |entry| {
            // Asked here too, because a directory of a million entries is listed without a visit in
            // between.
            !filter_watch.must_stop()
                && !is_version_control(entry)
                && keep(entry)
                && !leave_out.holds(entry.path())
        });
        builder.build_parallel().run(|| {
            let mut visit = visitor();
            Box::new(move |entry| {
                if watch.must_stop() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) => {
                        if let Some(error) = entry.error() {
                            skips.add_walk_error(error);
                        }
                        if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                            visit(entry);
                        }
                    }
                    Err(error) => skips.add_walk_error(&error),
                }
                WalkState::Continue
            })
        });
    }
}

/// The names in one directory that no ignore file names: what a search that begins there would look
/// at, version control directories included. `current_dir` is what the user's global excludes are
/// relative to. Trouble with reading the directory leaves names out.
pub fn visible_names(directory: &Path, current_dir: &Path) -> HashSet<OsString> {
    let tree = Tree {
        root: directory,
        current_dir,
        respect_ignore: true,
        hidden: true,
        overrides: Override::empty(),
        types: Types::empty(),
        threads: 1,
        leave_out: LeaveOut::default(),
    };
    let entries = tree.builder().max_depth(Some(1)).build();
    entries
        .flatten()
        .filter(|entry| entry.depth() == 1)
        .map(|entry| entry.file_name().to_os_string())
        .collect()
}

fn is_version_control(entry: &DirEntry) -> bool {
    VERSION_CONTROL
        .iter()
        .any(|name| entry.file_name() == *name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn visible_names_are_those_no_ignore_file_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("sub/out")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".gitignore"), "*.log\n/sub/out\n").unwrap();
        fs::write(root.join("sub/.rgignore"), "b\n").unwrap();
        for name in ["a.log", "sub/a", "sub/b", "sub/c.log"] {
            fs::write(root.join(name), "").unwrap();
        }
        let names = |directory: &str| {
            let mut names: Vec<_> = visible_names(&root.join(directory), root)
                .into_iter()
                .map(|name| name.into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(""), [".git", ".gitignore", "sub"]);
        assert_eq!(names("sub"), [".rgignore", "a"], "rules from above apply");
        assert_eq!(names("missing"), [""; 0]);
    }
}
