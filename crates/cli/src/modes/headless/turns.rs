//! One message after the other, each with one result.

use haft_agent::{Agent, EndReason, Prompt, RunResult};
use serde_json::Value;

use super::{
    background::Background,
    input::Queue,
    output::Output,
    session::SessionAccess,
    slash::{Commands, PromptMeaning},
    structured_output::{self, Shape},
};
use crate::{exit::Exit, signals::Signals};

/// One message after the other.
pub(super) struct Turns<'a> {
    pub(super) agent: &'a mut Agent,
    pub(super) queue: &'a Queue,
    pub(super) background: Background,
    pub(super) output: &'a Output,
    pub(super) signals: &'a Signals,
    pub(super) shape: Option<&'a Shape>,
    pub(super) session: &'a SessionAccess,
    pub(super) fail_on_deny: bool,
    pub(super) commands: Commands,
}

/// Why the model is asked.
pub(super) enum Turn {
    /// Somebody said this.
    Message(Prompt),
    /// Something ended in the background.
    News,
}

impl Turns<'_> {
    /// Until nothing more comes or something ends it.
    pub(super) async fn run(&mut self, first: Prompt) -> anyhow::Result<Exit> {
        let control = self.agent.control();
        let mut next = Some(Turn::Message(first));
        let mut failed = false;
        let mut denied = false;
        while let Some(turn) = next {
            self.output.put_state("running");
            self.session.look(self.agent);
            self.queue.run_begins();
            let (ended, fitted) = self.answer(turn).await;
            self.queue.run_ended(&control);
            self.session.look(self.agent);
            if self.signals.told() == Some(Exit::Terminated) {
                return Ok(Exit::Terminated);
            }
            failed = ended.is_error() || matches!(fitted, Some(Err(_)));
            denied |= !ended.permission_denials.is_empty();
            self.output.put_result(&ended, fitted);
            if let Some(exit) = self.signals.told() {
                return Ok(exit);
            }
            if self.output.has_failed() {
                break;
            }
            next = self.next().await?;
        }
        if !self.output.has_failed() {
            self.signals.until_told(self.background.close()).await;
        }
        Ok(match self.signals.told() {
            Some(exit) => exit,
            None if failed => Exit::Usage,
            None if denied && self.fail_on_deny => Exit::CallFailed,
            None => Exit::Success,
        })
    }

    /// What is next; `None`: nothing more comes.
    async fn next(&mut self) -> anyhow::Result<Option<Turn>> {
        let mut idle = false;
        loop {
            if !idle && self.queue.is_empty() && self.background.is_quiet() {
                idle = true;
                self.output.put_state("idle");
            }
            let coming = tokio::select! {
                biased;
                coming = self.queue.next() => coming?,
                () = self.background.has_news(), if !self.queue.is_closed() => {
                    return Ok(Some(Turn::News));
                }
                () = self.agent.woken(), if !self.queue.is_closed() => {
                    return Ok(Some(Turn::News));
                }
                () = self.background.agents_are_over(), if !idle => continue,
                () = self.signals.wait() => return Ok(None),
            };
            if let Some(prompt) = coming {
                return Ok(Some(Turn::Message(prompt)));
            }
            let news = self.signals.until_told(self.background.news_of_agents());
            return Ok((news.await == Some(true)).then_some(Turn::News));
        }
    }

    /// The answer to one message, asked for again while it has not the shape it must have; with it, that
    /// shape or why there is none.
    async fn answer(&mut self, turn: Turn) -> (RunResult, Option<Result<Value, String>>) {
        let turn = match turn {
            Turn::Message(prompt) => {
                let meant = self
                    .commands
                    .read(prompt, self.agent, self.output, self.signals);
                match meant.await {
                    PromptMeaning::Said(prompt) => Turn::Message(prompt),
                    PromptMeaning::Answered(ended) => return (*ended, None),
                }
            }
            news => news,
        };
        let mut ended = self.whole(turn).await;
        let Some(shape) = self.shape else {
            return (ended, None);
        };
        let mut retries = 0;
        loop {
            if ended.is_error() || ended.reason != EndReason::Completed {
                return (ended, None);
            }
            let why = match shape.fits(&ended.text) {
                Ok(value) => return (ended, Some(Ok(value))),
                Err(why) => why,
            };
            if retries == structured_output::MOST_RETRIES {
                return (ended, Some(Err(why)));
            }
            retries += 1;
            self.output.goes_on();
            let again = self.whole(Turn::Message(why.into())).await;
            ended = structured_output::together(ended, again);
        }
    }

    /// Where there is to be one result, what subagents come to in the background belongs to it.
    async fn whole(&mut self, turn: Turn) -> RunResult {
        let mut ended = self.once(turn).await;
        while !self.output.tells_each_result() && !ended.is_error() {
            let news = self.signals.until_told(self.background.news_of_agents());
            if news.await != Some(true) {
                break;
            }
            self.output.goes_on();
            let again = self.once(Turn::News).await;
            ended = structured_output::together(ended, again);
        }
        ended
    }

    async fn once(&mut self, turn: Turn) -> RunResult {
        let control = self.agent.control();
        let (agent, output) = (&mut *self.agent, self.output);
        let run = async move {
            match turn {
                Turn::Message(prompt) => agent.run(prompt, output).await,
                Turn::News => agent.run_notices(output).await,
            }
        };
        tokio::pin!(run);
        tokio::select! {
            biased;
            ended = &mut run => ended,
            () = self.signals.wait() => {
                control.interrupt();
                run.await
            }
        }
    }
}
