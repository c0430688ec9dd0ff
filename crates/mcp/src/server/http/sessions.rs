//! The sessions of clients.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OnceCell, mpsc};

use crate::{
    RpcMessage,
    server::{
        parked::{ParkedRequests, random_name},
        service::{LogLevel, McpService, OpenSession, SessionNotifier},
        session::McpSession,
    },
};

/// More sessions are not open at once.
const MOST_SESSIONS: usize = 64;
/// So many messages that belong to no request wait for a client.
const WAITING: usize = 64;

pub(super) struct Sessions {
    open: Arc<dyn OpenSession>,
    idle: Duration,
    by_id: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// What all clients of the stateless revision share.
    shared: OnceCell<Arc<dyn McpService>>,
    parked: Arc<ParkedRequests>,
}

/// A session that began with `initialize`.
pub(super) struct HttpSession {
    pub(super) id: String,
    pub(super) mcp: Arc<McpSession>,
    standing: Arc<StandingStream>,
    used: Mutex<Instant>,
}

/// The stream on which a client hears what belongs to no request of its.
#[derive(Default)]
struct StandingStream(Mutex<Option<mpsc::Sender<RpcMessage>>>);

impl StandingStream {
    fn get(&self) -> MutexGuard<'_, Option<mpsc::Sender<RpcMessage>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        self.get()
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
    }
}

impl Sessions {
    pub(super) fn new(open: Arc<dyn OpenSession>, idle: Duration) -> Self {
        Self {
            open,
            idle,
            by_id: Mutex::default(),
            shared: OnceCell::new(),
            parked: Arc::default(),
        }
    }

    /// A new one. The error says why not.
    pub(super) async fn begin(&self) -> Result<Arc<HttpSession>, String> {
        if self.all().len() >= MOST_SESSIONS {
            self.end_idle();
        }
        if self.all().len() >= MOST_SESSIONS {
            return Err(format!("{MOST_SESSIONS} sessions are open already"));
        }
        let standing = Arc::new(StandingStream::default());
        let known: Arc<Mutex<Option<Arc<McpSession>>>> = Arc::default();
        let service = self.open.open(notifier(&standing, &known)).await?;
        let mcp = McpSession::new(service, Arc::clone(&self.parked));
        *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&mcp));
        let session = Arc::new(HttpSession {
            id: random_name(),
            mcp,
            standing,
            used: Mutex::new(Instant::now()),
        });
        self.all().insert(session.id.clone(), Arc::clone(&session));
        Ok(session)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.all().get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// A session for one request of the stateless revision. The error says why there is none.
    pub(super) async fn stateless(&self) -> Result<Arc<McpSession>, String> {
        let silent = SessionNotifier::new(|_, _| {});
        let opening = || self.open.open(silent);
        let service = self.shared.get_or_try_init(opening).await?;
        Ok(McpSession::new(
            Arc::clone(service),
            Arc::clone(&self.parked),
        ))
    }

    /// Ends one. `false`: there is no such session.
    pub(super) async fn end(&self, id: &str) -> bool {
        let session = self.all().remove(id);
        match session {
            Some(session) => {
                session.mcp.close().await;
                true
            }
            None => false,
        }
    }

    /// How often it is looked for sessions that no one uses.
    pub(super) fn sweep_every(&self) -> Duration {
        (self.idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(60))
    }

    /// Ends those that no one uses.
    pub(super) fn end_idle(&self) {
        let mut ended = Vec::new();
        self.all().retain(|_, session| {
            let is_idle = session.is_idle(self.idle);
            if is_idle {
                ended.push(Arc::clone(session));
            }
            !is_idle
        });
        for session in ended {
            tokio::spawn(async move { session.mcp.close().await });
        }
    }

    pub(super) async fn end_all(&self) {
        let all = std::mem::take(&mut *self.all());
        for session in all.into_values() {
            session.mcp.close().await;
        }
        if let Some(shared) = self.shared.get() {
            shared.close().await;
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    /// Opens the stream for what belongs to no request, in place of any other.
    pub(super) fn stand(&self) -> mpsc::Receiver<RpcMessage> {
        let (sender, receiver) = mpsc::channel(WAITING);
        *self.standing.get() = Some(sender);
        receiver
    }

    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self, idle: Duration) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.elapsed() >= idle && !self.mcp.is_busy() && !self.standing.is_open()
    }
}

fn notifier(
    standing: &Arc<StandingStream>,
    known: &Arc<Mutex<Option<Arc<McpSession>>>>,
) -> SessionNotifier {
    let (standing, known) = (Arc::downgrade(standing), Arc::downgrade(known));
    SessionNotifier::new(move |method, params| {
        let (Some(standing), Some(known)) = (standing.upgrade(), known.upgrade()) else {
            return;
        };
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let level = params["level"].as_str().and_then(LogLevel::parse);
        let is_wanted = known
            .as_ref()
            .is_some_and(|session| level.is_none_or(|level| session.wants_log(level)));
        if is_wanted && let Some(sender) = &*standing.get() {
            let _ = sender.try_send(RpcMessage::notification(method, params));
        }
    })
}
