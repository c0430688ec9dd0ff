//! The typing speed of the demo: readable, or without any delay.

use std::{io, time::Duration};

use haft_host::StreamPace;

use crate::show::{self, ConsoleStyle};

const LETTER: Duration = Duration::from_millis(18);
const WORD: Duration = Duration::from_millis(45);
/// The pause before the model replies, and before and after a prompt is typed.
const THOUGHT: Duration = Duration::from_millis(900);

#[derive(Debug, Clone, Copy)]
pub(super) struct DemoPace {
    fast: bool,
}

impl DemoPace {
    pub(super) fn new(fast: bool) -> Self {
        Self { fast }
    }

    /// Returns the pace of the scripted model's replies.
    pub(super) fn model_pace(self) -> StreamPace {
        match self.fast {
            true => StreamPace::default(),
            false => StreamPace {
                thought: THOUGHT,
                word: WORD,
            },
        }
    }

    async fn pause(self) {
        self.wait(THOUGHT).await;
    }

    /// Prints a user prompt letter by letter.
    pub(super) async fn type_out(
        self,
        mark: &str,
        text: &str,
        style: ConsoleStyle,
    ) -> io::Result<()> {
        self.pause().await;
        show::drawn_part(&style.bold(mark))?;
        for line in style.wrap(text).lines() {
            for letter in line.chars() {
                show::drawn_part(&style.bold(&letter.to_string()))?;
                self.wait(LETTER).await;
            }
            show::line("")?;
        }
        self.pause().await;
        show::line("")
    }

    async fn wait(self, time: Duration) {
        if !self.fast {
            tokio::time::sleep(time).await;
        }
    }
}
