//! Creates the missing cache directories of tools, such as package managers, before a command runs.
//! A tool could not create them inside the sandbox. Unused ones are removed at the end of the
//! session.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_contract::Confinement;

/// The folders that were created, parents first.
#[derive(Debug, Default)]
pub(crate) struct CreatedCaches(Mutex<Vec<PathBuf>>);

impl CreatedCaches {
    /// Creates the caches that an unconfined tool would create itself. If that fails for one, the
    /// tool reports it.
    pub(crate) fn make(&self, confinement: &Confinement) {
        let missing = confinement.caches.iter().filter(|cache| !cache.exists());
        for cache in missing {
            let above = cache.ancestors().take_while(|above| !above.exists());
            let mut new: Vec<&Path> = above.collect();
            new.reverse();
            for folder in new {
                if fs::create_dir(folder).is_err() {
                    break;
                }
                self.list(|made| made.push(folder.to_path_buf()));
            }
        }
    }

    /// Removes the folders that no tool has used.
    pub(crate) fn remove_empty(&self) {
        let made = self.list(std::mem::take);
        for folder in made.iter().rev() {
            // A folder that is not empty remains.
            let _ = fs::remove_dir(folder);
        }
    }

    fn list<T>(&self, with: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for CreatedCaches {
    fn drop(&mut self) {
        self.remove_empty();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_no_tool_used_is_gone_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at(".cache")).unwrap();
        let confinement = Confinement {
            caches: Arc::from([at(".cache/pip"), at(".npm/_cacache"), at("go/pkg/mod")]),
            ..Confinement::default()
        };
        let made = CreatedCaches::default();
        made.make(&confinement);
        made.make(&confinement);
        assert!(confinement.caches.iter().all(|cache| cache.is_dir()));
        fs::write(at(".npm/_cacache/x"), "").unwrap();
        drop(made);
        assert!(at(".npm/_cacache/x").exists() && at(".cache").is_dir());
        assert!(!at(".cache/pip").exists() && !at("go").exists());
    }
}
