//! How messages get to a server and back.

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

use super::{ServerSandbox, log::Words};

use crate::{
    message::{RpcId, RpcMessage},
    peer::{MessageSink, Peer, PeerError, PeerHandler, WeakPeer},
    revision::Revision,
};

/// An open way to a server.
pub(crate) struct Opened {
    pub(crate) peer: Peer,
    pub(crate) control: Arc<dyn TransportControl>,
}

/// What of a transport is not messages.
pub(crate) trait TransportControl: Send + Sync {
    /// No one holds the connection any more: what still runs for it ends at once.
    fn abandoned(&self) {}

    /// Both ends have agreed on this revision.
    fn agreed(&self, revision: Revision) {
        let _ = revision;
    }

    /// The greeting is over.
    fn begun(self: Arc<Self>) {}

    /// Those of the tools that can be called this way; what their calls need is remembered.
    fn usable_tools(&self, tools: Vec<Value>) -> Vec<Value> {
        tools
    }

    /// Ends it: a program that was started is asked to end, then made to.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// What the server writes beside its messages, the last of it.
    fn words(&self) -> Option<Words> {
        None
    }
}

/// The way to MCP servers that the other side runs: JSON-RPC messages, by the server's name.
pub trait ServerLink: Send + Sync {
    /// Sends a message and waits for its answer, as long as it takes. Dropped while it waits, it takes the
    /// message back.
    fn send<'a>(&'a self, server: &'a str, message: Value) -> BoxFuture<'a, Result<Value, String>>;

    /// Sends a message whose answer no one waits for.
    fn notify(&self, server: &str, message: Value);
}

/// What the process of a server may touch, out of what its entry says.
pub type SandboxOf = Arc<dyn Fn(ServerSandbox) -> SandboxProfile + Send + Sync>;

/// The program that guards servers when it is started again, and where servers are started.
#[derive(Clone, Default)]
pub struct ServerLaunch {
    /// `None`: servers are started without a guard, and may outlive a process that is killed.
    pub guard: Option<PathBuf>,
    /// The directory they are started in.
    pub cwd: PathBuf,
    /// `None`: a server that is to be confined is not started.
    pub sandbox: Option<SandboxOf>,
}

/// A server at the other end of a [`ServerLink`].
struct LinkSink {
    server: String,
    link: Arc<dyn ServerLink>,
    peer: OnceLock<WeakPeer>,
    /// Requests that are under way.
    sending: Arc<Mutex<HashMap<RpcId, AbortHandle>>>,
}

/// Opens the way to a server that the other side runs.
pub(crate) fn open_link(
    server: &str,
    link: &Arc<dyn ServerLink>,
    handler: Arc<dyn PeerHandler>,
) -> Opened {
    let sink = Arc::new(LinkSink {
        server: server.to_owned(),
        link: Arc::clone(link),
        peer: OnceLock::new(),
        sending: Arc::default(),
    });
    let peer = Peer::new(Arc::clone(&sink) as _, handler);
    let _ = sink.peer.set(peer.downgrade()); // it is the first
    Opened {
        peer,
        control: Arc::new(NoControl),
    }
}

/// Messages that wait to be sent by a task, in order.
pub(super) struct QueueSink {
    pub(super) sender: mpsc::Sender<RpcMessage>,
    pub(super) control: Arc<dyn TransportControl>,
}

impl MessageSink for QueueSink {
    fn send(&self, message: RpcMessage) -> Result<(), PeerError> {
        enqueue(&self.sender, message)
    }
}

/// So many messages wait to be sent. A server that asks and asks and reads no answer gets no more of them.
pub(super) const MOST_WAITING: usize = 4_096;

/// Puts a message behind those that wait, if there is room.
pub(super) fn enqueue(
    sender: &mpsc::Sender<RpcMessage>,
    message: RpcMessage,
) -> Result<(), PeerError> {
    sender.try_send(message).map_err(|refused| match refused {
        TrySendError::Full(_) => PeerError::Transport(format!(
            "it does not read what it is sent: {MOST_WAITING} messages wait already"
        )),
        TrySendError::Closed(_) => PeerError::Closed("the connection is closed".to_owned()),
    })
}

impl Drop for QueueSink {
    fn drop(&mut self) {
        self.control.abandoned();
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
                    Ok(Ok(_)) => peer.fail(&id, odd("it did not answer with an answer".to_owned())),
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
