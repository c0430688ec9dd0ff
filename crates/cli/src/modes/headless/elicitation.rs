//! Forwards the elicitation requests of MCP servers to the SDK client unchanged.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use haft::BoxFuture;
use haft_host::{ElicitationAnswer, ElicitationHost, ElicitationKind, ServerElicitation};
use haft_protocol::{ElicitationReply, ElicitationRequest, SessionRequest};
use serde_json::Value;

use super::channel::ControlChannel;

/// Asks a client that has sent `initialize`. After one error answer the client is not asked again,
/// because an error is the only sign that it does not support these requests.
pub(super) struct ProgramElicitations {
    channel: Arc<ControlChannel>,
    is_unable: AtomicBool,
}

impl ProgramElicitations {
    pub(super) fn new(channel: Arc<ControlChannel>) -> Self {
        Self {
            channel,
            is_unable: AtomicBool::new(false),
        }
    }
}

impl ElicitationHost for ProgramElicitations {
    fn can_show_forms(&self) -> bool {
        self.channel.is_initialized()
            && !self.channel.is_closed()
            && !self.is_unable.load(Ordering::Relaxed)
    }

    fn elicit<'a>(
        &'a self,
        asked: &'a ServerElicitation,
    ) -> BoxFuture<'a, Option<ElicitationAnswer>> {
        Box::pin(async move {
            let waits = self.channel.output.waits();
            let request = SessionRequest::Elicitation(Box::new(request(asked)));
            let reply = self.channel.ask(request).await;
            drop(waits);
            match reply {
                Ok(reply) => Some(to_elicitation_answer(reply.into())),
                Err(why) => {
                    tracing::debug!(
                        why,
                        "the client does not show forms of MCP servers to its user"
                    );
                    self.is_unable.store(true, Ordering::Relaxed);
                    None
                }
            }
        })
    }
}

fn request(asked: &ServerElicitation) -> ElicitationRequest<'_> {
    let plain = ElicitationRequest {
        mcp_server_name: (&asked.server).into(),
        message: (&asked.message).into(),
        mode: None,
        url: None,
        elicitation_id: None,
        requested_schema: None,
    };
    match &asked.kind {
        ElicitationKind::Form { schema } => ElicitationRequest {
            mode: Some("form".into()),
            requested_schema: Some(std::borrow::Cow::Borrowed(schema)),
            ..plain
        },
        ElicitationKind::Url { url, id } => ElicitationRequest {
            mode: Some("url".into()),
            url: Some(url.into()),
            elicitation_id: Some(id.into()).filter(|_| !id.is_empty()),
            ..plain
        },
    }
}

/// Converts the client's reply. Anything other than accept and decline is a cancellation.
fn to_elicitation_answer(reply: ElicitationReply) -> ElicitationAnswer {
    match reply.action.as_deref() {
        Some("accept") => {
            ElicitationAnswer::Accept(reply.content.map_or(Value::Null, Value::Object))
        }
        Some("decline") => ElicitationAnswer::Decline,
        _ => ElicitationAnswer::Cancel,
    }
}
