//! The preparation of an undo by identities: entries that it removes are moved to a folder of the
//! undo, and not copied.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_witness::FileId;

use super::plan::{UndoPlan, observe_path};
use crate::error::JournalError;
use crate::undo::UndoHistory;
use crate::undo::keep::unique_name;
use crate::undo::object_restoration::{object_name, staying};
use crate::undo::record::{RecordState, UnreadFileStamp};
use crate::undo::restore::RestoreTask;
use crate::witness::identity;

/// A file in place of which a larger one is restored is stored as a whole.
const COPIED: u64 = 64 << 20;

impl UndoHistory {
    /// Replaces the identities of the records by the present ones, and chooses what the undo moves
    /// to its folder. Returns the name of the folder.
    pub(super) fn keep_objects(
        &self,
        call: &str,
        plan: &mut UndoPlan,
    ) -> Result<String, JournalError> {
        let store = self.store();
        store.make_folder().map_err(|error| store.failed(error))?;
        let device = fs::metadata(store.folder())
            .map_err(|error| store.failed(error))?
            .dev();
        self.add_changed_links(&mut plan.tasks)?;
        identify(&mut plan.tasks, store.kept_folder());
        for task in &mut plan.tasks {
            let is_large = task
                .seen
                .as_ref()
                .is_some_and(|seen| seen.size > COPIED && seen.links == 1);
            if is_large && task.now_id == task.to_id && task.now.hash() != task.to.hash() {
                task.to_id = None;
            }
        }
        let name = unique_name(call);
        let folder = store.kept_folder().join(&name).join("objects");
        let needed: HashSet<FileId> = plan
            .tasks
            .iter()
            .filter(|task| task.to.is_present())
            .filter_map(|task| task.to_id)
            .collect();
        let staying = staying(&plan.tasks);
        for (task, stays) in plan.tasks.iter_mut().zip(staying) {
            let (Some(seen), Some(id)) = (&task.seen, task.now_id.or_else(|| identity(&task.path)))
            else {
                continue;
            };
            if stays
                || seen.device != device
                || needed.contains(&id)
                || !is_stored(&task.now, store.kept_folder())
            {
                continue;
            }
            task.now_id = Some(id);
            task.now = RecordState::Moved {
                to: folder.join(object_name(id)),
                seal: UnreadFileStamp::from_stamp(seen),
            };
        }
        Ok(name)
    }

    /// Adds the stored hard links of files that were changed before they were removed: other names
    /// may share the present content, so redo must restore it.
    fn add_changed_links(&self, tasks: &mut Vec<RestoreTask>) -> Result<(), JournalError> {
        let kept = self.store().kept_folder();
        let mut links: BTreeMap<PathBuf, RecordState> = BTreeMap::new();
        for task in tasks.iter().filter(|task| task.to.hash().is_some()) {
            if let Some(link) = task.to.kept_below(kept) {
                links.insert(link.to_path_buf(), task.to.clone());
            }
        }
        for (path, state) in links {
            let looked = observe_path(&path)?;
            let is_known = tasks.iter().any(|task| task.path == path);
            if looked.entry.is_none() || is_known {
                continue;
            }
            tasks.push(RestoreTask {
                now: looked.state(&state),
                now_id: identity(&path),
                seen: looked.entry.map(|entry| entry.stamp),
                to: RecordState::Absent,
                to_id: None,
                mtime: None,
                path,
            });
        }
        Ok(())
    }

    /// Returns whether the entry gets another path without a change of its content.
    pub(super) fn is_only_moved(
        &self,
        task: &RestoreTask,
        targets: &HashMap<FileId, Option<String>>,
    ) -> bool {
        let target = task.now_id.and_then(|id| targets.get(&id));
        target.is_some_and(|target| target.is_none() || target.as_deref() == task.now.hash())
    }
}

/// Returns whether an entry in this state is moved to the folder of the undo if it is removed.
fn is_stored(state: &RecordState, kept: &Path) -> bool {
    match state {
        RecordState::Regular { .. } | RecordState::Opaque { .. } | RecordState::Grown { .. } => {
            true
        }
        RecordState::Moved { to, .. } => !to.starts_with(kept),
        _ => false,
    }
}

/// Replaces recorded identities by the present ones: an undo in between may have created an entry
/// again.
fn identify(tasks: &mut [RestoreTask], kept: &Path) {
    let mut present: HashMap<FileId, FileId> = HashMap::new();
    for task in tasks.iter().filter(|task| task.now.is_present()) {
        if let (Some(recorded), Some(id)) = (task.now_id, identity(&task.path)) {
            present.insert(recorded, id);
        }
    }
    for task in tasks.iter() {
        if let (Some(recorded), Some(kept)) = (task.to_id, task.to.kept_below(kept))
            && let Some(id) = identity(kept)
        {
            present.entry(recorded).or_insert(id);
        }
    }
    for task in tasks {
        let replace = |id: &mut Option<FileId>| {
            if let Some(known) = id.and_then(|id| present.get(&id)) {
                *id = Some(*known);
            }
        };
        replace(&mut task.now_id);
        replace(&mut task.to_id);
    }
}
