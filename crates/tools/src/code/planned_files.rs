//! Simulates the steps of a server's plan, without changing files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use haft_contract::CallContext;
use haft_journal::DecodedText;
use haft_lsp::{EditStep, LspClient, OnExisting, PlannedEdits, edits, types::LspTextEdit, uri};

use crate::{fs::PlannedFileChange, paths::shown};

/// The maximum size of a file that a plan may change, in bytes.
const MAX_SIZE: u64 = 50 << 20;
/// The maximum number of files in a plan.
const MAX_FILES: usize = 2000;

/// Returns the new content of every file that changes. The error is the reason why the plan cannot
/// be applied.
pub(super) fn simulate_plan(
    edits: &PlannedEdits,
    client: &LspClient,
    cx: &CallContext,
) -> Result<Vec<PlannedFileChange>, String> {
    let mut tree = PlannedTree {
        files: BTreeMap::new(),
        client,
        cx,
    };
    for step in &edits.steps {
        tree.apply_step(step)?;
    }
    Ok(tree.changes())
}

/// The files of a plan, in their present simulated state.
struct PlannedTree<'a> {
    files: BTreeMap<PathBuf, PlannedState>,
    client: &'a LspClient,
    cx: &'a CallContext,
}

/// The simulated state of a file.
struct PlannedState {
    /// The content on disk.
    old: Option<Vec<u8>>,
    /// The simulated content.
    now: Option<Vec<u8>>,
    places: usize,
    moved_from: Option<PathBuf>,
}

impl PlannedTree<'_> {
    fn apply_step(&mut self, step: &EditStep) -> Result<(), String> {
        match step {
            EditStep::Text {
                uri,
                version,
                edits,
            } => self.edit(&self.path(uri)?, *version, edits),
            EditStep::Create { uri, existing } => {
                let path = self.path(uri)?;
                if self.is_free(&path, *existing)? {
                    let state = self.state(&path)?;
                    (state.now, state.moved_from) = (Some(Vec::new()), None);
                }
                Ok(())
            }
            EditStep::Rename { old, new, existing } => {
                let (old, new) = (self.path(old)?, self.path(new)?);
                self.rename(&old, &new, *existing)
            }
            EditStep::Delete {
                uri,
                may_be_missing,
            } => {
                let path = self.path(uri)?;
                self.refuse_link(&path)?;
                let name = shown(&path, &self.cx.cwd);
                let state = self.state(&path)?;
                if state.now.take().is_none() && !may_be_missing {
                    return Err(format!("{name}, which is to be removed, does not exist"));
                }
                state.moved_from = None;
                Ok(())
            }
        }
    }

    /// Returns the path of a file, if it may be changed.
    fn path(&self, address: &str) -> Result<PathBuf, String> {
        let path = uri::to_path(address).ok_or_else(|| format!("{address} is not a file"))?;
        let permissions = &self.cx.permissions;
        let mut open = permissions.directories.iter();
        let is_plain = path
            .components()
            .all(|part| !matches!(part, std::path::Component::ParentDir));
        let inside = is_plain && open.any(|open| path.starts_with(open));
        if !inside || permissions.locked.hides(&path) {
            let name = shown(&path, &self.cx.cwd);
            return Err(format!("{name} may not be changed"));
        }
        Ok(path)
    }

    fn state(&mut self, path: &Path) -> Result<&mut PlannedState, String> {
        if !self.files.contains_key(path) {
            if self.files.len() >= MAX_FILES {
                return Err(format!("it changes more than {MAX_FILES} files"));
            }
            let old = read(path).map_err(|why| format!("{} {why}", shown(path, &self.cx.cwd)))?;
            let state = PlannedState {
                now: old.clone(),
                old,
                places: 0,
                moved_from: None,
            };
            self.files.insert(path.to_path_buf(), state);
        }
        let missing = || "its state is unknown".to_owned();
        self.files.get_mut(path).ok_or_else(missing)
    }

    /// Returns whether a file may be created at a path.
    fn is_free(&mut self, path: &Path, existing: OnExisting) -> Result<bool, String> {
        let name = shown(path, &self.cx.cwd);
        match (self.state(path)?.now.is_some(), existing) {
            (false, _) | (true, OnExisting::Overwrite) => Ok(true),
            (true, OnExisting::Leave) => Ok(false),
            (true, OnExisting::Refuse) => Err(format!("{name} already exists")),
        }
    }

    /// Fails for links: a plan that moves or removes a link does not mean the link itself.
    fn refuse_link(&self, path: &Path) -> Result<(), String> {
        match fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            true => Err(format!("{} is a link", shown(path, &self.cx.cwd))),
            false => Ok(()),
        }
    }

    fn rename(&mut self, old: &Path, new: &Path, existing: OnExisting) -> Result<(), String> {
        self.refuse_link(old)?;
        self.refuse_link(new)?;
        if old == new || !self.is_free(new, existing)? {
            return Ok(());
        }
        let name = shown(old, &self.cx.cwd);
        let from = self.state(old)?;
        let Some(content) = from.now.take() else {
            return Err(format!("{name}, which is to be renamed, does not exist"));
        };
        let places = std::mem::take(&mut from.places);
        // If the file was moved before, the origin is its first location.
        let origin = from.moved_from.take();
        let origin = origin.or_else(|| from.old.is_some().then(|| old.to_path_buf()));
        let to = self.state(new)?;
        to.now = Some(content);
        to.places = places;
        to.moved_from = origin.filter(|origin| origin != new);
        Ok(())
    }

    fn edit(
        &mut self,
        path: &Path,
        version: Option<i64>,
        edits: &[LspTextEdit],
    ) -> Result<(), String> {
        let name = shown(path, &self.cx.cwd);
        let encoding = self.client.encoding();
        let open = self.client.document(path);
        if let (Some(version), Some(open)) = (version, &open)
            && version != open.version
        {
            return Err(format!(
                "the server means another version of {name}; try again"
            ));
        }
        let is_untouched = !self.files.contains_key(path);
        let state = self.state(path)?;
        let Some(content) = &state.now else {
            return Err(format!("{name} does not exist"));
        };
        let decoded = DecodedText::decode(content)
            .ok_or_else(|| format!("{name} is not text that can be written back exactly"))?;
        if is_untouched && open.is_some_and(|open| *open.text != *decoded.text) {
            return Err(format!(
                "{name} has changed since the server saw it; try again"
            ));
        }
        let text = edits::apply(&decoded.text, edits, encoding)
            .map_err(|error| format!("{name}: {error}"))?;
        let content = decoded.encoded(&text).map_err(|character| {
            format!("{name} is written in an encoding that has no \"{character}\"")
        })?;
        state.now = Some(content);
        state.places += edits.len();
        Ok(())
    }

    fn changes(self) -> Vec<PlannedFileChange> {
        let changes = self
            .files
            .into_iter()
            .map(|(path, state)| PlannedFileChange {
                path,
                old: state.old,
                new: state.now,
                places: state.places,
                moved_from: state.moved_from,
            });
        changes.filter(|change| change.old != change.new).collect()
    }
}

/// Returns the content of a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
        Ok(_) => fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?,
    };
    if found.is_dir() {
        return Err("is a folder: only files are created, renamed or removed".to_owned());
    }
    if !found.is_file() || found.len() > MAX_SIZE {
        return Err("is not a file that can be changed".to_owned());
    }
    let content = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    Ok(Some(content))
}
