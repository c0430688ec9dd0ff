//! The progress of a reply, for wrappers that may have to request it again.
//!
//! Every retry follows one rule: once a complete tool call has been handed out, it may be running,
//! and a second reply would call it again. So a reply is requested again only before that point.

use std::collections::HashSet;

use crate::{BlockStart, ModelEvent};

/// The events that the reader of a stream has received.
#[derive(Debug, Default)]
pub(crate) struct ReplyProgress {
    /// Whether the reader has received content that a second attempt would repeat.
    pub(crate) has_content: bool,
    /// Whether the reader has received a complete tool call.
    pub(crate) has_call: bool,
    open_calls: HashSet<usize>,
}

impl ReplyProgress {
    pub(crate) fn record(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::BlockStart { index, block } => {
                self.has_content = true;
                if matches!(block, BlockStart::ToolUse { .. }) {
                    self.open_calls.insert(*index);
                } else {
                    self.open_calls.remove(index);
                }
            }
            ModelEvent::BlockStop { index } => self.has_call |= self.open_calls.remove(index),
            ModelEvent::Discard => *self = Self::default(),
            ModelEvent::Retry { .. }
            | ModelEvent::Fallback { .. }
            | ModelEvent::ImagesDropped { .. } => {}
            _ => self.has_content = true,
        }
    }
}
