//! Passes the questions of a session to the plain interface.

use haft::{ApprovalAnswer, ApprovalRequest, BoxFuture};
use haft_host::{QuestionHandler, UserQuestions};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::choices::NumberedQuestion;

/// A question with the channel for its answer.
pub(super) struct AskedQuestion {
    pub(super) question: NumberedQuestion,
    pub(super) answer: oneshot::Sender<ApprovalAnswer>,
}

/// Sends the questions of a session to the plain interface.
pub(super) struct PlainQuestions {
    pub(super) asks: mpsc::UnboundedSender<AskedQuestion>,
}

impl PlainQuestions {
    async fn put(&self, question: NumberedQuestion) -> ApprovalAnswer {
        let (answer, answered) = oneshot::channel();
        let _ = self.asks.send(AskedQuestion { question, answer });
        answered.await.unwrap_or(ApprovalAnswer::Unavailable)
    }
}

impl QuestionHandler for PlainQuestions {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(self.put(NumberedQuestion::permission(request)))
    }

    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let unanswered = asked.unanswered();
            let limit = asked.timeout;
            let answer = self.put(NumberedQuestion::for_user_questions(asked));
            match limit {
                Some(limit) => timeout(limit, answer).await.unwrap_or(unanswered),
                None => answer.await,
            }
        })
    }

    fn plan(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(self.put(NumberedQuestion::plan(request)))
    }
}
