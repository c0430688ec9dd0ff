//! The small model that reads pages.

use std::sync::Arc;

use haft_agent::{AgentHandle, ModelSettings};
use haft_contract::{BoxFuture, Content, SmallModel};
use haft_models::{Conversation, Model, ModelRequest, RequestPrefix, SystemBlock};

use crate::{Environment, model_names::ModelNames};

/// The maximum number of tokens in an answer.
const MAX_TOKENS: u32 = 4096;

/// Returns the name of the small model, if it is configured.
pub(crate) fn small_model_name(environment: &Environment) -> Option<String> {
    let named = |name: &str| {
        let value = environment.variable(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    named("ANTHROPIC_SMALL_FAST_MODEL").or_else(|| named("ANTHROPIC_DEFAULT_HAIKU_MODEL"))
}

/// Sends questions to the small model of the session's provider.
pub(crate) struct PageSummarizer {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: ModelSettings,
    pub(crate) name: String,
    pub(crate) names: ModelNames,
    /// Receives the usage, which counts towards the session.
    pub(crate) control: AgentHandle,
}

impl SmallModel for PageSummarizer {
    fn ask<'a>(
        &'a self,
        instructions: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let name = self.names.resolve(&self.name).await?;
            let prefix = RequestPrefix::new(vec![SystemBlock::stable(instructions)], Vec::new());
            let mut conversation = Conversation::new();
            conversation.user([Content::text(text)]);
            let history = conversation.history();
            let mut request = ModelRequest::new(&*name, Arc::new(prefix), history);
            request.max_tokens = self.settings.max_tokens.min(MAX_TOKENS);
            let (text, usage) = haft_agent::ask(&*self.model, request).await;
            self.control.spend(name, usage);
            text.map_err(|error| error.to_string())
        })
    }
}
