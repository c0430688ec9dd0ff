//! The door to files for one session: read, write, edit.
//!
//! Each mutation is lock → look → judge → commit → record. The checks that are
//! made before permission is asked run the same look and judge, without the rest.

mod editing;
mod writing;

pub use editing::Edited;
pub use writing::{Outcome, Written};

use std::path::{Path, PathBuf};

use crate::error::JournalError;
use crate::ledger::{Ledger, SeenBy, Sight};
use crate::nearby::nearby;
use crate::open::resolve;
use crate::page::{self, HASH_LIMIT, Page, PageRequest};
use crate::stamp::{ContentHash, Stamp};

/// Larger files are not loaded to be written or edited.
const LOAD_LIMIT: u64 = 512 << 20;
/// How much of a diff an error message carries.
const DIFF_CHARS: usize = 4_000;

/// What one session knows of the file system, and its only way to change it.
#[derive(Debug, Default)]
pub struct Journal {
    ledger: Ledger,
    root: Option<PathBuf>,
}

impl Journal {
    /// `root`: where to look for a file whose path is wrong but whose name is right.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self {
            ledger: Ledger::default(),
            root,
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Shows a page of a text file and records that it was seen.
    pub fn read(&self, path: &Path, request: &PageRequest) -> Result<Page, JournalError> {
        let resolved = resolve(path)?;
        if !resolved.exists {
            return Err(self.missing(path));
        }
        let (page, content) = page::read_page(&resolved.real, request)?;
        self.ledger
            .record(&resolved.real, page.sight.clone(), content);
        Ok(page)
    }

    fn missing(&self, path: &Path) -> JournalError {
        let near = nearby(path, self.root.as_deref());
        JournalError::DoesNotExist {
            path: path.to_path_buf(),
            near,
        }
    }

    /// Own writes count as seen, so that the next one needs no read.
    fn record_write(
        &self,
        real: &Path,
        stamp: Stamp,
        content: Vec<u8>,
        partial: bool,
    ) -> ContentHash {
        let hash = ContentHash::of(&content);
        let sight = Sight {
            hash: (stamp.size <= HASH_LIMIT).then_some(hash),
            settled: stamp.is_settled(),
            stamp,
            shown: None,
            partial,
            by: SeenBy::Write,
        };
        self.ledger.forget(real);
        self.ledger.record(real, sight, Some(content));
        hash
    }
}
