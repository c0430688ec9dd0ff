//! Finds names in a command line that lead to programs of the workspace.
//!
//! A line is evaluated by the names of its programs. `PATH` determines which program a name means,
//! and for some programs files of the workspace pin a version. The audit only reads files and
//! starts no program.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use haft_shell::{EffectVerdict, LinePart, is_builtin};

use haft_settings::real_path;

use super::{accepted_edits::is_editing_command, read_file::read_regular};

/// The program directories of the system. Programs there are never treated as programs of the
/// workspace, even if a working directory contains them.
const SYSTEM: [&str; 6] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
];

/// Programs that rustup starts in the version that the workspace pins.
const RUST: &[&str] = &[
    "cargo",
    "cargo-clippy",
    "cargo-fmt",
    "clippy-driver",
    "rust-analyzer",
    "rust-gdb",
    "rust-lldb",
    "rustc",
    "rustdoc",
    "rustfmt",
    "rustup",
];

/// The files in which version managers select the program that a shim starts.
const VERSIONS: &[&str] = &[
    ".go-version",
    ".java-version",
    ".mise.toml",
    ".node-version",
    ".nvmrc",
    ".perl-version",
    ".python-version",
    ".ruby-version",
    ".tool-versions",
    "mise.toml",
];

/// The programs that the names of a line lead to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResolvedPrograms {
    /// For each part: the files of that name in directories of `PATH` that are not the system's, as
    /// real paths.
    found: BTreeMap<usize, Vec<PathBuf>>,
    /// For each part: the reason why the workspace selects the program, or makes it start another
    /// one.
    pinned: BTreeMap<usize, String>,
}

impl ResolvedPrograms {
    /// Finds the programs of the parts that may run without a rule for them: those that are
    /// read-only according to their arguments, and editing commands.
    pub(super) fn from_parts(
        parts: &[LinePart],
        path: Option<&OsStr>,
        home: Option<&Path>,
    ) -> Self {
        let mut programs = Self::default();
        let entries: Vec<PathBuf> = path
            .map(|path| std::env::split_paths(path).collect())
            .unwrap_or_default();
        for (at, part) in parts.iter().enumerate() {
            let Some(name) = part.command_name() else {
                continue;
            };
            let edits = part.base_name().is_some_and(is_editing_command);
            if part.finding.verdict > EffectVerdict::ReadsNetwork && !edits {
                continue;
            }
            let own = part.outer.is_none() && (is_builtin(name) || name == "time");
            let mut shimmed = false;
            if !own && !name.contains('/') {
                let found = found(name, &entries, part.cwd.as_deref());
                shimmed = found.iter().any(|(_, shim)| *shim);
                let files = found.into_iter().map(|(file, _)| file);
                programs.found.insert(at, files.collect());
            }
            let base = part.base_name().unwrap_or(name);
            if let Some(why) = pin(base, shimmed, part.cwd.as_deref(), home) {
                programs.pinned.insert(at, why);
            }
        }
        programs
    }

    /// Returns why the workspace determines the program of a part, if it does.
    pub(super) fn problem(
        &self,
        at: usize,
        trusted: bool,
        is_inside: impl Fn(&Path) -> bool,
    ) -> Option<String> {
        let found = self.found.get(&at).into_iter().flatten();
        let mut own = found.filter(|file| is_inside(file));
        if let Some(file) = own.next() {
            return Some(format!(
                "PATH leads to {}, a program of the working directory",
                file.display()
            ));
        }
        self.pinned.get(&at).filter(|_| !trusted).cloned()
    }
}

/// Returns every file of this name in `PATH`, regardless of the order: the user's own shell may
/// have another order. Each comes with whether it is a shim, for which a version manager selects
/// the program.
fn found(name: &str, entries: &[PathBuf], cwd: Option<&[PathBuf]>) -> Vec<(PathBuf, bool)> {
    let mut found = Vec::new();
    for entry in entries {
        if SYSTEM.iter().any(|system| entry == Path::new(system)) {
            continue;
        }
        let directories: Vec<PathBuf> = if entry.is_absolute() {
            vec![entry.clone()]
        } else {
            let places = cwd.unwrap_or_default().iter();
            places.map(|place| place.join(entry)).collect()
        };
        for directory in directories {
            let file = directory.join(name);
            if fs::metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
                let shim = directory.ends_with("shims");
                found.push((real_path::resolve_links(&directory).join(name), shim));
                found.push((real_path::resolve_links(&file), shim));
            }
        }
    }
    found
}

/// Returns why this program starts one that the workspace selects, if it does.
fn pin(name: &str, shimmed: bool, cwd: Option<&[PathBuf]>, home: Option<&Path>) -> Option<String> {
    let rust = RUST.contains(&name);
    if !rust && !shimmed && !["go", "dotnet"].contains(&name) {
        return None;
    }
    let Some(places) = cwd else {
        return Some(format!("where {name} would run is not known"));
    };
    let chooses =
        |file: PathBuf| format!("{} chooses the program that {name} starts", file.display());
    for directory in places.iter().flat_map(|place| place.ancestors()) {
        let there = |file: &str| {
            let file = directory.join(file);
            fs::symlink_metadata(&file).is_ok().then_some(file)
        };
        let says = |file: &str, word: &str| {
            let found = there(file)?;
            // A file that cannot be read may say anything.
            let Ok(text) = read_regular(&found) else {
                return Some(found);
            };
            let text = String::from_utf8_lossy(&text);
            text.lines()
                .any(|line| line.trim_start().starts_with(word))
                .then_some(found)
        };
        let pinned = match name {
            _ if rust => {
                // The configuration in the home directory is the user's own.
                let own = home == Some(directory);
                let config = || there(".cargo/config.toml").or_else(|| there(".cargo/config"));
                there("rust-toolchain.toml")
                    .or_else(|| there("rust-toolchain"))
                    .or_else(|| config().filter(|_| !own && name.starts_with("cargo")))
            }
            "go" => says("go.work", "toolchain").or_else(|| says("go.mod", "toolchain")),
            "dotnet" => there("global.json"),
            _ => None,
        };
        let shim = || {
            let mut files = VERSIONS.iter().filter(|_| shimmed);
            files.find_map(|file| there(file))
        };
        if let Some(file) = pinned.or_else(shim) {
            return Some(chooses(file));
        }
    }
    None
}
