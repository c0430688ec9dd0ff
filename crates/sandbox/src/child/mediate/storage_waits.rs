//! The calls that wait because a file could not be stored for undo.

use haft_witness::FileId;

use super::witness::UnstoredObject;
use crate::{UnstoredFile, notify::NotifiedCall};

/// The waiting calls, by file: our process is asked once about each file.
#[derive(Default)]
pub(super) struct StorageWaits {
    waits: Vec<StorageWait>,
    /// Questions that were not sent yet.
    questions: Vec<(u32, UnstoredFile)>,
    last: u32,
}

struct StorageWait {
    question: u32,
    file: FileId,
    calls: Vec<NotifiedCall>,
}

impl StorageWaits {
    /// Adds a call that waits for the answer about a file.
    pub(super) fn hold(&mut self, unstored: UnstoredObject, call: NotifiedCall) {
        if let Some(wait) = self.waits.iter_mut().find(|wait| wait.file == unstored.id) {
            wait.calls.push(call);
            return;
        }
        self.last = self.last.wrapping_add(1);
        self.questions.push((self.last, unstored.file));
        self.waits.push(StorageWait {
            question: self.last,
            file: unstored.id,
            calls: vec![call],
        });
    }

    /// Returns the questions that were not sent yet.
    pub(super) fn take_questions(&mut self) -> Vec<(u32, UnstoredFile)> {
        std::mem::take(&mut self.questions)
    }

    /// Returns the file of an answered question, and the calls that waited for it.
    pub(super) fn take_calls(&mut self, question: u32) -> Option<(FileId, Vec<NotifiedCall>)> {
        let at = self
            .waits
            .iter()
            .position(|wait| wait.question == question)?;
        let wait = self.waits.swap_remove(at);
        Some((wait.file, wait.calls))
    }
}
