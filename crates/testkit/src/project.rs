//! A project in a temporary folder, which is deleted on drop.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A temporary project with files.
#[derive(Debug)]
pub struct TempProject {
    _dir: TempDir,
    root: PathBuf,
}

impl TempProject {
    /// Creates a project with these files.
    ///
    /// # Panics
    /// If the temporary folder cannot be written.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        crate::wait::bound_this_process();
        let dir = tempfile::Builder::new()
            .prefix("haft-test-")
            .tempdir()
            .expect("a temporary folder");
        let root = fs::canonicalize(dir.path()).expect("it exists");
        let project = Self { _dir: dir, root };
        for (name, content) in files {
            project.write(name, content);
        }
        project
    }

    /// Returns the project's folder as a real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path inside the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file and creates its parent folders.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("inside the root")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    /// Reads a file.
    ///
    /// # Panics
    /// If the file cannot be read.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).expect("a file")).expect("text")
    }

    /// Returns the bytes of every file by its path inside the project; for a symlink its target.
    ///
    /// # Panics
    /// If a file cannot be read.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let entry = entry.expect("an entry");
                let (path, kind) = (entry.path(), entry.file_type().expect("its type"));
                let name = path.strip_prefix(&self.root).expect("inside").to_path_buf();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_symlink() {
                    let target = fs::read_link(&path).expect("a link");
                    files.insert(name, target.into_os_string().into_encoded_bytes());
                } else if kind.is_file() {
                    files.insert(name, fs::read(&path).expect("a file"));
                }
            }
        }
        files
    }
}
