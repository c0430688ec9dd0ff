//! As fast as somebody can follow; or as fast as it goes.

use std::{io, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use haft::CancellationToken;
use haft_models::{EventStream, Model, ModelEvent, ModelRequest};

use crate::show::{self, Style};

const LETTER: Duration = Duration::from_millis(18);
const WORD: Duration = Duration::from_millis(45);
/// Before the model says something, and to look at what it did.
const THOUGHT: Duration = Duration::from_millis(900);

#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    fast: bool,
}

impl Pace {
    pub(super) fn new(fast: bool) -> Self {
        Self { fast }
    }

    /// The same model, speaking at this pace.
    pub(super) fn around(self, model: impl Model + 'static) -> Arc<dyn Model> {
        Arc::new(Paced {
            model: Arc::new(model),
            pace: self,
        })
    }

    async fn rest(self) {
        self.wait(THOUGHT).await;
    }

    /// What a person types.
    pub(super) async fn type_out(self, mark: &str, text: &str, style: Style) -> io::Result<()> {
        self.rest().await;
        show::drawn_part(&style.bold(mark))?;
        for line in style.wrap(text).lines() {
            for letter in line.chars() {
                show::drawn_part(&style.bold(&letter.to_string()))?;
                self.wait(LETTER).await;
            }
            show::line("")?;
        }
        self.rest().await;
        show::line("")
    }

    async fn wait(self, time: Duration) {
        if !self.fast {
            tokio::time::sleep(time).await;
        }
    }
}

#[derive(Debug)]
struct Paced {
    model: Arc<dyn Model>,
    pace: Pace,
}

impl Model for Paced {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let pace = self.pace;
        let events = self.model.stream(request, cancel).flat_map(|event| {
            stream::iter(match event {
                Ok(ModelEvent::Text { index, text }) => words(&text)
                    .map(|text| Ok(ModelEvent::Text { index, text }))
                    .collect(),
                other => vec![other],
            })
        });
        let paced = events.then(move |event| async move {
            match event {
                Ok(ModelEvent::Start { .. }) => pace.wait(THOUGHT).await,
                Ok(ModelEvent::Text { .. }) => pace.wait(WORD).await,
                _ => {}
            }
            event
        });
        paced.boxed()
    }
}

/// Each with the blank behind it.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
    words.into_iter()
}
