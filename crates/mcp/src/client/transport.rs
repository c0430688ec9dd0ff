//! Transports that carry messages to a server and back.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use haft_contract::BoxFuture;
use haft_sandbox::SandboxProfile;
use serde_json::Value;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::AbortHandle,
};

use super::{ServerSandbox, server_log::StderrTail};

use crate::{
    message::{RpcId, RpcMessage},
    peer::{MessageSink, Peer, PeerError, PeerHandler, WeakPeer},
    revision::Revision,
};

/// An open transport.
pub(crate) struct OpenTransport {
    pub(crate) peer: Peer,
    pub(crate) control: Arc<dyn TransportControl>,
}

/// The operations of a transport besides sending messages.
pub(crate) trait TransportControl: Send + Sync {
    /// Called when the connection was dropped: tasks that still run for it end immediately.
    fn on_abandoned(&self) {}

    /// Called when both ends have agreed on a revision.
    fn on_revision_agreed(&self, revision: Revision) {
        let _ = revision;
    }

    /// Called when the handshake has finished.
    fn on_handshake_finished(self: Arc<Self>) {}

    /// Returns the tools that can be called over this transport, and records what their calls need.
    fn usable_tools(&self, tools: Vec<Value>) -> Vec<Value> {
        tools
    }

    /// Closes the transport. A program that was started is asked to exit, and then killed.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Returns the last part of the server's standard error.
    fn stderr_tail(&self) -> Option<StderrTail> {
        None
    }
}

/// The connection to MCP servers that the SDK client runs: JSON-RPC messages, by server name.
pub trait ServerLink: Send + Sync {
    /// Sends a message and waits for its answer without a time limit. If the future is dropped, the
    /// message is withdrawn.
    fn send<'a>(&'a self, server: &'a str, message: Value) -> BoxFuture<'a, Result<Value, String>>;

    /// Sends a message without waiting for an answer.
    fn notify(&self, server: &str, message: Value);
}

/// A function that returns the sandbox profile of a server's process, from the `sandbox` field of
/// its entry.
pub type SandboxOf = Arc<dyn Fn(ServerSandbox) -> SandboxProfile + Send + Sync>;

/// The parameters for starting local servers.
#[derive(Clone, Default)]
pub struct ServerLaunch {
    /// The program that guards servers. `None` starts servers without a guard; they may survive if
    /// haft is killed.
    pub guard: Option<PathBuf>,
    /// The working directory of started servers.
    pub cwd: PathBuf,
    /// The source of sandbox profiles. If it is `None`, a server with a `sandbox` field is not
    /// started.
    pub sandbox: Option<SandboxOf>,
}

/// Sends messages to a server at the other end of a [`ServerLink`].
struct LinkSink {
    server: String,
    link: Arc<dyn ServerLink>,
    peer: OnceLock<WeakPeer>,
    /// Requests in progress.
    sending: Arc<Mutex<HashMap<RpcId, AbortHandle>>>,
}

/// Creates the transport to a server that the SDK client runs.
pub(crate) fn open_link(
    server: &str,
    link: &Arc<dyn ServerLink>,
    handler: Arc<dyn PeerHandler>,
) -> OpenTransport {
    let sink = Arc::new(LinkSink {
        server: server.to_owned(),
        link: Arc::clone(link),
        peer: OnceLock::new(),
        sending: Arc::default(),
    });
    let peer = Peer::new(Arc::clone(&sink) as _, handler);
    let _ = sink.peer.set(peer.downgrade()); // it is set only here
    OpenTransport {
        peer,
        control: Arc::new(NoControl),
    }
}

/// Queues messages that a task sends in order.
pub(super) struct QueueSink {
    pub(super) sender: mpsc::Sender<RpcMessage>,
    pub(super) control: Arc<dyn TransportControl>,
}

impl MessageSink for QueueSink {
    fn send(&self, message: RpcMessage) -> Result<(), PeerError> {
        enqueue(&self.sender, message)
    }
}

/// The maximum number of messages that wait to be sent. Beyond it, messages to a server that does
/// not read are refused.
pub(super) const MAX_WAITING: usize = 4_096;

/// Appends a message to the queue, if there is room.
pub(super) fn enqueue(
    sender: &mpsc::Sender<RpcMessage>,
    message: RpcMessage,
) -> Result<(), PeerError> {
    sender.try_send(message).map_err(|refused| match refused {
        TrySendError::Full(_) => PeerError::Transport(format!(
            "it does not read its input: {MAX_WAITING} messages are queued"
        )),
        TrySendError::Closed(_) => PeerError::Closed("the connection is closed".to_owned()),
    })
}

impl Drop for QueueSink {
    fn drop(&mut self) {
        self.control.on_abandoned();
    }
}

struct NoControl;

impl TransportControl for NoControl {}

impl MessageSink for LinkSink {
    fn send(&self, message: RpcMessage) -> Result<(), PeerError> {
        let RpcMessage::Request { id, .. } = &message else {
            if let RpcMessage::Notification { method, params } = &message
                && method == "notifications/cancelled"
                && let Some(id) = RpcId::parse(&params["requestId"])
                && let Some(sending) = lock(&self.sending).remove(&id)
            {
                sending.abort();
            }
            self.link.notify(&self.server, message.to_value());
            return Ok(());
        };
        let Some(peer) = self.peer.get().cloned() else {
            return Err(PeerError::Closed("it is not open yet".to_owned()));
        };
        let (id, link, server) = (id.clone(), Arc::clone(&self.link), self.server.clone());
        let table = Arc::clone(&self.sending);
        let mut sending = lock(&self.sending);
        let task = haft_contract::spawn_boxed({
            let id = id.clone();
            async move {
                let answer = link.send(&server, message.to_value()).await;
                lock(&table).remove(&id);
                let Some(peer) = peer.upgrade() else { return };
                let odd = |why: String| PeerError::Transport(why);
                match answer.map(RpcMessage::parse) {
                    Ok(Ok(RpcMessage::Answer { result, .. })) => {
                        peer.receive(RpcMessage::answer(id, result));
                    }
                    Ok(Ok(_)) => peer.fail(
                        &id,
                        odd("its response is not a JSON-RPC response".to_owned()),
                    ),
                    Ok(Err(error)) => peer.fail(&id, odd(error.message)),
                    Err(why) => peer.fail(&id, odd(why)),
                }
            }
        });
        sending.insert(id, task.abort_handle());
        Ok(())
    }
}

impl Drop for LinkSink {
    fn drop(&mut self) {
        for sending in lock(&self.sending).values() {
            sending.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
