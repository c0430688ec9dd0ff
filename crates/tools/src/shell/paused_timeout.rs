//! A timeout that is paused while the user has to answer a question.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// A timeout with the number of open questions.
pub(crate) struct PausedTimeout {
    left: Duration,
    questions: Option<watch::Receiver<usize>>,
}

impl PausedTimeout {
    /// Creates a timeout. Without `questions` it is never paused.
    pub(crate) fn new(timeout: Duration, questions: Option<watch::Receiver<usize>>) -> Self {
        Self {
            left: timeout,
            questions,
        }
    }

    /// Waits until the timeout has expired.
    pub(crate) async fn wait(mut self) {
        loop {
            let Some(questions) = &mut self.questions else {
                return sleep(self.left).await;
            };
            if questions.wait_for(|open| *open == 0).await.is_err() {
                self.questions = None;
                continue;
            }
            let started = Instant::now();
            let is_ended = tokio::select! {
                () = sleep(self.left) => return,
                asked = questions.wait_for(|open| *open > 0) => asked.is_err(),
            };
            if is_ended {
                self.questions = None;
            }
            self.left = self.left.saturating_sub(started.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_open_questions_does_not_count() {
        let (open, questions) = watch::channel(0);
        let started = Instant::now();
        let timeout = PausedTimeout::new(Duration::from_secs(10), Some(questions));
        let waiting = tokio::spawn(timeout.wait());
        sleep(Duration::from_secs(4)).await;
        open.send_replace(1);
        sleep(Duration::from_secs(100)).await;
        open.send_replace(0);
        waiting.await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 110);
    }

    #[tokio::test(start_paused = true)]
    async fn without_questions_the_timeout_is_exact() {
        let started = Instant::now();
        let (open, questions) = watch::channel(0);
        drop(open);
        for questions in [None, Some(questions)] {
            PausedTimeout::new(Duration::from_secs(10), questions)
                .wait()
                .await;
        }
        assert_eq!(started.elapsed().as_secs(), 20);
    }
}
