//! A model that replies at a pace that viewers can follow, for demos.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use haft_contract::CancellationToken;
use haft_models::{EventStream, Model, ModelEvent, ModelRequest};

/// The pace of a model's replies.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamPace {
    /// The delay before a reply.
    pub thought: Duration,
    /// The delay for each word.
    pub word: Duration,
}

impl StreamPace {
    /// Wraps a model so that it replies at this pace.
    pub(crate) fn around(self, model: impl Model + 'static) -> Arc<dyn Model> {
        Arc::new(PacedModel {
            model: Arc::new(model),
            pace: self,
        })
    }
}

#[derive(Debug)]
struct PacedModel {
    model: Arc<dyn Model>,
    pace: StreamPace,
}

impl Model for PacedModel {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let pace = self.pace;
        let events = self.model.stream(request, cancel).flat_map(|event| {
            stream::iter(match event {
                Ok(ModelEvent::Text { index, text }) => split_words(&text)
                    .map(|text| Ok(ModelEvent::Text { index, text }))
                    .collect(),
                other => vec![other],
            })
        });
        let paced = events.then(move |event| async move {
            let pause = match event {
                Ok(ModelEvent::Start { .. }) => pace.thought,
                Ok(ModelEvent::Text { .. }) => pace.word,
                _ => Duration::ZERO,
            };
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            event
        });
        paced.boxed()
    }
}

/// Splits a text into words, each with the space after it.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
    words.into_iter()
}
