//! How far a reply got, for those who may have to ask for it again.
//!
//! The rule of every retry: once a complete tool call was handed out, it may be running, and a second
//! reply would call it a second time. So a reply is asked for again only before that point.

use std::collections::HashSet;

use crate::{BlockStart, ModelEvent};

/// What the reader of a stream has seen.
#[derive(Debug, Default)]
pub(crate) struct HandedOut {
    /// Something that a second attempt would say again.
    pub(crate) anything: bool,
    /// A complete tool call.
    pub(crate) call: bool,
    open_calls: HashSet<usize>,
}

impl HandedOut {
    pub(crate) fn note(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::BlockStart { index, block } => {
                self.anything = true;
                if matches!(block, BlockStart::ToolUse { .. }) {
                    self.open_calls.insert(*index);
                } else {
                    self.open_calls.remove(index);
                }
            }
            ModelEvent::BlockStop { index } => self.call |= self.open_calls.remove(index),
            ModelEvent::Discard => *self = Self::default(),
            ModelEvent::Retry { .. }
            | ModelEvent::Fallback { .. }
            | ModelEvent::ImagesDropped { .. } => {}
            _ => self.anything = true,
        }
    }
}
