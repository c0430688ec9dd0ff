//! Removal of old tool results, to free context.

use haft_contract::Content;

use super::{Block, Conversation, ConversationEntry};

impl Conversation {
    /// Replaces tool results that are longer than the note by the note, in all but the last `keep`
    /// messages. The calls remain, and each still has a result. Returns the number of freed bytes.
    /// Only messages that change are serialized again.
    pub fn prune_results(&mut self, keep: usize, note: &str) -> usize {
        let old = self.entries.len().saturating_sub(keep);
        let mut freed = 0;
        for entry in &mut self.entries[..old] {
            let is_long = |block: &Block| match block {
                Block::ToolResult(result) => size(&result.content) > note.len(),
                _ => false,
            };
            if !entry.message.content.iter().any(is_long) {
                continue;
            }
            let mut message = entry.message.clone();
            for block in &mut message.content {
                if is_long(block)
                    && let Block::ToolResult(result) = block
                {
                    freed += size(&result.content) - note.len();
                    result.content = vec![Content::text(note)];
                }
            }
            *entry = ConversationEntry::new(message, entry.tools.clone());
        }
        freed
    }
}

fn size(content: &[Content]) -> usize {
    let sizes = content.iter().map(|content| match content {
        Content::Text { text } => text.len(),
        Content::Image { source } | Content::Document { source } => {
            let haft_contract::output::MediaSource::Base64 { data, .. } = source;
            data.len()
        }
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, ToolResult};

    #[test]
    fn old_long_results_give_way_and_new_ones_stay() {
        let mut conversation = Conversation::new();
        conversation.user([Content::text("go")]);
        for (id, text) in [
            ("a", "x".repeat(100)),
            ("b", "short".to_owned()),
            ("c", "y".repeat(100)),
        ] {
            let call = Block::ToolUse {
                id: id.to_owned(),
                name: "Read".to_owned(),
                input: serde_json::json!({}),
                extra: serde_json::Map::new(),
            };
            let message = Message::assistant(vec![call], "m");
            conversation
                .assistant(message, vec![ToolResult::text(id, text)])
                .unwrap();
        }
        let before = conversation.history();
        assert_eq!(conversation.prune_results(1, "[removed]"), 91);
        assert_eq!(conversation.prune_results(1, "[removed]"), 0);
        let texts: Vec<String> = conversation
            .messages()
            .flat_map(|message| &message.content)
            .filter_map(|block| match block {
                Block::ToolResult(result) => result.content[0].as_text().map(str::to_owned),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["[removed]", "short", &"y".repeat(100)]);
        // What did not change is still the same, serialized bytes included.
        let same = before.entries().iter().zip(&conversation.entries);
        let shared = same.filter(|(a, b)| std::sync::Arc::ptr_eq(a, b)).count();
        assert_eq!(shared, 6);
    }
}
