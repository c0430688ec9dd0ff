//! Handles posted messages and their responses.

use std::{sync::Arc, time::Duration};

use haft_contract::BoxFuture;
use hyper::{
    HeaderMap, Request, StatusCode,
    body::Incoming,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    HttpState, ServerResponse,
    access::TokenHolder,
    headers, reply,
    sessions::{HttpSession, InUse, StatelessClientKey},
    streams::last_event,
};
use crate::{
    Revision, RpcError, RpcId, RpcMessage,
    message::code,
    revision::meta::CLIENT_INFO,
    server::session::{McpSession, ReplyChannel},
};

/// An answer within this time is sent without a stream.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The maximum number of messages of a request that wait to be read by its client.
const WAITING: usize = 256;

impl HttpState {
    /// Handles a POST request.
    pub(super) async fn post(
        &self,
        request: Request<Incoming>,
        holder: TokenHolder,
    ) -> ServerResponse {
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
            return self.post_stateless(&parts.headers, messages, holder).await;
        }
        self.post_to_session(&parts.headers, messages, is_batch, holder)
            .await
    }

    async fn post_to_session(
        &self,
        all: &HeaderMap,
        messages: Vec<RpcMessage>,
        is_batch: bool,
        holder: TokenHolder,
    ) -> ServerResponse {
        let named = headers::session(all);
        let begins = named.is_none()
            && matches!(
                messages.as_slice(),
                [RpcMessage::Request { method, .. }] if method == "initialize"
            );
        let session = match (named, begins) {
            (None, true) => match self.sessions.begin(holder).await {
                Ok(session) => session,
                Err(why) => return reply::error(StatusCode::SERVICE_UNAVAILABLE, &why),
            },
            (None, false) => {
                let words = "start with `initialize`, and send the Mcp-Session-Id of its answer";
                return reply::error(StatusCode::BAD_REQUEST, words);
            }
            (Some(id), _) => match self.sessions.find(id, holder) {
                Some(session) => session,
                None => return session_is_over(),
            },
        };
        if let Err(error) = headers::version_of_session(all) {
            let answer = crate::server::stdio::unreadable(error);
            return reply::message(StatusCode::BAD_REQUEST, &answer);
        }
        if is_batch && session.mcp.revision() != Some(Revision::V2025_03_26) {
            let words = "only the revision 2025-03-26 has batches";
            return reply::error(StatusCode::BAD_REQUEST, words);
        }
        let (mut answer, failed) = sent_to_session(&session, messages).await;
        if begins && failed {
            self.sessions.end(&session.id, holder).await;
        } else if begins && let Ok(id) = HeaderValue::from_str(&session.id) {
            answer.headers_mut().insert(headers::SESSION, id);
        }
        answer
    }

    async fn post_stateless(
        &self,
        all: &HeaderMap,
        messages: Vec<RpcMessage>,
        holder: TokenHolder,
    ) -> ServerResponse {
        let [RpcMessage::Request { id, method, params }] = messages.as_slice() else {
            return reply::error(StatusCode::BAD_REQUEST, "one request is expected");
        };
        let refused = |error| {
            let answer = RpcMessage::answer(id.clone(), Err(error));
            reply::message(StatusCode::BAD_REQUEST, &answer)
        };
        if let Err(error) = headers::check(all, method, params) {
            return refused(error);
        }
        let name = StatelessClientKey {
            holder,
            client: client_name(params),
        };
        let (in_use, session) = match self.sessions.stateless(name).await {
            Ok(found) => found,
            Err(why) => return reply::error(StatusCode::SERVICE_UNAVAILABLE, &why),
        };
        let tool = params["name"].as_str().filter(|_| method == "tools/call");
        if let Some(schema) = tool.and_then(|tool| session.schema_with_headers(tool))
            && let Err(error) = headers::check_parameters(all, &schema, &params["arguments"])
        {
            return refused(error);
        }
        let sent = sent_once(&session, id.clone(), messages).await;
        let status = match &sent.first {
            Some(RpcMessage::Answer {
                result: Err(error), ..
            }) => status_of(error),
            _ => StatusCode::OK,
        };
        match (sent.first, sent.more) {
            (first, Some(more)) => reply::events(first, more, (sent.abandoned, in_use)),
            (Some(answer), None) => reply::message(status, &answer),
            (None, None) => reply::accepted(),
        }
    }

    /// Opens the stream of a session for messages that belong to no request, or resumes a stream
    /// that was interrupted.
    pub(super) fn listen(&self, all: &HeaderMap, holder: TokenHolder) -> ServerResponse {
        let accepts = headers::text(all, ACCEPT.as_str()).unwrap_or_default();
        if !accepts.contains("text/event-stream") && !accepts.contains("*/*") {
            let words = "the answer is a stream: accept text/event-stream";
            return reply::error(StatusCode::NOT_ACCEPTABLE, words);
        }
        let Some(id) = headers::session(all) else {
            // The stateless revision has no such stream.
            return reply::not_allowed("POST");
        };
        let Some(session) = self.sessions.find(id, holder) else {
            return session_is_over();
        };
        let held = InUse::new(&session);
        let Some(last) = headers::text(all, headers::LAST_EVENT) else {
            let standing = Arc::clone(&session.standing);
            let behind = standing.delivered();
            return reply::event_stream(standing.read(behind, primes(&session), held));
        };
        let found = last_event(last).and_then(|(number, behind)| match number {
            0 => Some((Arc::clone(&session.standing), behind)),
            number => Some((session.streams.find(number)?, behind)),
        });
        match found {
            Some((stream, behind)) => {
                reply::event_stream(stream.read(behind, primes(&session), held))
            }
            None => {
                let words = "this event is unknown or has expired (Last-Event-ID)";
                reply::error(StatusCode::BAD_REQUEST, words)
            }
        }
    }

    /// Ends a session.
    pub(super) async fn end(&self, all: &HeaderMap, holder: TokenHolder) -> ServerResponse {
        let Some(id) = headers::session(all) else {
            return reply::not_allowed("POST");
        };
        match self.sessions.end(id, holder).await {
            true => reply::plain(StatusCode::OK, ""),
            false => reply::error(StatusCode::NOT_FOUND, "unknown session"),
        }
    }
}

fn session_is_over() -> ServerResponse {
    let words = "this session has ended; start with `initialize`";
    reply::error(StatusCode::NOT_FOUND, words)
}

/// Returns whether the session's client supports events without a message, which only contain an id
/// to resume with.
fn primes(session: &HttpSession) -> bool {
    let revision = session.mcp.revision();
    revision.is_some_and(|revision| revision >= Revision::V2025_11_25)
}

/// Passes messages to a session and waits up to [`AT_ONCE`] for the first reply. The second part of
/// the result is true if that reply is an error.
async fn sent_to_session(
    session: &Arc<HttpSession>,
    messages: Vec<RpcMessage>,
) -> (ServerResponse, bool) {
    let held = InUse::new(session);
    let is_request = |message: &&RpcMessage| matches!(message, RpcMessage::Request { .. });
    let requests = messages.iter().filter(is_request).count();
    let (stream, writer) = session.streams.open();
    let channel: Arc<dyn ReplyChannel> = writer;
    for message in messages {
        if let Some(answer) = session.mcp.receive(message, &channel) {
            channel.send(answer).await;
        }
    }
    drop(channel);
    if requests == 0 {
        session.streams.remove(&stream);
        return (reply::accepted(), false);
    }
    let first = tokio::time::timeout(AT_ONCE, stream.first()).await;
    match first {
        Ok(Some(answer)) if requests == 1 && answer.is_answer => {
            session.streams.remove(&stream);
            (reply::json(StatusCode::OK, answer.json), answer.is_error)
        }
        _ => {
            let events = stream.read(0, primes(session), held);
            (reply::event_stream(events), false)
        }
    }
}

/// The replies to a request that ends with its connection.
struct SingleReply {
    first: Option<RpcMessage>,
    more: Option<mpsc::Receiver<RpcMessage>>,
    abandoned: AbandonGuard,
}

/// Processes a request of the stateless revision and waits up to [`AT_ONCE`] for the first reply.
async fn sent_once(
    session: &Arc<McpSession>,
    request: RpcId,
    messages: Vec<RpcMessage>,
) -> SingleReply {
    let abandoned = AbandonGuard {
        session: Arc::clone(session),
        request,
    };
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let channel: Arc<dyn ReplyChannel> = Arc::new(PostChannel(sender));
    for message in messages {
        if let Some(answer) = session.receive(message, &channel) {
            channel.send(answer).await;
        }
    }
    drop(channel);
    let first = tokio::time::timeout(AT_ONCE, receiver.recv()).await;
    let is_all = matches!(first, Ok(Some(RpcMessage::Answer { id: Some(_), .. })));
    SingleReply {
        first: first.unwrap_or_default(),
        more: (!is_all).then_some(receiver),
        abandoned,
    }
}

/// Cancels a request of the stateless revision if it is dropped before it is answered: that
/// revision requires this when the client disconnects.
struct AbandonGuard {
    session: Arc<McpSession>,
    request: RpcId,
}

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.session.cancel_request(&self.request);
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

/// Returns a name from the client's description of itself. In the stateless revision only this
/// distinguishes clients with the same token.
fn client_name(params: &Value) -> String {
    let info = &params["_meta"][CLIENT_INFO];
    let part = |name: &str| info[name].as_str().unwrap_or_default();
    let name = format!("{} {}", part("name"), part("version"));
    name.chars().take(200).collect()
}

/// Returns the HTTP status for an error in the stateless revision.
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

/// Checks that the client sends JSON and accepts both kinds of responses.
fn check_kinds(all: &HeaderMap) -> Result<(), Box<ServerResponse>> {
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
