//! What a person says, and what else is put into the conversation in their name. Everything goes into the transcript first.

use haft_contract::Content;
use uuid::Uuid;

use crate::{
    Added, Agent, AgentEvent, clock, hooks::RunContext, prompt::reminder, transcript::Kind,
};

/// What a person says.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The words, and what goes with them.
    pub content: Vec<Content>,
    /// The id of the message, where it has one.
    pub uuid: Option<Uuid>,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        vec![Content::text(text)].into()
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        vec![Content::text(text)].into()
    }
}

impl From<Vec<Content>> for Prompt {
    fn from(content: Vec<Content>) -> Self {
        Self {
            content,
            uuid: None,
        }
    }
}

impl Agent {
    /// Puts what people laid in folders, and what hooks want known, before the first words.
    pub(crate) async fn open(&mut self, to: RunContext<'_>) {
        let is_new = self.conversation.messages().len() == 0;
        let known = self.recall("session_start", to).await;
        let known = known.into_iter().filter(|_| is_new);
        let texts = known.chain(std::mem::take(&mut self.opening));
        let content: Vec<_> = texts.map(|text| Content::text(reminder(&text))).collect();
        if !content.is_empty() {
            self.add(content, Kind::Meta, None);
        }
    }

    /// Adds something in the user's name.
    pub(crate) fn add(&mut self, content: Vec<Content>, kind: Kind, uuid: Option<Uuid>) -> Uuid {
        let uuid = uuid.unwrap_or_else(clock::random_id);
        self.transcript.user(uuid, &content, kind);
        self.room.added(&content);
        self.conversation.user(content);
        uuid
    }

    pub(crate) fn add_told(
        &mut self,
        content: Vec<Content>,
        kind: Kind,
        by: Added,
        to: RunContext<'_>,
    ) {
        let uuid = self.add(content.clone(), kind, None);
        to.sink.on_event(&AgentEvent::Added { uuid, content, by });
    }

    pub(crate) fn add_context(&mut self, texts: Vec<String>, to: RunContext<'_>) {
        if texts.is_empty() {
            return;
        }
        let content = texts
            .iter()
            .map(|text| Content::text(reminder(text)))
            .collect();
        self.add_told(content, Kind::Meta, Added::Hook, to);
    }
}
