//! The hooks for requests of MCP servers to the user: a hook may answer instead of the user
//! (`Elicitation`) or change the user's answer (`ElicitationResult`).

use std::sync::{Arc, Weak};

use haft_agent::NoticeLevel;
use haft_engine::{
    Engine, SessionContext,
    hooks::{HandlerOutput, HookEventKind, HookFormAction, HookFormAnswer},
};
use haft_mcp::client::{ElicitationAnswer, ElicitationKind, ServerElicitation};
use serde_json::{Map, Value, json};

use crate::{event::EventEmitter, input::SharedState};

/// The elicitation hooks of a session. Holds only a weak reference to it.
pub(crate) struct ElicitationHooks {
    session: Weak<SharedState>,
    events: Arc<EventEmitter>,
    /// Whether there are elicitation hooks before the session is set up.
    is_expected: bool,
}

/// The engine and context of a session that is set up.
type ReadySession = (Arc<Engine>, SessionContext);

impl ElicitationHooks {
    /// Creates the hooks. `is_expected`: some were given with the first message.
    pub(crate) fn new(
        session: &Arc<SharedState>,
        events: &Arc<EventEmitter>,
        is_expected: bool,
    ) -> Self {
        Self {
            is_expected: is_expected
                || !session
                    .settings
                    .hooks
                    .has_no_handlers(HookEventKind::ELICITATION),
            session: Arc::downgrade(session),
            events: Arc::clone(events),
        }
    }

    /// Returns whether a hook may answer.
    pub(crate) fn may_answer(&self) -> bool {
        match self.session() {
            Some((engine, _)) => !engine.hooks().has_no_handlers(HookEventKind::ELICITATION),
            None => self.is_expected,
        }
    }

    /// Returns the answer that hooks give on the user's behalf, if any.
    pub(crate) async fn run_before(&self, asked: &ServerElicitation) -> Option<ElicitationAnswer> {
        let Some(session) = self.session() else {
            // Hooks cannot run yet. Cancel the request, because they might deny it.
            return self.is_expected.then_some(ElicitationAnswer::Cancel);
        };
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("mcp_server_name", json!(asked.server));
        put("message", json!(asked.message));
        put("mode", json!(mode(asked)));
        match &asked.kind {
            ElicitationKind::Form { schema } => put("requested_schema", schema.clone()),
            ElicitationKind::Url { url, id } => {
                put("url", json!(url));
                put("elicitation_id", json!(id))
            }
        };
        let answer = self.fire(&session, HookEventKind::ELICITATION, asked, fields);
        Some(answer_from_hook(answer.await?))
    }

    /// Returns the answer for the server, which hooks may change.
    pub(crate) async fn run_after(
        &self,
        asked: &ServerElicitation,
        answer: ElicitationAnswer,
    ) -> ElicitationAnswer {
        let Some(session) = self.session() else {
            return answer;
        };
        let (action, content) = match &answer {
            ElicitationAnswer::Accept(content) => (HookFormAction::Accept, content.clone()),
            ElicitationAnswer::Decline => (HookFormAction::Decline, Value::Null),
            ElicitationAnswer::Cancel => (HookFormAction::Cancel, Value::Null),
        };
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("mcp_server_name", json!(asked.server));
        put("action", json!(action.as_str()));
        if !content.is_null() {
            put("content", content.clone());
        }
        put("mode", json!(mode(asked)));
        if let ElicitationKind::Url { id, .. } = &asked.kind {
            put("elicitation_id", json!(id));
        }
        let changed = self.fire(&session, HookEventKind::ELICITATION_RESULT, asked, fields);
        match changed.await {
            None => answer,
            // Fields that the hook omits keep the user's values.
            Some(HookFormAnswer {
                action: HookFormAction::Accept,
                content: None,
            }) => ElicitationAnswer::Accept(content),
            Some(changed) => answer_from_hook(changed),
        }
    }

    /// Notifies the hooks that the user is asked.
    pub(crate) async fn notify_asked(&self, asked: &ServerElicitation) {
        let (kind, message) = match &asked.kind {
            ElicitationKind::Form { .. } => (
                "elicitation_dialog",
                format!("The MCP server {} asks: {}", asked.server, asked.message),
            ),
            ElicitationKind::Url { url, .. } => (
                "elicitation_url_dialog",
                format!(
                    "The MCP server {} asks you to visit {url}: {}",
                    asked.server, asked.message
                ),
            ),
        };
        self.notify(kind, "A server asks", &message).await;
    }

    /// Notifies the hooks of the user's answer.
    pub(crate) async fn notify_answered(
        &self,
        asked: &ServerElicitation,
        answer: &ElicitationAnswer,
    ) {
        let action = match answer {
            ElicitationAnswer::Accept(_) => HookFormAction::Accept,
            ElicitationAnswer::Decline => HookFormAction::Decline,
            ElicitationAnswer::Cancel => HookFormAction::Cancel,
        };
        let message = format!(
            "The MCP server {} received an answer: {}",
            asked.server,
            action.as_str()
        );
        self.notify(
            "elicitation_response",
            "A server received an answer",
            &message,
        )
        .await;
    }

    /// Notifies the hooks that the user has completed a server's request at its URL.
    pub(crate) fn notify_completed(&self, server: &str, id: &str) {
        let message = format!("The request of the MCP server {server} is complete ({id})");
        let (session, title) = (self.session.clone(), "A server's request is complete");
        haft_contract::spawn_boxed(async move {
            let set_up = session
                .upgrade()
                .and_then(|session| session.access.engine());
            if let Some((engine, context)) = set_up {
                let kind = "elicitation_complete";
                engine.notify(kind, title, &message, &context.cwd).await;
            }
        });
    }

    async fn notify(&self, kind: &str, title: &str, message: &str) {
        if let Some((engine, context)) = self.session() {
            engine.notify(kind, title, message, &context.cwd).await;
        }
    }

    fn session(&self) -> Option<ReadySession> {
        self.session.upgrade()?.access.engine()
    }

    async fn fire(
        &self,
        (engine, context): &ReadySession,
        event: HookEventKind,
        asked: &ServerElicitation,
        fields: Map<String, Value>,
    ) -> Option<HookFormAnswer> {
        let heard = engine.fire(event, &asked.server, fields, context).await;
        for HandlerOutput {
            label,
            output: said,
            ..
        } in &heard
        {
            if let Some(failure) = &said.failure {
                let text = format!("{label} hook error: {failure}");
                self.events.notice(NoticeLevel::Warning, text);
            }
        }
        HookFormAnswer::from_outputs(&heard)
    }
}

/// Returns the mode of a request.
fn mode(asked: &ServerElicitation) -> &'static str {
    match &asked.kind {
        ElicitationKind::Form { .. } => "form",
        ElicitationKind::Url { .. } => "url",
    }
}

fn answer_from_hook(answer: HookFormAnswer) -> ElicitationAnswer {
    match answer.action {
        HookFormAction::Accept => {
            let content = answer.content.map(Value::Object);
            ElicitationAnswer::Accept(content.unwrap_or_default())
        }
        HookFormAction::Decline => ElicitationAnswer::Decline,
        HookFormAction::Cancel => ElicitationAnswer::Cancel,
    }
}
