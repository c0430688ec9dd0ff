//! Remote servers as in 2024-11-05: one event stream for all incoming messages, and an address for
//! outgoing ones, which the first event names.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use haft_contract::{BoxFuture, HttpMethod, HttpRequest, HttpResponse};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::{Duration, timeout},
};

use super::{
    remote::{RemoteAccess, within},
    transport::{MAX_WAITING, OpenTransport, QueueSink, TransportControl},
};
use crate::{
    frames::MAX_FRAME,
    message::RpcMessage,
    peer::{Peer, PeerError, PeerHandler, WeakPeer},
};

/// The time limit for the headers of a response.
const FIRST_BYTE: Duration = Duration::from_secs(60);

/// Creates the transport to a server and opens the stream immediately.
pub(crate) fn open(access: RemoteAccess, handler: Arc<dyn PeerHandler>) -> OpenTransport {
    let (sender, messages) = mpsc::channel(MAX_WAITING);
    let way = Arc::new(SseTransport {
        access,
        peer: OnceLock::new(),
        place: watch::Sender::new(None),
        tasks: Mutex::default(),
    });
    let peer = Peer::new(
        Arc::new(QueueSink {
            sender,
            control: Arc::clone(&way) as _,
        }),
        handler,
    );
    let _ = way.peer.set(peer.downgrade()); // it is set only here
    let reading = haft_contract::spawn_boxed(Arc::clone(&way).read());
    let sending = haft_contract::spawn_boxed(Arc::clone(&way).send_all(messages));
    way.tasks()
        .extend([reading.abort_handle(), sending.abort_handle()]);
    OpenTransport { peer, control: way }
}

struct SseTransport {
    access: RemoteAccess,
    peer: OnceLock<WeakPeer>,
    /// The address for messages, once the server has named it.
    place: watch::Sender<Option<String>>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl SseTransport {
    fn tasks(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peer(&self) -> Option<Peer> {
        self.peer.get()?.upgrade()
    }

    fn end_tasks(&self) {
        for task in self.tasks().drain(..) {
            task.abort();
        }
    }

    async fn read(self: Arc<Self>) {
        let why = match self.read_stream().await {
            Ok(()) => PeerError::Closed("its stream ended".to_owned()),
            Err(why) => why,
        };
        if let Some(peer) = self.peer() {
            peer.close_with(why);
        }
    }

    async fn read_stream(&self) -> Result<(), PeerError> {
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: self.access.url().to_owned(),
            headers: vec![("accept".to_owned(), "text/event-stream".to_owned())],
            body: Vec::new(),
        };
        let mut response = self.exchange(request).await?;
        match response.status {
            200 => {}
            status @ 500.. => return Err(PeerError::Closed(format!("HTTP {status}"))),
            status => return Err(PeerError::Transport(format!("HTTP {status}"))),
        }
        let next = |error: String| PeerError::Closed(error);
        while let Some(event) = response.body.event(MAX_FRAME).await.map_err(next)? {
            match event.name.as_str() {
                "endpoint" => {
                    let place = within(self.access.url(), event.data.trim());
                    let place = place.ok_or_else(|| {
                        let to = &event.data;
                        PeerError::Transport(format!(
                            "it redirects messages to another server: {to}"
                        ))
                    })?;
                    self.place.send_replace(Some(place));
                }
                "" | "message" => {
                    if let Some(peer) = self.peer() {
                        peer.receive_text(event.data.as_bytes());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn send_all(self: Arc<Self>, mut messages: mpsc::Receiver<RpcMessage>) {
        let mut place = self.place.subscribe();
        while let Some(message) = messages.recv().await {
            let url = match place.wait_for(Option::is_some).await {
                Ok(place) => place.clone().unwrap_or_default(),
                Err(_) => return,
            };
            let request = HttpRequest {
                method: HttpMethod::Post,
                url,
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                body: message.to_value().to_string().into_bytes(),
            };
            let failed = match self.exchange(request).await {
                Ok(response) if response.status < 400 => None,
                Ok(response) => Some(PeerError::Transport(format!("HTTP {}", response.status))),
                Err(error) => Some(error),
            };
            if let (Some(error), RpcMessage::Request { id, .. }, Some(peer)) =
                (failed, &message, self.peer())
            {
                peer.fail(id, error);
            }
        }
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, PeerError> {
        let sent = timeout(FIRST_BYTE, self.access.send(request)).await;
        let response = sent.unwrap_or_else(|_| {
            let why = format!("it did not begin to answer within {FIRST_BYTE:?}");
            Err(PeerError::TimedOut(why))
        })?;
        match response.status {
            status @ (401 | 403) => Err(PeerError::Unauthorized {
                reason: format!("HTTP {status}"),
                challenge: response
                    .header("www-authenticate")
                    .unwrap_or_default()
                    .to_owned(),
                status,
            }),
            _ => Ok(response),
        }
    }
}

impl TransportControl for SseTransport {
    fn on_abandoned(&self) {
        self.end_tasks();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.end_tasks();
        Box::pin(async {})
    }
}
