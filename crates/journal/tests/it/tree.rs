//! Everything a directory holds, to be compared: contents, links, modes, owners, attributes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{lgetxattr, llistxattr};

/// By path below the directory. Times are left out: a changed file must look changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<PathBuf, Node>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    content: Content,
    mode: u32,
    owner: (u32, u32),
    /// Of regular files; what it says of directories depends on the file system.
    links: u64,
    extended: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    File(Vec<u8>),
    Directory,
    Link(PathBuf),
}

impl Tree {
    pub(crate) fn of(directory: &Path) -> Self {
        let mut nodes = BTreeMap::new();
        collect(directory, Path::new(""), &mut nodes);
        Self(nodes)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The same without directories that hold nothing but directories.
    pub(crate) fn pruned(&self) -> Self {
        let is_needed = |path: &Path| {
            let below = self.0.iter().filter(|(other, _)| other.starts_with(path));
            below
                .map(|(_, node)| node)
                .any(|node| node.content != Content::Directory)
        };
        let needed = self.0.iter().filter(|(path, _)| is_needed(path));
        Self(
            needed
                .map(|(path, node)| (path.clone(), node.clone()))
                .collect(),
        )
    }

    /// Is each file that has a name in one of the others as a whole what it is there?
    pub(crate) fn is_made_of(&self, others: [&Self; 2]) -> bool {
        self.0.iter().all(|(path, node)| {
            let mut found = others.iter().filter_map(|other| other.0.get(path));
            let is_file = matches!(node.content, Content::File(_));
            let is_known = found.clone().next().is_some();
            !is_file || !is_known || found.any(|other| other.content == node.content)
        })
    }

    /// The paths that differ, in words; empty for equal ones. Contents can be long: they are left out.
    pub(crate) fn difference(&self, other: &Self) -> Vec<String> {
        let mut words = Vec::new();
        let all: std::collections::BTreeSet<&PathBuf> =
            self.0.keys().chain(other.0.keys()).collect();
        for path in all {
            let shown = path.display();
            match (self.0.get(path), other.0.get(path)) {
                (Some(_), None) => words.push(format!("{shown}: too many")),
                (None, Some(_)) => words.push(format!("{shown}: missing")),
                (Some(own), Some(other)) if own.content != other.content => {
                    words.push(format!("{shown}: another content"));
                }
                (Some(own), Some(other)) if own != other => {
                    let brief = |node: &Node| {
                        let Node {
                            mode,
                            owner,
                            links,
                            extended,
                            ..
                        } = node;
                        format!("{mode:o} {owner:?} links {links} {extended:?}")
                    };
                    words.push(format!("{shown}: {} but not {}", brief(own), brief(other)));
                }
                _ => {}
            }
        }
        words
    }
}

fn collect(directory: &Path, below: &Path, nodes: &mut BTreeMap<PathBuf, Node>) {
    for entry in fs::read_dir(directory.join(below)).unwrap() {
        let name = below.join(entry.unwrap().file_name());
        let path = directory.join(&name);
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_symlink() {
            Content::Link(fs::read_link(&path).unwrap())
        } else if found.is_dir() {
            collect(directory, &name, nodes);
            Content::Directory
        } else {
            Content::File(fs::read(&path).unwrap())
        };
        let node = Node {
            links: if found.is_file() { found.nlink() } else { 0 },
            mode: found.mode(),
            owner: (found.uid(), found.gid()),
            extended: extended(&path),
            content,
        };
        nodes.insert(name, node);
    }
}

/// None where the file system has no such thing.
fn extended(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let Ok(length) = llistxattr(path, &mut names) else {
        return Vec::new();
    };
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    let mut all: Vec<(String, Vec<u8>)> = names
        .split_terminator('\0')
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = lgetxattr(path, name, &mut value).unwrap();
            value.truncate(length);
            (name.to_owned(), value)
        })
        .collect();
    all.sort();
    all
}
