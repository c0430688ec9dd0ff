//! One message after the other, each with one result.

use haft_agent::{Agent, Ended, Prompt, Reason};
use serde_json::Value;

use super::{
    input::Queue,
    output::Output,
    shape::{self, Shape},
    signals::Signals,
};
use crate::exit::Exit;

/// What stands for a message where a hook wakes the model; what it says comes right behind.
const WOKEN: &str = "<system-reminder>\nA hook that ran in the background has something for you.\n</system-reminder>";

/// One message after the other.
pub(super) struct Turns<'a> {
    pub(super) agent: &'a mut Agent,
    pub(super) queue: &'a Queue,
    pub(super) output: &'a Output,
    pub(super) signals: &'a Signals,
    pub(super) shape: Option<&'a Shape>,
    pub(super) fail_on_deny: bool,
}

impl Turns<'_> {
    /// Until nothing more comes or something ends it.
    pub(super) async fn run(&mut self, first: Prompt) -> anyhow::Result<Exit> {
        let control = self.agent.control();
        let mut next = Some(first);
        let mut failed = false;
        let mut denied = false;
        while let Some(prompt) = next {
            self.output.put_state("running");
            self.queue.run_begins();
            let (ended, fitted) = self.answer(prompt).await;
            self.queue.run_ended(&control);
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
            if self.queue.is_empty() {
                self.output.put_state("idle");
            }
            let coming = self.signals.until_told(self.next()).await;
            next = coming.transpose()?.flatten();
        }
        Ok(match self.signals.told() {
            Some(exit) => exit,
            None if failed => Exit::Usage,
            None if denied && self.fail_on_deny => Exit::CallFailed,
            None => Exit::Success,
        })
    }

    /// What is to be answered next: a message, or a hook that wakes the model. `None`: nothing more
    /// comes.
    async fn next(&self) -> anyhow::Result<Option<Prompt>> {
        tokio::select! {
            biased;
            next = self.queue.next() => next,
            () = self.agent.woken() => Ok(Some(WOKEN.into())),
        }
    }

    /// The answer to one message, asked for again while it has not the shape it must have; with it, that
    /// shape or why there is none.
    async fn answer(&mut self, prompt: Prompt) -> (Ended, Option<Result<Value, String>>) {
        let mut ended = self.once(prompt).await;
        let Some(shape) = self.shape else {
            return (ended, None);
        };
        let mut retries = 0;
        loop {
            if ended.is_error() || ended.reason != Reason::Completed {
                return (ended, None);
            }
            let why = match shape.fits(&ended.text) {
                Ok(value) => return (ended, Some(Ok(value))),
                Err(why) => why,
            };
            if retries == shape::MOST_RETRIES {
                return (ended, Some(Err(why)));
            }
            retries += 1;
            self.output.goes_on();
            let again = self.once(why.into()).await;
            ended = shape::together(ended, again);
        }
    }

    async fn once(&mut self, prompt: Prompt) -> Ended {
        let control = self.agent.control();
        let run = self.agent.run(prompt, self.output);
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
