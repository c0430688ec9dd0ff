//! Removal of images that a provider rejects.

use std::sync::Arc;

use haft_contract::{Content, output::MediaSource};

use super::{Block, Conversation, ConversationEntry, Message, RequestHistory};

/// The maximum length of an image in base64 characters that providers accept.
const MAX_SIZE: usize = 5 * 1024 * 1024;

impl Conversation {
    /// Replaces every image in these messages by a note.
    pub fn drop_images(&mut self, messages: &[usize], note: &str) {
        drop_from(&mut self.entries, messages, note);
    }
}

impl RequestHistory {
    /// Like [`Conversation::drop_images`], but only for this request.
    pub(crate) fn drop_images(&mut self, messages: &[usize], note: &str) {
        drop_from(&mut self.entries, messages, note);
    }

    /// Returns the messages whose images a provider's error most likely refers to: the message that
    /// the error names (`messages.3.content…`), otherwise those with an image over the limit,
    /// otherwise the last message with an image.
    pub(crate) fn refused_images(&self, refusal: &str) -> Vec<usize> {
        let with = |check: &dyn Fn(&MediaSource) -> bool| -> Vec<usize> {
            let messages = self.messages().enumerate();
            let found = messages.filter(|(_, message)| images(message).any(check));
            found.map(|(index, _)| index).collect()
        };
        let all = with(&|_| true);
        if let Some(index) = named(refusal).filter(|index| all.contains(index)) {
            return vec![index];
        }
        let large = with(&|MediaSource::Base64 { data, .. }| data.len() > MAX_SIZE);
        if large.is_empty() {
            all.last().copied().into_iter().collect()
        } else {
            large
        }
    }

    /// Returns all messages with images.
    pub(crate) fn with_images(&self) -> Vec<usize> {
        let messages = self.messages().enumerate();
        let found = messages.filter(|(_, message)| images(message).next().is_some());
        found.map(|(index, _)| index).collect()
    }
}

/// Returns the `3` of `messages.3.content.0.image…`.
fn named(refusal: &str) -> Option<usize> {
    let (_, after) = refusal.split_once("messages.")?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn images(message: &Message) -> impl Iterator<Item = &MediaSource> {
    message.content.iter().flat_map(|block| {
        let inside = match block {
            Block::ToolResult(result) => result.content.as_slice(),
            _ => &[],
        };
        let own = match block {
            Block::Image { source } => Some(source),
            _ => None,
        };
        own.into_iter()
            .chain(inside.iter().filter_map(|content| match content {
                Content::Image { source } => Some(source),
                _ => None,
            }))
    })
}

fn drop_from(entries: &mut [Arc<ConversationEntry>], messages: &[usize], note: &str) {
    for index in messages {
        let Some(entry) = entries.get_mut(*index) else {
            continue;
        };
        let mut message = entry.message.clone();
        for block in &mut message.content {
            match block {
                Block::Image { .. } => *block = Block::text(note),
                Block::ToolResult(result) => {
                    for content in &mut result.content {
                        if matches!(content, Content::Image { .. }) {
                            *content = Content::text(note);
                        }
                    }
                }
                _ => {}
            }
        }
        *entry = ConversationEntry::new(message, entry.tools.clone());
    }
}
