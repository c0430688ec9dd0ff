//! Messages in, and what goes back.

use std::{sync::Arc, time::Duration};

use haft_contract::BoxFuture;
use hyper::{
    HeaderMap, Request, StatusCode,
    body::Incoming,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use tokio::sync::mpsc;

use super::{HttpState, Reply, headers, reply, sessions::HttpSession};
use crate::{
    Revision, RpcError, RpcId, RpcMessage,
    message::code,
    server::session::{McpSession, ReplyChannel},
};

/// An answer that comes within this time needs no stream.
const AT_ONCE: Duration = Duration::from_secs(2);
/// So many messages of one request wait to be read by its client.
const WAITING: usize = 256;

impl HttpState {
    /// Takes what is posted.
    pub(super) async fn post(&self, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        if let Err(refused) = check_kinds(&parts.headers) {
            return *refused;
        }
        let body = match self.body(body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let is_batch = body.trim_ascii_start().first() == Some(&b'[');
        let messages = RpcMessage::parse_all(&body);
        drop(body);
        let messages: Result<Vec<RpcMessage>, RpcError> =
            messages.and_then(|messages| messages.into_iter().collect());
        let messages = match messages {
            Ok(messages) => messages,
            Err(error) => {
                let answer = crate::server::stdio::unreadable(error);
                return reply::message(StatusCode::BAD_REQUEST, &answer);
            }
        };
        if let [RpcMessage::Request { method, params, .. }] = messages.as_slice()
            && headers::is_stateless(&parts.headers, method, params)
        {
            return self.post_stateless(&parts.headers, messages).await;
        }
        self.post_to_session(&parts.headers, messages, is_batch)
            .await
    }

    async fn post_to_session(
        &self,
        all: &HeaderMap,
        messages: Vec<RpcMessage>,
        is_batch: bool,
    ) -> Reply {
        let begins = matches!(
            messages.as_slice(),
            [RpcMessage::Request { method, .. }] if method == "initialize"
        );
        let session = match (headers::text(all, headers::SESSION), begins) {
            (None, true) => match self.sessions.begin().await {
                Ok(session) => session,
                Err(why) => return reply::error(StatusCode::SERVICE_UNAVAILABLE, &why),
            },
            (None, false) => {
                let words = "begin with `initialize`, and send the Mcp-Session-Id of its answer";
                return reply::error(StatusCode::BAD_REQUEST, words);
            }
            (Some(id), _) => match self.sessions.find(id) {
                Some(session) => session,
                None => {
                    let words = "this session is over; begin with `initialize`";
                    return reply::error(StatusCode::NOT_FOUND, words);
                }
            },
        };
        if let Err(error) = headers::version_of_session(all) {
            let answer = crate::server::stdio::unreadable(error);
            return reply::message(StatusCode::BAD_REQUEST, &answer);
        }
        if is_batch && session.mcp.revision() != Some(Revision::V2025_03_26) {
            let words = "batches are a part of the revision 2025-03-26 alone";
            return reply::error(StatusCode::BAD_REQUEST, words);
        }
        let (mut answer, failed) = {
            let sent = self.sent(&session.mcp, messages).await;
            let failed = matches!(sent.first, Some(RpcMessage::Answer { result: Err(_), .. }));
            let held = (SessionInUse(Arc::clone(&session)), sent.abandoned);
            (sent.parts.reply(StatusCode::OK, sent.first, held), failed)
        };
        if begins && failed {
            self.sessions.end(&session.id).await;
        } else if begins && let Ok(id) = HeaderValue::from_str(&session.id) {
            answer.headers_mut().insert(headers::SESSION, id);
        }
        answer
    }

    async fn post_stateless(&self, all: &HeaderMap, messages: Vec<RpcMessage>) -> Reply {
        let session = match self.sessions.stateless().await {
            Ok(session) => session,
            Err(why) => return reply::error(StatusCode::SERVICE_UNAVAILABLE, &why),
        };
        if let [RpcMessage::Request { id, method, params }] = messages.as_slice() {
            let checked = headers::check(all, method, params).and_then(|()| {
                let tool = params["name"].as_str().filter(|_| method == "tools/call");
                match tool.and_then(|tool| session.schema_with_headers(tool)) {
                    Some(schema) => headers::check_parameters(all, &schema, &params["arguments"]),
                    None => Ok(()),
                }
            });
            if let Err(error) = checked {
                let answer = RpcMessage::answer(id.clone(), Err(error));
                return reply::message(StatusCode::BAD_REQUEST, &answer);
            }
        }
        let sent = self.sent(&session, messages).await;
        let status = match &sent.first {
            Some(RpcMessage::Answer {
                result: Err(error), ..
            }) => status_of(error),
            _ => StatusCode::OK,
        };
        sent.parts.reply(status, sent.first, sent.abandoned)
    }

    /// Gives messages to a session, and waits a moment for the first that comes back.
    async fn sent(&self, session: &Arc<McpSession>, messages: Vec<RpcMessage>) -> SentMessages {
        let requests = messages.iter().filter_map(|message| match message {
            RpcMessage::Request { id, .. } => Some(id.clone()),
            _ => None,
        });
        let requests: Vec<RpcId> = requests.collect();
        let abandoned = Abandoned {
            session: Arc::clone(session),
            requests: requests.clone(),
        };
        let (sender, mut receiver) = mpsc::channel(WAITING);
        let channel: Arc<dyn ReplyChannel> = Arc::new(PostChannel(sender));
        for message in messages {
            session.receive(message, &channel);
        }
        drop(channel);
        if requests.is_empty() {
            return SentMessages {
                first: None,
                parts: AnswerParts::Nothing,
                abandoned,
            };
        }
        let first = tokio::time::timeout(AT_ONCE, receiver.recv()).await;
        let is_all = requests.len() == 1
            && matches!(first, Ok(Some(RpcMessage::Answer { id: Some(_), .. })));
        SentMessages {
            first: first.unwrap_or_default(),
            parts: match is_all {
                true => AnswerParts::One,
                false => AnswerParts::Several(receiver),
            },
            abandoned,
        }
    }

    /// Opens the stream of a session on which it hears what belongs to no request.
    pub(super) fn listen(&self, all: &HeaderMap) -> Reply {
        let accepts = headers::text(all, ACCEPT.as_str()).unwrap_or_default();
        if !accepts.contains("text/event-stream") && !accepts.contains("*/*") {
            let words = "the answer is a stream: accept text/event-stream";
            return reply::error(StatusCode::NOT_ACCEPTABLE, words);
        }
        let Some(id) = headers::text(all, headers::SESSION) else {
            // The stateless revision has no such stream.
            return reply::not_allowed("POST");
        };
        let Some(session) = self.sessions.find(id) else {
            let words = "this session is over; begin with `initialize`";
            return reply::error(StatusCode::NOT_FOUND, words);
        };
        let messages = session.stand();
        reply::events(None, messages, SessionInUse(session))
    }

    /// Ends a session.
    pub(super) async fn end(&self, all: &HeaderMap) -> Reply {
        let Some(id) = headers::text(all, headers::SESSION) else {
            return reply::not_allowed("POST");
        };
        match self.sessions.end(id).await {
            true => reply::plain(StatusCode::OK, ""),
            false => reply::error(StatusCode::NOT_FOUND, "there is no such session"),
        }
    }
}

/// What came back so far.
struct SentMessages {
    first: Option<RpcMessage>,
    parts: AnswerParts,
    abandoned: Abandoned,
}

/// What goes back to a post.
enum AnswerParts {
    /// There was no request.
    Nothing,
    /// The answer alone.
    One,
    /// A stream.
    Several(mpsc::Receiver<RpcMessage>),
}

impl AnswerParts {
    fn reply<T: Send + 'static>(
        self,
        status: StatusCode,
        first: Option<RpcMessage>,
        held: T,
    ) -> Reply {
        match (self, first) {
            (Self::Several(messages), first) => reply::events(first, messages, held),
            (_, Some(answer)) => reply::message(status, &answer),
            (_, None) => reply::accepted(),
        }
    }
}

/// A session is used until this is dropped.
struct SessionInUse(Arc<HttpSession>);

impl Drop for SessionInUse {
    fn drop(&mut self) {
        self.0.touch();
    }
}

/// Requests whose client may be gone: dropped before they are answered, they are called off, since their
/// answers could not be delivered.
struct Abandoned {
    session: Arc<McpSession>,
    requests: Vec<RpcId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        for id in &self.requests {
            self.session.call_off(id);
        }
    }
}

struct PostChannel(mpsc::Sender<RpcMessage>);

impl ReplyChannel for PostChannel {
    fn send(&self, message: RpcMessage) -> BoxFuture<'_, bool> {
        Box::pin(async { self.0.send(message).await.is_ok() })
    }

    fn try_send(&self, message: RpcMessage) -> bool {
        self.0.try_send(message).is_ok()
    }
}

/// Which status an error of the stateless revision has.
fn status_of(error: &RpcError) -> StatusCode {
    match error.code {
        code::UNSUPPORTED_REVISION | code::MISSING_CAPABILITY | code::HEADER_MISMATCH => {
            StatusCode::BAD_REQUEST
        }
        code::INVALID_PARAMS if error.message.starts_with("`_meta`") => StatusCode::BAD_REQUEST,
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// The client must send JSON, and take both kinds of answers.
fn check_kinds(all: &HeaderMap) -> Result<(), Box<Reply>> {
    let kind = headers::text(all, CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let words = "the body must be application/json";
        let refused = reply::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, words);
        return Err(Box::new(refused));
    }
    let accepts = headers::text(all, ACCEPT.as_str()).unwrap_or_default();
    let both = ["application/json", "text/event-stream"];
    let takes = |kind: &str| accepts.contains(kind) || accepts.contains("*/*");
    if !both.into_iter().all(takes) {
        let words = "accept application/json and text/event-stream";
        return Err(Box::new(reply::error(StatusCode::NOT_ACCEPTABLE, words)));
    }
    Ok(())
}
