//! Remote servers over streamable HTTP. Each message is an HTTP request; the response is a message
//! or a stream of messages. In addition, a stream is open for unsolicited messages of the server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use haft_contract::{BoxFuture, HttpBody, HttpMethod, HttpRequest, HttpResponse};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::{
    param_headers::{ParamHeaders, header_value},
    remote::RemoteAccess,
    transport::{MAX_WAITING, OpenTransport, QueueSink, TransportControl},
};
use crate::{
    frames::MAX_FRAME,
    message::{RpcId, RpcMessage},
    peer::{Peer, PeerError, PeerHandler, WeakPeer},
    revision::Revision,
};

/// The time limit for the headers of a response.
const FIRST_BYTE: Duration = Duration::from_secs(60);
/// The pause before a stream is resumed, if the server sets none.
const RESUME_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that a server may set.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The maximum number of times in a row that a stream is resumed without a new event.
const MAX_RESUMES: u32 = 5;
/// The maximum number of bytes to read of an error response.
const MAX_REFUSAL: usize = 64 * 1024;
/// The time limit for ending a session.
const GOODBYE: Duration = Duration::from_secs(2);

/// Creates the transport to a remote server. Nothing is sent yet.
pub(crate) fn open(access: RemoteAccess, handler: Arc<dyn PeerHandler>) -> OpenTransport {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let way = Arc::new(StreamableHttp {
        access,
        state: Mutex::default(),
        peer: OnceLock::new(),
    });
    let sink = QueueSink {
        sender,
        control: Arc::clone(&way) as _,
    };
    let peer = Peer::new(Arc::new(sink), handler);
    let _ = way.peer.set(peer.downgrade()); // it is set only here
    let sending = haft_contract::spawn_boxed(send_all(receiver, Arc::clone(&way)));
    way.state().tasks.push(sending.abort_handle());
    OpenTransport { peer, control: way }
}

struct StreamableHttp {
    access: RemoteAccess,
    state: Mutex<StreamableHttpState>,
    peer: OnceLock<WeakPeer>,
}

#[derive(Default)]
struct StreamableHttpState {
    session: Option<String>,
    revision: Option<Revision>,
    is_listening: bool,
    /// Requests in progress.
    requests: HashMap<RpcId, AbortHandle>,
    /// The parameters of tool calls that are also sent as headers.
    params: ParamHeaders,
    tasks: Vec<AbortHandle>,
}

/// Sends the messages in order. A request may take long, so later messages do not wait for it; any
/// other message is sent completely before the next.
async fn send_all(mut messages: mpsc::Receiver<RpcMessage>, way: Arc<StreamableHttp>) {
    while let Some(message) = messages.recv().await {
        match &message {
            RpcMessage::Request { id, .. } => {
                let (id, way) = (id.clone(), Arc::clone(&way));
                let mut state = way.state();
                let task = haft_contract::spawn_boxed({
                    let (id, way) = (id.clone(), Arc::clone(&way));
                    async move {
                        let failed = way.ask(&id, &message).await.err();
                        way.state().requests.remove(&id);
                        if let (Some(error), Some(peer)) = (failed, way.peer()) {
                            peer.fail(&id, error);
                        }
                    }
                });
                state.requests.insert(id, task.abort_handle());
            }
            RpcMessage::Notification { method, params } if method == "notifications/cancelled" => {
                let id = RpcId::parse(&params["requestId"]);
                let request = id.and_then(|id| way.state().requests.remove(&id));
                // In the stateless revision, closing the stream cancels the request.
                if way.is_stateless() {
                    if let Some(request) = request {
                        request.abort();
                    }
                    continue;
                }
                way.send_without_answer(&message).await;
                if let Some(request) = request {
                    request.abort();
                }
            }
            _ => way.send_without_answer(&message).await,
        }
    }
}

impl StreamableHttp {
    fn state(&self) -> MutexGuard<'_, StreamableHttpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peer(&self) -> Option<Peer> {
        self.peer.get()?.upgrade()
    }

    fn is_stateless(&self) -> bool {
        self.state()
            .revision
            .is_some_and(|revision| !revision.has_initialize())
    }

    fn end_tasks(&self) {
        let mut state = self.state();
        let requests: Vec<AbortHandle> = state.requests.drain().map(|(_, task)| task).collect();
        for task in state.tasks.drain(..).chain(requests) {
            task.abort();
        }
    }

    /// Sends a message that needs no answer.
    async fn send_without_answer(&self, message: &RpcMessage) {
        let sent = self.post(message).await;
        match sent {
            Ok(response) if response.status == 404 && self.state().session.is_some() => {
                self.session_is_gone();
            }
            Ok(response) if response.status >= 400 => {
                tracing::debug!(status = response.status, "a message was rejected");
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "a message could not be sent"),
        }
    }

    /// Sends a request, and passes the messages of the response to the peer.
    async fn ask(&self, id: &RpcId, message: &RpcMessage) -> Result<(), PeerError> {
        let mut response = self.post(message).await?;
        if let (RpcMessage::Request { method, .. }, Some(session)) =
            (message, response.header("mcp-session-id"))
            && method == "initialize"
        {
            let session = session.to_owned();
            self.state().session = Some(session);
        }
        let kind = response
            .header("content-type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_stream = kind.starts_with("text/event-stream");
        if !(200..300).contains(&response.status) {
            return Err(self.refused(id, response).await);
        }
        if is_stream {
            return self.read_answer_stream(id, response.body).await;
        }
        let text = response.body.bytes(MAX_FRAME).await;
        let text =
            text.map_err(|why| PeerError::Transport(format!("its answer cannot be read: {why}")))?;
        if text.is_empty() {
            return Err(PeerError::Transport(format!(
                "its response is empty (HTTP {})",
                response.status
            )));
        }
        if !kind.starts_with("application/json") {
            let why =
                format!("it answered with {kind:?}, which is neither JSON nor a stream of events");
            return Err(PeerError::Transport(why));
        }
        self.received(&text);
        self.must_be_answered(id)
    }

    /// Reads the stream of a request, and resumes it until the answer has arrived.
    async fn read_answer_stream(
        &self,
        id: &RpcId,
        mut body: Box<dyn HttpBody>,
    ) -> Result<(), PeerError> {
        let mut place = StreamPosition::default();
        let mut resumes = 0;
        loop {
            let ended = self.read_events(&mut *body, &mut place, &mut resumes).await;
            if self.is_answered(id) {
                return Ok(());
            }
            let why = match &ended {
                Ok(()) => "its stream ended before the answer came".to_owned(),
                Err(why) => why.clone(),
            };
            let Some(last) = place.id.clone().filter(|_| resumes < MAX_RESUMES) else {
                return Err(PeerError::Transport(why));
            };
            resumes += 1;
            sleep(place.pause()).await;
            let response = self.get(Some(&last)).await?;
            if response.status != 200 {
                return Err(self.refused(id, response).await);
            }
            body = response.body;
        }
    }

    /// Passes on the events of a stream until it ends.
    async fn read_events(
        &self,
        body: &mut dyn HttpBody,
        place: &mut StreamPosition,
        resumes: &mut u32,
    ) -> Result<(), String> {
        while let Some(event) = body.event(MAX_FRAME).await? {
            place.id = event.id.or(place.id.take());
            place.retry = event.retry.or(place.retry);
            if !event.data.is_empty() && matches!(event.name.as_str(), "" | "message") {
                *resumes = 0;
                self.received(event.data.as_bytes());
            }
        }
        Ok(())
    }

    /// Reads the server's unsolicited messages as long as it offers a stream for them.
    async fn listen(self: Arc<Self>) {
        let mut place = StreamPosition::default();
        let mut failures = 0;
        while failures < MAX_RESUMES {
            let response = match self.get(place.id.as_deref()).await {
                Ok(response) if response.status == 200 => response,
                // The server has no such stream.
                Ok(response) if response.status == 405 || response.status == 400 => return,
                Ok(response) if response.status == 404 => {
                    // A server without sessions has no such stream.
                    if self.state().session.is_some() {
                        self.session_is_gone();
                    }
                    return;
                }
                Ok(_) | Err(_) => {
                    failures += 1;
                    sleep(RESUME_PAUSE * 2_u32.pow(failures)).await;
                    continue;
                }
            };
            let mut body = response.body;
            let ended = self
                .read_events(&mut *body, &mut place, &mut failures)
                .await;
            tracing::debug!(?ended, "the stream of a server ended");
            failures += 1;
            sleep(place.pause()).await;
        }
    }

    fn received(&self, text: &[u8]) {
        if let Some(peer) = self.peer() {
            peer.receive_text(text);
        }
    }

    fn is_answered(&self, id: &RpcId) -> bool {
        self.peer().is_none_or(|peer| !peer.is_waiting_for(id))
    }

    fn must_be_answered(&self, id: &RpcId) -> Result<(), PeerError> {
        match self.is_answered(id) {
            true => Ok(()),
            false => Err(PeerError::Transport(
                "its response does not answer the request".to_owned(),
            )),
        }
    }

    fn session_is_gone(&self) {
        if let Some(peer) = self.peer() {
            peer.close("its session has ended");
        }
    }

    /// Returns the error for a refused request; a JSON-RPC error in the body is used as the answer.
    async fn refused(&self, id: &RpcId, mut response: HttpResponse) -> PeerError {
        let status = response.status;
        if matches!(status, 401 | 403) {
            return PeerError::Unauthorized {
                reason: format!("HTTP {status}"),
                challenge: response
                    .header("www-authenticate")
                    .unwrap_or_default()
                    .to_owned(),
                status,
            };
        }
        let has_session = self.state().session.is_some();
        let text = response.body.bytes(MAX_REFUSAL).await.unwrap_or_default();
        if status == 404 && has_session {
            self.session_is_gone();
            return PeerError::Closed("its session has ended".to_owned());
        }
        let said = serde_json::from_slice::<Value>(&text)
            .ok()
            .map(RpcMessage::parse);
        if let Some(Ok(RpcMessage::Answer {
            id: named,
            result: Err(error),
        })) = said
            && named.as_ref().is_none_or(|named| named == id)
        {
            return PeerError::Answered(error);
        }
        let words: String = String::from_utf8_lossy(&text)
            .trim()
            .chars()
            .take(200)
            .collect();
        let why = format!("HTTP {status} {words}").trim_end().to_owned();
        match status {
            500.. => PeerError::Closed(why),
            _ => PeerError::Transport(why),
        }
    }

    async fn get(&self, last: Option<&str>) -> Result<HttpResponse, PeerError> {
        let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(last.map(|id| ("last-event-id".to_owned(), id.to_owned())));
        self.exchange(HttpMethod::Get, headers, Vec::new()).await
    }

    async fn post(&self, message: &RpcMessage) -> Result<HttpResponse, PeerError> {
        let json = "application/json".to_owned();
        let mut headers = vec![
            ("content-type".to_owned(), json.clone()),
            ("accept".to_owned(), format!("{json}, text/event-stream")),
        ];
        if self.is_stateless() {
            headers.extend(standard_headers(message));
            headers.extend(self.state().params.headers_for(message));
        }
        let body = message.to_value().to_string().into_bytes();
        self.exchange(HttpMethod::Post, headers, body).await
    }

    async fn exchange(
        &self,
        method: HttpMethod,
        mut headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<HttpResponse, PeerError> {
        {
            let state = self.state();
            headers.extend(
                state
                    .session
                    .iter()
                    .map(|id| ("mcp-session-id".to_owned(), id.clone())),
            );
            let revision = state
                .revision
                .filter(|revision| *revision >= Revision::V2025_06_18);
            headers
                .extend(revision.map(|one| ("mcp-protocol-version".to_owned(), one.to_string())));
        }
        let request = HttpRequest {
            method,
            url: self.access.url().to_owned(),
            headers,
            body,
        };
        let sending = self.access.send(request);
        let sent = timeout(FIRST_BYTE, sending).await;
        sent.unwrap_or_else(|_| {
            let why = format!("it did not begin to answer within {FIRST_BYTE:?}");
            Err(PeerError::TimedOut(why))
        })
    }
}

impl TransportControl for StreamableHttp {
    fn on_abandoned(&self) {
        self.end_tasks();
    }

    fn on_revision_agreed(&self, revision: Revision) {
        self.state().revision = Some(revision);
    }

    fn usable_tools(&self, tools: Vec<Value>) -> Vec<Value> {
        match self.is_stateless() {
            false => tools,
            true => self.state().params.take_headers(tools),
        }
    }

    fn on_handshake_finished(self: Arc<Self>) {
        let mut state = self.state();
        let has_streams = state.revision.is_some_and(Revision::has_initialize);
        if has_streams && !std::mem::replace(&mut state.is_listening, true) {
            let listening = haft_contract::spawn_boxed(Arc::clone(&self).listen());
            state.tasks.push(listening.abort_handle());
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.state().session.is_some() {
                let ending = self.exchange(HttpMethod::Delete, Vec::new(), Vec::new());
                let _ = timeout(GOODBYE, ending).await; // the server may have no session to end
            }
            self.end_tasks();
        })
    }
}

/// The position for resuming a stream.
#[derive(Default)]
struct StreamPosition {
    id: Option<String>,
    retry: Option<u64>,
}

impl StreamPosition {
    fn pause(&self) -> Duration {
        let named = self.retry.map(Duration::from_millis);
        named.unwrap_or(RESUME_PAUSE).min(MAX_PAUSE)
    }
}

/// Returns the headers that repeat the method and name of a request in the stateless revision.
fn standard_headers(message: &RpcMessage) -> Vec<(String, String)> {
    let RpcMessage::Request { method, params, .. } = message else {
        return Vec::new();
    };
    let mut headers = vec![("mcp-method".to_owned(), method.clone())];
    let name = match method.as_str() {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    headers.extend(name.map(|name| ("mcp-name".to_owned(), header_value(name))));
    headers
}
